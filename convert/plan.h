/* plan.h: the plan of a copy: its cameras and their codecs, its number types, and its episodes. */
#ifndef WEIR_CONVERT_PLAN_H
#define WEIR_CONVERT_PLAN_H

#include "convert/convert_dataset.h"
#include "datasets/writer.h"
#include "pipeline/samples/probe.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stdint.h>

/* How a camera's frames are converted. */
enum weir_make {
    WEIR_MAKE_COPY,   /* copied unchanged */
    WEIR_MAKE_PIXELS, /* decoded to raw frames */
    WEIR_MAKE_JPEG,
    WEIR_MAKE_PNG,
};

struct weir_convert_plan {
    struct weir_dataset *dataset; /* dataset and config are borrowed */
    const struct weir_convert_config *config;
    const struct weir_writer_ops *ops;
    struct weir_copy copy;
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    enum weir_make makes[WEIR_CAMERAS_MAX];
    bool is_depth[WEIR_CAMERAS_MAX], is_resized[WEIR_CAMERAS_MAX];
    bool swaps;    /* red and blue of decoded frames must be swapped */
    int *episodes; /* source numbers of the copy.n_episodes episodes, in the copy's order; owned */
};

/* Plans a copy. Returns 0; -EINVAL if the format cannot store the dataset, and err then names the option to change; or
 * another negative code. */
int weir_plan_open(struct weir_convert_plan *plan, struct weir_dataset *dataset,
                   const struct weir_convert_config *config, struct weir_err *err);
void weir_plan_close(struct weir_convert_plan *plan);

uint64_t weir_plan_frames(const struct weir_convert_plan *plan);

/* Stores the states or actions of an episode of the copy in *values, in the copy's number type; free it afterwards.
 * Returns -EINVAL if a value does not fit and config->allow_narrowing is not set. */
int weir_plan_numbers(const struct weir_convert_plan *plan, int episode, bool actions, void **values,
                      struct weir_err *err);

/* Returns the minimum size of the copy in bytes; 0: unknown. */
uint64_t weir_plan_bytes(const struct weir_convert_plan *plan);

/* ---- compare.c: opens a copy as any reader would, and compares every sample with the converted source. */

/* path: the copy. Numbers, strings and frames must be identical; for PNGs, their pixels must be identical. Stores the
 * loss of new JPEGs in report. Returns 0, or -EBADMSG with the first difference, or another negative code. */
int weir_convert_compare(const struct weir_convert_plan *plan, const char *path, int workers,
                         struct weir_convert_report *report, struct weir_err *err);

/* ---- partial.c: an unfinished copy. The copy is written under its final name in the folder "TARGET.partial", together
 * with state.json, which identifies the source and the options. The complete copy is moved to TARGET. */

struct weir_partial {
    const char *target;          /* borrowed */
    char *folder, *state, *copy; /* paths of the folder, of state.json, and of the copy inside the folder */
    int lock;                    /* descriptor of state.json, which is locked until close */
    bool is_there;               /* a partial copy from an interrupted call exists */
};

/* Reserves the target for this process. Returns 0; -EEXIST if the target exists; -EBUSY if another process is writing
 * it; -EINVAL if the folder contains other files; -ELOOP if the partial copy contains a link or a special file; or
 * another negative code. */
int weir_partial_open(struct weir_partial *partial, const char *target, struct weir_err *err);
/* Writes state, a string that identifies the copy, or compares it with that of an existing partial copy. Returns
 * -EINVAL if they differ. */
int weir_partial_begin(struct weir_partial *partial, const char *state, struct weir_err *err);
/* Removes the partial copy. */
int weir_partial_clear(struct weir_partial *partial, struct weir_err *err);
/* Moves the complete copy to the target. */
int weir_partial_finish(struct weir_partial *partial, struct weir_err *err);
/* Releases the lock. Removes the folder unless it contains a copy that the next call can resume. */
void weir_partial_close(struct weir_partial *partial);

/* Returns the total size of all files at and below path. */
uint64_t weir_partial_bytes(const char *path);

#endif
