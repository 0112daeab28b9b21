#include "datasets/chunks/filters.h"
#include "datasets/chunks/heap.h"
#include "datasets/chunks/unpack.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Maximum expansion of one byte: deflate yields up to 258 bytes from 2 bits, and LZF up to 264 bytes from 3 bytes. */
enum { DEFLATE_GROWS = 1032, LZF_GROWS = 88 };

enum { CHECKSUM_BYTES = 4 };

struct weir_unfilter_context {
    struct weir_inflater *inflater;
    struct weir_zstd *zstd; /* NULL until its first use */
    struct {
        uint8_t *bytes;
        size_t capacity;
    } buffer[2]; /* each filter is undone from one buffer into the other */
};

/* State of a chunk between two filters. */
struct work {
    struct weir_unfilter_context *context;
    int spare; /* index of the unused buffer */
    const uint8_t *bytes;
    size_t n;
    const char **reason;
    uint8_t *to; /* the caller's buffer, if the last step writes there; otherwise NULL */
    size_t to_bytes;
};

struct weir_unfilter_context *weir_unfilter_open(void)
{
    struct weir_unfilter_context *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->inflater = weir_inflater_open();
    if (!context->inflater)
        weir_unfilter_close(&context);
    return context;
}

static void close_zstd(struct weir_unfilter_context *context)
{
#if WEIR_HAVE_ZSTD
    if (context->zstd)
        weir_zstd_close(&context->zstd);
#else
    (void)context;
#endif
}

void weir_unfilter_close(struct weir_unfilter_context **context)
{
    if (!*context)
        return;
    weir_inflater_close(&(*context)->inflater);
    close_zstd(*context);
    free((*context)->buffer[0].bytes);
    free((*context)->buffer[1].bytes);
    free(*context);
    *context = NULL;
}

/* ---- common to all filters ---- */

static int bad(const struct work *work, const char *text)
{
    *work->reason = text;
    return -EBADMSG;
}

static int too_short(const struct work *work)
{
    return bad(work, "its chunk contains fewer bytes than the chunks of its dataset must have");
}

static int too_long(const struct work *work)
{
    return bad(work, "its chunk contains more bytes than the chunks of its dataset must have");
}

/* Reserves space for the result of a step: the caller's buffer, or the spare buffer, whose contents are lost. */
static uint8_t *reserve(struct work *work, size_t n)
{
    if (work->to && n <= work->to_bytes)
        return work->to;
    work->to = NULL;
    struct weir_unfilter_context *context = work->context;
    int i = work->spare;
    if (context->buffer[i].capacity < n || !context->buffer[i].bytes) {
        free(context->buffer[i].bytes);
        context->buffer[i].bytes = malloc(n > 0 ? n : 1);
        context->buffer[i].capacity = context->buffer[i].bytes ? n : 0;
    }
    if (!context->buffer[i].bytes)
        *work->reason = "out of memory for its chunk";
    return context->buffer[i].bytes;
}

/* Turns the reserved space into the current chunk. */
static int made(struct work *work, size_t n)
{
    work->bytes = work->to ? work->to : work->context->buffer[work->spare].bytes;
    work->n = n;
    work->spare = !work->spare;
    return 0;
}

/* Returns the capacity for an unpacked chunk: the expected size, or less if the compressed bytes cannot expand to that
 * size. So a small file cannot cause a large allocation. */
static size_t capacity_for(const struct work *work, size_t most, size_t grows)
{
    return most / grows < work->n ? most : work->n * grows;
}

/* ---- the filters ---- */

static int undo_any_deflate(struct work *work, size_t most, bool gzip)
{
    size_t capacity = capacity_for(work, most, DEFLATE_GROWS), n = 0;
    uint8_t *out = reserve(work, capacity);
    if (!out)
        return -ENOMEM;
    int rc =
        (gzip ? weir_inflate_gzip : weir_inflate)(work->context->inflater, work->bytes, work->n, out, capacity, &n);
    if (rc == 0)
        return made(work, n);
    return rc == -ENOSPC ? too_long(work)
                         : bad(work, gzip ? "the gzip stream of its chunk is damaged"
                                          : "the deflate stream of its chunk is damaged");
}

static int undo_deflate(struct work *work, size_t most, uint32_t element_bytes)
{
    (void)element_bytes;
    return undo_any_deflate(work, most, false);
}

static int undo_gzip(struct work *work, size_t most, uint32_t element_bytes)
{
    (void)element_bytes;
    return undo_any_deflate(work, most, true);
}

#if WEIR_HAVE_BLOSC
static int undo_blosc(struct work *work, size_t most, uint32_t element_bytes)
{
    (void)element_bytes;
    size_t n = 0;
    if (weir_blosc_bytes(work->bytes, work->n, &n) < 0)
        return bad(work, "its chunk is not a complete blosc container");
    if (n > most)
        return too_long(work);
    uint8_t *out = reserve(work, n);
    if (!out)
        return -ENOMEM;
    return weir_blosc_unpack(work->bytes, work->n, out, n) == 0
               ? made(work, n)
               : bad(work, "the blosc container of its chunk is damaged, or this libblosc does not have its codec");
}
#endif

#if WEIR_HAVE_ZSTD
static int undo_zstd(struct work *work, size_t most, uint32_t element_bytes)
{
    (void)element_bytes;
    size_t n = 0;
    if (weir_zstd_bytes(work->bytes, work->n, &n) < 0)
        return bad(work, "its chunk is not a zstd frame");
    if (n != SIZE_MAX && n > most)
        return too_long(work);
    if (!work->context->zstd)
        work->context->zstd = weir_zstd_open();
    uint8_t *out = work->context->zstd ? reserve(work, most) : NULL;
    if (!out)
        return -ENOMEM;
    int rc = weir_zstd_unpack(work->context->zstd, work->bytes, work->n, out, most, &n);
    if (rc == 0)
        return made(work, n);
    return rc == -ENOSPC ? too_long(work) : bad(work, "the zstd frame of its chunk is damaged");
}
#endif

/* Converts pixels that are stored as floats. This is not a filter that the file names. */
static int undo_floats(struct work *work, size_t most, uint32_t kind)
{
    (void)most;
    size_t width = weir_floats_width(kind);
    if (width == 0 || work->n % width != 0)
        return bad(work, "its chunk is not a row of floats");
    uint8_t *out = reserve(work, work->n / width);
    if (!out)
        return -ENOMEM;
    weir_floats_to_pixels(kind, work->bytes, work->n / width, out);
    return made(work, work->n / width);
}

static int undo_lzf(struct work *work, size_t most, uint32_t element_bytes)
{
    (void)element_bytes;
    size_t capacity = capacity_for(work, most, LZF_GROWS);
    uint8_t *out = reserve(work, capacity);
    if (!out)
        return -ENOMEM;
    long n = weir_lzf_decompress(work->bytes, work->n, out, capacity);
    if (n < 0)
        return bad(work, "the lzf stream of its chunk is damaged or too long");
    return made(work, (size_t)n);
}

/* Byte b of element i is at in[b * n + i]. If the compiler knows the width, it vectorises this loop. */
static inline void unshuffle(const uint8_t *restrict in, uint8_t *restrict out, size_t n, size_t width)
{
    for (size_t i = 0; i < n; i++)
        for (size_t b = 0; b < width; b++)
            out[i * width + b] = in[b * n + i];
}

/* Works in parts, so that the strided writes stay in the cache. */
static void unshuffle_any(const uint8_t *restrict in, uint8_t *restrict out, size_t n, size_t width)
{
    size_t part = 8192 / width + 1;
    for (size_t from = 0; from < n; from += part) {
        size_t to = n - from < part ? n : from + part;
        for (size_t b = 0; b < width; b++)
            for (size_t i = from; i < to; i++)
                out[i * width + b] = in[b * n + i];
    }
}

static int undo_shuffle(struct work *work, size_t most, uint32_t element_bytes)
{
    (void)most;
    if (element_bytes == 0)
        return bad(work, "its shuffle filter has an element size of 0");
    size_t elements = work->n / element_bytes;
    if (element_bytes == 1 || elements <= 1)
        return 0;
    uint8_t *out = reserve(work, work->n);
    if (!out)
        return -ENOMEM;
    if (element_bytes == 2)
        unshuffle(work->bytes, out, elements, 2);
    else if (element_bytes == 4)
        unshuffle(work->bytes, out, elements, 4);
    else if (element_bytes == 8)
        unshuffle(work->bytes, out, elements, 8);
    else
        unshuffle_any(work->bytes, out, elements, element_bytes);
    size_t whole = elements * element_bytes;
    memcpy(out + whole, work->bytes + whole, work->n - whole);
    return made(work, work->n);
}

/* Reduces a sum to 16 bits in ones' complement: 0 remains 0, and other multiples of 65535 become 65535. */
static uint64_t fold(uint64_t sum)
{
    return sum == 0 ? 0 : (sum - 1) % 65535 + 1;
}

/* Computes Fletcher's checksum over big-endian 16-bit words. An odd last byte is the upper half of a word. */
static uint32_t fletcher32(const uint8_t *bytes, size_t n)
{
    enum { WORDS = 1 << 20 }; /* for this many words, neither sum exceeds 64 bits */
    uint64_t sum = 0, sums = 0;
    size_t words = n / 2;
    for (size_t from = 0; from < words; from += WORDS) {
        size_t to = words - from < WORDS ? words : from + WORDS;
        for (size_t i = from; i < to; i++) {
            sum += (uint64_t)bytes[2 * i] << 8 | bytes[2 * i + 1];
            sums += sum;
        }
        sum = fold(sum);
        sums = fold(sums);
    }
    if (n % 2 > 0) {
        sum = fold(sum + ((uint64_t)bytes[n - 1] << 8));
        sums = fold(sums + sum);
    }
    return (uint32_t)(sums << 16 | sum);
}

/* Before version 1.6.3, the HDF5 library swapped the bytes of both halves of the checksum on little-endian machines.
 * Both forms are accepted. */
static int undo_fletcher32(struct work *work, size_t most, uint32_t element_bytes)
{
    (void)most, (void)element_bytes;
    if (work->n < CHECKSUM_BYTES)
        return bad(work, "its chunk is shorter than its checksum");
    work->n -= CHECKSUM_BYTES;
    uint32_t stored = (uint32_t)weir_le(work->bytes + work->n, CHECKSUM_BYTES);
    uint32_t sum = fletcher32(work->bytes, work->n);
    uint32_t exchanged = (sum & 0x00ff00ffu) << 8 | (sum >> 8 & 0x00ff00ffu);
    return stored == sum || stored == exchanged ? 0 : bad(work, "the checksum of its chunk is wrong");
}

/* ---- table ---- */

static const struct known {
    int id;
    const char *name;
    /* most: maximum input size of the filter when the chunk was written. NULL: only the filter's name is known. */
    int (*undo)(struct work *work, size_t most, uint32_t element_bytes);
} known[] = {
    {WEIR_FILTER_DEFLATE, "deflate", undo_deflate},
    {WEIR_FILTER_SHUFFLE, "shuffle", undo_shuffle},
    {WEIR_FILTER_FLETCHER32, "fletcher32", undo_fletcher32},
    {WEIR_FILTER_SZIP, "szip", NULL},
    {WEIR_FILTER_NBIT, "nbit", NULL},
    {WEIR_FILTER_SCALEOFFSET, "scaleoffset", NULL},
    {WEIR_FILTER_LZF, "lzf", undo_lzf},
    {305, "lzo", NULL},
    {307, "bzip2", NULL},
    {32001, "blosc", NULL},
    {32003, "snappy", NULL},
    {32004, "lz4", NULL},
    {32008, "bitshuffle", NULL},
    {32013, "zfp", NULL},
    {32015, "zstd", NULL},
    {32019, "jpeg", NULL},
    {32026, "blosc2", NULL},
    {WEIR_FILTER_GZIP, "gzip", undo_gzip},
#if WEIR_HAVE_BLOSC
    {WEIR_FILTER_ZARR_BLOSC, "blosc", undo_blosc},
#else
    {WEIR_FILTER_ZARR_BLOSC, "blosc", NULL},
#endif
#if WEIR_HAVE_ZSTD
    {WEIR_FILTER_ZARR_ZSTD, "zstd", undo_zstd},
#else
    {WEIR_FILTER_ZARR_ZSTD, "zstd", NULL},
#endif
    {WEIR_FILTER_FLOATS, "float", undo_floats},
};

static const struct known *find(int id)
{
    static const struct known unknown = {0, "unknown", NULL};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].id == id)
            return &known[i];
    return &unknown;
}

const char *weir_filter_name(int id)
{
    return find(id)->name;
}

bool weir_filters_can_undo(const struct weir_filters *filters)
{
    for (int i = 0; i < filters->n; i++)
        if (!find(filters->filter[i].id)->undo)
            return false;
    return true;
}

/* ---- the pipeline ---- */

static bool applied(uint32_t mask, int i)
{
    return (mask >> i & 1) == 0;
}

/* Returns the maximum input size of the filter at this place. It is exact unless a compressor precedes the filter.
 * Writers should store a chunk uncompressed if compression would enlarge it; the slack is for writers that do not. */
static size_t most_before(const struct weir_filters *filters, uint32_t mask, int place, size_t out_bytes)
{
    size_t most = out_bytes;
    for (int i = 0; i < place; i++) {
        if (!applied(mask, i))
            continue;
        int id = filters->filter[i].id;
        if (id == WEIR_FILTER_FLETCHER32)
            most += CHECKSUM_BYTES;
        if (id == WEIR_FILTER_FLOATS)
            most *= weir_floats_width(filters->filter[i].element_bytes);
        if (id == WEIR_FILTER_DEFLATE || id == WEIR_FILTER_LZF)
            most += most / 8 + 64;
    }
    return most;
}

/* Checks all filters first, so that the result depends only on the pipeline and not on the bytes. */
static int check_known(const struct weir_filters *filters, uint32_t mask, const char **reason)
{
    for (int i = 0; i < filters->n; i++)
        if (applied(mask, i) && !find(filters->filter[i].id)->undo) {
            *reason = weir_filter_name(filters->filter[i].id);
            return -ENOTSUP;
        }
    return 0;
}

/* Returns the index of the filter that is undone last, or filters->n if no filter was applied. */
static int lowest_applied(const struct weir_filters *filters, uint32_t mask)
{
    int i = 0;
    while (i < filters->n && !applied(mask, i))
        i++;
    return i;
}

int weir_unfilter(struct weir_unfilter_context *context, const struct weir_filters *filters, uint32_t mask,
                  const uint8_t *in, size_t n, size_t out_bytes, const uint8_t **out, const char **reason)
{
    return weir_unfilter_to(context, filters, mask, in, n, NULL, out_bytes, out, reason);
}

int weir_unfilter_to(struct weir_unfilter_context *context, const struct weir_filters *filters, uint32_t mask,
                     const uint8_t *in, size_t n, uint8_t *to, size_t out_bytes, const uint8_t **out,
                     const char **reason)
{
    assert(filters->n >= 0 && filters->n <= WEIR_FILTERS_MAX);
    struct work work = {context, 0, in, n, reason, NULL, out_bytes};
    int last = lowest_applied(filters, mask);
    *out = NULL;
    int rc = check_known(filters, mask, reason);
    if (rc < 0)
        return rc;
    if (out_bytes > SIZE_MAX / 16) /* so that no length can overflow */
        return too_short(&work);
    for (int i = filters->n - 1; i >= 0; i--) {
        if (!applied(mask, i))
            continue;
        size_t most = most_before(filters, mask, i, out_bytes);
        work.to = i == last ? to : NULL;
        rc = find(filters->filter[i].id)->undo(&work, most, filters->filter[i].element_bytes);
        if (rc < 0)
            return rc;
    }
    if (work.n != out_bytes)
        return work.n < out_bytes ? too_short(&work) : too_long(&work);
    *out = work.bytes;
    return 0;
}
