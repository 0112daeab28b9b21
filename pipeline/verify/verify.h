/* verify.h: reads and decodes every frame of a dataset and reports faults and anomalies, in an order that depends only
 * on the data. It uses only weir_dataset_* functions, so a new format needs no change here. */
#ifndef WEIR_PIPELINE_VERIFY_VERIFY_H
#define WEIR_PIPELINE_VERIFY_VERIFY_H

#include "weir/dataset.h"

#include <stdbool.h>
#include <stdint.h>

enum weir_finding_kind {
    /* Errors: a run would fail on these. */
    WEIR_FOUND_EPISODE,  /* cannot be opened, has non-finite state or actions, or does not match the other episodes */
    WEIR_FOUND_FRAME,    /* cannot be read or decoded */
    WEIR_FOUND_SIZE,     /* frame size differs from its camera's */
    WEIR_FOUND_FILE,     /* changed while it was read */
    WEIR_FOUND_CHECKSUM, /* wrong checksum of a part of a file (weir_dataset_check_file); not with fast */
    /* Remarks. */
    WEIR_FOUND_FILL,      /* frame with a chunk that was never written, or is lost; the fill value is delivered */
    WEIR_FOUND_OUTLIER,   /* state or action value far from all others of its dimension */
    WEIR_FOUND_STILL,     /* all images of a camera in an episode are equal */
    WEIR_FOUND_REPEAT,    /* an image repeats for many steps */
    WEIR_FOUND_DIMENSION, /* dimension of state or actions with one value in the whole dataset */
    WEIR_FOUND_NOTE,      /* text of weir_dataset_note, and truncated episodes (allow_ragged) */
    WEIR_FOUND_KINDS
};

/* "episode", "frame", ... */
const char *weir_finding_name(enum weir_finding_kind kind);
bool weir_finding_is_remark(enum weir_finding_kind kind);

struct weir_finding {
    enum weir_finding_kind kind;
    const char *text;          /* the whole line, printable: "FILE: DATASET[t]: why", or DATASET[first..last] */
    const char *file;          /* NULL if only the text names it, like the members below */
    const char *dataset;       /* NULL = the file as a whole */
    int t, frames;             /* first frame and number of frames; -1 and 0 if not about frames */
    int dimension, dimensions; /* of state or actions: the first, and the number of adjacent ones; -1 and 0 = none */
    const char *why;
};

enum { WEIR_VERIFY_REPEAT_STEPS = 30 };

struct weir_verify_config {
    int workers;      /* threads; 0 = one per usable core */
    bool fast;        /* checks headers and extents only: decodes nothing, reads no raw frames */
    const char *io;   /* NULL = the default engine */
    const char *data; /* file name in findings about the whole dataset */
    int repeat_steps; /* repeats of an image that make a finding; 0 = WEIR_VERIFY_REPEAT_STEPS */
    /* Both are called from the calling thread; finding is valid during the call. */
    void (*found)(void *user, const struct weir_finding *finding);
    void (*progress)(void *user, uint64_t done, uint64_t total); /* frames; may be NULL */
    void *user;
};

/* Amounts checked, and findings; weir_verify adds to them. */
struct weir_verify_totals {
    uint64_t episodes, frames, bytes; /* bytes: stored bytes of frames that were read */
    uint64_t bad_frames;              /* frames of findings WEIR_FOUND_FRAME and WEIR_FOUND_SIZE */
    uint64_t found[WEIR_FOUND_KINDS];
};

/* Reports frames by episode, camera and t, then findings about files (checksums, changes), then about the dataset.
 * Returns 0 regardless of findings; negative on a resource shortage (base/shortage.h), after reporting the findings so
 * far. */
int weir_verify(struct weir_dataset *dataset, const struct weir_verify_config *config,
                struct weir_verify_totals *totals, struct weir_err *err);

/* Reports an episode that cannot be opened: text is "FILE: why". */
void weir_verify_bad_episode(const struct weir_verify_config *config, struct weir_verify_totals *totals,
                             const char *text);

#endif
