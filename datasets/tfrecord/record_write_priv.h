/* record_write_priv.h: writes a tf.train.Example as one record of a TFRecord file. A message has its length in front,
 * so all of its features are known before the first byte is written: frames wait in a spool. */
#ifndef WEIR_DATASETS_TFRECORD_RECORD_WRITE_PRIV_H
#define WEIR_DATASETS_TFRECORD_RECORD_WRITE_PRIV_H

#include "base/spool.h"

/* The lists of a Feature, by their fields; texts are bytes as frames are. */
enum weir_list_kind { WEIR_LIST_FRAMES = 1, WEIR_LIST_FLOATS = 2, WEIR_LIST_INTEGERS = 3, WEIR_LIST_TEXTS = 4 };

enum { WEIR_LIST_NAME_MAX = 128 /* with its final zero, as the reader has it */ };

struct weir_list {
    char name[WEIR_LIST_NAME_MAX];
    enum weir_list_kind kind;
    uint64_t n; /* values */
    union {
        const void *values; /* float or int64_t */
        const char *text;   /* the same n times */
        size_t first;       /* number of the first frame in the spool */
    };
    uint64_t bytes; /* of the list; weir_record_bytes fills it */
};

struct weir_record_writer {
    int fd;
    const struct weir_spool *spool;
    uint8_t *buffer;
    size_t buffered;
    uint64_t at; /* in the file, of the buffer */
    uint32_t crc;
    uint8_t *frame; /* grown */
    size_t frame_bytes;
};

/* 0 or -ENOMEM. fd and spool are borrowed. */
int weir_record_open(struct weir_record_writer *w, int fd, const struct weir_spool *spool);
/* Does nothing for one of zeros. */
void weir_record_close(struct weir_record_writer *w);

/* Bytes of the message that these lists are. */
uint64_t weir_record_bytes(const struct weir_record_writer *w, struct weir_list *lists, int n);
/* Writes them as a record at this offset, with its checksums; *end is where it ends. weir_record_bytes was called, and
 * gave less than 2 GiB. 0, or -errno; err is set only when the spool could not be read. */
int weir_record_put(struct weir_record_writer *w, const struct weir_list *lists, int n, uint64_t at, uint64_t *end,
                    struct weir_err *err);

#endif
