/* placement.h: the part of a machine that a process uses: its cores and its GPU, which it may share with other local
 * ranks, and the decoder that runs on them. */
#ifndef WEIR_PIPELINE_SAMPLES_PLACEMENT_H
#define WEIR_PIPELINE_SAMPLES_PLACEMENT_H

#include "weir/loader.h"

struct weir_placement {
    int cores; /* this process's share of the usable cores */
    int gpu;   /* number of the GPU; -1 = none */
    int gpus;  /* number of GPUs if they were assigned to local ranks; otherwise 0 */
    /* The GPU whose video engines decode; -1 = none, also if a decoder of the CPU was requested by name. */
    int video_gpu;
};

/* The chosen JPEG decoder, and the reason for the choice. */
struct weir_decoder_choice {
    const char *requested;     /* from the configuration; borrowed */
    const char *decoder;       /* "turbo", "nvjpeg" or "hybrid" */
    double cpu_rate, gpu_rate; /* frames per second; 0 = not measured */
    /* One sentence: the reason for the choice. For a decoder requested by name it is empty, unless the dataset has no
     * JPEGs for that decoder. */
    char why[512];
};

/* config must have been validated. */
void weir_placement_find(struct weir_placement *placement, const struct weir_loader_config *config);

#endif
