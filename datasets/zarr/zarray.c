#include "datasets/index.h"
#include "datasets/zarr/zarr_arrays.h"
#include "decoders/frame_kind.h"

#include <endian.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong(struct weir_err *err, const char *what)
{
    return weir_err_set(err, -EBADMSG, ".zarray: %s; is the file complete?", what);
}

/* ---- dtype ---- */

static int parse_dtype(const json_t *json, struct weir_zarray *array, struct weir_err *err)
{
    const char *dtype = json_string_value(json);
    size_t n = dtype ? strlen(dtype) : 0;
    int bytes = n == 3 ? dtype[2] - '0' : 0;
    bool fits = n == 3 && strchr("<>|", dtype[0]) && strchr("fiub", dtype[1]) &&
                (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && !(dtype[1] == 'f' && bytes == 1) &&
                !(dtype[1] == 'b' && bytes != 1);
    if (!fits)
        return weir_err_set(err, -ENOTSUP, "elements of type %s%s%s are not supported, only numbers of 1 to 8 bytes",
                            dtype ? "\"" : "", dtype && n < 100 ? dtype : "struct", dtype ? "\"" : "");
    array->kind = dtype[1];
    array->big_endian = dtype[0] == '>' && bytes > 1;
    array->grid.element_bytes = (uint32_t)bytes;
    return 0;
}

/* ---- shape ---- */

static int parse_dims(const json_t *json, const char *what, int rank, uint64_t least, uint64_t *dims,
                      struct weir_err *err)
{
    if (!json_is_array(json) || (int)json_array_size(json) != rank)
        return weir_err_set(err, -EBADMSG, ".zarray: %s must be a list of %d numbers; is the file complete?", what,
                            rank);
    for (int d = 0; d < rank; d++) {
        const json_t *value = json_array_get(json, (size_t)d);
        json_int_t number = json_integer_value(value);
        if (!json_is_integer(value) || number < (json_int_t)least || number > INT64_MAX / 2)
            return weir_err_set(err, -EBADMSG, ".zarray: %s has an invalid number; is the file complete?", what);
        dims[d] = (uint64_t)number;
    }
    return 0;
}

static int parse_shape(const json_t *root, struct weir_zarray *array, struct weir_err *err)
{
    const json_t *shape = json_object_get(root, "shape");
    size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank < 1 || rank > WEIR_GRID_RANK_MAX)
        return wrong(err, "shape must be a list of 1 to 8 numbers");
    array->grid.rank = (int)rank;
    int rc = parse_dims(shape, "shape", (int)rank, 0, array->grid.dims, err);
    if (rc == 0)
        rc = parse_dims(json_object_get(root, "chunks"), "chunks", (int)rank, 1, array->grid.chunk, err);
    return rc;
}

/* ---- fill value ---- */

static void put_number(struct weir_zarray *array, uint64_t bits)
{
    size_t n = array->grid.element_bytes;
    uint64_t value = array->big_endian ? htobe64(bits << 8 * (8 - n)) : htole64(bits);
    memcpy(array->fill, &value, n);
}

static uint64_t half_bits(double value)
{
    for (uint32_t bits = 0; bits < 65536; bits++) { /* runs once per array, and few arrays have such values */
        int exponent = bits >> 10 & 31;
        double magnitude = exponent ? ldexp((bits & 1023) + 1024.0, exponent - 25) : ldexp(bits & 1023, -24);
        if (exponent < 31 && (bits & 0x8000 ? -magnitude : magnitude) == value)
            return bits;
    }
    return isnan(value) ? 0x7E00 : value > 0 ? 0x7C00 : 0xFC00;
}

static void put_float(struct weir_zarray *array, double value)
{
    uint64_t wide;
    uint32_t single_bits;
    float single = (float)value;
    memcpy(&wide, &value, sizeof wide);
    memcpy(&single_bits, &single, sizeof single_bits);
    size_t n = array->grid.element_bytes;
    put_number(array, n == 8 ? wide : n == 4 ? single_bits : half_bits(value));
}

static int parse_fill(const json_t *json, struct weir_zarray *array, struct weir_err *err)
{
    const char *text = json_string_value(json);
    bool special =
        text && (strcmp(text, "NaN") == 0 || strcmp(text, "Infinity") == 0 || strcmp(text, "-Infinity") == 0);
    if (!json || json_is_null(json))
        return 0;
    if (array->kind == 'f' && special)
        put_float(array, text[0] == 'N' ? (double)NAN : text[0] == 'I' ? (double)INFINITY : -(double)INFINITY);
    else if (array->kind == 'f' && json_is_number(json))
        put_float(array, json_number_value(json));
    else if (array->kind != 'f' && json_is_integer(json))
        put_number(array, (uint64_t)json_integer_value(json));
    else if (json_is_boolean(json))
        put_number(array, (uint64_t)json_is_true(json));
    else
        return wrong(err, "fill_value does not fit the array's dtype");
    return 0;
}

/* ---- compressor ---- */

/* Returns the kind of image that a compressor's name stands for, or -1. */
static int image_kind(const char *id)
{
    static const char package[] = "imagecodecs_";
    const char *codec = strncmp(id, package, strlen(package)) == 0 ? id + strlen(package) : NULL;
    for (int i = 0; i < WEIR_FRAME_KINDS; i++) {
        const struct weir_frame_kind_row *row = weir_frame_kind_row((enum weir_frame_kind)i);
        bool named = row->group == WEIR_FRAMES_NAMED;
        if (codec ? row->imagecodecs && strcmp(codec, row->imagecodecs) == 0 : named && strcmp(id, row->name) == 0)
            return named ? i : WEIR_FRAME_IMAGE;
    }
    return codec && strcmp(codec, "jpeg8") == 0 ? WEIR_FRAME_IMAGE : -1;
}

/* Lists the compressors of images: "imagecodecs_jpeg, ...". */
static void list_images(char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < WEIR_FRAME_KINDS && at < size; i++) {
        const struct weir_frame_kind_row *row = weir_frame_kind_row((enum weir_frame_kind)i);
        if (row->magic[0].bytes)
            at += (size_t)snprintf(text + at, size - at, ", imagecodecs_%s", row->imagecodecs);
    }
}

static const struct {
    const char *id;
    int filter;
} filters[] = {
    {"zlib", WEIR_FILTER_DEFLATE},
    {"gzip", WEIR_FILTER_GZIP},
    {"zstd", WEIR_FILTER_ZARR_ZSTD},
    {"blosc", WEIR_FILTER_ZARR_BLOSC},
};

static int add_filter(struct weir_zarray *array, int id, struct weir_err *err)
{
    array->filters.n = 1;
    array->filters.filter[0].id = id;
    if (weir_filters_can_undo(&array->filters))
        return 0;
    return weir_err_set(err, -ENOTSUP,
                        "its compressor is %s, but this build of weir does not include lib%s; use a build that does, "
                        "or store the array with another compressor",
                        weir_filter_name(id), weir_filter_name(id));
}

static int parse_compressor(const json_t *json, struct weir_zarray *array, struct weir_err *err)
{
    if (!json || json_is_null(json))
        return 0;
    const char *id = json_string_value(json_object_get(json, "id"));
    if (!id)
        return wrong(err, "its compressor has no id");
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        if (strcmp(filters[i].id, id) == 0)
            return add_filter(array, filters[i].filter, err);
    int kind = image_kind(id);
    if (kind >= 0) {
        array->is_image = true;
        array->image = (enum weir_frame_kind)kind;
        return 0;
    }
    char images[256];
    list_images(images, sizeof images);
    return weir_err_set(err, -ENOTSUP, "its compressor %.60s is not supported; null, zlib, gzip, zstd, blosc%s are", id,
                        images);
}

/* ---- the metadata ---- */

static int parse_rest(const json_t *root, struct weir_zarray *array, struct weir_err *err)
{
    const json_t *coders = json_object_get(root, "filters");
    const char *order = json_string_value(json_object_get(root, "order"));
    const char *separator = json_string_value(json_object_get(root, "dimension_separator"));
    const char *coder = json_string_value(json_object_get(json_array_get(coders, 0), "id"));
    if (json_array_size(coders) > 0)
        return weir_err_set(err, -ENOTSUP,
                            "it has the filter %.60s, but filters are not supported; store it without filters",
                            coder ? coder : "(unnamed)");
    if (order && strcmp(order, "C") != 0)
        return weir_err_set(err, -ENOTSUP, "its order is %.10s, but only C (row-major) is supported", order);
    if (separator && strcmp(separator, ".") != 0 && strcmp(separator, "/") != 0)
        return wrong(err, "dimension_separator is neither \".\" nor \"/\"");
    array->separator = separator ? separator[0] : '.';
    int rc = parse_dtype(json_object_get(root, "dtype"), array, err);
    if (rc == 0)
        rc = parse_shape(root, array, err);
    if (rc == 0)
        rc = parse_fill(json_object_get(root, "fill_value"), array, err);
    return rc == 0 ? parse_compressor(json_object_get(root, "compressor"), array, err) : rc;
}

int weir_zarray_parse(const char *text, size_t n, struct weir_zarray *array, struct weir_err *err)
{
    *array = (struct weir_zarray){0};
    if (n > WEIR_ZARRAY_BYTES_MAX)
        return weir_err_set(err, -EFBIG, ".zarray: has over 1 MiB");
    json_t *root;
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_json_object_parse(text, n, &root, &why);
    if (rc < 0)
        return rc == -EBADMSG ? wrong(err, why.text) : weir_err_set(err, rc, "%s", why.text);
    if (json_integer_value(json_object_get(root, "zarr_format")) != 2)
        rc = wrong(err, "its zarr_format is not 2");
    else
        rc = parse_rest(root, array, err);
    json_decref(root);
    return rc;
}

/* ---- metadata of stores that Weir wrote: .zattrs of the root and of episodes/N ---- */

enum { TEXTS_BYTES_MAX = 1 << 20 };

/* Reads the JSON object under a key; *object is NULL if the key does not exist. Returns -EBADMSG if the value is not a
 * JSON object. */
static int read_object(struct weir_zarr *zarr, const char *key, json_t **object, struct weir_err *err)
{
    uint8_t *text;
    size_t n;
    *object = NULL;
    if (!weir_zarr_has(&zarr->files, key))
        return 0;
    int rc = weir_zarr_read(&zarr->files, key, TEXTS_BYTES_MAX, &text, &n, err);
    if (rc < 0)
        return rc;
    struct weir_err why = WEIR_ERR_NONE;
    rc = weir_json_object_parse((const char *)text, n, object, &why);
    free(text);
    return rc < 0 ? weir_err_set(err, rc, "%s: %s%s", key, why.text, rc == -EBADMSG ? "; repair it, or remove it" : "")
                  : 0;
}

int weir_zarr_read_color(struct weir_zarr *zarr, struct weir_err *err)
{
    json_t *root;
    int rc = read_object(zarr, ".zattrs", &root, err);
    const json_t *weir = json_object_get(root, "weir"), *color = json_object_get(weir, "color");
    zarr->is_ours = json_is_object(weir);
    if (color)
        rc = weir_color_parse(".zattrs: weir.color", json_string_value(color), &zarr->is_bgr, err);
    json_decref(root);
    return rc;
}

int weir_zarr_texts(struct weir_store *store, struct weir_episode *episode, struct weir_err *err)
{
    const struct weir_zarr_episode *e = (const struct weir_zarr_episode *)store;
    char key[64];
    json_t *root;
    if (!e->zarr->is_ours)
        return 0;
    snprintf(key, sizeof key, "episodes/%d/.zattrs", e->number);
    int rc = read_object(e->zarr, key, &root, err);
    if (rc == 0)
        rc = weir_episode_add_json(episode, root, err);
    json_decref(root);
    return rc;
}
