/* What the rules ask of a case, and how they state a finding. */
#include "analyze/jobs/job_verdict_priv.h"
#include "base/numbers.h"

#include <math.h>

double weir_job_use(const struct weir_job_case *c, enum weir_task_use use)
{
    return c->verdict->workers.shares.of[use];
}

double weir_job_loop_use(const struct weir_job_case *c, enum weir_task_use use)
{
    return c->figures->loop.shares.of[use];
}

double weir_job_own(const struct weir_job_case *c)
{
    return fmax(1 - weir_job_use(c, WEIR_TASK_CORE_WAIT) - weir_job_use(c, WEIR_TASK_LOCK) -
                    weir_job_use(c, WEIR_TASK_STORAGE),
                0);
}

void weir_job_sampled(const struct weir_job_case *c, struct weir_diagnosis_cause *finding, double figure,
                      double threshold)
{
    if (figure < WEIR_SAMPLED_SURE * threshold)
        finding->certainty = WEIR_CERTAINTY_LIKELY;
    weir_job_outside(c, finding, true);
}

struct weir_diagnosis_cause *weir_job_outside(const struct weir_job_case *c, struct weir_diagnosis_cause *finding,
                                              bool sure)
{
    bool waits = !c->on_lock && c->verdict->found.wait >= WEIR_SAMPLED_SURE * WEIR_VERDICT_WAIT_LEAST;
    if (c->figures->outside.known && !(sure && waits))
        finding->certainty = WEIR_CERTAINTY_LIKELY;
    return finding;
}

/* From outside the evidence contains the loop's wait, with which the text does not begin. */
void weir_job_say_wait(const struct weir_job_case *c, struct weir_diagnosis_cause *finding)
{
    const struct weir_dataloader_figures *f = c->figures;
    if (!f->outside.known)
        return;
    if (f->outside.has_pin)
        weir_diagnosis_say(finding, "; the pin thread hides the training loop's wait");
    else
        weir_diagnosis_say(finding, "; the training loop waits %s %.0f %% of the time",
                           c->on_lock ? "on a lock" : "for batches",
                           weir_percent(weir_job_loop_use(c, c->on_lock ? WEIR_TASK_LOCK : WEIR_TASK_IDLE)));
}
