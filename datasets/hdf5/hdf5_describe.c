/* What the HDF5 library knows of a file: its episodes, their state, and how their frames are stored. */
#include "datasets/builder.h"
#include "datasets/hdf5/h5_errors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct description {
    struct weir_file_result *result;
    struct weir_h5 *h5;
    const struct weir_layout_ops *layout;
    char (*groups)[64]; /* of a file of many episodes; else NULL */
};

static int describe_opened(struct weir_h5 *h5, struct weir_episode *episode, const struct weir_dataset_config *config,
                           struct weir_h5_description **descriptions, struct weir_err *err)
{
    char color[8];
    int rc = weir_h5_text(h5, "weir_color", color, sizeof color, err);
    if (rc > 0)
        rc = weir_color_parse("attribute weir_color", color, &episode->is_bgr, err);
    weir_h5_enter(h5, episode->root);
    if (rc == 0)
        rc = weir_episode_describe(&weir_store_hdf5, h5, episode, config, descriptions, err);
    weir_h5_enter(h5, "");
    int refused = weir_h5_refused(err); /* it is the cause of whatever rc is */
    return refused < 0 ? refused : rc;
}

static int describe_episode(void *user, int i, const struct weir_dataset_config *config, struct weir_episode *episode,
                            struct weir_err *err)
{
    struct description *d = user;
    struct weir_h5_description **descriptions = &d->result->descriptions[d->result->file.n_episodes];
    *episode = (struct weir_episode){.layout = d->layout, .bytes = sizeof *episode};
    int rc = asprintf(&episode->root, "%s%s", d->groups ? "/data/" : "", d->groups ? d->groups[i] : "");
    if (rc < 0) {
        episode->root = NULL;
        return weir_err_set(err, -ENOMEM, "out of memory");
    }
    rc = describe_opened(d->h5, episode, config, descriptions, err);
    if (rc < 0) {
        free(*descriptions);
        *descriptions = NULL;
    }
    return rc;
}

static int describe_episodes(struct description *d, int n, const struct weir_dataset_config *config)
{
    struct weir_file_result *r = d->result;
    r->n_wanted = n;
    if (n == 0)
        return weir_err_set(&r->err, -EBADMSG, "layout %s, but /data has no episodes in it; remove the file",
                            d->layout->name);
    r->descriptions = calloc((size_t)n, sizeof *r->descriptions);
    if (!r->descriptions)
        return weir_err_set(&r->err, -ENOMEM, "out of memory");
    return weir_file_describe_episodes(r, n, config, describe_episode, d);
}

static int describe_file(struct weir_file_result *r, struct weir_h5 *h5, const struct weir_dataset_config *config)
{
    struct description d = {.result = r, .h5 = h5, .layout = weir_layout_choose(h5, config, &r->err)};
    int n = 1, rc = weir_h5_refused(&r->err);
    if (rc == 0 && d.layout)
        rc = weir_h5_unreadable(h5, &r->err);
    if (!d.layout || rc < 0)
        return rc < 0 ? rc : -EBADMSG;
    if (d.layout->list)
        rc = d.layout->list(h5, &d.groups, &n, &r->err);
    if (rc == 0)
        rc = describe_episodes(&d, n, config);
    free(d.groups);
    return rc;
}

void weir_file_describe(struct weir_file_result *result, const char *path, const struct weir_dataset_config *config)
{
    struct weir_h5 *h5 = NULL;
    *result = (struct weir_file_result){0};
    result->rc = weir_file_identify(&result->file, path, &result->err);
    if (result->rc < 0)
        return;
    result->rc = weir_h5_open(&h5, path, &result->err);
    if (result->rc == 0) {
        result->rc = describe_file(result, h5, config);
        result->base = weir_h5_user_block(h5);
        weir_h5_close(&h5);
    }
    int machine = weir_h5_machine_error(&result->err);
    result->rc = machine < 0 ? machine : result->rc;
}
