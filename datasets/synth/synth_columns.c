/* Computes columns from the scene's state. */
#include "datasets/synth/scene_priv.h"
#include "datasets/synth/synth_priv.h"

#include <math.h>

static void copy(const float *from, int n, double *row)
{
    for (int i = 0; i < n; i++)
        row[i] = (double)from[i];
}

/* ---- both arms ---- */

void weir_fill_zeros(const struct weir_synth_moment *now, double *row)
{
    (void)now;
    (void)row;
}

void weir_fill_simulation(const struct weir_synth_moment *now, double *row)
{
    row[0] = now->step / now->rate_hz;
    copy(now->state.qpos, WEIR_SCENE_JOINTS, row + 1);
    copy(now->state.qvel, WEIR_SCENE_JOINTS, row + 1 + WEIR_SCENE_JOINTS);
}

void weir_fill_success(const struct weir_synth_moment *now, double *row)
{
    row[0] = now->step == now->steps - 1;
}

/* The effort of a joint is the force of a spring between its position and its commanded position. */
void weir_fill_effort(const struct weir_synth_moment *now, double *row)
{
    for (int j = 0; j < WEIR_SCENE_JOINTS; j++)
        row[j] = 20 * ((double)now->state.action[j] - now->state.qpos[j]);
}

void weir_fill_root_pose(const struct weir_synth_moment *now, double *row)
{
    (void)now;
    row[3] = 1;
}

/* ---- one arm ---- */

static const float *arm_of(const float *joints, const struct weir_synth_moment *now)
{
    return joints + now->arm * WEIR_SCENE_ARM_JOINTS;
}

static void seven_from_six(const float *joint, float *seven)
{
    static const int source[7] = {0, 1, 3, 2, 3, 4, 5};
    static const float scale[7] = {1, 1, 0.5f, 1, 0.5f, 1, 1};
    for (int j = 0; j < 7; j++)
        seven[j] = joint[source[j]] * scale[j];
}

void weir_fill_seven_joints(const struct weir_synth_moment *now, double *row)
{
    float seven[7];
    seven_from_six(arm_of(now->state.qpos, now), seven);
    copy(seven, 7, row);
}

void weir_fill_fingers(const struct weir_synth_moment *now, double *row)
{
    row[0] = (double)arm_of(now->state.qpos, now)[WEIR_SCENE_ARM_JOINTS - 1] * 0.04;
    row[1] = -row[0];
}

/* ---- the gripper in space ---- */

/* Writes the rotation vector (axis times angle) of a quaternion in xyzw order. */
static void rotation_vector(const double *turn, double *vector)
{
    double sign = turn[3] < 0 ? -1 : 1; /* chooses the shorter rotation */
    double sine = sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]);
    double angle = 2 * (double)weir_scene_atan2((float)sine, (float)(sign * turn[3]));
    for (int i = 0; i < 3; i++)
        vector[i] = sine > 1e-9 ? sign * turn[i] / sine * angle : 0;
}

/* Computes the rotation from a to b, which is b times the inverse of a. */
static void turn_between(const float *a, const float *b, double *turn)
{
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        turn[i] = (double)a[3] * b[i] - (double)b[3] * a[i] - ((double)b[j] * a[k] - (double)b[k] * a[j]);
    }
    turn[3] = (double)b[3] * a[3] + (double)b[0] * a[0] + (double)b[1] * a[1] + (double)b[2] * a[2];
}

void weir_fill_tip_rotation(const struct weir_synth_moment *now, double *row)
{
    double turn[4];
    copy(now->state.tip[now->arm] + 3, 4, turn);
    rotation_vector(turn, row);
}

void weir_fill_tip_pose(const struct weir_synth_moment *now, double *row)
{
    copy(now->state.tip[now->arm], 3, row);
    weir_fill_tip_rotation(now, row + 3);
}

static double within_one(double value)
{
    return value > 1 ? 1 : value < -1 ? -1 : value;
}

static void fill_delta(const struct weir_synth_moment *now, int arm, double *row)
{
    static const double step_m = 0.05,
                        step_rad = 0.5; /* the motion that an action of 1 means in robosuite's controller */
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

void weir_fill_robot_states(const struct weir_synth_moment *now, double *row)
{
    weir_fill_fingers(now, row);
    copy(now->state.tip[now->arm], 7, row + 2);
}

/* ---- AstroBench ---- */

static void fill_astro(const float *joints, double *row)
{
    static const float finger[7] = {1.0f, 0.9f, 0.8f, 1.0f, 0.9f, 0.8f, 0.6f};
    for (int arm = 0; arm < WEIR_SCENE_ARMS; arm++) {
        const float *of_arm = joints + arm * WEIR_SCENE_ARM_JOINTS;
        float seven[7];
        seven_from_six(of_arm, seven);
        for (int j = 0; j < 7; j++) {
            row[2 * j + arm] = (double)seven[j];
            row[14 + 2 * j + arm] = (double)(of_arm[6] * finger[j]);
        }
    }
}

void weir_fill_astro_qpos(const struct weir_synth_moment *now, double *row)
{
    fill_astro(now->state.qpos, row);
}

void weir_fill_astro_action(const struct weir_synth_moment *now, double *row)
{
    fill_astro(now->state.action, row);
}

void weir_fill_astro_qvel(const struct weir_synth_moment *now, double *row)
{
    fill_astro(now->state.qvel, row);
}

void weir_fill_astro_base(const struct weir_synth_moment *now, double *row)
{
    (void)now;
    row[6] = 1; /* identity quaternion: the base is at the origin and not rotated */
}

void weir_fill_astro_grasp(const struct weir_synth_moment *now, double *row)
{
    row[0] = now->state.holding > 0;
}

void weir_fill_astro_grippers(const struct weir_synth_moment *now, double *row)
{
    row[0] = (double)now->state.action[WEIR_SCENE_ARM_JOINTS - 1];
    row[1] = (double)now->state.action[WEIR_SCENE_JOINTS - 1];
}

void weir_fill_astro_target(const struct weir_synth_moment *now, double *row)
{
    for (int arm = 0; arm < WEIR_SCENE_ARMS; arm++) {
        for (int i = 0; i < 7; i++)
            row[8 * arm + i] = (double)now->state.target[arm][i];
        row[8 * arm + 7] = (double)now->state.action[(arm + 1) * WEIR_SCENE_ARM_JOINTS - 1];
    }
}
