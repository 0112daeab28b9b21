/* steps.h: the times at which the consumer requested batches, its waits, and the tasks that completed the batches that
 * it waited for. Only the consumer's thread writes and reads them; other threads read a copy of the sums
 * (weir_steps_shown). */
#ifndef WEIR_PIPELINE_SAMPLES_STEPS_H
#define WEIR_PIPELINE_SAMPLES_STEPS_H

#include "weir/loader.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { WEIR_STEPS_SPLITS = WEIR_SPLIT_VAL + 1 };

/* Sums since the loader was opened. A step lasts from one batch request to the next. */
struct weir_step_sums {
    uint64_t batches[WEIR_STEPS_SPLITS], ns[WEIR_STEPS_SPLITS], wait_ns[WEIR_STEPS_SPLITS];
    uint64_t images;
    uint64_t first_wait_ns; /* wait for the first batch */
};

struct weir_epoch_sums {
    int epoch; /* counted from 0 */
    uint64_t batches, images, ns, wait_ns;
    /* Bytes read from storage before this epoch, and before the next one; UINT64_MAX = unknown. */
    uint64_t device_bytes, end_bytes;
    bool over; /* the next epoch has begun */
};

/* The last task of a batch, which completed the batch. */
struct weir_last_task {
    int worker;
    int camera, file;           /* -1 if the task is that of a state */
    uint64_t ticks, read_ticks; /* duration of the task; the part spent on reading */
};

/* Waits for late batches, and the tasks that completed these batches. */
struct weir_late_sums {
    uint64_t count, ns, task_ns, read_ns, longest_ns;
};

/* Number of epochs kept: the first one and the latest ones. */
enum { WEIR_STEPS_EPOCHS = 64 };
/* A shorter wait is not counted, because the batch was ready. */
enum { WEIR_LATE_NS = 100 * 1000 };
enum { WEIR_STEPS_WORDS = sizeof(struct weir_step_sums) / sizeof(uint64_t) };

struct weir_steps {
    bool open; /* a step has begun */
    enum weir_split split;
    uint64_t begin_ns;
    uint64_t begin_bytes; /* bytes read from storage when the workers began; the first epoch counts from there */
    struct weir_step_sums sums;
    _Atomic uint64_t shown[WEIR_STEPS_WORDS]; /* copy of sums for other threads */
    int n_epochs, current;                    /* current: index of the current epoch */
    struct weir_epoch_sums epochs[WEIR_STEPS_EPOCHS];
    struct weir_late_sums late;
    int n_cameras, n_files, n_workers;
    uint64_t *camera_ns, *file_ns, *worker_ns; /* owned */
};

int weir_steps_open(struct weir_steps *steps, int cameras, int files, int workers);
void weir_steps_close(struct weir_steps *steps);

/* Records a request for a batch, which ends the previous step. */
void weir_steps_asked(struct weir_steps *steps, uint64_t now_ns);
/* Records the delivery of a batch after a wait. last: the task that completed the batch; NULL = unknown. */
void weir_steps_given(struct weir_steps *steps, const struct weir_batch *batch, int images_per_sample,
                      const struct weir_last_task *last);

/* Ends the current step, so that the time for the consumer's reports does not belong to a step, and copies everything.
 * The caller owns the arrays of the copy. Returns 0 or -ENOMEM. */
int weir_steps_take(struct weir_steps *steps, uint64_t now_ns, struct weir_steps *copy);

/* Copies the sums of finished steps, and of delivered batches. For any thread; a batch that is delivered meanwhile can
 * be in a part of the sums. */
void weir_steps_shown(const struct weir_steps *steps, struct weir_step_sums *sums);

struct weir_loader;
struct weir_report_setup;

/* Calls weir_steps_take on the loader's steps. */
int weir_steps_of(struct weir_loader *loader, struct weir_steps *copy);
/* Calls weir_steps_shown on the loader's steps. */
void weir_steps_shown_of(const struct weir_loader *loader, struct weir_step_sums *sums);
/* Fills in the resolved configuration of a loader, except values that are measured when a report is made. */
void weir_steps_setup(const struct weir_loader *loader, struct weir_report_setup *setup);

#endif
