/* writer.h: what writes a copy of a dataset in one format implements. weir_convert (convert_dataset.h) reads, decodes
 * and encodes in many threads, and calls a writer from one: open, then for each episode begin, every frame once, end;
 * then finish. Every call returns 0 or a negative errno with err naming file and episode. */
#ifndef WEIR_DATASETS_WRITER_H
#define WEIR_DATASETS_WRITER_H

#include "base/numbers.h"
#include "decoders/frame_kind.h"
#include "weir/base.h"
#include "weir/dataset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What all episodes of a copy have in common. */
struct weir_copy_camera {
    char name[WEIR_NAME_MAX];
    enum weir_frame_kind kind; /* WEIR_FRAME_PNG when its colour images are PNGs */
    int width, height;         /* of every frame */
};

struct weir_copy {
    int n_episodes, n_cameras;
    struct weir_copy_camera cameras[WEIR_CAMERAS_MAX];
    enum weir_number_type qpos_type, action_type;
    int qpos_dim, action_dim;
    int chunk_frames; /* frames of a chunk, where the format has chunks; 0 = the format's own choice */
    bool is_bgr;      /* red and blue of the frames are swapped: to be recorded, frames are copied as they are */
};

/* One text of an episode, such as its instruction. */
struct weir_copy_text {
    const char *key, *value;
};

struct weir_copy_episode {
    int number;          /* from 0, in the order of the source */
    const char *name;    /* where it comes from, for messages and as metadata */
    int steps;           /* frames of every camera, rows of state and actions; at least 1 */
    const void *qpos;    /* steps x qpos_dim numbers of the copy's type */
    const void *actions; /* steps x action_dim */
    const struct weir_copy_text *texts;
    int n_texts;
};

struct weir_writer_ops {
    const char *name; /* of --to */
    const char *summary;
    const char *why_not;   /* not NULL: not built */
    const char *suffix;    /* that a copy's name usually ends with: ".zarr"; "" = a folder */
    unsigned holds;        /* WEIR_FRAMES_RAW | .. that it can hold */
    bool compresses;       /* raw frames */
    int read_rank;         /* 1: its copies are read fastest (docs/bench.md), 2: next; 0: no faster than others */
    uint32_t number_types; /* bit WEIR_F32 and so on: what it can hold */
    bool by_step;          /* frames come step by step, all cameras of a step together; else camera by camera */
    /* An interrupted copy goes on behind its last complete episode; else it begins from the start. */
    bool resumes;
    /* path: nothing is there, or (resumes) what a writer of an equal copy left when it was interrupted: *complete is
     * then how many episodes it had ended; what is behind them is removed. */
    int (*open)(void **writer, const struct weir_copy *copy, const char *path, int *complete, struct weir_err *err);
    /* episode, and all that it points to, is lent until end. */
    int (*begin)(void *writer, const struct weir_copy_episode *episode, struct weir_err *err);
    /* A frame as the copy stores it: an encoded image, or the pixels of a raw one. bytes are lent for the call. */
    int (*frame)(void *writer, int camera, int t, const uint8_t *bytes, size_t length, struct weir_err *err);
    /* The episode is on the storage (fsync or the like) when this returns. */
    int (*end)(void *writer, struct weir_err *err);
    /* Everything is written and closed; *writer is NULL afterwards, also after a failure. What is at path is what a
     * reader opens: weir_convert gives it its final name. */
    int (*finish)(void **writer, struct weir_err *err);
    /* Closes and leaves at path what is there; *writer may be NULL. */
    void (*abandon)(void **writer);
};

extern const struct weir_writer_ops weir_writer_hdf5, weir_writer_hdf5_vlen, weir_writer_hdf5_gzip, weir_writer_packed,
    weir_writer_tfrecord, weir_writer_zarr, weir_writer_lmdb;

bool weir_writer_holds(const struct weir_writer_ops *ops, enum weir_frame_kind kind);

/* Row i of the table of writers; NULL past the end. */
const struct weir_writer_ops *weir_writer_at(int i);

#endif
