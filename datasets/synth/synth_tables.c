#include "datasets/synth/synth_tables_priv.h"

#include "datasets/synth/scene_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int write_table(struct weir_synth_job *job, const struct weir_synth_rows *rows, int count,
                       const struct weir_synth_column *column, struct weir_err *err)
{
    size_t width = column->width > 0 ? (size_t)column->width : 1;
    double *table = calloc((size_t)count * width, sizeof *table);
    if (!table)
        return weir_err_set(err, -ENOMEM, "%s: out of memory for %d steps", column->name, count);
    struct weir_synth_moment now = {.steps = job->config->steps, .rate_hz = job->format->rate_hz, .arm = column->arm};
    for (int i = 0; i < count; i++) {
        now.step = rows->first + i;
        weir_scene_state_at(job->scene, rows->episode, now.step, &now.state);
        column->fill(&now, table + (size_t)i * width);
    }
    char name[WEIR_SYNTH_PATH];
    snprintf(name, sizeof name, "%s%s", rows->group, column->name);
    const struct weir_h5w_shape shape = {column->width > 0 ? 2 : 1, {(uint64_t)count, width}};
    int rc = weir_h5w_array(job->file, name, column->type, &shape, rows->storage, table, err);
    free(table);
    return rc;
}

int weir_synth_tables(struct weir_synth_job *job, const struct weir_synth_rows *rows,
                      const struct weir_synth_column *columns, int n, struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++)
        rc = write_table(job, rows, rows->count > 0 ? rows->count : job->config->steps, &columns[i], err);
    return rc;
}

static void copy(const float *from, int n, double *row)
{
    for (int i = 0; i < n; i++)
        row[i] = (double)from[i];
}

/* ---- both arms ---- */

void weir_fill_qpos(const struct weir_synth_moment *now, double *row)
{
    copy(now->state.qpos, WEIR_SCENE_JOINTS, row);
}

void weir_fill_qvel(const struct weir_synth_moment *now, double *row)
{
    copy(now->state.qvel, WEIR_SCENE_JOINTS, row);
}

void weir_fill_action(const struct weir_synth_moment *now, double *row)
{
    copy(now->state.action, WEIR_SCENE_JOINTS, row);
}

void weir_fill_zeros(const struct weir_synth_moment *now, double *row)
{
    (void)now;
    (void)row;
}

void weir_fill_simulation(const struct weir_synth_moment *now, double *row)
{
    row[0] = now->step / now->rate_hz;
    weir_fill_qpos(now, row + 1);
    weir_fill_qvel(now, row + 1 + WEIR_SCENE_JOINTS);
}

void weir_fill_success(const struct weir_synth_moment *now, double *row)
{
    row[0] = now->step == now->steps - 1;
}

/* ---- one arm ---- */

static const float *arm_of(const float *joints, const struct weir_synth_moment *now)
{
    return joints + now->arm * WEIR_SCENE_ARM_JOINTS;
}

void weir_fill_arm_qpos(const struct weir_synth_moment *now, double *row)
{
    copy(arm_of(now->state.qpos, now), WEIR_SCENE_ARM_JOINTS, row);
}

void weir_fill_arm_action(const struct weir_synth_moment *now, double *row)
{
    copy(arm_of(now->state.action, now), WEIR_SCENE_ARM_JOINTS, row);
}

void weir_fill_arm_joints(const struct weir_synth_moment *now, double *row)
{
    copy(arm_of(now->state.qpos, now), WEIR_SCENE_ARM_JOINTS - 1, row);
}

void weir_fill_arm_gripper(const struct weir_synth_moment *now, double *row)
{
    copy(arm_of(now->state.qpos, now) + WEIR_SCENE_ARM_JOINTS - 1, 1, row);
}

void weir_seven_from_six(const float *joint, float *seven)
{
    static const int source[7] = {0, 1, 3, 2, 3, 4, 5};
    static const float scale[7] = {1, 1, 0.5f, 1, 0.5f, 1, 1};
    for (int j = 0; j < 7; j++)
        seven[j] = joint[source[j]] * scale[j];
}

void weir_fill_seven_joints(const struct weir_synth_moment *now, double *row)
{
    float seven[7];
    weir_seven_from_six(arm_of(now->state.qpos, now), seven);
    copy(seven, 7, row);
}

void weir_fill_fingers(const struct weir_synth_moment *now, double *row)
{
    weir_fill_arm_gripper(now, row);
    row[0] *= 0.04;
    row[1] = -row[0];
}

/* ---- the gripper in space ---- */

/* Rotation vector (axis times angle) of a quaternion xyzw. */
static void rotation_vector(const double *turn, double *vector)
{
    double sign = turn[3] < 0 ? -1 : 1; /* the shorter way round */
    double sine = sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]);
    double angle = 2 * (double)weir_scene_atan2((float)sine, (float)(sign * turn[3]));
    for (int i = 0; i < 3; i++)
        vector[i] = sine > 1e-9 ? sign * turn[i] / sine * angle : 0;
}

/* The turn that makes b of a: b times a's inverse. */
static void turn_between(const float *a, const float *b, double *turn)
{
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        turn[i] = (double)a[3] * b[i] - (double)b[3] * a[i] - ((double)b[j] * a[k] - (double)b[k] * a[j]);
    }
    turn[3] = (double)b[3] * a[3] + (double)b[0] * a[0] + (double)b[1] * a[1] + (double)b[2] * a[2];
}

void weir_fill_tip_position(const struct weir_synth_moment *now, double *row)
{
    copy(now->state.tip[now->arm], 3, row);
}

void weir_fill_tip_quaternion(const struct weir_synth_moment *now, double *row)
{
    copy(now->state.tip[now->arm] + 3, 4, row);
}

void weir_fill_tip_rotation(const struct weir_synth_moment *now, double *row)
{
    double turn[4];
    weir_fill_tip_quaternion(now, turn);
    rotation_vector(turn, row);
}

void weir_fill_tip_pose(const struct weir_synth_moment *now, double *row)
{
    weir_fill_tip_position(now, row);
    weir_fill_tip_rotation(now, row + 3);
}

static double within_one(double value)
{
    return value > 1 ? 1 : value < -1 ? -1 : value;
}

static void fill_delta(const struct weir_synth_moment *now, int arm, double *row)
{
    static const double step_m = 0.05, step_rad = 0.5; /* what 1 stands for in robosuite's controller */
    const float *from = now->state.tip[arm], *to = now->state.target[arm];
    double turn[4], rotation[3];
    turn_between(from + 3, to + 3, turn);
    rotation_vector(turn, rotation);
    for (int i = 0; i < 3; i++) {
        row[i] = within_one(((double)to[i] - from[i]) / step_m);
        row[3 + i] = within_one(rotation[i] / step_rad);
    }
    row[6] = 1 - 2 * (double)now->state.action[(arm + 1) * WEIR_SCENE_ARM_JOINTS - 1];
}

void weir_fill_delta(const struct weir_synth_moment *now, double *row)
{
    fill_delta(now, now->arm, row);
}

void weir_fill_both_deltas(const struct weir_synth_moment *now, double *row)
{
    for (int arm = 0; arm < WEIR_SCENE_ARMS; arm++)
        fill_delta(now, arm, row + 7 * arm);
}
