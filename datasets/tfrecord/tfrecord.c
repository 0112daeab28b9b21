/* TFRecord files of tf.train.Example, one episode a record. Checksums of lengths are checked when a file is opened,
 * those of data by `weir verify`. */
#include "base/shortage.h"
#include "base/text.h"
#include "datasets/builder.h"
#include "datasets/format_ops.h"
#include "datasets/tfrecord/records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 16384 /* of one; longer ones are left out */ };

/* An episode as a store. */
struct episode_store {
    struct weir_example example;
    const struct weir_byte_source *source;
    uint64_t steps;
};

/* ---- an episode as a store ---- */

static const struct weir_feature *find(void *store, const char *path)
{
    struct episode_store *s = store;
    return weir_example_find(&s->example, path + (*path == '/'));
}

/* A file does not say which lists of bytes are texts. No image begins as one: the first byte of a JPEG or PNG is not
 * UTF-8, and those of a damaged one, zeros or the like, are no text either. */
static bool looks_like_text(const uint8_t *bytes, size_t n, bool whole)
{
    uint32_t code;
    for (size_t at = 0, length; at < n; at += length) {
        length = weir_utf8_next((const char *)bytes + at, n - at, &code);
        if (length == 0)
            return !whole && n - at < 4 && at > 0; /* a character may be cut off */
        if (code < ' ' && code != '\n' && code != '\t' && code != '\r')
            return false;
    }
    return true;
}

/* By the first value that has any bytes. */
static bool is_text(const struct episode_store *s, const struct weir_feature *feature)
{
    uint8_t bytes[64];
    for (uint64_t i = 0; feature->kind == WEIR_FEATURE_BYTES && i < feature->n; i++) {
        const struct weir_byte_range *range = &feature->ranges[i];
        size_t n = range->length < sizeof bytes ? (size_t)range->length : sizeof bytes;
        if (n > 0)
            return s->source->read(s->source->user, range->offset, bytes, n) == 0 &&
                   looks_like_text(bytes, n, n == range->length);
    }
    return feature->kind == WEIR_FEATURE_BYTES;
}

static bool has(void *store, const char *path)
{
    return find(store, path) != NULL;
}

/* Whether the feature lies below the group, and the part of its name that follows. */
static const char *below(const struct weir_feature *feature, const char *group)
{
    group += *group == '/';
    size_t n = strlen(group);
    if (n == 0)
        return feature->name;
    return strncmp(feature->name, group, n) == 0 && feature->name[n] == '/' ? feature->name + n + 1 : NULL;
}

static bool is_group(void *store, const char *path)
{
    const struct episode_store *s = store;
    for (int i = 0; i < s->example.n; i++)
        if (below(&s->example.features[i], path))
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int list(void *store, const char *group, char (**names)[64], int *n, struct weir_err *err)
{
    const struct episode_store *s = store;
    *n = 0;
    *names = calloc((size_t)s->example.n + 1, sizeof **names);
    if (!*names)
        return weir_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < s->example.n; i++) {
        const char *name = below(&s->example.features[i], group);
        size_t length = name ? strcspn(name, "/") : 0;
        if (length >= sizeof **names) {
            free(*names);
            *names = NULL;
            return weir_err_set(err, -ENAMETOOLONG, "%s/%s: a name of over %zu bytes; rename it", group, name,
                                sizeof **names - 1);
        }
        if (length > 0)
            memcpy((*names)[(*n)++], name, length);
    }
    qsort(*names, (size_t)*n, sizeof **names, by_name);
    int kept = 0;
    for (int i = 0; i < *n; i++)
        if (i == 0 || strcmp((*names)[i], (*names)[kept - 1]) != 0)
            memmove((*names)[kept++], (*names)[i], sizeof **names);
    *n = kept;
    return 0;
}

/* Numbers are flat in the file: rows of equal length, one a step. */
static int shape(void *store, const char *path, struct weir_h5_shape *found, struct weir_err *err)
{
    const struct episode_store *s = store;
    const struct weir_feature *feature = find(store, path);
    *found = (struct weir_h5_shape){.class = WEIR_H5_OTHER};
    if (!feature)
        return weir_err_set(err, -ENOENT, "%s: no such feature", path);
    if (feature->n == 0 || feature->n % s->steps != 0)
        return weir_err_set(err, -EBADMSG, "%s: %llu values are no rows of %llu steps", path,
                            (unsigned long long)feature->n, (unsigned long long)s->steps);
    found->rank = 2;
    found->dims[0] = s->steps;
    found->dims[1] = feature->n / s->steps;
    switch (feature->kind) {
    case WEIR_FEATURE_FLOATS:
        found->class = WEIR_H5_FLOAT;
        found->type_bytes = sizeof(float);
        return 0;
    case WEIR_FEATURE_INTEGERS:
        found->class = WEIR_H5_INTEGER;
        found->type_bytes = sizeof(int64_t);
        return 0;
    case WEIR_FEATURE_BYTES:
        found->rank = found->dims[1] == 1 ? 1 : 2;
        found->class = found->rank == 1 && !is_text(s, feature) ? WEIR_H5_VLEN_BYTES : WEIR_H5_OTHER;
        found->type_bytes = sizeof(struct weir_byte_range);
        return 0;
    case WEIR_FEATURE_NONE:
        break;
    }
    return weir_err_set(err, -EBADMSG, "%s: a feature without values", path);
}

static int read_numbers(void *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_h5_shape *found, struct weir_err *err)
{
    const struct episode_store *s = store;
    const struct weir_feature *feature = find(store, path);
    *values = NULL;
    *type = WEIR_F32;
    int rc = shape(store, path, found, err);
    if (rc < 0)
        return rc;
    if (feature->kind != WEIR_FEATURE_FLOATS)
        return weir_err_set(err, -EBADMSG, "%s: is no list of floats", path);
    if (feature->n > INT32_MAX / sizeof(float))
        return weir_err_set(err, -EFBIG, "%s: numbers of over 2 GiB", path);
    *values = malloc((size_t)feature->n * sizeof(float));
    if (!*values)
        return weir_err_set(err, -ENOMEM, "out of memory");
    rc = weir_feature_floats(feature, s->source, *values);
    if (rc == 0)
        return 0;
    free(*values);
    *values = NULL;
    return weir_err_set(err, rc, "%s: %s", path, strerror(-rc));
}

static int rows(void *store, const char *path, struct weir_frame_map *map, struct weir_h5_description *description,
                struct weir_err *err)
{
    const struct weir_feature *feature = find(store, path);
    int rc = shape(store, path, &description->shape, err);
    if (rc < 0 || description->shape.class != WEIR_H5_VLEN_BYTES)
        return rc; /* whoever asked refuses the shape */
    map->storage = WEIR_STORED_EXTENTS;
    map->extents = calloc((size_t)feature->n, sizeof *map->extents);
    if (!map->extents)
        return weir_err_set(err, -ENOMEM, "out of memory");
    for (uint64_t t = 0; t < feature->n; t++) {
        if (feature->ranges[t].length > INT32_MAX)
            return weir_err_set(err, -EFBIG, "%s[%llu]: a frame of over 2 GiB", path, (unsigned long long)t);
        map->extents[t] = (struct weir_frame_extent){feature->ranges[t].offset, feature->ranges[t].length};
    }
    return 0;
}

/* ---- texts ---- */

static int by_feature_name(const void *a, const void *b)
{
    const struct weir_feature *left = *(const struct weir_feature *const *)a;
    const struct weir_feature *right = *(const struct weir_feature *const *)b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left > right) - (left < right);
}

static int add_text(const struct episode_store *s, const struct weir_feature *feature,
                    struct weir_episode_builder *builder, struct weir_err *err)
{
    char value[TEXT_MAX];
    bool one = feature->n == 1 || feature->n == s->steps;
    if (feature->kind != WEIR_FEATURE_BYTES || !one || feature != weir_example_find(&s->example, feature->name) ||
        feature->ranges[0].length > sizeof value || !is_text(s, feature))
        return 0;
    size_t n = (size_t)feature->ranges[0].length;
    int rc = s->source->read(s->source->user, feature->ranges[0].offset, value, n);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s", feature->name, strerror(-rc));
    const char *key = below(feature, "steps");
    return weir_builder_text(builder, key ? key : feature->name, value, n, err);
}

/* In the order of their names: that in the file is any. Of a text that every step has, the first step's. */
static int texts(void *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    const struct episode_store *s = store;
    const struct weir_feature **sorted = calloc((size_t)s->example.n + 1, sizeof *sorted);
    if (!sorted)
        return weir_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < s->example.n; i++)
        sorted[i] = &s->example.features[i];
    qsort(sorted, (size_t)s->example.n, sizeof *sorted, by_feature_name);
    int rc = 0;
    for (int i = 0; i < s->example.n && rc == 0; i++)
        rc = add_text(s, sorted[i], builder, err);
    free(sorted);
    return rc;
}

static const struct weir_store_ops tfrecord_store = {
    .has = has,
    .is_group = is_group,
    .list = list,
    .shape = shape,
    .read_numbers = read_numbers,
    .rows = rows,
    .texts = texts,
    .lister = "`weir info` lists those of a file",
};

/* ---- episodes ---- */

/* Every step has an is_first; where a dataset does without, its images tell. */
static uint64_t count_steps(const struct weir_example *example)
{
    const struct weir_feature *first = weir_example_find(example, "steps/is_first");
    for (int i = 0; !first && i < example->n; i++)
        if (example->features[i].kind == WEIR_FEATURE_BYTES && below(&example->features[i], "steps/observation"))
            first = &example->features[i];
    return first ? first->n : 0;
}

static int describe(struct weir_episode *episode, const struct weir_byte_source *source, uint64_t at, uint64_t bytes,
                    const struct weir_dataset_config *config, struct weir_err *err)
{
    struct episode_store store = {.source = source};
    const char *reason = NULL;
    int rc = weir_example_walk(&store.example, source, at, at + bytes, &reason);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s", episode->root, reason ? reason : strerror(-rc));
    store.steps = count_steps(&store.example);
    if (store.steps == 0)
        rc = weir_err_set(err, -EBADMSG,
                          "%s: no episode as RLDS has it: there is no steps/is_first and no image in "
                          "steps/observation",
                          episode->root);
    struct weir_h5_description *descriptions = NULL;
    if (rc == 0)
        rc = weir_episode_describe(&tfrecord_store, &store, episode, config, &descriptions, err);
    free(descriptions);
    weir_example_free(&store.example);
    return rc;
}

static int open_records(struct weir_file_result *result, const struct weir_records *records,
                        const struct weir_byte_source *source, const struct weir_dataset_config *config)
{
    struct weir_file_index *file = &result->file;
    int rc = 0;
    result->n_wanted = records->n;
    file->episodes = calloc((size_t)records->n + 1, sizeof *file->episodes);
    if (!file->episodes)
        return weir_err_set(&result->err, -ENOMEM, "out of memory");
    for (int i = 0; i < records->n && rc == 0; i++) {
        struct weir_episode *episode = &file->episodes[file->n_episodes];
        struct weir_err why = WEIR_ERR_NONE;
        *episode = (struct weir_episode){.layout = &weir_layout_rlds, .bytes = sizeof *episode};
        rc = asprintf(&episode->root, "record %d", i) < 0
                 ? weir_err_set(&why, -ENOMEM, "out of memory")
                 : describe(episode, source, records->at[i], records->bytes[i], config, &why);
        if (rc == 0) {
            weir_episode_shrink(episode);
            file->n_episodes++;
            continue;
        }
        weir_episode_close(episode);
        rc = weir_file_leave_out(result, config, rc, &why);
    }
    return rc;
}

static int open_file(const char *path, struct weir_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 ? fd : weir_err_set(err, -errno, "%s; %s", strerror(errno), weir_open_advice(-errno));
}

static int open_tfrecord(struct weir_file_result *result, const char *path, const struct weir_dataset_config *config)
{
    struct weir_records records = {0};
    int fd = open_file(path, &result->err);
    if (fd < 0)
        return fd;
    struct weir_byte_source source = {weir_record_read, &fd};
    int rc = weir_records_find(&records, &source, result->file.file.size_bytes, &result->err);
    if (rc == 0 && records.n == 0)
        rc = weir_err_set(&result->err, -EBADMSG, "has no records; remove the file");
    if (rc == 0)
        rc = open_records(result, &records, &source, config);
    weir_records_free(&records);
    close(fd);
    return rc;
}

/* ---- checksums of data ---- */

static int check_records(const struct weir_records *records, const struct weir_byte_source *source, uint8_t *buffer,
                         weir_damaged_fn *damaged, void *user, struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < records->n && rc == 0; i++) {
        char part[32];
        snprintf(part, sizeof part, "record %d", i);
        int whole = weir_record_is_whole(records, i, source, buffer);
        if (weir_is_shortage(whole))
            return weir_err_set(err, whole, "%s: %s; %s", part, strerror(-whole), weir_machine_advice(whole));
        if (whole < 0)
            rc = damaged(user, part, strerror(-whole));
        else if (whole == 0)
            rc = damaged(user, part,
                         "the checksum of its data is wrong; copy the file anew, or do without this episode");
    }
    return rc;
}

static int check(const struct weir_dataset_file *file, weir_damaged_fn *damaged, void *user, struct weir_err *err)
{
    struct weir_records records = {0};
    uint8_t *buffer = malloc(WEIR_RECORD_BUFFER);
    int fd = buffer ? open_file(file->path, err) : weir_err_set(err, -ENOMEM, "out of memory");
    struct weir_byte_source source = {weir_record_read, &fd};
    int rc = fd < 0 ? fd : weir_records_find(&records, &source, file->size_bytes, err);
    if (rc == 0)
        rc = check_records(&records, &source, buffer, damaged, user, err);
    if (fd >= 0)
        close(fd);
    weir_records_free(&records);
    free(buffer);
    return rc;
}

/* "NAME.tfrecord", and shards of it: "NAME-train.tfrecord-00000-of-00001". */
static bool is_tfrecord(const char *name)
{
    const char *at = strstr(name, ".tfrecord");
    return at && (at[9] == '\0' || at[9] == '-' || strcmp(at + 9, ".gz") == 0);
}

/* As tensorflow_datasets names shards: NAME-SPLIT.tfrecord-00000-of-00001. */
static const char *split_of(const char *name, size_t *length)
{
    const char *end = strstr(name, ".tfrecord"), *dash = NULL;
    for (const char *at = name; at < end; at++)
        dash = *at == '-' ? at : dash;
    *length = dash ? (size_t)(end - dash - 1) : 0;
    return *length ? dash + 1 : NULL;
}

const struct weir_format_ops weir_format_tfrecord = {
    .name = "tfrecord",
    .summary = "TFRecord of tf.train.Example, as RLDS stores it: one episode a record",
    .names = is_tfrecord,
    .split = split_of,
    .open = open_tfrecord,
    .check = check,
};
