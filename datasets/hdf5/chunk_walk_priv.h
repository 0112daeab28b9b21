/* chunk_walk_priv.h: what the walks over chunk indexes share. */
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
    uint64_t count[WEIR_GRID_RANK_MAX];     /* chunks along each dimension, as far as the dataset goes */
    uint64_t max_count[WEIR_GRID_RANK_MAX]; /* as far as it may grow; UINT64_MAX = unlimited */
    uint32_t good, bad;                     /* chunks noted */
    const char *why_bad;                    /* the first of them */
    uint64_t steps, steps_max; /* nodes and entries visited: bounds a walk through an index that leads back to itself */
};

int weir_walk_bad(struct weir_walk *walk, const char *text);
/* n bytes at an address; -EBADMSG when they are not inside the file. */
int weir_walk_read(struct weir_walk *walk, uint64_t address, void *buffer, uint64_t n);
/* The same into new memory (free it), with a check of signature, version 0 and the checksum at the end. */
int weir_walk_block(struct weir_walk *walk, uint64_t address, const char *signature, uint64_t n, uint8_t **bytes);
/* Counts n more steps; false when it is too many. */
bool weir_walk_step(struct weir_walk *walk, uint64_t n);

/* Notes a chunk by its place in the grid (in chunks). Those outside the dataset are passed over. */
int weir_walk_note(struct weir_walk *walk, const uint64_t *scaled, uint64_t address, uint64_t bytes, uint32_t mask);

/* Each kind of index, from its address on. */
int weir_walk_btree1(struct weir_walk *walk, uint64_t address);
int weir_walk_btree2(struct weir_walk *walk, uint64_t address);
int weir_walk_fixed(struct weir_walk *walk, uint64_t address);
int weir_walk_extensible(struct weir_walk *walk, uint64_t address);

#endif
