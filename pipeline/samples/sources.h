/* sources.h: times of reading and decoding per camera, times of reading per file, and the longest calls. Workers write
 * to their own cells, and to one row per file that all workers share. This adds no locks, no allocations and no clock
 * readings, because durations are differences of the worker's zone sums.
 *
 * Reading is the time of 03c_read_bytes without nested stages: a read from the page cache or from storage, the wait for
 * a pending read-ahead, or the time in the HDF5 helper process (without the wait for its turn). Decoding is the time of
 * 03b_image_decode and 05_to_tensor_normalize, plus the frame's part of 03d_inflate and 03j_video_decode. For frames
 * that a GPU decodes, only the reading is counted. Frames from the decode cache and copies within a batch are not
 * counted. */
#ifndef WEIR_PIPELINE_SAMPLES_SOURCES_H
#define WEIR_PIPELINE_SAMPLES_SOURCES_H

#include "weir/loader.h"

#include <stdatomic.h>

enum { WEIR_SLOW_CALLS = WEIR_SOURCE_CALLS };

/* One worker's calls of one kind for one camera, in ticks. Written only by this worker. */
struct weir_source_cell {
    _Atomic uint64_t count, total, min, max, bytes;
    _Atomic uint32_t hist[WEIR_HIST_BUCKETS];
};

/* The longest calls of a worker since the list was last taken. Written only by this worker. version is odd during a
 * change. */
struct weir_slow_list {
    _Atomic uint32_t version, window;
    _Atomic int n;
    uint64_t least; /* shortest call kept if the list is full, else 0; used only by the worker */
    struct {
        _Atomic uint64_t ticks;
        _Atomic int episode, camera, t;
    } calls[WEIR_SLOW_CALLS];
};

struct weir_source_cells {
    struct weir_source_cell *cells; /* WEIR_SOURCES cells per camera */
    struct weir_slow_list slow[WEIR_SOURCES];
    uint64_t unpack_ticks; /* unpacking time of each frame of the last fetch */
};

/* Times are in ticks. All threads write. */
struct weir_source_file {
    _Atomic uint64_t count, total, max;
};

struct weir_sources {
    int n_workers, n_cameras, n_files;
    struct weir_source_cells *workers;
    struct weir_source_file *files;
    _Atomic uint32_t window; /* number of takes of the longest calls so far */
    /* Results so far; used by the consumer only. */
    uint64_t *max_ns; /* per file */
    int n_calls[WEIR_SOURCES];
    struct weir_source_call calls[WEIR_SOURCES][WEIR_SLOW_CALLS];
};

struct weir_fetcher;
struct weir_image;

int weir_sources_open(struct weir_sources *sources, int workers, int cameras, int files);
void weir_sources_close(struct weir_sources *sources);
/* Implements weir_loader_sources. */
int weir_sources_take(struct weir_sources *sources, struct weir_source_figures **out);
/* A window of several takes begins at these figures. begin_window empties their window_calls and window_max_ns, and
 * widen adds those of each later take. All parameters may be NULL. */
void weir_sources_begin_window(struct weir_source_figures *since);
void weir_sources_widen(struct weir_source_figures *since, const struct weir_source_figures *taken);

/* Totals of the calling worker at one moment, in ticks and bytes. */
struct weir_source_mark {
    uint64_t read, unpack, decode, bytes;
};
struct weir_source_mark weir_sources_mark(const struct weir_fetcher *fetcher);
/* Adds the time since the mark to the reads of the worker, which fetched `frames` frames (at least 1) of one camera and
 * file; image is the first of them. Returns the ticks spent on reading. */
uint64_t weir_sources_fetched(struct weir_sources *sources, int worker, const struct weir_fetcher *fetcher,
                              const struct weir_image *image, int frames, const struct weir_source_mark *mark);
/* For frames that are decoded while they are fetched: the time since the mark that was spent on unpacking belongs to
 * the next frame of weir_sources_decoded. Moves the mark. */
void weir_sources_unpacked(struct weir_sources *sources, int worker, const struct weir_fetcher *fetcher,
                           struct weir_source_mark *mark);
/* Adds the time since the mark to the decodings of the worker, which decoded the image from this many bytes. */
void weir_sources_decoded(struct weir_sources *sources, int worker, const struct weir_image *image, size_t bytes,
                          const struct weir_source_mark *mark);

#endif
