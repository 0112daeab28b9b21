/* HDF5 in the layouts of ACT and act-plus-plus: a folder with one file per episode, with /observations/qpos, /action
 * and /observations/images/{camera}. The three rows of the table differ in how frames are stored. */
#include "base/files.h"
#include "datasets/hdf5/h5_write.h"
#include "datasets/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH_MAX = 1 << 24 /* exact in float32, which act-plus-plus uses for lengths */ };

struct writer {
    struct weir_writer base;
    char *hidden, *name; /* temporary and final path of the episode's file */
    struct weir_h5w *file;
    int camera, set;         /* current camera (-1 = none) and its dataset (-1 = the spool) */
    struct weir_spool spool; /* frames that become padded rows */
    double *lengths;         /* cameras x steps image lengths, for padded rows */
};

static bool is_encoded(const struct writer *w, int camera)
{
    return weir_frame_is_encoded(w->base.copy.cameras[camera].kind);
}

static bool is_depth(const struct writer *w, int camera)
{
    return weir_frame_is_depth(w->base.copy.cameras[camera].kind);
}

static bool is_padded(const struct writer *w)
{
    return w->base.ops == &weir_writer_hdf5;
}

static void key_of(const struct writer *w, int camera, char key[128])
{
    snprintf(key, 128, "/observations/images/%s", w->base.copy.cameras[camera].name);
}

/* ---- the folder ---- */

static char *path_of(const struct writer *w, const char *dot, int episode)
{
    char *path;
    return asprintf(&path, "%s/%sepisode_%d.hdf5", w->base.path, dot, episode) < 0 ? NULL : path;
}

static bool is_later(const char *name, int complete)
{
    int number = -1, end = 0;
    return sscanf(name, "episode_%d.hdf5%n", &number, &end) == 1 && end > 0 && number >= complete;
}

/* Counts the complete episodes before the first missing one, and removes everything else. */
static int open_folder(struct weir_writer *writer, int *complete, struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    int rc = weir_writer_make_folder(writer, err);
    for (bool there = true; rc == 0 && there && *complete < writer->copy.n_episodes;) {
        char *path = path_of(w, "", *complete);
        if (!path)
            return weir_writer_no_memory(writer, err);
        there = access(path, F_OK) == 0;
        *complete += there;
        free(path);
    }
    if (rc == 0)
        rc = weir_writer_remove_parts(writer, is_later, *complete, err);
    return rc == 0 && is_padded(w) ? weir_spool_open(&w->spool, writer->path, err) : rc;
}

static void close_writer(struct weir_writer *writer)
{
    struct writer *w = (struct writer *)writer;
    weir_h5w_abandon(&w->file);
    weir_spool_close(&w->spool);
    free(w->hidden);
    free(w->name);
    free(w->lengths);
}

/* ---- an episode ---- */

static int put_attributes(const struct writer *w, const struct weir_copy_episode *episode, struct weir_err *err)
{
    bool compressed = false;
    for (int c = 0; c < w->base.copy.n_cameras; c++)
        compressed |= is_encoded(w, c);
    int rc = weir_h5w_attr_bool(w->file, "/", "sim", false, err); /* required by ACT's reader */
    if (rc == 0 && compressed) /* false would mark the file as one from cobot_magic */
        rc = weir_h5w_attr_bool(w->file, "/", "compress", true, err);
    if (rc == 0 && w->base.copy.is_bgr)
        rc = weir_h5w_attr_text(w->file, "/", "weir_color", "bgr", err);
    if (rc == 0)
        rc = weir_h5w_attr_text(w->file, "/", "weir_source", episode->name, err);
    for (int i = 0; i < episode->n_texts && rc == 0; i++)
        if (strcmp(episode->texts[i].key, "sim") != 0 && strcmp(episode->texts[i].key, "compress") != 0 &&
            strncmp(episode->texts[i].key, "weir_", 5) != 0)
            rc = weir_h5w_attr_text(w->file, "/", episode->texts[i].key, episode->texts[i].value, err);
    return rc;
}

static int put_state(const struct writer *w, const struct weir_copy_episode *episode, struct weir_err *err)
{
    uint64_t steps = (uint64_t)episode->steps;
    const struct weir_h5w_shape qpos = {2, {steps, (uint64_t)w->base.copy.qpos_dim}};
    const struct weir_h5w_shape action = {2, {steps, (uint64_t)w->base.copy.action_dim}};
    int rc = weir_h5w_group(w->file, "/observations", err);
    if (rc == 0)
        rc = weir_h5w_group(w->file, "/observations/images", err);
    if (rc == 0)
        rc = weir_h5w_numbers(w->file, "/observations/qpos", w->base.copy.qpos_type, &qpos, episode->qpos, err);
    if (rc == 0)
        rc = weir_h5w_numbers(w->file, "/action", w->base.copy.action_type, &action, episode->actions, err);
    return rc;
}

static int begin(struct weir_writer *writer, struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    const struct weir_copy_episode *episode = &writer->episode;
    free(w->hidden);
    free(w->name);
    free(w->lengths);
    w->hidden = path_of(w, ".", episode->number);
    w->name = path_of(w, "", episode->number);
    w->lengths = calloc((size_t)w->base.copy.n_cameras * (size_t)episode->steps + 1, sizeof *w->lengths);
    if (!w->hidden || !w->name || !w->lengths)
        return weir_writer_no_memory(writer, err);
    w->camera = w->set = -1;
    int rc = weir_h5w_create(&w->file, w->hidden, err);
    if (rc == 0)
        rc = put_attributes(w, episode, err);
    return rc < 0 ? rc : put_state(w, episode, err);
}

static int open_pixels(const struct writer *w, int camera, const char *key, struct weir_err *err)
{
    const struct weir_copy_camera *of = &w->base.copy.cameras[camera];
    const struct weir_h5w_shape shape = {
        is_depth(w, camera) ? 3 : 4,
        {(uint64_t)w->base.episode.steps, (uint64_t)of->height, (uint64_t)of->width, is_depth(w, camera) ? 0 : 3}};
    weir_h5w_chunk_rows(w->file, (uint64_t)w->base.copy.chunk_frames);
    int set = weir_h5w_frames(w->file, key, is_depth(w, camera) ? WEIR_U16 : WEIR_U8, &shape,
                              w->base.ops == &weir_writer_hdf5_gzip ? WEIR_H5W_GZIP : WEIR_H5W_ROW_CHUNKS, err);
    weir_h5w_chunk_rows(w->file, 0);
    return set;
}

static int begin_camera(struct writer *w, int camera, struct weir_err *err)
{
    char key[128];
    key_of(w, camera, key);
    w->camera = camera;
    w->set = -1;
    if (is_encoded(w, camera) && is_padded(w))
        return weir_spool_reset(&w->spool, err);
    w->set = is_encoded(w, camera) ? weir_h5w_vlen_frames(w->file, key, (uint64_t)w->base.episode.steps, err)
                                   : open_pixels(w, camera, key, err);
    return w->set < 0 ? w->set : 0;
}

/* Writes the frames in the spool, after the last frame of a camera. */
static int end_camera(struct writer *w, struct weir_err *err)
{
    char key[128];
    key_of(w, w->camera, key);
    const struct weir_h5w_shape shape = {2, {(uint64_t)w->base.episode.steps, w->spool.longest}};
    int set = weir_h5w_frames(w->file, key, WEIR_U8, &shape, WEIR_H5W_CONTIGUOUS, err);
    return weir_h5w_spooled(w->file, set, &w->spool, err);
}

static int frame(struct weir_writer *writer, int camera, int t, const uint8_t *bytes, size_t length,
                 struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    int rc = camera == w->camera ? 0 : begin_camera(w, camera, err);
    if (rc < 0)
        return rc;
    if (w->set >= 0)
        return weir_h5w_frame(w->file, w->set, (uint64_t)t, bytes, length, err);
    w->lengths[(size_t)camera * (size_t)w->base.episode.steps + (size_t)t] = (double)length;
    rc = weir_spool_add(&w->spool, bytes, length, err);
    return rc == 0 && t + 1 == w->base.episode.steps ? end_camera(w, err) : rc;
}

/* Writes /compress_len (cameras, steps), with one row per colour camera in name order. Writes it only if all colour
 * cameras have padded rows, and float32 can represent all lengths. */
static int put_lengths(struct writer *w, struct weir_err *err)
{
    size_t steps = (size_t)w->base.episode.steps;
    int n = 0;
    double *rows = calloc((size_t)w->base.copy.n_cameras * steps + 1, sizeof *rows);
    bool fine = rows && is_padded(w);
    for (int c = 0; c < w->base.copy.n_cameras && fine; c++) {
        int rank = 0;
        for (int other = 0; other < w->base.copy.n_cameras; other++)
            rank += !is_depth(w, other) && strcmp(w->base.copy.cameras[other].name, w->base.copy.cameras[c].name) < 0;
        if (is_depth(w, c))
            continue;
        n++;
        fine = is_encoded(w, c);
        memcpy(rows + (size_t)rank * steps, w->lengths + (size_t)c * steps, steps * sizeof *rows);
        for (size_t t = 0; t < steps; t++)
            fine &= w->lengths[(size_t)c * steps + t] <= LENGTH_MAX;
    }
    const struct weir_h5w_shape shape = {2, {(uint64_t)n, steps}};
    int rc = rows ? 0 : weir_err_set(err, -ENOMEM, "%s: out of memory", w->name);
    if (fine && n > 0)
        rc = weir_h5w_array(w->file, "/compress_len", WEIR_F32, &shape, WEIR_H5W_CONTIGUOUS, rows, err);
    free(rows);
    return rc;
}

static int end(struct weir_writer *writer, struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    int rc = put_lengths(w, err);
    if (rc == 0)
        rc = weir_h5w_commit(&w->file, NULL, err);
    if (rc == 0)
        rc = weir_durable_sync(w->hidden, err);
    return rc < 0 ? rc : weir_durable_rename(w->hidden, w->name, err);
}

#define HDF5_WRITER(groups)                                                                                            \
    .suffix = "", .holds = (groups), .number_types = ((uint32_t)1 << WEIR_NUMBER_TYPES) - 1, .resumes = true,          \
    .bytes = sizeof(struct writer), .open = open_folder, .begin = begin, .frame = frame, .end = end,                   \
    .close = close_writer

const struct weir_writer_ops weir_writer_hdf5 = {
    .name = "hdf5",
    .summary =
        "HDF5, one file per episode: encoded frames in padded rows (act-plus-plus), raw frames one per chunk (ACT)",
    HDF5_WRITER(WEIR_FRAMES_RAW | WEIR_FRAMES_COLOR | WEIR_FRAMES_DEPTH),
};

const struct weir_writer_ops weir_writer_hdf5_vlen = {
    .name = "hdf5-vlen",
    .summary = "like hdf5, but with encoded frames in rows of variable length",
    HDF5_WRITER(WEIR_FRAMES_RAW | WEIR_FRAMES_COLOR | WEIR_FRAMES_DEPTH),
};

const struct weir_writer_ops weir_writer_hdf5_gzip = {
    .name = "hdf5-gzip",
    .summary = "like hdf5, but with raw frames in the gzip chunks that h5py chooses",
    .compresses = true,
    HDF5_WRITER(WEIR_FRAMES_RAW),
};
