/* Zarr v2 in diffusion_policy's layout: data/{camera}, data/state and data/action, with one row per step over all
 * episodes, and meta/episode_ends. Keys are written under temporary names and renamed. meta/episode_ends is written
 * last, after the whole episode has reached the storage device. So every episode in it is complete. */
#include "base/files.h"
#include "datasets/writer.h"
#include "datasets/zarr/zarr_array_write_priv.h"
#include "weir/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rows per chunk of numbers and ends. At the end of each episode, one such chunk per array is rewritten. */
enum { STATE_ROWS = 1024, END_ROWS = 1024 };

enum { STATE = WEIR_CAMERAS_MAX, ACTION, ENDS, ARRAYS };

struct zarr_writer {
    struct weir_writer base;
    struct weir_zarr_writing arrays[ARRAYS];
    bool has[ARRAYS];
    uint64_t rows; /* rows of all complete episodes */
};

/* ---- arrays ---- */

static int check_names(const struct weir_copy *copy, const char *path, struct weir_err *err)
{
    for (int c = 0; c < copy->n_cameras; c++) {
        const char *name = copy->cameras[c].name;
        if (*name == '.' || strchr(name, '/') || strcmp(name, "state") == 0 || strcmp(name, "action") == 0)
            return weir_err_set(err, -EINVAL,
                                "%s: camera \"%s\": an array of a Zarr store cannot have this name; leave it out with "
                                "--cameras",
                                path, name);
    }
    return 0;
}

static struct weir_zarr_writing *add_array(struct zarr_writer *w, int which, const char *name, const char *dtype,
                                           uint32_t element_bytes)
{
    struct weir_zarr_writing *array = &w->arrays[which];
    *array = (struct weir_zarr_writing){.root = w->base.path, .element_bytes = element_bytes};
    snprintf(array->name, sizeof array->name, "%s", name);
    snprintf(array->dtype, sizeof array->dtype, "%s", dtype);
    w->has[which] = true;
    return array;
}

static void add_numbers(struct zarr_writer *w, int which, const char *name, enum weir_number_type type, int dim)
{
    struct weir_zarr_writing *array =
        add_array(w, which, name, weir_number_code(type), (uint32_t)weir_number_bytes(type));
    array->rank = 2;
    array->dims[1] = (uint64_t)dim;
    array->chunk_rows = STATE_ROWS;
    array->compress = WEIR_HAVE_BLOSC;
}

static void add_camera(struct zarr_writer *w, int c)
{
    const struct weir_copy_camera *camera = &w->base.copy.cameras[c];
    bool depth = weir_frame_is_depth(camera->kind), raw = !weir_frame_is_encoded(camera->kind);
    char name[WEIR_NAME_MAX + 8];
    snprintf(name, sizeof name, "data/%s", camera->name);
    struct weir_zarr_writing *array = add_array(w, c, name, depth ? "<u2" : "|u1", depth ? 2 : 1);
    array->rank = depth ? 3 : 4;
    array->dims[1] = (uint64_t)camera->height;
    array->dims[2] = (uint64_t)camera->width;
    array->dims[3] = 3;
    array->chunk_rows = raw && w->base.copy.chunk_frames > 0 ? (uint64_t)w->base.copy.chunk_frames : 1;
    array->compress = raw && WEIR_HAVE_BLOSC;
    if (!raw)
        array->image = weir_frame_kind_row(camera->kind)->imagecodecs;
}

static int open_arrays(struct zarr_writer *w, struct weir_err *err)
{
    for (int c = 0; c < w->base.copy.n_cameras; c++)
        add_camera(w, c);
    add_numbers(w, STATE, "data/state", w->base.copy.qpos_type, w->base.copy.qpos_dim);
    add_numbers(w, ACTION, "data/action", w->base.copy.action_type, w->base.copy.action_dim);
    struct weir_zarr_writing *ends = add_array(w, ENDS, "meta/episode_ends", "<i8", sizeof(int64_t));
    ends->rank = 1;
    ends->chunk_rows = END_ROWS;
    int rc = 0;
    for (int i = 0; i < ARRAYS && rc == 0; i++)
        if (w->has[i])
            rc = weir_zarr_write_open(&w->arrays[i], err);
    return rc;
}

/* ---- resuming ---- */

/* Returns the number of episodes in meta/episode_ends, and sets *rows to their number of rows. */
static int count_complete(struct zarr_writer *w, uint64_t *rows)
{
    int64_t ends[END_ROWS];
    char path[4096];
    int complete = 0;
    *rows = 0;
    for (int chunk = 0; complete == chunk * END_ROWS && complete < w->base.copy.n_episodes; chunk++) {
        snprintf(path, sizeof path, "%s/meta/episode_ends/%d", w->base.path, chunk);
        FILE *file = fopen(path, "rb");
        size_t n = file ? fread(ends, sizeof *ends, END_ROWS, file) : 0;
        if (file)
            fclose(file);
        for (size_t i = 0; n == END_ROWS && i < n && ends[i] > (int64_t)*rows && complete < w->base.copy.n_episodes;
             i++) {
            *rows = (uint64_t)ends[i];
            complete++;
        }
    }
    return complete;
}

static int resume(struct zarr_writer *w, int *complete)
{
    struct weir_err ignored = WEIR_ERR_NONE;
    uint64_t rows;
    *complete = count_complete(w, &rows);
    int rc = weir_zarr_write_resume(&w->arrays[ENDS], (uint64_t)*complete, &ignored);
    for (int i = 0; i < ENDS && rc == 0; i++)
        if (w->has[i])
            rc = weir_zarr_write_resume(&w->arrays[i], rows, &ignored);
    w->rows = rows;
    return rc;
}

/* Starts over if the partial copy cannot be resumed: removes the ends of its episodes. */
static int start_over(struct zarr_writer *w, int *complete, struct weir_err *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/meta/episode_ends/0", w->base.path);
    unlink(path);
    *complete = 0;
    w->rows = 0;
    for (int i = 0; i < ARRAYS; i++)
        if (w->has[i])
            w->arrays[i].at = 0;
    return weir_durable_sync(w->base.path, err);
}

/* ---- open and close ---- */

static int write_color(struct zarr_writer *w, struct weir_err *err)
{
    char text[96];
    int n = snprintf(text, sizeof text, "{\n    \"weir\": {\"version\": 1, \"color\": \"%s\"}\n}",
                     w->base.copy.is_bgr ? "bgr" : "rgb");
    return weir_zarr_write_key(w->base.path, ".zattrs", text, (size_t)n, err);
}

static void close_writer(struct weir_writer *writer)
{
    for (int i = 0; i < ARRAYS; i++)
        weir_zarr_write_close(&((struct zarr_writer *)writer)->arrays[i]);
}

static int open_writer(struct weir_writer *writer, int *complete, struct weir_err *err)
{
    static const char *const groups[] = {"", "data", "meta", "episodes"};
    struct zarr_writer *w = (struct zarr_writer *)writer;
    int rc = check_names(&writer->copy, writer->path, err);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0] && rc == 0; i++)
        rc = weir_zarr_write_group(writer->path, groups[i], err);
    if (rc == 0)
        rc = write_color(w, err);
    if (rc == 0)
        rc = open_arrays(w, err);
    return rc == 0 && resume(w, complete) < 0 ? start_over(w, complete, err) : rc;
}

static int sync_all(struct zarr_writer *w, struct weir_err *err)
{
    int fd = open(w->base.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd >= 0 && syncfs(fd) == 0 ? 0 : -errno; /* one call syncs all files */
    if (fd >= 0)
        close(fd);
    return rc < 0 ? weir_err_set(err, rc, "%s: cannot be written: %s", w->base.path, strerror(-rc)) : 0;
}

static int finish(struct weir_writer *writer, struct weir_err *err)
{
    struct zarr_writer *w = (struct zarr_writer *)writer;
    char aside[4096];
    int rc = weir_zarr_write_about(&w->arrays[ENDS], (uint64_t)w->base.copy.n_episodes, err);
    for (int i = 0; i < ENDS && rc == 0; i++)
        if (w->has[i])
            rc = weir_zarr_write_about(&w->arrays[i], w->rows, err);
    snprintf(aside, sizeof aside, "%s/.writing", w->base.path);
    unlink(aside);
    return rc < 0 ? rc : sync_all(w, err);
}

/* ---- an episode ---- */

static int frame(struct weir_writer *writer, int camera, int t, const uint8_t *bytes, size_t length,
                 struct weir_err *err)
{
    struct zarr_writer *w = (struct zarr_writer *)writer;
    struct weir_zarr_writing *array = &w->arrays[camera];
    if (array->at != w->rows + (uint64_t)t)
        return weir_err_set(err, -EINVAL, "%s: episode %d: frame %d of %s is out of order", w->base.path,
                            w->base.episode.number, t, array->name);
    return weir_zarr_write_row(array, bytes, length, err);
}

static int write_rows(struct weir_zarr_writing *array, const void *values, int steps, struct weir_err *err)
{
    int rc = 0;
    for (int t = 0; t < steps && rc == 0; t++)
        rc = weir_zarr_write_row(array, (const uint8_t *)values + (size_t)t * array->row_bytes, array->row_bytes, err);
    return rc;
}

static int write_texts(struct zarr_writer *w, struct weir_err *err)
{
    struct weir_json_document document;
    char key[64];
    int rc = weir_json_document_open(&w->base, &document, false, err);
    if (rc < 0)
        return rc;
    weir_writer_texts(&w->base, &document.json);
    rc = weir_json_document_close(&w->base, &document, err);
    snprintf(key, sizeof key, "episodes/%d", w->base.episode.number);
    if (rc == 0)
        rc = weir_zarr_write_group(w->base.path, key, err);
    snprintf(key, sizeof key, "episodes/%d/.zattrs", w->base.episode.number);
    if (rc == 0)
        rc = weir_zarr_write_key(w->base.path, key, document.text, document.n, err);
    free(document.text);
    return rc;
}

static int end(struct weir_writer *writer, struct weir_err *err)
{
    struct zarr_writer *w = (struct zarr_writer *)writer;
    int64_t last = (int64_t)w->rows + w->base.episode.steps;
    int rc = write_rows(&w->arrays[STATE], w->base.episode.qpos, w->base.episode.steps, err);
    if (rc == 0)
        rc = write_rows(&w->arrays[ACTION], w->base.episode.actions, w->base.episode.steps, err);
    for (int i = 0; i < ENDS && rc == 0; i++)
        if (w->has[i])
            rc = weir_zarr_write_flush(&w->arrays[i], err);
    if (rc == 0)
        rc = write_texts(w, err);
    if (rc == 0)
        rc = sync_all(w, err);
    if (rc == 0)
        rc = weir_zarr_write_row(&w->arrays[ENDS], &last, sizeof last, err);
    if (rc == 0)
        rc = weir_zarr_write_flush(&w->arrays[ENDS], err);
    w->rows = (uint64_t)last;
    return rc < 0 ? rc : sync_all(w, err);
}

const struct weir_writer_ops weir_writer_zarr = {
    .name = "zarr",
    .summary = "Zarr v2 replay buffer of diffusion_policy: a folder, one file per chunk",
    .suffix = ".zarr",
    .holds = WEIR_FRAMES_ANY,
    .ignores_exif = true,
    .number_types = ((uint32_t)1 << WEIR_NUMBER_TYPES) - 1,
    .compresses = true,
    .resumes = true,
    .bytes = sizeof(struct zarr_writer),
    .open = open_writer,
    .frame = frame,
    .end = end,
    .finish = finish,
    .close = close_writer,
};
