/* The fake CUDA module behaves like CUDA, and aborts programs that misuse it. */
#include "prof/gpu/cuda_module.h"
#include "tests/fakes/fake_cuda.h"
#include "tests/fixtures/prepare_reference.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct weir_gpu_ops *ops;
static struct weir_gpu *gpu;
static struct weir_err err;

static void load(const char *settings)
{
    const struct weir_cuda_module *module;
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    setenv("WEIR_FAKE_CUDA", settings, 1);
    cr_assert_eq(weir_cuda_module_open(&module, &err), 0, "%s", err.text);
    ops = module->gpu;
}

static void start(const char *settings)
{
    load(settings);
    cr_assert_eq(ops->open(&gpu, 0, &err), 0, "%s", err.text);
}

static void *stream_new(void)
{
    void *stream;
    cr_assert_eq(ops->stream_new(gpu, false, &stream, &err), 0, "%s", err.text);
    return stream;
}

static void *event_new(void)
{
    void *event;
    cr_assert_eq(ops->event_new(gpu, true, &event, &err), 0, "%s", err.text);
    return event;
}

static void *gpu_new(size_t bytes)
{
    void *memory;
    cr_assert_eq(ops->alloc(gpu, bytes, &memory, &err), 0, "%s", err.text);
    return memory;
}

static void fine(int rc)
{
    cr_assert_eq(rc, 0, "%d: %s", rc, err.text);
}

static void sync_stream(void *stream)
{
    void *event = event_new();
    fine(ops->record(gpu, event, stream, &err));
    fine(ops->wait(gpu, event, &err));
    cr_assert_eq(ops->passed(gpu, event, &err), 1);
    ops->event_free(gpu, event);
}

Test(fake_cuda, what_is_copied_in_comes_out)
{
    start("copy_ns_per_mb=1000");
    void *stream = stream_new();
    uint8_t *memory = gpu_new(100000), *pinned = aligned_alloc(4096, 102400), *plain = malloc(100000);
    fine(ops->pin(gpu, pinned, 102400, &err));
    for (size_t i = 0; i < 100000; i++)
        pinned[i] = (uint8_t)(i * 7);
    fine(ops->copy_in(gpu, memory, pinned, 100000, stream, &err));
    sync_stream(stream);
    fine(ops->copy_out(gpu, plain, memory, 100000, stream, &err));
    cr_assert_eq(memcmp(plain, pinned, 100000), 0);
    memset(plain, 3, 1000);
    fine(ops->copy_in(gpu, memory + 500, plain, 1000, stream, &err));
    memset(plain, 4, 1000); /* not pinned, so already read */
    fine(ops->copy_out(gpu, pinned, memory, 2000, stream, &err));
    sync_stream(stream);
    for (size_t i = 0; i < 2000; i++)
        cr_assert_eq(pinned[i], i >= 500 && i < 1500 ? 3 : (uint8_t)(i * 7));
    ops->stream_free(gpu, stream);
    ops->unpin(gpu, pinned);
    ops->free(gpu, memory);
    ops->close(&gpu);
    cr_assert_null(gpu);
    free(pinned);
    free(plain);
}

Test(fake_cuda, a_stream_waits_for_the_record_that_there_was)
{
    start("");
    void *a = stream_new(), *b = stream_new(), *event = event_new(), *turn = event_new();
    cr_assert_eq(ops->passed(gpu, event, &err), 1, "never recorded: nothing to wait for");
    fine(ops->record(gpu, event, a, &err));
    fine(ops->busy(gpu, 20000000, b, &err)); /* delays b's wait until the event has been recorded again */
    fine(ops->stream_wait(gpu, b, event, &err));
    fine(ops->record(gpu, turn, b, &err));
    fine(ops->stream_wait(gpu, a, turn, &err));
    fine(ops->record(gpu, event, a, &err));
    fine(ops->wait(gpu, event, &err));
    cr_assert_eq(ops->passed(gpu, turn, &err), 1);
    int64_t ns;
    fine(ops->elapsed(gpu, turn, event, &ns, &err));
    cr_assert_geq(ns, 0);
    fine(ops->elapsed(gpu, event, turn, &ns, &err));
    cr_assert_leq(ns, 0);
    ops->event_free(gpu, event);
    ops->event_free(gpu, turn);
    ops->stream_free(gpu, a);
    ops->stream_free(gpu, b);
    ops->close(&gpu);
}

Test(fake_cuda, streams_run_beside_the_caller_and_time_passes_in_them)
{
    start("");
    void *stream = stream_new(), *from = event_new(), *to = event_new();
    int64_t ns;
    fine(ops->record(gpu, from, stream, &err));
    fine(ops->busy(gpu, 1000000000, stream, &err));
    fine(ops->record(gpu, to, stream, &err));
    cr_assert_eq(ops->passed(gpu, to, &err), 0);
    cr_assert_eq(ops->elapsed(gpu, from, to, &ns, &err), -EINVAL);
    err = WEIR_ERR_NONE;
    fine(ops->wait(gpu, to, &err));
    fine(ops->elapsed(gpu, from, to, &ns, &err));
    cr_assert_geq(ns, 1000000000);
    ops->event_free(gpu, from);
    ops->event_free(gpu, to);
    ops->stream_free(gpu, stream);
    ops->close(&gpu);
}

Test(fake_cuda, what_is_queued_on_a_stream_that_waits_comes_later)
{
    start("");
    void *a = stream_new(), *b = stream_new(), *event = event_new();
    uint8_t *memory = gpu_new(1), one = 1, two = 2, got = 0;
    fine(ops->busy(gpu, 30000000, a, &err));
    fine(ops->copy_in(gpu, memory, &one, 1, a, &err));
    fine(ops->record(gpu, event, a, &err));
    fine(ops->stream_wait(gpu, b, event, &err));
    fine(ops->copy_in(gpu, memory, &two, 1, b, &err));
    fine(ops->copy_out(gpu, &got, memory, 1, b, &err));
    cr_assert_eq(got, 2);
    ops->event_free(gpu, event);
    ops->stream_free(gpu, a);
    ops->stream_free(gpu, b);
    ops->free(gpu, memory);
    ops->close(&gpu);
}

Test(fake_cuda, the_host_cannot_touch_gpu_memory)
{
    start("");
    void *memory = gpu_new(10);
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], memory, 1), -1);
    cr_assert_eq(errno, EFAULT);
    ops->free(gpu, memory);
    ops->close(&gpu);
}

Test(fake_cuda, memory_that_is_not_there_is_an_error_and_all_goes_on)
{
    start("memory_bytes=1000000,fail=oom:300000");
    void *blocks[4], *more;
    for (int i = 0; i < 4; i++)
        blocks[i] = gpu_new(200000);
    uint64_t free_bytes, total_bytes;
    fine(ops->memory(gpu, &free_bytes, &total_bytes, &err));
    cr_assert_eq(free_bytes, 200000);
    cr_assert_eq(total_bytes, 1000000);
    cr_assert_eq(ops->alloc(gpu, 200001, &more, &err), -ENOMEM);
    cr_assert_null(more);
    cr_assert_not_null(strstr(err.text, "--batch-size"), "%s", err.text);
    ops->free(gpu, blocks[0]);
    ops->free(gpu, blocks[1]);
    cr_assert_eq(ops->alloc(gpu, 300000, &more, NULL), -ENOMEM);
    cr_assert_eq(ops->alloc(gpu, 299999, &more, NULL), 0);
    ops->free(gpu, more);
    ops->free(gpu, blocks[2]);
    ops->free(gpu, blocks[3]);
    ops->close(&gpu);
}

Test(fake_cuda, a_lost_gpu_fails_everything_and_can_be_closed)
{
    start("fail=lost:3");
    void *stream = stream_new(), *event = event_new(), *memory = gpu_new(8), *more;
    uint8_t bytes[8] = {0};
    fine(ops->copy_in(gpu, memory, bytes, 8, stream, &err));
    fine(ops->record(gpu, event, stream, &err));
    fine(ops->wait(gpu, event, &err));
    cr_assert_eq(ops->busy(gpu, 1, stream, &err), -EIO);
    cr_assert_not_null(strstr(err.text, "is lost"), "%s", err.text);
    cr_assert_eq(ops->copy_in(gpu, memory, bytes, 8, stream, NULL), -EIO);
    cr_assert_eq(ops->copy_out(gpu, bytes, memory, 8, stream, NULL), -EIO);
    cr_assert_eq(ops->record(gpu, event, stream, NULL), -EIO);
    cr_assert_eq(ops->stream_wait(gpu, stream, event, NULL), -EIO);
    cr_assert_eq(ops->passed(gpu, event, NULL), -EIO);
    cr_assert_eq(ops->wait(gpu, event, NULL), -EIO);
    cr_assert_eq(ops->alloc(gpu, 8, &more, NULL), -EIO);
    ops->event_free(gpu, event);
    ops->stream_free(gpu, stream);
    ops->free(gpu, memory);
    ops->close(&gpu);
}

Test(fake_cuda, gpus_there_are)
{
    load("gpus=2");
    struct weir_gpu_info info;
    int n;
    fine(ops->count(&n, &err));
    cr_assert_eq(n, 2);
    fine(ops->describe(1, false, &info, &err));
    cr_assert_eq(info.number, 1);
    cr_assert_eq(info.total_bytes, 0);
    fine(ops->describe(1, true, &info, &err));
    cr_assert_eq(info.free_bytes, (uint64_t)1 << 30);
    cr_assert_eq(ops->open(&gpu, 2, &err), -ENODEV);
    cr_assert_null(gpu);
    cr_assert_not_null(strstr(err.text, "no GPU 2"), "%s", err.text);
}

Test(fake_cuda, a_machine_without_a_gpu)
{
    load("none");
    int n;
    cr_assert_eq(ops->count(&n, &err), -ENODEV);
    cr_assert_eq(n, 0);
    cr_assert_not_null(strstr(err.text, "driver"), "%s", err.text);
    cr_assert_eq(ops->open(&gpu, 0, NULL), -ENODEV);
}

Test(fake_cuda, pinning_may_be_refused)
{
    start("fail=pin");
    void *memory = aligned_alloc(4096, 4096);
    cr_assert_eq(ops->pin(gpu, memory, 4096, &err), -ENOMEM);
    free(memory);
    ops->close(&gpu);
}

/* ---- misuse ---- */

Test(fake_cuda, freeing_twice, .signal = SIGABRT)
{
    start("");
    void *memory = gpu_new(8);
    ops->free(gpu, memory);
    ops->free(gpu, memory);
}

Test(fake_cuda, copying_past_the_end, .signal = SIGABRT)
{
    start("");
    uint8_t bytes[9] = {0};
    ops->copy_in(gpu, gpu_new(8), bytes, 9, stream_new(), &err);
}

Test(fake_cuda, copying_to_the_host_as_if_it_were_the_gpu, .signal = SIGABRT)
{
    start("");
    uint8_t bytes[8] = {0}, more[8];
    ops->copy_in(gpu, more, bytes, 8, stream_new(), &err);
}

Test(fake_cuda, closing_with_memory_left, .signal = SIGABRT)
{
    start("");
    gpu_new(8);
    ops->close(&gpu);
}

Test(fake_cuda, closing_with_an_event_left, .signal = SIGABRT)
{
    start("");
    event_new();
    ops->close(&gpu);
}

Test(fake_cuda, pinning_twice, .signal = SIGABRT)
{
    start("");
    uint8_t *memory = aligned_alloc(4096, 8192);
    ops->pin(gpu, memory, 8192, &err);
    ops->pin(gpu, memory + 4096, 4096, &err);
}

Test(fake_cuda, unpinning_under_a_copy, .signal = SIGABRT)
{
    start("");
    void *stream = stream_new(), *memory = aligned_alloc(4096, 4096);
    ops->pin(gpu, memory, 4096, &err);
    ops->busy(gpu, 300000000, stream, &err);
    ops->copy_in(gpu, gpu_new(10), memory, 10, stream, &err);
    ops->unpin(gpu, memory);
}

Test(fake_cuda, an_event_that_was_destroyed, .signal = SIGABRT)
{
    start("");
    void *event = event_new();
    ops->event_free(gpu, event);
    ops->record(gpu, event, stream_new(), &err);
}

/* ---- preparation kernels ---- */

enum { W = 10, H = 6, OUT = 3 * W * H };

Test(fake_cuda, prepares_as_the_reference)
{
    start("");
    uint8_t samples[OUT];
    float values[768], want[OUT], got[OUT];
    for (int i = 0; i < OUT; i++)
        samples[i] = (uint8_t)(i * 37);
    for (int i = 0; i < 768; i++)
        values[i] = (float)i - 300.5f;
    struct weir_gpu_source source = {.plane = {samples}, .pitch = {3 * W}, .kind = WEIR_GPU_RGB};
    struct weir_gpu_prepare prepare = {.sources = &source,
                                       .n = 1,
                                       .width = W,
                                       .height = H,
                                       .x = 1,
                                       .y = 2,
                                       .out_width = W - 3,
                                       .out_height = H - 2,
                                       .planar = true,
                                       .dtype = WEIR_GPU_F32,
                                       .values = values,
                                       .tensor = want};
    size_t bytes = sizeof(float) * 3 * (W - 3) * (H - 2);
    prepare_reference(&prepare);
    void *stream = stream_new();
    uint8_t *block = gpu_new(65536);
    fine(ops->copy_in(gpu, block + 4096, samples, sizeof samples, stream, &err));
    fine(ops->copy_in(gpu, block + 8192, values, sizeof values, stream, &err));
    source.plane[0] = block + 4096;
    fine(ops->copy_in(gpu, block, &source, sizeof source, stream, &err));
    prepare.sources = (const void *)block;
    prepare.values = (const void *)(block + 8192);
    prepare.tensor = block + 32768;
    fine(ops->prepare(gpu, &prepare, stream, &err));
    fine(ops->copy_out(gpu, got, block + 32768, bytes, stream, &err));
    cr_assert_eq(memcmp(got, want, bytes), 0);
    ops->stream_free(gpu, stream);
    ops->free(gpu, block);
    ops->close(&gpu);
}
