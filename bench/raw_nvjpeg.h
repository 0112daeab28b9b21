/* raw_nvjpeg.h: batched decoding with nvJPEG alone, to interleaved RGB in GPU memory. This is the limit that Weir's use
 * of nvJPEG is compared with. Each decoder can be used by one thread at a time. */
#ifndef WEIR_BENCH_RAW_NVJPEG_H
#define WEIR_BENCH_RAW_NVJPEG_H

#include "decoders/gpu/gpu_jpeg.h"

struct raw_nvjpeg;

/* Opens a decoder on GPU 0. Returns -ENODEV if the library or the engine is missing, or if the header was missing at
 * build time. */
int raw_nvjpeg_open(struct raw_nvjpeg **raw, enum weir_gpu_jpeg_engine engine, int group, struct weir_err *err);
void raw_nvjpeg_close(struct raw_nvjpeg **raw);

/* Queues a group, which must have exactly the size that was specified at opening. Image i, of width x height, is
 * written to memory + i x 3 x width x height. The previous group must have finished. */
int raw_nvjpeg_decode(struct raw_nvjpeg *raw, const uint8_t *const *bytes, const size_t *lengths, uint8_t *memory,
                      int width, int height, void *stream, struct weir_err *err);

#endif
