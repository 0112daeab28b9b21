/* steps.h: times at which the consumer requested batches, its waits, and the tasks that completed the batches it waited
 * for. Written and read by the consumer's thread only. */
#ifndef WEIR_PIPELINE_SAMPLES_STEPS_H
#define WEIR_PIPELINE_SAMPLES_STEPS_H

#include "weir/loader.h"

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_STEPS_SPLITS = WEIR_SPLIT_VAL + 1 };

/* Sums since the loader was opened. A step lasts from one batch request to the next. */
struct weir_step_sums {
    uint64_t batches[WEIR_STEPS_SPLITS], ns[WEIR_STEPS_SPLITS], wait_ns[WEIR_STEPS_SPLITS];
    uint64_t images;
    uint64_t first_wait_ns; /* for the first batch */
};

struct weir_epoch_sums {
    int epoch; /* from 0 */
    uint64_t batches, images, ns, wait_ns;
    uint64_t device_bytes,
        end_bytes; /* bytes read from storage when the epoch began, and when the next one did; UINT64_MAX = unknown */
    bool over;     /* the next epoch has begun */
};

/* The last task of a batch, which completed it. */
struct weir_last_task {
    int worker;
    int camera, file;           /* -1 = the state's task */
    uint64_t ticks, read_ticks; /* duration of the task, and of its reading */
};

/* Waits for batches, by the task that completed the batch. */
struct weir_late_sums {
    uint64_t count, ns, task_ns, read_ns, longest_ns;
};

/* Epochs kept: the first, and the latest. */
enum { WEIR_STEPS_EPOCHS = 64 };
/* A shorter wait does not count: the batch was ready. */
enum { WEIR_LATE_NS = 100 * 1000 };

struct weir_steps {
    bool open; /* a step has begun */
    enum weir_split split;
    uint64_t begin_ns;
    uint64_t begin_bytes; /* bytes read from storage when the workers began; the first epoch counts from here */
    struct weir_step_sums sums;
    int n_epochs, current; /* index of the current one */
    struct weir_epoch_sums epochs[WEIR_STEPS_EPOCHS];
    struct weir_late_sums late;
    int n_cameras, n_files, n_workers;
    uint64_t *camera_ns, *file_ns, *worker_ns; /* owned */
};

int weir_steps_open(struct weir_steps *steps, int cameras, int files, int workers);
void weir_steps_close(struct weir_steps *steps);

/* Notes a request for a batch: ends the previous step. */
void weir_steps_asked(struct weir_steps *steps, uint64_t now_ns);
/* Notes the delivery of a batch after a wait. last: the task that completed it; NULL = unknown. */
void weir_steps_given(struct weir_steps *steps, const struct weir_batch *batch, int images_per_sample,
                      const struct weir_last_task *last);

/* Ends the step, so that the consumer's reporting belongs to no step, and copies everything. The caller owns the arrays
 * of the copy. Returns 0 or -ENOMEM. */
int weir_steps_take(struct weir_steps *steps, uint64_t now_ns, struct weir_steps *copy);

struct weir_loader;
struct weir_report_setup;

/* Calls weir_steps_take on the loader's steps. */
int weir_steps_of(struct weir_loader *loader, struct weir_steps *copy);
/* Fills in the resolved configuration of a loader, except values that are measured when a report is made. */
void weir_steps_setup(const struct weir_loader *loader, struct weir_report_setup *setup);

#endif
