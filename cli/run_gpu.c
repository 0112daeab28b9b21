#include "cli/run_gpu.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/loader_stages.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct weir_run_gpu {
    struct weir_loader *loader;
    struct weir_device *device;
    bool sync_steps;
    void *stream;
    void *ends[2];  /* events: of this step and the one before */
    uint64_t steps; /* queued */
    uint8_t *fetched;
    size_t fetched_bytes;
};

int weir_run_gpu_open(struct weir_run_gpu **out, struct weir_loader *loader, bool sync_steps, struct weir_err *err)
{
    *out = NULL;
    struct weir_device *device = weir_device_of(loader);
    if (!device)
        return 0;
    struct weir_run_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return weir_err_set(err, -ENOMEM, "out of memory");
    *gpu = (struct weir_run_gpu){.loader = loader, .device = device, .sync_steps = sync_steps};
    int rc = weir_device_stream(device, &gpu->stream, err);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = weir_device_event(device, &gpu->ends[i], err);
    if (rc < 0)
        weir_run_gpu_close(&gpu);
    *out = gpu;
    return rc;
}

void weir_run_gpu_close(struct weir_run_gpu **gpu)
{
    struct weir_run_gpu *g = *gpu;
    if (!g)
        return;
    for (int i = 0; i < 2; i++)
        if (g->ends[i])
            weir_device_event_free(g->device, g->ends[i]);
    if (g->stream)
        weir_device_stream_free(g->device, g->stream);
    free(g->fetched);
    free(g);
    *gpu = NULL;
}

int weir_run_gpu_step(struct weir_run_gpu *gpu, struct weir_batch *batch, uint64_t ns, struct weir_err *err)
{
    void *end = gpu->ends[gpu->steps % 2], *before = gpu->ends[(gpu->steps + 1) % 2];
    int rc = gpu->sync_steps ? weir_device_wait(gpu->device, before, err) : 0;
    if (rc == 0)
        rc = weir_loader_wait(gpu->loader, batch, gpu->stream, err);
    if (rc == 0 && ns > 0)
        rc = weir_device_busy(gpu->device, ns, gpu->stream, err);
    if (rc == 0)
        rc = weir_device_record(gpu->device, end, gpu->stream, err);
    gpu->steps++;
    return rc == 0 ? weir_device_wait(gpu->device, before, err) : rc;
}

int weir_run_gpu_fetch(struct weir_run_gpu *gpu, const struct weir_batch *batch, struct weir_batch *host,
                       struct weir_err *err)
{
    size_t bytes = weir_device_fetch_bytes(batch);
    if (bytes > gpu->fetched_bytes) {
        free(gpu->fetched);
        gpu->fetched = malloc(bytes);
        gpu->fetched_bytes = gpu->fetched ? bytes : 0;
    }
    if (!gpu->fetched)
        return weir_err_set(err, -ENOMEM, "out of memory");
    return weir_device_fetch(gpu->device, batch, gpu->stream, gpu->fetched, host, err);
}

void weir_run_gpu_release(struct weir_run_gpu *gpu, struct weir_batch *batch)
{
    weir_loader_release_after(gpu->loader, batch, gpu->stream);
}

int weir_run_gpu_drain(struct weir_run_gpu *gpu, struct weir_err *err)
{
    int rc = weir_device_record(gpu->device, gpu->ends[0], gpu->stream, err);
    return rc == 0 ? weir_device_wait(gpu->device, gpu->ends[0], err) : rc;
}

/* ---- reports ---- */

static bool has_steps(const struct weir_gpu_figures *now, const struct weir_gpu_figures *then)
{
    return now->train_step.count + now->val_step.count > then->train_step.count + then->val_step.count;
}

double weir_run_gpu_overlap(const struct weir_gpu_figures *now, const struct weir_gpu_figures *then)
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

void weir_run_gpu_report(struct weir_report_gpu *report, const struct weir_run_gpu *gpu,
                         const struct weir_gpu_figures *now, const struct weir_gpu_figures *then, double wall_s)
{
    *report = (struct weir_report_gpu){
        .used = true,
        .number = weir_device_number(gpu->device),
        .overlap = weir_run_gpu_overlap(now, then),
        .copy_bytes_per_s = -1,
        .sync_steps = gpu->sync_steps,
        .used_bytes = weir_device_used_bytes(gpu->device),
    };
    snprintf(report->name, sizeof report->name, "%s", weir_device_name(gpu->device));
    double copy_s = add(report, WEIR_STAGE_H2D_COPY, &now->copy, &then->copy);
    add(report, WEIR_STAGE_PREPARE_BATCH, &now->prepare, &then->prepare);
    report->stall_s = add(report, WEIR_STAGE_WAIT_DATA, &now->stall, &then->stall);
    add(report, WEIR_STAGE_VAL_FORWARD, &now->val_step, &then->val_step);
    add(report, WEIR_STAGE_TRAIN_FORWARD, &now->train_step, &then->train_step);
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
    report->tried = now->tried;
    report->gain = now->gain;
    if (wall_s > 0)
        report->busy = fmin((double)(now->busy_ns - then->busy_ns) / 1e9 / wall_s, 1);
}

void weir_run_gpu_decode(struct weir_report_gpu *gpu, const struct weir_gpu_decode_figures *now,
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
