#include "datasets/tfrecord/features.h"
#include "base/shortage.h"
#include "datasets/index.h"
#include "origin/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define FEATURES_JSON "features.json"

enum { BYTES_MAX = 4 << 20, DEPTH_MAX = 32, RANK_MAX = 16 };

/* Features beyond WEIR_FEATURES_MAX are dropped, because no readable record has that many. */
static struct weir_stated_feature *add(struct weir_stated_features *stated, const char *name)
{
    if (stated->n == WEIR_FEATURES_MAX || !stated->features)
        return NULL;
    struct weir_stated_feature *feature = &stated->features[stated->n++];
    *feature = (struct weir_stated_feature){.kind = WEIR_STATED_OTHER};
    snprintf(feature->name, sizeof feature->name, "%s", name);
    return feature;
}

/* Parses a dimension: 7 or "7", because protocol buffers write 64-bit numbers as strings in JSON. Returns 0 if it is
 * unknown ("-1") or malformed. */
static uint64_t dimension(const json_t *value)
{
    long long n = json_is_string(value) ? strtoll(json_string_value(value), NULL, 10) : json_integer_value(value);
    return n > 0 ? (uint64_t)n : 0;
}

static void take_shape(struct weir_stated_feature *feature, const json_t *tensor)
{
    const json_t *dimensions = json_object_get(json_object_get(tensor, "shape"), "dimensions");
    size_t rank = json_array_size(dimensions);
    uint64_t values = rank <= RANK_MAX;
    for (size_t i = 0; i < rank && values > 0; i++) {
        uint64_t n = dimension(json_array_get(dimensions, i));
        if (i < WEIR_STATED_RANK_MAX)
            feature->dims[i] = n;
        if (__builtin_mul_overflow(values, n, &values))
            values = 0;
    }
    feature->values = values;
    feature->rank = values > 0 && rank <= WEIR_STATED_RANK_MAX ? (int)rank : 0;
}

/* Parses "float32", "uint8", "bool" and similar names. */
static void take_type(struct weir_stated_feature *feature, const char *type)
{
    size_t bits = strtoul(type + strcspn(type, "0123456789"), NULL, 10);
    feature->type = strstr(type, "float") ? "float" : strncmp(type, "int", 3) == 0 ? "int" : "uint";
    feature->type_bytes = bits >= 8 && bits <= 64 ? bits / 8 : 1;
}

static bool is_text_type(const char *type)
{
    return strcmp(type, "string") == 0 || strcmp(type, "object") == 0 || strcmp(type, "bytes") == 0;
}

static void take_leaf(struct weir_stated_features *stated, const char *name, const json_t *node)
{
    const json_t *tensor = json_object_get(node, "tensor");
    struct weir_stated_feature *feature = add(stated, name);
    if (!feature)
        return;
    const json_t *image = json_object_get(node, "image");
    const char *type = json_string_value(json_object_get(image ? image : tensor, "dtype"));
    if (image && !(type && strstr(type, "float")))
        feature->kind = WEIR_STATED_IMAGE;
    else if (json_object_get(node, "text") || (type && is_text_type(type)))
        feature->kind = WEIR_STATED_TEXT;
    else if (tensor || image) {
        feature->kind = WEIR_STATED_NUMBERS;
        take_shape(feature, image ? image : tensor);
        take_type(feature, type ? type : "");
    }
}

static int take_node(struct weir_stated_features *stated, const char *name, const json_t *node, int depth);

static int take_members(struct weir_stated_features *stated, const char *name, const json_t *members, int depth)
{
    const char *key;
    json_t *value;
    int rc = 0;
    json_object_foreach((json_t *)members, key, value)
    {
        char path[2 * WEIR_FEATURE_NAME_MAX];
        snprintf(path, sizeof path, "%.126s%s%.126s", name, *name ? "/" : "", key);
        if (rc == 0)
            rc = take_node(stated, path, value, depth + 1);
    }
    return rc;
}

/* Features can be nested. A dictionary adds its keys to the name; a sequence or dataset does not change the name. */
static int take_node(struct weir_stated_features *stated, const char *name, const json_t *node, int depth)
{
    if (depth > DEPTH_MAX || strlen(name) >= WEIR_FEATURE_NAME_MAX)
        return 0; /* no record can have such a name */
    const json_t *members = json_object_get(json_object_get(node, "featuresDict"), "features");
    const json_t *inner = json_object_get(json_object_get(node, "sequence"), "feature");
    if (json_is_object(members))
        return take_members(stated, name, members, depth);
    if (json_is_object(inner))
        return take_node(stated, name, inner, depth + 1);
    take_leaf(stated, name, node);
    return 0;
}

int weir_stated_parse(struct weir_stated_features *stated, const char *text, size_t n, struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    json_t *root = NULL;
    *stated = (struct weir_stated_features){.features = calloc(WEIR_FEATURES_MAX, sizeof *stated->features)};
    int rc = stated->features ? weir_json_object_parse(text, n, &root, &why) : -ENOMEM;
    if (rc == -ENOMEM)
        weir_err_set(err, rc, "out of memory");
    else if (rc < 0)
        weir_err_set(err, rc, FEATURES_JSON " beside it: %s; copy it again, or move it away", why.text);
    else if (!json_is_object(json_object_get(json_object_get(root, "featuresDict"), "features")))
        rc = weir_err_set(err, -EBADMSG,
                          FEATURES_JSON " beside it lacks tensorflow_datasets' featuresDict; copy it again, "
                                        "or move it away");
    else
        rc = take_node(stated, "", root, 0);
    json_decref(root);
    if (rc < 0)
        weir_stated_free(stated);
    return rc;
}

int weir_stated_read(struct weir_stated_features *stated, struct weir_origin *origin, const char *beside,
                     struct weir_err *err)
{
    const char *slash = strrchr(beside, '/');
    char *path, *text;
    size_t n;
    struct weir_err why = WEIR_ERR_NONE;
    *stated = (struct weir_stated_features){0};
    if (asprintf(&path, "%.*s" FEATURES_JSON, slash ? (int)(slash - beside + 1) : 0, beside) < 0)
        return weir_no_memory(err);
    int rc = weir_source_text(origin, path, BYTES_MAX, &text, &n, &why);
    free(path);
    if (rc < 0)
        return rc == -ENOENT ? 0
                             : weir_err_set(err, rc, FEATURES_JSON " beside it cannot be read: %s%s%s", why.text,
                                            strstr(why.text, "; ") ? "" : "; ",
                                            strstr(why.text, "; ")           ? ""
                                            : rc == -EBADMSG || rc == -EFBIG ? "move it away"
                                                                             : weir_open_advice(rc));
    rc = weir_stated_parse(stated, text, n, err);
    free(text);
    return rc;
}

void weir_stated_free(struct weir_stated_features *stated)
{
    free(stated->features);
    *stated = (struct weir_stated_features){0};
}

const struct weir_stated_feature *weir_stated_find(const struct weir_stated_features *stated, const char *name)
{
    for (int i = 0; i < stated->n; i++)
        if (strcmp(stated->features[i].name, name) == 0)
            return &stated->features[i];
    return NULL;
}
