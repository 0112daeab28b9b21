/* index_priv.h: the index in memory, and how it is built. */
#ifndef WEIR_DATASETS_INDEX_PRIV_H
#define WEIR_DATASETS_INDEX_PRIV_H

#include "datasets/dataset.h"
#include "datasets/dataset_ops.h"

#include <stdatomic.h>

/* One frame in a global heap: its reference and, once somebody has found it, where its bytes begin. */
struct weir_heap_slot {
    struct weir_heap_ref ref;
    _Atomic uint64_t payload; /* offset in the file; 0 = not found yet */
};

/* One camera of one episode. */
struct weir_track {
    char *key; /* path of the dataset */
    const char *codec;
    int width, height; /* raw only */
    enum weir_h5_storage storage;
    bool padded;
    uint64_t base;                /* contiguous */
    size_t row_bytes;             /* contiguous, chunks */
    uint64_t *offsets;            /* chunks */
    uint32_t *lengths;            /* used bytes of each row; NULL = all; LENGTH_BAD = marked bad at open */
    struct weir_heap_slot *slots; /* heap */
};

enum { WEIR_LENGTH_BAD = UINT32_MAX };

struct weir_episode {
    struct weir_dataset_file file; /* path is owned */
    const struct weir_layout_ops *layout;
    int steps;
    int qpos_dim, action_dim;
    char *qpos_key, *action_key;
    float *qpos, *actions;
    int n_tracks;
    struct weir_track *tracks;
    char (*names)[WEIR_NAME_MAX]; /* cameras, in the order of tracks */
    char *passed_over;            /* names of cameras that nobody asked for, "a, b"; may be NULL */
    size_t bytes;                 /* memory taken */
};

struct weir_dataset {
    int n_episodes;
    struct weir_episode *episodes;
    int n_cameras;
    struct weir_camera cameras[WEIR_CAMERAS_MAX];
    int n_bad, n_misfits; /* episodes left out; those of them that only do not fit the first one */
    char **bad;
    size_t extent_max;
    struct weir_h5_cache *cache; /* of files opened for weir_fetch; under the HDF5 lock */
};

/* Describes one file. cameras: as in weir_dataset_config; others are not looked at. tolerant: bad frame lengths are
 * marked instead of refused. */
int weir_episode_open(struct weir_episode *episode, const char *path, const char *cameras, bool tolerant,
                      struct weir_err *err);
void weir_episode_close(struct weir_episode *episode);
/* -ESTALE when the file is not the one that was indexed. */
int weir_episode_check(const struct weir_episode *episode, struct weir_err *err);

/* Sorted list of the episode files below path, or path itself. */
int weir_scan(const char *path, char ***files, int *n, struct weir_err *err);
void weir_scan_free(char **files, int n);

/* How well a camera's name answers to what was asked for (length bytes): 2 the name itself, 1 "main" for rgb_main, 0
 * not. */
int weir_name_answers(const char *name, const char *asked, size_t length);

const struct weir_layout_ops *weir_layout_of(struct weir_h5 *h5);

/* Largest extent that a frame of the track can ask for. */
size_t weir_track_extent_max(const struct weir_track *track, int steps, uint64_t file_bytes);

/* Held around every call that enters the HDF5 library: its thread-safe build has one global lock anyway. */
void weir_h5_lock(void);
void weir_h5_unlock(void);

#endif
