/* gpu_jpeg.h: JPEGs decoded by a GPU, in decode batches, to planes in its memory. nvJPEG does it, in the CUDA module
 * (prof/gpu/cuda_module.h), which the first call that needs it opens.
 *
 * Of each frame first read the header, ask whether the engine takes it (weir_gpu_jpeg_look does all of this), and leave
 * the others to the CPU: engines report nothing when they decode damaged data. Planes are Y, Cb and Cr as stored, not
 * upsampled: of the JPEG engines bit for bit what libjpeg-turbo has at that point, of the SMs within 3
 * levels. psnr_check.h compares what is made of them with the CPU's pictures.
 *
 * No clocks here: the caller times. Calls return 0 or -errno: -ENODEV no module, GPU, nvJPEG or engine; -ENOMEM the
 * memory (the GPU's too) is used up; -EIO the GPU is lost or a kernel faulted. */
#ifndef WEIR_DECODERS_GPU_GPU_JPEG_H
#define WEIR_DECODERS_GPU_GPU_JPEG_H

#include "base/err.h"
#include "decoders/jpeg_header.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum weir_gpu_jpeg_engine {
    WEIR_GPU_JPEG_HARDWARE, /* the JPEG engines: baseline, one scan, 4:4:4, 4:2:2, 4:2:0, 4:4:0 or gray */
    WEIR_GPU_JPEG_SM,       /* the SMs; progressive JPEGs too, one by one */
    WEIR_GPU_JPEG_ENGINES
};

/* Widest and highest image that is given to a GPU; batches of at most so many frames. */
enum { WEIR_GPU_JPEG_SIDE_MAX = 16384, WEIR_GPU_JPEG_BATCH_MAX = 1024 };

struct weir_gpu_jpeg_frame {
    const uint8_t *bytes; /* the host's, pinned or not; until what was queued has passed */
    size_t length;        /* to the end of the image, without what may follow */
    uint8_t *plane[3];    /* the GPU's: Y, Cb, Cr, of weir_gpu_jpeg_plane's sizes; gray: [0] alone */
    size_t pitch[3];      /* bytes from row to row, not less than the plane's width */
    bool progressive;
};

/* "hardware", "sm" */
const char *weir_gpu_jpeg_engine_name(enum weir_gpu_jpeg_engine engine);

/* WEIR_JPEG_TAKEN when the engine decodes JPEGs with this header, else why not. */
enum weir_jpeg_refusal weir_gpu_jpeg_takes(const struct weir_jpeg_header *header, enum weir_gpu_jpeg_engine engine);

/* Reads the header of a frame, asks the engine's rules, walks the scan: fills in what is in frame but the planes.
 * WEIR_JPEG_TAKEN, or why the frame is none for this engine; the header is filled in as far as it could be read. Any
 * thread, no GPU needed. About 20 us for 100 KB. */
enum weir_jpeg_refusal weir_gpu_jpeg_look(const uint8_t *bytes, size_t length, enum weir_gpu_jpeg_engine engine,
                                          struct weir_jpeg_header *header, struct weir_gpu_jpeg_frame *frame);

/* How many frames were accepted ([WEIR_JPEG_TAKEN]), and how many refused for each reason. Any thread. */
struct weir_gpu_jpeg_tally {
    _Atomic uint64_t frames[WEIR_JPEG_REFUSALS];
};
void weir_gpu_jpeg_note(struct weir_gpu_jpeg_tally *tally, enum weir_jpeg_refusal refusal);
/* "12 progressive, 3 cmyk": those that were not taken; "" when there are none. */
void weir_gpu_jpeg_tally_text(const struct weir_gpu_jpeg_tally *tally, char *text, size_t size);

/* How many planes an image has (1 or 3), and the samples in row and column of plane i: chroma is rounded up. */
int weir_gpu_jpeg_planes(const struct weir_jpeg_header *header);
void weir_gpu_jpeg_plane(const struct weir_jpeg_header *header, int i, int *width, int *height);

/* ---- decoding ---- */

/* 0 when GPU number gpu has the engine, else -ENODEV and why not; takes the GPU into use (some 600 ms the first time).
 * *engines, unless NULL: how many JPEG engines it has. */
int weir_gpu_jpeg_check(int gpu, enum weir_gpu_jpeg_engine engine, int *engines, struct weir_err *err);

/* What decoding is done with: "nvJPEG 13.0.1", or why there is none. Opens the module. */
void weir_gpu_jpeg_library(char *text, size_t size);

/* One thread's decoder, for batches of at most batch_max frames. Where one thread cannot keep the
 * engines busy, use a second one with another decoder and stream. Close it before the GPU. */
struct weir_gpu_jpeg;
int weir_gpu_jpeg_open(struct weir_gpu_jpeg **decoder, int gpu, enum weir_gpu_jpeg_engine engine, int batch_max,
                       struct weir_err *err);
/* Waits for what it has in flight. Accepts NULL. */
void weir_gpu_jpeg_close(struct weir_gpu_jpeg **decoder);

/* Queues decoding of n frames (at most batch_max) on the stream, as many at once as the engine takes; first waits for
 * this decoder's previous batch; at the first call, and when a frame is much longer than all before, it also waits
 * until nvJPEG has allocated its buffers. results (n) become WEIR_JPEG_TAKEN, or WEIR_JPEG_ENGINE_REFUSED for frames
 * that the engine would not have: their planes hold anything, all others are decoded when the stream has come so far. 0
 * even if all were refused; after an error nothing is known of any. */
int weir_gpu_jpeg_decode(struct weir_gpu_jpeg *decoder, const struct weir_gpu_jpeg_frame *frames, int n, void *stream,
                         enum weir_jpeg_refusal *results, struct weir_err *err);

/* What a decoder has done so far (any thread). */
struct weir_gpu_jpeg_counts {
    uint64_t frames, batches; /* decoded, and in how many batches that were queued */
    uint64_t refused;         /* by the engine, of those it was given */
};
void weir_gpu_jpeg_counts(const struct weir_gpu_jpeg *decoder, struct weir_gpu_jpeg_counts *counts);

#endif
