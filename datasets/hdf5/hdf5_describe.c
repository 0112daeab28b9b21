/* Describes a file through the HDF5 library: its episodes, their state, and the storage of their frames. */
#include "base/shortage.h"
#include "base/text.h"
#include "datasets/hdf5/h5_read_priv.h"
#include "datasets/hdf5/hdf5_open.h"
#include "datasets/open_dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MASKS_MAX = 8 };

struct description {
    struct weir_file_result *result;
    struct weir_hdf5_described *described;
    struct weir_h5_store *store;
    const struct weir_layout_ops *layout;
    char prefix[WEIR_PREFIX_MAX]; /* of the groups of episodes; "" = the file is one episode */
    char (*numbers)[64];          /* of the episodes of a file that holds many; otherwise NULL */
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
    int rc = asprintf(&episode->root, "%s%s", d->numbers ? d->prefix : "", d->numbers ? d->numbers[i] : "");
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

/* ---- lists of demos, which robomimic calls filter keys ---- */

#define MASK "/mask"

/* Prints the lists as "train (8 demos), valid (2 demos)"; "" = none. */
static void print_masks(FILE *out, struct weir_h5 *h5)
{
    char(*names)[64];
    int n;
    if (!weir_h5_is_group(h5, MASK) || weir_h5_list(h5, MASK, &names, &n, NULL) < 0)
        return;
    for (int i = 0; i < n && i < MASKS_MAX; i++) {
        char path[WEIR_STORE_PATH_MAX];
        struct weir_array_shape shape;
        snprintf(path, sizeof path, MASK "/%s", names[i]);
        if (weir_h5_shape(h5, path, &shape, NULL) == 0)
            fprintf(out, "%s" MASK "/%s (%llu demos)", i ? ", " : "", names[i],
                    (unsigned long long)(shape.rank > 0 ? shape.dims[0] : 1));
    }
    free(names);
}

static int no_mask(struct weir_h5 *h5, const char *key, struct weir_err *err)
{
    char have[256] = "";
    FILE *out = fmemopen(have, sizeof have, "w");
    if (out) {
        print_masks(out, h5);
        fclose(out);
    }
    have[sizeof have - 1] = '\0';
    return weir_err_set(err, -EINVAL, "--filter-key %.100s: no such list of demos; the file has %s", key,
                        *have ? have : "none");
}

/* Adds the lists to those that are not used. */
static int note_masks(struct description *d, struct weir_err *err)
{
    struct weir_episode *first = &d->result->file.episodes[0];
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return weir_no_memory(err);
    fprintf(out, "%s%s", first->not_used ? first->not_used : "", first->not_used ? ", " : "");
    long before = ftell(out);
    print_masks(out, d->store->h5);
    bool any = ftell(out) > before;
    fputs(any ? " (--filter-key NAME chooses a list)" : "", out);
    if (fclose(out) != 0 || !any) {
        free(text);
        return 0;
    }
    free(first->not_used);
    first->not_used = text;
    return 0;
}

/* Keeps the episodes that the list names, in the order of their numbers. */
static int filter(struct description *d, const char *key, int *n, struct weir_err *err)
{
    const char *layout = d->layout->name, *start = *d->prefix ? strrchr(d->prefix, '/') + 1 : NULL;
    char path[WEIR_STORE_PATH_MAX], (*names)[64];
    struct weir_array_shape shape;
    if (!start)
        return weir_err_set(err, -EINVAL, "--filter-key: files of layout %s have no lists of demos", layout);
    snprintf(path, sizeof path, MASK "/%.200s", key);
    if (strchr(key, '/') || !weir_h5_has(d->store->h5, path))
        return no_mask(d->store->h5, key, err);
    int rc = weir_h5_read_names(d->store->h5, path, &names, &shape, err);
    if (rc < 0)
        return rc;
    size_t listed = shape.rank > 0 ? shape.dims[0] : 1;
    int kept = 0;
    qsort(names, listed, sizeof *names, weir_compare_text);
    for (int i = 0; i < *n; i++) {
        char name[64 + 64];
        snprintf(name, sizeof name, "%.60s%s", start, d->numbers[i]);
        if (strlen(name) < sizeof *names && bsearch(name, names, listed, sizeof *names, weir_compare_text))
            memmove(d->numbers[kept++], d->numbers[i], sizeof *d->numbers);
    }
    free(names);
    *n = kept;
    return kept > 0 ? 0 : weir_err_set(err, -EINVAL, "--filter-key %.100s: %s names no demo of the file", key, path);
}

/* ---- a file ---- */

static int describe_episodes(struct description *d, int n, const struct weir_dataset_config *config)
{
    struct weir_file_result *r = d->result;
    r->n_wanted = n;
    if (n == 0)
        return weir_err_set(&r->err, -EBADMSG,
                            "layout %s, but no group has the path %s followed by a number; move the file away, or "
                            "leave it out with --on-error skip",
                            d->layout->name, d->prefix);
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
    struct weir_h5_store store = {.store = {&weir_store_hdf5, true}, .h5 = h5};
    struct description d = {.result = r,
                            .described = described,
                            .store = &store,
                            .layout = weir_layout_choose(&store.store, config, &r->err)};
    int n = 1, rc = weir_h5_refused(&r->err);
    if (rc == 0 && d.layout)
        rc = weir_h5_unreadable(h5, &r->err);
    if (!d.layout || rc < 0)
        return rc < 0 ? rc : -EBADMSG;
    weir_layout_prefix(d.layout, &store.store, d.prefix);
    if (*d.prefix)
        rc = weir_layout_episodes(&store.store, d.prefix, &d.numbers, &n, &r->err);
    if (rc == 0 && config->filter_key)
        rc = filter(&d, config->filter_key, &n, &r->err);
    if (rc == 0)
        rc = set_traits(h5, &r->file.traits, &r->err);
    if (rc == 0)
        rc = describe_episodes(&d, n, config);
    if (rc == 0 && *d.prefix && config->list_unused && !config->filter_key && r->file.n_episodes > 0)
        rc = note_masks(&d, &r->err);
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
