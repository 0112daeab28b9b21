/* Tests motion on a GPU. Both variants, ops with and without the usual advice, are compared with the float64 reference.
 * Without advice they are also compared with the CPU backend, and two runs must give the same bits. Half of the clips
 * loop, and the times range from before the beginning of the clip to after its end. The numbers of queries include the
 * size of a warp's tile (8 or 32), one less and one more. Some rows are so wide that a warp holds only one of them, and
 * the largest size has more environments than the GPU can process at the same time. The argument "few" skips that size,
 * for compute-sanitizer. */
#include "extras/motion/motion_ops.h"
#include "extras/motion/tests/motion_reference.h"
#include "tests/gpu/gpu_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADVICE = 6, ALL_ADVICE = (1 << ADVICE) - 1, MANY = 1000003 };

static struct weir_err err;

/* ---- clips, queries ---- */

static struct weir_motion_clips *make_clips(size_t dofs, size_t bodies)
{
    struct weir_motion_clips *clips;
    const struct weir_motion_synthetic options = {
        .clips = 8, .dofs = dofs, .bodies = bodies, .duration_s = 4, .fps = 50, .seed = 3};
    gpufx_fine(weir_motion_synthetic(&clips, &options, &err), &err);
    for (size_t i = 0; i < clips->clips; i++)
        clips->clip[i].loop = i % 2;
    return clips;
}

struct queries {
    size_t envs;
    int steps;
    int64_t *clip_of;
    float *times;
};

/* Draws times from a second before the beginning of the clip to a second after its end. Some times are NaN, infinite or
 * extreme. */
static struct queries draw(const struct weir_motion_clips *clips, size_t envs, int steps)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f, 1e-44f, 0, -0.0f};
    struct queries q = {envs, steps, calloc(envs, sizeof *q.clip_of), calloc(envs * (size_t)steps, sizeof *q.times)};
    gpufx_check(q.clip_of && q.times, "out of memory");
    uint64_t random = 7;
    for (size_t i = 0; i < envs * (size_t)steps; i++) {
        int64_t clip = (int64_t)(i / (size_t)steps * 5 % clips->clips);
        random = random * 6364136223846793005u + 1442695040888963407u;
        q.clip_of[i / (size_t)steps] = clip;
        q.times[i] = (float)((double)(random >> 11) * 0x1p-53 * (clips->clip[clip].duration_s + 2) - 1);
        if (i % 13 == 12)
            q.times[i] = odd[i / 13 % (sizeof odd / sizeof odd[0])];
    }
    return q;
}

static void drop(struct queries *q)
{
    free(q->clip_of);
    free(q->times);
}

static struct weir_motion *open_motion(const struct weir_motion_clips *clips, const struct queries *q, int gpu,
                                       enum weir_motion_variant variant, int advice)
{
    struct weir_motion *motion;
    struct weir_motion_config config;
    weir_motion_config_default(&config);
    config.clips = clips;
    config.envs = q->envs;
    config.steps = q->steps;
    config.variant = variant;
    config.gpu = gpu;
    config.advice =
        (struct weir_motion_advice){advice & 1, advice & 2, advice & 4, advice & 8, advice & 16, advice & 32};
    gpufx_fine(weir_motion_open(&motion, &config, &err), &err);
    gpufx_fine(weir_motion_set(motion, q->clip_of, q->times, &err), &err);
    return motion;
}

/* ---- against the reference ---- */

static void refer(size_t dofs, size_t bodies, size_t envs, int steps, enum weir_motion_variant variant, int advice)
{
    char what[96];
    snprintf(what, sizeof what, "%s, advice %02x, %zu x %d, %zu dofs, %zu bodies",
             variant == WEIR_MOTION_OPS ? "ops" : "fused", (unsigned)advice, envs, steps, dofs, bodies);
    struct weir_motion_clips *clips = make_clips(dofs, bodies);
    struct queries q = draw(clips, envs, steps);
    struct weir_motion *motion = open_motion(clips, &q, 0, variant, advice);
    printf("%s: largest error %.2f of the tolerance\n", what,
           motion_compare(motion, clips, envs, steps, q.clip_of, q.times, what));
    weir_motion_close(&motion);
    drop(&q);
    weir_motion_clips_free(&clips);
}

static void refer_all(void)
{
    static const size_t envs[] = {1, 7, 8, 9, 31, 32, 33, 4096};
    static const size_t sizes[][2] = {{29, 13}, {1, 1}, {7, 2}, {3, 20}, {64, 31}, {700, 5}, {2, 900}, {4096, 4096}};
    for (size_t i = 0; i < sizeof envs / sizeof envs[0]; i++) {
        refer(29, 13, envs[i], 1, WEIR_MOTION_FUSED, 0);
        refer(29, 13, envs[i], 3, WEIR_MOTION_FUSED, 0);
        refer(29, 13, envs[i], 1, WEIR_MOTION_OPS, 0);
        refer(29, 13, envs[i], 3, WEIR_MOTION_OPS, ALL_ADVICE);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        refer(sizes[i][0], sizes[i][1], 33, 2, WEIR_MOTION_FUSED, 0);
        refer(sizes[i][0], sizes[i][1], 33, 2, WEIR_MOTION_OPS, 0);
    }
    for (int bit = 0; bit < ADVICE; bit++)
        refer(29, 13, 100, 2, WEIR_MOTION_OPS, 1 << bit);
}

/* ---- against the CPU, and repeated ---- */

static float *all_of(struct weir_motion *motion, const struct queries *q, enum weir_motion_result result, size_t *n)
{
    *n = q->envs * (size_t)q->steps * (size_t)weir_motion_result_width(motion, result);
    float *numbers = malloc(*n * sizeof *numbers);
    gpufx_check(numbers != NULL, "out of memory");
    gpufx_fine(weir_motion_result(motion, result, numbers, &err), &err);
    return numbers;
}

/* Both results are within a tolerance of the reference, so they differ by at most twice that tolerance. Values are of
 * the order of 10. */
static void compare_numbers(const float *a, const float *b, size_t n, bool same_bits, const char *name)
{
    if (same_bits) {
        gpufx_check(memcmp(a, b, n * sizeof *a) == 0, "%s: two runs gave different bits", name);
        return;
    }
    for (size_t i = 0; i < n; i++)
        gpufx_check(fabsf(a[i] - b[i]) <= 2e-4f * fmaxf(1, fabsf(b[i])), "%s: number %zu is %.9g, but %.9g on the CPU",
                    name, i, (double)a[i], (double)b[i]);
}

static void compare_both(const struct weir_motion_clips *clips, const struct queries *q, int gpu,
                         enum weir_motion_variant variant)
{
    struct weir_motion *a = open_motion(clips, q, 0, variant, 0), *b = open_motion(clips, q, gpu, variant, 0);
    size_t n;
    for (int i = 0; i < 3; i++) { /* times advance with each step */
        gpufx_fine(weir_motion_update(a, &err), &err);
        gpufx_fine(weir_motion_update(b, &err), &err);
    }
    for (int result = 0; result < WEIR_MOTION_RESULTS; result++) {
        float *of_a = all_of(a, q, result, &n), *of_b = all_of(b, q, result, &n);
        compare_numbers(of_a, of_b, n, gpu == 0, weir_motion_result_name(result));
        free(of_a);
        free(of_b);
    }
    printf("%s, %zu x %d: %s\n", variant == WEIR_MOTION_OPS ? "ops" : "fused", q->envs, q->steps,
           gpu == 0 ? "two runs gave the same bits" : "equal to the CPU's results");
    weir_motion_close(&a);
    weir_motion_close(&b);
}

static void compare_sizes(bool few)
{
    static const size_t envs[] = {1, 31, 33, 4096, MANY};
    struct weir_motion_clips *clips = make_clips(29, 13);
    for (size_t i = 0; i < sizeof envs / sizeof envs[0] - few; i++) {
        struct queries q = draw(clips, envs[i], 1);
        for (int variant = 0; variant < 2; variant++) {
            compare_both(clips, &q, -1, variant);
            compare_both(clips, &q, 0, variant);
        }
        drop(&q);
    }
    weir_motion_clips_free(&clips);
}

/* ---- refusals ---- */

static void refuse(void)
{
    struct weir_motion_clips *clips = make_clips(29, 13);
    struct weir_motion_config config;
    struct weir_motion *motion;
    weir_motion_config_default(&config);
    config.clips = clips;
    config.gpu = 1000;
    gpufx_check(weir_motion_open(&motion, &config, &err) < 0 && !motion, "GPU 1000 was opened");
    config.gpu = 0;
    config.envs = (size_t)1 << 32;
    gpufx_check(weir_motion_open(&motion, &config, &err) < 0 && !motion, "2^32 environments were opened");
    printf("%s\n", err.text);
    err = (struct weir_err)WEIR_ERR_NONE;
    weir_motion_clips_free(&clips);
}

int main(int argc, char **argv)
{
    struct gpufx fx;
    bool few = argc > 1 && strcmp(argv[1], "few") == 0;
    gpufx_open(&fx);
    gpufx_check(weir_motion_ops_cuda(&err) != NULL, "%s", err.text);
    refer_all();
    compare_sizes(few);
    refuse();
    gpufx_close(&fx);
    printf("fine\n");
    return 0;
}
