/* The rule for a consumer that does not wait for data: what its step waits for. GPU events show whether the GPU was
 * busy, and a trace what it waited for. Without them, CPU time only shows whether the consumer's thread ran, or was
 * ready to run. */
#include "analyze/verdict/verdict_priv.h"
#include "base/numbers.h"

#include <math.h>

/* Reasons for idle time, in the order in which the sentence lists them. */
enum part { LAUNCHING, SYNC, DATA, ALLOCATING, QUEUED, OTHER, PARTS };

static const struct {
    const char *what; /* completes "the GPU waited for" */
    const char *kind; /* completes "the training step is the limit, " */
    const char *help;
} words[PARTS] = {
    [LAUNCHING] = {"launches", "and it is launch-bound", "CUDA graphs, fused kernels or torch.compile avoid launches"},
    [SYNC] = {"synchronising calls", "and it is sync-bound",
              "move read-backs such as .item(), .cpu() and print out of the step"},
    [DATA] = {"data", "but the traced steps waited for data", "trace later steps"},
    [ALLOCATING] = {"allocations", "and it is allocation-bound", "reuse buffers between steps, or use a caching pool"},
    [QUEUED] = {"queued work to start", "and it is made of short kernels",
                "fused kernels or CUDA graphs have fewer gaps"},
    [OTHER] = {"other host code", "and it is delayed by host code that launches nothing",
               "a CPU profile (--with-stack) shows which code"},
};

/* Fills in the parts of the traced time, and returns the largest. */
static enum part parts_of(const struct weir_report_idle *idle, double parts[PARTS])
{
    enum part first = LAUNCHING;
    parts[LAUNCHING] = idle->launching;
    parts[SYNC] = idle->sync;
    parts[DATA] = idle->data;
    parts[ALLOCATING] = idle->allocating;
    parts[QUEUED] = idle->queued;
    parts[OTHER] = idle->other;
    for (int i = 0; i < PARTS; i++) {
        parts[i] = fmin(fmax(parts[i], 0), 1); /* a log can contain any numbers */
        first = parts[i] > parts[first] ? (enum part)i : first;
    }
    return first;
}

/* Says what the GPU waited for, if a trace shows it. */
static bool say_idle(struct weir_diagnosis_cause *cause, const struct weir_report_idle *idle)
{
    double parts[PARTS];
    enum part first = parts_of(idle, parts);
    if (idle->traced_s <= 0 || parts[first] < WEIR_VERDICT_TRACED_LEAST)
        return false;
    weir_diagnosis_say(cause, ", %s: in the %.3f s traced, the GPU waited %.0f %% of the time for %s",
                       words[first].kind, idle->traced_s, 100 * parts[first], words[first].what);
    for (int part = 0; part < PARTS; part++)
        if (part != (int)first && parts[part] >= 0.01)
            weir_diagnosis_say(cause, ", %.0f %% for %s", 100 * parts[part], words[part].what);
    if (idle->delay_p50_s >= 0 && idle->kernels_per_step >= 0)
        weir_diagnosis_say(cause, " (launch delay p50 %.1fus, p99 %.1fus; %.1f kernels per step)",
                           1e6 * idle->delay_p50_s, 1e6 * idle->delay_p99_s, idle->kernels_per_step);
    weir_diagnosis_say(cause, "; %s", words[first].help);
    return true;
}

/* Returns the fraction of a thread's time in which it was ready to run but waited for a core or was throttled by a
 * quota. */
static double waits_for_core(const struct weir_report_worker *thread)
{
    bool known = thread->wall_s > 0 && thread->core_wait_s >= 0 && thread->throttled_s >= 0;
    return known ? (thread->core_wait_s + thread->throttled_s) / thread->wall_s : 0;
}

/* simulated: by a thread that sleeps or spins, so its CPU time says nothing. Without a GPU. */
static void say_thread(const struct weir_verdict_case *c, struct weir_diagnosis_cause *cause, double busy,
                       double core_wait, bool simulated)
{
    if (!simulated)
        weir_diagnosis_say(cause, ": its thread uses a core %.0f %% of the time", weir_percent(busy));
    if (core_wait >= WEIR_VERDICT_CORE_WAIT) {
        weir_diagnosis_say(cause,
                           simulated ? ": its thread waits for a core %.0f %% of the time"
                                     : ", and waits for one %.0f %% of the time",
                           weir_percent(core_wait));
        weir_verdict_say_others(c, cause);
    }
    if (!simulated && busy + core_wait < WEIR_VERDICT_BUSY)
        weir_diagnosis_say(cause, "; GPU events or a trace would show what else it waits for");
}

void weir_rule_consumer(struct weir_verdict_case *c)
{
    const struct weir_loader_report *report = c->report;
    const struct weir_report_worker *consumer = &report->prof.consumer;
    bool gpu = report->gpu.used, simulated = report->steps.step_ms > 0 && !gpu;
    double cpu = consumer->wall_s > 0 ? consumer->cpu_s / consumer->wall_s : 0, busy = gpu ? report->gpu.busy : cpu;
    double core_wait = gpu ? 0 : waits_for_core(consumer);
    bool computes = busy + core_wait >= WEIR_VERDICT_BUSY;
    struct weir_diagnosis_cause *cause = weir_verdict_add(c, WEIR_CAUSE_CONSUMER, 1 - c->verdict->found.wait, NULL);
    if (report->steps.step_ms > 0)
        weir_diagnosis_say(cause, "the simulated step (--step-ms %.6g) is the limit", report->steps.step_ms);
    else
        weir_diagnosis_say(cause, "the %s step is the limit", report->steps.validation ? "validation" : "training");
    bool traced = !computes && say_idle(cause, &report->idle);
    cause->advice = computes || traced || simulated ? WEIR_ADVICE_FASTER_STEP : WEIR_ADVICE_TRACE;
    if (traced)
        return;
    if (!gpu)
        say_thread(c, cause, busy, core_wait, simulated);
    else if (computes)
        weir_diagnosis_say(cause, ": the GPU is busy %.0f %% of the time", weir_percent(busy));
    else if (report->gpu.sync_steps)
        weir_diagnosis_say(cause,
                           ", and it is sync-bound: the host waits for each step before it launches the next, and the "
                           "GPU is busy only %.0f %% of the time",
                           weir_percent(busy));
    else
        weir_diagnosis_say(cause,
                           ", but the GPU is busy only %.0f %% of the time: the step is launch-bound or allocates "
                           "memory; a trace shows which",
                           weir_percent(busy));
}
