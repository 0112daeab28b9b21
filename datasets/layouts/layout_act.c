/* ACT / ALOHA recorders (act record_sim_episodes.py, aloha record_episodes.py): /observations/images/{camera} uint8 (T,
 * H, W, 3), /observations/qpos and /action (T, D) float. Also covers files with the same keys but one encoded image per
 * row, as RDT-1B reads them. */
#include "datasets/dataset_ops.h"

#define IMAGES "/observations/images"

static bool detect(struct weir_store *store)
{
    return weir_store_has(store, IMAGES);
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    (void)store;
    int rc = weir_builder_qpos(builder, "/observations/qpos", err);
    if (rc == 0)
        rc = weir_builder_actions(builder, "/action", err);
    return rc < 0 ? rc : weir_builder_group(builder, IMAGES, false, err);
}

const struct weir_layout_ops weir_layout_act = {
    .name = "act",
    .summary = "ACT / ALOHA: raw frames in /observations/images",
    .detect = detect,
    .index = index_episode,
};
