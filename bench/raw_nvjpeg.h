/* raw_nvjpeg.h: plain nvJPEG, batched decoding to interleaved RGB in GPU memory: the limit that Weir's use of it is
 * compared with. One thread per decoder. */
#ifndef WEIR_BENCH_RAW_NVJPEG_H
#define WEIR_BENCH_RAW_NVJPEG_H

#include "decoders/gpu/gpu_jpeg.h"

struct raw_nvjpeg;

/* Opens a decoder on GPU 0. Returns -ENODEV when the library, the engine or (at build time) the header is missing. */
int raw_nvjpeg_open(struct raw_nvjpeg **raw, enum weir_gpu_jpeg_engine engine, int group, struct weir_err *err);
void raw_nvjpeg_close(struct raw_nvjpeg **raw);

/* Queues a group of exactly the size given at open: image i of width x height goes to memory + i x 3 x width x height.
 * The previous group must have finished. */
int raw_nvjpeg_decode(struct raw_nvjpeg *raw, const uint8_t *const *bytes, const size_t *lengths, uint8_t *memory,
                      int width, int height, void *stream, struct weir_err *err);

#endif
