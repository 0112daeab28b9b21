/* placement.h: a process's part of a machine that it shares with other local ranks, its cores and its GPU; and what
 * decodes on them. */
#ifndef WEIR_PIPELINE_SAMPLES_PLACEMENT_H
#define WEIR_PIPELINE_SAMPLES_PLACEMENT_H

#include "weir/loader.h"

struct weir_placement {
    int cores; /* this process's part of the usable cores */
    int gpu;   /* its index; -1 = none */
    int gpus;  /* number of GPUs if local ranks were assigned to them; else 0 */
};

/* Where JPEGs are decoded, and why. */
struct weir_decoder_choice {
    const char *requested;     /* from the configuration; borrowed */
    const char *decoder;       /* "turbo", "nvjpeg" or "hybrid" */
    double cpu_rate, gpu_rate; /* frames per second; 0 = not measured */
    char why[512];             /* one sentence; for a decoder requested by name, why it has nothing to decode */
};

/* config has been validated. */
void weir_placement_find(struct weir_placement *placement, const struct weir_loader_config *config);

#endif
