/* worker_priv.h: what workers share, and what each has for itself. */
#ifndef WEIR_PIPELINE_WORKER_PRIV_H
#define WEIR_PIPELINE_WORKER_PRIV_H

#include "pipeline/faults.h"
#include "pipeline/fetch.h"
#include "pipeline/slot.h"

/* Mean and std of one tensor's dimensions, as float, std clipped. */
struct weir_norm {
    int dim;
    float *mean, *std;
};

/* Made at open; only the atomics, slots and faults change afterwards. */
struct weir_shared {
    struct weir_loader_config config;
    struct weir_dataset *dataset;
    struct weir_file_set *files;
    struct weir_sampler *sampler;
    struct weir_recorder *recorder;
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    struct weir_batch_layout layout;
    struct weir_norm qpos, actions;
    int tasks_per_sample; /* one per camera, and the state */
    uint64_t total;       /* batches of the run */
    struct weir_slots slots;
    struct weir_faults faults;
    alignas(64) _Atomic uint64_t next_ticket;
};

enum weir_doing { WEIR_DOING_NOTHING, WEIR_DOING_TASK, WEIR_DOING_WAIT_SLOT, WEIR_DOING_WAIT_WORK };

struct weir_worker {
    alignas(64) struct weir_shared *shared;
    int id;
    pthread_t thread;
    bool started;
    struct weir_fetcher fetcher;
    struct weir_decoder *decoder;
    /* For the watchdog; one writer. */
    _Atomic int doing;
    _Atomic uint64_t batch, task, tasks_done;
};

int weir_worker_open(struct weir_worker *worker, struct weir_shared *shared, int id, struct weir_err *err);
/* The worker's thread has ended. */
void weir_worker_close(struct weir_worker *worker);
/* Starts a thread that takes tasks until the slots are stopped. */
int weir_worker_start(struct weir_worker *worker);
/* Does all tasks of one batch on the calling thread (no workers). */
void weir_worker_do_batch(struct weir_worker *worker, uint64_t sequence);

/* Does task number task of the slot's batch, and what follows when it was the last one of its sample or batch. */
void weir_task_run(struct weir_worker *worker, struct weir_slot *slot, int task);

#endif
