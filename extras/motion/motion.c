/* Implements the functions of motion.h: checks, the ranges of a step, and the clocks inside the kernel of the pass. */
#include "extras/motion/motion.h"
#include "base/hash.h"
#include "base/resources.h"
#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/motion_priv.h"
#include "pipeline/gpu/gpu.h"
#include "prof/gpu/clock_sources.h"
#include "prof/gpu/cuda_module.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)WEIR_MOTION_OUTPUTS == (int)WEIR_MOTION_RESULTS, "the pass must compute all results");

static const size_t queries_max = (size_t)1 << 32;

/* ---- the backends ---- */

const struct weir_motion_ops *weir_motion_ops_cuda(struct weir_err *err)
{
    return weir_cuda_module_extra("motion", err);
}

int weir_motion_gpu_check(int gpu, struct weir_err *err)
{
    int gpus;
    if (!weir_motion_ops_cuda(err))
        return err->code;
    int rc = weir_device_count(&gpus, err);
    if (rc == 0 && gpu >= gpus)
        rc = weir_err_set(err, -ENODEV, "there is no GPU %d: this machine has %d, numbered from 0", gpu, gpus);
    return rc;
}

/* ---- queries ---- */

const char *weir_motion_result_name(enum weir_motion_result result)
{
    static const char *const names[WEIR_MOTION_RESULTS] = {"root_pos_w", "root_quat",      "root_vel_w",
                                                           "root_vel_b", "root_ang_vel_w", "root_ang_vel_b",
                                                           "dof_pos",    "dof_vel",        "key_body_pos_b"};
    return names[result];
}

int weir_motion_result_width(const struct weir_motion *m, enum weir_motion_result result)
{
    switch (result) {
    case WEIR_MOTION_ROOT_QUAT:
        return 4;
    case WEIR_MOTION_DOF_POS:
    case WEIR_MOTION_DOF_VEL:
        return m->dofs;
    case WEIR_MOTION_KEY_BODY_POS_B:
        return 3 * m->bodies;
    default:
        return 3;
    }
}

int weir_motion_check_clips(const struct weir_motion *m, const int64_t *clips, size_t n, struct weir_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (clips[i] < 0 || (uint64_t)clips[i] >= m->clips)
            return weir_err_set(err, -EINVAL, "clips[%zu] is %lld: clips are numbered 0 to %zu", i, (long long)clips[i],
                                m->clips - 1);
    return 0;
}

int weir_motion_set(struct weir_motion *m, const int64_t *clips, const float *times, struct weir_err *err)
{
    int rc = weir_motion_check_clips(m, clips, m->config.envs, err);
    if (rc < 0)
        return rc;
    m->ops->copy_in(m->self, m->clip_of, clips, m->config.envs * sizeof *clips);
    m->ops->copy_in(m->self, m->times, times, m->queries * sizeof *times);
    return weir_motion_tables_expand(m, clips, err);
}

/* Returns a number from 0 (inclusive) to 1 (exclusive). */
static double random_of(uint64_t seed, uint64_t env, uint64_t use)
{
    const uint64_t key[3] = {seed, env, use};
    return (double)(weir_hash64(key, sizeof key) >> 11) * 0x1p-53;
}

/* Draws a clip, and a time in it, for each environment, both with uniform probability. (The trainer's reset weights the
 * clips, and limits the times so that all steps are within the clip.) */
static int set_first(struct weir_motion *m, struct weir_err *err)
{
    int64_t *clips = calloc(m->config.envs, sizeof *clips);
    float *times = calloc(m->queries, sizeof *times);
    int rc = clips && times ? 0 : weir_err_set(err, -ENOMEM, "out of memory");
    for (size_t env = 0; env < m->config.envs && rc == 0; env++) {
        clips[env] = (int64_t)(random_of(m->config.seed, env, 0) * (double)m->clips);
        double start = random_of(m->config.seed, env, 1) * (double)m->host_spans[clips[env]].duration_s;
        for (int step = 0; step < m->config.steps; step++)
            times[env * (size_t)m->config.steps + (size_t)step] = (float)(start + step * m->config.dt_s);
    }
    if (rc == 0)
        rc = weir_motion_set(m, clips, times, err);
    free(clips);
    free(times);
    return rc;
}

/* ---- clocks inside the kernel, while a profiler records GPUs ---- */

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

/* Tries only once to open the clocks. Errors are ignored, because the pass also works without clocks and reports GPU
 * errors itself. */
static void open_clocks(struct weir_motion *m)
{
    m->clocks_tried = true;
    if (weir_device_open(&m->gpu, m->config.gpu, NULL) < 0)
        return;
    if (weir_gpu_clocks_open(&m->clocks, m->gpu, &pass_kernel, m->ops->stream(m->self), NULL) < 0)
        weir_device_close(&m->gpu);
}

static void begin_clocks(struct weir_motion *m, struct weir_kernel_clock_table *table)
{
    if (!m->clocks_tried && m->config.gpu >= 0 && weir_clock_recording() != 0)
        open_clocks(m);
    weir_gpu_clocks_begin(m->clocks, table);
}

static int fetch_clocks(struct weir_motion *m, const struct weir_kernel_clock_table *table, struct weir_err *err)
{
    weir_gpu_clocks_launched(m->clocks, table, 0);
    return weir_gpu_clocks_fetch(m->clocks, err);
}

static void close_clocks(struct weir_motion *m)
{
    if (m->clocks)
        m->ops->finish(m->self, NULL);
    weir_gpu_clocks_close(&m->clocks);
}

/* ---- open ---- */

void weir_motion_config_default(struct weir_motion_config *config)
{
    *config = (struct weir_motion_config){.envs = 1, .gpu = -1};
}

static int check(const struct weir_motion_config *config, struct weir_err *err)
{
    const struct weir_motion_clips *clips = config->clips;
    size_t queries;
    if (config->envs < 1 || config->steps < 0 || config->threads < 0 || !isfinite(config->dt_s))
        return weir_err_set(err, -EINVAL,
                            "motion: %zu environments, %d steps, %d threads, dt %g s: use at least one "
                            "environment, no negative numbers, and a finite dt",
                            config->envs, config->steps, config->threads, config->dt_s);
    if (__builtin_mul_overflow(config->envs, (size_t)(config->steps ? config->steps : 1), &queries) ||
        queries > queries_max)
        return weir_err_set(err, -EINVAL, "motion: %zu environments with %d steps each are more than 2^32 queries",
                            config->envs, config->steps);
    if (!clips || clips->clips < 1 || clips->frames > INT32_MAX || clips->dofs > WEIR_MOTION_PARTS_MAX ||
        clips->bodies > WEIR_MOTION_PARTS_MAX)
        return weir_err_set(err, -EINVAL, "motion: there are no clips, or too many frames, dofs or bodies");
    for (size_t i = 0; i < clips->clips; i++)
        if (clips->clip[i].frames < 2 || clips->clip[i].frames > WEIR_MOTION_FRAMES_MAX)
            return weir_err_set(err, -EINVAL, "motion: clip %zu (%.64s) has %zu frames; 2 to %d are supported", i,
                                clips->clip[i].name, clips->clip[i].frames, WEIR_MOTION_FRAMES_MAX);
    return 0;
}

static int open_device(struct weir_motion *m, struct weir_err *err)
{
    const struct weir_motion_config *config = &m->config;
    const struct weir_motion_device device = {
        .threads = config->threads ? config->threads : weir_cores_usable(),
        .gpu = config->gpu,
        .stream = config->stream,
    };
    m->device = config->gpu < 0 ? WEIR_MEMORY_CPU : config->gpu;
    m->ops = config->gpu < 0 ? &weir_motion_cpu : weir_motion_ops_cuda(err);
    return m->ops ? m->ops->open(&m->self, &device, err) : err->code;
}

static void name_operators(struct weir_motion *m)
{
    static const char *const types[] = {"float", "long int", "float"};
    int64_t envs = (int64_t)m->config.envs, steps = m->config.steps;
    m->pass_name = weir_name_intern("weir::motion_pass", WEIR_CAT_CPU_OP);
    m->advance_name = weir_name_intern("aten::add_", WEIR_CAT_CPU_OP);
    m->pass_shapes = weir_shapes_intern(3, (int[]){2, 1, 2},
                                        (int64_t[]){(int64_t)m->frames, m->row.stride, envs, envs, steps}, types);
    m->advance_shapes = weir_shapes_intern(1, (int[]){2}, (int64_t[]){envs, steps}, types);
}

int weir_motion_open(struct weir_motion **out, const struct weir_motion_config *config, struct weir_err *err)
{
    *out = NULL;
    int rc = check(config, err);
    struct weir_motion *m = rc == 0 ? calloc(1, sizeof *m) : NULL;
    if (!m)
        return rc < 0 ? rc : weir_err_set(err, -ENOMEM, "out of memory");
    m->config = *config;
    m->config.clips = NULL;
    m->config.steps = config->steps ? config->steps : 1;
    m->config.dt_s = config->dt_s != 0 ? config->dt_s : 0.02;
    m->clips = config->clips->clips;
    m->frames = config->clips->frames;
    m->dofs = (int)config->clips->dofs;
    m->bodies = (int)config->clips->bodies;
    m->queries = config->envs * (size_t)m->config.steps;
    m->row = weir_motion_row_of(m->dofs, m->bodies);
    rc = open_device(m, err);
    if (rc == 0)
        rc = weir_motion_tables_open(m, config->clips, err);
    if (rc == 0 && weir_motion_eager_open(m) < 0)
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = set_first(m, err);
    if (rc == 0)
        rc = weir_motion_finish(m, err);
    name_operators(m);
    if (rc < 0)
        weir_motion_close(&m);
    *out = m;
    return rc;
}

void weir_motion_close(struct weir_motion **motion)
{
    struct weir_motion *m = *motion;
    if (!m)
        return;
    if (m->self) {
        close_clocks(m);
        weir_motion_eager_close(m);
        weir_motion_tables_close(m);
        m->ops->close(m->self);
    }
    weir_device_close(&m->gpu);
    free(m->host_spans);
    free(m);
    *motion = NULL;
}

const char *weir_motion_engine(const struct weir_motion *m)
{
    return m->ops->describe(m->self);
}

/* ---- a step ---- */

/* Runs the fused pass, which is a single operator. */
static int run_pass(struct weir_motion *m, const struct weir_motion_queries *queries, struct weir_err *err)
{
    struct weir_motion_pass pass = {.envs = queries->envs,
                                    .steps = queries->steps,
                                    .dofs = m->dofs,
                                    .bodies = m->bodies,
                                    .row = m->row,
                                    .frames = m->rows,
                                    .spans = m->spans,
                                    .clip_of = queries->clips,
                                    .times = queries->times};
    memcpy(pass.results, queries->results, sizeof pass.results);
    WEIR_RANGE("get_motion_state_call");
    WEIR_RANGE("get_motion_state");
    struct weir_range range = weir_range_begin(m->pass_name);
    weir_range_shapes(&range, m->pass_shapes);
    begin_clocks(m, &pass.clocks);
    m->ops->pass(m->self, &pass);
    int rc = fetch_clocks(m, &pass.clocks, err);
    weir_range_end(&range);
    return rc;
}

static int fetch_fused(struct weir_motion *m, struct weir_err *err)
{
    struct weir_motion_queries queries = {
        .envs = m->config.envs, .steps = m->config.steps, .clips = m->clip_of, .times = m->times};
    memcpy(queries.results, m->results, sizeof queries.results);
    return run_pass(m, &queries, err);
}

int weir_motion_sample(struct weir_motion *m, const struct weir_motion_queries *queries, struct weir_err *err)
{
    size_t n;
    assert(m->config.variant == WEIR_MOTION_FUSED);
    if (queries->envs < 1 || queries->steps < 1 || __builtin_mul_overflow(queries->envs, (size_t)queries->steps, &n) ||
        n > queries_max)
        return weir_err_set(err, -EINVAL,
                            "motion: %zu environments with %d steps each: 1 to 2^32 queries are supported",
                            queries->envs, queries->steps);
    int rc = m->config.gpu < 0 ? weir_motion_check_clips(m, queries->clips, queries->envs, err) : 0;
    return rc == 0 ? run_pass(m, queries, err) : rc;
}

void *weir_motion_stream(struct weir_motion *m)
{
    return m->ops->stream ? m->ops->stream(m->self) : NULL;
}

int weir_motion_fetch(struct weir_motion *m, struct weir_err *err)
{
    WEIR_RANGE("AnimationTerm::_fetch_motion_data");
    if (m->config.variant == WEIR_MOTION_FUSED)
        return fetch_fused(m, err);
    int rc = weir_motion_eager_fetch(m);
    if (rc == 0)
        return 0;
    int why = m->ops->finish(m->self, err); /* an error here explains the failed allocation */
    return why < 0 ? why
                   : weir_err_set(err, rc,
                                  "motion: out of memory for the temporaries of %zu queries; use fewer "
                                  "environments",
                                  m->queries);
}

static void advance(struct weir_motion *m)
{
    struct weir_range range = weir_range_begin(m->advance_name);
    weir_range_shapes(&range, m->advance_shapes);
    m->ops->advance(m->self, m->queries, m->times, (float)m->config.dt_s);
    weir_range_end(&range);
}

int weir_motion_update(struct weir_motion *m, struct weir_err *err)
{
    WEIR_RANGE("AnimationTerm::update");
    int rc = weir_motion_fetch(m, err);
    if (rc == 0)
        advance(m);
    return rc;
}

int weir_motion_finish(struct weir_motion *m, struct weir_err *err)
{
    return m->ops->finish(m->self, err);
}

int weir_motion_result(struct weir_motion *m, enum weir_motion_result result, float *to, struct weir_err *err)
{
    size_t width = (size_t)weir_motion_result_width(m, result);
    m->ops->copy_out(m->self, to, m->results[result], m->queries * width * sizeof *to);
    return weir_motion_finish(m, err);
}

int weir_motion_times(struct weir_motion *m, float *to, struct weir_err *err)
{
    m->ops->copy_out(m->self, to, m->times, m->queries * sizeof *to);
    return weir_motion_finish(m, err);
}

int weir_motion_operators(const struct weir_motion *m)
{
    return m->config.variant == WEIR_MOTION_FUSED ? 1 : m->eager.count;
}
