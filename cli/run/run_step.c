#include "cli/run/run_step.h"
#include "pipeline/gpu/gpu.h"
#include "weir/base.h"
#include "weir/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void spin_until(uint64_t until_ns, const volatile sig_atomic_t *interrupted)
{
    while (weir_clock_monotonic_ns() < until_ns && !*interrupted)
        continue;
}

static void sleep_until(uint64_t until_ns, const volatile sig_atomic_t *interrupted)
{
    struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    while (!*interrupted && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

void weir_run_step_stand_in(uint64_t ns, bool spin, const volatile sig_atomic_t *interrupted)
{
    uint64_t until_ns = weir_clock_monotonic_ns() + ns;
    if (spin)
        spin_until(until_ns, interrupted);
    else
        sleep_until(until_ns, interrupted);
}

/* Interns the shapes and types of the batch's tensors. */
static uint32_t batch_shapes(const struct weir_batch *batch)
{
    static const char *const names[] = {[WEIR_DTYPE_U8] = "unsigned char",
                                        [WEIR_DTYPE_F32] = "float",
                                        [WEIR_DTYPE_F16] = "c10::Half",
                                        [WEIR_DTYPE_BF16] = "c10::BFloat16",
                                        [WEIR_DTYPE_U16] = "unsigned short"};
    int64_t sizes[6 * WEIR_TENSORS_MAX], *to = sizes;
    int ranks[WEIR_TENSORS_MAX];
    const char *types[WEIR_TENSORS_MAX];
    for (int i = 0; i < batch->n_tensors; i++) {
        const struct weir_tensor *tensor = &batch->tensors[i];
        ranks[i] = tensor->ndim;
        types[i] = names[tensor->dtype];
        for (int d = 0; d < tensor->ndim; d++)
            *to++ = tensor->shape[d];
    }
    return weir_shapes_intern(batch->n_tensors, ranks, sizes, types);
}

void weir_run_step_shapes(const struct weir_batch *batch)
{
    if (weir_recording() & WEIR_RECORDING_SHAPES)
        weir_zone_shapes(batch_shapes(batch));
}

/* ---- on a GPU ---- */

struct weir_run_gpu {
    struct weir_loader *loader;
    struct weir_device *device;
    bool sync_steps, own_stream;
    void *stream;
    void *ends[2];  /* events at the end of the last two steps, used alternately */
    uint64_t steps; /* number of queued steps */
    uint8_t *fetched;
    size_t fetched_bytes;
};

int weir_run_gpu_open(struct weir_run_gpu **out, struct weir_loader *loader, bool sync_steps, void *stream,
                      struct weir_err *err)
{
    *out = NULL;
    struct weir_device *device = weir_device_of(loader);
    if (!device)
        return 0;
    struct weir_run_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return weir_err_set(err, -ENOMEM, "out of memory");
    *gpu = (struct weir_run_gpu){
        .loader = loader, .device = device, .sync_steps = sync_steps, .own_stream = !stream, .stream = stream};
    int rc = gpu->own_stream ? weir_device_stream(device, &gpu->stream, err) : 0;
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = weir_device_event(device, &gpu->ends[i], err);
    if (rc < 0)
        weir_run_gpu_close(&gpu);
    *out = gpu;
    return rc;
}

void weir_run_gpu_close(struct weir_run_gpu **gpu)
{
    struct weir_run_gpu *g = *gpu;
    if (!g)
        return;
    for (int i = 0; i < 2; i++)
        if (g->ends[i])
            weir_device_event_free(g->device, g->ends[i]);
    if (g->own_stream && g->stream)
        weir_device_stream_free(g->device, g->stream);
    free(g->fetched);
    free(g);
    *gpu = NULL;
}

int weir_run_gpu_begin(struct weir_run_gpu *gpu, struct weir_batch *batch, struct weir_err *err)
{
    void *before = gpu->ends[(gpu->steps + 1) % 2];
    int rc = gpu->sync_steps ? weir_device_wait(gpu->device, before, err) : 0;
    return rc == 0 ? weir_loader_wait(gpu->loader, batch, gpu->stream, err) : rc;
}

int weir_run_gpu_end(struct weir_run_gpu *gpu, struct weir_err *err)
{
    void *end = gpu->ends[gpu->steps % 2], *before = gpu->ends[(gpu->steps + 1) % 2];
    int rc = weir_device_record(gpu->device, end, gpu->stream, err);
    gpu->steps++;
    return rc == 0 ? weir_device_wait(gpu->device, before, err) : rc;
}

int weir_run_gpu_step(struct weir_run_gpu *gpu, struct weir_batch *batch, uint64_t ns, struct weir_err *err)
{
    int rc = weir_run_gpu_begin(gpu, batch, err);
    if (rc == 0 && ns > 0)
        rc = weir_device_busy(gpu->device, ns, gpu->stream, err);
    return rc == 0 ? weir_run_gpu_end(gpu, err) : rc;
}

int weir_run_gpu_fetch(struct weir_run_gpu *gpu, const struct weir_batch *batch, struct weir_batch *host,
                       struct weir_err *err)
{
    size_t bytes = weir_device_fetch_bytes(batch);
    if (bytes > gpu->fetched_bytes) {
        free(gpu->fetched);
        gpu->fetched = malloc(bytes);
        gpu->fetched_bytes = gpu->fetched ? bytes : 0;
    }
    if (!gpu->fetched)
        return weir_err_set(err, -ENOMEM, "out of memory");
    return weir_device_fetch(gpu->device, batch, gpu->stream, gpu->fetched, host, err);
}

void weir_run_gpu_release(struct weir_run_gpu *gpu, struct weir_batch *batch)
{
    weir_loader_release_after(gpu->loader, batch, gpu->stream);
}

int weir_run_gpu_drain(struct weir_run_gpu *gpu, struct weir_err *err)
{
    int rc = weir_device_record(gpu->device, gpu->ends[0], gpu->stream, err);
    return rc == 0 ? weir_device_wait(gpu->device, gpu->ends[0], err) : rc;
}
