/* Pages of a column: headers, decompression, levels and values (parquet.thrift, Encodings.md of parquet-format). */
#include "base/claims.h"
#include "base/files.h"
#include "base/shortage.h"
#include "datasets/chunks/filters.h"
#include "datasets/chunks/unpack.h"
#include "datasets/parquet/parquet_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_PAGE = 0, INDEX_PAGE = 1, DICTIONARY_PAGE = 2, DATA_PAGE_V2 = 3 };
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, RLE_DICTIONARY = 8 };
enum { UNCOMPRESSED = WEIR_PARQUET_UNCOMPRESSED, SNAPPY = WEIR_PARQUET_SNAPPY, ZSTD = WEIR_PARQUET_ZSTD };
enum { WINDOW = 64 << 10, HEADER_MAX = 16 << 20 };

static const char *const codec_names[] = {"none", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"};
static const char *const encoding_names[] = {
    "PLAIN",          "GROUP_VAR_INT",       "PLAIN_DICTIONARY",        "RLE",
    "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"};

struct header {
    int type, encoding;
    int64_t n, stored, unpacked;
    int64_t definition_bytes, repetition_bytes; /* of version 2 */
    bool is_compressed;
};

static int bad_page(struct weir_page_reader *r, const char *why)
{
    return weir_err_set(r->err, -EBADMSG,
                        "column %s: the Parquet page before byte %" PRIu64 " is damaged: %s; copy the file again, or "
                        "write it again",
                        r->leaf->name, r->at, why);
}

static const char *name_in(const char *const *names, size_t n, int i)
{
    return i >= 0 && (size_t)i < n ? names[i] : "unknown";
}

/* Returns whether the page may take this many bytes of memory. Runs, compressed zeros and holes announce any number. */
static bool fits(const struct weir_page_reader *r, uint64_t bytes)
{
    return weir_claim_fits(bytes, r->parquet->stored_bytes);
}

/* ---- reading ---- */

/* Returns n bytes of the file, which are valid until the next call, or NULL with r->err. */
static const uint8_t *bytes_at(struct weir_page_reader *r, uint64_t at, size_t n)
{
    if (at >= r->window_at && at + n <= r->window_at + r->window_bytes)
        return r->window + (at - r->window_at);
    size_t wanted = n > WINDOW ? n : r->end - at < WINDOW ? (size_t)(r->end - at) : WINDOW;
    if (wanted > r->window_capacity) {
        free(r->window);
        r->window = malloc(wanted);
        r->window_capacity = r->window ? wanted : 0;
    }
    r->window_bytes = 0;
    if (!r->window) {
        weir_no_memory(r->err);
        return NULL;
    }
    int rc = weir_source_read(r->parquet->source, at, r->window, wanted);
    if (rc < 0) {
        weir_err_set(r->err, rc, "column %s: the file cannot be read: %s", r->leaf->name,
                     rc == -ENODATA ? "it became shorter meanwhile" : weir_source_reason(r->parquet->source, rc));
        return NULL;
    }
    r->window_at = at;
    r->window_bytes = wanted;
    return r->window;
}

static void read_data_header(struct weir_thrift *t, struct header *header, bool is_second_version)
{
    int id = 0, type;
    while ((type = weir_thrift_field(t, &id)) != 0) {
        if (id == 1)
            header->n = weir_thrift_integer(t);
        else if (id == (is_second_version ? 4 : 2) && type == WEIR_THRIFT_I32)
            header->encoding = (int)weir_thrift_integer(t);
        else if (is_second_version && id == 5)
            header->definition_bytes = weir_thrift_integer(t);
        else if (is_second_version && id == 6)
            header->repetition_bytes = weir_thrift_integer(t);
        else if (is_second_version && id == 7)
            header->is_compressed = type == WEIR_THRIFT_TRUE;
        else
            weir_thrift_skip(t, type);
    }
}

/* Returns the bytes of the header, or 0 if it does not end within n bytes. */
static size_t parse_header(const uint8_t *bytes, size_t n, struct header *header)
{
    struct weir_thrift t = {.at = bytes, .end = bytes + n};
    int id = 0, type;
    *header = (struct header){.type = -1, .encoding = -1, .n = -1, .stored = -1, .unpacked = -1, .is_compressed = true};
    while ((type = weir_thrift_field(&t, &id)) != 0) {
        if (id == 1)
            header->type = (int)weir_thrift_integer(&t);
        else if (id == 2)
            header->unpacked = weir_thrift_integer(&t);
        else if (id == 3)
            header->stored = weir_thrift_integer(&t);
        else if ((id == 5 || id == 7 || id == 8) && type == WEIR_THRIFT_STRUCT)
            read_data_header(&t, header, id == 8);
        else
            weir_thrift_skip(&t, type);
    }
    return t.is_bad ? 0 : (size_t)(t.at - bytes);
}

/* Reads the header at r->at and moves r->at to the page's bytes. Headers can contain statistics of any size. */
static int read_header(struct weir_page_reader *r, struct header *header)
{
    uint64_t left = r->end - r->at;
    size_t size = 0;
    for (size_t n = 4096; size == 0; n *= 16) {
        size_t most = left < n ? (size_t)left : n;
        const uint8_t *bytes = bytes_at(r, r->at, most);
        if (!bytes)
            return r->err->code;
        size = parse_header(bytes, most, header);
        if (size == 0 && (most == left || n >= HEADER_MAX))
            return bad_page(r, "its header");
    }
    r->at += size;
    bool sizes_fit = header->n >= 0 && header->n <= INT32_MAX && header->stored >= 0 && header->unpacked >= 0 &&
                     header->unpacked <= WEIR_PAGE_MAX && (uint64_t)header->stored <= r->end - r->at &&
                     fits(r, (uint64_t)header->unpacked) && fits(r, (uint64_t)header->stored);
    bool levels_fit = header->definition_bytes >= 0 && header->repetition_bytes >= 0 &&
                      header->definition_bytes <= header->stored &&
                      header->repetition_bytes <= header->stored - header->definition_bytes;
    if (!sizes_fit || !levels_fit)
        return bad_page(r, "a size in its header");
    if (header->n > WEIR_PAGE_VALUES_MAX) /* a run takes few bytes, whatever its length */
        return weir_err_set(r->err, -ENOTSUP, "column %s: has %" PRId64 " values in one page, the most is %d",
                            r->leaf->name, header->n, WEIR_PAGE_VALUES_MAX);
    return 0;
}

/* ---- decompression ---- */

static int unzstd(struct weir_page_reader *r, const uint8_t *in, size_t n, uint8_t *out, size_t out_n)
{
    size_t made = 0;
#if WEIR_HAVE_ZSTD
    if (!r->parquet->zstd)
        r->parquet->zstd = weir_zstd_open();
    if (!r->parquet->zstd)
        return weir_no_memory(r->err);
    if (weir_zstd_unpack(r->parquet->zstd, in, n, out, out_n, &made) < 0 || made != out_n)
        return bad_page(r, "its Zstandard frame");
    return 0;
#else
    (void)in, (void)n, (void)out, (void)out_n, (void)made;
    return weir_err_set(r->err, -ENOTSUP,
                        "column %s: its pages are compressed by ZSTD, and this weir was built without "
                        "libzstd; install libzstd-dev and build again",
                        r->leaf->name);
#endif
}

/* Returns an owned copy of the page's bytes, decompressed except for the first `levels` bytes, or NULL with r->err. */
static uint8_t *unpack(struct weir_page_reader *r, const struct header *header, int codec, const uint8_t *stored,
                       size_t levels)
{
    size_t stored_bytes = (size_t)header->stored - levels, bytes = (size_t)header->unpacked - levels;
    int rc = 0;
    if (header->unpacked < (int64_t)levels) {
        bad_page(r, "a size in its header");
        return NULL;
    }
    bool is_empty = stored_bytes == 0 && bytes == 0; /* nulls of version 2, which some writers do not compress */
    codec = header->is_compressed && !is_empty ? codec : UNCOMPRESSED;
    if (codec == UNCOMPRESSED && stored_bytes != bytes)
        rc = bad_page(r, "a size in its header");
    if (codec == SNAPPY && bytes / 32 > stored_bytes) /* Snappy expands at most 22 times */
        rc = bad_page(r, "a size in its header");
    uint8_t *memory = rc == 0 ? malloc(header->unpacked ? (size_t)header->unpacked : 1) : NULL;
    if (!memory) {
        if (rc == 0)
            weir_no_memory(r->err);
        return NULL;
    }
    memcpy(memory, stored, levels);
    if (codec == UNCOMPRESSED)
        memcpy(memory + levels, stored + levels, bytes);
    else if (codec == SNAPPY)
        rc = weir_snappy_decompress(stored + levels, stored_bytes, memory + levels, bytes) < 0
                 ? bad_page(r, "its Snappy data")
                 : 0;
    else if (codec == ZSTD)
        rc = unzstd(r, stored + levels, stored_bytes, memory + levels, bytes);
    else
        rc = weir_err_set(r->err, -ENOTSUP,
                          "column %s: its pages are compressed by %s, which is not supported; write it uncompressed or "
                          "with SNAPPY or ZSTD",
                          r->leaf->name, name_in(codec_names, sizeof codec_names / sizeof *codec_names, codec));
    if (rc == 0)
        return memory;
    free(memory);
    return NULL;
}

/* ---- values ---- */

static uint32_t length_at(const uint8_t *at)
{
    return (uint32_t)weir_le(at, 4);
}

static int plain_bytes(struct weir_page_reader *r, const uint8_t *at, size_t left, struct weir_page_values *values)
{
    if (values->n > left / 4 || !fits(r, values->n * sizeof *values->bytes))
        return bad_page(r, "it has fewer values than it announces");
    values->bytes = malloc((values->n ? values->n : 1) * sizeof *values->bytes);
    if (!values->bytes)
        return weir_no_memory(r->err);
    for (uint32_t i = 0; i < values->n; i++) {
        if (left < 4 || length_at(at) > left - 4)
            return bad_page(r, "a value ends after the page");
        values->bytes[i] = (struct weir_page_bytes){at + 4, length_at(at)};
        left -= 4 + (size_t)values->bytes[i].length;
        at += 4 + (size_t)values->bytes[i].length;
    }
    return 0;
}

/* Expands packed bits, least significant first, to bytes. */
static int plain_bools(struct weir_page_reader *r, const uint8_t *at, size_t left, struct weir_page_values *values)
{
    if (values->n > left * 8)
        return bad_page(r, "it has fewer values than it announces");
    uint8_t *bools = malloc(values->n ? values->n : 1);
    if (!bools)
        return weir_no_memory(r->err);
    weir_unpack_bits(at, values->n, bools);
    free(values->memory);
    values->memory = bools;
    values->fixed = bools;
    return 0;
}

static int plain(struct weir_page_reader *r, const uint8_t *at, size_t left, struct weir_page_values *values)
{
    int physical = r->leaf->physical;
    size_t bytes = (size_t)r->leaf->value_bytes;
    if (physical == WEIR_PHYSICAL_BYTE_ARRAY)
        return plain_bytes(r, at, left, values);
    if (physical == WEIR_PHYSICAL_BOOLEAN)
        return plain_bools(r, at, left, values);
    if (bytes == 0)
        return weir_err_set(r->err, -ENOTSUP, "column %s: its type is not supported", r->leaf->name);
    if (values->n > left / bytes)
        return bad_page(r, "it has fewer values than it announces");
    values->fixed = at;
    return 0;
}

static int rle_bools(struct weir_page_reader *r, const uint8_t *at, size_t left, struct weir_page_values *values)
{
    if (left < 4 || length_at(at) > left - 4)
        return bad_page(r, "its values");
    struct weir_rle rle = {.at = at + 4, .end = at + 4 + length_at(at), .bits = 1};
    uint8_t *bools = malloc(values->n ? values->n : 1);
    if (!bools)
        return weir_no_memory(r->err);
    bool fine = weir_rle_levels(&rle, values->n, 1, bools);
    free(values->memory);
    values->memory = bools;
    values->fixed = bools;
    return fine ? 0 : bad_page(r, "its values");
}

static int dictionary_indices(struct weir_page_reader *r, const uint8_t *at, size_t left)
{
    struct weir_page *page = &r->page;
    uint32_t n = page->values.n;
    if (n == 0)
        return 0;
    if (left == 0 || at[0] > 32 || r->dictionary.n == 0 || !fits(r, n * sizeof *page->indices))
        return bad_page(r, "its dictionary indices");
    page->indices = malloc(n * sizeof *page->indices);
    if (!page->indices)
        return weir_no_memory(r->err);
    struct weir_rle rle = {.at = at + 1, .end = at + left, .bits = at[0]};
    if (at[0] == 0) {
        memset(page->indices, 0, n * sizeof *page->indices);
        return 0;
    }
    return weir_rle_indices(&rle, n, r->dictionary.n - 1, page->indices) ? 0 : bad_page(r, "its dictionary indices");
}

static int read_values(struct weir_page_reader *r, int encoding, const uint8_t *at, size_t left)
{
    if (encoding == PLAIN)
        return plain(r, at, left, &r->page.values);
    if (encoding == RLE_DICTIONARY || encoding == PLAIN_DICTIONARY)
        return dictionary_indices(r, at, left);
    if (encoding == RLE && r->leaf->physical == WEIR_PHYSICAL_BOOLEAN)
        return rle_bools(r, at, left, &r->page.values);
    return weir_err_set(
        r->err, -ENOTSUP,
        "column %s: its encoding is %s, which is not supported; write it with PLAIN or dictionary encoding",
        r->leaf->name, name_in(encoding_names, sizeof encoding_names / sizeof *encoding_names, encoding));
}

/* ---- levels ---- */

static int bits_for(int max)
{
    int bits = 0;
    while (max >> bits)
        bits++;
    return bits;
}

/* Reads n levels of at most `max`. bytes: their encoded size. */
static int read_levels(struct weir_page_reader *r, const uint8_t *at, size_t bytes, uint32_t n, int max,
                       uint8_t **levels)
{
    struct weir_rle rle = {.at = at, .end = at + bytes, .bits = bits_for(max)};
    *levels = malloc(n ? n : 1);
    if (!*levels)
        return weir_no_memory(r->err);
    return weir_rle_levels(&rle, n, (uint32_t)max, *levels) ? 0 : bad_page(r, "its levels");
}

/* Levels of version 1 are preceded by their size. */
static int read_sized_levels(struct weir_page_reader *r, const uint8_t **at, size_t *left, int max, uint8_t **levels)
{
    if (max == 0)
        return 0;
    if (*left < 4 || length_at(*at) > *left - 4)
        return bad_page(r, "the size of its levels");
    size_t bytes = length_at(*at);
    int rc = read_levels(r, *at + 4, bytes, r->page.n, max, levels);
    *at += 4 + bytes;
    *left -= 4 + bytes;
    return rc;
}

static void count_values(struct weir_page_reader *r)
{
    r->page.values.n = r->page.n;
    for (uint32_t i = 0; i < r->page.n && r->page.definitions; i++)
        r->page.values.n -= r->page.definitions[i] != r->leaf->max_definition;
}

static int read_page_v1(struct weir_page_reader *r, const struct header *header)
{
    const uint8_t *at = r->page.values.memory;
    size_t left = (size_t)header->unpacked;
    int rc = read_sized_levels(r, &at, &left, r->leaf->max_repetition, &r->page.repetitions);
    if (rc == 0)
        rc = read_sized_levels(r, &at, &left, r->leaf->max_definition, &r->page.definitions);
    count_values(r);
    return rc < 0 ? rc : read_values(r, header->encoding, at, left);
}

static int read_page_v2(struct weir_page_reader *r, const struct header *header)
{
    const uint8_t *at = r->page.values.memory;
    size_t repetition = (size_t)header->repetition_bytes, definition = (size_t)header->definition_bytes;
    int rc = 0;
    if (r->leaf->max_repetition > 0)
        rc = read_levels(r, at, repetition, r->page.n, r->leaf->max_repetition, &r->page.repetitions);
    if (rc == 0 && r->leaf->max_definition > 0)
        rc = read_levels(r, at + repetition, definition, r->page.n, r->leaf->max_definition, &r->page.definitions);
    count_values(r);
    size_t levels = repetition + definition;
    return rc < 0 ? rc : read_values(r, header->encoding, at + levels, (size_t)header->unpacked - levels);
}

/* ---- pages ---- */

static void close_values(struct weir_page_values *values)
{
    free(values->memory);
    free(values->bytes);
    free(values->pieces);
    free(values->restarts);
    *values = (struct weir_page_values){0};
}

static void close_page(struct weir_page *page)
{
    close_values(&page->values);
    free(page->definitions);
    free(page->repetitions);
    free(page->indices);
    *page = (struct weir_page){0};
}

void weir_page_reader_open(struct weir_page_reader *reader, struct weir_parquet *parquet, int leaf,
                           const struct weir_parquet_chunk *chunk, struct weir_err *err)
{
    *reader = (struct weir_page_reader){
        .parquet = parquet,
        .leaf = &parquet->leaves[leaf],
        .err = err,
        .codec = chunk->codec,
        .at = chunk->offset,
        .end = chunk->offset + chunk->bytes,
        .left = chunk->values,
    };
}

void weir_page_reader_close(struct weir_page_reader *reader)
{
    close_page(&reader->page);
    close_values(&reader->dictionary);
    free(reader->window);
    reader->window = NULL;
}

/* Lists the page's bytes that are in the file as they are. r->at is after the page. */
static int locate(struct weir_page_reader *r, struct weir_page_values *values, const struct header *header,
                  const uint8_t *stored, size_t levels)
{
    if (!r->locates)
        return 0;
    int rc = weir_page_locate(values, header->is_compressed ? r->codec : UNCOMPRESSED, stored + levels,
                              (size_t)header->stored - levels, r->at - (uint64_t)header->stored + levels, levels);
    if (rc == -ENOMEM)
        return weir_no_memory(r->err);
    return rc < 0 ? bad_page(r, "its Snappy data") : 0;
}

static int read_dictionary(struct weir_page_reader *r, const struct header *header, const uint8_t *stored)
{
    if (r->dictionary.memory || (header->encoding != PLAIN && header->encoding != PLAIN_DICTIONARY))
        return bad_page(r, "its dictionary");
    r->dictionary.memory = unpack(r, header, r->codec, stored, 0);
    r->dictionary.n = (uint32_t)header->n;
    if (r->dictionary.memory && locate(r, &r->dictionary, header, stored, 0) < 0)
        return r->err->code;
    return r->dictionary.memory ? plain(r, r->dictionary.memory, (size_t)header->unpacked, &r->dictionary)
                                : r->err->code;
}

static int read_data(struct weir_page_reader *r, const struct header *header, const uint8_t *stored)
{
    bool second = header->type == DATA_PAGE_V2;
    size_t levels = second ? (size_t)(header->definition_bytes + header->repetition_bytes) : 0;
    close_page(&r->page);
    r->page.n = (uint32_t)header->n;
    r->page.values.memory = unpack(r, header, r->codec, stored, levels);
    if (!r->page.values.memory || locate(r, &r->page.values, header, stored, levels) < 0)
        return r->err->code;
    return second ? read_page_v2(r, header) : read_page_v1(r, header);
}

int weir_page_next(struct weir_page_reader *r, int64_t skip, uint32_t *skipped)
{
    *skipped = 0;
    while (r->left > 0) {
        struct header header;
        if (r->at >= r->end)
            return bad_page(r, "its column ends early");
        int rc = read_header(r, &header);
        if (rc < 0)
            return rc;
        bool data = header.type == DATA_PAGE || header.type == DATA_PAGE_V2;
        bool passes = data && header.n <= skip && r->leaf->max_repetition == 0;
        const uint8_t *stored = NULL;
        if (!passes && (data || header.type == DICTIONARY_PAGE))
            stored = bytes_at(r, r->at, (size_t)header.stored);
        r->at += (uint64_t)header.stored;
        r->left -= data ? header.n : 0;
        if (r->left < 0)
            return bad_page(r, "it has more values than its column");
        if (passes)
            *skipped = (uint32_t)header.n;
        else if (stored)
            rc = data ? read_data(r, &header, stored) : read_dictionary(r, &header, stored);
        else if (data || header.type == DICTIONARY_PAGE)
            rc = r->err->code;
        if (rc < 0 || data)
            return rc < 0 ? rc : 1;
    }
    return 0;
}
