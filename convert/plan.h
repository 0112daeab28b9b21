/* plan.h: the plan of a copy: its cameras and their codecs, its number types, and its episodes. */
#ifndef WEIR_CONVERT_PLAN_H
#define WEIR_CONVERT_PLAN_H

#include "convert/convert_dataset.h"
#include "datasets/writer.h"
#include "pipeline/samples/probe.h"

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

/* Opens a copy as any reader would, and compares every sample with the converted source. */

/* path: the copy. Numbers, strings and frames must be identical; for PNGs, their pixels must be identical. Stores the
 * loss of new JPEGs in report. Returns 0, or -EBADMSG with the first difference, or another negative code. */
int weir_convert_compare(const struct weir_convert_plan *plan, const char *path, int workers,
                         struct weir_convert_report *report, struct weir_err *err);

#endif
