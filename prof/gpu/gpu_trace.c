#include "prof/gpu/gpu_trace.h"

#include "prof/gpu/cuda_module.h"
#include "prof/gpu/gpu_join_priv.h"
#include "weir/base.h"

#include <errno.h>
#include <stdlib.h>

uint64_t weir_gpu_now_ns(void)
{
    return weir_clock_to_ns(weir_clock_ticks());
}

/* The running recording. Profilers run one after another, so there is at most one. */
static struct weir_gpu_take *going_on;

static int open_ops(const struct weir_gpu_trace_ops **ops, struct weir_err *err)
{
    const struct weir_cuda_module *module;
    int rc = weir_cuda_module_open(&module, err);
    if (rc < 0)
        return rc;
    *ops = module->trace;
    if (module->trace)
        return 0;
    return weir_err_set(err, -ENOTSUP, "%s was built without CUPTI; build it again with the CUPTI headers of CUDA 13.0",
                        weir_cuda_module_path());
}

int weir_gpu_take_check(char *library, size_t size, struct weir_err *err)
{
    const struct weir_gpu_trace_ops *ops;
    int rc = open_ops(&ops, err);
    if (rc < 0)
        return rc;
    ops->library(library, size);
    return ops->check(err);
}

static int describe(struct weir_gpu_take *take, struct weir_err *err)
{
    int n = take->ops->properties(take->devices, WEIR_GPU_DEVICES, err);
    if (n < 0)
        return n;
    take->n_devices = n < WEIR_GPU_DEVICES ? n : WEIR_GPU_DEVICES;
    return 0;
}

int weir_gpu_take_start(uint64_t bytes_max, bool memory, struct weir_err *err)
{
    struct weir_gpu_take *take = calloc(1, sizeof *take);
    if (!take)
        return weir_err_set(err, -ENOMEM, "out of memory");
    const struct weir_gpu_trace_config config = {.now_ns = weir_gpu_now_ns, .bytes_max = bytes_max, .memory = memory};
    int rc = open_ops(&take->ops, err);
    if (rc == 0)
        rc = describe(take, err); /* before recording starts, so that these calls are not recorded */
    if (rc == 0)
        rc = take->ops->start(&config, err);
    if (rc < 0) {
        free(take);
        return rc;
    }
    going_on = take;
    weir_clock_recording_begin(&take->clocks);
    return 0;
}

int weir_gpu_take_stop(struct weir_gpu_take **out, weir_gpu_own_memory_fn *own_memory, struct weir_err *err)
{
    struct weir_gpu_take *take = going_on;
    *out = NULL;
    if (!take)
        return 0;
    going_on = NULL;
    weir_clock_recording_pause();
    int rc = take->ops->stop(&take->records, err);
    weir_clock_recording_end();
    if (!take->records) {
        weir_clock_launches_clear(&take->clocks);
        free(take);
        return rc;
    }
    take->ops->versions(&take->driver_version, &take->runtime_version, &take->cupti_version);
    for (int device = 0; device < WEIR_GPU_DEVICES; device++)
        take->own_memory[device] = own_memory(device);
    *out = take;
    return rc;
}

void weir_gpu_take_free(struct weir_gpu_take **take)
{
    if (!*take)
        return;
    (*take)->ops->free((*take)->records);
    weir_clock_launches_clear(&(*take)->clocks);
    free(*take);
    *take = NULL;
}

uint64_t weir_gpu_take_dropped(const struct weir_gpu_take *take)
{
    return take ? take->ops->dropped(take->records) + take->clocks.lost : 0;
}
