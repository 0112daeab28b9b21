/* verify.h: reads and decodes every frame of a dataset and reports faults and anomalies, in an order that depends only
 * on the data. It uses only weir_dataset_* functions, so new formats need no changes here. */
#ifndef WEIR_PIPELINE_VERIFY_VERIFY_H
#define WEIR_PIPELINE_VERIFY_VERIFY_H

#include "weir/dataset.h"

#include <stdbool.h>
#include <stdint.h>

enum weir_finding_kind {
    /* Unreadable data, which makes a run fail: */
    WEIR_FOUND_EPISODE,  /* cannot be opened, has non-finite state or actions, or does not match the other episodes */
    WEIR_FOUND_FRAME,    /* cannot be read or decoded */
    WEIR_FOUND_SIZE,     /* size of a frame differs from that of its camera */
    WEIR_FOUND_FILE,     /* the file changed while it was read */
    WEIR_FOUND_CHECKSUM, /* a part of a file has a wrong checksum (weir_dataset_check_file); not checked with fast */
    WEIR_FOUND_DENIED,   /* this user has no permission to read a file or folder, so nothing is known about the data */
    /* Wrong data, which makes training wrong: */
    WEIR_FOUND_TABLE,  /* tables of the dataset disagree */
    WEIR_FOUND_VIDEO,  /* the pictures of a video do not match the rows */
    WEIR_FOUND_NUMBER, /* not finite, in a column that loading does not check */
    WEIR_FOUND_STATS,  /* recorded statistics do not fit the data */
    /* Remarks: */
    WEIR_FOUND_FILL,       /* a chunk of the frame was never written or is lost; readers get the fill value */
    WEIR_FOUND_OUTLIER,    /* state or action value far from all others of its dimension */
    WEIR_FOUND_STILL,      /* all images of a camera in an episode are equal */
    WEIR_FOUND_REPEAT,     /* an image repeats for many steps */
    WEIR_FOUND_DIMENSION,  /* a dimension of state or actions has only one value in the whole dataset */
    WEIR_FOUND_KEY_FRAMES, /* key frames so far apart that a random frame costs many decoded pictures */
    WEIR_FOUND_NOTE,       /* note from weir_dataset_note, or truncated episodes (allow_ragged) */
    WEIR_FOUND_KINDS
};

/* Returns the name of the kind: "episode", "frame", ... */
const char *weir_finding_name(enum weir_finding_kind kind);
/* Returns what n findings of the kind are, in the singular or plural: "episodes", "range of frames", ... */
const char *weir_finding_noun(enum weir_finding_kind kind, uint64_t n);

enum weir_finding_class { WEIR_FINDING_UNREADABLE, WEIR_FINDING_WRONG, WEIR_FINDING_REMARK };
enum weir_finding_class weir_finding_class(enum weir_finding_kind kind);

struct weir_finding {
    enum weir_finding_kind kind;
    const char *text;    /* the whole line, printable: "FILE: DATASET[t]: why" or "FILE: DATASET[first..last]: why" */
    const char *file;    /* NULL = unknown, such as a file that was removed; the members below are then unset too */
    const char *dataset; /* NULL = the file as a whole */
    int t, frames;       /* first frame and number of frames; -1 and 0 if the finding is not about frames */
    int dimension, dimensions; /* first dimension of state or actions, and number of adjacent ones; -1 and 0 = none */
    const char *why;
};

enum { WEIR_VERIFY_REPEAT_STEPS = 30 };

struct weir_verify_config {
    int workers; /* number of threads; 0 = one per usable core */
    bool fast;   /* check only headers and extents: decode nothing, and read no raw frames */
    enum weir_on_warning on_warning;
    const char *io;       /* NULL = the default engine */
    const char *data;     /* file name for findings about the whole dataset */
    const char *episodes; /* as in the dataset's weir_dataset_config */
    int repeat_steps;     /* number of equal consecutive images that is a finding; 0 = WEIR_VERIFY_REPEAT_STEPS */
    /* Both are called on the calling thread. finding is valid only during the call. */
    void (*found)(void *user, const struct weir_finding *finding);
    void (*progress)(void *user, uint64_t done, uint64_t total); /* in frames; may be NULL */
    void *user;
};

/* Numbers of checked items and of findings. weir_verify adds to them. */
struct weir_verify_totals {
    uint64_t episodes, frames, bytes; /* bytes: stored bytes of the frames that were read */
    uint64_t bad_frames;              /* number of frames in findings WEIR_FOUND_FRAME and WEIR_FOUND_SIZE */
    uint64_t warned_frames;           /* number of frames decoded despite a harmless flaw */
    uint64_t found[WEIR_FOUND_KINDS];
};

/* Reports bad episodes first, then findings about frames (by episode, camera and t), then those about files (checksums,
 * tables, changes), then those about the dataset. Returns 0 even if there are findings. On a resource shortage
 * (base/shortage.h), reports the findings so far and returns negative. */
int weir_verify(struct weir_dataset *dataset, const struct weir_verify_config *config,
                struct weir_verify_totals *totals, struct weir_err *err);

/* Reports an episode that cannot be opened, as WEIR_FOUND_EPISODE or WEIR_FOUND_DENIED. text is "FILE: why". */
void weir_verify_bad_episode(const struct weir_verify_config *config, struct weir_verify_totals *totals,
                             const char *text);

#endif
