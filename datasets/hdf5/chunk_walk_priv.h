/* chunk_walk_priv.h: shared by the walks over chunk indexes. */
#ifndef WEIR_DATASETS_HDF5_CHUNK_WALK_PRIV_H
#define WEIR_DATASETS_HDF5_CHUNK_WALK_PRIV_H

#include "datasets/chunks/heap.h"
#include "datasets/hdf5/chunk_index.h"

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

/* ---- object headers ---- */

enum weir_index_kind {
    WEIR_INDEX_BTREE1,
    WEIR_INDEX_SINGLE,
    WEIR_INDEX_IMPLICIT,
    WEIR_INDEX_FIXED,
    WEIR_INDEX_EXTENSIBLE,
    WEIR_INDEX_BTREE2
};

struct weir_layout_message {
    enum weir_index_kind kind;
    uint64_t address; /* of the index (of the chunk: single, implicit), without base; UINT64_MAX = nothing written */
    bool partial_unfiltered; /* chunks that reach over the edge are stored as they are */
    uint64_t single_bytes;   /* single chunk: as stored; 0 = not filtered */
    uint32_t single_mask;
};

/* Finds the message and compares it with the grid that the library reported. Codes as weir_chunk_index. */
int weir_layout_message_read(const struct weir_raw_file *file, uint64_t object_address,
                             const struct weir_chunk_grid *grid, struct weir_layout_message *message,
                             const char **reason);

/* Checksum of HDF5 metadata: Bob Jenkins' lookup3, hashlittle with initial value 0. */
uint32_t weir_lookup3(const uint8_t *bytes, size_t n);
/* The last 4 of the n bytes are the checksum of those before. */
bool weir_checksum_holds(const uint8_t *bytes, size_t n);

#endif
