/* fetch.h: gets the bytes of frames from any storage. A frame is read and unwrapped from an extent, unpacked from a
 * block of chunks, decoded from a video, or read through the HDF5 library, which is counted as a fallback. The bytes of
 * a video's frame are a struct weir_picture. */
#ifndef WEIR_PIPELINE_SAMPLES_FETCH_H
#define WEIR_PIPELINE_SAMPLES_FETCH_H

#include "io/io.h"
#include "weir/dataset.h"
#include "weir/loader.h"

#include <stdatomic.h>

enum { WEIR_FETCH_REASON = 256 };

struct weir_picture;
struct weir_video_fetch;

/* State of one thread. */
struct weir_fetcher {
    struct weir_dataset *dataset; /* borrowed, as is files */
    struct weir_file_set *files;
    struct weir_reader *reader;     /* owned */
    struct weir_unpacker *unpacker; /* owned; NULL until the first block */
    int file;                       /* index of the last file read; -1 = none */
    int gpu;                        /* number of the GPU that decodes videos; -1 = none (weir_fetcher_open) */
    uint8_t *buffer;                /* stored bytes; grows on demand */
    size_t capacity;
    struct weir_video_fetch *video; /* owned; NULL until the first frame of a video */
    uint8_t *row;                   /* a frame assembled from chunks, or copied from a video */
    size_t row_capacity;
    struct { /* the last block that failed, whose frames all fail in the same way */
        int episode, camera, first, code;
        char reason[WEIR_FETCH_REASON];
    } bad_block;
    _Atomic uint64_t fallbacks, fallback_bytes; /* frames read through the library, and their bytes */
    struct {
        _Atomic uint64_t frames, blocks, chunks, frame_bytes, unpacked_bytes, stored_bytes, read_bytes;
    } chunks; /* see weir_fetch_add_chunks */
    struct {
        _Atomic uint64_t groups, group_pictures, decoded, used, key_ticks, gpu_groups;
    } pictures;                     /* see weir_fetch_add_pictures */
    char reason[WEIR_FETCH_REASON]; /* reason for the last failure */
};

/* files: a set that weir_fetch_files has filled from the same dataset. */
int weir_fetcher_open(struct weir_fetcher *fetcher, struct weir_dataset *dataset, struct weir_file_set *files,
                      const char *io, struct weir_err *err);
void weir_fetcher_close(struct weir_fetcher *fetcher);

/* Adds the dataset's files to a new set. */
int weir_fetch_files(const struct weir_dataset *dataset, struct weir_file_set **files);

/* Gets a frame's bytes. *bytes points into the fetcher's buffer or the engine's memory, or to `into` if that is not
 * NULL and the frame has exactly into_bytes. The bytes are valid until the next call. Returns 0, or a negative code
 * with the reason in fetcher->reason. */
int weir_fetch_frame(struct weir_fetcher *fetcher, int episode, int camera, int t, void *into, size_t into_bytes,
                     const uint8_t **bytes, size_t *length);

/* Until weir_fetcher_end, all frames belong to this task of the run (counted from 0). The task's extents may have been
 * read ahead; ahead NULL = there is no read-ahead. */
void weir_fetcher_begin(struct weir_fetcher *fetcher, struct weir_ahead *ahead, uint64_t task_number);
void weir_fetcher_end(struct weir_fetcher *fetcher);

/* Adds this fetcher's totals for blocks to *counts. Any thread. */
void weir_fetch_add_chunks(const struct weir_fetcher *fetcher, struct weir_chunk_counts *counts);

/* The same for videos. */
void weir_fetch_add_pictures(const struct weir_fetcher *fetcher, struct weir_video_counts *counts);

/* Assembles n frames of one block (weir_shares_blocks), unpacking each chunk once. Frame ts[i] is stored in rows[i],
 * which must have the block's row_bytes. Returns 0, or a negative code with fetcher->reason if no frame was assembled.
 */
int weir_fetch_block(struct weir_fetcher *fetcher, int episode, int camera, const int *ts, uint8_t *const *rows, int n);

/* Called for each i of weir_fetch_video with the picture of frame ts[i], which is valid during the call. A nonzero
 * result ends weir_fetch_video. Must not call the fetcher. */
typedef int weir_fetched_picture_fn(void *user, int i, const struct weir_picture *picture);

/* Reads and decodes n frames of one block of a video (WEIR_HOW_VIDEO), in any order and possibly repeated. Calls
 * `fetched` in presentation order. Returns 0 if it was called for all frames, or a negative code with fetcher->reason.
 * fetched NULL: only reads. */
int weir_fetch_video(struct weir_fetcher *fetcher, int episode, int camera, const int *ts, int n,
                     weir_fetched_picture_fn *fetched, void *user);

/* Called for each frame in order: with code 0 and the frame's bytes, which are valid until the next fetch, or with a
 * negative code and the reason. A result other than 0 ends weir_fetch_frames, which then returns it. */
typedef int weir_fetched_fn(void *user, int t, int code, const char *reason, const uint8_t *bytes, size_t length);

/* Fetches frames first .. first + n - 1. Frames of one block are assembled together, up to 64 frames and 64 MiB (1024
 * frames of a video), so that the block's chunks are unpacked once for all of them. */
int weir_fetch_frames(struct weir_fetcher *fetcher, int episode, int camera, int first, int n, weir_fetched_fn *fetched,
                      void *user);

#endif
