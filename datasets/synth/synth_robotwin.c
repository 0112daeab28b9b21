/* RoboTwin 2, after its pkl2hdf5.py: JPEGs in strings of the camera's longest frame. */
#include "datasets/synth/synth_tables_priv.h"

#include <stdio.h>

int weir_synth_robotwin_create(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    char name[64];
    snprintf(name, sizeof name, "data/episode%d.hdf5", episode);
    return weir_synth_create_file(job, name, err);
}

static int write_camera(struct weir_synth_job *job, struct weir_spool *spool, int camera, struct weir_err *err)
{
    char name[WEIR_SYNTH_PATH];
    snprintf(name, sizeof name, "/observation/%s", job->camera[camera]);
    int rc = weir_h5w_group(job->file, name, err);
    if (rc == 0)
        rc = weir_synth_spool(spool, job, err);
    if (rc < 0)
        return rc;
    snprintf(name, sizeof name, "/observation/%s/rgb", job->camera[camera]);
    int set = weir_h5w_string_frames(job->file, name, (uint64_t)job->config->steps, spool->longest, err);
    return weir_h5w_spooled(job->file, set, spool, err);
}

static int write_cameras(struct weir_synth_job *job, struct weir_err *err)
{
    struct weir_spool spool;
    int rc = weir_spool_open(&spool, job->config->out, err);
    for (int c = 0; c < job->n_cameras && rc == 0; c++)
        rc = write_camera(job, &spool, c, err);
    weir_spool_close(&spool);
    return rc;
}

int weir_synth_robotwin(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    static const char *const groups[] = {"/joint_action", "/observation", NULL};
    static const struct weir_synth_column columns[] = {
        {"/joint_action/left_arm", WEIR_F64, 6, weir_fill_arm_joints, 0},
        {"/joint_action/left_gripper", WEIR_F64, 0, weir_fill_arm_gripper, 0},
        {"/joint_action/right_arm", WEIR_F64, 6, weir_fill_arm_joints, 1},
        {"/joint_action/right_gripper", WEIR_F64, 0, weir_fill_arm_gripper, 1},
        {"/joint_action/vector", WEIR_F64, WEIR_SCENE_JOINTS, weir_fill_qpos, 0},
    };
    const struct weir_synth_rows rows = {.group = "", .episode = episode};
    int rc = weir_synth_groups(job, "", groups, err);
    if (rc == 0)
        rc = weir_synth_tables(job, &rows, columns, sizeof columns / sizeof columns[0], err);
    return rc < 0 ? rc : write_cameras(job, err);
}
