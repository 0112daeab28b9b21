#include "base/threads.h"
#include "datasets/open_dataset.h"
#include "datasets/scan_remote.h"
#include "decoders/frame_kind.h"
#include "pipeline/samples/fetch_priv.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t FRAME_MAX_BYTES = (size_t)1 << 31;

int weir_fetch_files(const struct weir_dataset *dataset, struct weir_file_set **files)
{
    int rc = weir_file_set_open(files, 0);
    if (rc >= 0)
        weir_file_set_use(*files, weir_dataset_origin(dataset));
    char path[WEIR_READ_PATH_MAX];
    for (int i = 0; i < weir_dataset_read_files(dataset) && rc >= 0; i++) {
        struct weir_dataset_file file;
        weir_dataset_read_file(dataset, i, &file, path);
        struct weir_file_id id = {file.size_bytes, file.device, file.inode, file.mtime_ns, file.may_be_written};
        rc = weir_file_set_add(*files, file.path, &id);
    }
    if (rc < 0)
        weir_file_set_close(files);
    return rc < 0 ? rc : 0;
}

static int grow(struct weir_fetcher *fetcher, uint8_t **buffer, size_t *capacity, size_t bytes)
{
    if (bytes <= *capacity)
        return 0;
    if (bytes > FRAME_MAX_BYTES) {
        snprintf(fetcher->reason, sizeof fetcher->reason, "a frame of %zu bytes exceeds the limit of 2 GiB", bytes);
        return -EBADMSG;
    }
    uint8_t *more = realloc(*buffer, bytes);
    if (!more) {
        snprintf(fetcher->reason, sizeof fetcher->reason, "out of memory for %zu bytes", bytes);
        return -ENOMEM;
    }
    *buffer = more;
    *capacity = bytes;
    return 0;
}

int weir_fetch_grow_buffer(struct weir_fetcher *fetcher, size_t bytes)
{
    return grow(fetcher, &fetcher->buffer, &fetcher->capacity, bytes);
}

int weir_fetch_grow_row(struct weir_fetcher *fetcher, size_t bytes)
{
    return grow(fetcher, &fetcher->row, &fetcher->row_capacity, bytes);
}

int weir_fetcher_open(struct weir_fetcher *fetcher, struct weir_dataset *dataset, struct weir_file_set *files,
                      const char *io, struct weir_err *err)
{
    memset(fetcher, 0, sizeof *fetcher);
    fetcher->dataset = dataset;
    fetcher->files = files;
    fetcher->bad_block.episode = fetcher->file = fetcher->gpu = -1;
    int rc = weir_reader_open(&fetcher->reader, io, files, err);
    if (rc < 0)
        return rc;
    rc = weir_fetch_grow_buffer(fetcher, weir_dataset_extent_max(dataset));
    if (rc == 0)
        return 0;
    weir_fetcher_close(fetcher);
    return weir_err_set(err, rc, "%s", fetcher->reason);
}

void weir_fetcher_close(struct weir_fetcher *fetcher)
{
    weir_reader_close(&fetcher->reader);
    weir_unpacker_close(&fetcher->unpacker);
    weir_fetch_video_close(fetcher);
    free(fetcher->buffer);
    free(fetcher->row);
    fetcher->buffer = fetcher->row = NULL;
    fetcher->capacity = fetcher->row_capacity = 0;
}

void weir_fetcher_begin(struct weir_fetcher *fetcher, struct weir_ahead *ahead, uint64_t task_number)
{
    weir_reader_begin(fetcher->reader, ahead, task_number);
}

void weir_fetcher_end(struct weir_fetcher *fetcher)
{
    weir_reader_end(fetcher->reader);
}

static int through_library(struct weir_fetcher *fetcher, int episode, int camera, int t, const uint8_t **bytes,
                           size_t *length)
{
    WEIR_ZONE(WEIR_STAGE_READ_BYTES);
    struct weir_err err = WEIR_ERR_NONE;
    int rc, file = weir_dataset_episode_file(fetcher->dataset, episode);
    fetcher->file = file;
    weir_file_set_note(fetcher->files, file);
    if (weir_file_set_is_spoiled(fetcher->files, file)) {
        snprintf(fetcher->reason, sizeof fetcher->reason, "%s", weir_read_reason(-ESTALE));
        return -ESTALE;
    }
    while ((rc = weir_fetch(fetcher->dataset, episode, camera, t, fetcher->buffer, fetcher->capacity, length, &err)) ==
           -ENOSPC) {
        rc = weir_fetch_grow_buffer(fetcher, *length);
        if (rc < 0)
            return rc;
    }
    char change[WEIR_FILE_CHANGE];
    if (rc == 0 && weir_file_set_changed(fetcher->files, file, false, change) != 0)
        rc = weir_err_set(&err, -ESTALE, "%s", weir_read_reason(-ESTALE));
    if (rc < 0) {
        snprintf(fetcher->reason, sizeof fetcher->reason, "%.*s", WEIR_FETCH_REASON - 1, err.text);
        return rc;
    }
    weir_counter_add(&fetcher->fallbacks, 1);
    weir_counter_add(&fetcher->fallback_bytes, *length);
    *bytes = fetcher->buffer;
    return 0;
}

/* Unpacks the bytes read for a location, unless it is not compressed. *data then points to the unpacked bytes. */
static int unpack_extent(struct weir_fetcher *fetcher, const struct weir_location *location, const uint8_t **data)
{
    if (!location->unpacked_bytes)
        return 0;
    const char *why = "";
    int rc = weir_fetch_grow_row(fetcher, location->unpacked_bytes);
    if (rc < 0)
        return rc;
    WEIR_ZONE(WEIR_STAGE_INFLATE);
    rc = weir_unpack(location, *data, fetcher->row, &why);
    if (rc < 0)
        snprintf(fetcher->reason, sizeof fetcher->reason, "%s", why);
    *data = fetcher->row;
    return rc;
}

static int by_extent(struct weir_fetcher *fetcher, struct weir_location *location, void *into, size_t into_bytes,
                     const uint8_t **bytes, size_t *length)
{
    fetcher->file = location->file;
    for (;;) {
        bool direct = into && !location->heap_slot && !location->unpacked_bytes && location->length == into_bytes;
        const uint8_t *data;
        int rc = direct ? 0 : weir_fetch_grow_buffer(fetcher, location->length);
        if (rc < 0)
            return rc;
        rc = weir_read(fetcher->reader, location->file, location->offset, location->length,
                       direct ? into : fetcher->buffer, &data);
        if (rc < 0) {
            snprintf(fetcher->reason, sizeof fetcher->reason, "%s", weir_reader_reason(fetcher->reader, rc));
            return rc;
        }
        const char *why = "";
        rc = weir_unwrap(fetcher->dataset, location, data, &why);
        if (rc < 0)
            snprintf(fetcher->reason, sizeof fetcher->reason, "%s", why);
        if (rc == 0)
            rc = unpack_extent(fetcher, location, &data);
        if (rc == 0 && location->end)
            rc = weir_note_end(location, weir_frame_end(data + location->payload, location->payload_length));
        if (rc == 1)
            continue;
        *bytes = data + location->payload;
        *length = location->payload_length;
        return rc;
    }
}

/* ---- blocks ---- */

/* Undoes the filters of a chunk and copies each frame's part of the chunk to the frame's row. */
static int unpack(struct weir_fetcher *fetcher, const struct weir_block *block, uint32_t piece, const uint8_t *data,
                  const int *ts, uint8_t *const *rows, int n)
{
    WEIR_ZONE(WEIR_STAGE_INFLATE);
    const char *why = "";
    const uint8_t *unpacked;
    int rc = weir_block_unpack(block, piece, fetcher->unpacker, data, rows[0], &unpacked, &why);
    if (rc < 0) {
        snprintf(fetcher->reason, sizeof fetcher->reason, "chunk %u of its block: %s", piece,
                 *why ? why : strerror(-rc));
        return rc;
    }
    if (unpacked) {
        weir_counter_add(&fetcher->chunks.chunks, 1);
        weir_counter_add(&fetcher->chunks.unpacked_bytes, block->piece_bytes);
    }
    for (int i = 0; i < n; i++)
        weir_block_clip(block, piece, unpacked, ts[i], rows[i]);
    return 0;
}

static int fetch_piece(struct weir_fetcher *fetcher, const struct weir_block *block, uint32_t piece, const int *ts,
                       uint8_t *const *rows, int n)
{
    int file;
    uint64_t offset;
    size_t length;
    const uint8_t *data = NULL;
    weir_block_piece(block, piece, &file, &offset, &length);
    int rc = weir_fetch_grow_buffer(fetcher, length);
    if (rc == 0 && length > 0) {
        fetcher->file = file;
        rc = weir_read(fetcher->reader, file, offset, length, fetcher->buffer, &data);
        if (rc < 0)
            snprintf(fetcher->reason, sizeof fetcher->reason, "%s", weir_reader_reason(fetcher->reader, rc));
        else
            weir_counter_add(&fetcher->chunks.read_bytes, length);
    }
    return rc < 0 ? rc : unpack(fetcher, block, piece, data, ts, rows, n);
}

/* read: number of bytes read for all chunks of the block. They are divided by the block's rows, although the last block
 * of an episode may have rows that are not frames. */
static void count_block(struct weir_fetcher *fetcher, const struct weir_block *block, uint64_t read, int n)
{
    weir_counter_add(&fetcher->chunks.frames, (uint64_t)n);
    weir_counter_add(&fetcher->chunks.blocks, 1);
    weir_counter_add(&fetcher->chunks.frame_bytes, (uint64_t)n * block->row_bytes);
    weir_counter_add(&fetcher->chunks.stored_bytes, read * (uint64_t)n / (uint64_t)block->rows);
}

void weir_fetch_add_chunks(const struct weir_fetcher *fetcher, struct weir_chunk_counts *counts)
{
    counts->frames += atomic_load_explicit(&fetcher->chunks.frames, memory_order_relaxed);
    counts->blocks += atomic_load_explicit(&fetcher->chunks.blocks, memory_order_relaxed);
    counts->chunks += atomic_load_explicit(&fetcher->chunks.chunks, memory_order_relaxed);
    counts->frame_bytes += atomic_load_explicit(&fetcher->chunks.frame_bytes, memory_order_relaxed);
    counts->unpacked_bytes += atomic_load_explicit(&fetcher->chunks.unpacked_bytes, memory_order_relaxed);
    counts->stored_bytes += atomic_load_explicit(&fetcher->chunks.stored_bytes, memory_order_relaxed);
    counts->read_bytes += atomic_load_explicit(&fetcher->chunks.read_bytes, memory_order_relaxed);
}

int weir_fetch_block(struct weir_fetcher *fetcher, int episode, int camera, const int *ts, uint8_t *const *rows, int n)
{
    struct weir_block block;
    fetcher->file = -1;
    weir_block_of(fetcher->dataset, episode, camera, ts[0], &block);
    if (fetcher->bad_block.episode == episode && fetcher->bad_block.camera == camera &&
        fetcher->bad_block.first == block.first) {
        memcpy(fetcher->reason, fetcher->bad_block.reason, sizeof fetcher->reason);
        return fetcher->bad_block.code;
    }
    if (!fetcher->unpacker)
        fetcher->unpacker = weir_unpacker_open();
    if (!fetcher->unpacker) {
        snprintf(fetcher->reason, sizeof fetcher->reason, "out of memory");
        return -ENOMEM;
    }
    uint64_t before = atomic_load_explicit(&fetcher->chunks.read_bytes, memory_order_relaxed);
    int rc = 0;
    for (uint32_t piece = 0; piece < block.pieces && rc == 0; piece++)
        rc = fetch_piece(fetcher, &block, piece, ts, rows, n);
    if (rc == 0)
        count_block(fetcher, &block, atomic_load_explicit(&fetcher->chunks.read_bytes, memory_order_relaxed) - before,
                    n);
    fetcher->bad_block.episode = -1;
    if (rc == -EBADMSG) {
        fetcher->bad_block.episode = episode;
        fetcher->bad_block.camera = camera;
        fetcher->bad_block.first = block.first;
        fetcher->bad_block.code = rc;
        memcpy(fetcher->bad_block.reason, fetcher->reason, sizeof fetcher->reason);
    }
    return rc;
}

static int from_block(struct weir_fetcher *fetcher, int episode, int camera, int t, void *into, size_t into_bytes,
                      const uint8_t **bytes, size_t *length)
{
    struct weir_block block;
    weir_block_of(fetcher->dataset, episode, camera, t, &block);
    bool direct = into && block.row_bytes == into_bytes;
    int rc = direct ? 0 : weir_fetch_grow_row(fetcher, block.row_bytes);
    if (rc < 0)
        return rc;
    uint8_t *row = direct ? into : fetcher->row;
    *bytes = row;
    *length = block.row_bytes;
    return weir_fetch_block(fetcher, episode, camera, &t, &row, 1);
}

/* Locates a frame, whose locations are found first if need be. */
static int locate(struct weir_fetcher *fetcher, int episode, int camera, int t, struct weir_location *location)
{
    struct weir_err err = WEIR_ERR_NONE;
    int how = weir_locate(fetcher->dataset, episode, camera, t, location);
    int rc = how == WEIR_HOW_LIBRARY ? weir_dataset_find_frames(fetcher->dataset, episode, camera, &err) : 0;
    if (rc < 0) {
        fetcher->file = location->file;
        snprintf(fetcher->reason, sizeof fetcher->reason, "%.*s", WEIR_FETCH_REASON - 1, err.text);
        return rc;
    }
    if (rc > 0)
        how = weir_locate(fetcher->dataset, episode, camera, t, location);
    if (how < 0)
        weir_frame_reason(fetcher->dataset, episode, camera, t, fetcher->reason, sizeof fetcher->reason);
    return how;
}

int weir_fetch_frame(struct weir_fetcher *fetcher, int episode, int camera, int t, void *into, size_t into_bytes,
                     const uint8_t **bytes, size_t *length)
{
    struct weir_location location;
    fetcher->file = -1;
    int how = locate(fetcher, episode, camera, t, &location);
    if (how == WEIR_HOW_LIBRARY)
        return through_library(fetcher, episode, camera, t, bytes, length);
    if (how == WEIR_HOW_BLOCK)
        return from_block(fetcher, episode, camera, t, into, into_bytes, bytes, length);
    if (how == WEIR_HOW_VIDEO)
        return weir_fetch_video_frame(fetcher, episode, camera, t, bytes, length);
    return how < 0 ? how : by_extent(fetcher, &location, into, into_bytes, bytes, length);
}

/* ---- several frames ---- */

enum { TOGETHER_FRAMES = 64, TOGETHER_PICTURES = 1024, TOGETHER_BYTES = 64 << 20 };

/* Returns how many frames from `first` on are fetched together, at most n: those of one block, within limits of memory.
 */
static int together(const struct weir_fetcher *fetcher, int episode, int camera, int first, int n, bool video)
{
    int rows, most = video ? TOGETHER_PICTURES : TOGETHER_FRAMES;
    if (!weir_shares_blocks(fetcher->dataset, episode, camera, &rows))
        return 1;
    int number = weir_block_number(fetcher->dataset, episode, camera, first);
    int left = weir_block_begin(fetcher->dataset, episode, camera, number + 1) - first;
    n = n < left ? n : left;
    if (!video) {
        struct weir_block block;
        weir_block_of(fetcher->dataset, episode, camera, first, &block);
        size_t fit = block.row_bytes ? TOGETHER_BYTES / block.row_bytes : 1;
        most = fit < (size_t)most ? (fit > 1 ? (int)fit : 1) : most;
    }
    return n < most ? n : most;
}

/* Unpacks the block once for all n frames. */
static int unpack_together(struct weir_fetcher *fetcher, int episode, int camera, const int *ts, int n,
                           weir_fetched_fn *fetched, void *user)
{
    struct weir_block block;
    weir_block_of(fetcher->dataset, episode, camera, ts[0], &block);
    int rc = 0, code = weir_fetch_grow_row(fetcher, block.row_bytes * (size_t)n);
    uint8_t *rows[TOGETHER_FRAMES];
    for (int i = 0; i < n; i++)
        rows[i] = code == 0 ? fetcher->row + block.row_bytes * (size_t)i : NULL;
    if (code == 0)
        code = weir_fetch_block(fetcher, episode, camera, ts, rows, n);
    for (int i = 0; i < n && rc == 0; i++)
        rc = fetched(user, ts[i], code, fetcher->reason, rows[i], block.row_bytes);
    return rc;
}

static int fetch_together(struct weir_fetcher *fetcher, int episode, int camera, int first, int n, bool video,
                          weir_fetched_fn *fetched, void *user)
{
    int ts[TOGETHER_PICTURES] = {first};
    for (int i = 1; i < n; i++)
        ts[i] = first + i;
    return video ? weir_fetch_video_frames(fetcher, episode, camera, ts, n, fetched, user)
                 : unpack_together(fetcher, episode, camera, ts, n, fetched, user);
}

int weir_fetch_frames(struct weir_fetcher *fetcher, int episode, int camera, int first, int n, weir_fetched_fn *fetched,
                      void *user)
{
    int rc = 0, file;
    bool video = weir_dataset_video(fetcher->dataset, episode, camera, &file) != NULL;
    for (int t = first, step; t < first + n && rc == 0; t += step) {
        const uint8_t *bytes = NULL;
        size_t length = 0;
        step = together(fetcher, episode, camera, t, first + n - t, video);
        if (step > 1) {
            rc = fetch_together(fetcher, episode, camera, t, step, video, fetched, user);
            continue;
        }
        int code = weir_fetch_frame(fetcher, episode, camera, t, NULL, 0, &bytes, &length);
        rc = fetched(user, t, code, fetcher->reason, bytes, length);
    }
    return rc;
}
