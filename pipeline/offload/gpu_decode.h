/* gpu_decode.h: JPEG decoding on the GPU, for --decoder nvjpeg and hybrid.
 *
 * A worker fetches each frame. If an engine of the GPU accepts the frame, its bytes are copied to the image's
 * destination in the pinned slot, and the task continues without it; otherwise the CPU decodes it. Each engine has a
 * queue of frames from all batches, and threads that collect decode batches, submit them, wait, and complete each
 * frame. Submitting takes a thread about as long as the JPEG engines decode, longer next to busy cores, so the first
 * engine has a second thread, which works only while a full decode batch waits and the first thread is busy. Its
 * decoder is opened when the first thread has not kept up for a while: each nvJPEG decoder uses 14 streams and a GPU
 * has 32 hardware queues in total, so an unnecessary decoder slows the consumer's kernels. Planes go to the slot's
 * staging memory on the GPU, and the batch's prepare kernel converts them to pixels. A task ends when its last frame is
 * decoded, so a batch is complete when all its images are in host or staging memory.
 *
 * nvjpeg sends all frames that the JPEG engines accept to the GPU (to the SMs of a GPU without engines). hybrid keeps
 * both sides busy: frames go to the JPEG engines while fewer than two decode batches wait there, else to the SMs until
 * they have a decode batch, else to a worker. Some cores remain reserved for the submitting threads: when all others
 * are busy, the worker waits until one of the three accepts the frame. Each side works at its own rate, and the order
 * of samples does not depend on it.
 *
 * The SMs take about 30 ms per decode batch of any size, so they get one large batch at a time, and only if enough
 * frames are in flight to hide that time. They decode only when hybrid is requested by name: the JPEG engines return
 * the CPU's bits, the SMs do not (psnr_check.h), and their pixels depend on the other frames in the decode batch. */
#ifndef WEIR_PIPELINE_OFFLOAD_GPU_DECODE_H
#define WEIR_PIPELINE_OFFLOAD_GPU_DECODE_H

#include "decoders/gpu/gpu_jpeg.h"
#include "decoders/gpu/psnr_check.h"
#include "pipeline/gpu/gpu_ops.h"
#include "pipeline/gpu/intervals.h"
#include "pipeline/samples/defaults.h"
#include "pipeline/samples/shared.h"

enum { WEIR_DECODE_THREADS = 2 }; /* of the first engine */

/* A frame submitted to the GPU. */
struct weir_decode_job {
    struct weir_slot *slot;
    int at, task; /* index in the slot's order; the task it belongs to */
    struct weir_image image;
    enum weir_jpeg_sampling sampling;
    uint64_t kind;
    struct weir_gpu_jpeg_frame frame;
};

/* Result of a submitted frame: planes on the GPU, an image decoded by the CPU at its destination, or an error. */
struct weir_decode_result {
    const struct weir_gpu_source *planes; /* NULL: see code */
    int code;                             /* 0: the image is at its destination */
    const char *reason;                   /* of a negative code */
};

/* Receives the results. Called from the decoding threads; from one at a time where result->planes is NULL. */
struct weir_decode_client {
    void *user;
    void (*complete)(void *user, const struct weir_decode_job *frame, const struct weir_decode_result *result);
};

struct weir_decode_engine;

/* Used by one thread. */
struct weir_decode_batch {
    struct weir_decode_engine *engine;
    struct weir_gpu_jpeg *decoder;       /* the second thread's: NULL until needed, or if there is no memory for it */
    struct weir_gpu_jpeg_counts counted; /* decoder counts already added to the engine's */
    int n;
    struct weir_decode_job *jobs; /* arrays of WEIR_DECODE_BATCH_MAX */
    struct weir_gpu_jpeg_frame *frames;
    enum weir_jpeg_refusal *results;
    void *stream, *begin, *ends[2]; /* timed events; the two ends alternate because the previous one is still needed */
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
    _Atomic int n_decoding;                     /* decode batches that its threads are working on */
    _Atomic int decoding;                       /* frames in them */
    pthread_mutex_t lock;                       /* protects the queue */
    struct weir_eventcount wakeup, full_wakeup; /* frames are waiting; a full batch for the second thread is waiting */
    struct weir_decode_job *queue;              /* ring buffer with room for the frames of all slots */
    size_t first;
    size_t ahead;           /* hybrid: queue length above which frames go elsewhere */
    size_t full;            /* queue length at which the first thread does not keep up */
    _Atomic size_t waiting; /* frames in the queue */
    _Atomic size_t in_full; /* frames that the first thread took in consecutive full decode batches */
    /* Figures, protected by figures_lock: */
    void *last_end; /* of the last decode batch that has finished */
    int64_t last_end_ns;
    struct weir_intervals busy; /* by the GPU's clock, since the first decode batch */
    uint64_t busy_ns, frames_done, batches_done;
};

enum { WEIR_DECODE_ENGINES = 2 };

struct weir_gpu_decode {
    struct weir_shared *shared;
    struct weir_device *device; /* the upload's */
    int hardware;               /* JPEG engines of the GPU */
    bool hybrid;
    double gpu_fraction; /* fraction of the frames for the GPU if each frame's decoder is fixed; 0 = not fixed */
    int n_engines;
    struct weir_decode_engine engines[WEIR_DECODE_ENGINES]; /* in the order of preference */
    size_t capacity;                                        /* of each queue */
    _Atomic int here;                                       /* frames that workers are decoding now */
    int here_max;
    _Atomic uint64_t here_ns;              /* their total decoding time so far */
    struct weir_eventcount capacity_freed; /* an engine may accept frames again */
    struct weir_decode_client client;
    struct weir_psnr_check *psnr_check;
    struct weir_gpu_jpeg_tally tally;
    pthread_mutex_t figures_lock;        /* never held while a thread waits */
    struct weir_stage_stats batch_times; /* per decode batch, by the GPU's clock */
    pthread_mutex_t lock;                /* protects the members below */
    /* For comparing pixels, and for frames that the GPU did not decode: */
    struct weir_decoder *decoder; /* the CPU's; borrowed */
    uint8_t *bytes, *pictures[2];
    size_t bytes_capacity, picture_bytes;
    void *gpu_picture, *gpu_source, *compared; /* an event */
};

/* Call after the upload is open. */
int weir_gpu_decode_open(struct weir_shared *shared, struct weir_err *err);
/* decoder: a CPU decoder, borrowed until weir_gpu_decode_finish, for comparing pixels and for frames that the GPU did
 * not decode. client: copied; it is called once per submitted frame, unless the run ends first. */
int weir_gpu_decode_start(struct weir_gpu_decode *decode, struct weir_decoder *decoder,
                          const struct weir_decode_client *client, struct weir_err *err);
/* Joins the threads. The slots are stopped. */
void weir_gpu_decode_finish(struct weir_gpu_decode *decode);
/* Call before the upload is closed. Accepts NULL. */
void weir_gpu_decode_close(struct weir_gpu_decode **decode);

/* Returns whether SMs decode alongside the JPEG engines. Never for auto: it chooses by measured time and must not
 * change pixels, but the SMs' pixels depend on the other frames in the decode batch. */
bool weir_gpu_decode_wants_sms(const struct weir_shared *shared);

/* Returns how many of these workers may decode at the same time on this many cores, with hybrid. */
int weir_gpu_decode_workers(int workers, int cores);

/* Lays out the frame's planes one after the other without gaps. They never exceed the size of the RGB image. */
void weir_gpu_decode_set_planes(struct weir_gpu_jpeg_frame *frame, const struct weir_jpeg_header *header,
                                uint8_t *memory);

/* Submits a fetched frame. True: the client completes it later. False: the caller decodes it, and reports when it has
 * finished. */
bool weir_gpu_decode_take(struct weir_gpu_decode *decode, struct weir_slot *slot, int at,
                          const struct weir_image *image, const uint8_t *bytes, size_t length);
void weir_gpu_decode_done_here(struct weir_gpu_decode *decode, uint64_t took_ns);

/* ---- gpu_decode_run.c ---- */

/* Main function of a decode batch's thread. */
void *weir_gpu_decode_main(void *batch);
int weir_gpu_decode_open_decoder(struct weir_decode_batch *batch, struct weir_err *err);

/* ---- gpu_decode_complete.c ---- */

/* Completes each frame of a finished decode batch, and ends tasks whose last frame this was. */
int weir_gpu_decode_complete(struct weir_gpu_decode *decode, struct weir_decode_batch *batch, struct weir_err *err);

#endif
