#include "datasets/zarr/zarr_arrays.h"
#include "base/claims.h"
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/chunks/filters.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 1 << 30 };

/* ---- metadata ---- */

static int read_about(struct weir_zarr *zarr, const char *path, struct weir_zarray *about, struct weir_err *err)
{
    char key[1024];
    uint8_t *text;
    size_t n;
    snprintf(key, sizeof key, "%.1000s/.zarray", path);
    int rc = weir_zarr_read(&zarr->files, key, WEIR_ZARRAY_BYTES_MAX, &text, &n, err);
    if (rc < 0)
        return rc;
    rc = weir_zarray_parse((const char *)text, n, about, err);
    if (rc < 0)
        weir_err_prefix(err, "%s", path);
    free(text);
    return rc;
}

int weir_zarr_array(struct weir_zarr *zarr, const char *path, struct weir_zarr_array **found, struct weir_err *err)
{
    path += *path == '/';
    for (int i = 0; i < zarr->n; i++)
        if (strcmp(zarr->arrays[i].path, path) == 0) {
            *found = &zarr->arrays[i];
            return 0;
        }
    if (!weir_grow(&zarr->arrays, (size_t)zarr->n, sizeof *zarr->arrays))
        return weir_no_memory(err);
    struct weir_zarr_array array = {0};
    int rc = read_about(zarr, path, &array.about, err);
    if (rc < 0)
        return rc;
    array.path = strdup(path);
    if (!array.path)
        return weir_no_memory(err);
    *found = &zarr->arrays[zarr->n++];
    **found = array;
    return 0;
}

void weir_zarr_arrays_close(struct weir_zarr *zarr)
{
    for (int i = 0; i < zarr->n; i++) {
        free(zarr->arrays[i].path);
        free(zarr->arrays[i].chunks);
        free(zarr->arrays[i].values);
    }
    free(zarr->arrays);
    weir_unfilter_close(&zarr->unfilter);
}

int weir_zarr_locate(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err)
{
    if (array->is_located)
        return 0;
    int rc = weir_zarr_chunks(&zarr->files, array->path, &array->about, &array->chunks, &array->n_chunks,
                              &array->first_part, err);
    uint64_t stored = 0;
    for (uint32_t i = 0; i < array->n_chunks && rc == 0; i++)
        stored += array->chunks[i].offset == WEIR_CHUNK_NONE ? 0 : array->chunks[i].bytes;
    if (rc == 0 && stored > 0 && (rc = weir_chunk_grid_claim(&array->about.grid, stored, err)) < 0)
        weir_err_prefix(err, "%s", array->path);
    array->stored_bytes = stored;
    array->is_located = rc == 0;
    return rc;
}

bool weir_zarr_blocks(const struct weir_zarr_array *array, uint64_t rows, struct weir_blocks *blocks)
{
    *blocks = (struct weir_blocks){.grid = array->about.grid, .filters = array->about.filters};
    blocks->grid.dims[0] = rows;
    blocks->grid.filtered = blocks->filters.n > 0;
    memcpy(blocks->fill, array->about.fill, sizeof array->about.fill);
    return weir_blocks_init(blocks);
}

/* ---- chunks, unpacked ---- */

/* Reads and unpacks the chunk. *buffer grows as needed; *unpacked points into the buffer or into the unfilter context.
 */
static int unpack(struct weir_zarr *zarr, const struct weir_zarr_array *array, const struct weir_blocks *blocks,
                  uint32_t i, uint8_t **buffer, const uint8_t **unpacked, struct weir_err *err)
{
    const struct weir_chunk *chunk = &array->chunks[i];
    const char *why = "";
    *unpacked = NULL;
    if (chunk->offset == WEIR_CHUNK_NONE)
        return 0;
    uint8_t *more = realloc(*buffer, chunk->bytes ? chunk->bytes : 1);
    if (!more || (!zarr->unfilter && !(zarr->unfilter = weir_unfilter_open()))) {
        *buffer = more ? more : *buffer;
        return weir_no_memory(err);
    }
    *buffer = more;
    struct weir_err unread = WEIR_ERR_NONE;
    int rc = weir_zarr_read_chunk(&zarr->files, array->path, &array->about, array->first_part, array->chunks, i,
                                  *buffer, &unread);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: chunk %u: %s", array->path, i, unread.text);
    rc = weir_unfilter(zarr->unfilter, &blocks->filters, 0, *buffer, chunk->bytes, blocks->chunk_bytes, unpacked, &why);
    return rc < 0 ? weir_err_set(err, rc, "%s: chunk %u: %s", array->path, i, *why ? why : strerror(-rc)) : 0;
}

/* ---- numbers ---- */

static int type_of(const struct weir_zarray *about)
{
    static const char *const signed_types[] = {[1] = "int8", [2] = "int16", [4] = "int32", [8] = "int64"};
    static const char *const unsigned_types[] = {[1] = "uint8", [2] = "uint16", [4] = "uint32", [8] = "uint64"};
    uint32_t n = about->grid.element_bytes;
    if (about->kind == 'f')
        return n == 8 ? WEIR_F64 : WEIR_F32;
    return weir_number_from_name(about->kind == 'i' ? signed_types[n] : unsigned_types[n]);
}

static void swap_bytes(uint8_t *values, size_t n, size_t width)
{
    for (size_t i = 0; i < n; i++, values += width)
        for (size_t b = 0; b < width / 2; b++) {
            uint8_t byte = values[b];
            values[b] = values[width - 1 - b];
            values[width - 1 - b] = byte;
        }
}

/* Converts stored elements to native ones; half precision becomes single precision. */
static int make_native(struct weir_zarr_array *array, size_t n)
{
    size_t width = array->about.grid.element_bytes;
    uint32_t kind = (uint32_t)width | (array->about.big_endian ? WEIR_FLOATS_BIG_ENDIAN : 0);
    bool big_here = BYTE_ORDER == BIG_ENDIAN;
    if (array->about.kind == 'f' && width == 2) {
        float *wide = malloc((n ? n : 1) * sizeof *wide);
        for (size_t i = 0; i < n && wide; i++)
            wide[i] = (float)weir_float_at(kind, (const uint8_t *)array->values + 2 * i);
        free(array->values);
        array->values = wide;
        return wide ? 0 : -ENOMEM;
    }
    if (width > 1 && array->about.big_endian != big_here)
        swap_bytes(array->values, n, width);
    return 0;
}

static int copy_numbers(struct weir_zarr *zarr, struct weir_zarr_array *array, const struct weir_blocks *blocks,
                        struct weir_err *err)
{
    uint8_t *buffer = NULL;
    uint64_t rows = blocks->grid.dims[0];
    int rc = 0;
    for (uint32_t i = 0; i < blocks->n_chunks && rc == 0; i++) {
        const uint8_t *unpacked;
        weir_zarr_announce(&zarr->files, array->first_part, array->chunks, i, blocks->n_chunks);
        rc = unpack(zarr, array, blocks, i, &buffer, &unpacked, err);
        uint64_t first = (uint64_t)(i / blocks->per_block) * blocks->rows;
        for (uint64_t t = first; t < rows && t < first + blocks->rows && rc == 0; t++)
            weir_blocks_clip(blocks, i % blocks->per_block, unpacked, t,
                             (uint8_t *)array->values + t * blocks->row_bytes);
    }
    free(buffer);
    return rc;
}

/* Checks what numbers take together with those that were read before: four times their bytes, because they are
 * unpacked, converted and copied. */
static int check_claim(struct weir_zarr *zarr, const struct weir_zarr_array *array, uint64_t bytes,
                       struct weir_err *err)
{
    zarr->stored_bytes += array->stored_bytes;
    zarr->numbers_bytes += bytes;
    if (weir_claim_fits(4 * zarr->numbers_bytes, zarr->stored_bytes))
        return 0;
    return weir_err_set(err, -EFBIG,
                        "%s: the numbers of the store up to here have %" PRIu64 " MiB, but their chunks only %" PRIu64
                        " bytes; are the shapes right?",
                        array->path, zarr->numbers_bytes >> 20, zarr->stored_bytes);
}

int weir_zarr_numbers(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err)
{
    struct weir_blocks blocks;
    if (array->values)
        return 0;
    if (array->about.is_image)
        return weir_err_set(err, -EBADMSG, "%s: contains images, not numbers", array->path);
    int rc = weir_zarr_locate(zarr, array, err);
    if (rc < 0)
        return rc;
    uint64_t rows = array->about.grid.dims[0], bytes;
    if (!weir_zarr_blocks(array, rows, &blocks) || __builtin_mul_overflow(rows, blocks.row_bytes, &bytes) ||
        bytes > NUMBERS_MAX)
        return weir_err_set(err, -EFBIG, "%s: its numbers exceed 1 GiB, or have more than 4 dimensions", array->path);
    rc = check_claim(zarr, array, bytes, err);
    if (rc < 0)
        return rc;
    array->type = (enum weir_number_type)type_of(&array->about);
    array->values = calloc(1, (size_t)bytes + 1);
    rc = array->values ? copy_numbers(zarr, array, &blocks, err) : weir_no_memory(err);
    if (rc == 0 && make_native(array, (size_t)bytes / array->about.grid.element_bytes) < 0)
        rc = weir_no_memory(err);
    if (rc < 0) {
        free(array->values);
        array->values = NULL;
    }
    return rc;
}

/* ---- floats as pixels ---- */

static uint32_t next_there(const struct weir_zarr_array *array, uint32_t i)
{
    while (i < array->n_chunks && array->chunks[i].offset == WEIR_CHUNK_NONE)
        i++;
    return i;
}

static int widen(struct weir_zarr *zarr, const struct weir_zarr_array *array, uint32_t i, double range[2],
                 struct weir_err *err)
{
    struct weir_blocks blocks;
    const uint8_t *unpacked;
    uint8_t *buffer = NULL;
    size_t width = array->about.grid.element_bytes;
    uint32_t kind = (uint32_t)width | (array->about.big_endian ? WEIR_FLOATS_BIG_ENDIAN : 0);
    if (!weir_zarr_blocks(array, array->about.grid.dims[0], &blocks))
        return weir_err_set(err, -EFBIG, "%s: its chunks have 1 GiB or more, or more than 4 dimensions", array->path);
    int rc = unpack(zarr, array, &blocks, i, &buffer, &unpacked, err);
    for (size_t at = 0; rc == 0 && unpacked && at + width <= blocks.chunk_bytes; at += width) {
        double value = weir_float_at(kind, unpacked + at);
        range[0] = value < range[0] ? value : range[0];
        range[1] = value > range[1] ? value : range[1];
    }
    free(buffer);
    return rc;
}

int weir_zarr_float_range(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err)
{
    double range[2] = {0, 0};
    int rc = array->floats ? 0 : weir_zarr_locate(zarr, array, err);
    if (rc < 0 || array->floats)
        return rc;
    uint32_t n = array->n_chunks, looks[] = {0, n / 2, n - 1};
    for (size_t i = 0; i < sizeof looks / sizeof looks[0] && rc == 0; i++) {
        uint32_t chunk = next_there(array, looks[i]);
        rc = chunk < n ? widen(zarr, array, chunk, range, err) : 0;
    }
    if (rc < 0)
        return rc;
    if (range[0] < 0 || range[1] > 255.5)
        return weir_err_set(
            err, -ENOTSUP,
            "%s: its float pixels are from %g to %g, but only 0 to 1 and 0 to 255 are supported; store them as uint8",
            array->path, range[0], range[1]);
    if (range[1] == 0)
        return weir_err_set(err, -ENOTSUP,
                            "%s: its float pixels are all 0 in the examined chunks, so it is unknown whether white is "
                            "1 or 255; store them as uint8",
                            array->path);
    array->floats = array->about.grid.element_bytes | (array->about.big_endian ? WEIR_FLOATS_BIG_ENDIAN : 0) |
                    (range[1] <= 1 ? WEIR_FLOATS_TO_ONE : 0);
    return 0;
}
