/* lerobot_priv.h: a LeRobot dataset (github.com/huggingface/lerobot) while it is opened. Version 2.1 has one Parquet
 * file and one video per camera for each episode, version 3.0 joins episodes in files. meta/info.json describes the
 * columns and the paths of both. */
#ifndef WEIR_DATASETS_LEROBOT_LEROBOT_PRIV_H
#define WEIR_DATASETS_LEROBOT_LEROBOT_PRIV_H

#include "datasets/index.h"
#include "datasets/open_dataset.h"
#include "datasets/parquet/parquet.h"
#include "datasets/store.h"
#include "datasets/video/video_track.h"

#include <pthread.h>

enum { WEIR_LEROBOT_FEATURES_MAX = 1024, WEIR_LEROBOT_KEY_MAX = 64, WEIR_LEROBOT_LOCKS = 64 };

enum weir_lerobot_kind { WEIR_LEROBOT_NUMBERS, WEIR_LEROBOT_VIDEO, WEIR_LEROBOT_IMAGE, WEIR_LEROBOT_TEXT };

/* Scale of a depth feature. */
struct weir_lerobot_depth {
    double min_m, max_m, shift_m; /* of the codes of a video */
    bool is_log;
    bool is_metres; /* images contain metres instead of millimetres */
};

struct weir_lerobot_feature {
    char key[WEIR_LEROBOT_KEY_MAX];
    enum weir_lerobot_kind kind;
    char unknown[32];                     /* its dtype, if it is unknown; its kind is then WEIR_LEROBOT_NUMBERS */
    bool is_depth, is_bool, is_half;      /* is_half: float16, which is read as float32 */
    int width;                            /* numbers per row: the product of the shape */
    int rank, dims[WEIR_COLUMN_RANK_MAX]; /* the shape; rank 0 if it has more dimensions */
    int video;                            /* number of the video feature; -1 for others */
    char *names;                          /* of the numbers, as "a, b, c"; owned; NULL = not recorded */
    struct weir_lerobot_depth depth;
    const float *depth_values; /* see struct weir_camera */
};

/* Position of an episode's frames in one video. */
struct weir_lerobot_clip {
    int64_t chunk, file;
    double from_s, to_s; /* to_s: NaN if it is not recorded; LeRobot's readers do not use it */
    uint32_t part;       /* the video */
};

struct weir_lerobot_episode {
    int64_t index, length;
    int64_t chunk, file;     /* of the Parquet file, in version 3 */
    int64_t first;           /* its first row among those of the dataset, in version 3 */
    int64_t file_first;      /* first row of the dataset that is in the same file */
    struct weir_tasks tasks; /* in the order of the list of episodes; owned */
    uint32_t part;           /* the Parquet file */
};

/* A Parquet file while its episodes are described; one thread at a time. Its columns are read when they are first
 * needed. */
struct weir_lerobot_table {
    struct weir_lerobot *lerobot;
    const char *name; /* for messages; lent by the parts */
    int64_t first;    /* row of the dataset that is its first row */
    int64_t rows;
    struct weir_parquet *parquet;
    struct weir_lerobot_column { /* per feature */
        enum weir_number_type type;
        void *values; /* of all rows; if the column is damaged, those of the episode that needed them last */
        int width;
        bool is_damaged; /* in some rows */
    } * columns;
};

/* A video, after the first episode that needs it: its track, or the reason why it cannot be read. */
struct weir_lerobot_video {
    struct weir_video_track *track;
    int rc;
    char *why;
};

/* The dataset's videos and depth values, which outlive the opening. Episodes share them. */
struct weir_lerobot_videos {
    uint32_t n;
    struct weir_lerobot_video *videos; /* per part; empty for other parts */
    float *depth_values;               /* of all depth features; NULL = not requested, or none */
    size_t depth_bytes;
};

struct json_t;

struct weir_lerobot {
    const char *path;
    struct weir_origin *origin; /* NULL = this machine */
    bool is_third;              /* version 3.0; otherwise 2.1 */
    int64_t fps_numerator, fps_denominator;
    int64_t chunk_size;                   /* episodes per chunk, in version 2.1 */
    int64_t total_episodes, total_frames; /* as meta/info.json has them */
    char *data_path, *video_path;
    int n_features, n_videos;
    struct weir_lerobot_feature *features;
    int n_episodes;
    struct weir_lerobot_episode *episodes;
    struct weir_lerobot_clip *clips; /* n_videos per episode */
    struct weir_parts *parts; /* the Parquet files, then the videos of each feature; identified when they are opened */
    struct weir_lerobot_videos *videos;
    pthread_mutex_t locks[WEIR_LEROBOT_LOCKS]; /* lock part % WEIR_LEROBOT_LOCKS protects a part's video */
};

/* One episode, as layouts see it. */
struct weir_lerobot_view {
    struct weir_store store;
    struct weir_lerobot *lerobot;
    struct weir_lerobot_table *table;
    const struct weir_lerobot_episode *episode;
};

extern const struct weir_store_ops weir_store_lerobot;

/* Returns the clip of an episode, by its number in the list, in the video of a feature. */
static inline struct weir_lerobot_clip *weir_lerobot_clip(const struct weir_lerobot *lerobot, size_t episode,
                                                          const struct weir_lerobot_feature *feature)
{
    return &lerobot->clips[episode * (size_t)lerobot->n_videos + (size_t)feature->video];
}

/* Returns whether the feature's shape is that of pictures: height x width x channels, or channels x height x width. */
static inline bool weir_lerobot_picture_size(const struct weir_lerobot_feature *feature, int *width, int *height)
{
    bool channels_first = feature->rank == 3 && feature->dims[0] <= 4 && feature->dims[2] > 4;
    *height = feature->dims[channels_first];
    *width = feature->dims[1 + channels_first];
    return feature->rank == 3;
}

/* Returns the frame rate in Hz. */
static inline double weir_lerobot_fps(const struct weir_lerobot *lerobot)
{
    return (double)lerobot->fps_numerator / (double)lerobot->fps_denominator;
}

/* ---- lerobot_info.c ---- */

/* Writes the path of a file by its name in the dataset. Returns 0, or -ENAMETOOLONG or -EPERM with err. */
int weir_lerobot_path(const struct weir_lerobot *lerobot, const char *name, char path[WEIR_PART_PATH_MAX],
                      struct weir_err *err);
/* Returns whether the dataset has this file. */
bool weir_lerobot_has(const struct weir_lerobot *lerobot, const char *name);
/* Reads a whole file of the dataset. The caller frees *text, which ends with a zero byte. Errors name the file. */
int weir_lerobot_read(const struct weir_lerobot *lerobot, const char *name, char **text, size_t *n,
                      struct weir_err *err);
/* Receives the JSON object of a line, which it does not keep. */
typedef int weir_lerobot_line(void *user, struct json_t *object, int line, struct weir_err *err);
/* Reads a file of one JSON object per line. Empty lines are skipped. */
int weir_lerobot_read_lines(const struct weir_lerobot *lerobot, const char *name, weir_lerobot_line *use, void *user,
                            struct weir_err *err);
int weir_lerobot_read_info(struct weir_lerobot *lerobot, struct weir_err *err);
/* The values that a path's template can contain. */
struct weir_lerobot_names {
    int64_t episode, chunk, file;
    const char *video_key;
};
/* Fills a template such as "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet". The result is a relative path
 * that does not lead out of the dataset. */
int weir_lerobot_name(const char *template, const struct weir_lerobot_names *names, char *text, size_t size,
                      struct weir_err *err);
int weir_lerobot_feature(const struct weir_lerobot *lerobot, const char *key);

/* ---- lerobot_depth.c ---- */

/* Marks features of images as depth if their first image is a PNG of 16-bit gray. *note, which is NULL, becomes a note
 * for the user, owned by the caller. */
int weir_lerobot_find_depth(struct weir_lerobot *lerobot, char **note, struct weir_err *err);
/* Sets the values in millimetres of all depth features. */
int weir_lerobot_fill_depth(struct weir_lerobot *lerobot, struct weir_err *err);

/* ---- lerobot_episodes.c ---- */

/* Identifies the files of a dataset on a server whose names are known, many at once. Errors show when they are read. */
void weir_lerobot_look_at_files(struct weir_lerobot *lerobot);
int weir_lerobot_read_episodes(struct weir_lerobot *lerobot, struct weir_err *err);
/* Keeps the episodes of a list such as "0,3,10:20". All of them must exist. */
int weir_lerobot_choose_episodes(struct weir_lerobot *lerobot, const char *list, struct weir_err *err);
/* Reads a column of one number per row of an open file, as doubles or 64-bit integers; the caller frees *out. Errors
 * contain `file`. */
int weir_lerobot_read_numbers(struct weir_parquet *parquet, const char *file, const char *column,
                              enum weir_number_type as, void **out, struct weir_err *err);

/* ---- lerobot_tasks.c ---- */

/* Sets the text of a task. */
int weir_lerobot_add_task(struct weir_tasks *tasks, int64_t number, const char *text, size_t length,
                          struct weir_err *err);
/* Read the texts of the tasks and subtasks. The caller owns them, also after an error. */
int weir_lerobot_read_tasks(struct weir_lerobot *lerobot, struct weir_tasks *tasks, struct weir_err *err);
int weir_lerobot_read_subtasks(struct weir_lerobot *lerobot, struct weir_tasks *subtasks, struct weir_err *err);

/* ---- lerobot_files.c ---- */

/* Reads meta/info.json and the list of episodes. Errors do not contain the path. Close *lerobot also after an error. */
int weir_lerobot_open(struct weir_lerobot *lerobot, struct weir_origin *origin, const char *path, struct weir_err *err);
void weir_lerobot_close(struct weir_lerobot *lerobot);

/* Lists the dataset's files as parts, each of them once, and sets the parts of episodes and clips. */
int weir_lerobot_list_files(struct weir_lerobot *lerobot, struct weir_err *err);
/* Returns the track of a part, which is opened when it is first needed. Any thread. Errors name the file. */
int weir_lerobot_track(struct weir_lerobot *lerobot, uint32_t part, const struct weir_video_track **track,
                       struct weir_err *err);
void weir_lerobot_videos_close(void *videos);

/* ---- lerobot_table.c ---- */

/* Opens the Parquet file of an episode. */
int weir_lerobot_open_table(struct weir_lerobot_table *table, struct weir_lerobot *lerobot,
                            const struct weir_lerobot_episode *episode, struct weir_err *err);
void weir_lerobot_close_table(struct weir_lerobot_table *table);
/* Checks that the rows of the episode in the open table are those that the list of episodes describes. */
int weir_lerobot_check_rows(struct weir_lerobot_table *table, const struct weir_lerobot_episode *episode,
                            struct weir_err *err);
/* Returns the numbers of a column, for the rows of one episode in the open table: its first number, and *width numbers
 * per row. They are valid until the column's numbers of another episode are requested. Damage that begins more
 * than a page after the episode, or is in other row groups (LeRobot writes one per episode), is not an error. */
int weir_lerobot_column(struct weir_lerobot_table *table, const struct weir_lerobot_episode *episode, int feature,
                        enum weir_number_type *type, const void **values, int *width, struct weir_err *err);
/* Returns the column of a feature in the Parquet file, which must have strings if the feature does; or -EBADMSG. */
int weir_lerobot_find_column(const struct weir_lerobot_table *table, int feature, struct weir_err *err);
/* Returns whether the type of a column of numbers or strings cannot be read, and the reason. */
bool weir_lerobot_is_unreadable(const struct weir_lerobot_table *table, int feature, char *why, size_t size);
/* Adds such columns to the list of weir_dataset_left_out. */
int weir_lerobot_leave_out_columns(const struct weir_lerobot_table *table, struct weir_episode *episode,
                                   struct weir_err *err);
/* Adds the columns of strings to an episode. */
int weir_lerobot_add_texts(const struct weir_lerobot_table *table, const struct weir_lerobot_episode *of,
                           struct weir_episode *episode, struct weir_err *err);

/* ---- lerobot_frames.c ---- */

/* Returns the times of the episode's rows, in seconds; the caller frees them. */
int weir_lerobot_read_times(const struct weir_lerobot_view *view, double **times, struct weir_err *err);
/* Fills the map with the pictures of a video. */
int weir_lerobot_place_video(const struct weir_lerobot_view *view, int feature, struct weir_frame_map *map,
                             struct weir_err *err);

/* ---- lerobot_review_video.c ---- */

/* Rows of an episode that are further from their picture than LeRobot's tolerance. */
struct weir_lerobot_drift {
    int64_t rows, worst;            /* number of these rows, and the one that is furthest */
    double off_s, row_s, picture_s; /* of that row: the distance, and both times in the video */
};
struct weir_lerobot_drift weir_lerobot_drift_of(const struct weir_lerobot_view *view,
                                                const struct weir_lerobot_feature *feature,
                                                const struct weir_frame_map *map, const double *times);
/* Returns the row whose distance from the row before it is furthest from 1 / fps; -1 if all are right. */
int64_t weir_lerobot_wrong_step(const struct weir_lerobot_view *view, const double *times);
/* Sets what weir_dataset_drift reports about an episode. */
int weir_lerobot_mark_times(const struct weir_lerobot_view *view, struct weir_episode *episode, struct weir_err *err);
/* The same for all episodes of a dataset, whose videos they share. */
int weir_lerobot_mark_overlaps(struct weir_episode *episodes, int n, struct weir_err *err);

/* ---- lerobot_review.c ---- */

/* Implements weir_format_ops.review. */
int weir_lerobot_review(struct weir_origin *origin, const struct weir_dataset_file *file, const char *episodes,
                        weir_review_fn *found, void *user, struct weir_err *err);

/* ---- lerobot_images.c ---- */

/* Describes images in a Parquet file, which are located later. */
int weir_lerobot_place_images(const struct weir_lerobot_view *view, int feature, struct weir_frame_map *map,
                              struct weir_err *err);

/* Implement find_frames and read_row of weir_format_ops. */
int weir_lerobot_find_images(struct weir_origin *origin, const struct weir_file_index *file, struct weir_frame_map *map,
                             struct weir_err *err);
int weir_lerobot_read_row(struct weir_opening *opening, const struct weir_file_index *file, struct weir_frame_map *map,
                          uint64_t t, void *buffer, size_t capacity, size_t *length, struct weir_err *err);

#endif
