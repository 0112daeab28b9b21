/* One episode of a LeRobot dataset: its rows of the columns of a Parquet file, and its videos. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct weir_lerobot_view *view_of(const struct weir_store *store)
{
    return (const struct weir_lerobot_view *)store;
}

static int feature_at(const struct weir_store *store, const char *path)
{
    return weir_lerobot_feature(view_of(store)->lerobot, path + (*path == '/'));
}

static bool has(struct weir_store *store, const char *path)
{
    return feature_at(store, path) >= 0;
}

static bool is_group(struct weir_store *store, const char *path)
{
    (void)store;
    return strcmp(path, "/") == 0 || *path == '\0';
}

static int list(struct weir_store *store, const char *group, char (**names)[64], int *n, struct weir_err *err)
{
    const struct weir_lerobot *lerobot = view_of(store)->lerobot;
    *n = is_group(store, group) ? lerobot->n_features : 0;
    *names = calloc((size_t)*n + 1, sizeof **names);
    if (!*names)
        return weir_no_memory(err);
    for (int i = 0; i < *n; i++)
        memcpy((*names)[i], lerobot->features[i].key, sizeof(*names)[i]);
    return 0;
}

static int no_feature(const char *path, struct weir_err *err)
{
    return weir_err_set(err, -ENOENT, "%s: is not among the features of meta/info.json", path);
}

static int shape(struct weir_store *store, const char *path, struct weir_array_shape *found, struct weir_err *err)
{
    const struct weir_lerobot_view *view = view_of(store);
    int number = feature_at(store, path);
    *found = (struct weir_array_shape){.element = WEIR_ELEMENT_OTHER};
    if (number < 0)
        return no_feature(path, err);
    const struct weir_lerobot_feature *feature = &view->lerobot->features[number];
    found->dims[0] = (uint64_t)view->episode->length;
    found->rank = 1;
    if (feature->kind == WEIR_LEROBOT_VIDEO || feature->kind == WEIR_LEROBOT_IMAGE) {
        found->element = WEIR_ELEMENT_VLEN_BYTES;
        found->type_bytes = feature->is_depth ? 2 : 1;
        return 0;
    }
    int number_in_file = weir_parquet_find(view->table->parquet, feature->key, NULL);
    if (feature->kind == WEIR_LEROBOT_TEXT || number_in_file < 0)
        return 0; /* reading a missing column is an error */
    char why[128];
    struct weir_parquet_column column;
    weir_parquet_column(view->table->parquet, number_in_file, &column);
    if (weir_lerobot_is_unreadable(view->table, number, why, sizeof why))
        return 0;
    bool is_float = column.type == WEIR_F32 || column.type == WEIR_F64;
    found->rank = column.list_depth > 0 ? 2 : 1;
    found->dims[1] = (uint64_t)feature->width;
    if (column.list_depth > 0 && feature->rank > 1) {
        found->rank = 1 + feature->rank;
        for (int d = 0; d < feature->rank; d++)
            found->dims[1 + d] = (uint64_t)feature->dims[d];
    }
    found->element = is_float ? WEIR_ELEMENT_FLOAT : WEIR_ELEMENT_INTEGER;
    found->type_bytes = weir_number_bytes(column.type);
    found->is_bool = feature->is_bool;
    found->is_signed = column.type >= WEIR_I8 && column.type <= WEIR_I64;
    return 0;
}

static int read_numbers(struct weir_store *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_array_shape *found, struct weir_err *err)
{
    const struct weir_lerobot_view *view = view_of(store);
    const void *rows = NULL;
    int width = 0, rc = shape(store, path, found, err);
    *values = NULL;
    if (rc == 0)
        rc = weir_lerobot_column(view->table, view->episode, feature_at(store, path), type, &rows, &width, err);
    if (rc < 0)
        return rc;
    size_t bytes = (size_t)view->episode->length * (size_t)width * weir_number_bytes(*type);
    *values = malloc(bytes + 1);
    if (!*values)
        return weir_no_memory(err);
    memcpy(*values, rows, bytes);
    return 0;
}

static int rows(struct weir_store *store, const char *path, struct weir_frame_map *map, struct weir_array_shape *found,
                struct weir_err *err)
{
    const struct weir_lerobot_view *view = view_of(store);
    int rc = shape(store, path, found, err), number = feature_at(store, path);
    if (rc < 0)
        return rc;
    const struct weir_lerobot_feature *feature = &view->lerobot->features[number];
    if (feature->kind == WEIR_LEROBOT_VIDEO)
        return weir_lerobot_place_video(view, number, map, err);
    return feature->kind == WEIR_LEROBOT_IMAGE ? weir_lerobot_place_images(view, number, map, err)
                                               : 0; /* the caller refuses the shape */
}

static int texts(struct weir_store *store, struct weir_episode *episode, struct weir_err *err)
{
    const struct weir_tasks *tasks = &view_of(store)->episode->tasks;
    return tasks->n ? weir_episode_add_text(episode, "task", tasks->texts[0], strlen(tasks->texts[0]), err) : 0;
}

const struct weir_store_ops weir_store_lerobot = {
    .has = has,
    .is_group = is_group,
    .list = list,
    .shape = shape,
    .read_numbers = read_numbers,
    .rows = rows,
    .texts = texts,
    .images = "features of dtype video or image",
};
