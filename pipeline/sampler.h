/* sampler.h: which samples make up batch number n. A pure function of the configuration, the seed and the number: no
 * state, so that any thread may ask for any batch, and the answer never depends on workers or timing.
 *
 * Batches are numbered over the whole run: the training batches of epoch 0, its validation batches, epoch 1, and so on.
 * Shuffling is a Feistel network over the sample numbers with cycle walking (a permutation that needs no memory; Black
 * and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002), keyed by seed and epoch. Validation is drawn once, with
 * the key of epoch 0, so that its figures can be compared from epoch to epoch.
 *
 * Ranks of a distributed run have the same number of batches, and none in common: the ranks' batches, taken in turn,
 * are the stream of a single loader, up to the tail that does not go round. */
#ifndef WEIR_PIPELINE_SAMPLER_H
#define WEIR_PIPELINE_SAMPLER_H

#include "base/err.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_sampling {
    WEIR_SAMPLING_TIMESTEP, /* every (episode, t) once an epoch */
    WEIR_SAMPLING_EPISODE,  /* one random start per episode and epoch, as ACT does */
};
enum weir_split { WEIR_SPLIT_TRAIN, WEIR_SPLIT_VAL };
enum weir_splits { WEIR_SPLITS_BOTH, WEIR_SPLITS_TRAIN, WEIR_SPLITS_VAL };

struct weir_sample {
    int episode, t;
};

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

struct weir_sampler;

/* steps[i]: length of episode i; copied. */
int weir_sampler_open(struct weir_sampler **out, const struct weir_sampler_config *config, const int *steps,
                      int episodes, struct weir_err *err);
void weir_sampler_close(struct weir_sampler **sampler);

/* Episodes of a split, in the order of the split's drawing; lent. */
const int *weir_sampler_episodes(const struct weir_sampler *sampler, enum weir_split split, int *n);
/* Batches of a split in one epoch, and samples in them; of this rank. */
int weir_sampler_batches(const struct weir_sampler *sampler, enum weir_split split);
uint64_t weir_sampler_samples(const struct weir_sampler *sampler, enum weir_split split);
/* Batches of the whole run. */
uint64_t weir_sampler_total(const struct weir_sampler *sampler);

struct weir_plan {
    uint64_t sequence;
    int epoch; /* from 0 */
    enum weir_split split;
    int index; /* of the batch within its epoch and split, and this rank */
    int n;     /* samples */
};

/* Samples in batch number sequence. */
int weir_sampler_size(const struct weir_sampler *sampler, uint64_t sequence);

/* Fills plan and samples (batch_size of them) for batch number sequence < total. */
void weir_sampler_plan(const struct weir_sampler *sampler, uint64_t sequence, struct weir_plan *plan,
                       struct weir_sample *samples);

#ifdef __cplusplus
}
#endif

#endif
