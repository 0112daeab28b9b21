/* chunk_grid.h: arrays cut into chunks of equal size, as in HDF5 and Zarr, and reads of a file. */
#ifndef WEIR_DATASETS_CHUNKS_CHUNK_GRID_H
#define WEIR_DATASETS_CHUNKS_CHUNK_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file's bytes. Addresses and lengths have 8 bytes (the superblock's sizes). */
struct weir_raw_file {
    /* Reads n bytes at offset; 0 or -errno (-ENODATA past the end). */
    int (*read)(void *user, uint64_t offset, void *buffer, size_t n);
    void *user;
    uint64_t base;       /* added to addresses: the user block */
    uint64_t size_bytes; /* of the whole file */
};

/* Reads an open file: user is an int *, its descriptor. */
int weir_raw_read(void *user, uint64_t offset, void *buffer, size_t n);

enum { WEIR_GRID_RANK_MAX = 8 };

/* The array's declared shape; elements have element_bytes. */
struct weir_chunk_grid {
    int rank; /* 1..WEIR_GRID_RANK_MAX */
    uint64_t dims[WEIR_GRID_RANK_MAX], chunk[WEIR_GRID_RANK_MAX];
    uint64_t max_dims[WEIR_GRID_RANK_MAX]; /* UINT64_MAX = unlimited */
    uint32_t element_bytes;
    bool filtered;
};

struct weir_chunk {
    uint64_t offset; /* in the file, base included; WEIR_CHUNK_NONE = never written */
    uint32_t bytes;  /* as stored */
    uint32_t mask;   /* bit i set: filter number i was not applied */
};
#define WEIR_CHUNK_NONE UINT64_MAX
/* The index names an offset outside the file, or an impossible size; bytes is 0. The chunk's contents are lost. */
#define WEIR_CHUNK_BAD (UINT64_MAX - 1)

/* Returns the number of chunks that cover dims, which weir_chunk_index numbers in row-major order; 0 for a dimension of
 * 0, or when the number exceeds 32 bits. */
uint32_t weir_chunk_grid_count(const struct weir_chunk_grid *grid);

/* Returns the size of an unpacked chunk; 0 when it exceeds 32 bits. */
uint32_t weir_chunk_grid_bytes(const struct weir_chunk_grid *grid);

#endif
