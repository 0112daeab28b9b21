/* chunk_walk_priv.h: shared by the walks over chunk indexes. */
#ifndef WEIR_DATASETS_HDF5_CHUNK_WALK_PRIV_H
#define WEIR_DATASETS_HDF5_CHUNK_WALK_PRIV_H

#include "datasets/chunks/heap.h"
#include "datasets/hdf5/object_header_priv.h"

struct weir_walk {
    const struct weir_raw_file *file;
    const struct weir_chunk_grid *grid;
    const struct weir_layout_message *layout;
    struct weir_chunk *chunks;
    const char **reason;
    uint32_t n_chunks, chunk_bytes;
    uint64_t count[WEIR_GRID_RANK_MAX];     /* chunks along each dimension of the dataset */
    uint64_t max_count[WEIR_GRID_RANK_MAX]; /* of its maximum size; UINT64_MAX = unlimited */
    uint32_t good, bad;                     /* chunks recorded */
    const char *why_bad;                    /* for the first bad chunk */
    uint64_t steps, steps_max;              /* nodes and entries visited: bounds the walk through a cyclic index */
};

int weir_walk_bad(struct weir_walk *walk, const char *text);
/* Reads n bytes at an address; -EBADMSG for a range outside the file. */
int weir_walk_read(struct weir_walk *walk, uint64_t address, void *buffer, uint64_t n);
/* The same into new memory (free it), and checks signature, version 0 and the checksum at the end. */
int weir_walk_block(struct weir_walk *walk, uint64_t address, const char *signature, uint64_t n, uint8_t **bytes);
/* Counts n more steps; false above the limit. */
bool weir_walk_step(struct weir_walk *walk, uint64_t n);

/* Records a chunk by its place in the grid (in chunks). Ignores chunks outside the dataset. */
int weir_walk_note(struct weir_walk *walk, const uint64_t *scaled, uint64_t address, uint64_t bytes, uint32_t mask);

/* One walk per kind of index, from its address. */
int weir_walk_btree1(struct weir_walk *walk, uint64_t address);
int weir_walk_btree2(struct weir_walk *walk, uint64_t address);
int weir_walk_fixed(struct weir_walk *walk, uint64_t address);
int weir_walk_extensible(struct weir_walk *walk, uint64_t address);

#endif
