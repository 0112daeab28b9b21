/* trace_merge.c: adds what torch.profiler recorded to the trace of the same window. */
#include "prof/trace/trace_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* About 63 years in ns: the sum of two such times and a duration does not overflow. */
static const int64_t time_max = INT64_C(2000000000000000000);

static bool is_time(int64_t ns)
{
    return ns >= -time_max && ns <= time_max;
}

struct merge {
    struct weir_trace *to;
    const struct weir_trace *from;
    int64_t shift_ns;    /* from the times of `from` to those of `to` */
    int64_t mark_ns;     /* the window began after this time of `from` */
    uint64_t id_above;   /* added to external ids */
    weir_text_id *texts; /* number in `to` of each text of `from`; 0 = not looked up */
};

static weir_text_id text_in(struct merge *m, weir_text_id id)
{
    if (m->texts[id] == 0 && id != 0) {
        const char *text = weir_trace_text(m->from, id);
        m->texts[id] = weir_trace_intern(m->to, text, strlen(text));
    }
    return m->texts[id];
}

/* Cuts a range of a thread to the window. Returns false for an event outside the window. */
static bool is_in_window(const struct merge *m, struct weir_event *event)
{
    int64_t begin_ns = m->to->begin_ns, end_ns = m->to->end_ns, ended_ns = event->start_ns + event->duration_ns;
    if (weir_cat_is_device((enum weir_cat)event->cat))
        return ended_ns > begin_ns;
    if (event->start_ns >= end_ns || ended_ns < begin_ns)
        return false;
    if (event->kind != WEIR_EVENT_RANGE)
        return event->start_ns >= begin_ns;
    event->start_ns = event->start_ns > begin_ns ? event->start_ns : begin_ns;
    event->duration_ns = (ended_ns < end_ns ? ended_ns : end_ns) - event->start_ns;
    return true;
}

static int merge_event(struct merge *m, struct weir_event event)
{
    const struct weir_trace_row *row = &m->from->tracks[event.track];
    if (!is_time(event.start_ns) || !is_time(event.duration_ns))
        return 0;
    if (event.start_ns + event.duration_ns <= m->mark_ns)
        return 0;
    event.start_ns += m->shift_ns;
    if (!is_in_window(m, &event))
        return 0;
    int64_t track = weir_trace_track(m->to, row->pid, row->tid, row->device, text_in(m, row->pid_label));
    if (track < 0)
        return (int)track;
    if (m->to->tracks[track].name == 0)
        m->to->tracks[track].name = text_in(m, row->name);
    event.track = (uint32_t)track;
    event.name = text_in(m, event.name);
    event.cat_text = text_in(m, event.cat_text);
    event.shapes = text_in(m, event.shapes);
    event.types = text_in(m, event.types);
    event.stack = text_in(m, event.stack);
    event.args = text_in(m, event.args);
    event.external_id += event.external_id ? m->id_above : 0;
    return weir_trace_add(m->to, &event);
}

static int merge_devices(struct merge *m)
{
    if (m->to->n_devices > 0 || m->from->n_devices == 0)
        return 0;
    m->to->devices = calloc((size_t)m->from->n_devices, sizeof *m->to->devices);
    if (!m->to->devices)
        return -ENOMEM;
    for (; m->to->n_devices < m->from->n_devices; m->to->n_devices++) {
        const struct weir_trace_device *device = &m->from->devices[m->to->n_devices];
        m->to->devices[m->to->n_devices] =
            (struct weir_trace_device){device->id, text_in(m, device->name), text_in(m, device->properties)};
    }
    return 0;
}

/* Returns the end of the range that weir.profile records before its window, because the clocks of both traces may
 * differ by some us; INT64_MIN without one. */
static int64_t find_mark(const struct weir_trace *trace)
{
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        bool range = event->kind == WEIR_EVENT_RANGE && is_time(event->start_ns) && is_time(event->duration_ns);
        if (range && strcmp(weir_trace_text(trace, event->name), "weir.profile") == 0)
            return event->start_ns + event->duration_ns;
    }
    return INT64_MIN;
}

static int merge(struct weir_trace *to, const struct weir_trace *from)
{
    struct merge m = {.to = to, .from = from, .mark_ns = find_mark(from)};
    if (__builtin_sub_overflow(from->base_unix_ns, to->base_unix_ns, &m.shift_ns) || !is_time(m.shift_ns))
        return -ERANGE;
    m.texts = calloc(weir_trace_text_count(from), sizeof *m.texts);
    if (!m.texts)
        return -ENOMEM;
    for (size_t i = 0; i < to->n_events; i++) {
        const struct weir_event *event = &to->events[i];
        uint64_t id = event->external_id > event->correlation ? event->external_id : event->correlation;
        m.id_above = id > m.id_above ? id : m.id_above;
    }
    int rc = merge_devices(&m);
    for (size_t i = 0; i < from->n_events && rc == 0; i++)
        rc = merge_event(&m, from->events[i]);
    free(m.texts);
    to->python_frames = from->python_frames;
    to->forks |= from->forks;
    return rc == 0 && weir_trace_failed(to) ? -ENOMEM : rc;
}

int weir_trace_merge(struct weir_trace *trace, const char *path, struct weir_err *err)
{
    struct weir_trace *read;
    int rc = weir_trace_read_whole(&read, path, err);
    if (rc < 0)
        return rc;
    rc = weir_trace_sort(read); /* the first mark is weir.profile's own */
    if (rc == 0)
        rc = merge(trace, read);
    if (rc == 0)
        rc = weir_trace_sort(trace);
    weir_trace_free(&read);
    return rc < 0 ? weir_err_set(err, rc, "%s: its events cannot be added: %s", path, strerror(-rc)) : 0;
}
