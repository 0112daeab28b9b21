#include "datasets/tfrecord/example.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 65536, INTEGERS_MAX = 1 << 27 /* 1 GiB as int64 */ };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct walk {
    const struct weir_raw_file *source;
    struct weir_example *example;
    uint64_t end;                   /* end of the record */
    uint64_t window_at, window_end; /* range of the file that the window contains */
    uint64_t integers; /* number of integers in packed fields so far; limited, because each byte of them is examined */
    const char *reason;
    uint8_t window[WINDOW];
};

static int bad(struct walk *walk, const char *reason)
{
    walk->reason = reason;
    return -EBADMSG;
}

/* Reads one byte of the record. */
static int byte_at(struct walk *walk, uint64_t at, uint8_t *byte)
{
    if (at < walk->window_at || at >= walk->window_end) {
        uint64_t n = walk->end - at < WINDOW ? walk->end - at : WINDOW;
        int rc = walk->source->read(walk->source->user, at, walk->window, (size_t)n);
        if (rc < 0)
            return rc;
        walk->window_at = at;
        walk->window_end = at + n;
    }
    *byte = walk->window[at - walk->window_at];
    return 0;
}

static int varint(struct walk *walk, uint64_t *at, uint64_t end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte;
        if (*at >= end)
            return bad(walk, "a number in it is truncated");
        int rc = byte_at(walk, (*at)++, &byte);
        if (rc < 0)
            return rc;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return 0;
    }
    return bad(walk, "a number in it has more than ten bytes");
}

struct field {
    unsigned number, wire;
    uint64_t begin, end; /* range of the field's contents */
};

/* Parses the next field before `end`. Returns 1; 0 at the end; or a negative code. */
static int next_field(struct walk *walk, uint64_t *at, uint64_t end, struct field *field)
{
    uint64_t key, length = 0;
    if (*at >= end)
        return 0;
    int rc = varint(walk, at, end, &key);
    if (rc < 0)
        return rc;
    *field = (struct field){.number = (unsigned)(key >> 3 & 0x1FFFFFFF), .wire = key & 7, .begin = *at};
    if (field->number == 0) /* zeros, as in a hole of the file, so the rest is invalid */
        return bad(walk, "not a protocol buffers message");
    switch (field->wire) {
    case WIRE_VARINT:
        rc = varint(walk, at, end, &length);
        if (rc < 0)
            return rc;
        field->end = *at;
        return 1;
    case WIRE_64:
    case WIRE_32:
        length = field->wire == WIRE_64 ? 8 : 4;
        break;
    case WIRE_BYTES:
        rc = varint(walk, at, end, &length);
        if (rc < 0)
            return rc;
        break;
    default:
        return bad(walk, "not a protocol buffers message");
    }
    if (length > end - *at)
        return bad(walk, "a field extends past the end of its message");
    field->begin = *at;
    field->end = *at += length;
    return 1;
}

/* ---- values ---- */

static int add_range(struct walk *walk, struct weir_feature *feature, uint64_t begin, uint64_t end, uint64_t values)
{
    if (!weir_grow(&feature->ranges, feature->n_ranges, sizeof *feature->ranges))
        return -ENOMEM;
    (void)walk;
    feature->ranges[feature->n_ranges++] = (struct weir_byte_range){begin, end - begin};
    feature->n += values;
    return 0;
}

static int count_varints(struct walk *walk, uint64_t at, uint64_t end, uint64_t *n)
{
    uint64_t value;
    for (*n = 0; at < end; ++*n) {
        if (walk->integers++ == INTEGERS_MAX)
            return bad(walk, "its integers exceed 1 GiB");
        int rc = varint(walk, &at, end, &value);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int add_value(struct walk *walk, struct weir_feature *feature, const struct field *field)
{
    uint64_t bytes = field->end - field->begin, n = 1;
    if (feature->kind == WEIR_FEATURE_BYTES)
        return field->wire == WIRE_BYTES ? add_range(walk, feature, field->begin, field->end, 1)
                                         : bad(walk, "a list of bytes contains a number");
    if (feature->kind == WEIR_FEATURE_FLOATS) {
        bool packed = field->wire == WIRE_BYTES && bytes % sizeof(float) == 0;
        if (!packed && field->wire != WIRE_32)
            return bad(walk, "a list of floats contains another type");
        return bytes ? add_range(walk, feature, field->begin, field->end, bytes / sizeof(float)) : 0;
    }
    if (field->wire != WIRE_BYTES && field->wire != WIRE_VARINT)
        return bad(walk, "a list of integers contains another type");
    int rc = field->wire == WIRE_BYTES ? count_varints(walk, field->begin, field->end, &n) : 0;
    return rc < 0 || n == 0 ? rc : add_range(walk, feature, field->begin, field->end, n);
}

static int walk_list(struct walk *walk, struct weir_feature *feature, uint64_t at, uint64_t end)
{
    struct field field;
    int rc;
    while ((rc = next_field(walk, &at, end, &field)) > 0)
        if (field.number == 1) {
            rc = add_value(walk, feature, &field);
            if (rc < 0)
                return rc;
        }
    return rc;
}

/* ---- features ---- */

static int walk_feature(struct walk *walk, struct weir_feature *feature, uint64_t at, uint64_t end)
{
    struct field field;
    int rc;
    while ((rc = next_field(walk, &at, end, &field)) > 0) {
        bool known = field.number >= 1 && field.number <= 3 && field.wire == WIRE_BYTES;
        if (known && feature->kind != WEIR_FEATURE_NONE && feature->kind != (enum weir_feature_kind)field.number)
            return bad(walk, "a feature in it has values of two kinds");
        if (known) {
            feature->kind = (enum weir_feature_kind)field.number;
            rc = walk_list(walk, feature, field.begin, field.end);
            if (rc < 0)
                return rc;
        }
    }
    return rc;
}

static int read_name(struct walk *walk, const struct field *field, char name[WEIR_FEATURE_NAME_MAX])
{
    uint64_t n = field->end - field->begin;
    n = n < WEIR_FEATURE_NAME_MAX - 1 ? n : WEIR_FEATURE_NAME_MAX - 1;
    for (uint64_t i = 0; i < n; i++) {
        uint8_t byte;
        int rc = byte_at(walk, field->begin + i, &byte);
        if (rc < 0)
            return rc;
        name[i] = (char)(byte ? byte : '?');
    }
    name[n] = '\0';
    return 0;
}

static struct weir_feature *add_feature(struct weir_example *example)
{
    if (!weir_grow(&example->features, (size_t)example->n, sizeof *example->features))
        return NULL;
    example->features[example->n] = (struct weir_feature){0};
    return &example->features[example->n++];
}

static int walk_entry(struct walk *walk, uint64_t at, uint64_t end)
{
    struct field field;
    int rc;
    if (walk->example->n == WEIR_FEATURES_MAX)
        return bad(walk, "it has more than 512 features");
    struct weir_feature *feature = add_feature(walk->example);
    if (!feature)
        return -ENOMEM;
    while ((rc = next_field(walk, &at, end, &field)) > 0) {
        int inner = 0;
        if (field.number == 1 && field.wire == WIRE_BYTES)
            inner = read_name(walk, &field, feature->name);
        else if (field.number == 2 && field.wire == WIRE_BYTES)
            inner = walk_feature(walk, feature, field.begin, field.end);
        if (inner < 0)
            return inner;
    }
    return rc;
}

/* Calls `inner` for every field of a message that has the number 1. */
static int walk_message(struct walk *walk, uint64_t at, uint64_t end,
                        int (*inner)(struct walk *walk, uint64_t at, uint64_t end))
{
    struct field field;
    int rc;
    while ((rc = next_field(walk, &at, end, &field)) > 0)
        if (field.number == 1 && field.wire == WIRE_BYTES) {
            rc = inner(walk, field.begin, field.end);
            if (rc < 0)
                return rc;
        }
    return rc;
}

static int walk_features(struct walk *walk, uint64_t at, uint64_t end)
{
    return walk_message(walk, at, end, walk_entry);
}

static struct walk *begin_walk(const struct weir_raw_file *source, uint64_t end)
{
    struct walk *walk = malloc(sizeof *walk);
    if (!walk)
        return NULL;
    walk->source = source;
    walk->example = NULL;
    walk->end = end;
    walk->window_at = walk->window_end = walk->integers = 0;
    walk->reason = NULL;
    return walk;
}

int weir_example_walk(struct weir_example *example, const struct weir_raw_file *source, uint64_t begin, uint64_t end,
                      const char **reason)
{
    struct walk *walk = begin_walk(source, end);
    *example = (struct weir_example){0};
    if (!walk)
        return -ENOMEM;
    walk->example = example;
    int rc = walk_message(walk, begin, end, walk_features);
    *reason = walk->reason;
    free(walk);
    if (rc < 0)
        weir_example_free(example);
    return rc;
}

void weir_example_free(struct weir_example *example)
{
    for (int i = 0; i < example->n; i++)
        free(example->features[i].ranges);
    free(example->features);
    *example = (struct weir_example){0};
}

/* If several features have this name, returns the last one, as in a map. */
const struct weir_feature *weir_example_find(const struct weir_example *example, const char *name)
{
    for (int i = example->n - 1; i >= 0; i--)
        if (strcmp(example->features[i].name, name) == 0)
            return &example->features[i];
    return NULL;
}

int weir_feature_floats(const struct weir_feature *feature, const struct weir_raw_file *source, float *values)
{
    for (size_t i = 0; i < feature->n_ranges; i++) {
        const struct weir_byte_range *range = &feature->ranges[i];
        int rc = source->read(source->user, range->offset, values, (size_t)range->length);
        if (rc < 0)
            return rc;
        values += range->length / sizeof(float);
    }
    return 0;
}

int weir_feature_integers(const struct weir_feature *feature, const struct weir_raw_file *source, int64_t *values)
{
    uint64_t end = 0, value;
    for (size_t i = 0; i < feature->n_ranges; i++) {
        uint64_t behind = feature->ranges[i].offset + feature->ranges[i].length;
        end = behind > end ? behind : end;
    }
    struct walk *walk = begin_walk(source, end);
    int rc = walk ? 0 : -ENOMEM;
    for (size_t i = 0; i < feature->n_ranges && rc == 0; i++) {
        uint64_t at = feature->ranges[i].offset, behind = at + feature->ranges[i].length;
        while (rc == 0 && at < behind) {
            rc = varint(walk, &at, behind, &value);
            *values++ = (int64_t)value;
        }
    }
    free(walk);
    return rc;
}
