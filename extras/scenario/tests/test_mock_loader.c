/* Tests the scenarios' loader: items depend only on the seed, no more batches are started than allowed, epochs start
 * and end, and the loader can be closed while its threads work. This is a separate program so that ThreadSanitizer can
 * run it. */
#include "extras/scenario/mock_loader.h"
#include "pipeline/gpu/gpu.h"
#include "weir/base.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ITEMS = 50, BATCH = 8, BATCHES = ITEMS / BATCH, IMAGE = 100, TARGET = 7, LINES = 3 * BATCHES };

static int failed;

static void check(bool fine, const char *what, int line)
{
    if (fine)
        return;
    failed++;
    fprintf(stderr, "test_mock_loader.c:%d: %s\n", line, what);
}
#define CHECK(what) check(what, #what, __LINE__)

static const struct weir_mock_loader_config plain = {.items = ITEMS,
                                                     .batch_size = BATCH,
                                                     .workers = 2,
                                                     .prefetch = 2,
                                                     .image_floats = IMAGE,
                                                     .target_floats = TARGET,
                                                     .cpu_units = 20,
                                                     .io_ns = 1000,
                                                     .seed = 5};

static struct weir_mock_loader *opened(const struct weir_mock_loader_config *config)
{
    struct weir_mock_loader *loader;
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_mock_loader_open(&loader, config, &err) == 0)
        return loader;
    fprintf(stderr, "test_mock_loader: %s\n", err.text);
    exit(1);
}

static const struct weir_mock_loader_batch *next(struct weir_mock_loader *loader)
{
    const struct weir_mock_loader_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_mock_loader_next(loader, &batch, &err) == 0)
        return batch;
    fprintf(stderr, "test_mock_loader: %s\n", err.text);
    exit(1);
}

/* A checksum that depends on the position of each value. */
static uint64_t sum_of(const float *numbers, size_t n)
{
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        sum = (sum ^ bits) * 1099511628211u;
    }
    return sum;
}

/* Computes checksums of the batches of three epochs. */
static void sums(const struct weir_mock_loader_config *config, uint64_t to[LINES])
{
    struct weir_mock_loader *loader = opened(config);
    for (int i = 0; i < LINES; i++) {
        const struct weir_mock_loader_batch *batch = next(loader);
        CHECK(batch->epoch == i / BATCHES && batch->index == i % BATCHES);
        to[i] = sum_of(batch->images, (size_t)BATCH * IMAGE) ^ (sum_of(batch->targets, (size_t)BATCH * TARGET) << 1);
        weir_mock_loader_release(loader);
    }
    weir_mock_loader_close(&loader);
    CHECK(loader == NULL);
}

static void the_same_for_any_number_of_workers(void)
{
    static const int workers[] = {0, 1, 4};
    uint64_t wanted[LINES], got[LINES];
    struct weir_mock_loader_config config = plain;
    sums(&config, wanted);
    for (int persistent = 0; persistent < 2; persistent++)
        for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
            config.persistent = persistent;
            config.workers = workers[i];
            config.prefetch = 1 + (int)i;
            sums(&config, got);
            CHECK(memcmp(got, wanted, sizeof got) == 0);
        }
    CHECK(memcmp(wanted, wanted + BATCHES, BATCHES * sizeof *wanted) != 0); /* each epoch has a different order */
    config.seed++;
    sums(&config, got);
    for (int i = 0; i < LINES; i++)
        CHECK(got[i] != wanted[i]);
}

static int by_bits(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(float));
}

static void items_of_an_epoch(struct weir_mock_loader *loader, float firsts[ITEMS])
{
    for (int i = 0; i < ITEMS / 10; i++) {
        const struct weir_mock_loader_batch *batch = next(loader);
        for (int row = 0; row < 10; row++) {
            const float *image = batch->images + (size_t)row * IMAGE;
            firsts[i * 10 + row] = image[0];
            for (int j = 0; j < IMAGE; j++)
                CHECK(image[j] >= 0 && image[j] < 1);
        }
        weir_mock_loader_release(loader);
    }
    qsort(firsts, ITEMS, sizeof *firsts, by_bits);
}

/* Each epoch contains each item once: the first numbers of all items differ, and the next epoch has the same set of
 * them. */
static void every_item_once(void)
{
    struct weir_mock_loader_config config = plain;
    config.batch_size = 10;
    struct weir_mock_loader *loader = opened(&config);
    float first[ITEMS], second[ITEMS];
    items_of_an_epoch(loader, first);
    items_of_an_epoch(loader, second);
    CHECK(memcmp(first, second, sizeof first) == 0);
    for (int i = 1; i < ITEMS; i++)
        CHECK(memcmp(&first[i - 1], &first[i], sizeof *first) != 0);
    weir_mock_loader_close(&loader);
}

static void wait_for_items(struct weir_mock_loader *loader, uint64_t n)
{
    struct timespec rest = {.tv_nsec = 1000000};
    while (weir_mock_loader_items_begun(loader) < n)
        nanosleep(&rest, NULL);
}

static void no_more_than_prefetch_is_begun(void)
{
    struct weir_mock_loader_config config = plain;
    config.prefetch = 1;
    struct weir_mock_loader *loader = opened(&config);
    for (uint64_t taken = 0; taken + 2 <= BATCHES; taken++) {
        wait_for_items(loader, (taken + 2) * BATCH);
        CHECK(weir_mock_loader_items_begun(loader) == (taken + 2) * BATCH); /* and again after 3 ms */
        const struct timespec rest = {.tv_nsec = 3000000};
        nanosleep(&rest, NULL);
        CHECK(weir_mock_loader_items_begun(loader) == (taken + 2) * BATCH);
        next(loader);
        weir_mock_loader_release(loader);
    }
    weir_mock_loader_close(&loader);
    config.prefetch = 100;
    loader = opened(&config);
    wait_for_items(loader, BATCHES * BATCH); /* limited to the epoch */
    CHECK(weir_mock_loader_items_begun(loader) == BATCHES * BATCH);
    weir_mock_loader_close(&loader);
    config.workers = 0;
    loader = opened(&config);
    CHECK(weir_mock_loader_items_begun(loader) == 0);
    next(loader);
    CHECK(weir_mock_loader_items_begun(loader) == BATCH && weir_mock_loader_threads_started(loader) == 0);
    weir_mock_loader_close(&loader);
}

static void threads_stay_or_go(void)
{
    for (int persistent = 0; persistent < 2; persistent++) {
        struct weir_mock_loader_config config = plain;
        config.persistent = persistent;
        struct weir_mock_loader *loader = opened(&config);
        for (int i = 0; i < LINES; i++) {
            next(loader);
            weir_mock_loader_release(loader);
        }
        CHECK(weir_mock_loader_threads_started(loader) == (persistent ? 2u : 6u));
        weir_mock_loader_close(&loader);
    }
}

/* Closes the loader immediately, while the caller holds a batch, and in the middle of an epoch. */
static void closes_while_workers_work(void)
{
    struct weir_mock_loader_config config = plain;
    config.workers = 4;
    config.io_ns = 2000000;
    for (int taken = 0; taken < 4; taken++) {
        struct weir_mock_loader *loader = opened(&config);
        for (int i = 0; i < taken; i++) {
            next(loader);
            if (i + 1 < taken)
                weir_mock_loader_release(loader);
        }
        weir_mock_loader_close(&loader);
    }
    struct weir_mock_loader *none = NULL;
    weir_mock_loader_close(&none);
}

static void refused(struct weir_mock_loader_config config)
{
    struct weir_mock_loader *loader;
    struct weir_err err = WEIR_ERR_NONE;
    CHECK(weir_mock_loader_open(&loader, &config, &err) == -EINVAL && !loader && err.text[0]);
}

static void refuses_what_cannot_be(void)
{
    struct weir_mock_loader_config config = plain;
    config.batch_size = ITEMS + 1;
    refused(config);
    config.batch_size = 0;
    refused(config);
    config = plain;
    config.workers = WEIR_MOCK_WORKERS_MAX + 1;
    refused(config);
    config.workers = -1;
    refused(config);
    config = plain;
    config.prefetch = 0;
    refused(config);
    config.workers = 0; /* without workers, prefetch is ignored */
    struct weir_mock_loader *loader = opened(&config);
    weir_mock_loader_close(&loader);
}

/* The fake GPU aborts if memory is unpinned that was not pinned, or if memory is still pinned at the end. */
static void pins_its_batches(void)
{
    struct weir_device *device;
    struct weir_err err = WEIR_ERR_NONE;
    void *on_gpu = NULL, *stream = NULL;
    CHECK(weir_device_open(&device, 0, &err) == 0);
    struct weir_mock_loader_config config = plain;
    config.device = device;
    config.pin = weir_device_pin;
    config.unpin = weir_device_unpin;
    struct weir_mock_loader *loader = opened(&config);
    const struct weir_mock_loader_batch *batch = next(loader);
    size_t bytes = (size_t)BATCH * IMAGE * sizeof(float);
    float *back = malloc(bytes);
    CHECK(weir_device_stream(device, &stream, &err) == 0 && weir_device_alloc(device, bytes, &on_gpu, &err) == 0);
    CHECK(weir_device_copy_in(device, on_gpu, batch->images, bytes, stream, &err) == 0);
    CHECK(weir_device_copy_out(device, back, on_gpu, bytes, stream, &err) == 0); /* waits, because back is not pinned */
    CHECK(memcmp(back, batch->images, bytes) == 0);
    free(back);
    weir_device_free(device, on_gpu);
    weir_device_free(device, NULL);
    weir_device_stream_free(device, stream);
    weir_mock_loader_close(&loader);
    weir_device_close(&device);
}

static const struct weir_stage_stats *stage(const struct weir_snapshot *snapshot, const char *name)
{
    for (int i = 0; i < snapshot->n_stages; i++)
        if (weir_stage_info(i) && strcmp(weir_stage_info(i)->name, name) == 0)
            return &snapshot->stages[i];
    return NULL;
}

static void waits_and_work_are_stages(void)
{
    struct weir_mock_loader_config config = plain;
    struct weir_snapshot *snapshot;
    CHECK(weir_loader_stages() == 0 && weir_recorder_open(&config.recorder) == 0);
    CHECK(weir_thread_attach(config.recorder, "consumer", WEIR_ROLE_CONSUMER) == 0);
    struct weir_mock_loader *loader = opened(&config);
    for (int i = 0; i < BATCHES; i++) {
        next(loader);
        weir_mock_loader_release(loader);
    }
    weir_mock_loader_close(&loader);
    weir_thread_detach();
    CHECK(weir_snapshot_take(config.recorder, &snapshot) == 0);
    CHECK(stage(snapshot, "08_wait_for_data")->count == BATCHES);
    CHECK(stage(snapshot, "item_cpu_work")->count == BATCHES * BATCH);
    CHECK(stage(snapshot, "item_simulated_io")->count == BATCHES * BATCH);
    CHECK(stage(snapshot, "item_simulated_io")->min_ns >= 1000);
    weir_snapshot_free(&snapshot);
    weir_recorder_close(&config.recorder);
}

/* A unit takes about 50 ns, and more units take longer. The bounds are loose enough for a busy machine. */
static void units_take_time(void)
{
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t start_ns = weir_clock_monotonic_ns();
        weir_cpu_units(20000);
        uint64_t ns = weir_clock_monotonic_ns() - start_ns;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    CHECK(least_ns > 100000); /* expected about 1 ms; even a CPU with a variable clock is not ten times faster than
                                 during calibration */
}

int main(void)
{
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    the_same_for_any_number_of_workers();
    every_item_once();
    no_more_than_prefetch_is_begun();
    threads_stay_or_go();
    closes_while_workers_work();
    refuses_what_cannot_be();
    pins_its_batches();
    waits_and_work_are_stages();
    units_take_time();
    if (failed)
        fprintf(stderr, "%d failed\n", failed);
    return failed > 0;
}
