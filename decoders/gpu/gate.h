/* gate.h: whether what a GPU makes of JPEGs is what the CPU makes of them. The first frame of each kind (the same size,
 * quantisation, colour, sampling: weir_jpeg_header.kind), and one of every WEIR_GATE_EVERY after it, is decoded by both
 * and compared; a frame below WEIR_GATE_DB goes to the CPU, and from then on its kind.
 *
 * Where the threshold comes from. The CPU's picture is libjpeg-turbo's with the accurate integer DCT and its triangle
 * filter for chroma; the GPU's planes are upsampled and converted by our kernel with the same arithmetic. Measured with
 * nvJPEG 13.0.1 on an H200, RGB beside libjpeg-turbo's when both repeat chroma samples, so that only the DCT and the
 * rounding are compared: the JPEG engines are identical, which is infinity; the multiprocessors differ by at most 3
 * levels and stay above 61.97 dB over 228 images; with our kernel's pictures above 62.96 dB over 92 photos and 58.06 dB
 * over made ones, of which noise is most. So 55 dB, a mean squared error of 0.2, leaves 3 to 7 dB for other GPUs and
 * versions that round in another way. Below it falls what is wrong rather than rounded: most pictures whose chroma is
 * upsampled by repeating samples (39.9 to 63 dB, by how much colour there is), a grey or shifted part, one block of
 * 16 x 16 pixels that is off by 64 levels in an image of 640 x 480 (43 dB), tables mixed up, red and blue exchanged.
 */
#ifndef WEIR_DECODERS_GPU_GATE_H
#define WEIR_DECODERS_GPU_GATE_H

#include "decoders/gpu/gpu_jpeg.h"

#define WEIR_GATE_DB     55.0
#define WEIR_PSNR_MAX_DB 99.0 /* what identical pictures are given */

/* A frame of so many of a kind is compared; at most so many kinds are told apart, the others share one verdict. */
enum { WEIR_GATE_EVERY = 1024, WEIR_GATE_KINDS_MAX = 1024 };
/* Frames of a kind that the engine itself refuses until the kind is the CPU's. */
enum { WEIR_GATE_REFUSALS = 3 };

/* Peak signal-to-noise ratio of n samples of 8 bits, dB: 0 .. WEIR_PSNR_MAX_DB. */
double weir_psnr_db(const uint8_t *a, const uint8_t *b, size_t n);

enum weir_gate_advice {
    WEIR_GATE_PASS,
    WEIR_GATE_COMPARE, /* decode it on the CPU too, and tell */
    WEIR_GATE_REFUSE,  /* take the CPU's picture */
};

/* Any thread. */
struct weir_gate;
int weir_gate_open(struct weir_gate **gate, struct weir_err *err);
void weir_gate_close(struct weir_gate **gate);

/* Before a frame is handed over: WEIR_JPEG_TAKEN, or why its kind is one for the CPU: WEIR_JPEG_ENGINE_REFUSED or
 * WEIR_JPEG_GATE_REFUSED. Counts nothing. */
enum weir_jpeg_refusal weir_gate_refuses(struct weir_gate *gate, enum weir_gpu_jpeg_engine engine, uint64_t kind);

/* After a frame was decoded: what to do with it. As long as nothing was told of a kind all its frames are to be
 * compared, so who compares at once, frame by frame, does it once. */
enum weir_gate_advice weir_gate_ask(struct weir_gate *gate, enum weir_gpu_jpeg_engine engine, uint64_t kind);

/* What comparing a frame gave (0 dB: the CPU could not decode it). True when its picture may be used. */
bool weir_gate_tell(struct weir_gate *gate, enum weir_gpu_jpeg_engine engine, uint64_t kind, double db);

/* The engine itself refused a frame of the kind: it is that frame's fault, once or twice, and then the kind's: the next
 * ones are the CPU's at once. */
void weir_gate_refused(struct weir_gate *gate, enum weir_gpu_jpeg_engine engine, uint64_t kind);

struct weir_gate_counts {
    uint64_t compared;
    uint64_t below, refused; /* of these; frames that weir_gate_ask refused for their kind */
    uint64_t kinds, kinds_refused;
    double least_db; /* of all compared; WEIR_PSNR_MAX_DB when there was none */
};
void weir_gate_counts(struct weir_gate *gate, struct weir_gate_counts *counts);

#endif
