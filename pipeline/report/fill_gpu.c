/* Fills in the GPU's figures, measured by its own clock. */
#include "pipeline/gpu/gpu.h"
#include "pipeline/report/fill_priv.h"
#include "weir/stages.h"

#include <math.h>

static bool has_steps(const struct weir_gpu_figures *now, const struct weir_gpu_figures *then)
{
    return now->train_step.count + now->val_step.count > then->train_step.count + then->val_step.count;
}

double weir_gpu_copy_overlap(const struct weir_gpu_figures *now, const struct weir_gpu_figures *then)
{
    uint64_t copy_ns = now->copy.total_ns - then->copy.total_ns;
    if (copy_ns == 0 || !has_steps(now, then))
        return -1;
    return (double)(now->hidden_ns - then->hidden_ns) / (double)copy_ns;
}

static double add(struct weir_report_gpu *report, int stage, const struct weir_stage_stats *now,
                  const struct weir_stage_stats *then)
{
    struct weir_stage_stats stats = *now;
    weir_stage_stats_subtract(&stats, then);
    weir_report_gpu_add(report, stage, &stats);
    return (double)stats.total_ns / 1e9;
}

/* Adds the parts of steps in the order of their stages' numbers. */
static void add_marked(struct weir_report_gpu *report, const struct weir_gpu_figures *now,
                       const struct weir_gpu_figures *then)
{
    static const struct weir_stage_stats none;
    for (int stage = 0; stage < weir_stage_count(); stage++)
        for (int i = 0; i < now->n_marked; i++)
            if (now->marked[i].stage == stage) /* then->marked[i] has the same stage if it exists */
                add(report, stage, &now->marked[i].stats, i < then->n_marked ? &then->marked[i].stats : &none);
}

void weir_fill_gpu(struct weir_report_gpu *report, const struct weir_loader *loader, const struct weir_gpu_figures *now,
                   const struct weir_gpu_figures *then, double wall_s)
{
    struct weir_device *device = weir_device_of(loader);
    *report = (struct weir_report_gpu){
        .used = true,
        .number = weir_device_number(device),
        .overlap = weir_gpu_copy_overlap(now, then),
        .copy_bytes_per_s = -1,
        .used_bytes = weir_device_used_bytes(device),
    };
    snprintf(report->name, sizeof report->name, "%s", weir_device_name(device));
    double copy_s = add(report, WEIR_STAGE_H2D_COPY, &now->copy, &then->copy);
    add(report, WEIR_STAGE_PREPARE_BATCH, &now->prepare, &then->prepare);
    report->stall_s = add(report, WEIR_STAGE_WAIT_DATA, &now->stall, &then->stall);
    add_marked(report, now, then);
    if (now->n_marked == 0) {
        add(report, WEIR_STAGE_VAL_FORWARD, &now->val_step, &then->val_step);
        add(report, WEIR_STAGE_TRAIN_FORWARD, &now->train_step, &then->train_step);
    }
    if (copy_s > 0)
        report->copy_bytes_per_s = (double)(now->copied_bytes - then->copied_bytes) / copy_s;
    if (wall_s > 0)
        report->busy = fmin((double)(now->busy_ns - then->busy_ns) / 1e9 / wall_s, 1);
}

static void report_engine(struct weir_report_engine *report, const struct weir_gpu_engine_figures *now,
                          const struct weir_gpu_engine_figures *then, double wall_s)
{
    if (now->hardware)
        snprintf(report->by, sizeof report->by, "%d JPEG engine%s", now->hardware, now->hardware == 1 ? "" : "s");
    else
        snprintf(report->by, sizeof report->by, "the multiprocessors");
    report->frames = now->frames - then->frames;
    report->groups = now->groups - then->groups;
    if (wall_s > 0)
        report->busy = fmin((double)(now->busy_ns - then->busy_ns) / 1e9 / wall_s, 1);
}

void weir_fill_gpu_decode(struct weir_report_gpu *gpu, const struct weir_gpu_decode_figures *now,
                          const struct weir_gpu_decode_figures *then, double wall_s)
{
    struct weir_report_decode *report = &gpu->decode;
    *report = (struct weir_report_decode){.cpu_busy = -1, .n_engines = now->n_engines};
    if (now->n_engines == 0)
        return;
    for (int i = 0; i < now->n_engines; i++)
        report_engine(&report->engines[i], &now->engines[i], &then->engines[i], wall_s);
    add(gpu, WEIR_STAGE_GPU_DECODE, &now->groups, &then->groups);
    report->sent_back = now->to_cpu - then->to_cpu;
    report->compared = now->compared - then->compared;
    report->below = now->below - then->below;
    report->gate_db = now->gate_db;
    report->least_db = now->least_db;
    snprintf(report->reasons, sizeof report->reasons, "%s", now->reasons);
}
