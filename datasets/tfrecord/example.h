/* example.h: walks a tf.train.Example in a file without reading the bytes of its images.
 *
 * The message (tensorflow/core/example/example.proto, feature.proto) in protocol buffers' wire format: Example has one
 * Features (field 1). Features is a map, whose entries have a name (1) and a Feature (2). A Feature is a BytesList (1),
 * a FloatList (2) or an Int64List (3), with its values in field 1: bytes one by one, numbers packed or one by one. A
 * message may come in pieces, which are merged; unknown fields are ignored.
 *
 * Every byte is hostile: nothing outside [begin, end) is read, and the bytes there bound allocations. */
#ifndef WEIR_DATASETS_TFRECORD_EXAMPLE_H
#define WEIR_DATASETS_TFRECORD_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_FEATURE_NAME_MAX = 128, WEIR_FEATURES_MAX = 512 };

enum weir_feature_kind { WEIR_FEATURE_NONE, WEIR_FEATURE_BYTES, WEIR_FEATURE_FLOATS, WEIR_FEATURE_INTEGERS };

struct weir_byte_range {
    uint64_t offset, length; /* in the file */
};

struct weir_feature {
    char name[WEIR_FEATURE_NAME_MAX]; /* truncated if longer */
    enum weir_feature_kind kind;
    uint64_t n;                     /* number of values */
    struct weir_byte_range *ranges; /* bytes: one range per value; numbers: one per run, packed or single */
    size_t n_ranges;
};

struct weir_example {
    struct weir_feature *features;
    int n;
};

/* Reads [offset, offset + n) of the file; 0 or a negative code. */
struct weir_byte_source {
    int (*read)(void *user, uint64_t offset, void *buffer, size_t n);
    void *user;
};

/* 0; -EBADMSG with *reason (static text) for another message; -ENOMEM; or an error of reading. */
int weir_example_walk(struct weir_example *example, const struct weir_byte_source *source, uint64_t begin, uint64_t end,
                      const char **reason);
void weir_example_free(struct weir_example *example);
const struct weir_feature *weir_example_find(const struct weir_example *example, const char *name);

/* Reads all feature->n values of a FloatList. 0, or a negative code. */
int weir_feature_floats(const struct weir_feature *feature, const struct weir_byte_source *source, float *values);
/* The same for an Int64List. */
int weir_feature_integers(const struct weir_feature *feature, const struct weir_byte_source *source, int64_t *values);

#endif
