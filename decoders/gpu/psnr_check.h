/* psnr_check.h: compares what a GPU decodes with what the CPU decodes, by their peak signal-to-noise ratio, so that a
 * GPU whose pictures are wrong is noticed. The first frame of each kind (the same size, quantisation, colour and
 * sampling: weir_jpeg_header.kind) is decoded by both, and one of every WEIR_PSNR_CHECK_EVERY after it; when a frame is
 * below WEIR_PSNR_LEAST_DB, the CPU decodes it and all later frames of its kind.
 *
 * Where the threshold comes from. The CPU's picture is libjpeg-turbo's with the accurate integer DCT and its triangle
 * filter for chroma; the GPU's planes are upsampled and converted by our kernel with the same arithmetic. Measured with
 * nvJPEG 13.0.1 on an H200, RGB beside libjpeg-turbo's when both repeat chroma samples, so that only the DCT and the
 * rounding are compared: the JPEG engines are identical, which is infinity; the SMs differ by at most 3
 * levels and stay above 61.97 dB over 228 images; with our kernel's pictures above 62.96 dB over 92 photos and 58.06 dB
 * over made ones, of which noise is most. So 55 dB, a mean squared error of 0.2, leaves 3 to 7 dB for other GPUs and
 * versions that round in another way. Below it falls what is wrong rather than rounded: most pictures whose chroma is
 * upsampled by repeating samples (39.9 to 63 dB, by how much colour there is), a grey or shifted part, one block of
 * 16 x 16 pixels that is off by 64 levels in an image of 640 x 480 (43 dB), tables mixed up, red and blue exchanged.
 */
#ifndef WEIR_DECODERS_GPU_PSNR_CHECK_H
#define WEIR_DECODERS_GPU_PSNR_CHECK_H

#include "decoders/gpu/gpu_jpeg.h"

#define WEIR_PSNR_LEAST_DB 55.0
#define WEIR_PSNR_MAX_DB   99.0 /* what identical pictures are given */

/* One frame of so many of a kind is compared; at most so many kinds have a verdict of their own, the others share one.
 */
enum { WEIR_PSNR_CHECK_EVERY = 1024, WEIR_PSNR_CHECK_KINDS_MAX = 1024 };
/* After so many frames of a kind that the engine itself refused, the CPU decodes all frames of the kind. */
enum { WEIR_PSNR_CHECK_REFUSALS = 3 };

/* Peak signal-to-noise ratio of n samples of 8 bits, dB: 0 .. WEIR_PSNR_MAX_DB. */
double weir_psnr_db(const uint8_t *a, const uint8_t *b, size_t n);

enum weir_psnr_advice {
    WEIR_PSNR_USE,     /* use the GPU's picture */
    WEIR_PSNR_COMPARE, /* decode it on the CPU too, and report how they differ */
    WEIR_PSNR_REFUSE,  /* use the CPU's picture */
};

/* The verdicts of one loader. Any thread may call these functions. */
struct weir_psnr_check;
int weir_psnr_check_open(struct weir_psnr_check **check, struct weir_err *err);
void weir_psnr_check_close(struct weir_psnr_check **check);

/* Before a frame is given to an engine: WEIR_JPEG_TAKEN, or why the CPU decodes its kind: WEIR_JPEG_ENGINE_REFUSED or
 * WEIR_JPEG_PSNR_REFUSED. Counts nothing. */
enum weir_jpeg_refusal weir_psnr_check_refusal(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine,
                                               uint64_t kind);

/* After a frame was decoded: what to do with it. All frames of a kind are to be compared until the first result of one
 * is reported; a caller that reports each before it asks about the next compares one. */
enum weir_psnr_advice weir_psnr_check_advise(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine,
                                             uint64_t kind);

/* Reports how far a frame's two pictures are apart (0 dB: the CPU could not decode it). True when the GPU's may be
 * used. */
bool weir_psnr_check_report(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine, uint64_t kind, double db);

/* Reports that the engine itself refused a frame of the kind. Once or twice is a fault of the frame; from then on the
 * CPU decodes the kind, without asking the engine. */
void weir_psnr_check_engine_refused(struct weir_psnr_check *check, enum weir_gpu_jpeg_engine engine, uint64_t kind);

struct weir_psnr_check_counts {
    uint64_t compared;
    uint64_t below, refused; /* of these; frames that weir_psnr_check_advise refused for their kind */
    uint64_t kinds, kinds_refused;
    double least_db; /* of all compared; WEIR_PSNR_MAX_DB when there was none */
};
void weir_psnr_check_counts(struct weir_psnr_check *check, struct weir_psnr_check_counts *counts);

#endif
