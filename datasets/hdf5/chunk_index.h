/* chunk_index.h: locates the chunks of an HDF5 dataset by reading the file directly.
 *
 * The HDF5 library (1.10) needs time proportional to the number of chunks to locate one of them, and holds its global
 * lock meanwhile. This code reads the layout message of the dataset's object header and walks the index once: version 1
 * B-tree, single chunk, implicit, fixed array, extensible array or version 2 B-tree (HDF5 File Format
 * Specification 3.0, sections III.A.1, III.A.2, IV.A, VII). It verifies the format's checksums. Every byte is hostile:
 * nothing outside the file is read, and the grid limits the depth and the number of nodes. */
#ifndef WEIR_DATASETS_HDF5_CHUNK_INDEX_H
#define WEIR_DATASETS_HDF5_CHUNK_INDEX_H

#include "datasets/chunks/chunk_grid.h"

/* Fills chunks, which has weir_chunk_grid_count elements in row-major order. object_address: address of the dataset's
 * object header, without base (as from H5Oget_info). Ignores chunks outside dims, which remain after a dataset was
 * shrunk. Returns 0; -ENOTSUP with *reason for an unknown index or header, which only the library can read; -EBADMSG
 * with *reason (a static string) for a corrupt index or header; -ENOMEM; or an error of file->read. Each returned chunk
 * lies inside the file and, if unfiltered, has the exact size; otherwise it is WEIR_CHUNK_BAD. If all written chunks
 * are bad, the index counts as corrupt. */
int weir_chunk_index(const struct weir_raw_file *file, uint64_t object_address, const struct weir_chunk_grid *grid,
                     struct weir_chunk *chunks, const char **reason);

#endif
