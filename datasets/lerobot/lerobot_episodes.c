/* The list of episodes: meta/episodes.jsonl in version 2.1, meta/episodes/chunk-000/file-000.parquet and following in
 * version 3.0. */
#include "base/grow.h"
#include "base/shortage.h"
#include "base/threads.h"
#include "datasets/lerobot/lerobot_priv.h"
#include "origin/remote.h"
#include "origin/source.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define LINES "meta/episodes.jsonl"
enum { EPISODES_MAX = 10 * 1000 * 1000, CHUNKS_MAX = 100000, AHEAD_MAX = 32 };

static int add_episode(struct weir_lerobot *lerobot, const struct weir_lerobot_episode *episode, struct weir_err *err)
{
    if (episode->length < 1 || episode->length > INT32_MAX || episode->index < 0 || episode->index > INT32_MAX)
        return weir_err_set(err, -EBADMSG,
                            "its list of episodes has an episode %" PRId64 " of %" PRId64 " rows; correct it",
                            episode->index, episode->length);
    if (lerobot->n_episodes == EPISODES_MAX)
        return weir_err_set(err, -EFBIG, "the dataset has more than %d episodes", EPISODES_MAX);
    if (!weir_grow(&lerobot->episodes, (size_t)lerobot->n_episodes, sizeof *lerobot->episodes))
        return weir_no_memory(err);
    lerobot->episodes[lerobot->n_episodes++] = *episode;
    return 0;
}

/* ---- version 2.1 ---- */

static int add_line(void *user, json_t *object, int line, struct weir_err *err)
{
    struct weir_lerobot *lerobot = user;
    json_t *index = json_object_get(object, "episode_index"), *length = json_object_get(object, "length");
    const json_t *tasks = json_object_get(object, "tasks");
    struct weir_lerobot_episode episode = {.index = json_integer_value(index), .length = json_integer_value(length)};
    if (!json_is_integer(index) || !json_is_integer(length))
        return weir_err_set(err, -EBADMSG, LINES ": line %d: episode_index and length must be integers; correct it",
                            line);
    int rc = 0;
    for (size_t i = 0; i < json_array_size(tasks) && rc == 0; i++) {
        const json_t *task = json_array_get(tasks, i);
        if (json_is_string(task))
            rc = weir_lerobot_add_task(&episode.tasks, episode.tasks.n, json_string_value(task),
                                       json_string_length(task), err);
    }
    if (rc == 0)
        rc = add_episode(lerobot, &episode, err);
    if (rc < 0)
        weir_tasks_close(&episode.tasks);
    return rc;
}

/* ---- version 3.0 ---- */

/* One file of the table of episodes. */
struct table {
    struct weir_lerobot *lerobot;
    const char *name; /* for messages */
    struct weir_parquet *parquet;
    int64_t rows;
    struct weir_err *err;
};

int weir_lerobot_read_numbers(struct weir_parquet *parquet, const char *file, const char *name,
                              enum weir_number_type as, void **out, struct weir_err *err)
{
    enum weir_number_type type;
    void *values;
    int64_t rows = weir_parquet_rows(parquet);
    int width = 0, column = weir_parquet_find(parquet, name, NULL);
    struct weir_err why = WEIR_ERR_NONE;
    *out = NULL;
    if (column < 0)
        return weir_err_set(err, -EBADMSG, "%s: has no column %s; copy the file again", file, name);
    int rc = weir_parquet_numbers(parquet, column, 0, rows, &type, &values, &width, &why);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s", file, why.text);
    *out = malloc((size_t)rows * 8 + 1);
    if (!*out || width != 1) {
        free(values);
        free(*out);
        *out = NULL;
        return width != 1 ? weir_err_set(err, -EBADMSG,
                                         "%s: column %s must have one number per row; copy the file again", file, name)
                          : weir_no_memory(err);
    }
    weir_numbers_convert(type, values, (size_t)rows, as, *out);
    free(values);
    return 0;
}

static int read_column(const struct table *table, const char *name, enum weir_number_type as, void **out)
{
    return weir_lerobot_read_numbers(table->parquet, table->name, name, as, out, table->err);
}

/* The columns of a table, of which each row is an episode. */
enum { INDEX, LENGTH, CHUNK, FILE_INDEX, FIRST, END, COLUMNS };
static const char *const column_names[COLUMNS] = {
    "episode_index", "length", "data/chunk_index", "data/file_index", "dataset_from_index", "dataset_to_index"};

static int add_rows(const struct table *table, int64_t *const columns[COLUMNS])
{
    int rc = 0;
    for (int64_t i = 0; i < table->rows && rc == 0; i++) {
        int64_t first = columns[FIRST][i], end = columns[END][i];
        if (first < 0 || end < first || end - first != columns[LENGTH][i])
            return weir_err_set(table->err, -EBADMSG,
                                "%s: episode %" PRId64 " has a length of %" PRId64 ", but its rows are %" PRId64
                                " to %" PRId64 " (dataset_from_index, dataset_to_index); copy the file again",
                                table->name, columns[INDEX][i], columns[LENGTH][i], first, end);
        rc = add_episode(table->lerobot,
                         &(struct weir_lerobot_episode){.index = columns[INDEX][i],
                                                        .length = columns[LENGTH][i],
                                                        .chunk = columns[CHUNK][i],
                                                        .file = columns[FILE_INDEX][i],
                                                        .first = columns[FIRST][i]},
                         table->err);
    }
    return rc;
}

static int read_tasks(const struct table *table, int first)
{
    struct weir_parquet_bytes tasks;
    struct weir_err why = WEIR_ERR_NONE;
    int column = weir_parquet_find(table->parquet, "tasks", NULL);
    if (column < 0)
        return 0;
    int rc = weir_parquet_bytes(table->parquet, column, 0, table->rows, &tasks, &why);
    if (rc < 0)
        return weir_err_set(table->err, rc, "%s: %s", table->name, why.text);
    uint64_t value = 0;
    for (int64_t i = 0; i < table->rows && rc == 0; i++) {
        uint64_t end = tasks.row_ends ? tasks.row_ends[i] : value + 1;
        struct weir_tasks *to = &table->lerobot->episodes[first + i].tasks;
        for (; value < end && rc == 0; value++) {
            size_t length;
            const char *text = (const char *)weir_parquet_value(&tasks, value, &length);
            rc = weir_lerobot_add_task(to, to->n, text, length, table->err);
        }
    }
    weir_parquet_bytes_free(&tasks);
    return rc;
}

static int read_clip_columns(const struct table *table, const struct weir_lerobot_feature *feature, int first)
{
    enum { CLIP_CHUNK, CLIP_FILE, FROM, TO, CLIP_COLUMNS };
    static const char *const names[] = {"chunk_index", "file_index", "from_timestamp", "to_timestamp"};
    void *columns[CLIP_COLUMNS] = {NULL};
    int rc = 0;
    for (int i = 0; i < CLIP_COLUMNS && rc == 0; i++) {
        char name[WEIR_LEROBOT_KEY_MAX + 32];
        snprintf(name, sizeof name, "videos/%s/%s", feature->key, names[i]);
        if (i != TO || weir_parquet_find(table->parquet, name, NULL) >= 0)
            rc = read_column(table, name, i < FROM ? WEIR_I64 : WEIR_F64, &columns[i]);
    }
    for (int64_t i = 0; i < table->rows && rc == 0; i++) {
        struct weir_lerobot_clip *clip = weir_lerobot_clip(table->lerobot, (size_t)(first + i), feature);
        *clip = (struct weir_lerobot_clip){.chunk = ((int64_t *)columns[CLIP_CHUNK])[i],
                                           .file = ((int64_t *)columns[CLIP_FILE])[i],
                                           .from_s = ((double *)columns[FROM])[i],
                                           .to_s = columns[TO] ? ((double *)columns[TO])[i] : NAN};
        if (isnan(clip->from_s))
            rc =
                weir_err_set(table->err, -EBADMSG,
                             "%s: episode %" PRId64 " has no video of %s: its from_timestamp is empty, as if recording "
                             "ended before the video was encoded; encode it, or remove the episode",
                             table->name, table->lerobot->episodes[first + i].index, feature->key);
        else if (!(clip->from_s >= 0 && clip->from_s < 1e9))
            rc = weir_err_set(table->err, -EBADMSG,
                              "%s: episode %" PRId64 " begins at an invalid time of %s; correct its from_timestamp",
                              table->name, table->lerobot->episodes[first + i].index, feature->key);
    }
    for (int i = 0; i < CLIP_COLUMNS; i++)
        free(columns[i]);
    return rc;
}

static int read_clips(const struct table *table, int first)
{
    struct weir_lerobot *lerobot = table->lerobot;
    size_t n = (size_t)lerobot->n_episodes * (size_t)lerobot->n_videos;
    struct weir_lerobot_clip *more = realloc(lerobot->clips, (n + 1) * sizeof *more);
    if (!more)
        return weir_no_memory(table->err);
    lerobot->clips = more;
    int rc = 0;
    for (int i = 0; i < lerobot->n_features && rc == 0; i++)
        if (lerobot->features[i].kind == WEIR_LEROBOT_VIDEO)
            rc = read_clip_columns(table, &lerobot->features[i], first);
    return rc;
}

static int read_table(const struct table *table)
{
    void *columns[COLUMNS] = {NULL};
    int rc = 0, first = table->lerobot->n_episodes;
    for (int i = 0; i < COLUMNS && rc == 0; i++)
        rc = read_column(table, column_names[i], WEIR_I64, &columns[i]);
    if (rc == 0)
        rc =
            add_rows(table, (int64_t *const[]){columns[0], columns[1], columns[2], columns[3], columns[4], columns[5]});
    for (int i = 0; i < COLUMNS; i++)
        free(columns[i]);
    if (rc == 0)
        rc = read_tasks(table, first);
    return rc == 0 ? read_clips(table, first) : rc;
}

/* A file of the table that may exist. */
struct table_file {
    struct weir_lerobot *lerobot;
    char name[2 * NAME_MAX + 64];
    struct weir_parquet *parquet; /* NULL with rc 0 = it does not exist */
    int rc;
    struct weir_err err;
};

static bool is_needed(const char *column)
{
    bool needed = strcmp(column, "tasks") == 0 || strncmp(column, "videos/", 7) == 0;
    for (int i = 0; i < COLUMNS; i++)
        needed = needed || strcmp(column, column_names[i]) == 0;
    return needed;
}

static void open_file(void *user, int i)
{
    struct table_file *file = (struct table_file *)user + i;
    char path[WEIR_PART_PATH_MAX];
    struct weir_err why = WEIR_ERR_NONE;
    file->rc = weir_lerobot_path(file->lerobot, file->name, path, &file->err);
    if (file->rc < 0 || !weir_lerobot_has(file->lerobot, file->name))
        return;
    file->rc = weir_parquet_open(&file->parquet, file->lerobot->origin, path, &why);
    if (file->rc < 0)
        weir_err_set(&file->err, file->rc, "%s: %s", file->name, why.text);
    int n = file->parquet ? weir_parquet_columns(file->parquet) : 0;
    bool *wanted = file->lerobot->origin ? calloc((size_t)n + 1, sizeof *wanted) : NULL;
    for (int c = 0; c < n && wanted; c++) {
        struct weir_parquet_column about;
        weir_parquet_column(file->parquet, c, &about);
        wanted[c] = is_needed(about.name);
    }
    if (n > 0 && wanted)
        weir_parquet_announce(file->parquet, wanted, 0, weir_parquet_rows(file->parquet));
    free(wanted);
}

/* Reads an open file. Returns 1, 0 if it does not exist, or negative. */
static int read_file(const struct table_file *file, struct weir_err *err)
{
    struct table table = {.lerobot = file->lerobot, .name = file->name, .parquet = file->parquet, .err = err};
    if (file->rc < 0)
        return weir_err_set(err, file->rc, "%s", file->err.text);
    if (!file->parquet)
        return 0;
    table.rows = weir_parquet_rows(table.parquet);
    int rc = table.rows <= EPISODES_MAX
                 ? read_table(&table)
                 : weir_err_set(err, -EFBIG, "%s: has more than %d rows", file->name, EPISODES_MAX);
    return rc < 0 ? rc : 1;
}

/* Reads `n` files of a chunk from number *next on, which are opened at once. Returns 1 if all exist, 0, or negative. */
static int read_some(struct weir_lerobot *lerobot, int chunk, int *next, int n, struct weir_err *err)
{
    struct table_file files[AHEAD_MAX] = {0};
    for (int i = 0; i < n; i++) {
        files[i].lerobot = lerobot;
        snprintf(files[i].name, sizeof files[i].name, "meta/episodes/chunk-%03d/file-%03d.parquet", chunk, *next + i);
    }
    weir_run_jobs(n, n, open_file, files);
    int rc = 1;
    for (int i = 0; i < n; i++) {
        rc = rc > 0 ? read_file(&files[i], err) : rc;
        *next += rc > 0;
        weir_parquet_close(&files[i].parquet);
    }
    return rc;
}

static int read_numbered(struct weir_lerobot *lerobot, struct weir_err *err)
{
    int rc = 1;
    for (int chunk = 0; chunk < CHUNKS_MAX && rc > 0; chunk++) {
        int file = 0, n = 1;
        while ((rc = read_some(lerobot, chunk, &file, n, err)) > 0)
            n = n < AHEAD_MAX ? 2 * n : n;
        rc = rc == 0 && file > 0 ? 1 : rc;
    }
    return rc;
}

/* Adds FOLDER/NAME for the names in a folder of the dataset. */
static int list_folder(const struct weir_lerobot *lerobot, const char *folder, struct weir_path_list *names)
{
    char path[WEIR_PART_PATH_MAX], *name;
    struct weir_err ignored = WEIR_ERR_NONE;
    DIR *open = weir_lerobot_path(lerobot, folder, path, &ignored) == 0 ? opendir(path) : NULL;
    int rc = 0;
    for (const struct dirent *entry; rc == 0 && open && (entry = readdir(open));)
        if (entry->d_name[0] != '.')
            rc = weir_path_list_add(names, asprintf(&name, "%s/%s", folder, entry->d_name) < 0 ? NULL : name);
    if (open)
        closedir(open);
    weir_path_list_sort_bytes(names);
    return rc;
}

/* Reads all tables that exist, in the order of their names, as LeRobot does: numbers may be missing. */
static int read_listed(struct weir_lerobot *lerobot, struct weir_err *err)
{
    struct weir_path_list chunks = {0};
    int rc = list_folder(lerobot, "meta/episodes", &chunks);
    for (int i = 0; i < chunks.n && rc >= 0; i++) {
        struct weir_path_list files = {0};
        rc = list_folder(lerobot, chunks.paths[i], &files);
        for (int k = 0; k < files.n && rc >= 0; k++) {
            const char *dot = strrchr(files.paths[k], '.');
            struct table_file file = {.lerobot = lerobot};
            if (!dot || strcmp(dot, ".parquet") != 0)
                continue;
            snprintf(file.name, sizeof file.name, "%s", files.paths[k]);
            open_file(&file, 0);
            rc = read_file(&file, err);
            weir_parquet_close(&file.parquet);
        }
        weir_path_list_free(&files);
    }
    weir_path_list_free(&chunks);
    return rc == -ENOMEM ? weir_no_memory(err) : rc < 0 ? rc : 0;
}

void weir_lerobot_look_at_files(struct weir_lerobot *lerobot)
{
    static const char *const names[] = {"meta/info.json",        LINES,
                                        "meta/tasks.jsonl",      "meta/tasks.parquet",
                                        "meta/subtasks.parquet", "meta/episodes/chunk-000/file-000.parquet"};
    enum { NAMES = sizeof names / sizeof *names };
    char text[NAMES][WEIR_PART_PATH_MAX];
    char *paths[NAMES];
    int n = 0;
    struct weir_err ignored = WEIR_ERR_NONE;
    for (int i = 0; i < NAMES; i++) {
        paths[n] = text[n];
        n += weir_lerobot_path(lerobot, names[i], text[n], &ignored) == 0;
    }
    weir_remote_learn_below(lerobot->origin, lerobot->path);
    weir_remote_identify_all(lerobot->origin, paths, n);
}

/* ---- both ---- */

static int by_index(const void *a, const void *b)
{
    const struct weir_lerobot_episode *left = a, *right = b;
    return (left->index > right->index) - (left->index < right->index);
}

/* Stores the first row of each Parquet file with its episodes, before some of them are left out. */
static void set_file_rows(struct weir_lerobot *lerobot)
{
    for (int i = 0; i < lerobot->n_episodes; i++) {
        struct weir_lerobot_episode *episode = &lerobot->episodes[i];
        bool same = i > 0 && episode[-1].chunk == episode->chunk && episode[-1].file == episode->file;
        episode->file_first = same ? episode[-1].file_first : episode->first;
    }
}

static int check_order(struct weir_lerobot *lerobot, struct weir_err *err)
{
    if (lerobot->n_episodes == 0)
        return weir_err_set(err, -ENODATA, "has no episodes in %s; copy it completely, or record some",
                            !lerobot->is_third ? LINES
                            : lerobot->origin  ? "meta/episodes/chunk-000/file-000.parquet"
                                               : "meta/episodes/*/*.parquet");
    if (!lerobot->is_third)
        qsort(lerobot->episodes, (size_t)lerobot->n_episodes, sizeof *lerobot->episodes, by_index);
    for (int i = 1; i < lerobot->n_episodes; i++)
        if (lerobot->episodes[i].index <= lerobot->episodes[i - 1].index)
            return weir_err_set(err, -EBADMSG,
                                "its list of episodes has episode %" PRId64 " after %" PRId64
                                "; episode numbers must increase",
                                lerobot->episodes[i].index, lerobot->episodes[i - 1].index);
    return 0;
}

/* Recording or copying that was interrupted leaves numbers that differ. */
static int check_totals(const struct weir_lerobot *lerobot, struct weir_err *err)
{
    int64_t frames = 0;
    for (int i = 0; i < lerobot->n_episodes; i++)
        frames += lerobot->episodes[i].length;
    if (lerobot->n_episodes == lerobot->total_episodes && frames == lerobot->total_frames)
        return 0;
    return weir_err_set(err, -EBADMSG,
                        "meta/info.json has %" PRId64 " episodes and %" PRId64
                        " frames (total_episodes, total_frames), but the list of episodes has %d and %" PRId64
                        "; copy the dataset again, or finish its recording",
                        lerobot->total_episodes, lerobot->total_frames, lerobot->n_episodes, frames);
}

/* In version 2.1, each episode has a video of its own. */
static int make_clips(struct weir_lerobot *lerobot, struct weir_err *err)
{
    size_t videos = (size_t)lerobot->n_videos;
    lerobot->clips = calloc((size_t)lerobot->n_episodes * videos + 1, sizeof *lerobot->clips);
    if (!lerobot->clips)
        return weir_no_memory(err);
    for (int i = 0; i < lerobot->n_episodes; i++) {
        struct weir_lerobot_episode *episode = &lerobot->episodes[i];
        episode->chunk = episode->index / lerobot->chunk_size;
        episode->file = episode->index;
        for (size_t video = 0; video < videos; video++)
            lerobot->clips[(size_t)i * videos + video] =
                (struct weir_lerobot_clip){.chunk = episode->chunk, .file = episode->file, .to_s = NAN};
    }
    return 0;
}

int weir_lerobot_read_episodes(struct weir_lerobot *lerobot, struct weir_err *err)
{
    int rc = !lerobot->is_third ? weir_lerobot_read_lines(lerobot, LINES, add_line, lerobot, err)
             : lerobot->origin  ? read_numbered(lerobot, err)
                                : read_listed(lerobot, err);
    if (rc == 0)
        rc = check_order(lerobot, err);
    if (rc == 0)
        rc = check_totals(lerobot, err);
    if (rc == 0 && !lerobot->is_third)
        rc = make_clips(lerobot, err);
    if (rc == 0)
        set_file_rows(lerobot);
    return rc;
}

/* ---- choosing ---- */

/* Parses a number, or a range whose end is not included. */
static bool parse_range(const char **at, int64_t *first, int64_t *end)
{
    char *after;
    *first = strtoll(*at, &after, 10);
    if (after == *at || *first < 0 || *first > INT32_MAX)
        return false;
    *end = *first + 1;
    if (*after == ':') {
        *at = after + 1;
        *end = strtoll(*at, &after, 10);
        if (after == *at || *end <= *first || *end > INT32_MAX)
            return false;
    }
    *at = after;
    return true;
}

/* Marks the episodes first .. end - 1. Returns the number of the first one that does not exist, or -1. */
static int64_t mark(const struct weir_lerobot *lerobot, bool *wanted, int64_t first, int64_t end)
{
    int64_t next = first;
    for (int i = 0; i < lerobot->n_episodes && next < end; i++)
        if (lerobot->episodes[i].index >= next) {
            if (lerobot->episodes[i].index != next)
                break;
            wanted[i] = true;
            next++;
        }
    return next < end ? next : -1;
}

static void keep_wanted(struct weir_lerobot *lerobot, const bool *wanted)
{
    size_t videos = (size_t)lerobot->n_videos;
    int kept = 0;
    for (int i = 0; i < lerobot->n_episodes; i++) {
        if (!wanted[i]) {
            weir_tasks_close(&lerobot->episodes[i].tasks);
            continue;
        }
        memmove(&lerobot->clips[(size_t)kept * videos], &lerobot->clips[(size_t)i * videos],
                videos * sizeof *lerobot->clips);
        lerobot->episodes[kept++] = lerobot->episodes[i];
    }
    lerobot->n_episodes = kept;
}

int weir_lerobot_choose_episodes(struct weir_lerobot *lerobot, const char *list, struct weir_err *err)
{
    bool *wanted = calloc((size_t)lerobot->n_episodes, sizeof *wanted);
    int rc = wanted ? 0 : weir_no_memory(err);
    for (const char *at = list; rc == 0;) {
        int64_t first, end, missing;
        if (!parse_range(&at, &first, &end) || (*at != ',' && *at != '\0'))
            rc = weir_err_set(err, -EINVAL, "the list of episodes, \"%.100s\", must be like 0,3,10:20", list);
        else if ((missing = mark(lerobot, wanted, first, end)) >= 0)
            rc = weir_err_set(err, -EINVAL, "has no episode %" PRId64 "; its episodes are %" PRId64 " to %" PRId64,
                              missing, lerobot->episodes[0].index, lerobot->episodes[lerobot->n_episodes - 1].index);
        if (rc < 0 || *at++ == '\0')
            break;
    }
    if (rc == 0)
        keep_wanted(lerobot, wanted);
    free(wanted);
    return rc;
}
