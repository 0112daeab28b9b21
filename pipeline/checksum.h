/* checksum.h: one line of text per batch, for comparing settings, machines and versions. A tensor's hash is
 * base/hash.h's over its bytes in memory. */
#ifndef WEIR_PIPELINE_CHECKSUM_H
#define WEIR_PIPELINE_CHECKSUM_H

#include "weir/loader.h"

#include <stdio.h>

/* Prints "epoch 1 train 0 samples 3:17,4:2 images 0123456789abcdef qpos ... actions ... is_pad ..." and a newline.
 * Epochs count from 1; batches, episodes and steps from 0. */
void weir_checksum_line(FILE *out, const struct weir_batch *batch);

#endif
