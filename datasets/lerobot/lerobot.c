/* LeRobot datasets, versions 2.1 and 3.0: a folder with meta/info.json, columns in Parquet files, and videos. */
#include "base/resources.h"
#include "base/shortage.h"
#include "base/threads.h"
#include "datasets/format_ops.h"
#include "datasets/lerobot/lerobot_priv.h"
#include "datasets/open_dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_PER_THREAD = 4, REMOTE_THREADS = 64 };

static bool is_dataset(int folder, const char *name)
{
    static const char *const lists[] = {"meta/episodes", "meta/episodes.jsonl", "meta/tasks.parquet",
                                        "meta/tasks.jsonl"};
    struct stat st;
    (void)name;
    if (fstatat(folder, "meta/info.json", &st, 0) < 0 || !S_ISREG(st.st_mode))
        return false;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (faccessat(folder, lists[i], F_OK, 0) == 0)
            return true;
    return false;
}

static const char *mark_of(const char *name)
{
    (void)name;
    return "meta/info.json";
}

/* ---- episodes ---- */

/* An episode after a thread has described it. */
struct outcome {
    struct weir_episode episode;
    int rc;
    char *why;
};

/* Episodes are described file by file, on several threads; the videos of a server are opened first, because they are
 * shared. The first error in the order of episodes ends the work on
 * files that begin after it, so that the result does not depend on the threads. */
struct work {
    struct weir_lerobot *lerobot;
    const struct weir_dataset_config *config;
    struct outcome *outcomes; /* one per episode */
    int *firsts;              /* first episode of each run of episodes in one file */
    int n_runs;
    int n_videos;         /* videos to open first; 0 = each is opened when it is needed */
    uint32_t first_video; /* part */
    _Atomic int limit;    /* no episode after this one is needed */
};

/* Neither torchcodec nor PyAV, with which lerobot reads, turns pictures; OpenCV and players do. */
static int leave_out_turns(struct weir_episode *episode, struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < episode->n_maps && rc == 0; i++) {
        const char *turn = episode->maps[i].video ? weir_video_track_stream(episode->maps[i].video)->turn : NULL;
        if (turn)
            rc = weir_episode_leave_out(episode, err,
                                        "%s: the video's display matrix asks for %s, which is left out as in lerobot; "
                                        "OpenCV and players do it",
                                        episode->names[i], turn);
    }
    return rc;
}

static int describe_in(struct weir_lerobot_table *table, const struct weir_lerobot_episode *of,
                       const struct weir_dataset_config *config, struct weir_episode *episode, struct weir_err *err)
{
    struct weir_lerobot_view view = {{&weir_store_lerobot, false}, table->lerobot, table, of};
    int rc = weir_lerobot_check_rows(table, of, err);
    if (rc == 0)
        rc = weir_episode_describe(&view.store, episode, config, err);
    if (rc == 0)
        rc = weir_lerobot_leave_out_columns(table, episode, err);
    if (rc == 0)
        rc = weir_lerobot_mark_times(&view, episode, err);
    if (rc == 0)
        rc = leave_out_turns(episode, err);
    if (rc < 0 || !config->columns)
        return rc;
    for (int i = 0; i < table->lerobot->n_features && rc >= 0; i++) {
        enum weir_lerobot_kind kind = table->lerobot->features[i].kind;
        rc = kind == WEIR_LEROBOT_NUMBERS || kind == WEIR_LEROBOT_TEXT ? weir_lerobot_find_column(table, i, err) : 0;
    }
    return rc >= 0 ? weir_lerobot_add_texts(table, of, episode, err) : rc;
}

static void keep_outcome(struct work *w, int i, int rc, const struct weir_err *why)
{
    struct outcome *outcome = &w->outcomes[i];
    outcome->rc = rc;
    outcome->why = rc < 0 ? strdup(why->text) : NULL;
    int limit = atomic_load(&w->limit);
    while (rc < 0 && !w->config->tolerant && i < limit && !atomic_compare_exchange_weak(&w->limit, &limit, i))
        ;
}

static void describe_run(struct work *w, int first, int end)
{
    struct weir_lerobot *lerobot = w->lerobot;
    struct weir_err why = WEIR_ERR_NONE;
    struct weir_lerobot_table table;
    int opened = weir_lerobot_open_table(&table, lerobot, &lerobot->episodes[first], &why);
    for (int i = first; i < end; i++) {
        struct weir_episode *episode = &w->outcomes[i].episode;
        struct weir_err why_not = why;
        int rc = opened;
        *episode = (struct weir_episode){.layout = &weir_layout_lerobot, .bytes = sizeof *episode};
        if (asprintf(&episode->root, "episode %" PRId64, lerobot->episodes[i].index) < 0) {
            episode->root = NULL;
            rc = weir_no_memory(&why_not);
        }
        if (rc == 0)
            rc = describe_in(&table, &lerobot->episodes[i], w->config, episode, &why_not);
        keep_outcome(w, i, rc, &why_not);
    }
    if (opened == 0)
        weir_lerobot_close_table(&table);
}

static void do_job(void *user, int i)
{
    struct work *w = user;
    const struct weir_video_track *track;
    struct weir_err shown_later = WEIR_ERR_NONE;
    if (i < w->n_videos)
        weir_lerobot_track(w->lerobot, w->first_video + (uint32_t)i, &track, &shown_later);
    else if (w->firsts[i - w->n_videos] <= atomic_load(&w->limit))
        describe_run(w, w->firsts[i - w->n_videos], w->firsts[i - w->n_videos + 1]);
}

/* Threads that open files of a server mostly wait, so there are more of them than cores. */
static void describe_all(struct work *w)
{
    const struct weir_lerobot *lerobot = w->lerobot;
    int threads = w->config->threads > 0 ? w->config->threads : weir_cores_usable();
    int useful = w->n_runs / FILES_PER_THREAD;
    for (int i = 0; i < lerobot->n_episodes && lerobot->origin; i++)
        w->first_video = lerobot->episodes[i].part >= w->first_video ? lerobot->episodes[i].part + 1 : w->first_video;
    w->n_videos = lerobot->origin ? (int)(lerobot->parts->n - w->first_video) : 0;
    weir_run_jobs(lerobot->origin    ? REMOTE_THREADS
                  : threads < useful ? threads
                                     : useful,
                  w->n_videos + w->n_runs, do_job, w);
}

/* Moves an episode to the file's index. */
static int take_outcome(void *user, int i, const struct weir_dataset_config *config, struct weir_episode *episode,
                        struct weir_err *err)
{
    struct outcome *outcome = &((struct work *)user)->outcomes[i];
    (void)config;
    *episode = outcome->episode;
    outcome->episode = (struct weir_episode){0};
    return outcome->rc < 0 ? weir_err_set(err, outcome->rc, "%s", outcome->why ? outcome->why : strerror(-outcome->rc))
                           : 0;
}

static int describe_episodes(struct weir_lerobot *lerobot, struct weir_file_result *result,
                             const struct weir_dataset_config *config)
{
    int n = lerobot->n_episodes, rc = 0;
    struct work w = {.lerobot = lerobot, .config = config, .limit = n};
    w.outcomes = calloc((size_t)n, sizeof *w.outcomes);
    w.firsts = calloc((size_t)n + 1, sizeof *w.firsts);
    if (!w.outcomes || !w.firsts)
        rc = weir_no_memory(&result->err);
    for (int i = 0; i < n && rc == 0; i++)
        if (i == 0 || lerobot->episodes[i].part != lerobot->episodes[i - 1].part)
            w.firsts[w.n_runs++] = i;
    if (rc == 0) {
        w.firsts[w.n_runs] = n;
        describe_all(&w);
        rc = weir_file_describe_episodes(result, n, config, take_outcome, &w);
    }
    for (int i = 0; i < n && w.outcomes; i++) {
        weir_episode_close(&w.outcomes[i].episode);
        free(w.outcomes[i].why);
    }
    free(w.outcomes);
    free(w.firsts);
    return rc;
}

/* Sets what must be equal in datasets that are loaded together. Cameras are compared by their frames. */
static int set_traits(const struct weir_lerobot *lerobot, char **traits, struct weir_err *err)
{
    char value[32];
    snprintf(value, sizeof value, "%.6g", weir_lerobot_fps(lerobot));
    int rc = weir_traits_add(traits, "fps", value, false, err);
    for (int i = 0; i < lerobot->n_features && rc == 0; i++) {
        const struct weir_lerobot_feature *feature = &lerobot->features[i];
        bool is_text = feature->kind == WEIR_LEROBOT_TEXT;
        char name[WEIR_LEROBOT_KEY_MAX + 16];
        if (feature->kind != WEIR_LEROBOT_NUMBERS && !is_text)
            continue;
        snprintf(name, sizeof name, "feature %s", feature->key);
        snprintf(value, sizeof value, is_text ? "text" : "%d numbers", feature->width);
        rc = weir_traits_add(traits, name, value, false, err);
        snprintf(name, sizeof name, "names of %s", feature->key);
        if (rc == 0 && feature->names)
            rc = weir_traits_add(traits, name, feature->names, true, err);
    }
    return rc;
}

/* Moves the files that frames are read from, and their tables, to the index. */
static void take_parts(struct weir_file_index *file, struct weir_lerobot *lerobot)
{
    file->parts = lerobot->parts;
    file->parts->root = file->file.path;
    file->file.size_bytes = file->parts->looked.size_bytes;
    for (uint32_t i = 0; i < file->parts->n; i++)
        file->file.size_bytes += file->parts->parts[i].size_bytes;
    for (uint32_t i = 0; i < lerobot->videos->n; i++)
        if (lerobot->videos->videos[i].track)
            file->held_bytes += weir_video_track_bytes(lerobot->videos->videos[i].track);
    file->held_bytes += lerobot->videos->n * sizeof *lerobot->videos->videos + lerobot->videos->depth_bytes;
    if (asprintf(&file->about, "LeRobot %s, %.5g fps", lerobot->is_third ? "v3.0" : "v2.1", weir_lerobot_fps(lerobot)) <
        0)
        file->about = NULL;
    file->held = lerobot->videos;
    file->release = weir_lerobot_videos_close;
    lerobot->parts = NULL;
    lerobot->videos = NULL;
}

static int open_dataset(struct weir_file_result *result, const char *path, struct weir_opening *opening)
{
    struct weir_lerobot lerobot;
    int rc = weir_lerobot_open(&lerobot, opening->origin, path, &result->err);
    if (rc == 0 && opening->config->episodes)
        rc = weir_lerobot_choose_episodes(&lerobot, opening->config->episodes, &result->err);
    if (rc == 0 && opening->config->columns)
        rc = weir_lerobot_read_tasks(&lerobot, &result->file.tasks, &result->err);
    if (rc == 0 && opening->config->columns)
        rc = weir_lerobot_read_subtasks(&lerobot, &result->file.subtasks, &result->err);
    if (rc == 0)
        rc = weir_lerobot_list_files(&lerobot, &result->err);
    if (rc == 0)
        rc = weir_lerobot_find_depth(&lerobot, &result->file.note, &result->err);
    if (rc == 0 && opening->config->columns)
        rc = weir_lerobot_fill_depth(&lerobot, &result->err);
    if (rc == 0)
        rc = describe_episodes(&lerobot, result, opening->config);
    if (rc == 0 && !opening->config->episodes && result->file.n_bad == 0) /* as in the review */
        rc = weir_lerobot_mark_overlaps(result->file.episodes, result->file.n_episodes, &result->err);
    if (rc == 0)
        rc = set_traits(&lerobot, &result->file.traits, &result->err);
    if (rc == 0)
        take_parts(&result->file, &lerobot);
    weir_lerobot_close(&lerobot);
    return rc;
}

const struct weir_format_ops weir_format_lerobot = {
    .name = "lerobot",
    .summary = "LeRobot datasets v2.1 and v3.0: a folder with meta/info.json, Parquet files, and videos or images",
    .is_folder = is_dataset,
    .open = open_dataset,
    .find_frames = weir_lerobot_find_images,
    .read_row = weir_lerobot_read_row,
    .review = weir_lerobot_review,
    .mark = mark_of,
    .reads_origins = true,
    .is_held = true,
};
