/* Images in Parquet files. Opening a dataset does not read them. The first read of a camera's frame locates the frames
 * of its episode, which decompresses their pages; from then on, frames that are verbatim in the file are extents. */
#include "base/files.h"
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IMAGE_HEADERS = 64 << 10 }; /* bytes that an encoded image may have in addition to those of its pixels */

int weir_lerobot_place_images(const struct weir_lerobot_view *view, int number, struct weir_frame_map *map,
                              struct weir_err *err)
{
    const struct weir_lerobot_feature *feature = &view->lerobot->features[number];
    if (weir_parquet_find(view->table->parquet, feature->key, "bytes") < 0)
        return weir_err_set(err, -EBADMSG, "%.300s: has no images in a column %s; copy the dataset again",
                            view->table->name, feature->key);
    map->depth_values = feature->depth_values;
    map->kind = feature->is_depth ? WEIR_FRAME_PNG16 : WEIR_FRAME_IMAGE;
    map->storage = WEIR_STORED_LIBRARY;
    map->why = "images in pages of Parquet files";
    map->first_part = view->episode->part;
    map->before = (uint32_t)(view->episode->first - view->table->first);
    map->located_max = (uint32_t)feature->width + (uint32_t)feature->width / 8 + IMAGE_HEADERS;
    return 0;
}

/* ---- reading ---- */

/* State between reads: the images of one episode whose pages are compressed, and bytes of an image with tags. */
struct kept {
    const struct weir_frame_map *map; /* episode of the images; NULL = none */
    struct weir_parquet_bytes images;
    uint8_t *stored;
    size_t stored_capacity;
};

static void close_kept(void *user)
{
    struct kept *kept = user;
    weir_parquet_bytes_free(&kept->images);
    free(kept->stored);
    free(kept);
}

/* Opens the file of a map's images, and finds their column. */
static int open_column(const struct weir_file_index *file, const struct weir_frame_map *map,
                       struct weir_parquet **parquet, struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    const char *slash = strchr(map->key, '/'); /* the key is "episode N/FEATURE" */
    weir_part_path(file->parts, map->first_part, path, sizeof path);
    int rc = weir_parquet_open(parquet, path, err);
    if (rc < 0)
        return rc;
    int column = weir_parquet_find(*parquet, slash ? slash + 1 : map->key, "bytes");
    if (column >= 0)
        return column;
    weir_parquet_close(parquet);
    return weir_err_set(err, -ESTALE, "the dataset changed since it was opened; run again");
}

/* Locates all frames of a map and publishes the locations. */
static int locate(const struct weir_file_index *file, struct weir_frame_map *map, struct weir_err *err)
{
    size_t n = (size_t)map->frames;
    struct weir_parquet *parquet;
    struct weir_parquet_extent *extents = calloc(n, sizeof *extents);
    struct weir_located *located = calloc(n, sizeof *located);
    int rc = extents && located ? open_column(file, map, &parquet, err) : weir_no_memory(err);
    if (rc >= 0) {
        rc = weir_parquet_extents(parquet, rc, map->before, map->frames, extents, err);
        weir_parquet_close(&parquet);
    }
    for (size_t t = 0; t < n && rc == 0; t++)
        located[t] = (struct weir_located){extents[t].offset, extents[t].length, extents[t].first, extents[t].span};
    free(extents);
    if (rc < 0) {
        free(located);
        return rc;
    }
    /* release: other threads read the locations after they see the pointer */
    atomic_store_explicit(&map->located, located, memory_order_release);
    return 0;
}

/* Reads an image whose bytes are in the file, possibly with tags of Snappy between them. */
static int read_stored(struct kept *kept, const struct weir_file_index *file, const struct weir_frame_map *map,
                       const struct weir_located *at, void *buffer, struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    const struct weir_parquet_extent extent = {at->offset, at->length, at->first, at->span};
    if (extent.span > kept->stored_capacity) {
        uint8_t *stored = realloc(kept->stored, extent.span);
        if (!stored)
            return weir_no_memory(err);
        kept->stored = stored;
        kept->stored_capacity = extent.span;
    }
    weir_part_path(file->parts, map->first_part, path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = fd < 0 ? -errno : weir_read_at(fd, extent.offset, kept->stored, extent.span);
    if (fd >= 0)
        close(fd);
    if (rc < 0)
        return weir_err_set(err, rc, "%s; %s", strerror(-rc), weir_open_advice(rc));
    if (weir_parquet_join(&extent, kept->stored, buffer) < 0)
        return weir_err_set(err, -ESTALE, "the dataset changed since it was opened; run again");
    return 0;
}

/* Reads an image of a compressed page. Frames of an episode are often read together, so all of them are kept. */
static int read_compressed(struct kept *kept, const struct weir_file_index *file, const struct weir_frame_map *map,
                           uint64_t t, const struct weir_located *at, void *buffer, struct weir_err *err)
{
    if (kept->map != map) {
        struct weir_parquet *parquet;
        kept->map = NULL;
        weir_parquet_bytes_free(&kept->images);
        int rc = open_column(file, map, &parquet, err);
        if (rc < 0)
            return rc;
        rc = weir_parquet_bytes(parquet, rc, map->before, map->frames, &kept->images, err);
        weir_parquet_close(&parquet);
        if (rc < 0)
            return rc;
        kept->map = map;
    }
    size_t length = 0;
    const uint8_t *image = t < kept->images.n ? weir_parquet_value(&kept->images, t, &length) : NULL;
    if (!image || length != at->length)
        return weir_err_set(err, -ESTALE, "the dataset changed since it was opened; run again");
    memcpy(buffer, image, length);
    return 0;
}

int weir_lerobot_read_row(struct weir_opening *opening, const struct weir_file_index *file, struct weir_frame_map *map,
                          uint64_t t, void *buffer, size_t capacity, size_t *length, struct weir_err *err)
{
    struct kept *kept = opening->kept;
    if (!kept)
        kept = opening->kept = calloc(1, sizeof *kept);
    if (!kept)
        return weir_no_memory(err);
    opening->release = close_kept;
    /* relaxed: only this function writes the pointer, with one thread at a time */
    if (!atomic_load_explicit(&map->located, memory_order_relaxed)) {
        int rc = locate(file, map, err);
        if (rc < 0)
            return rc;
    }
    const struct weir_located *at = &atomic_load_explicit(&map->located, memory_order_relaxed)[t];
    *length = at->length;
    if (*length == 0)
        return weir_err_set(err, -EBADMSG, "the image is empty: the dataset stores only its path");
    if (*length > capacity)
        return -ENOSPC;
    return at->offset != UINT64_MAX ? read_stored(kept, file, map, at, buffer, err)
                                    : read_compressed(kept, file, map, t, at, buffer, err);
}
