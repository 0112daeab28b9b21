/* Converts the items of an .npy array to native numbers and strings. */
#include "base/shortage.h"
#include "datasets/chunks/filters.h"
#include "extras/motion/clips/npz.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- order ---- */

/* Iterates over the items in C order, and computes the position of each in the file. */
struct order {
    const struct weir_npy *npy;
    uint64_t at[WEIR_FILE_ARRAY_RANK], stride[WEIR_FILE_ARRAY_RANK], item;
};

static void start(struct order *order, const struct weir_npy *npy)
{
    uint64_t stride = 1;
    *order = (struct order){.npy = npy};
    for (int i = 0; i < npy->rank; i++) {
        int d = npy->fortran ? i : npy->rank - 1 - i;
        order->stride[d] = stride;
        stride *= npy->dims[d];
    }
}

/* Returns the position of the current item and advances to the next item. */
static uint64_t next(struct order *order)
{
    uint64_t item = order->item;
    for (int d = order->npy->rank - 1; d >= 0; d--) {
        order->item += order->stride[d];
        if (++order->at[d] < order->npy->dims[d])
            break;
        order->item -= order->at[d] * order->stride[d];
        order->at[d] = 0;
    }
    return item;
}

/* ---- numbers ---- */

static enum weir_number_type type_of(const struct weir_npy *npy)
{
    static const enum weir_number_type integers[2][9] = {
        {[1] = WEIR_U8, [2] = WEIR_U16, [4] = WEIR_U32, [8] = WEIR_U64},
        {[1] = WEIR_I8, [2] = WEIR_I16, [4] = WEIR_I32, [8] = WEIR_I64}};
    if (npy->kind == 'f')
        return npy->item_bytes == 8 ? WEIR_F64 : WEIR_F32;
    return integers[npy->kind == 'i'][npy->item_bytes];
}

static void put_number(const struct weir_npy *npy, const uint8_t *from, uint8_t *to)
{
    size_t n = npy->item_bytes;
    bool swap = npy->big_endian != (BYTE_ORDER == BIG_ENDIAN);
    for (size_t i = 0; i < n; i++)
        to[i] = from[swap ? n - 1 - i : i];
}

static int read_numbers(const struct weir_npy *npy, const uint8_t *data, struct weir_file_array *array,
                        struct weir_err *err)
{
    size_t n = npy->item_bytes, wide;
    bool half = npy->kind == 'f' && n == 2;
    struct order order;
    array->type = type_of(npy);
    wide = weir_number_bytes(array->type);
    if (npy->items > WEIR_FILE_ARRAY_BYTES / wide)
        return weir_err_set(err, -EFBIG, "is larger than 1 GiB; check its shape");
    uint8_t *to = malloc((size_t)npy->items * wide + 1);
    if (!to)
        return weir_no_memory(err);
    array->values = to;
    start(&order, npy);
    if (!half && !npy->fortran &&
        npy->big_endian == (BYTE_ORDER == BIG_ENDIAN)) { /* the common case: no conversion is needed */
        memcpy(to, data, (size_t)npy->data_bytes);
        return 0;
    }
    for (uint64_t i = 0; i < npy->items; i++, to += wide) {
        const uint8_t *from = data + next(&order) * n;
        float single = half ? (float)weir_float_at(2 | (npy->big_endian ? WEIR_FLOATS_BIG_ENDIAN : 0), from) : 0;
        if (half)
            memcpy(to, &single, sizeof single);
        else
            put_number(npy, from, to);
    }
    return 0;
}

/* ---- strings ---- */

/* Encodes a character as UTF-8. Returns its number of bytes, or 0 if the character is invalid. */
static size_t encode(uint32_t code, char bytes[4])
{
    if (code >= 0x110000 || (code >= 0xd800 && code < 0xe000))
        return 0;
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t first[5] = {[1] = 0, [2] = 0xc0, [3] = 0xe0, [4] = 0xf0};
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(first[n] | code);
    return n;
}

/* Reads a string without the zeros that pad it to the item size. */
static int read_text(const struct weir_npy *npy, const uint8_t *from, char text[WEIR_FILE_ARRAY_TEXT],
                     struct weir_err *err)
{
    size_t width = npy->kind == 'U' ? 4 : 1, n = npy->item_bytes / width, used = 0;
    while (n > 0 && memcmp(from + (n - 1) * width, "\0\0\0", width) == 0)
        n--;
    for (size_t i = 0; i < n; i++) {
        uint32_t code = from[i];
        char bytes[4] = {(char)code};
        if (width == 4) {
            memcpy(&code, from + 4 * i, sizeof code);
            code = npy->big_endian ? be32toh(code) : le32toh(code);
        }
        size_t length = width == 4 ? encode(code, bytes) : 1;
        if (length == 0 || code == 0)
            return weir_err_set(err, -EBADMSG,
                                "has a string that is not valid Unicode or contains a NUL; save a valid string");
        if (length > WEIR_FILE_ARRAY_TEXT - 1 - used)
            return weir_err_set(err, -ENAMETOOLONG, "has a name longer than %d bytes; shorten it",
                                WEIR_FILE_ARRAY_TEXT - 1);
        memcpy(text + used, bytes, length);
        used += length;
    }
    return 0;
}

static int read_texts(const struct weir_npy *npy, const uint8_t *data, struct weir_file_array *array,
                      struct weir_err *err)
{
    struct order order;
    array->texts = calloc((size_t)npy->items + 1, sizeof *array->texts);
    if (!array->texts)
        return weir_no_memory(err);
    start(&order, npy);
    int rc = 0;
    for (uint64_t i = 0; i < npy->items && rc == 0; i++)
        rc = read_text(npy, data + next(&order) * npy->item_bytes, array->texts[i], err);
    return rc;
}

int weir_npy_array(const struct weir_npy *npy, const uint8_t *data, struct weir_file_array *array, struct weir_err *err)
{
    *array = (struct weir_file_array){.rank = npy->rank, .items = npy->items};
    memcpy(array->dims, npy->dims, sizeof array->dims);
    int rc = (npy->kind == 'U' || npy->kind == 'S' ? read_texts : read_numbers)(npy, data, array, err);
    if (rc < 0)
        weir_file_array_free(array);
    return rc;
}
