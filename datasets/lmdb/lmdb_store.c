#include "datasets/lmdb/lmdb_store.h"
#include "base/shortage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds the camera of "/NAME" or, for depth cameras, of "/depth/NAME". */
static int find_camera(const struct weir_lmdb_store *store, const char *path)
{
    path += *path == '/';
    bool depth = strncmp(path, "depth/", 6) == 0;
    path += depth ? 6 : 0;
    for (int i = 0; i < store->schema->copy.n_cameras; i++)
        if (strcmp(store->schema->copy.cameras[i].name, path) == 0)
            return !depth || weir_frame_is_depth(store->schema->copy.cameras[i].kind) ? i : -1;
    return -1;
}

/* The numbers of "/qpos" or "/action". */
struct numbers {
    const struct weir_frame_extent *at; /* NULL for other paths */
    enum weir_number_type type;
    int dim;
};

static struct numbers find_numbers(const struct weir_lmdb_store *store, const char *path)
{
    const struct weir_copy *copy = &store->schema->copy;
    path += *path == '/';
    if (strcmp(path, "qpos") == 0)
        return (struct numbers){&store->episode->qpos, copy->qpos_type, copy->qpos_dim};
    return (struct numbers){strcmp(path, "action") == 0 ? &store->episode->action : NULL, copy->action_type,
                            copy->action_dim};
}

static const struct weir_lmdb_store *lmdb_of(const struct weir_store *store)
{
    return (const struct weir_lmdb_store *)store;
}

static bool has(struct weir_store *opened, const char *path)
{
    return find_camera(lmdb_of(opened), path) >= 0 || find_numbers(lmdb_of(opened), path).at;
}

static bool is_group(struct weir_store *opened, const char *path)
{
    (void)opened;
    return strcmp(path, "/") == 0;
}

/* Lists the cameras in the order of the dataset that was converted. */
static int list(struct weir_store *opened, const char *group, char (**names)[64], int *n, struct weir_err *err)
{
    const struct weir_lmdb_store *store = lmdb_of(opened);
    *n = is_group(opened, group) ? store->schema->copy.n_cameras : 0;
    *names = calloc((size_t)*n + 1, sizeof **names);
    if (!*names)
        return weir_no_memory(err);
    for (int i = 0; i < *n; i++)
        memcpy((*names)[i], store->schema->copy.cameras[i].name, WEIR_NAME_MAX);
    return 0;
}

static int shape(struct weir_store *opened, const char *path, struct weir_array_shape *found, struct weir_err *err)
{
    const struct weir_lmdb_store *store = lmdb_of(opened);
    const struct numbers numbers = find_numbers(store, path);
    const struct weir_frame_extent *at = numbers.at;
    int camera = at ? -1 : find_camera(store, path);
    *found = (struct weir_array_shape){.element = WEIR_ELEMENT_OTHER};
    if (camera >= 0) {
        const struct weir_copy_camera *of = &store->schema->copy.cameras[camera];
        *found = weir_shape_of_frames(of->kind, of->width, of->height, store->episode->cameras[camera].n);
        return 0;
    }
    if (!at || at->length == 0)
        return weir_err_set(err, -ENOENT, "e%08u: no such key: %s", store->episode->number, path);
    uint64_t row = (uint64_t)numbers.dim * weir_number_bytes(numbers.type);
    if (at->length % row != 0)
        return weir_err_set(err, -EBADMSG, "e%08u%s: its %llu bytes do not divide into rows of %d numbers of %s",
                            store->episode->number, path, (unsigned long long)at->length, numbers.dim,
                            weir_number_name(numbers.type));
    *found = weir_shape_of_numbers(numbers.type, numbers.dim, at->length / row);
    return 0;
}

static int read_numbers(struct weir_store *opened, const char *path, enum weir_number_type *type, void **values,
                        struct weir_array_shape *found, struct weir_err *err)
{
    static const uint64_t NUMBERS_MAX_BYTES = (uint64_t)1 << 30;
    const struct weir_lmdb_store *store = lmdb_of(opened);
    const struct numbers numbers = find_numbers(store, path);
    const struct weir_frame_extent *at = numbers.at;
    *values = NULL;
    if (!at)
        return weir_err_set(err, -EBADMSG, "e%08u: %s contains no numbers", store->episode->number, path);
    int rc = shape(opened, path, found, err);
    if (rc < 0)
        return rc;
    if (at->length > NUMBERS_MAX_BYTES)
        return weir_err_set(err, -EFBIG, "e%08u%s: its numbers exceed 1 GiB", store->episode->number, path);
    *type = numbers.type;
    *values = malloc((size_t)at->length);
    if (!*values)
        return weir_no_memory(err);
    rc = store->file->read(store->file->user, at->offset, *values, (size_t)at->length);
    if (rc == 0)
        return 0;
    free(*values);
    *values = NULL;
    return weir_err_set(err, rc, "e%08u%s: %s", store->episode->number, path, strerror(-rc));
}

static int rows(struct weir_store *opened, const char *path, struct weir_frame_map *map, struct weir_array_shape *found,
                struct weir_err *err)
{
    const struct weir_lmdb_store *store = lmdb_of(opened);
    int c = find_camera(store, path);
    if (c < 0)
        return shape(opened, path, found,
                     err); /* the caller refuses the array, because its shape is not that of images */
    const struct weir_copy_camera *camera = &store->schema->copy.cameras[c];
    const struct weir_lmdb_frames *frames = &store->episode->cameras[c];
    uint64_t bytes = weir_frame_raw_bytes(camera->kind, camera->width, camera->height);
    *found = weir_shape_of_frames(camera->kind, camera->width, camera->height, frames->n);
    for (uint64_t t = 0; t < frames->n && bytes > 0; t++)
        if (frames->extents[t].length != bytes)
            return weir_err_set(err, -EBADMSG, "e%08u/%08llu/%s: has %llu bytes, but a raw frame of %dx%d has %llu",
                                store->episode->number, (unsigned long long)t, camera->name,
                                (unsigned long long)frames->extents[t].length, camera->width, camera->height,
                                (unsigned long long)bytes);
    map->storage = WEIR_STORED_EXTENTS;
    map->extents = malloc((size_t)(frames->n + 1) * sizeof *map->extents);
    if (!map->extents)
        return weir_no_memory(err);
    if (frames->n > 0)
        memcpy(map->extents, frames->extents, (size_t)frames->n * sizeof *map->extents);
    return 0;
}

static int texts(struct weir_store *opened, struct weir_episode *episode, struct weir_err *err)
{
    int64_t steps;
    return weir_lmdb_episode_json(lmdb_of(opened), &steps, episode, err);
}

const struct weir_store_ops weir_store_lmdb = {
    .has = has,
    .is_group = is_group,
    .list = list,
    .shape = shape,
    .read_numbers = read_numbers,
    .rows = rows,
    .texts = texts,
};
