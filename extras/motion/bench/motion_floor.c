/* motion_floor: computes lower bounds for the time of a motion step (motion.h, with the clips of weir motion --motion
 * synthetic) on GPU 0. A bound is the number of bytes that a step must move, divided by the measured copy rate of the
 * GPU's memory. The first bound assumes that times, clips and all frames are read once and results are written once.
 * The second assumes that both frames of each query are read from memory, as if there were no cache. Usage:
 * motion_floor [ENVIRONMENTS...] (default 4096 1000000) */
#include "bench/bench_gpu.h"
#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/motion_ops.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 9, COPIES = 10 };
static const size_t copied = (size_t)1 << 30;

struct gpu {
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    void *stream, *from, *to, *begin, *end;
};

static int prepare(struct gpu *g, struct weir_err *err)
{
    int rc = bench_gpu_open(&g->ops, &g->gpu, err);
    if (rc == 0)
        rc = g->ops->stream_new(g->gpu, false, &g->stream, err);
    if (rc == 0)
        rc = g->ops->event_new(g->gpu, true, &g->begin, err);
    if (rc == 0)
        rc = g->ops->event_new(g->gpu, true, &g->end, err);
    if (rc == 0)
        rc = g->ops->alloc(g->gpu, copied, &g->from, err);
    return rc == 0 ? g->ops->alloc(g->gpu, copied, &g->to, err) : rc;
}

/* Measures the duration of several consecutive copies in ns. */
static int time_copies(struct gpu *g, int64_t *ns, struct weir_err *err)
{
    int rc = g->ops->record(g->gpu, g->begin, g->stream, err);
    for (int i = 0; i < COPIES && rc == 0; i++)
        rc = g->ops->copy_within(g->gpu, g->to, g->from, copied, g->stream, err);
    if (rc == 0)
        rc = g->ops->record(g->gpu, g->end, g->stream, err);
    if (rc == 0)
        rc = g->ops->wait(g->gpu, g->end, err);
    return rc == 0 ? g->ops->elapsed(g->gpu, g->begin, g->end, ns, err) : rc;
}

/* Measures how many bytes per second a copy reads and writes, as the best of several rounds. */
static int measure(double *rate, struct weir_err *err)
{
    struct gpu g = {0};
    int64_t ns;
    int rc = prepare(&g, err);
    *rate = 0;
    for (int round = 0; round < ROUNDS && rc == 0; round++) {
        rc = time_copies(&g, &ns, err);
        double now = rc == 0 && ns > 0 ? 2.0 * COPIES * (double)copied / (double)ns * 1e9 : 0;
        *rate = now > *rate ? now : *rate;
    }
    if (!g.gpu)
        return rc;
    g.ops->free(g.gpu, g.from);
    g.ops->free(g.gpu, g.to);
    if (g.begin)
        g.ops->event_free(g.gpu, g.begin);
    if (g.end)
        g.ops->event_free(g.gpu, g.end);
    if (g.stream)
        g.ops->stream_free(g.gpu, g.stream);
    g.ops->close(&g.gpu);
    return rc;
}

int main(int argc, char **argv)
{
    static const char *const defaults[] = {"4096", "1000000"};
    struct weir_motion_clips *clips;
    struct weir_err err = WEIR_ERR_NONE;
    double rate;
    if (measure(&rate, &err) < 0 || weir_motion_synthetic(&clips, NULL, &err) < 0) {
        fprintf(stderr, "motion_floor: %s\n", err.text);
        return 1;
    }
    struct weir_motion_row row = weir_motion_row_of((int)clips->dofs, (int)clips->bodies);
    double row_bytes = row.stride * (double)sizeof(float);
    /* results, with 6 more numbers for the velocities in the root's frame; times, read twice and written once; clip
     * numbers */
    double query = (row.used + 6) * (double)sizeof(float) + 3 * sizeof(float) + sizeof(int64_t);
    printf("copy rate: %.0f GB/s (bytes read and written)\n", rate / 1e9);
    for (int i = 1; i < (argc > 1 ? argc : 3); i++) {
        double envs = strtod(argc > 1 ? argv[i] : defaults[i - 1], NULL);
        printf("%.0f environments: at least %.4f ms per step, or %.4f ms if both frames of each query are read from "
               "memory\n",
               envs, (envs * query + (double)clips->frames * row_bytes) / rate * 1e3,
               envs * (query + 2 * row_bytes) / rate * 1e3);
    }
    weir_motion_clips_free(&clips);
    return 0;
}
