/* choose_decoder.h: which decoder --decoder auto takes: what the CPU's cores and the GPU's JPEG engines make of some of
 * the dataset's frames in a tenth of a second each, or two frames a core where that takes longer. */
#ifndef WEIR_PIPELINE_GPU_CHOOSE_DECODER_H
#define WEIR_PIPELINE_GPU_CHOOSE_DECODER_H

#include <stdbool.h>

struct weir_shared;

struct weir_decoder_choice {
    const char *requested;     /* as the configuration has it; borrowed */
    const char *decoder;       /* of "auto": "turbo", "nvjpeg" or "hybrid" */
    double cpu_rate, gpu_rate; /* frames a second; 0 = not tried */
    char why[512];             /* a sentence; of a decoder that was named, why it has nothing to do */
};

/* Whether any camera of any episode has JPEGs: all else is the CPU's, whatever the decoder. */
bool weir_has_jpegs(const struct weir_shared *shared);

/* Fills all but requested. gpu: the GPU's number; -1 = none, and nothing is tried. The dataset and its probes are open.
 * What keeps a GPU from decoding is why the CPU does it, and no error; a lost GPU is met again by who uses it next. */
void weir_choose_decoder(struct weir_decoder_choice *choice, const struct weir_shared *shared, int gpu);

#endif
