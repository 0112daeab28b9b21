/* upload.h: copies batches to a GPU.
 *
 * Slots hold images as interleaved u8 RGB in pinned memory. The uploader thread takes complete slots in the order of
 * the run. It waits until the consumer and the GPU have finished with one of a few output batches. Then it queues the
 * copy of the slot (images to the slot's staging memory, everything else to the batch's tensors), followed by the
 * kernels that write the image tensors. From then on, weir_loader_next may deliver the batch. The reaper thread waits
 * for the copies and returns the slots to the workers. While the run lasts, only the reaper arms slots. */
#ifndef WEIR_PIPELINE_OFFLOAD_UPLOAD_H
#define WEIR_PIPELINE_OFFLOAD_UPLOAD_H

#include "pipeline/gpu/gpu_blocks.h"
#include "pipeline/gpu/gpu_clocks.h"
#include "pipeline/gpu/gpu_device.h"
#include "pipeline/gpu/intervals.h"
#include "pipeline/samples/shared.h"
#include "weir/loader.h"

enum { WEIR_UPLOAD_BATCHES = 3 }; /* one at the consumer, one ready, and one being made */

enum weir_upload_state {
    WEIR_UPLOAD_EMPTY,    /* owned by the uploader */
    WEIR_UPLOAD_QUEUED,   /* owned by the consumer, or ready for the consumer */
    WEIR_UPLOAD_RETURNED, /* returned by the consumer; the GPU may still use it */
};

/* An output batch. */
struct weir_upload_batch {
    _Atomic int state;
    uint64_t sequence;
    struct weir_batch batch;
    struct weir_sample *samples;
    struct weir_gpu_block *block;
    uint8_t *memory;      /* memory of the block; NULL after the consumer has kept the last batch */
    struct weir_err err;  /* error of the slot; if set, there is no batch */
    uint64_t task_id;     /* task that completed the batch */
    uint64_t bytes;       /* number of bytes copied */
    _Atomic bool lent;    /* lent to the consumer */
    bool prepared;        /* a kernel writes the batch's images */
    bool rebased;         /* a new base event was recorded before the batch's copy */
    bool waited, ordered; /* the consumer's stream waited for the batch; its release followed that stream's work */
    bool stepped;         /* the consumer marked the end of its step before releasing it */
    /* Timed events on the copy stream, the prepare stream (or the copy stream if there are no kernels), and the
     * consumer's stream. The release event belongs to the block. */
    void *copy_begin, *copy_end, *prepare_begin, *ready, *stall_begin, *stall_end, *step_end;
    void *marks[WEIR_GPU_MARKED_MAX]; /* ends of the parts of the step, on the consumer's stream */
    int mark_stages[WEIR_GPU_MARKED_MAX], n_marks;
};

/* GPU resources of a slot. */
struct weir_upload_slot {
    uint8_t *staging;
    void *copied; /* event after the copy of the slot */
};

/* Colour images that one kernel launch converts: all images of a tensor, or those of one camera that the GPU crops or
 * resizes. */
struct weir_upload_images {
    int tensor; /* index in the output batch */
    int n_cameras;
    int cameras[WEIR_CAMERAS_MAX];
    size_t first_source; /* index in the batch's array of sources */
    bool alone;          /* images of one camera only, in a tensor that other cameras may share */
    bool resamples;
    struct weir_gpu_taps columns, rows;
    void *taps; /* in GPU memory */
};

struct weir_upload_times {
    void *base[2]; /* events that positions are relative to; used alternately */
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

/* Makes a batch on the waiting thread if there are no workers. */
struct weir_batch_maker {
    void *user;
    void (*make)(void *user, uint64_t sequence);
};

struct weir_upload {
    struct weir_shared *shared;
    struct weir_batch_maker maker; /* make NULL = workers make the batches */
    struct weir_device *device;
    struct weir_pixel_format format; /* format of the tensors */
    struct weir_batch_layout layout; /* layout of the output batches */
    bool direct;                     /* slots already have the tensors' format, so staging and kernels are not needed */
    int n_images;
    struct weir_upload_images images[WEIR_CAMERAS_MAX];
    size_t staged_bytes;  /* size of the colour images in a slot */
    size_t staging_bytes; /* size of a slot's staging memory on the GPU */
    size_t memory_bytes;  /* GPU memory in use, except the output batches */
    bool pinned;
    int n_batches;
    struct weir_upload_batch batches[WEIR_UPLOAD_BATCHES];
    struct weir_gpu_blocks *blocks; /* memory of the output batches */
    struct weir_upload_slot *slots;
    void *copy_stream, *prepare_stream;
    struct weir_gpu_clocks *clocks; /* clocks of the prepare kernel; NULL = none */
    float values[3][256];
    void *gpu_values;
    uint64_t first;                /* number of the run's first batch */
    struct weir_eventcount wakeup; /* signals changes of the counters below and of batch states */
    _Atomic uint64_t acquired;     /* 1 + number of the last batch that has an output batch */
    _Atomic uint64_t queued;       /* 1 + number of the last batch that was queued or has failed */
    _Atomic bool failed;
    pthread_mutex_t lock; /* protects err, times and collected */
    struct weir_err err;
    struct weir_upload_times times;
    uint64_t collected; /* 1 + number of the last batch whose times were read */
    uint64_t made;      /* 1 + number of the last batch that the maker has made */
    pthread_t uploader, reaper;
    bool uploader_started, reaper_started;
    _Atomic int uploading, reaping; /* read by the watchdog */
    _Atomic uint64_t reaped;        /* number of the batch that the reaper waits for */
};

static inline struct weir_upload_batch *weir_upload_batch_of(struct weir_upload *upload, uint64_t sequence)
{
    return &upload->batches[sequence % (uint64_t)upload->n_batches];
}

/* ---- upload.c ---- */

/* Returns the format of the images in the slots. format: format of the batches on the GPU. */
struct weir_pixel_format weir_upload_slot_format(const struct weir_pixel_format *format, const char *decoder);
/* Calls weir_batch_layout_init for the slots or for the output batches of a run with a GPU. */
int weir_upload_layout(struct weir_batch_layout *layout, const struct weir_shared *shared,
                       const struct weir_view *views, const struct weir_pixel_format *format, struct weir_err *err);

/* Opens GPU `number`, pins the slots, which must be open, and allocates memory. format: format of the tensors. first:
 * number of the run's first batch. If this fails, call weir_upload_close. */
int weir_upload_open(struct weir_shared *shared, int number, const struct weir_pixel_format *format, uint64_t first,
                     struct weir_err *err);
/* Allocates GPU memory and adds its size to memory_bytes. */
int weir_upload_alloc(struct weir_upload *upload, size_t bytes, void **memory, struct weir_err *err);
/* Waits until the GPU has finished the upload's work, and frees everything. */
void weir_upload_close(struct weir_upload **upload);

/* ---- upload_run.c ---- */

/* Starts the threads. maker is copied; NULL = workers make the batches. */
int weir_upload_start(struct weir_upload *upload, const struct weir_batch_maker *maker, struct weir_err *err);
/* Joins the threads and reads the remaining times. The slots must be stopped. */
void weir_upload_finish(struct weir_upload *upload);
struct weir_wait_times {
    uint64_t data_ns, gpu_ns; /* waits for data, and waits for the GPU alone; recording them is not included */
};
/* Blocks until the batch is queued or its slot has failed. The time is recorded as waits of the consumer. With a maker,
 * makes the batch first. Returns 1, 0 if stopped or if the upload has failed, or -EINTR like
 * weir_slot_wait_interruptible. */
int weir_upload_wait(struct weir_upload *upload, uint64_t sequence, struct weir_wait_times *waited);
/* Keeps the first error and stops the run. */
void weir_upload_fail(struct weir_upload *upload, const struct weir_err *err);
/* Returns the kept error, or 0. Any thread. */
int weir_upload_error(struct weir_upload *upload, struct weir_err *err);

/* ---- upload_batch.c ---- */

int weir_upload_batch_open(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err);
void weir_upload_batch_close(struct weir_upload *upload, struct weir_upload_batch *batch);
/* Queues the GPU work that makes the batch from its complete slot. */
int weir_upload_queue(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_slot *slot,
                      struct weir_err *err);
/* Lends the batch to the consumer. */
void weir_upload_lend(struct weir_upload *upload, struct weir_upload_batch *batch);
/* Delays later work on the stream until the batch is ready. */
int weir_upload_order(struct weir_upload *upload, struct weir_upload_batch *batch, void *stream, struct weir_err *err);
/* Attributes the stream's work since the last mark, or since the batch was ready, to this stage. Returns -EINVAL if the
 * batch has the maximum number of marks, or if no stream has waited for it. */
int weir_upload_mark(struct weir_upload *upload, struct weir_upload_batch *batch, int stage, void *stream,
                     struct weir_err *err);
/* Marks the end of the consumer's step that uses the batch, on this stream. */
int weir_upload_step_end(struct weir_upload *upload, struct weir_upload_batch *batch, void *stream,
                         struct weir_err *err);
/* Takes the batch back from the consumer. It is reused when the work queued so far on the streams has finished. */
int weir_upload_return(struct weir_upload *upload, struct weir_upload_batch *batch, void *const *streams, int n,
                       struct weir_err *err);
/* Like weir_upload_return, but the consumer keeps the batch's block. another: this output batch will be used again, so
 * it gets another block. Waits until the GPU has made the batch. If this returns -ENOMEM, nothing has changed. */
int weir_upload_keep(struct weir_upload *upload, struct weir_upload_batch *batch, bool another,
                     struct weir_gpu_block **block, struct weir_err *err);
/* Blocks until the GPU has finished with a returned batch. */
int weir_upload_batch_wait(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err);

/* ---- upload_times.c ---- */

int weir_upload_times_open(struct weir_upload *upload, struct weir_err *err);
void weir_upload_times_close(struct weir_upload *upload);
/* Call this before queueing the batch's copy. Records a new base event if the last one is old. */
int weir_upload_times_begin(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err);
/* Reads, in order, the times of all returned batches that the GPU has finished. Any thread. */
int weir_upload_times_collect(struct weir_upload *upload, struct weir_err *err);

#endif
