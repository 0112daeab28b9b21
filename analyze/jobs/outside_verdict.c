/* The rules of the verdict on a job that is seen from outside (docs/internals/verdict.md). */
#include "analyze/causes/cores.h"
#include "analyze/jobs/outside.h"
#include "base/numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define UNSURE WEIR_CERTAINTY_UNSURE
#define LIKELY WEIR_CERTAINTY_LIKELY
#define SURE   WEIR_CERTAINTY_SURE

typedef const struct weir_outside_figures figures_t;

/* Appends a cause whose text is formatted. */
#define add(verdict, cause, how_certain, ...)                                                                          \
    certain(weir_diagnosis_add(&(verdict)->found, cause, -1, 0, __VA_ARGS__), how_certain)

static struct weir_diagnosis_cause *certain(struct weir_diagnosis_cause *cause, enum weir_certainty certainty)
{
    cause->certainty = certainty;
    return cause;
}

/* What is sampled is certain from here on only. */
static bool is_sure(double figure, double threshold)
{
    return figure >= WEIR_SAMPLED_SURE * threshold;
}

/* ---- does the training loop wait for data? ---- */

enum bound { BOUND_NO, BOUND_YES, BOUND_UNKNOWN };

static const double WAIT = WEIR_SAMPLED_SURE * WEIR_VERDICT_WAIT_LEAST, IDLE_LEAST = 1 - WEIR_JOB_BUSY_WORKERS;

/* Whether the kernel hides what sleeping threads wait for, as it does for other users' processes. */
static bool is_hidden(figures_t *f)
{
    const double *uses = f->n_workers > 0 ? f->workers : f->main;
    double asleep = 1 - uses[WEIR_TASK_ON_CORE] - uses[WEIR_TASK_CORE_WAIT];
    return f->main[WEIR_TASK_OTHER] + uses[WEIR_TASK_OTHER] > WAIT && uses[WEIR_TASK_OTHER] > 0.9 * asleep;
}

/* Whether the loop waits for batches on a lock, as it does for the autograd thread and the GIL: with a pin thread, and
 * for Weir's loader. */
static bool waits_on_lock(figures_t *f)
{
    return f->has_pin || (f->weir && f->torch);
}

/* Otherwise the loop waits for batches in poll(). If it waits on a lock, the workers and the GPU have to show for what.
 */
static enum bound data_bound(figures_t *f)
{
    double wait = f->main[WEIR_TASK_IDLE] + (waits_on_lock(f) ? f->main[WEIR_TASK_LOCK] : 0);
    if (f->n_workers == 0 || is_hidden(f))
        return BOUND_UNKNOWN;
    if (wait < WAIT)
        return BOUND_NO;
    if (!waits_on_lock(f))
        return BOUND_YES;
    if (f->gpu_busy >= WEIR_VERDICT_BUSY)
        return BOUND_NO;
    if (f->workers[WEIR_TASK_IDLE] < IDLE_LEAST)
        return BOUND_YES;
    bool one_is_slow = f->n_workers > 1 && f->busiest >= WEIR_OUTSIDE_SLOW_BUSY;
    return f->workers[WEIR_TASK_IDLE] >= WEIR_OUTSIDE_IDLE && !one_is_slow && f->gpu_busy >= WEIR_OUTSIDE_GPU_IDLE
               ? BOUND_NO
               : BOUND_UNKNOWN;
}

/* Returns the most that a rule about waits can be: what is inferred from waits on a lock is never sure. */
static enum weir_certainty at_most(figures_t *f, enum weir_certainty certainty)
{
    return waits_on_lock(f) && certainty == SURE ? LIKELY : certainty;
}

/* Describes the loop's wait for data, for the evidence of a data-bound job. */
struct wait_text {
    char text[96];
};
static struct wait_text wait_text(figures_t *f)
{
    struct wait_text wait;
    if (f->has_pin)
        snprintf(wait.text, sizeof wait.text, "the pin thread hides the training loop's wait");
    else if (waits_on_lock(f))
        snprintf(wait.text, sizeof wait.text, "the training loop waits on a lock %.0f %% of the time",
                 weir_percent(f->main[WEIR_TASK_LOCK]));
    else
        snprintf(wait.text, sizeof wait.text, "the training loop waits for batches %.0f %% of the time",
                 weir_percent(f->main[WEIR_TASK_IDLE]));
    return wait;
}

/* The step rate without any wait for data, over the current one. */
static double gain_without_wait(figures_t *f)
{
    double wait = f->main[WEIR_TASK_IDLE];
    return waits_on_lock(f) || wait > 0.99 ? 0 : 1 / (1 - wait);
}

/* ---- who takes the cores ---- */

/* Cores of the job's affinity and quota. */
static double usable(figures_t *f)
{
    return f->quota_cores > 0 && f->quota_cores < f->cores ? f->quota_cores : f->cores;
}

static struct weir_core_figures core_figures(figures_t *f, enum bound bound)
{
    const double *uses = bound == BOUND_NO ? f->main : f->workers;
    return (struct weir_core_figures){
        .core_wait = fmax(f->main[WEIR_TASK_CORE_WAIT], uses[WEIR_TASK_CORE_WAIT]),
        .ready = uses[WEIR_TASK_ON_CORE] + uses[WEIR_TASK_CORE_WAIT],
        .periods = f->throttled,
        .quota_cores = f->quota_cores,
        .cores = f->cores,
        .usable = f->cores,
        .others_cores = f->others_cores,
        .steal_cores = f->steal_cores,
    };
}

/* Threads of the job that run or wait for a core; -1 if they are unknown. */
static double ready(figures_t *f)
{
    return f->ready_threads < 0 ? -1 : f->main_ready_threads + f->ready_threads * f->n_workers;
}

static void judge_threads(struct weir_outside_verdict *verdict, figures_t *f)
{
    double threads = ready(f);
    /* A worker that waits for its own threads, such as those of a video decoder, lets them work in its place. */
    bool waits_for_them = f->workers[WEIR_TASK_LOCK] > f->workers[WEIR_TASK_CORE_WAIT];
    if (f->n_workers == 0 || waits_for_them || f->ready_threads < WEIR_OUTSIDE_THREADS || threads < usable(f) + 0.5)
        return;
    add(verdict, WEIR_CAUSE_TOO_MANY_THREADS, threads >= 1.5 * usable(f) ? SURE : LIKELY,
        "%.1f threads per worker run or wait for a core, %.0f in all, on %.3g core%s; workers wait for a core %.0f %% "
        "of "
        "the time",
        f->ready_threads, threads, usable(f), usable(f) == 1 ? "" : "s", weir_percent(f->workers[WEIR_TASK_CORE_WAIT]));
}

static void judge_quota(struct weir_outside_verdict *verdict, const struct weir_core_figures *cores)
{
    if (weir_quota_is_used_up(cores))
        add(verdict, WEIR_CAUSE_QUOTA, SURE,
            "the quota of %.3g cores was used up in %.0f %% of its periods; the job waits for a core %.0f %% of the "
            "time",
            cores->quota_cores, weir_percent(cores->periods), weir_percent(cores->core_wait));
}

static void judge_neighbours(struct weir_outside_verdict *verdict, figures_t *f, const struct weir_core_figures *cores)
{
    double taken = f->others_cores + f->steal_cores;
    bool crowded = f->n_workers > f->cores || f->ready_threads >= WEIR_OUTSIDE_THREADS; /* by this job alone */
    if (!weir_others_take_cores(cores) && !weir_host_takes_cores(cores))
        return;
    char which[96] = "";
    if (f->other_jobs_cores >= 0.1)
        snprintf(which, sizeof which, " (%.1f of them other training jobs of this user)", f->other_jobs_cores);
    else if (f->steal_cores > f->others_cores)
        snprintf(which, sizeof which, ", with those that the host takes");
    add(verdict, WEIR_CAUSE_NEIGHBOURS, is_sure(taken, WEIR_VERDICT_OTHERS * f->cores) && !crowded ? SURE : LIKELY,
        "other processes use %.1f of %d cores%s; the training loop waits for a core %.0f %% of the time, workers %.0f "
        "%%",
        taken, f->cores, which, weir_percent(f->main[WEIR_TASK_CORE_WAIT]),
        weir_percent(f->workers[WEIR_TASK_CORE_WAIT]));
}

/* More workers than cores, of one thread each. */
static void judge_crowd(struct weir_outside_verdict *verdict, figures_t *f, enum bound bound)
{
    if (bound != BOUND_YES || f->n_workers <= f->cores || f->workers[WEIR_TASK_IDLE] >= IDLE_LEAST)
        return;
    struct weir_diagnosis_cause *cause =
        add(verdict, WEIR_CAUSE_BUSY_WORKERS, at_most(f, SURE),
            "%d workers share %d core%s, and wait for one %.0f %% of the time; %s", f->n_workers, f->cores,
            f->cores == 1 ? "" : "s", weir_percent(f->workers[WEIR_TASK_CORE_WAIT]), wait_text(f).text);
    cause->advice = WEIR_ADVICE_FEWER_WORKERS;
    cause->workers = f->cores;
}

static void judge_cores(struct weir_outside_verdict *verdict, figures_t *f, enum bound bound)
{
    struct weir_core_figures cores = core_figures(f, bound);
    if (cores.core_wait < weir_core_wait_least(&cores))
        return;
    judge_quota(verdict, &cores);
    judge_threads(verdict, f);
    if (!weir_quota_is_used_up(&cores))
        judge_neighbours(verdict, f, &cores);
    if (verdict->found.n_causes == 0)
        judge_crowd(verdict, f, bound);
}

/* ---- a job that does not wait for data ---- */

/* With a GPU, backward() waits on a lock for autograd's thread, which has no name before torch 2.15: but not all the
 * time. */
static bool judge_gil(struct weir_outside_verdict *verdict, figures_t *f)
{
    bool uses_gpu = f->gpu_busy >= WEIR_OUTSIDE_GPU_USED;
    if (f->other_thread < (uses_gpu ? WEIR_OUTSIDE_BOTH : WEIR_OUTSIDE_THREAD) ||
        f->main[WEIR_TASK_LOCK] < (uses_gpu ? WEIR_OUTSIDE_BOTH : WEIR_JOB_LOOP_LOCK) ||
        (f->n_workers > 0 && f->workers[WEIR_TASK_IDLE] < IDLE_LEAST))
        return false;
    add(verdict, WEIR_CAUSE_GIL, LIKELY,
        "another thread of the main process is on a core %.0f %% of the time, and the training loop waits for a lock "
        "%.0f %%",
        weir_percent(f->other_thread), weir_percent(f->main[WEIR_TASK_LOCK]));
    return true;
}

static void add_gpu(struct weir_diagnosis_cause *cause, figures_t *f)
{
    if (f->gpu_busy >= 0)
        weir_diagnosis_say(cause, "; the GPU is busy %.0f %%", weir_percent(f->gpu_busy));
}

/* A copy from memory that is not pinned takes the loop's time. */
static bool judge_copies(struct weir_outside_verdict *verdict, figures_t *f)
{
    if (f->has_pin || f->weir || f->n_workers == 0 || f->to_gpu_bytes_per_s < WEIR_OUTSIDE_COPIES ||
        f->gpu_busy >= WEIR_OUTSIDE_GPU_IDLE || f->main[WEIR_TASK_ON_CORE] < 0.5)
        return false;
    add(verdict, WEIR_CAUSE_PIN_OFF, LIKELY,
        "%.1f GB/s go to the GPU, which is busy %.0f %%, and there is no pin thread; the training loop is on a core "
        "%.0f %% of the time, workers are idle %.0f %%",
        f->to_gpu_bytes_per_s / 1e9, weir_percent(f->gpu_busy), weir_percent(f->main[WEIR_TASK_ON_CORE]),
        weir_percent(f->workers[WEIR_TASK_IDLE]));
    return true;
}

static void judge_step(struct weir_outside_verdict *verdict, figures_t *f)
{
    if (judge_copies(verdict, f))
        return;
    double asleep =
        f->main[WEIR_TASK_SLEEP] + f->main[WEIR_TASK_LOCK] + f->main[WEIR_TASK_IDLE] + f->main[WEIR_TASK_OTHER];
    bool gpu_waits = f->gpu_busy >= 0 && f->gpu_busy < WEIR_OUTSIDE_GPU_IDLE;
    bool gpu_works = f->gpu_busy >= WEIR_OUTSIDE_GPU_IDLE;
    bool step_waits = !gpu_works && asleep >= 0.5;
    bool may_wait = (f->main[WEIR_TASK_IDLE] >= WEIR_VERDICT_WAIT_LEAST && f->gpu_busy < WEIR_VERDICT_BUSY) ||
                    (waits_on_lock(f) && f->main[WEIR_TASK_LOCK] >= WAIT);
    enum weir_certainty certainty = may_wait ? LIKELY : SURE;
    struct weir_diagnosis_cause *cause;
    if (step_waits || (gpu_waits && f->n_workers > 0))
        cause = add(
            verdict, WEIR_CAUSE_STEP, LIKELY,
            "workers are idle %.0f %% of the time, so batches are ready; the training loop is on a core %.0f %%, "
            "asleep %.0f %%",
            weir_percent(f->workers[WEIR_TASK_IDLE]), weir_percent(f->main[WEIR_TASK_ON_CORE]), weir_percent(asleep));
    else
        cause =
            add(verdict, WEIR_CAUSE_CONSUMER, certainty,
                "workers are idle %.0f %% of the time; the training loop is on a core %.0f %%, and waits for batches "
                "at most %.0f %%",
                weir_percent(f->workers[WEIR_TASK_IDLE]), weir_percent(f->main[WEIR_TASK_ON_CORE]),
                weir_percent(f->main[WEIR_TASK_IDLE]));
    add_gpu(cause, f);
}

/* ---- a job that waits for data ---- */

static bool judge_start_up(struct weir_outside_verdict *verdict, figures_t *f)
{
    if (f->weir || f->young < WEIR_OUTSIDE_YOUNG || f->workers_begun < 2) /* Weir's workers remain */
        return false;
    add(verdict, WEIR_CAUSE_START_UP, at_most(f, LIKELY),
        "%d workers were started in %.0f s; %.0f %% of the time they were missing or younger than %.0f s; %s",
        f->workers_begun, f->seconds, weir_percent(f->young), WEIR_OUTSIDE_YOUNG_S, wait_text(f).text);
    return true;
}

static bool judge_slow_worker(struct weir_outside_verdict *verdict, figures_t *f)
{
    if (f->n_workers < 2 || f->busiest < WEIR_OUTSIDE_SLOW_BUSY || f->rest > WEIR_OUTSIDE_SLOW_REST)
        return false;
    add(verdict, WEIR_CAUSE_SLOW_WORKER, LIKELY, "process %d works %.0f %% of the time, the others %.0f %%; %s",
        (int)f->busiest_pid, weir_percent(f->busiest), weir_percent(f->rest), wait_text(f).text);
    return true;
}

static double at_work(figures_t *f)
{
    return 1 - f->workers[WEIR_TASK_IDLE];
}

/* Whether workers sleep at work most of the time, for other reasons than their own threads. */
static bool asleep_at_work(figures_t *f)
{
    double asleep = at_work(f) - f->workers[WEIR_TASK_ON_CORE] - f->workers[WEIR_TASK_CORE_WAIT];
    return asleep > 0.5 * at_work(f) && f->other_cores < WEIR_OUTSIDE_HELPED;
}

static double free_cores(figures_t *f)
{
    return usable(f) - f->job_cores - f->others_cores - f->steal_cores;
}

/* Suggests as many workers as the loop's wait requires and the idle cores allow. each: cores that a worker uses. */
static void suggest_workers(struct weir_diagnosis_cause *cause, figures_t *f, double each)
{
    double idle = fmax(free_cores(f), 0) + 0.25, wanted = f->n_workers * fmax(gain_without_wait(f), 1);
    double possible = f->n_workers + floor(idle / fmax(each, 0.05));
    if (wanted <= f->n_workers)
        wanted = possible;
    cause->advice = WEIR_ADVICE_MORE_WORKERS;
    cause->workers = floor(fmin(fmin(ceil(wanted), possible), 4.0 * f->n_workers));
    if (cause->workers <= f->n_workers)
        cause->workers = 0;
    else if (!waits_on_lock(f))
        cause->gain = fmin(cause->workers / f->n_workers, fmax(gain_without_wait(f), 1));
}

static void judge_saturated(struct weir_outside_verdict *verdict, figures_t *f)
{
    double on_core = f->workers[WEIR_TASK_ON_CORE], asleep = at_work(f) - on_core - f->workers[WEIR_TASK_CORE_WAIT];
    bool cores_idle = free_cores(f) >= WEIR_OUTSIDE_FREE;
    char threads[64] = "";
    if (f->other_cores >= WEIR_OUTSIDE_HELPED)
        snprintf(threads, sizeof threads, " (their other threads use %.1f cores each)", f->other_cores);
    bool more = (cores_idle && f->n_workers < f->cores) || asleep_at_work(f); /* sleepers need no core */
    struct weir_diagnosis_cause *cause = add(
        verdict, more ? WEIR_CAUSE_TOO_FEW_WORKERS : WEIR_CAUSE_BUSY_WORKERS,
        at_most(f, asleep_at_work(f) ? LIKELY : SURE), /* what they wait for may not allow more */
        "%d worker%s on a core %.0f %% of the time%s, asleep at work %.0f %%, idle %.0f %%; %s; %.1f of %.3g core%s "
        "idle",
        f->n_workers, f->n_workers == 1 ? " is" : "s are", weir_percent(on_core), threads, weir_percent(asleep),
        weir_percent(f->workers[WEIR_TASK_IDLE]), wait_text(f).text, fmax(free_cores(f), 0), usable(f),
        usable(f) == 1 ? " is" : "s are");
    if (more)
        suggest_workers(cause, f, on_core + f->other_cores);
    else
        cause->advice = WEIR_ADVICE_WATCH;
}

/* Waits for a core are nobody's work, and would hide what the rest of the time is spent on. */
static bool judge_blocked(struct weir_outside_verdict *verdict, figures_t *f)
{
    double work = at_work(f) - f->workers[WEIR_TASK_CORE_WAIT], storage = f->workers[WEIR_TASK_STORAGE],
           lock = f->workers[WEIR_TASK_LOCK];
    if (work < WAIT)
        return false;
    int before = verdict->found.n_causes;
    if (storage >= WEIR_JOB_ASLEEP * work)
        add(verdict, WEIR_CAUSE_STORAGE, at_most(f, is_sure(storage, WEIR_JOB_ASLEEP * work) ? SURE : LIKELY),
            "workers sleep in storage %.0f %% of the time, and read %.1f MB/s from it; %s", weir_percent(storage),
            f->storage_bytes_per_s / 1e6, wait_text(f).text);
    if (lock >= WEIR_JOB_ASLEEP * work && f->other_cores < WEIR_OUTSIDE_HELPED)
        add(verdict, WEIR_CAUSE_LOCK, at_most(f, is_sure(lock, WEIR_JOB_ASLEEP * work) ? SURE : LIKELY),
            "workers wait for a lock %.0f %% of the time; %s", weir_percent(lock), wait_text(f).text);
    return verdict->found.n_causes > before;
}

static void judge_data(struct weir_outside_verdict *verdict, figures_t *f)
{
    if (judge_start_up(verdict, f) || judge_slow_worker(verdict, f) || judge_blocked(verdict, f) ||
        verdict->found.n_causes > 0)
        return;
    if (f->workers[WEIR_TASK_IDLE] < IDLE_LEAST) {
        judge_saturated(verdict, f);
        return;
    }
    add(verdict, WEIR_CAUSE_CANNOT_TELL, UNSURE,
        "%s, but workers are idle %.0f %%: uneven batches, a remote source or a step that waits for something else",
        wait_text(f).text, weir_percent(f->workers[WEIR_TASK_IDLE]));
}

/* ---- unknown ---- */

static void judge_without_workers(struct weir_outside_verdict *verdict, figures_t *f)
{
    const char *workers = f->weir ? "worker threads" : "DataLoader workers";
    struct weir_diagnosis_cause *cause;
    if (f->main[WEIR_TASK_STORAGE] >= WEIR_JOB_ASLEEP)
        cause = add(verdict, WEIR_CAUSE_STORAGE, LIKELY,
                    "the main process sleeps in storage %.0f %% of the time, and has no %s",
                    weir_percent(f->main[WEIR_TASK_STORAGE]), workers);
    else if (f->gpu_busy >= WEIR_VERDICT_BUSY)
        cause = add(verdict, WEIR_CAUSE_CONSUMER, LIKELY, "the main process has no %s", workers);
    else
        cause =
            add(verdict, WEIR_CAUSE_CANNOT_TELL, UNSURE,
                "the main process has no %s, so loading and the step share one thread, which is on a core %.0f %% of "
                "the time",
                workers, weir_percent(f->main[WEIR_TASK_ON_CORE]));
    add_gpu(cause, f);
}

static void judge_hidden(struct weir_outside_verdict *verdict, figures_t *f)
{
    double on_core = f->main[WEIR_TASK_ON_CORE], busy = f->workers[WEIR_TASK_ON_CORE];
    if (on_core >= 1 - WAIT && f->n_workers > 0)
        add(verdict, WEIR_CAUSE_CONSUMER, LIKELY, "the training loop is on a core %.0f %% of the time, workers %.0f %%",
            weir_percent(on_core), weir_percent(busy));
    else if (busy >= WEIR_JOB_BUSY_WORKERS)
        add(verdict, WEIR_CAUSE_BUSY_WORKERS, LIKELY,
            "workers are on a core %.0f %% of the time, the training loop %.0f %%", weir_percent(busy),
            weir_percent(on_core));
    else
        add(verdict, WEIR_CAUSE_CANNOT_TELL, UNSURE,
            "the kernel hides what sleeping threads of this process wait for; run weir top as its user. The training "
            "loop "
            "is on a core %.0f %% of the time, workers %.0f %%",
            weir_percent(on_core), weir_percent(busy));
}

static void judge_unknown(struct weir_outside_verdict *verdict, figures_t *f)
{
    if (f->n_workers == 0) {
        judge_without_workers(verdict, f);
        return;
    }
    if (judge_start_up(verdict, f))
        return;
    if (f->pin[WEIR_TASK_ON_CORE] >= WEIR_OUTSIDE_SLOW_BUSY) {
        add(verdict, WEIR_CAUSE_TRANSFER, LIKELY, "the pin thread is on a core %.0f %% of the time",
            weir_percent(f->pin[WEIR_TASK_ON_CORE]));
        return;
    }
    struct weir_diagnosis_cause *cause =
        add(verdict, WEIR_CAUSE_CANNOT_TELL, UNSURE,
            "the training loop sleeps on a lock %.0f %% of the time, which can be a batch, the autograd thread or the "
            "GIL%s; workers are idle %.0f %%",
            weir_percent(f->main[WEIR_TASK_LOCK]), f->has_pin ? ": the pin thread hides which" : "",
            weir_percent(f->workers[WEIR_TASK_IDLE]));
    add_gpu(cause, f);
}

/* ---- the verdict ---- */

static void name_causes(struct weir_outside_verdict *verdict, figures_t *f)
{
    enum bound bound = data_bound(f);
    /* More cores do not help workers that sleep. */
    bool sleepers = bound == BOUND_YES && asleep_at_work(f) && f->main[WEIR_TASK_CORE_WAIT] < f->main[WEIR_TASK_IDLE];
    if (sleepers)
        judge_data(verdict, f);
    judge_cores(verdict, f, bound);
    if (sleepers)
        return;
    if (is_hidden(f)) {
        if (verdict->found.n_causes == 0)
            judge_hidden(verdict, f);
        return;
    }
    if (verdict->found.n_causes == 0 && judge_gil(verdict, f))
        return;
    if (bound == BOUND_YES)
        judge_data(verdict, f);
    else if (verdict->found.n_causes == 0 && bound == BOUND_NO)
        judge_step(verdict, f);
    else if (verdict->found.n_causes == 0)
        judge_unknown(verdict, f);
}

/* Whether the advice, which is in PyTorch's words, also applies to Weir's loader. */
static bool applies_to_weir(enum weir_advice_kind advice)
{
    return advice == WEIR_ADVICE_NONE || advice == WEIR_ADVICE_MORE_WORKERS || advice == WEIR_ADVICE_FEWER_WORKERS ||
           advice == WEIR_ADVICE_FASTER_STORAGE || advice == WEIR_ADVICE_QUOTA || advice == WEIR_ADVICE_FREE_CORES;
}

void weir_outside_judge(struct weir_outside_verdict *verdict, const struct weir_outside_figures *f)
{
    *verdict = (struct weir_outside_verdict){
        .ready = f->seconds >= WEIR_OUTSIDE_LEAST_S,
        .found = {.subject = WEIR_SUBJECT_JOB, .sampled = true, .wait = -1},
    };
    struct weir_diagnosis *found = &verdict->found;
    if (verdict->ready)
        name_causes(verdict, f);
    found->n_causes = found->n_causes < WEIR_OUTSIDE_CAUSES ? found->n_causes : WEIR_OUTSIDE_CAUSES;
    for (int i = 0; i < found->n_causes; i++) {
        const struct weir_diagnosis_cause *cause = &found->causes[i];
        enum weir_advice_kind kind =
            f->weir && !applies_to_weir(cause->advice) ? WEIR_ADVICE_OWN_REPORT : cause->advice;
        struct weir_advice *advice = weir_diagnosis_advise(found, kind, cause->gain);
        weir_advice_set(advice, "num_workers", f->n_workers, cause->workers);
        if (advice)
            advice->at_most = true;
    }
}

void weir_outside_json(struct weir_json *json, const struct weir_outside_verdict *verdict)
{
    const struct weir_diagnosis *found = &verdict->found;
    weir_json_object(json, "verdict");
    weir_json_bool(json, "ready", verdict->ready);
    weir_json_text(json, "certainty", found->n_causes ? weir_certainty_name(found->causes[0].certainty) : NULL);
    weir_diagnosis_json(json, found);
    weir_json_end(json, '}');
}
