/* Clocks inside the kernel of the pass, used only while a profiler records GPUs. */
#include "extras/motion/motion_priv.h"
#include "prof/gpu/clock_sources.h"

static const struct weir_kernel_clock_kernel pass_kernel = {
    .name = "motion_pass_clocked",
    .stages = (const char *const[]){[WEIR_MOTION_CALC_FRAME_BLEND] = "calc_frame_blend",
                                    [WEIR_MOTION_INDEXING_DATA] = "indexing_data",
                                    [WEIR_MOTION_INTERPOLATION] = "interpolation",
                                    [WEIR_MOTION_COORDINATE_TRANSFORM] = "coordinate_transform",
                                    [WEIR_MOTION_STORE_BUFFERS] = "store_buffers"},
    .n_stages = WEIR_MOTION_STAGES,
    .rows_max = WEIR_MOTION_ITERATIONS,
};

/* Tried once. The pass runs without clocks too, and reports GPU errors itself. */
static void open_clocks(struct weir_motion *m)
{
    m->clocks_tried = true;
    if (weir_device_open(&m->gpu, m->config.gpu, NULL) < 0)
        return;
    if (weir_gpu_clocks_open(&m->clocks, m->gpu, &pass_kernel, m->ops->stream(m->self), NULL) < 0)
        weir_device_close(&m->gpu);
}

void weir_motion_clocks_begin(struct weir_motion *m, struct weir_kernel_clock_table *table)
{
    if (!m->clocks_tried && m->config.gpu >= 0 && weir_clock_recording() != 0)
        open_clocks(m);
    weir_gpu_clocks_begin(m->clocks, table);
}

int weir_motion_clocks_fetch(struct weir_motion *m, const struct weir_kernel_clock_table *table, struct weir_err *err)
{
    weir_gpu_clocks_launched(m->clocks, table, 0);
    return weir_gpu_clocks_fetch(m->clocks, err);
}

void weir_motion_clocks_close(struct weir_motion *m)
{
    if (m->clocks)
        m->ops->finish(m->self, NULL);
    weir_gpu_clocks_close(&m->clocks);
}
