/* Makes a verdict: applies the rules, predicts the gain without each cause, and sorts the causes by gain. */
#include "analyze/verdict/verdict.h"
#include "analyze/verdict/verdict_priv.h"

#include <math.h>
#include <string.h>

bool weir_verdict_has(const struct weir_verdict *verdict, enum weir_cause cause)
{
    for (int i = 0; i < verdict->n_causes; i++)
        if (verdict->causes[i].cause == cause)
            return true;
    return false;
}

/* ---- the consumer ---- */

/* Returns the fraction of training time spent waiting for data. The wait for the run's first batch is excluded, because
 * nothing can be prefetched before it. With a GPU, the result is at most the GPU's idle time, because a wait of the
 * host delays nothing while the GPU still computes. */
static double data_wait(const struct weir_loader_report *report)
{
    const struct weir_report_steps *steps = &report->steps;
    double first_s = fmin(steps->first_wait_s, steps->train_wait_s);
    double train_s = steps->train_s - first_s;
    double wait = train_s > 0 ? fmin(fmax(steps->train_wait_s - first_s, 0) / train_s, 1) : 0;
    return report->gpu.used ? fmin(wait, fmax(1 - report->gpu.busy, 0)) : wait;
}

static double step_row(const struct weir_loader_report *report, const char *name)
{
    const struct weir_report_row *row =
        weir_demands_row(report, name, report->gpu.used ? WEIR_SIDE_GPU : WEIR_SIDE_CONSUMER);
    return row ? row->total_s : 0;
}

static void fill_shares(struct weir_step_shares *shares, const struct weir_loader_report *report)
{
    double train_s = report->steps.train_s;
    if (train_s <= 0 || !report->timing)
        return;
    shares->known = true;
    shares->wait = fmin(report->steps.train_wait_s / train_s, 1);
    const char *forward = report->steps.validation ? "10_val_forward_pass" : "20_train_forward_pass";
    shares->forward = step_row(report, forward) / train_s;
    if (!report->steps.validation) {
        shares->backward = step_row(report, "21_backward") / train_s;
        shares->optimiser = step_row(report, "22_optimizer_step") / train_s;
    }
    shares->backward_over_forward = shares->forward > 0 ? shares->backward / shares->forward : 0;
    shares->release = report->gpu.used ? 0 : step_row(report, "23_release_batch") / train_s;
    double sum = shares->wait + shares->forward + shares->backward + shares->optimiser + shares->release;
    if (sum > 1) { /* the host's and the stream's times overlap */
        shares->wait /= sum;
        shares->forward /= sum;
        shares->backward /= sum;
        shares->optimiser /= sum;
        shares->release /= sum;
    }
    shares->unattributed = fmax(1 - sum, 0);
}

/* Returns the fraction of a thread's time in which it was ready to run but waited for a core or was throttled by a
 * quota. */
static double waits_for_core(const struct weir_report_worker *thread)
{
    bool known = thread->wall_s > 0 && thread->core_wait_s >= 0 && thread->throttled_s >= 0;
    return known ? (thread->core_wait_s + thread->throttled_s) / thread->wall_s : 0;
}

/* Describes a consumer that does not wait for data. GPU events show whether the GPU was busy. Without them, CPU time
 * only shows whether the consumer's thread ran, or was ready to run. */
static void fill_consumer(struct weir_verdict_cause *cause, double wait, const struct weir_loader_report *report)
{
    const struct weir_report_worker *consumer = &report->prof.consumer;
    double cpu = consumer->wall_s > 0 ? consumer->cpu_s / consumer->wall_s : 0;
    double core_wait = report->gpu.used ? 0 : waits_for_core(consumer);
    *cause = (struct weir_verdict_cause){.cause = WEIR_CAUSE_CONSUMER, .share = 1 - wait};
    cause->consumer.busy = report->gpu.used ? report->gpu.busy : cpu;
    cause->consumer.core_wait = core_wait >= WEIR_VERDICT_CORE_WAIT ? core_wait : 0;
    if (cause->consumer.busy + core_wait >= WEIR_VERDICT_BUSY)
        cause->consumer.kind = WEIR_CONSUMER_COMPUTING;
    else if (!weir_verdict_idle(cause, report) && report->gpu.used)
        cause->consumer.kind = report->gpu.sync_steps ? WEIR_CONSUMER_SYNC_BOUND : WEIR_CONSUMER_LAUNCH_BOUND;
}

/* ---- reports without a verdict ---- */

/* Some advice needs figures that a loader measures only in a run of at least WEIR_REPORT_BATCHES_LEAST batches. */
_Static_assert(WEIR_VERDICT_BATCHES_LONG >= WEIR_REPORT_BATCHES_LEAST &&
                   WEIR_VERDICT_BATCHES_LEAST >= WEIR_REPORT_BATCHES_LEAST,
               "a verdict without figures");

/* Returns whether the report does not contain enough for a verdict, and sets the reason. */
static bool is_unusable(struct weir_verdict_cause *cause, const struct weir_demands *demands,
                        const struct weir_loader_report *report)
{
    *cause = (struct weir_verdict_cause){.cause = WEIR_CAUSE_CANNOT_TELL};
    cause->doubt.batches = report->steps.train_batches;
    cause->doubt.seconds = report->steps.train_s;
    cause->doubt.why = !report->timing   ? WEIR_DOUBT_NO_TIMING
                       : !demands->known ? WEIR_DOUBT_NO_FIGURES
                                         : WEIR_DOUBT_TOO_SHORT;
    return cause->doubt.why != WEIR_DOUBT_TOO_SHORT ||
           !weir_verdict_suffices(report->steps.train_batches, report->steps.train_s, report->queue_slots);
}

/* ---- the order of the causes ---- */

enum { FOUND_MOST = 32 };

static int apply_rules(struct weir_verdict_cause found[FOUND_MOST], struct weir_verdict_case *c)
{
    const struct weir_verdict_rule *rule;
    int n = 0;
    for (int i = 0; (rule = weir_verdict_rule_at(i)) && n < FOUND_MOST; i++) {
        struct weir_verdict_cause cause = {.cause = rule->cause};
        if ((c->found & rule->excluded_by) || !rule->applies(c, &cause) || (c->found & UINT64_C(1) << cause.cause))
            continue;
        found[n++] = cause;
        c->found |= UINT64_C(1) << cause.cause;
    }
    return n;
}

static bool is_one_of(const struct weir_verdict_cause *cause, uint64_t causes)
{
    return (UINT64_C(1) << cause->cause & causes) != 0;
}

/* Whether a cause only explains other causes, and must therefore follow them. The use of the cores explains causes that
 * leave too few cores to the run or use too few of them. The idle time of workers is an explanation if the workers
 * mostly wait for cores. */
static bool is_explanation(const struct weir_verdict_cause *cause, const struct weir_demands *d)
{
    bool mostly_idle = d->of.idle >= d->of.cpu + d->of.core_wait + d->of.throttled;
    if (cause->cause == WEIR_CAUSE_BURSTS)
        return !mostly_idle && !cause->bursts.uneven_steps;
    return is_one_of(cause, WEIR_CAUSES_COMPUTE | WEIR_CAUSE_BIT(MEMORY_BANDWIDTH));
}

/* Whether explanations must follow this cause. A cause that takes cores away counts only if its removal gains enough.
 */
static bool is_explained(const struct weir_verdict_cause *cause)
{
    static const uint64_t always = WEIR_CAUSE_BIT(QUOTA) | WEIR_CAUSE_BIT(TOO_MANY_WORKERS) | WEIR_CAUSES_WORKERS;
    return is_one_of(cause, always) || (is_one_of(cause, WEIR_CAUSES_TAKERS) && cause->gain >= WEIR_VERDICT_TAKEN_GAIN);
}

static void predict_gains(struct weir_verdict_cause *found, int n, const struct weir_verdict *verdict,
                          const struct weir_loader_report *report)
{
    double least = INFINITY; /* smallest gain among the causes that explanations must follow */
    for (int i = 0; i < n; i++) {
        found[i].gain = weir_verdict_gain(verdict, &found[i], report);
        if (is_explained(&found[i]))
            least = fmin(least, found[i].gain);
    }
    for (int i = 0; i < n; i++)
        if (is_explanation(&found[i], &verdict->demands))
            found[i].gain = fmin(found[i].gain, least);
}

/* Doubts about the whole report come first. The other causes are sorted by gain. */
static double rank(const struct weir_verdict_cause *cause)
{
    bool whole = cause->cause == WEIR_CAUSE_CANNOT_TELL && cause->doubt.why != WEIR_DOUBT_SAMPLED;
    return whole ? INFINITY : cause->gain > 0 ? cause->gain : 1;
}

/* Sorts stably: of causes with the same gain, the one whose rule comes first stays first. */
static void sort_causes(struct weir_verdict_cause *found, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && rank(&found[k]) > rank(&found[k - 1]); k--) {
            struct weir_verdict_cause earlier = found[k - 1];
            found[k - 1] = found[k];
            found[k] = earlier;
        }
}

static void find_causes(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    struct weir_verdict_case c = {
        .report = report, .demands = &verdict->demands, .facts = &verdict->facts, .wait = verdict->wait};
    struct weir_verdict_cause found[FOUND_MOST];
    int n = apply_rules(found, &c);
    predict_gains(found, n, verdict, report);
    sort_causes(found, n);
    verdict->n_causes = n < WEIR_VERDICT_CAUSES ? n : WEIR_VERDICT_CAUSES;
    memcpy(verdict->causes, found, (size_t)verdict->n_causes * sizeof *found);
}

void weir_verdict_make(struct weir_verdict *verdict, const struct weir_loader_report *report,
                       const struct weir_verdict_facts *facts)
{
    *verdict = (struct weir_verdict){.wait = -1};
    if (facts)
        verdict->facts = *facts;
    weir_demands_make(&verdict->demands, report);
    weir_model_make(&verdict->model, &verdict->demands, report, NULL);
    fill_shares(&verdict->shares, report);
    verdict->decode_rule = verdict->demands.decode_share > WEIR_VERDICT_DECODE_RULE;
    if (is_unusable(&verdict->causes[0], &verdict->demands, report)) {
        verdict->n_causes = 1;
    } else {
        verdict->wait = data_wait(report);
        verdict->bound = report->steps.no_step ? WEIR_BOUND_NO_STEP : weir_data_bound(verdict->wait);
        if (verdict->bound == WEIR_BOUND_NO) {
            fill_consumer(&verdict->causes[0], verdict->wait, report);
            verdict->n_causes = 1;
        } else {
            find_causes(verdict, report);
        }
    }
    weir_verdict_advise(verdict, report);
}
