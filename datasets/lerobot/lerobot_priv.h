/* lerobot_priv.h: a LeRobot dataset (github.com/huggingface/lerobot) while it is opened. Version 2.1 has one Parquet
 * file and one video per camera for each episode, version 3.0 joins episodes in files. meta/info.json describes the
 * columns and the paths of both. */
#ifndef WEIR_DATASETS_LEROBOT_LEROBOT_PRIV_H
#define WEIR_DATASETS_LEROBOT_LEROBOT_PRIV_H

#include "datasets/index.h"
#include "datasets/parquet/parquet.h"
#include "datasets/store.h"
#include "datasets/video/video_track.h"

enum { WEIR_LEROBOT_FEATURES_MAX = 1024, WEIR_LEROBOT_KEY_MAX = 64 };

enum weir_lerobot_kind { WEIR_LEROBOT_NUMBERS, WEIR_LEROBOT_VIDEO, WEIR_LEROBOT_IMAGE, WEIR_LEROBOT_TEXT };

struct weir_lerobot_feature {
    char key[WEIR_LEROBOT_KEY_MAX];
    enum weir_lerobot_kind kind;
    bool is_depth, is_bool;
    int video; /* number of the video feature; -1 for others */
};

/* Position of an episode's frames in one video. */
struct weir_lerobot_clip {
    int64_t chunk, file;
    double from_s;
};

struct weir_lerobot_episode {
    int64_t index, length;
    int64_t chunk, file; /* of the Parquet file, in version 3 */
    int64_t first;       /* its first row among those of the dataset, in version 3 */
    int64_t file_first;  /* first row of the dataset that is in the same file */
    char *task;          /* owned; NULL = none */
};

/* A Parquet file whose columns are kept while consecutive episodes are in it. */
struct weir_lerobot_table {
    int64_t chunk, file;
    int64_t first; /* row of the dataset that is its first row */
    struct weir_parquet *parquet;
    struct weir_lerobot_column { /* per feature */
        enum weir_number_type type;
        void *values;
        int width;
    } * columns;
};

/* The tracks of the dataset's videos, which outlive the opening. */
struct weir_lerobot_tracks {
    uint32_t n;
    struct weir_video_track **tracks; /* per part; NULL for other parts */
};

struct weir_lerobot {
    const char *path;
    bool is_third; /* version 3.0; otherwise 2.1 */
    int64_t fps_numerator, fps_denominator;
    int64_t chunk_size; /* episodes per chunk, in version 2.1 */
    char *data_path, *video_path;
    int n_features, n_videos;
    struct weir_lerobot_feature *features;
    int n_episodes;
    struct weir_lerobot_episode *episodes;
    struct weir_lerobot_clip *clips; /* n_videos per episode */
    struct weir_lerobot_table table;
    struct weir_parts *parts; /* the videos and Parquet files that frames are read from */
    struct weir_lerobot_tracks *tracks;
    struct weir_lerobot_last { /* the last video of each feature */
        int64_t chunk, file;
        uint32_t part;
    } * last;
};

/* One episode, as layouts see it. */
struct weir_lerobot_view {
    struct weir_store store;
    struct weir_lerobot *lerobot;
    const struct weir_lerobot_episode *episode;
    int number; /* among the dataset's episodes */
};

extern const struct weir_store_ops weir_store_lerobot;

/* ---- lerobot_info.c ---- */

/* Reads a whole file of the dataset. The caller frees *text, which ends with a zero byte. Errors name the file. */
int weir_lerobot_read(const struct weir_lerobot *lerobot, const char *name, char **text, size_t *n,
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

/* ---- lerobot_episodes.c ---- */

int weir_lerobot_read_episodes(struct weir_lerobot *lerobot, struct weir_err *err);
/* Keeps the episodes of a list such as "0,3,10:20". All of them must exist. */
int weir_lerobot_choose_episodes(struct weir_lerobot *lerobot, const char *list, struct weir_err *err);
/* Reads the texts of the tasks. The caller owns them, also after an error. */
int weir_lerobot_read_tasks(struct weir_lerobot *lerobot, char ***tasks, int *n, struct weir_err *err);

/* ---- lerobot_store.c ---- */

/* Opens the Parquet file of an episode, unless it is open. */
int weir_lerobot_open_table(struct weir_lerobot *lerobot, const struct weir_lerobot_episode *episode,
                            struct weir_err *err);
void weir_lerobot_close_table(struct weir_lerobot *lerobot);
/* Returns the numbers of a column, for the rows of one episode in the open table: its first number, and *width numbers
 * per row. */
int weir_lerobot_column(struct weir_lerobot *lerobot, const struct weir_lerobot_episode *episode, int feature,
                        enum weir_number_type *type, const void **values, int *width, struct weir_err *err);

/* ---- lerobot_video.c ---- */

/* Fills the map with the pictures of a video. */
int weir_lerobot_place_video(const struct weir_lerobot_view *view, int feature, struct weir_frame_map *map,
                             struct weir_err *err);

#endif
