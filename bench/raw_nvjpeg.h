/* raw_nvjpeg.h: nvJPEG as programs use it that want RGB and nothing else: batched decoding to interleaved RGB in the
 * GPU's memory. The limit that what weir does with it is compared with. One thread each. */
#ifndef WEIR_BENCH_RAW_NVJPEG_H
#define WEIR_BENCH_RAW_NVJPEG_H

#include "decoders/gpu/gpu_jpeg.h"

struct raw_nvjpeg;

/* On GPU 0. -ENODEV when the library or the engine is not there, or this was built without its header. */
int raw_nvjpeg_open(struct raw_nvjpeg **raw, enum weir_gpu_jpeg_engine engine, int group, struct weir_err *err);
void raw_nvjpeg_close(struct raw_nvjpeg **raw);

/* Queues a group of exactly the size it was opened for: image i of width x height goes to memory + i x 3 x width x
 * height. What was queued before must have passed. */
int raw_nvjpeg_decode(struct raw_nvjpeg *raw, const uint8_t *const *bytes, const size_t *lengths, uint8_t *memory,
                      int width, int height, void *stream, struct weir_err *err);

#endif
