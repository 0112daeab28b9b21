/* tfrecord_writer_priv.h: shared by the parts of the TFRecord writer: the features of an episode's tf.train.Example,
 * and the JSON files beside the records. */
#ifndef WEIR_DATASETS_TFRECORD_TFRECORD_WRITER_PRIV_H
#define WEIR_DATASETS_TFRECORD_TFRECORD_WRITER_PRIV_H

#include "base/spool.h"
#include "datasets/writer.h"

enum { WEIR_TFW_NAME_MAX = 128 /* including the final zero, same as the reader's */ };

/* Names of text features, sorted; later episodes may add some. */
struct weir_tfw_texts {
    char (*names)[WEIR_TFW_NAME_MAX];
    int n;
};

/* Returns the feature of a text: "steps/language_instruction" for instructions, which RLDS repeats in each step; else
 * "episode_metadata/file_path". False: texts of this key are not written. */
bool weir_tfw_text_feature(const char *key, char name[WEIR_TFW_NAME_MAX]);
/* "steps/observation/cam_high". */
void weir_tfw_camera_feature(const struct weir_copy_camera *camera, char name[WEIR_TFW_NAME_MAX]);

/* Adds a name. 1; 0 when it exists, or the list is full; -ENOMEM. */
int weir_tfw_add_text(struct weir_tfw_texts *texts, const char *name);

/* Writes tensorflow_datasets' features.json to folder, under a temporary name, and renames it. */
int weir_tfw_write_features(const char *folder, const struct weir_copy *copy, const struct weir_tfw_texts *texts,
                            struct weir_err *err);
/* Reads the texts of features.json in folder; none when the file is missing. */
int weir_tfw_read_features(const char *folder, struct weir_tfw_texts *texts, struct weir_err *err);
/* Writes dataset_info.json, which tensorflow_datasets needs to open a folder. */
int weir_tfw_write_info(const char *folder, const char *dataset, const char *split, int episodes, uint64_t bytes,
                        struct weir_err *err);

/* ---- records ---- */

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
