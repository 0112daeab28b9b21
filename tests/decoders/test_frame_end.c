/* The end of an image in a padded row, found by the image's structure whatever bytes it contains or is followed by, and
 * the number of bytes read as a result, whatever /compress_len contains. */
#include "decoders/frame_kind.h"
#include "pipeline/samples/fetch.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/png_fixture.h"
#include "weir/dataset.h"
#include "weir/decoder.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(frame_end, .init = fixture_open, .fini = fixture_close);

enum { WIDTH = 40, HEIGHT = 24, STEPS = 7 };

/* ---- end of an image ---- */

/* A growing byte string. The caller frees `at`. */
struct bytes {
    uint8_t *at;
    size_t n;
};

static void put(struct bytes *to, const void *from, size_t n)
{
    to->at = realloc(to->at, to->n + n + 1);
    memcpy(to->at + to->n, from, n);
    to->n += n;
}

static struct bytes jpeg_of(enum h5fx_jpeg kind, int seed)
{
    struct bytes jpeg = {0};
    jpeg.at = h5fx_jpeg(kind, WIDTH, HEIGHT, seed, &jpeg.n);
    return jpeg;
}

/* Expects the end to be found for any bytes after the image, and not to be found in a cut image. Images are cut at
 * every byte of the first and last 2 KB and at every seventh byte in between, in buffers of exact size. */
static void assert_ends(const char *about, const struct bytes *image)
{
    static const uint8_t tails[][8] = {{0}, {0xFF, 0xD9, 0xFF, 0xD9}, {0xFF, 0xD8, 0xFF, 0xE0}, {1, 2, 3, 0xFF}};
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        struct bytes row = {0};
        put(&row, image->at, image->n);
        put(&row, tails[i], sizeof tails[i]);
        cr_assert_eq(weir_frame_end(row.at, row.n), image->n, "%s, tail %zu", about, i);
        free(row.at);
    }
    enum { EACH = 2048, STEP = 7 };
    for (size_t n = 0; n < image->n; n += n < EACH || image->n - n <= EACH + STEP ? 1 : STEP) {
        uint8_t *cut = malloc(n + 1);
        memcpy(cut, image->at, n);
        cr_assert_eq(weir_frame_end(cut, n), 0, "%s cut at %zu of %zu", about, n, image->n);
        free(cut);
    }
    cr_assert_eq(weir_frame_end(image->at, image->n), image->n, "%s", about);
}

Test(frame_end, of_every_kind_of_jpeg)
{
    char about[32];
    for (int kind = 0; kind < H5FX_JPEGS; kind++) {
        struct bytes jpeg = jpeg_of((enum h5fx_jpeg)kind, kind);
        snprintf(about, sizeof about, "kind %d", kind);
        assert_ends(about, &jpeg);
        free(jpeg.at);
    }
}

/* Returns the image with a segment inserted after SOI. */
static struct bytes with_segment(const struct bytes *image, uint8_t marker, const void *body, size_t n)
{
    const uint8_t head[] = {0xFF, 0xD8, 0xFF, 0xFF, 0xFF, marker, (uint8_t)((n + 2) >> 8), (uint8_t)(n + 2)};
    struct bytes all = {0};
    put(&all, head, sizeof head);
    put(&all, body, n);
    put(&all, image->at + 2, image->n - 2);
    return all;
}

Test(frame_end, thumbnails_comments_and_fill_bytes_hold_no_end)
{
    static const uint8_t ends[] = {0xFF, 0xD9, 0, 0xFF, 0xD8, 0xFF, 0xDA, 0, 2, 0xFF, 0xD9};
    static const uint8_t fill[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xD9};
    struct bytes jpeg = jpeg_of(H5FX_JPEG_420, 1), thumbnail = jpeg_of(H5FX_JPEG_GRAY, 2), exif = {0};
    put(&exif, "Exif\0\0", 6);
    put(&exif, thumbnail.at, thumbnail.n);
    struct bytes all = with_segment(&jpeg, 0xE1, exif.at, exif.n);
    assert_ends("EXIF thumbnail", &all);
    struct bytes comment = with_segment(&all, 0xFE, ends, sizeof ends);
    assert_ends("comment", &comment);
    comment.n -= 2;
    put(&comment, fill, sizeof fill);
    cr_assert_eq(weir_frame_end(comment.at, comment.n), comment.n);
    struct bytes between = {0}; /* a comment segment between the scan and EOI */
    put(&between, jpeg.at, jpeg.n - 2);
    put(&between, (const uint8_t[]){0xFF, 0xFE, 0, sizeof ends + 2}, 4);
    put(&between, ends, sizeof ends);
    put(&between, fill + 3, 2);
    assert_ends("comment after the scan", &between);
    free(jpeg.at);
    free(thumbnail.at);
    free(exif.at);
    free(all.at);
    free(comment.at);
    free(between.at);
}

Test(frame_end, of_pngs_and_of_nothing)
{
    struct pngfx_image image = {.kind = PNGFX_GRAY16, .width = WIDTH, .height = HEIGHT, .described = true};
    struct bytes png = {0};
    png.at = pngfx_write(&image, &png.n);
    assert_ends("PNG", &png);
    uint8_t huge[64];
    memcpy(huge, png.at, sizeof huge);
    memset(huge + 8, 0xFF, 4); /* chunk length of 4 GiB */
    cr_assert_eq(weir_frame_end(huge, sizeof huge), 0);
    memset(huge, 0, sizeof huge);
    cr_assert_eq(weir_frame_end(huge, sizeof huge), 0);
    memset(huge, 0xFF, sizeof huge);
    cr_assert_eq(weir_frame_end(huge, sizeof huge), 0);
    huge[1] = 0xD8;
    cr_assert_eq(weir_frame_end(huge, sizeof huge), 0);
    free(png.at);
}

/* A damaged row decodes to the same pixels with and without the bytes after its end. */
Test(frame_end, what_follows_the_end_changes_nothing)
{
    struct weir_pixel_format format = {0};
    struct weir_decoder *decoder;
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", &format, WIDTH, NULL), 0);
    static uint8_t whole[WIDTH * HEIGHT * 3], cut[WIDTH * HEIGHT * 3];
    unsigned random = 1;
    int ended = 0;
    for (int i = 0; i < 1500; i++) {
        struct bytes row = jpeg_of((enum h5fx_jpeg)(i % H5FX_JPEGS), 1);
        for (int k = 0; k < i % 4; k++) {
            random = random * 1664525 + 1013904223;
            row.at[random % row.n] = (uint8_t)(random >> 24) % 3 ? (uint8_t)(random >> 16) : 0xFF;
        }
        const uint8_t tail[64] = {0};
        put(&row, tail, sizeof tail);
        size_t end = weir_frame_end(row.at, row.n);
        ended += end > 0;
        struct weir_frame frame = {WEIR_FRAME_IMAGE, row.at, row.n, WIDTH, HEIGHT, NULL};
        int rc = weir_decode(decoder, &frame, whole);
        if (end > 0) {
            frame.length = end;
            cr_assert_eq(weir_decode(decoder, &frame, cut), rc, "%d: %s", i, weir_decoder_reason(decoder));
            cr_assert(rc < 0 || memcmp(whole, cut, sizeof whole) == 0, "%d: other pixels", i);
        }
        free(row.at);
    }
    cr_assert_gt(ended, 1000);
    weir_decoder_close(&decoder);
}

/* ---- bytes read ---- */

/* Mobile ALOHA's four cameras, in its recorder's order, with a different image size each. */
static const struct h5fx_episode aloha = {.steps = STEPS,
                                          .cameras = {{"cam_high", H5FX_PADDED, 0, 120, 80, 0, 0, 0, 0},
                                                      {"cam_low", H5FX_PADDED, 0, 24, 16, 0, 0, 0, 0},
                                                      {"cam_left_wrist", H5FX_PADDED, 0, 64, 48, 0, 0, 0, 0},
                                                      {"cam_right_wrist", H5FX_PADDED, 0, 40, 24, 0, 0, 0, 0}}};
enum { CAMERAS = 4 };

struct reading {
    struct weir_dataset *dataset;
    struct weir_file_set *files;
    struct weir_fetcher fetcher;
};

static void open_reading(struct reading *r, const char *path, const char *index)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .index = index};
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_dataset_open(&r->dataset, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_fetch_files(r->dataset, &r->files), 0);
    cr_assert_eq(weir_fetcher_open(&r->fetcher, r->dataset, r->files, "pread", &err), 0, "%s", err.text);
}

static void close_reading(struct reading *r)
{
    weir_fetcher_close(&r->fetcher);
    weir_file_set_close(&r->files);
    weir_dataset_close(&r->dataset);
}

static uint64_t read_so_far(const struct reading *r)
{
    struct weir_read_counts counts;
    weir_reader_counts(r->fetcher.reader, &counts);
    return counts.bytes;
}

/* Fetches every frame and compares it with its JPEG without padding. Returns the sum of the JPEGs' sizes. */
static uint64_t fetch_all(const char *about, struct reading *r, const char *path)
{
    uint64_t sum = 0;
    for (int c = 0; c < CAMERAS; c++)
        for (int t = 0; t < STEPS; t++) {
            const char *name = weir_dataset_camera(r->dataset, c)->name;
            size_t want, got;
            const uint8_t *bytes;
            uint8_t *row = h5fx_read(path, h5fx_key(&aloha, name), t, &want);
            while (row[want - 1] == 0)
                want--;
            int rc = weir_fetch_frame(&r->fetcher, 0, c, t, NULL, 0, &bytes, &got);
            cr_assert_eq(rc, 0, "%s, %s[%d]: %s", about, name, t, r->fetcher.reason);
            cr_assert_eq(got, want, "%s, %s[%d]: %zu bytes, not %zu", about, name, t, got, want);
            cr_assert_eq(memcmp(bytes, row, want), 0, "%s, %s[%d]", about, name, t);
            cr_assert_eq(weir_frame_stored_bytes(r->dataset, 0, c, t), want);
            sum += want;
            free(row);
        }
    return sum;
}

/* Reads all frames twice. The first pass may read whole rows, but the second must read only the JPEGs. `note` is the
 * expected note about compress_len, NULL = none. Returns the bytes read by the first pass relative to the JPEGs' bytes.
 */
static double assert_reads(const char *about, const char *path, const char *note)
{
    struct reading r;
    char text[1024];
    open_reading(&r, path, NULL);
    uint64_t jpegs = fetch_all(about, &r, path), first = read_so_far(&r);
    fetch_all(about, &r, path);
    cr_assert_eq(read_so_far(&r) - first, jpegs, "%s: %llu bytes read again", about,
                 (unsigned long long)(read_so_far(&r) - first));
    bool noted = weir_dataset_note(r.dataset, 0, text, sizeof text);
    cr_assert_eq(noted, note != NULL, "%s: %s", about, noted ? text : "no note");
    cr_assert(!note || (strstr(text, note) && strstr(text, path)), "%s: %s", about, text);
    cr_assert(!weir_dataset_note(r.dataset, 1, text, sizeof text), "%s: %s", about, text);
    close_reading(&r);
    return (double)first / (double)jpegs;
}

/* Reads the lengths that h5fx_write stored, one row per camera sorted by name: high, left, low, right. */
static double *sorted_lengths(const char *path)
{
    int rows, columns;
    double *lengths = h5fx_read_doubles(path, "/compress_len", &rows, &columns);
    cr_assert(rows == CAMERAS && columns == STEPS);
    return lengths;
}

Test(frame_end, the_order_of_compress_len_does_not_matter)
{
    static const int orders[][CAMERAS] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {3, 2, 1, 0}, {1, 1, 1, 0}};
    static const char *const types[] = {"f32", "f64", "f64be", "i32be", "i16"};
    const uint64_t dims[2] = {CAMERAS, STEPS};
    const char *path = fixture_path("aloha.hdf5");
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        for (size_t k = i; k < sizeof types / sizeof types[0]; k += sizeof orders / sizeof orders[0]) {
            double lengths[CAMERAS * STEPS];
            h5fx_write(path, &aloha);
            double *sorted = sorted_lengths(path);
            for (int c = 0; c < CAMERAS; c++)
                memcpy(lengths + (ptrdiff_t)c * STEPS, sorted + (ptrdiff_t)orders[i][c] * STEPS,
                       STEPS * sizeof *lengths);
            free(sorted);
            h5fx_put(path, "/compress_len", types[k], 2, dims, lengths);
            assert_reads(types[k], path, NULL);
        }
}

Test(frame_end, lengths_that_make_no_sense_are_noted_and_passed_over)
{
    static const struct {
        double value;
        bool odd;
    } values[] = {{NAN, true},          {INFINITY, true}, {-INFINITY, true}, {-1, true}, {1e30, true}, {1e9, true},
                  {4294967296.0, true}, {0, false},       {0.5, false},      {1, false}, {300, false}};
    const uint64_t dims[2] = {CAMERAS, STEPS};
    const char *path = fixture_path("aloha.hdf5");
    char about[64];
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        for (int all = i % 2; all < 2; all += 2) {
            h5fx_write(path, &aloha);
            double *lengths = sorted_lengths(path);
            for (int k = 0; k < CAMERAS * STEPS; k++)
                if (all || k == STEPS + 3)
                    lengths[k] = values[i].value;
            h5fx_put(path, "/compress_len", "f32", 2, dims, lengths);
            free(lengths);
            snprintf(about, sizeof about, "compress_len %g, %s", values[i].value, all ? "everywhere" : "once");
            assert_reads(about, path, values[i].odd ? "holds values that are not row lengths" : NULL);
        }
}

Test(frame_end, compress_len_of_any_shape_and_type_is_noted_and_passed_over)
{
    static const struct {
        const char *type;
        int rank;
        uint64_t dims[3];
        bool unwritten;
        const char *note;
    } cases[] = {
        {"f32", 2, {1, STEPS}, false, "shape"},
        {"f32", 2, {CAMERAS + 1, STEPS}, false, "shape"},
        {"f32", 2, {STEPS, CAMERAS}, false, "shape"},
        {"f32", 1, {CAMERAS * STEPS}, false, "shape"},
        {"f32", 0, {0}, false, "shape"},
        {"f32", 2, {CAMERAS, STEPS - 1}, false, "shape"},
        {"f32", 2, {CAMERAS, STEPS + 1}, false, "shape"},
        {"f32", 3, {CAMERAS, STEPS, 1}, false, "shape"},
        {"str", 2, {CAMERAS, STEPS}, true, "numbers"},
        {"f32", 2, {CAMERAS, STEPS}, true, "numbers"},
        {NULL, 0, {0}, false, NULL},
    };
    const char *path = fixture_path("aloha.hdf5");
    double lengths[(CAMERAS + 1) * (STEPS + 1)];
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        lengths[i] = 700;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char about[64];
        snprintf(about, sizeof about, "case %zu", i);
        h5fx_write(path, &aloha);
        h5fx_put(path, "/compress_len", cases[i].type, cases[i].rank, cases[i].dims,
                 cases[i].unwritten ? NULL : lengths);
        assert_reads(about, path, cases[i].note);
    }
}

/* A row five times as long as its JPEG is read completely at most once, or never if a correct hint is available. */
Test(frame_end, long_padding_is_read_once_at_most)
{
    enum { PADDED = 5 };
    struct h5fx_episode episode = aloha;
    const char *path = fixture_path("aloha.hdf5");
    for (int hints = 0; hints < 2; hints++) {
        episode.no_lengths = !hints;
        h5fx_write(path, &episode);
        for (int c = 0; c < CAMERAS; c++) {
            const char *key = h5fx_key(&aloha, aloha.cameras[c].name);
            size_t n;
            uint8_t *rows[STEPS];
            for (int t = 0; t < STEPS; t++)
                rows[t] = h5fx_read(path, key, t, &n);
            const uint64_t dims[2] = {STEPS, PADDED * n};
            double *values = calloc(STEPS * PADDED, n * sizeof *values);
            for (size_t t = 0; t < STEPS; t++)
                for (size_t i = 0; i < n; i++)
                    values[t * dims[1] + i] = rows[t][i];
            h5fx_put(path, key, "u8", 2, dims, values);
            free(values);
            for (int t = 0; t < STEPS; t++)
                free(rows[t]);
        }
        double times = assert_reads(hints ? "with hints" : "without", path, NULL);
        cr_assert(hints ? times < 4 : times > 4.9, "the first pass reads %.2f times the JPEGs' bytes", times);
    }
}

/* Lengths from an index file are only hints, like those of compress_len. */
Test(frame_end, an_index_file_keeps_the_hints)
{
    const char *path = fixture_path("aloha.hdf5"), *index = fixture_path("index");
    h5fx_write(path, &aloha);
    for (int i = 0; i < 3; i++) {
        struct reading r;
        open_reading(&r, path, index);
        cr_assert_eq(weir_dataset_files_from_index(r.dataset), i > 0);
        cr_assert_eq(weir_frame_stored_bytes(r.dataset, 0, 0, 0), 0, "the length is known before the frame was read");
        uint64_t jpegs = fetch_all("first", &r, path), first = read_so_far(&r);
        fetch_all("again", &r, path);
        cr_assert_eq(read_so_far(&r) - first, jpegs);
        close_reading(&r);
    }
}

/* The row does not contain the image's end, so the whole row is read every time. */
Test(frame_end, a_jpeg_that_was_cut_is_read_with_its_row)
{
    const char *path = fixture_path("aloha.hdf5"), *key = h5fx_key(&aloha, "cam_high");
    size_t row, n;
    h5fx_write(path, &aloha);
    uint8_t *bytes = h5fx_read(path, key, 3, &row);
    h5fx_replace(path, key, 3, bytes, row / 2);
    struct reading r;
    open_reading(&r, path, NULL);
    for (int pass = 0; pass < 3; pass++) {
        const uint8_t *got;
        cr_assert_eq(weir_fetch_frame(&r.fetcher, 0, 0, 3, NULL, 0, &got, &n), 0);
        cr_assert_eq(n, row);
        cr_assert_eq(memcmp(got, bytes, row / 2), 0);
    }
    close_reading(&r);
    free(bytes);
}
