/* dataset.h: opens a folder of robot episodes and answers where frame (episode, camera, t) lies: a byte extent of a
 * file, which the caller reads and decodes. It reads state and actions at open, and no pixels.
 *
 * A dataset that is open is read-only and may be used by any number of threads. Episodes, cameras and steps count from
 * 0.
 *
 * The HDF5 library runs in helper processes. One process, forked when the first dataset is opened, forks them all and
 * ends with the caller: open the first dataset early, before memory is large. They are not the caller's children. */
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

/* All but size and path may be 0. Later versions only append. */
struct weir_dataset_config {
    size_t size;         /* as the program knows it; weir_dataset_config_default sets it, and all else to 0 */
    const char *path;    /* a folder (searched for *.hdf5 and *.h5, sorted by name with numbers in order) or one file */
    const char *cameras; /* "a,b": these, in this order; NULL = all of the first episode but depth, by name. Every
                            episode must have them */
    bool depth;          /* without cameras: those of depth too */
    /* "a,b": datasets, below an episode's group, that take the place of what the layout would say; NULL = the layout's.
     * State and actions are put side by side; a camera is named after its dataset, or by "name=dataset". With all three
     * a file may have any layout. */
    const char *qpos_keys, *action_keys, *image_keys;
    bool allow_ragged; /* parts of an episode that differ in length are cut to the shortest */
    bool tolerant;     /* leave out episodes that cannot be opened, instead of failing */
    /* Read what HDF5 objects (external links, external storage, virtual sources) name outside the dataset's folder,
     * too. Without it such an episode cannot be opened. Episodes and folders that are symbolic links need it not. */
    bool allow_external;
    /* Keep state and actions in the types that files have them in, too: own_numbers.h. */
    bool own_types;
    const char *split;  /* of the files' names, where they have one: "train"; "all"; NULL = there is but one */
    char *const *files; /* n_files > 0: these, in this order, in place of what is found below path */
    int n_files;
    const char *index; /* file that keeps the index: read when it fits these files, else written; NULL = none */
    int threads;       /* that open files; 0 = one per usable core */
    void (*progress)(void *user, int done, int total); /* from the calling thread; may be NULL */
    bool (*interrupted)(
        void *user); /* asked about 10 times a second, from there; true ends it with -EINTR. May be NULL */
    void *user;
};
static inline void weir_dataset_config_default(struct weir_dataset_config *config)
{
    memset(config, 0, sizeof *config);
    config->size = sizeof *config;
}

struct weir_path_list {
    char **paths;
    int n, capacity;
};

/* Sorted list of the episode files below path, or path itself; and of what cannot be searched or is no file, as "PATH:
 * why". A link back to a folder that is being searched is passed over: what is behind it is found there. Names that
 * begin with a dot are no episodes. Without memory or descriptors the search fails as a whole. */
int weir_scan(const char *path, struct weir_path_list *files, struct weir_path_list *left_out, struct weir_err *err);
/* Takes text over, and frees it when it cannot; NULL is -ENOMEM. */
int weir_path_list_add(struct weir_path_list *list, char *text);
void weir_path_list_free(struct weir_path_list *list);
/* Leaves the files of one split of the dataset (NULL: there must be no more than one; "all": whatever there is). What
 * is in no split stays. */
int weir_choose_split(struct weir_path_list *files, const char *folder, const char *split, struct weir_err *err);

int weir_dataset_open(struct weir_dataset **out, const struct weir_dataset_config *config, struct weir_err *err);
void weir_dataset_close(struct weir_dataset **dataset);

int weir_dataset_episodes(const struct weir_dataset *dataset);
int weir_dataset_cameras(const struct weir_dataset *dataset);
int weir_dataset_qpos_dim(const struct weir_dataset *dataset);
int weir_dataset_action_dim(const struct weir_dataset *dataset);
int weir_dataset_steps(const struct weir_dataset *dataset, int episode);
/* steps x dim floats, row by row; lent until close. */
const float *weir_dataset_qpos(const struct weir_dataset *dataset, int episode);
const float *weir_dataset_actions(const struct weir_dataset *dataset, int episode);

/* Mean and standard deviation (unbiased, over n - 1) of every dimension over all steps of the n episodes listed. */
int weir_dataset_stats(const struct weir_dataset *dataset, const int *episodes, int n, bool actions, double *mean,
                       double *std);

struct weir_camera {
    char name[WEIR_NAME_MAX];
    enum weir_frame_kind kind; /* of the first episode; never WEIR_FRAME_JPEG or WEIR_FRAME_PNG */
    int width, height;         /* of raw frames; 0 when only the codec knows */
};
const struct weir_camera *weir_dataset_camera(const struct weir_dataset *dataset, int camera);

/* It is recorded, in all episodes, that red and blue of the frames are swapped: what decodes them as RGB gets BGR. */
bool weir_dataset_is_bgr(const struct weir_dataset *dataset);

/* Returns the kind of the camera's frames in this episode: a folder may mix raw and encoded episodes. */
enum weir_frame_kind weir_dataset_kind(const struct weir_dataset *dataset, int episode, int camera);

/* The files behind the extents: number, path, and what they looked like when indexed. A file may hold many episodes. */
struct weir_dataset_file {
    const char *path;
    uint64_t size_bytes, device, inode;
    int64_t mtime_ns;
    bool may_be_written; /* while it is read: what was indexed stays where it is */
};
int weir_dataset_files(const struct weir_dataset *dataset);
void weir_dataset_file(const struct weir_dataset *dataset, int file, struct weir_dataset_file *out);
/* The files that are read for frames, as weir_location and weir_block number them: those above, and behind them the
 * chunks of those that are folders, where every chunk is a file. out->path lies in path, or is lent. For what is no
 * file of bytes, a folder or a chunk that was never written, it is another one of that folder. */
enum { WEIR_READ_PATH_MAX = 4096 };
int weir_dataset_read_files(const struct weir_dataset *dataset);
void weir_dataset_read_file(const struct weir_dataset *dataset, int file, struct weir_dataset_file *out,
                            char path[WEIR_READ_PATH_MAX]);

/* -EEXIST with a line when the file at path, existing or not, is part of the dataset: a file that is read, one inside
 * a folder that is a dataset, or one that a later open would take for an episode. For what is written while it is
 * open. */
int weir_dataset_spare(const struct weir_dataset *dataset, const char *path, struct weir_err *err);

/* Told of a part of a file that is damaged ("record 3"), and why it is. Returns 0, or negative to end the check. */
typedef int weir_damaged_fn(void *user, const char *part, const char *why);
/* Reads a file whole and checks what nobody checks while frames are read: a TFRecord's checksums of data. Formats that
 * have no such thing have no damage. 0 whatever was found; what damaged returned, when that is not 0; negative with
 * err, which does not have the path, when the file cannot be read. Any thread. */
int weir_dataset_check_file(const struct weir_dataset *dataset, int file, weir_damaged_fn *damaged, void *user,
                            struct weir_err *err);

/* ---- frames ---- */

enum weir_how {
    WEIR_HOW_EXTENT,  /* read the extent, then weir_unwrap */
    WEIR_HOW_BLOCK,   /* lies in chunks together with others: weir_block_of */
    WEIR_HOW_LIBRARY, /* no extent: weir_fetch, a counted fallback */
};

struct weir_location {
    int file;
    uint64_t offset; /* what to read */
    size_t length;   /* at most weir_dataset_extent_max */
    size_t payload;  /* after weir_unwrap: the frame begins here in the bytes read */
    size_t payload_length;
    /* Not NULL: a padded row whose image may end anywhere; the caller passes where to weir_note_end. Otherwise private
     * to datasets/. */
    struct weir_frame_end *end;
    size_t row_bytes;
    /* private to datasets/: the walk through a heap collection, NULL and zero elsewhere */
    struct weir_heap_slot *heap_slot;
    uint64_t heap_end, heap_at;
    uint32_t heap_objects;
};

/* Finds a frame. An enum weir_how, or -EBADMSG when its offset is known to be bad (weir_frame_reason gives the reason).
 */
int weir_locate(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_location *location);

/* Looks at the bytes read for location. 0: the frame is at payload. 1: read location (now another extent) and call
 * again. -EBADMSG: the file's structure does not hold what it promised; *reason (static text) names it. */
int weir_unwrap(const struct weir_dataset *dataset, struct weir_location *location, const uint8_t *bytes,
                const char **reason);

/* For a location with end, after weir_unwrap: the image at payload takes so many bytes, 0 = it does not end in what was
 * read. 0: location->payload_length is the frame's, and from now on weir_locate gives no more than that. 1: what was
 * read was but a part of the row; read location (now all of it) and call again. */
int weir_note_end(struct weir_location *location, size_t bytes);

/* Chunks over the same rows: unpacking them for one frame unpacks them for all frames of the block. A frame is put
 * together from every piece: read it, unpack it, clip the frame's part out of it. */
struct weir_block {
    int first, rows; /* frames first .. first + rows - 1, as far as the episode goes: first may be negative */
    uint32_t pieces;
    size_t row_bytes, piece_bytes;    /* of a frame put together, of a piece unpacked */
    const struct weir_blocks *blocks; /* private to datasets/, as is file */
    int file;                         /* of the first chunk, or of all of them */
};
/* True when frames lie in blocks, of *rows frames each; the first one has *before (may be NULL) of them before the
 * episode: frame t is in block (before + t) / rows. */
bool weir_shares_blocks(const struct weir_dataset *dataset, int episode, int camera, int *rows, int *before);
/* The block of a frame that weir_locate called WEIR_HOW_BLOCK. */
void weir_block_of(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_block *block);
/* What to read for a piece, and of which file; length 0: it was never written, nothing is to be read. */
void weir_block_piece(const struct weir_block *block, uint32_t piece, int *file, uint64_t *offset, size_t *length);
/* One thread's tools for unpacking; NULL without memory. */
struct weir_unpacker *weir_unpacker_open(void);
void weir_unpacker_close(struct weir_unpacker **unpacker);
/* Undoes the filters of the bytes read. *unpacked lasts until the next call; NULL for what was never written. frame
 * (not NULL, row_bytes) is overwritten: a frame that is all of its block may be unpacked right there, and then
 * *unpacked is frame. 0, or -EBADMSG with *reason (static text), or -ENOMEM. */
int weir_block_unpack(const struct weir_block *block, uint32_t piece, struct weir_unpacker *unpacker,
                      const uint8_t *bytes, uint8_t *frame, const uint8_t **unpacked, const char **reason);
/* Copies what frame t has in the piece into frame (row_bytes), where it belongs; does nothing when it is there. */
void weir_block_clip(const struct weir_block *block, uint32_t piece, const uint8_t *unpacked, int t, uint8_t *frame);

/* Reads a frame through the HDF5 library, one at a time. *length is its size; -ENOSPC (err not set) when that is over
 * capacity: call again with more. */
int weir_fetch(struct weir_dataset *dataset, int episode, int camera, int t, void *buffer, size_t capacity,
               size_t *length, struct weir_err *err);

/* What weir_fetch has cost: one process serves all threads, one at a time. */
struct weir_helper_counts {
    uint64_t calls;
    uint64_t busy_ns; /* it served */
    uint64_t wait_ns; /* threads waited for their turn, of all of them */
};
void weir_dataset_helper(const struct weir_dataset *dataset, struct weir_helper_counts *counts);

/* Largest extent that weir_locate and weir_unwrap ask for, bytes. */
size_t weir_dataset_extent_max(const struct weir_dataset *dataset);

/* Bytes of the frame as stored, without the padding of its row; 0 when it is only known once the frame was read. */
size_t weir_frame_stored_bytes(const struct weir_dataset *dataset, int episode, int camera, int t);

/* Bytes that one frame alone costs: as stored, to be read for it, to be unpacked for it. */
struct weir_frame_cost {
    uint64_t stored, read, unpacked;
};
void weir_frame_cost(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_frame_cost *cost);

/* Writes "FILE: DATASET[t]" for messages, control characters as '?'. */
void weir_frame_name(const struct weir_dataset *dataset, int episode, int camera, int t, char *text, size_t size);
/* The path of the camera's dataset in its episode's file. */
const char *weir_dataset_camera_key(const struct weir_dataset *dataset, int episode, int camera);
/* A chunk of the frame was never written, or is lost: the array's fill value is delivered there. */
bool weir_frame_has_fill(const struct weir_dataset *dataset, int episode, int camera, int t);
/* Why weir_locate refused this frame. */
void weir_frame_reason(const struct weir_dataset *dataset, int episode, int camera, int t, char *text, size_t size);

/* ---- description ---- */

/* How a camera's frames are stored, kind i: in words ("contiguous", "deflate chunks of 5x32x32x2"), with the number of
 * frames, and whether they go through the HDF5 library. False past the last kind. */
struct weir_storage_kind {
    char text[160];
    uint64_t frames;
    bool library;
};
bool weir_dataset_storage(const struct weir_dataset *dataset, int camera, int i, struct weir_storage_kind *kind);
/* Episodes cut to their shortest part (allow_ragged), and how many rows the longest parts had more. */
int weir_dataset_ragged(const struct weir_dataset *dataset, uint64_t *rows_cut);
/* Path of the episode's file, and its group there ("" in a file of one episode). */
const char *weir_dataset_episode_path(const struct weir_dataset *dataset, int episode);
int weir_dataset_episode_file(const struct weir_dataset *dataset, int episode); /* its number */
const char *weir_dataset_episode_group(const struct weir_dataset *dataset, int episode);
const char *weir_dataset_layout(const struct weir_dataset *dataset, int episode);
/* The keys that state and actions came from in this episode. */
const char *weir_dataset_qpos_key(const struct weir_dataset *dataset, int episode);
const char *weir_dataset_action_key(const struct weir_dataset *dataset, int episode);
/* Text i of an episode: its instruction and what else its file says in words, key and value, as they are there (any
 * bytes but zeros). Keys that begin with "weir_" are of Weir's own copies. At most WEIR_TEXTS_MAX texts and
 * WEIR_TEXTS_BYTES in all are kept, of each key that is shorter than WEIR_TEXT_KEY_MAX one that is shorter than
 * WEIR_TEXT_MAX and not empty: what every format of a copy can hold. Lent until close. False past the last. */
enum { WEIR_TEXTS_MAX = 64, WEIR_TEXTS_BYTES = 65536, WEIR_TEXT_KEY_MAX = 100, WEIR_TEXT_MAX = 16384 };
bool weir_dataset_text(const struct weir_dataset *dataset, int episode, int i, const char **key, const char **value);
/* What is odd about episodes and no reason to refuse them. */
enum weir_note {
    WEIR_NOTE_NONE,
    WEIR_NOTE_LENGTHS_UNREADABLE, /* compress_len holds no numbers, was never written, is behind a missing filter */
    WEIR_NOTE_LENGTHS_SHAPE,      /* it is not (cameras, steps) */
    WEIR_NOTE_LENGTHS_VALUES,     /* it has values that are no length of any camera's rows */
    WEIR_NOTE_FILL,               /* rows of state or actions that were never written, or are lost: the fill value */
    WEIR_NOTES
};
/* Line i of what the files hold and batches do not, for people: a camera that cannot be read, and why; in how many
 * episodes, the first of them. False past the last. */
bool weir_dataset_left_out(const struct weir_dataset *dataset, int i, char *text, size_t size);
/* Line i of what is odd, for people: what, in how many episodes, the first of them; then the lines of
 * weir_dataset_left_out. False past the last. */
bool weir_dataset_note(const struct weir_dataset *dataset, int i, char *text, size_t size);
/* Episodes left out at open (tolerant), and why. */
int weir_dataset_bad_episodes(const struct weir_dataset *dataset);
const char *weir_dataset_bad_episode(const struct weir_dataset *dataset, int i);
/* Files whose description came from config.index. */
int weir_dataset_files_from_index(const struct weir_dataset *dataset);
/* Memory that the index takes, state and actions included. */
size_t weir_dataset_index_bytes(const struct weir_dataset *dataset);

/* Row i of the tables of formats and of layouts for help and doctor; false past the end. */
bool weir_dataset_format_row(int i, const char **name, const char **summary, const char **why_not);
bool weir_dataset_layout_row(int i, const char **name, const char **summary, const char **why_not);
/* What unpacks deflate chunks: "libdeflate 1.14", or zlib where it was built without. */
void weir_dataset_inflate(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
