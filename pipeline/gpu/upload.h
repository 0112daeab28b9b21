/* upload.h: how batches get to a GPU.
 *
 * Slots hold images as u8 RGB, interleaved, in pinned memory. The uploader thread takes complete slots in the order of
 * the run. It waits until the consumer and the GPU are through with one of a few output batches, queues the copy of the
 * slot (images to the slot's staging memory, all that needs no conversion to the tensors), and behind it the kernels
 * that write the tensors; then weir_loader_next may have the batch. The reaper thread waits for the copies and gives
 * their slots back to the workers: it alone arms slots. */
#ifndef WEIR_PIPELINE_GPU_UPLOAD_H
#define WEIR_PIPELINE_GPU_UPLOAD_H

#include "pipeline/gpu/gpu_blocks.h"
#include "pipeline/gpu/gpu_clocks.h"
#include "pipeline/gpu/gpu_device.h"
#include "pipeline/gpu/intervals.h"
#include "pipeline/shared.h"
#include "weir/loader.h"

enum { WEIR_UPLOAD_BATCHES = 3 }; /* one is with the consumer, one waits for it, one is being made */

enum weir_upload_state {
    WEIR_UPLOAD_EMPTY,    /* the uploader's */
    WEIR_UPLOAD_QUEUED,   /* the consumer's, or about to be */
    WEIR_UPLOAD_RETURNED, /* by the consumer; the GPU may still be at it */
};

/* An output batch. */
struct weir_upload_batch {
    _Atomic int state;
    uint64_t sequence;
    struct weir_batch batch;
    struct weir_sample *samples;
    struct weir_gpu_block *block;
    uint8_t *memory;      /* the block's; NULL once the last batch that it holds is kept */
    struct weir_err err;  /* of its slot: there is no batch */
    uint64_t task_id;     /* the task that completed it */
    uint64_t bytes;       /* copied */
    _Atomic bool lent;    /* to the consumer */
    bool prepared;        /* by kernels */
    bool rebased;         /* the other base event was recorded before its copy */
    bool waited, ordered; /* the consumer's stream waited for it; it was released after that stream's work */
    bool stepped;         /* the consumer said where its step ended, before it released it */
    /* Timed events, on the copy stream, the stream of preparation (the copy stream without), the consumer's. That of
     * the release is the block's. */
    void *copy_begin, *copy_end, *prepare_begin, *ready, *stall_begin, *stall_end, *step_end;
    void *marks[WEIR_GPU_MARKED_MAX]; /* ends of parts of the step, on the consumer's stream */
    int mark_stages[WEIR_GPU_MARKED_MAX], n_marks;
};

/* What a slot has on the GPU. */
struct weir_upload_slot {
    uint8_t *staging;
    void *copied; /* event */
};

/* Colour images that are prepared by one kernel: those of a tensor, or of one camera where the GPU crops or resizes. */
struct weir_upload_images {
    int tensor; /* of the output batch */
    int n_cameras;
    int cameras[WEIR_CAMERAS_MAX];
    size_t first_source; /* among the batch's */
    bool alone;          /* one camera, of a tensor that others may share */
    bool resamples;
    struct weir_gpu_taps columns, rows;
    void *taps; /* the GPU's memory for them */
};

struct weir_upload_times {
    void *base[2]; /* events that positions are counted from; the other one is the next */
    int now;
    int64_t base_ns; /* position of base[now] */
    uint64_t base_at_ns, base_every_ns;
    bool rebasing;
    struct weir_intervals steps, busy;
    struct weir_gpu_figures figures;
};

enum weir_uploading {
    WEIR_UPLOADING_NOTHING,
    WEIR_UPLOADING_WAIT_BATCH,
    WEIR_UPLOADING_WAIT_SLOT,
    WEIR_UPLOADING_QUEUE
};
enum weir_reaping { WEIR_REAPING_NOTHING, WEIR_REAPING_WAIT_QUEUED, WEIR_REAPING_WAIT_COPY };

/* Makes a batch on the thread that waits for it: where there are no workers. */
struct weir_batch_maker {
    void *user;
    void (*make)(void *user, uint64_t sequence);
};

struct weir_upload {
    struct weir_shared *shared;
    struct weir_batch_maker maker; /* make NULL = workers do */
    struct weir_device *device;
    struct weir_pixel_format format; /* of the tensors */
    struct weir_batch_layout layout; /* of the output batches */
    bool direct;                     /* the slots have it already: no staging, no kernels */
    int n_images;
    struct weir_upload_images images[WEIR_CAMERAS_MAX];
    size_t staged_bytes;  /* of a slot: its colour images */
    size_t staging_bytes; /* of a slot's memory on the GPU */
    size_t memory_bytes;  /* of the GPU's memory, without the output batches' */
    bool pinned;
    int n_batches;
    struct weir_upload_batch batches[WEIR_UPLOAD_BATCHES];
    struct weir_gpu_blocks *blocks; /* their memory */
    struct weir_upload_slot *slots;
    void *copy_stream, *prepare_stream;
    struct weir_gpu_clocks *clocks; /* inside the kernels that prepare; NULL: there are none */
    float values[3][256];
    void *gpu_values;
    uint64_t first;                /* batch of the run */
    struct weir_eventcount wakeup; /* for what follows, and the states of batches */
    _Atomic uint64_t acquired;     /* batch number + 1 that has got an output batch */
    _Atomic uint64_t queued;       /* batch number + 1 that is queued, or has failed */
    _Atomic bool failed;
    pthread_mutex_t lock; /* of err, times and collected */
    struct weir_err err;
    struct weir_upload_times times;
    uint64_t collected; /* batch number + 1 whose times were read */
    uint64_t made;      /* by the maker: batch number + 1 */
    pthread_t uploader, reaper;
    bool uploader_started, reaper_started;
    _Atomic int uploading, reaping; /* for the watchdog */
    _Atomic uint64_t reaped;        /* the batch that the reaper is at */
};

static inline struct weir_upload_batch *weir_upload_batch_of(struct weir_upload *upload, uint64_t sequence)
{
    return &upload->batches[sequence % (uint64_t)upload->n_batches];
}

/* ---- upload.c ---- */

/* What the slots hold, for a run whose batches are to be format on a GPU. */
struct weir_pixel_format weir_upload_slot_format(const struct weir_pixel_format *format, const char *decoder);
/* weir_batch_layout_init for the slots, or for the output batches, of such a run. */
int weir_upload_layout(struct weir_batch_layout *layout, const struct weir_shared *shared,
                       const struct weir_view *views, const struct weir_pixel_format *format, struct weir_err *err);

/* Takes GPU number into use, pins the slots (open already), allocates. format: of the tensors; left: batches of the
 * run. On failure weir_upload_close frees what there is. */
int weir_upload_open(struct weir_shared *shared, int number, const struct weir_pixel_format *format, uint64_t first,
                     struct weir_err *err);
/* Memory of the GPU, counted. */
int weir_upload_alloc(struct weir_upload *upload, size_t bytes, void **memory, struct weir_err *err);
/* Frees all; waits for what the GPU still does for it. */
void weir_upload_close(struct weir_upload **upload);

/* ---- upload_run.c ---- */

/* maker: copied; NULL where workers make the batches. */
int weir_upload_start(struct weir_upload *upload, const struct weir_batch_maker *maker, struct weir_err *err);
/* The slots are stopped: joins the threads and reads the last times. */
void weir_upload_finish(struct weir_upload *upload);
struct weir_waited {
    uint64_t data_ns, gpu_ns; /* for data, and for the GPU alone; without what recording a wait takes */
};
/* Blocks until the batch is queued (or its slot has failed), timed as waits of the consumer; the maker, if any, makes
 * it first. 1; 0 when stopped, or when the upload failed; -EINTR as weir_slot_wait_interruptible. */
int weir_upload_wait(struct weir_upload *upload, uint64_t sequence, struct weir_waited *waited);
/* Keeps the first error, and stops the run. */
void weir_upload_fail(struct weir_upload *upload, const struct weir_err *err);
/* The error that was kept, or 0. Any thread. */
int weir_upload_error(struct weir_upload *upload, struct weir_err *err);

/* ---- upload_batch.c ---- */

int weir_upload_batch_open(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err);
void weir_upload_batch_close(struct weir_upload *upload, struct weir_upload_batch *batch);
/* Queues all that makes the batch out of its complete slot. */
int weir_upload_queue(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_slot *slot,
                      struct weir_err *err);
/* The consumer has it from now on. */
void weir_upload_lend(struct weir_upload *upload, struct weir_upload_batch *batch);
/* What is on the stream from now on waits for the batch. */
int weir_upload_order(struct weir_upload *upload, struct weir_upload_batch *batch, void *stream, struct weir_err *err);
/* What the stream did since then, or since the last mark, is this stage's. -EINVAL: the batch has all its marks. */
int weir_upload_mark(struct weir_upload *upload, struct weir_upload_batch *batch, int stage, void *stream,
                     struct weir_err *err);
/* The consumer's step with it ends here on the stream. */
int weir_upload_step_end(struct weir_upload *upload, struct weir_upload_batch *batch, void *stream,
                         struct weir_err *err);
/* The consumer gives it back, after what is on the streams. */
int weir_upload_return(struct weir_upload *upload, struct weir_upload_batch *batch, void *const *streams, int n,
                       struct weir_err *err);
/* The same, but its block is the consumer's; the batch gets another one if it is to be made again. Waits for the GPU to
 * have made it. -ENOMEM: nothing has changed. */
int weir_upload_keep(struct weir_upload *upload, struct weir_upload_batch *batch, bool another,
                     struct weir_gpu_block **block, struct weir_err *err);
/* Blocks until the GPU is through with a batch that was returned. */
int weir_upload_batch_wait(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err);

/* ---- upload_times.c ---- */

int weir_upload_times_open(struct weir_upload *upload, struct weir_err *err);
void weir_upload_times_close(struct weir_upload *upload);
/* Before the batch's copy is queued: a new base when the last one is old. */
int weir_upload_times_begin(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err);
/* Reads the times of all batches, in order, that were returned and that the GPU is through with. Any thread. */
int weir_upload_times_collect(struct weir_upload *upload, struct weir_err *err);

#endif
