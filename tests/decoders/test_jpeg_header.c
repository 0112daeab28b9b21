/* The parser of JPEG headers compared with libjpeg's, for every kind of JPEG in the fixture. Also the scan's structure,
 * intact and with every kind of damage that the parser must detect. Cut and garbled input must be refused. */
#include "decoders/gpu/gpu_jpeg.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/jpeg_encode.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/decoder.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 101, HEIGHT = 67 };

/* Copies bytes into a buffer of exact size, so that sanitizers detect reads past the end. */
static uint8_t *copy_of(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = malloc(length ? length : 1);
    memcpy(copy, bytes, length);
    return copy;
}

static enum weir_jpeg_refusal look(const uint8_t *bytes, size_t length, enum weir_gpu_jpeg_engine engine)
{
    struct weir_jpeg_header header;
    struct weir_gpu_jpeg_frame frame;
    return weir_gpu_jpeg_look(bytes, length, engine, &header, &frame);
}

static const struct {
    enum h5fx_jpeg kind;
    enum weir_jpeg_sampling sampling;
    enum weir_jpeg_process process;
    enum weir_jpeg_color color;
    int components, restart_interval;
    enum weir_jpeg_refusal hardware, sm;
} kinds[] = {
    {H5FX_JPEG_420, WEIR_JPEG_420, WEIR_JPEG_BASELINE, WEIR_JPEG_YCC, 3, 0, WEIR_JPEG_TAKEN, WEIR_JPEG_TAKEN},
    {H5FX_JPEG_444, WEIR_JPEG_444, WEIR_JPEG_BASELINE, WEIR_JPEG_YCC, 3, 0, WEIR_JPEG_TAKEN, WEIR_JPEG_TAKEN},
    {H5FX_JPEG_422, WEIR_JPEG_422, WEIR_JPEG_BASELINE, WEIR_JPEG_YCC, 3, 0, WEIR_JPEG_TAKEN, WEIR_JPEG_TAKEN},
    {H5FX_JPEG_440, WEIR_JPEG_440, WEIR_JPEG_BASELINE, WEIR_JPEG_YCC, 3, 0, WEIR_JPEG_TAKEN, WEIR_JPEG_TAKEN},
    {H5FX_JPEG_GRAY, WEIR_JPEG_GRAY, WEIR_JPEG_BASELINE, WEIR_JPEG_Y, 1, 0, WEIR_JPEG_TAKEN, WEIR_JPEG_TAKEN},
    {H5FX_JPEG_RESTART, WEIR_JPEG_420, WEIR_JPEG_BASELINE, WEIR_JPEG_YCC, 3, 2, WEIR_JPEG_TAKEN, WEIR_JPEG_TAKEN},
    {H5FX_JPEG_PROGRESSIVE, WEIR_JPEG_420, WEIR_JPEG_PROGRESSIVE, WEIR_JPEG_YCC, 3, 0, WEIR_JPEG_IS_PROGRESSIVE,
     WEIR_JPEG_TAKEN},
    {H5FX_JPEG_MANY_SCANS, WEIR_JPEG_420, WEIR_JPEG_PROGRESSIVE, WEIR_JPEG_YCC, 3, 0, WEIR_JPEG_IS_PROGRESSIVE,
     WEIR_JPEG_HAS_SCANS},
    {H5FX_JPEG_CMYK, WEIR_JPEG_SAMPLED_OTHERWISE, WEIR_JPEG_BASELINE, WEIR_JPEG_CMYK, 4, 0, WEIR_JPEG_IS_CMYK,
     WEIR_JPEG_IS_CMYK},
    {H5FX_JPEG_ARITHMETIC, WEIR_JPEG_420, WEIR_JPEG_ARITHMETIC, WEIR_JPEG_YCC, 3, 0, WEIR_JPEG_IS_ARITHMETIC,
     WEIR_JPEG_IS_ARITHMETIC},
    {H5FX_JPEG_411, WEIR_JPEG_SAMPLED_OTHERWISE, WEIR_JPEG_BASELINE, WEIR_JPEG_YCC, 3, 0, WEIR_JPEG_IS_SAMPLED,
     WEIR_JPEG_IS_SAMPLED},
    {H5FX_JPEG_410, WEIR_JPEG_SAMPLED_OTHERWISE, WEIR_JPEG_BASELINE, WEIR_JPEG_YCC, 3, 0, WEIR_JPEG_IS_SAMPLED,
     WEIR_JPEG_IS_SAMPLED},
    {H5FX_JPEG_2X4, WEIR_JPEG_SAMPLED_OTHERWISE, WEIR_JPEG_BASELINE, WEIR_JPEG_YCC, 3, 0, WEIR_JPEG_IS_SAMPLED,
     WEIR_JPEG_IS_SAMPLED},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

Test(jpeg_header, every_kind_is_told_and_taken_or_not)
{
    for (int k = 0; k < KINDS; k++) {
        size_t length;
        uint8_t *bytes = h5fx_jpeg(kinds[k].kind, WIDTH, HEIGHT, k, &length);
        struct weir_jpeg_header header;
        cr_assert_eq(weir_jpeg_header_read(&header, bytes, length), WEIR_JPEG_TAKEN, "kind %d", k);
        cr_assert_eq(header.width, WIDTH);
        cr_assert_eq(header.height, HEIGHT);
        cr_assert_eq(header.bit_depth, 8);
        cr_assert_eq(header.components, kinds[k].components, "kind %d", k);
        cr_assert_eq(header.sampling, kinds[k].sampling, "kind %d: %d", k, header.sampling);
        cr_assert_eq(header.process, kinds[k].process, "kind %d", k);
        cr_assert_eq(header.color, kinds[k].color, "kind %d", k);
        cr_assert_eq(header.restart_interval, kinds[k].restart_interval, "kind %d", k);
        cr_assert_eq(look(bytes, length, WEIR_GPU_JPEG_HARDWARE), kinds[k].hardware, "kind %d", k);
        cr_assert_eq(look(bytes, length, WEIR_GPU_JPEG_SM), kinds[k].sm, "kind %d", k);
        free(bytes);
    }
}

/* With odd sizes, the chroma planes' sizes are rounded up. */
Test(jpeg_header, sizes)
{
    static const int sizes[][2] = {{1, 1}, {16, 16}, {17, 15}, {33, 8}, {640, 480}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int k = 0; k < 6; k++) {
            size_t length;
            uint8_t *bytes = h5fx_jpeg(kinds[k].kind, sizes[s][0], sizes[s][1], 1, &length);
            struct weir_jpeg_header header;
            struct weir_gpu_jpeg_frame frame;
            cr_assert_eq(weir_gpu_jpeg_look(bytes, length, WEIR_GPU_JPEG_HARDWARE, &header, &frame), WEIR_JPEG_TAKEN);
            cr_assert_eq(frame.length, length);
            cr_assert_eq(frame.bytes, bytes);
            cr_assert_not(frame.progressive);
            cr_assert_eq(weir_gpu_jpeg_planes(&header), kinds[k].sampling == WEIR_JPEG_GRAY ? 1 : 3);
            int width, height;
            weir_gpu_jpeg_plane(&header, 0, &width, &height);
            cr_assert(width == sizes[s][0] && height == sizes[s][1]);
            weir_gpu_jpeg_plane(&header, 2, &width, &height);
            bool half_wide = header.sampling == WEIR_JPEG_420 || header.sampling == WEIR_JPEG_422;
            bool half_high = header.sampling == WEIR_JPEG_420 || header.sampling == WEIR_JPEG_440;
            cr_assert_eq(width, half_wide ? (sizes[s][0] + 1) / 2 : sizes[s][0]);
            cr_assert_eq(height, half_high ? (sizes[s][1] + 1) / 2 : sizes[s][1]);
            free(bytes);
        }
}

/* All JPEGs from one camera are of the same kind, whatever they show. JPEGs that differ in a way that could matter to a
 * decoder are of different kinds. */
Test(jpeg_header, kinds)
{
    uint64_t seen[KINDS];
    for (int k = 0; k < KINDS; k++) {
        struct weir_jpeg_header header, again;
        size_t length;
        uint8_t *bytes = h5fx_jpeg(kinds[k].kind, WIDTH, HEIGHT, 1, &length);
        weir_jpeg_header_read(&header, bytes, length);
        free(bytes);
        bytes = h5fx_jpeg(kinds[k].kind, WIDTH, HEIGHT, 2, &length);
        weir_jpeg_header_read(&again, bytes, length);
        cr_assert_eq(header.kind, again.kind, "kind %d", k); /* even if the Huffman codes are optimised per image */
        free(bytes);
        seen[k] = header.kind;
        for (int i = 0; i < k; i++)
            cr_assert_neq(seen[i], seen[k], "kinds %d and %d", i, k);
        bytes = h5fx_jpeg(kinds[k].kind, WIDTH + 1, HEIGHT, 1, &length);
        weir_jpeg_header_read(&again, bytes, length);
        cr_assert_neq(header.kind, again.kind, "kind %d", k);
        free(bytes);
    }
}

Test(jpeg_header, what_follows_the_image_is_not_its)
{
    size_t length;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, WIDTH, HEIGHT, 1, &length);
    uint8_t *padded = calloc(1, length + 5000);
    memcpy(padded, bytes, length);
    struct weir_jpeg_header header;
    struct weir_gpu_jpeg_frame frame;
    cr_assert_eq(weir_gpu_jpeg_look(padded, length + 5000, WEIR_GPU_JPEG_HARDWARE, &header, &frame), WEIR_JPEG_TAKEN);
    cr_assert_eq(frame.length, length);
    free(padded);
    free(bytes);
}

/* ---- damage ---- */

static size_t scan_of(const uint8_t *bytes, size_t length)
{
    struct weir_jpeg_header header;
    cr_assert_eq(weir_jpeg_header_read(&header, bytes, length), WEIR_JPEG_TAKEN);
    return header.scan_offset;
}

static uint8_t *find_restart(uint8_t *bytes, size_t length, int number)
{
    for (size_t i = scan_of(bytes, length); i + 1 < length; i++)
        if (bytes[i] == 0xFF && bytes[i + 1] == 0xD0 + number)
            return bytes + i;
    cr_assert_fail("no restart marker %d", number);
    return NULL;
}

/* Images cut at any length, with or without zeros after the cut, are always refused without reading past the cut. */
Test(jpeg_header, cut_anywhere)
{
    for (int k = 0; k < KINDS; k++) {
        size_t length;
        uint8_t *bytes = h5fx_jpeg(kinds[k].kind, 33, 21, k, &length);
        uint8_t *zeros = calloc(1, length);
        for (size_t n = 0; n < length; n++) {
            uint8_t *cut = copy_of(bytes, n);
            cr_assert_neq(look(cut, n, WEIR_GPU_JPEG_SM), WEIR_JPEG_TAKEN, "kind %d cut at %zu", k, n);
            free(cut);
            memcpy(zeros, bytes, n);
            cr_assert_neq(look(zeros, length, WEIR_GPU_JPEG_SM), WEIR_JPEG_TAKEN, "kind %d, zeros from %zu", k, n);
        }
        free(zeros);
        free(bytes);
    }
}

Test(jpeg_header, a_cut_scan_is_truncated)
{
    size_t length;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 640, 480, 1, &length);
    cr_assert_eq(look(bytes, length / 2, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_TRUNCATED);
    cr_assert_eq(look(bytes, length - 1, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_TRUNCATED);
    memset(bytes + length / 2, 0, length - length / 2);
    cr_assert_eq(look(bytes, length, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_TRUNCATED);
    free(bytes);
}

/* Lost sectors: at least 40 zero bytes anywhere in the scan, while the end of the image is intact. */
Test(jpeg_header, zeros_within_the_scan)
{
    size_t length;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 160, 120, 1, &length);
    size_t scan = scan_of(bytes, length);
    for (size_t at = scan; at + 42 < length; at += 13)
        for (size_t n = 40; n <= 512 && at + n + 2 < length; n += 157) {
            uint8_t *damaged = copy_of(bytes, length);
            memset(damaged + at, 0, n);
            cr_assert_eq(look(damaged, length, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_ZEROS, "%zu at %zu", n, at);
            free(damaged);
        }
    free(bytes);
}

Test(jpeg_header, markers_that_do_not_belong)
{
    static const uint8_t strays[] = {0x01, 0xC0, 0xC4, 0xD8, 0xDA, 0xDB, 0xE0, 0xFE, 0xFF};
    size_t length;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 160, 120, 1, &length);
    size_t scan = scan_of(bytes, length);
    for (size_t i = 0; i < sizeof strays; i++)
        for (size_t at = scan; at + 4 < length; at += 311) {
            uint8_t *damaged = copy_of(bytes, length);
            damaged[at] = 0xFF;
            damaged[at + 1] = strays[i];
            damaged[at + 2] = 0x12; /* so that the stray marker is not followed by another one */
            cr_assert_eq(look(damaged, length, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_BAD_MARKER, "FF%02X", strays[i]);
            free(damaged);
        }
    bytes[scan + 40] = 0xFF;
    bytes[scan + 41] = 0xD0; /* a restart marker without DRI */
    cr_assert_eq(look(bytes, length, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_BAD_RESTART);
    free(bytes);
}

Test(jpeg_header, restarts_are_counted_and_in_order)
{
    size_t length;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_RESTART, 320, 240, 1, &length);
    cr_assert_eq(look(bytes, length, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_TAKEN);
    uint8_t *damaged = copy_of(bytes, length);
    find_restart(damaged, length, 3)[1] = 0xD4;
    cr_assert_eq(look(damaged, length, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_BAD_RESTART);
    memcpy(damaged, bytes, length);
    find_restart(damaged, length, 0)[0] = 0x55; /* destroys the marker */
    cr_assert_eq(look(damaged, length, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_BAD_RESTART);
    /* Eight successive markers are missing, so the order is correct, but the count is not. */
    memcpy(damaged, bytes, length);
    uint8_t *from = find_restart(damaged, length, 0), *to = from + 2;
    while (!(to[0] == 0xFF && to[1] == 0xD0))
        to++;
    size_t left = (size_t)(damaged + length - to);
    memmove(from, to, left);
    cr_assert_eq(look(damaged, (size_t)(from - damaged) + left, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_BAD_RESTART);
    free(damaged);
    free(bytes);
}

/* Random bytes are changed in the header only. If the parser still accepts the header, libjpeg must read the same
 * values. */
Test(jpeg_header, garbled_headers)
{
    struct weir_pixel_format format = {0};
    struct weir_decoder *decoder;
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", &format, 64, NULL), 0);
    srand(1);
    size_t length;
    int taken = 0;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 33, 21, 1, &length);
    size_t scan = scan_of(bytes, length);
    for (int i = 0; i < 20000; i++) {
        uint8_t *damaged = copy_of(bytes, length);
        for (int n = rand() % 3; n >= 0; n--)
            damaged[(size_t)rand() % scan] = (uint8_t)rand();
        struct weir_jpeg_header header;
        struct weir_gpu_jpeg_frame frame;
        struct weir_image_info info;
        if (weir_gpu_jpeg_look(damaged, length, WEIR_GPU_JPEG_HARDWARE, &header, &frame) == WEIR_JPEG_TAKEN &&
            weir_probe_image(decoder, WEIR_FRAME_IMAGE, damaged, length, &info) == 0) {
            cr_assert(header.width == info.width && header.height == info.height);
            cr_assert(header.components == info.components && header.bit_depth == info.bit_depth);
            cr_assert_eq(strcmp(info.process, "baseline"), 0);
            taken++;
        }
        free(damaged);
    }
    cr_assert_gt(taken, 100);
    free(bytes);
    weir_decoder_close(&decoder);
}

/* ---- tables and colours ---- */

/* Returns the segment with this marker, which must precede the scan. *length includes the marker. */
static uint8_t *find_segment(uint8_t *bytes, uint8_t marker, size_t *length)
{
    uint8_t *at = bytes + 2;
    while (at[1] != marker)
        at += 2 + (at[2] << 8 | at[3]);
    *length = 2 + (size_t)(at[2] << 8 | at[3]);
    return at;
}

/* Removes the first segment with this marker and returns the new length. */
static size_t without(uint8_t *bytes, size_t length, uint8_t marker)
{
    size_t n;
    uint8_t *at = find_segment(bytes, marker, &n);
    memmove(at, at + n, length - n - (size_t)(at - bytes));
    return length - n;
}

Test(jpeg_header, missing_tables)
{
    static const uint8_t needed[] = {0xC4, 0xDB};
    for (size_t i = 0; i < sizeof needed; i++) {
        size_t length;
        uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 40, 30, 1, &length);
        length = without(bytes, length, needed[i]);
        cr_assert_eq(look(bytes, length, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_NO_TABLES);
        free(bytes);
    }
}

/* Returns the next segment with this marker anywhere in the image, or NULL. */
static uint8_t *next_segment(uint8_t *from, const uint8_t *end, uint8_t marker, size_t *n)
{
    for (uint8_t *at = from; at + 4 <= end; at++)
        if (at[0] == 0xFF && at[1] == marker) {
            *n = 2 + (size_t)(at[2] << 8 | at[3]);
            return at;
        }
    return NULL;
}

/* Removes each table of a progressive image in turn and expects a refusal. libjpeg writes one segment per table.
 * Returns the number of tables. */
static int take_away_each(uint8_t marker, bool one_by_one)
{
    struct jpeg_encode how = {.width = 40, .height = 30, .quality = 90, .progressive = true, .one_by_one = one_by_one};
    size_t length, n;
    int taken_away = 0;
    uint8_t *bytes = jpeg_encode(&how, &length), *rest = malloc(length);
    cr_assert_eq(look(bytes, length, WEIR_GPU_JPEG_SM), WEIR_JPEG_TAKEN);
    for (int table = 0; table < 32; table++) {
        size_t left = length;
        memcpy(rest, bytes, length);
        for (uint8_t *at = rest; (at = next_segment(at, rest + left, marker, &n));) {
            if (at[4] != table) {
                at += n;
                continue;
            }
            memmove(at, at + n, left - n - (size_t)(at - rest));
            left -= n;
        }
        if (left < length) {
            taken_away++;
            cr_assert_eq(look(rest, left, WEIR_GPU_JPEG_SM), WEIR_JPEG_NO_TABLES, "FF%02X %02X", marker, table);
        }
    }
    free(rest);
    free(bytes);
    return taken_away;
}

Test(jpeg_header, progressive_scans_need_their_tables)
{
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
        cr_assert_geq(take_away_each(0xDB, one_by_one), 2);
        cr_assert_geq(take_away_each(0xC4, one_by_one), 2);
    }
}

/* Decoders disagree on which scans use a quantisation table that appears between scans. */
Test(jpeg_header, quantisation_between_progressive_scans)
{
    size_t length, n;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_PROGRESSIVE, 40, 30, 1, &length), *table = find_segment(bytes, 0xDB, &n);
    uint8_t *more = malloc(length + n), *dht = bytes + scan_of(bytes, length);
    size_t unused;
    dht = next_segment(dht, bytes + length, 0xC4, &unused);
    size_t first = (size_t)(dht - bytes);
    memcpy(more, bytes, first);
    memcpy(more + first, table, n);
    memcpy(more + first + n, dht, length - first);
    cr_assert_eq(look(more, length + n, WEIR_GPU_JPEG_SM), WEIR_JPEG_NO_TABLES);
    free(more);
    free(bytes);
}

/* The image ends with an end-of-image marker after its first scan, so two of three components are missing. */
Test(jpeg_header, progressive_scans_of_every_component)
{
    struct jpeg_encode how = {.width = 40, .height = 30, .quality = 90, .progressive = true, .one_by_one = true};
    size_t length, n, marker;
    uint8_t *bytes = jpeg_encode(&how, &length), *sos = next_segment(bytes, bytes + length, 0xDA, &n);
    cr_assert_eq(look(bytes, length, WEIR_GPU_JPEG_SM), WEIR_JPEG_TAKEN);
    uint8_t *end = sos + n;
    for (marker = 0; !(end[0] == 0xFF && end[1] != 0); end++)
        marker++;
    cr_assert_gt(marker, 0);
    memcpy(end, "\xFF\xD9", 2);
    cr_assert_eq(look(bytes, (size_t)(end + 2 - bytes), WEIR_GPU_JPEG_SM), WEIR_JPEG_TRUNCATED);
    free(bytes);
}

Test(jpeg_header, codes_that_cannot_be)
{
    size_t length, n;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 40, 30, 1, &length);
    uint8_t *table = find_segment(bytes, 0xC4, &n) + 4;
    table[1] += 2; /* adds one-bit codes in place of the longest ones */
    for (int bits = 16, left = 2; left > 0 && bits > 1; bits--)
        while (left > 0 && table[bits] > 0) {
            table[bits]--;
            left--;
        }
    cr_assert_eq(look(bytes, length, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_NO_TABLES);
    free(bytes);
}

Test(jpeg_header, colours_are_those_of_libjpeg)
{
    static const uint8_t adobe[] = {0xFF, 0xEE, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 0};
    size_t length;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_444, 40, 30, 1, &length);
    struct weir_jpeg_header header, before;
    length = without(bytes, length, 0xE0); /* removes the JFIF segment, which would take precedence */
    cr_assert_eq(weir_jpeg_header_read(&before, bytes, length), WEIR_JPEG_TAKEN);
    cr_assert_eq(before.color, WEIR_JPEG_YCC);
    uint8_t *marked = malloc(length + sizeof adobe);
    memcpy(marked, bytes, 2);
    memcpy(marked + 2, adobe, sizeof adobe);
    memcpy(marked + 2 + sizeof adobe, bytes + 2, length - 2);
    cr_assert_eq(weir_jpeg_header_read(&header, marked, length + sizeof adobe), WEIR_JPEG_TAKEN);
    cr_assert_eq(header.color, WEIR_JPEG_RGB);
    cr_assert_neq(header.kind, before.kind);
    cr_assert_eq(weir_gpu_jpeg_takes(&header, WEIR_GPU_JPEG_HARDWARE), WEIR_JPEG_IS_RGB);
    marked[17] = 1;
    cr_assert_eq(weir_jpeg_header_read(&header, marked, length + sizeof adobe), WEIR_JPEG_TAKEN);
    cr_assert_eq(header.color, WEIR_JPEG_YCC);
    free(marked);
    free(bytes);
}

Test(jpeg_header, refusals_have_names_and_are_told_in_words)
{
    struct weir_gpu_jpeg_tally tally = {0};
    for (int i = 0; i < WEIR_JPEG_REFUSALS; i++)
        cr_assert_gt(strlen(weir_jpeg_refusal_name((enum weir_jpeg_refusal)i)), 2, "%d", i);
    char text[128];
    weir_gpu_jpeg_tally_text(&tally, text, sizeof text);
    cr_assert_str_eq(text, "");
    weir_gpu_jpeg_note(&tally, WEIR_JPEG_IS_CMYK);
    weir_gpu_jpeg_note(&tally, WEIR_JPEG_TRUNCATED);
    weir_gpu_jpeg_note(&tally, WEIR_JPEG_IS_CMYK);
    weir_gpu_jpeg_note(&tally, WEIR_JPEG_TAKEN);
    weir_gpu_jpeg_tally_text(&tally, text, sizeof text);
    cr_assert_str_eq(text, "1 truncated, 2 cmyk");
    weir_gpu_jpeg_tally_text(&tally, text, 8);
    cr_assert_lt(strlen(text), 8);
}

/* ---- photos ---- */

Test(jpeg_header, photos)
{
    static const struct {
        const char *name;
        enum weir_jpeg_refusal hardware;
    } photos[] = {
        {"photo/tower.jpg", WEIR_JPEG_TAKEN},
        {"photo/tower_grayscale.jpg", WEIR_JPEG_TAKEN},
        {"photo/tower_progressive.jpg", WEIR_JPEG_IS_PROGRESSIVE},
        {"photo/large_image.jpg", WEIR_JPEG_TAKEN},
        {"corridor/1.jpg", WEIR_JPEG_TAKEN},
        {"testimages/testorig.jpg", WEIR_JPEG_TAKEN},
        {"testimages/testimgari.jpg", WEIR_JPEG_IS_ARITHMETIC},
        {"testimages/monkey12.jpg", WEIR_JPEG_IS_DEEP},
    };
    for (size_t i = 0; i < sizeof photos / sizeof photos[0]; i++) {
        size_t length;
        uint8_t *bytes = fixture_test_image(photos[i].name, &length);
        if (bytes)
            cr_assert_eq(look(bytes, length, WEIR_GPU_JPEG_HARDWARE), photos[i].hardware, "%s", photos[i].name);
        if (bytes && strcmp(photos[i].name, "photo/tower_progressive.jpg") == 0)
            cr_assert_eq(look(bytes, length, WEIR_GPU_JPEG_SM), WEIR_JPEG_TAKEN);
        free(bytes);
    }
}
