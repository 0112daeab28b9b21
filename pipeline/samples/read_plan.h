/* read_plan.h: the extents that tasks will read, in the order of the sampler's plan. Used by the read-ahead thread. */
#ifndef WEIR_PIPELINE_SAMPLES_READ_PLAN_H
#define WEIR_PIPELINE_SAMPLES_READ_PLAN_H

#include "io/io.h"

struct weir_dataset;
struct weir_read_plan;
struct weir_shared;

/* Finds the first extent of a frame. Returns false if the frame has none. */
bool weir_read_plan_frame(const struct weir_dataset *dataset, int episode, int camera, int t,
                          struct weir_extent *extent);

/* The slots must be open. Returns 0 or -ENOMEM. */
int weir_read_plan_open(struct weir_read_plan **out, const struct weir_shared *shared);
void weir_read_plan_close(struct weir_read_plan **plan);
/* Returns the maximum length of an extent. */
size_t weir_read_plan_extent_max(const struct weir_read_plan *plan);
/* Returns the next extent of a struct weir_read_plan, as the `next` of a struct weir_ahead_config. */
int weir_read_plan_next(void *user, uint64_t from, uint64_t *task_number, struct weir_extent *extent);

#endif
