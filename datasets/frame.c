/* Locates a frame, which is stored as an extent, as an object in a heap, in a block of chunks, as a picture of a video,
 * or readable only through the library. */
#include "base/grow.h"
#include "base/text.h"
#include "datasets/chunks/heap.h"
#include "datasets/chunks/unpack.h"
#include "datasets/index.h"
#include "datasets/open_dataset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct weir_frame_map *map_of(const struct weir_dataset *dataset, int episode, int camera)
{
    return &dataset->episodes[episode].maps[camera];
}

static uint64_t file_bytes_of(const struct weir_dataset *dataset, int episode)
{
    return dataset->files[dataset->episodes[episode].file].file.size_bytes;
}

static const char bad_chunk[] = "the chunk index has an invalid offset or size for its chunk";

static size_t min_size(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

/* Sets the next extent of a walk through a heap collection: a window, or more if the frame's object needs more. */
static void heap_extent(struct weir_location *location, uint64_t file_bytes, uint64_t headers, uint32_t length)
{
    uint64_t want = headers + length < WEIR_HEAP_WINDOW ? WEIR_HEAP_WINDOW : headers + length;
    location->offset = location->heap_at;
    location->length = min_size(want, file_bytes - location->heap_at);
}

/* Returns false for an empty reference, or one outside the file. The heap collection of such a reference need not be
 * read. */
static bool may_be(const struct weir_heap_ref *ref, uint64_t file_bytes)
{
    return ref->length != 0 && ref->address != 0 && ref->address < file_bytes &&
           ref->length <= file_bytes - ref->address;
}

static int locate_heap(uint64_t file_bytes, const struct weir_frame_map *map, int t, struct weir_location *location)
{
    struct weir_heap_slot *slot = &map->slots[t];
    if (!may_be(&slot->ref, file_bytes))
        return -EBADMSG;
    uint64_t payload = atomic_load_explicit(
        &slot->payload, memory_order_relaxed); /* relaxed, because this number publishes no other data */
    if (payload) {
        location->offset = payload;
        location->length = slot->ref.length;
        return WEIR_HOW_EXTENT;
    }
    location->heap_slot = slot;
    location->heap_at = slot->ref.address;
    heap_extent(location, file_bytes, WEIR_HEAP_HEADER + WEIR_HEAP_OBJECT_HEADER, slot->ref.length);
    return WEIR_HOW_EXTENT;
}

/* Shortens the extent of a padded row to the image, if the length of the image is known or hinted. */
static void locate_end(struct weir_frame_end *end, struct weir_location *location)
{
    uint32_t bytes = atomic_load_explicit(
        &end->bytes, memory_order_relaxed); /* relaxed, because this number publishes no other data */
    location->row_bytes = location->length;
    location->end = bytes & WEIR_END_KNOWN ? NULL : end;
    bytes &= ~WEIR_END_KNOWN;
    location->length = bytes ? bytes : location->length;
}

int weir_note_end(struct weir_location *location, size_t bytes)
{
    if (bytes == 0 && location->length < location->row_bytes) {
        location->length = location->row_bytes;
        return 1;
    }
    location->payload_length =
        bytes ? bytes : location->length; /* if no end was found, the whole row is read every time */
    atomic_store_explicit(&location->end->bytes, (uint32_t)location->payload_length | WEIR_END_KNOWN,
                          memory_order_relaxed); /* relaxed, because every thread finds the same value */
    location->end = NULL;
    return 0;
}

/* Returns the number of a part of the episode's file. Parts are numbered after all files. */
static int part_of(const struct weir_dataset *dataset, int episode, uint32_t part)
{
    return dataset->n_files + dataset->files[dataset->episodes[episode].file].first_part + (int)part;
}

/* ---- videos ---- */

static void sample_of(const struct weir_frame_map *map, int t, struct weir_video_sample *sample)
{
    weir_video_track_sample(map->video, weir_video_track_at_rank(map->video, weir_map_rank(map, t)), sample);
}

static void locate_sample(const struct weir_dataset *dataset, int episode, const struct weir_frame_map *map, int t,
                          struct weir_location *location)
{
    struct weir_video_sample sample;
    sample_of(map, t, &sample);
    location->file = part_of(dataset, episode, map->first_part);
    location->offset = sample.offset;
    location->length = sample.bytes;
}

const struct weir_video_track *weir_dataset_video(const struct weir_dataset *dataset, int episode, int camera,
                                                  int *file)
{
    const struct weir_frame_map *map = map_of(dataset, episode, camera);
    if (map->storage != WEIR_STORED_VIDEO)
        return NULL;
    *file = part_of(dataset, episode, map->first_part);
    return map->video;
}

uint32_t weir_dataset_video_rank(const struct weir_dataset *dataset, int episode, int camera, int t)
{
    return weir_map_rank(map_of(dataset, episode, camera), t);
}

/* Returns the first frame whose picture is not before this one. It is negative or past the episode if the picture is.
 */
static int frame_at_rank(const struct weir_frame_map *map, uint32_t rank)
{
    if (!map->ranks)
        return (int)((int64_t)rank - map->first_rank);
    return WEIR_FIRST(t, map->frames, map->ranks[t] >= rank);
}

/* Returns the location that weir_dataset_find_frames has found. */
static int locate_found(const struct weir_dataset *dataset, int episode, const struct weir_frame_map *map, int t,
                        struct weir_location *location)
{
    const struct weir_located *located = atomic_load_explicit(&map->located, memory_order_acquire);
    const struct weir_located *at = located ? &located[t] : NULL;
    if (!at || at->length == 0 || at->offset == UINT64_MAX || at->span > map->located_max ||
        (uint64_t)at->skip + at->length > map->located_max)
        return WEIR_HOW_LIBRARY;
    location->file = part_of(dataset, episode, map->first_part);
    location->offset = at->offset;
    location->length = at->span;
    if (at->first == at->length)
        return WEIR_HOW_EXTENT;
    location->unpacked_bytes = (size_t)at->skip + at->length;
    location->unpack_first = at->first;
    location->unpack_skip = at->skip;
    return WEIR_HOW_EXTENT;
}

int weir_locate(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_location *location)
{
    const struct weir_frame_map *map = map_of(dataset, episode, camera);
    *location = (struct weir_location){.file = dataset->episodes[episode].file};
    switch (map->storage) {
    case WEIR_STORED_CONTIGUOUS:
        location->offset = map->base + (uint64_t)t * map->row_bytes;
        break;
    case WEIR_STORED_CHUNKS:
        if (map->offsets[t] == WEIR_CHUNK_NONE)
            return WEIR_HOW_LIBRARY; /* the chunk was never written: use the fill value */
        if (map->offsets[t] == WEIR_CHUNK_BAD)
            return -EBADMSG;
        location->offset = map->offsets[t];
        break;
    case WEIR_STORED_BLOCKS:
        return WEIR_HOW_BLOCK;
    case WEIR_STORED_HEAP:
        return locate_heap(file_bytes_of(dataset, episode), map, t, location);
    case WEIR_STORED_EXTENTS:
        if (map->part_rows)
            location->file = part_of(dataset, episode, map->first_part + (map->before + (uint32_t)t) / map->part_rows);
        location->offset = map->extents[t].offset;
        location->length = (size_t)map->extents[t].length;
        return location->length ? WEIR_HOW_EXTENT : -EBADMSG;
    case WEIR_STORED_LIBRARY:
        return locate_found(dataset, episode, map, t, location);
    case WEIR_STORED_VIDEO:
        locate_sample(dataset, episode, map, t, location);
        return WEIR_HOW_VIDEO;
    }
    location->length = map->row_bytes;
    if (map->ends)
        locate_end(&map->ends[t], location);
    return WEIR_HOW_EXTENT;
}

/* ---- blocks ---- */

bool weir_shares_blocks(const struct weir_dataset *dataset, int episode, int camera, int *rows)
{
    const struct weir_frame_map *map = map_of(dataset, episode, camera);
    if (map->storage == WEIR_STORED_VIDEO)
        *rows = map->block_frames;
    else if (map->storage == WEIR_STORED_BLOCKS)
        *rows = (int)map->blocks->rows;
    else
        return false;
    return true;
}

int weir_block_number(const struct weir_dataset *dataset, int episode, int camera, int t)
{
    const struct weir_frame_map *map = map_of(dataset, episode, camera);
    const struct weir_blocks *blocks = map->blocks;
    return map->video ? (int)weir_video_track_block_of(map->video, weir_map_rank(map, t))
                      : ((int)blocks->before + t) / (int)blocks->rows;
}

int weir_block_begin(const struct weir_dataset *dataset, int episode, int camera, int number)
{
    const struct weir_frame_map *map = map_of(dataset, episode, camera);
    const struct weir_blocks *blocks = map->blocks;
    if (!map->video)
        return number * (int)blocks->rows - (int)blocks->before;
    return frame_at_rank(map, weir_video_track_block_first(map->video, (uint32_t)number));
}

void weir_block_of(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_block *block)
{
    const struct weir_frame_map *map = map_of(dataset, episode, camera);
    *block = (struct weir_block){
        .file = map->blocks->in_parts ? part_of(dataset, episode, map->blocks->first_part)
                                      : dataset->episodes[episode].file,
        .first = weir_block_begin(dataset, episode, camera, weir_block_number(dataset, episode, camera, t)),
        .rows = (int)map->blocks->rows,
        .pieces = map->blocks->per_block,
        .row_bytes = map->row_bytes,
        .piece_bytes = map->blocks->chunk_bytes,
        .blocks = map->blocks,
    };
}

static uint32_t chunk_number(const struct weir_block *block, uint32_t piece)
{
    uint32_t first = (uint32_t)(block->first + (int)block->blocks->before);
    return first / (uint32_t)block->rows * block->blocks->per_block + piece;
}

void weir_block_piece(const struct weir_block *block, uint32_t piece, int *file, uint64_t *offset, size_t *length)
{
    uint32_t number = chunk_number(block, piece);
    const struct weir_chunk *chunk = &block->blocks->chunks[number];
    *file = block->file + (block->blocks->in_parts ? (int)number : 0);
    bool there = chunk->offset != WEIR_CHUNK_NONE && chunk->offset != WEIR_CHUNK_BAD;
    *offset = there ? chunk->offset : 0;
    *length = there ? chunk->bytes : 0;
}

bool weir_frame_has_fill(const struct weir_dataset *dataset, int episode, int camera, int t)
{
    const struct weir_frame_map *map = map_of(dataset, episode, camera);
    const struct weir_blocks *blocks = map->blocks;
    if (map->storage == WEIR_STORED_CHUNKS)
        return map->offsets[t] == WEIR_CHUNK_NONE;
    if (map->storage != WEIR_STORED_BLOCKS)
        return false;
    const struct weir_chunk *chunks =
        &blocks->chunks[(blocks->before + (uint32_t)t) / blocks->rows * blocks->per_block];
    for (uint32_t i = 0; i < blocks->per_block; i++)
        if (chunks[i].offset == WEIR_CHUNK_NONE)
            return true;
    return false;
}

int weir_block_unpack(const struct weir_block *block, uint32_t piece, struct weir_unpacker *unpacker,
                      const uint8_t *bytes, uint8_t *frame, const uint8_t **unpacked, const char **reason)
{
    const struct weir_blocks *blocks = block->blocks;
    const struct weir_chunk *chunk = &blocks->chunks[chunk_number(block, piece)];
    *unpacked = NULL;
    if (chunk->offset == WEIR_CHUNK_NONE)
        return 0; /* the chunk was never written: use the fill value */
    if (chunk->offset == WEIR_CHUNK_BAD) {
        *reason = bad_chunk;
        return -EBADMSG;
    }
    bool whole = blocks->per_block == 1 && blocks->rows == 1 && blocks->chunk_bytes == blocks->row_bytes &&
                 blocks->channels == 0;
    return weir_unfilter_to((struct weir_unfilter_context *)unpacker, &blocks->filters, chunk->mask, bytes,
                            chunk->bytes, whole ? frame : NULL, blocks->chunk_bytes, unpacked, reason);
}

void weir_block_clip(const struct weir_block *block, uint32_t piece, const uint8_t *unpacked, int t, uint8_t *frame)
{
    if (unpacked != frame)
        weir_blocks_clip(block->blocks, piece, unpacked, block->blocks->before + (uint64_t)t, frame);
}

struct weir_unpacker *weir_unpacker_open(void)
{
    return (struct weir_unpacker *)weir_unfilter_open();
}

void weir_unpacker_close(struct weir_unpacker **unpacker)
{
    weir_unfilter_close((struct weir_unfilter_context **)unpacker);
}

void weir_dataset_inflate(char *text, size_t size)
{
    weir_inflate_library(text, size);
}

int weir_unwrap(const struct weir_dataset *dataset, struct weir_location *location, const uint8_t *bytes,
                const char **reason)
{
    struct weir_heap_slot *slot = location->heap_slot;
    location->payload = location->unpack_skip;
    location->payload_length =
        location->unpacked_bytes ? location->unpacked_bytes - location->unpack_skip : location->length;
    if (!slot)
        return 0;
    uint64_t file_bytes = dataset->files[location->file].file.size_bytes, payload = 0;
    struct weir_heap_walk walk = {slot->ref.address, file_bytes,       location->heap_end,    location->heap_at,
                                  slot->ref.index,   slot->ref.length, location->heap_objects};
    int rc = weir_heap_walk_step(&walk, bytes, location->offset, location->length, &payload, reason);
    location->heap_end = walk.end;
    location->heap_at = walk.at;
    location->heap_objects = walk.objects;
    if (rc < 0)
        return rc;
    if (rc == 1) {
        heap_extent(location, file_bytes, WEIR_HEAP_OBJECT_HEADER, slot->ref.length);
        return 1;
    }
    atomic_store_explicit(&slot->payload, payload,
                          memory_order_relaxed); /* relaxed, because every thread finds the same value */
    location->heap_slot = NULL;
    location->payload_length = slot->ref.length;
    uint64_t skip = payload - location->offset;
    if (skip <= location->length && slot->ref.length <= location->length - skip) {
        location->payload = (size_t)skip;
        return 0;
    }
    location->offset = payload;
    location->length = slot->ref.length;
    return 1;
}

int weir_unpack(const struct weir_location *location, const uint8_t *bytes, uint8_t *unpacked, const char **reason)
{
    int rc = weir_snappy_resume(bytes, location->length, location->unpack_first, unpacked, location->unpacked_bytes);
    if (rc < 0)
        *reason = "its Snappy data are damaged, or changed since the dataset was opened";
    return rc;
}

static size_t longest_extent(const struct weir_frame_map *map, int steps)
{
    uint64_t max = 0;
    for (int t = 0; t < steps; t++)
        max = map->extents[t].length > max ? map->extents[t].length : max;
    return (size_t)max;
}

size_t weir_frame_map_extent_max(const struct weir_frame_map *map, int steps, uint64_t file_bytes)
{
    if (map->storage == WEIR_STORED_BLOCKS)
        return weir_blocks_stored_max(map->blocks);
    if (map->storage == WEIR_STORED_LIBRARY)
        return map->rows == WEIR_ROWS_VLEN ? map->located_max : map->row_bytes;
    if (map->storage == WEIR_STORED_EXTENTS)
        return longest_extent(map, steps);
    if (map->storage == WEIR_STORED_VIDEO)
        return weir_video_track_sample_max(map->video);
    if (map->storage != WEIR_STORED_HEAP)
        return map->row_bytes;
    size_t max = min_size(WEIR_HEAP_WINDOW, file_bytes);
    for (int t = 0; t < steps; t++) {
        const struct weir_heap_ref *ref = &map->slots[t].ref;
        if (!may_be(ref, file_bytes))
            continue;
        size_t bytes = min_size((uint64_t)ref->length + WEIR_HEAP_HEADER + WEIR_HEAP_OBJECT_HEADER, file_bytes);
        max = bytes > max ? bytes : max;
    }
    return max;
}

size_t weir_frame_stored_bytes(const struct weir_dataset *dataset, int episode, int camera, int t)
{
    const struct weir_frame_map *map = map_of(dataset, episode, camera);
    if (map->storage == WEIR_STORED_CHUNKS && map->offsets[t] == UINT64_MAX)
        return map->row_bytes; /* the size of the fill value */
    uint32_t end = map->ends ? atomic_load_explicit(&map->ends[t].bytes, memory_order_relaxed) : 0;
    if (map->ends)
        return end & WEIR_END_KNOWN ? end & ~WEIR_END_KNOWN : 0;
    if (map->storage == WEIR_STORED_HEAP)
        return map->slots[t].ref.length;
    if (map->storage == WEIR_STORED_EXTENTS)
        return (size_t)map->extents[t].length;
    if (map->storage == WEIR_STORED_VIDEO) {
        struct weir_video_sample sample;
        sample_of(map, t, &sample);
        return sample.bytes;
    }
    return map->rows == WEIR_ROWS_VLEN ? 0
                                       : map->row_bytes; /* 0: the length of a variable-length row is unknown here */
}

/* Returns the number of bytes from the frame's sync sample to its own sample. */
static uint64_t bytes_from_sync(const struct weir_frame_map *map, int t)
{
    struct weir_video_sample sync, sample;
    uint32_t block = weir_video_track_block_of(map->video, weir_map_rank(map, t));
    weir_video_track_sample(map->video, weir_video_track_block_sync(map->video, block), &sync);
    sample_of(map, t, &sample);
    return sample.offset < sync.offset ? sample.bytes : sample.offset + sample.bytes - sync.offset;
}

void weir_frame_cost(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_frame_cost *cost)
{
    const struct weir_frame_map *map = map_of(dataset, episode, camera);
    size_t stored = weir_frame_stored_bytes(dataset, episode, camera, t);
    *cost = (struct weir_frame_cost){stored, stored, stored};
    if (map->storage == WEIR_STORED_VIDEO)
        cost->read = bytes_from_sync(map, t);
    if (map->storage != WEIR_STORED_BLOCKS)
        return;
    const struct weir_blocks *blocks = map->blocks;
    cost->read = 0;
    cost->unpacked = 0;
    for (uint32_t i = 0; i < blocks->per_block; i++) {
        const struct weir_chunk *chunk =
            &blocks->chunks[(blocks->before + (uint32_t)t) / blocks->rows * blocks->per_block + i];
        if (chunk->offset == WEIR_CHUNK_NONE)
            continue;
        cost->read += chunk->bytes;
        cost->unpacked += blocks->chunk_bytes;
    }
}

bool weir_dataset_described_size(const struct weir_dataset *dataset, int camera, int *width, int *height)
{
    *width = map_of(dataset, 0, camera)->described_width;
    *height = map_of(dataset, 0, camera)->described_height;
    return *width > 0;
}

const char *weir_frame_part(const struct weir_dataset *dataset, int episode, int camera)
{
    const struct weir_parts *parts = dataset->files[dataset->episodes[episode].file].parts;
    uint32_t part = map_of(dataset, episode, camera)->first_part;
    return parts && parts->names && part < parts->n ? parts->names[part] : NULL;
}

void weir_frame_name(const struct weir_dataset *dataset, int episode, int camera, int t, char *text, size_t size)
{
    const char *part = weir_frame_part(dataset, episode, camera);
    snprintf(text, size, "%s: %s[%d]%s%s", dataset->files[dataset->episodes[episode].file].file.path,
             map_of(dataset, episode, camera)->key, t, part ? ": " : "", part ? part : "");
    weir_text_printable(text);
}

void weir_frame_reason(const struct weir_dataset *dataset, int episode, int camera, int t, char *text, size_t size)
{
    const struct weir_frame_map *map = map_of(dataset, episode, camera);
    const char *reason = "its offset is unknown";
    if (map->storage == WEIR_STORED_EXTENTS)
        reason = "the frame is empty";
    else if (map->storage == WEIR_STORED_HEAP && (map->slots[t].ref.length == 0 || map->slots[t].ref.address == 0))
        reason = "the frame is empty";
    else if (map->storage == WEIR_STORED_CHUNKS)
        reason = bad_chunk;
    else if (map->storage == WEIR_STORED_HEAP && map->slots[t].ref.address == WEIR_CHUNK_BAD)
        reason = "the chunk that contains its reference is damaged";
    else if (map->storage == WEIR_STORED_HEAP)
        reason = "its heap reference points past the end of the file";
    snprintf(text, size, "%s", reason);
}
