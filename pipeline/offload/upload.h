/* upload.h: copies batches to a GPU.
 *
 * Slots hold images as interleaved u8 RGB in pinned memory. The uploader thread takes complete slots in the order of
 * the run. It waits until the consumer and the GPU have finished with one of a few output batches, queues the copy of
 * the slot (images to the slot's staging memory, everything else to its tensors), and then the kernels that write the
 * image tensors; then weir_loader_next may deliver the batch. The reaper thread waits for the copies and returns their
 * slots to the workers: only it arms slots. */
#ifndef WEIR_PIPELINE_OFFLOAD_UPLOAD_H
#define WEIR_PIPELINE_OFFLOAD_UPLOAD_H

#include "pipeline/gpu/gpu_blocks.h"
#include "pipeline/gpu/gpu_clocks.h"
#include "pipeline/gpu/gpu_device.h"
#include "pipeline/gpu/intervals.h"
#include "pipeline/samples/shared.h"
#include "weir/loader.h"

enum { WEIR_UPLOAD_BATCHES = 3 }; /* one with the consumer, one ready, one being made */

enum weir_upload_state {
    WEIR_UPLOAD_EMPTY,    /* owned by the uploader */
    WEIR_UPLOAD_QUEUED,   /* owned by the consumer, or ready for it */
    WEIR_UPLOAD_RETURNED, /* by the consumer; the GPU may still use it */
};

/* An output batch. */
struct weir_upload_batch {
    _Atomic int state;
    uint64_t sequence;
    struct weir_batch batch;
    struct weir_sample *samples;
    struct weir_gpu_block *block;
    uint8_t *memory;      /* of the block; NULL once the last batch in it is kept */
    struct weir_err err;  /* error of its slot: there is no batch */
    uint64_t task_id;     /* the task that completed it */
    uint64_t bytes;       /* copied */
    _Atomic bool lent;    /* to the consumer */
    bool prepared;        /* a kernel writes its images */
    bool rebased;         /* the base event alternated before its copy */
    bool waited, ordered; /* the consumer's stream waits for it; it was released after that stream's work */
    bool stepped;         /* the consumer marked the end of its step before releasing it */
    /* Timed events on the copy stream, the prepare stream (the copy stream without kernels), and the consumer's stream.
     * The release event belongs to the block. */
    void *copy_begin, *copy_end, *prepare_begin, *ready, *stall_begin, *stall_end, *step_end;
    void *marks[WEIR_GPU_MARKED_MAX]; /* ends of parts of the step, on the consumer's stream */
    int mark_stages[WEIR_GPU_MARKED_MAX], n_marks;
};

/* GPU resources of a slot. */
struct weir_upload_slot {
    uint8_t *staging;
    void *copied; /* event */
};

/* Colour images converted by one kernel launch: those of a tensor, or of one camera that the GPU crops or resizes. */
struct weir_upload_images {
    int tensor; /* of the output batch */
    int n_cameras;
    int cameras[WEIR_CAMERAS_MAX];
    size_t first_source; /* index among the batch's sources */
    bool alone;          /* one camera of a tensor that others may share */
    bool resamples;
    struct weir_gpu_taps columns, rows;
    void *taps; /* in GPU memory */
};

struct weir_upload_times {
    void *base[2]; /* events that positions count from; the other one is used next */
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

/* Makes a batch on the waiting thread, when there are no workers. */
struct weir_batch_maker {
    void *user;
    void (*make)(void *user, uint64_t sequence);
};

struct weir_upload {
    struct weir_shared *shared;
    struct weir_batch_maker maker; /* make NULL = workers make the batches */
    struct weir_device *device;
    struct weir_pixel_format format; /* of the tensors */
    struct weir_batch_layout layout; /* of the output batches */
    bool direct;                     /* slots have the tensors' format already: no staging, no kernels */
    int n_images;
    struct weir_upload_images images[WEIR_CAMERAS_MAX];
    size_t staged_bytes;  /* per slot: its colour images */
    size_t staging_bytes; /* per slot, in GPU memory */
    size_t memory_bytes;  /* GPU memory in use, without the output batches */
    bool pinned;
    int n_batches;
    struct weir_upload_batch batches[WEIR_UPLOAD_BATCHES];
    struct weir_gpu_blocks *blocks; /* their memory */
    struct weir_upload_slot *slots;
    void *copy_stream, *prepare_stream;
    struct weir_gpu_clocks *clocks; /* of the prepare kernel; NULL: none */
    float values[3][256];
    void *gpu_values;
    uint64_t first;                /* batch of the run */
    struct weir_eventcount wakeup; /* for the counters below, and the states of batches */
    _Atomic uint64_t acquired;     /* batch number + 1 that has an output batch */
    _Atomic uint64_t queued;       /* batch number + 1 that is queued or has failed */
    _Atomic bool failed;
    pthread_mutex_t lock; /* protects err, times and collected */
    struct weir_err err;
    struct weir_upload_times times;
    uint64_t collected; /* batch number + 1 whose times were read */
    uint64_t made;      /* batch number + 1 that the maker has made */
    pthread_t uploader, reaper;
    bool uploader_started, reaper_started;
    _Atomic int uploading, reaping; /* for the watchdog */
    _Atomic uint64_t reaped;        /* the batch that the reaper waits for */
};

static inline struct weir_upload_batch *weir_upload_batch_of(struct weir_upload *upload, uint64_t sequence)
{
    return &upload->batches[sequence % (uint64_t)upload->n_batches];
}

/* ---- upload.c ---- */

/* Returns the format of images in the slots, for a run whose batches have `format` on a GPU. */
struct weir_pixel_format weir_upload_slot_format(const struct weir_pixel_format *format, const char *decoder);
/* Calls weir_batch_layout_init for the slots, or for the output batches, of such a run. */
int weir_upload_layout(struct weir_batch_layout *layout, const struct weir_shared *shared,
                       const struct weir_view *views, const struct weir_pixel_format *format, struct weir_err *err);

/* Opens GPU `number`, pins the slots (open already), allocates memory. format: of the tensors; left: batches of the
 * run. On failure call weir_upload_close. */
int weir_upload_open(struct weir_shared *shared, int number, const struct weir_pixel_format *format, uint64_t first,
                     struct weir_err *err);
/* Allocates GPU memory and adds it to memory_bytes. */
int weir_upload_alloc(struct weir_upload *upload, size_t bytes, void **memory, struct weir_err *err);
/* Frees everything, after the GPU has finished its work for it. */
void weir_upload_close(struct weir_upload **upload);

/* ---- upload_run.c ---- */

/* maker: copied; NULL when workers make the batches. */
int weir_upload_start(struct weir_upload *upload, const struct weir_batch_maker *maker, struct weir_err *err);
/* Joins the threads and reads the last times. The slots are stopped. */
void weir_upload_finish(struct weir_upload *upload);
struct weir_wait_times {
    uint64_t data_ns, gpu_ns; /* wait for data, and for the GPU alone, without the time to record the wait */
};
/* Blocks until the batch is queued or its slot has failed, timed as waits of the consumer. With a maker, makes it
 * first. Returns 1; 0 when stopped, or when the upload failed; -EINTR as weir_slot_wait_interruptible. */
int weir_upload_wait(struct weir_upload *upload, uint64_t sequence, struct weir_wait_times *waited);
/* Keeps the first error and stops the run. */
void weir_upload_fail(struct weir_upload *upload, const struct weir_err *err);
/* Returns the kept error, or 0. Any thread. */
int weir_upload_error(struct weir_upload *upload, struct weir_err *err);

/* ---- upload_batch.c ---- */

int weir_upload_batch_open(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err);
void weir_upload_batch_close(struct weir_upload *upload, struct weir_upload_batch *batch);
/* Queues the work that makes the batch from its complete slot. */
int weir_upload_queue(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_slot *slot,
                      struct weir_err *err);
/* Lends the batch to the consumer. */
void weir_upload_lend(struct weir_upload *upload, struct weir_upload_batch *batch);
/* Delays later work on the stream until the batch is ready. */
int weir_upload_order(struct weir_upload *upload, struct weir_upload_batch *batch, void *stream, struct weir_err *err);
/* Attributes the stream's work since the batch was ready, or since the last mark, to this stage. Returns -EINVAL when
 * the batch has its maximum number of marks. */
int weir_upload_mark(struct weir_upload *upload, struct weir_upload_batch *batch, int stage, void *stream,
                     struct weir_err *err);
/* Marks the end of the consumer's step with the batch on the stream. */
int weir_upload_step_end(struct weir_upload *upload, struct weir_upload_batch *batch, void *stream,
                         struct weir_err *err);
/* Returns the batch from the consumer; it is reused after the present work of the streams. */
int weir_upload_return(struct weir_upload *upload, struct weir_upload_batch *batch, void *const *streams, int n,
                       struct weir_err *err);
/* Likewise, but its block stays with the consumer. another: the batch is made again and gets another block. Waits until
 * the GPU has made the batch. On -ENOMEM nothing changes. */
int weir_upload_keep(struct weir_upload *upload, struct weir_upload_batch *batch, bool another,
                     struct weir_gpu_block **block, struct weir_err *err);
/* Blocks until the GPU has finished with a returned batch. */
int weir_upload_batch_wait(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err);

/* ---- upload_times.c ---- */

int weir_upload_times_open(struct weir_upload *upload, struct weir_err *err);
void weir_upload_times_close(struct weir_upload *upload);
/* Call before the batch's copy is queued: records a new base event when the last one is old. */
int weir_upload_times_begin(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err);
/* Reads the times of all batches, in order, that were returned and that the GPU has finished. Any thread. */
int weir_upload_times_collect(struct weir_upload *upload, struct weir_err *err);

#endif
