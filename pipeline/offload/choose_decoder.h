/* choose_decoder.h: chooses the decoder for --decoder auto. Times the CPU's cores and the GPU's JPEG engines on some of
 * the dataset's frames, for a tenth of a second each. The CPU's turn is longer if each core needs more time to decode
 * two frames. */
#ifndef WEIR_PIPELINE_OFFLOAD_CHOOSE_DECODER_H
#define WEIR_PIPELINE_OFFLOAD_CHOOSE_DECODER_H

#include <stdbool.h>

struct weir_shared;
struct weir_decoder_choice;

/* Returns whether any camera of any episode has JPEGs. All other frames are decoded by the CPU, whatever the decoder
 * is. */
bool weir_has_jpegs(const struct weir_shared *shared);

/* Fills in all members except `requested`. gpu: number of the GPU; with -1 there is none and nothing is measured. The
 * dataset and its probes must be open. If the GPU cannot decode, the CPU is chosen and `why` contains the reason; this
 * is not an error. A lost GPU is reported to the next function that uses it. */
void weir_choose_decoder(struct weir_decoder_choice *choice, const struct weir_shared *shared, int gpu);

#endif
