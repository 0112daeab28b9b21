/* cobot_magic / AgileX (collect_data.py): like ACT, but with /observations/images_depth/{camera} uint16 (T, H, W),
 * /base_action, and `compress` set to false. As in cobot_magic's own loader, the action is the state of the next step;
 * /action contains the command of the leader arm. */
#include "datasets/dataset_ops.h"

#define IMAGES "/observations/images"
#define DEPTH  "/observations/images_depth"

static bool detect(struct weir_store *store)
{
    return weir_store_has(store, DEPTH) ||
           (weir_store_has(store, IMAGES) && weir_store_is_false(store, "/", "compress"));
}

const struct weir_layout_ops weir_layout_agilex = {
    .name = "agilex",
    .summary = "cobot_magic / AgileX: like act, with the next state as action, and depth in /observations/images_depth",
    .detect = detect,
    .state = "/observations/qpos",
    .actions = "/observations/qpos",
    .next_actions = true,
    .images = IMAGES,
    .depth = DEPTH,
};
