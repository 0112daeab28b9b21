/* defaults.h: numeric policies of the pipeline, each with its source. None changes the content of a batch, except the
 * two decoding rates, which are therefore constants: with --deterministic they decide which frames the GPU decodes.
 * "H200" is an NVIDIA H200 with 16 cores of its host's Xeon; frames are 640 x 480, quality 95, unless stated otherwise.
 * docs/gpu.md and docs/benchmarks.md have the tables. */
#ifndef WEIR_PIPELINE_SAMPLES_DEFAULTS_H
#define WEIR_PIPELINE_SAMPLES_DEFAULTS_H

#include <stdint.h>

/* ---- prefetched batches (--prefetch auto, prefetch.c) ---- */

/* Frames in flight per worker, so that an idle worker finds a frame while others take longer. */
enum { WEIR_PREFETCH_FRAMES_PER_WORKER = 4, WEIR_PREFETCH_MIN = 2 };
/* For chunks of several frames: batches in flight share chunks, so more batches unpack fewer. For robomimic's gzip
 * frames of 84 x 84, 11,264 chunks were unpacked with --prefetch 32 instead of 36,480 (2 cores of an Intel Xeon). */
enum { WEIR_PREFETCH_CHUNKS = 16, WEIR_PREFETCH_CHUNKS_BYTES = 256 << 20 };
/* When a GPU decodes: decode batches being gathered, being decoded, and done but not yet delivered. With hybrid the CPU
 * decodes meanwhile, and the SMs take five times as long as the JPEG engines (30 ms for 256 frames, H200). */
enum { WEIR_PREFETCH_DECODE_BATCHES = 4, WEIR_PREFETCH_DECODE_BATCHES_HYBRID = 10 };
/* These slots are pinned and mirrored in GPU memory. Upper limits on their size, as one part in so many of free host
 * and GPU memory: the model needs the rest. */
enum { WEIR_PREFETCH_MEMORY_PART = 16, WEIR_PREFETCH_GPU_PART = 8 };
static const uint64_t WEIR_PREFETCH_NVJPEG_BYTES = UINT64_C(1) << 30, WEIR_PREFETCH_HYBRID_BYTES = UINT64_C(2) << 30,
                      WEIR_PREFETCH_SMS_BYTES = UINT64_C(4) << 30;

/* ---- division of decoding (--decoder hybrid and auto: gpu_decode.c, choose_decoder.c) ---- */

/* Frames per decode batch: nvJPEG's hardware backend is fastest from 64 to 256 (H200: 27,000 to 36,000 frames/s). */
enum { WEIR_DECODE_BATCH_MAX = 256 };
/* A partial decode batch is submitted when it has at least this many frames and another is being decoded, which takes
 * about as long as gathering more; to the SMs, when its first frame has waited this long. */
enum { WEIR_DECODE_BATCH_SMALL = WEIR_DECODE_BATCH_MAX / 4, WEIR_DECODE_PATIENCE_NS = 5 * 1000 * 1000 };
/* The SMs take part from this many frames in flight on: the frames that they hold for 30 ms (H200) then do not stall
 * the others. */
enum { WEIR_DECODE_SMS_FRAMES = 8 * WEIR_DECODE_BATCH_MAX };
/* Cores that hybrid leaves free of decoding workers: for two threads that submit to the JPEG engines and one to the
 * SMs, the uploader, the consumer, and two workers that read for the GPU. Leaving 3, 5, 7 and 9 gave 27.4, 29.1, 30.1
 * and 31.8 thousand images/s, within the 10 % by which rounds vary (H200). */
enum { WEIR_DECODE_CORES_LEFT = 2 + 1 + 1 + 1 + 2 };
/* Frames per second of one JPEG engine of the H200, and of one core of its host's Xeon while all cores work. Constants,
 * because figures measured at open would differ between runs. */
static const double WEIR_DECODE_ENGINE_RATE = 4500, WEIR_DECODE_CORE_RATE = 450;
/* auto measures at open: this many frames of the dataset, for this long on each side. Both together reach this fraction
 * of the sum of their separate rates (hybrid reached 0.72 and more, H200), and must be worth the cores. */
enum { WEIR_CHOICE_FRAMES = 64, WEIR_CHOICE_NS = 100 * 1000 * 1000 };
static const double WEIR_CHOICE_TOGETHER = 0.9, WEIR_CHOICE_WORTH_IT = 1.05;

/* ---- chunk coalescing (coalesce.c) ---- */

/* Limit on frames that a task loads for later batches, so that its own batch waits less for them than for the blocks:
 * as many frames as the blocks have, half as many when frames must be decoded or converted, and no more than this. */
enum { WEIR_COALESCE_FRAMES = 256, WEIR_COALESCE_BYTES = 16 << 20, WEIR_COALESCE_SLOTS = 64 };
/* Memory per worker for frames that are not put into the batch as stored. */
enum { WEIR_COALESCE_SCRATCH_BYTES = 64 << 20 };

/* ---- uploads (upload_batch.c) ---- */

/* Two copies with a gap of at most this size, equal on both sides, become one: a call costs more than the gap (1.2 us
 * at 55 GB/s, H200). */
enum { WEIR_UPLOAD_GAP_BYTES = 64 << 10 };

#endif
