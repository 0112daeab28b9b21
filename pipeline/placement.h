/* placement.h: what of a machine a process has that shares it with others of its run (local ranks). */
#ifndef WEIR_PIPELINE_PLACEMENT_H
#define WEIR_PIPELINE_PLACEMENT_H

#include "pipeline/work/worker.h"

/* Fills shared->cores, gpu and gpus from its config. */
void weir_place(struct weir_shared *shared);

#endif
