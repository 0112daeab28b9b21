/* Writes the items of a format. */
#include "base/files.h"
#include "datasets/synth/synth_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 128 /* maximum length of an object's path in a file */ };
enum { OUT_BYTES = 4096 - 256 /* leaves room for the names below the folder */ };

/* The group that the items belong to, and the steps of their columns. */
struct place {
    char group[PATH_BYTES];
    int first, count;
};

/* ---- files and folders ---- */

int weir_synth_make_folders(const char *path, struct weir_err *err)
{
    size_t length = strlen(path);
    if (length == 0 || length > OUT_BYTES)
        return weir_err_set(err, length ? -ENAMETOOLONG : -EINVAL, "%s: %s", length ? path : "output folder",
                            length ? "path is too long" : "no name specified");
    int rc = weir_folders_make(path); /* a file in a folder's place is reported by what uses the folder */
    if (rc < 0 && rc != -ENOTDIR)
        return weir_err_set(err, rc, "%s: cannot create the folder: %s", path, strerror(-rc));
    return 0;
}

static int create_file(struct weir_synth_job *job, const char *name, struct weir_err *err)
{
    char path[4096];
    const char *slash = strrchr(name, '/');
    int folder = slash ? (int)(slash - name) : 0;
    snprintf(path, sizeof path, "%s/%.*s", job->config->out, folder, name);
    int rc = folder ? weir_synth_make_folders(path, err) : 0;
    snprintf(path, sizeof path, "%s/%s", job->config->out, name);
    return rc < 0 ? rc : weir_h5w_create(&job->file, path, err);
}

/* ---- frames ---- */

static int next_frame(struct weir_synth_job *job, const struct weir_synth_frame **frame, struct weir_err *err)
{
    int rc = weir_synth_frames_next(job->frames, frame);
    if (rc < 0)
        return weir_err_set(err, rc, "cannot render a frame: %s", strerror(-rc));
    job->stats.frames++;
    if (job->format->jpeg) {
        job->stats.jpeg_frames++;
        job->stats.jpeg_bytes += (*frame)->image.size;
    }
    return 0;
}

void weir_synth_report(struct weir_synth_job *job)
{
    const struct weir_synth_config *config = job->config;
    if (config->stats)
        *config->stats = job->stats;
    if (config->progress)
        config->progress(config->user, job->stats.episodes, config->episodes);
}

/* Writes all frames of a camera to the datasets with these ids, or into the spool if it is not NULL. */
static int take_camera(struct weir_synth_job *job, int image_set, int depth_set, struct weir_spool *spool,
                       struct weir_err *err)
{
    int rc = spool ? weir_spool_reset(spool, err) : 0;
    for (uint64_t t = 0; t < (uint64_t)job->config->steps && rc == 0; t++) {
        const struct weir_synth_frame *frame;
        rc = next_frame(job, &frame, err);
        if (rc == 0 && spool)
            rc = weir_spool_add(spool, frame->image.data, frame->image.size, err);
        else if (rc == 0)
            rc = weir_h5w_frame(job->file, image_set, t, frame->image.data, frame->image.size, err);
        if (rc == 0 && depth_set >= 0)
            rc = weir_h5w_frame(job->file, depth_set, t, frame->depth.data, frame->depth.size, err);
        if (rc == 0)
            weir_synth_report(job);
    }
    return rc;
}

/* Returns the id of a dataset for images or depth, or a negative errno. */
static int create_frames(struct weir_synth_job *job, const struct weir_synth_item *item, const char *path, bool depth,
                         struct weir_err *err)
{
    const struct weir_synth_config *config = job->config;
    uint64_t steps = (uint64_t)config->steps, height = (uint64_t)config->height, width = (uint64_t)config->width;
    const struct weir_h5w_shape shape = {depth ? 3 : 4, {steps, height, width, depth ? 0 : 3}};
    if (item->what == WEIR_ITEM_VLEN)
        return weir_h5w_vlen_frames(job->file, path, steps, err);
    return weir_h5w_frames(job->file, path, depth ? WEIR_U16 : WEIR_U8, &shape, job->format->image_storage, err);
}

static int write_streamed(struct weir_synth_job *job, const struct weir_synth_item *item, const char *image,
                          const char *depth, struct weir_err *err)
{
    int image_set = create_frames(job, item, image, false, err), depth_set = -1;
    if (image_set < 0)
        return image_set;
    if (item->depth)
        depth_set = create_frames(job, item, depth, true, err);
    return item->depth && depth_set < 0 ? depth_set : take_camera(job, image_set, depth_set, NULL, err);
}

/* The size of the longest image must be known before the first image is written. */
static int write_spooled(struct weir_synth_job *job, const struct weir_synth_item *item, const char *image,
                         struct weir_spool *spool, struct weir_err *err)
{
    uint64_t steps = (uint64_t)job->config->steps;
    int rc = take_camera(job, -1, -1, spool, err);
    if (rc < 0)
        return rc;
    const struct weir_h5w_shape shape = {2, {steps, spool->longest}};
    int set = item->what == WEIR_ITEM_STRINGS
                  ? weir_h5w_string_frames(job->file, image, steps, spool->longest, err)
                  : weir_h5w_frames(job->file, image, WEIR_U8, &shape, WEIR_H5W_CONTIGUOUS, err);
    rc = weir_h5w_spooled(job->file, set, spool, err);
    /* act-plus-plus stores lengths as float32, which is exact up to 2^24 */
    if (rc == 0 && item->lengths && spool->longest > 1 << 24)
        rc = weir_err_set(err, -EFBIG,
                          "a JPEG has %zu bytes, but act-jpeg stores lengths as float32, which is exact up to 16 MiB; "
                          "lower --quality or --size, or use act-jpeg-nolen",
                          spool->longest);
    return rc;
}

/* Rows of lengths are in the order of the camera names. */
static int rank_of(const struct weir_synth_job *job, int camera)
{
    int rank = 0;
    for (int c = 0; c < job->n_cameras; c++)
        rank += strcmp(job->camera[c], job->camera[camera]) < 0;
    return rank;
}

static int write_camera(struct weir_synth_job *job, const struct weir_synth_item *item, const struct place *place,
                        int camera, struct weir_spool *spool, struct weir_err *err)
{
    char image[2 * PATH_BYTES], depth[2 * PATH_BYTES];
    int n = snprintf(image, sizeof image, "%s%s%s", place->group, item->name, job->camera[camera]);
    int rc = item->what == WEIR_ITEM_STRINGS ? weir_h5w_group(job->file, image, err) : 0;
    snprintf(image + n, sizeof image - (size_t)n, "%s", item->text ? item->text : "");
    snprintf(depth, sizeof depth, "%s%s%s", place->group, item->depth ? item->depth : "", job->camera[camera]);
    if (rc < 0)
        return rc;
    return spool ? write_spooled(job, item, image, spool, err) : write_streamed(job, item, image, depth, err);
}

static int write_cameras(struct weir_synth_job *job, const struct weir_synth_item *item, const struct place *place,
                         struct weir_err *err)
{
    int steps = job->config->steps;
    const struct weir_h5w_shape shape = {2, {(uint64_t)job->n_cameras, (uint64_t)steps}};
    bool spooled = item->what == WEIR_ITEM_PADDED || item->what == WEIR_ITEM_STRINGS;
    double *lengths = calloc(shape.dims[0] * shape.dims[1], sizeof *lengths);
    struct weir_spool spool = {0};
    if (!lengths)
        return weir_err_set(err, -ENOMEM, "out of memory for %d steps", steps);
    int rc = spooled ? weir_spool_open(&spool, job->config->out, err) : 0;
    for (int c = 0; c < job->n_cameras && rc == 0; c++) {
        rc = write_camera(job, item, place, c, spooled ? &spool : NULL, err);
        for (int t = 0; t < spool.n && rc == 0; t++)
            lengths[rank_of(job, c) * steps + t] = (double)spool.lengths[t];
    }
    weir_spool_close(&spool);
    if (rc == 0 && item->lengths)
        rc = weir_h5w_array(job->file, item->lengths, WEIR_F32, &shape, WEIR_H5W_CONTIGUOUS, lengths, err);
    free(lengths);
    return rc;
}

/* ---- columns ---- */

static void fill_row(const struct weir_synth_item *item, const struct weir_synth_moment *now, size_t width, double *row)
{
    if (item->fill) {
        item->fill(now, row);
        return;
    }
    const float *from = (const float *)((const char *)&now->state + item->from);
    for (size_t i = 0; i < width; i++)
        row[i] = (double)from[i];
}

static int write_column(struct weir_synth_job *job, const struct weir_synth_item *item, const struct place *place,
                        const char *path, struct weir_err *err)
{
    size_t width = item->width > 0 ? (size_t)item->width : 1;
    int count = place->count > 0 ? place->count : job->config->steps;
    double *table = calloc((size_t)count * width, sizeof *table);
    if (!table)
        return weir_err_set(err, -ENOMEM, "%s: out of memory for %d steps", path, count);
    struct weir_synth_moment now = {.steps = job->config->steps, .rate_hz = job->format->rate_hz, .arm = item->arm};
    for (int i = 0; i < count; i++) {
        now.step = place->first + i;
        weir_scene_state_at(job->scene, job->episode, now.step, &now.state);
        fill_row(item, &now, width, table + (size_t)i * width);
    }
    const struct weir_h5w_shape shape = {item->width > 0 ? 2 : 1, {(uint64_t)count, width}};
    enum weir_h5w_storage storage = item->is_contiguous ? WEIR_H5W_CONTIGUOUS : job->format->storage;
    int rc = weir_h5w_array(job->file, path, item->type, &shape, storage, table, err);
    free(table);
    return rc;
}

/* ---- items ---- */

static int64_t number(const struct weir_synth_job *job, enum weir_synth_number which)
{
    const int64_t numbers[] = {
        [WEIR_NUMBER_EPISODE] = job->episode,
        [WEIR_NUMBER_EPISODES] = job->config->episodes,
        [WEIR_NUMBER_STEPS] = job->config->steps,
        [WEIR_NUMBER_TOTAL] = (int64_t)job->config->episodes * job->config->steps,
    };
    return numbers[which];
}

static int write_items(struct weir_synth_job *job, const struct weir_synth_item *items, int n,
                       const struct place *place, struct weir_err *err);

static int write_item(struct weir_synth_job *job, const struct weir_synth_item *item, const struct place *place,
                      struct weir_err *err)
{
    struct place below = {.first = item->first, .count = item->count};
    char *path = below.group;
    snprintf(path, PATH_BYTES, "%s%s", place->group, item->name ? item->name : "");
    switch (item->what) {
    case WEIR_ITEM_GROUP:
        return weir_h5w_group(job->file, path, err);
    case WEIR_ITEM_FLAG:
        return weir_h5w_attr_bool(job->file, path, item->key, item->value, err);
    case WEIR_ITEM_NUMBER:
        return weir_h5w_attr_int(job->file, path, item->key, number(job, (enum weir_synth_number)item->value), err);
    case WEIR_ITEM_TEXT:
        return weir_h5w_attr_text(job->file, path, item->key, item->text, err);
    case WEIR_ITEM_COLUMN:
        return write_column(job, item, place, path, err);
    case WEIR_ITEM_LIST:
        return write_items(job, item->items, item->n_items, &below, err);
    case WEIR_ITEM_CALL:
        return item->call(job, err);
    default:
        return write_cameras(job, item, place, err);
    }
}

static int write_items(struct weir_synth_job *job, const struct weir_synth_item *items, int n,
                       const struct place *place, struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++)
        rc = write_item(job, &items[i], place, err);
    return rc;
}

int weir_synth_create(struct weir_synth_job *job, struct weir_err *err)
{
    const struct weir_synth_format *format = job->format;
    char name[128];
    snprintf(name, sizeof name, "%s", format->file);
    if (format->file_end)
        snprintf(name, sizeof name, "%s%0*d%s", format->file, format->digits, job->episode, format->file_end);
    int rc = create_file(job, name, err);
    return rc < 0 ? rc : write_items(job, format->once, format->n_once, &(struct place){{0}, 0, 0}, err);
}

int weir_synth_episode(struct weir_synth_job *job, struct weir_err *err)
{
    const struct weir_synth_format *format = job->format;
    struct place place = {{0}, 0, 0};
    int rc = 0;
    if (format->group) {
        snprintf(place.group, sizeof place.group, "%s%d", format->group, job->episode);
        rc = weir_h5w_group(job->file, place.group, err);
    }
    return rc < 0 ? rc : write_items(job, format->items, format->n_items, &place, err);
}
