#include "base/resources.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/samples/shared.h"

#include <string.h>

/* "cuda" means the local rank's GPU, or GPU 0 if the launcher makes only one GPU visible to each process. If counting
 * the GPUs fails, opening one fails too, and that error contains the reason. */
static void choose_gpu(struct weir_placement *p, const struct weir_loader_config *config)
{
    weir_device_parse(config->device, &p->gpu, NULL);
    if (p->gpu < 0 || strcmp(config->device, "cuda") != 0 || config->local_size <= 1)
        return;
    if (weir_device_count(&p->gpus, NULL) < 0 || p->gpus < 1)
        p->gpus = 0;
    else
        p->gpu = config->local_rank % p->gpus;
}

void weir_placement_find(struct weir_placement *placement, const struct weir_loader_config *config)
{
    struct weir_cores cores;
    *placement = (struct weir_placement){0};
    weir_cores_read(&cores, "");
    placement->cores = weir_cores_part(&cores, config->local_size, config->local_cores);
    choose_gpu(placement, config);
    bool is_on_cpu = strcmp(config->decoder, "auto") != 0 && !weir_decoder_on_gpu(config->decoder);
    placement->video_gpu = is_on_cpu ? -1 : placement->gpu;
}
