#include "pipeline/prefetch.h"
#include "base/memory.h"
#include "pipeline/gpu/gpu_decode.h"
#include "pipeline/gpu/gpu_device.h"
#include "pipeline/shared.h"

enum { FRAMES_IN_FLIGHT_PER_WORKER = 4, PREFETCH_MIN = 2 };
/* Where chunks hold several frames: batches in flight share them, so more of them unpack less. */
enum { PREFETCH_SHARED = 16, PREFETCH_SHARED_BYTES = 256 << 20 };
/* Where a GPU decodes: decode batches that are gathered, decoded, and not yet asked for; with hybrid others decode
 * meanwhile, and the SMs take five times as long. Slots are pinned, and are there again in the GPU's memory. */
enum { GROUPS_IN_FLIGHT = 4, GROUPS_IN_FLIGHT_HYBRID = 10, PREFETCH_MEMORY_SHARE = 16, PREFETCH_GPU_SHARE = 8 };
static const uint64_t PREFETCH_DECODE_BYTES = UINT64_C(1) << 30, PREFETCH_HYBRID_BYTES = UINT64_C(2) << 30,
                      PREFETCH_SM_BYTES = UINT64_C(4) << 30;

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A model wants the rest. UINT64_MAX: not known, and opening it will say why. */
static uint64_t part_of_gpu(const struct weir_shared *s)
{
    struct weir_device *device = NULL;
    uint64_t unused = 0, all = 0;
    int rc = weir_device_open(&device, s->placement.gpu, NULL);
    if (rc == 0)
        rc = device->ops->memory(device->gpu, &unused, &all, NULL);
    weir_device_close(&device);
    return rc == 0 ? unused / PREFETCH_GPU_SHARE : UINT64_MAX;
}

/* Of the host's that is free, and of what the local ranks take of it alike. UINT64_MAX: not known. */
static uint64_t part_of_memory(const struct weir_shared *s)
{
    uint64_t memory = weir_memory_available_bytes(),
             ranks = (uint64_t)(s->config.local_size > 1 ? s->config.local_size : 1);
    return memory ? memory / PREFETCH_MEMORY_SHARE / ranks : UINT64_MAX;
}

static int64_t prefetch_for_gpu(const struct weir_shared *s, int64_t frames)
{
    bool hybrid = weir_decoder_where(s->config.decoder) == WEIR_DECODE_ON_BOTH;
    uint64_t most = weir_gpu_decode_wants_sms(s) ? PREFETCH_SM_BYTES
                    : hybrid                     ? PREFETCH_HYBRID_BYTES
                                                 : PREFETCH_DECODE_BYTES;
    most = least(least(most, part_of_gpu(s)), part_of_memory(s));
    int64_t fitting = (int64_t)(most / s->layout.slot_bytes);
    int64_t wanted =
        ((hybrid ? GROUPS_IN_FLIGHT_HYBRID : GROUPS_IN_FLIGHT) * WEIR_DECODE_BATCH_MAX + frames - 1) / frames;
    return wanted < fitting ? wanted : fitting;
}

int weir_prefetch_auto(const struct weir_shared *s)
{
    int64_t frames = (int64_t)s->config.batch_size * s->layout.n_cameras * s->layout.history;
    int64_t wanted = FRAMES_IN_FLIGHT_PER_WORKER * s->config.num_workers;
    int64_t batches = (wanted + frames - 1) / frames;
    if (weir_decoder_on_gpu(s->config.decoder)) {
        int64_t groups = prefetch_for_gpu(s, frames);
        batches = batches > groups ? batches : groups;
    }
    if (s->block_rows > 1) {
        int64_t fitting = (int64_t)(least(PREFETCH_SHARED_BYTES, part_of_memory(s)) / s->layout.slot_bytes);
        fitting = fitting < PREFETCH_SHARED ? fitting : PREFETCH_SHARED;
        batches = batches > fitting ? batches : fitting;
    }
    return batches > PREFETCH_MIN ? (int)batches : PREFETCH_MIN;
}
