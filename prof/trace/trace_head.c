/* trace_head.c: prints the members before the events, the names of the rows, and the members after the events. */
#include "prof/trace/trace_print.h"

/* Sort order of processes, as in Kineto: GPUs come after all CPU processes, followed by CUPTI's overhead and the spans.
 */
enum { SORT_GPU = 5000000, SORT_OVERHEAD = 0x100000a, SORT_SPANS = 0x20000000 };

void weir_print_next(struct weir_print *p)
{
    if (!p->first)
        weir_print(p, ",\n");
    p->first = false;
}

/* ---- members ---- */

static void member(struct weir_print *p, const char *name)
{
    weir_print_next(p);
    weir_print(p, "\"");
    weir_print_raw(p, name);
    weir_print(p, "\": ");
}

static void devices(struct weir_print *p)
{
    const struct weir_trace *trace = p->trace;
    member(p, "deviceProperties");
    weir_print(p, "[");
    for (int i = 0; i < trace->n_devices; i++) {
        const struct weir_trace_device *device = &trace->devices[i];
        const char *properties = weir_trace_text(trace, device->properties);
        if (i > 0)
            weir_print(p, ", ");
        weir_print(p, "{\"id\": ");
        weir_print_int(p, device->id);
        weir_print(p, ", \"name\": \"");
        weir_print_name(p, weir_trace_text(trace, device->name));
        weir_print(p, "\"");
        if (*properties)
            weir_print(p, ", ");
        weir_print_json(p, properties);
        weir_print(p, "}");
    }
    weir_print(p, "]");
}

/* Prints a flag only if it is on, because readers test for its presence and ignore its value. */
static void flag(struct weir_print *p, const char *name, bool on)
{
    if (!on)
        return;
    member(p, name);
    weir_print(p, "1");
}

/* HolisticTraceAnalysis finds the rank with a regular expression that requires the space after the colon. */
static void distributed_info(struct weir_print *p)
{
    member(p, "distributedInfo");
    weir_print(p, "{\"backend\": \"nccl\", \"rank\": 0, \"world_size\": 1, \"pg_count\": 0, \"pg_config\": [], "
                  "\"nccl_version\": \"unknown\"}");
}

static void metadata(struct weir_print *p)
{
    const struct weir_trace *trace = p->trace;
    const char *text = weir_trace_text(trace, trace->metadata);
    if (!strstr(text, "\"distributedInfo\"")) /* metadata of a trace read from a file can have its own */
        distributed_info(p);
    if (*text) {
        weir_print_next(p);
        weir_print_json(p, text);
    }
    if (trace->dropped > 0) {
        member(p, "weir_dropped_events");
        weir_print_uint(p, trace->dropped);
    }
    flag(p, "weir_names_lost", weir_trace_failed(trace));
}

/* ---- rows ---- */

/* Prints {"ph":"M","name":N,"ts":T,"pid":P,"tid":Q,"args":{ and leaves the members of args and the closing }} to the
 * caller. */
static void row(struct weir_print *p, const char *name, int64_t pid, int64_t tid)
{
    weir_print_next(p);
    weir_print(p, "{\"ph\":\"M\",\"name\":\"");
    weir_print_raw(p, name);
    weir_print(p, "\",\"ts\":");
    weir_print_us(p, p->trace->begin_ns);
    weir_print(p, ",\"pid\":");
    weir_print_int(p, pid);
    weir_print(p, ",\"tid\":");
    weir_print_int(p, tid);
    weir_print(p, ",\"args\":{");
}

static void sort_index(struct weir_print *p, const char *name, int64_t pid, int64_t tid, int64_t at)
{
    row(p, name, pid, tid);
    weir_print(p, "\"sort_index\":");
    weir_print_int(p, at);
    weir_print(p, "}}");
}

static void process(struct weir_print *p, const struct weir_trace_row *track)
{
    const struct weir_trace *trace = p->trace;
    bool overhead = !track->device && track->pid == WEIR_OVERHEAD_PID;
    bool main = track->device || track->pid == trace->main_pid;
    row(p, "process_name", track->pid, 0);
    weir_print(p, "\"name\":\"");
    if (overhead)
        weir_print(p, "CUPTI Overhead");
    else if (main && trace->process_name)
        weir_print_text(p, weir_trace_text(trace, trace->process_name));
    else
        weir_print(p, "process");
    weir_print(p, "\"}}");
    row(p, "process_labels", track->pid, 0);
    weir_print(p, "\"labels\":\"");
    weir_print_raw(p, track->device ? "GPU " : overhead ? "" : "CPU");
    if (track->device)
        weir_print_int(p, track->pid);
    weir_print(p, "\"}}");
    sort_index(p, "process_sort_index", track->pid, 0,
               track->device ? SORT_GPU + track->pid
               : overhead    ? SORT_OVERHEAD
                             : track->pid);
}

static void stream_name(struct weir_print *p, int64_t tid)
{
    if (tid >= WEIR_CLOCK_ROW) {
        weir_print(p, "clocks inside kernels ");
        weir_print_int(p, tid - WEIR_CLOCK_ROW);
        return;
    }
    weir_print(p, "stream ");
    weir_print_int(p, tid % WEIR_SYNC_ROW);
    weir_print_raw(p, tid >= WEIR_SYNC_ROW ? " (sync)" : " ");
}

static void thread_name(struct weir_print *p, const struct weir_trace_row *track)
{
    const char *name = weir_trace_text(p->trace, track->name);
    weir_print(p, "thread ");
    weir_print_int(p, track->tid);
    if (!*name)
        return;
    weir_print(p, " (");
    weir_print_text(p, name);
    weir_print(p, ")");
}

static void thread(struct weir_print *p, const struct weir_trace_row *track)
{
    row(p, "thread_name", track->pid, track->tid);
    weir_print(p, "\"name\":\"");
    if (track->device)
        stream_name(p, track->tid);
    else
        thread_name(p, track);
    weir_print(p, "\"}}");
    sort_index(p, "thread_sort_index", track->pid, track->tid,
               track->device && track->tid < WEIR_CLOCK_ROW ? track->tid % WEIR_SYNC_ROW : track->tid);
}

static bool is_first_of_process(const struct weir_trace *trace, uint32_t index)
{
    const struct weir_trace_row *track = &trace->tracks[index];
    for (uint32_t i = 0; i < index; i++) {
        const struct weir_trace_row *other = &trace->tracks[i];
        if (!other->pid_label && other->pid == track->pid && other->device == track->device)
            return false;
    }
    return true;
}

static void rows(struct weir_print *p)
{
    const struct weir_trace *trace = p->trace;
    for (uint32_t i = 0; i < trace->n_tracks; i++) {
        const struct weir_trace_row *track = &trace->tracks[i];
        if (track->pid_label)
            continue;
        if (is_first_of_process(trace, i))
            process(p, track);
        thread(p, track);
    }
}

void weir_print_head(struct weir_print *p)
{
    const struct weir_trace *trace = p->trace;
    weir_print(p, "{\n");
    p->first = true;
    member(p, "schemaVersion");
    weir_print(p, "1");
    devices(p);
    flag(p, "record_shapes", trace->shapes);
    flag(p, "with_stack", trace->stacks);
    flag(p, "profile_memory", trace->memory);
    metadata(p);
    member(p, "displayTimeUnit");
    weir_print(p, "\"ms\"");
    member(p, "baseTimeNanoseconds");
    weir_print_int(p, trace->base_unix_ns);
    member(p, "traceEvents");
    weir_print(p, "[\n");
    p->first = true;
    rows(p);
}

/* ---- after the events ---- */

static uint64_t count_operators(const struct weir_trace *trace)
{
    uint64_t n = 0;
    for (size_t i = 0; i < trace->n_events; i++)
        n += trace->events[i].cat == WEIR_CAT_CPU_OP && trace->events[i].kind == WEIR_EVENT_RANGE;
    return n;
}

static void span(struct weir_print *p)
{
    const struct weir_trace *trace = p->trace;
    weir_print_next(p);
    weir_print(p, "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"ts\":");
    weir_print_us(p, trace->begin_ns);
    weir_print(p, ",\"pid\":\"Spans\",\"tid\":0,\"args\":{\"sort_index\":");
    weir_print_int(p, SORT_SPANS);
    weir_print(p, "}}");
    weir_print_next(p);
    weir_print(p, "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\","
                  "\"tid\":\"PyTorch Profiler\",\"ts\":");
    weir_print_us(p, trace->begin_ns);
    weir_print(p, ",\"dur\":");
    weir_print_us(p, (int64_t)((uint64_t)trace->end_ns - (uint64_t)trace->begin_ns));
    weir_print(p, ",\"args\":{\"Op count\":");
    weir_print_uint(p, count_operators(trace));
    weir_print(p, "}}");
}

/* Adds an instant event, so that viewers show the number of dropped events. */
static void dropped(struct weir_print *p)
{
    const struct weir_trace *trace = p->trace;
    weir_print_next(p);
    weir_print(p, "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"");
    weir_print_uint(p, trace->dropped);
    weir_print(p, " events did not fit and are missing from this trace\",\"pid\":");
    weir_print_int(p, trace->main_pid);
    weir_print(p, ",\"tid\":");
    weir_print_int(p, trace->main_pid);
    weir_print(p, ",\"ts\":");
    weir_print_us(p, trace->end_ns);
    weir_print(p, "}");
}

void weir_print_tail(struct weir_print *p, const char *path)
{
    const struct weir_trace *trace = p->trace;
    span(p);
    if (trace->dropped > 0)
        dropped(p);
    weir_print_next(p);
    weir_print(p, "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration Start: PyTorch Profiler\",\"pid\":\"Traces\","
                  "\"tid\":\"Trace PyTorch Profiler\",\"ts\":");
    weir_print_us(p, trace->begin_ns);
    weir_print(p, "}");
    weir_print_next(p);
    weir_print(p, "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\",\"ts\":");
    weir_print_us(p, trace->end_ns);
    weir_print(p, "}\n],\n\"traceName\": \"");
    weir_print_text(p, path);
    weir_print(p, "\"\n}\n");
}
