/* Describes a consumer that does not wait for data, using a trace of its steps that shows what the GPU waited for. */
#include "analyze/verdict/verdict_priv.h"

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

static void parts_of(const struct weir_report_idle *idle, double parts[PARTS])
{
    parts[LAUNCHING] = idle->launching;
    parts[SYNC] = idle->sync;
    parts[DATA] = idle->data;
    parts[ALLOCATING] = idle->allocating;
    parts[QUEUED] = idle->queued;
    parts[OTHER] = idle->other;
    for (int i = 0; i < PARTS; i++) /* a log can contain any numbers */
        parts[i] = fmin(fmax(parts[i], 0), 1);
}

static enum part largest(const double parts[PARTS])
{
    int first = 0;
    for (int i = 1; i < PARTS; i++)
        if (parts[i] > parts[first])
            first = i;
    return (enum part)first;
}

bool weir_verdict_idle(struct weir_verdict_cause *cause, const struct weir_loader_report *report)
{
    double parts[PARTS];
    parts_of(&report->idle, parts);
    enum part first = largest(parts);
    if (report->idle.traced_s <= 0 || parts[first] < WEIR_VERDICT_TRACED_LEAST)
        return false;
    cause->consumer.traced = true;
    cause->consumer.idle_most = parts[first];
    cause->consumer.kind = first == SYNC                               ? WEIR_CONSUMER_SYNC_BOUND
                           : first == LAUNCHING || first == ALLOCATING ? WEIR_CONSUMER_LAUNCH_BOUND
                                                                       : WEIR_CONSUMER_UNKNOWN;
    return true;
}

void weir_verdict_say_step(FILE *out, const struct weir_loader_report *report)
{
    if (report->steps.step_ms > 0)
        fprintf(out, "the simulated step (--step-ms %.6g) is the limit", report->steps.step_ms);
    else
        fprintf(out, "the %s step is the limit", report->steps.validation ? "validation" : "training");
}

void weir_verdict_say_idle(FILE *out, const struct weir_loader_report *report)
{
    const struct weir_report_idle *idle = &report->idle;
    double parts[PARTS];
    parts_of(idle, parts);
    enum part first = largest(parts);
    weir_verdict_say_step(out, report);
    fprintf(out, ", %s: in the %.3f s traced, the GPU waited %.0f %% of the time for %s", words[first].kind,
            idle->traced_s, 100 * parts[first], words[first].what);
    for (int part = 0; part < PARTS; part++)
        if (part != (int)first && parts[part] >= 0.01)
            fprintf(out, ", %.0f %% for %s", 100 * parts[part], words[part].what);
    if (idle->delay_p50_s >= 0 && idle->kernels_per_step >= 0)
        fprintf(out, " (launch delay p50 %.1fus, p99 %.1fus; %.1f kernels per step)", 1e6 * idle->delay_p50_s,
                1e6 * idle->delay_p99_s, idle->kernels_per_step);
    fprintf(out, "; %s", words[first].help);
}
