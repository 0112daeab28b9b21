/* Finds the gaps between the activities of each device, and their causes. */
#include "analyze/gpu_idle/gpu_idle.h"
#include "analyze/gpu_idle/gpu_idle_priv.h"
#include "base/numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct activity {
    int64_t device, start_ns, end_ns;
    size_t event;
    uint32_t correlation;
    uint8_t cat;
    bool pageable; /* a copy from the host's pageable memory */
};

struct sweep {
    struct weir_host host;
    struct activity *activities; /* sorted by device and start; ties keep the trace's order */
    size_t n_activities;
    int64_t *delays; /* launch delays of the current device */
    int64_t steps_begin_ns, steps_end_ns;
    bool steps;
    struct weir_idle_device *device; /* the device being processed */
};

/* ---- one gap ---- */

struct gap {
    int64_t begin_ns, end_ns;
    const struct weir_host_call *launch; /* call that launched the activity after the gap; NULL = unknown */
    uint32_t thread, beside;             /* tracks of the launching thread and of an alternative thread */
    bool last;                           /* no activity follows the gap */
};

/* Returns the cause of a part of a gap. launch: the thread is in the call that launches the next activity. beside is
 * the state of the alternative thread. It is used if nothing is recorded for the launching thread: PyTorch's backward
 * pass launches from a thread of its own while the loop's thread waits. */
static enum weir_idle_cause cause_of(enum weir_host_state thread, enum weir_host_state beside, bool launch, int64_t ns)
{
    enum weir_host_state state = thread != WEIR_HOST_NONE ? thread : beside;
    switch (state) {
    case WEIR_HOST_MEASUREMENT:
        return WEIR_IDLE_MEASUREMENT;
    case WEIR_HOST_DATA:
        return WEIR_IDLE_DATA;
    case WEIR_HOST_SYNC:
        return WEIR_IDLE_SYNC;
    case WEIR_HOST_ALLOCATION:
        return WEIR_IDLE_ALLOCATING;
    case WEIR_HOST_COPY: /* a thread that is still in the call after the copy has ended waited for the copy */
        return launch ? WEIR_IDLE_LAUNCHING : WEIR_IDLE_SYNC;
    case WEIR_HOST_CALL:
        return WEIR_IDLE_LAUNCHING;
    default:
        return launch || ns <= WEIR_IDLE_HOST_CODE_NS ? WEIR_IDLE_LAUNCHING : WEIR_IDLE_OTHER;
    }
}

static int64_t between(int64_t ns, int64_t low, int64_t high)
{
    return ns < low ? low : ns > high ? high : ns;
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Launching in a gap that begins in a synchronising call (or a measurement) is attributed to that call, because the
 * call drained the queue. Without it, these launches would have happened while the device was busy. After the last
 * activity, nothing is being launched, so such time counts as other host code. */
static enum weir_idle_cause carried(enum weir_idle_cause first, enum weir_idle_cause cause, const struct gap *gap)
{
    if (cause != WEIR_IDLE_LAUNCHING)
        return cause;
    if (first == WEIR_IDLE_SYNC || first == WEIR_IDLE_MEASUREMENT)
        return first;
    return gap->last ? WEIR_IDLE_OTHER : cause;
}

/* Attributes the part of the gap before the launch call returns to causes, according to the threads' states. The rest
 * is launch latency, unless the launch belongs to an earlier wait, to which the rest then counts. */
static void divide_host(const struct weir_host *host, const struct gap *gap, int64_t parts[WEIR_IDLE_CAUSES])
{
    struct weir_host_cursor thread = weir_host_seek(host, gap->thread, gap->begin_ns);
    struct weir_host_cursor beside = weir_host_seek(host, gap->beside, gap->begin_ns);
    enum weir_idle_cause first = WEIR_IDLE_NONE, cause = WEIR_IDLE_LAUNCHING;
    int64_t call_ns = gap->end_ns, returned_ns = gap->end_ns;
    if (gap->launch) {
        call_ns = between(gap->launch->start_ns, gap->begin_ns, gap->end_ns);
        returned_ns = between(gap->launch->end_ns, call_ns, gap->end_ns);
    }
    for (int64_t at_ns = gap->begin_ns; at_ns < returned_ns;) {
        bool launch = at_ns >= call_ns;
        int64_t until_ns = earliest(weir_host_until(&thread), weir_host_until(&beside));
        until_ns = earliest(until_ns, launch ? returned_ns : call_ns);
        cause = cause_of(weir_host_state(&thread), weir_host_state(&beside), launch, until_ns - at_ns);
        first = first == WEIR_IDLE_NONE ? cause : first;
        cause = carried(first, cause, gap);
        parts[cause] += until_ns - at_ns;
        at_ns = until_ns;
        weir_host_move(&thread, at_ns);
        weir_host_move(&beside, at_ns);
    }
    bool within = cause == WEIR_IDLE_DATA || cause == WEIR_IDLE_MEASUREMENT; /* the launch is part of this wait */
    parts[within ? cause : carried(first, WEIR_IDLE_LAUNCHING, gap)] += gap->end_ns - returned_ns;
}

static void add_gap(struct sweep *s, const struct gap *gap)
{
    int64_t parts[WEIR_IDLE_CAUSES] = {0};
    int largest = 0;
    if (gap->end_ns <= gap->begin_ns)
        return;
    if (gap->launch && gap->launch->end_ns <= gap->begin_ns)
        parts[WEIR_IDLE_QUEUED] = gap->end_ns - gap->begin_ns;
    else
        divide_host(&s->host, gap, parts);
    for (int cause = 0; cause < WEIR_IDLE_CAUSES; cause++) {
        s->device->cause_ns[cause] += parts[cause];
        largest = parts[cause] > parts[largest] ? cause : largest;
    }
    s->device->cause_gaps[largest]++;
    s->device->idle_ns += gap->end_ns - gap->begin_ns;
    if (!gap->launch || gap->launch->end_ns <= gap->begin_ns)
        return;
    int64_t delay_ns = gap->end_ns - gap->launch->end_ns;
    s->delays[s->device->launches++] = delay_ns > 0 ? delay_ns : 0;
}

/* ---- one device ---- */

static const struct weir_host_call *launch_of(const struct sweep *s, const struct activity *activity)
{
    return weir_host_launch(&s->host, activity->correlation, activity->start_ns);
}

/* Returns the earliest launch among the activities that start at the same time as a[0]. */
static const struct weir_host_call *first_launch(const struct sweep *s, const struct activity *a, size_t n)
{
    const struct weir_host_call *first = NULL;
    for (size_t i = 0; i < n && a[i].start_ns == a[0].start_ns; i++) {
        const struct weir_host_call *launch = launch_of(s, &a[i]);
        if (launch && (!first || launch->start_ns < first->start_ns))
            first = launch;
    }
    return first;
}

/* Sets the gap's threads. before: launch of the activity before the gap. */
static void find_threads(const struct sweep *s, struct gap *gap, const struct weir_host_call *before)
{
    uint32_t previous = before ? before->track : WEIR_HOST_NO_TRACK;
    gap->thread = gap->launch ? gap->launch->track : WEIR_HOST_NO_TRACK;
    gap->beside = s->host.step_track;
    if (gap->beside == WEIR_HOST_NO_TRACK || gap->beside == gap->thread)
        gap->beside = previous;
}

static int64_t quantile(const int64_t *sorted, uint64_t n, uint64_t percent)
{
    uint64_t rank = n / 100 * percent + (n % 100 * percent + 99) / 100; /* nearest rank, starting at 1 */
    return n ? sorted[rank ? rank - 1 : 0] : 0;
}

static void count_activity(struct sweep *s, const struct activity *activity)
{
    s->device->copies += activity->cat == WEIR_CAT_GPU_MEMCPY;
    if (activity->cat != WEIR_CAT_KERNEL)
        return;
    s->device->kernels++;
    const struct weir_host_call *launch = launch_of(s, activity);
    int64_t at_ns = launch ? launch->start_ns : activity->start_ns;
    s->device->step_kernels += s->steps && at_ns >= s->steps_begin_ns && at_ns < s->steps_end_ns;
}

/* Extends the covered time to the activity's end. Returns the part of the activity's time that was not covered before.
 */
static int64_t cover(int64_t *end_ns, const struct activity *activity)
{
    int64_t from_ns = activity->start_ns > *end_ns ? activity->start_ns : *end_ns;
    int64_t ns = activity->end_ns > from_ns ? activity->end_ns - from_ns : 0;
    *end_ns = activity->end_ns > *end_ns ? activity->end_ns : *end_ns;
    return ns;
}

static void sweep_device(struct sweep *s, const struct activity *a, size_t n)
{
    struct weir_idle_device *device = s->device;
    *device = (struct weir_idle_device){.device = a->device, .begin_ns = a->start_ns};
    if (s->steps && s->steps_begin_ns < device->begin_ns)
        device->begin_ns = s->steps_begin_ns;
    device->before_ns = a->start_ns - device->begin_ns;
    int64_t end_ns = device->begin_ns, kernels_end_ns = device->begin_ns, kernels_ns = 0;
    int64_t pageable_end_ns = device->begin_ns;
    const struct activity *before = NULL; /* the activity with the latest end so far */
    for (size_t i = 0; i < n; i++) {
        if (a[i].start_ns > end_ns) {
            struct gap gap = {.begin_ns = end_ns, .end_ns = a[i].start_ns, .launch = first_launch(s, a + i, n - i)};
            find_threads(s, &gap, before ? launch_of(s, before) : NULL);
            add_gap(s, &gap);
        }
        before = a[i].end_ns >= end_ns ? &a[i] : before;
        device->busy_ns += cover(&end_ns, &a[i]);
        if (a[i].cat != WEIR_CAT_GPU_MEMCPY)
            kernels_ns += cover(&kernels_end_ns, &a[i]);
        if (a[i].pageable)
            device->pageable_ns += cover(&pageable_end_ns, &a[i]);
        count_activity(s, &a[i]);
    }
    device->end_ns = s->steps && s->steps_end_ns > end_ns ? s->steps_end_ns : end_ns;
    device->after_ns = device->end_ns - end_ns;
    struct gap gap = {.begin_ns = end_ns, .end_ns = device->end_ns, .last = true};
    find_threads(s, &gap, before ? launch_of(s, before) : NULL);
    add_gap(s, &gap);
    device->copies_alone_ns = device->busy_ns - kernels_ns;
    qsort(s->delays, device->launches, sizeof *s->delays, weir_compare_int64);
    device->delay_p50_ns = quantile(s->delays, device->launches, 50);
    device->delay_p99_ns = quantile(s->delays, device->launches, 99);
}

/* ---- all devices ---- */

static bool is_activity(const struct weir_event *event)
{
    return event->kind == WEIR_EVENT_RANGE &&
           (event->cat == WEIR_CAT_KERNEL || event->cat == WEIR_CAT_GPU_MEMCPY || event->cat == WEIR_CAT_GPU_MEMSET);
}

static bool is_pageable(const struct weir_trace *trace, const struct weir_event *event)
{
    return event->cat == WEIR_CAT_GPU_MEMCPY && strstr(weir_trace_text(trace, event->name), "HtoD (Pageable ");
}

static int by_device(const void *a, const void *b)
{
    const struct activity *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

static void collect(struct sweep *s, const struct weir_trace *trace)
{
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        if (is_activity(event))
            s->activities[s->n_activities++] = (struct activity){.device = trace->tracks[event->track].pid,
                                                                 .start_ns = weir_host_clamp(event->start_ns),
                                                                 .end_ns = weir_host_end(event),
                                                                 .event = i,
                                                                 .correlation = event->correlation,
                                                                 .cat = event->cat,
                                                                 .pageable = is_pageable(trace, event)};
    }
    qsort(s->activities, s->n_activities, sizeof *s->activities, by_device);
}

static void find_steps(struct sweep *s, const struct weir_step *steps, int64_t n_steps)
{
    for (int64_t i = 0; i < n_steps; i++) {
        int64_t begin_ns = weir_host_clamp(steps[i].start_ns), end_ns = weir_host_clamp(steps[i].end_ns);
        s->steps_begin_ns = s->steps ? earliest(s->steps_begin_ns, begin_ns) : begin_ns;
        s->steps_end_ns = s->steps && s->steps_end_ns > end_ns ? s->steps_end_ns : end_ns;
        s->steps = true;
    }
}

static struct weir_idle_loop loop_of(const struct sweep *s, const struct weir_step *steps, int64_t n_steps)
{
    struct weir_idle_loop loop = {
        .ns = s->steps_end_ns - s->steps_begin_ns,
        .wait_ns = weir_host_data_ns(&s->host, s->host.step_track, s->steps_begin_ns, s->steps_end_ns),
        .loader = s->host.loader,
    };
    for (int64_t i = 0; i < n_steps && n_steps < WEIR_IDLE_ENOUGH_STEPS; i++) {
        int64_t begin_ns = weir_host_clamp(steps[i].start_ns), end_ns = weir_host_clamp(steps[i].end_ns);
        int64_t ns = weir_host_data_ns(&s->host, s->host.step_track, begin_ns, end_ns);
        loop.step_wait_min_ns = i == 0 || ns < loop.step_wait_min_ns ? ns : loop.step_wait_min_ns;
        loop.step_wait_max_ns = ns > loop.step_wait_max_ns ? ns : loop.step_wait_max_ns;
    }
    return loop;
}

static void sweep_all(struct sweep *s, struct weir_gpu_idle *idle)
{
    for (size_t i = 0, n; i < s->n_activities; i += n) {
        for (n = 1; i + n < s->n_activities && s->activities[i + n].device == s->activities[i].device;)
            n++;
        if (idle->n_devices == WEIR_IDLE_DEVICES_MOST) {
            idle->devices_left_out++;
            continue;
        }
        s->device = &idle->devices[idle->n_devices++];
        sweep_device(s, &s->activities[i], n);
    }
}

int weir_gpu_idle_make(struct weir_gpu_idle *idle, const struct weir_trace *trace, const struct weir_step *steps,
                       int64_t n_steps)
{
    struct sweep s = {0};
    size_t n = 0;
    *idle = (struct weir_gpu_idle){.n_steps = n_steps};
    for (size_t i = 0; i < trace->n_events; i++)
        n += is_activity(&trace->events[i]);
    s.activities = malloc((n + 1) * sizeof *s.activities);
    s.delays = malloc((n + 1) * sizeof *s.delays);
    idle->devices = calloc(WEIR_IDLE_DEVICES_MOST, sizeof *idle->devices);
    int rc = s.activities && s.delays && idle->devices ? weir_host_make(&s.host, trace) : -ENOMEM;
    if (rc == 0) {
        find_steps(&s, steps, n_steps);
        idle->loop = loop_of(&s, steps, n_steps);
        collect(&s, trace);
        sweep_all(&s, idle);
        weir_host_clear(&s.host);
    } else {
        weir_gpu_idle_clear(idle);
    }
    free(s.activities);
    free(s.delays);
    return rc;
}

void weir_gpu_idle_clear(struct weir_gpu_idle *idle)
{
    free(idle->devices);
    *idle = (struct weir_gpu_idle){0};
}

enum weir_idle_cause weir_gpu_idle_first(const struct weir_idle_device *device)
{
    int64_t most_ns = device->copies_alone_ns;
    enum weir_idle_cause first = WEIR_IDLE_COPIES;
    for (int cause = 0; cause < WEIR_IDLE_CAUSES; cause++) {
        if (cause == WEIR_IDLE_MEASUREMENT || device->cause_ns[cause] <= most_ns)
            continue;
        most_ns = device->cause_ns[cause];
        first = (enum weir_idle_cause)cause;
    }
    return most_ns > 0 && most_ns >= (device->end_ns - device->begin_ns) / 20 ? first : WEIR_IDLE_NONE;
}

enum weir_idle_cause weir_gpu_idle_largest(const struct weir_idle_device *device)
{
    enum weir_idle_cause largest = WEIR_IDLE_NONE;
    int64_t most_ns = 0;
    for (int cause = 0; cause < WEIR_IDLE_CAUSES; cause++) {
        if (cause == WEIR_IDLE_MEASUREMENT || device->cause_ns[cause] <= most_ns)
            continue;
        most_ns = device->cause_ns[cause];
        largest = (enum weir_idle_cause)cause;
    }
    return largest;
}

int64_t weir_gpu_idle_step_ns(const struct weir_gpu_idle *idle, const struct weir_idle_device *device)
{
    int64_t ns = idle->loop.ns - idle->loop.wait_ns;
    if (idle->n_steps == 0 || idle->loop.wait_ns == 0)
        return -1;
    return (device && device->busy_ns > ns ? device->busy_ns : ns) / idle->n_steps;
}

/* ---- a report's figures ---- */

void weir_gpu_idle_report(struct weir_report_idle *report, const struct weir_gpu_idle *idle, int64_t number)
{
    const struct weir_idle_device *d = NULL;
    for (int i = 0; i < idle->n_devices; i++)
        if (idle->devices[i].device == number)
            d = &idle->devices[i];
    *report = (struct weir_report_idle){.delay_p50_s = -1, .delay_p99_s = -1, .kernels_per_step = -1};
    if (!d || d->end_ns <= d->begin_ns)
        return;
    double ns = (double)(d->end_ns - d->begin_ns);
    report->traced_s = ns / 1e9;
    report->busy = (double)d->busy_ns / ns;
    report->launching = (double)d->cause_ns[WEIR_IDLE_LAUNCHING] / ns;
    report->sync = (double)d->cause_ns[WEIR_IDLE_SYNC] / ns;
    report->data = (double)d->cause_ns[WEIR_IDLE_DATA] / ns;
    report->allocating = (double)d->cause_ns[WEIR_IDLE_ALLOCATING] / ns;
    report->queued = (double)d->cause_ns[WEIR_IDLE_QUEUED] / ns;
    report->other = (double)d->cause_ns[WEIR_IDLE_OTHER] / ns;
    if (d->launches) {
        report->delay_p50_s = (double)d->delay_p50_ns / 1e9;
        report->delay_p99_s = (double)d->delay_p99_ns / 1e9;
    }
    if (idle->n_steps > 0)
        report->kernels_per_step = (double)d->step_kernels / (double)idle->n_steps;
}
