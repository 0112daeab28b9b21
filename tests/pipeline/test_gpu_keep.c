/* Batches on the fake GPU that consumers keep, use on several streams, or release on other
 * threads. Their contents must not change, and memory must be reused only after the streams' work. The fake GPU aborts
 * on leaks and on use after free. */
#include "base/threads.h"
#include "pipeline/gpu/gpu_blocks.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/upload_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EPISODES = 4, STEPS = 9, MOST = 64, LATE_NS = 5000000 };

static void begin(void)
{
    fixture_open();
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    setenv("WEIR_FAKE_CUDA", "", 1);
}

TestSuite(gpu_keep, .init = begin, .fini = fixture_close);

static struct weir_loader_config config_for(int workers)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = fixture_synth("jpeg", "act-jpeg", EPISODES, STEPS, 48, 32, "top,wrist");
    config.device = "cuda";
    config.decoder = "turbo";
    config.batch_size = 3;
    config.num_workers = workers;
    config.prefetch = 2;
    config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_U8, .layout = WEIR_LAYOUT_NCHW};
    return config;
}

/* The images of every batch, from a run without a GPU. */
struct images {
    int n;
    size_t bytes[MOST];
    uint8_t *data[MOST];
};

static void expected(struct images *images, const struct weir_loader_config *config)
{
    struct weir_loader_config host = *config;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    host.device = NULL;
    struct weir_loader *loader = fixture_loader(&host);
    for (images->n = 0; weir_loader_next(loader, &batch, &err) > 0; images->n++) {
        images->bytes[images->n] = batch->tensors[0].sample_bytes * (size_t)batch->n;
        images->data[images->n] = malloc(images->bytes[images->n]);
        memcpy(images->data[images->n], batch->tensors[0].data, images->bytes[images->n]);
        weir_loader_release(loader, batch);
    }
    cr_assert_eq(err.code, 0, "%s", err.text);
    weir_loader_close(&loader);
}

static void forget(struct images *images)
{
    for (int i = 0; i < images->n; i++)
        free(images->data[i]);
}

/* Compares a batch's images after the stream's work, for which it waits. */
static void check_images(const struct images *images, int i, struct weir_device *device, const void *data, void *stream)
{
    struct weir_err err = WEIR_ERR_NONE;
    uint8_t *copy = malloc(images->bytes[i]);
    cr_assert_eq(weir_device_copy_out(device, copy, data, images->bytes[i], stream, &err), 0, "%s", err.text);
    cr_assert_arr_eq(copy, images->data[i], images->bytes[i], "batch %d", i);
    free(copy);
}

Test(gpu_keep, kept_batches_stay_when_the_loader_is_closed)
{
    struct weir_loader_config config = config_for(0);
    for (; config.num_workers < 3; config.num_workers += 2) {
        struct images images;
        struct weir_kept kept[MOST];
        const void *data[MOST];
        struct weir_batch *batch;
        struct weir_err err = WEIR_ERR_NONE;
        expected(&images, &config);
        struct weir_loader *loader = fixture_loader(&config);
        int n = 0;
        for (; weir_loader_next(loader, &batch, &err) > 0; n++) {
            data[n] = batch->tensors[0].data;
            cr_assert_eq(weir_loader_keep(loader, batch, &kept[n], &err), 0, "%s", err.text);
        }
        cr_assert_eq(n, images.n);
        cr_assert_eq(kept[0].memory, data[0]);
        weir_loader_close(&loader);
        for (int i = 0; i < n; i++) {
            void *stream = NULL;
            check_images(&images, i, weir_gpu_block_device(kept[i].block), data[i], stream);
            weir_loader_free_kept(&kept[i], &stream, i % 2);
        }
        forget(&images);
    }
}

/* A consumer that always keeps three batches needs GPU memory for them only once. */
Test(gpu_keep, memory_of_kept_batches_is_used_again)
{
    struct weir_loader_config config = config_for(2);
    struct images images;
    struct weir_kept kept[3];
    const void *data[3];
    struct weir_batch *batch;
    struct weir_loader_facts before, facts;
    struct weir_err err = WEIR_ERR_NONE;
    expected(&images, &config);
    struct weir_loader *loader = fixture_loader(&config);
    struct upload_reader reader = upload_reader_open(loader);
    weir_loader_facts(loader, &before);
    int n = 0;
    for (; weir_loader_next(loader, &batch, &err) > 0; n++) {
        if (n >= 3) {
            cr_assert_eq(weir_device_busy(reader.device, LATE_NS, reader.stream, &err), 0);
            check_images(&images, n - 3, reader.device, data[n % 3], reader.stream);
            cr_assert_eq(weir_device_busy(reader.device, LATE_NS, reader.stream, &err), 0);
            weir_loader_free_kept(&kept[n % 3], &reader.stream, 1);
        }
        data[n % 3] = batch->tensors[0].data;
        cr_assert_eq(weir_loader_keep(loader, batch, &kept[n % 3], &err), 0, "%s", err.text);
        weir_loader_facts(loader, &facts);
        size_t bytes = kept[n % 3].bytes;
        cr_assert_leq(facts.gpu_bytes, before.gpu_bytes + 4 * bytes);
    }
    cr_assert_eq(n, images.n);
    for (int i = 0; i < 3; i++)
        weir_loader_free_kept(&kept[i], NULL, 0);
    upload_reader_close(&reader);
    weir_loader_close(&loader);
    forget(&images);
}

static void *release(void *user)
{
    void **all = user;
    weir_loader_release_after_all(all[0], all[1], &all[2], 3);
    return NULL;
}

/* Three streams copy each batch's images after a delay. Another thread releases the batch immediately. */
Test(gpu_keep, memory_is_used_again_behind_all_streams)
{
    struct weir_loader_config config = config_for(2);
    struct images images;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    expected(&images, &config);
    struct weir_loader *loader = fixture_loader(&config);
    struct upload_reader readers[3];
    void *copies[MOST][3]; /* in GPU memory, so that the copies do not block */
    int n = 0;
    for (int s = 0; s < 3; s++)
        readers[s] = upload_reader_open(loader);
    for (; weir_loader_next(loader, &batch, &err) > 0; n++) {
        void *all[] = {loader, batch, readers[0].stream, readers[1].stream, readers[2].stream};
        pthread_t thread;
        for (int s = 0; s < 3; s++) {
            cr_assert_eq(weir_loader_wait(loader, batch, readers[s].stream, &err), 0, "%s", err.text);
            cr_assert_eq(weir_device_busy(readers[s].device, (uint64_t)s * LATE_NS, readers[s].stream, &err), 0);
            cr_assert_eq(weir_device_alloc(readers[s].device, images.bytes[n], &copies[n][s], &err), 0);
            cr_assert_eq(weir_device_copy(readers[s].device, copies[n][s], batch->tensors[0].data, images.bytes[n],
                                          readers[s].stream, &err),
                         0);
        }
        cr_assert_eq(weir_thread_start(&thread, release, all), 0);
        pthread_join(thread, NULL);
    }
    cr_assert_eq(err.code, 0, "%s", err.text);
    cr_assert_eq(n, images.n);
    for (int i = 0; i < n; i++)
        for (int s = 0; s < 3; s++) {
            check_images(&images, i, readers[s].device, copies[i][s], readers[s].stream);
            weir_device_free(readers[s].device, copies[i][s]);
        }
    for (int s = 0; s < 3; s++)
        upload_reader_close(&readers[s]);
    weir_loader_close(&loader);
    forget(&images);
}

/* Returns the GPU memory that a loader allocates. Runs in its own process, because the fake GPU reads its configuration
 * only once. */
static uint64_t measure(const struct weir_loader_config *config)
{
    uint64_t *bytes = mmap(NULL, sizeof *bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(bytes, MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        struct weir_loader_facts facts;
        struct weir_loader *loader = fixture_loader(config);
        weir_loader_facts(loader, &facts);
        *bytes = facts.gpu_bytes;
        weir_loader_close(&loader);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, NULL, 0), child);
    return *bytes;
}

Test(gpu_keep, without_memory_the_batch_is_still_lent)
{
    struct weir_loader_config config = config_for(2);
    struct weir_batch *batch;
    struct weir_kept kept;
    struct weir_err err = WEIR_ERR_NONE;
    char memory[64];
    snprintf(memory, sizeof memory, "memory_bytes=%llu", (unsigned long long)measure(&config) + 4096);
    setenv("WEIR_FAKE_CUDA", memory, 1);
    struct weir_loader *loader = fixture_loader(&config);
    cr_assert_eq(weir_loader_next(loader, &batch, &err), 1, "%s", err.text);
    cr_assert_eq(weir_loader_keep(loader, batch, &kept, &err), -ENOMEM);
    cr_assert(strstr(err.text, "while some are kept"), "%s", err.text);
    weir_loader_release(loader, batch);
    weir_loader_close(&loader);
}

struct asked {
    bool opened; /* opening is not interrupted */
    int n;
};

static bool at_once(void *user)
{
    struct asked *asked = user;
    asked->n++;
    return asked->opened;
}

/* Slow copies make the consumer wait. Even without workers, an interrupted batch must be loaded only once. */
Test(gpu_keep, a_wait_can_be_ended_and_goes_on)
{
    setenv("WEIR_FAKE_CUDA", "copy_ns_per_mb=4000000000", 1);
    struct weir_loader_config config = config_for(0);
    for (; config.num_workers < 3; config.num_workers += 2) {
        struct images images;
        struct weir_batch *batch;
        struct weir_err err = WEIR_ERR_NONE;
        struct asked asked = {0};
        int n = 0, rc;
        expected(&images, &config);
        config.interrupted = at_once;
        config.user = &asked;
        struct weir_loader *loader = fixture_loader(&config);
        asked.opened = true;
        struct upload_reader reader = upload_reader_open(loader);
        for (; (rc = weir_loader_next(loader, &batch, &err)) != 0; n += rc > 0) {
            if (rc == -EINTR)
                continue;
            cr_assert_eq(rc, 1, "%s", err.text);
            cr_assert_eq(weir_loader_wait(loader, batch, reader.stream, &err), 0);
            check_images(&images, n, reader.device, batch->tensors[0].data, reader.stream);
            weir_loader_release_after(loader, batch, reader.stream);
        }
        cr_assert_eq(n, images.n);
        cr_assert_gt(asked.n, 0);
        upload_reader_close(&reader);
        weir_loader_close(&loader);
        config.interrupted = NULL;
        forget(&images);
    }
}
