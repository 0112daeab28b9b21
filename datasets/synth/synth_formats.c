/* The formats of weir synth. Each lists the objects that its recorder writes, in the recorder's order and with its
 * types. */
#include "datasets/synth/synth_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define N(rows)     ((int)(sizeof(rows) / sizeof(rows)[0]))
#define ROWS(rows)  .items = (rows), .n_items = N(rows)
#define GROUP(path) .what = WEIR_ITEM_GROUP, .name = (path)
/* Attributes. */
#define FLAG(object, attribute, is)   .what = WEIR_ITEM_FLAG, .name = (object), .key = (attribute), .value = (is)
#define NUMBER(object, attribute, of) .what = WEIR_ITEM_NUMBER, .name = (object), .key = (attribute), .value = (of)
#define TEXT(object, attribute, is)   .what = WEIR_ITEM_TEXT, .name = (object), .key = (attribute), .text = (is)
/* Columns. STATE: n floats of the scene's state, from `member` on. FILL: n numbers computed for an arm. */
#define STATE(path, as, n, member)                                                                                     \
    .what = WEIR_ITEM_COLUMN, .name = (path), .type = (as), .width = (n),                                              \
    .from = offsetof(struct weir_scene_state, member)
#define FILL(path, as, n, function, of_arm)                                                                            \
    .what = WEIR_ITEM_COLUMN, .name = (path), .type = (as), .width = (n), .fill = (function), .arm = (of_arm)
#define LIST(path, rows) .what = WEIR_ITEM_LIST, .name = (path), ROWS(rows)
#define CALL(function)   .what = WEIR_ITEM_CALL, .call = (function)

enum { ARM = WEIR_SCENE_ARM_JOINTS, JOINTS = WEIR_SCENE_JOINTS };

/* ---- ACT and its relatives ---- */

static const struct weir_synth_item act_rows[] = {
    {GROUP("/observations")},
    {GROUP("/observations/images")},
    {STATE("/action", WEIR_F32, JOINTS, action)},
    {STATE("/observations/qpos", WEIR_F32, JOINTS, qpos)},
    {STATE("/observations/qvel", WEIR_F32, JOINTS, qvel)},
};

static const struct weir_synth_item act[] = {
    {FLAG("/", "sim", true)},
    {LIST("", act_rows)},
    {.what = WEIR_ITEM_RAW, .name = "/observations/images/"},
};

static const struct weir_synth_item act_jpeg[] = {
    {FLAG("/", "sim", true)},
    {LIST("", act_rows)},
    {FLAG("/", "compress", true)},
    {.what = WEIR_ITEM_PADDED, .name = "/observations/images/", .lengths = "/compress_len"},
};

static const struct weir_synth_item act_jpeg_nolen[] = {
    {FLAG("/", "sim", true)},
    {LIST("", act_rows)},
    {FLAG("/", "compress", true)},
    {.what = WEIR_ITEM_PADDED, .name = "/observations/images/"},
};

/* for cobot_magic */
static const struct weir_synth_item agilex[] = {
    {FLAG("/", "sim", false)},
    {LIST("", act_rows)},
    {FLAG("/", "compress", false)},
    {GROUP("/observations/images_depth")},
    {.what = WEIR_ITEM_RAW, .name = "/observations/images/", .depth = "/observations/images_depth/"},
    {FILL("/observations/effort", WEIR_F32, JOINTS, weir_fill_effort, 0)},
    {FILL("/base_action", WEIR_F32, 2, weir_fill_zeros, 0)},
};

/* ---- AstroBench's dual arm ---- */

static int write_encoding(struct weir_synth_job *job, struct weir_err *err)
{
    char encoding[32];
    snprintf(encoding, sizeof encoding, "jpg_%d", job->config->quality);
    return weir_h5w_attr_text(job->file, "/metadata", "image_encoding", encoding, err);
}

static int write_target(struct weir_synth_job *job, struct weir_err *err)
{
    struct weir_scene_state last;
    weir_scene_state_at(job->scene, job->episode, job->config->steps - 1, &last);
    double pose[7], sum = 0;
    for (int i = 0; i < 7; i++)
        pose[i] = last.target[0][i];
    for (int i = 0; i < 3; i++)
        sum += (pose[i] - last.tip[0][i]) * (pose[i] - last.tip[0][i]);
    const double error = sqrt(sum);
    const struct {
        const char *name;
        struct weir_h5w_shape shape;
        const double *values;
    } arrays[] = {
        {"/metadata/target_pos", {1, {3}}, pose},
        {"/metadata/target_quat", {1, {4}}, pose + 3},
        {"/metadata/final_pos_error", {0, {0}}, &error},
    };
    int rc = 0;
    for (int i = 0; i < N(arrays) && rc == 0; i++)
        rc = weir_h5w_array(job->file, arrays[i].name, WEIR_F64, &arrays[i].shape, WEIR_H5W_CONTIGUOUS,
                            arrays[i].values, err);
    return rc;
}

static const struct weir_synth_item astrobench[] = {
    {GROUP("/metadata")},
    {GROUP("/observations")},
    {GROUP("/action")},
    {NUMBER("/metadata", "episode_id", WEIR_NUMBER_EPISODE)},
    {NUMBER("/metadata", "num_frames", WEIR_NUMBER_STEPS)},
    {TEXT("/metadata", "scene_id", "synthetic")},
    {TEXT("/metadata", "robot_name", "synthetic_dual_arm")},
    {TEXT("/metadata", "timestamp", "1970-01-01T00:00:00")},
    {CALL(write_encoding)},
    {TEXT("/metadata", "depth_encoding", "png_uint16")},
    {CALL(write_target)},
    {.what = WEIR_ITEM_VLEN, .name = "/observations/rgb_", .depth = "/observations/depth_"},
    {FILL("/observations/joint_pos", WEIR_F32, 28, weir_fill_astro_qpos, 0)},
    {FILL("/observations/base_pose", WEIR_F32, 7, weir_fill_astro_base, 0)},
    {FILL("/observations/base_vel", WEIR_F32, 6, weir_fill_zeros, 0)},
    {STATE("/observations/ee_pose", WEIR_F32, 14, tip)},
    {FILL("/action/joint_positions", WEIR_F32, 28, weir_fill_astro_action, 0)},
    {FILL("/action/joint_velocities", WEIR_F32, 28, weir_fill_astro_qvel, 0)},
    {FILL("/action/gripper_command", WEIR_F32, 2, weir_fill_astro_grippers, 0)},
    {FILL("/action/cartesian_target_pose", WEIR_F32, 16, weir_fill_astro_target, 0)},
    {FILL("/observations/grasp_success", WEIR_I32, 0, weir_fill_astro_grasp, 0), .is_contiguous = true},
};

/* ---- RoboMIND's robots with two arms ---- */

static const struct weir_synth_item robomind[] = {
    {FLAG("/", "sim", false)},
    {FLAG("/", "compress", true)},
    {GROUP("/master")},
    {GROUP("/puppet")},
    {GROUP("/observations")},
    {GROUP("/observations/rgb_images")},
    {GROUP("/observations/depth_images")},
    {STATE("/master/joint_position_left", WEIR_F64, ARM, action)},
    {STATE("/master/joint_position_right", WEIR_F64, ARM, action[ARM])},
    {STATE("/puppet/joint_position_left", WEIR_F64, ARM, qpos)},
    {STATE("/puppet/joint_position_right", WEIR_F64, ARM, qpos[ARM])},
    {FILL("/puppet/end_effector_left", WEIR_F64, 6, weir_fill_tip_pose, 0)},
    {FILL("/puppet/end_effector_right", WEIR_F64, 6, weir_fill_tip_pose, 1)},
    {.what = WEIR_ITEM_VLEN, .name = "/observations/rgb_images/", .depth = "/observations/depth_images/"},
};

/* ---- RoboTwin 2, as its pkl2hdf5.py writes it ---- */

static const struct weir_synth_item robotwin[] = {
    {GROUP("/joint_action")},
    {GROUP("/observation")},
    {STATE("/joint_action/left_arm", WEIR_F64, ARM - 1, qpos)},
    {STATE("/joint_action/left_gripper", WEIR_F64, 0, qpos[ARM - 1])},
    {STATE("/joint_action/right_arm", WEIR_F64, ARM - 1, qpos[ARM])},
    {STATE("/joint_action/right_gripper", WEIR_F64, 0, qpos[JOINTS - 1])},
    {STATE("/joint_action/vector", WEIR_F64, JOINTS, qpos)},
    {.what = WEIR_ITEM_STRINGS, .name = "/observation/", .text = "/rgb"},
};

/* ---- robomimic ---- */

/* Writes the names of demos first .. end - 1 in the form in which numpy stores a list of bytes. */
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

/* A tenth of the demos, but at least one, is for validation. If there is only one demo, none is. */
static int write_masks(struct weir_synth_job *job, struct weir_err *err)
{
    int n = job->config->episodes, train = n - (n > 10 ? n / 10 : n > 1);
    int rc = write_mask(job, "/mask/train", 0, train, err);
    return rc < 0 ? rc : write_mask(job, "/mask/valid", train, n, err);
}

static int write_env_args(struct weir_synth_job *job, struct weir_err *err)
{
    char env_args[256];
    snprintf(env_args, sizeof env_args,
             "{\"env_name\": \"SyntheticTable\", \"type\": 1, \"env_kwargs\": {\"control_freq\": %g, "
             "\"camera_heights\": %d, \"camera_widths\": %d}}",
             job->format->rate_hz, job->config->height, job->config->width);
    return weir_h5w_attr_text(job->file, "/data", "env_args", env_args, err);
}

static const struct weir_synth_item robomimic_once[] = {
    {GROUP("/data")},    {NUMBER("/data", "total", WEIR_NUMBER_TOTAL)}, {CALL(write_env_args)}, {GROUP("/mask")},
    {CALL(write_masks)},
};

static const struct weir_synth_item robomimic_obs[] = {
    {FILL("/robot0_joint_pos", WEIR_F64, 7, weir_fill_seven_joints, 0)},
    {STATE("/robot0_eef_pos", WEIR_F64, 3, tip[0])},
    {STATE("/robot0_eef_quat", WEIR_F64, 4, tip[0][3])},
    {FILL("/robot0_gripper_qpos", WEIR_F64, 2, weir_fill_fingers, 0)},
    {FILL("/robot1_joint_pos", WEIR_F64, 7, weir_fill_seven_joints, 1)},
    {STATE("/robot1_eef_pos", WEIR_F64, 3, tip[1])},
    {STATE("/robot1_eef_quat", WEIR_F64, 4, tip[1][3])},
    {FILL("/robot1_gripper_qpos", WEIR_F64, 2, weir_fill_fingers, 1)},
};

static const char model[] = "<mujoco model=\"synthetic\"/>";

static const struct weir_synth_item robomimic[] = {
    {NUMBER("", "num_samples", WEIR_NUMBER_STEPS)},
    {GROUP("/obs")},
    {GROUP("/next_obs")},
    {TEXT("", "model_file", model)},
    {FILL("/actions", WEIR_F64, 14, weir_fill_both_deltas, 0)},
    {FILL("/states", WEIR_F64, WEIR_FILL_SIMULATION, weir_fill_simulation, 0)},
    {FILL("/rewards", WEIR_F64, 0, weir_fill_success, 0)},
    {FILL("/dones", WEIR_I64, 0, weir_fill_success, 0)},
    {LIST("/obs", robomimic_obs)},
    {.what = WEIR_ITEM_RAW, .name = "/obs/", .text = "_image"},
    {LIST("/next_obs", robomimic_obs), .first = 1},
};

/* ---- LIBERO ---- */

static const struct weir_synth_item libero_once[] = {
    {GROUP("/data")},
    {NUMBER("/data", "total", WEIR_NUMBER_TOTAL)},
    {TEXT("/data", "env_args", "{\"type\": 1, \"env_name\": \"Synthetic_Table\", \"env_kwargs\": {}}")},
    {TEXT("/data", "env_name", "Synthetic_Table")},
    {TEXT("/data", "problem_info",
          "{\"problem_name\": \"synthetic_table\", \"domain_name\": \"robosuite\", "
          "\"language_instruction\": \"pick up the block and put it down\"}")},
    {TEXT("/data", "macros_image_convention",
          "opencv")}, /* "opengl" would mean that images start with the bottom row */
    {TEXT("/data", "bddl_file_name", "bddl_files/synthetic/pick_up_the_block_and_put_it_down.bddl")},
    {NUMBER("/data", "num_demos", WEIR_NUMBER_EPISODES)},
};

static const struct weir_synth_item libero[] = {
    {NUMBER("", "num_samples", WEIR_NUMBER_STEPS)},
    {GROUP("/obs")},
    {TEXT("", "model_file", model)},
    {FILL("/obs/gripper_states", WEIR_F64, 2, weir_fill_fingers, 0)},
    {FILL("/obs/joint_states", WEIR_F64, 7, weir_fill_seven_joints, 0)},
    {FILL("/obs/ee_states", WEIR_F64, 6, weir_fill_tip_pose, 0)},
    {STATE("/obs/ee_pos", WEIR_F64, 3, tip)},
    {FILL("/obs/ee_ori", WEIR_F64, 3, weir_fill_tip_rotation, 0)},
    {FILL("/actions", WEIR_F64, 7, weir_fill_delta, 0)},
    {FILL("/states", WEIR_F64, WEIR_FILL_SIMULATION, weir_fill_simulation, 0)},
    {FILL("/robot_states", WEIR_F64, 9, weir_fill_robot_states, 0)},
    {FILL("/rewards", WEIR_U8, 0, weir_fill_success, 0)},
    {FILL("/dones", WEIR_U8, 0, weir_fill_success, 0)},
    {.what = WEIR_ITEM_RAW, .name = "/obs/", .text = "_rgb"},
};

/* ---- Isaac Lab ---- */

static const struct weir_synth_item isaaclab_once[] = {
    {GROUP("/data")},
    {NUMBER("/data", "total", WEIR_NUMBER_TOTAL)},
    {TEXT("/data", "env_args", "{\"env_name\": \"Isaac-Synthetic-Table-v0\", \"type\": 2}")},
};

static const struct weir_synth_item isaaclab_robot[] = {
    {STATE("/articulation/robot/joint_position", WEIR_F32, JOINTS, qpos)},
    {STATE("/articulation/robot/joint_velocity", WEIR_F32, JOINTS, qvel)},
    {FILL("/articulation/robot/root_pose", WEIR_F32, 7, weir_fill_root_pose, 0)},
    {FILL("/articulation/robot/root_velocity", WEIR_F32, 6, weir_fill_zeros, 0)},
};

static const struct weir_synth_item isaaclab[] = {
    {NUMBER("", "num_samples", WEIR_NUMBER_STEPS)},
    {GROUP("/obs")},
    {GROUP("/obs/policy")},
    {GROUP("/initial_state")},
    {GROUP("/initial_state/articulation")},
    {GROUP("/initial_state/articulation/robot")},
    {GROUP("/states")},
    {GROUP("/states/articulation")},
    {GROUP("/states/articulation/robot")},
    {NUMBER("", "seed", WEIR_NUMBER_EPISODE)},
    {FLAG("", "success", true)},
    {STATE("/actions", WEIR_F32, JOINTS, action)},
    {STATE("/obs/joint_pos", WEIR_F32, JOINTS, qpos)},
    {STATE("/obs/joint_vel", WEIR_F32, JOINTS, qvel)},
    {STATE("/obs/policy/left_eef_pos", WEIR_F32, 3, tip[0])},
    {STATE("/obs/policy/right_eef_pos", WEIR_F32, 3, tip[1])},
    {LIST("/initial_state", isaaclab_robot), .count = 1},
    {LIST("/states", isaaclab_robot)},
    {.what = WEIR_ITEM_RAW, .name = "/obs/policy/"},
};

/* ---- the table ---- */

const char weir_synth_format_names[] = "act|act-jpeg|act-jpeg-nolen|agilex|astrobench|robotwin|robomind|robomimic|"
                                       "robomimic-gzip|libero|isaaclab";

#define ACT   .file = "episode_", .file_end = ".hdf5", .digits = 1, .image_storage = WEIR_H5W_ROW_CHUNKS
#define DEMOS .group = "/data/demo_"
#define GZIP  .storage = WEIR_H5W_GZIP, .image_storage = WEIR_H5W_GZIP
#define ROBOMIMIC                                                                                                      \
    DEMOS, .cameras = "agentview,robot0_eye_in_hand", .suffix = "_image", .rate_hz = 20, .file = "demos.hdf5",         \
           .once = robomimic_once, .n_once = N(robomimic_once), ROWS(robomimic)

/* In the same order as weir_synth_format_names. */
static const struct weir_synth_format formats[] = {
    {.name = "act", .cameras = "top,wrist", .rate_hz = 50, ACT, ROWS(act)},
    {.name = "act-jpeg", .cameras = "top,wrist", .rate_hz = 50, .jpeg = true, ACT, ROWS(act_jpeg)},
    {.name = "act-jpeg-nolen", .cameras = "top,wrist", .rate_hz = 50, .jpeg = true, ACT, ROWS(act_jpeg_nolen)},
    {.name = "agilex",
     .cameras = "cam_high,cam_left_wrist,cam_right_wrist",
     .rate_hz = 30,
     .depth = WEIR_DEPTH_RAW,
     ACT,
     ROWS(agilex)},
    {.name = "astrobench",
     .cameras = "main,left,right,under",
     .prefix = "rgb_",
     .rate_hz = 10,
     .jpeg = true,
     .depth = WEIR_DEPTH_PNG,
     .file = "data/synthetic/diffuse/episode_00_",
     .file_end = "_expert_diffuse.h5",
     .digits = 4,
     .storage = WEIR_H5W_GZIP,
     ROWS(astrobench)},
    {.name = "robotwin",
     .cameras = "head_camera,left_camera,right_camera,front_camera",
     .rate_hz = 15,
     .jpeg = true,
     .comment = "XPL-RGB1",
     .file = "data/episode",
     .file_end = ".hdf5",
     .digits = 1,
     ROWS(robotwin)},
    {.name = "robomind",
     .cameras = "camera_front,camera_left_wrist,camera_right_wrist",
     .rate_hz = 30,
     .jpeg = true,
     .depth = WEIR_DEPTH_PNG,
     .file = "success_episodes/train/",
     .file_end = "/data/trajectory.hdf5",
     .digits = 4,
     ROWS(robomind)},
    {.name = "robomimic", ROBOMIMIC},
    {.name = "robomimic-gzip", ROBOMIMIC, GZIP},
    {.name = "libero",
     .cameras = "agentview,eye_in_hand",
     .suffix = "_rgb",
     .rate_hz = 20,
     .file = "demo.hdf5",
     .once = libero_once,
     .n_once = N(libero_once),
     DEMOS,
     ROWS(libero)},
    {.name = "isaaclab",
     .cameras = "table_cam,wrist_cam",
     .rate_hz = 30,
     .file = "dataset.hdf5",
     .once = isaaclab_once,
     .n_once = N(isaaclab_once),
     DEMOS,
     GZIP,
     ROWS(isaaclab)},
};

const struct weir_synth_format *weir_synth_format_at(int i)
{
    return i >= 0 && i < N(formats) ? &formats[i] : NULL;
}
