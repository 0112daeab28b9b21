/* verify.h: reads and decodes every frame of a dataset, and says what is wrong or odd, in an order that depends on
 * the data alone. Of the format it knows what weir_dataset_* return: another one needs nothing here. */
#ifndef WEIR_PIPELINE_VERIFY_VERIFY_H
#define WEIR_PIPELINE_VERIFY_VERIFY_H

#include "weir/dataset.h"

#include <stdbool.h>
#include <stdint.h>

enum weir_finding_kind {
    /* what a run would fail on */
    WEIR_FOUND_EPISODE,  /* cannot be opened, state and actions that are not finite included; or does not fit the others
                          */
    WEIR_FOUND_FRAME,    /* cannot be read or decoded */
    WEIR_FOUND_SIZE,     /* a frame that is not of its camera's size */
    WEIR_FOUND_FILE,     /* changed while it was read */
    WEIR_FOUND_CHECKSUM, /* a part of a file whose checksum is wrong (weir_dataset_check_file); not with fast */
    /* remarks */
    WEIR_FOUND_FILL,      /* a frame of which a chunk was never written, or is lost: the fill value is delivered */
    WEIR_FOUND_OUTLIER,   /* a value of state or actions that is far from all others of its dimension */
    WEIR_FOUND_STILL,     /* all pictures of a camera in an episode are the same */
    WEIR_FOUND_REPEAT,    /* a picture repeats for many steps */
    WEIR_FOUND_DIMENSION, /* of state or actions: has one value in all of the dataset */
    WEIR_FOUND_NOTE,      /* what weir_dataset_note says, and episodes that were cut (allow_ragged) */
    WEIR_FOUND_KINDS
};

/* "episode", "frame", ... */
const char *weir_finding_name(enum weir_finding_kind kind);
bool weir_finding_is_remark(enum weir_finding_kind kind);

struct weir_finding {
    enum weir_finding_kind kind;
    const char *text;          /* the whole line, printable: "FILE: DATASET[t]: why", or DATASET[first..last] */
    const char *file;          /* NULL where the text alone has it, as have the following */
    const char *dataset;       /* NULL = of the file as a whole */
    int t, frames;             /* first frame, and how many in a row; -1 and 0 where it is about none */
    int dimension, dimensions; /* of state or actions: the first, and how many side by side; -1 and 0 = none */
    const char *why;
};

enum { WEIR_VERIFY_REPEAT_STEPS = 30 };

struct weir_verify_config {
    int workers;      /* threads; 0 = one per usable core */
    bool fast;        /* headers and extents only: no frame is decoded, raw ones are not read */
    const char *io;   /* NULL = the default engine */
    const char *data; /* what findings about the whole dataset name as their file */
    int repeat_steps; /* so many steps of the same picture are a finding; 0 = WEIR_VERIFY_REPEAT_STEPS */
    /* Both from the calling thread; finding is lent until the call returns. */
    void (*found)(void *user, const struct weir_finding *finding);
    void (*progress)(void *user, uint64_t done, uint64_t total); /* frames; may be NULL */
    void *user;
};

/* What was looked at, and the findings; weir_verify adds to it. */
struct weir_verify_totals {
    uint64_t episodes, frames, bytes; /* bytes: of frames as stored, as far as they were read */
    uint64_t bad_frames;              /* frames of findings WEIR_FOUND_FRAME and WEIR_FOUND_SIZE */
    uint64_t found[WEIR_FOUND_KINDS];
};

/* Frames by episode, camera and t, then what is about files (checksums, changes), then about the dataset. 0 however
 * much was found; negative when the machine lacks something (base/shortage.h): what was found until then was reported.
 */
int weir_verify(struct weir_dataset *dataset, const struct weir_verify_config *config,
                struct weir_verify_totals *totals, struct weir_err *err);

/* Reports one that cannot be opened: text is "FILE: why". */
void weir_verify_bad_episode(const struct weir_verify_config *config, struct weir_verify_totals *totals,
                             const char *text);

#endif
