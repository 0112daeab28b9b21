/* record_write_priv.h: writes a tf.train.Example as one record of a TFRecord file. A message starts with its length, so
 * all features must be known before the first byte is written: frames wait in a spool. */
#ifndef WEIR_DATASETS_TFRECORD_RECORD_WRITE_PRIV_H
#define WEIR_DATASETS_TFRECORD_RECORD_WRITE_PRIV_H

#include "base/spool.h"

/* Lists of a Feature, by field number; texts are stored as bytes, like frames. */
enum weir_list_kind { WEIR_LIST_FRAMES = 1, WEIR_LIST_FLOATS = 2, WEIR_LIST_INTEGERS = 3, WEIR_LIST_TEXTS = 4 };

enum { WEIR_LIST_NAME_MAX = 128 /* including the final zero, same as the reader's */ };

struct weir_list {
    char name[WEIR_LIST_NAME_MAX];
    enum weir_list_kind kind;
    uint64_t n; /* number of values */
    union {
        const void *values; /* float or int64_t */
        const char *text;   /* repeated n times */
        size_t first;       /* number of the first frame in the spool */
    };
    uint64_t bytes; /* of the list; set by weir_record_bytes */
};

struct weir_record_writer {
    int fd;
    const struct weir_spool *spool;
    uint8_t *buffer;
    size_t buffered;
    uint64_t at; /* file offset of the buffer */
    uint32_t crc;
    uint8_t *frame; /* grows */
    size_t frame_bytes;
};

/* 0 or -ENOMEM. fd and spool are borrowed. */
int weir_record_open(struct weir_record_writer *w, int fd, const struct weir_spool *spool);
/* A zeroed writer may be closed. */
void weir_record_close(struct weir_record_writer *w);

/* Returns the size of the message of these lists. */
uint64_t weir_record_bytes(const struct weir_record_writer *w, struct weir_list *lists, int n);
/* Writes the lists as a record at this offset, with checksums; *end is the offset after it. Call weir_record_bytes
 * first: it must return less than 2 GiB. 0, or -errno; err is set only when the spool could not be read. */
int weir_record_put(struct weir_record_writer *w, const struct weir_list *lists, int n, uint64_t at, uint64_t *end,
                    struct weir_err *err);

#endif
