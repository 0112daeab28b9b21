/* writer.h: the interface for writing a copy of a dataset in one format. weir_convert (convert_dataset.h) reads,
 * decodes and encodes on many threads, and calls a writer from one thread. It calls open once; then, for each episode,
 * begin, frame for every frame, and end; then finish, or only close. Every call returns 0, or a negative errno with err
 * naming file and episode. */
#ifndef WEIR_DATASETS_WRITER_H
#define WEIR_DATASETS_WRITER_H

#include "base/numbers.h"
#include "decoders/frame_kind.h"
#include "weir/base.h"
#include "weir/dataset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A camera of a copy. All episodes share these properties. */
struct weir_copy_camera {
    char name[WEIR_NAME_MAX];
    enum weir_frame_kind kind; /* WEIR_FRAME_PNG if all colour images of the camera are PNGs */
    int width, height;         /* size of every frame */
};

struct weir_copy {
    int n_episodes, n_cameras;
    struct weir_copy_camera cameras[WEIR_CAMERAS_MAX];
    enum weir_number_type qpos_type, action_type;
    int qpos_dim, action_dim;
    int chunk_frames; /* frames per chunk, for formats with chunks; 0 = the format chooses */
    bool is_bgr;      /* red and blue are swapped; the copy records this, and frames are copied unchanged */
};

/* A metadata string of an episode, such as its instruction. */
struct weir_copy_text {
    const char *key, *value;
};

struct weir_copy_episode {
    int number;          /* number of the episode, from 0, in source order */
    const char *name;    /* where the episode came from, for messages and as metadata */
    int steps;           /* number of frames of every camera, and of rows of state and actions; at least 1 */
    const void *qpos;    /* steps x qpos_dim numbers of the copy's type */
    const void *actions; /* steps x action_dim numbers of the copy's type */
    const struct weir_copy_text *texts;
    int n_texts;
};

/* What all writers have in common. The struct of each begins with it. */
struct weir_writer {
    const struct weir_writer_ops *ops;
    struct weir_copy copy;
    char *path;                       /* of the copy */
    struct weir_copy_episode episode; /* being written; what it points to is lent until end */
};

struct weir_writer_ops {
    const char *name; /* argument of --to */
    const char *summary;
    const char *why_not;   /* reason why the writer is unavailable; NULL if it is built in */
    const char *suffix;    /* usual suffix of a copy, such as ".zarr"; "" = the copy is a folder */
    unsigned holds;        /* supported groups of frame kinds: WEIR_FRAMES_RAW | .. */
    bool ignores_exif;     /* programs that read such copies do not turn images by their EXIF orientation */
    bool compresses;       /* raw frames are compressed */
    int read_rank;         /* 1: fastest to read (docs/bench.md); 2: second fastest; 0: no faster than the rest */
    uint32_t number_types; /* supported types: bit 1 << WEIR_F32 and so on */
    bool by_step; /* frames arrive step by step, with all cameras of a step together; otherwise camera by camera */
    /* An interrupted copy is resumed after its last complete episode; otherwise it starts over. */
    bool resumes;
    size_t bytes; /* size of the writer's struct, which is zeroed before open, except for its common part */
    /* The path does not exist, or (if resumes is set) contains an interrupted copy with the same properties. *complete,
     * which is 0, becomes the number of complete episodes in it; data after these episodes is removed. */
    int (*open)(struct weir_writer *writer, int *complete, struct weir_err *err);
    /* Begins writer->episode. NULL: nothing to do. */
    int (*begin)(struct weir_writer *writer, struct weir_err *err);
    /* Writes a frame in its stored form: an encoded image, or raw pixels. bytes are lent for the call. */
    int (*frame)(struct weir_writer *writer, int camera, int t, const uint8_t *bytes, size_t length,
                 struct weir_err *err);
    /* When it returns, the episode is on the storage device (through fsync or a similar call). */
    int (*end)(struct weir_writer *writer, struct weir_err *err);
    /* Completes the copy, which can be opened after close; weir_convert renames it. NULL: nothing to do. */
    int (*finish)(struct weir_writer *writer, struct weir_err *err);
    /* Frees what open and the others have allocated, also after a failed open. The copy remains as it is. */
    void (*close)(struct weir_writer *writer);
};

/* *writer is NULL after a failure. */
int weir_writer_open(struct weir_writer **writer, const struct weir_writer_ops *ops, const struct weir_copy *copy,
                     const char *path, int *complete, struct weir_err *err);
int weir_writer_begin(struct weir_writer *writer, const struct weir_copy_episode *episode, struct weir_err *err);
/* Completes and closes the copy. *writer is NULL afterwards, even after a failure. */
int weir_writer_finish(struct weir_writer **writer, struct weir_err *err);
/* Closes the writer but keeps the partial copy; *writer may be NULL. */
void weir_writer_close(struct weir_writer **writer);

/* ---- for writers ---- */

/* Sets the error "PATH: out of memory". */
int weir_writer_no_memory(const struct weir_writer *writer, struct weir_err *err);
/* Creates the copy's folder, unless it exists. */
int weir_writer_make_folder(const struct weir_writer *writer, struct weir_err *err);
/* Removes the files in the copy's folder whose names begin with a dot, which an interrupted writer left, and those for
 * which is_part (NULL = none) returns true. */
int weir_writer_remove_parts(const struct weir_writer *writer, bool (*is_part)(const char *name, int complete),
                             int complete, struct weir_err *err);
/* Writes the members "name" and "texts" of the episode. */
void weir_writer_texts(const struct weir_writer *writer, struct weir_json *json);

/* A JSON object in memory. */
struct weir_json_document {
    struct weir_json json;
    FILE *file;
    char *text; /* freed by the caller, after close */
    size_t n;
};

/* Begins the object. Returns 0 or -ENOMEM with err. */
int weir_json_document_open(const struct weir_writer *writer, struct weir_json_document *document, bool pretty,
                            struct weir_err *err);
/* Ends the object. Returns 0 or -ENOMEM with err. */
int weir_json_document_close(const struct weir_writer *writer, struct weir_json_document *document,
                             struct weir_err *err);

extern const struct weir_writer_ops weir_writer_hdf5, weir_writer_hdf5_vlen, weir_writer_hdf5_gzip, weir_writer_packed,
    weir_writer_tfrecord, weir_writer_zarr, weir_writer_lmdb;

bool weir_writer_holds(const struct weir_writer_ops *ops, enum weir_frame_kind kind);

/* Returns row i of the table of writers, or NULL past the end. */
const struct weir_writer_ops *weir_writer_at(int i);

#endif
