/* features.h: reads features.json, which tensorflow_datasets writes beside TFRecord files: the shapes of features,
 * which records lack. */
#ifndef WEIR_DATASETS_TFRECORD_FEATURES_H
#define WEIR_DATASETS_TFRECORD_FEATURES_H

#include "datasets/store.h"
#include "datasets/tfrecord/example.h"
#include "weir/base.h"

enum weir_stated_kind { WEIR_STATED_NUMBERS, WEIR_STATED_IMAGE, WEIR_STATED_TEXT, WEIR_STATED_OTHER };

/* A feature of features.json. */
struct weir_stated_feature {
    char name[WEIR_FEATURE_NAME_MAX]; /* as in a record: "steps/observation/state" */
    enum weir_stated_kind kind;
    uint64_t values; /* numbers per step, the product of the shape; 0 = unknown */
};

struct weir_stated_features {
    struct weir_stated_feature *features;
    int n;
};

/* Parses the text of a features.json (n bytes, hostile). -EBADMSG, with err beginning with the file's name, for
 * malformed JSON or another structure. */
int weir_stated_parse(struct weir_stated_features *stated, const char *text, size_t n, struct weir_err *err);
/* Reads features.json in the folder of this path; a missing file gives no features and no error. */
int weir_stated_read(struct weir_stated_features *stated, const char *beside, struct weir_err *err);
void weir_stated_free(struct weir_stated_features *stated);
/* Returns NULL for unlisted features. */
const struct weir_stated_feature *weir_stated_find(const struct weir_stated_features *stated, const char *name);

/* ---- an episode as a store ---- */

struct weir_rlds_store {
    struct weir_store store;
    struct weir_example example;
    const struct weir_byte_source *source;
    const struct weir_stated_features *stated;
    uint64_t steps; /* weir_rlds_steps of the example */
};

extern const struct weir_store_ops weir_store_rlds;

/* Returns the number of steps, by is_first or, without it, by the images. 0: neither exists. */
uint64_t weir_rlds_steps(const struct weir_example *example);

#endif
