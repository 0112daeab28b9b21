/* Images in Parquet files. Opening a dataset does not read them. The first read of a camera's frame locates the frames
 * of its episode, which decompresses their pages; from then on they are extents, which each worker decompresses itself.
 * Only images in pages that must be decompressed whole are read through weir_lerobot_read_row. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that an encoded image may have in addition to those of its pixels: its headers, and the blocks of Snappy that
 * it shares with the images before and after it. */
enum { IMAGE_HEADERS = 64 << 10, SHARED_BLOCKS = 128 << 10 };

int weir_lerobot_place_images(const struct weir_lerobot_view *view, int number, struct weir_frame_map *map,
                              struct weir_err *err)
{
    const struct weir_lerobot_feature *feature = &view->lerobot->features[number];
    if (weir_parquet_find(view->table->parquet, feature->key, "bytes") < 0)
        return weir_err_set(err, -EBADMSG, "%.300s: has no images in a column %s; copy the dataset again",
                            view->table->name, feature->key);
    map->depth_values = feature->depth_values;
    if (!weir_lerobot_picture_size(feature, &map->described_width, &map->described_height))
        map->described_width = map->described_height = 0;
    map->kind = feature->is_depth ? WEIR_FRAME_PNG16 : WEIR_FRAME_IMAGE;
    map->storage = WEIR_STORED_LIBRARY;
    map->why = "images in pages of Parquet files";
    map->first_part = view->episode->part;
    map->before = (uint32_t)(view->episode->first - view->table->first);
    map->located_max = (uint32_t)feature->width + (uint32_t)feature->width / 8 + IMAGE_HEADERS + SHARED_BLOCKS;
    return 0;
}

/* ---- reading ---- */

/* State between reads: the images of one episode whose pages are compressed. */
struct kept {
    const struct weir_frame_map *map; /* episode of the images; NULL = none */
    struct weir_parquet_bytes images;
};

static void close_kept(void *user)
{
    struct kept *kept = user;
    weir_parquet_bytes_free(&kept->images);
    free(kept);
}

/* Opens the file of a map's images, and finds their column. */
static int open_column(struct weir_origin *origin, const struct weir_file_index *file, const struct weir_frame_map *map,
                       struct weir_parquet **parquet, struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    const char *slash = strchr(map->key, '/'); /* the key is "episode N/FEATURE" */
    weir_part_path(file->parts, map->first_part, path, sizeof path);
    int rc = weir_parquet_open(parquet, origin, path, err);
    if (rc < 0)
        return rc;
    int column = weir_parquet_find(*parquet, slash ? slash + 1 : map->key, "bytes");
    bool *wanted = origin && column >= 0 ? calloc((size_t)weir_parquet_columns(*parquet), sizeof *wanted) : NULL;
    if (wanted) {
        wanted[column] = true;
        weir_parquet_announce(*parquet, wanted, map->before, map->frames);
        free(wanted);
    }
    if (column >= 0)
        return column;
    weir_parquet_close(parquet);
    return weir_err_set(err, -ESTALE, "the dataset changed since it was opened; run again");
}

int weir_lerobot_find_images(struct weir_origin *origin, const struct weir_file_index *file, struct weir_frame_map *map,
                             struct weir_err *err)
{
    size_t n = (size_t)map->frames;
    struct weir_parquet *parquet;
    struct weir_parquet_extent *extents = calloc(n, sizeof *extents);
    struct weir_located *located = calloc(n, sizeof *located);
    int rc = extents && located ? open_column(origin, file, map, &parquet, err) : weir_no_memory(err);
    if (rc >= 0) {
        rc = weir_parquet_extents(parquet, rc, map->before, map->frames, extents, err);
        weir_parquet_close(&parquet);
    }
    for (size_t t = 0; t < n && rc == 0; t++)
        located[t] = (struct weir_located){extents[t].offset, extents[t].length, extents[t].span, extents[t].first,
                                           extents[t].skip};
    free(extents);
    struct weir_located *none = NULL;
    /* release: other threads read the locations after they see the pointer */
    if (rc < 0 || !atomic_compare_exchange_strong_explicit(&map->located, &none, located, memory_order_release,
                                                           memory_order_relaxed))
        free(located); /* another thread has found the same */
    return rc < 0 ? rc : 0;
}

/* Reads an image of a compressed page. Frames of an episode are often read together, so all of them are kept. */
static int read_compressed(struct kept *kept, struct weir_origin *origin, const struct weir_file_index *file,
                           const struct weir_frame_map *map, uint64_t t, const struct weir_located *at, void *buffer,
                           struct weir_err *err)
{
    if (kept->map != map) {
        struct weir_parquet *parquet;
        kept->map = NULL;
        weir_parquet_bytes_free(&kept->images);
        int rc = open_column(origin, file, map, &parquet, err);
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
    if (!atomic_load_explicit(&map->located, memory_order_acquire)) {
        int rc = weir_lerobot_find_images(opening->origin, file, map, err);
        if (rc < 0)
            return rc;
    }
    const struct weir_located *at = &atomic_load_explicit(&map->located, memory_order_acquire)[t];
    *length = at->length;
    if (*length == 0)
        return weir_err_set(err, -EBADMSG, "the image is empty: the dataset stores only its path");
    return *length > capacity ? -ENOSPC : read_compressed(kept, opening->origin, file, map, t, at, buffer, err);
}
