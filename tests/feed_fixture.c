#include "tests/feed_fixture.h"
#include "pipeline/gpu_priv.h"
#include "tests/loader_fixture.h"
#include "tests/prepare_reference.h"

#include <stdlib.h>
#include <string.h>

static void fine(int rc, const struct weir_err *err)
{
    if (rc < 0)
        fixture_die("%d: %s", rc, err->text);
}

struct feed_reader feed_reader_open(struct weir_loader *loader)
{
    struct feed_reader reader = {.device = weir_device_of(loader)};
    struct weir_err err = WEIR_ERR_NONE;
    if (!reader.device)
        fixture_die("the loader has no device");
    fine(weir_device_stream(reader.device, &reader.stream, &err), &err);
    return reader;
}

void feed_reader_close(struct feed_reader *reader)
{
    struct weir_err err = WEIR_ERR_NONE;
    void *event;
    fine(weir_device_event(reader->device, &event, &err), &err);
    fine(weir_device_record(reader->device, event, reader->stream, &err), &err);
    fine(weir_device_wait(reader->device, event, &err), &err);
    weir_device_event_free(reader->device, event);
    weir_device_stream_free(reader->device, reader->stream);
    free(reader->memory);
}

struct weir_batch feed_fetch(struct feed_reader *reader, struct weir_loader *loader, struct weir_batch *batch)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_batch host;
    if (!reader->memory)
        reader->memory = malloc(weir_device_fetch_bytes(batch));
    fine(weir_loader_wait(loader, batch, reader->stream, &err), &err);
    fine(weir_device_fetch(reader->device, batch, reader->stream, reader->memory, &host, &err), &err);
    return host;
}

/* ---- device against host ---- */

static bool same_values(const struct weir_tensor *got, const struct weir_tensor *want, size_t n)
{
    if (got->dtype == want->dtype)
        return memcmp(got->data, want->data, got->sample_bytes * n) == 0;
    const uint16_t *half = got->data;
    const float *value = want->data;
    for (size_t i = 0; i < got->sample_bytes / 2 * n; i++) {
        bool f16 = got->dtype == WEIR_DTYPE_F16;
        if (half[i] != (f16 ? prepare_reference_f16(value[i]) : prepare_reference_bf16(value[i])))
            return false;
    }
    return true;
}

static void expect_same(const struct weir_batch *got, const struct weir_batch *want)
{
    bool same = got->plan.sequence == want->plan.sequence && got->n == want->n && got->n_tensors == want->n_tensors &&
                memcmp(got->samples, want->samples, (size_t)want->n * sizeof *want->samples) == 0;
    if (!same)
        fixture_die("batch %d is another one", (int)want->plan.sequence);
    for (int i = 0; i < want->n_tensors; i++) {
        const struct weir_tensor *a = &got->tensors[i], *b = &want->tensors[i];
        if (strcmp(a->name, b->name) != 0 || a->ndim != b->ndim ||
            memcmp(a->shape, b->shape, sizeof a->shape[0] * (size_t)b->ndim) != 0)
            fixture_die("%s of batch %d has another shape", b->name, (int)want->plan.sequence);
        if (!same_values(a, b, (size_t)want->n))
            fixture_die("%s of batch %d has other values", b->name, (int)want->plan.sequence);
    }
}

static struct weir_loader *open_host(const struct weir_loader_config *config)
{
    struct weir_loader_config host = *config;
    bool half = config->format.dtype == WEIR_DTYPE_F16 || config->format.dtype == WEIR_DTYPE_BF16;
    host.device = NULL;
    host.decoder = "turbo";
    host.format.dtype = half ? WEIR_DTYPE_F32 : config->format.dtype;
    return fixture_loader(&host);
}

int feed_compare(const struct weir_loader_config *config)
{
    struct weir_loader *loader = fixture_loader(config), *host = open_host(config);
    struct feed_reader reader = feed_reader_open(loader);
    struct weir_batch *batch, *want;
    struct weir_err err = WEIR_ERR_NONE;
    int rc, n = 0;
    while ((rc = weir_loader_next(loader, &batch, &err)) > 0) {
        if (weir_loader_next(host, &want, &err) != 1)
            fixture_die("the host's run is shorter");
        if (batch->device < 0 || !batch->ready || want->device != -1 || want->ready)
            fixture_die("a batch is on another device than it should be");
        struct weir_batch got = feed_fetch(&reader, loader, batch);
        expect_same(&got, want);
        if (n++ % 2)
            weir_loader_release(loader, batch);
        else
            weir_loader_release_after(loader, batch, reader.stream);
        weir_loader_release_after(host, want, NULL); /* on no GPU: a release */
    }
    fine(rc, &err);
    if (weir_loader_next(host, &want, &err) != 0)
        fixture_die("the host's run is longer");
    feed_reader_close(&reader);
    weir_loader_close(&loader);
    weir_loader_close(&host);
    return n;
}

void feed_consume_late(const struct weir_loader_config *config, uint64_t late_ns)
{
    enum { N = 13 };
    struct weir_loader *loader = fixture_loader(config), *host = open_host(config);
    struct feed_reader reader = feed_reader_open(loader);
    struct weir_device *device = reader.device;
    struct weir_batch *batch, *want;
    struct weir_err err = WEIR_ERR_NONE;
    uint8_t *images = NULL;
    size_t bytes = 0;
    for (int i = 0; i < N; i++) {
        fine(weir_loader_next(loader, &batch, &err), &err);
        if (!images) {
            bytes = (batch->tensors[0].sample_bytes * (size_t)batch->plan.n + 4095) / 4096 * 4096;
            images = aligned_alloc(4096, N * bytes);
            fine(device->ops->pin(device->gpu, images, N * bytes, &err), &err);
        }
        fine(weir_loader_wait(loader, batch, reader.stream, &err), &err);
        if (late_ns > 0)
            fine(weir_device_busy(device, late_ns, reader.stream, &err), &err);
        fine(weir_device_copy_out(device, images + (size_t)i * bytes, batch->tensors[0].data,
                                  batch->tensors[0].sample_bytes * (size_t)batch->n, reader.stream, &err),
             &err);
        weir_loader_release_after(loader, batch, reader.stream);
    }
    feed_reader_close(&reader);
    for (int i = 0; i < N; i++) {
        if (weir_loader_next(host, &want, &err) != 1)
            fixture_die("the host's run is shorter");
        if (memcmp(images + (size_t)i * bytes, want->tensors[0].data,
                   want->tensors[0].sample_bytes * (size_t)want->n) != 0)
            fixture_die("batch %d was overwritten, or read too early", i);
        weir_loader_release(host, want);
    }
    device->ops->unpin(device->gpu, images);
    weir_loader_close(&loader);
    weir_loader_close(&host);
    free(images);
}
