/* features.h: reads features.json, which tensorflow_datasets writes next to TFRecord files. It contains the shapes of
 * features, which the records do not contain. */
#ifndef WEIR_DATASETS_TFRECORD_FEATURES_H
#define WEIR_DATASETS_TFRECORD_FEATURES_H

#include "datasets/store.h"
#include "datasets/tfrecord/example.h"
#include "weir/base.h"

struct weir_origin;

enum weir_stated_kind { WEIR_STATED_NUMBERS, WEIR_STATED_IMAGE, WEIR_STATED_TEXT, WEIR_STATED_OTHER };

enum { WEIR_STATED_RANK_MAX = 3 };

/* A feature of features.json. Numbers include images of floats, which tensorflow_datasets stores as PNGs of four
 * channels whose bytes are those of the floats. */
struct weir_stated_feature {
    char name[WEIR_FEATURE_NAME_MAX]; /* name as in a record: "steps/observation/state" */
    enum weir_stated_kind kind;
    uint64_t values; /* numbers per step, the product of the shape; 0 = unknown */
    int rank;        /* of a step; 0 = a scalar, unknown, or over WEIR_STATED_RANK_MAX */
    uint64_t dims[WEIR_STATED_RANK_MAX];
    const char *type; /* "float", "int" or "uint" of numbers */
    size_t type_bytes;
};

struct weir_stated_features {
    struct weir_stated_feature *features;
    int n;
};

/* Parses the contents of a features.json (n bytes, hostile). Returns -EBADMSG for malformed JSON or another structure;
 * err then starts with the file's name. */
int weir_stated_parse(struct weir_stated_features *stated, const char *text, size_t n, struct weir_err *err);
/* Reads features.json in the folder of the path `beside`. A missing file is no error; there are then no features. */
int weir_stated_read(struct weir_stated_features *stated, struct weir_origin *origin, const char *beside,
                     struct weir_err *err);
void weir_stated_free(struct weir_stated_features *stated);
/* Returns NULL for a feature that is not listed. */
const struct weir_stated_feature *weir_stated_find(const struct weir_stated_features *stated, const char *name);

/* ---- an episode as a store ---- */

struct weir_rlds_store {
    struct weir_store store;
    struct weir_example example;
    const struct weir_raw_file *source;
    const struct weir_stated_features *stated;
    uint64_t steps; /* number of steps, from weir_rlds_steps */
};

extern const struct weir_store_ops weir_store_rlds;

/* Returns the number of steps according to is_first or, if that does not exist, to the images. Returns 0 if neither
 * exists. */
uint64_t weir_rlds_steps(const struct weir_example *example);

#endif
