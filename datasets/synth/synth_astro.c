/* AstroBench's dual arm. */
#include "datasets/synth/synth_tables_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASTRO_JOINTS = 28 };

/* Left and right joints alternate: seven of each arm, then seven of each hand. */
static void fill_joints(const float *joints, double *row)
{
    static const float finger[7] = {1.0f, 0.9f, 0.8f, 1.0f, 0.9f, 0.8f, 0.6f};
    for (int arm = 0; arm < WEIR_SCENE_ARMS; arm++) {
        const float *of_arm = joints + arm * WEIR_SCENE_ARM_JOINTS;
        float seven[7];
        weir_seven_from_six(of_arm, seven);
        for (int j = 0; j < 7; j++) {
            row[2 * j + arm] = (double)seven[j];
            row[14 + 2 * j + arm] = (double)(of_arm[6] * finger[j]);
        }
    }
}

static void fill_joint_pos(const struct weir_synth_moment *now, double *row)
{
    fill_joints(now->state.qpos, row);
}

static void fill_joint_positions(const struct weir_synth_moment *now, double *row)
{
    fill_joints(now->state.action, row);
}

static void fill_joint_velocities(const struct weir_synth_moment *now, double *row)
{
    fill_joints(now->state.qvel, row);
}

static void fill_base_pose(const struct weir_synth_moment *now, double *row)
{
    (void)now;
    row[6] = 1; /* at the origin, not turned: quaternion xyzw */
}

static void fill_ee_pose(const struct weir_synth_moment *now, double *row)
{
    for (int arm = 0; arm < WEIR_SCENE_ARMS; arm++)
        for (int i = 0; i < 7; i++)
            row[7 * arm + i] = (double)now->state.tip[arm][i];
}

static void fill_grasp(const struct weir_synth_moment *now, double *row)
{
    row[0] = now->state.holding > 0;
}

static void fill_gripper_command(const struct weir_synth_moment *now, double *row)
{
    row[0] = (double)now->state.action[WEIR_SCENE_ARM_JOINTS - 1];
    row[1] = (double)now->state.action[WEIR_SCENE_JOINTS - 1];
}

static void fill_cartesian(const struct weir_synth_moment *now, double *row)
{
    for (int arm = 0; arm < WEIR_SCENE_ARMS; arm++) {
        for (int i = 0; i < 7; i++)
            row[8 * arm + i] = (double)now->state.target[arm][i];
        row[8 * arm + 7] = (double)now->state.action[(arm + 1) * WEIR_SCENE_ARM_JOINTS - 1];
    }
}

static const struct weir_synth_column compressed[] = {
    {"/observations/joint_pos", WEIR_F32, ASTRO_JOINTS, fill_joint_pos, 0},
    {"/observations/base_pose", WEIR_F32, 7, fill_base_pose, 0},
    {"/observations/base_vel", WEIR_F32, 6, weir_fill_zeros, 0},
    {"/observations/ee_pose", WEIR_F32, 14, fill_ee_pose, 0},
    {"/action/joint_positions", WEIR_F32, ASTRO_JOINTS, fill_joint_positions, 0},
    {"/action/joint_velocities", WEIR_F32, ASTRO_JOINTS, fill_joint_velocities, 0},
    {"/action/gripper_command", WEIR_F32, 2, fill_gripper_command, 0},
    {"/action/cartesian_target_pose", WEIR_F32, 16, fill_cartesian, 0},
};
static const struct weir_synth_column plain[] = {
    {"/observations/grasp_success", WEIR_I32, 0, fill_grasp, 0},
};

static int write_attributes(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    char encoding[32];
    snprintf(encoding, sizeof encoding, "jpg_%d", job->config->quality);
    const char *text[][2] = {
        {"scene_id", "synthetic"},    {"robot_name", "synthetic_dual_arm"}, {"timestamp", "1970-01-01T00:00:00"},
        {"image_encoding", encoding}, {"depth_encoding", "png_uint16"},
    };
    int rc = weir_h5w_attr_int(job->file, "/metadata", "episode_id", episode, err);
    if (rc == 0)
        rc = weir_h5w_attr_int(job->file, "/metadata", "num_frames", job->config->steps, err);
    for (size_t i = 0; i < sizeof text / sizeof text[0] && rc == 0; i++)
        rc = weir_h5w_attr_text(job->file, "/metadata", text[i][0], text[i][1], err);
    return rc;
}

static int write_metadata(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    static const struct weir_h5w_shape three = {1, {3}}, four = {1, {4}}, single = {0, {0}};
    struct weir_scene_state last;
    weir_scene_state_at(job->scene, episode, job->config->steps - 1, &last);
    double position[3], turn[4], sum = 0;
    for (int i = 0; i < 3; i++) {
        position[i] = last.target[0][i];
        sum += (position[i] - last.tip[0][i]) * (position[i] - last.tip[0][i]);
    }
    for (int i = 0; i < 4; i++)
        turn[i] = last.target[0][3 + i];
    const double error = sqrt(sum);
    const struct {
        const char *name;
        const struct weir_h5w_shape *shape;
        const double *values;
    } arrays[] = {
        {"/metadata/target_pos", &three, position},
        {"/metadata/target_quat", &four, turn},
        {"/metadata/final_pos_error", &single, &error},
    };
    int rc = write_attributes(job, episode, err);
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0] && rc == 0; i++)
        rc = weir_h5w_array(job->file, arrays[i].name, WEIR_F64, arrays[i].shape, WEIR_H5W_CONTIGUOUS, arrays[i].values,
                            err);
    return rc;
}

int weir_synth_astrobench_create(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    char name[128];
    snprintf(name, sizeof name, "data/synthetic/diffuse/episode_00_%04d_expert_diffuse.h5", episode);
    return weir_synth_create_file(job, name, err);
}

int weir_synth_astrobench(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    static const char *const groups[] = {"/metadata", "/observations", "/action", NULL};
    const struct weir_synth_rows gzip = {.group = "", .episode = episode, .storage = WEIR_H5W_GZIP},
                                 rows = {.group = "", .episode = episode};
    int rc = weir_synth_groups(job, "", groups, err);
    if (rc == 0)
        rc = write_metadata(job, episode, err);
    for (int c = 0; c < job->n_cameras && rc == 0; c++) {
        char rgb[WEIR_SYNTH_PATH], depth[WEIR_SYNTH_PATH];
        snprintf(rgb, sizeof rgb, "/observations/rgb_%s", job->camera[c]);
        snprintf(depth, sizeof depth, "/observations/depth_%s", job->camera[c]);
        rc = weir_synth_vlen_camera(job, rgb, depth, err);
    }
    if (rc == 0)
        rc = weir_synth_tables(job, &gzip, compressed, sizeof compressed / sizeof compressed[0], err);
    return rc < 0 ? rc : weir_synth_tables(job, &rows, plain, 1, err);
}
