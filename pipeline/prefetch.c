#include "base/resources.h"
#include "pipeline/gpu/gpu_device.h"
#include "pipeline/loader_priv.h"
#include "pipeline/offload/gpu_decode.h"
#include "pipeline/samples/defaults.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the part of GPU memory for prefetched batches; the model needs the rest. Returns UINT64_MAX if the amount is
 * unknown; a later step opens the GPU and reports why. */
static uint64_t part_of_gpu(const struct weir_shared *s)
{
    struct weir_device *device = NULL;
    uint64_t unused = 0, all = 0;
    int rc = weir_device_open(&device, s->setup.placement.gpu, NULL);
    if (rc == 0)
        rc = device->ops->memory(device->gpu, &unused, &all, NULL);
    weir_device_close(&device);
    return rc == 0 ? unused / WEIR_PREFETCH_GPU_PART : UINT64_MAX;
}

/* Returns the part of free host memory for this process's batches; all local ranks get equal parts. UINT64_MAX =
 * unknown. */
static uint64_t part_of_memory(const struct weir_shared *s)
{
    uint64_t memory = weir_memory_available_bytes(),
             ranks = (uint64_t)(s->setup.config.local_size > 1 ? s->setup.config.local_size : 1);
    return memory ? memory / WEIR_PREFETCH_MEMORY_PART / ranks : UINT64_MAX;
}

static int64_t prefetch_for_gpu(const struct weir_shared *s, int64_t frames)
{
    bool hybrid = weir_decoder_where(s->setup.config.decoder) == WEIR_DECODE_ON_BOTH;
    uint64_t most = weir_gpu_decode_wants_sms(s) ? WEIR_PREFETCH_SMS_BYTES
                    : hybrid                     ? WEIR_PREFETCH_HYBRID_BYTES
                                                 : WEIR_PREFETCH_NVJPEG_BYTES;
    most = least(least(most, part_of_gpu(s)), part_of_memory(s));
    int64_t fitting = (int64_t)(most / s->setup.layout.slot_bytes);
    int64_t wanted =
        ((hybrid ? WEIR_PREFETCH_DECODE_BATCHES_HYBRID : WEIR_PREFETCH_DECODE_BATCHES) * WEIR_DECODE_BATCH_MAX +
         frames - 1) /
        frames;
    return wanted < fitting ? wanted : fitting;
}

int weir_prefetch_auto(const struct weir_shared *s)
{
    int images = weir_windows_images(&s->setup.windows);
    int64_t frames = (int64_t)s->setup.config.batch_size * (images > 0 ? images : 1);
    int64_t wanted = WEIR_PREFETCH_FRAMES_PER_WORKER * s->setup.config.num_workers;
    int64_t batches = (wanted + frames - 1) / frames;
    if (weir_decoder_on_gpu(s->setup.config.decoder)) {
        int64_t groups = prefetch_for_gpu(s, frames);
        batches = batches > groups ? batches : groups;
    }
    if (s->setup.block_rows > 1) {
        int64_t fitting = (int64_t)(least(WEIR_PREFETCH_CHUNKS_BYTES, part_of_memory(s)) / s->setup.layout.slot_bytes);
        fitting = fitting < WEIR_PREFETCH_CHUNKS ? fitting : WEIR_PREFETCH_CHUNKS;
        batches = batches > fitting ? batches : fitting;
    }
    return batches > WEIR_PREFETCH_MIN ? (int)batches : WEIR_PREFETCH_MIN;
}
