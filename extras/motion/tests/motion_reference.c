#include "extras/motion/tests/motion_reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- position in the clip ---- */

struct place {
    size_t frame0, frame1;
    double blend, off; /* off: maximum error of the blend */
};

static struct place find(const struct weir_motion_clip *clip, float time)
{
    float phase = time / (float)clip->duration_s, last = (float)(clip->frames - 1);
    if (clip->loop)
        phase -= floorf(phase);
    if (!(phase > 0))
        phase = 0;
    if (phase > 1)
        phase = 1;
    float at = phase * last;
    size_t frame0 = (size_t)at, frame1 = frame0 + 1 < clip->frames ? frame0 + 1 : clip->frames - 1;
    return (struct place){clip->first_frame + frame0, clip->first_frame + frame1, (double)at - (double)frame0,
                          WEIR_MOTION_FRAMES_OFF * (double)clip->frames};
}

/* ---- results ---- */

static struct motion_number blended(const float *table, size_t width, size_t number, const struct place *p)
{
    double a = (double)table[p->frame0 * width + number], b = (double)table[p->frame1 * width + number];
    return (struct motion_number){a + p->blend * (b - a),
                                  WEIR_MOTION_TOLERANCE * fmax(fabs(a), fabs(b)) + p->off * fabs(b - a)};
}

/* Computes the root's quaternion. The member "off" is the maximum error of each component. */
static void root_quat(const struct weir_motion_clips *clips, const struct place *p, struct motion_number q[4])
{
    const float *a = clips->root_quat + 4 * p->frame0, *b = clips->root_quat + 4 * p->frame1;
    double dot = 0, length = 0, w0 = 1 - p->blend, w1 = p->blend;
    for (int i = 0; i < 4; i++)
        dot += (double)a[i] * (double)b[i];
    double angle = acos(fmin(fabs(dot), 1));
    if (angle > 1e-6) {
        w0 = sin(w0 * angle) / sin(angle);
        w1 = sin(w1 * angle) / sin(angle);
    }
    for (int i = 0; i < 4; i++) {
        q[i].value = w0 * (double)a[i] + (dot < 0 ? -w1 : w1) * (double)b[i];
        q[i].off = WEIR_MOTION_TOLERANCE + p->off * angle;
        length += q[i].value * q[i].value;
    }
    for (int i = 0; i < 4; i++)
        q[i].value /= sqrt(length);
}

static void product(const double a[4], const double b[4], double to[4])
{
    to[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
    to[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
    to[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
    to[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
}

/* Computes q^-1 v q. The errors of v and q contribute to the error of each component. */
static void turn_back(const struct motion_number quat[4], const struct motion_number v[3], struct motion_number to[3])
{
    const double q[4] = {quat[0].value, quat[1].value, quat[2].value, quat[3].value};
    const double back[4] = {q[0], -q[1], -q[2], -q[3]}, pure[4] = {0, v[0].value, v[1].value, v[2].value};
    double half[4], all[4], length = 0, off = 0;
    product(back, pure, half);
    product(half, q, all);
    for (int i = 0; i < 3; i++) {
        length += v[i].value * v[i].value;
        off += v[i].off;
    }
    for (int i = 0; i < 3; i++)
        to[i] = (struct motion_number){all[i + 1], off + 2 * quat[0].off * sqrt(length)};
}

static void vector(const float *table, size_t width, size_t first, const struct place *p, struct motion_number v[3])
{
    for (size_t i = 0; i < 3; i++)
        v[i] = blended(table, width, first + i, p);
}

static void bodies(const struct weir_motion_clips *clips, const struct place *p, const struct motion_number quat[4],
                   struct motion_number *to)
{
    struct motion_number root[3], v[3];
    vector(clips->root_pos_w, 3, 0, p, root);
    for (size_t body = 0; body < clips->bodies; body++) {
        vector(clips->key_body_pos_w, 3 * clips->bodies, 3 * body, p, v);
        for (int i = 0; i < 3; i++) {
            v[i].value -= root[i].value;
            v[i].off += root[i].off;
        }
        turn_back(quat, v, to + 3 * body);
    }
}

void motion_reference(const struct weir_motion_clips *clips, int64_t clip, float time, enum weir_motion_result result,
                      struct motion_number *to)
{
    struct place p = find(&clips->clip[clip], time);
    struct motion_number quat[4], v[3];
    root_quat(clips, &p, quat);
    switch (result) {
    case WEIR_MOTION_ROOT_POS_W:
        vector(clips->root_pos_w, 3, 0, &p, to);
        break;
    case WEIR_MOTION_ROOT_QUAT:
        for (int i = 0; i < 4; i++)
            to[i] = quat[i];
        break;
    case WEIR_MOTION_ROOT_VEL_W:
        vector(clips->root_vel_w, 3, 0, &p, to);
        break;
    case WEIR_MOTION_ROOT_ANG_VEL_W:
        vector(clips->root_ang_vel_w, 3, 0, &p, to);
        break;
    case WEIR_MOTION_ROOT_VEL_B:
        vector(clips->root_vel_w, 3, 0, &p, v);
        turn_back(quat, v, to);
        break;
    case WEIR_MOTION_ROOT_ANG_VEL_B:
        vector(clips->root_ang_vel_w, 3, 0, &p, v);
        turn_back(quat, v, to);
        break;
    case WEIR_MOTION_DOF_POS:
    case WEIR_MOTION_DOF_VEL:
        for (size_t i = 0; i < clips->dofs; i++)
            to[i] = blended(result == WEIR_MOTION_DOF_POS ? clips->dof_pos : clips->dof_vel, clips->dofs, i, &p);
        break;
    default:
        bodies(clips, &p, quat, to);
        break;
    }
}

/* ---- comparison ---- */

static void fail(const char *what, const char *line)
{
    fprintf(stderr, "motion_compare: %s: %s\n", what, line);
    abort();
}

static double compare_result(const struct weir_motion_clips *clips, size_t queries, int steps, const int64_t *clip_of,
                             const float *times, enum weir_motion_result result, int width, const float *got,
                             const char *what)
{
    struct motion_number *wanted = calloc((size_t)width, sizeof *wanted);
    double most = 0;
    char line[256];
    if (!wanted)
        fail(what, "out of memory");
    for (size_t i = 0; i < queries; i++, got += width) {
        motion_reference(clips, clip_of[i / (size_t)steps], times[i], result, wanted);
        for (int j = 0; j < width; j++) {
            double off = fabs((double)got[j] - wanted[j].value) / wanted[j].off;
            snprintf(line, sizeof line, "%s[%d] of query %zu (clip %d, time %g) is %.9g instead of %.9g (+- %g)",
                     weir_motion_result_name(result), j, i, (int)clip_of[i / (size_t)steps], (double)times[i],
                     (double)got[j], wanted[j].value, wanted[j].off);
            if (!(off <= 1) && fabs((double)got[j] - wanted[j].value) > 1e-30)
                fail(what, line);
            most = off > most ? off : most;
        }
    }
    free(wanted);
    return most;
}

double motion_compare(struct weir_motion *motion, const struct weir_motion_clips *clips, size_t envs, int steps,
                      const int64_t *clip_of, const float *times, const char *what)
{
    struct weir_err err = WEIR_ERR_NONE;
    double most = 0;
    if (weir_motion_set(motion, clip_of, times, &err) < 0 || weir_motion_fetch(motion, &err) < 0)
        fail(what, err.text);
    for (int result = 0; result < WEIR_MOTION_RESULTS; result++) {
        int width = weir_motion_result_width(motion, result);
        size_t queries = envs * (size_t)steps;
        float *got = calloc(queries, (size_t)width * sizeof *got);
        if (!got)
            fail(what, "out of memory");
        if (weir_motion_result(motion, result, got, &err) < 0)
            fail(what, err.text);
        double off = compare_result(clips, queries, steps, clip_of, times, result, width, got, what);
        most = off > most ? off : most;
        free(got);
    }
    return most;
}
