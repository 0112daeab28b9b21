/* Determines the state of each thread of a trace over time from the names of its ranges. */
#include "analyze/gpu_idle/gpu_idle_priv.h"
#include "base/grow.h"
#include "weir/trace.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const int64_t ns_limit = INT64_C(4000000000000000000);

int64_t weir_host_clamp(int64_t ns)
{
    return ns < -ns_limit ? -ns_limit : ns > ns_limit ? ns_limit : ns;
}

int64_t weir_host_end(const struct weir_event *event)
{
    int64_t start_ns = weir_host_clamp(event->start_ns), ns = event->duration_ns > 0 ? event->duration_ns : 0;
    return ns > ns_limit - start_ns ? ns_limit : start_ns + ns;
}

/* ---- names ---- */

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static enum weir_host_state call_state(const char *name)
{
    static const char *const allocations[] = {
        "Malloc",    "Free",   "HostAlloc", "HostRegister", "HostUnregister", "MemAlloc",   "MemFree", "MemHost",
        "MemCreate", "MemMap", "MemUnmap",  "MemRelease",   "MemSetAccess",   "MemAddress", "MemPool",
    };
    name += starts_with(name, "cuda") ? 4 : starts_with(name, "cu") ? 2 : starts_with(name, "hip") ? 3 : 0;
    if (strstr(name, "Synchronize"))
        return WEIR_HOST_SYNC;
    if (starts_with(name, "Memcpy"))
        return strstr(name, "Async") ? WEIR_HOST_COPY : WEIR_HOST_SYNC;
    for (size_t i = 0; i < sizeof allocations / sizeof *allocations; i++)
        if (starts_with(name, allocations[i]))
            return WEIR_HOST_ALLOCATION;
    return WEIR_HOST_CALL;
}

/* Recognises common names for waits for data, such as "data wait", "train_dataloader_next" and "08_wait_for_data". */
static bool is_named_data_wait(const char *name)
{
    static const char *const words[] = {
        "wait_for_data", "waiting_for_data", "wait_for_batch",  "waiting_for_batch", "data_wait",
        "batch_wait",    "dataloader_wait",  "dataloader_next", "08b_wait_for_gpu",
    };
    char plain[256];
    size_t n = 0;
    for (; name[n] && n < sizeof plain - 1; n++)
        plain[n] = (char)(isalnum((unsigned char)name[n]) ? tolower((unsigned char)name[n]) : '_');
    plain[n] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(plain, words[i]))
            return true;
    return false;
}

static enum weir_idle_loader loader_of(const char *wait)
{
    if (strstr(wait, "#WeirLoader."))
        return WEIR_IDLE_LOADER_WEIR;
    if (strstr(wait, "MultiProcessing"))
        return WEIR_IDLE_LOADER_WORKERS;
    return strstr(wait, "SingleProcess") ? WEIR_IDLE_LOADER_INLINE : WEIR_IDLE_LOADER_UNKNOWN;
}

enum range_name { NAME_UNREAD, NAME_PLAIN, NAME_STEP, NAME_DATA, NAME_MEASUREMENT, NAME_WAIT };

static enum range_name range_name(const char *name)
{
    if (strcmp(name, "measurement") == 0)
        return NAME_MEASUREMENT;
    if (weir_step_is_data_wait(name) || is_named_data_wait(name))
        return NAME_DATA;
    if (starts_with(name, "ProfilerStep#"))
        return NAME_STEP;
    return strstr(name, "_wait_for_") ? NAME_WAIT : NAME_PLAIN;
}

/* ---- from ranges to points ---- */

/* Caches what each name means, indexed by its text id. */
struct names {
    const struct weir_trace *trace;
    uint8_t *calls, *ranges;      /* calls: enum weir_host_state + 1; ranges: enum range_name; 0 = not parsed yet */
    enum weir_idle_loader loader; /* of the waits parsed so far, the one with the highest value */
};

static bool is_call(const struct weir_event *event)
{
    return event->kind == WEIR_EVENT_RANGE &&
           (event->cat == WEIR_CAT_CUDA_RUNTIME || event->cat == WEIR_CAT_CUDA_DRIVER);
}

static bool is_host_range(const struct weir_event *event)
{
    return event->kind == WEIR_EVENT_RANGE &&
           (event->cat == WEIR_CAT_CPU_OP || event->cat == WEIR_CAT_USER_ANNOTATION ||
            event->cat == WEIR_CAT_LOADER_STAGE);
}

static enum range_name name_of_range(struct names *names, weir_text_id id)
{
    if (names->ranges[id] == NAME_UNREAD) {
        const char *name = weir_trace_text(names->trace, id);
        names->ranges[id] = (uint8_t)range_name(name);
        if (names->ranges[id] == NAME_DATA && loader_of(name) > names->loader)
            names->loader = loader_of(name);
    }
    return (enum range_name)names->ranges[id];
}

static enum weir_host_state state_of(struct names *names, const struct weir_event *event)
{
    if (is_call(event)) {
        uint8_t *state = &names->calls[event->name];
        if (*state == 0)
            *state = (uint8_t)(call_state(weir_trace_text(names->trace, event->name)) + 1);
        return (enum weir_host_state)(*state - 1);
    }
    switch (name_of_range(names, event->name)) {
    case NAME_MEASUREMENT:
        return WEIR_HOST_MEASUREMENT;
    case NAME_DATA:
        return WEIR_HOST_DATA;
    case NAME_STEP:
        return WEIR_HOST_NONE;
    case NAME_WAIT: /* a wait in a loader's stage means that a worker is idle */
        return event->cat == WEIR_CAT_LOADER_STAGE ? WEIR_HOST_NONE : WEIR_HOST_OPERATOR;
    default:
        return event->cat == WEIR_CAT_USER_ANNOTATION ? WEIR_HOST_NONE : WEIR_HOST_OPERATOR;
    }
}

static int by_track(const void *a, const void *b)
{
    const struct weir_host_point *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static int by_correlation(const void *a, const void *b)
{
    const struct weir_host_call *x = a, *y = b;
    if (x->correlation != y->correlation)
        return x->correlation < y->correlation ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Adds two points for each range, at its start and at its end. Returns the number of points. */
static size_t collect(struct weir_host *host, struct names *names)
{
    const struct weir_trace *trace = names->trace;
    size_t n = 0;
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        bool call = is_call(event);
        if (!call && !is_host_range(event))
            continue;
        int64_t start_ns = weir_host_clamp(event->start_ns), end_ns = weir_host_end(event);
        if (call && event->correlation)
            host->calls[host->n_calls++] = (struct weir_host_call){event->correlation, event->track, start_ns, end_ns};
        if (!call && event->cat != WEIR_CAT_LOADER_STAGE && host->step_track == WEIR_HOST_NO_TRACK &&
            name_of_range(names, event->name) == NAME_STEP)
            host->step_track = event->track;
        uint8_t state = (uint8_t)state_of(names, event);
        if (state == WEIR_HOST_NONE || end_ns == start_ns)
            continue;
        host->points[n++] = (struct weir_host_point){start_ns, event->track, state, 1};
        host->points[n++] = (struct weir_host_point){end_ns, event->track, state, -1};
    }
    return n;
}

static uint8_t highest(const int64_t open[WEIR_HOST_STATES])
{
    for (int state = WEIR_HOST_STATES - 1; state > WEIR_HOST_NONE; state--)
        if (open[state] > 0)
            return (uint8_t)state;
    return WEIR_HOST_NONE;
}

/* Replaces the changes of counts with states, in place; changes at the same time become one point. Ranges that overlap
 * only in part are counted like nested ranges. */
static void settle_states(struct weir_host *host, size_t n_changes, uint32_t n_tracks)
{
    size_t n = 0, i = 0;
    for (uint32_t track = 0; track < n_tracks; track++) {
        int64_t open[WEIR_HOST_STATES] = {0};
        host->first[track] = n;
        while (i < n_changes && host->points[i].track == track) {
            int64_t at_ns = host->points[i].at_ns;
            for (; i < n_changes && host->points[i].track == track && host->points[i].at_ns == at_ns; i++)
                open[host->points[i].state] += host->points[i].change;
            host->points[n++] = (struct weir_host_point){at_ns, track, highest(open), 0};
        }
    }
    host->first[n_tracks] = n;
}

static size_t count(const struct weir_trace *trace, size_t *calls)
{
    size_t n = 0;
    *calls = 0;
    for (size_t i = 0; i < trace->n_events; i++) {
        *calls += is_call(&trace->events[i]);
        n += is_call(&trace->events[i]) || is_host_range(&trace->events[i]);
    }
    return n;
}

int weir_host_make(struct weir_host *host, const struct weir_trace *trace)
{
    size_t calls, ranges = count(trace, &calls), texts = weir_trace_text_count(trace);
    struct names names = {.trace = trace, .calls = calloc(texts, 1), .ranges = calloc(texts, 1)};
    *host = (struct weir_host){
        .points = malloc((2 * ranges + 1) * sizeof *host->points),
        .first = malloc(((size_t)trace->n_tracks + 1) * sizeof *host->first),
        .calls = malloc((calls + 1) * sizeof *host->calls),
        .step_track = WEIR_HOST_NO_TRACK,
    };
    bool room = names.calls && names.ranges && host->points && host->first && host->calls;
    if (room) {
        size_t n = collect(host, &names);
        qsort(host->points, n, sizeof *host->points, by_track);
        qsort(host->calls, host->n_calls, sizeof *host->calls, by_correlation);
        settle_states(host, n, trace->n_tracks);
        host->loader = names.loader;
    } else {
        weir_host_clear(host);
    }
    free(names.calls);
    free(names.ranges);
    return room ? 0 : -ENOMEM;
}

void weir_host_clear(struct weir_host *host)
{
    free(host->points);
    free(host->first);
    free(host->calls);
    *host = (struct weir_host){.step_track = WEIR_HOST_NO_TRACK};
}

/* ---- look-ups ---- */

/* Returns the index of the first call that comes after the given correlation number and start, in this order. */
static size_t call_behind(const struct weir_host *host, uint32_t correlation, int64_t at_ns)
{
    const struct weir_host_call *calls = host->calls;
    return WEIR_FIRST(i, host->n_calls,
                      calls[i].correlation > correlation ||
                          (calls[i].correlation == correlation && calls[i].start_ns > at_ns));
}

const struct weir_host_call *weir_host_launch(const struct weir_host *host, uint32_t correlation, int64_t at_ns)
{
    size_t behind = correlation ? call_behind(host, correlation, at_ns) : 0;
    if (correlation == 0)
        return NULL;
    if (behind > 0 && host->calls[behind - 1].correlation == correlation)
        return &host->calls[behind - 1];
    return behind < host->n_calls && host->calls[behind].correlation == correlation ? &host->calls[behind] : NULL;
}

struct weir_host_cursor weir_host_seek(const struct weir_host *host, uint32_t track, int64_t at_ns)
{
    struct weir_host_cursor cursor = {NULL, 0, 0};
    if (track == WEIR_HOST_NO_TRACK)
        return cursor;
    cursor.points = host->points + host->first[track];
    cursor.n = host->first[track + 1] - host->first[track];
    cursor.next = WEIR_FIRST(i, cursor.n, cursor.points[i].at_ns > at_ns);
    return cursor;
}

int64_t weir_host_data_ns(const struct weir_host *host, uint32_t track, int64_t begin_ns, int64_t end_ns)
{
    struct weir_host_cursor cursor = weir_host_seek(host, track, begin_ns);
    int64_t ns = 0;
    for (int64_t at_ns = begin_ns; at_ns < end_ns;) {
        int64_t until_ns = weir_host_until(&cursor) < end_ns ? weir_host_until(&cursor) : end_ns;
        if (weir_host_state(&cursor) == WEIR_HOST_DATA)
            ns += until_ns - at_ns;
        at_ns = until_ns;
        weir_host_move(&cursor, at_ns);
    }
    return ns;
}
