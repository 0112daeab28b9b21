/* prepare_reference.h: what weir_gpu_ops.prepare must compute, in plain C, slowly and obviously. */
#ifndef WEIR_TESTS_PREPARE_REFERENCE_H
#define WEIR_TESTS_PREPARE_REFERENCE_H

#include "pipeline/gpu_ops.h"

/* Every pointer in it, those of sources and taps too, is to memory of the host. */
void prepare_reference(const struct weir_gpu_prepare *prepare);

/* One source of width x height as interleaved RGB, width x height x 3. */
void prepare_reference_rgb(const struct weir_gpu_source *source, int width, int height, uint8_t *rgb);

/* Rounded to nearest even. */
uint16_t prepare_reference_f16(float value);
uint16_t prepare_reference_bf16(float value);

/* Size of the chroma planes of this kind. */
int prepare_chroma_width(uint32_t kind, int width);
int prepare_chroma_height(uint32_t kind, int height);

size_t prepare_value_bytes(enum weir_gpu_dtype dtype);

#endif
