#include "datasets/chunks/chunk_grid.h"
#include "base/files.h"

int weir_raw_read(void *user, uint64_t offset, void *buffer, size_t n)
{
    const int *fd = user;
    return weir_read_at(*fd, offset, buffer, n);
}

uint32_t weir_chunk_grid_count(const struct weir_chunk_grid *grid)
{
    uint64_t n = 1;
    for (int i = 0; i < grid->rank; i++) {
        if (grid->chunk[i] == 0)
            return 0;
        uint64_t along = grid->dims[i] / grid->chunk[i] + (grid->dims[i] % grid->chunk[i] != 0);
        if (__builtin_mul_overflow(n, along, &n) || n > UINT32_MAX)
            return 0;
    }
    return (uint32_t)n;
}

uint32_t weir_chunk_grid_bytes(const struct weir_chunk_grid *grid)
{
    uint64_t n = grid->element_bytes;
    for (int i = 0; i < grid->rank; i++)
        if (__builtin_mul_overflow(n, grid->chunk[i], &n) || n > UINT32_MAX)
            return 0;
    return (uint32_t)n;
}
