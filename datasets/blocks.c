#include "datasets/blocks_priv.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES_MAX = 1 << 30, RGB = 3 };

/* Converts frames with any number of channels to RGB. In planar frames, each plane must consist of whole rows of the
 * innermost dimension, because put_pixels copies one such row at a time. */
static bool take_channels(struct weir_blocks *blocks)
{
    bool known = blocks->channels == 1 || blocks->channels == 3 || blocks->channels == 4;
    if (!known || blocks->grid.element_bytes != 1 || blocks->row_bytes % blocks->channels != 0)
        return false;
    uint64_t pixels = blocks->row_bytes / blocks->channels;
    if (blocks->is_planar && pixels % blocks->row[2] != 0)
        return false;
    blocks->row_bytes = pixels * RGB;
    return blocks->row_bytes < CHUNK_BYTES_MAX;
}

bool weir_blocks_init(struct weir_blocks *blocks)
{
    const struct weir_chunk_grid *grid = &blocks->grid;
    if (grid->rank < 1 || grid->rank > 4)
        return false;
    blocks->n_chunks = weir_chunk_grid_count(grid);
    blocks->chunk_bytes = weir_chunk_grid_bytes(grid);
    if (blocks->n_chunks == 0 || blocks->chunk_bytes == 0 || blocks->chunk_bytes >= CHUNK_BYTES_MAX)
        return false;
    blocks->rows = (uint32_t)grid->chunk[0];
    blocks->per_block = 1;
    for (int i = 0; i < 3; i++) {
        int d = grid->rank - 3 + i; /* dimension of the grid; dimension 0 is time */
        bool there = d >= 1;
        blocks->row[i] = there ? grid->dims[d] : 1;
        blocks->box[i] = there ? grid->chunk[d] : 1;
        blocks->count[i] = (blocks->row[i] + blocks->box[i] - 1) / blocks->box[i];
        blocks->per_block *= (uint32_t)blocks->count[i]; /* divides n_chunks, so it fits 32 bits */
    }
    blocks->row[2] *= grid->element_bytes;
    blocks->box[2] *= grid->element_bytes;
    uint64_t bytes;
    if (__builtin_mul_overflow(blocks->row[0], blocks->row[1], &bytes) ||
        __builtin_mul_overflow(bytes, blocks->row[2], &bytes) || bytes >= CHUNK_BYTES_MAX)
        return false;
    blocks->row_bytes = bytes;
    return blocks->channels == 0 || take_channels(blocks);
}

void weir_blocks_close(struct weir_blocks *blocks)
{
    if (blocks)
        free(blocks->chunks);
    free(blocks);
}

uint32_t weir_blocks_stored_max(const struct weir_blocks *blocks)
{
    uint32_t max = 0;
    for (uint32_t i = 0; i < blocks->n_chunks; i++)
        if (blocks->chunks[i].offset != WEIR_CHUNK_NONE && blocks->chunks[i].bytes > max)
            max = blocks->chunks[i].bytes;
    return max;
}

/* The part of a row that one chunk covers: position and size in (outer, middle, inner bytes). */
struct part {
    uint64_t at[3], size[3];
};

static struct part part_of(const struct weir_blocks *blocks, uint32_t i)
{
    struct part part;
    for (int d = 2; d >= 0; d--) {
        part.at[d] = i % blocks->count[d] * blocks->box[d];
        i /= (uint32_t)blocks->count[d];
        uint64_t left = blocks->row[d] - part.at[d];
        part.size[d] = left < blocks->box[d] ? left : blocks->box[d];
    }
    return part;
}

/* Copies n runs of `bytes` bytes each. Chunks that split the channels of a pixel produce runs of one or two bytes, for
 * which calling memcpy would cost more than unpacking the chunk. */
static void copy_runs(uint8_t *restrict to, size_t to_step, const uint8_t *restrict from, size_t from_step,
                      size_t bytes, size_t n)
{
    switch (bytes) {
    case 1:
        for (size_t i = 0; i < n; i++)
            to[i * to_step] = from[i * from_step];
        return;
    case 2:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, 2);
        return;
    default:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, bytes);
    }
}

static void fill_run(const struct weir_blocks *blocks, uint8_t *to, size_t bytes)
{
    size_t element = blocks->grid.element_bytes;
    if (element == 1 || element > sizeof blocks->fill) {
        memset(to, blocks->fill[0], bytes);
        return;
    }
    for (size_t i = 0; i + element <= bytes; i += element)
        memcpy(to + i, blocks->fill, element);
}

/* Writes n channel values into the frame. The first of them is value number `at` of the row. If `from` is NULL, writes
 * the fill value. */
static void put_values(const struct weir_blocks *blocks, uint8_t *frame, uint64_t at, const uint8_t *from, size_t n)
{
    uint64_t channels = blocks->channels, pixels = blocks->row_bytes / RGB;
    uint64_t channel = blocks->is_planar ? at / pixels : at % channels;
    uint8_t *to = frame + (blocks->is_planar ? at % pixels : at / channels) * RGB;
    const uint8_t *values = from ? from : blocks->fill;
    size_t step = from != NULL;
    if (channels == 1) {
        for (size_t i = 0; i < n; i++)
            to[RGB * i] = to[RGB * i + 1] = to[RGB * i + 2] = values[i * step];
        return;
    }
    if (blocks->is_planar) {
        for (size_t i = 0; i < n && channel < RGB; i++)
            to[RGB * i + channel] = values[i * step];
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (channel < RGB)
            to[channel] = values[i * step];
        channel = channel + 1 == channels ? 0 : channel + 1;
        to += channel == 0 ? RGB : 0;
    }
}

/* For chunks that contain all planes. Copying the three planes in one loop is four times as fast as copying them one
 * after another. */
static void put_planes(const struct weir_blocks *blocks, const struct part *part, const uint8_t *from, uint8_t *frame)
{
    size_t plane = blocks->box[1] * blocks->box[2];
    for (uint64_t y = 0; y < part->size[1]; y++) {
        const uint8_t *restrict red = from + y * blocks->box[2], *restrict green = red + plane,
                                *restrict blue = green + plane;
        uint8_t *restrict to = frame + ((part->at[1] + y) * blocks->row[2] + part->at[2]) * RGB;
        for (size_t x = 0; x < part->size[2]; x++) {
            to[RGB * x] = red[x];
            to[RGB * x + 1] = green[x];
            to[RGB * x + 2] = blue[x];
        }
    }
}

/* For chunks that contain whole RGBA pixels. */
static void put_without_alpha(const struct weir_blocks *blocks, const struct part *part, const uint8_t *from,
                              uint8_t *frame)
{
    for (uint64_t y = 0; y < part->size[0]; y++) {
        const uint8_t *restrict pixels = from + y * blocks->box[1] * blocks->box[2];
        uint8_t *restrict to = frame + ((part->at[0] + y) * blocks->row[1] + part->at[1]) * RGB;
        for (size_t x = 0; x < part->size[1]; x++)
            memcpy(to + RGB * x, pixels + blocks->box[2] * x, RGB);
    }
}

/* Copies the chunk one innermost row at a time. In planar frames no such row spans two channels. */
static void put_pixels(const struct weir_blocks *blocks, const struct part *part, const uint8_t *from, uint8_t *frame)
{
    if (from && blocks->is_planar && blocks->row[0] == blocks->channels && part->at[0] == 0 && part->size[0] >= RGB) {
        put_planes(blocks, part, from, frame);
        return;
    }
    if (from && !blocks->is_planar && blocks->channels > RGB && blocks->row[2] == blocks->channels &&
        part->size[2] == blocks->row[2]) {
        put_without_alpha(blocks, part, from, frame);
        return;
    }
    for (uint64_t y = 0; y < part->size[0]; y++)
        for (uint64_t x = 0; x < part->size[1]; x++) {
            uint64_t row = (part->at[0] + y) * blocks->row[1] + part->at[1] + x;
            const uint8_t *run = from ? from + (y * blocks->box[1] + x) * blocks->box[2] : NULL;
            put_values(blocks, frame, row * blocks->row[2] + part->at[2], run, part->size[2]);
        }
}

void weir_blocks_clip(const struct weir_blocks *blocks, uint32_t i, const uint8_t *chunk, uint64_t t, uint8_t *frame)
{
    struct part part = part_of(blocks, i);
    size_t line = blocks->row[1] * blocks->row[2], chunk_line = blocks->box[1] * blocks->box[2];
    const uint8_t *from = chunk ? chunk + t % blocks->rows * blocks->box[0] * chunk_line : NULL;
    if (blocks->channels) {
        put_pixels(blocks, &part, from, frame);
        return;
    }
    for (uint64_t y = 0; y < part.size[0]; y++) {
        uint8_t *to = frame + (part.at[0] + y) * line + part.at[1] * blocks->row[2] + part.at[2];
        if (!from)
            for (uint64_t x = 0; x < part.size[1]; x++)
                fill_run(blocks, to + x * blocks->row[2], part.size[2]);
        else if (part.size[2] == blocks->row[2] && blocks->box[2] == blocks->row[2])
            memcpy(to, from + y * chunk_line, part.size[1] * part.size[2]);
        else
            copy_runs(to, blocks->row[2], from + y * chunk_line, blocks->box[2], part.size[2], part.size[1]);
    }
}
