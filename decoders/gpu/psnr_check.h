/* psnr_check.h: compares frames decoded on a GPU with the same frames decoded on the CPU, by peak signal-to-noise ratio
 * (PSNR), to detect a GPU with wrong output. The first frame of each kind (same size, quantisation, colour space and
 * sampling: weir_jpeg_header.kind) is compared, and one in WEIR_PSNR_CHECK_EVERY frames of the kind after that. If the
 * PSNR of a frame is below WEIR_PSNR_LEAST_DB, the CPU decodes the frame and all later frames of its kind.
 *
 * Choice of the threshold. The CPU's image is libjpeg-turbo's, with the accurate integer DCT and the triangle filter
 * for chroma. The GPU's planes are upsampled and converted by our kernel with the same arithmetic. The following was
 * measured with nvJPEG 13.0.1 on an H200 and libjpeg-turbo. With chroma samples repeated on both sides, only the DCT
 * and rounding differ: the JPEG engines are identical (infinite PSNR); the SMs differ by at most 3 levels and stay
 * above 61.97 dB over 228 images. With our kernel, the SMs stay above 62.96 dB over 92 photos and above 58.06 dB over
 * synthetic images, which are mostly noise. A threshold of 55 dB, a mean squared error of 0.2, leaves a margin of 3 to
 * 7 dB for GPUs and versions that round differently. Actual errors are below the threshold: most images whose chroma is
 * upsampled by repetition (39.9 to 63 dB, depending on the amount of colour), a grey or shifted part, one block of 16 x
 * 16 pixels that is off by 64 levels in a 640 x 480 image (43 dB), mixed-up tables, swapped red and blue. */
#ifndef WEIR_DECODERS_GPU_PSNR_CHECK_H
#define WEIR_DECODERS_GPU_PSNR_CHECK_H

#include "decoders/gpu/gpu_jpeg.h"

#define WEIR_PSNR_LEAST_DB 55.0
#define WEIR_PSNR_MAX_DB   99.0 /* result for identical images */

/* Interval between compared frames of a kind, and maximum number of kinds with their own verdict. Kinds beyond that
 * share one verdict. */
enum { WEIR_PSNR_CHECK_EVERY = 1024, WEIR_PSNR_CHECK_KINDS_MAX = 1024 };
/* Number of frames that the engine itself must refuse before the CPU decodes all frames of the kind. */
enum { WEIR_PSNR_CHECK_REFUSALS = 3 };

/* Returns the peak signal-to-noise ratio of n 8-bit samples in dB, at most WEIR_PSNR_MAX_DB. */
double weir_psnr_db(const uint8_t *a, const uint8_t *b, size_t n);

enum weir_psnr_advice {
    WEIR_PSNR_USE,     /* use the GPU's image */
    WEIR_PSNR_COMPARE, /* also decode the frame on the CPU and report the difference */
    WEIR_PSNR_REFUSE,  /* use the CPU's image */
};

/* The verdicts of one loader. All functions can be called by any thread. */
struct weir_psnr_check;
int weir_psnr_check_open(struct weir_psnr_check **check, struct weir_err *err);
void weir_psnr_check_close(struct weir_psnr_check **check);

/* Call before submitting a frame. Returns WEIR_JPEG_TAKEN; or WEIR_JPEG_ENGINE_REFUSED or WEIR_JPEG_PSNR_REFUSED if the
 * CPU must decode frames of this kind. Does not change any counts. */
enum weir_jpeg_refusal weir_psnr_check_refusal(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine,
                                               uint64_t kind);

/* Call after a frame has been decoded. Returns which image to use. Until the first result of a kind has been reported,
 * all its frames are compared; a caller that reports each result before the next call compares only one. */
enum weir_psnr_advice weir_psnr_check_advise(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine,
                                             uint64_t kind);

/* Reports the PSNR of a frame's two images in dB; pass 0 if the CPU could not decode the frame. Returns whether the
 * GPU's image can be used. */
bool weir_psnr_check_report(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine, uint64_t kind, double db);

/* Reports that the engine itself refused a frame of this kind. The first refusals are attributed to the frames; after
 * WEIR_PSNR_CHECK_REFUSALS of them, the CPU decodes all frames of the kind. */
void weir_psnr_check_engine_refused(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine, uint64_t kind);

struct weir_psnr_check_counts {
    uint64_t compared;
    uint64_t below, refused; /* frames below the threshold; frames for which WEIR_PSNR_REFUSE was returned */
    uint64_t kinds, kinds_refused;
    double least_db; /* minimum over all compared frames; WEIR_PSNR_MAX_DB if none was compared */
};
void weir_psnr_check_counts(struct weir_psnr_check *check, struct weir_psnr_check_counts *counts);

#endif
