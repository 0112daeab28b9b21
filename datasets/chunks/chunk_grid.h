/* chunk_grid.h: arrays cut into chunks of equal size, as HDF5 and Zarr store them, and the bytes of a file. */
#ifndef WEIR_DATASETS_CHUNKS_CHUNK_GRID_H
#define WEIR_DATASETS_CHUNKS_CHUNK_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file's bytes. Addresses of 8 bytes and lengths of 8 bytes (the superblock's sizes). */
struct weir_raw_file {
    /* Reads n bytes at offset; 0 or -errno (-ENODATA past the end). */
    int (*read)(void *user, uint64_t offset, void *buffer, size_t n);
    void *user;
    uint64_t base;       /* added to addresses: the user block */
    uint64_t size_bytes; /* of the whole file */
};

/* Such a read of a file that is open: user is an int *, its descriptor. */
int weir_raw_read(void *user, uint64_t offset, void *buffer, size_t n);

enum { WEIR_GRID_RANK_MAX = 8 };

/* The dataset as its creator declared it; elements of element_bytes. */
struct weir_chunk_grid {
    int rank; /* 1..WEIR_GRID_RANK_MAX */
    uint64_t dims[WEIR_GRID_RANK_MAX], chunk[WEIR_GRID_RANK_MAX];
    uint64_t max_dims[WEIR_GRID_RANK_MAX]; /* UINT64_MAX = unlimited */
    uint32_t element_bytes;
    bool filtered;
};

/* One chunk. */
struct weir_chunk {
    uint64_t offset; /* in the file, base included; WEIR_CHUNK_NONE = never written */
    uint32_t bytes;  /* as stored */
    uint32_t mask;   /* bit i set: filter number i was not applied */
};
#define WEIR_CHUNK_NONE UINT64_MAX
/* The index names an offset outside the file, or an impossible size; bytes is 0. The chunk's content is lost. */
#define WEIR_CHUNK_BAD (UINT64_MAX - 1)

/* Number of chunks that cover dims, row-major order in which weir_chunk_index numbers them; 0 when a dimension of the
 * chunk is 0 or the number overflows 32 bits. Dimensions of 0 give 0 as well. */
uint32_t weir_chunk_grid_count(const struct weir_chunk_grid *grid);

/* Bytes of one unpacked chunk; 0 when that overflows 32 bits. */
uint32_t weir_chunk_grid_bytes(const struct weir_chunk_grid *grid);

#endif
