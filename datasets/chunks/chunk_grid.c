#include "datasets/chunks/chunk_grid.h"
#include "base/claims.h"
#include "base/files.h"

#include <errno.h>

enum { CHUNK_SPARE = 256 << 20 };

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

int weir_chunk_grid_claim(const struct weir_chunk_grid *grid, uint64_t stored, struct weir_err *err)
{
    uint32_t bytes = weir_chunk_grid_bytes(grid);
    if (bytes > 0 && (bytes <= CHUNK_SPARE || weir_claim_fits(bytes, stored)))
        return 0;
    return weir_err_set(
        err, -EFBIG,
        "each chunk takes %s%u MiB of memory, but all of them are stored in %llu bytes; rewrite it with "
        "chunks of fewer frames",
        bytes ? "" : "over ", (bytes ? bytes : UINT32_MAX) >> 20, (unsigned long long)stored);
}
