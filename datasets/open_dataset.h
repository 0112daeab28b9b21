/* open_dataset.h: what other rooms need of a dataset besides weir/dataset.h. */
#ifndef WEIR_DATASETS_OPEN_DATASET_H
#define WEIR_DATASETS_OPEN_DATASET_H

#include "base/numbers.h"
#include "datasets/video/video_track.h"
#include "weir/dataset.h"

/* ---- state and actions in the types of the files, for lossless copies; the loader itself uses float32 ---- */

/* Returns steps x dim numbers of *type in row-major order, lent until the dataset is closed. The dataset must have been
 * opened with own_types. float16 is returned as float32. Columns from several datasets are returned in the smallest
 * type that can hold all of them. */
const void *weir_own_qpos(const struct weir_dataset *dataset, int episode, enum weir_number_type *type);
const void *weir_own_actions(const struct weir_dataset *dataset, int episode, enum weir_number_type *type);

/* ---- traits: what the files of a dataset have in common besides the form of their numbers and frames, such as the
 * frame rate and the names of joints. Files that differ are different datasets ---- */

/* Adds a property. is_optional: another file may lack it. *traits, which may be NULL, is owned by the caller. Returns
 * 0, or -ENOMEM with err. */
int weir_traits_add(char **traits, const char *name, const char *value, bool is_optional, struct weir_err *err);
/* Adds the properties of `more`, which may be NULL, that *traits lacks. Returns 0, or -ENOMEM with err. */
int weir_traits_merge(char **traits, const char *more, struct weir_err *err);
/* Describes the properties in which a file differs from another. Both may be NULL. Returns false if there are none. */
bool weir_traits_differ(const char *traits, const char *first, char *text, size_t size);
/* Returns the traits of all files together, or NULL. */
const char *weir_dataset_traits(const struct weir_dataset *dataset);

/* ---- frames that are pictures of a video (WEIR_HOW_VIDEO) ---- */

/* Returns the video of a camera in an episode, and the number of its file (weir_dataset_read_file). Returns NULL if the
 * camera's frames are not stored as video. */
const struct weir_video_track *weir_dataset_video(const struct weir_dataset *dataset, int episode, int camera,
                                                  int *file);
/* Returns the number of frame t in the video, in presentation order. */
uint32_t weir_dataset_video_rank(const struct weir_dataset *dataset, int episode, int camera, int t);

/* Properties of all videos of one camera. */
struct weir_video_facts {
    const struct weir_video_stream *stream; /* of the first video */
    const char *codec;                      /* "AV1" */
    char pixels[16];                        /* FFmpeg's name of its pixel format: "yuv420p"; "" if unknown */
    double fps;                             /* mean rate of the first video; 0 if it has one picture */
    int videos;                             /* number of files */
    /* Pictures per group of pictures, that is, from one key frame to the next: */
    uint32_t group_median, group_max;
    double random_pictures; /* mean number of pictures to decode for one random picture */
};
/* Returns false if the camera's frames are not stored as video. */
bool weir_dataset_video_facts(const struct weir_dataset *dataset, int camera, struct weir_video_facts *facts);

/* ---- review: faults that loading the frames does not show: tables that disagree, rows and pictures of videos that do
 * not match, statistics that are not those of the data ---- */

enum weir_review_kind {
    WEIR_REVIEW_TABLES,  /* tables that disagree */
    WEIR_REVIEW_VIDEO,   /* a video whose pictures do not match the rows */
    WEIR_REVIEW_NUMBERS, /* a number that is not finite, in a column that loading does not check */
    WEIR_REVIEW_STATS,   /* statistics that do not fit the data */
    WEIR_REVIEW_MISSING, /* something that other programs need; not a fault */
    WEIR_REVIEW_KINDS
};

/* Valid only during the call. */
struct weir_reviewed {
    enum weir_review_kind kind;
    const char *part; /* "episode 3/observation.images.top" or "meta/stats.json"; NULL = the dataset */
    int64_t t;        /* row of the episode; -1 = none */
    const char *why;
};

/* Returns 0, or a negative code, which ends the review. */
typedef int weir_review_fn(void *user, const struct weir_reviewed *reviewed);

/* Reviews a file of the dataset, which is reopened. Episodes that cannot be opened are left out, because opening the
 * dataset reports them. episodes: as in weir_dataset_config. Only LeRobot datasets are reviewed; others always pass.
 * Returns 0 whatever is found; the callback's negative result; or a negative code with err (without the path) if the
 * review is not possible. Thread-safe. */
int weir_dataset_review(const struct weir_dataset *dataset, int file, const char *episodes, weir_review_fn *found,
                        void *user, struct weir_err *err);

/* Returns whether the dataset describes the size of a camera's encoded images. Videos are reviewed above. */
bool weir_dataset_described_size(const struct weir_dataset *dataset, int camera, int *width, int *height);

#endif
