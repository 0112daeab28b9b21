/* Rules about the loop's process, cores, and jobs that do not wait for data. */
#include "analyze/causes/cores.h"
#include "analyze/jobs/job_verdict_priv.h"
#include "base/numbers.h"

#include <math.h>

static void say_gpu(const struct weir_job_case *c, struct weir_diagnosis_cause *finding)
{
    const struct weir_dataloader_outside *seen = &c->figures->outside;
    if (seen->known && seen->gpu_busy >= 0)
        weir_diagnosis_say(finding, "; the GPU is busy %.0f %%", weir_percent(seen->gpu_busy));
}

/* ---- the loop's own process ---- */

void weir_job_find_copies(const struct weir_job_case *c, enum weir_cause cause)
{
    double copies_s = c->figures->stages.h2d_s, share = c->train_s > 0 ? copies_s / c->train_s : 0;
    bool pinned = c->figures->settings.pin_memory > 0;
    if (share < WEIR_JOB_COPIES || pinned != (cause == WEIR_CAUSE_TRANSFER))
        return;
    if (pinned)
        weir_job_found(c, cause, share, weir_job_gain_saved(c, 0.75 * copies_s),
                       "copies take %.0f %% of the loop, from pinned memory", weir_percent(share));
    else
        weir_job_found(c, cause, share, weir_job_gain_saved(c, 0.6 * copies_s),
                       "copies take %.0f %% of the loop, and pin_memory=False", weir_percent(share));
}

/* A copy from memory that is not pinned takes the loop's time. */
void weir_job_find_pageable(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_outside *seen = &c->figures->outside;
    double on_core = weir_job_loop_use(c, WEIR_TASK_ON_CORE);
    if (seen->has_pin || seen->weir || seen->to_gpu_bytes_per_s < WEIR_OUTSIDE_COPIES ||
        seen->gpu_busy >= WEIR_OUTSIDE_GPU_IDLE || on_core < 0.5)
        return;
    weir_job_likely(c, cause, -1, 0,
                    "%.1f GB/s go to the GPU, which is busy %.0f %%, and there is no pin thread; the "
                    "training loop is on a core %.0f %% of the time, workers are idle %.0f %%",
                    seen->to_gpu_bytes_per_s / 1e9, weir_percent(seen->gpu_busy), weir_percent(on_core),
                    weir_percent(1 - c->busy));
}

/* Pinning takes the time of the loop's process. */
void weir_job_find_pin_thread(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_figures *f = c->figures;
    bool outside = f->outside.known;
    double busy = outside ? f->outside.pin.of[WEIR_TASK_ON_CORE] : f->loop_s > 0 ? f->stages.pin_s / f->loop_s : 0;
    if (busy < WEIR_JOB_PIN_BUSY || (outside && c->bound != WEIR_BOUND_UNKNOWN))
        return;
    weir_job_likely(c, cause, busy, outside ? 0 : weir_job_gain_saved(c, 0.75 * c->wait_s),
                    "the pin thread is busy %.0f %% of the time", weir_percent(busy));
}

/* With a GPU, backward() waits on a lock for autograd's thread, which has no name before torch 2.15, but not all the
 * time. A collective on the CPU waits on one for other ranks. */
static bool waits_for_gil(const struct weir_job_case *c, double lock)
{
    const struct weir_dataloader_figures *f = c->figures;
    const struct weir_dataloader_outside *seen = &f->outside;
    bool others =
        f->settings.cuda > 0 || f->settings.world_size > 1 || (seen->known && seen->gpu_busy >= WEIR_OUTSIDE_GPU_USED);
    if (!seen->known)
        return !others && lock >= WEIR_JOB_LOOP_HELD;
    return c->busy < WEIR_JOB_BUSY_WORKERS && lock >= (others ? WEIR_OUTSIDE_BOTH : WEIR_JOB_LOOP_HELD) &&
           seen->other_thread >= (others ? WEIR_OUTSIDE_BOTH : WEIR_OUTSIDE_THREAD);
}

void weir_job_find_gil(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_figures *f = c->figures;
    /* Other programs can take the core of a loop, too. */
    double due = c->train_s > 0 ? fmax(f->wait_due_s / c->train_s - c->loop_core_wait, 0) : 0;
    /* With a pin thread, the wait for a batch is a wait for its lock. */
    bool pins = !f->outside.known && f->settings.pin_memory > 0;
    double lock = weir_job_loop_use(c, WEIR_TASK_LOCK) - (pins ? c->verdict->found.wait : 0);
    bool held = waits_for_gil(c, lock);
    double share = fmin(due + (held ? lock : 0), 1);
    if (c->workers <= 0 || (due < WEIR_JOB_LOOP_HELD && !held))
        return;
    if (f->outside.known)
        weir_job_likely(c, cause, lock, weir_job_gain_saved(c, lock * c->train_s),
                        "another thread of the main process is on a core %.0f %% of the time, and the "
                        "training loop waits for a lock %.0f %%",
                        weir_percent(f->outside.other_thread), weir_percent(lock));
    else
        weir_job_found(c, cause, share, weir_job_gain_saved(c, share * c->train_s),
                       "the loop spent %.0f %% of its time waiting for batches that were ready, and %.0f %% in locks",
                       weir_percent(due), weir_percent(held ? lock : 0));
}

void weir_job_find_start_up(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_figures *f = c->figures;
    /* Of the run's first epoch, the first batch is not counted, and its workers are created anyway. */
    double first_s = f->first_wait_s - f->run_first_s, all_s = first_s + f->startup_s;
    double share = c->train_s > 0 ? all_s / c->train_s : 0;
    if (c->workers <= 0 || f->first_waits < 2 || share < WEIR_JOB_START_UP || f->settings.persistent_workers > 0)
        return;
    double saved_s = first_s + f->startup_s * (f->first_waits - 1) / f->first_waits;
    weir_job_found(c, cause, share, weir_job_gain_saved(c, saved_s),
                   "%.2f s per epoch for creating %.0f worker%s and the first batch, %.0f %% of the time",
                   all_s / f->first_waits, c->workers, c->workers == 1 ? "" : "s", weir_percent(share));
}

void weir_job_find_young(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_outside *seen = &c->figures->outside;
    if (seen->weir || seen->young < WEIR_OUTSIDE_YOUNG || seen->workers_begun < 2) /* Weir's workers remain */
        return;
    struct weir_diagnosis_cause *finding = weir_job_likely(
        c, cause, seen->young, 0,
        "%d workers were started in %.0f s; %.0f %% of the time they were missing or younger than %.0f s",
        seen->workers_begun, c->figures->loop_s, weir_percent(seen->young), WEIR_OUTSIDE_YOUNG_S);
    weir_job_say_wait(c, finding);
}

/* ---- who takes the cores ---- */

/* Returns whether it is the loop that waits for cores, not the workers: longer than for data and locks, or it loads
 * itself. */
static bool loop_wants_cores(const struct weir_job_case *c)
{
    double wait = c->verdict->found.wait;
    bool known = wait >= 0 || c->bound == WEIR_BOUND_NO;
    return c->workers <= 0 || (known && c->loop_core_wait > fmax(wait, weir_job_loop_use(c, WEIR_TASK_LOCK)));
}

static struct weir_core_figures core_figures(const struct weir_job_case *c)
{
    const struct weir_report_machine *machine = &c->figures->machine;
    bool known = machine->throttling && machine->periods > 0, loop = loop_wants_cores(c);
    double core_wait = loop ? c->loop_core_wait : weir_job_use(c, WEIR_TASK_CORE_WAIT);
    return (struct weir_core_figures){
        .core_wait = fmax(core_wait, c->loop_core_wait),
        .ready = core_wait + (loop ? weir_job_loop_use(c, WEIR_TASK_ON_CORE) : weir_job_use(c, WEIR_TASK_ON_CORE)),
        .periods = known ? (double)machine->throttled / (double)machine->periods : 0,
        .quota_cores = machine->quota_cores,
        .cores = machine->cores,
        .usable = machine->cores,
        .others_cores = fmax(machine->others_cores, 0),
        .steal_cores = machine->steal_cores,
    };
}

/* The gain without waits for a core. */
static double gain_cores(const struct weir_job_case *c)
{
    double on_core = weir_job_use(c, WEIR_TASK_ON_CORE), wait = weir_job_use(c, WEIR_TASK_CORE_WAIT);
    if (loop_wants_cores(c))
        return weir_job_gain_saved(c, c->loop_core_wait * c->train_s);
    return weir_job_gain_times(c, on_core > 0 ? on_core / (on_core + wait) : 1, 1);
}

static bool waits_for_cores(const struct weir_core_figures *figures)
{
    return figures->core_wait >= weir_core_wait_least(figures);
}

void weir_job_find_quota(const struct weir_job_case *c, enum weir_cause cause)
{
    struct weir_core_figures figures = core_figures(c);
    bool stalls =
        waits_for_cores(&figures) || c->figures->machine.throttled_s > WEIR_VERDICT_WAIT_LEAST * c->figures->wall_s;
    if (stalls && weir_quota_is_used_up(&figures))
        weir_job_found(c, cause, figures.periods, gain_cores(c),
                       "the quota of %.3g cores was used up in %.0f %% of its periods", figures.quota_cores,
                       weir_percent(figures.periods));
}

/* Returns the CPU time of a worker's other threads over that of its loop. */
static double other_threads(const struct weir_job_case *c)
{
    return c->verdict->threads / fmax(weir_job_use(c, WEIR_TASK_ON_CORE), 0.01);
}

/* Returns whether the workers' other threads use the cores. */
static bool too_many_threads(const struct weir_job_case *c, const struct weir_core_figures *cores, double active)
{
    const struct weir_watch_settings *settings = &c->figures->settings;
    const struct weir_dataloader_outside *seen = &c->figures->outside;
    double all = c->figures->machine.cores, set = fmax(settings->cv2_threads, settings->torch_threads);
    double n = c->figures->n_threads;
    bool ready = seen->known && seen->worker_ready >= WEIR_OUTSIDE_THREADS && seen->ready_threads >= c->limit + 0.5;
    if (c->verdict->for_threads > weir_job_use(c, WEIR_TASK_CORE_WAIT))
        return false; /* they work in place of the worker, such as those of a video decoder */
    /* A setting is no activity: if others take the cores, it is their doing. */
    bool set_many = set > 1 && set * c->workers > all && !weir_others_take_cores(cores);
    return ready || set_many || active >= 0.25 || (n > 8 && n * c->workers > 4 * all && active >= 0.1);
}

void weir_job_find_threads(const struct weir_job_case *c, enum weir_cause cause)
{
    struct weir_core_figures figures = core_figures(c);
    const struct weir_dataloader_outside *seen = &c->figures->outside;
    double active = other_threads(c);
    if (loop_wants_cores(c) || !too_many_threads(c, &figures, active) || !(waits_for_cores(&figures) || active >= 0.5))
        return;
    struct weir_diagnosis_cause *finding = weir_job_found(
        c, cause, weir_job_use(c, WEIR_TASK_CORE_WAIT), gain_cores(c),
        "%.0f worker%s with %.0f threads each on %d cores; %.0f %% of the busy time was spent waiting for a core",
        c->workers, c->workers == 1 ? "" : "s", fmax(c->figures->n_threads, 1), c->figures->machine.cores,
        weir_percent(weir_job_use(c, WEIR_TASK_CORE_WAIT)));
    if (seen->known && seen->ready_threads >= 0)
        weir_diagnosis_say(finding, "; %.1f threads per worker run or wait for a core", seen->worker_ready);
    if (seen->known && seen->ready_threads < WEIR_OUTSIDE_THREADS * c->limit)
        finding->certainty = WEIR_CERTAINTY_LIKELY;
}

void weir_job_find_neighbours(const struct weir_job_case *c, enum weir_cause cause)
{
    struct weir_core_figures figures = core_figures(c);
    const struct weir_report_machine *machine = &c->figures->machine;
    const struct weir_dataloader_outside *seen = &c->figures->outside;
    double taken = figures.others_cores + fmax(machine->steal_cores, 0);
    if (!waits_for_cores(&figures) || !(weir_others_take_cores(&figures) || weir_host_takes_cores(&figures)))
        return;
    const char *host = machine->steal_cores > figures.others_cores ? ", with those that the host takes" : "";
    struct weir_diagnosis_cause *finding =
        loop_wants_cores(c)
            ? weir_job_found(c, cause, figures.core_wait, gain_cores(c),
                             "they use %.1f of %d cores%s; the loop waits %.0f %% of its time for a core", taken,
                             machine->cores, host, weir_percent(c->loop_core_wait))
            : weir_job_found(c, cause, figures.core_wait, gain_cores(c),
                             "they use %.1f of %d cores%s; the workers wait %.0f %% of their busy time for a core",
                             taken, machine->cores, host, weir_percent(weir_job_use(c, WEIR_TASK_CORE_WAIT)));
    if (seen->known && seen->other_jobs_cores >= 0.1)
        weir_diagnosis_say(finding, "; %.1f of the cores are those of other training jobs of this user",
                           seen->other_jobs_cores);
    /* More threads than cores would wait for each other in any case. */
    bool crowded = seen->known && (c->workers > machine->cores || seen->worker_ready >= WEIR_OUTSIDE_THREADS);
    if (seen->known && (crowded || taken < WEIR_SAMPLED_SURE * WEIR_VERDICT_OTHERS * machine->cores))
        finding->certainty = WEIR_CERTAINTY_LIKELY;
}

/* ---- no cause in loading ---- */

/* Returns whether the step waits, rather than computes: for launches, synchronisation or other ranks. */
static bool step_waits(const struct weir_job_case *c)
{
    double gpu = c->figures->outside.gpu_busy, asleep = 1 - weir_job_loop_use(c, WEIR_TASK_ON_CORE) - c->loop_core_wait;
    return gpu < 0 ? asleep >= 0.5 : gpu < WEIR_OUTSIDE_GPU_IDLE;
}

void weir_job_find_step(const struct weir_job_case *c, enum weir_cause cause)
{
    if (!step_waits(c) || c->workers <= 0)
        return;
    struct weir_diagnosis_cause *finding = weir_job_likely(
        c, cause, -1, 0,
        "workers are idle %.0f %% of the time, so batches are ready; the training loop is on a core %.0f %%, asleep "
        "%.0f %%",
        weir_percent(1 - c->busy), weir_percent(weir_job_loop_use(c, WEIR_TASK_ON_CORE)),
        weir_percent(1 - weir_job_loop_use(c, WEIR_TASK_ON_CORE) - c->loop_core_wait));
    say_gpu(c, finding);
}

void weir_job_find_consumer(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_figures *f = c->figures;
    double step_s = f->stages.step_s, wait = c->verdict->found.wait;
    struct weir_diagnosis_cause *finding;
    if (!f->outside.known) {
        weir_job_found(c, cause, 1 - wait, 0, "the step takes %.0f %% of the time, %.1f ms per batch",
                       weir_percent(c->train_s > 0 ? step_s / c->train_s : 0),
                       f->batches > 0 ? step_s / f->batches * 1e3 : 0);
        return;
    }
    finding = weir_job_found(
        c, cause, -1, 0,
        "workers are idle %.0f %% of the time; the training loop is on a core %.0f %%, and waits for batches at most "
        "%.0f %%",
        weir_percent(1 - c->busy), weir_percent(weir_job_loop_use(c, WEIR_TASK_ON_CORE)),
        weir_percent(weir_job_loop_use(c, WEIR_TASK_IDLE)));
    say_gpu(c, finding);
    /* The wait can be up to WEIR_SAMPLED_SURE times the threshold, or hidden by a lock. */
    bool idle =
        weir_job_loop_use(c, WEIR_TASK_IDLE) >= WEIR_VERDICT_WAIT_LEAST && f->outside.gpu_busy < WEIR_VERDICT_BUSY;
    if (idle || (c->on_lock && weir_job_loop_use(c, WEIR_TASK_LOCK) >= WEIR_VERDICT_WAIT_LEAST))
        finding->certainty = WEIR_CERTAINTY_LIKELY;
}

void weir_job_find_without_workers(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_outside *seen = &c->figures->outside;
    const char *workers = seen->weir ? "worker threads" : "DataLoader workers";
    double storage = weir_job_loop_use(c, WEIR_TASK_STORAGE);
    if (c->workers > 0 || (cause == WEIR_CAUSE_STORAGE && storage < WEIR_JOB_ASLEEP) ||
        (cause == WEIR_CAUSE_CONSUMER && seen->gpu_busy < WEIR_VERDICT_BUSY))
        return;
    struct weir_diagnosis_cause *finding =
        cause == WEIR_CAUSE_STORAGE ? weir_job_found(c, cause, storage, 0,
                                                     "the main process sleeps in storage %.0f %% of the time, and has "
                                                     "no %s",
                                                     weir_percent(storage), workers)
        : cause == WEIR_CAUSE_CONSUMER
            ? weir_job_found(c, cause, -1, 0, "the main process has no %s", workers)
            : weir_job_found(c, cause, -1, 0,
                             "the main process has no %s, so loading and the step share one thread, which is on a core "
                             "%.0f %% of the time",
                             workers, weir_percent(weir_job_loop_use(c, WEIR_TASK_ON_CORE)));
    if (cause != WEIR_CAUSE_CANNOT_TELL)
        weir_job_outside(c, finding, false);
    say_gpu(c, finding);
}

/* Another user's process: only times on a core and waiting for one are known. */
void weir_job_find_hidden(const struct weir_job_case *c, enum weir_cause cause)
{
    double on_core = weir_job_loop_use(c, WEIR_TASK_ON_CORE);
    double busy = weir_job_use(c, WEIR_TASK_ON_CORE) * c->busy;
    bool computes = on_core >= 1 - WEIR_SAMPLED_SURE * WEIR_VERDICT_WAIT_LEAST && c->workers > 0;
    if (!c->hidden || (cause == WEIR_CAUSE_CONSUMER && !computes) ||
        (cause == WEIR_CAUSE_BUSY_WORKERS && busy < WEIR_JOB_BUSY_WORKERS))
        return;
    struct weir_diagnosis_cause *finding =
        weir_job_found(c, cause, -1, 0, "%s training loop is on a core %.0f %% of the time, workers %.0f %%",
                       cause == WEIR_CAUSE_CANNOT_TELL ? "the kernel hides what sleeping threads of this process wait "
                                                         "for; run weir top as its user. The"
                                                       : "the",
                       weir_percent(on_core), weir_percent(busy));
    if (cause != WEIR_CAUSE_CANNOT_TELL)
        weir_job_outside(c, finding, false);
}

void weir_job_find_unsure(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_figures *f = c->figures;
    struct weir_diagnosis_cause *finding;
    if (f->settings.any_iterable > 0) {
        weir_job_found(c, cause, c->verdict->found.wait, 0,
                       "weir.watch sees only the waits of a loader that is not a DataLoader");
        return;
    }
    if (!f->outside.known) {
        weir_job_found(c, cause, c->busy, 0,
                       "the workers were busy %.0f %% of the time, %.1f batches were ready at a request",
                       weir_percent(c->busy), f->ready_mean);
        return;
    }
    if (c->bound == WEIR_BOUND_UNKNOWN)
        finding = weir_job_found(
            c, cause, c->busy, 0,
            "the training loop sleeps on a lock %.0f %% of the time, which can be a batch, the autograd thread or the "
            "GIL%s; workers are idle %.0f %%",
            weir_percent(weir_job_loop_use(c, WEIR_TASK_LOCK)),
            f->outside.has_pin ? ": the pin thread hides which" : "", weir_percent(1 - c->busy));
    else
        finding = weir_job_found(
            c, cause, c->busy, 0,
            "workers are idle %.0f %% of the time: uneven batches, a remote source or a step that waits for something "
            "else",
            weir_percent(1 - c->busy));
    if (c->bound != WEIR_BOUND_UNKNOWN)
        weir_job_say_wait(c, finding);
    say_gpu(c, finding);
}
