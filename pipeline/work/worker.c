#include "pipeline/work/worker.h"
#include "base/threads.h"
#include "pipeline/samples/sampler.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int weir_worker_open(struct weir_worker *worker, struct weir_shared *shared, int id, struct weir_err *err)
{
    worker->shared = shared;
    worker->id = id;
    int width_max = 1;
    for (int c = 0; c < shared->setup.layout.n_cameras; c++)
        width_max = shared->setup.probes[c].width > width_max ? shared->setup.probes[c].width : width_max;
    int rc = weir_fetcher_open(&worker->fetcher, shared->setup.dataset, shared->files, shared->reading.used, err);
    worker->fetcher.gpu = shared->setup.placement.video_gpu;
    if (rc == 0 && shared->setup.block_rows > 0 && weir_gather_open(&worker->gather, shared) < 0)
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    if (rc < 0)
        return rc;
    rc =
        weir_decoder_open(&worker->decoder, shared->setup.config.decoder, &shared->setup.config.format, width_max, err);
    if (rc == 0)
        weir_decoder_set_resize(worker->decoder, shared->setup.config.resize);
    return rc;
}

void weir_worker_close(struct weir_worker *worker)
{
    weir_decoder_close(&worker->decoder);
    weir_gather_close(&worker->gather);
    weir_fetcher_close(&worker->fetcher);
}

static void note_doing(struct weir_worker *worker, enum weir_doing doing, uint64_t batch, uint64_t task)
{
    atomic_store_explicit(&worker->batch, batch, memory_order_relaxed);
    atomic_store_explicit(&worker->task, task, memory_order_relaxed);
    atomic_store_explicit(&worker->doing, doing, memory_order_relaxed);
}

static bool wait_armed(struct weir_worker *worker, uint64_t sequence, uint64_t task)
{
    struct weir_slots *slots = &worker->shared->slots;
    if (atomic_load_explicit(&weir_slot_of(slots, sequence)->armed, memory_order_acquire) == sequence + 1)
        return true;
    note_doing(worker, WEIR_DOING_WAIT_SLOT, sequence, task);
    WEIR_ZONE(WEIR_STAGE_WAIT_SLOT);
    return weir_slot_wait_armed(slots, sequence);
}

static void wait_stop(struct weir_worker *worker)
{
    note_doing(worker, WEIR_DOING_WAIT_WORK, 0, 0);
    WEIR_ZONE(WEIR_STAGE_WAIT_WORK);
    weir_slots_wait_stop(&worker->shared->slots);
}

static void run(struct weir_worker *worker, uint64_t sequence, uint64_t task)
{
    struct weir_shared *shared = worker->shared;
    struct weir_slot *slot = weir_slot_of(&shared->slots, sequence);
    note_doing(worker, WEIR_DOING_TASK, sequence, task);
    if (task == 0) /* workers take tasks in order, so this is the first task of the batch */
        atomic_store_explicit(&slot->begun, true, memory_order_relaxed);
    worker->clock = (struct weir_task_clock){.worker = worker->id,
                                             .id = weir_task_id(&shared->slots, sequence, task),
                                             .begin_ticks = weir_thread_self ? weir_clock_ticks() : 0};
    weir_item_self = worker->clock.id;
    weir_fetcher_begin(&worker->fetcher, shared->reading.ahead, worker->clock.id - 1);
    weir_task_run(worker, slot, (int)task);
    weir_fetcher_end(&worker->fetcher);
    weir_item_self = 0;
    atomic_store_explicit(&worker->tasks_done, worker->tasks_done + 1, memory_order_relaxed);
}

/* Runs the next task. Tasks are numbered throughout the run, with the same count for each batch, so a short batch has
 * no tasks for its last numbers. A batch stays in its slot until its tasks are done. Returns false if stopped. */
static bool step(struct weir_worker *worker)
{
    WEIR_ZONE(WEIR_STAGE_WORKER_LOOP);
    struct weir_shared *shared = worker->shared;
    uint64_t per_sample = (uint64_t)shared->slots.tasks_per_sample;
    uint64_t per_batch = (uint64_t)shared->slots.tasks_per_batch;
    uint64_t number = atomic_fetch_add_explicit(&shared->next_task, 1, memory_order_relaxed);
    uint64_t sequence = number / per_batch, task = number % per_batch;
    if (sequence >= shared->setup.total) {
        wait_stop(worker);
        return false;
    }
    if (task >= (uint64_t)weir_sampler_size(shared->setup.sampler, sequence) * per_sample)
        return true;
    if (!wait_armed(worker, sequence, task) || atomic_load_explicit(&shared->slots.stop, memory_order_relaxed))
        return false;
    run(worker, sequence, task);
    return true;
}

void weir_worker_name(char name[16], int number, int id)
{
    char prefix[12];
    weir_worker_prefix(prefix, number);
    snprintf(name, 16, "%s%u", prefix, (unsigned)id % 10000);
}

void weir_worker_prefix(char prefix[12], int number)
{
    if (number > 0)
        snprintf(prefix, 12, "weir%u-w", (unsigned)number % 1000);
    else
        snprintf(prefix, 12, "weir-w");
}

static void *thread_main(void *user)
{
    struct weir_worker *worker = user;
    char name[16];
    weir_worker_name(name, worker->shared->setup.config.number, worker->id);
    pthread_setname_np(pthread_self(), name);
    if (worker->shared->recorder)
        weir_thread_attach(worker->shared->recorder, name, WEIR_ROLE_WORKER);
    while (step(worker))
        continue;
    note_doing(worker, WEIR_DOING_NOTHING, 0, 0);
    weir_thread_detach();
    return NULL;
}

int weir_worker_start(struct weir_worker *worker)
{
    int rc = weir_thread_start(&worker->thread, thread_main, worker);
    worker->started = rc == 0;
    return rc;
}

void weir_worker_do_batch(struct weir_worker *worker, uint64_t sequence)
{
    struct weir_shared *shared = worker->shared;
    uint64_t tasks =
        (uint64_t)weir_sampler_size(shared->setup.sampler, sequence) * (uint64_t)shared->slots.tasks_per_sample;
    for (uint64_t task = 0; task < tasks && !atomic_load_explicit(&shared->slots.stop, memory_order_relaxed); task++) {
        atomic_store_explicit(&shared->next_task, weir_task_id(&shared->slots, sequence, task), memory_order_relaxed);
        run(worker, sequence, task);
    }
    note_doing(worker, WEIR_DOING_NOTHING, 0, 0);
}
