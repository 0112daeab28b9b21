/* What loading a LeRobot dataset does not show: tables that disagree, and numbers that are not finite. The videos are
 * in lerobot_review_video.c, the statistics in lerobot_stats.c. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_review_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reporting ---- */

int weir_lerobot_report(const struct weir_lerobot_review *r, enum weir_review_kind kind, const char *part, int64_t t,
                        const char *format, ...)
{
    char why[512];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return r->found(r->user, &(struct weir_reviewed){kind, part, t, why});
}

struct weir_lerobot_place weir_lerobot_place_of(int64_t episode, const char *key)
{
    struct weir_lerobot_place place;
    snprintf(place.text, sizeof place.text, "episode %" PRId64 "/%s", episode, key);
    return place;
}

/* ---- columns ---- */

/* Returns the column's rows of an episode, or NULL if there is no such column of one int64 per row. */
static const int64_t *integers(const struct weir_lerobot_view *view, const char *key)
{
    enum weir_number_type type;
    const void *found = NULL;
    int width, number = weir_lerobot_feature(view->lerobot, key);
    struct weir_err why = WEIR_ERR_NONE;
    bool there = number >= 0 && view->lerobot->features[number].kind == WEIR_LEROBOT_NUMBERS &&
                 weir_lerobot_column(view->table, view->episode, number, &type, &found, &width, &why) == 0;
    return there && type == WEIR_I64 && width == 1 ? found : NULL;
}

static bool has_task(const struct weir_tasks *tasks, const char *text)
{
    bool found = false;
    for (int i = 0; i < tasks->n && !found; i++)
        found = strcmp(tasks->texts[i], text) == 0;
    return found;
}

static int review_tasks(const struct weir_lerobot_review *r, const struct weir_lerobot_view *view)
{
    const int64_t *numbers = integers(view, "task_index");
    const struct weir_tasks *listed = &view->episode->tasks;
    const struct weir_lerobot_place place = weir_lerobot_place_of(view->episode->index, "task_index");
    for (int64_t t = 0; t < view->episode->length && numbers && r->tasks.n > 0; t++) {
        const char *text = numbers[t] >= 0 && numbers[t] < r->tasks.n ? r->tasks.texts[numbers[t]] : NULL;
        if (t > 0 && numbers[t] == numbers[t - 1])
            continue;
        if (!text)
            return weir_lerobot_report(r, WEIR_REVIEW_TABLES, place.text, t,
                                       "is %" PRId64 ", but the list of tasks has no such task", numbers[t]);
        if (listed->n > 0 && !has_task(listed, text))
            return weir_lerobot_report(r, WEIR_REVIEW_TABLES, place.text, t,
                                       "is %" PRId64 ", \"%.100s\", but the list of episodes has \"%.100s\"%s; "
                                       "correct the one that is wrong",
                                       numbers[t], text, listed->texts[0], listed->n > 1 ? " and others" : "");
    }
    return 0;
}

/* Version 3.0 refuses such episodes when they are opened. In version 2.1, nothing else depends on the column. */
static int review_index(const struct weir_lerobot_review *r, const struct weir_lerobot_view *view)
{
    const int64_t *index = integers(view, "index");
    for (int64_t t = 0; t < view->episode->length && index && r->is_whole && !r->lerobot->is_third; t++)
        if (index[t] != r->rows + t)
            return weir_lerobot_report(
                r, WEIR_REVIEW_TABLES, weir_lerobot_place_of(view->episode->index, "index").text, t,
                "is %" PRId64 ", but by the lengths in the list of episodes this is row %" PRId64 " of the dataset",
                index[t], r->rows + t);
    return 0;
}

static int review_frame_index(const struct weir_lerobot_review *r, const struct weir_lerobot_view *view)
{
    const int64_t *index = integers(view, "frame_index");
    for (int64_t t = 0; t < view->episode->length && index; t++)
        if (index[t] != t)
            return weir_lerobot_report(
                r, WEIR_REVIEW_TABLES, weir_lerobot_place_of(view->episode->index, "frame_index").text, t,
                "is %" PRId64 ", but this is row %" PRId64 " of the episode; correct it", index[t], t);
    return 0;
}

/* Opening an episode checks its state and actions, and its times if it has videos. */
static bool is_checked(const struct weir_lerobot *lerobot, const char *key)
{
    const char *state = weir_lerobot_feature(lerobot, "observation.state") >= 0 ? "observation.state" : "state";
    return strcmp(key, "action") == 0 || (strcmp(key, "timestamp") == 0 && lerobot->n_videos > 0) ||
           (weir_lerobot_feature(lerobot, state) >= 0 ? strcmp(key, state) == 0
                                                      : strncmp(key, "observation.", 12) == 0);
}

static struct weir_lerobot_stats *stats_of(const struct weir_lerobot_review *r,
                                           const struct weir_lerobot_episode *episode, int feature)
{
    size_t set = r->lerobot->is_third ? 0 : (size_t)(episode - r->lerobot->episodes);
    return &r->stats[set * (size_t)r->lerobot->n_features + (size_t)feature];
}

/* Reports a column that cannot be read, once. */
static int report_column(struct weir_lerobot_review *r, const struct weir_lerobot_view *view, int number,
                         const struct weir_err *why)
{
    if (r->is_reported[number])
        return 0;
    r->is_reported[number] = true;
    return weir_lerobot_report(r, WEIR_REVIEW_TABLES,
                               weir_lerobot_place_of(view->episode->index, r->lerobot->features[number].key).text, -1,
                               "%s", why->text);
}

static int review_texts(struct weir_lerobot_review *r, const struct weir_lerobot_view *view, int number)
{
    struct weir_err why = WEIR_ERR_NONE;
    return weir_lerobot_find_column(view->table, number, &why) < 0 ? report_column(r, view, number, &why) : 0;
}

static int review_column(struct weir_lerobot_review *r, const struct weir_lerobot_view *view, int number)
{
    const struct weir_lerobot_feature *feature = &r->lerobot->features[number];
    struct weir_lerobot_stats *stats = stats_of(r, view->episode, number);
    enum weir_number_type type;
    const void *values;
    int width;
    int64_t bad;
    char text[128];
    struct weir_err why = WEIR_ERR_NONE;
    if (weir_lerobot_is_unreadable(view->table, number, text, sizeof text)) /* opening the dataset reports it */
        return 0;
    int rc = weir_lerobot_column(view->table, view->episode, number, &type, &values, &width, &why);
    if (rc < 0) {
        stats->is_unknown = true;
        r->is_reported[number] |= rc != -EBADMSG;
        if (is_checked(r->lerobot, r->lerobot->features[number].key))
            return 0;
        return report_column(r, view, number, &why);
    }
    rc = weir_lerobot_stats_add(stats, feature, type, values, view->episode->length, &bad);
    if (rc < 0)
        return weir_no_memory(r->err);
    if (bad < 0 || is_checked(r->lerobot, feature->key))
        return 0;
    double value;
    weir_numbers_convert(type, (const uint8_t *)values + (size_t)bad * weir_number_bytes(type), 1, WEIR_F64, &value);
    return weir_lerobot_report(r, WEIR_REVIEW_NUMBERS, weir_lerobot_place_of(view->episode->index, feature->key).text,
                               bad / width, "number %" PRId64 " of the row is %g; repair it or remove the episode",
                               bad % width, value);
}

/* ---- episodes ---- */

static int review_episode(struct weir_lerobot_review *r, struct weir_lerobot_table *table,
                          const struct weir_lerobot_episode *episode)
{
    struct weir_lerobot_view view = {{&weir_store_lerobot, false}, r->lerobot, table, episode};
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_lerobot_check_rows(table, episode, &why);
    if (rc < 0) {
        r->is_complete = false;
        return rc == -ENOMEM ? weir_no_memory(r->err) : 0;
    }
    rc = weir_lerobot_review_times(r, &view);
    if (rc == 0)
        rc = review_index(r, &view);
    if (rc == 0)
        rc = review_frame_index(r, &view);
    if (rc == 0)
        rc = review_tasks(r, &view);
    for (int i = 0; i < r->lerobot->n_features && rc == 0; i++) {
        enum weir_lerobot_kind kind = r->lerobot->features[i].kind;
        rc = kind == WEIR_LEROBOT_NUMBERS ? review_column(r, &view, i)
             : kind == WEIR_LEROBOT_TEXT  ? review_texts(r, &view, i)
                                          : 0;
    }
    return rc;
}

/* Missing rows are an error of their episode. */
static int review_rows(struct weir_lerobot_review *r, const struct weir_lerobot_table *table, uint32_t part)
{
    int64_t rows = r->part_rows[part];
    r->part_rows[part] = 0;
    return !r->is_whole || rows == 0 || table->rows <= rows
               ? 0
               : weir_lerobot_report(r, WEIR_REVIEW_TABLES, table->name, -1,
                                     "has %" PRId64 " rows, but by the list of episodes its episodes have %" PRId64
                                     "; copy the dataset again, or remove the other rows",
                                     table->rows, rows);
}

static int review_episodes(struct weir_lerobot_review *r)
{
    struct weir_lerobot *lerobot = r->lerobot;
    int rc = 0;
    for (int i = 0; i < lerobot->n_episodes; i++)
        r->part_rows[lerobot->episodes[i].part] += lerobot->episodes[i].length;
    for (int i = 0, end; i < lerobot->n_episodes && rc == 0; i = end) {
        struct weir_lerobot_table table;
        struct weir_err why = WEIR_ERR_NONE;
        int opened = weir_lerobot_open_table(&table, lerobot, &lerobot->episodes[i], &why);
        r->is_complete = r->is_complete && opened == 0;
        rc = opened == -ENOMEM ? weir_no_memory(r->err) : 0;
        if (opened == 0)
            rc = review_rows(r, &table, lerobot->episodes[i].part);
        for (end = i; end < lerobot->n_episodes && lerobot->episodes[end].part == lerobot->episodes[i].part; end++) {
            if (opened == 0 && rc == 0)
                rc = review_episode(r, &table, &lerobot->episodes[end]);
            r->rows += lerobot->episodes[end].length;
        }
        if (opened == 0)
            weir_lerobot_close_table(&table);
    }
    return rc;
}

/* ---- the dataset ---- */

static int read_tasks(struct weir_lerobot_review *r)
{
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_lerobot_read_tasks(r->lerobot, &r->tasks, &why);
    if (rc == 0)
        return !r->tasks.is_unsorted
                   ? 0
                   : weir_lerobot_report(r, WEIR_REVIEW_MISSING, NULL, -1,
                                         "meta/tasks.parquet: its rows are not in the order of task_index; LeRobot "
                                         "takes the row with this number, so it reads other tasks: sort the rows, or "
                                         "insert those that are missing");
    weir_tasks_close(&r->tasks);
    r->tasks = (struct weir_tasks){0};
    return rc == -ENOMEM ? weir_no_memory(r->err)
                         : weir_lerobot_report(r, WEIR_REVIEW_TABLES, NULL, -1, "%s", why.text);
}

static bool reserve(struct weir_lerobot_review *r)
{
    size_t features = (size_t)r->lerobot->n_features, episodes = (size_t)r->lerobot->n_episodes;
    r->n_stats = features * (r->lerobot->is_third ? 1 : episodes);
    r->stats = calloc(r->n_stats, sizeof *r->stats);
    r->is_reported = calloc(features, sizeof *r->is_reported);
    r->has_line = calloc(episodes, sizeof *r->has_line);
    r->spans = calloc(episodes * (size_t)r->lerobot->n_videos + 1, sizeof *r->spans);
    r->part_rows = calloc(r->lerobot->parts->n + 1, sizeof *r->part_rows);
    return r->stats && r->is_reported && r->has_line && r->spans && r->part_rows;
}

static int review_all(struct weir_lerobot_review *r)
{
    bool is_third = r->lerobot->is_third;
    if (!reserve(r))
        return weir_no_memory(r->err);
    int rc = read_tasks(r);
    if (rc == 0)
        rc = review_episodes(r);
    if (rc == 0 && !r->is_rate_wrong && (!is_third || (r->is_whole && r->is_complete)))
        rc = weir_lerobot_review_spans(r);
    return rc == 0 && (!is_third || (r->is_whole && r->is_complete)) ? weir_lerobot_review_stats(r) : rc;
}

int weir_lerobot_review(struct weir_origin *origin, const struct weir_dataset_file *file, const char *episodes,
                        weir_review_fn *found, void *user, struct weir_err *err)
{
    struct weir_lerobot lerobot;
    struct weir_lerobot_review r = {.lerobot = &lerobot, .found = found, .user = user, .err = err};
    r.is_whole = episodes == NULL;
    r.is_complete = true;
    int rc = weir_lerobot_open(&lerobot, origin, file->path, err);
    if (rc == 0 && episodes)
        rc = weir_lerobot_choose_episodes(&lerobot, episodes, err);
    if (rc == 0)
        rc = weir_lerobot_list_files(&lerobot, err);
    if (rc == 0)
        rc = review_all(&r);
    for (size_t i = 0; r.stats && i < r.n_stats; i++)
        weir_lerobot_stats_close(&r.stats[i]);
    free(r.stats);
    free(r.is_reported);
    free(r.has_line);
    free(r.spans);
    free(r.part_rows);
    weir_tasks_close(&r.tasks);
    weir_lerobot_close(&lerobot);
    return rc;
}
