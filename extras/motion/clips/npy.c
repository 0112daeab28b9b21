/* Parses the header of an .npy array. */
#include "base/files.h"
#include "extras/motion/clips/npz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DESCR_MAX = 32, MAGIC_BYTES = 6 };
static const char magic[MAGIC_BYTES + 1] = "\x93NUMPY";

static int wrong(struct weir_err *err, const char *what)
{
    return weir_err_set(err, -EBADMSG, "its npy header %s; save it again with numpy", what);
}

int weir_npy_header_bytes(const uint8_t prefix[WEIR_NPY_PREFIX], struct weir_err *err)
{
    if (memcmp(prefix, magic, MAGIC_BYTES) != 0)
        return weir_err_set(err, -EBADMSG, "is not an npy array; write it with numpy");
    int major = prefix[6], minor = prefix[7];
    if (major < 1 || major > 3 || minor != 0)
        return weir_err_set(err, -ENOTSUP, "has npy version %d.%d, but only 1.0, 2.0 and 3.0 are supported", major,
                            minor);
    uint64_t n = major == 1 ? weir_le(prefix + 8, 2) + 10 : weir_le(prefix + 8, 4) + 12;
    if (n > WEIR_NPY_HEADER_MAX)
        return weir_err_set(err, -EFBIG, "its npy header has %llu bytes, but at most %d are supported",
                            (unsigned long long)n, WEIR_NPY_HEADER_MAX);
    return n < WEIR_NPY_PREFIX ? wrong(err, "is empty") : (int)n;
}

/* ---- the dictionary ---- */

struct text {
    const char *at, *end;
};

static void skip_spaces(struct text *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t' || *text->at == '\n'))
        text->at++;
}

/* Skips spaces and consumes the character wanted. Returns false if a different character follows. */
static bool take(struct text *text, char wanted)
{
    skip_spaces(text);
    if (text->at == text->end || *text->at != wanted)
        return false;
    text->at++;
    return true;
}

/* Parses a string in single or double quotes, without escapes and of at most size - 1 characters. */
static bool take_string(struct text *text, char *string, size_t size)
{
    skip_spaces(text);
    char quote = text->at < text->end ? *text->at : 0;
    size_t n = 0;
    if (quote != '\'' && quote != '"')
        return false;
    for (text->at++; text->at < text->end && *text->at != quote; text->at++) {
        if (n + 1 >= size || *text->at == '\\' || *text->at < ' ')
            return false;
        string[n++] = *text->at;
    }
    string[n] = '\0';
    return take(text, quote);
}

static bool take_word(struct text *text, const char *word)
{
    size_t n = strlen(word);
    skip_spaces(text);
    if ((size_t)(text->end - text->at) < n || memcmp(text->at, word, n) != 0)
        return false;
    text->at += n;
    return true;
}

static bool take_number(struct text *text, uint64_t *number)
{
    const char *from;
    skip_spaces(text);
    *number = 0;
    for (from = text->at; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
        if (__builtin_mul_overflow(*number, 10, number) || __builtin_add_overflow(*number, *text->at - '0', number))
            return false;
    return text->at > from;
}

/* Parses a tuple of numbers, such as (), (3,), (3, 4) or (3, 4,). */
static int take_shape(struct text *text, struct weir_npy *npy, struct weir_err *err)
{
    bool more = take(text, '(');
    if (!more)
        return wrong(err, "has a shape that is not a tuple");
    for (npy->rank = 0; more && !take(text, ')'); npy->rank++) {
        uint64_t dim;
        if (!take_number(text, &dim))
            return wrong(err, "has a shape that is not a tuple of numbers");
        if (npy->rank == WEIR_FILE_ARRAY_RANK)
            return weir_err_set(err, -ENOTSUP, "has more than %d dimensions", WEIR_FILE_ARRAY_RANK);
        npy->dims[npy->rank] = dim;
        more = take(text, ',');
        if (!more && (npy->rank == 0 || !take(text, ')')))
            return wrong(err, "has a shape that is not a tuple of numbers");
    }
    return 0;
}

/* ---- the type of the elements ---- */

/* Reports an unsupported type. "descr" is empty for records and subarrays, whose descr is a list. */
static int no_type(struct weir_err *err, const char *descr)
{
    if (*descr == '|' && descr[1] == 'O')
        return weir_err_set(err, -ENOTSUP,
                            "holds Python objects as a pickle, which is refused because reading a pickle can run code; "
                            "save numbers, or "
                            "strings as np.array(names, dtype=str)");
    return weir_err_set(err, -ENOTSUP, "has elements of type %s; save numbers of 1 to 8 bytes, or strings",
                        *descr ? descr : "several fields");
}

static int read_descr(const char *descr, struct weir_npy *npy, struct weir_err *err)
{
    char order = descr[0], kind = order ? descr[1] : 0;
    struct text digits = {descr, descr + strlen(descr)};
    uint64_t size = 0;
    digits.at += kind ? 2 : 0;
    if (!kind || !strchr("<>|=", order) || !strchr("fiubUS", kind) || !take_number(&digits, &size) ||
        digits.at != digits.end)
        return no_type(err, descr);
    bool text = kind == 'U' || kind == 'S', single = kind == 'S' || (!text && size == 1);
    bool fits = text ? size <= WEIR_NPY_HEADER_MAX
                     : (size == 1 || size == 2 || size == 4 || size == 8) && !(kind == 'f' && size == 1) &&
                           !(kind == 'b' && size != 1);
    if (!fits || (order == '|' && !single && size > 0))
        return no_type(err, descr);
    npy->kind = kind;
    npy->item_bytes = (uint32_t)(kind == 'U' ? 4 * size : size);
    npy->big_endian = order == '>' && !single; /* '=', the writer's byte order, is assumed to be little-endian */
    return 0;
}

/* ---- the header ---- */

enum { DESCR = 1, ORDER = 2, SHAPE = 4 };

/* Parses one key and its value. *which is the set of keys parsed so far, to which this key is added. */
static int take_entry(struct text *text, struct weir_npy *npy, int *which, struct weir_err *err)
{
    char key[DESCR_MAX], descr[DESCR_MAX];
    if (!take_string(text, key, sizeof key) || !take(text, ':'))
        return wrong(err, "does not have a key where one is expected");
    int now = strcmp(key, "descr") == 0           ? DESCR
              : strcmp(key, "fortran_order") == 0 ? ORDER
              : strcmp(key, "shape") == 0         ? SHAPE
                                                  : 0;
    if (!now || *which & now)
        return wrong(err, now ? "has the same key twice" : "has a key other than descr, fortran_order and shape");
    *which |= now;
    if (now == SHAPE)
        return take_shape(text, npy, err);
    if (now == DESCR && take(text, '['))
        return no_type(err, "");
    if (now == DESCR)
        return take_string(text, descr, sizeof descr) ? read_descr(descr, npy, err)
                                                      : wrong(err, "has a descr that is not a string");
    npy->fortran = take_word(text, "True");
    return npy->fortran || take_word(text, "False") ? 0 : wrong(err, "has a fortran_order that is not a bool");
}

static int take_entries(struct text *text, struct weir_npy *npy, struct weir_err *err)
{
    int which = 0;
    bool more = take(text, '{');
    if (!more)
        return wrong(err, "is not a dictionary");
    while (!take(text, '}')) {
        if (!more)
            return wrong(err, "is not a dictionary");
        int rc = take_entry(text, npy, &which, err);
        if (rc < 0)
            return rc;
        more = take(text, ',');
    }
    skip_spaces(text);
    if (text->at != text->end)
        return wrong(err, "continues after its dictionary");
    return which == (DESCR | ORDER | SHAPE) ? 0 : wrong(err, "does not contain descr, fortran_order or shape");
}

static int count_items(struct weir_npy *npy, struct weir_err *err)
{
    bool texts = npy->kind == 'U' || npy->kind == 'S', fits = true;
    npy->items = 1;
    for (int d = 0; d < npy->rank; d++)
        fits = fits && !__builtin_mul_overflow(npy->items, npy->dims[d], &npy->items);
    fits = fits && !__builtin_mul_overflow(npy->items, (uint64_t)npy->item_bytes, &npy->data_bytes);
    fits = fits && npy->data_bytes <= WEIR_FILE_ARRAY_BYTES && npy->items <= WEIR_FILE_ARRAY_BYTES;
    if (fits && texts && npy->items > WEIR_FILE_ARRAY_TEXTS)
        return weir_err_set(err, -EFBIG, "has %llu strings, but at most %d are supported",
                            (unsigned long long)npy->items, WEIR_FILE_ARRAY_TEXTS);
    return fits ? 0 : weir_err_set(err, -EFBIG, "is larger than 1 GiB; check its shape");
}

int weir_npy_parse(const uint8_t *header, size_t n, struct weir_npy *npy, struct weir_err *err)
{
    *npy = (struct weir_npy){0};
    size_t prefix = header[6] == 1 ? 10 : 12;
    struct text text = {(const char *)header + prefix, (const char *)header + n};
    int rc = take_entries(&text, npy, err);
    return rc < 0 ? rc : count_items(npy, err);
}
