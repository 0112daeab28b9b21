/* features.h: what features.json, which tensorflow_datasets writes beside the TFRecord files of a dataset, says about
 * their features: a record has values without a shape. */
#ifndef WEIR_DATASETS_TFRECORD_FEATURES_H
#define WEIR_DATASETS_TFRECORD_FEATURES_H

#include "datasets/tfrecord/example.h"
#include "weir/base.h"

enum weir_stated_kind { WEIR_STATED_NUMBERS, WEIR_STATED_IMAGE, WEIR_STATED_TEXT, WEIR_STATED_OTHER };

/* One feature as features.json has it. */
struct weir_stated_feature {
    char name[WEIR_FEATURE_NAME_MAX]; /* as in a record: "steps/observation/state" */
    enum weir_stated_kind kind;
    uint64_t values; /* numbers: of one step, the product of its shape; 0 = not known */
};

struct weir_stated_features {
    struct weir_stated_feature *features;
    int n;
};

/* Parses the text of a features.json (n bytes, hostile). -EBADMSG with err, which begins with the file's name: it is no
 * JSON, or of another structure. */
int weir_stated_parse(struct weir_stated_features *stated, const char *text, size_t n, struct weir_err *err);
/* Of the file features.json in the folder of this path; without one there are none, and that is fine. */
int weir_stated_read(struct weir_stated_features *stated, const char *beside, struct weir_err *err);
void weir_stated_free(struct weir_stated_features *stated);
/* NULL: it says nothing about it. */
const struct weir_stated_feature *weir_stated_find(const struct weir_stated_features *stated, const char *name);

#endif
