/* index.h: the index of a dataset in memory: its files, their episodes, and the places of each camera's frames. It is
 * built file by file at open and does not change afterwards, apart from facts about a frame that its first read
 * establishes. */
#ifndef WEIR_DATASETS_INDEX_H
#define WEIR_DATASETS_INDEX_H

#include "datasets/blocks_priv.h"
#include "datasets/dataset_ops.h"
#include "datasets/own_numbers.h"
#include "datasets/parts.h"
#include "weir/dataset.h"

#include <pthread.h>
#include <stdatomic.h>

/* A reference into a global heap collection, from a variable-length dataset. */
struct weir_heap_ref {
    uint64_t address; /* of the collection, from the start of the file; 0 = empty */
    uint32_t length, index;
};

/* A frame in a global heap: its reference and, after the first read, the place of its bytes. */
struct weir_heap_slot {
    struct weir_heap_ref ref;
    _Atomic uint64_t payload; /* offset in the file; 0 = not found yet */
};

/* The end of the image in a padded row: its length, with WEIR_END_KNOWN after the first read. Before that, the length
 * that the recording claims, as a hint; 0 = unknown. */
struct weir_frame_end {
    _Atomic uint32_t bytes;
};

static const uint32_t WEIR_END_KNOWN = (uint32_t)1 << 31; /* rows are shorter */

/* One frame of any length, in its map's source. */
struct weir_frame_extent {
    uint64_t offset, length;
};

enum weir_storage {
    WEIR_STORED_CONTIGUOUS, /* row t is at base + t * row_bytes */
    WEIR_STORED_CHUNKS,     /* row t is at offsets[t], UINT64_MAX for a chunk that was never written */
    WEIR_STORED_BLOCKS,     /* row t lies in filtered chunks, or in chunks that cut rows */
    WEIR_STORED_HEAP,       /* row t is a reference into a global heap collection */
    WEIR_STORED_LIBRARY,    /* readable only through the format's library */
    WEIR_STORED_EXTENTS,    /* row t is extents[t] */
};

enum weir_rows { WEIR_ROWS_PIXELS, WEIR_ROWS_PADDED, WEIR_ROWS_STRINGS, WEIR_ROWS_VLEN };

/* The places of the frames of one camera in one episode. Arrays have one element per frame. */
struct weir_frame_map {
    char *key; /* path of the dataset */
    enum weir_frame_kind kind;
    int width, height; /* of raw frames */
    int frames;        /* in the dataset: at least the episode's steps */
    enum weir_storage storage;
    enum weir_rows rows;
    const char *why;   /* the reason for WEIR_STORED_LIBRARY, static text */
    size_t row_bytes;  /* except variable length */
    uint64_t base;     /* contiguous */
    uint64_t *offsets; /* chunks */
    struct weir_blocks *blocks;
    struct weir_frame_end *ends;  /* of padded rows and fixed strings that are extents; else NULL */
    struct weir_heap_slot *slots; /* heap */
    struct weir_frame_extent *extents;
    /* For extents in files of their own: frame t lies in part first_part + (before + t) / part_rows of the episode's
     * file. part_rows 0: all extents lie in that file. */
    uint32_t first_part, part_rows, before;
};

struct weir_own_numbers {
    enum weir_number_type type;
    void *values; /* steps x dim; NULL = not requested */
};

struct weir_episode {
    int file; /* number of its file in the dataset */
    const struct weir_layout_ops *layout;
    char *root; /* its group in the file, "" for a file of one episode */
    int steps;
    int rows_cut; /* by --allow-ragged: longest part less steps */
    enum weir_note note;
    bool is_bgr; /* the file records that red and blue are swapped */
    int qpos_dim, action_dim;
    char *qpos_key, *action_key;
    float *qpos, *actions;
    struct weir_own_numbers qpos_own, actions_own; /* config.own_types */
    int n_maps;
    struct weir_frame_map *maps;
    char (*names)[WEIR_NAME_MAX]; /* of the cameras, in the order of maps */
    char *passed_over;            /* names of cameras that were not requested, "a, b"; may be NULL */
    char *left_out;               /* contents that are not loaded, one line each; may be NULL */
    int n_texts;
    size_t texts_bytes;
    char *texts;  /* see weir_texts_count; may be NULL */
    size_t bytes; /* memory taken */
    bool is_lent; /* texts and arrays belong to an index file */
};

/* Result of opening one file. */
struct weir_file_index {
    struct weir_dataset_file file; /* owns path */
    uint64_t header_hash;          /* of the first bytes */
    int n_episodes;
    struct weir_episode *episodes;
    int n_bad; /* episodes left out */
    char **bad;
    bool from_index;          /* described by an index file */
    struct weir_parts *parts; /* chunks of a folder, each a file; else NULL */
    int first_part;           /* number of the first part in the dataset */
    char *note;               /* for users; NULL = none */
    void *held;               /* released when the file is closed; NULL = nothing */
    void (*release)(void *held);
};

/* Per-thread state for opening files and for reading through libraries. */
struct weir_opening {
    const struct weir_dataset_config *config; /* NULL: only rows are read */
    const char *root;                         /* real path of the dataset's folder */
    bool allow_external;
    void *kept; /* a format's state across files, released by release(kept); NULL = none */
    void (*release)(void *kept);
};

struct weir_dataset {
    int n_files;
    struct weir_file_index *files;
    int n_from_index; /* files described by an index file */
    int n_parts;      /* of all files */
    int n_episodes, capacity;
    struct weir_episode *episodes; /* in the order of the files, taken over from them */
    size_t index_bytes;            /* memory of episodes and files */
    int n_cameras;
    struct weir_camera cameras[WEIR_CAMERAS_MAX];
    int n_bad, n_misfits; /* episodes left out; those among them that merely disagree with the first one */
    char **bad;
    size_t extent_max;
    char *root;                  /* real path of the dataset's folder; NULL = unknown */
    uint8_t *lent;               /* memory of an index file */
    struct weir_opening library; /* for weir_fetch; under helper_lock */
    _Atomic uint64_t helper_calls, helper_busy_ns, helper_wait_ns; /* written under helper_lock */
    pthread_mutex_t helper_lock;
};

struct weir_file_result {
    struct weir_file_index file;
    int rc; /* 0, or negative with err */
    struct weir_err err;
    int n_wanted; /* episodes in the file, good or bad */
};

void weir_opening_end(struct weir_opening *opening);

/* Opens one file. After an error, err names the path and the file is empty. With config->tolerant, bad episodes of a
 * file of many are listed instead of refused. */
struct weir_format_ops;
void weir_file_open(struct weir_file_result *result, const char *path, const struct weir_format_ops *format,
                    struct weir_opening *opening);

/* Fills the episode with the arrays of the store that its layout names. */
int weir_episode_describe(struct weir_store *store, struct weir_episode *episode,
                          const struct weir_dataset_config *config, struct weir_err *err);
/* Fills *episode, zeroed before, with episode i of a file and the places of its frames. After an error the caller
 * closes the episode. */
typedef int weir_describe_fn(void *user, int i, const struct weir_dataset_config *config, struct weir_episode *episode,
                             struct weir_err *err);
/* Describes the n episodes of a file in order, for a format's open. With a tolerant config, bad episodes are left out,
 * unless the file has only one; else the first error fails the file. */
int weir_file_describe_episodes(struct weir_file_result *result, int n, const struct weir_dataset_config *config,
                                weir_describe_fn *describe, void *user);
/* Lists an episode as left out when config is tolerant and the file has several; else fails the file with why. */
int weir_file_leave_out(struct weir_file_result *r, const struct weir_dataset_config *config, int rc,
                        const struct weir_err *why);
/* Frees the space reserved for more cameras and counts the episode's memory, once its frames are located. */
void weir_episode_finish(struct weir_episode *episode);
void weir_file_index_close(struct weir_file_index *file);
void weir_episode_close(struct weir_episode *episode);
/* Adds a text (weir_dataset_text), up to its first zero. Only the first text of a key is kept, and no text that exceeds
 * the limits. 0 or -ENOMEM with err. */
int weir_episode_add_text(struct weir_episode *episode, const char *key, const char *value, size_t length,
                          struct weir_err *err);
/* Parses a recorded colour order: "rgb", or "bgr" for swapped frames. -EBADMSG with err for other values (NULL: not a
 * text). where: the place of the value, for the message. */
int weir_color_parse(const char *where, const char *value, bool *is_bgr, struct weir_err *err);
/* Adds a line for weir_dataset_left_out. 0 or -ENOMEM with err. */
int weir_episode_leave_out(struct weir_episode *episode, struct weir_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns -ESTALE when the file changed after it was indexed. */
int weir_file_index_check(const struct weir_dataset_file *file, struct weir_err *err);

/* Opens the files on several threads and takes their episodes in file order. */
int weir_open_files(struct weir_dataset *dataset, const struct weir_dataset_config *config, char **paths, int n,
                    struct weir_err *err);
/* Records an episode that is left out, with the reason. 0 or -ENOMEM. */
int weir_leave_out(struct weir_dataset *dataset, const char *text);
/* Takes one file and its fitting episodes; from becomes empty. */
int weir_take_file(struct weir_dataset *dataset, const struct weir_dataset_config *config, struct weir_file_index *from,
                   struct weir_err *err);

/* Fills size, times and header hash of a file; path is copied. */
int weir_file_identify(struct weir_file_index *file, const char *path, struct weir_err *err);

/* Rates how well a camera's name matches a requested one of `length` bytes: 2 equal, 1 "main" for rgb_main, 0 no match.
 */
int weir_name_match(const char *name, const char *asked, size_t length);

/* Chooses the layout of a file: a custom one when the configuration names all keys. NULL with err. */
const struct weir_layout_ops *weir_layout_choose(struct weir_store *store, const struct weir_dataset_config *config,
                                                 struct weir_err *err);
const struct weir_layout_ops *weir_layout_by_name(const char *name);

/* Returns the memory of the map's arrays. */
size_t weir_frame_map_bytes(const struct weir_frame_map *map);
void weir_frame_map_close(struct weir_frame_map *map);

/* Returns the largest extent of any frame of the map, bytes. */
size_t weir_frame_map_extent_max(const struct weir_frame_map *map, int steps, uint64_t file_bytes);

/* Describes the storage in words: "contiguous", "deflate chunks of 5x32x32x2". */
void weir_frame_map_storage_text(const struct weir_frame_map *map, char *text, size_t size);

/* ---- texts, packed as "key\0value\0" one after the other ---- */

/* Returns the number of texts in these bytes; -1 for malformed bytes: an odd number of strings, an empty key, or more
 * texts than an episode may have. */
int weir_texts_count(const char *texts, size_t bytes);

#endif
