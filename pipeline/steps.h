/* steps.h: when the consumer asked for batches, how long it waited, and what completed those that it waited for. The
 * consumer's thread alone writes and reads. */
#ifndef WEIR_PIPELINE_STEPS_H
#define WEIR_PIPELINE_STEPS_H

#include "weir/loader.h"

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_STEPS_SPLITS = WEIR_SPLIT_VAL + 1 };

/* Sums since the loader was opened. A step lasts from one request for a batch to the next. */
struct weir_step_sums {
    uint64_t batches[WEIR_STEPS_SPLITS], ns[WEIR_STEPS_SPLITS], wait_ns[WEIR_STEPS_SPLITS];
    uint64_t images;
    uint64_t first_wait_ns; /* for the first batch */
};

struct weir_epoch_sums {
    int epoch; /* from 0 */
    uint64_t batches, images, ns, wait_ns;
    uint64_t device_bytes, end_bytes; /* when it began, and when the next one did; UINT64_MAX = not known */
    bool over;                        /* the next one has begun */
};

/* What completed a batch: its last task. */
struct weir_last_task {
    int worker;
    int camera, file;           /* -1 = the state's task */
    uint64_t ticks, read_ticks; /* of the task, and reading in it */
};

/* Waits for batches, by what completed them. */
struct weir_late_sums {
    uint64_t count, ns, task_ns, read_ns, longest_ns;
};

/* Epochs that are kept: the first, and the latest ones. */
enum { WEIR_STEPS_EPOCHS = 64 };
/* A wait shorter than this is none: the batch was there. */
enum { WEIR_LATE_NS = 100 * 1000 };

struct weir_steps {
    bool open; /* a step has begun */
    enum weir_split split;
    uint64_t begin_ns;
    uint64_t begin_bytes; /* read from storage when the workers began: the first epoch's count from here */
    struct weir_step_sums sums;
    int n_epochs, current; /* index of the current one */
    struct weir_epoch_sums epochs[WEIR_STEPS_EPOCHS];
    struct weir_late_sums late;
    int n_cameras, n_files, n_workers;
    uint64_t *camera_ns, *file_ns, *worker_ns; /* owned */
};

int weir_steps_open(struct weir_steps *steps, int cameras, int files, int workers);
void weir_steps_close(struct weir_steps *steps);

/* A batch is asked for: the step before ends. */
void weir_steps_asked(struct weir_steps *steps, uint64_t now_ns);
/* It was handed out, after so long a wait. last: what completed it; NULL = not known. */
void weir_steps_given(struct weir_steps *steps, const struct weir_batch *batch, int images_per_sample,
                      const struct weir_last_task *last);

/* Ends the step, so that what the consumer does for a report is in none, and copies all. The arrays of the copy are
 * owned by the caller; -ENOMEM. */
int weir_steps_take(struct weir_steps *steps, uint64_t now_ns, struct weir_steps *copy);

struct weir_loader;
struct weir_report_setup;

/* weir_steps_take of a loader's. */
int weir_steps_of(struct weir_loader *loader, struct weir_steps *copy);
/* What a loader's configuration became: all but what is measured when a report is made. */
void weir_steps_setup(const struct weir_loader *loader, struct weir_report_setup *setup);

#endif
