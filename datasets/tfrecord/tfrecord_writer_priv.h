/* tfrecord_writer_priv.h: what the parts of the TFRecord writer share: which features an episode's tf.train.Example
 * has, and the JSON files beside the records. */
#ifndef WEIR_DATASETS_TFRECORD_TFRECORD_WRITER_PRIV_H
#define WEIR_DATASETS_TFRECORD_TFRECORD_WRITER_PRIV_H

#include "datasets/writer.h"

enum { WEIR_TFW_NAME_MAX = 128 /* with its final zero, as the reader has it */ };

/* Names of the features that texts are in, sorted: the first episodes' may be fewer than the last ones'. */
struct weir_tfw_texts {
    char (*names)[WEIR_TFW_NAME_MAX];
    int n;
};

/* The feature of a text: "steps/language_instruction" for what is said to the robot, which RLDS repeats in each step;
 * else "episode_metadata/file_path". False: a text of this key is not kept. */
bool weir_tfw_text_feature(const char *key, char name[WEIR_TFW_NAME_MAX]);
/* "steps/observation/cam_high". */
void weir_tfw_camera_feature(const struct weir_copy_camera *camera, char name[WEIR_TFW_NAME_MAX]);

/* Adds a name that is not there yet: 1; 0 when it is, or there are too many; -ENOMEM. */
int weir_tfw_add_text(struct weir_tfw_texts *texts, const char *name);

/* features.json of folder, as tensorflow_datasets writes it; written aside and renamed. */
int weir_tfw_write_features(const char *folder, const struct weir_copy *copy, const struct weir_tfw_texts *texts,
                            struct weir_err *err);
/* The texts in features.json of folder; none when there is no such file. */
int weir_tfw_read_features(const char *folder, struct weir_tfw_texts *texts, struct weir_err *err);
/* dataset_info.json: what tensorflow_datasets opens a folder by. */
int weir_tfw_write_info(const char *folder, const char *dataset, const char *split, int episodes, uint64_t bytes,
                        struct weir_err *err);

#endif
