#include "base/files.h"
#include "datasets/hdf5/chunk_walk_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- common to all walks ---- */

int weir_walk_bad(struct weir_walk *walk, const char *text)
{
    *walk->reason = text;
    return -EBADMSG;
}

int weir_walk_read(struct weir_walk *walk, uint64_t address, void *buffer, uint64_t n)
{
    uint64_t offset, size = walk->file->size_bytes;
    if (__builtin_add_overflow(address, walk->file->base, &offset) || offset > size || n > size - offset)
        return weir_walk_bad(walk, "the index extends past the end of the file");
    return walk->file->read(walk->file->user, offset, buffer, n);
}

int weir_walk_block(struct weir_walk *walk, uint64_t address, const char *signature, uint64_t n, uint8_t **bytes)
{
    *bytes = NULL;
    if (n > walk->file->size_bytes)
        return weir_walk_bad(walk, "the index extends past the end of the file");
    uint8_t *data = malloc(n);
    int rc = data ? weir_walk_read(walk, address, data, n) : -ENOMEM;
    if (rc == 0 && (memcmp(data, signature, 4) != 0 || data[4] != 0))
        rc = weir_walk_bad(walk, "a part of the index is not at the expected address");
    if (rc == 0 && !weir_checksum_holds(data, n))
        rc = weir_walk_bad(walk, "a checksum of the index is wrong");
    if (rc < 0) {
        free(data);
        return rc;
    }
    *bytes = data;
    return 0;
}

bool weir_walk_step(struct weir_walk *walk, uint64_t n)
{
    walk->steps += n;
    return walk->steps <= walk->steps_max;
}

static bool is_edge(const struct weir_walk *walk, const uint64_t *scaled)
{
    for (int i = 0; i < walk->grid->rank; i++)
        if ((scaled[i] + 1) * walk->grid->chunk[i] > walk->grid->dims[i])
            return true;
    return false;
}

/* A wrong address loses only its own chunk. The other frames remain readable. */
static int note_bad(struct weir_walk *walk, struct weir_chunk *chunk, const char *why)
{
    *chunk = (struct weir_chunk){.offset = WEIR_CHUNK_BAD};
    if (walk->bad++ == 0)
        walk->why_bad = why;
    return 0;
}

int weir_walk_note(struct weir_walk *walk, const uint64_t *scaled, uint64_t address, uint64_t bytes, uint32_t mask)
{
    uint64_t i = 0, offset, size = walk->file->size_bytes;
    for (int d = 0; d < walk->grid->rank; d++) {
        if (scaled[d] >= walk->count[d])
            return 0;
        i = i * walk->count[d] + scaled[d];
    }
    if (address == UINT64_MAX)
        return 0; /* the chunk was never written */
    struct weir_chunk *chunk = &walk->chunks[i];
    if (chunk->offset != WEIR_CHUNK_NONE)
        return weir_walk_bad(walk, "the index contains a chunk twice");
    bool plain = !walk->grid->filtered;
    if (walk->layout->partial_unfiltered && is_edge(walk, scaled)) {
        plain = true;
        mask = UINT32_MAX;
    }
    if (bytes == 0 || bytes > UINT32_MAX || (plain && bytes != walk->chunk_bytes))
        return note_bad(walk, chunk, "a chunk has an impossible size");
    if (__builtin_add_overflow(address, walk->file->base, &offset) || offset > size || bytes > size - offset)
        return note_bad(walk, chunk, "a chunk extends past the end of the file");
    walk->good++;
    *chunk = (struct weir_chunk){offset, (uint32_t)bytes, mask};
    return 0;
}

/* ---- indexes without nodes ---- */

static int walk_single(struct weir_walk *walk)
{
    uint64_t scaled[WEIR_GRID_RANK_MAX] = {0};
    uint64_t bytes = walk->layout->single_bytes ? walk->layout->single_bytes : walk->chunk_bytes;
    return weir_walk_note(walk, scaled, walk->layout->address, bytes, walk->layout->single_mask);
}

/* Chunks are contiguous, in the order of the grid of the dataset's maximum size. */
static int walk_implicit(struct weir_walk *walk)
{
    int rank = walk->grid->rank, rc = 0;
    for (uint32_t i = 0; i < walk->n_chunks && rc == 0; i++) {
        uint64_t scaled[WEIR_GRID_RANK_MAX], rest = i, at = 0;
        for (int d = rank - 1; d >= 0; d--) {
            scaled[d] = rest % walk->count[d];
            rest /= walk->count[d];
        }
        bool over = false;
        for (int d = 0; d < rank; d++)
            over |= __builtin_mul_overflow(at, walk->max_count[d], &at) || __builtin_add_overflow(at, scaled[d], &at);
        over |= __builtin_mul_overflow(at, (uint64_t)walk->chunk_bytes, &at) ||
                __builtin_add_overflow(at, walk->layout->address, &at);
        rc = over ? weir_walk_bad(walk, "a chunk extends past the end of the file")
                  : weir_walk_note(walk, scaled, at, walk->chunk_bytes, 0);
    }
    return rc;
}

static int walk_index(struct weir_walk *walk)
{
    switch (walk->layout->kind) {
    case WEIR_INDEX_BTREE1:
        return weir_walk_btree1(walk, walk->layout->address);
    case WEIR_INDEX_SINGLE:
        return walk_single(walk);
    case WEIR_INDEX_IMPLICIT:
        return walk_implicit(walk);
    case WEIR_INDEX_FIXED:
        return weir_walk_fixed(walk, walk->layout->address);
    case WEIR_INDEX_EXTENSIBLE:
        return weir_walk_extensible(walk, walk->layout->address);
    case WEIR_INDEX_BTREE2:
        return weir_walk_btree2(walk, walk->layout->address);
    }
    return -ENOTSUP;
}

int weir_chunk_index(const struct weir_raw_file *file, uint64_t object_address, const struct weir_chunk_grid *grid,
                     struct weir_chunk *chunks, const char **reason)
{
    enum { STEPS_MIN = 65536, STEPS_PER_CHUNK = 8 };
    struct weir_layout_message layout;
    struct weir_walk walk = {.file = file, .grid = grid, .layout = &layout, .chunks = chunks, .reason = reason};
    walk.n_chunks = weir_chunk_grid_count(grid);
    walk.chunk_bytes = weir_chunk_grid_bytes(grid);
    walk.steps_max = STEPS_MIN + (uint64_t)STEPS_PER_CHUNK * walk.n_chunks;
    for (uint32_t i = 0; i < walk.n_chunks; i++)
        chunks[i] = (struct weir_chunk){.offset = WEIR_CHUNK_NONE};
    if (walk.n_chunks == 0 || walk.chunk_bytes == 0)
        return weir_walk_bad(&walk, "its chunks have an impossible size");
    for (int i = 0; i < grid->rank; i++) {
        uint64_t max = grid->max_dims[i], chunk = grid->chunk[i];
        walk.count[i] = grid->dims[i] / chunk + (grid->dims[i] % chunk != 0);
        walk.max_count[i] = max == UINT64_MAX ? max : max / chunk + (max % chunk != 0);
        if (walk.max_count[i] < walk.count[i])
            return weir_walk_bad(&walk, "it is larger than its maximum size");
    }
    int rc = weir_layout_message_read(file, object_address, grid, &layout, reason);
    if (rc < 0 || layout.address == UINT64_MAX)
        return rc;
    rc = walk_index(&walk);
    return rc == 0 && walk.bad && !walk.good ? weir_walk_bad(&walk, walk.why_bad) : rc;
}
