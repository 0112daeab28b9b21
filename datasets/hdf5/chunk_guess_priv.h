/* chunk_guess_priv.h: the chunk shape that h5py chooses by default. */
#ifndef WEIR_DATASETS_HDF5_CHUNK_GUESS_PRIV_H
#define WEIR_DATASETS_HDF5_CHUNK_GUESS_PRIV_H

#include <stddef.h>
#include <stdint.h>

/* dims: `rank` (at least 1) sizes, slowest first; 0 = unlimited. chunk gets `rank` sizes. */
void weir_chunk_guess(const uint64_t *dims, int rank, size_t element_bytes, uint64_t *chunk);

#endif
