/* Converts records to trace events. */
#include "base/proc.h"
#include "prof/record/window_priv.h"
#include "prof/symbols/symbols.h"
#include "weir/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Length of the period at whose start trace time begins: a day (UTC). Readers keep ts (microseconds with three
 * decimals) in a double. Within a day, ts is exact to 0.02 ns, and to 0.2 ns after a window of ten days. Kineto's base,
 * a multiple of three months, is coarser: a double has steps of 1 ns there, and sums of two times are off by 1 ns. The
 * base is not the window's start, because ts is used to align the traces of several ranks. */
static const int64_t base_step_ns = INT64_C(86400) * 1000000000;

struct build {
    const struct weir_window *window;
    const struct weir_export *how;
    struct weir_trace *trace;
    struct weir_symbols *symbols;
    weir_text_id *names;  /* id of each weir_name, 0 = not looked up */
    weir_text_id *stacks; /* id of each stack number, 0 = not looked up */
    uint32_t stacks_room;
    weir_text_id data_wait, memory;
    int64_t begin_ns; /* start of the window, in trace time */
    uint32_t track;   /* track of the records being read */
};

static weir_text_id intern(struct build *b, const char *text)
{
    return weir_trace_intern(b->trace, text, strlen(text));
}

/* Converts ticks to trace time. Converts to ns before subtracting, like the GPU's records (weir_gpu_now_ns). The other
 * order rounds differently, so that a call could end after the range that contains it. */
static int64_t ns_of(const struct build *b, uint64_t ticks)
{
    return b->begin_ns + (int64_t)(weir_clock_to_ns(ticks) - weir_clock_to_ns(b->window->begin));
}

/* ---- names ---- */

static weir_text_id name_of(struct build *b, weir_name name)
{
    if (b->names[name] == 0)
        b->names[name] = intern(b, weir_name_text(name));
    return b->names[name];
}

/* Sets the name and category that trace viewers expect. Stages of the consumer are operators. Workers' stages get a
 * category of their own, unless worker_ops is set. The data wait, on any thread, gets the name that TensorBoard counts
 * as DataLoader time. Returns false for a range that is not shown. */
static bool name_range(struct build *b, struct weir_event *event, weir_name name)
{
    const struct weir_stage_info *stage = weir_stage_info(name);
    event->name = name_of(b, name);
    event->cat = (uint8_t)weir_name_cat(name);
    if (!stage)
        return true;
    if (stage->kind == WEIR_KIND_LOOP)
        return false;
    event->cat = stage->consumer || b->how->worker_ops ? WEIR_CAT_CPU_OP : WEIR_CAT_LOADER_STAGE;
    event->wait = stage->kind == WEIR_KIND_WAIT;
    event->stage = !event->wait;
    if (stage->data_wait) /* an operator, because TensorBoard's plugin ignores a user_annotation with this name */
        event->name = b->data_wait;
    return true;
}

/* ---- stacks ---- */

/* Whether a frame belongs to the profiler itself. These frames are innermost; the compiler can inline some of them. */
static bool is_own_frame(const char *frame)
{
    static const char *const own[] = {"weir_stack_capture", "weir_track_", "weir_zone_", "weir_range_end", "weir_lap",
                                      "end_traced",         "end_special", "end_odd",    "trace_zone"};
    const char *function = strstr(frame, "): ");
    for (size_t i = 0; function && i < sizeof own / sizeof *own; i++)
        if (strncmp(function + 3, own[i], strlen(own[i])) == 0)
            return true;
    return false;
}

static weir_text_id stack_text(struct build *b, uint32_t stack)
{
    char text[8192];
    const void *const *addresses;
    size_t length = 0;
    const char *frames = weir_stack_frames(stack);
    if (frames)
        return intern(b, frames);
    int n = weir_stack_addresses(stack, &addresses);
    if (!b->symbols && weir_symbols_open(&b->symbols) < 0)
        return 0;
    for (int i = 0; i < n; i++) {
        char frame[1536];
        weir_symbols_frame(b->symbols, addresses[i], frame, sizeof frame);
        size_t room = strlen(frame);
        if (length == 0 && is_own_frame(frame))
            continue;
        if (length + room + 2 > sizeof text)
            break;
        if (length)
            text[length++] = ';';
        memcpy(text + length, frame, room);
        length += room;
    }
    return weir_trace_intern(b->trace, text, length);
}

static weir_text_id stack_of(struct build *b, uint32_t stack)
{
    if (stack == 0)
        return 0;
    if (stack >= b->stacks_room) {
        uint32_t room = 2 * stack + 64;
        weir_text_id *moved = realloc(b->stacks, room * sizeof *moved);
        if (!moved)
            return 0;
        memset(moved + b->stacks_room, 0, (room - b->stacks_room) * sizeof *moved);
        b->stacks = moved;
        b->stacks_room = room;
    }
    if (b->stacks[stack] == 0)
        b->stacks[stack] = stack_text(b, stack);
    return b->stacks[stack];
}

/* ---- records ---- */

static void read_tags(struct build *b, struct weir_event *event, const struct weir_slot2 *slot)
{
    const char *dims = weir_shapes_dims((uint32_t)slot->b), *types = weir_shapes_types((uint32_t)slot->b);
    event->item = slot->a;
    event->shapes = intern(b, dims);
    event->types = intern(b, types);
    event->stack = stack_of(b, (uint32_t)(slot->b >> 32));
}

static void read_memory(struct build *b, struct weir_event *event, uint32_t device, const struct weir_slot2 *slots)
{
    event->kind = WEIR_EVENT_MEMORY;
    event->cat = WEIR_CAT_CPU_INSTANT_EVENT;
    event->name = b->memory;
    event->memory.device = (int32_t)device - 1;
    event->memory.address = slots[0].a;
    event->memory.bytes = (int64_t)slots[0].b;
    event->memory.allocated = (int64_t)slots[1].a;
    event->memory.reserved = (int64_t)slots[1].b;
}

/* Converts the record at slots to an event. Returns false if the event is not shown. */
static bool read_record(struct build *b, const struct weir_slot2 *slots, struct weir_event *event)
{
    uint64_t word = slots->b, start = slots->a;
    unsigned type = word >> 48 & 255, follows = (unsigned)(word >> 56);
    weir_name name = (weir_name)(word >> 32);
    uint64_t ticks = (uint32_t)word;
    *event = (struct weir_event){.start_ns = ns_of(b, start), .track = b->track};
    slots++;
    if (follows & WEIR_RECORD_TAGS)
        read_tags(b, event, slots++);
    if (follows & WEIR_RECORD_LONG)
        ticks = slots++->a;
    event->duration_ns =
        ns_of(b, start + ticks) -
        event->start_ns; /* subtract converted times, so that nested ranges end in the order of their ticks */
    if (type == WEIR_RECORD_RANGE)
        return name_range(b, event, name);
    if (type == WEIR_RECORD_MEMORY) {
        event->duration_ns = 0;
        read_memory(b, event, (uint32_t)word, slots);
        return true;
    }
    event->name = name_of(b, name);
    if (type == WEIR_RECORD_STEP) {
        char text[48];
        snprintf(text, sizeof text, "ProfilerStep#%lld", (long long)slots->a);
        event->name = intern(b, text);
        event->cat = WEIR_CAT_USER_ANNOTATION;
    } else if (type == WEIR_RECORD_ASYNC) {
        event->kind = WEIR_EVENT_ASYNC;
        event->cat = WEIR_CAT_LOADER_ITEM;
    } else if (type == WEIR_RECORD_COUNTER) {
        event->kind = WEIR_EVENT_COUNTER;
        memcpy(&event->value, &slots->a, sizeof event->value);
    } else {
        event->kind = WEIR_EVENT_INSTANT;
        event->cat = (uint8_t)weir_name_cat(name);
    }
    return true;
}

static int begin_track(struct build *b, pid_t tid, const char *name)
{
    int64_t track = weir_trace_track(b->trace, b->trace->main_pid, tid, false, 0);
    if (track < 0)
        return (int)track;
    b->track = (uint32_t)track;
    if (b->trace->tracks[track].name == 0)
        b->trace->tracks[track].name = intern(b, name);
    return 0;
}

static int read_take(struct build *b, const struct weir_take *take)
{
    int rc = begin_track(b, take->tid, take->name);
    for (size_t i = 0, n; i < take->n && rc == 0; i += n) {
        const struct weir_slot2 *slots = take->slots + i;
        struct weir_event event;
        n = weir_record_slots(slots->b);
        if (slots->a < b->window->begin || slots->a >= b->window->end)
            continue;
        if (read_record(b, slots, &event))
            rc = weir_trace_add(b->trace, &event);
    }
    return rc;
}

/* ---- open ranges ---- */

/* Whether the range was recorded after all: it can end after it was noted but before recording stopped. */
static bool has_ended(const struct weir_window *window, const struct weir_open_copy *open)
{
    for (size_t t = 0; t < window->store.n_takes; t++) {
        const struct weir_take *take = &window->store.takes[t];
        if (take->tid != open->tid)
            continue;
        for (size_t i = 0; i < take->n; i += weir_record_slots(take->slots[i].b))
            if (take->slots[i].a == open->start && (weir_name)(take->slots[i].b >> 32) == open->name)
                return true;
    }
    return false;
}

static int add_open(struct build *b, const struct weir_open_copy *open)
{
    const struct weir_window *window = b->window;
    if (open->start < window->begin || open->start >= window->end || has_ended(window, open))
        return 0;
    int rc = begin_track(b, open->tid, open->thread);
    if (rc < 0)
        return rc;
    struct weir_event event = {.start_ns = ns_of(b, open->start), .track = b->track, .unfinished = true};
    event.duration_ns = ns_of(b, window->end) - event.start_ns;
    return name_range(b, &event, open->name) ? weir_trace_add(b->trace, &event) : 0;
}

/* ---- the trace ---- */

static void describe(struct build *b)
{
    const struct weir_window *window = b->window;
    struct weir_trace *trace = b->trace;
    char name[64] = "";
    trace->base_unix_ns = window->begin_unix_ns - window->begin_unix_ns % base_step_ns;
    b->begin_ns = window->begin_unix_ns - trace->base_unix_ns;
    trace->begin_ns = b->begin_ns;
    trace->end_ns = ns_of(b, window->end);
    trace->main_pid = getpid();
    trace->shapes = window->state & WEIR_RECORDING_SHAPES;
    trace->stacks = window->state & WEIR_RECORDING_STACKS;
    trace->memory = window->state & WEIR_RECORDING_MEMORY;
    trace->dropped = window->dropped;
    weir_proc_read(name, sizeof name, "", trace->main_pid, 0, "comm");
    name[strcspn(name, "\n")] = '\0';
    trace->process_name = intern(b, name);
    trace->metadata = b->how->metadata ? intern(b, b->how->metadata) : 0;
    b->data_wait = intern(b, b->how->data_wait);
    b->memory = intern(b, "[memory]");
}

int weir_window_trace(const struct weir_window *window, const struct weir_export *how, struct weir_trace **out)
{
    struct build b = {.window = window, .how = how};
    int rc = weir_trace_new(&b.trace);
    b.names = calloc(UINT16_MAX + 1, sizeof *b.names);
    if (rc == 0 && !b.names)
        rc = -ENOMEM;
    if (rc == 0)
        describe(&b);
    for (size_t i = 0; i < window->store.n_takes && rc == 0; i++)
        rc = read_take(&b, &window->store.takes[i]);
    for (size_t i = 0; i < window->n_open && rc == 0; i++)
        rc = add_open(&b, &window->open[i]);
    if (rc == 0 && window->gpu)
        rc = weir_gpu_join(b.trace, window->gpu, weir_clock_to_ns(window->begin), weir_clock_to_ns(window->end));
    if (rc == 0 && weir_trace_failed(b.trace))
        rc = -ENOMEM;
    if (rc == 0)
        rc = weir_trace_sort(b.trace);
    if (rc == 0)
        rc = weir_trace_nest(b.trace);
    weir_symbols_close(&b.symbols);
    free(b.names);
    free(b.stacks);
    if (rc < 0)
        weir_trace_free(&b.trace);
    *out = b.trace;
    return rc;
}
