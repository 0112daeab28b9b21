#include "pipeline/gpu/gpu_clocks.h"
#include "base/resources.h"
#include "base/threads.h"
#include "prof/gpu/clock_sources.h"
#include "prof/gpu/gpu_trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LAUNCHES = 256, SAMPLES = 1024 };

struct launch {
    uint64_t before_ns, after_ns;
    uint32_t number;
};

struct weir_gpu_clocks {
    struct weir_device *device;
    const struct weir_kernel_clock_kernel *kernel;
    void *stream;
    struct weir_clock_source source;
    size_t table_bytes, bytes; /* size of one table; size of the memory for all tables */
    /* Used by the launching thread: */
    bool ready, failed;
    void *memory; /* tables in GPU memory */
    bool pinned;
    int n; /* number of launches in this recording */
    uint32_t number;
    /* Shared with the collecting thread: */
    pthread_mutex_t lock;
    uint32_t recording;
    int fetched;   /* number of launches whose tables have been copied */
    void *copied;  /* event after the last copy */
    uint8_t *host; /* tables in pinned host memory */
    int32_t tid;
    uint64_t step_ns, skipped;
    struct launch launches[LAUNCHES];
};

/* ---- collecting ---- */

static void collect(void *user, uint32_t recording, struct weir_clock_launches *to)
{
    struct weir_gpu_clocks *c = user;
    pthread_mutex_lock(&c->lock);
    bool mine = c->recording == recording && c->fetched > 0;
    if (mine && c->device->ops->wait(c->device->gpu, c->copied, NULL) < 0)
        mine = false;
    for (int i = 0; mine && i < c->fetched; i++) {
        const struct weir_clock_launch launch = {
            .kernel = c->kernel,
            .table = c->host + (size_t)i * c->table_bytes,
            .bytes = c->table_bytes,
            .launch = c->launches[i].number,
            .step_ns = c->step_ns,
            .tid = c->tid,
            .before_ns = c->launches[i].before_ns,
            .after_ns = c->launches[i].after_ns,
            .skipped = c->skipped,
        };
        weir_clock_launches_add(to, &launch);
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- opening ---- */

int weir_gpu_clocks_open(struct weir_gpu_clocks **out, struct weir_device *device,
                         const struct weir_kernel_clock_kernel *kernel, void *stream, struct weir_err *err)
{
    struct weir_gpu_clocks *c = calloc(1, sizeof *c);
    *out = c;
    if (!c)
        return weir_err_set(err, -ENOMEM, "out of memory");
    c->device = device;
    c->kernel = kernel;
    c->stream = stream;
    c->table_bytes = weir_kernel_clock_bytes(kernel, 1);
    c->bytes = LAUNCHES * c->table_bytes;
    if (c->bytes < SAMPLES * sizeof(uint64_t))
        c->bytes = SAMPLES * sizeof(uint64_t);
    pthread_mutex_init(&c->lock, NULL);
    c->source = (struct weir_clock_source){.collect = collect, .user = c};
    weir_clock_source_add(&c->source);
    return 0;
}

void weir_gpu_clocks_close(struct weir_gpu_clocks **clocks)
{
    struct weir_gpu_clocks *c = *clocks;
    *clocks = NULL;
    if (!c)
        return;
    const struct weir_gpu_ops *ops = c->device->ops;
    weir_clock_source_remove(&c->source);
    if (c->copied)
        ops->event_free(c->device->gpu, c->copied);
    if (c->memory)
        ops->free(c->device->gpu, c->memory);
    if (c->pinned)
        ops->unpin(c->device->gpu, c->host);
    if (c->host)
        weir_memory_unmap(c->host, c->bytes);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- first recorded launch ---- */

static bool take_memory(struct weir_gpu_clocks *c)
{
    const struct weir_gpu_ops *ops = c->device->ops;
    struct weir_gpu *gpu = c->device->gpu;
    void *host = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    c->host = host == MAP_FAILED ? NULL : host;
    c->pinned = c->host && ops->pin(gpu, c->host, c->bytes, NULL) == 0;
    return c->pinned && ops->alloc(gpu, c->bytes, &c->memory, NULL) == 0 &&
           ops->event_new(gpu, false, &c->copied, NULL) == 0;
}

/* Measures the resolution of the GPU's ns clock. Blocks until the measurement is done. */
static bool find_step(struct weir_gpu_clocks *c)
{
    const struct weir_gpu_ops *ops = c->device->ops;
    struct weir_gpu *gpu = c->device->gpu;
    if (ops->clock_samples(gpu, c->memory, SAMPLES, c->stream, NULL) < 0 ||
        ops->copy_out(gpu, c->host, c->memory, SAMPLES * sizeof(uint64_t), c->stream, NULL) < 0 ||
        ops->record(gpu, c->copied, c->stream, NULL) < 0 || ops->wait(gpu, c->copied, NULL) < 0)
        return false;
    c->step_ns = weir_kernel_clock_step((const uint64_t *)(const void *)c->host, SAMPLES);
    return true;
}

/* If there is no memory for tables, the kernel runs without clocks. Other errors need no report here, because the
 * launch itself reports them. */
static bool make_ready(struct weir_gpu_clocks *c)
{
    if (!c->ready && !c->failed) {
        c->ready = take_memory(c) && find_step(c);
        c->failed = !c->ready;
    }
    return c->ready;
}

/* ---- launches ---- */

/* The tables of the previous recording are no longer needed. New copies follow the old ones on the stream, so the same
 * memory can be used. */
static void begin_recording(struct weir_gpu_clocks *c, uint32_t recording)
{
    c->recording = recording;
    c->n = c->fetched = 0;
    c->skipped = 0;
    c->tid = weir_thread_id();
}

void weir_gpu_clocks_begin(struct weir_gpu_clocks *c, struct weir_kernel_clock_table *table)
{
    uint32_t recording = c ? weir_clock_recording() : 0;
    *table = (struct weir_kernel_clock_table){0};
    if (recording == 0 || !make_ready(c))
        return;
    pthread_mutex_lock(&c->lock);
    if (c->recording != recording)
        begin_recording(c, recording);
    if (c->n < LAUNCHES) {
        c->number = c->number == UINT32_MAX ? 1 : c->number + 1;
        c->launches[c->n] = (struct launch){.before_ns = weir_gpu_now_ns(), .number = c->number};
        table->memory = (uint8_t *)c->memory + (size_t)c->n * c->table_bytes;
        table->blocks = 1;
        table->launch = c->number;
    } else {
        c->skipped++;
    }
    pthread_mutex_unlock(&c->lock);
}

void weir_gpu_clocks_launched(struct weir_gpu_clocks *c, const struct weir_kernel_clock_table *table, int rc)
{
    if (table->memory && rc >= 0)
        c->launches[c->n++].after_ns = weir_gpu_now_ns();
}

int weir_gpu_clocks_fetch(struct weir_gpu_clocks *c, struct weir_err *err)
{
    if (!c || c->n == c->fetched)
        return 0;
    const struct weir_gpu_ops *ops = c->device->ops;
    size_t at = (size_t)c->fetched * c->table_bytes, bytes = (size_t)(c->n - c->fetched) * c->table_bytes;
    int rc = ops->copy_out(c->device->gpu, c->host + at, (const uint8_t *)c->memory + at, bytes, c->stream, err);
    pthread_mutex_lock(&c->lock); /* the collecting thread may be waiting for the event */
    if (rc == 0)
        rc = ops->record(c->device->gpu, c->copied, c->stream, err);
    if (rc == 0)
        c->fetched = c->n;
    pthread_mutex_unlock(&c->lock);
    return rc;
}
