/* The decoder "turbo" compared with "turbo-original", which is libjpeg-turbo alone. Pixels, return codes and reasons
 * must match for real frames, for output of libjpeg's encoder, and for images that no encoder writes. Damaged frames:
 * test_turbo_damaged.c. */
#include "decoders/jpeg_fast.h"
#include "pipeline/samples/fetch.h"
#include "pipeline/samples/probe.h"
#include "tests/fixtures/jpeg_both.h"
#include "tests/fixtures/jpeg_choices.h"
#include "tests/fixtures/jpeg_encode.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MAX = 4096, THREADS = 4 };

static struct jpeg_both pairs[JPEG_BOTH_FORMATS];

static void open_pairs(void)
{
    for (int i = 0; i < JPEG_BOTH_FORMATS; i++)
        jpeg_both_open(&pairs[i], i, SIDE_MAX);
}

static void close_pairs(void)
{
    for (int i = 0; i < JPEG_BOTH_FORMATS; i++)
        jpeg_both_close(&pairs[i]);
}

static int sum_refused(void)
{
    int refused = 0;
    for (int i = 0; i < JPEG_BOTH_FORMATS; i++)
        refused += pairs[i].refused;
    return refused;
}

TestSuite(turbo, .init = open_pairs, .fini = close_pairs);

/* If the self-test switched the fast decoder off, all tests here would compare the library with itself and pass. */
Test(turbo, self_test_passes)
{
    char library[512];
    weir_decoder_library(library, sizeof library);
    cr_log_info("%s", library);
    bool forced = getenv("JSIMD_FORCENONE") || getenv("JSIMD_FORCESSE2");
    if (!weir_jpeg_fast_lacks() && !forced)
        cr_assert_not_null(strstr(library, "with Weir's own"), "the tests compare the library with itself: %s",
                           library);
}

/* ---- real frames ---- */

static uint8_t *file_bytes(const char *path, size_t *length)
{
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*length);
    cr_assert_eq(fread(bytes, 1, *length, file), *length);
    fclose(file);
    return bytes;
}

Test(turbo, files_of_cameras)
{
    char pattern[1024];
    glob_t found = {0};
    const char *data = getenv("WEIR_DATA");
    snprintf(pattern, sizeof pattern, "%s/jpeg/*/*.jpg", data ? data : "");
    if (!data || glob(pattern, 0, NULL, &found) != 0) {
        cr_log_info("skipped: no JPEGs match %s", pattern);
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        size_t length;
        uint8_t *bytes = file_bytes(found.gl_pathv[i], &length);
        const char *different = jpeg_both_differ_thrice(&pairs[i % JPEG_BOTH_FORMATS], bytes, length, (unsigned)i);
        cr_assert_null(different, "%s: %s", found.gl_pathv[i], different);
        free(bytes);
    }
    cr_assert_lt(sum_refused(), (int)found.gl_pathc / 4);
    globfree(&found);
}

static void check_frame(struct weir_fetcher *fetcher, int episode, int camera, int t)
{
    const uint8_t *bytes;
    size_t length;
    int width, height, format = (episode + camera + t) % JPEG_BOTH_FORMATS;
    cr_assert_eq(weir_fetch_frame(fetcher, episode, camera, t, NULL, 0, &bytes, &length), 0, "%s", fetcher->reason);
    cr_assert(jpeg_both_size(bytes, length, &width, &height));
    const char *different = jpeg_both_differ(&pairs[format], bytes, length, width, height, NULL);
    struct weir_view view = jpeg_both_view((unsigned)(t * 31 + episode), width, height);
    if (!different && t % 8 == 0)
        different = jpeg_both_differ(&pairs[format], bytes, length, width, height, &view);
    cr_assert_null(different, "episode %d camera %d t %d: %s", episode, camera, t, different);
}

/* Returns the number of frames compared. */
static int check_dataset(const char *path)
{
    struct weir_dataset *dataset;
    struct weir_file_set *files;
    struct weir_fetcher fetcher;
    struct weir_err err = WEIR_ERR_NONE;
    int frames = 0;
    cr_assert_eq(
        weir_dataset_open(
            &dataset, &(struct weir_dataset_config){.size = sizeof(struct weir_dataset_config), .path = path}, &err),
        0, "%s", err.text);
    cr_assert_eq(weir_fetch_files(dataset, &files), 0);
    cr_assert_eq(weir_fetcher_open(&fetcher, dataset, files, "pread", &err), 0, "%s", err.text);
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        for (int c = 0; c < weir_dataset_cameras(dataset); c++)
            for (int t = 0; t < weir_dataset_steps(dataset, e) && weir_dataset_kind(dataset, e, c) == WEIR_FRAME_IMAGE;
                 t++, frames++)
                check_frame(&fetcher, e, c, t);
    weir_fetcher_close(&fetcher);
    weir_file_set_close(&files);
    weir_dataset_close(&dataset);
    return frames;
}

Test(turbo, frames_of_episodes)
{
    static const char *const names[] = {"actpp_jpeg", "actpp_jpeg_512x384", "astrobench", "astrobench_512x384",
                                        "robotwin"};
    int frames = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = fixture_real(names[i]);
        if (!path)
            return;
        frames += check_dataset(path);
    }
    cr_log_info("%d frames", frames);
    cr_assert_gt(frames, 2000);
    cr_assert_eq(sum_refused(), 0);
}

/* ---- libjpeg's encoder ---- */

static const int factors[][2][4] = {
    /* horizontal and vertical sampling factors of the components */
    {{2, 1, 1, 2}, {2, 1, 1, 2}}, /* 4:2:0 */
    {{1, 1, 1, 1}, {1, 1, 1, 1}}, /* 4:4:4 */
    {{2, 1, 1, 2}, {1, 1, 1, 1}}, /* 4:2:2 */
    {{1, 1, 1, 1}, {2, 1, 1, 2}}, /* 4:4:0 */
    {{4, 1, 1, 1}, {1, 1, 1, 1}}, /* 4:1:1 */
    {{1, 1, 1, 1}, {4, 1, 1, 1}}, {{4, 1, 1, 1}, {2, 1, 1, 1}}, {{2, 1, 1, 1}, {4, 1, 1, 1}},
    {{2, 2, 1, 1}, {2, 1, 2, 1}}, {{1, 2, 1, 1}, {1, 1, 2, 1}}, {{3, 1, 1, 1}, {1, 1, 1, 1}},
    {{3, 1, 1, 1}, {2, 2, 1, 1}}, {{2, 1, 2, 2}, {1, 1, 1, 1}},
};
enum { FACTORS = sizeof factors / sizeof factors[0] };

static void set_factors(struct jpeg_encode *how, int i)
{
    memcpy(how->h, factors[i % FACTORS][0], sizeof how->h);
    memcpy(how->v, factors[i % FACTORS][1], sizeof how->v);
}

/* Encodes and compares image i, whose number also selects the format and the view. All images of a format use the same
 * decoders. */
static void check_encoded(const struct jpeg_encode *how, int i)
{
    size_t length;
    uint8_t *bytes = jpeg_encode(how, &length);
    const char *different = jpeg_both_differ_thrice(&pairs[i % JPEG_BOTH_FORMATS], bytes, length, (unsigned)i);
    cr_assert_null(different, "frame %d, %dx%d quality %d: %s", i, how->width, how->height, how->quality, different);
    free(bytes);
}

Test(turbo, frames_of_every_kind)
{
    static const int restarts[] = {0, 0, 0, 1, -1, 3, 0, 7}, sides[] = {70, 33, 16, 64, 9};
    static const int quantisations[] = {0, 0, 0, 0, 1, 255, 1000, 32767};
    for (int i = 0; i < 800; i++) {
        struct jpeg_encode how = {
            .seed = i,
            .quality = 1 + i % 100,
            .width = 1 + i * 7 % sides[i % 5],
            .height = 1 + i * 11 % sides[i / 5 % 5],
            .picture = (enum jpeg_encode_picture)(i / 3 % 4),
            .colours = (enum jpeg_encode_colours)(i % 9 < 5 ? JPEG_ENCODE_YCC : i % 9 - 4),
            .restart = restarts[i / 2 % 8],
            .quantisation = quantisations[i / 7 % 8],
            .optimised = i / 4 % 2,
            .progressive = i % 23 == 0,
            .arithmetic = i % 29 == 0,
            .one_by_one = i % 31 == 0,
        };
        if (how.colours != JPEG_ENCODE_GRAY)
            /* These factors need at most 10 blocks per MCU. */
            set_factors(&how, how.colours >= JPEG_ENCODE_CMYK ? i / 10 % 5 : i / 10);
        if (i % 20 == 0)
            how.width = 300 + i;
        check_encoded(&how, i);
    }
    cr_assert_eq(sum_refused(), 0);
}

Test(turbo, every_small_size)
{
    for (int width = 1; width <= 34; width++)
        for (int height = 1; height <= 34; height++) {
            struct jpeg_encode how = {.width = width, .height = height, .seed = width, .quality = 60 + height};
            set_factors(&how, (width + height) % 5);
            check_encoded(&how, width * 35 + height);
        }
    cr_assert_eq(sum_refused(), 0);
}

/* Large enough for the decoder to build its lookup tables. */
Test(turbo, frames_of_the_size_of_cameras)
{
    for (int i = 0; i < 24; i++) {
        struct jpeg_encode how = {.width = 640 - i, .height = 240 + i, .seed = i, .quality = 1 + i * 99 / 23};
        how.optimised = i % 3 == 1;
        how.restart = i % 4 == 2 ? 40 : 0;
        how.picture = i % 5 == 4 ? JPEG_ENCODE_NOISE : JPEG_ENCODE_WAVES;
        set_factors(&how, i % 5);
        check_encoded(&how, i);
    }
    cr_assert_eq(sum_refused(), 0);
}

/* ---- Huffman tables from frame to frame ---- */

static void check_turn(struct jpeg_both *both, int tables, bool left_out)
{
    struct jpeg_encode how = {.width = 32, .height = 32, .seed = tables, .quality = 50 + tables, .optimised = true};
    set_factors(&how, tables % 5);
    if (left_out) {
        how.optimised = false;
        how.without_tables = true;
    }
    size_t length;
    uint8_t *bytes = jpeg_encode(&how, &length);
    const char *different = jpeg_both_differ(both, bytes, length, 32, 32, NULL);
    cr_assert_null(different, "tables %d%s: %s", tables, left_out ? ", omitted" : "", different);
    free(bytes);
}

/* Alternates among up to 40 sets of tables. A frame without DHT uses the standard tables. */
Test(turbo, tables_change)
{
    for (int i = 0; i < 400; i++) {
        int tables = i < 100 ? i % 2 : i < 200 ? i % 5 : i < 300 ? i % 40 : i * i % 40;
        check_turn(&pairs[i % 2], tables, i % 17 == 16);
    }
}

Test(turbo, first_frame_has_no_tables)
{
    for (int i = 0; i < 4; i++) {
        struct jpeg_both both;
        jpeg_both_open(&both, i, 64);
        for (int again = 0; again < 3; again++)
            check_turn(&both, i, true);
        cr_assert_eq(both.refused, 0);
        check_turn(&both, i, false);
        check_turn(&both, i, true);
        jpeg_both_close(&both);
    }
}

/* The scan is one block with a DC code of this length for a 5-bit value. The scan 0x20 is valid with a code of one bit
 * and with one of two bits, so a decoder that used the wrong table would not report an error. */
static void check_length(int bits)
{
    struct jpeg_encode how = {.width = 8, .height = 8, .quality = 90, .optimised = true};
    how.colours = JPEG_ENCODE_GRAY;
    how.picture = JPEG_ENCODE_FLAT;
    size_t length;
    uint8_t *bytes = jpeg_encode(&how, &length), *dc = memmem(bytes, length, "\xFF\xC4\0\x14\0", 5);
    cr_assert_not_null(dc);
    memset(dc + 5, 0, 16);
    dc[4 + bits] = 1;
    dc[21] = 5;
    size_t scan = jpeg_scan_begin(bytes, length);
    memcpy(bytes + scan, "\x20\xFF\xD9", 3);
    const char *different = jpeg_both_differ(&pairs[0], bytes, scan + 3, 8, 8, NULL);
    cr_assert_null(different, "a code of %d bits: %s", bits, different);
    free(bytes);
}

struct parted {
    uint8_t *tables, *rest;
    size_t n_tables, n_rest;
};

/* Separates a JPEG's DHT segments from its other bytes. */
static void part_tables(const uint8_t *jpeg, size_t length, struct parted *parted)
{
    size_t at = 2;
    *parted = (struct parted){malloc(length), malloc(length), 0, 2};
    memcpy(parted->rest, jpeg, 2);
    while (jpeg[at + 1] != 0xDA) {
        size_t bytes = 2 + (size_t)(jpeg[at + 2] << 8 | jpeg[at + 3]);
        bool dht = jpeg[at + 1] == 0xC4;
        memcpy(dht ? parted->tables + parted->n_tables : parted->rest + parted->n_rest, jpeg + at, bytes);
        *(dht ? &parted->n_tables : &parted->n_rest) += bytes;
        at += bytes;
    }
    memcpy(parted->rest + parted->n_rest, jpeg + at, length - at);
    parted->n_rest += length - at;
}

/* A frame with tables after its scan and without EOI is refused. The following frames have no DHT and must not use
 * these tables. Their codes do not match the standard tables either, so they are refused too. */
Test(turbo, tables_after_the_scan_serve_no_other_frame)
{
    struct jpeg_both both;
    struct parted other;
    struct jpeg_encode standard = {
        .width = 64, .height = 64, .quality = 95, .picture = JPEG_ENCODE_NOISE, .without_tables = true};
    struct jpeg_encode optimised = {.width = 64, .height = 64, .quality = 20, .optimised = true};
    size_t length, n;
    uint8_t *jpeg = jpeg_encode(&optimised, &length);
    part_tables(jpeg, length, &other);
    uint8_t *damaged = jpeg_encode(&standard, &n); /* uses the library's default tables */
    damaged = realloc(damaged, n + other.n_tables);
    memcpy(damaged + n - 2, other.tables, other.n_tables);
    n += other.n_tables - 2;
    jpeg_both_open(&both, 0, 64);
    for (int i = 0; i < 3; i++) {
        const char *different =
            jpeg_both_differ(&both, i == 0 ? damaged : other.rest, i == 0 ? n : other.n_rest, 64, 64, NULL);
        cr_assert_null(different, "frame %d: %s", i, different);
    }
    cr_assert_eq(both.refused, 3);
    jpeg_both_close(&both);
    free(damaged);
    free(jpeg);
    free(other.tables);
    free(other.rest);
}

Test(turbo, lengths_of_codes_change)
{
    for (int i = 0; i < 16; i++)
        check_length(1 + i / 2 % 2);
    cr_assert_eq(sum_refused(), 0);
}

/* ---- images made bit by bit ---- */

static void check_made(enum jpeg_make kind, int n, int most_refused)
{
    struct jpeg_maker *maker = calloc(1, sizeof *maker);
    for (int i = 0; i < n; i++) {
        struct jpeg_choices choices = jpeg_choices_of_seed((unsigned)i);
        if (i % 50 == 0)
            maker->has_codes = false;
        jpeg_make(maker, &choices, kind);
        struct jpeg_both *both = &pairs[i / 50 % JPEG_BOTH_FORMATS];
        const char *different = jpeg_both_differ_thrice(both, maker->bytes, maker->length, (unsigned)i);
        cr_assert_null(different, "image %d of kind %d: %s", i, kind, different);
    }
    free(maker);
    cr_log_info("%d of %d decodes refused", sum_refused(), 3 * n);
    cr_assert_lt(sum_refused(), most_refused);
}

/* Codes of all lengths, coefficients of all sizes, and quantisation factors up to 65535. */
Test(turbo, images_of_extremes)
{
    check_made(JPEG_MAKE_WELL_FORMED, 1000, 1000);
}

/* Includes zero runs that exceed the end of a block. */
Test(turbo, images_that_are_odd)
{
    check_made(JPEG_MAKE_ODD, 600, 3 * 600);
}

Test(turbo, images_that_are_damaged)
{
    check_made(JPEG_MAKE_DAMAGED, 1000, 3 * 1000);
}

/* ---- threads ---- */

struct walker {
    int first;
    char text[JPEG_BOTH_TEXT];
};

static void *walk(void *user)
{
    struct walker *walker = user;
    struct jpeg_both both;
    struct jpeg_maker *maker = calloc(1, sizeof *maker);
    jpeg_both_open(&both, walker->first % JPEG_BOTH_FORMATS, 256);
    for (int i = 0; i < 200 && !*walker->text; i++) {
        struct jpeg_choices choices = jpeg_choices_of_seed((unsigned)((i * 7 + walker->first) % 60));
        maker->has_codes = maker->has_codes && i % 9;
        jpeg_make(maker, &choices, JPEG_MAKE_ANY);
        const char *different = jpeg_both_differ_thrice(&both, maker->bytes, maker->length, (unsigned)i);
        if (different)
            snprintf(walker->text, sizeof walker->text, "image %d: %s", i, different);
    }
    jpeg_both_close(&both);
    free(maker);
    return NULL;
}

Test(turbo, threads_do_not_disturb_each_other)
{
    pthread_t threads[THREADS];
    struct walker walkers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        walkers[i] = (struct walker){.first = i * 5};
        cr_assert_eq(pthread_create(&threads[i], NULL, walk, &walkers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(*walkers[i].text, '\0', "thread %d: %s", i, walkers[i].text);
}

/* ---- tables of other frames ---- */

/* Removes the segments with this marker before the first scan. */
static void remove_segments(uint8_t *bytes, size_t *length, uint8_t marker)
{
    for (size_t at = 2; at + 4 <= *length && bytes[at] == 0xFF && bytes[at + 1] != 0xDA;) {
        size_t segment = 2 + (size_t)(bytes[at + 2] << 8 | bytes[at + 3]);
        if (bytes[at + 1] != marker) {
            at += segment;
            continue;
        }
        memmove(bytes + at, bytes + at + segment, *length - at - segment);
        *length -= segment;
    }
}

enum { TABLE_SIDE = 48, TABLE_KINDS = 6, TABLE_FRAMES = 600 };

struct table_frame {
    uint8_t *bytes;
    size_t length;
    int rc; /* rc and pixels from a new decoder */
    uint8_t image[TABLE_SIDE * TABLE_SIDE * 3];
};

static int decode_frame(struct weir_decoder *decoder, const struct table_frame *frame, uint8_t *image)
{
    struct weir_frame one = {WEIR_FRAME_IMAGE, frame->bytes, frame->length, TABLE_SIDE, TABLE_SIDE, NULL};
    return weir_decode(decoder, &one, image);
}

/* Makes frames with all tables, with optimised tables, without DHT, and without DQT. */
static void make_table_frames(struct table_frame *frames, const char *engine)
{
    struct weir_pixel_format format = {.dtype = WEIR_DTYPE_U8};
    for (int i = 0; i < TABLE_KINDS; i++) {
        struct jpeg_encode how = {.width = TABLE_SIDE, .height = TABLE_SIDE, .quality = 20 + 12 * i, .seed = i};
        struct weir_decoder *fresh;
        how.optimised = i < 2;
        how.progressive = i == 1;
        frames[i].bytes = jpeg_encode(&how, &frames[i].length);
        if (i == 3 || i == 4)
            remove_segments(frames[i].bytes, &frames[i].length, 0xC4);
        if (i == 5)
            remove_segments(frames[i].bytes, &frames[i].length, 0xDB);
        cr_assert_eq(weir_decoder_open(&fresh, engine, &format, TABLE_SIDE, NULL), 0);
        frames[i].rc = decode_frame(fresh, &frames[i], frames[i].image);
        cr_assert_eq(frames[i].rc, i == 5 ? -EBADMSG : 0, "%s, frame %d: %s", engine, i, weir_decoder_reason(fresh));
        if (i == 5)
            cr_assert_not_null(strstr(weir_decoder_reason(fresh), "uantization table"), "%s",
                               weir_decoder_reason(fresh));
        weir_decoder_close(&fresh);
    }
}

static void decode_in_random_order(const char *engine)
{
    static struct table_frame frames[TABLE_KINDS];
    static uint8_t image[sizeof frames[0].image];
    struct weir_pixel_format format = {.dtype = WEIR_DTYPE_U8};
    struct weir_decoder *reused;
    make_table_frames(frames, engine);
    cr_assert_eq(weir_decoder_open(&reused, engine, &format, TABLE_SIDE, NULL), 0);
    unsigned random = 1;
    for (int n = 0, before = -1; n < TABLE_FRAMES; n++) {
        random = random * 1664525u + 1013904223u;
        int i = (int)(random >> 16) % TABLE_KINDS;
        int rc = decode_frame(reused, &frames[i], image);
        cr_assert_eq(rc, frames[i].rc, "%s: frame %d after %d returned %d", engine, i, before, rc);
        cr_assert(rc < 0 || memcmp(image, frames[i].image, sizeof image) == 0,
                  "%s: frame %d after %d has different pixels", engine, i, before);
        before = i;
    }
    weir_decoder_close(&reused);
    for (int i = 0; i < TABLE_KINDS; i++)
        free(frames[i].bytes);
}

Test(turbo, no_table_comes_from_another_frame)
{
    decode_in_random_order("turbo");
    decode_in_random_order("turbo-original");
}
