/* defaults.h: the pipeline's policies that are numbers, each with where it comes from. None of them changes what is in
 * a batch, but for the two rates, which are therefore constants: with --deterministic they fix which frames are the
 * GPU's. "H200" is an NVIDIA H200 with 16 cores of the Xeon beside it; frames are 640 x 480, quality 95, unless said
 * otherwise. docs/gpu.md and docs/benchmarks.md have the tables. */
#ifndef WEIR_PIPELINE_DEFAULTS_H
#define WEIR_PIPELINE_DEFAULTS_H

#include <stdint.h>

/* ---- how far workers may be ahead (--prefetch auto, prefetch.c) ---- */

/* Frames in flight for each worker, so that one that is through finds a next frame when others take longer. */
enum { WEIR_PREFETCH_FRAMES_PER_WORKER = 4, WEIR_PREFETCH_MIN = 2 };
/* Where chunks hold several frames: batches in flight share them, so more of them unpack less. Of robomimic's gzip
 * frames, 84 x 84, 11,264 chunks were unpacked with --prefetch 32 instead of 36,480 (2 cores of an Intel Xeon). */
enum { WEIR_PREFETCH_CHUNKS = 16, WEIR_PREFETCH_CHUNKS_BYTES = 256 << 20 };
/* Where a GPU decodes: decode batches that are gathered, decoded, and not yet asked for; with hybrid others decode
 * meanwhile, and the SMs take five times as long as the JPEG engines (30 ms for 256 frames, H200). */
enum { WEIR_PREFETCH_DECODE_BATCHES = 4, WEIR_PREFETCH_DECODE_BATCHES_HYBRID = 10 };
/* These slots are pinned, and are there again in the GPU's memory. What they may take at most, and of the memory that
 * is free, as one part in so many: the model wants the rest. */
enum { WEIR_PREFETCH_MEMORY_PART = 16, WEIR_PREFETCH_GPU_PART = 8 };
static const uint64_t WEIR_PREFETCH_NVJPEG_BYTES = UINT64_C(1) << 30, WEIR_PREFETCH_HYBRID_BYTES = UINT64_C(2) << 30,
                      WEIR_PREFETCH_SMS_BYTES = UINT64_C(4) << 30;

/* ---- who decodes (--decoder hybrid and auto: gpu_decode.c, choose_decoder.c) ---- */

/* Frames of a decode batch: nvJPEG's hardware backend is at its best from 64 to 256 (H200: 27,000 to 36,000 frames/s).
 */
enum { WEIR_DECODE_BATCH_MAX = 256 };
/* A decode batch that is not full goes when it has at least so many and another is being decoded, which takes about as
 * long as gathering more; to the SMs when its first frame has waited for so long. */
enum { WEIR_DECODE_BATCH_SMALL = WEIR_DECODE_BATCH_MAX / 4, WEIR_DECODE_PATIENCE_NS = 5 * 1000 * 1000 };
/* The SMs take part with so many frames in flight: what they hold for 30 ms of them (H200) does not stop the others. */
enum { WEIR_DECODE_SMS_FRAMES = 8 * WEIR_DECODE_BATCH_MAX };
/* Cores that hybrid leaves to others than decoding workers, by what is at work then: two threads that hand over to the
 * JPEG engines and one to the SMs, the uploader, the consumer, and two workers that read for the GPU. Leaving 3, 5, 7
 * and 9 gave 27.4, 29.1, 30.1 and 31.8 thousand images/s, within the 10 % by which rounds scatter (H200). */
enum { WEIR_DECODE_CORES_LEFT = 2 + 1 + 1 + 1 + 2 };
/* Frames a second of one JPEG engine of the H200, and of one core of the Xeon beside it while all of them work.
 * Measured at open they would be others in every run. */
static const double WEIR_DECODE_ENGINE_RATE = 4500, WEIR_DECODE_CORE_RATE = 450;
/* auto measures at open: so many frames of the dataset, for so long on either side. Both at once give this much of what
 * each gives alone (hybrid had 0.72 of the sum and more, H200), and have to be worth the cores. */
enum { WEIR_CHOICE_FRAMES = 64, WEIR_CHOICE_NS = 100 * 1000 * 1000 };
static const double WEIR_CHOICE_TOGETHER = 0.9, WEIR_CHOICE_WORTH_IT = 1.05;

/* ---- chunk coalescing (coalesce.c) ---- */

/* What a task may take on for later batches, so that its batch waits for them less than for the blocks: as many frames
 * as these have, half as many where frames must be decoded or converted, and no more than this. */
enum { WEIR_COALESCE_FRAMES = 256, WEIR_COALESCE_BYTES = 16 << 20, WEIR_COALESCE_SLOTS = 64 };
/* Memory of each worker for frames that are not put into the batch as they are stored. */
enum { WEIR_COALESCE_SCRATCH_BYTES = 64 << 20 };

/* ---- uploads (upload_batch.c) ---- */

/* Copies that are this far apart, on both sides by the same distance, are one: a call costs more than such a gap (at 55
 * GB/s, H200, it takes 1.2 us). */
enum { WEIR_UPLOAD_GAP_BYTES = 64 << 10 };

#endif
