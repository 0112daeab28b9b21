/* dataset.h: opens a folder of robot episodes and locates each frame (episode, camera, t) as a byte extent of a file,
 * which the caller reads and decodes. Opening a dataset reads the state and actions but no pixels.
 *
 * An open dataset is read-only, so any number of threads may use it. Episodes, cameras and steps are numbered from 0.
 *
 * The HDF5 library runs in helper processes. The first weir_dataset_open forks a process that forks all helpers and
 * exits when the caller does. The helpers are not children of the caller. Open the first dataset early, while the
 * caller still uses little memory. */
#ifndef WEIR_DATASET_H
#define WEIR_DATASET_H

#include "weir/base.h"
#include "weir/frames.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_dataset;

enum { WEIR_CAMERAS_MAX = 32, WEIR_NAME_MAX = 64 };

/* All members except size and path may be 0. */
struct weir_dataset_config {
    size_t size;      /* sizeof this struct in the program; weir_dataset_config_default sets it and zeroes the rest */
    const char *path; /* one file, or a folder to search for *.hdf5 and *.h5 (sorted by name, with numbers in order) */
    const char *cameras; /* "a,b", in this order; every episode must have them. NULL = all cameras of the first episode
                            except depth, sorted by name */
    bool depth;          /* include depth cameras when cameras is NULL */
    /* "a,b": paths of datasets in an episode's group, which replace those of the layout; NULL = those of the layout.
     * State and action datasets are concatenated. A camera is named after its dataset unless "name=dataset" is given.
     * With all three members set, files of any layout can be read. */
    const char *qpos_keys, *action_keys, *image_keys;
    bool allow_ragged; /* truncate episodes whose datasets differ in length to the shortest of them */
    bool tolerant;     /* skip episodes that cannot be opened instead of failing */
    /* Follow HDF5 external links, external storage and virtual sources that leave the dataset's folder. Without it,
     * episodes that use them cannot be opened. Symbolic links to episodes and folders are always followed. */
    bool allow_external;
    /* Also keep the state and actions in the types stored in the files (datasets/open_dataset.h). */
    bool own_types;
    const char *split; /* use only the files of this split, identified by their names: "train"; "all" = every file; NULL
                          = there is only one split */
    char *const *files; /* if n_files > 0: open these files in this order instead of searching path */
    int n_files;
    const char *index; /* index file: read if it matches the files, otherwise written; NULL = none */
    int threads;       /* number of threads that open files; 0 = one per usable core */
    void (*progress)(void *user, int done, int total); /* called on the calling thread; may be NULL */
    bool (*interrupted)(void *user); /* called about 10 times per second on the calling thread; if it returns true,
                                        opening fails with -EINTR. May be NULL */
    void *user;
    bool columns; /* for LeRobot datasets: also load all other columns of numbers and strings (weir_dataset_column) */
    /* For LeRobot datasets: numbers of the episodes to load, such as "0,3,10:20", where FIRST:END excludes END. NULL =
     * all */
    const char *episodes;
    bool anonymous;       /* for s3:// paths: do not sign requests, for public buckets */
    const char *endpoint; /* for s3:// paths: URL of the server; NULL = AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or AWS */
    /* For URLs: "DIR" or "DIR:SIZE", a folder that keeps what was read, for later epochs and other processes; SIZE in
     * bytes, or such as 200G. NULL = none */
    const char *cache;
    const char *filter_key; /* for HDF5 files with demos: the list of them in /mask to load; NULL = all demos */
    bool list_unused;       /* fill weir_dataset_not_used, which opens arrays that are otherwise not touched */
    /* New options are appended here, because programs pass the size of the struct that they were built with. */
};
static inline void weir_dataset_config_default(struct weir_dataset_config *config)
{
    memset(config, 0, sizeof *config);
    config->size = sizeof *config;
}

struct weir_path_list {
    char **paths;
    int n;
};

/* Lists the episode files below path, or path itself if it is a file, in sorted order. left_out receives one "PATH:
 * reason" per entry that cannot be searched or is not a regular file. Names that begin with a dot and links back to a
 * folder being searched are ignored. Fails if path does not exist or contains no episode files, or if memory or file
 * descriptors run out. */
int weir_scan(const char *path, struct weir_path_list *files, struct weir_path_list *left_out, struct weir_err *err);
/* Takes ownership of text, which is freed on failure. Returns -ENOMEM if text is NULL. */
int weir_path_list_add(struct weir_path_list *list, char *text);
void weir_path_list_free(struct weir_path_list *list);
/* Removes the files of all other splits from the list. Files that belong to no split are kept. If split is NULL, there
 * must be only one split; "all" keeps every file. */
int weir_choose_split(struct weir_path_list *files, const char *folder, const char *split, struct weir_err *err);

int weir_dataset_open(struct weir_dataset **out, const struct weir_dataset_config *config, struct weir_err *err);
void weir_dataset_close(struct weir_dataset **dataset);

int weir_dataset_episodes(const struct weir_dataset *dataset);
int weir_dataset_cameras(const struct weir_dataset *dataset);
int weir_dataset_qpos_dim(const struct weir_dataset *dataset);
int weir_dataset_action_dim(const struct weir_dataset *dataset);
int weir_dataset_steps(const struct weir_dataset *dataset, int episode);
/* steps x dim floats, row-major; valid until weir_dataset_close. */
const float *weir_dataset_qpos(const struct weir_dataset *dataset, int episode);
const float *weir_dataset_actions(const struct weir_dataset *dataset, int episode);

/* The columns that config.columns adds: state and actions as stored, timestamps, indexes, rewards. All episodes have
 * the same ones. */
enum weir_column_type { WEIR_COLUMN_F32, WEIR_COLUMN_I64, WEIR_COLUMN_BOOL /* one byte */ };
int weir_dataset_columns(const struct weir_dataset *dataset);
enum { WEIR_COLUMN_RANK_MAX = 4 };
struct weir_column_shape {
    enum weir_column_type type;
    int rank; /* of a row; 0 = one number */
    int dims[WEIR_COLUMN_RANK_MAX];
};
/* Returns the column's name. shape may be NULL. */
const char *weir_dataset_column(const struct weir_dataset *dataset, int column, struct weir_column_shape *shape);
/* Copies the numbers of row t to out. */
void weir_dataset_column_row(const struct weir_dataset *dataset, int episode, int column, int t, void *out);
/* The columns of strings that config.columns adds, by name, and the string of row t. */
int weir_dataset_text_columns(const struct weir_dataset *dataset);
const char *weir_dataset_text_column(const struct weir_dataset *dataset, int column);
const char *weir_dataset_text_row(const struct weir_dataset *dataset, int episode, int column, int t);
/* Return the text of a task or subtask by its number (columns task_index and subtask_index) in the episode's dataset,
 * or NULL. */
const char *weir_dataset_task(const struct weir_dataset *dataset, int episode, int64_t task);
const char *weir_dataset_subtask(const struct weir_dataset *dataset, int episode, int64_t subtask);
/* Returns true if the subtasks of the episode's dataset have texts. */
bool weir_dataset_has_subtasks(const struct weir_dataset *dataset, int episode);

/* Computes the mean and the unbiased standard deviation of each dimension over all steps of n episodes. */
int weir_dataset_stats(const struct weir_dataset *dataset, const int *episodes, int n, bool actions, double *mean,
                       double *std);

/* Number of values that a pixel of a depth frame can have. */
enum { WEIR_DEPTH_VALUES = 65536 };

struct weir_camera {
    char name[WEIR_NAME_MAX];
    enum weir_frame_kind kind; /* in the first episode; never WEIR_FRAME_JPEG or WEIR_FRAME_PNG */
    int width, height;         /* of raw frames; 0 if only the codec can determine the size */
    /* For the depth cameras of a LeRobot dataset with config.columns: the depth in millimetres, as lerobot computes it,
     * of each value that a pixel can have. Otherwise NULL: values are used as stored. */
    const float *depth_values;
};
const struct weir_camera *weir_dataset_camera(const struct weir_dataset *dataset, int camera);

/* Returns true if red and blue are swapped in the frames, according to the files or their layout, so that decoding to
 * RGB yields BGR. */
bool weir_dataset_is_bgr(const struct weir_dataset *dataset);
/* Returns how the dataset's frames are read, as the programs do that read its layout. */
struct weir_frame_rules weir_dataset_frame_rules(const struct weir_dataset *dataset);

/* Returns the kind of the camera's frames in this episode. It can differ between episodes, because a folder may mix raw
 * and encoded episodes. */
enum weir_frame_kind weir_dataset_kind(const struct weir_dataset *dataset, int episode, int camera);

/* A file that contains extents, described as it was when it was indexed. A file may contain several episodes. */
struct weir_dataset_file {
    const char *path;
    uint64_t size_bytes, device, inode;
    int64_t mtime_ns;
    bool may_be_written; /* another program may be writing to it, but indexed data does not move */
};
int weir_dataset_files(const struct weir_dataset *dataset);
void weir_dataset_file(const struct weir_dataset *dataset, int file, struct weir_dataset_file *out);
/* The files that frames are read from, with the numbers used in weir_location and weir_block. The files of
 * weir_dataset_file come first, followed by the chunk files of datasets that are folders. out->path points into path or
 * is owned by the dataset. For a folder, or a chunk that was never written, out describes another file of that folder.
 */
enum { WEIR_READ_PATH_MAX = 4096 };
int weir_dataset_read_files(const struct weir_dataset *dataset);
void weir_dataset_read_file(const struct weir_dataset *dataset, int file, struct weir_dataset_file *out,
                            char path[WEIR_READ_PATH_MAX]);

/* Checks that writing to path would not damage the dataset, for outputs written while the dataset is open. Returns
 * -EEXIST with an error if path (which need not exist) is a file of the dataset, is inside a folder that is a dataset,
 * or would be opened as an episode the next time. */
int weir_dataset_spare(const struct weir_dataset *dataset, const char *path, struct weir_err *err);

/* Called for each damaged part of a file ("record 3"). A nonzero return value ends the check. */
typedef int weir_damaged_fn(void *user, const char *part, const char *why);
/* Reads a whole file and verifies the checksums that loading frames does not verify: those of TFRecords, packed files
 * and zip files of Zarr. Files of other formats always pass. Returns 0 even if there is damage, the callback's nonzero
 * result, or a negative code with err (without the path) if the file cannot be read. Thread-safe. */
int weir_dataset_check_file(const struct weir_dataset *dataset, int file, weir_damaged_fn *damaged, void *user,
                            struct weir_err *err);

/* ---- frames ---- */

enum weir_how {
    WEIR_HOW_EXTENT,  /* read the extent, then call weir_unwrap */
    WEIR_HOW_BLOCK,   /* call weir_block_of: the frame must be assembled from chunks */
    WEIR_HOW_VIDEO,   /* decode the frame's group of pictures (datasets/open_dataset.h) */
    WEIR_HOW_LIBRARY, /* call weir_fetch: the frame has no extent (a fallback, which is counted) */
};

struct weir_location {
    int file;
    uint64_t offset; /* start of the extent to read */
    size_t length;   /* at most weir_dataset_extent_max */
    size_t payload;  /* start of the frame within the bytes read, valid after weir_unwrap */
    size_t payload_length;
    /* If not NULL, the extent is a padded row and the image may end anywhere in it: the caller reports the end with
     * weir_note_end. The contents are private to datasets/. */
    struct weir_frame_end *end;
    size_t row_bytes;
    /* private to datasets/: position in an HDF5 heap collection; NULL and zero for other storage */
    struct weir_heap_slot *heap_slot;
    uint64_t heap_end, heap_at;
    uint32_t heap_objects;
    /* If unpacked_bytes is not 0, the extent is compressed: the caller calls weir_unpack after weir_unwrap, and payload
     * is a position in the unpacked bytes. The other fields are private to datasets/. */
    size_t unpacked_bytes;
    uint32_t unpack_first, unpack_skip;
};

/* Locates a frame. For WEIR_HOW_VIDEO, location is the extent of the frame's own sample. Returns an enum weir_how, or
 * -EBADMSG if the file's offset for the frame is invalid (see weir_frame_reason). */
int weir_locate(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_location *location);

/* Interprets the bytes read for location. Returns 0 if the frame is at payload; 1 if the caller must read location,
 * which now describes another extent, and call again; -EBADMSG if the file's structure is damaged (*reason is then a
 * static string that describes the damage). */
int weir_unwrap(const struct weir_dataset *dataset, struct weir_location *location, const uint8_t *bytes,
                const char **reason);

/* Unpacks the bytes read for a location to location->unpacked_bytes bytes. Returns 0, or -EBADMSG with *reason. */
int weir_unpack(const struct weir_location *location, const uint8_t *bytes, uint8_t *unpacked, const char **reason);

/* Returns whether the camera's frames of this episode become extents with weir_dataset_find_frames. Thread-safe. */
bool weir_dataset_can_find_frames(const struct weir_dataset *dataset, int episode, int camera);
/* Finds where these frames are, by reading the file. Returns 1, after which weir_locate may return extents; 0 if
 * nothing is left to find; or a negative code with err. Thread-safe. */
int weir_dataset_find_frames(struct weir_dataset *dataset, int episode, int camera, struct weir_err *err);

/* Reports the length of the image at payload after weir_unwrap, for a location whose end is not NULL. bytes = 0 means
 * that the image does not end within the bytes read. Returns 0 if payload_length is now the frame's length, which later
 * calls to weir_locate reuse; 1 if only part of the row was read and the caller must read location, which now covers
 * the whole row, and call again. */
int weir_note_end(struct weir_location *location, size_t bytes);

/* A set of chunks that cover the same rows, so that unpacking them for one frame unpacks them for all frames of the
 * block. To assemble a frame, read, unpack and clip every piece of its block. */
struct weir_block {
    int first, rows; /* frames first .. first + rows - 1 of the episode; first can be negative */
    uint32_t pieces;
    size_t row_bytes, piece_bytes;    /* size of an assembled frame, and of an unpacked piece */
    const struct weir_blocks *blocks; /* private to datasets/, as is file */
    int file;                         /* contains the first chunk, or all of them */
};
/* Returns true if the camera's frames are stored in blocks, of at most *rows frames: in chunks, or in the groups of
 * pictures of a video. */
bool weir_shares_blocks(const struct weir_dataset *dataset, int episode, int camera, int *rows);
/* Returns the number of the block that contains frame t. Numbers increase with t. */
int weir_block_number(const struct weir_dataset *dataset, int episode, int camera, int t);
/* Returns the first frame of a block. It is negative if the block begins before the episode. */
int weir_block_begin(const struct weir_dataset *dataset, int episode, int camera, int number);
/* Returns the block of a frame for which weir_locate returned WEIR_HOW_BLOCK. */
void weir_block_of(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_block *block);
/* Returns the file and extent of a piece. Length 0 means that the piece was never written, so there is nothing to read.
 */
void weir_block_piece(const struct weir_block *block, uint32_t piece, int *file, uint64_t *offset, size_t *length);
/* Creates the per-thread state for unpacking. Returns NULL if memory is exhausted. */
struct weir_unpacker *weir_unpacker_open(void);
void weir_unpacker_close(struct weir_unpacker **unpacker);
/* Undoes the filters of a piece. *unpacked is valid until the next call, and NULL for a piece that was never written.
 * frame (row_bytes bytes, not NULL) may be overwritten: if the frame is the only content of its block, the piece can be
 * unpacked into frame directly, and *unpacked is then frame. Returns 0, -EBADMSG with *reason set to a static string,
 * or -ENOMEM. */
int weir_block_unpack(const struct weir_block *block, uint32_t piece, struct weir_unpacker *unpacker,
                      const uint8_t *bytes, uint8_t *frame, const uint8_t **unpacked, const char **reason);
/* Copies the piece's part of frame t to its place in frame (row_bytes bytes). No effect if unpacked is frame. */
void weir_block_clip(const struct weir_block *block, uint32_t piece, const uint8_t *unpacked, int t, uint8_t *frame);

/* Reads a frame through the HDF5 library, which serves one caller at a time. Sets *length to the frame's size. Returns
 * -ENOSPC without setting err if that size exceeds capacity. */
int weir_fetch(struct weir_dataset *dataset, int episode, int camera, int t, void *buffer, size_t capacity,
               size_t *length, struct weir_err *err);

/* Cost of weir_fetch. One helper process serves all threads, one at a time. */
struct weir_helper_counts {
    uint64_t calls;
    uint64_t busy_ns; /* time spent serving requests */
    uint64_t wait_ns; /* time that threads waited for their turn, summed over threads */
};
void weir_dataset_helper(const struct weir_dataset *dataset, struct weir_helper_counts *counts);

/* Requests to servers since weir_dataset_open; all 0 for files of this machine. Any thread. */
struct weir_server_counts {
    uint64_t requests, bytes;
    uint64_t opening_requests; /* part of requests that opening took */
    uint64_t retries;          /* repeated requests */
    uint64_t limited;          /* refusals with status 429 or 503 */
    uint64_t connections;
    uint64_t wait_ns, transfer_ns; /* sums over requests: until the first byte, and from there to the last */
    /* The cache on disk; all 0 without one. */
    uint64_t cache_bytes, cache_stored_bytes; /* read from it, and stored in it */
    uint64_t cache_full_bytes;                /* not stored, because it was full */
    uint64_t cache_damaged_blocks; /* blocks of 4 KiB with wrong checksums, which were read from the server */
    uint64_t cache_errno;          /* errno that ended storing; 0 = none */
    const char *host;              /* owned by the dataset; NULL = none */
};
void weir_dataset_server(const struct weir_dataset *dataset, struct weir_server_counts *counts);

/* Returns the size of the largest extent that weir_locate or weir_unwrap can request. */
size_t weir_dataset_extent_max(const struct weir_dataset *dataset);

/* Returns the frame's stored size without its row's padding, or 0 if the size is unknown until the frame is read. */
size_t weir_frame_stored_bytes(const struct weir_dataset *dataset, int episode, int camera, int t);

/* Bytes involved in loading one frame on its own: stored, read, and unpacked. */
struct weir_frame_cost {
    uint64_t stored, read, unpacked;
};
void weir_frame_cost(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_frame_cost *cost);

/* Returns the path, within the dataset's folder, of the video or Parquet file that contains the camera's frames, or
 * NULL if the episode has no such files. */
const char *weir_frame_part(const struct weir_dataset *dataset, int episode, int camera);
/* Writes "FILE: DATASET[t]" for use in messages, followed by ": " and the name of weir_frame_part, if any. Control
 * characters become '?'. */
void weir_frame_name(const struct weir_dataset *dataset, int episode, int camera, int t, char *text, size_t size);
/* Returns the path of the camera's dataset within the episode's file. */
const char *weir_dataset_camera_key(const struct weir_dataset *dataset, int episode, int camera);
/* Returns true if a chunk of the frame was never written or is lost, so that the frame contains the array's fill value.
 */
bool weir_frame_has_fill(const struct weir_dataset *dataset, int episode, int camera, int t);
/* Writes the reason why weir_locate failed for this frame. */
void weir_frame_reason(const struct weir_dataset *dataset, int episode, int camera, int t, char *text, size_t size);

/* ---- description ---- */

/* One way in which a camera's frames are stored: a description ("contiguous", "deflate chunks of 5x32x32x2"), the
 * number of frames, and whether they are read through the HDF5 library. weir_dataset_storage returns false for i past
 * the last one. */
struct weir_storage_kind {
    char text[160];
    uint64_t frames;
    bool library;
};
bool weir_dataset_storage(const struct weir_dataset *dataset, int camera, int i, struct weir_storage_kind *kind);
/* Returns the number of episodes truncated to their shortest dataset (allow_ragged). Sets *rows_cut to the number of
 * rows removed. */
int weir_dataset_ragged(const struct weir_dataset *dataset, uint64_t *rows_cut);
/* The path of the episode's file, its number, and the episode's group within it ("" if the file contains one episode).
 */
const char *weir_dataset_episode_path(const struct weir_dataset *dataset, int episode);
int weir_dataset_episode_file(const struct weir_dataset *dataset, int episode);
const char *weir_dataset_episode_group(const struct weir_dataset *dataset, int episode);
const char *weir_dataset_layout(const struct weir_dataset *dataset, int episode);
/* Keys of the state and action datasets in this episode. */
const char *weir_dataset_qpos_key(const struct weir_dataset *dataset, int episode);
const char *weir_dataset_action_key(const struct weir_dataset *dataset, int episode);
/* Returns string i of an episode (its instruction or another string in its file) as a key and a value in raw bytes.
 * Keys that begin with "weir_" are written by Weir's own copies. Only strings that a copy in any format can store are
 * kept: non-empty, shorter than WEIR_TEXT_MAX, with a unique key shorter than WEIR_TEXT_KEY_MAX, and without zero
 * bytes; at most WEIR_TEXTS_MAX strings and WEIR_TEXTS_BYTES bytes per episode. Valid until weir_dataset_close. Returns
 * false past the last string. */
enum { WEIR_TEXTS_MAX = 64, WEIR_TEXTS_BYTES = 65536, WEIR_TEXT_KEY_MAX = 100, WEIR_TEXT_MAX = 16384 };
bool weir_dataset_text(const struct weir_dataset *dataset, int episode, int i, const char **key, const char **value);
/* Peculiarities of episodes that do not prevent loading them. */
enum weir_note {
    WEIR_NOTE_NONE,
    WEIR_NOTE_LENGTHS_UNREADABLE, /* compress_len is not numeric, was never written, or needs a missing filter */
    WEIR_NOTE_LENGTHS_SHAPE,      /* compress_len does not have the shape (cameras, steps) */
    WEIR_NOTE_LENGTHS_VALUES,     /* compress_len contains values that are negative or longer than any camera's rows */
    WEIR_NOTE_FILL,               /* state or action rows were never written or are lost, and contain the fill value */
    WEIR_NOTES
};
/* Writes line i about data that the files contain but batches do not, such as a camera that cannot be read, or that
 * the files mark as unusual but batches contain, such as failed demos: the reason, the number of affected episodes, and
 * the first of them. Returns false past the last line. */
bool weir_dataset_left_out(const struct weir_dataset *dataset, int i, char *text, size_t size);
/* Writes line i about peculiarities: a description, the number of affected episodes, and the first of them. The lines
 * of weir_dataset_left_out follow. Returns false past the last line. */
bool weir_dataset_note(const struct weir_dataset *dataset, int i, char *text, size_t size);
/* Writes one line if the times of rows are not those of their pictures, or not those of the dataset's rate, by the
 * judgement of weir verify. Returns false if they are. */
bool weir_dataset_drift(const struct weir_dataset *dataset, char *text, size_t size);
/* Number of episodes that the tolerant open skipped, and the reason for skipping the i-th of them. */
int weir_dataset_bad_episodes(const struct weir_dataset *dataset);
const char *weir_dataset_bad_episode(const struct weir_dataset *dataset, int i);
/* Returns the arrays of the first episode that the dataset does not use, with the shape of a row, such as "base_action
 * (2), qvel (14)"; NULL if there are none, or without list_unused. */
const char *weir_dataset_not_used(const struct weir_dataset *dataset);
/* Returns the version and the frame rate that the first file records, such as "LeRobot v3.0, 30 fps"; NULL if it
 * records none. */
const char *weir_dataset_about(const struct weir_dataset *dataset);
/* Number of files whose description came from the index file (config.index). */
int weir_dataset_files_from_index(const struct weir_dataset *dataset);
/* Returns false if no file can be described by an index file: LMDB, and folders such as Zarr's and LeRobot's. */
bool weir_dataset_can_have_index(const struct weir_dataset *dataset);
/* Memory used by the index, including state and actions. */
size_t weir_dataset_index_bytes(const struct weir_dataset *dataset);

/* Return row i of the tables of formats and layouts that "weir help" and "weir doctor" print; false past the last row.
 */
bool weir_dataset_format_row(int i, const char **name, const char **summary, const char **why_not);
bool weir_dataset_layout_row(int i, const char **name, const char **summary, const char **why_not);
/* Writes the name of the library that unpacks deflate chunks: "libdeflate 1.14", or zlib and its version. */
void weir_dataset_inflate(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
