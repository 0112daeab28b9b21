/* Converts GPU records to trace events: kernels, copies, memsets, synchronisation and memory, and the annotations and
 * stages that launched this work. */
#include "prof/gpu/gpu_join_priv.h"
#include "prof/trace/trace_print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct args {
    char text[1024];
    size_t length;
};

static void put(struct args *args, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct args *args, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(args->text + args->length, sizeof args->text - args->length, format, list);
    va_end(list);
    if (n > 0 && args->length + (size_t)n < sizeof args->text)
        args->length += (size_t)n;
}

static weir_text_id text_of(struct weir_gpu_join *join, const struct args *args)
{
    return weir_trace_intern(join->trace, args->text, args->length);
}

/* ---- times ---- */

/* Sets a record's times. The CPU's and the GPU's clocks agree to within several us. If a record seems to begin before
 * its launch, its start is moved to the launch. Its end is kept, so that it does not overlap later work on the stream.
 */
static void set_times(struct weir_gpu_join *join, struct weir_event *event, const struct weir_gpu_record *record,
                      const struct weir_gpu_call *call)
{
    int64_t start_ns = weir_gpu_join_ns(join, record->start_ns), end_ns = weir_gpu_join_ns(join, record->end_ns);
    if (call && start_ns < call->start_ns) {
        start_ns = call->start_ns;
        join->clamped++;
    }
    event->start_ns = start_ns;
    event->duration_ns = end_ns > start_ns ? end_ns - start_ns : 0;
}

static bool is_in_window(const struct weir_gpu_join *join, const struct weir_gpu_record *record)
{
    return record->start_ns >= join->begin_ns && record->start_ns < join->end_ns;
}

/* ---- annotations ---- */

/* Whether a range gets a gpu_user_annotation, as in torch's traces. Steps are excluded, although torch includes them,
 * because TensorBoard's plugin would count each of them as another step and show half the mean step time. */
static bool has_span(const struct weir_trace *trace, const struct weir_event *event)
{
    return event->stage || (event->cat == WEIR_CAT_USER_ANNOTATION && !weir_gpu_join_is_step(trace, event));
}

static void note_spans(struct weir_gpu_join *join, const struct weir_event *event, const struct weir_gpu_call *call)
{
    for (int32_t range = call ? call->range : -1; range >= 0; range = join->ranges[range].around) {
        const struct weir_event *there = &join->trace->events[join->ranges[range].event];
        if (!has_span(join->trace, there))
            continue;
        if (!weir_gpu_join_room(join, &join->spans, join->n_spans, sizeof *join->spans))
            return;
        join->spans[join->n_spans++] =
            (struct weir_gpu_span){event->start_ns, event->start_ns + event->duration_ns, range, event->track};
    }
}

static int by_range(const void *a, const void *b)
{
    const struct weir_gpu_span *x = a, *y = b;
    if (x->range != y->range)
        return x->range < y->range ? -1 : 1;
    return x->track < y->track ? -1 : x->track > y->track;
}

static void add_span(struct weir_gpu_join *join, const struct weir_gpu_span *span)
{
    const struct weir_event *range = &join->trace->events[join->ranges[span->range].event];
    struct weir_event event = {.start_ns = span->start_ns - 1, /* 1 ns longer at each end, as in Kineto's traces */
                               .duration_ns = span->end_ns - span->start_ns + 2,
                               .external_id = range->external_id,
                               .name = range->name,
                               .track = span->track,
                               .kind = WEIR_EVENT_RANGE,
                               .cat = WEIR_CAT_GPU_USER_ANNOTATION};
    join->rc = weir_trace_add(join->trace, &event);
}

static void add_spans(struct weir_gpu_join *join)
{
    if (join->n_spans)
        qsort(join->spans, join->n_spans, sizeof *join->spans, by_range);
    for (size_t i = 0; i < join->n_spans && join->rc == 0;) {
        struct weir_gpu_span all = join->spans[i];
        for (; i < join->n_spans && by_range(&join->spans[i], &all) == 0; i++) {
            all.start_ns = join->spans[i].start_ns < all.start_ns ? join->spans[i].start_ns : all.start_ns;
            all.end_ns = join->spans[i].end_ns > all.end_ns ? join->spans[i].end_ns : all.end_ns;
        }
        add_span(join, &all);
    }
}

/* ---- kernels, copies, memsets ---- */

static const struct weir_gpu_properties *device_of(const struct weir_gpu_join *join, uint32_t id)
{
    for (int i = 0; i < join->take->n_devices; i++)
        if (join->take->devices[i].id == (int)id)
            return &join->take->devices[i];
    return NULL;
}

static void put_occupancy(struct weir_gpu_join *join, struct args *args, const struct weir_gpu_record *record)
{
    const struct weir_gpu_properties *device = device_of(join, record->device);
    if (!device || device->multiprocessors <= 0 || device->threads_per_multiprocessor <= 0 || device->warp_size <= 0)
        return;
    uint64_t blocks = (uint64_t)record->grid[0] * record->grid[1] * record->grid[2];
    double threads = (double)record->block[0] * record->block[1] * record->block[2];
    double per_sm = (double)blocks / device->multiprocessors;
    double resident = record->occupancy < per_sm ? record->occupancy : per_sm;
    put(args, ", \"blocks per SM\": %.6g, \"warps per SM\": %.6g", per_sm, per_sm * threads / device->warp_size);
    put(args, ", \"est. achieved occupancy %%\": %d",
        (int)(100 * resident * threads / device->threads_per_multiprocessor));
}

static void put_place(struct args *args, const struct weir_gpu_record *record)
{
    put(args, "\"device\": %" PRIu32 ", \"context\": %" PRIu32 ", \"stream\": %" PRIu32, record->device,
        record->context, record->stream);
}

static void put_graph(struct args *args, const struct weir_gpu_record *record)
{
    if (record->graph)
        put(args, ", \"graph id\": %" PRIu32 ", \"graph node id\": %" PRIu32, record->graph, record->graph_node);
}

static void describe_kernel(struct weir_gpu_join *join, struct weir_event *event, const struct weir_gpu_record *record)
{
    struct args args = {.length = 0};
    put(&args, "\"queued\": 0, ");
    put_place(&args, record);
    put(&args, ", \"registers per thread\": %" PRIu32 ", \"shared memory\": %" PRIu32, record->registers,
        record->static_shared_bytes + record->dynamic_shared_bytes);
    put_occupancy(join, &args, record);
    put(&args,
        ", \"grid\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32 "], \"block\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32 "]",
        record->grid[0], record->grid[1], record->grid[2], record->block[0], record->block[1], record->block[2]);
    put_graph(&args, record);
    event->cat = WEIR_CAT_KERNEL;
    const char *name = strcmp(record->name, "kernel") == 0
                           ? "Kernel"
                           : record->name; /* "kernel" has a special meaning for readers of traces */
    event->name = weir_trace_intern(join->trace, name, strlen(name));
    event->args = text_of(join, &args);
}

static void describe_transfer(struct weir_gpu_join *join, struct weir_event *event,
                              const struct weir_gpu_record *record)
{
    struct args name = {.length = 0}, args = {.length = 0};
    bool copy = record->kind == WEIR_GPU_RECORD_COPY;
    uint64_t ns = record->end_ns - record->start_ns;
    if (copy)
        put(&name, "Memcpy %s (%s -> %s)", record->copy_kind, record->from_kind, record->to_kind);
    else
        put(&name, "Memset (%s)", record->to_kind);
    put_place(&args, record);
    put(&args, ", \"bytes\": %" PRIu64, record->bytes);
    if (ns > 0)
        put(&args, ", \"memory bandwidth (GB/s)\": %.10g", (double)record->bytes / (double)ns);
    if (copy && record->from_device >= 0 && record->to_device >= 0)
        put(&args, ", \"fromDevice\": %" PRId32 ", \"inDevice\": %" PRIu32 ", \"toDevice\": %" PRId32,
            record->from_device, record->device, record->to_device);
    put_graph(&args, record);
    event->cat = copy ? WEIR_CAT_GPU_MEMCPY : WEIR_CAT_GPU_MEMSET;
    event->name = text_of(join, &name);
    event->args = text_of(join, &args);
}

static void add_work(struct weir_gpu_join *join, const struct weir_gpu_record *record)
{
    const struct weir_gpu_call *call = weir_gpu_join_call(join, record->correlation);
    if (!call && !is_in_window(join, record))
        return;
    struct weir_event event = {.external_id = call ? call->external_id : 0,
                               .track = weir_gpu_join_stream(join, record->device, record->stream),
                               .correlation = record->correlation,
                               .kind = WEIR_EVENT_RANGE};
    set_times(join, &event, record, call);
    if (record->kind == WEIR_GPU_RECORD_KERNEL)
        describe_kernel(join, &event, record);
    else
        describe_transfer(join, &event, record);
    if (join->rc == 0)
        join->rc = weir_trace_add(join->trace, &event);
    note_spans(join, &event, call);
}

/* ---- synchronisation ---- */

/* Whether a wait can be shown. A wait for an event is omitted if the trace does not contain the call that recorded the
 * event, because readers of traces fail on it. */
static bool is_explained(const struct weir_gpu_join *join, const struct weir_gpu_record *record)
{
    if (record->sync != WEIR_GPU_SYNC_EVENT && record->sync != WEIR_GPU_SYNC_STREAM_WAIT)
        return record->sync == WEIR_GPU_SYNC_STREAM || record->sync == WEIR_GPU_SYNC_CONTEXT;
    const struct weir_gpu_call *by =
        record->recorded_by > 0 ? weir_gpu_join_call(join, (uint32_t)record->recorded_by) : NULL;
    return by && by->start_ns <= weir_gpu_join_ns(join, record->start_ns);
}

static void note_wait(struct weir_gpu_join *join, const struct weir_gpu_record *record)
{
    static const char *const names[] = {"", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
    const struct weir_gpu_call *call = weir_gpu_join_call(join, record->correlation);
    if (!is_in_window(join, record) || !is_explained(join, record) ||
        !weir_gpu_join_room(join, &join->waits, join->n_waits, sizeof *join->waits))
        return;
    const char *name = names[record->sync];
    int64_t stream = record->stream == UINT32_MAX ? -1 : (int64_t)record->stream;
    struct args args = {.length = 0};
    put(&args, "\"cuda_sync_kind\": \"%s\"", name);
    if (record->sync == WEIR_GPU_SYNC_EVENT || record->sync == WEIR_GPU_SYNC_STREAM_WAIT)
        put(&args,
            ", \"wait_on_stream\": %" PRId64 ", \"wait_on_cuda_event_record_corr_id\": %" PRId64
            ", \"wait_on_cuda_event_id\": %" PRIu32,
            record->recorded_on, record->recorded_by, record->event);
    put(&args, ", \"stream\": %" PRId64 ", \"device\": %" PRIu32 ", \"context\": %" PRIu32, stream, record->device,
        record->context);
    struct weir_gpu_wait *wait = &join->waits[join->n_waits++];
    *wait = (struct weir_gpu_wait){.device = record->device};
    wait->stream = stream >= 0 ? (uint32_t)stream : record->recorded_on >= 0 ? (uint32_t)record->recorded_on : 0;
    wait->event = (struct weir_event){.external_id = call ? call->external_id : 0,
                                      .name = weir_trace_intern(join->trace, name, strlen(name)),
                                      .args = text_of(join, &args),
                                      .correlation = record->correlation,
                                      .kind = WEIR_EVENT_RANGE,
                                      .cat = WEIR_CAT_CUDA_SYNC};
    set_times(join, &wait->event, record, call);
}

static int by_wait(const void *a, const void *b)
{
    const struct weir_gpu_wait *x = a, *y = b;
    if (x->event.start_ns != y->event.start_ns)
        return x->event.start_ns < y->event.start_ns ? -1 : 1;
    return x->event.duration_ns > y->event.duration_ns ? -1 : x->event.duration_ns < y->event.duration_ns;
}

/* Several threads can wait for the same stream at the same time. */
static void add_waits(struct weir_gpu_join *join)
{
    struct weir_gpu_lanes lanes = {.max = SIZE_MAX};
    if (join->n_waits)
        qsort(join->waits, join->n_waits, sizeof *join->waits, by_wait);
    for (size_t w = 0; w < join->n_waits && join->rc == 0; w++) {
        struct weir_gpu_wait *wait = &join->waits[w];
        const struct weir_event *event = &wait->event;
        int64_t lane = weir_gpu_join_lane(join, &lanes, wait->device, wait->stream, event->start_ns,
                                          event->start_ns + event->duration_ns);
        wait->event.track = weir_gpu_join_stream(join, wait->device, WEIR_SYNC_ROW * (1 + lane) + wait->stream);
        if (join->rc == 0)
            join->rc = weir_trace_add(join->trace, event);
    }
    free(lanes.at);
}

/* ---- memory ---- */

static void note_memory(struct weir_gpu_join *join, const struct weir_gpu_record *record)
{
    if (!is_in_window(join, record) || record->device >= WEIR_GPU_DEVICES || join->take->own_memory[record->device] ||
        !weir_gpu_join_room(join, &join->memory, join->n_memory, sizeof *join->memory))
        return;
    const struct weir_gpu_call *call = weir_gpu_join_call(join, record->correlation); /* provides the thread */
    join->memory[join->n_memory++] = (struct weir_gpu_memory){
        .at_ns = weir_gpu_join_ns(join, record->start_ns),
        .bytes = record->memory_bytes,
        .address = record->address,
        .track = call ? call->track : weir_gpu_join_thread(join, record->tid),
        .device = (int32_t)record->device,
    };
}

static int by_time(const void *a, const void *b)
{
    const struct weir_gpu_memory *x = a, *y = b;
    return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

/* Adds memory events with running totals. The totals start at the lowest value that keeps them from becoming negative,
 * because memory that was allocated before the window is noticed only when it is released. */
static void add_memory(struct weir_gpu_join *join)
{
    int64_t total[WEIR_GPU_DEVICES] = {0}, least[WEIR_GPU_DEVICES] = {0};
    weir_text_id name = weir_trace_intern(join->trace, "[memory]", 8);
    if (join->n_memory)
        qsort(join->memory, join->n_memory, sizeof *join->memory, by_time);
    for (size_t i = 0; i < join->n_memory; i++) {
        int device = join->memory[i].device;
        total[device] += join->memory[i].bytes;
        least[device] = total[device] < least[device] ? total[device] : least[device];
    }
    for (int device = 0; device < WEIR_GPU_DEVICES; device++)
        total[device] = -least[device];
    for (size_t i = 0; i < join->n_memory && join->rc == 0; i++) {
        const struct weir_gpu_memory *memory = &join->memory[i];
        int64_t now = total[memory->device] += memory->bytes;
        struct weir_event event = {.start_ns = memory->at_ns,
                                   .name = name,
                                   .track = memory->track,
                                   .kind = WEIR_EVENT_MEMORY,
                                   .cat = WEIR_CAT_CPU_INSTANT_EVENT};
        event.memory.address = memory->address;
        event.memory.bytes = memory->bytes;
        event.memory.allocated = event.memory.reserved = now;
        event.memory.device = memory->device;
        join->rc = weir_trace_add(join->trace, &event);
    }
}

/* ---- all events ---- */

static void add_overhead(struct weir_gpu_join *join, const struct weir_gpu_record *record)
{
    if (!is_in_window(join, record))
        return;
    int64_t track = weir_trace_track(join->trace, WEIR_OVERHEAD_PID, record->tid, false, 0);
    if (track < 0) {
        join->rc = (int)track;
        return;
    }
    struct weir_event event = {.name = weir_trace_intern(join->trace, record->name, strlen(record->name)),
                               .track = (uint32_t)track,
                               .kind = WEIR_EVENT_RANGE,
                               .cat = WEIR_CAT_OVERHEAD};
    set_times(join, &event, record, NULL);
    join->rc = weir_trace_add(join->trace, &event);
}

static void on_record(void *user, const struct weir_gpu_record *record)
{
    struct weir_gpu_join *join = user;
    if (join->rc < 0)
        return;
    switch ((enum weir_gpu_record_kind)record->kind) {
    case WEIR_GPU_RECORD_KERNEL:
    case WEIR_GPU_RECORD_COPY:
    case WEIR_GPU_RECORD_MEMSET:
        add_work(join, record);
        break;
    case WEIR_GPU_RECORD_SYNC:
        note_wait(join, record);
        break;
    case WEIR_GPU_RECORD_MEMORY:
        note_memory(join, record);
        break;
    case WEIR_GPU_RECORD_OVERHEAD:
        add_overhead(join, record);
        break;
    case WEIR_GPU_RECORD_RUNTIME:
    case WEIR_GPU_RECORD_DRIVER:
        break;
    }
}

void weir_gpu_join_events(struct weir_gpu_join *join)
{
    size_t first = join->trace->n_events;
    join->take->ops->each(join->take->records, on_record, join);
    add_spans(join);
    add_waits(join);
    add_memory(join);
    weir_gpu_join_clocks(join, first);
    for (size_t i = first; i < join->trace->n_events; i++) { /* work that was launched in the window can end after it */
        const struct weir_event *event = &join->trace->events[i];
        int64_t end_ns = event->start_ns + event->duration_ns;
        join->trace->end_ns = end_ns > join->trace->end_ns ? end_ns : join->trace->end_ns;
    }
}
