/* train_losses.h: the losses of batches, which a GPU has later than the batch is queued, and their sums. One thread
 * uses them. */
#ifndef WEIR_EXTRAS_TRAIN_CLI_TRAIN_LOSSES_H
#define WEIR_EXTRAS_TRAIN_CLI_TRAIN_LOSSES_H

#include "extras/train/cli/train_checkpoint.h"
#include "weir/loader.h"

/* Zeroed: nothing is under way. */
struct train_losses {
    struct train_late_loss {
        enum weir_split split;
        int n, index, epoch; /* samples; which batch, from 0 */
        uint64_t position;   /* of the loader, behind the batch */
    } late[WEIR_POLICY_LOSSES];
    unsigned sent, received;
    bool diverged;
};

/* The last forward's loss is under way; batch is what it was of. */
void weir_train_losses_send(struct train_losses *losses, struct weir_policy *policy, const struct weir_batch *batch,
                            uint64_t position);
/* Adds what has come to the sums of now, and to those of safe where it lies before safe's position. wait: for all. 0,
 * -ERANGE (a loss is not finite; err names the batch and learning_rate), or what ended the GPU's work. */
int weir_train_losses_take(struct train_losses *losses, struct weir_policy *policy, bool wait,
                           struct train_progress *now, struct train_progress *safe, double learning_rate,
                           struct weir_err *err);

#endif
