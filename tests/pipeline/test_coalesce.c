/* Frames that share chunks. Each chunk is unpacked once per batch, and batches armed together also share chunks. The
 * frames must be the same as without sharing. */
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { STEPS = 11, EPISODES = 3, CAMERAS = 3 };

/* One batch, and more batches than any run here has. */
static const int prefetches[] = {1, EPISODES *STEPS};
enum { PREFETCHES = sizeof prefetches / sizeof prefetches[0] };

/* H5FX_GZIP stores two frames per chunk, and H5FX_CHUNK_CUT two chunks per frame. */
static const struct {
    const char *name;
    enum h5fx_content content;
    enum h5fx_storage storage;
    int rows, pieces;
} cameras[CAMERAS] = {{"cut", H5FX_RAW, H5FX_CHUNK_CUT, 1, 2},
                      {"gzip", H5FX_RAW, H5FX_GZIP, 2, 1},
                      {"jpegs", H5FX_PADDED, H5FX_GZIP, 2, 1}};

static char data[512];

static void setup(void)
{
    fixture_open();
    snprintf(data, sizeof data, "%s", fixture_path("data"));
    mkdir(data, 0755);
    for (int i = 0; i < EPISODES; i++) {
        char path[600];
        struct h5fx_episode episode = {.steps = STEPS, .seed = i, .no_lengths = true};
        for (int c = 0; c < CAMERAS; c++)
            episode.cameras[c] = (struct h5fx_camera){
                .name = cameras[c].name, .content = cameras[c].content, .storage = cameras[c].storage};
        snprintf(path, sizeof path, "%s/episode_%d.hdf5", data, i);
        h5fx_write(path, &episode);
    }
}

TestSuite(coalesce, .init = setup, .fini = fixture_close);

static struct weir_loader_config config_for(int workers, int batch, int history)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.num_workers = workers;
    config.batch_size = batch;
    config.obs_history = history;
    config.train_split = 1;
    return config;
}

static int earlier(int t, int back)
{
    return t > back ? t - back : 0;
}

/* ---- number of unpacked chunks ---- */

/* Counts the chunks that the samples of a batch need, or the frames if `frames` is set. */
static uint64_t touched_by(const struct weir_batch *batch, int history, bool frames)
{
    bool touched[EPISODES][CAMERAS][STEPS] = {0};
    uint64_t n = 0;
    for (int i = 0; i < batch->n; i++)
        for (int c = 0; c < CAMERAS; c++)
            for (int h = 0; h < history; h++) {
                int t = earlier(batch->samples[i].t, h);
                bool *it = &touched[batch->samples[i].episode][c][frames ? t : t / cameras[c].rows];
                n += *it ? 0 : frames ? 1 : (uint64_t)cameras[c].pieces;
                *it = true;
            }
    return n;
}

/* Counts the chunks of the whole dataset. */
static uint64_t chunks_of_all(void)
{
    uint64_t n = 0;
    for (int c = 0; c < CAMERAS; c++)
        n += (uint64_t)(EPISODES * ((STEPS + cameras[c].rows - 1) / cameras[c].rows) * cameras[c].pieces);
    return n;
}

/* Checks the report's chunk counters. */
static void check_chunk_counts(const struct weir_loader_counts *counts, uint64_t unpacked, uint64_t frames)
{
    const struct weir_chunk_counts *chunks = &counts->chunks;
    cr_assert_eq(chunks->chunks, unpacked);
    cr_assert_eq(chunks->frames, frames);
    cr_assert_eq(chunks->read_bytes, counts->read_bytes);
    cr_assert(chunks->blocks <= unpacked && chunks->blocks * 2 >= unpacked && chunks->stored_bytes > 0);
    cr_assert_gt(chunks->frame_bytes, 0);
    cr_assert_gt(chunks->unpacked_bytes, 0);
}

/* Runs the loader to the end. Returns the number of unpacked chunks, and in *alone the number needed if batches did not
 * share them. */
static uint64_t unpacked_by(const struct weir_loader_config *config, uint64_t *alone)
{
    int history = config->obs_history;
    struct weir_loader *loader = fixture_loader(config);
    struct weir_batch *batch;
    struct weir_snapshot *snapshot;
    struct weir_loader_counts counts;
    struct weir_err err = WEIR_ERR_NONE;
    uint64_t chunks = 0, frames = 0, places = 0;
    while (weir_loader_next(loader, &batch, &err) > 0) {
        chunks += touched_by(batch, history, false);
        frames += touched_by(batch, history, true);
        places += (uint64_t)batch->n * (uint64_t)history * CAMERAS;
        weir_loader_release(loader, batch);
    }
    weir_loader_finish(loader);
    cr_assert_eq(weir_snapshot_take(weir_loader_recorder(loader), &snapshot), 0);
    weir_loader_counts(loader, &counts, false);
    uint64_t unpacked = snapshot->stages[WEIR_STAGE_INFLATE].count;
    cr_assert_eq(counts.reads, unpacked);
    cr_assert_eq(snapshot->stages[WEIR_STAGE_IMAGE_DECODE].count, frames);
    cr_assert_eq(counts.frames_shared, places - frames);
    cr_assert_eq(counts.fallback_reads, 0);
    check_chunk_counts(&counts, unpacked, frames);
    weir_snapshot_free(&snapshot);
    weir_loader_close(&loader);
    *alone = chunks;
    return unpacked;
}

static void check_counts(int workers, int batch_size, int history, bool no_shuffle, int prefetch)
{
    struct weir_loader_config config = config_for(workers, batch_size, history);
    config.no_shuffle = no_shuffle;
    config.prefetch = prefetch;
    uint64_t alone, unpacked = unpacked_by(&config, &alone);
    cr_assert(unpacked >= chunks_of_all() && unpacked <= alone, "%d workers, batch %d, history %d: %d, %d touched",
              workers, batch_size, history, (int)unpacked, (int)alone);
    if (batch_size == EPISODES * STEPS)
        cr_assert_eq(unpacked, alone);
}

Test(coalesce, a_chunk_is_unpacked_once_a_batch)
{
    for (int workers = 0; workers <= 3; workers += 3)
        for (int history = 1; history <= 4; history += 3)
            for (int i = 0; i < 2 * PREFETCHES; i++) {
                check_counts(workers, 1, history, i % 2 == 0, prefetches[i / 2]);
                check_counts(workers, 8, history, i % 2 == 0, prefetches[i / 2]);
                check_counts(workers, EPISODES * STEPS, history, i % 2 == 0, prefetches[i / 2]);
            }
}

/* All batches are armed before the first task starts, so each chunk is unpacked once per run. With several workers, a
 * task of a later batch may claim a chunk before an earlier batch does; the earlier batch then unpacks it again. */
Test(coalesce, batches_in_flight_share_a_chunk)
{
    for (int workers = 0; workers <= 3; workers++)
        for (int batch_size = 1; batch_size <= 8; batch_size += 7)
            for (int shuffle = 0; shuffle < 2; shuffle++) {
                struct weir_loader_config config = config_for(workers, batch_size, 1);
                config.no_shuffle = !shuffle;
                config.prefetch = EPISODES * STEPS;
                uint64_t alone, unpacked = unpacked_by(&config, &alone);
                uint64_t most = workers < 2 ? chunks_of_all() : (chunks_of_all() + alone) / 2;
                cr_assert(unpacked >= chunks_of_all() && unpacked <= most, "%d workers, batch %d: %d of %d", workers,
                          batch_size, (int)unpacked, (int)alone);
                cr_assert_lt(unpacked, alone);
            }
}

/* With two slots, a batch shares chunks with the next one, and slots are reused many times. */
Test(coalesce, the_batch_behind_shares_a_chunk)
{
    struct weir_loader_config config = config_for(0, 1, 1);
    config.no_shuffle = true;
    config.prefetch = 1;
    uint64_t alone, unpacked = unpacked_by(&config, &alone);
    cr_assert_eq(unpacked, chunks_of_all());
    cr_assert_lt(unpacked, alone);
}

Test(coalesce, more_batches_are_ahead_where_chunks_hold_several_frames)
{
    struct weir_loader_config config = config_for(1, 1, 1);
    struct weir_loader_facts facts;
    const char *const sets[] = {NULL, "cut"};
    /* Frames of "cut" share no chunks, so with one worker the prefetch is only 4 batches of one frame. */
    const int wanted[] = {16, 4};
    for (int i = 0; i < 2; i++) {
        config.cameras = sets[i];
        struct weir_loader *loader = fixture_loader(&config);
        weir_loader_facts(loader, &facts);
        cr_assert_eq(facts.prefetch, wanted[i], "%d", facts.prefetch);
        weir_loader_close(&loader);
    }
}

/* Closes the loader while tasks are filling batches that are never delivered. */
Test(coalesce, a_run_may_end_anywhere)
{
    for (int taken = 0; taken < 8; taken++)
        for (int workers = 0; workers <= 3; workers += 3) {
            struct weir_loader_config config = config_for(workers, 2, 2);
            config.prefetch = 1 + taken;
            struct weir_loader *loader = fixture_loader(&config);
            struct weir_batch *batch;
            struct weir_err err = WEIR_ERR_NONE;
            for (int i = 0; i < taken; i++) {
                cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
                if (i % 2 == 0)
                    weir_loader_release(loader, batch);
            }
            weir_loader_close(&loader);
        }
}

/* Many batches need the same few frames, but the cache has space for only one of them. */
Test(coalesce, frames_that_wait_for_a_full_cache_all_come)
{
    enum { LONG = 64 };
    char path[600];
    struct h5fx_episode episode = {.steps = LONG};
    episode.cameras[0] =
        (struct h5fx_camera){.name = "one", .content = H5FX_RAW, .storage = H5FX_GZIP, .chunk_rows = 256};
    snprintf(path, sizeof path, "%s", fixture_path("one.hdf5"));
    h5fx_write(path, &episode);
    struct weir_loader_config config = config_for(0, 16, 1);
    config.data = path;
    config.num_epochs = 24;
    config.prefetch = 63;
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    char *want = fixture_checksums(&config, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    for (int workers = 0; workers <= 2; workers++) {
        config.num_workers = workers;
        config.decode_cache_bytes = 8192;
        char *got = fixture_checksums(&config, &rc, &err);
        cr_assert_eq(rc, 0, "%s", err.text);
        cr_assert_str_eq(got, want, "%d workers", workers);
        free(got);
    }
    free(want);
}

/* ---- delivered frames ---- */

struct rows {
    size_t bytes; /* size of a sample's images */
    uint8_t *of[EPISODES][STEPS];
};

static struct rows *deliver(const struct weir_loader_config *config)
{
    struct rows *rows = calloc(1, sizeof *rows);
    struct weir_loader *loader = fixture_loader(config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    while ((rc = weir_loader_next(loader, &batch, &err)) > 0) {
        const struct weir_tensor *images = &batch->tensors[0];
        rows->bytes = images->sample_bytes;
        for (int i = 0; i < batch->n; i++) {
            uint8_t **row = &rows->of[batch->samples[i].episode][batch->samples[i].t];
            cr_assert_null(*row);
            *row = malloc(rows->bytes);
            memcpy(*row, (const uint8_t *)images->data + (size_t)i * rows->bytes, rows->bytes);
        }
        weir_loader_release(loader, batch);
    }
    cr_assert_eq(rc, 0, "%s", err.text);
    weir_loader_close(&loader);
    return rows;
}

static void free_rows(struct rows *rows)
{
    for (int e = 0; e < EPISODES; e++)
        for (int t = 0; t < STEPS; t++)
            free(rows->of[e][t]);
    free(rows);
}

/* Returns the camera's frame at step t, from a run without history. */
static const uint8_t *frame_of(const struct rows *alone, int e, int t, int camera)
{
    return alone->of[e][t] + (size_t)camera * (alone->bytes / CAMERAS);
}

static void compare(const struct rows *got, const struct rows *alone, int history)
{
    size_t image = alone->bytes / CAMERAS;
    cr_assert_eq(got->bytes, alone->bytes * (size_t)history);
    for (int e = 0; e < EPISODES; e++)
        for (int t = 0; t < STEPS; t++)
            for (int c = 0; c < CAMERAS; c++)
                for (int h = 0; h < history; h++) {
                    const uint8_t *mine = got->of[e][t] + (size_t)(c * history + h) * image;
                    int from = earlier(t, history - 1 - h);
                    cr_assert_eq(memcmp(mine, frame_of(alone, e, from, c), image), 0, "episode %d, t %d, camera %d", e,
                                 t, c);
                }
}

Test(coalesce, every_frame_is_the_one_that_comes_alone)
{
    struct weir_loader_config single = config_for(0, 1, 1);
    struct rows *alone = deliver(&single);
    for (int workers = 0; workers <= 3; workers++)
        for (int i = 0; i < 4 * PREFETCHES; i++) {
            int history = 1 + i % 4;
            struct weir_loader_config config = config_for(workers, i % 3 ? 7 : 1, history);
            config.prefetch = prefetches[i / 4];
            struct rows *rows = deliver(&config);
            compare(rows, alone, history);
            free_rows(rows);
        }
    free_rows(alone);
}

/* Compares frames with those read by the HDF5 library: raw cameras byte by byte, encoded ones after decoding. */
Test(coalesce, a_frame_alone_is_what_the_library_reads)
{
    struct weir_loader_config single = config_for(0, 1, 1);
    struct rows *alone = deliver(&single);
    const struct h5fx_episode act = {0};
    for (int e = 0; e < EPISODES; e++)
        for (int t = 0; t < STEPS; t++)
            for (int c = 0; c < CAMERAS; c++) {
                char path[600];
                size_t n;
                int width = 0, height = 0;
                snprintf(path, sizeof path, "%s/episode_%d.hdf5", data, e);
                uint8_t *bytes = h5fx_read(path, h5fx_key(&act, cameras[c].name), t, &n);
                if (cameras[c].content == H5FX_PADDED) {
                    uint8_t *pixels = h5fx_pixels(bytes, n, false, &width, &height);
                    free(bytes);
                    bytes = pixels;
                    n = (size_t)width * (size_t)height * 3;
                }
                cr_assert_eq(n, alone->bytes / CAMERAS);
                cr_assert_eq(memcmp(frame_of(alone, e, t, c), bytes, n), 0, "episode %d, t %d, camera %d", e, t, c);
                free(bytes);
            }
    free_rows(alone);
}

/* ---- a damaged chunk ---- */

enum { BAD_EPISODE = 1, BAD_BLOCK = 2, BAD_CAMERA = 1 }; /* frames 4 and 5 of "gzip" */

static void damage(void)
{
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.size = sizeof config, .path = data};
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_block block;
    int file;
    uint64_t offset;
    size_t length;
    char path[600];
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    weir_block_of(dataset, BAD_EPISODE, BAD_CAMERA, 2 * BAD_BLOCK, &block);
    weir_block_piece(&block, 0, &file, &offset, &length);
    snprintf(path, sizeof path, "%s/episode_%d.hdf5", data, BAD_EPISODE);
    weir_dataset_close(&dataset);
    uint8_t *zeros = calloc(1, length);
    h5fx_poke(path, offset, zeros, length);
    free(zeros);
}

static bool is_bad(int e, int t)
{
    return e == BAD_EPISODE && t / 2 == BAD_BLOCK;
}

Test(coalesce, a_bad_chunk_costs_its_frames_alone)
{
    struct weir_loader_config single = config_for(0, 1, 1);
    struct rows *good = deliver(&single);
    damage();
    for (int workers = 0; workers <= 3; workers += 3)
        for (int i = 0; i < 2 * PREFETCHES; i++) {
            int history = 1 + i % 2;
            struct weir_loader_config config = config_for(workers, 7, history);
            config.prefetch = prefetches[i / 2];
            config.on_error = WEIR_ON_ERROR_SKIP;
            struct rows *rows = deliver(&config);
            for (int e = 0; e < EPISODES; e++)
                for (int t = 0; t < STEPS; t++) {
                    bool lost = is_bad(e, t) || (history == 2 && is_bad(e, earlier(t, 1)));
                    cr_assert_eq(rows->of[e][t] == NULL, lost, "episode %d, t %d", e, t);
                    if (lost || history == 2)
                        continue;
                    cr_assert_eq(memcmp(rows->of[e][t], good->of[e][t], good->bytes), 0);
                }
            free_rows(rows);
        }
    free_rows(good);
}

Test(coalesce, a_bad_chunk_is_replaced_by_the_frame_before_it)
{
    struct weir_loader_config single = config_for(0, 1, 1);
    struct rows *good = deliver(&single);
    size_t image = good->bytes / CAMERAS;
    damage();
    for (int i = 0; i < 2 * PREFETCHES; i++) {
        struct weir_loader_config config = config_for(i % 2 ? 3 : 0, 7, 1);
        config.prefetch = prefetches[i / 2];
        config.on_error = WEIR_ON_ERROR_SUBSTITUTE;
        struct rows *rows = deliver(&config);
        for (int e = 0; e < EPISODES; e++)
            for (int t = 0; t < STEPS; t++)
                for (int c = 0; c < CAMERAS; c++) {
                    int from = is_bad(e, t) && c == BAD_CAMERA ? 2 * BAD_BLOCK - 1 : t;
                    cr_assert_eq(memcmp(frame_of(rows, e, t, c), frame_of(good, e, from, c), image), 0,
                                 "episode %d, t %d, camera %d", e, t, c);
                }
        free_rows(rows);
    }
    free_rows(good);
}

Test(coalesce, a_bad_chunk_ends_the_run_with_the_same_words)
{
    char first[sizeof((struct weir_err *)0)->text] = "";
    damage();
    for (int i = 0; i < 4 * PREFETCHES; i++) {
        struct weir_loader_config config = config_for(i % 4, 7, 3);
        config.prefetch = prefetches[i / 4];
        struct weir_err err;
        int rc;
        char *sums = fixture_checksums(&config, &rc, &err);
        cr_assert_eq(rc, -EBADMSG);
        cr_assert(strstr(err.text, "episode_1.hdf5: /observations/images/gzip["), "%s", err.text);
        cr_assert(strstr(err.text, "chunk 0 of its block"), "%s", err.text);
        cr_assert(strstr(err.text, "--on-error skip"), "%s", err.text);
        if (i == 0)
            snprintf(first, sizeof first, "%s", err.text);
        cr_assert_str_eq(err.text, first);
        free(sums);
    }
}
