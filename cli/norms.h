/* norms.h: --mean and --std. */
#ifndef WEIR_CLI_NORMS_H
#define WEIR_CLI_NORMS_H

#include "weir/decoder.h"

/* Fills mean and std of the format from "R,G,B" or "imagenet"; NULL = not given: with neither nothing is normalised,
 * with one the other is 0 or 1. -EINVAL: numbers that cannot be, or the format is not f32. */
int weir_norms_parse(struct weir_pixel_format *format, const char *mean, const char *std, struct weir_err *err);

#endif
