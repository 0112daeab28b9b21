/* gpu_decode.h: JPEGs that a GPU decodes, for --decoder nvjpeg and hybrid.
 *
 * A worker reads a frame as ever. If one of the GPU's engines takes it, its bytes go to the image's destination in
 * the slot, which is pinned, and the task goes on without it; else the CPU decodes it. Each engine has a queue
 * of what workers have handed over, of whatever batches, and threads that take decode batches of it, hand them to the
 * engine, wait, and take each frame where it belongs. Handing over takes a thread about as long as the JPEG engines
 * decode, longer beside busy cores, so the first engine has a second thread, which works only while a full decode batch
 * waits and the first is busy. Its decoder is opened when the first has not kept up for a while: nvJPEG gives each 14
 * streams, and a GPU has 32 queues for all there are, so that a decoder too many is in the way of the consumer's
 * kernels. Planes go to the slot's staging memory on the GPU; what prepares the batch makes pixels of them. A task ends
 * when the last of its frames has come back, so that a batch is complete when all its images are in one of the two
 * memories.
 *
 * With nvjpeg all frames go to the GPU that its JPEG engines take (the SMs' of a GPU that has none). With hybrid each
 * side has as many as keep it busy: frames go to the JPEG engines while fewer than two decode batches wait for them,
 * else to the SMs until these have a decode batch, else a worker decodes them, except that cores are left for the
 * threads that hand over to the GPU: then it waits until one of them takes the frame. So each works at its own rate,
 * and the order of samples knows nothing of it.
 *
 * The SMs take some 30 ms for a decode batch of whatever size, so they get one large decode batch at a time, and only
 * where enough frames are in flight for nobody to wait for it. They take part
 * when hybrid was asked for by name: the JPEG engines give the CPU's bits, they do not (psnr_check.h), and what they
 * give depends on the decode batch. */
#ifndef WEIR_PIPELINE_GPU_GPU_DECODE_H
#define WEIR_PIPELINE_GPU_GPU_DECODE_H

#include "decoders/gpu/gpu_jpeg.h"
#include "decoders/gpu/psnr_check.h"
#include "pipeline/defaults.h"
#include "pipeline/gpu/gpu_ops.h"
#include "pipeline/gpu/intervals.h"
#include "pipeline/shared.h"

enum { WEIR_DECODE_THREADS = 2 }; /* of the first engine */

/* A frame that was handed over. */
struct weir_handed {
    struct weir_slot *slot;
    int at, task; /* in the slot's order; whose frame it is */
    struct weir_image image;
    enum weir_jpeg_sampling sampling;
    uint64_t kind;
    struct weir_gpu_jpeg_frame frame;
};

/* What became of it: planes on the GPU, or a picture that the CPU made at the image's destination, or none. */
struct weir_decoded {
    const struct weir_gpu_source *planes; /* NULL: what follows */
    int code;                             /* 0: the picture is there */
    const char *reason;                   /* of a negative code */
};

/* Gets the results. Called from the threads that decode; one at a time where result->planes is NULL. */
struct weir_decode_client {
    void *user;
    void (*complete)(void *user, const struct weir_handed *frame, const struct weir_decoded *result);
};

struct weir_decode_engine;

/* One thread's. */
struct weir_decode_batch {
    struct weir_decode_engine *engine;
    struct weir_gpu_jpeg *decoder; /* of the second: NULL until it is needed, and when there is no memory for it */
    struct weir_gpu_jpeg_counts counted; /* of what the decoder has done, in the engine's figures */
    int n;
    struct weir_handed *handed; /* WEIR_DECODE_BATCH_MAX of each */
    struct weir_gpu_jpeg_frame *frames;
    enum weir_jpeg_refusal *results;
    void *stream, *begin, *ends[2]; /* timed events; the ends in turns: the last one is still asked for */
    int turn;
    pthread_t thread;
    bool started;
};

/* One of the GPU's ways to decode. */
struct weir_decode_engine {
    struct weir_gpu_decode *decode;
    enum weir_gpu_jpeg_engine kind;
    bool patient; /* its decode batches are to be large, and it has one at a time */
    struct weir_decode_batch batches[WEIR_DECODE_THREADS];
    int n_batches;
    _Atomic int n_decoding;                     /* decode batches that its threads are busy with */
    _Atomic int decoding;                       /* frames in them */
    pthread_mutex_t lock;                       /* of the queue */
    struct weir_eventcount wakeup, full_wakeup; /* frames wait; as many as the second thread takes */
    struct weir_handed *queue;                  /* a ring buffer; as large as all slots together */
    size_t first;
    size_t ahead;           /* hybrid: as many may wait before others get frames */
    size_t full;            /* as many wait: the first thread does not keep up */
    _Atomic size_t waiting; /* in it */
    _Atomic size_t in_full; /* frames that the first thread took in full decode batches, one after the other */
    /* figures, under the lock for them */
    void *last_end; /* of the last decode batch that has passed */
    int64_t last_end_ns;
    struct weir_intervals busy; /* by the GPU's clock, from the first decode batch on */
    uint64_t busy_ns, frames_done, batches_done;
};

enum { WEIR_DECODE_ENGINES = 2 };

struct weir_gpu_decode {
    struct weir_shared *shared;
    struct weir_device *device; /* the upload's */
    int hardware;               /* how many JPEG engines the GPU has */
    bool hybrid;
    double gpu_fraction; /* of the frames that are the GPU's when each frame's engine is fixed; 0 = it is not */
    int n_engines;
    struct weir_decode_engine engines[WEIR_DECODE_ENGINES]; /* in the order in which they are offered frames */
    size_t capacity;                                        /* of each queue */
    _Atomic int here;                                       /* frames that workers decode at this moment */
    int here_max;
    _Atomic uint64_t here_ns;              /* that they took, so far */
    struct weir_eventcount capacity_freed; /* somebody may take frames again */
    struct weir_decode_client client;
    struct weir_psnr_check *psnr_check;
    struct weir_gpu_jpeg_tally tally;
    pthread_mutex_t figures_lock;        /* never held while somebody waits */
    struct weir_stage_stats batch_times; /* of decode batches, by the GPU's clock */
    pthread_mutex_t lock;                /* of what follows */
    /* for comparing, and for frames that come back */
    struct weir_decoder *decoder; /* the CPU's, lent */
    uint8_t *bytes, *pictures[2];
    size_t bytes_capacity, picture_bytes;
    void *gpu_picture, *gpu_source, *compared; /* an event */
};

/* After the upload. */
int weir_gpu_decode_open(struct weir_shared *shared, struct weir_err *err);
/* decoder: of the CPU, lent until finish: for comparing, and for frames that come back. client: copied; each frame that
 * was handed over is completed by one call, unless the run ends first. */
int weir_gpu_decode_start(struct weir_gpu_decode *decode, struct weir_decoder *decoder,
                          const struct weir_decode_client *client, struct weir_err *err);
/* The slots are stopped: joins the threads. */
void weir_gpu_decode_finish(struct weir_gpu_decode *decode);
/* Before the upload. Accepts NULL. */
void weir_gpu_decode_close(struct weir_gpu_decode **decode);

/* SMs are to decode beside JPEG engines. Not for auto: it chooses by a clock, and what it chooses gives the same
 * pixels; and what the SMs make of a frame depends on what else is in the decode batch. */
bool weir_gpu_decode_wants_sms(const struct weir_shared *shared);

/* With hybrid, how many of so many workers may decode at a time on so many cores. */
int weir_gpu_decode_workers(int workers, int cores);

/* Lays the frame's planes out, one after the other and without gaps: never more than its picture takes as RGB. */
void weir_gpu_decode_set_planes(struct weir_gpu_jpeg_frame *frame, const struct weir_jpeg_header *header,
                                uint8_t *memory);

/* Hands a fetched frame over: true, and the client completes it later, or false: the caller decodes it, and says when
 * it has. */
bool weir_gpu_decode_take(struct weir_gpu_decode *decode, struct weir_slot *slot, int at,
                          const struct weir_image *image, const uint8_t *bytes, size_t length);
void weir_gpu_decode_done_here(struct weir_gpu_decode *decode, uint64_t took_ns);

/* ---- gpu_decode_run.c ---- */

/* Of the decode batch's thread. */
void *weir_gpu_decode_main(void *batch);
int weir_gpu_decode_open_decoder(struct weir_decode_batch *batch, struct weir_err *err);

/* ---- gpu_decode_complete.c ---- */

/* The decode batch has passed: takes each frame where it belongs, and ends the tasks that waited for the last of
 * theirs. */
int weir_gpu_decode_complete(struct weir_gpu_decode *decode, struct weir_decode_batch *batch, struct weir_err *err);

#endif
