/* Metadata of stores that Weir wrote: .zattrs of the root and of episodes/N. */
#include "datasets/index.h"
#include "datasets/json_object.h"
#include "datasets/zarr/zarr_arrays.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS_BYTES_MAX = 1 << 20 };

/* Reads the JSON object under a key; *object is NULL if the key does not exist. Returns -EBADMSG if the value is not a
 * JSON object. */
static int read_object(struct weir_zarr *zarr, const char *key, json_t **object, struct weir_err *err)
{
    uint8_t *text;
    size_t n;
    *object = NULL;
    if (!weir_zarr_has(&zarr->files, key))
        return 0;
    int rc = weir_zarr_read(&zarr->files, key, TEXTS_BYTES_MAX, &text, &n, err);
    if (rc < 0)
        return rc;
    struct weir_err why = WEIR_ERR_NONE;
    rc = weir_json_object_parse((const char *)text, n, object, &why);
    free(text);
    return rc < 0 ? weir_err_set(err, rc, "%s: %s%s", key, why.text, rc == -EBADMSG ? "; repair it, or remove it" : "")
                  : 0;
}

int weir_zarr_read_color(struct weir_zarr *zarr, struct weir_err *err)
{
    json_t *root;
    int rc = read_object(zarr, ".zattrs", &root, err);
    const json_t *weir = json_object_get(root, "weir"), *color = json_object_get(weir, "color");
    zarr->is_ours = json_is_object(weir);
    if (color)
        rc = weir_color_parse(".zattrs: weir.color", json_string_value(color), &zarr->is_bgr, err);
    json_decref(root);
    return rc;
}

int weir_zarr_texts(struct weir_store *store, struct weir_episode *episode, struct weir_err *err)
{
    const struct weir_zarr_episode *e = (const struct weir_zarr_episode *)store;
    char key[64];
    json_t *root;
    if (!e->zarr->is_ours)
        return 0;
    snprintf(key, sizeof key, "episodes/%d/.zattrs", e->number);
    int rc = read_object(e->zarr, key, &root, err);
    if (rc == 0)
        rc = weir_episode_add_json(episode, root, err);
    json_decref(root);
    return rc;
}
