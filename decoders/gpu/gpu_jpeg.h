/* gpu_jpeg.h: decodes batches of JPEGs on a GPU, to planes in GPU memory. The CUDA module (prof/gpu/cuda_module.h) does
 * this with nvJPEG; the first call opens the module.
 *
 * Read each frame's header and check the engine's rules first (weir_gpu_jpeg_look does both), and decode unsuitable
 * frames on the CPU, because engines report no error for damaged data. The planes are the stored Y, Cb and Cr, before
 * upsampling. Planes from the JPEG engines are bit-exact with libjpeg-turbo's samples before upsampling; planes from
 * the SMs differ from them by at most 3 levels. psnr_check.h compares the final images with the CPU's.
 *
 * The functions do no timing; the caller does. They return 0 or -errno: -ENODEV without a module, GPU, nvJPEG or
 * engine; -ENOMEM if host or GPU memory is exhausted; -EIO if the GPU is lost or a kernel faulted. */
#ifndef WEIR_DECODERS_GPU_GPU_JPEG_H
#define WEIR_DECODERS_GPU_GPU_JPEG_H

#include "decoders/jpeg_header.h"
#include "weir/base.h"
#include "weir/frames.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum weir_gpu_jpeg_engine {
    WEIR_GPU_JPEG_HARDWARE, /* the JPEG engines (NVJPG): baseline with one scan; gray, 4:4:4, 4:2:2, 4:2:0 or 4:4:0 */
    WEIR_GPU_JPEG_SM,       /* the SMs: also progressive JPEGs, one at a time */
    WEIR_GPU_JPEG_ENGINES
};

/* Maximum width and height of an image for a GPU, and maximum number of frames per batch. */
enum { WEIR_GPU_JPEG_SIDE_MAX = 16384, WEIR_GPU_JPEG_BATCH_MAX = 1024 };

struct weir_gpu_jpeg_frame {
    const uint8_t *bytes; /* host memory, pinned or pageable; must stay valid until the queued work has finished */
    size_t length;        /* size of the image, excluding trailing bytes */
    uint8_t *plane[3]; /* GPU memory for Y, Cb and Cr in the sizes from weir_gpu_jpeg_plane; gray images use only [0] */
    size_t pitch[3];   /* bytes between rows of a plane, at least its width */
    bool progressive;
};

/* Returns "hardware" or "sm". */
const char *weir_gpu_jpeg_engine_name(enum weir_gpu_jpeg_engine engine);

/* Returns WEIR_JPEG_TAKEN if the engine supports JPEGs with this header, otherwise the reason why it does not. */
enum weir_jpeg_refusal weir_gpu_jpeg_takes(const struct weir_jpeg_header *header, enum weir_gpu_jpeg_engine engine);

/* Reads a frame's header, checks the engine's rules and walks the scan. Sets bytes, length and progressive in *frame
 * and clears plane and pitch. Returns WEIR_JPEG_TAKEN, or the reason why this engine cannot decode the frame; the
 * header is then valid unless the reason is WEIR_JPEG_BAD_HEADER. Can be called by any thread and needs no GPU. Takes
 * about 20 us for 100 KB. */
enum weir_jpeg_refusal weir_gpu_jpeg_look(const uint8_t *bytes, size_t length, enum weir_gpu_jpeg_engine engine,
                                          struct weir_jpeg_header *header, struct weir_gpu_jpeg_frame *frame);

/* Returns WEIR_JPEG_IS_MARKED if the frame's marks require that it is turned, or that its channel order differs from
 * that of other frames, otherwise WEIR_JPEG_TAKEN. */
enum weir_jpeg_refusal weir_gpu_jpeg_marks(const uint8_t *bytes, size_t length, const struct weir_frame_rules *rules);

/* Number of frames for each refusal, and of accepted frames ([WEIR_JPEG_TAKEN]). Can be used by any thread. */
struct weir_gpu_jpeg_tally {
    _Atomic uint64_t frames[WEIR_JPEG_REFUSALS];
};
void weir_gpu_jpeg_note(struct weir_gpu_jpeg_tally *tally, enum weir_jpeg_refusal refusal);
/* Lists the numbers of refused frames, such as "12 progressive, 3 cmyk"; "" if none exist. */
void weir_gpu_jpeg_tally_text(const struct weir_gpu_jpeg_tally *tally, char *text, size_t size);

/* Return the number of planes of an image (1 or 3), and the size of plane i in samples (chroma sizes are rounded up).
 */
int weir_gpu_jpeg_planes(const struct weir_jpeg_header *header);
void weir_gpu_jpeg_plane(const struct weir_jpeg_header *header, int i, int *width, int *height);

/* ---- decoding ---- */

/* Returns 0 if GPU number gpu has the engine, otherwise -ENODEV with the reason. Sets *engines, unless NULL, to the
 * number of JPEG engines. Initialises the GPU, which takes about 600 ms on the first call. */
int weir_gpu_jpeg_check(int gpu, enum weir_gpu_jpeg_engine engine, int *engines, struct weir_err *err);

/* Writes the decoding library's name and version ("nvJPEG 13.0.1"), or the reason why it is missing. Opens the module.
 */
void weir_gpu_jpeg_library(char *text, size_t size);

/* A decoder for batches of at most batch_max frames, used by one thread. If one thread cannot keep the engines busy,
 * add a second thread with its own decoder and stream. Close the decoder before the GPU. */
struct weir_gpu_jpeg;
int weir_gpu_jpeg_open(struct weir_gpu_jpeg **decoder, int gpu, enum weir_gpu_jpeg_engine engine, int batch_max,
                       struct weir_err *err);
/* Waits for queued work. *decoder may be NULL. */
void weir_gpu_jpeg_close(struct weir_gpu_jpeg **decoder);

/* Queues the decoding of n frames (at most batch_max) on the stream, in batches as large as the engine accepts. Waits
 * for this decoder's previous batch. On the first call, and for a frame much longer than all previous ones, also waits
 * until nvJPEG has allocated its buffers. Sets results[0 .. n - 1] to WEIR_JPEG_TAKEN, or to WEIR_JPEG_ENGINE_REFUSED
 * for frames that the engine rejected. Planes of rejected frames are undefined; the other frames are decoded when the
 * stream reaches them. Returns 0 even if all frames were rejected; after an error, all results are undefined. */
int weir_gpu_jpeg_decode(struct weir_gpu_jpeg *decoder, const struct weir_gpu_jpeg_frame *frames, int n, void *stream,
                         enum weir_jpeg_refusal *results, struct weir_err *err);

/* Totals of a decoder. Can be read by any thread. */
struct weir_gpu_jpeg_counts {
    uint64_t frames, batches; /* decoded frames and queued batches */
    uint64_t refused;         /* frames that the engine rejected */
};
void weir_gpu_jpeg_counts(const struct weir_gpu_jpeg *decoder, struct weir_gpu_jpeg_counts *counts);

#endif
