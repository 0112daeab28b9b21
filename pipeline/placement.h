/* placement.h: what of a machine a process has that shares it with others of its run (local ranks): its part of the
 * cores, and its GPU. */
#ifndef WEIR_PIPELINE_PLACEMENT_H
#define WEIR_PIPELINE_PLACEMENT_H

#include "weir/loader.h"

struct weir_placement {
    int cores; /* this process's part of those that are usable */
    int gpu;   /* its number; -1 = none */
    int gpus;  /* how many there are, when local ranks were to be told apart; else 0 */
};

/* From a configuration that was checked. */
void weir_placement_find(struct weir_placement *placement, const struct weir_loader_config *config);

#endif
