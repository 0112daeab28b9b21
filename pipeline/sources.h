/* sources.h: which camera, which file: what reading and decoding took of each camera, what reading took of each file,
 * and the calls that took longest. Workers write cells of their own and one row a file that all share; nothing is
 * locked, allocated or timed anew: durations are what the zones of the worker's stages have added up.
 *
 * Reading is 03c_read_bytes without what is nested in it: a read, out of the page cache or from storage, the wait for
 * one that read-ahead has under way, or what the HDF5 helper process took (the turn in front of it is no part of it).
 * Decoding is 03b_image_decode and 05_to_tensor_normalize, and the frame's part of 03d_inflate. Frames that a GPU
 * decodes are read only; those out of the decode cache, and copies within a batch, are neither. */
#ifndef WEIR_PIPELINE_SOURCES_H
#define WEIR_PIPELINE_SOURCES_H

#include "weir/loader.h"

#include <stdatomic.h>

enum { WEIR_SLOW_CALLS = WEIR_SOURCE_CALLS };

/* One camera's calls of one kind on one worker, in ticks. One writer. */
struct weir_source_cell {
    _Atomic uint64_t count, total, min, max, bytes;
    _Atomic uint32_t hist[WEIR_HIST_BUCKETS];
};

/* The longest calls of a worker since the last time they were taken. One writer; version is odd while it changes. */
struct weir_slow_list {
    _Atomic uint32_t version, window;
    _Atomic int n;
    uint64_t least; /* of those kept, when the list is full: the writer's */
    struct {
        _Atomic uint64_t ticks;
        _Atomic int episode, camera, t;
    } calls[WEIR_SLOW_CALLS];
};

struct weir_source_cells {
    struct weir_source_cell *cells; /* of each camera: WEIR_SOURCES */
    struct weir_slow_list slow[WEIR_SOURCES];
    uint64_t unpack_ticks; /* of each frame that was fetched last */
};

/* All threads write, in ticks. */
struct weir_source_file {
    _Atomic uint64_t count, total, max;
};

struct weir_sources {
    int n_workers, n_cameras, n_files;
    struct weir_source_cells *workers;
    struct weir_source_file *files;
    _Atomic uint32_t window; /* how often the longest calls were taken */
    /* What was taken so far: the consumer's. */
    uint64_t *max_ns; /* of each file */
    int n_calls[WEIR_SOURCES];
    struct weir_source_call calls[WEIR_SOURCES][WEIR_SLOW_CALLS];
};

struct weir_worker;
struct weir_image;

int weir_sources_open(struct weir_sources *sources, int workers, int cameras, int files);
void weir_sources_close(struct weir_sources *sources);
/* weir_loader_sources. */
int weir_sources_take(struct weir_sources *sources, struct weir_source_figures **out);

/* The worker's times at one moment. */
struct weir_source_mark {
    uint64_t read, unpack, decode, bytes;
};
struct weir_source_mark weir_sources_mark(const struct weir_worker *worker);
/* Since the mark, the bytes of frames (at least 1) of one camera and file were got, image being the first. */
void weir_sources_fetched(struct weir_worker *worker, const struct weir_image *image, int frames,
                          const struct weir_source_mark *mark);
/* Since the mark the image was decoded, out of so many bytes. */
void weir_sources_decoded(struct weir_worker *worker, const struct weir_image *image, size_t bytes,
                          const struct weir_source_mark *mark);

#endif
