/* gpu_decode.h: JPEG decoding on the GPU, for --decoder nvjpeg and hybrid.
 *
 * A worker fetches each frame. If one of the GPU's engines accepts the frame, its bytes are copied to the image's
 * destination in the pinned slot, and the task continues without waiting for the result. Otherwise the CPU decodes the
 * frame. Each engine has a queue of frames from all batches. Its threads collect decode batches, submit them, wait for
 * them, and complete each frame.
 *
 * Submitting a decode batch takes a thread about as long as the JPEG engines need to decode it, and longer if all cores
 * are busy, so the first engine has a second thread. This thread works only while a full decode batch waits and the
 * first thread is busy. Its decoder is opened only after the first thread has been behind for a while, because each
 * nvJPEG decoder uses 14 streams and a GPU has only 32 hardware queues. An unnecessary decoder would slow down the
 * consumer's kernels.
 *
 * The engines write planes to the slot's staging memory on the GPU, and the batch's prepare kernel converts them to
 * pixels. A task ends when its last frame is decoded, so a batch is complete when all its images are in host memory or
 * staging memory.
 *
 * With nvjpeg, the GPU decodes all frames that the JPEG engines accept (or the SMs, on a GPU without JPEG engines).
 * With hybrid, CPU and GPU both decode. A frame is sent to the JPEG engines if fewer than two decode batches wait
 * there, otherwise to the SMs if they still need frames for a decode batch, and otherwise to a worker. Some cores
 * remain reserved for the submitting threads. If all other cores are busy, the worker waits until one of the three can
 * accept the frame. CPU and GPU work at their own rates, which does not affect the order of samples.
 *
 * The SMs take about 30 ms per decode batch of any size, so they decode one large batch at a time, and only if enough
 * frames are in flight to hide that time. They are used only if hybrid is requested by name: the JPEG engines return
 * the same bits as the CPU, but the SMs do not (psnr_check.h), and their pixels depend on the other frames in the
 * decode batch. */
#ifndef WEIR_PIPELINE_OFFLOAD_GPU_DECODE_H
#define WEIR_PIPELINE_OFFLOAD_GPU_DECODE_H

#include "decoders/gpu/gpu_jpeg.h"
#include "decoders/gpu/psnr_check.h"
#include "pipeline/gpu/gpu_ops.h"
#include "pipeline/gpu/intervals.h"
#include "pipeline/samples/defaults.h"
#include "pipeline/samples/shared.h"

#include <stdbool.h>

enum { WEIR_DECODE_THREADS = 2 }; /* threads of the first engine */

/* A frame submitted to the GPU. */
struct weir_decode_job {
    struct weir_slot *slot;
    int at, task; /* index in the slot's order; index of the frame's task in the slot */
    struct weir_image image;
    enum weir_jpeg_sampling sampling;
    uint64_t kind;
    struct weir_gpu_jpeg_frame frame;
};

/* Result of a submitted frame: planes on the GPU, an image decoded by the CPU at its destination, or an error. */
struct weir_decode_result {
    const struct weir_gpu_source *planes; /* NULL = not on the GPU; see code */
    int code;                             /* 0 = the image is at its destination; negative = error */
    const char *reason;                   /* reason for a negative code */
};

/* Receives the results. Called on the decoding threads. Calls in which result->planes is NULL do not overlap. */
struct weir_decode_client {
    void *user;
    void (*complete)(void *user, const struct weir_decode_job *frame, const struct weir_decode_result *result);
};

struct weir_decode_engine;

/* A decode batch; only one thread uses it. */
struct weir_decode_batch {
    struct weir_decode_engine *engine;
    struct weir_gpu_jpeg *decoder;       /* for the second thread: NULL until needed, or if there is no memory for it */
    struct weir_gpu_jpeg_counts counted; /* the decoder's counts that the engine's counts already include */
    int n;
    struct weir_decode_job *jobs; /* this and the next two are arrays of WEIR_DECODE_BATCH_MAX */
    struct weir_gpu_jpeg_frame *frames;
    enum weir_jpeg_refusal *results;
    void *stream, *begin, *ends[2]; /* timed events; the ends alternate, because the previous one is still needed */
    int turn;
    pthread_t thread;
    bool started;
};

/* One decoder of the GPU: JPEG engines or SMs. */
struct weir_decode_engine {
    struct weir_gpu_decode *decode;
    enum weir_gpu_jpeg_engine kind;
    bool patient; /* decodes one large batch at a time */
    struct weir_decode_batch batches[WEIR_DECODE_THREADS];
    int n_batches;
    _Atomic int n_decoding;                     /* number of decode batches in progress */
    _Atomic int decoding;                       /* number of frames in these batches */
    pthread_mutex_t lock;                       /* protects the queue */
    struct weir_eventcount wakeup, full_wakeup; /* frames wait; a full batch waits for the second thread */
    struct weir_decode_job *queue;              /* ring buffer with room for the frames of all slots */
    size_t first;
    size_t ahead;           /* hybrid: at this queue length and above, frames are sent elsewhere */
    size_t full;            /* at this queue length and above, the first thread counts as behind */
    _Atomic size_t waiting; /* number of frames in the queue */
    _Atomic size_t in_full; /* frames that the first thread took in consecutive full batches */
    /* Figures, protected by figures_lock: */
    void *last_end; /* end event of the last decode batch that has finished */
    int64_t last_end_ns;
    struct weir_intervals busy; /* busy intervals, measured by the GPU's clock since the first decode batch */
    uint64_t busy_ns, frames_done, batches_done;
};

enum { WEIR_DECODE_ENGINES = 2 };

struct weir_gpu_decode {
    struct weir_shared *shared;
    struct weir_device *device; /* borrowed from the upload */
    int hardware;               /* number of JPEG engines of the GPU */
    bool hybrid;
    double gpu_fraction; /* fraction of frames that the GPU decodes if each frame's decoder is fixed; 0 = not fixed */
    int n_engines;
    struct weir_decode_engine engines[WEIR_DECODE_ENGINES]; /* in order of preference */
    size_t capacity;                                        /* size of each queue, in frames */
    _Atomic int here;                                       /* number of frames that workers are decoding now */
    int here_max;
    _Atomic uint64_t here_ns;              /* time that workers have spent on decoding */
    struct weir_eventcount capacity_freed; /* signalled when an engine may accept frames again */
    struct weir_decode_client client;
    struct weir_psnr_check *psnr_check;
    struct weir_gpu_jpeg_tally tally;
    pthread_mutex_t figures_lock;        /* never held while a thread waits */
    struct weir_stage_stats batch_times; /* times of decode batches, measured by the GPU's clock */
    pthread_mutex_t lock;                /* protects the members below */
    /* For comparing pixels, and for frames that the GPU has not decoded: */
    struct weir_decoder *decoder; /* CPU decoder; borrowed */
    uint8_t *bytes, *pictures[2];
    size_t bytes_capacity, picture_bytes;
    void *gpu_picture, *gpu_source, *compared; /* compared: an event */
};

/* The upload must be open. */
int weir_gpu_decode_open(struct weir_shared *shared, struct weir_err *err);
/* decoder: a CPU decoder for comparing pixels and for frames that the GPU has not decoded; borrowed until
 * weir_gpu_decode_finish. client is copied; it is called once per submitted frame, unless the run ends first. */
int weir_gpu_decode_start(struct weir_gpu_decode *decode, struct weir_decoder *decoder,
                          const struct weir_decode_client *client, struct weir_err *err);
/* Joins the threads. The slots must be stopped. */
void weir_gpu_decode_finish(struct weir_gpu_decode *decode);
/* Call this before closing the upload. Accepts NULL. */
void weir_gpu_decode_close(struct weir_gpu_decode **decode);

/* Returns whether the SMs decode alongside the JPEG engines. They never do with auto, which chooses by measured time
 * and therefore must not change pixels: the SMs' pixels depend on the other frames in the decode batch. */
bool weir_gpu_decode_wants_sms(const struct weir_shared *shared);

/* With hybrid: returns how many of the workers may decode simultaneously on this many cores. */
int weir_gpu_decode_workers(int workers, int cores);

/* Lays out the frame's planes one after the other, without gaps. Together they never exceed the size of the RGB image.
 */
void weir_gpu_decode_set_planes(struct weir_gpu_jpeg_frame *frame, const struct weir_jpeg_header *header,
                                uint8_t *memory);

/* Submits a fetched frame. Returns true if the client will complete the frame later. Otherwise the caller must decode
 * it and then call weir_gpu_decode_done_here. */
bool weir_gpu_decode_take(struct weir_gpu_decode *decode, struct weir_slot *slot, int at,
                          const struct weir_image *image, const uint8_t *bytes, size_t length);
void weir_gpu_decode_done_here(struct weir_gpu_decode *decode, uint64_t took_ns);

/* ---- gpu_decode_run.c ---- */

/* Main function of a decoding thread. batch: struct weir_decode_batch of the thread. */
void *weir_gpu_decode_main(void *batch);
int weir_gpu_decode_open_decoder(struct weir_decode_batch *batch, struct weir_err *err);

/* ---- gpu_decode_complete.c ---- */

/* Completes each frame of a finished decode batch. A task ends with its last frame. */
int weir_gpu_decode_complete(struct weir_gpu_decode *decode, struct weir_decode_batch *batch, struct weir_err *err);

/* ---- choose_decoder.c: chooses the decoder for --decoder auto. Times the CPU's cores and the GPU's JPEG engines on
 * some of the dataset's frames, for a tenth of a second each. The CPU's turn is longer if each core needs more time to
 * decode two frames. */

struct weir_shared;
struct weir_decoder_choice;

/* Returns whether any camera of any episode has JPEGs. All other frames are decoded by the CPU, whatever the decoder
 * is. */
bool weir_has_jpegs(const struct weir_shared *shared);

/* Fills in all members except `requested`. gpu: number of the GPU; -1 = no GPU, and nothing is measured. The
 * dataset and its probes must be open. If the GPU cannot decode, the CPU is chosen and `why` contains the reason; this
 * is not an error. A lost GPU is reported to the next function that uses it. */
void weir_choose_decoder(struct weir_decoder_choice *choice, const struct weir_shared *shared, int gpu);

#endif
