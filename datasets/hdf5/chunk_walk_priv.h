/* chunk_walk_priv.h: declarations that the walks over chunk indexes share. */
#ifndef WEIR_DATASETS_HDF5_CHUNK_WALK_PRIV_H
#define WEIR_DATASETS_HDF5_CHUNK_WALK_PRIV_H

#include "datasets/chunks/chunk_grid.h"
#include "datasets/chunks/heap.h"

/* ---- chunk_index.c: locates the chunks of an HDF5 dataset by reading the file directly.
 *
 * The HDF5 library (1.10) needs time proportional to the number of chunks to locate one of them, and holds its global
 * lock meanwhile. This code reads the layout message of the dataset's object header and walks the index once: version 1
 * B-tree, single chunk, implicit, fixed array, extensible array or version 2 B-tree (HDF5 File Format
 * Specification 3.0, sections III.A.1, III.A.2, IV.A, VII). It verifies the format's checksums. Every byte is hostile:
 * nothing outside the file is read, and the grid limits the depth and the number of nodes. */

/* Fills chunks, which has weir_chunk_grid_count elements in row-major order. object_address: address of the dataset's
 * object header, without base (as from H5Oget_info). Ignores chunks outside dims, which remain after a dataset was
 * shrunk. Returns 0; -ENOTSUP with *reason for an unknown index or header, which only the library can read; -EBADMSG
 * with *reason (a static string) for a corrupt index or header; -ENOMEM; or an error of file->read. Each returned chunk
 * lies inside the file and, if unfiltered, has the exact size; otherwise it is WEIR_CHUNK_BAD. If all written chunks
 * are bad, the index counts as corrupt. */
int weir_chunk_index(const struct weir_raw_file *file, uint64_t object_address, const struct weir_chunk_grid *grid,
                     struct weir_chunk *chunks, const char **reason);

/* ---- the walk */

struct weir_walk {
    const struct weir_raw_file *file;
    const struct weir_chunk_grid *grid;
    const struct weir_layout_message *layout;
    struct weir_chunk *chunks;
    const char **reason;
    uint32_t n_chunks, chunk_bytes;
    uint64_t count[WEIR_GRID_RANK_MAX];     /* chunks along each dimension of the dataset */
    uint64_t max_count[WEIR_GRID_RANK_MAX]; /* chunks along each dimension of the dataset's maximum size; UINT64_MAX =
                                               unlimited */
    uint32_t good, bad;                     /* number of chunks recorded as good and as bad */
    const char *why_bad;                    /* reason for the first bad chunk */
    uint64_t steps, steps_max; /* number of nodes and entries visited; the limit ends a walk through a cyclic index */
};

int weir_walk_bad(struct weir_walk *walk, const char *text);
/* Reads n bytes at an address. Returns -EBADMSG if the range is not inside the file. */
int weir_walk_read(struct weir_walk *walk, uint64_t address, void *buffer, uint64_t n);
/* Like weir_walk_read, but into new memory, which the caller frees. Also checks the signature, version 0 and the
 * checksum at the end of the block. */
int weir_walk_block(struct weir_walk *walk, uint64_t address, const char *signature, uint64_t n, uint8_t **bytes);
/* Counts n more steps. Returns false if the limit is exceeded. */
bool weir_walk_step(struct weir_walk *walk, uint64_t n);

/* Records the chunk at a position in the grid, which is in units of chunks. Ignores chunks outside the dataset. */
int weir_walk_note(struct weir_walk *walk, const uint64_t *scaled, uint64_t address, uint64_t bytes, uint32_t mask);

/* One walk per kind of index. address: the address of the index. */
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
    uint64_t address; /* address of the index, or of the chunk (single, implicit), without base; UINT64_MAX = nothing
                         was written */
    bool partial_unfiltered; /* chunks that extend past the edge of the dataset are stored unfiltered */
    uint64_t single_bytes;   /* stored size of a single chunk; 0 = not filtered */
    uint32_t single_mask;
};

/* Finds the layout message and compares it with the grid that the library reported. Returns the same codes as
 * weir_chunk_index. */
int weir_layout_message_read(const struct weir_raw_file *file, uint64_t object_address,
                             const struct weir_chunk_grid *grid, struct weir_layout_message *message,
                             const char **reason);

/* Returns true if the last 4 of the n bytes are the checksum (weir_lookup3) of the preceding bytes. */
bool weir_checksum_holds(const uint8_t *bytes, size_t n);

#endif
