/* Invalid frames: lengths, heap references and JPEGs. Unless a test says otherwise, the bad frame is frame 3 of the
 * second episode. */
#include "tests/fixtures/bad_input.h"
#include "tests/fixtures/loader_fixture.h"

#include "pipeline/samples/fetch.h"
#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(bad_frames, .init = fixture_open, .fini = fixture_close);

enum { STEPS = 6, BAD = 3, REFERENCE_BYTES = 16 };

static const struct h5fx_episode actpp = {.steps = STEPS, .cameras = {{.name = "top", .content = H5FX_PADDED}}};
static const struct h5fx_episode bench = {
    .steps = STEPS,
    .astrobench = true,
    .cameras = {{.name = "left", .content = H5FX_VLEN}, {.name = "main", .content = H5FX_VLEN}}};

static struct bad_expect loses_one(const char *file, const char *frame, const char *reason)
{
    return (struct bad_expect){.code = -EBADMSG,
                               .parts = {file, frame, reason, "--on-error"},
                               .tolerated = BAD_LOSES,
                               .frames = 1,
                               .skipped = 1,
                               .substituted = 1,
                               .info_is_fine = true};
}

/* ---- JPEGs ---- */

static void try_frame(const char *about, const void *bytes, size_t n, const char *reason)
{
    const char *path = bad_input_episodes(&bench), *bad = bad_input_episode(1);
    h5fx_replace(bad, "/observations/rgb_main", BAD, bytes, n);
    struct bad_expect expect = loses_one(bad, "/observations/rgb_main[3]: ", reason);
    bad_input_try(about, path, expect);
    path = bad_input_episodes(&bench), bad = bad_input_episode(1);
    h5fx_replace(bad, "/observations/rgb_main", 0, bytes, n);
    expect = loses_one(bad, "/observations/rgb_main[0]: ", reason);
    expect.substituted = 0; /* no frame precedes the first one */
    expect.lost = 1;
    bad_input_try(about, path, expect);
}

/* Replaces frame 3 with a JPEG of the given kind and size, and expects it to be refused. */
static void try_kind(const char *about, enum h5fx_jpeg kind, int width, int height, const char *reason)
{
    size_t n;
    uint8_t *bytes = h5fx_jpeg(kind, width, height, 9, &n);
    try_frame(about, bytes, n, reason);
    free(bytes);
}

Test(bad_frames, jpegs_in_variable_length_data)
{
    size_t n;
    try_frame("garbage", "this is not a JPEG at all", 25, "Not a JPEG file: starts with 0x74 0x68");
    try_frame("one byte", "\xff", 1, "JPEG");
    try_frame("an empty frame", "", 0, "the frame is empty");
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 24, 16, 1, &n);
    try_frame("half of one", bytes, n / 2, "Premature end of JPEG file");
    try_frame("all but the end", bytes, n - 2, "Premature end of JPEG file");
    memset(bytes + n * 7 / 10, 0, n / 5);
    try_frame("zeros in the middle", bytes, n, "missing SOS marker");
    free(bytes);
    try_kind("smaller", H5FX_JPEG_420, 16, 16, "the image is 16x16, but the camera's first frame was 24x16");
    try_kind("larger", H5FX_JPEG_420, 2400, 1600, "the image is 2400x1600, but the camera's first frame was 24x16");
    try_kind("absurdly many scans", H5FX_JPEG_MANY_SCANS, 24, 16, "more than 500 progressive scans");
    bytes = fixture_test_image("testimages/monkey12.jpg", &n);
    if (bytes)
        try_frame("12 bits", bytes, n, "precision 12");
    free(bytes);
}

/* Damages the bytes of padded rows in place. */
Test(bad_frames, jpegs_in_padded_rows)
{
    static const enum fixture_damage damages[] = {FIXTURE_NO_SOI, FIXTURE_ZEROED};
    /* Most of such a small JPEG is its header, so zeroing damages a marker. */
    static const char *const reasons[] = {"Not a JPEG file", "marker"};
    for (int i = 0; i < 2; i++) {
        const char *path = bad_input_episodes(&actpp), *bad = bad_input_episode(1);
        fixture_damage(path, 1, 0, BAD, damages[i]);
        bad_input_try("damaged", path, loses_one(bad, "/observations/images/top[3]: ", reasons[i]));
    }
    const char *path = bad_input_episodes(&actpp), *bad = bad_input_episode(1);
    size_t n;
    uint8_t *bytes = h5fx_read(bad, "/observations/images/top", BAD, &n);
    h5fx_replace(bad, "/observations/images/top", BAD, bytes, n / 2);
    bad_input_try("truncated", path, loses_one(bad, "/observations/images/top[3]: ", "marker"));
    free(bytes);
}

Test(bad_frames, kinds_of_jpeg_that_are_fine)
{
    static const enum h5fx_jpeg kinds[] = {H5FX_JPEG_444,         H5FX_JPEG_422,        H5FX_JPEG_GRAY,
                                           H5FX_JPEG_PROGRESSIVE, H5FX_JPEG_ARITHMETIC, H5FX_JPEG_RESTART};
    const char *path = bad_input_episodes(&bench), *arguments[] = {"run", path, NULL};
    for (int i = 0; i < 6; i++) {
        size_t n;
        uint8_t *bytes = h5fx_jpeg(kinds[i], 24, 16, 9, &n);
        h5fx_replace(bad_input_episode(1), "/observations/rgb_left", i, bytes, n);
        free(bytes);
    }
    char *text;
    int status = bad_input_program(arguments, false, NULL, &text);
    if (status < 0)
        return;
    cr_assert_eq(status, 0, "%s", text);
    free(text);
}

/* The header claims 65500x65500 pixels, so the frame is refused before memory for it is allocated. */
Test(bad_frames, a_first_frame_of_absurd_size)
{
    size_t n;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 24, 16, 1, &n);
    for (size_t i = 0; i + 9 < n; i++)
        if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) {
            memcpy(bytes + i + 5, "\xff\xdc\xff\xdc", 4);
            break;
        }
    const char *path = bad_input_episodes(&bench);
    h5fx_replace(bad_input_episode(0), "/observations/rgb_main", 0, bytes, n);
    free(bytes);
    struct bad_expect expect =
        loses_one(bad_input_episode(0), "/observations/rgb_main[0]: ", "its header claims 65500x65500 pixels");
    expect.substituted = 0; /* no frame precedes the first one */
    expect.lost = 1;
    expect.info_is_fine = false;
    bad_input_try("65500x65500", path, expect);
}

Test(bad_frames, no_frame_of_a_camera_is_good)
{
    bad_input_episodes(&bench);
    for (int e = 0; e < 3; e++)
        for (int t = 0; t < STEPS; t++)
            h5fx_replace(bad_input_episode(e), "/observations/rgb_main", t, "\xff\xd8\xff", 3);
    struct bad_expect expect = bad_stops(-EBADMSG, bad_input_episode(0), "/observations/rgb_main[0]: ");
    bad_input_try("all bad", fixture_path("d"), expect);
}

/* ---- heap references ---- */

static void put(uint8_t *at, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *at, int n)
{
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

struct reference {
    uint32_t length;
    uint64_t address;
    uint32_t index;
};

static struct reference read_reference(const char *path, uint64_t at)
{
    uint8_t raw[REFERENCE_BYTES];
    FILE *file = fopen(path, "r");
    cr_assert(file && fseek(file, (long)at, SEEK_SET) == 0 && fread(raw, sizeof raw, 1, file) == 1);
    fclose(file);
    return (struct reference){(uint32_t)get(raw, 4), get(raw + 4, 8), (uint32_t)get(raw + 12, 4)};
}

static void write_reference(const char *path, uint64_t at, struct reference to)
{
    uint8_t raw[REFERENCE_BYTES];
    put(raw, to.length, 4);
    put(raw + 4, to.address, 8);
    put(raw + 12, to.index, 4);
    h5fx_poke(path, at, raw, sizeof raw);
}

Test(bad_frames, heap_references)
{
    const char *const camera = "/observations/rgb_main", *frame = "/observations/rgb_main[3]: ";
    const char *const past = "its heap reference points past the end of the file";
    bad_input_episodes(&bench);
    uint64_t at = h5fx_references(bad_input_episode(1), camera) + BAD * REFERENCE_BYTES;
    struct reference good = read_reference(bad_input_episode(1), at);
    uint64_t end = h5fx_file_bytes(bad_input_episode(1));
    const struct {
        const char *about;
        struct reference to;
        const char *reason;
    } rows[] = {
        {"past the end", {good.length, end, good.index}, past},
        {"far past the end", {good.length, UINT64_MAX - 7, good.index}, past},
        {"1 EiB", {good.length, 1ull << 60, good.index}, past},
        {"the last byte", {1, end - 1, good.index}, "is past the end of the file"},
        {"the last header", {16, end - 16, good.index}, "does not lead to a heap collection"},
        {"the superblock", {good.length, 8, good.index}, "does not lead to a heap collection"},
        {"nothing in particular", {good.length, good.address + 8, good.index}, "does not lead to a heap collection"},
        {"an object of no number", {good.length, good.address, 60000}, "no object with this number"},
        {"a number of more bits", {good.length, good.address, good.index + 65536}, "no object with this number"},
        {"the free space", {good.length, good.address, 0}, "no object with this number"},
        {"longer than the object", {good.length + 9, good.address, good.index}, "shorter than its reference requires"},
        {"longer than the file", {(uint32_t)end, good.address, good.index}, past},
        {"2 GiB", {1u << 31, good.address, good.index}, past},
        {"4 GiB", {UINT32_MAX, good.address, good.index}, past},
        {"no length", {0, good.address, good.index}, "the frame is empty"},
        {"no address", {good.length, 0, good.index}, "the frame is empty"},
        {"undefined", {good.length, UINT64_MAX, good.index}, "the frame is empty"},
        {"shorter", {good.length - 5, good.address, good.index}, "Premature end of JPEG file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *path = bad_input_episodes(&bench), *bad = bad_input_episode(1);
        write_reference(bad, at, rows[i].to);
        bad_input_try(rows[i].about, path, loses_one(bad, frame, rows[i].reason));
    }
}

/* The heap collection itself is damaged: its size, its signature or its objects' sizes. All frames stored in it are
 * lost. */
Test(bad_frames, heap_collections)
{
    static const struct {
        const char *about;
        int at, n;
        uint64_t value;
        const char *reason;
    } rows[] = {{"signature", 0, 1, 'X', "does not lead to a heap collection"},
                {"version", 4, 1, 9, "does not lead to a heap collection"},
                {"size of 0", 8, 8, 0, "extends past the end of the file"},
                {"size of 2^64 - 1", 8, 8, UINT64_MAX, "extends past the end of the file"},
                {"an object of 2^64 - 1", 24, 8, UINT64_MAX, "larger than the collection"},
                {"an object of 1 EiB", 24, 8, 1ull << 60, "larger than the collection"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *path = bad_input_episodes(&bench), *bad = bad_input_episode(1);
        uint64_t at = h5fx_references(bad, "/observations/rgb_main");
        uint8_t raw[8];
        struct weir_dataset *dataset;
        struct weir_dataset_config config = {.size = sizeof config, .path = path, .tolerant = true};
        struct weir_err err = WEIR_ERR_NONE;
        put(raw, rows[i].value, rows[i].n);
        h5fx_poke(bad, read_reference(bad, at).address + (uint64_t)rows[i].at, raw, (size_t)rows[i].n);
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
        struct weir_file_set *files;
        struct weir_fetcher fetcher;
        const uint8_t *bytes;
        size_t length;
        cr_assert_eq(weir_fetch_files(dataset, &files), 0);
        cr_assert_eq(weir_fetcher_open(&fetcher, dataset, files, "pread", &err), 0, "%s", err.text);
        cr_assert_eq(weir_fetch_frame(&fetcher, 1, 1, 0, NULL, 0, &bytes, &length), -EBADMSG, "%s", rows[i].about);
        cr_assert_not_null(strstr(fetcher.reason, rows[i].reason), "%s: %s", rows[i].about, fetcher.reason);
        cr_assert_eq(weir_fetch_frame(&fetcher, 0, 1, 0, NULL, 0, &bytes, &length), 0, "only one frame is bad");
        weir_fetcher_close(&fetcher);
        weir_file_set_close(&files);
        weir_dataset_close(&dataset);
        const char *arguments[] = {"run", path, "--on-error", "skip", NULL};
        char *text;
        int status = bad_input_program(arguments, false, NULL, &text);
        cr_assert(status == 0 || status == -1, "%s: %s", rows[i].about, text);
        if (status == 0)
            free(text);
    }
}

/* ---- frames of impossible size, or too large for this machine ---- */

static int open_loader(const char *path, enum weir_on_error policy, int batch_size, struct weir_err *err)
{
    struct weir_loader_config config;
    struct weir_loader *loader;
    weir_loader_config_default(&config);
    config.data = path;
    config.on_error = policy;
    config.batch_size = batch_size;
    *err = WEIR_ERR_NONE;
    int rc = weir_loader_open(&loader, &config, err);
    weir_loader_close(&loader);
    return rc;
}

/* The first frame determines the size of all frames. If its header claims more pixels than its bytes can hold, it is
 * refused before anything of that size is allocated, or skipped if bad frames are skipped. */
Test(bad_frames, a_first_frame_that_claims_30000x30000)
{
    static const enum h5fx_jpeg kinds[] = {H5FX_JPEG_420, H5FX_JPEG_GRAY, H5FX_JPEG_PROGRESSIVE};
    struct weir_err err;
    for (int i = 0; i < 3; i++) {
        size_t n, at = 0;
        const char *path = bad_input_episodes(&bench), *bad = bad_input_episode(0);
        uint8_t *bytes = h5fx_jpeg(kinds[i], 24, 16, 9, &n);
        while (!(bytes[at] == 0xFF && (bytes[at + 1] == 0xC0 || bytes[at + 1] == 0xC2)))
            at++;
        memcpy(bytes + at + 5, (const uint8_t[]){30000 >> 8, 30000 & 255, 30000 >> 8, 30000 & 255}, 4);
        h5fx_replace(bad, "/observations/rgb_main", 0, bytes, n);
        free(bytes);
        cr_assert_eq(open_loader(path, WEIR_ON_ERROR_FAIL, 2, &err), -EBADMSG);
        cr_assert(strstr(err.text, bad) &&
                      strstr(err.text, "/observations/rgb_main[0]: its header claims 30000x30000") &&
                      strstr(err.text, "--on-error skip"),
                  "%s", err.text);
        cr_assert_eq(open_loader(path, WEIR_ON_ERROR_SKIP, 2, &err), 0, "%s", err.text);
    }
}

Test(bad_frames, a_frame_too_large_for_the_memory_is_named)
{
    static const struct h5fx_episode act = {.steps = STEPS, .cameras = {{.name = "top"}}};
    const uint64_t dims[4] = {STEPS, 26000, 26000, 3};
    struct weir_err err;
    const char *path = bad_input_episodes(&act);
    for (int i = 0; i < 3; i++)
        h5fx_put(bad_input_episode(i), "/observations/images/top", "u8", 4, dims, NULL);
    cr_assert_eq(open_loader(path, WEIR_ON_ERROR_FAIL, 256, &err), -ENOMEM, "%s", err.text);
    cr_assert(strstr(err.text, bad_input_episode(0)) && strstr(err.text, "images/top[0]: the image is 26000x26000: ") &&
                  strstr(err.text, "smaller --batch-size"),
              "%s", err.text);
}
