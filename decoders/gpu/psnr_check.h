/* psnr_check.h: compares frames decoded by a GPU with the CPU's by their peak signal-to-noise ratio, to detect a GPU
 * with wrong output. The first frame of each kind (same size, quantisation, colour and sampling: weir_jpeg_header.kind)
 * is decoded by both, and so is every WEIR_PSNR_CHECK_EVERY-th frame after it. If one is below WEIR_PSNR_LEAST_DB, the
 * CPU decodes it and all later frames of its kind.
 *
 * Choice of the threshold. The CPU's image is libjpeg-turbo's with the accurate integer DCT and the triangle filter for
 * chroma; the GPU's planes are upsampled and converted by our kernel with the same arithmetic. Measured with
 * nvJPEG 13.0.1 on an H200, against libjpeg-turbo with chroma samples repeated on both sides, so that only the DCT and
 * rounding differ: the JPEG engines are identical (infinity); the SMs differ by at most 3 levels and stay above 61.97
 * dB over 228 images; with our kernel above 62.96 dB over 92 photos and 58.06 dB over synthetic images, mostly noise.
 * So 55 dB, a mean squared error of 0.2, leaves a margin of 3 to 7 dB for GPUs and versions that round differently.
 * Actual errors fall below it: most images whose chroma is upsampled by repetition (39.9 to 63 dB, depending on the
 * amount of colour), a grey or shifted part, one block of 16 x 16 pixels off by 64 levels in a 640 x 480 image (43 dB),
 * mixed-up tables, swapped red and blue. */
#ifndef WEIR_DECODERS_GPU_PSNR_CHECK_H
#define WEIR_DECODERS_GPU_PSNR_CHECK_H

#include "decoders/gpu/gpu_jpeg.h"

#define WEIR_PSNR_LEAST_DB 55.0
#define WEIR_PSNR_MAX_DB   99.0 /* for identical images */

/* One of this many frames of a kind is compared; this many kinds have their own verdict, the rest share one. */
enum { WEIR_PSNR_CHECK_EVERY = 1024, WEIR_PSNR_CHECK_KINDS_MAX = 1024 };
/* After this many frames of a kind refused by the engine itself, the CPU decodes the whole kind. */
enum { WEIR_PSNR_CHECK_REFUSALS = 3 };

/* Peak signal-to-noise ratio of n 8-bit samples in dB, 0 .. WEIR_PSNR_MAX_DB. */
double weir_psnr_db(const uint8_t *a, const uint8_t *b, size_t n);

enum weir_psnr_advice {
    WEIR_PSNR_USE,     /* use the GPU's image */
    WEIR_PSNR_COMPARE, /* decode it on the CPU too and report the difference */
    WEIR_PSNR_REFUSE,  /* use the CPU's image */
};

/* The verdicts of one loader. Functions may be called by any thread. */
struct weir_psnr_check;
int weir_psnr_check_open(struct weir_psnr_check **check, struct weir_err *err);
void weir_psnr_check_close(struct weir_psnr_check **check);

/* Call before submitting a frame: WEIR_JPEG_TAKEN, or WEIR_JPEG_ENGINE_REFUSED or WEIR_JPEG_PSNR_REFUSED if the CPU
 * decodes its kind. Counts nothing. */
enum weir_jpeg_refusal weir_psnr_check_refusal(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine,
                                               uint64_t kind);

/* Call after a frame was decoded: what to do with it. All frames of a kind are compared until the first result is
 * reported; a caller that reports each before the next call compares one. */
enum weir_psnr_advice weir_psnr_check_advise(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine,
                                             uint64_t kind);

/* Reports the difference between a frame's two images (0 dB: the CPU could not decode it). Returns whether the GPU's
 * may be used. */
bool weir_psnr_check_report(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine, uint64_t kind, double db);

/* Reports that the engine itself refused a frame of the kind. Once or twice counts as a fault of the frame; after that
 * the CPU decodes the kind without trying the engine. */
void weir_psnr_check_engine_refused(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine, uint64_t kind);

struct weir_psnr_check_counts {
    uint64_t compared;
    uint64_t below, refused; /* frames below the threshold; frames refused by weir_psnr_check_advise for their kind */
    uint64_t kinds, kinds_refused;
    double least_db; /* minimum of all compared frames; WEIR_PSNR_MAX_DB when none was */
};
void weir_psnr_check_counts(struct weir_psnr_check *check, struct weir_psnr_check_counts *counts);

#endif
