/* fetch.h: the bytes of frames, wherever they lie: an extent to read and unwrap, a block of chunks to unpack, or the
 * library as a counted fallback. */
#ifndef WEIR_PIPELINE_FETCH_H
#define WEIR_PIPELINE_FETCH_H

#include "io/io.h"
#include "weir/dataset.h"
#include "weir/loader.h"

#include <stdatomic.h>

enum { WEIR_FETCH_REASON = 256 };

/* One thread's context. */
struct weir_fetcher {
    struct weir_dataset *dataset; /* borrowed, as is files */
    struct weir_file_set *files;
    struct weir_reader *reader;     /* owned */
    struct weir_unpacker *unpacker; /* owned; NULL until a block was met */
    int file;                       /* that the last frame or block was read from; -1 = none */
    uint8_t *buffer;                /* of bytes as stored; grown when a frame asks for more */
    size_t capacity;
    uint8_t *row; /* of a frame put together from chunks */
    size_t row_capacity;
    struct { /* the block that failed last: each of its frames would fail alike */
        int episode, camera, first, code;
        char reason[WEIR_FETCH_REASON];
    } bad_block;
    _Atomic uint64_t fallbacks, fallback_bytes; /* frames through the library */
    struct {
        _Atomic uint64_t frames, blocks, chunks, frame_bytes, unpacked_bytes, stored_bytes, read_bytes;
    } chunks;                       /* weir_fetch_add_chunks */
    char reason[WEIR_FETCH_REASON]; /* of the last failure */
};

/* files: a set that weir_fetch_files filled from the same dataset. */
int weir_fetcher_open(struct weir_fetcher *fetcher, struct weir_dataset *dataset, struct weir_file_set *files,
                      const char *io, struct weir_err *err);
void weir_fetcher_close(struct weir_fetcher *fetcher);

/* Adds the dataset's files to a new set. */
int weir_fetch_files(const struct weir_dataset *dataset, struct weir_file_set **files);

/* Gets a frame's bytes: *bytes lies in the fetcher's buffer, in the engine's memory, or in into when that is not NULL
 * and the frame is exactly into_bytes long. Valid until the next call. 0 or a negative code with fetcher->reason. */
int weir_fetch_frame(struct weir_fetcher *fetcher, int episode, int camera, int t, void *into, size_t into_bytes,
                     const uint8_t **bytes, size_t *length);

/* Whose frames these will be, until weir_fetcher_end: a task of the run, from 0, whose extents may have been read ahead
 * (ahead NULL: none are). */
void weir_fetcher_begin(struct weir_fetcher *fetcher, struct weir_ahead *ahead, uint64_t task_number);
void weir_fetcher_end(struct weir_fetcher *fetcher);

/* Adds what the fetcher's blocks have cost so far. Any thread. */
void weir_fetch_add_chunks(const struct weir_fetcher *fetcher, struct weir_chunk_counts *counts);

/* Puts n frames of one block together (weir_shares_blocks), unpacking each chunk once: frame ts[i] goes to rows[i],
 * which has the block's row_bytes. 0, or a negative code with fetcher->reason: then none of them came. */
int weir_fetch_block(struct weir_fetcher *fetcher, int episode, int camera, const int *ts, uint8_t *const *rows, int n);

#endif
