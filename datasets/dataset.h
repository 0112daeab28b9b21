/* dataset.h: where is frame (episode, camera, t)? A folder of robot episodes is indexed once; after that a frame is a
 * byte extent of a file, to be read by whoever likes. Reads no pixels. State and actions are read at open.
 *
 * A dataset that is open is read-only and may be used by any number of threads. Episodes, cameras and steps count from
 * 0. */
#ifndef WEIR_DATASETS_DATASET_H
#define WEIR_DATASETS_DATASET_H

#include "prof/err.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_dataset;

enum { WEIR_CAMERAS_MAX = 32, WEIR_NAME_MAX = 64 };

struct weir_dataset_config {
    const char *path;    /* a folder (searched for *.hdf5 and *.h5, sorted by name with numbers in order) or one file */
    const char *cameras; /* "a,b": these, in this order; NULL = all of the first episode, by name. Every episode must
                            have them */
    bool tolerant;       /* leave out episodes that cannot be opened and mark bad frames, instead of failing */
    void (*progress)(void *user, int done, int total); /* from the calling thread; may be NULL */
    void *user;
};

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
    const char *codec; /* "raw" or "jpeg" */
    int width, height; /* of raw frames; 0 when only the codec knows */
};
const struct weir_camera *weir_dataset_camera(const struct weir_dataset *dataset, int camera);

/* The files behind the extents: number, path, and what they looked like when indexed. */
struct weir_dataset_file {
    const char *path;
    uint64_t size_bytes, device, inode;
    int64_t mtime_ns;
};
int weir_dataset_files(const struct weir_dataset *dataset);
void weir_dataset_file(const struct weir_dataset *dataset, int file, struct weir_dataset_file *out);

/* ---- frames ---- */

enum weir_how {
    WEIR_HOW_EXTENT,  /* read the extent, then weir_unwrap */
    WEIR_HOW_LIBRARY, /* no extent: weir_fetch, a counted fallback */
};

struct weir_location {
    int file;
    uint64_t offset; /* what to read */
    size_t length;   /* at most weir_dataset_extent_max */
    size_t payload;  /* after weir_unwrap: the frame begins here in the bytes read */
    size_t payload_length;
    /* private to datasets/: the walk through a heap collection, NULL and zero elsewhere */
    struct weir_heap_slot *heap_slot;
    uint64_t heap_end, heap_at;
    uint32_t heap_objects;
};

/* Finds a frame. An enum weir_how, or -EBADMSG when its place is known to be bad (weir_frame_reason says why). */
int weir_locate(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_location *location);

/* Looks at the bytes read for location. 0: the frame is at payload. 1: read location (now another extent) and call
 * again. -EBADMSG: the file's structure does not hold what it promised; *reason (static text) says why. */
int weir_unwrap(const struct weir_dataset *dataset, struct weir_location *location, const uint8_t *bytes,
                const char **reason);

/* Reads a frame through the HDF5 library, under one lock. *length is its size; -ENOSPC (err not set) when that is over
 * capacity: call again with more. */
int weir_fetch(struct weir_dataset *dataset, int episode, int camera, int t, void *buffer, size_t capacity,
               size_t *length, struct weir_err *err);

/* Largest extent that weir_locate and weir_unwrap ask for, bytes. */
size_t weir_dataset_extent_max(const struct weir_dataset *dataset);

/* Bytes of the frame as stored (padding of rows included when its length is not known); 0 when only reading it would
 * tell. */
size_t weir_frame_stored_bytes(const struct weir_dataset *dataset, int episode, int camera, int t);

/* Writes "FILE: DATASET[t]" for messages, control characters as '?'. */
void weir_frame_name(const struct weir_dataset *dataset, int episode, int camera, int t, char *text, size_t size);
/* Why weir_locate refused this frame. */
void weir_frame_reason(const struct weir_dataset *dataset, int episode, int camera, int t, char *text, size_t size);

/* ---- description ---- */

struct weir_storage_counts {
    uint64_t contiguous, padded_rows, chunks, heap, library; /* frames by how they are stored and found */
};
void weir_dataset_storage(const struct weir_dataset *dataset, int camera, struct weir_storage_counts *counts);
const char *weir_dataset_episode_path(const struct weir_dataset *dataset, int episode);
const char *weir_dataset_layout(const struct weir_dataset *dataset, int episode);
/* The keys that state and actions came from in this episode. */
const char *weir_dataset_qpos_key(const struct weir_dataset *dataset, int episode);
const char *weir_dataset_action_key(const struct weir_dataset *dataset, int episode);
/* Episodes left out at open (tolerant), and why. */
int weir_dataset_bad_episodes(const struct weir_dataset *dataset);
const char *weir_dataset_bad_episode(const struct weir_dataset *dataset, int i);
/* Memory that the index takes, state and actions included. */
size_t weir_dataset_index_bytes(const struct weir_dataset *dataset);

/* Row i of the layout table for help and doctor; false past the end. */
bool weir_dataset_layout_row(int i, const char **name, const char **summary, const char **why_not);
/* "HDF5 1.10.8 (thread-safe build, one global lock)". */
void weir_dataset_library(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
