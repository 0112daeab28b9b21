/* tfrecord_writer_priv.h: declarations that the parts of the TFRecord writer share: the features of an episode's
 * tf.train.Example, and the JSON files next to the records. */
#ifndef WEIR_DATASETS_TFRECORD_TFRECORD_WRITER_PRIV_H
#define WEIR_DATASETS_TFRECORD_TFRECORD_WRITER_PRIV_H

#include "base/files.h"
#include "datasets/writer.h"

enum { WEIR_TFW_NAME_MAX = 128 /* including the final zero; same limit as the reader's */ };

/* Names of the string features, sorted. Later episodes may add names. */
struct weir_tfw_texts {
    char (*names)[WEIR_TFW_NAME_MAX];
    int n;
};

/* Writes the feature name of a metadata string. For instructions, it is "steps/language_instruction", which RLDS
 * repeats in each step. For other strings, it is a name like "episode_metadata/file_path". Returns false if strings
 * with this key are not written. */
bool weir_tfw_text_feature(const char *key, char name[WEIR_TFW_NAME_MAX]);
/* Writes a feature name such as "steps/observation/cam_high". */
void weir_tfw_camera_feature(const struct weir_copy_camera *camera, char name[WEIR_TFW_NAME_MAX]);

/* Adds a name. Returns 1; 0 if the name already exists or the list is full; -ENOMEM. */
int weir_tfw_add_text(struct weir_tfw_texts *texts, const char *name);

/* Writes features.json for tensorflow_datasets to a temporary file in the copy's folder, and renames it. */
int weir_tfw_write_features(const struct weir_writer *writer, const struct weir_tfw_texts *texts, struct weir_err *err);
/* Reads the string features from features.json in the copy's folder. If the file is missing, there are none. */
int weir_tfw_read_features(const struct weir_writer *writer, struct weir_tfw_texts *texts, struct weir_err *err);
/* Writes dataset_info.json, which tensorflow_datasets needs in order to open a folder. */
int weir_tfw_write_info(const struct weir_writer *writer, const char *dataset, const char *split, int episodes,
                        uint64_t bytes, struct weir_err *err);

/* ---- records ---- */

/* Lists of a Feature; the first three values are field numbers. Strings are stored as bytes, like frames. */
enum weir_list_kind { WEIR_LIST_FRAMES = 1, WEIR_LIST_FLOATS = 2, WEIR_LIST_INTEGERS = 3, WEIR_LIST_TEXTS = 4 };

enum { WEIR_LIST_NAME_MAX = 128 /* including the final zero; same limit as the reader's */ };

struct weir_list {
    char name[WEIR_LIST_NAME_MAX];
    enum weir_list_kind kind;
    uint64_t n; /* number of values */
    union {
        const void *values; /* float or int64_t */
        const char *text;   /* a string, repeated n times */
        size_t first;       /* number of the first frame in the spool */
    };
    uint64_t bytes; /* size of the list; set by weir_record_bytes */
};

struct weir_record_writer {
    int fd;
    const struct weir_spool *spool;
    uint8_t *buffer;
    size_t buffered;
    uint64_t at; /* file offset of the buffer */
    uint32_t crc;
    uint8_t *frame; /* grows as needed */
    size_t frame_bytes;
};

/* Returns 0 or -ENOMEM. fd and spool are borrowed. */
int weir_record_open(struct weir_record_writer *w, int fd, const struct weir_spool *spool);
/* Also accepts a zeroed writer. */
void weir_record_close(struct weir_record_writer *w);

/* Returns the size of the message that contains these lists. */
uint64_t weir_record_bytes(const struct weir_record_writer *w, struct weir_list *lists, int n);
/* Writes the lists as a record with checksums at this offset; *end becomes the offset after the record. Call
 * weir_record_bytes first: its result must be less than 2 GiB. Returns 0 or -errno; err is set only if the spool could
 * not be read. */
int weir_record_put(struct weir_record_writer *w, const struct weir_list *lists, int n, uint64_t at, uint64_t *end,
                    struct weir_err *err);

#endif
