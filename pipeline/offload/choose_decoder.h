/* choose_decoder.h: chooses the decoder for --decoder auto. Times the CPU's cores and the GPU's JPEG engines on some of
 * the dataset's frames, for a tenth of a second each, or two frames per core where that takes longer. */
#ifndef WEIR_PIPELINE_OFFLOAD_CHOOSE_DECODER_H
#define WEIR_PIPELINE_OFFLOAD_CHOOSE_DECODER_H

#include <stdbool.h>

struct weir_shared;
struct weir_decoder_choice;

/* Returns whether any camera of any episode has JPEGs. The CPU decodes everything else, whatever the decoder. */
bool weir_has_jpegs(const struct weir_shared *shared);

/* Fills everything but requested. gpu: the GPU's number; -1 = none: nothing is measured. The dataset and its probes are
 * open. If the GPU cannot decode, the choice is the CPU, and `why` has the reason; this is not an error. The next user
 * of a lost GPU gets its error. */
void weir_choose_decoder(struct weir_decoder_choice *choice, const struct weir_shared *shared, int gpu);

#endif
