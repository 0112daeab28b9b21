/* One episode of a Zarr store, which consists of rows of its arrays. */
#include "base/shortage.h"
#include "datasets/chunks/filters.h"
#include "datasets/index.h"
#include "datasets/zarr/zarr_arrays.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How layouts see an array. Pixels appear as uint8 (steps, height, width, 3), encoded images as one element of bytes
 * per frame, and numbers as rows of any rank. Other arrays with the shape of images appear unchanged. */
enum look { LOOK_NUMBERS, LOOK_PIXELS, LOOK_DEPTH, LOOK_ENCODED, LOOK_OTHER };

static struct weir_image_shape image_of(const struct weir_zarray *about)
{
    return weir_image_shape(about->grid.rank, about->grid.dims, about->kind == 'f');
}

static enum look look_of(const struct weir_zarray *about)
{
    const struct weir_chunk_grid *grid = &about->grid;
    struct weir_image_shape image = image_of(about);
    bool is_float = about->kind == 'f', is_bytes = about->kind == 'u' && grid->element_bytes == 1;
    if (about->is_image)
        return LOOK_ENCODED;
    bool depth = grid->rank == 3 || (grid->rank == 4 && (grid->dims[3] == 1 || grid->dims[1] == 1));
    if (depth && about->kind == 'u' && grid->element_bytes == 2)
        return LOOK_DEPTH;
    if (image.channels == 0)
        return LOOK_NUMBERS;
    /* one-channel floats may be gray or depth in metres */
    return is_bytes || (is_float && image.channels > 1) ? LOOK_PIXELS : LOOK_OTHER;
}

/* Finds an array and checks that it has the episode's rows. */
static int find(struct weir_store *store, const char *path, struct weir_zarr_array **array, struct weir_err *err)
{
    const struct weir_zarr_episode *e = (const struct weir_zarr_episode *)store;
    int rc = weir_zarr_array(e->zarr, path, array, err);
    if (rc < 0 || (*array)->about.grid.dims[0] >= e->begin + e->steps)
        return rc;
    return weir_err_set(err, -EBADMSG,
                        "%s: has %llu rows, but meta/episode_ends ends at %llu; was it copied completely?", path,
                        (unsigned long long)(*array)->about.grid.dims[0], (unsigned long long)(e->begin + e->steps));
}

static bool has(struct weir_store *store, const char *path)
{
    const struct weir_zarr_episode *e = (const struct weir_zarr_episode *)store;
    char key[1024];
    snprintf(key, sizeof key, "%.1000s/.zarray", path + (*path == '/'));
    return weir_zarr_has(&e->zarr->files, key);
}

static bool is_group(struct weir_store *store, const char *path)
{
    const struct weir_zarr_episode *e = (const struct weir_zarr_episode *)store;
    char key[1024];
    snprintf(key, sizeof key, "%.1000s/.zgroup", path + (*path == '/'));
    return weir_zarr_has(&e->zarr->files, key);
}

static int list(struct weir_store *store, const char *group, char (**names)[64], int *n, struct weir_err *err)
{
    const struct weir_zarr_episode *e = (const struct weir_zarr_episode *)store;
    if (strcmp(group, "/") == 0) { /* only this group has arrays with one row per step */
        *names = calloc(1, sizeof **names);
        *n = *names ? snprintf(**names, sizeof **names, "data") > 0 : 0;
        return *names ? 0 : weir_no_memory(err);
    }
    return weir_zarr_list(&e->zarr->files, group + (*group == '/'), names, n, err);
}

/* ---- shapes ---- */

static int shape_of(const struct weir_zarr_array *array, uint64_t steps, struct weir_array_shape *shape,
                    struct weir_err *err)
{
    const struct weir_zarray *about = &array->about;
    const struct weir_chunk_grid *grid = &about->grid;
    enum look look = look_of(about);
    *shape = (struct weir_array_shape){.rank = grid->rank, .type_bytes = grid->element_bytes};
    memcpy(shape->dims, grid->dims, sizeof shape->dims);
    shape->dims[0] = steps;
    shape->element = about->kind == 'f' ? WEIR_ELEMENT_FLOAT : WEIR_ELEMENT_INTEGER;
    shape->is_signed = about->kind == 'i';
    if (look == LOOK_OTHER && about->kind == 'b') /* booleans are masks */
        shape->element = WEIR_ELEMENT_OTHER;
    if (look == LOOK_PIXELS) {
        struct weir_image_shape image = image_of(about);
        *shape = (struct weir_array_shape){.rank = 4, .element = WEIR_ELEMENT_INTEGER, .type_bytes = 1};
        memcpy(shape->dims, (uint64_t[]){steps, image.height, image.width, 3}, 4 * sizeof *shape->dims);
    } else if (look == LOOK_DEPTH && grid->rank == 4) {
        shape->rank = 3; /* removes the single channel, which may be the first dimension */
        shape->dims[1] = grid->dims[1] == 1 ? grid->dims[2] : grid->dims[1];
        shape->dims[2] = grid->dims[1] == 1 ? grid->dims[3] : grid->dims[2];
    } else if (look == LOOK_ENCODED) {
        shape->rank = 1;
        shape->element = WEIR_ELEMENT_VLEN_BYTES;
        shape->type_bytes = grid->element_bytes; /* size of an element of the decoded image */
    } else if (look == LOOK_NUMBERS && grid->rank > 1) {
        shape->rank = 2;
        shape->is_flattened = grid->rank > 2;
        for (int d = 2; d < grid->rank; d++)
            if (__builtin_mul_overflow(shape->dims[1], grid->dims[d], &shape->dims[1]))
                return weir_err_set(err, -EFBIG, "%s: its shape is too large", array->path);
    }
    return 0;
}

static int shape(struct weir_store *store, const char *path, struct weir_array_shape *found, struct weir_err *err)
{
    const struct weir_zarr_episode *e = (const struct weir_zarr_episode *)store;
    struct weir_zarr_array *array;
    *found = (struct weir_array_shape){.element = WEIR_ELEMENT_OTHER};
    int rc = find(store, path, &array, err);
    return rc < 0 ? rc : shape_of(array, e->steps, found, err);
}

/* Returns true if a chunk of these rows was never written. Chunks are in row-major order. */
static bool has_fill(const struct weir_zarr_array *array, uint64_t begin, uint64_t steps)
{
    const struct weir_chunk_grid *grid = &array->about.grid;
    uint64_t per_row = array->n_chunks / ((grid->dims[0] + grid->chunk[0] - 1) / grid->chunk[0]);
    for (uint64_t i = begin / grid->chunk[0] * per_row; i < ((begin + steps - 1) / grid->chunk[0] + 1) * per_row; i++)
        if (array->chunks[i].offset == WEIR_CHUNK_NONE)
            return true;
    return false;
}

static int read_numbers(struct weir_store *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_array_shape *found, struct weir_err *err)
{
    const struct weir_zarr_episode *e = (const struct weir_zarr_episode *)store;
    struct weir_zarr_array *array;
    *values = NULL;
    int rc = find(store, path, &array, err);
    if (rc == 0)
        rc = weir_zarr_numbers(e->zarr, array, err);
    if (rc == 0)
        rc = shape_of(array, e->steps, found, err);
    if (rc < 0)
        return rc;
    size_t row_bytes = weir_number_bytes(array->type);
    for (int d = 1; d < array->about.grid.rank; d++)
        row_bytes *= (size_t)array->about.grid.dims[d]; /* no overflow, because all rows together have at most 2 GiB */
    *type = array->type;
    *values = malloc((size_t)e->steps * row_bytes + 1);
    if (!*values)
        return weir_no_memory(err);
    memcpy(*values, (const uint8_t *)array->values + (size_t)e->begin * row_bytes, (size_t)e->steps * row_bytes);
    found->has_fill = has_fill(array, e->begin, e->steps);
    return 0;
}

/* ---- locations of images ---- */

/* Returns true if every chunk is exactly one frame. */
static bool one_frame_each(const struct weir_chunk_grid *grid)
{
    bool whole = grid->chunk[0] == 1;
    for (int d = 1; d < grid->rank; d++)
        whole = whole && grid->chunk[d] >= grid->dims[d];
    return whole;
}

static int place_encoded(const struct weir_zarr_episode *e, const struct weir_zarr_array *array,
                         struct weir_frame_map *map, struct weir_err *err)
{
    if (!one_frame_each(&array->about.grid))
        return weir_err_set(err, -ENOTSUP,
                            "%s: each encoded chunk must contain exactly one frame; write it with chunks of one frame",
                            array->path);
    if (array->about.image != WEIR_FRAME_IMAGE && array->about.grid.element_bytes != 1)
        return weir_err_set(err, -ENOTSUP, "%s: the pixels of a %s must be uint8; depth is read as imagecodecs_png",
                            array->path, weir_frame_kind_name(array->about.image));
    map->kind = array->about.image;
    map->storage = WEIR_STORED_EXTENTS;
    map->extents = calloc((size_t)e->steps, sizeof *map->extents);
    if (!map->extents)
        return weir_no_memory(err);
    for (uint64_t t = 0; t < e->steps; t++) {
        const struct weir_chunk *chunk = &array->chunks[e->begin + t];
        if (chunk->offset != WEIR_CHUNK_NONE)
            map->extents[t] = (struct weir_frame_extent){chunk->offset, chunk->bytes};
    }
    map->first_part = array->first_part + (uint32_t)e->begin;
    map->part_rows = e->zarr->files.parts ? 1 : 0;
    return 0;
}

/* Describes the episode's rows as blocks. The first block may begin before the episode. */
static int cut_out(const struct weir_zarr_episode *e, const struct weir_zarr_array *array, struct weir_blocks **out,
                   struct weir_err *err)
{
    struct weir_blocks *blocks = malloc(sizeof *blocks);
    uint64_t rows = array->about.grid.chunk[0], before = e->begin % rows;
    bool fits = blocks && weir_zarr_blocks(array, before + e->steps, blocks);
    struct weir_image_shape image = image_of(&array->about);
    bool as_stored = look_of(&array->about) == LOOK_DEPTH || (image.channels == 3 && !image.is_planar);
    if (fits && array->floats) {
        blocks->filters.filter[blocks->filters.n++] = blocks->filters.filter[0];
        blocks->filters.filter[0].id = WEIR_FILTER_FLOATS;
        blocks->filters.filter[0].element_bytes = array->floats;
        blocks->grid.element_bytes = 1;
        weir_floats_to_pixels(array->floats, array->about.fill, 1, blocks->fill);
        fits = weir_blocks_init(blocks);
    }
    if (fits && !as_stored) {
        blocks->channels = image.channels;
        blocks->is_planar = image.is_planar;
        fits = weir_blocks_init(blocks);
    }
    if (!fits) {
        int rc = !blocks ? weir_no_memory(err)
                         : weir_err_set(err, -EFBIG, "%s: its chunks or frames have 1 GiB or more", array->path);
        free(blocks);
        return rc;
    }
    uint64_t first = e->begin / rows * blocks->per_block;
    blocks->before = (uint32_t)before;
    blocks->in_parts = e->zarr->files.parts != NULL;
    blocks->first_part = array->first_part + (uint32_t)first;
    blocks->chunks = malloc(blocks->n_chunks * sizeof *blocks->chunks);
    if (!blocks->chunks) {
        free(blocks);
        return weir_no_memory(err);
    }
    memcpy(blocks->chunks, array->chunks + first, blocks->n_chunks * sizeof *blocks->chunks);
    *out = blocks;
    return 0;
}

/* Returns true for unfiltered chunks of whole frames. */
static bool are_plain(const struct weir_blocks *blocks)
{
    bool plain =
        blocks->filters.n == 0 && blocks->channels == 0 && blocks->chunk_bytes == blocks->rows * blocks->row_bytes;
    for (uint32_t i = 0; i < blocks->n_chunks && plain; i++)
        plain = blocks->chunks[i].offset != WEIR_CHUNK_NONE && blocks->chunks[i].bytes == blocks->chunk_bytes;
    return plain && blocks->per_block == 1;
}

static int place_pixels(const struct weir_zarr_episode *e, const struct weir_zarr_array *array,
                        struct weir_frame_map *map, struct weir_err *err)
{
    int rc = cut_out(e, array, &map->blocks, err);
    if (rc < 0)
        return rc;
    struct weir_blocks *blocks = map->blocks;
    map->storage = WEIR_STORED_BLOCKS;
    if (!are_plain(blocks))
        return 0;
    map->storage = WEIR_STORED_EXTENTS;
    map->extents = calloc((size_t)e->steps, sizeof *map->extents);
    for (uint64_t t = 0; t < e->steps && map->extents; t++) {
        uint64_t row = blocks->before + t;
        map->extents[t].offset = blocks->chunks[row / blocks->rows].offset + row % blocks->rows * blocks->row_bytes;
        map->extents[t].length = blocks->row_bytes;
    }
    map->first_part = blocks->first_part;
    map->before = blocks->before;
    map->part_rows = blocks->in_parts ? blocks->rows : 0;
    weir_blocks_close(blocks);
    map->blocks = NULL;
    return map->extents ? 0 : weir_no_memory(err);
}

static int rows(struct weir_store *store, const char *path, struct weir_frame_map *map, struct weir_array_shape *found,
                struct weir_err *err)
{
    const struct weir_zarr_episode *e = (const struct weir_zarr_episode *)store;
    struct weir_zarr_array *array;
    int rc = find(store, path, &array, err);
    if (rc == 0)
        rc = shape_of(array, e->steps, found, err);
    if (rc < 0)
        return rc;
    enum look look = look_of(&array->about);
    if (look == LOOK_NUMBERS && weir_looks_like_images(found)) /* rows of bytes, such as padded JPEGs */
        return weir_err_set(err, -EBADMSG, "%s: contains numbers; images are read from %s", path,
                            weir_store_zarr.images);
    if (look == LOOK_NUMBERS || look == LOOK_OTHER || e->steps > INT32_MAX / 2)
        return 0; /* the caller refuses a shape that is not that of images */
    if (look == LOOK_DEPTH && array->about.big_endian)
        return weir_err_set(err, -ENOTSUP, "%s: depth is stored as big-endian numbers; store it as '<u2'", array->path);
    rc = weir_zarr_locate(e->zarr, array, err);
    if (rc == 0 && look == LOOK_PIXELS && array->about.kind == 'f')
        rc = weir_zarr_float_range(e->zarr, array, err);
    if (rc < 0)
        return rc;
    return look == LOOK_ENCODED ? place_encoded(e, array, map, err) : place_pixels(e, array, map, err);
}

const struct weir_store_ops weir_store_zarr = {
    .has = has,
    .is_group = is_group,
    .list = list,
    .shape = shape,
    .read_numbers = read_numbers,
    .rows = rows,
    .texts = weir_zarr_texts,
    .images = "uint8 (steps, height, width), uint8 and floats (steps, height, width, 3 or 4) and (steps, 3 or 4, "
              "height, width), or imagecodecs' chunks of one image",
};
