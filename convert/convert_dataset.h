/* convert_dataset.h: copies a dataset into another format. Threads read, decode and encode; a writer (writer_ops.h)
 * gets the frames from one. */
#ifndef WEIR_CONVERT_CONVERT_DATASET_H
#define WEIR_CONVERT_CONVERT_DATASET_H

#include "datasets/dataset.h"

#include <stdbool.h>
#include <stdint.h>

enum weir_convert_codec { WEIR_CONVERT_KEEP, WEIR_CONVERT_RAW, WEIR_CONVERT_JPEG, WEIR_CONVERT_PNG };

struct weir_convert_config {
    const char *to;     /* name of the copy's format: weir_convert_format */
    const char *target; /* path of the copy; nothing is there */
    enum weir_convert_codec codec;
    int chunk_frames; /* 0 = the format's choice */
    int sample;       /* the first episodes only; 0 = all */
};

struct weir_convert_report {
    int episodes;
    uint64_t frames, frame_bytes; /* as they are in the copy */
};

/* Row i of the table of formats; false past the end. why_not is NULL for one that is built in. */
bool weir_convert_format(int i, const char **name, const char **summary, const char **why_not);

/* Of row i: what a copy's name usually ends with ("" = a folder), and whether frames of this codec ("jpeg": any encoded
 * colour image, "raw", ...) can be in it. */
const char *weir_convert_format_suffix(int i);
bool weir_convert_format_holds(int i, const char *codec);

/* dataset: opened with depth. 0, or negative with err, and nothing is at target. */
int weir_convert(struct weir_dataset *dataset, const struct weir_convert_config *config,
                 struct weir_convert_report *report, struct weir_err *err);

#endif
