/* plan.h: what a copy will be: its cameras and their codecs, its types of numbers, its episodes. */
#ifndef WEIR_CONVERT_PLAN_H
#define WEIR_CONVERT_PLAN_H

#include "convert/convert_dataset.h"
#include "datasets/writer.h"
#include "pipeline/samples/probe.h"

/* What is done to the frames of a camera. */
enum weir_make {
    WEIR_MAKE_COPY,   /* their bytes are the copy's */
    WEIR_MAKE_PIXELS, /* decoded: raw frames */
    WEIR_MAKE_JPEG,
    WEIR_MAKE_PNG,
};

struct weir_convert_plan {
    struct weir_dataset *dataset; /* borrowed, as is config */
    const struct weir_convert_config *config;
    const struct weir_writer_ops *ops;
    struct weir_copy copy;
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    enum weir_make makes[WEIR_CAMERAS_MAX];
    bool is_depth[WEIR_CAMERAS_MAX], is_resized[WEIR_CAMERAS_MAX];
    bool swaps;    /* red and blue of what is decoded are put right */
    int *episodes; /* of the source, in the order of the copy: copy.n_episodes of them; owned */
};

/* -EINVAL when the format cannot hold it, with what to ask for. */
int weir_plan_open(struct weir_convert_plan *plan, struct weir_dataset *dataset,
                   const struct weir_convert_config *config, struct weir_err *err);
void weir_plan_close(struct weir_convert_plan *plan);

uint64_t weir_plan_frames(const struct weir_convert_plan *plan);

/* State or actions of an episode of the copy, in the copy's type; free(*values). -EINVAL when a value is not held by
 * it and config->allow_narrowing is not set. */
int weir_plan_numbers(const struct weir_convert_plan *plan, int episode, bool actions, void **values,
                      struct weir_err *err);

/* Bytes that the copy will take at least; 0 = not known. */
uint64_t weir_plan_bytes(const struct weir_convert_plan *plan);

#endif
