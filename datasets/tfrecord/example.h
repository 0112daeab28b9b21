/* example.h: walks a tf.train.Example in a file without reading the bytes of its images.
 *
 * The message (tensorflow/core/example/example.proto, feature.proto) uses protocol buffers' wire format. An Example
 * contains one Features message (field 1). Features is a map, whose entries have a name (1) and a Feature (2). A
 * Feature is a BytesList (1), a FloatList (2) or an Int64List (3), with its values in field 1. Bytes have one field per
 * value, and numbers are packed or unpacked. A message can be split into pieces, which are merged; unknown fields are
 * ignored.
 *
 * Every byte is hostile: nothing outside [begin, end) is read, and the number of bytes there limits allocations. */
#ifndef WEIR_DATASETS_TFRECORD_EXAMPLE_H
#define WEIR_DATASETS_TFRECORD_EXAMPLE_H

#include "datasets/chunks/chunk_grid.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_FEATURE_NAME_MAX = 128, WEIR_FEATURES_MAX = 512 };

enum weir_feature_kind { WEIR_FEATURE_NONE, WEIR_FEATURE_BYTES, WEIR_FEATURE_FLOATS, WEIR_FEATURE_INTEGERS };

struct weir_byte_range {
    uint64_t offset, length; /* position and size in the file */
};

struct weir_feature {
    char name[WEIR_FEATURE_NAME_MAX]; /* truncated if longer */
    enum weir_feature_kind kind;
    uint64_t n; /* number of values */
    struct weir_byte_range
        *ranges; /* one range per field: a packed field has many numbers, all other fields have one value */
    size_t n_ranges;
};

struct weir_example {
    struct weir_feature *features;
    int n;
};

/* Returns 0; -EBADMSG with *reason (a static string) if the bytes are another message; -ENOMEM; or an error of reading.
 */
int weir_example_walk(struct weir_example *example, const struct weir_raw_file *source, uint64_t begin, uint64_t end,
                      const char **reason);
void weir_example_free(struct weir_example *example);
const struct weir_feature *weir_example_find(const struct weir_example *example, const char *name);

/* Reads all feature->n values of a FloatList. Returns 0 or a negative code. */
int weir_feature_floats(const struct weir_feature *feature, const struct weir_raw_file *source, float *values);
/* Like weir_feature_floats, for an Int64List. */
int weir_feature_integers(const struct weir_feature *feature, const struct weir_raw_file *source, int64_t *values);

/* ---- records.c: the records of a TFRecord file. A record consists of a length (8 bytes, little-endian), the length's
 * masked CRC-32C, data, and the data's masked CRC-32C (tensorflow/core/lib/io/record_writer.h). */

enum { WEIR_RECORD_HEADER = 12, WEIR_RECORD_FOOTER = 4 };

/* The caller frees `at` and `bytes`. */
struct weir_records {
    uint64_t *at; /* file offset of each record's data */
    uint64_t *bytes;
    int n;
};

/* Locates all records of a file and verifies the checksums of their lengths. Reads only a few bytes of each record.
 * After an error, records contains the records before the error. */
int weir_records_find(struct weir_records *records, const struct weir_raw_file *source, uint64_t file_bytes,
                      struct weir_err *err);
void weir_records_free(struct weir_records *records);

/* weir_record_is_whole reads the data of record i. Returns 1 if the checksum matches, 0 if it does not, or an error of
 * reading. buffer: WEIR_RECORD_BUFFER bytes, overwritten. */
enum { WEIR_RECORD_BUFFER = 1 << 20 };
int weir_record_is_whole(const struct weir_records *records, int i, const struct weir_raw_file *source,
                         uint8_t *buffer);

#endif
