/* The table of layouts. A file gets the first row for which detect returns true. */
#include "datasets/builder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* AstroBench's detect accepts any /observations/rgb_*. RoboMIND files have /observations/rgb_images, so robomind must
 * come first. */
static const struct weir_layout_ops *const layouts[] = {
    &weir_layout_actpp,
    &weir_layout_agilex,
    &weir_layout_act,
    &weir_layout_robomind,
    &weir_layout_astrobench,
    &weir_layout_robotwin,
    &weir_layout_libero,
    &weir_layout_isaaclab,
    &weir_layout_robomimic,
    &weir_layout_custom,
    &weir_layout_custom_demos,
    &weir_layout_rlds,
    &weir_layout_diffusion_policy,
    &weir_layout_weir,
    &weir_layout_lerobot,
};
enum { LAYOUT_COUNT = sizeof layouts / sizeof layouts[0] };

bool weir_dataset_layout_row(int i, const char **name, const char **summary, const char **why_not)
{
    if (i < 0 || i >= LAYOUT_COUNT)
        return false;
    *name = layouts[i]->name;
    *summary = layouts[i]->summary;
    *why_not = NULL;
    return true;
}

const struct weir_layout_ops *weir_layout_by_name(const char *name)
{
    for (int i = 0; i < LAYOUT_COUNT; i++)
        if (strcmp(layouts[i]->name, name) == 0)
            return layouts[i];
    return NULL;
}

/* Sorts by value, so that 10 follows 9. */
static int by_number(const void *a, const void *b)
{
    return strverscmp(a, b);
}

int weir_layout_episodes(struct weir_store *store, const char *prefix, char (**numbers)[64], int *n,
                         struct weir_err *err)
{
    const char *start = strrchr(prefix, '/') + 1;
    size_t length = strlen(start);
    char parent[64];
    int all = 0;
    snprintf(parent, sizeof parent, "%.*s", start - prefix > 1 ? (int)(start - prefix - 1) : 1, prefix);
    *numbers = NULL;
    *n = 0;
    if (!weir_store_is_group(store, parent))
        return 0;
    int rc = weir_store_list(store, parent, numbers, &all, err);
    for (int i = 0; rc == 0 && i < all; i++) {
        const char *name = (*numbers)[i], *digits = name + length;
        if (strncmp(name, start, length) == 0 && *digits && digits[strspn(digits, "0123456789")] == '\0')
            memmove((*numbers)[(*n)++], digits, strlen(digits) + 1);
    }
    if (*n > 1)
        qsort(*numbers, (size_t)*n, sizeof **numbers, by_number);
    return rc;
}

/* Writes what the names of all groups at the file's root have in common before a number, with the slash: "/traj_" of
 * /traj_0 and /traj_1. Returns false if the root has another group or an array, or if there is no number. */
static bool numbered_groups(struct weir_store *store, char prefix[WEIR_PREFIX_MAX])
{
    char(*names)[64];
    int n;
    if (weir_store_list(store, "/", &names, &n, NULL) < 0)
        return false;
    bool found = n > 0;
    for (int i = 0; i < n && found; i++) {
        size_t stem = strlen(names[i]);
        while (stem > 0 && names[i][stem - 1] >= '0' && names[i][stem - 1] <= '9')
            stem--;
        if (i == 0)
            snprintf(prefix, WEIR_PREFIX_MAX, "/%.*s", (int)stem, names[i]);
        found = stem > 0 && names[i][stem] && strlen(prefix) == stem + 1 && strncmp(prefix + 1, names[i], stem) == 0 &&
                weir_store_is_group(store, names[i]);
    }
    free(names);
    return found;
}

void weir_layout_prefix(const struct weir_layout_ops *layout, struct weir_store *store, char prefix[WEIR_PREFIX_MAX])
{
    bool at_root = layout == &weir_layout_custom_demos && !weir_store_is_group(store, "/data");
    if (!at_root || !numbered_groups(store, prefix))
        snprintf(prefix, WEIR_PREFIX_MAX, "%s", layout->episodes ? layout->episodes : "");
}

/* The groups of recorders that write episodes as they end: a file without episodes is sound. */
static bool lacks_demos(struct weir_store *store)
{
    return weir_store_is_group(store, "/data") &&
           (weir_store_has_attribute(store, "/data", "env_args") || weir_store_has_attribute(store, "/data", "total"));
}

static void no_layout(struct weir_store *store, const struct weir_dataset_config *config, struct weir_err *err)
{
    char advice[WEIR_ADVICE_MAX], prefix[WEIR_PREFIX_MAX], episode[WEIR_PREFIX_MAX + 64] = "", (*numbers)[64];
    int n;
    if (lacks_demos(store)) {
        weir_err_set(err, -EBADMSG,
                     "has no episodes: /data has no group demo_0, as if recording had ended before the first was kept; "
                     "move the file away, or leave it out with --on-error skip");
        return;
    }
    if (numbered_groups(store, prefix) && weir_layout_episodes(store, prefix, &numbers, &n, NULL) == 0) {
        snprintf(episode, sizeof episode, "%s%s", prefix + 1, n > 0 ? numbers[0] : "");
        free(numbers);
    }
    weir_keys_advise(store, config, WEIR_NEEDS_STATE | WEIR_NEEDS_ACTIONS | WEIR_NEEDS_IMAGES, episode, advice,
                     sizeof advice);
    weir_err_set(err, -EBADMSG, "no known layout: %s%s has %s", *episode ? "group /" : "the file", episode, advice);
}

/* Returns true if the first key exists at the file's root, without the prefix /data/demo_0. */
static bool keys_are_at_root(struct weir_store *store, const char *keys)
{
    char key[WEIR_STORE_PATH_MAX];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(keys, ","), keys);
    return weir_store_has(store, *key ? key : "/");
}

static const struct weir_layout_ops *custom_layout(struct weir_store *store, const struct weir_dataset_config *config)
{
    char prefix[WEIR_PREFIX_MAX];
    bool demos = !keys_are_at_root(store, config->qpos_keys) &&
                 (weir_store_is_group(store, "/data") || numbered_groups(store, prefix));
    return demos ? &weir_layout_custom_demos : &weir_layout_custom;
}

const struct weir_layout_ops *weir_layout_choose(struct weir_store *store, const struct weir_dataset_config *config,
                                                 struct weir_err *err)
{
    if (config->qpos_keys && config->action_keys && config->image_keys)
        return custom_layout(store, config);
    for (int i = 0; i < LAYOUT_COUNT; i++)
        if (layouts[i]->detect && layouts[i]->detect(store))
            return layouts[i];
    if (config->qpos_keys && config->action_keys)
        return custom_layout(store, config);
    no_layout(store, config, err);
    return NULL;
}
