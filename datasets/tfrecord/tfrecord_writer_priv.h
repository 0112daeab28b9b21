/* tfrecord_writer_priv.h: shared by the parts of the TFRecord writer: the features of an episode's tf.train.Example,
 * and the JSON files beside the records. */
#ifndef WEIR_DATASETS_TFRECORD_TFRECORD_WRITER_PRIV_H
#define WEIR_DATASETS_TFRECORD_TFRECORD_WRITER_PRIV_H

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

#endif
