#include "pipeline/samples/steps.h"
#include "base/proc.h"
#include "weir/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t *zeros(int n)
{
    return calloc((size_t)n + 1, sizeof(uint64_t));
}

int weir_steps_open(struct weir_steps *steps, int cameras, int files, int workers)
{
    *steps = (struct weir_steps){.n_cameras = cameras, .n_files = files, .n_workers = workers, .current = -1};
    steps->begin_bytes = weir_storage_bytes();
    steps->camera_ns = zeros(cameras);
    steps->file_ns = zeros(files);
    steps->worker_ns = zeros(workers);
    return steps->camera_ns && steps->file_ns && steps->worker_ns ? 0 : -ENOMEM;
}

void weir_steps_close(struct weir_steps *steps)
{
    free(steps->camera_ns);
    free(steps->file_ns);
    free(steps->worker_ns);
    *steps = (struct weir_steps){.current = -1};
}

static void show(struct weir_steps *steps)
{
    uint64_t words[WEIR_STEPS_WORDS];
    memcpy(words, &steps->sums, sizeof words);
    for (int i = 0; i < WEIR_STEPS_WORDS; i++)
        atomic_store_explicit(&steps->shown[i], words[i], memory_order_relaxed); /* each word is a figure of its own */
}

void weir_steps_shown(const struct weir_steps *steps, struct weir_step_sums *sums)
{
    uint64_t words[WEIR_STEPS_WORDS];
    for (int i = 0; i < WEIR_STEPS_WORDS; i++)
        words[i] = atomic_load_explicit(&steps->shown[i], memory_order_relaxed);
    memcpy(sums, words, sizeof words);
}

void weir_steps_asked(struct weir_steps *steps, uint64_t now_ns)
{
    if (steps->open) {
        steps->sums.ns[steps->split] += now_ns - steps->begin_ns;
        steps->epochs[steps->current].ns += now_ns - steps->begin_ns;
        show(steps);
    }
    steps->open = false;
    steps->begin_ns = now_ns;
}

/* Returns the entry of an epoch. The first epoch and the latest ones are kept. */
static struct weir_epoch_sums *epoch_of(struct weir_steps *steps, int epoch)
{
    if (steps->current >= 0 && steps->epochs[steps->current].epoch == epoch)
        return &steps->epochs[steps->current];
    uint64_t bytes = steps->n_epochs == 0 ? steps->begin_bytes : weir_storage_bytes();
    if (steps->current >= 0) {
        steps->epochs[steps->current].end_bytes = bytes;
        steps->epochs[steps->current].over = true;
    }
    steps->current = steps->n_epochs == 0 ? 0 : 1 + (steps->n_epochs - 1) % (WEIR_STEPS_EPOCHS - 1);
    steps->n_epochs++;
    steps->epochs[steps->current] = (struct weir_epoch_sums){.epoch = epoch, .device_bytes = bytes};
    return &steps->epochs[steps->current];
}

static void add_late(struct weir_steps *steps, const struct weir_last_task *last, uint64_t wait_ns)
{
    struct weir_late_sums *late = &steps->late;
    late->count++;
    late->ns += wait_ns;
    late->task_ns += weir_clock_to_ns(last->ticks);
    late->read_ns += weir_clock_to_ns(last->read_ticks);
    late->longest_ns = wait_ns > late->longest_ns ? wait_ns : late->longest_ns;
    if (last->camera >= 0 && last->camera < steps->n_cameras)
        steps->camera_ns[last->camera] += wait_ns;
    if (last->file >= 0 && last->file < steps->n_files)
        steps->file_ns[last->file] += wait_ns;
    if (last->worker < steps->n_workers) /* false without workers, since the consumer's thread then completes batches */
        steps->worker_ns[last->worker] += wait_ns;
}

void weir_steps_given(struct weir_steps *steps, const struct weir_batch *batch, int images_per_sample,
                      const struct weir_last_task *last)
{
    struct weir_epoch_sums *epoch = epoch_of(steps, batch->plan.epoch);
    struct weir_step_sums *sums = &steps->sums;
    uint64_t images = (uint64_t)batch->n * (uint64_t)images_per_sample;
    bool first = sums->batches[WEIR_SPLIT_TRAIN] + sums->batches[WEIR_SPLIT_VAL] == 0;
    steps->open = true;
    steps->split = batch->plan.split;
    sums->batches[steps->split]++;
    sums->wait_ns[steps->split] += batch->wait_ns;
    sums->images += images;
    sums->first_wait_ns += first ? batch->wait_ns : 0;
    epoch->batches++;
    epoch->images += images;
    epoch->wait_ns += batch->wait_ns;
    show(steps);
    if (last && !first && batch->wait_ns >= WEIR_LATE_NS)
        add_late(steps, last, batch->wait_ns);
}

static uint64_t *copy_of(const uint64_t *from, int n)
{
    uint64_t *copy = zeros(n);
    if (copy && from)
        memcpy(copy, from, sizeof *copy * (size_t)n);
    return copy;
}

int weir_steps_take(struct weir_steps *steps, uint64_t now_ns, struct weir_steps *copy)
{
    weir_steps_asked(steps, now_ns);
    *copy = *steps;
    copy->camera_ns = copy_of(steps->camera_ns, steps->n_cameras);
    copy->file_ns = copy_of(steps->file_ns, steps->n_files);
    copy->worker_ns = copy_of(steps->worker_ns, steps->n_workers);
    if (copy->camera_ns && copy->file_ns && copy->worker_ns)
        return 0;
    weir_steps_close(copy);
    return -ENOMEM;
}
