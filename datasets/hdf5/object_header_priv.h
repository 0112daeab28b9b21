/* object_header_priv.h: the layout message of an HDF5 dataset (File Format Specification 3.0, IV.A.1, IV.A.2.i). */
#ifndef WEIR_DATASETS_HDF5_OBJECT_HEADER_PRIV_H
#define WEIR_DATASETS_HDF5_OBJECT_HEADER_PRIV_H

#include "datasets/hdf5/chunk_index.h"

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
