/* Tests motion on the fake GPU: both variants work on a device with its own memory, results equal the reference, and
 * failures in any call are reported. */
#include "extras/motion/motion_ops.h"
#include "extras/motion/tests/motion_reference.h"
#include "prof/gpu/cuda_module.h"
#include "prof/gpu/gpu_trace.h"
#include "weir/profiler.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ADVICE = 6, ENVS = 33 };

static struct weir_motion_clips *clips;
static struct weir_motion *motion;
static struct weir_err err;

static void load(const char *settings)
{
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    setenv("WEIR_FAKE_CUDA", settings, 1);
    const struct weir_motion_synthetic options = {.clips = 4, .dofs = 7, .bodies = 5, .duration_s = 2, .seed = 3};
    clips = NULL;
    motion = NULL;
    err = (struct weir_err)WEIR_ERR_NONE;
    cr_assert_eq(weir_motion_synthetic(&clips, &options, &err), 0, "%s", err.text);
    for (size_t i = 0; i < clips->clips; i++)
        clips->clip[i].loop = i % 2;
}

static void end(void)
{
    weir_motion_close(&motion);
    weir_motion_clips_free(&clips);
}

TestSuite(motion_gpu, .fini = end);

static int open_motion(enum weir_motion_variant variant, int advice, int steps)
{
    struct weir_motion_config config;
    weir_motion_config_default(&config);
    config.clips = clips;
    config.envs = ENVS;
    config.steps = steps;
    config.variant = variant;
    config.gpu = 0;
    config.advice =
        (struct weir_motion_advice){advice & 1, advice & 2, advice & 4, advice & 8, advice & 16, advice & 32};
    weir_motion_close(&motion);
    return weir_motion_open(&motion, &config, &err);
}

static void compare(enum weir_motion_variant variant, int advice, int steps)
{
    int64_t clip_of[ENVS];
    float times[3 * ENVS];
    for (int i = 0; i < ENVS; i++) {
        clip_of[i] = i % 4;
        for (int j = 0; j < steps; j++)
            times[i * steps + j] = (float)(-0.5 + 0.11 * i + 0.02 * j);
    }
    cr_assert_eq(open_motion(variant, advice, steps), 0, "%s", err.text);
    motion_compare(motion, clips, ENVS, steps, clip_of, times, variant == WEIR_MOTION_OPS ? "ops" : "fused");
}

Test(motion_gpu, agrees)
{
    load("");
    for (int steps = 1; steps <= 3; steps += 2) {
        compare(WEIR_MOTION_FUSED, 0, steps);
        for (int bit = -1; bit < ADVICE; bit++)
            compare(WEIR_MOTION_OPS, bit < 0 ? 0 : 1 << bit, steps);
        compare(WEIR_MOTION_OPS, (1 << ADVICE) - 1, steps);
    }
    cr_assert_str_eq(weir_motion_engine(motion), "GPU 0 (stand-in)");
}

Test(motion_gpu, times_advance)
{
    float before[ENVS], after[ENVS];
    load("");
    for (int variant = 0; variant < 2; variant++) {
        cr_assert_eq(open_motion(variant, 0, 1), 0, "%s", err.text);
        cr_assert_eq(weir_motion_times(motion, before, &err), 0);
        for (int i = 0; i < 3; i++)
            cr_assert_eq(weir_motion_update(motion, &err), 0);
        cr_assert_eq(weir_motion_times(motion, after, &err), 0);
        for (int i = 0; i < ENVS; i++)
            cr_assert_eq(after[i], before[i] + 0.02f + 0.02f + 0.02f);
    }
}

static struct weir_profiler *start_profiler(void)
{
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    weir_profiler_config_default(&config);
    config.gpu = true;
    cr_assert_eq(weir_profiler_open(&profiler, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_profiler_start(profiler, &err), 0, "%s", err.text);
    return profiler;
}

/* Stops the profiler and returns the clocks of the pass that it recorded. */
static struct weir_kernel_clocks stop_profiler(struct weir_profiler **profiler)
{
    struct weir_kernel_clocks clocks;
    weir_profiler_stop(*profiler);
    weir_profiler_flush(*profiler);
    cr_assert(weir_profiler_last(*profiler));
    cr_assert_eq(weir_kernel_clocks_make(&clocks, weir_profiler_last(*profiler)), 0);
    weir_profiler_close(profiler);
    return clocks;
}

/* Results equal the reference while clocks are on, and after they are off again. The motion may be closed before the
 * profiler. */
Test(motion_gpu, clocks_while_gpus_are_recorded)
{
    load("");
    for (int turn = 0; turn < 2; turn++) {
        struct weir_profiler *profiler = start_profiler();
        compare(WEIR_MOTION_FUSED, 0, 2);
        cr_assert_eq(weir_motion_update(motion, &err), 0);
        if (turn == 1)
            weir_motion_close(&motion);
        struct weir_kernel_clocks clocks = stop_profiler(&profiler);
        cr_assert_eq(clocks.n, 1);
        cr_assert_eq(clocks.at[0].launches, 2);
        cr_assert_eq(clocks.at[0].kernels, 2);
        cr_assert_eq(clocks.at[0].laps, 2 * WEIR_MOTION_STAGES);
        cr_assert_eq(clocks.at[0].n_stages, (uint32_t)WEIR_MOTION_STAGES);
        cr_assert_str_eq(clocks.at[0].stages[WEIR_MOTION_INTERPOLATION].name, "interpolation");
        weir_kernel_clocks_clear(&clocks);
        compare(WEIR_MOTION_FUSED, 0, 2);
    }
}

Test(motion_gpu, without_memory_for_clocks_it_goes_on)
{
    load("fail=oom:300000");
    struct weir_profiler *profiler = start_profiler();
    compare(WEIR_MOTION_FUSED, 0, 1);
    struct weir_kernel_clocks clocks = stop_profiler(&profiler);
    cr_assert_eq(clocks.n, 0);
    weir_kernel_clocks_clear(&clocks);
}

/* After some calls, queueing a pass or the copy of its clock table fails. */
Test(motion_gpu, lost_while_it_is_recorded)
{
    int rc = 0;
    load("fail=lost:150");
    struct weir_profiler *profiler = start_profiler();
    cr_assert_eq(open_motion(WEIR_MOTION_FUSED, 0, 1), 0, "%s", err.text);
    for (int i = 0; i < 200 && rc == 0; i++) {
        rc = weir_motion_update(motion, &err);
        rc = rc < 0 ? rc : weir_motion_finish(motion, &err);
    }
    cr_assert_eq(rc, -EIO);
    cr_assert(strstr(err.text, "is lost"), "%s", err.text);
    weir_motion_close(&motion);
    weir_profiler_close(&profiler);
}

/* The first steps succeed. Then queueing an operation fails. */
Test(motion_gpu, lost)
{
    int rc = 0;
    load("fail=lost:150");
    cr_assert_eq(open_motion(WEIR_MOTION_FUSED, 0, 1), 0, "%s", err.text);
    for (int i = 0; i < 200 && rc == 0; i++) {
        cr_assert_eq(weir_motion_update(motion, &err), 0);
        rc = weir_motion_finish(motion, &err);
    }
    cr_assert_eq(rc, -EIO);
    cr_assert(strstr(err.text, "is lost"), "%s", err.text);
    float numbers[3 * ENVS];
    memset(numbers, 1, sizeof numbers);
    cr_assert_eq(weir_motion_result(motion, WEIR_MOTION_ROOT_POS_W, numbers, &err), -EIO);
    for (int i = 0; i < 3 * ENVS; i++)
        cr_assert_eq(numbers[i], 0);
}

Test(motion_gpu, no_memory)
{
    load("memory_bytes=60000");
    cr_assert_eq(open_motion(WEIR_MOTION_FUSED, 0, 1), -ENOMEM);
    cr_assert(strstr(err.text, "use fewer environments"), "%s", err.text);
    cr_assert_null(motion);
}

/* The allocation of a temporary fails. The temporaries allocated before are freed. */
Test(motion_gpu, no_temporaries)
{
    load("fail=oom:2100");
    clips->frames = 4;
    clips->clips = 2;
    for (size_t i = 0; i < 2; i++) {
        clips->clip[i].first_frame = 2 * i;
        clips->clip[i].frames = 2;
    }
    int rc = open_motion(WEIR_MOTION_OPS, 0, 1);
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_assert_eq(weir_motion_update(motion, &err), -ENOMEM);
    cr_assert(strstr(err.text, "temporaries"), "%s", err.text);
    cr_assert_eq(weir_motion_finish(motion, &err), 0);
}

Test(motion_gpu, no_such_gpu)
{
    struct weir_motion_config config;
    load("gpus=1");
    weir_motion_config_default(&config);
    config.clips = clips;
    config.gpu = 1;
    cr_assert_eq(weir_motion_open(&motion, &config, &err), -ENODEV);
    cr_assert(strstr(err.text, "no GPU 1"), "%s", err.text);
}
