#include "base/grow.h"
#include "weir/trace.h"

#include "prof/trace/trace_print.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct numbers {
    uint32_t *at;
    size_t n;
};

struct writer {
    struct weir_print print;
    struct numbers called, ran; /* correlation numbers of runtime calls and of device events, ascending */
    uint64_t next_external;     /* number for the next operator or annotation without an external id */
};

/* ---- matching calls and device events ---- */

static int add(struct numbers *numbers, uint32_t value)
{
    if (!weir_grow(&numbers->at, numbers->n, sizeof *numbers->at))
        return -ENOMEM;
    numbers->at[numbers->n++] = value;
    return 0;
}

static int ascending(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static bool has(const struct numbers *numbers, uint32_t value)
{
    return numbers->n > 0 && bsearch(&value, numbers->at, numbers->n, sizeof value, ascending);
}

static bool is_call(const struct weir_event *event)
{
    return event->kind == WEIR_EVENT_RANGE && event->correlation &&
           (event->cat == WEIR_CAT_CUDA_RUNTIME || event->cat == WEIR_CAT_CUDA_DRIVER);
}

static bool is_launched(const struct weir_event *event)
{
    return event->kind == WEIR_EVENT_RANGE && event->correlation && weir_cat_is_device((enum weir_cat)event->cat) &&
           event->cat != WEIR_CAT_GPU_USER_ANNOTATION && event->cat != WEIR_CAT_CUDA_EVENT;
}

static bool wants_external(const struct weir_event *event)
{
    return event->cat == WEIR_CAT_CPU_OP || event->cat == WEIR_CAT_USER_ANNOTATION;
}

static int survey(struct writer *w, const struct weir_trace *trace)
{
    int rc = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < trace->n_events && rc == 0; i++) {
        const struct weir_event *event = &trace->events[i];
        most = event->external_id > most ? event->external_id : most;
        if (is_call(event))
            rc = add(&w->called, event->correlation);
        else if (is_launched(event))
            rc = add(&w->ran, event->correlation);
    }
    w->next_external = most + 1;
    if (w->called.n > 0)
        qsort(w->called.at, w->called.n, sizeof *w->called.at, ascending);
    if (w->ran.n > 0)
        qsort(w->ran.at, w->ran.n, sizeof *w->ran.at, ascending);
    return rc;
}

/* ---- the parts of an event ---- */

static const char *text(const struct writer *w, weir_text_id id)
{
    return weir_trace_text(w->print.trace, id);
}

static void head(struct writer *w, const char *phase, const struct weir_event *event)
{
    weir_print_next(&w->print);
    weir_print(&w->print, "{\"ph\":\"");
    weir_print_raw(&w->print, phase);
    weir_print(&w->print, "\",\"cat\":\"");
    if (event->cat != WEIR_CAT_OTHER)
        weir_print_raw(&w->print, weir_cat_name((enum weir_cat)event->cat));
    else if (event->cat_text)
        weir_print_name(&w->print, text(w, event->cat_text));
    else /* TensorBoard's plugin rejects the whole file if one range has no category */
        weir_print(&w->print, "other");
    weir_print(&w->print, "\",\"name\":\"");
    weir_print_name(&w->print, event->kind == WEIR_EVENT_MEMORY && !event->name ? "[memory]" : text(w, event->name));
    weir_print(&w->print, "\"");
}

static void place(struct writer *w, const struct weir_event *event, int64_t at_ns)
{
    const struct weir_trace_row *track = &w->print.trace->tracks[event->track];
    if (track->pid_label) {
        weir_print(&w->print, ",\"pid\":\"");
        weir_print_text(&w->print, text(w, track->pid_label));
        weir_print(&w->print, "\",\"tid\":");
    } else {
        weir_print(&w->print, ",\"pid\":");
        weir_print_int(&w->print, track->pid);
        weir_print(&w->print, ",\"tid\":");
    }
    weir_print_int(&w->print, track->tid);
    weir_print(&w->print, ",\"ts\":");
    weir_print_us(&w->print, at_ns);
}

/* ---- args ---- */

struct args {
    struct weir_print *print;
    bool any;
};

/* Prints the separator, or opens "args" for the first member, and then `name`, which includes the quotes and the colon
 * (empty if the caller prints whole members). */
static void next_arg(struct args *args, const char *name)
{
    weir_print_raw(args->print, args->any ? "," : ",\"args\":{");
    weir_print_raw(args->print, name);
    args->any = true;
}

static void end_args(struct args *args)
{
    if (args->any)
        weir_print(args->print, "}");
}

static void number_arg(struct args *args, const char *name, uint64_t value)
{
    next_arg(args, name);
    weir_print_uint(args->print, value);
}

static void json_arg(struct args *args, const char *name, const char *json)
{
    next_arg(args, name);
    weir_print_json(args->print, json);
}

static void linked_args(struct writer *w, struct args *args, const struct weir_event *event)
{
    if (event->external_id)
        number_arg(args, "\"External id\":", event->external_id);
    else if (event->kind == WEIR_EVENT_RANGE && wants_external(event))
        number_arg(args, "\"External id\":", w->next_external++);
    if (event->item)
        number_arg(args, "\"item\":", event->item);
    if (event->types)
        json_arg(args, "\"Input type\":", text(w, event->types));
    if (event->shapes)
        json_arg(args, "\"Input Dims\":", text(w, event->shapes));
    if (event->stack) {
        next_arg(args, "\"Call stack\":\"");
        weir_print_text(args->print, text(w, event->stack));
        weir_print(args->print, "\"");
    }
    if (event->correlation)
        number_arg(args, "\"correlation\":", event->correlation);
}

static void all_args(struct writer *w, const struct weir_event *event)
{
    struct args args = {.print = &w->print};
    linked_args(w, &args, event);
    if (event->args)
        json_arg(&args, "", text(w, event->args));
    if (event->wait)
        number_arg(&args, "\"wait\":", 1);
    if (event->kind == WEIR_EVENT_RANGE && event->value > 0 && isfinite(event->value)) {
        next_arg(&args, "\"flops\":");
        weir_print_double(&w->print, event->value);
    }
    if (event->unfinished)
        next_arg(&args, "\"finished\": \"false\"");
    end_args(&args);
}

/* ---- events ---- */

static void flow_end(struct writer *w, const struct weir_event *event, int64_t at_ns, bool launch)
{
    weir_print_next(&w->print);
    weir_print_raw(&w->print, launch ? "{\"ph\":\"s\",\"id\":" : "{\"ph\":\"f\",\"id\":");
    weir_print_uint(&w->print, event->correlation);
    place(w, event, at_ns);
    weir_print_raw(&w->print, launch ? ",\"cat\":\"ac2g\",\"name\":\"ac2g\"}"
                                     : ",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\"}");
}

/* Saturates, because a trace read from a file can contain any times. */
static int64_t plus(int64_t ns, int64_t more_ns)
{
    int64_t sum;
    return __builtin_add_overflow(ns, more_ns, &sum) ? INT64_MAX : sum;
}

static void write_range(struct writer *w, const struct weir_event *event)
{
    int64_t start = event->start_ns, duration = event->duration_ns > 0 ? event->duration_ns : 0;
    if (start < 0) { /* the event began before the trace: cut its start, keep its end */
        duration += start;
        start = 0;
    }
    head(w, "X", event);
    place(w, event, start);
    weir_print(&w->print, ",\"dur\":");
    weir_print_us(&w->print, duration);
    all_args(w, event);
    weir_print(&w->print, "}");
    if (is_call(event) && has(&w->ran, event->correlation))
        flow_end(w, event, start, true);
    else if (is_launched(event) && has(&w->called, event->correlation))
        flow_end(w, event, start, false);
}

static void write_async(struct writer *w, const struct weir_event *event, uint64_t index, bool begin)
{
    head(w, begin ? "b" : "e", event);
    /* Ranges without an item get unique ids, because viewers would mix up the ends of ranges with the same id. */
    weir_print_raw(&w->print, event->item ? ",\"id\":\"" : ",\"id\":\"alone-");
    weir_print_uint(&w->print, event->item ? event->item : index);
    weir_print(&w->print, "\"");
    place(w, event, begin ? event->start_ns : plus(event->start_ns, event->duration_ns));
    if (begin)
        all_args(w, event);
    weir_print(&w->print, "}");
}

static void write_instant(struct writer *w, const struct weir_event *event)
{
    head(w, "i", event);
    weir_print(&w->print, ",\"s\":\"t\"");
    place(w, event, event->start_ns);
    all_args(w, event);
    weir_print(&w->print, "}");
}

static void write_counter(struct writer *w, const struct weir_event *event)
{
    if (!isfinite(event->value)) /* JSON has no infinities and no NaN */
        return;
    head(w, "C", event);
    place(w, event, event->start_ns);
    weir_print(&w->print, ",\"args\":{\"value\":");
    weir_print_double(&w->print, event->value);
    weir_print(&w->print, "}}");
}

static void write_memory(struct writer *w, const struct weir_event *event)
{
    struct weir_print *p = &w->print;
    head(w, "i", event);
    weir_print(p, ",\"s\":\"t\"");
    place(w, event, event->start_ns);
    weir_print(p, ",\"args\":{\"Total Reserved\":");
    weir_print_int(p, event->memory.reserved);
    weir_print(p, ",\"Total Allocated\":");
    weir_print_int(p, event->memory.allocated);
    weir_print(p, ",\"Bytes\":");
    weir_print_int(p, event->memory.bytes);
    if (strcmp(text(w, event->name), "[OutOfMemory]") != 0) {
        weir_print(p, ",\"Addr\":");
        weir_print_uint(p, event->memory.address);
    }
    weir_print(p, ",\"Device Id\":");
    weir_print_int(p, event->memory.device);
    weir_print_raw(p, event->memory.device < 0 ? ",\"Device Type\":0}}" : ",\"Device Type\":1}}");
}

/* Whether the writer itself adds this event. A trace read from a file already contains the spans that the writer adds
 * at the end of every trace. */
static bool is_written_anew(const struct writer *w, const struct weir_event *event)
{
    const struct weir_trace_row *track = &w->print.trace->tracks[event->track];
    if (!track->pid_label)
        return false;
    const char *label = text(w, track->pid_label);
    return strcmp(label, "Spans") == 0 || strcmp(label, "Traces") == 0;
}

static void write_event(struct writer *w, const struct weir_event *event)
{
    if (is_written_anew(w, event))
        return;
    switch ((enum weir_event_kind)event->kind) {
    case WEIR_EVENT_RANGE:
        write_range(w, event);
        break;
    case WEIR_EVENT_ASYNC:
        write_async(w, event, (uint64_t)(event - w->print.trace->events), true);
        write_async(w, event, (uint64_t)(event - w->print.trace->events), false);
        break;
    case WEIR_EVENT_INSTANT:
        write_instant(w, event);
        break;
    case WEIR_EVENT_COUNTER:
        write_counter(w, event);
        break;
    case WEIR_EVENT_MEMORY:
        write_memory(w, event);
        break;
    }
}

/* ---- the file ---- */

static void write_all(struct writer *w, const char *path)
{
    const struct weir_trace *trace = w->print.trace;
    weir_print_head(&w->print);
    for (size_t i = 0; i < trace->n_events; i++) {
        write_event(w, &trace->events[i]);
        if (i % 4096 == 0 &&
            weir_gz_write(w->print.file, "", 0) < 0) /* stop after a write error, such as a full disk */
            break;
    }
    weir_print_tail(&w->print, path);
    weir_print_flush(&w->print);
}

int weir_trace_write(struct weir_trace *trace, const char *path, struct weir_err *err)
{
    struct writer *w = calloc(1, sizeof *w);
    int rc = w ? weir_trace_sort(trace) : -ENOMEM;
    if (rc == 0)
        rc = survey(w, trace);
    if (rc < 0) {
        rc = weir_err_set(err, rc, "%s: cannot be written: out of memory; record fewer steps", path);
    } else {
        w->print.trace = trace;
        rc = weir_gz_open(&w->print.file, path, weir_gz_named(path) ? WEIR_GZ_FAST : WEIR_GZ_PLAIN, err);
    }
    if (rc == 0) {
        write_all(w, path);
        rc = weir_gz_commit(&w->print.file, err);
    }
    if (w) {
        free(w->called.at);
        free(w->ran.at);
    }
    free(w);
    return rc;
}
