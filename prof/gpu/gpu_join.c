/* Finds the range in which each CUDA API call was made, by comparing threads and start times, which calls and ranges
 * measure on the same clock. Recording therefore does not have to push and pop ranges. */
#include "base/grow.h"
#include "base/proc.h"
#include "prof/gpu/gpu_join_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool weir_gpu_join_room(struct weir_gpu_join *join, void *array, size_t n, size_t size)
{
    if (join->rc == 0 && !weir_grow(array, n, size))
        join->rc = -ENOMEM;
    return join->rc == 0;
}

int64_t weir_gpu_join_ns(const struct weir_gpu_join *join, uint64_t ns)
{
    return join->trace->begin_ns + (int64_t)(ns - join->begin_ns);
}

/* ---- rows ---- */

/* Reads the name of a thread that has no ring, such as a library's thread. Returns 0 if the thread has ended. */
static weir_text_id name_of_thread(struct weir_trace *trace, int32_t tid)
{
    char name[64] = "";
    weir_proc_read(name, sizeof name, "", getpid(), tid, "comm");
    name[strcspn(name, "\n")] = '\0';
    return weir_trace_intern(trace, name, strlen(name));
}

static uint32_t row_of(struct weir_gpu_join *join, int64_t pid, int64_t tid, bool device)
{
    int64_t track = weir_trace_track(join->trace, pid, tid, device, 0);
    if (track < 0 && join->rc == 0)
        join->rc = (int)track;
    return track < 0 ? 0 : (uint32_t)track;
}

uint32_t weir_gpu_join_thread(struct weir_gpu_join *join, int32_t tid)
{
    uint32_t known = join->trace->n_tracks, track = row_of(join, join->trace->main_pid, tid, false);
    if (join->trace->n_tracks > known)
        join->trace->tracks[track].name = name_of_thread(join->trace, tid);
    return track;
}

uint32_t weir_gpu_join_stream(struct weir_gpu_join *join, uint32_t device, int64_t row)
{
    return row_of(join, device, row, true);
}

int weir_gpu_join_lane(struct weir_gpu_join *join, struct weir_gpu_lanes *lanes, uint32_t device, uint32_t stream,
                       int64_t start_ns, int64_t end_ns)
{
    int number = 0;
    for (size_t i = 0; i < lanes->n; i++) {
        struct weir_gpu_lane *lane = &lanes->at[i];
        if (lane->device != device || lane->stream != stream)
            continue;
        if (lane->end_ns <= start_ns) {
            lane->end_ns = end_ns;
            return number;
        }
        number++;
    }
    if (lanes->n == lanes->max || !weir_gpu_join_room(join, &lanes->at, lanes->n, sizeof *lanes->at))
        return -1;
    lanes->at[lanes->n++] = (struct weir_gpu_lane){device, stream, end_ns};
    return number;
}

/* ---- calls ---- */

/* Calls that torch omits, because they cause no work on the GPU. */
static bool is_dull(const char *name)
{
    static const char *const dull[] = {
        "cudaGetDevice",   "cudaSetDevice", "cudaGetLastError", "cudaEventCreate", "cudaEventCreateWithFlags",
        "cudaEventDestroy"};
    for (size_t i = 0; i < sizeof dull / sizeof *dull; i++)
        if (strcmp(name, dull[i]) == 0)
            return true;
    return false;
}

static void take_call(void *user, const struct weir_gpu_record *record)
{
    struct weir_gpu_join *join = user;
    bool driver = record->kind == WEIR_GPU_RECORD_DRIVER;
    if ((record->kind != WEIR_GPU_RECORD_RUNTIME && !driver) || record->start_ns < join->begin_ns ||
        record->start_ns >= join->end_ns || is_dull(record->name) ||
        (driver && strncmp(record->name, "cuLaunchKernel", 14) != 0))
        return;
    if (!weir_gpu_join_room(join, &join->calls, join->n_calls, sizeof *join->calls))
        return;
    uint64_t end_ns = record->end_ns > record->start_ns ? record->end_ns : record->start_ns;
    /* Clip it, like ranges that are still open at the window's end. */
    end_ns = end_ns < join->end_ns ? end_ns : join->end_ns;
    join->calls[join->n_calls++] = (struct weir_gpu_call){
        .start_ns = weir_gpu_join_ns(join, record->start_ns),
        .end_ns = weir_gpu_join_ns(join, end_ns),
        .correlation = record->correlation,
        .track = weir_gpu_join_thread(join, record->tid),
        .cbid = record->cbid,
        .name = weir_trace_intern(join->trace, record->name, strlen(record->name)),
        .range = -1,
        .driver = driver,
    };
}

static int by_start(const void *a, const void *b)
{
    const struct weir_gpu_call *x = a, *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Sorts a runtime call before the driver call that it made, which has the same correlation number. */
static int by_correlation(const void *a, const void *b)
{
    const struct weir_gpu_call *x = a, *y = b;
    if (x->correlation != y->correlation)
        return x->correlation < y->correlation ? -1 : 1;
    return x->driver - y->driver;
}

static void sort_calls(struct weir_gpu_join *join, int (*order)(const void *a, const void *b))
{
    if (join->n_calls) /* qsort does not accept a NULL array */
        qsort(join->calls, join->n_calls, sizeof *join->calls, order);
}

static void drop_inner_calls(struct weir_gpu_join *join)
{
    size_t kept = 0;
    sort_calls(join, by_correlation);
    for (size_t i = 0; i < join->n_calls; i++) {
        const struct weir_gpu_call *call = &join->calls[i];
        bool inner = call->driver && kept && join->calls[kept - 1].correlation == call->correlation;
        if (!inner)
            join->calls[kept++] = *call;
    }
    join->n_calls = kept;
}

const struct weir_gpu_call *weir_gpu_join_call(const struct weir_gpu_join *join, uint32_t correlation)
{
    size_t low = WEIR_FIRST(i, join->n_calls, join->calls[i].correlation >= correlation);
    bool found = correlation && low < join->n_calls && join->calls[low].correlation == correlation;
    return found ? &join->calls[low] : NULL;
}

/* ---- ranges ---- */

bool weir_gpu_join_is_step(const struct weir_trace *trace, const struct weir_event *event)
{
    return event->cat == WEIR_CAT_USER_ANNOTATION &&
           strncmp(weir_trace_text(trace, event->name), "ProfilerStep#", 13) == 0;
}

static bool is_range(const struct weir_event *event)
{
    return event->kind == WEIR_EVENT_RANGE && (event->cat == WEIR_CAT_CPU_OP || event->cat == WEIR_CAT_LOADER_STAGE ||
                                               event->cat == WEIR_CAT_USER_ANNOTATION);
}

/* Assigns external ids. They are larger than all correlation ids, so readers that look up an id by its number alone do
 * not confuse the two. */
static void number_ranges(struct weir_gpu_join *join)
{
    uint64_t next = 0;
    for (size_t i = 0; i < join->n_calls; i++)
        next = join->calls[i].correlation > next ? join->calls[i].correlation : next;
    for (size_t i = 0; i < join->trace->n_events; i++)
        if (is_range(&join->trace->events[i]))
            join->trace->events[i].external_id = ++next;
}

/* Returns the innermost range of a row at the time at_ns, or -1. *innermost caches the row's innermost range, so at_ns
 * must not decrease from one call to the next. */
static int32_t around(const struct weir_gpu_join *join, int32_t *innermost, int64_t at_ns)
{
    while (*innermost >= 0 && join->ranges[*innermost].end_ns <= at_ns)
        *innermost = join->ranges[*innermost].around;
    return *innermost;
}

static void walk_in_time(struct weir_gpu_join *join, int32_t *innermost)
{
    const struct weir_trace *trace = join->trace;
    size_t call = 0;
    for (size_t i = 0; i <= trace->n_events; i++) {
        const struct weir_event *event = i < trace->n_events ? &trace->events[i] : NULL;
        for (; call < join->n_calls && (!event || join->calls[call].start_ns < event->start_ns); call++)
            join->calls[call].range = around(join, &innermost[join->calls[call].track], join->calls[call].start_ns);
        if (!event || !is_range(event))
            continue;
        int32_t outer = around(join, &innermost[event->track], event->start_ns);
        innermost[event->track] = (int32_t)join->n_ranges;
        join->ranges[join->n_ranges++] =
            (struct weir_gpu_range){event->start_ns + event->duration_ns, (uint32_t)i, outer};
    }
}

/* Returns the id of the innermost operator or stage. Without one, returns the id of the innermost annotation that is
 * not a step. */
static uint64_t external_id_of(const struct weir_gpu_join *join, int32_t range)
{
    uint64_t annotation = 0;
    for (; range >= 0; range = join->ranges[range].around) {
        const struct weir_event *event = &join->trace->events[join->ranges[range].event];
        if (event->cat != WEIR_CAT_USER_ANNOTATION)
            return event->external_id;
        if (!annotation && !weir_gpu_join_is_step(join->trace, event))
            annotation = event->external_id;
    }
    return annotation;
}

/* Shortens a call that ends after its range because of clock errors. Readers drop ranges that overlap only in part. */
static void clip_call(const struct weir_gpu_join *join, struct weir_gpu_call *call)
{
    int64_t end_ns = call->range >= 0 ? join->ranges[call->range].end_ns : INT64_MAX;
    if (call->end_ns > end_ns && call->end_ns - end_ns <= WEIR_GPU_CLOCK_ERROR_NS)
        call->end_ns = end_ns;
}

static void find_ranges(struct weir_gpu_join *join)
{
    const struct weir_trace *trace = join->trace;
    join->ranges = malloc((trace->n_events + 1) * sizeof *join->ranges);
    int32_t *innermost = malloc(((size_t)trace->n_tracks + 1) * sizeof *innermost);
    if (join->rc == 0 && (!join->ranges || !innermost || trace->n_events >= INT32_MAX))
        join->rc = -ENOMEM;
    if (join->rc == 0) {
        for (uint32_t i = 0; i < trace->n_tracks; i++)
            innermost[i] = -1;
        sort_calls(join, by_start);
        number_ranges(join);
        walk_in_time(join, innermost);
        for (size_t i = 0; i < join->n_calls; i++) {
            join->calls[i].external_id = external_id_of(join, join->calls[i].range);
            clip_call(join, &join->calls[i]);
        }
    }
    free(innermost);
}

static void add_calls(struct weir_gpu_join *join)
{
    for (size_t i = 0; i < join->n_calls && join->rc == 0; i++) {
        const struct weir_gpu_call *call = &join->calls[i];
        char args[32];
        int n = snprintf(args, sizeof args, "\"cbid\": %" PRIu32, call->cbid);
        /* Driver calls also get the category cuda_runtime, because TensorBoard's plugin ignores kernels whose launch
         * has the category cuda_driver. */
        struct weir_event event = {.start_ns = call->start_ns,
                                   .duration_ns = call->end_ns - call->start_ns,
                                   .external_id = call->external_id,
                                   .name = call->name,
                                   .args = weir_trace_intern(join->trace, args, (size_t)n),
                                   .track = call->track,
                                   .correlation = call->correlation,
                                   .kind = WEIR_EVENT_RANGE,
                                   .cat = WEIR_CAT_CUDA_RUNTIME};
        join->rc = weir_trace_add(join->trace, &event);
    }
}

/* ---- the trace's metadata ---- */

static void add_device(struct weir_gpu_join *join, const struct weir_gpu_properties *p)
{
    char text[768];
    int n = snprintf(text, sizeof text,
                     "\"totalGlobalMem\": %" PRIu64 ", \"computeMajor\": %d, \"computeMinor\": %d, "
                     "\"maxThreadsPerBlock\": %d, \"maxThreadsPerMultiprocessor\": %d, \"regsPerBlock\": %d, "
                     "\"warpSize\": %d, \"sharedMemPerBlock\": %" PRIu64 ", \"numSms\": %d, "
                     "\"regsPerMultiprocessor\": %d, \"sharedMemPerBlockOptin\": %" PRIu64
                     ", \"sharedMemPerMultiprocessor\": %" PRIu64,
                     p->total_bytes, p->major, p->minor, p->threads_per_block, p->threads_per_multiprocessor,
                     p->registers_per_block, p->warp_size, p->shared_per_block, p->multiprocessors,
                     p->registers_per_multiprocessor, p->shared_per_block_optin, p->shared_per_multiprocessor);
    join->trace->devices[join->trace->n_devices++] =
        (struct weir_trace_device){p->id, weir_trace_intern(join->trace, p->name, strlen(p->name)),
                                   weir_trace_intern(join->trace, text, (size_t)n)};
}

static void add_head(struct weir_gpu_join *join)
{
    struct weir_trace *trace = join->trace;
    const struct weir_gpu_take *take = join->take;
    char *text = NULL;
    trace->devices = calloc((size_t)take->n_devices + 1, sizeof *trace->devices);
    if (!trace->devices) {
        join->rc = -ENOMEM;
        return;
    }
    for (int i = 0; i < take->n_devices; i++)
        add_device(join, &take->devices[i]);
    const char *before = weir_trace_text(trace, trace->metadata);
    int n = asprintf(&text,
                     "%s%s\"cuda_driver_version\": %d, \"cuda_runtime_version\": %d, \"cupti_version\": %d, "
                     "\"weir_clamped_gpu_events\": %" PRIu64,
                     before, *before ? ", " : "", take->driver_version, take->runtime_version, take->cupti_version,
                     join->clamped);
    if (n < 0) {
        join->rc = -ENOMEM;
        return;
    }
    trace->metadata = weir_trace_intern(trace, text, (size_t)n);
    free(text);
}

int weir_gpu_join(struct weir_trace *trace, const struct weir_gpu_take *take, uint64_t begin_ns, uint64_t end_ns)
{
    struct weir_gpu_join join = {.trace = trace, .take = take, .begin_ns = begin_ns, .end_ns = end_ns};
    join.rc = weir_trace_sort(trace);
    if (join.rc == 0)
        take->ops->each(take->records, take_call, &join);
    drop_inner_calls(&join);
    find_ranges(&join);
    add_calls(&join);
    sort_calls(&join, by_correlation);
    if (join.rc == 0)
        weir_gpu_join_events(&join);
    if (join.rc == 0)
        add_head(&join);
    free(join.calls);
    free(join.ranges);
    free(join.spans);
    free(join.memory);
    free(join.waits);
    return join.rc;
}
