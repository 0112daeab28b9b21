/* One episode of a LeRobot dataset: its rows of the columns of a Parquet file, and its videos. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the open Parquet file ---- */

void weir_lerobot_close_table(struct weir_lerobot *lerobot)
{
    struct weir_lerobot_table *table = &lerobot->table;
    for (int i = 0; i < lerobot->n_features && table->columns; i++)
        free(table->columns[i].values);
    free(table->columns);
    weir_parquet_close(&table->parquet);
    *table = (struct weir_lerobot_table){0};
}

int weir_lerobot_open_table(struct weir_lerobot *lerobot, const struct weir_lerobot_episode *episode,
                            struct weir_err *err)
{
    struct weir_lerobot_table *table = &lerobot->table;
    char name[WEIR_PART_PATH_MAX], path[WEIR_PART_PATH_MAX];
    struct weir_err why = WEIR_ERR_NONE;
    if (table->parquet && table->chunk == episode->chunk && table->file == episode->file)
        return 0;
    weir_lerobot_close_table(lerobot);
    struct weir_lerobot_names names = {.episode = episode->index, .chunk = episode->chunk, .file = episode->file};
    int rc = weir_lerobot_name(lerobot->data_path, &names, name, sizeof name, err);
    if (rc < 0)
        return rc;
    if (snprintf(path, sizeof path, "%s/%s", lerobot->path, name) >= (int)sizeof path)
        return weir_err_set(err, -ENAMETOOLONG, "%.200s: the path is too long", name);
    rc = weir_parquet_open(&table->parquet, path, &why);
    if (rc < 0)
        return weir_err_set(err, rc, "%.300s: %s", name, why.text);
    table->chunk = episode->chunk;
    table->file = episode->file;
    table->first = episode->file_first;
    table->columns = calloc((size_t)lerobot->n_features, sizeof *table->columns);
    return table->columns ? 0 : weir_no_memory(err);
}

static int read_column(struct weir_lerobot *lerobot, const struct weir_lerobot_episode *episode, int feature,
                       struct weir_err *err)
{
    struct weir_lerobot_table *table = &lerobot->table;
    struct weir_lerobot_column *column = &table->columns[feature];
    struct weir_err why = WEIR_ERR_NONE;
    const char *key = lerobot->features[feature].key;
    if (column->values)
        return 0;
    int number = weir_parquet_find(table->parquet, key, NULL);
    if (number < 0)
        return weir_err_set(err, -EBADMSG, "the Parquet file of episode %" PRId64 " has no column %s", episode->index,
                            key);
    int rc = weir_parquet_numbers(table->parquet, number, 0, weir_parquet_rows(table->parquet), &column->type,
                                  &column->values, &column->width, &why);
    return rc < 0 ? weir_err_set(err, rc, "the Parquet file of episode %" PRId64 ": %s", episode->index, why.text) : 0;
}

int weir_lerobot_column(struct weir_lerobot *lerobot, const struct weir_lerobot_episode *episode, int feature,
                        enum weir_number_type *type, const void **values, int *width, struct weir_err *err)
{
    int rc = weir_lerobot_open_table(lerobot, episode, err);
    if (rc == 0)
        rc = read_column(lerobot, episode, feature, err);
    if (rc < 0)
        return rc;
    const struct weir_lerobot_column *column = &lerobot->table.columns[feature];
    int64_t rows = weir_parquet_rows(lerobot->table.parquet), first = episode->first - lerobot->table.first;
    if (first < 0 || first > rows || episode->length > rows - first)
        return weir_err_set(err, -EBADMSG,
                            "has rows %" PRId64 " to %" PRId64 " of its Parquet file, which has %" PRId64
                            " rows; was it copied completely?",
                            first, first + episode->length - 1, rows);
    *type = column->type;
    *width = column->width;
    *values = (const uint8_t *)column->values + (size_t)first * (size_t)column->width * weir_number_bytes(column->type);
    return 0;
}

/* ---- the store ---- */

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

/* Lists of lists cannot be read. Other errors are reported when the column is read. */
static bool is_readable(struct weir_lerobot *lerobot, const struct weir_lerobot_episode *episode, int feature)
{
    struct weir_parquet_column column;
    int number = -ENOENT;
    if (weir_lerobot_open_table(lerobot, episode, NULL) == 0)
        number = weir_parquet_find(lerobot->table.parquet, lerobot->features[feature].key, NULL);
    if (number < 0)
        return true;
    weir_parquet_column(lerobot->table.parquet, number, &column);
    return column.kind == WEIR_PARQUET_NUMBERS;
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
    if (feature->kind == WEIR_LEROBOT_TEXT || !is_readable(view->lerobot, view->episode, number))
        return 0;
    enum weir_number_type type;
    const void *values;
    int width, rc = weir_lerobot_column(view->lerobot, view->episode, number, &type, &values, &width, err);
    if (rc < 0)
        return rc;
    bool is_float = type == WEIR_F32 || type == WEIR_F64;
    found->rank = width > 1 ? 2 : 1;
    found->dims[1] = (uint64_t)width;
    found->element = is_float ? WEIR_ELEMENT_FLOAT : WEIR_ELEMENT_INTEGER;
    found->type_bytes = weir_number_bytes(type);
    found->is_bool = feature->is_bool;
    found->is_signed = type >= WEIR_I8 && type <= WEIR_I64;
    return 0;
}

static int read_numbers(struct weir_store *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_array_shape *found, struct weir_err *err)
{
    const struct weir_lerobot_view *view = view_of(store);
    const void *rows = NULL;
    int width = 0, rc = shape(store, path, found, err);
    *values = NULL;
    if (rc == 0 && found->element != WEIR_ELEMENT_FLOAT && found->element != WEIR_ELEMENT_INTEGER)
        rc = weir_err_set(err, -EINVAL, "%s: does not contain numbers", path);
    if (rc == 0)
        rc = weir_lerobot_column(view->lerobot, view->episode, feature_at(store, path), type, &rows, &width, err);
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
    if (feature->kind != WEIR_LEROBOT_IMAGE)
        return 0; /* the caller refuses the shape */
    map->kind = feature->is_depth ? WEIR_FRAME_PNG16 : WEIR_FRAME_IMAGE;
    map->storage = WEIR_STORED_LIBRARY;
    map->why = "images in pages of Parquet files";
    return 0;
}

static int texts(struct weir_store *store, struct weir_episode *episode, struct weir_err *err)
{
    const char *task = view_of(store)->episode->task;
    return task ? weir_episode_add_text(episode, "task", task, strlen(task), err) : 0;
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
    .lister = "meta/info.json lists the features",
};
