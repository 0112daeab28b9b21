/* gpu_jpeg_ops.h: interface for decoding batches of JPEGs to planes in GPU memory. Implemented by the CUDA module
 * (nvjpeg.c) and, for tests, by a replacement on the CPU.
 *
 * Assumptions (nvJPEG 13.0 on an H200): before upsampling, the JPEG engines output exactly the samples of
 * libjpeg-turbo's accurate integer DCT; the SMs ("sm") differ by up to 3 levels. One thread that submits batches of 64
 * to 256 frames keeps all engines busy if the host is idle (35 us per frame). If the host's cores are busy (49 to 57
 * us), two threads are needed. Damage inside a scan is not reported. */
#ifndef WEIR_DECODERS_GPU_GPU_JPEG_OPS_H
#define WEIR_DECODERS_GPU_GPU_JPEG_OPS_H

#include "decoders/gpu/gpu_jpeg.h"

struct weir_gpu_jpeg_ops {
    /* Returns the GPU's number of JPEG engines (0 if it has none), or -errno. */
    int (*engines)(int gpu, struct weir_err *err);
    /* Opens one thread's decoder for batches of at most batch_max frames. The GPU must have been initialised. */
    int (*open)(void **self, int gpu, enum weir_gpu_jpeg_engine engine, int batch_max, struct weir_err *err);
    /* Waits for queued work. */
    void (*close)(void *self);
    /* Waits for this decoder's previous batch, then queues copies of the frames' bytes and their decoding on the
     * stream. Returns -EBADMSG without setting err if the engine rejects the batch because of any frame. All results
     * are then undefined, and the caller should retry with fewer frames. Returns -ENOMEM and -EIO as described in
     * gpu_ops.h. Progressive frames are decoded one at a time. */
    int (*decode)(void *self, const struct weir_gpu_jpeg_frame *frames, int n, void *stream, struct weir_err *err);
    /* Writes the library's name and version, such as "nvJPEG 13.0.1", or the reason why it cannot be opened. */
    void (*library)(char *text, size_t size);
};

#endif
