/* sampler.h: opens the sampler; weir/loader.h documents its order and its public queries. */
#ifndef WEIR_PIPELINE_SAMPLES_SAMPLER_H
#define WEIR_PIPELINE_SAMPLES_SAMPLER_H

#include "weir/loader.h"

struct weir_sampler_config {
    enum weir_sampling sampling;
    uint64_t seed;
    bool shuffle;
    bool drop_last; /* drops a short last training batch; validation keeps its tail */
    int batch_size;
    int max_batches; /* per epoch and split; 0 = all */
    int num_epochs;
    double train_split;      /* fraction of the episodes, rounded down, at least one */
    int rank;                /* position among world_size loaders that divide the stream of one loader: */
    int world_size;          /* batches rank, rank + world_size, ... of each epoch and split. 0 = 1 */
    bool wrap;               /* ranks that lack a batch at the end take one from the start; else the tail is dropped */
    enum weir_splits splits; /* the other split has no batches; its episodes are drawn as usual */
};

/* steps[i]: length of episode i; copied. */
int weir_sampler_open(struct weir_sampler **out, const struct weir_sampler_config *config, const int *steps,
                      int episodes, struct weir_err *err);
void weir_sampler_close(struct weir_sampler **sampler);

/* Number of samples in batch `sequence`. */
int weir_sampler_size(const struct weir_sampler *sampler, uint64_t sequence);

/* Fills plan and samples (batch_size of them) for batch `sequence` < total. */
void weir_sampler_plan(const struct weir_sampler *sampler, uint64_t sequence, struct weir_plan *plan,
                       struct weir_sample *samples);

#endif
