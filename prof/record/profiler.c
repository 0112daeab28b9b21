#include "weir/profiler.h"
#include "base/option.h"
#include "base/threads.h"
#include "prof/record/nvtx.h"
#include "prof/record/switches.h"
#include "prof/record/window_priv.h"
#include "weir/recorder.h"
#include "weir/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WINDOWS_WAITING = 4, DRAIN_NS = 20 * 1000 * 1000, SAMPLE_NS = 1000 * 1000 };
static const uint64_t bytes_max_default = UINT64_C(256) << 20;
static const char data_wait_default[] = "enumerate(DataLoader)#WeirLoader.__next__";

/* The current action, reduced to what the collector needs. */
enum phase { PHASE_OFF, PHASE_WARMUP, PHASE_RECORD };

struct weir_profiler {
    struct weir_profiler_config config;
    char *folder, *worker, *data_wait, *metadata; /* copies of the config's strings */
    pid_t pid;

    /* Used by the caller's thread only. */
    enum weir_action action;
    struct weir_schedule_clock clock;
    int64_t step, first_step;
    uint64_t step_start, begin;
    uint64_t begin_unix_ns;
    bool running, preparing; /* preparing: recording is on */
    bool no_gpu;             /* GPU recording failed and is not attempted again */
    struct weir_nvtx_steps shown;

    /* Shared by the caller, the collector and the writer. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum phase phase;
    uint64_t keep_from;        /* ticks; records that began earlier belong to no window. UINT64_MAX drops all records */
    struct weir_windows ended; /* windows that the collector has to fill */
    struct weir_windows ready; /* windows that the writer has to write */
    int waiting;               /* number of windows in either list or being written */
    bool closing, collected;   /* collected: the collector has exited */
    struct weir_trace *last;
    pthread_t collector, writer;
};

static struct weir_eventcount wake; /* wakes the collector; notified when a ring is half full */
static _Atomic pid_t owner;         /* process that opened the profiler; a child of fork() has another PID */
static _Atomic uint32_t generation;

/* ---- messages ---- */

static void say(struct weir_profiler *p, const char *line)
{
    if (p->config.on_message)
        p->config.on_message(p->config.user, line);
}

/* ---- the collector: empties the rings ---- */

static void ring_half_full(void)
{
    weir_eventcount_notify(&wake);
}

/* Moves the records of an ended window from the store to the window. Later records stay in the store. */
static void fill_window(struct weir_window *window, struct weir_store *store)
{
    window->store.bytes_max = store->bytes_max;
    weir_store_split(store, window->end, window->discard ? NULL : &window->store);
    window->dropped =
        store->dropped + window->store.dropped + weir_tracks_dropped() + weir_gpu_take_dropped(window->gpu);
    store->dropped = 0;
}

/* Discards records from before `ticks`, which were collected during a warm-up or outside all windows. */
static void forget_before(struct weir_store *store, uint64_t ticks)
{
    weir_store_split(store, ticks, NULL);
    store->dropped = 0;
    weir_tracks_dropped();
}

static void hand_to_writer(struct weir_profiler *p, struct weir_window *window)
{
    pthread_mutex_lock(&p->lock);
    weir_windows_put(&p->ready, window);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static struct weir_window *next_ended(struct weir_profiler *p)
{
    pthread_mutex_lock(&p->lock);
    struct weir_window *window = weir_windows_take(&p->ended);
    pthread_mutex_unlock(&p->lock);
    return window;
}

static void *collector_main(void *user)
{
    struct weir_profiler *p = user;
    struct weir_store store = {.bytes_max = p->config.bytes_max};
    pthread_setname_np(pthread_self(), "weir-collect");
    for (bool more = true; more;) {
        uint32_t key = weir_eventcount_prepare(&wake);
        pthread_mutex_lock(&p->lock);
        enum phase phase = p->phase;
        uint64_t keep_from =
            phase == PHASE_WARMUP ? weir_clock_ticks() : p->keep_from; /* no window can begin before now */
        more = !p->closing || p->ended.first;
        pthread_mutex_unlock(&p->lock);
        weir_store_drain(&store);
        struct weir_window *window = next_ended(p);
        if (window) {
            weir_store_drain(&store); /* fetch records written up to the window's end */
            fill_window(window, &store);
            if (window->discard)
                weir_window_free(&window);
            else
                hand_to_writer(p, window);
            continue;
        }
        if (phase != PHASE_RECORD)
            forget_before(&store, keep_from);
        else if (p->config.on_sample)
            p->config.on_sample(p->config.user);
        if (more)
            weir_eventcount_wait(&wake, key, phase == PHASE_RECORD && p->config.on_sample ? SAMPLE_NS : DRAIN_NS);
    }
    weir_store_clear(&store);
    pthread_mutex_lock(&p->lock);
    p->collected = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- the writer: turns windows into traces ---- */

static void write_file(struct weir_profiler *p, struct weir_trace *trace, char *path, size_t size, struct weir_err *err)
{
    if (weir_trace_path(path, size, p->folder, p->worker, !p->config.uncompressed, err) == 0)
        weir_trace_write(trace, path, err);
}

static void write_window(struct weir_profiler *p, struct weir_window *window, int64_t number)
{
    char path[4096] = "";
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_export how = {p->data_wait, p->config.worker_ops, p->metadata};
    struct weir_trace *trace;
    if (weir_window_trace(window, &how, &trace) < 0)
        weir_err_set(&err, -ENOMEM, "out of memory for the trace of a window: record fewer steps");
    if (trace && p->folder)
        write_file(p, trace, path, sizeof path, &err);
    if (err.code < 0)
        say(p, err.text);
    struct weir_profiler_window out = {
        .number = number,
        .first_step = window->first_step,
        .last_step = window->last_step,
        .trace = trace,
        .path = p->folder && err.code == 0 ? path : NULL,
        .error = err.code < 0 ? err.text : NULL,
        .dropped = window->dropped,
        .seconds = (double)weir_clock_to_ns(window->end - window->begin) / 1e9,
    };
    if (p->config.on_trace_ready)
        p->config.on_trace_ready(p->config.user, &out);
    pthread_mutex_lock(&p->lock);
    struct weir_trace *before = p->last;
    p->last = trace;
    pthread_mutex_unlock(&p->lock);
    weir_trace_free(&before);
}

static struct weir_window *next_ready(struct weir_profiler *p)
{
    pthread_mutex_lock(&p->lock);
    while (!p->ready.first && !p->collected)
        pthread_cond_wait(&p->changed, &p->lock);
    struct weir_window *window = weir_windows_take(&p->ready);
    pthread_mutex_unlock(&p->lock);
    return window;
}

static void *writer_main(void *user)
{
    struct weir_profiler *p = user;
    struct weir_window *window;
    pthread_setname_np(pthread_self(), "weir-trace");
    for (int64_t number = 0; (window = next_ready(p)) != NULL; number++) {
        write_window(p, window, number);
        weir_window_free(&window);
        pthread_mutex_lock(&p->lock);
        p->waiting--;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

/* ---- transitions ---- */

static uint32_t state_of(const struct weir_profiler_config *config)
{
    uint32_t flags = WEIR_RECORDING_ON | (config->record_shapes ? WEIR_RECORDING_SHAPES : 0u) |
                     (config->with_stack ? WEIR_RECORDING_STACKS : 0u) |
                     (config->profile_memory ? WEIR_RECORDING_MEMORY : 0u);
    return flags | weir_nvtx_state() |
           (atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed) + 1) * WEIR_RECORDING_NEXT;
}

static void set_phase(struct weir_profiler *p, enum phase phase, uint64_t keep_from)
{
    pthread_mutex_lock(&p->lock);
    p->phase = phase;
    p->keep_from = keep_from;
    pthread_mutex_unlock(&p->lock);
    weir_eventcount_notify(&wake);
}

static void start_gpu(struct weir_profiler *p)
{
    struct weir_err err = WEIR_ERR_NONE;
    if (!p->config.gpu || p->no_gpu)
        return;
    p->no_gpu = weir_gpu_take_start(p->config.bytes_max, p->config.profile_memory, &err) < 0;
    if (!p->no_gpu)
        return;
    weir_err_prefix(&err, "GPU work is not recorded");
    say(p, err.text);
}

static bool own_memory(int device)
{
    int64_t allocated, reserved;
    weir_memory_totals(device, &allocated, &reserved);
    return allocated != 0 || reserved != 0;
}

/* Runs on the caller's thread. Waits for the window's last kernels; launches after that have no recording overhead. */
static struct weir_gpu_take *stop_gpu(struct weir_profiler *p)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_gpu_take *take;
    if (weir_gpu_take_stop(&take, own_memory, &err) < 0) {
        weir_err_prefix(&err, "GPU recording");
        say(p, err.text);
    }
    return take;
}

static void prepare(struct weir_profiler *p)
{
    set_phase(p, PHASE_WARMUP, weir_clock_ticks());
    weir_track_mine(); /* create the ring now, because touching its pages would slow down the caller's first range */
    start_gpu(p);
    __atomic_store_n(&weir_recording_state, state_of(&p->config), __ATOMIC_RELEASE);
    p->preparing = true;
}

static void start(struct weir_profiler *p)
{
    if (!p->preparing) /* the warm-up came after a window that was dropped */
        prepare(p);
    set_phase(p, PHASE_RECORD, 0); /* before reading the begin time, so that no record after it is dropped */
    weir_clock_pair(CLOCK_REALTIME, 32, 0, &p->begin, &p->begin_unix_ns);
    p->first_step = p->step;
}

static bool has_schedule(const struct weir_profiler *p)
{
    return p->config.action || p->config.schedule.active > 0 || p->config.schedule.active_s > 0;
}

static struct weir_window *window_new(const struct weir_profiler *p, enum weir_action to)
{
    struct weir_window *window = calloc(1, sizeof *window);
    if (!window)
        return NULL;
    bool steps = has_schedule(p);
    window->begin = p->begin;
    window->begin_unix_ns = (int64_t)p->begin_unix_ns;
    window->first_step = steps ? p->first_step : -1;
    /* If whole, the current step belongs to the window; otherwise it has only just begun, or is left out. */
    bool whole = to == WEIR_ACTION_EXIT && !p->config.whole_steps;
    window->last_step = steps ? p->step - !whole : -1;
    window->discard = window->last_step < window->first_step;
    window->state = weir_recording();
    weir_window_note_open(window);
    return window;
}

/* Ends the current window; `to` is the action that follows. If keep is set, passes the window to the writer, unless too
 * many are queued. */
static void stop(struct weir_profiler *p, enum weir_action to, bool keep)
{
    struct weir_window *window = window_new(p, to);
    __atomic_store_n(&weir_recording_state, weir_nvtx_state(), __ATOMIC_SEQ_CST);
    uint64_t end = weir_clock_ticks(); /* later than the start of every recorded range */
    p->preparing = false;
    struct weir_gpu_take *gpu = stop_gpu(p);
    pthread_mutex_lock(&p->lock);
    bool full = p->waiting == WINDOWS_WAITING;
    p->phase = PHASE_OFF;
    p->keep_from = end;
    if (window) {
        window->gpu = gpu;
        window->end = end;
        window->discard |= full || !keep;
        p->waiting += !window->discard;
        weir_windows_put(&p->ended, window);
    }
    pthread_mutex_unlock(&p->lock);
    weir_eventcount_notify(&wake);
    if (!window)
        weir_gpu_take_free(&gpu);
    if (keep && full)
        say(p, "a window is dropped: earlier windows are still being written; record less often or fewer steps");
    else if (keep && !window)
        say(p, "a window is dropped: out of memory");
}

static void transit(struct weir_profiler *p, enum weir_action to)
{
    unsigned todo = weir_transition(p->action, to);
    if (todo & WEIR_DO_WARN)
        say(p, "a window is dropped: the schedule ended before its last step");
    if (todo & WEIR_DO_START_STOP)
        stop(p, to, false);
    if (todo & WEIR_DO_STOP)
        stop(p, to, todo & WEIR_DO_READY);
    if ((todo & WEIR_DO_READY) && p->config.on_window_end)
        p->config.on_window_end(p->config.user);
    if (todo & WEIR_DO_PREPARE)
        prepare(p);
    if (todo & WEIR_DO_START)
        start(p);
    p->action = to;
}

/* ---- the caller's side ---- */

void weir_profiler_config_init(struct weir_profiler_config *config, size_t size)
{
    const struct weir_profiler_config full = {.data_wait = data_wait_default, .bytes_max = bytes_max_default};
    weir_sized_fill(config, size, &full, sizeof full);
}

static bool is_timed(const struct weir_schedule *schedule)
{
    return schedule->wait_s > 0 || schedule->active_s > 0;
}

/* Returns the action of the step that begins now. With a timed schedule, this also sets the final action of the step
 * that just ended. */
static enum weir_action next_action(struct weir_profiler *p)
{
    if (p->config.action)
        return p->config.action(p->config.user, p->step);
    if (!is_timed(&p->config.schedule))
        return weir_schedule_action(&p->config.schedule, p->step);
    enum weir_action last, next;
    next = weir_schedule_timed(&p->config.schedule, &p->clock, weir_clock_monotonic_ns(), &last);
    if (p->step > p->config.first_step)
        p->action = last;
    return next;
}

static int copy_texts(struct weir_profiler *p, const struct weir_profiler_config *config)
{
    p->folder = config->folder ? strdup(config->folder) : NULL;
    p->worker = config->worker ? strdup(config->worker) : NULL;
    p->metadata = config->metadata ? strdup(config->metadata) : NULL;
    p->data_wait = strdup(config->data_wait ? config->data_wait : data_wait_default);
    bool failed = (config->folder && !p->folder) || (config->worker && !p->worker) ||
                  (config->metadata && !p->metadata) || !p->data_wait;
    return failed ? -ENOMEM : 0;
}

static void free_profiler(struct weir_profiler **profiler)
{
    struct weir_profiler *p = *profiler;
    free(p->folder);
    free(p->worker);
    free(p->data_wait);
    free(p->metadata);
    weir_trace_free(&p->last);
    free(p);
    *profiler = NULL;
}

static int start_threads(struct weir_profiler *p)
{
    int rc = weir_thread_start(&p->collector, collector_main, p);
    if (rc < 0)
        return rc;
    rc = weir_thread_start(&p->writer, writer_main, p);
    if (rc == 0)
        return 0;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_mutex_unlock(&p->lock);
    weir_eventcount_notify(&wake);
    pthread_join(p->collector, NULL);
    return rc;
}

/* Allows only one open profiler per process, because each ring can have only one reader. */
static bool claim(void)
{
    pid_t mine = getpid(), other = atomic_load(&owner);
    return other != mine && atomic_compare_exchange_strong(&owner, &other, mine);
}

static void show_steps(struct weir_profiler *p)
{
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_nvtx_steps_begin(&p->shown, &err) == 0)
        return;
    weir_err_prefix(&err, "NVTX ranges are not shown");
    say(p, err.text);
}

static int open_claimed(struct weir_profiler **out, const struct weir_profiler_config *config, struct weir_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct weir_profiler *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p || copy_texts(p, config) < 0) {
        if (p)
            free_profiler(&p);
        return weir_err_set(err, -ENOMEM, "out of memory for the profiler");
    }
    p->config = *config;
    p->config.bytes_max = config->bytes_max ? config->bytes_max : bytes_max_default;
    p->pid = getpid();
    int rc = has_schedule(p) && !p->config.action ? weir_schedule_check(&config->schedule, err) : 0;
    if (rc < 0) {
        free_profiler(&p);
        return rc;
    }
    pthread_once(&once, weir_clock_init);
    weir_zone_cost_ns(); /* measure it now, so that the measurement's zones are outside all windows */
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    weir_tracks_collect(true);
    weir_tracks_on_half(ring_half_full);
    rc = start_threads(p);
    if (rc < 0) {
        free_profiler(&p);
        return weir_err_set(err, rc, "the profiler's threads cannot be started: %s", strerror(-rc));
    }
    *out = p;
    if (p->config.nvtx)
        show_steps(p);
    return 0;
}

int weir_profiler_open(struct weir_profiler **out, const struct weir_profiler_config *config, struct weir_err *err)
{
    *out = NULL;
    struct weir_profiler_config full = {.size = 0};
    int rc = weir_sized_copy(&full, sizeof full, WEIR_SIZED_LEAST(struct weir_profiler_config, user), config,
                             "struct weir_profiler_config", err);
    if (rc < 0)
        return rc;
    if (!claim())
        return weir_err_set(err, -EBUSY, "this process already has an open profiler; close it first");
    rc = open_claimed(out, &full, err);
    if (rc < 0)
        atomic_store(&owner, 0);
    return rc == 0 && has_schedule(*out) ? weir_profiler_start(*out, err) : rc;
}

/* False in a child of fork(), which has no collector and no writer thread. */
static bool is_mine(const struct weir_profiler *p)
{
    return p && p->pid == getpid();
}

static void end_step(struct weir_profiler *p)
{
    uint64_t now = weir_clock_ticks();
    if (weir_recording() && p->preparing)
        weir_track_step(p->step, p->step_start, now > p->step_start ? now : p->step_start);
}

void weir_profiler_step(struct weir_profiler *p)
{
    if (is_mine(p))
        weir_nvtx_steps_next(&p->shown);
    if (!is_mine(p) || !p->running || !has_schedule(p))
        return;
    end_step(p);
    p->step++;
    transit(p, next_action(p));
    p->step_start = weir_clock_ticks();
}

int weir_profiler_start(struct weir_profiler *p, struct weir_err *err)
{
    if (!is_mine(p) || p->running)
        return weir_err_set(err, -EINVAL, "the profiler is already running");
    p->running = true;
    p->action = WEIR_ACTION_NONE;
    p->step = p->config.first_step;
    p->clock = (struct weir_schedule_clock){0};
    transit(p, has_schedule(p) ? next_action(p) : WEIR_ACTION_RECORD);
    p->step_start = weir_clock_ticks();
    return 0;
}

void weir_profiler_stop(struct weir_profiler *p)
{
    if (!is_mine(p) || !p->running)
        return;
    if (has_schedule(p) && !p->config.whole_steps)
        end_step(p);
    transit(p, WEIR_ACTION_EXIT);
    p->running = false;
}

void weir_profiler_flush(struct weir_profiler *p)
{
    if (!is_mine(p))
        return;
    pthread_mutex_lock(&p->lock);
    while (p->waiting > 0)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static struct weir_trace *get_last(struct weir_profiler *p, bool keeps)
{
    if (!is_mine(p))
        return NULL;
    pthread_mutex_lock(&p->lock);
    struct weir_trace *trace = p->last;
    p->last = keeps ? trace : NULL;
    pthread_mutex_unlock(&p->lock);
    return trace;
}

struct weir_trace *weir_profiler_last(struct weir_profiler *p)
{
    return get_last(p, true);
}

struct weir_trace *weir_profiler_take(struct weir_profiler *p)
{
    return get_last(p, false);
}

void weir_profiler_close(struct weir_profiler **profiler)
{
    struct weir_profiler *p = *profiler;
    if (is_mine(p)) {
        weir_nvtx_steps_end(&p->shown);
        weir_profiler_stop(p);
        pthread_mutex_lock(&p->lock);
        p->closing = true;
        pthread_mutex_unlock(&p->lock);
        weir_eventcount_notify(&wake);
        pthread_join(p->collector, NULL);
        pthread_join(p->writer, NULL);
        weir_tracks_on_half(NULL);
        weir_tracks_collect(false);
        atomic_store(&owner, 0);
        pthread_mutex_destroy(&p->lock);
        pthread_cond_destroy(&p->changed);
    }
    if (p)
        free_profiler(profiler);
}
