/* writer.h: the interface for writing a copy of a dataset in one format. weir_convert (convert_dataset.h) reads,
 * decodes and encodes on many threads, and calls a writer from one: open; for each episode begin, every frame once,
 * end; then finish. Every call returns 0 or a negative errno, with err naming file and episode. */
#ifndef WEIR_DATASETS_WRITER_H
#define WEIR_DATASETS_WRITER_H

#include "base/numbers.h"
#include "decoders/frame_kind.h"
#include "weir/base.h"
#include "weir/dataset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Properties that all episodes of a copy share. */
struct weir_copy_camera {
    char name[WEIR_NAME_MAX];
    enum weir_frame_kind kind; /* WEIR_FRAME_PNG when all its colour images are PNGs */
    int width, height;         /* of every frame */
};

struct weir_copy {
    int n_episodes, n_cameras;
    struct weir_copy_camera cameras[WEIR_CAMERAS_MAX];
    enum weir_number_type qpos_type, action_type;
    int qpos_dim, action_dim;
    int chunk_frames; /* frames per chunk, for formats with chunks; 0 = the format's choice */
    bool is_bgr;      /* red and blue are swapped: the copy records this, frames are copied unchanged */
};

/* A text of an episode, such as its instruction. */
struct weir_copy_text {
    const char *key, *value;
};

struct weir_copy_episode {
    int number;          /* from 0, in source order */
    const char *name;    /* its origin, for messages and as metadata */
    int steps;           /* frames of every camera, rows of state and actions; at least 1 */
    const void *qpos;    /* steps x qpos_dim numbers of the copy's type */
    const void *actions; /* steps x action_dim */
    const struct weir_copy_text *texts;
    int n_texts;
};

struct weir_writer_ops {
    const char *name; /* for --to */
    const char *summary;
    const char *why_not;   /* NULL when built in */
    const char *suffix;    /* usual suffix of a copy: ".zarr"; "" = a folder */
    unsigned holds;        /* groups of frame kinds: WEIR_FRAMES_RAW | .. */
    bool compresses;       /* compresses raw frames */
    int read_rank;         /* 1: its copies are read fastest (docs/bench.md), 2: next; 0: no faster than others */
    uint32_t number_types; /* supported types: bit WEIR_F32 and so on */
    bool by_step;          /* takes all cameras of a step together; else camera by camera */
    /* An interrupted copy resumes after its last complete episode; else it starts over. */
    bool resumes;
    /* path: does not exist, or (resumes) has an interrupted equal copy. *complete becomes its number of complete
     * episodes; data after them is removed. */
    int (*open)(void **writer, const struct weir_copy *copy, const char *path, int *complete, struct weir_err *err);
    /* episode, with everything it points to, is lent until end. */
    int (*begin)(void *writer, const struct weir_copy_episode *episode, struct weir_err *err);
    /* A frame in its stored form: an encoded image, or raw pixels. bytes are lent for the call. */
    int (*frame)(void *writer, int camera, int t, const uint8_t *bytes, size_t length, struct weir_err *err);
    /* On return the episode is on the storage (fsync or the like). */
    int (*end)(void *writer, struct weir_err *err);
    /* Completes and closes the copy at path, ready to be opened; weir_convert then renames it. *writer is NULL
     * afterwards, also after a failure. */
    int (*finish)(void **writer, struct weir_err *err);
    /* Closes the writer and keeps the partial copy; *writer may be NULL. */
    void (*abandon)(void **writer);
};

extern const struct weir_writer_ops weir_writer_hdf5, weir_writer_hdf5_vlen, weir_writer_hdf5_gzip, weir_writer_packed,
    weir_writer_tfrecord, weir_writer_zarr, weir_writer_lmdb;

bool weir_writer_holds(const struct weir_writer_ops *ops, enum weir_frame_kind kind);

/* Row i of the table of writers; NULL past the end. */
const struct weir_writer_ops *weir_writer_at(int i);

#endif
