/* RoboMIND's two-armed robots. */
#include "datasets/synth/synth_tables_priv.h"

#include <stdio.h>

int weir_synth_robomind_create(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    char name[128];
    snprintf(name, sizeof name, "success_episodes/train/%04d/data/trajectory.hdf5", episode);
    return weir_synth_create_file(job, name, err);
}

int weir_synth_robomind(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    static const char *const groups[] = {
        "/master", "/puppet", "/observations", "/observations/rgb_images", "/observations/depth_images", NULL,
    };
    static const struct weir_synth_column columns[] = {
        {"/master/joint_position_left", WEIR_F64, WEIR_SCENE_ARM_JOINTS, weir_fill_arm_action, 0},
        {"/master/joint_position_right", WEIR_F64, WEIR_SCENE_ARM_JOINTS, weir_fill_arm_action, 1},
        {"/puppet/joint_position_left", WEIR_F64, WEIR_SCENE_ARM_JOINTS, weir_fill_arm_qpos, 0},
        {"/puppet/joint_position_right", WEIR_F64, WEIR_SCENE_ARM_JOINTS, weir_fill_arm_qpos, 1},
        {"/puppet/end_effector_left", WEIR_F64, 6, weir_fill_tip_pose, 0},
        {"/puppet/end_effector_right", WEIR_F64, 6, weir_fill_tip_pose, 1},
    };
    const struct weir_synth_rows rows = {.group = "", .episode = episode};
    int rc = weir_h5w_attr_bool(job->file, "/", "sim", false, err);
    if (rc == 0)
        rc = weir_h5w_attr_bool(job->file, "/", "compress", true, err);
    if (rc == 0)
        rc = weir_synth_groups(job, "", groups, err);
    if (rc == 0)
        rc = weir_synth_tables(job, &rows, columns, sizeof columns / sizeof columns[0], err);
    for (int c = 0; c < job->n_cameras && rc == 0; c++) {
        char image[WEIR_SYNTH_PATH], depth[WEIR_SYNTH_PATH];
        snprintf(image, sizeof image, "/observations/rgb_images/%s", job->camera[c]);
        snprintf(depth, sizeof depth, "/observations/depth_images/%s", job->camera[c]);
        rc = weir_synth_vlen_camera(job, image, depth, err);
    }
    return rc;
}
