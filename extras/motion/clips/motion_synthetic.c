/* Synthetic motions of a body that walks in a circle. All values are sums of sines with known derivatives. */
#include "base/hash.h"
#include "extras/motion/clips/clips_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static const double two_pi = 6.28318530717958647692;
static const double walk_m_s = 1.0, strides_s = 1.5, hip_m = 0.78;
static const double bob_m = 0.02, pitch_rad = 0.06, roll_rad = 0.04;

/* Parameters of one clip. All rates are integer multiples of one turn per clip. */
struct walk {
    uint64_t seed;
    double turn_rate, stride_rate; /* rad/s */
    double turn_from, radius_m;
};

static double from_to(const struct walk *walk, uint64_t part, uint64_t use, double low, double high)
{
    const uint64_t key[3] = {walk->seed, part, use};
    return low + (high - low) * (double)(weir_hash64(key, sizeof key) >> 11) * 0x1p-53;
}

/* USE_PLACE also reserves the two numbers after it, one for each coordinate. */
enum { USE_TURN, USE_SIDE, USE_LENGTH, USE_SWING, USE_PHASE, USE_PLACE, USE_REACH = 16 };

/* ---- the root ---- */

struct root {
    double position[3], velocity[3], quat[4], angular[3];
};

static void multiply(const double a[4], const double b[4], double product[4])
{
    product[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
    product[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
    product[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
    product[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
}

static void rotate(const double q[4], const double v[3], double out[3])
{
    const double pure[4] = {0, v[0], v[1], v[2]}, back[4] = {q[0], -q[1], -q[2], -q[3]};
    double left[4], all[4];
    multiply(q, pure, left);
    multiply(left, back, all);
    for (int i = 0; i < 3; i++)
        out[i] = all[i + 1];
}

/* Rotates first about z by the walking direction, then about the new y by pitch, then about the new x by roll. */
static void orient(struct root *root, const double angle[3], const double rate[3])
{
    double about[3][4] = {{0}}, yaw_pitch[4], y[3], x[3];
    for (int i = 0; i < 3; i++) {
        about[i][0] = cos(angle[i] / 2);
        about[i][3 - i] = sin(angle[i] / 2);
    }
    multiply(about[0], about[1], yaw_pitch);
    multiply(yaw_pitch, about[2], root->quat);
    rotate(about[0], (const double[]){0, 1, 0}, y);
    rotate(yaw_pitch, (const double[]){1, 0, 0}, x);
    for (int i = 0; i < 3; i++)
        root->angular[i] = (i == 2 ? rate[0] : 0) + rate[1] * y[i] + rate[2] * x[i];
}

static void place_root(const struct walk *walk, double t, struct root *root)
{
    double turn = walk->turn_from + walk->turn_rate * t, stride = walk->stride_rate * t;
    double side = walk->turn_rate < 0 ? -1 : 1, speed = walk->radius_m * walk->turn_rate;
    const double angle[3] = {turn + side * two_pi / 4, pitch_rad * sin(stride), roll_rad * cos(stride)};
    const double rate[3] = {walk->turn_rate, pitch_rad * walk->stride_rate * cos(stride),
                            -roll_rad * walk->stride_rate * sin(stride)};
    *root = (struct root){
        .position = {walk->radius_m * cos(turn), walk->radius_m * sin(turn), hip_m + bob_m * sin(2 * stride)},
        .velocity = {-speed * sin(turn), speed * cos(turn), 2 * bob_m * walk->stride_rate * cos(2 * stride)}};
    orient(root, angle, rate);
}

/* ---- a whole frame ---- */

static void put(float *out, const double *values, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = (float)values[i];
}

static void put_dofs(const struct walk *walk, double t, float *position, float *velocity, size_t dofs)
{
    for (size_t d = 0; d < dofs; d++) {
        double swing = from_to(walk, d, USE_SWING, 0.1, 0.6), phase = from_to(walk, d, USE_PHASE, 0, two_pi);
        double rate = (d % 2 ? 2 : 1) * walk->stride_rate;
        position[d] = (float)(swing * sin(rate * t + phase));
        velocity[d] = (float)(swing * rate * cos(rate * t + phase));
    }
}

static void put_bodies(const struct walk *walk, double t, const struct root *root, float *position, size_t bodies)
{
    static const double low[3] = {-0.1, -0.4, -0.75}, high[3] = {0.1, 0.4, 0.55}, reach_m = 0.15;
    for (size_t b = 0; b < bodies; b++, position += 3) {
        double local[3], world[3], phase = from_to(walk, b, USE_PHASE, 0, two_pi);
        for (int i = 0; i < 3; i++)
            local[i] = from_to(walk, b, USE_PLACE + (uint64_t)i, low[i], high[i]) +
                       from_to(walk, b, USE_REACH + (uint64_t)i, 0, reach_m) * sin(walk->stride_rate * t + phase);
        rotate(root->quat, local, world);
        for (int i = 0; i < 3; i++)
            position[i] = (float)(root->position[i] + world[i]);
    }
}

static void put_frame(struct weir_motion_clips *clips, const struct walk *walk, size_t frame, double t)
{
    struct root root;
    place_root(walk, t, &root);
    put(clips->root_pos_w + 3 * frame, root.position, 3);
    put(clips->root_vel_w + 3 * frame, root.velocity, 3);
    put(clips->root_quat + 4 * frame, root.quat, 4);
    put(clips->root_ang_vel_w + 3 * frame, root.angular, 3);
    put_dofs(walk, t, clips->dof_pos + clips->dofs * frame, clips->dof_vel + clips->dofs * frame, clips->dofs);
    put_bodies(walk, t, &root, clips->key_body_pos_w + 3 * clips->bodies * frame, clips->bodies);
}

/* ---- clips ---- */

static int add_clip(struct weir_motion_clips *clips, size_t i, const struct weir_motion_synthetic *o,
                    struct weir_err *err)
{
    const uint64_t key[2] = {o->seed, i};
    struct walk walk = {.seed = weir_hash64(key, sizeof key)};
    struct weir_motion_clip *clip;
    double wanted = o->duration_s * o->fps * from_to(&walk, 0, USE_LENGTH, 0.5, 1.5);
    int rc = weir_motion_clips_add(clips, wanted < 1 ? 2 : (size_t)wanted + 1, o->fps, &clip, err);
    if (rc < 0)
        return rc;
    double whole = two_pi / clip->duration_s, strides = round(clip->duration_s * strides_s);
    walk.turn_rate = from_to(&walk, 0, USE_SIDE, -1, 1) < 0 ? -whole : whole;
    walk.stride_rate = whole * (strides > 1 ? strides : 1);
    walk.turn_from = from_to(&walk, 0, USE_TURN, 0, two_pi);
    walk.radius_m = walk_m_s / whole;
    clip->loop = o->loop;
    snprintf(clip->name, sizeof clip->name, "synthetic_%zu", i);
    for (size_t f = 0; f < clip->frames; f++)
        put_frame(clips, &walk, clip->first_frame + f, (double)f / o->fps);
    return 0;
}

static struct weir_motion_synthetic with_defaults(const struct weir_motion_synthetic *options)
{
    struct weir_motion_synthetic o = options ? *options : (struct weir_motion_synthetic){0};
    o.clips = o.clips ? o.clips : 8;
    o.dofs = o.dofs ? o.dofs : 29;
    o.bodies = o.bodies ? o.bodies : 13;
    o.fps = o.fps != 0 ? o.fps : 50;
    o.duration_s = o.duration_s != 0 ? o.duration_s : 10;
    return o;
}

int weir_motion_synthetic(struct weir_motion_clips **clips, const struct weir_motion_synthetic *options,
                          struct weir_err *err)
{
    const struct weir_motion_synthetic o = with_defaults(options);
    *clips = NULL;
    if (o.clips > WEIR_MOTION_CLIPS_MAX)
        return weir_err_set(err, -EINVAL, "%zu synthetic motions, but at most %d are supported", o.clips,
                            WEIR_MOTION_CLIPS_MAX);
    if (!(o.fps > 0) || !(o.duration_s > 0) || !(o.duration_s * o.fps <= INT32_MAX))
        return weir_err_set(err, -EINVAL,
                            "synthetic motions of %g s at %g fps; both must be positive, with at most "
                            "%d frames",
                            o.duration_s, o.fps, INT32_MAX);
    int rc = weir_motion_clips_new(clips, o.dofs, o.bodies, err);
    for (size_t i = 0; i < o.clips && rc == 0; i++)
        rc = add_clip(*clips, i, &o, err);
    if (rc < 0)
        weir_motion_clips_free(clips);
    return rc;
}
