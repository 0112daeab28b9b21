/* defaults.h: numeric policies of the pipeline, each with its source. They do not affect the contents of batches,
 * except for the two decoding rates: with --deterministic these decide which frames the GPU decodes, so they are
 * constants. "H200" means an NVIDIA H200 with 16 cores of its host's Xeon. Frames are JPEGs of 640 x 480 pixels and
 * quality 95, unless stated otherwise. docs/internals/gpu.md and docs/benchmarks.md have the tables. */
#ifndef WEIR_PIPELINE_SAMPLES_DEFAULTS_H
#define WEIR_PIPELINE_SAMPLES_DEFAULTS_H

#include <stdint.h>

/* ---- prefetched batches (--prefetch auto, prefetch.c) ---- */

/* Frames in flight per worker, so that an idle worker finds a frame even if other workers' frames take longer. */
enum { WEIR_PREFETCH_FRAMES_PER_WORKER = 4, WEIR_PREFETCH_MIN = 2 };
/* For chunks that hold several frames: batches in flight share chunks, so fewer chunks are unpacked if more batches are
 * in flight. For robomimic's gzip frames of 84 x 84, --prefetch 32 reduced the number of unpacked chunks from 36,480 to
 * 11,264 (2 cores of an Intel Xeon). */
enum { WEIR_PREFETCH_CHUNKS = 16, WEIR_PREFETCH_CHUNKS_BYTES = 256 << 20 };
/* Number of decode batches in flight if a GPU decodes: some are being gathered, some are being decoded, and some are
 * done but not yet delivered. hybrid needs more, because the CPU decodes at the same time and the SMs take five times
 * as long as the JPEG engines (30 ms for 256 frames, H200). */
enum { WEIR_PREFETCH_DECODE_BATCHES = 4, WEIR_PREFETCH_DECODE_BATCHES_HYBRID = 10 };
/* Slots are pinned and mirrored in GPU memory if a GPU decodes. Their size is limited to 1/16 of free host memory and
 * 1/8 of free GPU memory, because the model needs the rest. */
enum { WEIR_PREFETCH_MEMORY_PART = 16, WEIR_PREFETCH_GPU_PART = 8 };
static const uint64_t WEIR_PREFETCH_NVJPEG_BYTES = UINT64_C(1) << 30, WEIR_PREFETCH_HYBRID_BYTES = UINT64_C(2) << 30,
                      WEIR_PREFETCH_SMS_BYTES = UINT64_C(4) << 30;

/* ---- division of decoding (--decoder hybrid and auto: gpu_decode.c, choose_decoder.c) ---- */

/* Max frames per decode batch. nvJPEG's hardware backend is fastest with 64 to 256 (H200: 27,000 to 36,000 frames/s).
 */
enum { WEIR_DECODE_BATCH_MAX = 256 };
/* A partial decode batch is submitted early in two cases. The JPEG engines get it at this size while another batch is
 * being decoded, because the decoding takes about as long as gathering more frames. The SMs get it when its first frame
 * has waited for this time. */
enum { WEIR_DECODE_BATCH_SMALL = WEIR_DECODE_BATCH_MAX / 4, WEIR_DECODE_PATIENCE_NS = 5 * 1000 * 1000 };
/* The SMs are used if at least this many frames are in flight. The frames that they hold for 30 ms (H200) then do not
 * stall the other decoders. */
enum { WEIR_DECODE_SMS_FRAMES = 8 * WEIR_DECODE_BATCH_MAX };
/* Cores that hybrid does not use for decoding workers: two for the threads that submit to the JPEG engines, one each
 * for the thread that submits to the SMs, the uploader and the consumer, and two for workers that read for the GPU.
 * With 3, 5, 7 and 9 such cores, rates were 27.4, 29.1, 30.1 and 31.8 thousand images/s; rounds vary by 10 % (H200). */
enum { WEIR_DECODE_CORES_LEFT = 2 + 1 + 1 + 1 + 2 };
/* Frames per second of one JPEG engine of the H200, and of one core of its host's Xeon while all cores are busy. These
 * are constants, because measurements at open would differ between runs. */
static const double WEIR_DECODE_ENGINE_RATE = 4500, WEIR_DECODE_CORE_RATE = 450;
/* At open, auto measures this many frames of the dataset, for this long on the CPU and on the GPU. It assumes that both
 * together reach WEIR_CHOICE_TOGETHER times the sum of their rates (hybrid reached 0.72 and more, H200). It chooses
 * both only if they are WEIR_CHOICE_WORTH_IT times as fast as the better one, to be worth the cores. */
enum { WEIR_CHOICE_FRAMES = 64, WEIR_CHOICE_NS = 100 * 1000 * 1000 };
static const double WEIR_CHOICE_TOGETHER = 0.9, WEIR_CHOICE_WORTH_IT = 1.05;

/* ---- chunk coalescing (coalesce.c) ---- */

/* Limits on the frames that a task loads for later batches, and on the number of these batches. The task may load as
 * many frames as the blocks have, or half as many if frames must be decoded or converted, but no more than these
 * limits. This way its own batch waits less for these frames than for the blocks. */
enum { WEIR_COALESCE_FRAMES = 256, WEIR_COALESCE_BYTES = 16 << 20, WEIR_COALESCE_SLOTS = 64 };
/* Memory per worker for frames that cannot be put into the batch as stored. */
enum { WEIR_COALESCE_SCRATCH_BYTES = 64 << 20 };

/* ---- uploads (upload_batch.c) ---- */

/* Two copies are joined if the gap between them is the same on both sides and at most this size, because a separate
 * call costs more than copying the gap (1.2 us at 55 GB/s, H200). */
enum { WEIR_UPLOAD_GAP_BYTES = 64 << 10 };

#endif
