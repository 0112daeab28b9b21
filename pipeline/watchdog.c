#include "base/text.h"
#include "base/threads.h"
#include "pipeline/loader_priv.h"
#include "pipeline/offload/gpu_decode.h"
#include "pipeline/offload/upload.h"
#include "pipeline/samples/sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 64 * 1024 };

static uint64_t tasks_done(const struct weir_watchdog *dog)
{
    uint64_t sum = 0;
    for (int i = 0; i < dog->n_workers; i++)
        sum += atomic_load_explicit(&dog->workers[i].tasks_done, memory_order_relaxed);
    return sum;
}

static void append(char *text, const char *line)
{
    size_t used = strlen(text);
    snprintf(text + used, TEXT_MAX - used, "%s", line);
}

/* The batch may end while its task is described. The string is correct anyway, because the plan depends only on the
 * batch's number. */
static void describe_task(const struct weir_shared *shared, uint64_t batch, uint64_t task, char *line, size_t size)
{
    struct weir_plan plan;
    struct weir_sample *samples = calloc((size_t)shared->setup.config.batch_size, sizeof *samples);
    uint64_t per_sample = (uint64_t)shared->slots.tasks_per_sample;
    if (!samples)
        return;
    weir_sampler_plan(shared->setup.sampler, batch, &plan, samples);
    struct weir_sample of = samples[task / per_sample];
    int part = (int)(task % per_sample);
    snprintf(line, size, "batch %llu, episode %d (%.200s) t %d, %s", (unsigned long long)batch, of.episode,
             weir_dataset_episode_path(shared->setup.dataset, of.episode), of.t,
             part < shared->setup.layout.n_cameras ? weir_dataset_camera(shared->setup.dataset, part)->name : "state");
    weir_text_printable(line);
    free(samples);
}

static void describe_worker(const struct weir_watchdog *dog, int i, const struct weir_snapshot *snapshot, char *text)
{
    static const char *const doing[] = {"between tasks", "task", "waits for a slot", "waits for work"};
    const struct weir_worker *worker = &dog->workers[i];
    int what = atomic_load_explicit(&worker->doing, memory_order_relaxed);
    char line[512], task[384] = "", name[16];
    uint64_t batch = atomic_load_explicit(&worker->batch, memory_order_relaxed);
    if (what == WEIR_DOING_TASK)
        describe_task(dog->shared, batch, atomic_load_explicit(&worker->task, memory_order_relaxed), task, sizeof task);
    weir_worker_name(name, dog->shared->setup.config.number, worker->id);
    snprintf(line, sizeof line, "  %s: %s%s%s", worker->started ? name : "inline", doing[what], task[0] ? ": " : "",
             task);
    append(text, line);
    for (int t = 0; snapshot && t < snapshot->n_threads; t++) {
        const struct weir_thread_stats *stats = &snapshot->threads[t];
        const struct weir_stage_info *info = weir_stage_info(stats->open_stage);
        if (!info || strcmp(stats->name, worker->started ? name : "consumer") != 0)
            continue;
        snprintf(line, sizeof line, ", in %s for %.1f s", info->name, (double)stats->open_ns / 1e9);
        append(text, line);
    }
    append(text, "\n");
}

static void describe_queue(struct weir_watchdog *dog, char *text)
{
    struct weir_slots *slots = &dog->shared->slots;
    uint64_t next = atomic_load_explicit(&dog->waiting_for, memory_order_relaxed);
    int ready = 0, filling = 0;
    for (int i = 0; i < slots->n; i++) {
        uint64_t armed = atomic_load_explicit(&slots->slot[i].armed, memory_order_relaxed);
        uint64_t complete = atomic_load_explicit(&slots->slot[i].complete, memory_order_relaxed);
        ready += complete == armed && complete > next;
        filling += complete != armed;
    }
    struct weir_slot *slot = weir_slot_of(slots, next);
    char line[256];
    snprintf(line, sizeof line,
             "  queue: %d of %d batches ready, %d being filled; the consumer waits for batch %llu (%d tasks left)\n",
             ready, slots->n, filling, (unsigned long long)next,
             atomic_load_explicit(&slot->tasks_left, memory_order_relaxed));
    append(text, line);
}

/* Describes the threads that move batches from the slots to the GPU. */
static void describe_upload(const struct weir_upload *upload, char *text)
{
    static const char *const uploading[] = {"has ended", "waits for the GPU or the consumer to finish batch",
                                            "waits for the workers to complete batch", "queues batch"};
    static const char *const reaping[] = {"has ended", "waits for the copy to be queued for batch",
                                          "waits for the copy of batch"};
    uint64_t queued = atomic_load_explicit(&upload->queued, memory_order_relaxed);
    uint64_t reaped = atomic_load_explicit(&upload->reaped, memory_order_relaxed);
    int what = atomic_load_explicit(&upload->uploading, memory_order_relaxed);
    uint64_t batches = (uint64_t)upload->n_batches;
    uint64_t which = what == WEIR_UPLOADING_WAIT_BATCH && queued >= batches ? queued - batches : queued;
    char line[256];
    snprintf(line, sizeof line, "  weir-upload: %s %llu\n", uploading[what], (unsigned long long)which);
    append(text, line);
    what = atomic_load_explicit(&upload->reaping, memory_order_relaxed);
    snprintf(line, sizeof line, "  weir-reap: %s %llu\n", reaping[what], (unsigned long long)reaped);
    append(text, line);
}

static void describe_decode(const struct weir_gpu_decode *decode, char *text)
{
    for (int i = 0; i < decode->n_engines; i++) {
        const struct weir_decode_engine *engine = &decode->engines[i];
        char line[256];
        snprintf(line, sizeof line, "  weir-jpeg%d%s: the GPU's %s are decoding %d frames; %zu are waiting\n",
                 WEIR_DECODE_THREADS * i, engine->n_batches > 1 ? " and the next thread" : "",
                 engine->kind == WEIR_GPU_JPEG_HARDWARE ? "JPEG engines" : "SMs",
                 atomic_load_explicit(&engine->decoding, memory_order_relaxed),
                 atomic_load_explicit(&engine->waiting, memory_order_relaxed));
        append(text, line);
    }
}

static void report(struct weir_watchdog *dog, double stalled_s)
{
    const struct weir_loader_config *config = &dog->shared->setup.config;
    char *text = malloc(TEXT_MAX);
    if (!text || !config->on_stall) {
        free(text);
        return;
    }
    struct weir_snapshot *snapshot = NULL;
    if (dog->shared->recorder)
        weir_snapshot_take(dog->shared->recorder, &snapshot);
    snprintf(text, TEXT_MAX, "stalled: no task has finished for %.1f s\n", stalled_s);
    for (int i = 0; i < dog->n_workers; i++)
        describe_worker(dog, i, snapshot, text);
    describe_queue(dog, text);
    if (dog->shared->upload)
        describe_upload(dog->shared->upload, text);
    if (dog->shared->decode)
        describe_decode(dog->shared->decode, text);
    weir_snapshot_free(&snapshot);
    config->on_stall(config->user, text);
    free(text);
}

static bool sleep_a_while(struct weir_watchdog *dog, double seconds)
{
    pthread_mutex_lock(&dog->lock);
    while (!dog->stop && weir_cond_wait_ns(&dog->wake, &dog->lock, (uint64_t)(seconds * 1e9)) == 0)
        continue;
    bool stop = dog->stop;
    pthread_mutex_unlock(&dog->lock);
    return !stop;
}

static void *thread_main(void *user)
{
    struct weir_watchdog *dog = user;
    double limit_s = dog->shared->setup.config.stall_s > 0 ? dog->shared->setup.config.stall_s : 30;
    double tick_s = limit_s < 10 ? limit_s / 10 : 1;
    uint64_t done = tasks_done(dog), since_ns = weir_clock_monotonic_ns(), first_ns = since_ns;
    pthread_setname_np(pthread_self(), "weir-watchdog");
    while (sleep_a_while(dog, tick_s)) {
        uint64_t now_ns = weir_clock_monotonic_ns(), now_done = tasks_done(dog);
        if (now_done != done || !atomic_load_explicit(&dog->waiting, memory_order_relaxed)) {
            done = now_done;
            since_ns = first_ns = now_ns;
        }
        if ((double)(now_ns - since_ns) < limit_s * 1e9)
            continue;
        report(dog, (double)(now_ns - first_ns) / 1e9);
        since_ns = now_ns; /* so that the next report follows after the same interval */
    }
    return NULL;
}

int weir_watchdog_start(struct weir_watchdog *dog, struct weir_shared *shared, const struct weir_worker *workers,
                        int n_workers)
{
    dog->shared = shared;
    dog->workers = workers;
    dog->n_workers = n_workers;
    pthread_mutex_init(&dog->lock, NULL);
    weir_cond_init(&dog->wake);
    int rc = weir_thread_start(&dog->thread, thread_main, dog);
    dog->started = rc == 0;
    return rc;
}

void weir_watchdog_stop(struct weir_watchdog *dog)
{
    if (!dog->started)
        return;
    pthread_mutex_lock(&dog->lock);
    dog->stop = true;
    pthread_cond_signal(&dog->wake);
    pthread_mutex_unlock(&dog->lock);
    pthread_join(dog->thread, NULL);
    pthread_cond_destroy(&dog->wake);
    pthread_mutex_destroy(&dog->lock);
    dog->started = false;
}
