/* Fetching the bytes of frames: each chunk is unpacked once for all frames of a block, a bad block fails for all its
 * frames, and frames of a known size are written directly to their destination. test_storage tests that the bytes are
 * right for each storage. */
#include "pipeline/samples/fetch.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 10, ROWS = 4, FRAME_BYTES = 24 * 16 * 3 };

enum { GZIP, PLAIN, LIBRARY, CAMERAS };
static const struct h5fx_episode EPISODE = {
    .steps = STEPS,
    .cameras = {{.name = "gzip", .storage = H5FX_GZIP, .chunk_rows = ROWS},
                {.name = "plain", .storage = H5FX_CONTIGUOUS},
                {.name = "virtual", .storage = H5FX_VIRTUAL}},
};

static struct weir_dataset *dataset;
static struct weir_file_set *files;
static struct weir_fetcher fetcher;
static char path[512];

static void open_all(void)
{
    const struct weir_dataset_config config = {.size = sizeof config, .path = path};
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_fetch_files(dataset, &files), 0);
    cr_assert_eq(weir_fetcher_open(&fetcher, dataset, files, "pread", &err), 0, "%s", err.text);
}

static void close_all(void)
{
    weir_fetcher_close(&fetcher);
    weir_file_set_close(&files);
    weir_dataset_close(&dataset);
}

static void setup(void)
{
    fixture_open();
    snprintf(path, sizeof path, "%s", fixture_path("episode_0.hdf5"));
    h5fx_write(path, &EPISODE);
    open_all();
}

static void teardown(void)
{
    close_all();
    fixture_close();
}

TestSuite(fetch, .init = setup, .fini = teardown);

static int camera_named(int which)
{
    for (int c = 0; c < CAMERAS; c++)
        if (strcmp(weir_dataset_camera(dataset, c)->name, EPISODE.cameras[which].name) == 0)
            return c;
    cr_assert_fail("no camera %s", EPISODE.cameras[which].name);
    return -1;
}

static void expect_frame(const uint8_t *bytes, int which, int t)
{
    size_t length;
    uint8_t *expected = h5fx_read(path, h5fx_key(&EPISODE, EPISODE.cameras[which].name), t, &length);
    cr_assert_eq(length, FRAME_BYTES);
    cr_expect_eq(memcmp(bytes, expected, length), 0, "%s, frame %d", EPISODE.cameras[which].name, t);
    free(expected);
}

static struct weir_chunk_counts chunks(void)
{
    struct weir_chunk_counts counts = {0};
    weir_fetch_add_chunks(&fetcher, &counts);
    return counts;
}

Test(fetch, frames_of_a_block_unpack_its_chunk_once)
{
    static const int ts[] = {5, 7, 4}; /* frames of the second block, out of order */
    uint8_t frames[3][FRAME_BYTES];
    uint8_t *const rows[] = {frames[0], frames[1], frames[2]};
    cr_assert_eq(weir_fetch_block(&fetcher, 0, camera_named(GZIP), ts, rows, 3), 0, "%s", fetcher.reason);
    for (int i = 0; i < 3; i++)
        expect_frame(frames[i], GZIP, ts[i]);
    struct weir_chunk_counts once = chunks();
    cr_expect_eq(once.frames, 3);
    cr_expect_eq(once.blocks, 1);
    cr_expect_eq(once.chunks, 1);
    cr_expect_eq(once.frame_bytes, 3 * FRAME_BYTES);
    cr_expect_eq(once.unpacked_bytes, ROWS * FRAME_BYTES);
    cr_expect_eq(once.stored_bytes, once.read_bytes * 3 / ROWS);
    for (int i = 0; i < 3; i++) {
        const uint8_t *bytes;
        size_t length;
        cr_assert_eq(weir_fetch_frame(&fetcher, 0, camera_named(GZIP), ts[i], NULL, 0, &bytes, &length), 0);
        cr_expect_eq(length, FRAME_BYTES);
        expect_frame(bytes, GZIP, ts[i]);
    }
    cr_expect_eq(chunks().chunks, 4, "fetched one by one, each frame unpacks the chunk");
    cr_expect_eq(chunks().read_bytes, 4 * once.read_bytes);
}

/* The block's chunk is read and inflated for its first frame. The failure is remembered until another block is fetched.
 */
Test(fetch, a_bad_block_fails_for_all_its_frames)
{
    struct weir_block block;
    uint64_t offset;
    size_t length, bytes_before;
    const uint8_t *bytes;
    int file, gzip = camera_named(GZIP);
    weir_block_of(dataset, 0, gzip, ROWS, &block);
    cr_assert_eq(block.pieces, 1);
    weir_block_piece(&block, 0, &file, &offset, &length);
    static const uint8_t damage[16] = {0xff};
    close_all();
    h5fx_poke(path, offset + length / 2, damage, sizeof damage);
    open_all();
    cr_assert_eq(weir_fetch_frame(&fetcher, 0, gzip, ROWS, NULL, 0, &bytes, &bytes_before), -EBADMSG);
    char reason[WEIR_FETCH_REASON];
    snprintf(reason, sizeof reason, "%s", fetcher.reason);
    cr_expect_eq(strncmp(reason, "chunk 0 of its block: ", 22), 0, "%s", reason);
    cr_expect_eq(fetcher.file, file, "the fault must be in the chunk's file");
    cr_expect_eq(chunks().frames + chunks().blocks, 0, "a bad block was assembled");
    uint64_t read_once = chunks().read_bytes;
    cr_assert_eq(read_once, length);
    snprintf(fetcher.reason, sizeof fetcher.reason, "another");
    cr_assert_eq(weir_fetch_frame(&fetcher, 0, gzip, ROWS + 1, NULL, 0, &bytes, &bytes_before), -EBADMSG);
    cr_expect_str_eq(fetcher.reason, reason);
    cr_expect_eq(chunks().read_bytes, read_once, "the bad block is read again");
    cr_assert_eq(weir_fetch_frame(&fetcher, 0, gzip, 0, NULL, 0, &bytes, &bytes_before), 0, "%s", fetcher.reason);
    expect_frame(bytes, GZIP, 0);
    cr_assert_eq(weir_fetch_frame(&fetcher, 0, gzip, ROWS + 1, NULL, 0, &bytes, &bytes_before), -EBADMSG);
}

struct seen {
    int which, next, last;
};

static int see(void *user, int t, int code, const char *reason, const uint8_t *bytes, size_t length)
{
    struct seen *seen = user;
    cr_assert_eq(code, 0, "%s", reason);
    cr_expect_eq(t, seen->next++, "in order");
    cr_expect_eq(length, FRAME_BYTES);
    expect_frame(bytes, seen->which, t);
    return t == seen->last ? 7 : 0;
}

Test(fetch, several_frames_unpack_each_chunk_once)
{
    struct seen seen = {GZIP, 2, -1};
    cr_assert_eq(weir_fetch_frames(&fetcher, 0, camera_named(GZIP), 2, 7, see, &seen), 0);
    cr_expect_eq(seen.next, 9);
    cr_expect_eq(chunks().chunks, 3, "frames 2 and 3, 4 to 7, and 8");
    for (int which = GZIP; which <= LIBRARY; which++) {
        seen = (struct seen){which, 0, 5};
        cr_assert_eq(weir_fetch_frames(&fetcher, 0, camera_named(which), 0, STEPS, see, &seen), 7,
                     "the callback's error must be returned");
        cr_expect_eq(seen.next, 6, "nothing must be fetched after an error");
    }
}

Test(fetch, a_frame_of_the_size_that_is_given_goes_to_its_place)
{
    static uint8_t place[FRAME_BYTES];
    for (int which = GZIP; which <= PLAIN; which++) {
        const uint8_t *bytes;
        size_t length;
        int camera = camera_named(which);
        memset(place, 0, sizeof place);
        cr_assert_eq(weir_fetch_frame(&fetcher, 0, camera, 9, place, sizeof place, &bytes, &length), 0);
        cr_expect_eq(bytes, place);
        expect_frame(place, which, 9);
        memset(place, 0, sizeof place);
        cr_assert_eq(weir_fetch_frame(&fetcher, 0, camera, 3, place, sizeof place - 1, &bytes, &length), 0);
        cr_expect_neq(bytes, place, "a frame of another size is not written to the caller's memory");
        cr_expect(place[0] == 0 && memcmp(place, place + 1, sizeof place - 1) == 0);
        cr_expect_eq(length, FRAME_BYTES);
        expect_frame(bytes, which, 3);
    }
}

Test(fetch, frames_read_through_the_library_are_counted)
{
    const uint8_t *bytes;
    size_t length;
    for (int t = 0; t < 3; t++) {
        cr_assert_eq(weir_fetch_frame(&fetcher, 0, camera_named(PLAIN), t, NULL, 0, &bytes, &length), 0);
        cr_assert_eq(weir_fetch_frame(&fetcher, 0, camera_named(LIBRARY), t, NULL, 0, &bytes, &length), 0, "%s",
                     fetcher.reason);
        cr_assert_eq(length, FRAME_BYTES);
        expect_frame(bytes, LIBRARY, t);
    }
    cr_expect_eq(atomic_load(&fetcher.fallbacks), 3);
    cr_expect_eq(atomic_load(&fetcher.fallback_bytes), 3 * FRAME_BYTES);
}
