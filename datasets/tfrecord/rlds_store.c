#include "base/shortage.h"
#include "base/text.h"
#include "datasets/index.h"
#include "datasets/tfrecord/features.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLOR "episode_metadata/weir_color"

enum { NUMBERS_MAX_BYTES = 1 << 30 };

static const struct weir_feature *find(struct weir_store *store, const char *path)
{
    struct weir_rlds_store *s = (struct weir_rlds_store *)store;
    return weir_example_find(&s->example, path + (*path == '/'));
}

/* Records do not mark strings, so they are recognised by their bytes. No image looks like a string: the first byte of a
 * JPEG or PNG is not valid UTF-8, and damaged images (zeros, for example) are not strings either. */
static bool looks_like_text(const uint8_t *bytes, size_t n, bool whole)
{
    uint32_t code;
    for (size_t at = 0, length; at < n; at += length) {
        length = weir_utf8_next((const char *)bytes + at, n - at, &code);
        if (length == 0)
            return !whole && n - at < 4 && at > 0; /* the last character may be cut off */
        if (code < ' ' && code != '\n' && code != '\t' && code != '\r')
            return false;
    }
    return true;
}

/* Decides by features.json or, if it does not list the feature, by the first non-empty value. */
static bool is_text(const struct weir_rlds_store *s, const struct weir_feature *feature)
{
    uint8_t bytes[64];
    const struct weir_stated_feature *stated = weir_stated_find(s->stated, feature->name);
    if (stated && (stated->kind == WEIR_STATED_IMAGE || stated->kind == WEIR_STATED_TEXT))
        return stated->kind == WEIR_STATED_TEXT;
    for (uint64_t i = 0; feature->kind == WEIR_FEATURE_BYTES && i < feature->n; i++) {
        const struct weir_byte_range *range = &feature->ranges[i];
        size_t n = range->length < sizeof bytes ? (size_t)range->length : sizeof bytes;
        if (n > 0)
            return s->source->read(s->source->user, range->offset, bytes, n) == 0 &&
                   looks_like_text(bytes, n, n == range->length);
    }
    return feature->kind == WEIR_FEATURE_BYTES;
}

static bool has(struct weir_store *store, const char *path)
{
    return find(store, path) != NULL;
}

/* Returns the rest of the feature's name if the feature is below the group; otherwise NULL. */
static const char *below(const struct weir_feature *feature, const char *group)
{
    group += *group == '/';
    size_t n = strlen(group);
    if (n == 0)
        return feature->name;
    return strncmp(feature->name, group, n) == 0 && feature->name[n] == '/' ? feature->name + n + 1 : NULL;
}

static bool is_group(struct weir_store *store, const char *path)
{
    const struct weir_rlds_store *s = (const struct weir_rlds_store *)store;
    for (int i = 0; i < s->example.n; i++)
        if (below(&s->example.features[i], path))
            return true;
    return false;
}

static int list(struct weir_store *store, const char *group, char (**names)[64], int *n, struct weir_err *err)
{
    const struct weir_rlds_store *s = (const struct weir_rlds_store *)store;
    *n = 0;
    *names = calloc((size_t)s->example.n + 1, sizeof **names);
    if (!*names)
        return weir_no_memory(err);
    for (int i = 0; i < s->example.n; i++) {
        const char *name = below(&s->example.features[i], group);
        size_t length = name ? strcspn(name, "/") : 0;
        if (length >= sizeof **names) {
            free(*names);
            *names = NULL;
            return weir_err_set(err, -ENAMETOOLONG, "%s/%s: the name has over %zu bytes; rename it", group, name,
                                sizeof **names - 1);
        }
        if (length > 0)
            memcpy((*names)[(*n)++], name, length);
    }
    qsort(*names, (size_t)*n, sizeof **names, weir_compare_text);
    int kept = 0;
    for (int i = 0; i < *n; i++)
        if (i == 0 || strcmp((*names)[i], (*names)[kept - 1]) != 0)
            memmove((*names)[kept++], (*names)[i], sizeof **names);
    *n = kept;
    return 0;
}

/* Refuses a feature whose number of values disagrees with features.json, because its rows might be split in the wrong
 * places. */
static int check_stated(const struct weir_rlds_store *s, const struct weir_feature *feature, const char *path,
                        struct weir_err *err)
{
    const struct weir_stated_feature *stated = weir_stated_find(s->stated, feature->name);
    bool numbers = feature->kind == WEIR_FEATURE_FLOATS || feature->kind == WEIR_FEATURE_INTEGERS;
    if (!numbers || !stated || stated->kind != WEIR_STATED_NUMBERS || stated->values == 0)
        return 0;
    if (feature->n / stated->values == s->steps && feature->n % stated->values == 0)
        return 0;
    return weir_err_set(
        err, -EBADMSG,
        "%s: %llu values in %llu steps, but features.json declares %llu per step; repair features.json or move it away",
        path, (unsigned long long)feature->n, (unsigned long long)s->steps, (unsigned long long)stated->values);
}

/* Returns what features.json declares of numbers that the record stores as bytes (encoded tensors, images of floats),
 * or NULL. */
static const struct weir_stated_feature *encoded_numbers(const struct weir_rlds_store *s,
                                                         const struct weir_feature *feature)
{
    const struct weir_stated_feature *stated = weir_stated_find(s->stated, feature->name);
    bool encoded = feature->kind == WEIR_FEATURE_BYTES && stated && stated->kind == WEIR_STATED_NUMBERS;
    return encoded && stated->values > 0 ? stated : NULL;
}

static void stated_shape(const struct weir_stated_feature *stated, uint64_t steps, struct weir_array_shape *found)
{
    found->rank = 1 + (stated->rank > 0 ? stated->rank : 1);
    found->dims[0] = steps;
    found->dims[1] = stated->values;
    for (int i = 0; i < stated->rank; i++)
        found->dims[1 + i] = stated->dims[i];
    found->element = strcmp(stated->type, "float") == 0 ? WEIR_ELEMENT_FLOAT : WEIR_ELEMENT_INTEGER;
    found->is_signed = strcmp(stated->type, "int") == 0;
    found->type_bytes = stated->type_bytes;
}

/* One image per step, or several. The builder refuses any other number of images. */
static void bytes_shape(const struct weir_rlds_store *s, const struct weir_feature *feature,
                        struct weir_array_shape *found)
{
    bool several = s->steps > 1 && feature->n > s->steps && feature->n % s->steps == 0;
    found->rank = several ? 2 : 1;
    found->dims[0] = several ? s->steps : feature->n;
    found->dims[1] = several ? feature->n / s->steps : 0;
    found->element = is_text(s, feature) ? WEIR_ELEMENT_OTHER : WEIR_ELEMENT_VLEN_BYTES;
    found->type_bytes = sizeof(struct weir_byte_range);
}

/* Numbers are stored flat. They are split into rows of equal length, one per step. */
static int shape(struct weir_store *store, const char *path, struct weir_array_shape *found, struct weir_err *err)
{
    const struct weir_rlds_store *s = (const struct weir_rlds_store *)store;
    const struct weir_feature *feature = find(store, path);
    *found = (struct weir_array_shape){.element = WEIR_ELEMENT_OTHER};
    if (!feature)
        return weir_err_set(err, -ENOENT, "%s: no such feature", path);
    int rc = check_stated(s, feature, path, err);
    if (rc < 0)
        return rc;
    const struct weir_stated_feature *encoded = encoded_numbers(s, feature);
    if (encoded)
        stated_shape(encoded, feature->n, found);
    else if (feature->kind == WEIR_FEATURE_BYTES)
        bytes_shape(s, feature, found);
    if (feature->kind == WEIR_FEATURE_BYTES)
        return 0;
    if (feature->n == 0 || feature->n % s->steps != 0)
        return weir_err_set(err, -EBADMSG, "%s: %llu values do not divide into %llu steps", path,
                            (unsigned long long)feature->n, (unsigned long long)s->steps);
    found->rank = 2;
    found->dims[0] = s->steps;
    found->dims[1] = feature->n / s->steps;
    switch (feature->kind) {
    case WEIR_FEATURE_FLOATS:
        found->element = WEIR_ELEMENT_FLOAT;
        found->type_bytes = sizeof(float);
        return 0;
    case WEIR_FEATURE_INTEGERS:
        found->element = WEIR_ELEMENT_INTEGER;
        found->is_signed = true;
        found->type_bytes = sizeof(int64_t);
        return 0;
    case WEIR_FEATURE_BYTES:
    case WEIR_FEATURE_NONE:
        break;
    }
    return weir_err_set(err, -EBADMSG, "%s: the feature has no values", path);
}

static int read_numbers(struct weir_store *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_array_shape *found, struct weir_err *err)
{
    const struct weir_rlds_store *s = (const struct weir_rlds_store *)store;
    const struct weir_feature *feature = find(store, path);
    *values = NULL;
    int rc = shape(store, path, found, err);
    if (rc < 0)
        return rc;
    if (encoded_numbers(s, feature))
        return weir_err_set(err, -ENOTSUP,
                            "%s: its numbers are stored as bytes, which are not read; write the dataset with "
                            "tfds.features.Encoding.NONE for it",
                            path);
    if (feature->kind != WEIR_FEATURE_FLOATS && feature->kind != WEIR_FEATURE_INTEGERS)
        return weir_err_set(err, -EBADMSG, "%s: contains no numbers; it must contain floats or integers", path);
    bool integers = feature->kind == WEIR_FEATURE_INTEGERS;
    *type = integers ? WEIR_I64 : WEIR_F32;
    if (feature->n > NUMBERS_MAX_BYTES / weir_number_bytes(*type))
        return weir_err_set(err, -EFBIG, "%s: its numbers exceed 1 GiB", path);
    *values = malloc((size_t)feature->n * weir_number_bytes(*type));
    if (!*values)
        return weir_no_memory(err);
    rc = integers ? weir_feature_integers(feature, s->source, *values)
                  : weir_feature_floats(feature, s->source, *values);
    if (rc == 0)
        return 0;
    free(*values);
    *values = NULL;
    return weir_err_set(err, rc, "%s: %s", path, strerror(-rc));
}

static int rows(struct weir_store *store, const char *path, struct weir_frame_map *map, struct weir_array_shape *found,
                struct weir_err *err)
{
    const struct weir_feature *feature = find(store, path);
    int rc = shape(store, path, found, err);
    if (rc == 0 && encoded_numbers((const struct weir_rlds_store *)store, feature) &&
        found->element == WEIR_ELEMENT_INTEGER)
        found->element = WEIR_ELEMENT_OTHER; /* these integers are not the bytes of pixels */
    if (rc < 0 || found->element != WEIR_ELEMENT_VLEN_BYTES || found->rank != 1)
        return rc; /* the caller refuses a shape that is not that of images */
    map->storage = WEIR_STORED_EXTENTS;
    map->extents = calloc((size_t)feature->n + 1, sizeof *map->extents);
    if (!map->extents)
        return weir_no_memory(err);
    for (uint64_t t = 0; t < feature->n; t++) {
        if (feature->ranges[t].length > INT32_MAX)
            return weir_err_set(err, -EFBIG, "%s[%llu]: the frame has over 2 GiB", path, (unsigned long long)t);
        map->extents[t] = (struct weir_frame_extent){feature->ranges[t].offset, feature->ranges[t].length};
    }
    return 0;
}

/* ---- metadata strings ---- */

static int by_feature_name(const void *a, const void *b)
{
    const struct weir_feature *left = *(const struct weir_feature *const *)a;
    const struct weir_feature *right = *(const struct weir_feature *const *)b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left > right) - (left < right);
}

static int add_text(const struct weir_rlds_store *s, const struct weir_feature *feature, struct weir_episode *episode,
                    struct weir_err *err)
{
    char value[WEIR_TEXT_MAX];
    bool one = feature->n == 1 || feature->n == s->steps;
    if (feature->kind != WEIR_FEATURE_BYTES || !one || feature != weir_example_find(&s->example, feature->name) ||
        feature->ranges[0].length > sizeof value || !is_text(s, feature))
        return 0;
    size_t n = (size_t)feature->ranges[0].length;
    int rc = s->source->read(s->source->user, feature->ranges[0].offset, value, n);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s", feature->name, strerror(-rc));
    const char *key = below(feature, "steps") ? below(feature, "steps") : below(feature, "episode_metadata");
    return weir_episode_add_text(episode, key ? key : feature->name, value, n, err);
}

/* Reads the colour order. It is handled separately from other strings, because another type or any other value is an
 * error. */
static int read_color(const struct weir_rlds_store *s, struct weir_episode *episode, struct weir_err *err)
{
    const struct weir_feature *feature = weir_example_find(&s->example, COLOR);
    char value[17] = ""; /* longer than any valid value */
    if (!feature)
        return 0;
    bool texts = feature->kind == WEIR_FEATURE_BYTES && feature->n > 0;
    size_t n = sizeof value - 1;
    if (texts && feature->ranges[0].length < n)
        n = (size_t)feature->ranges[0].length;
    int rc = texts ? s->source->read(s->source->user, feature->ranges[0].offset, value, n) : 0;
    if (rc < 0)
        return weir_err_set(err, rc, COLOR ": %s", strerror(-rc));
    return weir_color_parse(COLOR, texts ? value : NULL, &episode->is_bgr, err);
}

/* Adds strings in name order, because their order in the file is arbitrary. If there is one in every step, adds that of
 * the first step. */
static int texts(struct weir_store *store, struct weir_episode *episode, struct weir_err *err)
{
    const struct weir_rlds_store *s = (const struct weir_rlds_store *)store;
    const struct weir_feature **sorted = calloc((size_t)s->example.n + 1, sizeof *sorted);
    if (!sorted)
        return weir_no_memory(err);
    for (int i = 0; i < s->example.n; i++)
        sorted[i] = &s->example.features[i];
    qsort(sorted, (size_t)s->example.n, sizeof *sorted, by_feature_name);
    int rc = read_color(s, episode, err);
    for (int i = 0; i < s->example.n && rc == 0; i++)
        rc = add_text(s, sorted[i], episode, err);
    free(sorted);
    return rc;
}

const struct weir_store_ops weir_store_rlds = {
    .has = has,
    .is_group = is_group,
    .list = list,
    .shape = shape,
    .read_numbers = read_numbers,
    .rows = rows,
    .texts = texts,
    .images = "bytes that contain one encoded image (JPEG, PNG) per step",
};

uint64_t weir_rlds_steps(const struct weir_example *example)
{
    const struct weir_feature *first = weir_example_find(example, "steps/is_first");
    for (int i = 0; !first && i < example->n; i++)
        if (example->features[i].kind == WEIR_FEATURE_BYTES && below(&example->features[i], "steps/observation"))
            first = &example->features[i];
    return first ? first->n : 0;
}
