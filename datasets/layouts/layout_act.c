/* ACT / ALOHA recorders (act record_sim_episodes.py, aloha record_episodes.py): /observations/images/{camera} uint8 (T,
 * H, W, 3), /observations/qpos and /action (T, D) float. Also covers files with the same keys but one encoded image per
 * row, as RDT-1B reads them. */
#include "datasets/dataset_ops.h"

#define IMAGES "/observations/images"

static bool detect(struct weir_store *store)
{
    return weir_store_has(store, IMAGES);
}

const struct weir_layout_ops weir_layout_act = {
    .name = "act",
    .summary = "ACT / ALOHA: raw frames in /observations/images",
    .detect = detect,
    .state = "/observations/qpos",
    .actions = "/action",
    .images = IMAGES,
};
