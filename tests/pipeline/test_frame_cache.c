/* The decode cache: which frames it keeps, its memory limit, and that it does not change any batch. */
#include "base/resources.h"
#include "pipeline/samples/frame_cache.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { EPISODES = 3, STEPS = 9, CAMERAS = 2, WIDTH = 64, HEIGHT = 48, IMAGE = WIDTH * HEIGHT * 3 };
enum { FRAMES = EPISODES * STEPS * CAMERAS };

TestSuite(frame_cache, .init = fixture_open, .fini = fixture_close);

/* ---- the cache alone ---- */

static const size_t sizes[2] = {5000, 100}; /* sizes of the cameras' images */
static const int steps[2] = {40, 25};

static void fill(uint8_t *pixels, int episode, int camera, int t)
{
    for (size_t i = 0; i < sizes[camera]; i++)
        pixels[i] = (uint8_t)(i * 7 + (size_t)(episode * 91 + camera * 57 + t * 3));
}

static bool holds(struct weir_frame_cache *cache, int episode, int camera, int t)
{
    uint8_t want[5000], got[5000];
    if (!weir_frame_cache_take(cache, episode, camera, t, got))
        return false;
    fill(want, episode, camera, t);
    cr_assert_eq(memcmp(got, want, sizes[camera]), 0, "(%d, %d, %d) has the pixels of another frame", episode, camera,
                 t);
    return true;
}

/* Looks up every frame and stores the missing ones. Returns the number of hits. */
static int ask_for_all(struct weir_frame_cache *cache)
{
    uint8_t pixels[5000];
    int hits = 0;
    for (int e = 0; e < 2; e++)
        for (int t = 0; t < steps[e]; t++)
            for (int c = 0; c < 2; c++) {
                bool hit = holds(cache, e, c, t);
                hits += hit;
                fill(pixels, e, c, t);
                if (!hit)
                    weir_frame_cache_keep(cache, e, c, t, pixels);
                cr_assert_leq(cache->used_bytes, cache->budget_bytes);
            }
    return hits;
}

Test(frame_cache, budgets_from_nothing_to_everything_are_never_exceeded)
{
    int last = 0;
    for (uint64_t budget = 1; budget < 2000000; budget = budget * 5 / 4 + 1) {
        struct weir_frame_cache cache;
        struct weir_err err = WEIR_ERR_NONE;
        cr_assert_eq(weir_frame_cache_open(&cache, budget, steps, 2, sizes, 2, 1, &err), 0, "%s", err.text);
        cr_assert_leq(cache.memory_bytes, budget);
        cr_assert_eq(ask_for_all(&cache), 0);
        int kept = (int)cache.kept;
        cr_assert_eq(ask_for_all(&cache), kept, "stored frames must be hits");
        cr_assert_eq(cache.seen, cache.memory ? 130u : 0u);
        /* The remaining memory must be too small for the last refused image: a small one, or a large one if all small
         * images are stored. */
        uint64_t left = cache.memory_bytes - cache.used_bytes;
        cr_assert(!cache.memory || kept == 130 || left < 128 || (kept > 65 && left < 5056), "%d frames in %llu bytes",
                  kept, (unsigned long long)budget);
        if (cache.all_bytes <= budget / 4096 * 4096)
            cr_assert_eq(kept, 130);
        last = kept;
        weir_frame_cache_close(&cache);
    }
    cr_assert_eq(last, 130);
}

Test(frame_cache, more_than_the_machine_has_is_refused)
{
    static const int many[1] = {1 << 30};
    static const size_t large[1] = {1 << 20};
    struct weir_frame_cache cache;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_frame_cache_open(&cache, 1ull << 49, many, 1, large, 1, 1, &err), -ENOMEM);
    cr_assert_not_null(strstr(err.text, "--decode-cache"), "%s", err.text);
    cr_assert_null(cache.memory);
    weir_frame_cache_close(&cache);
    /* A budget larger than the machine's memory is accepted if the dataset itself fits. */
    cr_assert_eq(weir_frame_cache_open(&cache, 1ull << 49, steps, 2, sizes, 2, 1, &err), 0);
    weir_frame_cache_close(&cache);
}

struct hammer {
    pthread_t thread;
    struct weir_frame_cache *cache;
    int hits;
};

static void *hammer(void *user)
{
    struct hammer *h = user;
    for (int i = 0; i < 20; i++)
        h->hits += ask_for_all(h->cache);
    return NULL;
}

Test(frame_cache, threads_see_whole_frames_and_keep_each_once)
{
    struct weir_frame_cache cache;
    struct weir_err err = WEIR_ERR_NONE;
    struct hammer hammers[4] = {0};
    cr_assert_eq(weir_frame_cache_open(&cache, 200000, steps, 2, sizes, 2, 1, &err), 0, "%s", err.text);
    for (int i = 0; i < 4; i++) {
        hammers[i].cache = &cache;
        pthread_create(&hammers[i].thread, NULL, hammer, &hammers[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(hammers[i].thread, NULL);
    uint64_t sum = cache.table_bytes;
    int kept = 0;
    for (int e = 0; e < 2; e++)
        for (int t = 0; t < steps[e]; t++)
            for (int c = 0; c < 2; c++)
                if (holds(&cache, e, c, t)) {
                    sum += (sizes[c] + 63) / 64 * 64;
                    kept++;
                }
    cr_assert_eq((uint64_t)kept, cache.kept);
    cr_assert_eq(sum, cache.used_bytes, "reserved space is unused");
    for (int i = 0; i < 4; i++)
        cr_assert_geq(hammers[i].hits, 18 * kept, "a frame was lost");
    weir_frame_cache_close(&cache);
}

/* ---- in the loader ---- */

static struct weir_loader_config config_for(const char *data, int workers)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.batch_size = 4;
    config.num_workers = workers;
    config.num_epochs = 3;
    config.train_split = 0.7;
    return config;
}

/* Checksum lines must not depend on the number of workers or on the budget. */
static void check_same(struct weir_loader_config config)
{
    static const int workers[] = {0, 1, 2, 7, 16};
    static const uint64_t budgets[] = {0, 1, 30000, 100000, 300000, 1u << 30};
    struct weir_err err;
    char *expected = NULL;
    int rc;
    for (int b = 0; b < 6; b++)
        /* Tests each budget with two numbers of workers, so that each number is used two or three times. */
        for (int w = 2 * b; w < 2 * b + 2; w++) {
            config.decode_cache_bytes = budgets[b];
            config.num_workers = workers[w % 5];
            char *sums = fixture_checksums(&config, &rc, &err);
            cr_assert_eq(rc, 0, "%s", err.text);
            if (expected)
                cr_assert_str_eq(sums, expected, "%d workers, %d bytes", workers[w % 5], (int)budgets[b]);
            else
                expected = strdup(sums);
            free(sums);
        }
    cr_assert_gt(strlen(expected), 100);
    free(expected);
}

static void check_format(const char *format)
{
    const char *data = fixture_synth(format, format, EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
    for (int history = 1; history <= 4; history++)
        for (int variant = 0; variant < 2; variant++) {
            struct weir_loader_config config = config_for(data, 0);
            config.obs_history = history;
            config.no_shuffle = variant ^ (history & 1);
            config.format.dtype = variant ? WEIR_DTYPE_F32 : WEIR_DTYPE_U8;
            config.format.layout = history & 1 ? WEIR_LAYOUT_NCHW : WEIR_LAYOUT_NHWC;
            check_same(config);
        }
}

Test(frame_cache, batches_are_the_same_act)
{
    check_format("act");
}

Test(frame_cache, batches_are_the_same_act_jpeg)
{
    check_format("act-jpeg");
}

Test(frame_cache, batches_are_the_same_astrobench)
{
    check_format("astrobench");
}

Test(frame_cache, batches_are_the_same_in_blocks)
{
    check_format("robomimic-gzip");
}

struct figures {
    struct weir_loader_counts counts;
    uint64_t decoded, copied, kept, shared; /* number of calls of each stage */
    uint64_t spans, image_spans, samples;   /* calls of stages 00 and 03; delivered samples */
    uint64_t frames, places;                /* distinct frames summed over batches; image places summed over batches */
};

static struct figures run(const struct weir_loader_config *config)
{
    struct figures f = {0};
    struct weir_loader *loader = fixture_loader(config);
    struct weir_snapshot *snapshot;
    struct weir_loader_facts facts;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    weir_loader_facts(loader, &facts);
    cr_assert_leq(facts.cache_mapped_bytes, config->decode_cache_bytes);
    while ((rc = weir_loader_next(loader, &batch, &err)) > 0) {
        f.frames += CAMERAS * fixture_frames(batch, config->obs_history);
        f.samples += (uint64_t)batch->n;
        f.places += CAMERAS * (uint64_t)batch->n * (uint64_t)config->obs_history;
        weir_loader_counts(loader, &f.counts, false);
        cr_assert_leq(f.counts.cache_bytes, config->decode_cache_bytes);
        weir_loader_release(loader, batch);
    }
    cr_assert_eq(rc, 0, "%s", err.text);
    weir_loader_finish(loader);
    weir_loader_counts(loader, &f.counts, false);
    cr_assert_eq(weir_snapshot_take(weir_loader_recorder(loader), &snapshot), 0);
    f.decoded = snapshot->stages[WEIR_STAGE_IMAGE_DECODE].count;
    f.copied = snapshot->stages[WEIR_STAGE_CACHE_COPY].count;
    f.kept = snapshot->stages[WEIR_STAGE_CACHE_KEEP].count;
    f.shared = snapshot->stages[WEIR_STAGE_SHARE_COPY].count;
    f.spans = snapshot->stages[WEIR_STAGE_TOTAL_GETITEM].count;
    f.image_spans = snapshot->stages[WEIR_STAGE_IMAGES_TOTAL].count;
    weir_snapshot_free(&snapshot);
    weir_loader_close(&loader);
    return f;
}

Test(frame_cache, each_frame_is_decoded_once_a_batch_without_it)
{
    const char *data = fixture_synth("d", "act-jpeg", EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
    for (int workers = 0; workers <= 7; workers += 7)
        for (int history = 1; history <= 4; history++)
            for (int shuffle = 0; shuffle < 2; shuffle++) {
                struct weir_loader_config config = config_for(data, workers);
                config.obs_history = history;
                config.no_shuffle = !shuffle;
                struct figures f = run(&config);
                cr_assert_eq(f.decoded, f.frames);
                cr_assert_eq(f.counts.reads, f.frames);
                cr_assert(f.spans == f.samples && f.image_spans == f.samples, "a sample must end exactly once");
                cr_assert_eq(f.counts.frames_shared, f.places - f.frames);
                cr_assert_eq(f.shared, f.places - f.frames);
                cr_assert_eq(f.counts.cache_hits + f.counts.cache_misses, 0);
                cr_assert(history == 1 || f.decoded < f.places);
            }
}

Test(frame_cache, with_room_for_all_the_first_epoch_decodes_and_later_ones_copy)
{
    static const char *const formats[] = {"act", "act-jpeg", "astrobench", "robomimic-gzip"};
    for (int i = 0; i < 4; i++) {
        const char *data = fixture_synth(formats[i], formats[i], EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
        /* With at most one worker, no two look-ups of a frame are simultaneous. */
        for (int workers = 0; workers < 2; workers++) {
            struct weir_loader_config config = config_for(data, workers);
            config.decode_cache_bytes = 64 << 20;
            struct figures f = run(&config);
            cr_assert_eq(f.decoded, FRAMES, "%s: %d", formats[i], (int)f.decoded);
            cr_assert_eq(f.counts.cache_misses, FRAMES);
            cr_assert_eq(f.counts.cache_hits, 2 * FRAMES);
            cr_assert_eq(f.copied, 2 * FRAMES);
            cr_assert_eq(f.kept, FRAMES);
            cr_assert_eq(f.counts.cache_frames, FRAMES);
            cr_assert_eq(f.counts.cache_seen, FRAMES);
        }
    }
}

Test(frame_cache, many_workers_decode_a_frame_again_only_while_it_is_being_decoded)
{
    const char *data = fixture_synth("d", "act-jpeg", EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
    struct weir_loader_config config = config_for(data, 7);
    config.decode_cache_bytes = 64 << 20;
    config.num_epochs = 40;
    struct figures f = run(&config);
    cr_assert_eq(f.counts.cache_frames, FRAMES);
    cr_assert_eq(f.counts.cache_hits + f.counts.cache_misses, 40 * FRAMES);
    cr_assert_geq(f.decoded, FRAMES);
    cr_assert_leq(f.decoded, 3 * FRAMES, "later epochs decode frames again: %d", (int)f.decoded);
}

/* If half of the frames fit, half of the look-ups of each later epoch are hits. */
Test(frame_cache, what_fits_is_hit_in_every_later_epoch)
{
    const char *data = fixture_synth("d", "act-jpeg", EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
    struct weir_loader_config config = config_for(data, 0);
    config.decode_cache_bytes = 4096 + IMAGE * (FRAMES / 2);
    config.num_epochs = 5;
    struct figures f = run(&config);
    uint64_t kept = f.counts.cache_frames;
    cr_assert(kept == FRAMES / 2 || kept == FRAMES / 2 - 1, "%d", (int)kept);
    cr_assert_eq(f.counts.cache_hits, 4 * kept);
    cr_assert_eq(f.counts.cache_seen, FRAMES);
}

Test(frame_cache, bad_frames_are_never_kept_and_every_policy_does_the_same)
{
    const char *data = fixture_synth("d", "act-jpeg", EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
    static const int workers[] = {0, 1, 2, 7, 16};
    struct weir_err err, first_err;
    int rc;
    fixture_damage(data, 0, 0, 4, FIXTURE_ZEROED);
    fixture_damage(data, 1, 1, 0, FIXTURE_NO_SOI); /* no frame precedes it */
    fixture_damage(data, 1, 1, 6, FIXTURE_NO_SOI);
    fixture_damage(data, 1, 1, 7, FIXTURE_ZEROED);
    for (int policy = WEIR_ON_ERROR_FAIL; policy <= WEIR_ON_ERROR_SUBSTITUTE; policy++)
        for (int history = 1; history <= 3; history++) {
            struct weir_loader_config config = config_for(data, 0);
            config.on_error = (enum weir_on_error)policy;
            config.obs_history = history;
            char *expected = fixture_checksums(&config, &rc, &first_err);
            cr_assert_eq(rc, policy == WEIR_ON_ERROR_FAIL ? -EBADMSG : 0);
            for (int w = 0; w < 5; w++)
                for (int b = 0; b < 2; b++) {
                    config.num_workers = workers[w];
                    config.decode_cache_bytes = b ? 100000 : 64 << 20;
                    char *sums = fixture_checksums(&config, &rc, &err);
                    cr_assert_str_eq(sums, expected, "policy %d, %d workers", policy, workers[w]);
                    cr_assert_str_eq(err.text, first_err.text);
                    free(sums);
                }
            free(expected);
            if (policy == WEIR_ON_ERROR_FAIL)
                continue;
            config.num_workers = 0;
            config.decode_cache_bytes = 64 << 20;
            struct figures f = run(&config);
            cr_assert_eq(f.counts.cache_frames, FRAMES - 4, "policy %d, history %d", policy, history);
        }
}

/* A bad frame ends the run with the message of the lowest task that needs it, even if another task decodes it. */
Test(frame_cache, a_shared_frame_fails_as_the_lowest_sample_that_needs_it)
{
    const char *data = fixture_synth("d", "act-jpeg", EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
    static const int workers[] = {0, 1, 2, 7};
    struct weir_err first = WEIR_ERR_NONE, err;
    int rc;
    for (int t = 2; t < 7; t++)
        for (int c = 0; c < 2; c++)
            fixture_damage(data, 1, c, t, FIXTURE_NO_SOI);
    for (int repeat = 0; repeat < 5; repeat++)
        for (int w = 0; w < 4; w++) {
            struct weir_loader_config config = config_for(data, workers[w]);
            config.obs_history = 4;
            config.batch_size = EPISODES * STEPS;
            config.train_split = 1;
            free(fixture_checksums(&config, &rc, &err));
            cr_assert_eq(rc, -EBADMSG);
            if (repeat + w == 0)
                first = err;
            cr_assert_str_eq(err.text, first.text);
        }
}

Test(frame_cache, a_run_that_goes_on_delivers_what_was_left)
{
    const char *data = fixture_synth("d", "act-jpeg", EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
    struct weir_loader_config config = config_for(data, 2);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    const char *state = fixture_path("state");
    int rc;
    char *whole = fixture_checksums(&config, &rc, &err), *rest = whole;
    config.decode_cache_bytes = 200000;
    struct weir_loader *loader = fixture_loader(&config);
    for (int i = 0; i < 7; i++) {
        cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
        weir_loader_release(loader, batch);
        rest = strchr(rest, '\n') + 1;
    }
    cr_assert_eq(weir_loader_save(loader, state, &err), 0, "%s", err.text);
    weir_loader_close(&loader);
    for (int b = 0; b < 2; b++) {
        config.decode_cache_bytes = b ? 0 : 64 << 20;
        cr_assert_eq(weir_loader_restore(&config, state, &err), 0, "%s", err.text);
        char *sums = fixture_checksums(&config, &rc, &err);
        cr_assert_str_eq(sums, rest);
        free(sums);
    }
    free(whole);
}
