/* worker.h: the worker threads, which run the tasks of batches in order, and the state of each worker. */
#ifndef WEIR_PIPELINE_WORK_WORKER_H
#define WEIR_PIPELINE_WORK_WORKER_H

#include "pipeline/samples/completion.h"
#include "pipeline/samples/fetch.h"
#include "pipeline/samples/shared.h"
#include "pipeline/work/coalesce.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

enum weir_doing { WEIR_DOING_NOTHING, WEIR_DOING_TASK, WEIR_DOING_WAIT_SLOT, WEIR_DOING_WAIT_WORK };

struct weir_worker {
    alignas(64) struct weir_shared *shared;
    int id;
    pthread_t thread;
    bool started;
    struct weir_fetcher fetcher;
    struct weir_decoder *decoder;
    struct weir_gather gather; /* empty unless frames share blocks */
    /* For the watchdog; written only by this worker. */
    _Atomic int doing;
    _Atomic uint64_t batch, task, tasks_done;
    _Atomic uint64_t frames_shared; /* number of copies of frames within their batch */
    _Atomic uint64_t cache_hits, cache_misses;
    struct weir_task_clock clock; /* clock of the current task */
};

/* Formats a worker thread's name: "weir-w3", or "weir1-w3" for the second loader of a session. The second function
 * formats the prefix that precedes the id. */
void weir_worker_name(char name[16], int number, int id);
void weir_worker_prefix(char prefix[12], int number);

int weir_worker_open(struct weir_worker *worker, struct weir_shared *shared, int id, struct weir_err *err);
/* Call after the worker's thread has ended. */
void weir_worker_close(struct weir_worker *worker);
/* Starts a thread that runs tasks until the slots are stopped. */
int weir_worker_start(struct weir_worker *worker);
/* Runs all tasks of one batch on the calling thread, for loaders without workers. */
void weir_worker_do_batch(struct weir_worker *worker, uint64_t sequence);

/* ---- task.c ---- */

/* Runs a task of the slot's batch: either the images of one camera (all steps of its window), or the state and actions,
 * of one sample. The last task of a sample records the sample's spans, and the last task of the batch completes the
 * slot. */
void weir_task_run(struct weir_worker *worker, struct weir_slot *slot, int task);

struct weir_decode_job;
struct weir_decode_result;
/* Implements the member `complete` of weir_decode_client, for a frame that a task submitted to the GPU. user: a worker
 * that no other thread uses. The last arrival ends the task. */
void weir_task_frame_decoded(void *user, const struct weir_decode_job *frame, const struct weir_decode_result *result);

#endif
