/* ACT and its kin: act, act-jpeg, act-jpeg-nolen, agilex. Object order and types follow the recorders. */
#include "datasets/synth/synth_tables_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int weir_synth_act_create(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    char name[64];
    snprintf(name, sizeof name, "episode_%d.hdf5", episode);
    return weir_synth_create_file(job, name, err);
}

/* What all of them have. sim: value of the file's attribute "sim". */
static int begin(struct weir_synth_job *job, int episode, bool sim, struct weir_err *err)
{
    static const char *const groups[] = {"/observations", "/observations/images", NULL};
    static const struct weir_synth_column columns[] = {
        {"/action", WEIR_F32, WEIR_SCENE_JOINTS, weir_fill_action, 0},
        {"/observations/qpos", WEIR_F32, WEIR_SCENE_JOINTS, weir_fill_qpos, 0},
        {"/observations/qvel", WEIR_F32, WEIR_SCENE_JOINTS, weir_fill_qvel, 0},
    };
    const struct weir_synth_rows rows = {.group = "", .episode = episode};
    int rc = weir_h5w_attr_bool(job->file, "/", "sim", sim, err);
    if (rc == 0)
        rc = weir_synth_groups(job, "", groups, err);
    return rc < 0 ? rc : weir_synth_tables(job, &rows, columns, sizeof columns / sizeof columns[0], err);
}

static void name_camera(const struct weir_synth_job *job, int camera, char name[WEIR_SYNTH_PATH])
{
    snprintf(name, WEIR_SYNTH_PATH, "/observations/images/%s", job->camera[camera]);
}

int weir_synth_act(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    int rc = begin(job, episode, true, err);
    for (int c = 0; c < job->n_cameras && rc == 0; c++) {
        char name[WEIR_SYNTH_PATH];
        name_camera(job, c, name);
        rc = weir_synth_raw_camera(job, name, NULL, WEIR_H5W_ROW_CHUNKS, err);
    }
    return rc;
}

/* ---- cobot_magic ---- */

/* As a spring would pull the joint to where it was told to be. */
static void fill_effort(const struct weir_synth_moment *now, double *row)
{
    for (int j = 0; j < WEIR_SCENE_JOINTS; j++)
        row[j] = 20 * ((double)now->state.action[j] - now->state.qpos[j]);
}

int weir_synth_agilex(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    static const struct weir_synth_column columns[] = {
        {"/observations/effort", WEIR_F32, WEIR_SCENE_JOINTS, fill_effort, 0},
        {"/base_action", WEIR_F32, 2, weir_fill_zeros, 0},
    };
    const struct weir_synth_rows rows = {.group = "", .episode = episode};
    int rc = begin(job, episode, false, err);
    if (rc == 0)
        rc = weir_h5w_attr_bool(job->file, "/", "compress", false, err);
    if (rc == 0)
        rc = weir_h5w_group(job->file, "/observations/images_depth", err);
    for (int c = 0; c < job->n_cameras && rc == 0; c++) {
        char image[WEIR_SYNTH_PATH], depth[WEIR_SYNTH_PATH];
        name_camera(job, c, image);
        snprintf(depth, sizeof depth, "/observations/images_depth/%s", job->camera[c]);
        rc = weir_synth_raw_camera(job, image, depth, WEIR_H5W_ROW_CHUNKS, err);
    }
    return rc < 0 ? rc : weir_synth_tables(job, &rows, columns, sizeof columns / sizeof columns[0], err);
}

/* ---- act-plus-plus ---- */

static int write_rows(struct weir_synth_job *job, struct weir_spool *spool, int camera, struct weir_err *err)
{
    char name[WEIR_SYNTH_PATH];
    name_camera(job, camera, name);
    int rc = weir_synth_spool(spool, job, err);
    if (rc < 0)
        return rc;
    const struct weir_h5w_shape shape = {2, {(uint64_t)job->config->steps, spool->longest}};
    int set = weir_h5w_frames(job->file, name, WEIR_U8, &shape, WEIR_H5W_CONTIGUOUS, err);
    return weir_h5w_spooled(job->file, set, spool, err);
}

/* The rows of compress_len follow the cameras in the order of their names. */
static int rank_of(const struct weir_synth_job *job, int camera)
{
    int rank = 0;
    for (int c = 0; c < job->n_cameras; c++)
        rank += strcmp(job->camera[c], job->camera[camera]) < 0;
    return rank;
}

/* lengths (cameras x steps of them) may be NULL. */
static int write_cameras(struct weir_synth_job *job, double *lengths, struct weir_err *err)
{
    struct weir_spool spool;
    int rc = weir_spool_open(&spool, job->config->out, err);
    for (int c = 0; c < job->n_cameras && rc == 0; c++) {
        rc = write_rows(job, &spool, c, err);
        for (int t = 0; t < spool.n && lengths && rc == 0; t++)
            lengths[rank_of(job, c) * job->config->steps + t] = (double)spool.lengths[t];
        /* act-plus-plus keeps lengths as float32. */
        if (rc == 0 && lengths && spool.longest > 1 << 24)
            rc = weir_err_set(err, -EFBIG,
                              "a JPEG of %zu bytes: act-jpeg stores lengths as float32, exact up to 16 MiB; "
                              "lower --quality or --size, or take act-jpeg-nolen",
                              spool.longest);
    }
    weir_spool_close(&spool);
    return rc;
}

static int begin_jpeg(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    int rc = begin(job, episode, true, err);
    return rc < 0 ? rc : weir_h5w_attr_bool(job->file, "/", "compress", true, err);
}

int weir_synth_act_jpeg(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    const struct weir_h5w_shape shape = {2, {(uint64_t)job->n_cameras, (uint64_t)job->config->steps}};
    double *lengths = calloc(shape.dims[0] * shape.dims[1], sizeof *lengths);
    if (!lengths)
        return weir_err_set(err, -ENOMEM, "out of memory for %d steps", job->config->steps);
    int rc = begin_jpeg(job, episode, err);
    if (rc == 0)
        rc = write_cameras(job, lengths, err);
    if (rc == 0)
        rc = weir_h5w_array(job->file, "/compress_len", WEIR_F32, &shape, WEIR_H5W_CONTIGUOUS, lengths, err);
    free(lengths);
    return rc;
}

int weir_synth_act_jpeg_nolen(struct weir_synth_job *job, int episode, struct weir_err *err)
{
    int rc = begin_jpeg(job, episode, err);
    return rc < 0 ? rc : write_cameras(job, NULL, err);
}
