/* chunk_index.h: locates the chunks of an HDF5 dataset by plain reads of the file.
 *
 * The HDF5 library (1.10) locates one chunk in time proportional to their number, under one lock. This code reads the
 * layout message of the dataset's object header and walks the index once: version 1 B-tree, single chunk, implicit,
 * fixed array, extensible array, version 2 B-tree (HDF5 File Format Specification 3.0, sections III.A.1, III.A.2, IV.A,
 * VII). It verifies the format's checksums. Every byte is hostile: nothing outside the file is read, and the grid
 * bounds depth and number of nodes. */
#ifndef WEIR_DATASETS_HDF5_CHUNK_INDEX_H
#define WEIR_DATASETS_HDF5_CHUNK_INDEX_H

#include "datasets/chunks/chunk_grid.h"

/* Fills chunks (weir_chunk_grid_count of them, row-major). object_address: of the dataset's object header, without base
 * (as from H5Oget_info). Ignores chunks outside dims, left over from a shrunk dataset. 0; -ENOTSUP with *reason for an
 * unknown index or header, which only the library can read; -EBADMSG with *reason (static text) for a corrupt one;
 * -ENOMEM; or an error of read. Each returned chunk lies inside the file, and has the exact size if unfiltered, or is
 * WEIR_CHUNK_BAD. If all written chunks are bad, the index is corrupt. */
int weir_chunk_index(const struct weir_raw_file *file, uint64_t object_address, const struct weir_chunk_grid *grid,
                     struct weir_chunk *chunks, const char **reason);

#endif
