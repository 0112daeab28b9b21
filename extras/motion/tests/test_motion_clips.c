/* Tests synthetic motions: their sizes, and that velocities are the derivatives of positions. */
#include "extras/motion/clips/motion_clips.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <string.h>

static struct weir_motion_clips *clips;
static struct weir_err err;

static void start(void)
{
    clips = NULL;
    err = (struct weir_err)WEIR_ERR_NONE;
}

static void end(void)
{
    weir_motion_clips_free(&clips);
    cr_assert_null(clips);
}

TestSuite(motion_clips, .init = start, .fini = end);

static void make(const struct weir_motion_synthetic *options)
{
    weir_motion_clips_free(&clips);
    cr_assert_eq(weir_motion_synthetic(&clips, options, &err), 0, "%s", err.text);
}

Test(motion_clips, nothing_to_free)
{
    weir_motion_clips_free(NULL);
    weir_motion_clips_free(&clips);
}

Test(motion_clips, defaults)
{
    make(NULL);
    cr_assert_eq(clips->clips, 8);
    cr_assert_eq(clips->dofs, 29);
    cr_assert_eq(clips->bodies, 13);
    cr_assert_null(clips->dof_names);
    cr_assert_null(clips->body_names);
    size_t frames = 0;
    for (size_t i = 0; i < clips->clips; i++) {
        const struct weir_motion_clip *clip = &clips->clip[i];
        cr_assert_eq(clip->first_frame, frames);
        cr_assert_geq(clip->frames, 2);
        cr_assert_float_eq(clip->duration_s, (double)(clip->frames - 1) / 50, 1e-12);
        cr_assert(clip->duration_s > 4.9 && clip->duration_s < 15.1);
        cr_assert(!clip->loop && *clip->name);
        frames += clip->frames;
    }
    cr_assert_eq(frames, clips->frames);
    cr_assert_neq(clips->clip[0].frames, clips->clip[1].frames);
}

Test(motion_clips, options)
{
    make(&(struct weir_motion_synthetic){
        .clips = 3, .dofs = 1, .bodies = 2, .fps = 30, .duration_s = 0.01, .loop = true});
    cr_assert_eq(clips->clips, 3);
    cr_assert_eq(clips->frames, 6);
    cr_assert(clips->clip[2].loop && clips->clip[2].fps == 30);
}

static bool same(const struct weir_motion_clips *a, const struct weir_motion_clips *b)
{
    return a->frames == b->frames && memcmp(a->root_pos_w, b->root_pos_w, a->frames * 3 * sizeof(float)) == 0 &&
           memcmp(a->key_body_pos_w, b->key_body_pos_w, a->frames * a->bodies * 3 * sizeof(float)) == 0 &&
           memcmp(a->dof_vel, b->dof_vel, a->frames * a->dofs * sizeof(float)) == 0;
}

Test(motion_clips, seeds)
{
    struct weir_motion_clips *other = NULL;
    make(NULL);
    cr_assert_eq(weir_motion_synthetic(&other, &(struct weir_motion_synthetic){0}, &err), 0);
    cr_assert(same(clips, other));
    weir_motion_clips_free(&other);
    cr_assert_eq(weir_motion_synthetic(&other, &(struct weir_motion_synthetic){.seed = 1}, &err), 0);
    cr_assert_not(same(clips, other));
    weir_motion_clips_free(&other);
}

/* Compares the rates with central differences, whose error at this frame rate is below 1e-3. */
static void check_derivative(const char *what, const float *values, const float *rates, size_t width, size_t f)
{
    const double dt = 1 / clips->clip[0].fps;
    for (size_t i = 0; i < width; i++) {
        double rate = ((double)values[(f + 1) * width + i] - (double)values[(f - 1) * width + i]) / (2 * dt);
        cr_assert_float_eq(rates[f * width + i], rate, 5e-3, "%s %zu of frame %zu: rate %g instead of %g", what, i, f,
                           (double)rates[f * width + i], rate);
    }
}

/* Compares the angular velocity at frame f with the one computed from the previous and next quaternions: the vector
 * part of 2 dq/dt conj(q). */
static void check_turning(size_t f)
{
    const double dt = 1 / clips->clip[0].fps;
    double d[4];
    const float *q = clips->root_quat + 4 * f, *w = clips->root_ang_vel_w + 3 * f;
    for (int i = 0; i < 4; i++)
        d[i] = ((double)q[i + 4] - (double)q[i - 4]) / dt;
    double x = -d[0] * q[1] + d[1] * q[0] - d[2] * q[3] + d[3] * q[2];
    double y = -d[0] * q[2] + d[1] * q[3] + d[2] * q[0] - d[3] * q[1];
    double z = -d[0] * q[3] - d[1] * q[2] + d[2] * q[1] + d[3] * q[0];
    cr_assert_float_eq(w[0], x, 5e-3, "%g, %g", (double)w[0], x);
    cr_assert_float_eq(w[1], y, 5e-3, "%g, %g", (double)w[1], y);
    cr_assert_float_eq(w[2], z, 5e-3, "%g, %g", (double)w[2], z);
}

Test(motion_clips, velocities)
{
    make(&(struct weir_motion_synthetic){.clips = 1, .fps = 1000, .duration_s = 4});
    for (size_t f = 1; f + 1 < clips->frames; f++) {
        check_derivative("root", clips->root_pos_w, clips->root_vel_w, 3, f);
        check_derivative("dof", clips->dof_pos, clips->dof_vel, clips->dofs, f);
        check_turning(f);
    }
}

Test(motion_clips, frames)
{
    make(NULL);
    for (size_t f = 0; f < clips->frames; f++) {
        const float *q = clips->root_quat + 4 * f, *root = clips->root_pos_w + 3 * f;
        cr_assert_float_eq(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3], 1, 1e-6);
        for (size_t b = 0; b < clips->bodies; b++) {
            const float *body = clips->key_body_pos_w + 3 * (f * clips->bodies + b);
            float x = body[0] - root[0], y = body[1] - root[1], z = body[2] - root[2];
            cr_assert_lt(sqrtf(x * x + y * y + z * z), 1.4f);
        }
    }
}

/* A motion ends as it began. */
Test(motion_clips, closed)
{
    make(NULL);
    for (size_t i = 0; i < clips->clips; i++) {
        const float *first = clips->root_pos_w + 3 * clips->clip[i].first_frame;
        const float *last = first + 3 * (clips->clip[i].frames - 1);
        for (int k = 0; k < 3; k++)
            cr_assert_float_eq(first[k], last[k], 1e-5);
        const float *dof = clips->dof_pos + clips->dofs * clips->clip[i].first_frame;
        cr_assert_float_eq(dof[0], dof[clips->dofs * (clips->clip[i].frames - 1)], 1e-5);
    }
}

Test(motion_clips, refused)
{
    const struct weir_motion_synthetic bad[] = {
        {.fps = -1},
        {.fps = NAN},
        {.fps = INFINITY},
        {.fps = 1e-300},
        {.duration_s = -1},
        {.duration_s = 1e18},
        {.dofs = WEIR_MOTION_PARTS_MAX + 1},
        {.bodies = SIZE_MAX},
        {.clips = SIZE_MAX},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        err = (struct weir_err)WEIR_ERR_NONE;
        cr_assert_eq(weir_motion_synthetic(&clips, &bad[i], &err), -EINVAL, "%zu", i);
        cr_assert(!clips && *err.text);
    }
}
