/* The table of rules, and the order of what they find. */
#include "analyze/jobs/job_verdict_priv.h"

#include <math.h>

/* ---- the table ---- */

enum {
    NOT_BOUND = 1 << WEIR_BOUND_NO,
    BOUND = 1 << WEIR_BOUND_PARTLY | 1 << WEIR_BOUND_STRONGLY,
    UNCLEAR = 1 << WEIR_BOUND_UNKNOWN,
    ANY = NOT_BOUND | BOUND | UNCLEAR,
};
enum {
    INSIDE = 1,  /* timed calls: stages, batches, waits by reason */
    OUTSIDE = 2, /* samples of a process */
    WORKERS = 4, /* what worker processes do; from a loop without workers, that it does their work */
    BUSY = 8,    /* workers are always at work, or wait for a lock */
};
#define BIT_OF(cause) ((uint64_t)1 << (cause))
#define BIT(name)     BIT_OF(WEIR_CAUSE_##name)
#define ALL           UINT64_MAX
_Static_assert(WEIR_CAUSES <= 64, "a bit per cause");

/* A rule. In the order of the table, each is asked once. */
struct rule {
    enum weir_cause cause;
    unsigned in;          /* the rule applies to these: 1 << enum weir_data_bound */
    unsigned needs;       /* figures without which the rule is not asked */
    uint64_t excluded_by; /* bits of causes that make the rule unnecessary if they were found before */
    /* Adds a finding, with its share, gain, text and certainty, if the condition is met. */
    weir_job_rule_fn *find;
};

/* From outside, START_UP comes first: work of workers that begin is not loading. */
static const struct rule rules[] = {
    {WEIR_CAUSE_PIN_OFF, ANY, INSIDE, 0, weir_job_find_copies},
    {WEIR_CAUSE_TRANSFER, ANY, INSIDE, BIT(PIN_OFF), weir_job_find_copies},
    {WEIR_CAUSE_TRANSFER, BOUND | UNCLEAR, 0, BIT(PIN_OFF) | BIT(TRANSFER), weir_job_find_pin_thread},
    {WEIR_CAUSE_GIL, ANY, 0, BIT(TRANSFER), weir_job_find_gil},
    {WEIR_CAUSE_QUOTA, ANY, 0, 0, weir_job_find_quota},
    {WEIR_CAUSE_TOO_MANY_THREADS, BOUND | UNCLEAR, WORKERS, BIT(QUOTA), weir_job_find_threads},
    {WEIR_CAUSE_NEIGHBOURS, ANY, 0, BIT(QUOTA) | BIT(TOO_MANY_THREADS), weir_job_find_neighbours},
    {WEIR_CAUSE_START_UP, BOUND | UNCLEAR, OUTSIDE, 0, weir_job_find_young},
    {WEIR_CAUSE_LOCK, BOUND, WORKERS, BIT(START_UP), weir_job_find_blocked},
    {WEIR_CAUSE_STORAGE, BOUND, WORKERS, BIT(START_UP), weir_job_find_blocked},
    {WEIR_CAUSE_IMBALANCE, BOUND, INSIDE | WORKERS, 0, weir_job_find_own_shares},
    {WEIR_CAUSE_SLOW_WORKER, BOUND, INSIDE | WORKERS, BIT(IMBALANCE), weir_job_find_slow_worker},
    {WEIR_CAUSE_SLOW_WORKER, BOUND, OUTSIDE | WORKERS, BIT(START_UP), weir_job_find_busiest_worker},
    {WEIR_CAUSE_SLOW_FILE, BOUND, INSIDE | WORKERS, 0, weir_job_find_slow_item_file},
    {WEIR_CAUSE_IMBALANCE, BOUND, INSIDE | WORKERS, BIT(IMBALANCE) | BIT(SLOW_WORKER) | BIT(SLOW_FILE),
     weir_job_find_uneven},
    {WEIR_CAUSE_TOO_FEW_WORKERS, BOUND, WORKERS | BUSY, BIT(LOCK) | BIT(START_UP), weir_job_find_too_few},
    {WEIR_CAUSE_DECODE, BOUND, INSIDE | WORKERS | BUSY, 0, weir_job_find_part},
    {WEIR_CAUSE_TRANSFORM, BOUND, INSIDE | WORKERS | BUSY, 0, weir_job_find_part},
    {WEIR_CAUSE_COLLATE, BOUND, INSIDE | WORKERS | BUSY, 0, weir_job_find_part},
    {WEIR_CAUSE_READ_CPU, BOUND, INSIDE | WORKERS | BUSY, BIT(STORAGE) | BIT(LOCK), weir_job_find_part},
    {WEIR_CAUSE_STORAGE, BOUND, INSIDE | WORKERS | BUSY, BIT(STORAGE) | BIT(LOCK), weir_job_find_part},
    {WEIR_CAUSE_OWN_CODE, BOUND, INSIDE | WORKERS | BUSY, 0, weir_job_find_part},
    {WEIR_CAUSE_START_UP, BOUND, INSIDE, 0, weir_job_find_start_up},
    {WEIR_CAUSE_BUSY_WORKERS, BOUND, WORKERS | BUSY, ALL, weir_job_find_busy},
    {WEIR_CAUSE_PIN_OFF, NOT_BOUND | 1 << WEIR_BOUND_PARTLY, OUTSIDE | WORKERS, ALL, weir_job_find_pageable},
    {WEIR_CAUSE_STEP, NOT_BOUND, OUTSIDE, ALL, weir_job_find_step},
    {WEIR_CAUSE_CONSUMER, NOT_BOUND, 0, ALL, weir_job_find_consumer},
    {WEIR_CAUSE_CONSUMER, UNCLEAR, OUTSIDE, ALL, weir_job_find_hidden},
    {WEIR_CAUSE_BUSY_WORKERS, UNCLEAR, OUTSIDE, ALL, weir_job_find_hidden},
    {WEIR_CAUSE_CANNOT_TELL, UNCLEAR, OUTSIDE, ALL, weir_job_find_hidden},
    {WEIR_CAUSE_STORAGE, UNCLEAR, OUTSIDE, ALL, weir_job_find_without_workers},
    {WEIR_CAUSE_CONSUMER, UNCLEAR, OUTSIDE, ALL, weir_job_find_without_workers},
    {WEIR_CAUSE_CANNOT_TELL, UNCLEAR, OUTSIDE, ALL, weir_job_find_without_workers},
};

static unsigned known_figures(const struct weir_job_case *c, uint64_t found)
{
    bool outside = c->figures->outside.known;
    bool workers = c->figures->settings.any_iterable <= 0 && !c->hidden && (c->workers > 0 || !outside);
    bool busy = c->busy >= WEIR_JOB_BUSY_WORKERS || found & BIT(LOCK) || c->workers <= 0;
    return (outside ? OUTSIDE : INSIDE) | (workers ? WORKERS : 0) | (busy ? BUSY : 0);
}

/* Training hardly waits, and no cause is worth much: the step itself is the limit. */
static bool is_hardly_bound(const struct weir_job_case *c)
{
    const struct weir_diagnosis *found = &c->verdict->found;
    double most = 0;
    for (int i = 0; i < found->n_causes; i++)
        if (found->causes[i].cause != WEIR_CAUSE_STEP)
            most = fmax(most, found->causes[i].gain > 0 ? found->causes[i].gain : c->verdict->most);
    return c->bound == WEIR_BOUND_PARTLY && most < WEIR_VERDICT_WORTH;
}

static void apply_rules(const struct weir_job_case *c)
{
    const struct weir_diagnosis *findings = &c->verdict->found;
    uint64_t found = 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        bool applies = rule->in & 1u << c->bound && (known_figures(c, found) & rule->needs) == rule->needs;
        if (applies && !(found & rule->excluded_by))
            rule->find(c, rule->cause);
        if (findings->n_causes > 0 && weir_diagnosis_has(findings, rule->cause))
            found |= BIT_OF(rule->cause);
    }
    if (is_hardly_bound(c) && c->figures->outside.known)
        weir_job_find_step(c, WEIR_CAUSE_STEP);
    if (is_hardly_bound(c) && !weir_diagnosis_has(findings, WEIR_CAUSE_STEP))
        weir_job_find_consumer(c, WEIR_CAUSE_CONSUMER);
    if (findings->n_causes == 0)
        weir_job_find_unsure(c, WEIR_CAUSE_CANNOT_TELL);
}

/* ---- order ---- */

/* What makes stages slow precedes them, and a number of workers below that of the cores precedes what they do. */
static int class_of(const struct weir_job_case *c, const struct weir_diagnosis_cause *cause)
{
    switch (cause->cause) {
    case WEIR_CAUSE_CONSUMER:
    case WEIR_CAUSE_STEP:
        return -1;
    case WEIR_CAUSE_QUOTA:
    case WEIR_CAUSE_NEIGHBOURS:
    case WEIR_CAUSE_TOO_MANY_THREADS:
    case WEIR_CAUSE_SLOW_WORKER:
    case WEIR_CAUSE_SLOW_FILE:
    case WEIR_CAUSE_LOCK:
    case WEIR_CAUSE_STORAGE:
        return cause->gain >= WEIR_VERDICT_WORTH || cause->gain <= 0 ? 0 : 2;
    case WEIR_CAUSE_TOO_FEW_WORKERS:
        return c->workers < c->cores - 0.5 || weir_job_sleeps(c) ? 1 : 3; /* sleepers need no cores */
    default:
        return 2;
    }
}

static double rank(const void *user, const struct weir_diagnosis_cause *cause)
{
    static const double MOST = 1e6; /* larger than any gain */
    return fmin(cause->gain, MOST) - 2 * MOST * class_of(user, cause);
}

/* ---- the verdict ---- */

static bool is_too_short(const struct weir_job_case *c)
{
    const struct weir_dataloader_figures *f = c->figures;
    double slots = fmax(c->workers * c->prefetch, 1);
    uint64_t batches = (uint64_t)fmin(fmax(f->batches, 0), 1e15);
    if (f->outside.known || weir_verdict_suffices(batches, c->train_s, (int)fmin(slots, 1e6)))
        return false;
    weir_job_found(c, WEIR_CAUSE_CANNOT_TELL, 0, 0, "%.0f batch%s in %.1f s %s too few for a verdict", f->batches,
                   f->batches == 1 ? "" : "es", c->train_s, f->batches == 1 ? "is" : "are");
    return true;
}

static void measure_headroom(struct weir_job_verdict *verdict, const struct weir_dataloader_figures *f)
{
    if (f->window_batches < 4 || f->rest_batches < 4 || f->window_s <= 0 || f->rest_s <= 0)
        return;
    double window_s = f->window_s / f->window_batches, rest_s = f->rest_s / f->rest_batches;
    double window_part = f->window_sd_s / sqrt(f->window_batches) / window_s;
    double rest_part = f->rest_sd_s / sqrt(f->rest_batches) / rest_s;
    verdict->headroom = rest_s / window_s;
    verdict->headroom_error = verdict->headroom * sqrt(window_part * window_part + rest_part * rest_part);
}

static bool measure_replay(struct weir_job_verdict *verdict, const struct weir_dataloader_figures *f)
{
    if (f->settings.headroom != WEIR_WATCH_REPLAYS || f->window_batches < 4 || f->window_s <= 0)
        return false;
    verdict->replayed = f->window_batches / f->window_s;
    verdict->replayed_error = verdict->replayed * f->window_sd_s * sqrt(f->window_batches) / f->window_s;
    snprintf(verdict->found.remark, sizeof verdict->found.remark,
             "Without any loading, training makes %.1f steps/s +- %.1f: this run replayed the first batch of each "
             "epoch. A real run cannot be faster.",
             verdict->replayed, verdict->replayed_error);
    return true;
}

/* Counts a worker's waits for its own threads, such as those of a video decoder, as time on a core instead of in locks.
 * Pickling, which has a thread of its own, is left out. */
static void sum_workers(struct weir_job_verdict *verdict, const struct weir_dataloader_figures *f)
{
    double *of = verdict->workers.shares.of;
    weir_dataloader_sum(&verdict->workers, f);
    double pickling = f->stages.busy_s > 0 ? f->stages.pickle_s / f->stages.busy_s : 0;
    double threads = fmax(fmax(f->others_in_worker, 0) * of[WEIR_TASK_ON_CORE] - pickling, 0);
    double asleep = fmax(1 - of[WEIR_TASK_ON_CORE] - of[WEIR_TASK_CORE_WAIT], 0);
    verdict->for_threads = fmin(fmin(threads, of[WEIR_TASK_LOCK]), asleep);
    verdict->threads = threads - verdict->for_threads;
    of[WEIR_TASK_LOCK] -= verdict->for_threads;
    of[WEIR_TASK_ON_CORE] += verdict->for_threads;
}

/* With a pin thread the loop waits on a lock, as Weir's loader does in a process with torch. Workers and the GPU have
 * to show for what. */
static enum weir_data_bound infer_bound(const struct weir_job_case *c)
{
    const struct weir_dataloader_figures *f = c->figures;
    double busiest = 0;
    for (int i = 0; i < f->n_workers; i++)
        busiest = fmax(busiest, f->workers[i].busy_s / fmax(f->workers[i].wall_s, 1e-9));
    bool one_is_slow = c->workers > 1 && busiest >= WEIR_OUTSIDE_SLOW_BUSY;
    double most = weir_job_loop_use(c, WEIR_TASK_IDLE) + weir_job_loop_use(c, WEIR_TASK_LOCK);
    if (most < WEIR_SAMPLED_SURE * WEIR_VERDICT_WAIT_LEAST || f->outside.gpu_busy >= WEIR_VERDICT_BUSY)
        return WEIR_BOUND_NO;
    if (c->busy >= WEIR_JOB_BUSY_WORKERS)
        return WEIR_BOUND_STRONGLY;
    return 1 - c->busy >= WEIR_JOB_IDLE && !one_is_slow && f->outside.gpu_busy >= WEIR_OUTSIDE_GPU_IDLE
               ? WEIR_BOUND_NO
               : WEIR_BOUND_UNKNOWN;
}

/* Returns whether the kernel hides what sleeping threads wait for, as it does for other users' processes. */
static bool is_hidden(const struct weir_job_case *c)
{
    double other = weir_job_loop_use(c, WEIR_TASK_OTHER),
           asleep = 1 - weir_job_loop_use(c, WEIR_TASK_ON_CORE) - c->loop_core_wait;
    if (c->workers > 0) {
        double worker_other = weir_job_use(c, WEIR_TASK_OTHER) * c->busy;
        asleep = 1 - c->busy * (weir_job_use(c, WEIR_TASK_ON_CORE) + weir_job_use(c, WEIR_TASK_CORE_WAIT));
        return other + worker_other > WEIR_SAMPLED_SURE * WEIR_VERDICT_WAIT_LEAST && worker_other > 0.9 * asleep;
    }
    return 2 * other > WEIR_SAMPLED_SURE * WEIR_VERDICT_WAIT_LEAST && other > 0.9 * asleep;
}

static void find_bound(struct weir_job_case *c)
{
    bool outside = c->figures->outside.known;
    c->hidden = outside && is_hidden(c);
    if (outside && (c->workers <= 0 || c->hidden)) { /* loading and the step share a thread, or nothing is seen */
        c->verdict->found.wait = -1;
        c->bound = WEIR_BOUND_UNKNOWN;
    } else
        c->bound = c->on_lock ? infer_bound(c) : weir_data_bound(c->verdict->found.wait);
    if (!outside)
        c->verdict->found.bound = c->bound;
}

static void make_case(struct weir_job_case *c)
{
    const struct weir_dataloader_figures *f = c->figures;
    const struct weir_report_machine *machine = &f->machine;
    const struct weir_thread_figures *loop = &f->loop;
    struct weir_job_verdict *verdict = c->verdict;
    c->workers = fmin(fmax(f->settings.num_workers, 0), 1e4); /* a log can contain anything */
    c->prefetch = f->settings.prefetch_factor > 0 ? fmin(f->settings.prefetch_factor, 1e3) : 2;
    c->limit = machine->quota_cores > 0 ? fmin(machine->quota_cores, machine->cores) : machine->cores;
    c->cores = fmax(c->limit - fmax(machine->others_cores, 0), fmin(c->limit, 1));
    c->cores = c->cores > 0 ? c->cores : 1;
    double taken = fmax(machine->others_cores, 0) + fmax(machine->steal_cores, 0);
    c->idle_cores = f->cpu_s > 0 && f->wall_s > 0 ? fmax(c->limit - taken - f->cpu_s / f->wall_s, 0) : -1;
    c->batches = f->outside.known ? verdict->workers.batches : f->batches;
    c->train_s = f->loop_s - f->run_first_s + f->startup_s;
    c->wait_s = fmax(f->wait_s - f->run_first_s + f->startup_s, 0);
    c->on_lock = f->outside.known && f->wait_s < 0;
    c->loop_core_wait = loop->wall_s > 0 ? fmin(loop->delay_s / loop->wall_s, 1) : 0;
    double known_s = verdict->workers.busy_s + verdict->workers.wait_s;
    c->busy = known_s > 0 ? verdict->workers.busy_s / known_s : c->workers <= 0 ? 1 : 0;
    verdict->found.wait = c->train_s > 0 && f->wait_s >= 0 ? fmin(c->wait_s / c->train_s, 1) : -1;
    verdict->most = weir_job_gain_saved(c, c->wait_s);
}

void weir_job_judge(struct weir_job_verdict *verdict, const struct weir_dataloader_figures *figures)
{
    struct weir_job_case c = {.figures = figures, .verdict = verdict};
    bool outside = figures->outside.known;
    *verdict = (struct weir_job_verdict){
        .ready = !outside || figures->loop_s >= WEIR_OUTSIDE_LEAST_S,
        .found = {.subject = WEIR_SUBJECT_JOB, .sampled = outside, .wait = -1},
    };
    if (!verdict->ready)
        return;
    sum_workers(verdict, figures);
    make_case(&c);
    if (measure_replay(verdict, figures))
        return;
    if (!is_too_short(&c)) {
        find_bound(&c);
        measure_headroom(verdict, figures);
        weir_job_model_make(&c);
        apply_rules(&c);
        weir_diagnosis_sort(&verdict->found, WEIR_JOB_CAUSES_SHOWN, rank, &c);
    }
    weir_job_advise(&c);
}
