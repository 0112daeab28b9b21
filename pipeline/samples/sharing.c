#include "pipeline/samples/shared.h"
#include "pipeline/samples/slot.h"
#include "weir/dataset.h"

static int block_at(const struct weir_setup *setup, const struct weir_slot_order *at, int camera, int step)
{
    int t = weir_window_clamp((int64_t)at->t + step, at->steps);
    return weir_block_number(setup->dataset, at->episode, camera, t);
}

int weir_sharing_first_block(const struct weir_setup *setup, const struct weir_slot_order *at, int camera)
{
    return block_at(setup, at, camera, setup->windows.first);
}

int weir_sharing_last_block(const struct weir_setup *setup, const struct weir_slot_order *at, int camera)
{
    return block_at(setup, at, camera, setup->windows.last);
}

/* Returns whether the windows of two samples, neighbours in the order of (episode, t), touch the same block. */
static bool are_together(const struct weir_setup *setup, const struct weir_slot_order *before,
                         const struct weir_slot_order *after, int camera)
{
    return before->episode == after->episode &&
           weir_sharing_first_block(setup, after, camera) <= weir_sharing_last_block(setup, before, camera);
}

void weir_sharing_group(const struct weir_setup *setup, const struct weir_slot_order *order, int n, int at, int camera,
                        int *from, int *to)
{
    *from = at;
    *to = at + 1;
    while (*from > 0 && are_together(setup, &order[*from - 1], &order[*from], camera))
        --*from;
    while (*to < n && are_together(setup, &order[*to - 1], &order[*to], camera))
        ++*to;
}
