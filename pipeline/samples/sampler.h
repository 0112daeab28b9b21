/* sampler.h: opens the sampler. weir/loader.h documents the sample order and the public queries. */
#ifndef WEIR_PIPELINE_SAMPLES_SAMPLER_H
#define WEIR_PIPELINE_SAMPLES_SAMPLER_H

#include "weir/loader.h"

struct weir_sampler_config {
    enum weir_sampling sampling;
    uint64_t seed;
    bool shuffle;
    bool drop_last; /* drops a short last training batch; a short validation batch is kept */
    int batch_size;
    int max_batches; /* limit per epoch and split; 0 = no limit */
    int num_epochs;
    double train_split; /* fraction of the episodes for training; rounded down to whole episodes, at least one */
    int rank;           /* position among the world_size loaders that divide the stream of a single loader */
    int world_size;     /* of each epoch and split, this loader gets batches rank, rank + world_size, ...; 0 = 1 */
    bool wrap;          /* ranks that have no batch at the end get one from the start; otherwise the tail is dropped */
    enum weir_splits splits; /* the other split has no batches, but its episodes are drawn as usual */
};

/* Returns the length of an episode. */
int weir_sampler_steps(const struct weir_sampler *sampler, int episode);

/* steps[i]: length of episode i. The array is copied. */
int weir_sampler_open(struct weir_sampler **out, const struct weir_sampler_config *config, const int *steps,
                      int episodes, struct weir_err *err);
void weir_sampler_close(struct weir_sampler **sampler);

/* Returns the number of samples in batch `sequence`. */
int weir_sampler_size(const struct weir_sampler *sampler, uint64_t sequence);

/* Fills in plan and samples, which must have room for batch_size. sequence must be less than the total. */
void weir_sampler_plan(const struct weir_sampler *sampler, uint64_t sequence, struct weir_plan *plan,
                       struct weir_sample *samples);

#endif
