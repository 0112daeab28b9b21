#include "extras/train/cli/train_losses.h"

#include <errno.h>
#include <math.h>

void weir_train_losses_send(struct train_losses *losses, struct weir_policy *policy, const struct weir_batch *batch,
                            uint64_t position)
{
    losses->late[losses->sent++ % WEIR_POLICY_LOSSES] =
        (struct train_late_loss){batch->plan.split, batch->n, batch->plan.index, batch->plan.epoch, position};
    weir_policy_send_loss(policy);
}

static int check_loss(struct train_losses *losses, const struct train_late_loss *of, double loss, double learning_rate,
                      struct weir_err *err)
{
    losses->diverged = !isfinite(loss);
    if (!losses->diverged)
        return 0;
    return weir_err_set(err, -ERANGE,
                        "the loss of %s batch %d of epoch %d is %s: the training has diverged; try a smaller --lr (it "
                        "is %g)",
                        of->split == WEIR_SPLIT_TRAIN ? "training" : "validation", of->index + 1, of->epoch + 1,
                        isnan(loss) ? "not a number" : "infinite", learning_rate);
}

static void add(struct train_progress *to, const struct train_late_loss *of, double loss)
{
    struct train_sum *sum = of->split == WEIR_SPLIT_TRAIN ? &to->train : &to->val;
    sum->loss += loss * of->n;
    sum->samples += (uint64_t)of->n;
}

int weir_train_losses_take(struct train_losses *losses, struct weir_policy *policy, bool wait,
                           struct train_progress *now, struct train_progress *safe, double learning_rate,
                           struct weir_err *err)
{
    double loss;
    int rc = 0;
    while (losses->received != losses->sent && (rc = weir_policy_receive_loss(policy, wait, &loss, err)) > 0) {
        const struct train_late_loss *of = &losses->late[losses->received++ % WEIR_POLICY_LOSSES];
        rc = check_loss(losses, of, loss, learning_rate, err);
        if (rc < 0)
            return rc;
        add(now, of, loss);
        if (of->position <= safe->data.next)
            add(safe, of, loss);
    }
    return rc < 0 ? rc : 0;
}
