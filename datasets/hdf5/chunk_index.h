/* chunk_index.h: where the chunks of an HDF5 dataset lie, found by plain reads of the file.
 *
 * The HDF5 library (1.10) answers this question in time that grows with the number of chunks for each chunk, and under
 * one lock. Here the dataset's object header is read for its layout message, and the index that it names is walked
 * once: version 1 B-tree, single chunk, implicit, fixed array, extensible array, version 2 B-tree (HDF5 File Format
 * Specification 3.0, sections III.A.1, III.A.2, IV.A, VII). Checksums are verified where the format has them. Every
 * byte is taken to be hostile: nothing is read outside the file, depth and numbers of nodes are bounded by what the
 * grid can need. */
#ifndef WEIR_DATASETS_HDF5_CHUNK_INDEX_H
#define WEIR_DATASETS_HDF5_CHUNK_INDEX_H

#include "datasets/chunks/chunk_grid.h"

/* Fills chunks (weir_chunk_grid_count of them, row-major). object_address: of the dataset's object header, without base
 * (what H5Oget_info gives). Chunks in the index that lie outside dims (left over from a shrunk dataset) are passed
 * over. 0; -ENOTSUP: a kind of index or header that is not read here, *reason names it: ask the library; -EBADMSG:
 * corrupt, *reason (static text) names what; -ENOMEM; or what read returned. Every chunk returned lies inside the file
 * and unfiltered ones have exactly the size of a chunk, or it is WEIR_CHUNK_BAD; when no other was written, the whole
 * is corrupt. */
int weir_chunk_index(const struct weir_raw_file *file, uint64_t object_address, const struct weir_chunk_grid *grid,
                     struct weir_chunk *chunks, const char **reason);

#endif
