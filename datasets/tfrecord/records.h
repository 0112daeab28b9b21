/* records.h: the records of a TFRecord file. A record consists of a length (8 bytes, little-endian), the length's
 * masked CRC-32C, data, and the data's masked CRC-32C (tensorflow/core/lib/io/record_writer.h). */
#ifndef WEIR_DATASETS_TFRECORD_RECORDS_H
#define WEIR_DATASETS_TFRECORD_RECORDS_H

#include "datasets/tfrecord/example.h"
#include "weir/base.h"

enum { WEIR_RECORD_HEADER = 12, WEIR_RECORD_FOOTER = 4 };

/* The caller frees `at` and `bytes`. */
struct weir_records {
    uint64_t *at; /* file offset of each record's data */
    uint64_t *bytes;
    int n;
};

/* Locates all records of a file and verifies the checksums of their lengths. Reads only a few bytes of each record.
 * After an error, records contains the records before the error. */
int weir_records_find(struct weir_records *records, const struct weir_byte_source *source, uint64_t file_bytes,
                      struct weir_err *err);
void weir_records_free(struct weir_records *records);

/* weir_record_is_whole reads the data of record i. Returns 1 if the checksum matches, 0 if it does not, or an error of
 * reading. buffer: WEIR_RECORD_BUFFER bytes, overwritten. */
enum { WEIR_RECORD_BUFFER = 1 << 20 };
int weir_record_is_whole(const struct weir_records *records, int i, const struct weir_byte_source *source,
                         uint8_t *buffer);

#endif
