/* gpu_jpeg_ops.h: the functions that decode JPEGs to planes in a GPU's memory, in decode batches. The CUDA module
 * implements them (nvjpeg.c), and so does a stand-in on the CPU for tests.
 *
 * Facts this is built on (nvJPEG 13.0 on an H200): the JPEG engines give, bit for bit, the samples that libjpeg-turbo's
 * accurate integer DCT gives, before upsampling; the SMs ("sm") differ from it by up to 3 levels. One
 * thread that submits batches of 64 to 256 keeps all engines busy while the host is idle (35 us a frame); beside busy
 * cores (49 to 57 us) it takes two. Damage inside a scan is not reported. */
#ifndef WEIR_DECODERS_GPU_GPU_JPEG_OPS_H
#define WEIR_DECODERS_GPU_GPU_JPEG_OPS_H

#include "decoders/gpu/gpu_jpeg.h"

struct weir_gpu_jpeg_ops {
    /* JPEG engines of the GPU; 0: none, or -errno. */
    int (*engines)(int gpu, struct weir_err *err);
    /* One thread's decoder, for batches of at most batch_max. The GPU is in use already. */
    int (*open)(void **self, int gpu, enum weir_gpu_jpeg_engine engine, int batch_max, struct weir_err *err);
    /* Waits for what it has in flight. */
    void (*close)(void *self);
    /* Queues the batch's decoding on the stream, and the copies of its bytes; first waits for this decoder's batch
     * before. -EBADMSG, without err: refused as a whole, one of the frames is none that the engine takes, nothing is
     * known of any; the caller asks for fewer. -ENOMEM, -EIO as gpu_ops.h. Frames that are progressive are decoded one
     * by one. */
    int (*decode)(void *self, const struct weir_gpu_jpeg_frame *frames, int n, void *stream, struct weir_err *err);
    /* "nvJPEG 13.0.1", or why it cannot be opened. */
    void (*library)(char *text, size_t size);
};

#endif
