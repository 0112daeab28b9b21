/* sampler.h: the sampler itself; weir/loader.h says how it draws, and has what programs may ask it. */
#ifndef WEIR_PIPELINE_SAMPLER_H
#define WEIR_PIPELINE_SAMPLER_H

#include "weir/loader.h"

struct weir_sampler_config {
    enum weir_sampling sampling;
    uint64_t seed;
    bool shuffle;
    bool drop_last; /* a short last training batch is left out; validation keeps its tail */
    int batch_size;
    int max_batches; /* per epoch and split; 0 = all */
    int num_epochs;
    double train_split; /* fraction of the episodes, rounded down, at least one */
    int rank;       /* of world_size loaders over one dataset: this one's batches are those of one loader's stream */
    int world_size; /* that are rank, rank + world_size, ... of each epoch and split. 0 = 1 */
    bool wrap;      /* the ranks that would be a batch short take one from the beginning; else the tail is cut */
    enum weir_splits splits; /* the other split has no batches, and its episodes are drawn as ever */
};

/* steps[i]: length of episode i; copied. */
int weir_sampler_open(struct weir_sampler **out, const struct weir_sampler_config *config, const int *steps,
                      int episodes, struct weir_err *err);
void weir_sampler_close(struct weir_sampler **sampler);

/* Samples in batch number sequence. */
int weir_sampler_size(const struct weir_sampler *sampler, uint64_t sequence);

/* Fills plan and samples (batch_size of them) for batch number sequence < total. */
void weir_sampler_plan(const struct weir_sampler *sampler, uint64_t sequence, struct weir_plan *plan,
                       struct weir_sample *samples);

#endif
