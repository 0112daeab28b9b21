/* rlds_store.h: an episode of RLDS, a tf.train.Example, as a store. */
#ifndef WEIR_DATASETS_TFRECORD_RLDS_STORE_H
#define WEIR_DATASETS_TFRECORD_RLDS_STORE_H

#include "datasets/store.h"
#include "datasets/tfrecord/example.h"
#include "datasets/tfrecord/features.h"

struct weir_rlds_store {
    struct weir_store store;
    struct weir_example example;
    const struct weir_byte_source *source;
    const struct weir_stated_features *stated;
    uint64_t steps; /* weir_rlds_steps of the example */
};

extern const struct weir_store_ops weir_store_rlds;

/* Returns the number of steps, by is_first or, without it, by the images. 0: neither exists. */
uint64_t weir_rlds_steps(const struct weir_example *example);

#endif
