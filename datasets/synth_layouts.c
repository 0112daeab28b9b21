/* How each format lays out an episode. Object order and types follow the recorders that users have. */
#include "datasets/synth_layouts_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what the formats share ---- */

static int next_frame(struct weir_synth_job *job, const struct weir_frame **frame, struct weir_err *err)
{
    int rc = weir_frames_next(job->frames, frame);
    if (rc < 0)
        return weir_err_set(err, rc, "a frame cannot be made: %s", strerror(-rc));
    job->stats.frames++;
    if (job->format->jpeg) {
        job->stats.jpeg_frames++;
        job->stats.jpeg_bytes += (*frame)->image.size;
    }
    return 0;
}

static void report(struct weir_synth_job *job)
{
    const struct weir_synth_config *config = job->config;
    if (config->stats)
        *config->stats = job->stats;
    if (config->progress)
        config->progress(config->user, job->stats.episodes, config->episodes);
}

static int finish(struct weir_synth_job *job, struct weir_h5w **file, int rc, struct weir_err *err)
{
    uint64_t bytes = 0;
    if (rc == 0)
        rc = weir_h5w_commit(file, &bytes, err);
    else
        weir_h5w_abandon(file);
    if (rc == 0) {
        job->stats.episodes++;
        job->stats.bytes += bytes;
        report(job);
    }
    return rc;
}

/* A table with a row per step, filled by a function of the step's state. */
struct column {
    const char *name;
    int width;
    void (*fill)(const struct weir_scene_state *state, float *row);
};

static int write_columns(struct weir_synth_job *job, struct weir_h5w *file, int episode, const struct column *columns,
                         int n, bool gzip, struct weir_err *err)
{
    size_t steps = (size_t)job->config->steps;
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        const struct column *column = &columns[i];
        float *table = calloc(steps * (size_t)column->width, sizeof *table);
        if (!table)
            return weir_err_set(err, -ENOMEM, "%s: out of memory for %zu steps", column->name, steps);
        for (size_t t = 0; t < steps; t++) {
            struct weir_scene_state state;
            weir_scene_state_at(job->scene, episode, (int)t, &state);
            column->fill(&state, table + t * (size_t)column->width);
        }
        rc = weir_h5w_array(file, column->name, WEIR_H5W_F32, steps, (uint64_t)column->width, gzip, table, err);
        free(table);
    }
    return rc;
}

/* ---- act and act-jpeg ---- */

static void fill_qpos(const struct weir_scene_state *state, float *row)
{
    memcpy(row, state->qpos, sizeof state->qpos);
}

static void fill_qvel(const struct weir_scene_state *state, float *row)
{
    memcpy(row, state->qvel, sizeof state->qvel);
}

static void fill_action(const struct weir_scene_state *state, float *row)
{
    memcpy(row, state->action, sizeof state->action);
}

static int act_begin(struct weir_synth_job *job, int episode, bool compress, struct weir_h5w **file,
                     struct weir_err *err)
{
    static const struct column columns[] = {
        {"/action", WEIR_SCENE_JOINTS, fill_action},
        {"/observations/qpos", WEIR_SCENE_JOINTS, fill_qpos},
        {"/observations/qvel", WEIR_SCENE_JOINTS, fill_qvel},
    };
    char path[4096];
    snprintf(path, sizeof path, "%s/episode_%d.hdf5", job->config->out, episode);
    int rc = weir_h5w_create(file, path, err);
    if (rc == 0)
        rc = weir_h5w_attr_bool(*file, "/", "sim", true, err);
    if (rc == 0 && compress)
        rc = weir_h5w_attr_bool(*file, "/", "compress", true, err);
    if (rc == 0)
        rc = weir_h5w_group(*file, "/observations", err);
    if (rc == 0)
        rc = weir_h5w_group(*file, "/observations/images", err);
    if (rc == 0)
        rc = write_columns(job, *file, episode, columns, 3, false, err);
    return rc;
}

static int act_camera(struct weir_synth_job *job, struct weir_h5w *file, const char *camera, struct weir_err *err)
{
    const struct weir_synth_config *config = job->config;
    char name[WEIR_SYNTH_NAME + 32];
    snprintf(name, sizeof name, "/observations/images/%s", camera);
    int set = weir_h5w_raw_frames(file, name, (uint64_t)config->steps, config->height, config->width, err);
    int rc = set < 0 ? set : 0;
    for (int t = 0; t < config->steps && rc == 0; t++) {
        const struct weir_frame *frame;
        rc = next_frame(job, &frame, err);
        if (rc == 0)
            rc = weir_h5w_frame(file, set, (uint64_t)t, frame->image.data, frame->image.size, err);
        if (rc == 0)
            report(job);
    }
    return rc;
}

int weir_synth_act(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    struct weir_h5w *file = NULL;
    int rc = act_begin(job, episode, false, &file, err);
    for (int c = 0; c < job->n_cameras && rc == 0; c++)
        rc = act_camera(job, file, job->camera[c], err);
    return finish(job, &file, rc, err);
}

/* The width of the rows is known only when all frames are: until then they wait in a file without a name. */
static int spool_open(struct weir_synth_job *job, struct weir_err *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/.frames-XXXXXX", job->config->out);
    int fd = mkstemp(path);
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: cannot be created: %s", path, strerror(errno));
    unlink(path);
    return fd;
}

static int spool_put(int fd, const uint8_t *data, size_t bytes, off_t at)
{
    while (bytes > 0) {
        ssize_t n = pwrite(fd, data, bytes, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        data += n;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int spool_get(int fd, uint8_t *data, size_t bytes, off_t at)
{
    while (bytes > 0) {
        ssize_t n = pread(fd, data, bytes, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        data += n;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int spool_fill(struct weir_synth_job *job, int fd, float *lengths, size_t *longest, struct weir_err *err)
{
    off_t at = 0;
    *longest = 0;
    if (ftruncate(fd, 0) < 0)
        return weir_err_set(err, -errno, "%s: %s", job->config->out, strerror(errno));
    for (int t = 0; t < job->config->steps; t++) {
        const struct weir_frame *frame;
        int rc = next_frame(job, &frame, err);
        if (rc < 0)
            return rc;
        rc = spool_put(fd, frame->image.data, frame->image.size, at);
        if (rc < 0)
            return weir_err_set(err, rc, "%s: frames cannot be written: %s", job->config->out, strerror(-rc));
        /* act-plus-plus keeps lengths as float32, exact up to 16 MiB. */
        lengths[t] = (float)frame->image.size;
        *longest = frame->image.size > *longest ? frame->image.size : *longest;
        at += (off_t)frame->image.size;
        report(job);
    }
    return *longest > 1 << 24
               ? weir_err_set(err, -EFBIG,
                              "a JPEG of %zu bytes: act-jpeg stores lengths as float32, exact up to 16 MiB; "
                              "lower --quality or --size",
                              *longest)
               : 0;
}

static int spool_to_rows(struct weir_synth_job *job, int fd, struct weir_h5w *file, const char *camera,
                         const float *lengths, size_t longest, struct weir_err *err)
{
    char name[WEIR_SYNTH_NAME + 32];
    snprintf(name, sizeof name, "/observations/images/%s", camera);
    int set = weir_h5w_row_frames(file, name, (uint64_t)job->config->steps, longest, err);
    if (set < 0)
        return set;
    uint8_t *row = malloc(longest);
    int rc = row ? 0 : weir_err_set(err, -ENOMEM, "%s: out of memory", name);
    off_t at = 0;
    for (int t = 0; t < job->config->steps && rc == 0; t++) {
        size_t bytes = (size_t)lengths[t];
        rc = spool_get(fd, row, bytes, at);
        if (rc < 0)
            weir_err_set(err, rc, "%s: frames cannot be read back: %s", job->config->out, strerror(-rc));
        memset(row + bytes, 0, longest - bytes);
        if (rc == 0)
            rc = weir_h5w_frame(file, set, (uint64_t)t, row, longest, err);
        at += (off_t)bytes;
    }
    free(row);
    return rc;
}

/* The rows of compress_len follow the cameras in the order of their names. */
static int rank_of(const struct weir_synth_job *job, int camera)
{
    int rank = 0;
    for (int c = 0; c < job->n_cameras; c++)
        rank += strcmp(job->camera[c], job->camera[camera]) < 0;
    return rank;
}

int weir_synth_act_jpeg(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    size_t steps = (size_t)job->config->steps, cameras = (size_t)job->n_cameras;
    struct weir_h5w *file = NULL;
    float *lengths = calloc(cameras * steps, sizeof *lengths);
    int fd = spool_open(job, err);
    int rc = fd < 0 ? fd : lengths ? 0 : weir_err_set(err, -ENOMEM, "out of memory for %zu steps", steps);
    if (rc == 0)
        rc = act_begin(job, episode, true, &file, err);
    for (int c = 0; c < job->n_cameras && rc == 0; c++) {
        float *row = lengths + (size_t)rank_of(job, c) * steps;
        size_t longest;
        rc = spool_fill(job, fd, row, &longest, err);
        if (rc == 0)
            rc = spool_to_rows(job, fd, file, job->camera[c], row, longest, err);
    }
    if (rc == 0)
        rc = weir_h5w_array(file, "/compress_len", WEIR_H5W_F32, cameras, steps, false, lengths, err);
    if (fd >= 0)
        close(fd);
    free(lengths);
    return finish(job, &file, rc, err);
}

/* ---- astrobench ---- */

enum { ASTRO_JOINTS = 28 };

/* Left and right joints alternate: seven of each arm, then seven of each hand. */
static void fill_astro_joints(const float *joint, float *row)
{
    static const int source[7] = {0, 1, 3, 2, 3, 4, 5};
    static const float scale[7] = {1, 1, 0.5f, 1, 0.5f, 1, 1};
    static const float finger[7] = {1.0f, 0.9f, 0.8f, 1.0f, 0.9f, 0.8f, 0.6f};
    for (int arm = 0; arm < WEIR_SCENE_ARMS; arm++) {
        const float *own = joint + arm * WEIR_SCENE_ARM_JOINTS;
        for (int j = 0; j < 7; j++) {
            row[2 * j + arm] = own[source[j]] * scale[j];
            row[14 + 2 * j + arm] = own[6] * finger[j];
        }
    }
}

static void fill_joint_pos(const struct weir_scene_state *state, float *row)
{
    fill_astro_joints(state->qpos, row);
}

static void fill_joint_positions(const struct weir_scene_state *state, float *row)
{
    fill_astro_joints(state->action, row);
}

static void fill_joint_velocities(const struct weir_scene_state *state, float *row)
{
    fill_astro_joints(state->qvel, row);
}

static void fill_base_pose(const struct weir_scene_state *state, float *row)
{
    (void)state;
    row[6] = 1; /* at the origin, not turned: quaternion xyzw */
}

static void fill_nothing(const struct weir_scene_state *state, float *row)
{
    (void)state;
    (void)row;
}

static void fill_ee_pose(const struct weir_scene_state *state, float *row)
{
    memcpy(row, state->tip, sizeof state->tip);
}

static void fill_gripper_command(const struct weir_scene_state *state, float *row)
{
    row[0] = state->action[WEIR_SCENE_ARM_JOINTS - 1];
    row[1] = state->action[WEIR_SCENE_JOINTS - 1];
}

static void fill_cartesian(const struct weir_scene_state *state, float *row)
{
    for (int arm = 0; arm < WEIR_SCENE_ARMS; arm++) {
        memcpy(row + 8 * arm, state->target[arm], sizeof state->target[arm]);
        row[8 * arm + 7] = state->action[(arm + 1) * WEIR_SCENE_ARM_JOINTS - 1];
    }
}

static const struct column astro_columns[] = {
    {"/observations/joint_pos", ASTRO_JOINTS, fill_joint_pos},
    {"/observations/base_pose", 7, fill_base_pose},
    {"/observations/base_vel", 6, fill_nothing},
    {"/observations/ee_pose", 14, fill_ee_pose},
    {"/action/joint_positions", ASTRO_JOINTS, fill_joint_positions},
    {"/action/joint_velocities", ASTRO_JOINTS, fill_joint_velocities},
    {"/action/gripper_command", 2, fill_gripper_command},
    {"/action/cartesian_target_pose", 16, fill_cartesian},
};

static int astro_attributes(struct weir_synth_job *job, struct weir_h5w *file, int episode, struct weir_err *err)
{
    char encoding[32];
    snprintf(encoding, sizeof encoding, "jpg_%d", job->config->quality);
    const char *text[][2] = {
        {"scene_id", "synthetic"},    {"robot_name", "synthetic_dual_arm"}, {"timestamp", "1970-01-01T00:00:00"},
        {"image_encoding", encoding}, {"depth_encoding", "png_uint16"},
    };
    int rc = weir_h5w_attr_int(file, "/metadata", "episode_id", episode, err);
    if (rc == 0)
        rc = weir_h5w_attr_int(file, "/metadata", "num_frames", job->config->steps, err);
    for (size_t i = 0; i < sizeof text / sizeof text[0] && rc == 0; i++)
        rc = weir_h5w_attr_text(file, "/metadata", text[i][0], text[i][1], err);
    return rc;
}

static int astro_metadata(struct weir_synth_job *job, struct weir_h5w *file, int episode, struct weir_err *err)
{
    struct weir_scene_state last;
    weir_scene_state_at(job->scene, episode, job->config->steps - 1, &last);
    double position[3], turn[4], sum = 0;
    for (int i = 0; i < 3; i++) {
        position[i] = last.target[0][i];
        sum += (position[i] - last.tip[0][i]) * (position[i] - last.tip[0][i]);
    }
    for (int i = 0; i < 4; i++)
        turn[i] = last.target[0][3 + i];
    double error = sqrt(sum);
    int rc = astro_attributes(job, file, episode, err);
    if (rc == 0)
        rc = weir_h5w_array(file, "/metadata/target_pos", WEIR_H5W_F64, 3, 0, false, position, err);
    if (rc == 0)
        rc = weir_h5w_array(file, "/metadata/target_quat", WEIR_H5W_F64, 4, 0, false, turn, err);
    return rc < 0 ? rc : weir_h5w_array(file, "/metadata/final_pos_error", WEIR_H5W_F64, 0, 0, false, &error, err);
}

static int astro_grasps(struct weir_synth_job *job, struct weir_h5w *file, int episode, struct weir_err *err)
{
    size_t steps = (size_t)job->config->steps;
    int32_t *grasp = malloc(steps * sizeof *grasp);
    if (!grasp)
        return weir_err_set(err, -ENOMEM, "out of memory for %zu steps", steps);
    for (size_t t = 0; t < steps; t++) {
        struct weir_scene_state state;
        weir_scene_state_at(job->scene, episode, (int)t, &state);
        grasp[t] = state.holding > 0;
    }
    int rc = weir_h5w_array(file, "/observations/grasp_success", WEIR_H5W_I32, steps, 0, false, grasp, err);
    free(grasp);
    return rc;
}

static int astro_camera(struct weir_synth_job *job, struct weir_h5w *file, const char *camera, struct weir_err *err)
{
    char rgb[WEIR_SYNTH_NAME + 32], depth[WEIR_SYNTH_NAME + 32];
    snprintf(rgb, sizeof rgb, "/observations/rgb_%s", camera);
    snprintf(depth, sizeof depth, "/observations/depth_%s", camera);
    uint64_t steps = (uint64_t)job->config->steps;
    int rgb_set = weir_h5w_vlen_frames(file, rgb, steps, err);
    int depth_set = rgb_set < 0 ? rgb_set : weir_h5w_vlen_frames(file, depth, steps, err);
    int rc = depth_set < 0 ? depth_set : 0;
    for (uint64_t t = 0; t < steps && rc == 0; t++) {
        const struct weir_frame *frame;
        rc = next_frame(job, &frame, err);
        if (rc == 0)
            rc = weir_h5w_frame(file, rgb_set, t, frame->image.data, frame->image.size, err);
        if (rc == 0)
            rc = weir_h5w_frame(file, depth_set, t, frame->depth.data, frame->depth.size, err);
        if (rc == 0)
            report(job);
    }
    return rc;
}

static int astro_path(const struct weir_synth_job *job, int episode, char *path, size_t size, struct weir_err *err)
{
    static const char *const folders[] = {"data", "data/synthetic", "data/synthetic/diffuse"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, size, "%s/%s", job->config->out, folders[i]);
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return weir_err_set(err, -errno, "%s: cannot be created: %s", path, strerror(errno));
    }
    snprintf(path, size, "%s/%s/episode_00_%04d_expert_diffuse.h5", job->config->out, folders[2], episode);
    return 0;
}

int weir_synth_astrobench(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    static const char *const groups[] = {"/metadata", "/observations", "/action"};
    char path[4096];
    struct weir_h5w *file = NULL;
    int rc = astro_path(job, episode, path, sizeof path, err);
    if (rc == 0)
        rc = weir_h5w_create(&file, path, err);
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = weir_h5w_group(file, groups[i], err);
    if (rc == 0)
        rc = astro_metadata(job, file, episode, err);
    for (int c = 0; c < job->n_cameras && rc == 0; c++)
        rc = astro_camera(job, file, job->camera[c], err);
    if (rc == 0)
        rc =
            write_columns(job, file, episode, astro_columns, sizeof astro_columns / sizeof astro_columns[0], true, err);
    if (rc == 0)
        rc = astro_grasps(job, file, episode, err);
    return finish(job, &file, rc, err);
}
