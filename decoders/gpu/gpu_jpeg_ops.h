/* gpu_jpeg_ops.h: interface for decoding JPEGs to planes in GPU memory, in decode batches. Implemented by the CUDA
 * module (nvjpeg.c) and by a stand-in on the CPU for tests.
 *
 * Assumptions (nvJPEG 13.0 on an H200): before upsampling, the JPEG engines output exactly the samples of
 * libjpeg-turbo's accurate integer DCT; the SMs ("sm") differ by up to 3 levels. One thread that submits batches of 64
 * to 256 keeps all engines busy while the host is idle (35 us per frame); with busy cores (49 to 57 us) two threads are
 * needed. Damage inside a scan is not reported. */
#ifndef WEIR_DECODERS_GPU_GPU_JPEG_OPS_H
#define WEIR_DECODERS_GPU_GPU_JPEG_OPS_H

#include "decoders/gpu/gpu_jpeg.h"

struct weir_gpu_jpeg_ops {
    /* Returns the GPU's number of JPEG engines (0: none), or -errno. */
    int (*engines)(int gpu, struct weir_err *err);
    /* Opens one thread's decoder for batches of at most batch_max. The GPU is initialised. */
    int (*open)(void **self, int gpu, enum weir_gpu_jpeg_engine engine, int batch_max, struct weir_err *err);
    /* Waits for work in flight. */
    void (*close)(void *self);
    /* Queues the copies of a batch's bytes and their decoding on the stream; waits for this decoder's previous batch
     * first. Returns -EBADMSG, without err, when the engine rejects the batch because of some frame: all results are
     * undefined, and the caller submits fewer. -ENOMEM and -EIO as in gpu_ops.h. Progressive frames are decoded one at
     * a time. */
    int (*decode)(void *self, const struct weir_gpu_jpeg_frame *frames, int n, void *stream, struct weir_err *err);
    /* "nvJPEG 13.0.1", or why it cannot be opened. */
    void (*library)(char *text, size_t size);
};

#endif
