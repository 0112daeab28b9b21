/* index.h: the index of a dataset in memory: its files, their episodes, and the locations of each camera's frames. It
 * is built file by file when the dataset is opened. After that, only facts that a frame's first read establishes are
 * added. */
#ifndef WEIR_DATASETS_INDEX_H
#define WEIR_DATASETS_INDEX_H

#include "base/numbers.h"
#include "datasets/blocks_priv.h"
#include "datasets/dataset_ops.h"
#include "datasets/parts.h"
#include "weir/dataset.h"

#include <pthread.h>
#include <stdatomic.h>

struct weir_origin;

/* A reference into a global heap collection, from a variable-length dataset. */
struct weir_heap_ref {
    uint64_t address; /* address of the collection, from the start of the file; 0 = empty */
    uint32_t length, index;
};

/* A frame in a global heap: its reference and, after the first read, the location of its bytes. */
struct weir_heap_slot {
    struct weir_heap_ref ref;
    _Atomic uint64_t payload; /* offset in the file; 0 = not found yet */
};

/* Length of the image in a padded row. After the first read it is exact, and WEIR_END_KNOWN is set. Before that it is a
 * hint that the recording contains; 0 = unknown. */
struct weir_frame_end {
    _Atomic uint32_t bytes;
};

static const uint32_t WEIR_END_KNOWN = (uint32_t)1 << 31; /* a flag bit, because rows are always shorter */

/* Location of a frame of any length, in its map's source. */
struct weir_frame_extent {
    uint64_t offset, length;
};

/* Location of a frame whose format was read to find it: see struct weir_parquet_extent. */
struct weir_located {
    uint64_t offset;
    uint32_t length, span, first, skip;
};

struct weir_video_track;

enum weir_storage {
    WEIR_STORED_CONTIGUOUS, /* row t is at base + t * row_bytes */
    WEIR_STORED_CHUNKS,     /* row t is at offsets[t]; UINT64_MAX = the chunk was never written */
    WEIR_STORED_BLOCKS,     /* row t lies in filtered chunks, or in chunks that split rows */
    WEIR_STORED_HEAP,       /* row t is a reference into a global heap collection */
    WEIR_STORED_LIBRARY,    /* readable only through the format's library */
    WEIR_STORED_EXTENTS,    /* row t is at extents[t] */
    WEIR_STORED_VIDEO,      /* row t is a picture of a video; never in an index file */
};

enum weir_rows { WEIR_ROWS_PIXELS, WEIR_ROWS_PADDED, WEIR_ROWS_STRINGS, WEIR_ROWS_VLEN };

/* The locations of one camera's frames in one episode. Arrays have one element per frame. */
struct weir_frame_map {
    char *key; /* path of the dataset in the file */
    enum weir_frame_kind kind;
    int width, height;                     /* size of raw frames */
    int described_width, described_height; /* of encoded images, as the dataset describes them; 0 = not described */
    int frames;                            /* number of frames in the dataset, which is at least the episode's steps */
    enum weir_storage storage;
    enum weir_rows rows;
    const char *why;   /* reason for WEIR_STORED_LIBRARY, a static string */
    size_t row_bytes;  /* size of a row, unless it has variable length */
    uint64_t base;     /* for WEIR_STORED_CONTIGUOUS */
    uint64_t *offsets; /* for WEIR_STORED_CHUNKS */
    struct weir_blocks *blocks;
    struct weir_frame_end *ends;  /* for padded rows and fixed-length strings that are extents; otherwise NULL */
    struct weir_heap_slot *slots; /* for WEIR_STORED_HEAP */
    struct weir_frame_extent *extents;
    /* For extents in separate files: frame t is in part first_part + (before + t) / part_rows of the episode's file. If
     * part_rows is 0, all extents are in the episode's file. For WEIR_STORED_LIBRARY in a folder: frame t is row
     * before + t of part first_part. */
    uint32_t first_part, part_rows, before;
    /* For WEIR_STORED_LIBRARY in a folder: the locations of all frames, once they have been found
     * (weir_dataset_find_frames). Frames that can be read on their own are extents then, if these and the bytes that
     * they are unpacked to have at most located_max bytes. */
    _Atomic(struct weir_located *) located;
    uint32_t located_max;
    /* For WEIR_STORED_VIDEO: the video, which is owned by the episode's file and shared by its episodes. Frame t is the
     * picture number ranks[t] (not decreasing) in presentation order, or first_rank + t if ranks is NULL. The video's
     * file is part first_part. */
    const struct weir_video_track *video;
    uint32_t first_rank, *ranks;
    int block_frames;          /* maximum number of frames in a group of pictures */
    const float *depth_values; /* see struct weir_camera; owned by the episode's file */
};

/* Returns the number of a frame's picture in presentation order, for WEIR_STORED_VIDEO. */
static inline uint32_t weir_map_rank(const struct weir_frame_map *map, int64_t t)
{
    return map->ranks ? map->ranks[t] : map->first_rank + (uint32_t)t;
}

/* A column besides state and actions. */
struct weir_column {
    char name[WEIR_NAME_MAX];
    struct weir_column_shape shape;
    int width, rows;    /* numbers per row, and rows */
    int64_t base, step; /* if values is NULL, row t is base + step * t */
    void *values;       /* rows x width numbers */
};

/* A column of strings. Consecutive rows with the same string are one run. */
struct weir_text_column {
    char name[WEIR_NAME_MAX];
    int n_runs;
    struct weir_text_run {
        int first; /* row */
        char *text;
    } * runs;
};

struct weir_own_numbers {
    enum weir_number_type type;
    void *values; /* steps x dim numbers; NULL = not requested */
};

struct weir_episode {
    int file; /* number of the episode's file in the dataset */
    const struct weir_layout_ops *layout;
    char *root; /* the episode's group in the file; "" if the file holds one episode */
    int steps;
    int rows_cut;        /* rows removed by --allow-ragged: longest part minus steps */
    int drift_rows;      /* rows that are not at the time of their picture, of the worst camera */
    float drift_frames;  /* how far the worst is from it */
    bool is_rate_wrong;  /* the rows do not have the dataset's rate */
    bool is_overlapping; /* it begins in a video before another episode ends there */
    enum weir_note note;
    bool is_bgr; /* the file records that red and blue are swapped; see weir_episode_is_bgr */
    int qpos_dim, action_dim;
    char *qpos_key, *action_key;
    float *qpos, *actions;
    struct weir_own_numbers qpos_own, actions_own; /* filled if config.own_types is set */
    int n_columns;
    struct weir_column *columns; /* filled if config.columns is set, as are text_columns */
    int n_text_columns;
    struct weir_text_column *text_columns;
    int n_maps;
    struct weir_frame_map *maps;
    char (*names)[WEIR_NAME_MAX]; /* names of the cameras, in the order of maps */
    char *passed_over;            /* names of cameras that were not requested ("a, b"); may be NULL */
    char *left_out;               /* lines of weir_dataset_left_out; may be NULL */
    char *not_used;               /* weir_dataset_not_used; may be NULL */
    int n_texts;
    size_t texts_bytes;
    char *texts;  /* metadata strings (see weir_texts_count); may be NULL */
    size_t bytes; /* memory that the episode uses */
    bool is_lent; /* strings and arrays belong to an index file */
};

/* Result of opening one file. */
struct weir_file_index {
    struct weir_dataset_file file;        /* owns its path */
    const struct weir_format_ops *format; /* NULL: an index file described the file, so its name shows its format */
    uint64_t header_hash;                 /* hash of the first bytes of the file */
    int n_episodes;
    struct weir_episode *episodes;
    int n_bad; /* number of episodes left out */
    char **bad;
    bool from_index;          /* the file was described by an index file */
    struct weir_parts *parts; /* chunks of a folder, each in its own file; otherwise NULL */
    int first_part;           /* number of the first part in the dataset */
    char *about;              /* version and rate, for the user; NULL = none */
    char *note;               /* note for the user; NULL = none */
    char *traits;             /* what the files of a dataset have in common (datasets/open_dataset.h); NULL = nothing */
    struct weir_tasks {
        char **texts; /* owned; by number */
        int n;
        bool is_unsorted; /* the rows of their file are not in the order of the numbers */
    } tasks, subtasks;
    void *held;        /* resource that is released when the file is closed; NULL = none */
    size_t held_bytes; /* memory that it uses */
    void (*release)(void *held);
};

/* Per-thread state for opening files and for reading through libraries. */
struct weir_opening {
    const struct weir_dataset_config *config; /* NULL: the opening is used only to read rows */
    struct weir_origin *origin;               /* where the files are; NULL = this machine */
    const char *root;                         /* real path of the dataset's folder */
    bool allow_external;
    void *kept; /* state that a format keeps between files; release(kept) frees it; NULL = none */
    void (*release)(void *kept);
};

struct weir_dataset {
    int n_files;
    struct weir_file_index *files;
    int n_from_index; /* number of files described by an index file */
    int n_parts;      /* number of parts of all files */
    int n_episodes, capacity;
    struct weir_episode *episodes; /* in file order, moved here from the files */
    size_t index_bytes;            /* memory used by episodes and files */
    int n_cameras;
    struct weir_camera cameras[WEIR_CAMERAS_MAX];
    char *traits;         /* of all files that have episodes here; NULL = none */
    int n_bad, n_misfits; /* n_bad: episodes left out; n_misfits: the number of them that only disagree with the first
                             episode */
    char **bad;
    size_t extent_max;
    char *root;                                   /* real path of the dataset's folder; NULL = unknown */
    struct weir_origin *origin;                   /* owned; NULL = files of this machine */
    uint64_t opening_requests;                    /* requests to it that opening took */
    uint8_t *lent;                                /* memory of an index file that episodes borrow */
    struct weir_opening library;                  /* used by weir_fetch with helper_lock held */
    const struct weir_format_ops *library_format; /* format whose state library keeps */
    _Atomic uint64_t helper_calls, helper_busy_ns, helper_wait_ns; /* written with helper_lock held */
    pthread_mutex_t helper_lock;
};

struct weir_file_result {
    struct weir_file_index file;
    int rc; /* 0, or negative with err */
    struct weir_err err;
    int n_wanted; /* number of episodes in the file, good or bad */
};

/* Frees the state that a format keeps. */
void weir_opening_end(struct weir_opening *opening);

/* Opens one file. After an error, err names the path and the file is empty. With config->tolerant, a bad episode in a
 * file of several episodes is listed as left out and is no error. */
struct weir_format_ops;
void weir_file_open(struct weir_file_result *result, const char *path, const struct weir_format_ops *format,
                    struct weir_opening *opening);

/* Fills the episode with the arrays that its layout finds in the store. */
int weir_episode_describe(struct weir_store *store, struct weir_episode *episode,
                          const struct weir_dataset_config *config, struct weir_err *err);
/* Fills *episode, which is zeroed, with episode i of a file and the locations of its frames. After an error the caller
 * closes the episode. */
typedef int weir_describe_fn(void *user, int i, const struct weir_dataset_config *config, struct weir_episode *episode,
                             struct weir_err *err);
/* Describes the n episodes of a file in order; open() of a format calls it. With config->tolerant, bad episodes are
 * left out, unless the file has only one episode. Otherwise the first error fails the file. */
int weir_file_describe_episodes(struct weir_file_result *result, int n, const struct weir_dataset_config *config,
                                weir_describe_fn *describe, void *user);
/* If config is tolerant and the file has several episodes, lists the episode as left out. Otherwise the file fails with
 * the error `why`. */
int weir_file_leave_out(struct weir_file_result *r, const struct weir_dataset_config *config, int rc,
                        const struct weir_err *why);
/* Computes the episode's memory. Call it after the frames are located. */
void weir_episode_finish(struct weir_episode *episode);
void weir_file_index_close(struct weir_file_index *file);
void weir_episode_close(struct weir_episode *episode);
/* Adds a metadata string (weir_dataset_text) up to its first zero byte. A second string with the same key and strings
 * over the limits are ignored. Returns 0, or -ENOMEM with err. */
int weir_episode_add_text(struct weir_episode *episode, const char *key, const char *value, size_t length,
                          struct weir_err *err);
struct json_t;
/* Adds the strings that weir_writer_texts writes: the name as weir_source, and the strings in "texts", except those
 * with names reserved for Weir. */
int weir_episode_add_json(struct weir_episode *episode, struct json_t *object, struct weir_err *err);
/* ---- columns.c ---- */

size_t weir_column_bytes(enum weir_column_type type);
/* Adds a column of strings. row(user, t, &length) returns the string of row t, which need not end with a zero byte. */
typedef const char *weir_text_of_row(const void *user, int t, size_t *length);
int weir_episode_text_column(struct weir_episode *episode, const char *name, int rows, weir_text_of_row *row,
                             const void *user, struct weir_err *err);
void weir_tasks_close(struct weir_tasks *tasks);
void weir_columns_close(struct weir_episode *episode);
/* Returns the name of a column that two episodes do not have in the same form, or NULL. */
const char *weir_columns_misfit(const struct weir_episode *a, const struct weir_episode *b);

/* Whether red and blue of the episode's frames are swapped, by its file or its layout. */
static inline bool weir_episode_is_bgr(const struct weir_episode *episode)
{
    return episode->is_bgr || episode->layout->is_swapped;
}

/* Parses a recorded colour order: "rgb", or "bgr" if red and blue are swapped. Returns -EBADMSG with err for any other
 * value; value is NULL if it is not a string. where: the location of the value, for the message. */
int weir_color_parse(const char *where, const char *value, bool *is_bgr, struct weir_err *err);
/* Adds a line to the list of weir_dataset_left_out. Returns 0, or -ENOMEM with err. */
int weir_episode_leave_out(struct weir_episode *episode, struct weir_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns -ESTALE if the file changed after it was indexed. */
int weir_file_index_check(const struct weir_dataset_file *file, struct weir_err *err);

/* Opens the files on several threads and adds their episodes in file order. */
int weir_open_files(struct weir_dataset *dataset, const struct weir_dataset_config *config, char **paths, int n,
                    struct weir_err *err);
/* Records that an episode is left out; text contains the reason. Returns 0 or -ENOMEM. */
int weir_leave_out(struct weir_dataset *dataset, const char *text);
/* Moves one file and those of its episodes that fit into the dataset; `from` becomes empty. */
int weir_take_file(struct weir_dataset *dataset, const struct weir_dataset_config *config, struct weir_file_index *from,
                   struct weir_err *err);

/* Sorts by name, with sequences of digits by value, so that episode_10 follows episode_9. */
void weir_path_list_sort(struct weir_path_list *list);
/* Sorts by name, as strcmp compares. */
void weir_path_list_sort_bytes(struct weir_path_list *list);
/* Returns the number of the first path that is not less than the text, in a list sorted in this way. */
int weir_path_list_lower_bound(const struct weir_path_list *sorted, const char *text);
/* Moves paths below NAME_old to left_out, with the reason, if the same folder also has NAME. folder: the searched
 * folder. Returns 0, or a negative code. */
int weir_path_list_leave_out_old(struct weir_path_list *list, const char *folder, struct weir_path_list *left_out);

/* Fills in the size, times and header hash of a file, and copies the path. origin: NULL = a file of this machine. mark:
 * the file that stands for a folder of an origin; NULL = the path is that of a file. */
int weir_file_identify(struct weir_file_index *file, struct weir_origin *origin, const char *path, const char *mark,
                       struct weir_err *err);

struct weir_source;
/* Opens a file with this identity. Returns 0, or -errno with err (without the path). */
int weir_file_source(struct weir_source **source, struct weir_origin *origin, const struct weir_dataset_file *file,
                     struct weir_err *err);

/* Rates how well a camera's name matches a requested name of `length` bytes: 2 = equal, 1 = "main" was requested and
 * the camera is rgb_main, 0 = no match. */
int weir_name_match(const char *name, const char *asked, size_t length);

/* Chooses the layout of a file. If the configuration names all keys, this is a custom layout; so it is if no layout
 * fits and the configuration names state and actions. Otherwise returns NULL with err if no layout fits. */
const struct weir_layout_ops *weir_layout_choose(struct weir_store *store, const struct weir_dataset_config *config,
                                                 struct weir_err *err);
const struct weir_layout_ops *weir_layout_by_name(const char *name);

/* Returns the memory that the map's arrays use. */
size_t weir_frame_map_bytes(const struct weir_frame_map *map);
void weir_frame_map_close(struct weir_frame_map *map);

/* Returns the size of the largest extent of any frame in the map, in bytes. */
size_t weir_frame_map_extent_max(const struct weir_frame_map *map, int steps, uint64_t file_bytes);

/* Describes the storage in words, such as "contiguous" or "deflate chunks of 5x32x32x2". */
void weir_frame_map_storage_text(const struct weir_frame_map *map, char *text, size_t size);

/* ---- index_file.c: saves the index of a dataset in a file, so that the dataset can be opened again without the HDF5
 * library.
 *
 * Byte order and sizes are native. Contents: "WEIRIDX", version, a byte order mark, size and XXH3 hash of the rest; the
 * options that the index depends on; then one entry per file: path, size, mtime, hash of the file's first 4 KiB, and
 * its episodes with their arrays as in memory, aligned to 8 bytes. An entry is used if path, size, mtime and hash match
 * the file. Its counts and lengths are still checked. */

struct weir_index_file;

/* Loads config->index. If the file does not exist, is damaged, has another version or was written with other options,
 * *out is NULL, 0 is returned, and the caller writes a new index. If the file is not an index file, returns a negative
 * code with err. */
int weir_index_file_load(struct weir_index_file **out, const struct weir_dataset_config *config, struct weir_err *err);
/* Returns the number of entries (files); 0 for NULL. */
int weir_index_file_count(const struct weir_index_file *index);
/* If the index describes the file in its current state, fills result->file, whose arrays are lent, and returns true.
 * Any thread. */
bool weir_index_file_find(const struct weir_index_file *index, struct weir_origin *origin, const char *path,
                          struct weir_file_result *result);
/* Frees the index, except for lent memory. Returns this memory to the caller, who owns it; may be NULL. */
uint8_t *weir_index_file_release(struct weir_index_file **index);

/* Writes the dataset's index to a temporary file and renames it. Files with left-out episodes, LMDB files and folders
 * of chunk files are omitted, so they are described again at every open. */
int weir_index_file_save(const struct weir_dataset *dataset, const struct weir_dataset_config *config,
                         struct weir_err *err);

/* ---- metadata strings, packed one after another as "key\0value\0" ---- */

/* Returns the number of key-value pairs in these bytes. Returns -1 if the bytes are malformed: an odd number of
 * strings, an empty key, or more pairs than an episode can have. */
int weir_texts_count(const char *texts, size_t bytes);

/* ---- json_object.c ---- */

struct json_t;

/* Parses a JSON object. The caller releases it with json_decref(*object). Returns 0; -ENOMEM; -EBADMSG with err "not a
 * JSON object (why)"; or -E2BIG if its values would take too much memory. *object is NULL after an error. */
int weir_json_object_parse(const char *text, size_t n, struct json_t **object, struct weir_err *err);

#endif
