#include "pipeline/placement.h"
#include "base/cores.h"
#include "pipeline/gpu/gpu_device.h"

#include <string.h>

/* "cuda" is the local rank's GPU; where a launcher shows each process only its own, that is number 0. GPUs that cannot
 * be counted cannot be opened either, and opening says why. */
static void choose_gpu(struct weir_shared *s)
{
    weir_device_parse(s->config.device, &s->gpu, NULL);
    if (s->gpu < 0 || strcmp(s->config.device, "cuda") != 0 || s->config.local_size <= 1)
        return;
    if (weir_device_count(&s->gpus, NULL) < 0 || s->gpus < 1)
        s->gpus = 0;
    else
        s->gpu = s->config.local_rank % s->gpus;
}

void weir_place(struct weir_shared *s)
{
    struct weir_cores cores;
    weir_cores_read(&cores, "");
    s->cores = weir_cores_part(&cores, s->config.local_size, s->config.local_cores);
    choose_gpu(s);
}
