/* Tests motion for many environments: compares both variants, with all advice, to the float64 reference. */
#include "extras/motion/tests/motion_reference.h"
#include "weir/recorder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct weir_motion_clips *clips;
static struct weir_motion *motion;
static struct weir_err err;

static void start(void)
{
    clips = NULL;
    motion = NULL;
    err = (struct weir_err)WEIR_ERR_NONE;
}

static void end(void)
{
    weir_motion_close(&motion);
    weir_motion_clips_free(&clips);
}

TestSuite(motion, .init = start, .fini = end);

/* Makes clips, every second of which loops. */
static void make_clips(size_t n, size_t dofs, size_t bodies, double duration_s)
{
    const struct weir_motion_synthetic options = {
        .clips = n, .dofs = dofs, .bodies = bodies, .duration_s = duration_s, .fps = 50, .seed = 3};
    weir_motion_clips_free(&clips);
    cr_assert_eq(weir_motion_synthetic(&clips, &options, &err), 0, "%s", err.text);
    for (size_t i = 0; i < n; i++)
        clips->clip[i].loop = i % 2;
}

static const char *const advice_names[] = {"indices",   "in_place_lerp", "fast_slerp",
                                           "rotations", "no_copies",     "preallocated"};
enum { ADVICE = 6, ALL_ADVICE = (1 << ADVICE) - 1 };

static struct weir_motion_advice advice_of(int bits)
{
    return (struct weir_motion_advice){bits & 1, bits & 2, bits & 4, bits & 8, bits & 16, bits & 32};
}

static void open_motion(size_t envs, int steps, enum weir_motion_variant variant, int advice, int threads)
{
    struct weir_motion_config config;
    weir_motion_config_default(&config);
    config.clips = clips;
    config.envs = envs;
    config.steps = steps;
    config.variant = variant;
    config.advice = advice_of(advice);
    config.threads = threads;
    weir_motion_close(&motion);
    cr_assert_eq(weir_motion_open(&motion, &config, &err), 0, "%s", err.text);
}

/* Assigns the clips in rotation, and random times from a second before the clip's beginning to a second after its end.
 */
static void ask(size_t envs, int steps, int64_t *clip_of, float *times)
{
    uint64_t random = 7;
    for (size_t i = 0; i < envs; i++) {
        clip_of[i] = (int64_t)(i % clips->clips);
        for (int j = 0; j < steps; j++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            double part = (double)(random >> 11) * 0x1p-53;
            times[i * (size_t)steps + (size_t)j] = (float)(part * (clips->clip[clip_of[i]].duration_s + 2) - 1);
        }
    }
}

static double compare(size_t envs, int steps, enum weir_motion_variant variant, int advice, int threads)
{
    int64_t *clip_of = calloc(envs, sizeof *clip_of);
    float *times = calloc(envs * (size_t)steps, sizeof *times);
    char what[96];
    cr_assert(clip_of && times);
    ask(envs, steps, clip_of, times);
    snprintf(what, sizeof what, "%s, advice %02x, %zu x %d, %d threads", variant == WEIR_MOTION_OPS ? "ops" : "fused",
             (unsigned)advice, envs, steps, threads);
    open_motion(envs, steps, variant, advice, threads);
    double most = motion_compare(motion, clips, envs, steps, clip_of, times, what);
    free(clip_of);
    free(times);
    return most;
}

Test(motion, fused_agrees)
{
    static const struct {
        size_t dofs, bodies;
    } sizes[] = {{29, 13}, {1, 1}, {7, 2}, {3, 20}, {64, 31}};
    static const size_t envs[] = {1, 2, 15, 16, 17, 50};
    double most = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        make_clips(5, sizes[i].dofs, sizes[i].bodies, 4);
        for (size_t j = 0; j < sizeof envs / sizeof envs[0]; j++)
            for (int steps = 1; steps <= 3; steps++)
                most = fmax(most, compare(envs[j], steps, WEIR_MOTION_FUSED, 0, 1));
    }
    cr_log_info("the largest error is %.2f of the tolerance", most);
}

/* Numbers that a thread writes after a query's results must never overwrite another thread's results. */
Test(motion, fused_in_threads)
{
    make_clips(5, 1, 1, 4);
    for (size_t envs = 1024; envs < 1060; envs += 7)
        for (int threads = 2; threads <= 5; threads++)
            compare(envs, 1, WEIR_MOTION_FUSED, 0, threads);
    make_clips(5, 3, 2, 4);
    compare(521, 2, WEIR_MOTION_FUSED, 0, 3);
}

Test(motion, ops_agree)
{
    double most = 0;
    make_clips(5, 29, 13, 4);
    for (int advice = 0; advice <= ALL_ADVICE; advice++)
        for (int steps = 1; steps <= 3; steps += 2)
            most = fmax(most, compare(33, steps, WEIR_MOTION_OPS, advice, 2));
    cr_log_info("the largest error is %.2f of the tolerance", most);
}

Test(motion, sizes)
{
    make_clips(3, 1, 1, 2);
    for (int bit = -1; bit < ADVICE; bit++)
        compare(9, 2, WEIR_MOTION_OPS, bit < 0 ? ALL_ADVICE : 1 << bit, 1);
    make_clips(3, 18, 6, 2);
    for (int bit = -1; bit < ADVICE; bit++)
        compare(9, 2, WEIR_MOTION_OPS, bit < 0 ? 0 : 1 << bit, 1);
}

/* Enough queries that the operators use several threads. */
Test(motion, many)
{
    make_clips(8, 1, 1, 10);
    compare(33000, 1, WEIR_MOTION_OPS, 0, 3);
    make_clips(8, 29, 13, 10);
    compare(1001, 2, WEIR_MOTION_OPS, ALL_ADVICE, 3);
    compare(1001, 2, WEIR_MOTION_FUSED, 0, 3);
}

/* ---- position in the clip ---- */

/* Makes two clips of 51 frames at 50 frames per second, which last exactly one second. */
static void second_clips(void)
{
    make_clips(2, 29, 13, 1);
    size_t frames = 51;
    cr_assert(clips->frames >= 2 * frames);
    for (size_t i = 0; i < 2; i++) {
        clips->clip[i].first_frame = i * frames;
        clips->clip[i].frames = frames;
        clips->clip[i].duration_s = 1;
    }
    clips->frames = 2 * frames;
}

static void compare_times(const float *times, size_t n)
{
    for (int clip = 0; clip < 2; clip++)
        for (int variant = 0; variant < 2; variant++)
            for (int advice = 0; advice <= (variant == WEIR_MOTION_OPS ? ALL_ADVICE : 0); advice += ALL_ADVICE) {
                int64_t *clip_of = calloc(n, sizeof *clip_of);
                cr_assert(clip_of);
                for (size_t i = 0; i < n; i++)
                    clip_of[i] = clip;
                open_motion(n, 1, variant, advice, 1);
                motion_compare(motion, clips, n, 1, clip_of, times, clip ? "loop" : "clamp");
                free(clip_of);
            }
}

static void dof_pos_of(float time, int64_t clip, enum weir_motion_variant variant, float *to)
{
    open_motion(1, 1, variant, 0, 1);
    cr_assert_eq(weir_motion_set(motion, &clip, &time, &err), 0);
    cr_assert_eq(weir_motion_fetch(motion, &err), 0);
    cr_assert_eq(weir_motion_result(motion, WEIR_MOTION_DOF_POS, to, &err), 0);
}

static void expect_frame(float time, int64_t clip, size_t frame)
{
    float got[29];
    const float *wanted = clips->dof_pos + 29 * (clips->clip[clip].first_frame + frame);
    for (int variant = 0; variant < 2; variant++) {
        dof_pos_of(time, clip, variant, got);
        for (int i = 0; i < 29; i++)
            cr_assert_float_eq((double)got[i], (double)wanted[i], 2e-6,
                               "time %g, clip %d, variant %d, dof %d: %g instead of %g", (double)time, (int)clip,
                               variant, i, (double)got[i], (double)wanted[i]);
    }
}

Test(motion, ends)
{
    static const float times[] = {-100,  -1.5f, -1,         -0.75f, -1e-30f, -0.0f, 0,    1e-30f,
                                  0.01f, 0.5f,  0.9999999f, 1,      1.0001f, 1.5f,  2.0f, 1000.25f};
    second_clips();
    compare_times(times, sizeof times / sizeof times[0]);
    expect_frame(-3, 0, 0);
    expect_frame(0, 0, 0);
    expect_frame(1, 0, 50);
    expect_frame(7, 0, 50);
    expect_frame(0, 1, 0);
    expect_frame(1, 1, 0); /* a looping clip restarts at its end */
    expect_frame(1.5f, 1, 25);
    expect_frame(-0.26f, 1, 37);
    expect_frame(-0.5f, 1, 25);
}

Test(motion, huge)
{
    const float times[] = {1e9f,      -1e9f, 3.4e38f, -3.4e38f,   16777216,    -16777218, INFINITY,
                           -INFINITY, NAN,   -NAN,    8388607.5f, -8388607.5f, 1e-44f,    -1e-44f};
    second_clips();
    compare_times(times, sizeof times / sizeof times[0]);
    expect_frame(1e9f, 0, 50);
    expect_frame(INFINITY, 0, 50);
    expect_frame(-INFINITY, 0, 0);
    expect_frame(NAN, 0, 0);
    expect_frame(NAN, 1, 0);
    expect_frame(INFINITY, 1, 0);
    expect_frame(16777216, 1, 0);
}

/* With steps of one frame, the times visit all frames in order. */
Test(motion, frame_steps)
{
    float times[52];
    second_clips();
    for (int i = 0; i < 52; i++)
        times[i] = (float)i / 50;
    compare_times(times, 52);
    for (size_t i = 0; i < 50; i++) {
        expect_frame((float)i / 50, 0, i);
        expect_frame((float)i / 50, 1, i);
    }
}

/* The float32 position must equal the float64 position, except for the rounding of time, duration and phase. */
Test(motion, places)
{
    make_clips(4, 1, 1, 8);
    for (int variant = 0; variant < 2; variant++)
        for (int64_t clip = 0; clip < 4; clip++)
            for (int i = 0; i < 500; i++) {
                const struct weir_motion_clip *c = &clips->clip[clip];
                float got, time = (float)(c->duration_s * (i + 0.37) / 500);
                double at = (double)time / c->duration_s * (double)(c->frames - 1), frame = floor(at);
                const float *of = clips->dof_pos + c->first_frame + (size_t)frame;
                double wanted = (double)of[0] + (at - frame) * (double)(of[1] - of[0]);
                dof_pos_of(time, clip, variant, &got);
                cr_assert_float_eq((double)got, wanted, 1e-6 + (double)c->frames * 0x1p-22 * 0.15, "%d %g", (int)clip,
                                   (double)time);
            }
}

/* ---- quaternions ---- */

static void set_quat(size_t frame, double w, double x, double y, double z)
{
    double length = sqrt(w * w + x * x + y * y + z * z);
    const double values[4] = {w / length, x / length, y / length, z / length};
    for (int i = 0; i < 4; i++)
        clips->root_quat[4 * frame + (size_t)i] = (float)values[i];
}

Test(motion, quaternions)
{
    float times[500];
    second_clips();
    for (size_t first = 0; first < clips->frames; first += 51) {
        set_quat(first + 0, 1, 2, 3, 4);
        set_quat(first + 1, 1, 2, 3, 4);         /* equal to the previous one */
        set_quat(first + 2, -1, -2, -3, -4);     /* antipodal, which is the same rotation */
        set_quat(first + 3, -1, -2, -3, -4.001); /* nearly equal */
        set_quat(first + 4, 1, 2, 3, 4.002);     /* nearly antipodal */
        set_quat(first + 5, -2, 1, -4, 3);       /* orthogonal, which is half a turn */
        set_quat(first + 6, 2, -1, 4, -2.999);   /* nearly antipodal to the previous one */
        set_quat(first + 7, 1, 0, 0, 0);
        set_quat(first + 8, 0, 1, 0, 0);
        set_quat(first + 9, -1e-6, -1, 0, 0);
    }
    for (int i = 0; i < 500; i++)
        times[i] = (float)(0.2 * i / 499);
    compare_times(times, 500);
}

Test(motion, unit_quaternions)
{
    enum { ENVS = 3000 };
    static float quats[4 * ENVS];
    make_clips(6, 3, 2, 5);
    for (int variant = 0; variant < 2; variant++) {
        open_motion(ENVS, 1, variant, 0, 2);
        cr_assert_eq(weir_motion_fetch(motion, &err), 0);
        cr_assert_eq(weir_motion_result(motion, WEIR_MOTION_ROOT_QUAT, quats, &err), 0);
        for (int i = 0; i < ENVS; i++) {
            double length = 0;
            for (int j = 0; j < 4; j++)
                length += (double)quats[4 * i + j] * (double)quats[4 * i + j];
            cr_assert_float_eq(sqrt(length), 1, 2e-6, "%d: %g", i, sqrt(length));
        }
    }
}

/* ---- steps, threads, memory ---- */

static void all_results(float *to)
{
    for (int result = 0; result < WEIR_MOTION_RESULTS; result++) {
        cr_assert_eq(weir_motion_result(motion, result, to, &err), 0);
        to += 1500 * weir_motion_result_width(motion, result);
    }
}

/* Results do not depend on the number of threads. */
Test(motion, threads_change_nothing)
{
    size_t bytes = (size_t)1500 * (19 + 2 * 29 + 3 * 13) * sizeof(float);
    float *one = malloc(bytes), *more = malloc(bytes);
    make_clips(8, 29, 13, 3);
    for (int variant = 0; variant < 2; variant++)
        for (int threads = 1; threads <= 4; threads++) {
            open_motion(1500, 1, variant, 0, threads);
            for (int i = 0; i < 3; i++)
                cr_assert_eq(weir_motion_update(motion, &err), 0);
            all_results(threads == 1 ? one : more);
            cr_assert(threads == 1 || memcmp(one, more, bytes) == 0, "variant %d, %d threads", variant, threads);
        }
    free(one);
    free(more);
}

Test(motion, times_advance)
{
    float times[6], before[6];
    make_clips(2, 3, 2, 2);
    for (int variant = 0; variant < 2; variant++) {
        struct weir_motion_config config;
        weir_motion_config_default(&config);
        config.clips = clips;
        config.envs = 2;
        config.steps = 3;
        config.dt_s = 0.25;
        config.seed = 11;
        config.variant = variant;
        weir_motion_close(&motion);
        cr_assert_eq(weir_motion_open(&motion, &config, &err), 0, "%s", err.text);
        cr_assert_eq(weir_motion_times(motion, before, &err), 0);
        cr_assert_eq(weir_motion_fetch(motion, &err), 0);
        cr_assert_eq(weir_motion_update(motion, &err), 0);
        cr_assert_eq(weir_motion_times(motion, times, &err), 0);
        for (int i = 0; i < 6; i++) {
            cr_assert_eq(times[i], before[i] + 0.25f);
            cr_assert(before[i] >= 0 && before[i] < 4);
            if (i % 3)
                cr_assert_float_eq((double)(before[i] - before[i - 1]), 0.25, 1e-6);
        }
        cr_assert_eq(weir_motion_finish(motion, &err), 0);
        cr_assert(*weir_motion_engine(motion));
    }
}

Test(motion, operators)
{
    static const int counts[ADVICE] = {65, 86, 68, 77, 84, 77};
    make_clips(2, 29, 13, 2);
    for (int advice = 0; advice < ADVICE; advice++) {
        open_motion(8, 1, WEIR_MOTION_OPS, 1 << advice, 1);
        cr_assert_eq(weir_motion_operators(motion), 0);
        cr_assert_eq(weir_motion_fetch(motion, &err), 0);
        cr_assert_eq(weir_motion_operators(motion), counts[advice], "%s: %d", advice_names[advice],
                     weir_motion_operators(motion));
    }
    open_motion(8, 1, WEIR_MOTION_OPS, 0, 1);
    cr_assert_eq(weir_motion_fetch(motion, &err), 0);
    cr_assert_eq(weir_motion_operators(motion), 86);
    open_motion(8, 1, WEIR_MOTION_FUSED, 0, 1);
    cr_assert_eq(weir_motion_operators(motion), 1);
}

static int64_t allocated(void)
{
    int64_t now, reserved;
    weir_memory_totals(WEIR_MEMORY_CPU, &now, &reserved);
    return now;
}

Test(motion, memory_balances)
{
    make_clips(2, 29, 13, 2);
    int64_t before = allocated();
    for (int advice = 0; advice <= ALL_ADVICE; advice++)
        for (int steps = 1; steps <= 2; steps++) {
            open_motion(100, steps, WEIR_MOTION_OPS, advice, 1);
            cr_assert_eq(weir_motion_fetch(motion, &err), 0);
            int64_t after = allocated();
            cr_assert_gt(after, before);
            for (int i = 0; i < 3; i++)
                cr_assert_eq(weir_motion_update(motion, &err), 0);
            cr_assert_eq(allocated(), after);
            weir_motion_close(&motion);
            cr_assert_eq(allocated(), before, "advice %02x", (unsigned)advice);
        }
}

/* ---- refusals ---- */

static void refuse(const struct weir_motion_config *config, int code, const char *text)
{
    err = (struct weir_err)WEIR_ERR_NONE;
    cr_assert_eq(weir_motion_open(&motion, config, &err), code, "%d: %s", err.code, err.text);
    cr_assert_null(motion);
    cr_assert(strstr(err.text, text), "%s", err.text);
}

Test(motion, refusals)
{
    struct weir_motion_config config, good;
    make_clips(2, 3, 2, 1);
    weir_motion_config_default(&config);
    refuse(&config, -EINVAL, "no clips");
    config.clips = clips;
    good = config;
    config.envs = 0;
    refuse(&config, -EINVAL, "at least one environment");
    config.envs = SIZE_MAX;
    config.steps = 2;
    refuse(&config, -EINVAL, "more than 2^32 queries");
    config = good;
    config.steps = -1;
    refuse(&config, -EINVAL, "-1 steps");
    config = good;
    config.dt_s = NAN;
    refuse(&config, -EINVAL, "dt nan s");
    config = good;
    size_t frames = clips->clip[1].frames;
    clips->clip[1].frames = (1 << 24) + 1;
    refuse(&config, -EINVAL, "clip 1 (synthetic_1) has 16777217 frames");
    clips->clip[1].frames = 1;
    refuse(&config, -EINVAL, "has 1 frames");
    clips->clip[1].frames = frames;
    cr_assert_eq(weir_motion_open(&motion, &config, &err), 0, "%s", err.text);
    for (int64_t bad = -1; bad <= 2; bad += 3) {
        float time = 0;
        err = (struct weir_err)WEIR_ERR_NONE;
        cr_assert_eq(weir_motion_set(motion, &bad, &time, &err), -EINVAL);
        cr_assert(strstr(err.text, ": clips are numbered 0 to "), "%s", err.text);
    }
    weir_motion_close(&motion);
    weir_motion_close(&motion);
}

/* ---- the caller's own queries ---- */

enum { CANARY = 32 };

/* Returns memory for n numbers and for those that a backend may write after them, followed by numbers that must not
 * change. */
static float *guarded(size_t n)
{
    float *memory = aligned_alloc(64, ((n + WEIR_MOTION_SPARE + CANARY) * sizeof *memory + 63) / 64 * 64);
    cr_assert(memory);
    for (size_t i = 0; i < CANARY; i++)
        memory[n + WEIR_MOTION_SPARE + i] = 12345;
    return memory;
}

static void sample(size_t envs, int steps)
{
    size_t n = envs * (size_t)steps;
    int64_t *clip_of = calloc(envs, sizeof *clip_of);
    float *times = calloc(n, sizeof *times);
    struct motion_number *wanted = calloc(3 * clips->bodies + clips->dofs + 4, sizeof *wanted);
    cr_assert(clip_of && times && wanted);
    ask(envs, steps, clip_of, times);
    struct weir_motion_queries queries = {.envs = envs, .steps = steps, .clips = clip_of, .times = times};
    for (int i = 0; i < WEIR_MOTION_RESULTS; i++)
        queries.results[i] = guarded(n * (size_t)weir_motion_result_width(motion, i));
    cr_assert_eq(weir_motion_sample(motion, &queries, &err), 0, "%s", err.text);
    for (int result = 0; result < WEIR_MOTION_RESULTS; result++) {
        size_t width = (size_t)weir_motion_result_width(motion, result);
        const float *got = queries.results[result], *canary = got + n * width + WEIR_MOTION_SPARE;
        for (size_t i = 0; i < n; i++) {
            motion_reference(clips, clip_of[i / (size_t)steps], times[i], result, wanted);
            for (size_t j = 0; j < width; j++)
                cr_assert(fabs((double)got[i * width + j] - wanted[j].value) <= wanted[j].off + 1e-30,
                          "%s[%zu] of query %zu is wrong", weir_motion_result_name(result), j, i);
        }
        for (int i = 0; i < CANARY; i++)
            cr_assert(canary[i] == 12345, "%s: written past the spare numbers", weir_motion_result_name(result));
        free(queries.results[result]);
    }
    free(clip_of);
    free(times);
    free(wanted);
}

/* The caller's number of queries may differ from the configuration. */
Test(motion, queries_of_the_caller)
{
    static const size_t sizes[] = {1, 3, 16, 17, 1100, 2};
    make_clips(5, 7, 3, 4);
    open_motion(4, 1, WEIR_MOTION_FUSED, 0, 3);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int steps = 1; steps <= 3; steps += 2)
            sample(sizes[i], steps);
}

Test(motion, queries_that_cannot_be)
{
    int64_t clip = 0;
    float time = 0;
    struct weir_motion_queries queries = {.envs = 1, .steps = 1, .clips = &clip, .times = &time};
    make_clips(2, 1, 1, 1);
    open_motion(1, 1, WEIR_MOTION_FUSED, 0, 1);
    for (clip = -1; clip <= 2; clip += 3) {
        err = (struct weir_err)WEIR_ERR_NONE;
        cr_assert_eq(weir_motion_sample(motion, &queries, &err), -EINVAL);
        cr_assert(strstr(err.text, "clips[0] is "), "%s", err.text);
    }
    static const struct {
        size_t envs;
        int steps;
    } bad[] = {{0, 1}, {1, 0}, {1, -1}, {SIZE_MAX, 2}, {(size_t)1 << 32, 2}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (struct weir_err)WEIR_ERR_NONE;
        queries.envs = bad[i].envs;
        queries.steps = bad[i].steps;
        cr_assert_eq(weir_motion_sample(motion, &queries, &err), -EINVAL);
        cr_assert(strstr(err.text, "1 to 2^32 queries are supported"), "%s", err.text);
    }
}
