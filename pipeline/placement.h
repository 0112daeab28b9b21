/* placement.h: a process's part of a machine that it shares with other local ranks: its cores and its GPU. */
#ifndef WEIR_PIPELINE_PLACEMENT_H
#define WEIR_PIPELINE_PLACEMENT_H

#include "weir/loader.h"

struct weir_placement {
    int cores; /* this process's part of the usable cores */
    int gpu;   /* its index; -1 = none */
    int gpus;  /* number of GPUs if local ranks were assigned to them; else 0 */
};

/* config has been validated. */
void weir_placement_find(struct weir_placement *placement, const struct weir_loader_config *config);

#endif
