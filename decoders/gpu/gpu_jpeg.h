/* gpu_jpeg.h: decodes JPEGs on a GPU, in decode batches, to planes in its memory. The CUDA module
 * (prof/gpu/cuda_module.h) does it with nvJPEG; the first call opens the module.
 *
 * First read each frame's header and check the engine's rules (weir_gpu_jpeg_look does both), and leave unsuitable
 * frames to the CPU: engines report no error for damaged data. Planes are Y, Cb and Cr as stored, not upsampled. Those
 * of the JPEG engines equal libjpeg-turbo's at that point bit for bit; those of the SMs differ by at most 3 levels.
 * psnr_check.h compares the final images with the CPU's.
 *
 * No clocks here: the caller times. Calls return 0 or -errno: -ENODEV for no module, GPU, nvJPEG or engine; -ENOMEM
 * when host or GPU memory is exhausted; -EIO when the GPU is lost or a kernel faulted. */
#ifndef WEIR_DECODERS_GPU_GPU_JPEG_H
#define WEIR_DECODERS_GPU_GPU_JPEG_H

#include "decoders/jpeg_header.h"
#include "weir/base.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum weir_gpu_jpeg_engine {
    WEIR_GPU_JPEG_HARDWARE, /* the JPEG engines: baseline, one scan, 4:4:4, 4:2:2, 4:2:0, 4:4:0 or gray */
    WEIR_GPU_JPEG_SM,       /* the SMs; progressive JPEGs too, one at a time */
    WEIR_GPU_JPEG_ENGINES
};

/* Maximum width and height of an image decoded on a GPU, and maximum frames per batch. */
enum { WEIR_GPU_JPEG_SIDE_MAX = 16384, WEIR_GPU_JPEG_BATCH_MAX = 1024 };

struct weir_gpu_jpeg_frame {
    const uint8_t *bytes; /* host memory, pinned or not; must stay until the queued work has finished */
    size_t length;        /* of the image, without trailing bytes */
    uint8_t *plane[3];    /* GPU memory: Y, Cb, Cr with weir_gpu_jpeg_plane's sizes; gray: only [0] */
    size_t pitch[3];      /* bytes between rows, at least the plane's width */
    bool progressive;
};

/* "hardware", "sm" */
const char *weir_gpu_jpeg_engine_name(enum weir_gpu_jpeg_engine engine);

/* Returns WEIR_JPEG_TAKEN if the engine decodes JPEGs with this header, else the reason. */
enum weir_jpeg_refusal weir_gpu_jpeg_takes(const struct weir_jpeg_header *header, enum weir_gpu_jpeg_engine engine);

/* Reads a frame's header, checks the engine's rules and walks the scan; fills in frame except its planes. Returns
 * WEIR_JPEG_TAKEN, or the reason why this engine cannot decode it; the header is filled in as far as it could be read.
 * Any thread; needs no GPU. About 20 us for 100 KB. */
enum weir_jpeg_refusal weir_gpu_jpeg_look(const uint8_t *bytes, size_t length, enum weir_gpu_jpeg_engine engine,
                                          struct weir_jpeg_header *header, struct weir_gpu_jpeg_frame *frame);

/* Frames accepted ([WEIR_JPEG_TAKEN]) and refused, by reason. Any thread. */
struct weir_gpu_jpeg_tally {
    _Atomic uint64_t frames[WEIR_JPEG_REFUSALS];
};
void weir_gpu_jpeg_note(struct weir_gpu_jpeg_tally *tally, enum weir_jpeg_refusal refusal);
/* Formats the refused ones as "12 progressive, 3 cmyk"; "" when there are none. */
void weir_gpu_jpeg_tally_text(const struct weir_gpu_jpeg_tally *tally, char *text, size_t size);

/* Number of planes of an image (1 or 3), and the width and height of plane i in samples: chroma is rounded up. */
int weir_gpu_jpeg_planes(const struct weir_jpeg_header *header);
void weir_gpu_jpeg_plane(const struct weir_jpeg_header *header, int i, int *width, int *height);

/* ---- decoding ---- */

/* Returns 0 if GPU number gpu has the engine, else -ENODEV with the reason; initialises the GPU (about 600 ms the first
 * time). *engines, unless NULL: its number of JPEG engines. */
int weir_gpu_jpeg_check(int gpu, enum weir_gpu_jpeg_engine engine, int *engines, struct weir_err *err);

/* Writes the decoding library's name, "nvJPEG 13.0.1", or why there is none. Opens the module. */
void weir_gpu_jpeg_library(char *text, size_t size);

/* One thread's decoder for batches of at most batch_max frames. If one thread cannot keep the engines busy, use a
 * second thread with its own decoder and stream. Close it before the GPU. */
struct weir_gpu_jpeg;
int weir_gpu_jpeg_open(struct weir_gpu_jpeg **decoder, int gpu, enum weir_gpu_jpeg_engine engine, int batch_max,
                       struct weir_err *err);
/* Waits for work in flight. Accepts NULL. */
void weir_gpu_jpeg_close(struct weir_gpu_jpeg **decoder);

/* Queues decoding of n frames (at most batch_max) on the stream, as many at once as the engine accepts. Waits for this
 * decoder's previous batch; on the first call, and for a much longer frame than before, also until nvJPEG has allocated
 * its buffers. results (n) become WEIR_JPEG_TAKEN, or WEIR_JPEG_ENGINE_REFUSED for frames that the engine rejected:
 * their planes are undefined; all others are decoded once the stream gets there. Returns 0 even if all were refused;
 * after an error all results are undefined. */
int weir_gpu_jpeg_decode(struct weir_gpu_jpeg *decoder, const struct weir_gpu_jpeg_frame *frames, int n, void *stream,
                         enum weir_jpeg_refusal *results, struct weir_err *err);

/* A decoder's totals so far. Any thread. */
struct weir_gpu_jpeg_counts {
    uint64_t frames, batches; /* decoded frames, and queued batches */
    uint64_t refused;         /* submitted, but rejected by the engine */
};
void weir_gpu_jpeg_counts(const struct weir_gpu_jpeg *decoder, struct weir_gpu_jpeg_counts *counts);

#endif
