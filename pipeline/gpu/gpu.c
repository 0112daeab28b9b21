#include "pipeline/gpu/gpu_device.h"
#include "prof/gpu/cuda_module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { GPU_NUMBER_MAX = 1023 };

int weir_device_parse(const char *text, int *number, struct weir_err *err)
{
    static const char prefix[] = "cuda";
    *number = -1;
    if (!text || strcmp(text, "cpu") == 0)
        return 0;
    bool cuda = strncmp(text, prefix, sizeof prefix - 1) == 0;
    const char *rest = cuda ? text + sizeof prefix - 1 : "";
    char *end = NULL;
    long k = rest[0] == ':' && rest[1] >= '0' && rest[1] <= '9' ? strtol(rest + 1, &end, 10) : 0;
    if (!cuda || (*rest && (!end || *end || k > GPU_NUMBER_MAX)))
        return weir_err_set(err, -EINVAL,
                            "unknown device \"%.100s\"; use cpu, cuda or cuda:K (K is the number of a GPU)", text);
    *number = (int)k;
    return 0;
}

static int open_ops(const struct weir_gpu_ops **ops, struct weir_err *err)
{
    const struct weir_cuda_module *module;
    int rc = weir_cuda_module_open(&module, err);
    *ops = rc == 0 ? module->gpu : NULL;
    if (rc == 0 && !*ops)
        rc = weir_err_set(err, -ENODEV, "%s contains no GPU functions; build it together with this program",
                          weir_cuda_module_path());
    return rc;
}

int weir_device_count(int *n, struct weir_err *err)
{
    const struct weir_gpu_ops *ops;
    *n = 0;
    int rc = open_ops(&ops, err);
    return rc == 0 ? ops->count(n, err) : rc;
}

int weir_device_open(struct weir_device **out, int number, struct weir_err *err)
{
    *out = NULL;
    struct weir_device *device = calloc(1, sizeof *device);
    if (!device)
        return weir_err_set(err, -ENOMEM, "out of memory");
    device->number = number;
    device->users = 1;
    int rc = open_ops(&device->ops, err);
    if (rc == 0)
        rc = device->ops->describe(number, false, &device->info, err);
    if (rc == 0)
        rc = device->ops->open(&device->gpu, number, err);
    if (rc < 0) {
        weir_err_prefix(err, "--device cuda:%d", number);
        weir_device_close(&device);
    }
    *out = device;
    return rc;
}

struct weir_device *weir_device_share(struct weir_device *device)
{
    atomic_fetch_add_explicit(&device->users, 1, memory_order_relaxed);
    return device;
}

void weir_device_close(struct weir_device **device)
{
    struct weir_device *d = *device;
    *device = NULL;
    if (!d || atomic_fetch_sub_explicit(&d->users, 1, memory_order_acq_rel) > 1)
        return;
    if (d->gpu)
        d->ops->close(&d->gpu);
    free(d);
}

int weir_device_number(const struct weir_device *device)
{
    return device ? device->number : -1;
}

const char *weir_device_name(const struct weir_device *device)
{
    return device->info.name;
}

uint64_t weir_device_used_bytes(struct weir_device *device)
{
    uint64_t unused = 0, all = 0;
    return device->ops->memory(device->gpu, &unused, &all, NULL) == 0 ? all - unused : 0;
}

int weir_device_stream(struct weir_device *device, void **stream, struct weir_err *err)
{
    return device->ops->stream_new(device->gpu, false, stream, err);
}

void weir_device_stream_free(struct weir_device *device, void *stream)
{
    device->ops->stream_free(device->gpu, stream);
}

int weir_device_event(struct weir_device *device, void **event, struct weir_err *err)
{
    return device->ops->event_new(device->gpu, false, event, err);
}

void weir_device_event_free(struct weir_device *device, void *event)
{
    device->ops->event_free(device->gpu, event);
}

int weir_device_record(struct weir_device *device, void *event, void *stream, struct weir_err *err)
{
    return device->ops->record(device->gpu, event, stream, err);
}

int weir_device_wait(struct weir_device *device, void *event, struct weir_err *err)
{
    return device->ops->wait(device->gpu, event, err);
}

int weir_device_alloc(struct weir_device *device, size_t bytes, void **memory, struct weir_err *err)
{
    return device->ops->alloc(device->gpu, bytes, memory, err);
}

void weir_device_free(struct weir_device *device, void *memory)
{
    if (memory)
        device->ops->free(device->gpu, memory);
}

int weir_device_copy(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                     struct weir_err *err)
{
    return device->ops->copy_within(device->gpu, to, from, bytes, stream, err);
}

int weir_device_pin(struct weir_device *device, void *memory, size_t bytes, struct weir_err *err)
{
    return device->ops->pin(device->gpu, memory, bytes, err);
}

void weir_device_unpin(struct weir_device *device, void *memory)
{
    device->ops->unpin(device->gpu, memory);
}

int weir_device_copy_in(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                        struct weir_err *err)
{
    return device->ops->copy_in(device->gpu, to, from, bytes, stream, err);
}

int weir_device_copy_out(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                         struct weir_err *err)
{
    return device->ops->copy_out(device->gpu, to, from, bytes, stream, err);
}

int weir_device_busy(struct weir_device *device, uint64_t ns, void *stream, struct weir_err *err)
{
    return device->ops->busy(device->gpu, ns, stream, err);
}

/* ---- batches ---- */

enum { FETCH_ALIGNMENT = 64 };

static size_t fetched_bytes(const struct weir_tensor *tensor, int n)
{
    size_t bytes = tensor->sample_bytes * (size_t)n;
    return (bytes + FETCH_ALIGNMENT - 1) / FETCH_ALIGNMENT * FETCH_ALIGNMENT;
}

size_t weir_device_fetch_bytes(const struct weir_batch *batch)
{
    size_t sum = 0;
    for (int i = 0; i < batch->n_tensors; i++)
        sum += fetched_bytes(&batch->tensors[i], batch->plan.n);
    return sum;
}

static int finish(struct weir_device *device, void *stream, struct weir_err *err)
{
    void *event;
    int rc = weir_device_event(device, &event, err);
    if (rc < 0)
        return rc;
    rc = weir_device_record(device, event, stream, err);
    if (rc == 0)
        rc = weir_device_wait(device, event, err);
    weir_device_event_free(device, event);
    return rc;
}

int weir_device_fetch(struct weir_device *device, const struct weir_batch *batch, void *stream, void *memory,
                      struct weir_batch *host, struct weir_err *err)
{
    uint8_t *to = memory;
    int rc = 0;
    *host = *batch;
    host->device = -1;
    host->ready = NULL;
    for (int i = 0; i < batch->n_tensors && rc == 0; i++) {
        const struct weir_tensor *tensor = &batch->tensors[i];
        host->tensors[i].data = to;
        if (batch->n > 0)
            rc = weir_device_copy_out(device, to, tensor->data, tensor->sample_bytes * (size_t)batch->n, stream, err);
        to += fetched_bytes(tensor, batch->n);
    }
    /* Also after an error, because the caller may free the memory next. */
    int done_rc = finish(device, stream, rc == 0 ? err : NULL);
    return rc < 0 ? rc : done_rc;
}
