/* Describes a file through the HDF5 library: its episodes, their state, and the storage of their frames. */
#include "base/shortage.h"
#include "datasets/hdf5/h5_errors.h"
#include "datasets/hdf5/hdf5_open.h"
#include "datasets/traits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct description {
    struct weir_file_result *result;
    struct weir_hdf5_described *described;
    struct weir_h5_store *store;
    const struct weir_layout_ops *layout;
    char (*numbers)[64]; /* of the episodes of a file that holds many; otherwise NULL */
};

static int describe_opened(struct weir_h5_store *store, struct weir_episode *episode,
                           const struct weir_dataset_config *config, struct weir_err *err)
{
    struct weir_h5 *h5 = store->h5;
    char color[8];
    int rc = weir_h5_text(h5, "weir_color", color, sizeof color, err);
    if (rc > 0)
        rc = weir_color_parse("attribute weir_color", color, &episode->is_bgr, err);
    weir_h5_enter(h5, episode->root);
    if (rc == 0)
        rc = weir_episode_describe(&store->store, episode, config, err);
    weir_h5_enter(h5, "");
    int refused = weir_h5_refused(err); /* if a file was refused, this is the cause of rc */
    return refused < 0 ? refused : rc;
}

static int describe_episode(void *user, int i, const struct weir_dataset_config *config, struct weir_episode *episode,
                            struct weir_err *err)
{
    struct description *d = user;
    struct weir_h5_store *store = d->store;
    *episode = (struct weir_episode){.layout = d->layout, .bytes = sizeof *episode};
    int rc = asprintf(&episode->root, "%s%s", d->numbers ? d->layout->episodes : "", d->numbers ? d->numbers[i] : "");
    if (rc < 0) {
        episode->root = NULL;
        return weir_no_memory(err);
    }
    rc = describe_opened(store, episode, config, err);
    if (rc == 0)
        d->described->cameras[d->result->file.n_episodes] = store->descriptions;
    else
        free(store->descriptions);
    store->descriptions = NULL;
    store->n_descriptions = 0;
    return rc;
}

static int describe_episodes(struct description *d, int n, const struct weir_dataset_config *config)
{
    struct weir_file_result *r = d->result;
    r->n_wanted = n;
    if (n == 0)
        return weir_err_set(&r->err, -EBADMSG,
                            "layout %s, but no group has the path %s followed by a number; remove the file",
                            d->layout->name, d->layout->episodes);
    d->described->n = n;
    d->described->cameras = calloc((size_t)n, sizeof *d->described->cameras);
    if (!d->described->cameras)
        return weir_no_memory(&r->err);
    return weir_file_describe_episodes(r, n, config, describe_episode, d);
}

/* Recorders write these attributes of the root. Simulated and real episodes are different datasets. */
static int set_traits(struct weir_h5 *h5, char **traits, struct weir_err *err)
{
    static const char *const names[] = {"sim", "fps", "hz", "frequency", "control_freq"};
    int rc = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++) {
        double number;
        char value[32];
        if (!weir_h5_number(h5, names[i], &number))
            continue;
        snprintf(value, sizeof value, "%.6g", number);
        rc = weir_traits_add(traits, names[i], value, true, err);
    }
    return rc;
}

static int describe_file(struct weir_file_result *r, struct weir_hdf5_described *described, struct weir_h5 *h5,
                         const struct weir_dataset_config *config)
{
    struct weir_h5_store store = {.store = {&weir_store_hdf5}, .h5 = h5};
    struct description d = {.result = r,
                            .described = described,
                            .store = &store,
                            .layout = weir_layout_choose(&store.store, config, &r->err)};
    int n = 1, rc = weir_h5_refused(&r->err);
    if (rc == 0 && d.layout)
        rc = weir_h5_unreadable(h5, &r->err);
    if (!d.layout || rc < 0)
        return rc < 0 ? rc : -EBADMSG;
    if (d.layout->episodes)
        rc = weir_layout_episodes(&store.store, d.layout->episodes, &d.numbers, &n, &r->err);
    if (rc == 0)
        rc = set_traits(h5, &r->file.traits, &r->err);
    if (rc == 0)
        rc = describe_episodes(&d, n, config);
    free(d.numbers);
    return rc;
}

/* Takes the identity that the loader has determined. */
static int take_identity(struct weir_file_index *file, const struct weir_dataset_file *supplied, const char *path,
                         struct weir_err *err)
{
    file->file = *supplied;
    file->file.path = strdup(path);
    file->header_hash = supplied->inode;
    return file->file.path ? 0 : weir_no_memory(err);
}

void weir_hdf5_describe(struct weir_file_result *result, struct weir_hdf5_described *described, const char *path,
                        const struct weir_dataset_file *supplied, const struct weir_dataset_config *config)
{
    struct weir_h5 *h5 = NULL;
    *result = (struct weir_file_result){0};
    *described = (struct weir_hdf5_described){0};
    result->rc = supplied ? take_identity(&result->file, supplied, path, &result->err)
                          : weir_file_identify(&result->file, NULL, path, NULL, &result->err);
    if (result->rc < 0)
        return;
    result->rc = weir_h5_open(&h5, path, &result->err);
    if (result->rc == 0) {
        result->rc = describe_file(result, described, h5, config);
        described->base = weir_h5_user_block(h5);
        weir_h5_close(&h5);
    }
    int machine = weir_h5_machine_error(&result->err);
    result->rc = machine < 0 ? machine : result->rc;
}
