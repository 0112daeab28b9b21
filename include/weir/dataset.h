/* dataset.h: opens a folder of robot episodes and locates frame (episode, camera, t) as a byte extent of a file, which
 * the caller reads and decodes. Opening reads state and actions, and no pixels.
 *
 * An open dataset is read-only, and any number of threads may use it. Episodes, cameras and steps count from 0.
 *
 * The HDF5 library runs in helper processes. One process, forked when the first dataset is opened, forks all of them
 * and ends with the caller; they are not the caller's children. Open the first dataset early, before memory use grows.
 */
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

/* Members other than size and path may be 0. */
struct weir_dataset_config {
    size_t size;         /* sizeof this struct in the program; weir_dataset_config_default sets it, and the rest to 0 */
    const char *path;    /* a folder (searched for *.hdf5 and *.h5, sorted by name with numbers in order) or one file */
    const char *cameras; /* "a,b", in this order; NULL = all of the first episode except depth, by name. Every
                          * episode must have them */
    bool depth;          /* without cameras: include depth cameras */
    /* "a,b": datasets below an episode's group, overriding the layout's; NULL = the layout's. State and actions are
     * concatenated; a camera is named after its dataset, or by "name=dataset". With all three, files of any layout can
     * be read. */
    const char *qpos_keys, *action_keys, *image_keys;
    bool allow_ragged; /* cut episodes whose parts differ in length to the shortest */
    bool tolerant;     /* leave out episodes that cannot be opened instead of failing */
    /* Follow HDF5 external links, external storage and virtual sources out of the dataset's folder. Without it such an
     * episode cannot be opened. Symbolic links to episodes and folders are always followed. */
    bool allow_external;
    /* Also keep state and actions in the files' own types (datasets/own_numbers.h). */
    bool own_types;
    const char *split;  /* files of one split, by their names: "train"; "all"; NULL = there is only one */
    char *const *files; /* n_files > 0: these, in this order, instead of searching path */
    int n_files;
    const char *index; /* index file: read if it matches these files, else written; NULL = none */
    int threads;       /* threads for opening files; 0 = one per usable core */
    void (*progress)(void *user, int done, int total); /* on the calling thread; may be NULL */
    bool (*interrupted)(void *user); /* called about 10 times per second on the calling thread; true ends opening with
                                        -EINTR. May be NULL */
    void *user;
    /* Later options are appended here, because programs pass the size of their struct. */
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

/* Lists the episode files below path, or path itself, sorted; left_out lists what cannot be searched or is not a
 * regular file, as "PATH: why". Links back to a folder being searched are ignored, and so are names that begin with a
 * dot. Fails as a whole without memory or descriptors. */
int weir_scan(const char *path, struct weir_path_list *files, struct weir_path_list *left_out, struct weir_err *err);
/* Takes ownership of text, and frees it on failure; NULL is -ENOMEM. */
int weir_path_list_add(struct weir_path_list *list, char *text);
void weir_path_list_free(struct weir_path_list *list);
/* Keeps the files of one split (NULL: there must be only one split; "all": every file). Files in no split are kept. */
int weir_choose_split(struct weir_path_list *files, const char *folder, const char *split, struct weir_err *err);

int weir_dataset_open(struct weir_dataset **out, const struct weir_dataset_config *config, struct weir_err *err);
void weir_dataset_close(struct weir_dataset **dataset);

int weir_dataset_episodes(const struct weir_dataset *dataset);
int weir_dataset_cameras(const struct weir_dataset *dataset);
int weir_dataset_qpos_dim(const struct weir_dataset *dataset);
int weir_dataset_action_dim(const struct weir_dataset *dataset);
int weir_dataset_steps(const struct weir_dataset *dataset, int episode);
/* steps x dim floats, row-major; lent until close. */
const float *weir_dataset_qpos(const struct weir_dataset *dataset, int episode);
const float *weir_dataset_actions(const struct weir_dataset *dataset, int episode);

/* Mean and standard deviation (unbiased) per dimension over all steps of n episodes. */
int weir_dataset_stats(const struct weir_dataset *dataset, const int *episodes, int n, bool actions, double *mean,
                       double *std);

struct weir_camera {
    char name[WEIR_NAME_MAX];
    enum weir_frame_kind kind; /* of the first episode; never WEIR_FRAME_JPEG or WEIR_FRAME_PNG */
    int width, height;         /* of raw frames; 0 when only the codec knows */
};
const struct weir_camera *weir_dataset_camera(const struct weir_dataset *dataset, int camera);

/* Whether all episodes record that red and blue of their frames are swapped, so that decoding as RGB gives BGR. */
bool weir_dataset_is_bgr(const struct weir_dataset *dataset);

/* Returns the kind of the camera's frames in this episode: a folder may mix raw and encoded episodes. */
enum weir_frame_kind weir_dataset_kind(const struct weir_dataset *dataset, int episode, int camera);

/* The files behind the extents, as they were when indexed. A file may hold many episodes. */
struct weir_dataset_file {
    const char *path;
    uint64_t size_bytes, device, inode;
    int64_t mtime_ns;
    bool may_be_written; /* by another program while it is read: indexed data does not move */
};
int weir_dataset_files(const struct weir_dataset *dataset);
void weir_dataset_file(const struct weir_dataset *dataset, int file, struct weir_dataset_file *out);
/* The files that frames are read from, as numbered by weir_location and weir_block: those above, then the chunks of
 * datasets that are folders, where each chunk is a file. out->path points into path, or is lent. For a folder, or a
 * chunk that was never written, out describes another file of that folder. */
enum { WEIR_READ_PATH_MAX = 4096 };
int weir_dataset_read_files(const struct weir_dataset *dataset);
void weir_dataset_read_file(const struct weir_dataset *dataset, int file, struct weir_dataset_file *out,
                            char path[WEIR_READ_PATH_MAX]);

/* -EEXIST, with an error, if the file at path, existing or not, belongs to the dataset: a file that is read, one inside
 * a folder that is a dataset, or one that a later open would take for an episode. For outputs written while it is open.
 */
int weir_dataset_spare(const struct weir_dataset *dataset, const char *path, struct weir_err *err);

/* Called for each damaged part of a file ("record 3"). Returning a negative value ends the check. */
typedef int weir_damaged_fn(void *user, const char *part, const char *why);
/* Reads a whole file and verifies what reading frames does not: a TFRecord's data checksums. Other formats have no
 * damage to report. 0 regardless of damage; the nonzero result of damaged; or negative with err, without the path, if
 * the file cannot be read. Any thread. */
int weir_dataset_check_file(const struct weir_dataset *dataset, int file, weir_damaged_fn *damaged, void *user,
                            struct weir_err *err);

/* ---- frames ---- */

enum weir_how {
    WEIR_HOW_EXTENT,  /* read the extent, then call weir_unwrap */
    WEIR_HOW_BLOCK,   /* in chunks shared with other frames: weir_block_of */
    WEIR_HOW_LIBRARY, /* no extent: weir_fetch, a counted fallback */
};

struct weir_location {
    int file;
    uint64_t offset; /* extent to read */
    size_t length;   /* at most weir_dataset_extent_max */
    size_t payload;  /* start of the frame within the bytes read, after weir_unwrap */
    size_t payload_length;
    /* Not NULL: a padded row whose image may end anywhere; the caller reports its end to weir_note_end. Otherwise
     * private to datasets/. */
    struct weir_frame_end *end;
    size_t row_bytes;
    /* private to datasets/: the walk through a heap collection; NULL and zero elsewhere */
    struct weir_heap_slot *heap_slot;
    uint64_t heap_end, heap_at;
    uint32_t heap_objects;
};

/* Locates a frame. Returns an enum weir_how, or -EBADMSG for a known bad offset (weir_frame_reason). */
int weir_locate(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_location *location);

/* Interprets the bytes read for location. 0: the frame is at payload. 1: read location, now another extent, and call
 * again. -EBADMSG: the file's structure is damaged; *reason (static text) names the fault. */
int weir_unwrap(const struct weir_dataset *dataset, struct weir_location *location, const uint8_t *bytes,
                const char **reason);

/* Reports, for a location with end, after weir_unwrap, that the image at payload takes so many bytes; 0 = it does not
 * end within the bytes read. 0: payload_length is the frame's length, which weir_locate remembers. 1: only part of the
 * row was read; read location, now all of it, and call again. */
int weir_note_end(struct weir_location *location, size_t bytes);

/* Chunks over the same rows: unpacking them for one frame unpacks them for all frames of the block. A frame is
 * assembled from all pieces: read, unpack and clip each. */
struct weir_block {
    int first, rows; /* frames first .. first + rows - 1 of the episode; first may be negative */
    uint32_t pieces;
    size_t row_bytes, piece_bytes;    /* of an assembled frame, of an unpacked piece */
    const struct weir_blocks *blocks; /* private to datasets/, like file */
    int file;                         /* of the first chunk, or of all chunks */
};
/* Whether frames lie in blocks of *rows frames each; the first block has *before (may be NULL) rows before the episode,
 * so that frame t is in block (before + t) / rows. */
bool weir_shares_blocks(const struct weir_dataset *dataset, int episode, int camera, int *rows, int *before);
/* The block of a frame located as WEIR_HOW_BLOCK. */
void weir_block_of(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_block *block);
/* The file and extent of a piece; length 0: it was never written, and there is nothing to read. */
void weir_block_piece(const struct weir_block *block, uint32_t piece, int *file, uint64_t *offset, size_t *length);
/* Per-thread state for unpacking; NULL without memory. */
struct weir_unpacker *weir_unpacker_open(void);
void weir_unpacker_close(struct weir_unpacker **unpacker);
/* Undoes the filters of a piece. *unpacked is valid until the next call; NULL for a piece that was never written. frame
 * (not NULL, row_bytes) is overwritten: a frame that is its whole block may be unpacked into it, and *unpacked is frame
 * then. 0, -EBADMSG with *reason (static text), or -ENOMEM. */
int weir_block_unpack(const struct weir_block *block, uint32_t piece, struct weir_unpacker *unpacker,
                      const uint8_t *bytes, uint8_t *frame, const uint8_t **unpacked, const char **reason);
/* Copies frame t's part of the piece to its place in frame (row_bytes); no effect if it is there already. */
void weir_block_clip(const struct weir_block *block, uint32_t piece, const uint8_t *unpacked, int t, uint8_t *frame);

/* Reads a frame through the HDF5 library, one caller at a time. *length is its size; -ENOSPC (err not set) if that
 * exceeds capacity. */
int weir_fetch(struct weir_dataset *dataset, int episode, int camera, int t, void *buffer, size_t capacity,
               size_t *length, struct weir_err *err);

/* Cost of weir_fetch: one process serves all threads, one at a time. */
struct weir_helper_counts {
    uint64_t calls;
    uint64_t busy_ns; /* time serving */
    uint64_t wait_ns; /* time that all threads waited for their turn */
};
void weir_dataset_helper(const struct weir_dataset *dataset, struct weir_helper_counts *counts);

/* Size of the largest extent that weir_locate and weir_unwrap request. */
size_t weir_dataset_extent_max(const struct weir_dataset *dataset);

/* Stored size of the frame without its row's padding; 0 if unknown until the frame is read. */
size_t weir_frame_stored_bytes(const struct weir_dataset *dataset, int episode, int camera, int t);

/* Bytes that one frame alone costs: stored, read for it, unpacked for it. */
struct weir_frame_cost {
    uint64_t stored, read, unpacked;
};
void weir_frame_cost(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_frame_cost *cost);

/* Writes "FILE: DATASET[t]" for messages, with control characters as '?'. */
void weir_frame_name(const struct weir_dataset *dataset, int episode, int camera, int t, char *text, size_t size);
/* Path of the camera's dataset in its episode's file. */
const char *weir_dataset_camera_key(const struct weir_dataset *dataset, int episode, int camera);
/* Whether a chunk of the frame was never written, or is lost: it has the array's fill value. */
bool weir_frame_has_fill(const struct weir_dataset *dataset, int episode, int camera, int t);
/* Why weir_locate refused this frame. */
void weir_frame_reason(const struct weir_dataset *dataset, int episode, int camera, int t, char *text, size_t size);

/* ---- description ---- */

/* Storage kind i of a camera's frames: a description ("contiguous", "deflate chunks of 5x32x32x2"), the number of
 * frames, and whether they go through the HDF5 library. False past the last kind. */
struct weir_storage_kind {
    char text[160];
    uint64_t frames;
    bool library;
};
bool weir_dataset_storage(const struct weir_dataset *dataset, int camera, int i, struct weir_storage_kind *kind);
/* Number of episodes cut to their shortest part (allow_ragged), and of rows cut. */
int weir_dataset_ragged(const struct weir_dataset *dataset, uint64_t *rows_cut);
/* Path of the episode's file, and its group there ("" in a file of one episode). */
const char *weir_dataset_episode_path(const struct weir_dataset *dataset, int episode);
int weir_dataset_episode_file(const struct weir_dataset *dataset, int episode); /* file number */
const char *weir_dataset_episode_group(const struct weir_dataset *dataset, int episode);
const char *weir_dataset_layout(const struct weir_dataset *dataset, int episode);
/* Keys of state and actions in this episode. */
const char *weir_dataset_qpos_key(const struct weir_dataset *dataset, int episode);
const char *weir_dataset_action_key(const struct weir_dataset *dataset, int episode);
/* Text i of an episode: its instruction and other texts of its file, as key and value in raw bytes without zeros. Keys
 * that begin with "weir_" belong to Weir's own copies. Keeps at most WEIR_TEXTS_MAX texts and WEIR_TEXTS_BYTES bytes,
 * non-empty, shorter than WEIR_TEXT_MAX and with keys shorter than WEIR_TEXT_KEY_MAX, one per key: what every format of
 * a copy can hold. Lent until close. False past the last. */
enum { WEIR_TEXTS_MAX = 64, WEIR_TEXTS_BYTES = 65536, WEIR_TEXT_KEY_MAX = 100, WEIR_TEXT_MAX = 16384 };
bool weir_dataset_text(const struct weir_dataset *dataset, int episode, int i, const char **key, const char **value);
/* Oddities of episodes that do not prevent loading them. */
enum weir_note {
    WEIR_NOTE_NONE,
    WEIR_NOTE_LENGTHS_UNREADABLE, /* compress_len holds no numbers, was never written, or needs a missing filter */
    WEIR_NOTE_LENGTHS_SHAPE,      /* compress_len is not (cameras, steps) */
    WEIR_NOTE_LENGTHS_VALUES,     /* compress_len has values that are no row length of any camera */
    WEIR_NOTE_FILL, /* rows of state or actions were never written, or are lost: they have the fill value */
    WEIR_NOTES
};
/* Line i about data that is in the files and not in batches: a camera that cannot be read and why, the number of
 * episodes, and the first one. False past the last. */
bool weir_dataset_left_out(const struct weir_dataset *dataset, int i, char *text, size_t size);
/* Line i about oddities: what, the number of episodes, and the first one; then the lines of weir_dataset_left_out.
 * False past the last. */
bool weir_dataset_note(const struct weir_dataset *dataset, int i, char *text, size_t size);
/* Episodes left out at open (tolerant), and the reasons. */
int weir_dataset_bad_episodes(const struct weir_dataset *dataset);
const char *weir_dataset_bad_episode(const struct weir_dataset *dataset, int i);
/* Number of files described by config.index. */
int weir_dataset_files_from_index(const struct weir_dataset *dataset);
/* Memory of the index, including state and actions. */
size_t weir_dataset_index_bytes(const struct weir_dataset *dataset);

/* Row i of the tables of formats and layouts, for help and doctor; false past the end. */
bool weir_dataset_format_row(int i, const char **name, const char **summary, const char **why_not);
bool weir_dataset_layout_row(int i, const char **name, const char **summary, const char **why_not);
/* The library that unpacks deflate chunks: "libdeflate 1.14", or zlib's version. */
void weir_dataset_inflate(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
