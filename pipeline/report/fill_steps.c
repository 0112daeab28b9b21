/* Fills in the consumer's steps, the configuration of the run, and the tasks that completed late batches. */
#include "base/resources.h"
#include "base/text.h"
#include "pipeline/report/fill_priv.h"
#include "pipeline/work/worker.h"
#include "weir/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double seconds(uint64_t now_ns, uint64_t then_ns)
{
    return (double)(now_ns - then_ns) / 1e9;
}

static void fill_sums(struct weir_report_steps *to, const struct weir_step_sums *now, const struct weir_step_sums *then)
{
    *to = (struct weir_report_steps){
        .train_batches = now->batches[WEIR_SPLIT_TRAIN] - then->batches[WEIR_SPLIT_TRAIN],
        .val_batches = now->batches[WEIR_SPLIT_VAL] - then->batches[WEIR_SPLIT_VAL],
        .images = now->images - then->images,
        .train_s = seconds(now->ns[WEIR_SPLIT_TRAIN], then->ns[WEIR_SPLIT_TRAIN]),
        .val_s = seconds(now->ns[WEIR_SPLIT_VAL], then->ns[WEIR_SPLIT_VAL]),
        .train_wait_s = seconds(now->wait_ns[WEIR_SPLIT_TRAIN], then->wait_ns[WEIR_SPLIT_TRAIN]),
        .val_wait_s = seconds(now->wait_ns[WEIR_SPLIT_VAL], then->wait_ns[WEIR_SPLIT_VAL]),
        .first_wait_s = seconds(now->first_wait_ns, then->first_wait_ns),
    };
}

/* ---- epochs ---- */

static void add_rate(struct weir_report_epochs *to, double rate)
{
    to->slowest = to->fastest <= 0 || rate < to->slowest ? rate : to->slowest;
    to->fastest = rate > to->fastest ? rate : to->fastest;
}

/* whole: the epoch is complete. A partial epoch has no rate, because its few batches may have been ready before. */
static void add_epoch(struct weir_report_epochs *to, const struct weir_epoch_sums *epoch, uint64_t end_bytes,
                      bool whole)
{
    double s = (double)epoch->ns / 1e9;
    bool known = epoch->device_bytes != UINT64_MAX && end_bytes != UINT64_MAX;
    if (whole && s > 0)
        add_rate(to, (double)epoch->images / s);
    to->n++;
    to->images += epoch->images;
    to->s += s;
    to->wait_s += (double)epoch->wait_ns / 1e9;
    to->device_bytes =
        known && to->device_bytes >= 0 ? to->device_bytes + (double)(end_bytes - epoch->device_bytes) : -1;
}

/* Lists the kept epochs in order: the first one, then the others from the oldest on. */
static int in_order(const struct weir_steps *steps, const struct weir_epoch_sums *order[WEIR_STEPS_EPOCHS])
{
    int ring = WEIR_STEPS_EPOCHS - 1, n = steps->n_epochs < WEIR_STEPS_EPOCHS ? steps->n_epochs : WEIR_STEPS_EPOCHS;
    if (n == 0)
        return 0;
    order[0] = &steps->epochs[0];
    int oldest = steps->n_epochs > WEIR_STEPS_EPOCHS ? steps->current % ring : 0;
    for (int i = 1; i < n; i++)
        order[i] = &steps->epochs[1 + (oldest + i - 1) % ring];
    return n;
}

void weir_fill_epochs(struct weir_loader_report *report, const struct weir_steps *now, int first_epoch,
                      uint64_t device_bytes)
{
    const struct weir_epoch_sums *order[WEIR_STEPS_EPOCHS];
    int n = in_order(now, order);
    uint64_t most = 0;
    report->first_epoch = report->later_epochs = (struct weir_report_epochs){0};
    for (int i = 0; i < n; i++)
        most = order[i]->images > most ? order[i]->images : most;
    for (int i = 0; i < n; i++) {
        uint64_t end_bytes = order[i]->over ? order[i]->end_bytes : device_bytes;
        if (order[i]->epoch < first_epoch)
            continue;
        add_epoch(report->first_epoch.n == 0 ? &report->first_epoch : &report->later_epochs, order[i], end_bytes,
                  order[i]->images == most);
    }
}

/* ---- tasks that completed late batches ---- */

static int most(const uint64_t *now, const uint64_t *then, int n, uint64_t *ns)
{
    int found = -1;
    *ns = 0;
    for (int i = 0; now && i < n; i++) {
        uint64_t since = now[i] - (then ? then[i] : 0);
        if (since <= *ns)
            continue;
        *ns = since;
        found = i;
    }
    return found;
}

static void name_late(struct weir_report_late *to, const struct weir_dataset *dataset, const char *folder, int number,
                      const struct weir_steps *now, const struct weir_steps *then)
{
    uint64_t ns;
    int camera = most(now->camera_ns, then->camera_ns, now->n_cameras, &ns);
    to->camera_wait_s = (double)ns / 1e9;
    if (camera >= 0)
        snprintf(to->camera, sizeof to->camera, "%s", weir_dataset_camera(dataset, camera)->name);
    weir_text_printable(to->camera);
    int file = most(now->file_ns, then->file_ns, now->n_files, &ns);
    to->file_wait_s = (double)ns / 1e9;
    if (file >= 0) {
        struct weir_dataset_file from;
        weir_dataset_file(dataset, file, &from);
        weir_fill_file_name(to->file, sizeof to->file, from.path, folder);
    }
    int worker = most(now->worker_ns, then->worker_ns, now->n_workers, &ns);
    to->worker_wait_s = (double)ns / 1e9;
    if (worker >= 0)
        weir_worker_name(to->worker, number, worker);
}

void weir_fill_steps(struct weir_loader_report *report, const struct weir_loader *loader, const char *folder,
                     int number, const struct weir_steps *now, const struct weir_steps *then)
{
    fill_sums(&report->steps, &now->sums, &then->sums);
    struct weir_report_late *late = &report->late;
    late->batches = now->late.count - then->late.count;
    late->wait_s = seconds(now->late.ns, then->late.ns);
    late->task_s = seconds(now->late.task_ns, then->late.task_ns);
    late->read_s = seconds(now->late.read_ns, then->late.read_ns);
    late->longest_wait_s = (double)now->late.longest_ns / 1e9;
    if (late->batches > 0)
        name_late(late, weir_loader_dataset(loader), folder, number, now, then);
}

/* ---- the setup ---- */

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); /* CPU time, because other threads may use the core meanwhile */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns the better rate of two copies that are larger than a core's caches. The pages have been touched before. */
static double copy_rate(void)
{
    enum { BYTES = WEIR_COPY_RATE_BYTES / 2, ROUNDS = 2 };
    uint64_t peak = weir_peak_rss_bytes();
    char *memory = mmap(NULL, WEIR_COPY_RATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double best = 0;
    if (memory == MAP_FAILED)
        return 0;
    memset(memory, 1, WEIR_COPY_RATE_BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t from_ns = cpu_ns();
        memcpy(i & 1 ? memory + BYTES : memory, i & 1 ? memory : memory + BYTES, BYTES);
        double s = seconds(cpu_ns(), from_ns);
        best = s > 0 && BYTES / s > best ? BYTES / s : best;
    }
    volatile char used = memory[BYTES / 2]; /* keeps the compiler from removing the copies */
    (void)used;
    munmap(memory, WEIR_COPY_RATE_BYTES);
    weir_peak_rss_exclude(peak);
    return best;
}

void weir_fill_setup(struct weir_report_setup *setup, const struct weir_loader *loader, bool measure,
                     double *copy_bytes_per_s)
{
    weir_steps_setup(loader, setup);
    setup->memory_free_bytes = weir_memory_available_bytes();
    if (measure && *copy_bytes_per_s <= 0)
        *copy_bytes_per_s = copy_rate();
    setup->copy_bytes_per_s = *copy_bytes_per_s;
}
