/* Files of many episodes, /data/demo_k: robomimic, LIBERO, Isaac Lab. */
#include "datasets/synth/synth_tables_priv.h"

#include <stdio.h>
#include <string.h>

enum { DEMO_BYTES = 32 }; /* of "/data/demo_k" */

static const char model[] = "<mujoco model=\"synthetic\"/>";

/* ---- what they share ---- */

static int create(struct weir_synth_job *job, const char *name, const char *env_args, struct weir_err *err)
{
    int64_t total = (int64_t)job->config->episodes * job->config->steps;
    int rc = weir_synth_create_file(job, name, err);
    if (rc == 0)
        rc = weir_h5w_group(job->file, "/data", err);
    if (rc == 0)
        rc = weir_h5w_attr_int(job->file, "/data", "total", total, err);
    return rc < 0 ? rc : weir_h5w_attr_text(job->file, "/data", "env_args", env_args, err);
}

/* Makes the demo's group, whose path is left in demo, and the groups in it. */
static int begin(struct weir_synth_job *job, int episode, const char *const *groups, char demo[DEMO_BYTES],
                 struct weir_err *err)
{
    snprintf(demo, DEMO_BYTES, "/data/demo_%d", episode);
    int rc = weir_h5w_group(job->file, demo, err);
    if (rc == 0)
        rc = weir_h5w_attr_int(job->file, demo, "num_samples", job->config->steps, err);
    return rc < 0 ? rc : weir_synth_groups(job, demo, groups, err);
}

/* Pictures at DEMO/GROUP/CAMERA and the format's suffix. */
static int write_cameras(struct weir_synth_job *job, const char *demo, const char *group, struct weir_err *err)
{
    int rc = 0;
    const char *suffix = job->format->suffix ? job->format->suffix : "";
    for (int c = 0; c < job->n_cameras && rc == 0; c++) {
        char name[WEIR_SYNTH_PATH];
        snprintf(name, sizeof name, "%s%s/%s%s", demo, group, job->camera[c], suffix);
        rc = weir_synth_raw_camera(job, name, NULL, job->format->storage, err);
    }
    return rc;
}

/* ---- robomimic ---- */

/* The names of demos first .. end - 1, as numpy stores a list of bytes. */
static int write_mask(struct weir_synth_job *job, const char *name, int first, int end, struct weir_err *err)
{
    char demo[32];
    int longest = snprintf(demo, sizeof demo, "demo_%d", end > first ? end - 1 : 0);
    int set = weir_h5w_string_frames(job->file, name, (uint64_t)(end - first), (size_t)longest, err);
    int rc = set < 0 ? set : 0;
    for (int i = first; i < end && rc == 0; i++) {
        memset(demo, 0, sizeof demo);
        snprintf(demo, sizeof demo, "demo_%d", i);
        rc = weir_h5w_frame(job->file, set, (uint64_t)(i - first), demo, (size_t)longest, err);
    }
    return rc;
}

int weir_synth_robomimic_create(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    (void)episode;
    const struct weir_synth_config *config = job->config;
    /* A tenth of the demos, and at least one, is for validation, unless there is only one. */
    int n = config->episodes, train = n - (n > 10 ? n / 10 : n > 1);
    char env_args[256];
    snprintf(env_args, sizeof env_args,
             "{\"env_name\": \"SyntheticTable\", \"type\": 1, \"env_kwargs\": {\"control_freq\": %g, "
             "\"camera_heights\": %d, \"camera_widths\": %d}}",
             job->format->rate_hz, config->height, config->width);
    int rc = create(job, "demos.hdf5", env_args, err);
    if (rc == 0)
        rc = weir_h5w_group(job->file, "/mask", err);
    if (rc == 0)
        rc = write_mask(job, "/mask/train", 0, train, err);
    return rc < 0 ? rc : write_mask(job, "/mask/valid", train, n, err);
}

static const struct weir_synth_column robomimic_demo[] = {
    {"/actions", WEIR_F64, 14, weir_fill_both_deltas, 0},
    {"/states", WEIR_F64, WEIR_FILL_SIMULATION, weir_fill_simulation, 0},
    {"/rewards", WEIR_F64, 0, weir_fill_success, 0},
    {"/dones", WEIR_I64, 0, weir_fill_success, 0},
};

static const struct weir_synth_column robomimic_obs[] = {
    {"/robot0_joint_pos", WEIR_F64, 7, weir_fill_seven_joints, 0},
    {"/robot0_eef_pos", WEIR_F64, 3, weir_fill_tip_position, 0},
    {"/robot0_eef_quat", WEIR_F64, 4, weir_fill_tip_quaternion, 0},
    {"/robot0_gripper_qpos", WEIR_F64, 2, weir_fill_fingers, 0},
    {"/robot1_joint_pos", WEIR_F64, 7, weir_fill_seven_joints, 1},
    {"/robot1_eef_pos", WEIR_F64, 3, weir_fill_tip_position, 1},
    {"/robot1_eef_quat", WEIR_F64, 4, weir_fill_tip_quaternion, 1},
    {"/robot1_gripper_qpos", WEIR_F64, 2, weir_fill_fingers, 1},
};

int weir_synth_robomimic(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    static const char *const groups[] = {"/obs", "/next_obs", NULL};
    enum {
        N_DEMO = sizeof robomimic_demo / sizeof *robomimic_demo,
        N_OBS = sizeof robomimic_obs / sizeof *robomimic_obs
    };
    char demo[DEMO_BYTES], obs[DEMO_BYTES + 16];
    struct weir_synth_rows rows = {.group = demo, .episode = episode, .storage = job->format->storage};
    int rc = begin(job, episode, groups, demo, err);
    if (rc == 0)
        rc = weir_h5w_attr_text(job->file, demo, "model_file", model, err);
    if (rc == 0)
        rc = weir_synth_tables(job, &rows, robomimic_demo, N_DEMO, err);
    rows.group = obs;
    snprintf(obs, sizeof obs, "%s/obs", demo);
    if (rc == 0)
        rc = weir_synth_tables(job, &rows, robomimic_obs, N_OBS, err);
    if (rc == 0)
        rc = write_cameras(job, demo, "/obs", err);
    snprintf(obs, sizeof obs, "%s/next_obs", demo);
    rows.first = 1;
    return rc < 0 ? rc : weir_synth_tables(job, &rows, robomimic_obs, N_OBS, err);
}

/* ---- LIBERO ---- */

int weir_synth_libero_create(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    (void)episode;
    static const char *const text[][2] = {
        {"env_name", "Synthetic_Table"},
        {"problem_info", "{\"problem_name\": \"synthetic_table\", \"domain_name\": \"robosuite\", "
                         "\"language_instruction\": \"pick up the block and put it down\"}"},
        {"macros_image_convention", "opencv"}, /* "opengl" would mean that the lowest row comes first */
        {"bddl_file_name", "bddl_files/synthetic/pick_up_the_block_and_put_it_down.bddl"},
    };
    int rc = create(job, "demo.hdf5", "{\"type\": 1, \"env_name\": \"Synthetic_Table\", \"env_kwargs\": {}}", err);
    for (size_t i = 0; i < sizeof text / sizeof text[0] && rc == 0; i++)
        rc = weir_h5w_attr_text(job->file, "/data", text[i][0], text[i][1], err);
    return rc < 0 ? rc : weir_h5w_attr_int(job->file, "/data", "num_demos", job->config->episodes, err);
}

/* Fingers, then where the gripper is. */
static void fill_robot_states(const struct weir_synth_moment *now, double *row)
{
    weir_fill_fingers(now, row);
    weir_fill_tip_position(now, row + 2);
    weir_fill_tip_quaternion(now, row + 5);
}

int weir_synth_libero(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    static const char *const groups[] = {"/obs", NULL};
    static const struct weir_synth_column columns[] = {
        {"/obs/gripper_states", WEIR_F64, 2, weir_fill_fingers, 0},
        {"/obs/joint_states", WEIR_F64, 7, weir_fill_seven_joints, 0},
        {"/obs/ee_states", WEIR_F64, 6, weir_fill_tip_pose, 0},
        {"/obs/ee_pos", WEIR_F64, 3, weir_fill_tip_position, 0},
        {"/obs/ee_ori", WEIR_F64, 3, weir_fill_tip_rotation, 0},
        {"/actions", WEIR_F64, 7, weir_fill_delta, 0},
        {"/states", WEIR_F64, WEIR_FILL_SIMULATION, weir_fill_simulation, 0},
        {"/robot_states", WEIR_F64, 9, fill_robot_states, 0},
        {"/rewards", WEIR_U8, 0, weir_fill_success, 0},
        {"/dones", WEIR_U8, 0, weir_fill_success, 0},
    };
    char demo[DEMO_BYTES];
    const struct weir_synth_rows rows = {.group = demo, .episode = episode, .storage = job->format->storage};
    int rc = begin(job, episode, groups, demo, err);
    if (rc == 0)
        rc = weir_h5w_attr_text(job->file, demo, "model_file", model, err);
    if (rc == 0)
        rc = weir_synth_tables(job, &rows, columns, sizeof columns / sizeof columns[0], err);
    return rc < 0 ? rc : write_cameras(job, demo, "/obs", err);
}

/* ---- Isaac Lab ---- */

int weir_synth_isaaclab_create(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    (void)episode;
    return create(job, "dataset.hdf5", "{\"env_name\": \"Isaac-Synthetic-Table-v0\", \"type\": 2}", err);
}

/* Position and quaternion wxyz, as Isaac Lab has them. */
static void fill_root_pose(const struct weir_synth_moment *now, double *row)
{
    (void)now;
    row[3] = 1;
}

static const struct weir_synth_column isaac_robot[] = {
    {"/articulation/robot/joint_position", WEIR_F32, WEIR_SCENE_JOINTS, weir_fill_qpos, 0},
    {"/articulation/robot/joint_velocity", WEIR_F32, WEIR_SCENE_JOINTS, weir_fill_qvel, 0},
    {"/articulation/robot/root_pose", WEIR_F32, 7, fill_root_pose, 0},
    {"/articulation/robot/root_velocity", WEIR_F32, 6, weir_fill_zeros, 0},
};

static const struct weir_synth_column isaac_demo[] = {
    {"/actions", WEIR_F32, WEIR_SCENE_JOINTS, weir_fill_action, 0},
    {"/obs/joint_pos", WEIR_F32, WEIR_SCENE_JOINTS, weir_fill_qpos, 0},
    {"/obs/joint_vel", WEIR_F32, WEIR_SCENE_JOINTS, weir_fill_qvel, 0},
    {"/obs/policy/left_eef_pos", WEIR_F32, 3, weir_fill_tip_position, 0},
    {"/obs/policy/right_eef_pos", WEIR_F32, 3, weir_fill_tip_position, 1},
};

static int write_states(struct weir_synth_job *job, int episode, const char *demo, struct weir_err *err)
{
    enum { N = sizeof isaac_robot / sizeof isaac_robot[0] };
    char group[DEMO_BYTES + 16];
    struct weir_synth_rows rows = {.group = group, .episode = episode, .count = 1, .storage = job->format->storage};
    snprintf(group, sizeof group, "%s/initial_state", demo);
    int rc = weir_synth_tables(job, &rows, isaac_robot, N, err);
    snprintf(group, sizeof group, "%s/states", demo);
    rows.count = 0;
    return rc < 0 ? rc : weir_synth_tables(job, &rows, isaac_robot, N, err);
}

int weir_synth_isaaclab(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    static const char *const groups[] = {
        "/obs",
        "/obs/policy",
        "/initial_state",
        "/initial_state/articulation",
        "/initial_state/articulation/robot",
        "/states",
        "/states/articulation",
        "/states/articulation/robot",
        NULL,
    };
    char demo[DEMO_BYTES];
    const struct weir_synth_rows rows = {.group = demo, .episode = episode, .storage = job->format->storage};
    int rc = begin(job, episode, groups, demo, err);
    if (rc == 0)
        rc = weir_h5w_attr_int(job->file, demo, "seed", episode, err);
    if (rc == 0)
        rc = weir_h5w_attr_bool(job->file, demo, "success", true, err);
    if (rc == 0)
        rc = weir_synth_tables(job, &rows, isaac_demo, sizeof isaac_demo / sizeof isaac_demo[0], err);
    if (rc == 0)
        rc = write_states(job, episode, demo, err);
    return rc < 0 ? rc : write_cameras(job, demo, "/obs/policy", err);
}
