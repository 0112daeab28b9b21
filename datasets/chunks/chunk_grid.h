/* chunk_grid.h: arrays that are cut into chunks of equal size, as in HDF5 and Zarr, and the interface for reading a
 * file. */
#ifndef WEIR_DATASETS_CHUNKS_CHUNK_GRID_H
#define WEIR_DATASETS_CHUNKS_CHUNK_GRID_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file to read. Its addresses and lengths have 8 bytes, as the superblock must declare. */
struct weir_raw_file {
    /* Reads n bytes at offset. Returns 0 or -errno; -ENODATA if the range extends past the end. */
    int (*read)(void *user, uint64_t offset, void *buffer, size_t n);
    void *user;
    uint64_t base;       /* size of the user block, which is added to addresses */
    uint64_t size_bytes; /* size of the whole file */
};

/* Reads from an open file; user points to its descriptor, an int. */
int weir_raw_read(void *user, uint64_t offset, void *buffer, size_t n);

enum { WEIR_GRID_RANK_MAX = 8 };

/* The declared shape of an array whose elements have element_bytes bytes. */
struct weir_chunk_grid {
    int rank; /* 1..WEIR_GRID_RANK_MAX */
    uint64_t dims[WEIR_GRID_RANK_MAX], chunk[WEIR_GRID_RANK_MAX];
    uint64_t max_dims[WEIR_GRID_RANK_MAX]; /* maximum dimensions; UINT64_MAX = unlimited */
    uint32_t element_bytes;
    bool filtered;
};

struct weir_chunk {
    uint64_t offset; /* offset in the file, including base; WEIR_CHUNK_NONE = never written */
    uint32_t bytes;  /* size as stored */
    uint32_t mask;   /* bit i is set if filter i was not applied */
};
#define WEIR_CHUNK_NONE UINT64_MAX
/* Value of offset if the index contains an offset outside the file or an impossible size. bytes is then 0, and the
 * contents of the chunk are lost. */
#define WEIR_CHUNK_BAD (UINT64_MAX - 1)

/* Returns the number of chunks that cover dims; weir_chunk_index numbers them in row-major order. Returns 0 if a
 * dimension is 0, or if the number exceeds 32 bits. */
uint32_t weir_chunk_grid_count(const struct weir_chunk_grid *grid);

/* Returns the size of an unpacked chunk, or 0 if it exceeds 32 bits. */
uint32_t weir_chunk_grid_bytes(const struct weir_chunk_grid *grid);

/* Checks what each worker allocates to unpack a chunk, if `stored` bytes exist of all chunks: 256 MiB, because frames
 * can be black, or what weir_claim_fits allows. Returns 0, or -EFBIG with an error that does not name the array. */
int weir_chunk_grid_claim(const struct weir_chunk_grid *grid, uint64_t stored, struct weir_err *err);

#endif
