/* Makes a verdict: applies the rules, predicts the gain without each cause, and sorts the causes by gain. */
#include "analyze/verdict/verdict.h"
#include "analyze/verdict/verdict_priv.h"

#include <math.h>

/* ---- the step ---- */

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
    double most =
        fmax(fmax(shares->wait, shares->forward), fmax(shares->optimiser, fmax(shares->release, shares->unattributed)));
    shares->backward_limits = shares->backward_over_forward > WEIR_VERDICT_BACKWARD && shares->backward > most;
}

/* ---- reports without a verdict ---- */

/* Some advice needs figures that a loader measures only in a run of at least WEIR_REPORT_BATCHES_LEAST batches. */
_Static_assert(WEIR_VERDICT_BATCHES_LONG >= WEIR_REPORT_BATCHES_LEAST &&
                   WEIR_VERDICT_BATCHES_LEAST >= WEIR_REPORT_BATCHES_LEAST,
               "a verdict without figures");

/* Adds the reason if the report does not contain enough for a verdict. */
static void find_unusable(struct weir_verdict_case *c)
{
    const struct weir_report_steps *steps = &c->report->steps;
    bool usable = c->report->timing && c->demands->known;
    if (usable && weir_verdict_suffices(steps->train_batches, steps->train_s, c->report->queue_slots))
        return;
    struct weir_diagnosis_cause *cause = weir_verdict_add(c, WEIR_CAUSE_CANNOT_TELL, 0, NULL);
    cause->advice = usable ? WEIR_ADVICE_LONGER : WEIR_ADVICE_NONE;
    if (!c->report->timing)
        weir_diagnosis_say(cause, "cannot tell, because stage timing was off (--no-timing)");
    else if (!usable)
        weir_diagnosis_say(cause, "cannot tell, because no batch or no image was delivered, or the log is from a "
                                  "version without these figures");
    else
        weir_diagnosis_say(cause,
                           "cannot tell, because the run was too short: %.0f %s batches in %.2f s (a verdict needs %d "
                           "in %.1f s or more, or %d in %.1f s)",
                           (double)steps->train_batches, steps->validation ? "validation" : "training", steps->train_s,
                           WEIR_VERDICT_BATCHES_LEAST, WEIR_VERDICT_SECONDS_LEAST, WEIR_VERDICT_BATCHES_LONG,
                           WEIR_VERDICT_SECONDS_LONG);
}

/* ---- the order of the causes ---- */

enum { CAUSES_SHOWN = 4 };

/* Whether explanations must follow this cause. A cause that takes cores away counts only if its removal gains enough.
 */
static bool is_explained(const struct weir_diagnosis_cause *cause)
{
    static const uint64_t always = WEIR_CAUSE_BIT(QUOTA) | WEIR_CAUSE_BIT(TOO_MANY_WORKERS) | WEIR_CAUSES_WORKERS;
    uint64_t bit = UINT64_C(1) << cause->cause;
    return (bit & always) || ((bit & WEIR_CAUSES_TAKERS) && cause->gain >= WEIR_VERDICT_TAKEN_GAIN);
}

static void lower_explanations(const struct weir_verdict_case *c)
{
    struct weir_diagnosis *found = &c->verdict->found;
    double least = INFINITY; /* smallest gain among the causes that explanations must follow */
    for (int i = 0; i < found->n_causes; i++)
        if (is_explained(&found->causes[i]))
            least = fmin(least, found->causes[i].gain);
    for (int i = 0; i < found->n_causes; i++)
        if (c->explanations & UINT64_C(1) << found->causes[i].cause)
            found->causes[i].gain = fmin(found->causes[i].gain, least);
}

/* Doubts about the whole report come first. The other causes are sorted by gain; of causes with the same gain, the one
 * whose rule comes first stays first. */
static double rank(const void *user, const struct weir_diagnosis_cause *cause)
{
    const struct weir_verdict_case *c = user;
    bool whole = cause->cause == WEIR_CAUSE_CANNOT_TELL && c->doubts_all;
    return whole ? INFINITY : cause->gain > 0 ? cause->gain : 1;
}

static void find_causes(struct weir_verdict_case *c)
{
    const struct weir_verdict_rule *rule;
    for (int i = 0; (rule = weir_verdict_rule_at(i)); i++)
        if (!(c->found & rule->excluded_by))
            rule->find(c);
    lower_explanations(c);
    weir_diagnosis_sort(&c->verdict->found, CAUSES_SHOWN, rank, c);
    weir_verdict_say_cores(c);
}

static const char *part_of(const struct weir_loader_report *report)
{
    return !report->final || report->epoch_count == 0 ? "time"
           : report->after_fill                       ? "time after the epoch that filled the cache"
                                                      : "run";
}

/* Returns whether the training step is one that advice can change, and is known well enough. */
static bool is_step_judged(const struct weir_verdict *verdict, const struct weir_report_steps *steps)
{
    bool real = !steps->no_step && steps->step_ms <= 0 && !steps->validation;
    return real && verdict->shares.known && verdict->found.bound != WEIR_BOUND_UNKNOWN;
}

/* Fills in the times of the training steps. Without a real training step, or if the verdict cannot tell, there is no
 * advice for the step. Loading has only the rule: for the rest, verdicts have advice with predictions. */
static void fill_stages(struct weir_stage_times *times, const struct weir_verdict *verdict,
                        const struct weir_loader_report *report)
{
    const struct weir_step_shares *shares = &verdict->shares;
    double train_s = report->steps.train_s;
    *times = (struct weir_stage_times){.bound = verdict->found.bound,
                                       .step = report->steps.own_step ? WEIR_SUBJECT_LOADER : WEIR_SUBJECT_JOB,
                                       .loader = WEIR_SUBJECT_LOADER,
                                       .decode_s = -1};
    if (verdict->decode_rule && weir_diagnosis_has(&verdict->found, WEIR_CAUSE_DECODE)) {
        times->sample_s = 1;
        times->decode_s = verdict->demands.decode_share;
    }
    if (!is_step_judged(verdict, &report->steps))
        return;
    times->whole_s = train_s;
    times->whole = "the training time";
    times->data = "08_wait_for_data";
    times->data_s = shares->wait * train_s;
    times->forward_s = shares->forward * train_s;
    times->backward_s = shares->backward * train_s;
    times->other_s = fmax(fmax(shares->optimiser, shares->release), shares->unattributed) * train_s;
}

void weir_verdict_make(struct weir_verdict *verdict, const struct weir_loader_report *report,
                       const struct weir_verdict_facts *facts)
{
    struct weir_diagnosis *found = &verdict->found;
    struct weir_verdict_case c = {.report = report, .verdict = verdict, .demands = &verdict->demands};
    *verdict = (struct weir_verdict){
        .found = {.wait = -1, .validation = report->steps.validation, .part = part_of(report)},
        .facts = facts ? *facts : (struct weir_verdict_facts){0},
    };
    weir_demands_make(&verdict->demands, report);
    weir_model_make(&verdict->model, &verdict->demands, report, NULL);
    fill_shares(&verdict->shares, report);
    verdict->decode_rule = verdict->demands.decode_share > WEIR_VERDICT_DECODE_RULE;
    find_unusable(&c);
    if (found->n_causes == 0) {
        found->wait = data_wait(report);
        found->bound = report->steps.no_step ? WEIR_BOUND_NO_STEP : weir_data_bound(found->wait);
        if (found->bound == WEIR_BOUND_NO)
            weir_rule_consumer(&c);
        else
            find_causes(&c);
    }
    weir_verdict_advise(&c);
    fill_stages(&verdict->stages, verdict, report);
}
