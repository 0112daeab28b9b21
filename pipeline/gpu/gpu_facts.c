#include "pipeline/gpu/gpu_facts.h"
#include "base/text.h"

#include "decoders/gpu/gpu_jpeg.h"
#include "pipeline/gpu/gpu_ops.h"
#include "prof/gpu/cuda_module.h"
#include "prof/gpu/gpu_trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { COPY_BYTES = 256 << 20, COPY_BYTES_MIN = 1 << 20, COPIES = 10 };

static void set_part(struct weir_gpu_part *part, int rc, const char *text, const struct weir_err *err)
{
    part->present = rc >= 0;
    snprintf(part->text, sizeof part->text, "%.511s", rc >= 0 ? text : err->text);
}

/* ---- copy rate to a GPU ---- */

struct copying {
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    size_t bytes;
    void *host, *there, *stream, *begin, *end;
    bool pinned;
};

/* Replaces the out-of-memory messages of pin and alloc, because their advice is meant for runs. */
static int prepare_memory(struct copying *c, struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    c->host = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (c->host == MAP_FAILED)
        return weir_err_set(err, -ENOMEM, "cannot allocate %s of host memory", weir_size((double)c->bytes).text);
    int rc = c->ops->pin(c->gpu, c->host, c->bytes, &why);
    if (rc == -ENOMEM)
        return weir_err_set(err, rc, "%s of memory cannot be pinned; raise ulimit -l",
                            weir_size((double)c->bytes).text);
    c->pinned = rc == 0;
    if (rc == 0)
        rc = c->ops->alloc(c->gpu, c->bytes, &c->there, &why);
    if (rc == -ENOMEM)
        return weir_err_set(err, rc, "cannot allocate %s of GPU memory", weir_size((double)c->bytes).text);
    return rc == 0 ? 0 : weir_err_set(err, rc, "%s", why.text);
}

static int prepare_copying(struct copying *c, struct weir_err *err)
{
    int rc = prepare_memory(c, err);
    if (rc == 0)
        rc = c->ops->stream_new(c->gpu, false, &c->stream, err);
    if (rc == 0)
        rc = c->ops->event_new(c->gpu, true, &c->begin, err);
    return rc == 0 ? c->ops->event_new(c->gpu, true, &c->end, err) : rc;
}

static int copy_once(struct copying *c, int64_t *ns, struct weir_err *err)
{
    int rc = c->ops->record(c->gpu, c->begin, c->stream, err);
    if (rc == 0)
        rc = c->ops->copy_in(c->gpu, c->there, c->host, c->bytes, c->stream, err);
    if (rc == 0)
        rc = c->ops->record(c->gpu, c->end, c->stream, err);
    if (rc == 0)
        rc = c->ops->wait(c->gpu, c->end, err);
    return rc == 0 ? c->ops->elapsed(c->gpu, c->begin, c->end, ns, err) : rc;
}

static void close_copying(struct copying *c)
{
    if (!c->gpu)
        return;
    if (c->begin)
        c->ops->event_free(c->gpu, c->begin);
    if (c->end)
        c->ops->event_free(c->gpu, c->end);
    if (c->stream)
        c->ops->stream_free(c->gpu, c->stream);
    if (c->there)
        c->ops->free(c->gpu, c->there);
    if (c->pinned)
        c->ops->unpin(c->gpu, c->host);
    if (c->host != MAP_FAILED)
        munmap(c->host, c->bytes);
    c->ops->close(&c->gpu);
}

/* Limits the copy to a quarter of the free memory, because other programs may need the rest. */
static size_t bytes_to_copy(uint64_t free_bytes)
{
    size_t quarter = free_bytes / 4 < COPY_BYTES ? (size_t)(free_bytes / 4) >> 20 << 20 : COPY_BYTES;
    return quarter > COPY_BYTES_MIN ? quarter : COPY_BYTES_MIN;
}

/* Keeps the best of several copies, because other programs may use the bus. Returns negative if the GPU cannot be used;
 * too little memory is not such an error. */
static int measure_copies(const struct weir_gpu_ops *ops, struct weir_gpu_fact *fact, uint64_t free_bytes,
                          struct weir_err *err)
{
    struct copying copying = {.ops = ops, .host = MAP_FAILED, .bytes = bytes_to_copy(free_bytes)};
    struct weir_err why = WEIR_ERR_NONE;
    int64_t least_ns = INT64_MAX, ns = 0;
    int rc = ops->open(&copying.gpu, fact->number, err);
    if (rc < 0)
        return rc;
    rc = prepare_copying(&copying, &why);
    for (int i = 0; i < COPIES && rc == 0; i++) {
        rc = copy_once(&copying, &ns, &why);
        least_ns = ns > 0 && ns < least_ns ? ns : least_ns;
    }
    close_copying(&copying);
    if (rc == 0 && least_ns < INT64_MAX)
        fact->copy_in_bytes_per_s = (double)copying.bytes / ((double)least_ns / 1e9);
    else if (rc == 0)
        weir_err_set(&why, -ENODATA, "the GPU's clock measured no time for the copies");
    set_part(&fact->copying, why.code, "", &why);
    return rc == -ENOMEM || rc == 0 ? 0 : weir_err_set(err, rc, "%s", why.text);
}

/* ---- one GPU ---- */

static void find_gpu(const struct weir_gpu_ops *ops, int number, struct weir_gpu_facts *facts)
{
    struct weir_gpu_fact *fact = &facts->gpus[number];
    struct weir_gpu_info info;
    struct weir_err err = WEIR_ERR_NONE, jpeg_err = WEIR_ERR_NONE;
    *fact = (struct weir_gpu_fact){.number = number, .jpeg_engines = -1};
    int rc = ops->describe(number, true, &info, &err);
    snprintf(fact->name, sizeof fact->name, "%s", info.name);
    snprintf(fact->pci, sizeof fact->pci, "%s", info.pci);
    fact->major = info.major;
    fact->minor = info.minor;
    fact->memory_bytes = info.total_bytes;
    fact->sms = info.sms;
    fact->copy_engines = info.copy_engines;
    fact->pcie_generation = info.pcie_generation;
    fact->pcie_width = info.pcie_width;
    facts->driver_version = info.driver_version ? info.driver_version : facts->driver_version;
    facts->runtime_version = info.runtime_version ? info.runtime_version : facts->runtime_version;
    if (rc == 0)
        rc = measure_copies(ops, fact, info.free_bytes, &err);
    set_part(&fact->usable, rc, "", &err);
    int engines = 0, jpeg = weir_gpu_jpeg_check(number, WEIR_GPU_JPEG_HARDWARE, &engines, &jpeg_err);
    bool none = jpeg == -ENODEV && engines == 0;
    if (none && weir_gpu_jpeg_check(number, WEIR_GPU_JPEG_SM, NULL, NULL) == 0)
        jpeg = 0; /* no JPEG engines, but the SMs can decode */
    fact->jpeg_engines = jpeg >= 0 ? engines : -1;
    set_part(&fact->jpeg, jpeg, "", &jpeg_err);
}

/* ---- all facts ---- */

static void find_libraries(struct weir_gpu_facts *facts)
{
    struct weir_err err = WEIR_ERR_NONE;
    char text[256] = "";
    int rc = weir_gpu_take_check(text, sizeof text, &err);
    set_part(&facts->cupti, rc, text, &err);
    facts->nvjpeg.present = facts->n > 0;
    for (int i = 0; i < facts->n && facts->nvjpeg.present; i++)
        if (!facts->gpus[i].jpeg.present) {
            facts->nvjpeg.present = false;
            snprintf(facts->nvjpeg.text, sizeof facts->nvjpeg.text, "%s", facts->gpus[i].jpeg.text);
        }
    weir_gpu_jpeg_library(text, sizeof text);
    if (facts->n == 0 || facts->nvjpeg.present)
        snprintf(facts->nvjpeg.text, sizeof facts->nvjpeg.text, "%s%s", text,
                 facts->n == 0                      ? "; no GPU"
                 : facts->gpus[0].jpeg_engines == 0 ? "; no JPEG engines: the SMs decode"
                                                    : "");
}

void weir_gpu_facts_find(struct weir_gpu_facts *facts)
{
    const struct weir_cuda_module *module;
    struct weir_err err = WEIR_ERR_NONE, driver_err = WEIR_ERR_NONE;
    char text[512];
    memset(facts, 0, sizeof *facts);
    int rc = weir_cuda_module_open(&module, &err);
    if (rc == 0)
        snprintf(text, sizeof text, "%s; %s", module->built_with, weir_cuda_module_path());
    set_part(&facts->module, rc, text, &err);
    if (rc < 0)
        return;
    int n = 0, counted = module->gpu->count(&n, &driver_err);
    facts->n = counted < 0 ? 0 : n < WEIR_GPU_FACTS_MAX ? n : WEIR_GPU_FACTS_MAX;
    for (int i = 0; i < facts->n; i++)
        find_gpu(module->gpu, i, facts);
    snprintf(text, sizeof text, "driver for CUDA %d.%d; %d GPU%s", facts->driver_version / 1000,
             facts->driver_version % 1000 / 10, n, n == 1 ? "" : "s");
    set_part(&facts->driver, counted, text, &driver_err);
    find_libraries(facts);
}
