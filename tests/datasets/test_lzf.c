/* Hand-made LZF streams: every length and overlap, and damage. Streams and their output are in buffers of their exact
 * size, so that out-of-bounds accesses are detected. */
#include "datasets/chunks/filters.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static uint8_t *copy_of(const void *bytes, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    memcpy(copy, bytes, n);
    return copy;
}

enum { STREAM_MAX = 1 << 16, PLAIN_MAX = 1 << 18 };

/* A stream under construction, with the bytes that it decodes to. */
struct lzf {
    uint8_t stream[STREAM_MAX], plain[PLAIN_MAX];
    size_t n, made;
};

static void add_plain(struct lzf *lzf, size_t length, uint32_t *random)
{
    lzf->stream[lzf->n++] = (uint8_t)(length - 1);
    for (size_t i = 0; i < length; i++)
        lzf->stream[lzf->n++] = lzf->plain[lzf->made++] = (uint8_t)next_random(random);
}

static void add_repetition(struct lzf *lzf, size_t distance, size_t length)
{
    size_t code = length - 2, back = distance - 1;
    lzf->stream[lzf->n++] = (uint8_t)((code < 7 ? code : 7) << 5 | back >> 8);
    if (code >= 7)
        lzf->stream[lzf->n++] = (uint8_t)(code - 7);
    lzf->stream[lzf->n++] = (uint8_t)back;
    for (size_t i = 0; i < length; i++, lzf->made++)
        lzf->plain[lzf->made] = lzf->plain[lzf->made - distance];
}

static void random_stream(struct lzf *lzf, int pieces, uint32_t *random)
{
    lzf->n = lzf->made = 0;
    add_plain(lzf, 1 + next_random(random) % 32, random);
    for (int i = 1; i < pieces; i++) {
        size_t most = lzf->made < 8192 ? lzf->made : 8192;
        size_t near = most < 12 ? most : 12, distance = 1 + next_random(random) % (i % 2 > 0 ? near : most);
        if (next_random(random) % 3 == 0)
            add_plain(lzf, 1 + next_random(random) % 32, random);
        else
            add_repetition(lzf, distance, 3 + next_random(random) % (i % 4 > 0 ? 20 : 262));
    }
}

static long decompress(const uint8_t *stream, size_t n, size_t out_bytes, const uint8_t *plain)
{
    uint8_t *in = copy_of(stream, n), *out = malloc(out_bytes > 0 ? out_bytes : 1);
    long made = weir_lzf_decompress(in, n, out, out_bytes);
    cr_assert_leq(made, (long)out_bytes);
    if (made > 0 && plain)
        cr_assert(memcmp(out, plain, (size_t)made) == 0);
    free(in);
    free(out);
    return made;
}

Test(lzf, random_streams)
{
    struct lzf *lzf = malloc(sizeof *lzf);
    uint32_t random = 5;
    for (int i = 0; i < 3000; i++) {
        random_stream(lzf, 1 + i % 300, &random);
        cr_assert_eq(decompress(lzf->stream, lzf->n, lzf->made, lzf->plain), (long)lzf->made);
        cr_assert_eq(decompress(lzf->stream, lzf->n, lzf->made + 100, lzf->plain), (long)lzf->made);
        cr_assert_eq(decompress(lzf->stream, lzf->n, lzf->made - 1, NULL), -1);
    }
    free(lzf);
}

/* Back references of every length at every short distance. Most of them overlap their own output. */
Test(lzf, every_overlap)
{
    struct lzf *lzf = malloc(sizeof *lzf);
    uint32_t random = 5;
    for (size_t distance = 1; distance <= 300; distance++)
        for (size_t length = 3; length <= 264; length++) {
            lzf->n = lzf->made = 0;
            for (int i = 0; i < 10; i++)
                add_plain(lzf, 30, &random);
            add_repetition(lzf, distance, length);
            add_plain(lzf, 1, &random);
            cr_assert_eq(decompress(lzf->stream, lzf->n, lzf->made, lzf->plain), (long)lzf->made);
        }
    lzf->n = lzf->made = 0;
    add_plain(lzf, 2, &random);
    while (lzf->made + 264 < PLAIN_MAX)
        add_repetition(lzf, lzf->made < 8192 ? lzf->made : 8192, 264);
    cr_assert_eq(decompress(lzf->stream, lzf->n, lzf->made, lzf->plain), (long)lzf->made);
    free(lzf);
}

Test(lzf, repetitions_of_what_is_not_there)
{
    const uint8_t first[] = {0x20, 0}, before[] = {0, 'a', 0x20, 1}, all[] = {0, 'a', 0x20, 0};
    cr_assert_eq(decompress(first, 2, 100, NULL), -1);
    cr_assert_eq(decompress(before, 4, 100, NULL), -1);
    cr_assert_eq(decompress(all, 4, 100, (const uint8_t *)"aaaa"), 4);
    cr_assert_eq(decompress(all, 0, 100, NULL), 0);
}

static int unfilter(const uint8_t *stream, size_t n, size_t out_bytes)
{
    const struct weir_filters filters = {1, {{WEIR_FILTER_LZF, 0}}};
    struct weir_unfilter_context *context = weir_unfilter_open();
    uint8_t *in = copy_of(stream, n);
    const uint8_t *out;
    const char *reason = NULL;
    int rc = weir_unfilter(context, &filters, 0, in, n, out_bytes, &out, &reason);
    cr_assert(rc == 0 ? out != NULL : !out && reason && *reason);
    free(in);
    weir_unfilter_close(&context);
    return rc;
}

/* A stream cut between instructions decodes to a prefix, and one cut inside an instruction fails. As a chunk, both are
 * refused. */
Test(lzf, cut_at_every_length)
{
    struct lzf *lzf = malloc(sizeof *lzf);
    uint32_t random = 9;
    random_stream(lzf, 60, &random);
    cr_assert_eq(unfilter(lzf->stream, lzf->n, lzf->made), 0);
    for (size_t n = 0; n < lzf->n; n++) {
        cr_assert_lt(decompress(lzf->stream, n, lzf->made, lzf->plain), (long)lzf->made);
        cr_assert_eq(unfilter(lzf->stream, n, lzf->made), -EBADMSG, "%zu of %zu", n, lzf->n);
    }
    free(lzf);
}

/* The format has no checksum, so changed bytes can decode to other bytes, but never overflow the output. */
Test(lzf, every_byte_changed)
{
    struct lzf *lzf = malloc(sizeof *lzf);
    uint32_t random = 9;
    random_stream(lzf, 60, &random);
    for (size_t i = 0; i < lzf->n; i++)
        for (int change = 1; change < 256; change++) {
            lzf->stream[i] ^= (uint8_t)change;
            long made = decompress(lzf->stream, lzf->n, lzf->made, NULL);
            int rc = unfilter(lzf->stream, lzf->n, lzf->made);
            cr_assert_eq(rc, made == (long)lzf->made ? 0 : -EBADMSG);
            lzf->stream[i] ^= (uint8_t)change;
        }
    free(lzf);
}

Test(lzf, chunks_of_another_size)
{
    struct lzf *lzf = malloc(sizeof *lzf);
    uint32_t random = 9;
    random_stream(lzf, 60, &random);
    const size_t n = lzf->made, others[] = {0, 1, n - 1, n + 1, 2 * n, SIZE_MAX / 256, SIZE_MAX / 16, SIZE_MAX};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        cr_assert_eq(unfilter(lzf->stream, lzf->n, others[i]), -EBADMSG, "%zu instead of %zu", others[i], n);
    free(lzf);
}
