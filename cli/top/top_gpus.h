/* top_gpus.h: reads the GPUs once per second on a thread of its own, because NVML takes 50 ms per GPU. */
#ifndef WEIR_CLI_TOP_TOP_GPUS_H
#define WEIR_CLI_TOP_TOP_GPUS_H

#include "prof/gpu/nvml.h"

#include <stdbool.h>
#include <sys/types.h>

struct top_gpus;

/* Returns NULL if there are no GPUs, or no NVML. */
struct top_gpus *top_gpus_open(void);
void top_gpus_close(struct top_gpus *gpus);

/* Returns the GPU that the process uses, which is read from now on; -1: none, or it cannot be determined. NVML lists
 * the host's PIDs, so in a container the GPU follows from CUDA_VISIBLE_DEVICES and the local rank (-1: none). */
int top_gpus_of(struct top_gpus *gpus, pid_t pid, int local_rank);

/* Copies the latest figures of a GPU. Returns false before the first ones. */
bool top_gpus_read(struct top_gpus *gpus, int gpu, struct weir_nvml_gpu *figures);

#endif
