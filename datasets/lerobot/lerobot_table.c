/* The Parquet files of a dataset: one column per feature, and the rows of one or several episodes. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void weir_lerobot_close_table(struct weir_lerobot_table *table)
{
    for (int i = 0; table->columns && i < table->lerobot->n_features; i++)
        free(table->columns[i].values);
    free(table->columns);
    weir_parquet_close(&table->parquet);
    *table = (struct weir_lerobot_table){0};
}

/* All columns of numbers and texts are read, except in rare cases. */
static void announce_columns(const struct weir_lerobot_table *table)
{
    const struct weir_lerobot *lerobot = table->lerobot;
    bool *wanted = calloc((size_t)weir_parquet_columns(table->parquet) + 1, sizeof *wanted);
    for (int i = 0; i < lerobot->n_features && wanted; i++) {
        enum weir_lerobot_kind kind = lerobot->features[i].kind;
        int column = weir_parquet_find(table->parquet, lerobot->features[i].key, NULL);
        if (column >= 0 && (kind == WEIR_LEROBOT_NUMBERS || kind == WEIR_LEROBOT_TEXT))
            wanted[column] = true;
    }
    if (wanted)
        weir_parquet_announce(table->parquet, wanted, 0, table->rows);
    free(wanted);
}

int weir_lerobot_open_table(struct weir_lerobot_table *table, struct weir_lerobot *lerobot,
                            const struct weir_lerobot_episode *episode, struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    struct weir_err why = WEIR_ERR_NONE;
    *table = (struct weir_lerobot_table){.lerobot = lerobot, .name = lerobot->parts->names[episode->part]};
    weir_part_path(lerobot->parts, episode->part, path, sizeof path);
    table->columns = calloc((size_t)lerobot->n_features, sizeof *table->columns);
    int rc = table->columns ? weir_parquet_open(&table->parquet, lerobot->origin, path, &why) : weir_no_memory(&why);
    if (rc < 0) {
        weir_err_set(err, rc, "%.300s: %s", table->name, why.text);
        weir_lerobot_close_table(table);
        return rc;
    }
    struct weir_file_id id = weir_parquet_id(table->parquet);
    lerobot->parts->parts[episode->part] = weir_part_of(&id);
    table->rows = weir_parquet_rows(table->parquet);
    table->first = episode->file_first;
    if (lerobot->origin)
        announce_columns(table);
    return 0;
}

/* ---- columns ---- */

int weir_lerobot_find_column(const struct weir_lerobot_table *table, int number, struct weir_err *err)
{
    const struct weir_lerobot_feature *feature = &table->lerobot->features[number];
    struct weir_parquet_column column = {0};
    bool is_text = feature->kind == WEIR_LEROBOT_TEXT;
    int found = weir_parquet_find(table->parquet, feature->key, NULL);
    if (found >= 0)
        weir_parquet_column(table->parquet, found, &column);
    if (found >= 0 && (!is_text || column.kind == WEIR_PARQUET_BYTES))
        return found;
    return weir_err_set(err, -EBADMSG,
                        "%.300s: has no column %s%s, but meta/info.json has this feature; copy the dataset again",
                        table->name, feature->key, is_text ? " of strings" : "");
}

/* Returns whether a column has several leaves, which are next to each other. */
static bool is_structure(const struct weir_parquet *parquet, int column, const char *key)
{
    struct weir_parquet_column next;
    if (column + 1 >= weir_parquet_columns(parquet))
        return false;
    weir_parquet_column(parquet, column + 1, &next);
    return strcmp(next.name, key) == 0;
}

bool weir_lerobot_is_unreadable(const struct weir_lerobot_table *table, int number, char *why, size_t size)
{
    const struct weir_lerobot_feature *feature = &table->lerobot->features[number];
    struct weir_parquet_column column;
    int found = weir_parquet_find(table->parquet, feature->key, NULL);
    bool is_text = feature->kind == WEIR_LEROBOT_TEXT;
    if (found < 0 || (!is_text && feature->kind != WEIR_LEROBOT_NUMBERS))
        return false;
    weir_parquet_column(table->parquet, found, &column);
    bool has_structures = is_structure(table->parquet, found, feature->key);
    if ((has_structures || column.kind != WEIR_PARQUET_NUMBERS) && *feature->unknown)
        snprintf(why, size, "its dtype in meta/info.json, %s, is unknown", feature->unknown);
    else if (has_structures)
        snprintf(why, size, "it has structures");
    else if (column.kind == WEIR_PARQUET_OTHER)
        snprintf(why, size, "its type in the Parquet file is %s", column.refused);
    else if (column.kind == WEIR_PARQUET_BYTES && !is_text)
        snprintf(why, size, "it has strings, but meta/info.json describes numbers");
    else if (column.kind == WEIR_PARQUET_BYTES && column.list_depth > 0)
        snprintf(why, size, "it has lists of strings");
    else
        return false;
    return true;
}

int weir_lerobot_leave_out_columns(const struct weir_lerobot_table *table, struct weir_episode *episode,
                                   struct weir_err *err)
{
    char why[128];
    int rc = 0;
    for (int i = 0; i < table->lerobot->n_features && rc == 0; i++)
        if (weir_lerobot_is_unreadable(table, i, why, sizeof why))
            rc = weir_episode_leave_out(episode, err,
                                        "column %s is left out: %s; numbers, strings and lists of numbers are read",
                                        table->lerobot->features[i].key, why);
    return rc;
}

/* Replaces the values by those of rows first .. first + n - 1. */
static int read_rows(struct weir_lerobot_table *table, int feature, int64_t first, int64_t n, struct weir_err *err)
{
    struct weir_lerobot_column *column = &table->columns[feature];
    const struct weir_lerobot_feature *about = &table->lerobot->features[feature];
    struct weir_err why = WEIR_ERR_NONE;
    free(column->values);
    column->values = NULL;
    int number = weir_lerobot_find_column(table, feature, err);
    if (number < 0)
        return number;
    char type[128];
    if (weir_lerobot_is_unreadable(table, feature, type, sizeof type))
        return weir_err_set(err, -EBADMSG, "%.300s: column %s cannot be read: %s; store numbers", table->name,
                            about->key, type);
    int rc =
        weir_parquet_numbers(table->parquet, number, first, n, &column->type, &column->values, &column->width, &why);
    if (rc == 0 && column->width != about->width)
        rc = weir_err_set(&why, -EBADMSG,
                          "column %s has %d numbers per row, but in meta/info.json its shape has %d; "
                          "repair the dataset",
                          about->key, column->width, about->width);
    if (rc == 0)
        return 0;
    free(column->values);
    column->values = NULL;
    return weir_err_set(err, rc, "%.300s: %s", table->name, why.text);
}

/* Reads all rows when the column is first needed. */
static int read_column(struct weir_lerobot_table *table, int feature, struct weir_err *err)
{
    const struct weir_lerobot_column *column = &table->columns[feature];
    return column->values && !column->is_damaged ? 0 : read_rows(table, feature, 0, table->rows, err);
}

int weir_lerobot_column(struct weir_lerobot_table *table, const struct weir_lerobot_episode *episode, int feature,
                        enum weir_number_type *type, const void **values, int *width, struct weir_err *err)
{
    struct weir_lerobot_column *column = &table->columns[feature];
    int64_t first = episode->first - table->first;
    struct weir_err why = WEIR_ERR_NONE;
    int rc = column->is_damaged ? -EBADMSG : read_column(table, feature, &why);
    if (rc == -EBADMSG) { /* perhaps only in other episodes */
        column->is_damaged = true;
        why = (struct weir_err)WEIR_ERR_NONE;
        rc = read_rows(table, feature, first, episode->length, &why);
        first = 0;
    }
    if (rc < 0)
        return weir_err_set(err, rc, "%s", why.text);
    *type = column->type;
    *width = column->width;
    *values = (const uint8_t *)column->values + (size_t)first * (size_t)column->width * weir_number_bytes(column->type);
    return 0;
}

/* ---- columns of strings ---- */

static const char *text_of_row(const void *user, int t, size_t *length)
{
    return (const char *)weir_parquet_value(user, (uint64_t)t, length);
}

static int add_text_column(const struct weir_lerobot_table *table, const struct weir_lerobot_episode *of, int column,
                           const char *key, struct weir_episode *episode, struct weir_err *err)
{
    struct weir_parquet_bytes bytes = {0};
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_parquet_bytes(table->parquet, column, of->first - table->first, of->length, &bytes, &why);
    if (rc < 0)
        weir_err_set(err, rc, "%.300s: %s", table->name, why.text);
    else
        rc = weir_episode_text_column(episode, key, (int)of->length, text_of_row, &bytes, err);
    weir_parquet_bytes_free(&bytes);
    return rc;
}

int weir_lerobot_add_texts(const struct weir_lerobot_table *table, const struct weir_lerobot_episode *of,
                           struct weir_episode *episode, struct weir_err *err)
{
    const struct weir_lerobot *lerobot = table->lerobot;
    int rc = 0;
    for (int i = 0; i < lerobot->n_features && rc == 0; i++) {
        char why[128];
        struct weir_parquet_column column;
        const char *key = lerobot->features[i].key;
        int number = lerobot->features[i].kind == WEIR_LEROBOT_TEXT ? weir_parquet_find(table->parquet, key, NULL) : -1;
        if (number < 0 || weir_lerobot_is_unreadable(table, i, why, sizeof why))
            continue;
        weir_parquet_column(table->parquet, number, &column);
        if (column.kind == WEIR_PARQUET_BYTES)
            rc = add_text_column(table, of, number, key, episode, err);
    }
    return rc;
}

/* ---- the rows of an episode ---- */

/* Returns the column of a feature of one integer per row, for all rows. *values is NULL if there is no such feature. */
static int integers(struct weir_lerobot_table *table, const char *key, const int64_t **values, struct weir_err *err)
{
    int feature = weir_lerobot_feature(table->lerobot, key);
    *values = NULL;
    if (feature < 0)
        return 0;
    int rc = read_column(table, feature, err);
    if (rc < 0)
        return rc;
    const struct weir_lerobot_column *column = &table->columns[feature];
    if (column->type != WEIR_I64 || column->width != 1)
        return weir_err_set(err, -EBADMSG, "%.300s: column %s must have one int64 per row; repair the dataset",
                            table->name, key);
    *values = column->values;
    return 0;
}

static int wrong_length(const struct weir_lerobot_table *table, const struct weir_lerobot_episode *episode,
                        int64_t rows, struct weir_err *err)
{
    return weir_err_set(err, -EBADMSG,
                        "%.300s: has %" PRId64 " of its rows, but its length is %" PRId64
                        " in the list of episodes; copy the dataset again, or record the episode again",
                        table->name, rows, episode->length);
}

/* The rows before and after those of the episode belong to other episodes. */
static bool is_cut(const int64_t *numbers, int64_t rows, int64_t first, int64_t length)
{
    int64_t end = first + length;
    return (first > 0 && numbers[first - 1] == numbers[first]) || (end < rows && numbers[end] == numbers[first]);
}

int weir_lerobot_check_rows(struct weir_lerobot_table *table, const struct weir_lerobot_episode *episode,
                            struct weir_err *err)
{
    const int64_t *numbers, *index;
    int64_t first = episode->first - table->first, n = episode->length, there = 0;
    bool is_third = table->lerobot->is_third;
    if (first < 0 || first > table->rows || n > table->rows - first)
        return wrong_length(table, episode, first < 0 || first > table->rows ? 0 : table->rows - first, err);
    if (!is_third && table->rows != n)
        return wrong_length(table, episode, table->rows, err);
    int rc = integers(table, "episode_index", &numbers, err);
    if (rc == 0)
        rc = integers(table, "index", &index, err);
    if (rc < 0)
        return rc;
    for (int64_t t = 0; t < n && (numbers || index); t++)
        if ((numbers && numbers[first + t] != episode->index) ||
            (index && is_third && index[first + t] != episode->first + t))
            return weir_err_set(err, -EBADMSG,
                                "%.300s: row %" PRId64 " has the episode_index %" PRId64 " and the index %" PRId64
                                ", but according to the list of episodes it is row %" PRId64
                                " of this episode and %" PRId64 " of the dataset; copy the dataset again",
                                table->name, first + t, numbers ? numbers[first + t] : -1,
                                index ? index[first + t] : -1, t, episode->first + t);
    if (numbers && is_cut(numbers, table->rows, first, n)) {
        for (int64_t row = 0; row < table->rows; row++)
            there += numbers[row] == episode->index;
        return wrong_length(table, episode, there, err);
    }
    return 0;
}
