#include "cli/run_loop.h"
#include "base/memory.h"
#include "cli/run_gpu.h"
#include "cli/run_sources.h"
#include "io/io.h"
#include "pipeline/checksum.h"
#include "prof/report/machine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double COLD_MAX = 0.05, WARM_MIN = 0.95; /* fractions in the page cache that are as good as none and all */

/* What one epoch has cost so far. */
struct epoch {
    int number; /* from 0; -1 = none begun */
    uint64_t train_ns, val_ns, train_wait_ns;
    uint64_t samples, images, batches;
};

/* The loader's counts at one moment, and those of the faults it keeps. */
struct figures {
    struct weir_loader_counts counts;
    struct weir_gpu_figures gpu;
    struct weir_gpu_decode_figures decode;
    struct weir_machine_now machine;
    uint64_t faults[WEIR_FAULTS_MAX];
    struct weir_source_figures *sources; /* owned; NULL = the beginning */
};

/* Where the report window, or the run, began. */
struct window {
    int first_epoch;
    uint64_t at_ns;
    struct weir_snapshot *snapshot; /* NULL = the beginning */
    struct figures figures;
};

struct loop {
    struct weir_loader *loader;
    const struct weir_loader_config *config;
    const struct weir_run_config *run;
    const volatile sig_atomic_t *interrupted;
    struct weir_loader_facts facts;
    struct weir_run_gpu *gpu;             /* NULL: batches are the CPU's */
    struct weir_gpu_figures gpu_at_epoch; /* when it began */
    struct epoch epoch;
    double cached; /* fraction of the dataset in the page cache when the epoch began */
    struct window since_table, since_start;
    uint64_t batches;         /* of the run so far */
    bool cut_short;           /* ended before its last batch */
    int last_epoch;           /* finished or cut short, from 0; -1 = none */
    int queue_min, queue_max; /* of the whole run */
    uint64_t mark_ns;
    uint64_t progress_ns; /* when progress was shown last */
    bool terminal;
};

/* ---- the step ---- */

static void spin_until(uint64_t until_ns, const volatile sig_atomic_t *interrupted)
{
    while (weir_clock_monotonic_ns() < until_ns && !*interrupted)
        continue;
}

static void sleep_until(uint64_t until_ns, const volatile sig_atomic_t *interrupted)
{
    struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    while (!*interrupted && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

/* The tensors that a step gets, as records carry them. */
static uint32_t batch_shapes(const struct weir_batch *batch)
{
    static const char *const names[] = {"unsigned char", "float", "unsigned short", "c10::Half", "c10::BFloat16"};
    int64_t sizes[6 * WEIR_TENSORS_MAX], *to = sizes;
    int ranks[WEIR_TENSORS_MAX];
    const char *types[WEIR_TENSORS_MAX];
    for (int i = 0; i < batch->n_tensors; i++) {
        const struct weir_tensor *tensor = &batch->tensors[i];
        ranks[i] = tensor->ndim;
        types[i] = names[tensor->dtype];
        for (int d = 0; d < tensor->ndim; d++)
            *to++ = tensor->shape[d];
    }
    return weir_shapes_intern(batch->n_tensors, ranks, sizes, types);
}

static int stage_of_step(const struct weir_batch *batch)
{
    return batch->plan.split == WEIR_SPLIT_TRAIN ? WEIR_STAGE_TRAIN_FORWARD : WEIR_STAGE_VAL_FORWARD;
}

/* A training step's stand-in. It is billed to the forward pass, whole. */
static void step(const struct loop *l, const struct weir_batch *batch)
{
    if (l->run->step_ms <= 0)
        return;
    WEIR_ZONE(stage_of_step(batch));
    if (weir_recording() & WEIR_RECORDING_SHAPES)
        weir_zone_shapes(batch_shapes(batch));
    uint64_t until_ns = weir_clock_monotonic_ns() + (uint64_t)(l->run->step_ms * 1e6);
    if (l->run->step_spin)
        spin_until(until_ns, l->interrupted);
    else
        sleep_until(until_ns, l->interrupted);
}

static int step_on_gpu(const struct loop *l, struct weir_batch *batch, struct weir_err *err)
{
    WEIR_ZONE(stage_of_step(batch));
    if (weir_recording() & WEIR_RECORDING_SHAPES)
        weir_zone_shapes(batch_shapes(batch));
    return weir_run_gpu_step(l->gpu, batch, (uint64_t)(l->run->step_ms * 1e6), err);
}

static int write_checksum(const struct loop *l, const struct weir_batch *batch, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_CHECKSUM);
    struct weir_batch host;
    int rc = l->gpu ? weir_run_gpu_fetch(l->gpu, batch, &host, err) : 0;
    if (rc == 0)
        weir_checksum_line(l->run->checksums, l->gpu ? &host : batch);
    return rc;
}

/* ---- reports ---- */

static void fill_counts(struct weir_report *report, struct loop *l, const struct weir_loader_counts *now,
                        const struct weir_loader_counts *then)
{
    report->queue_slots = l->facts.slots;
    report->queue_samples = now->queue_samples - then->queue_samples;
    if (report->queue_samples)
        report->queue_mean = (double)(now->queue_sum - then->queue_sum) / (double)report->queue_samples;
    report->reads = now->reads - then->reads;
    report->read_bytes = now->read_bytes - then->read_bytes;
    weir_run_fallbacks(&report->fallbacks, now, then, report->wall_s);
    report->stored_pixels = now->decoded.stored_pixels - then->decoded.stored_pixels;
    report->decoded_pixels = now->decoded.decoded_pixels - then->decoded.decoded_pixels;
    report->chunks = (struct weir_chunk_counts){
        .frames = now->chunks.frames - then->chunks.frames,
        .blocks = now->chunks.blocks - then->chunks.blocks,
        .chunks = now->chunks.chunks - then->chunks.chunks,
        .frame_bytes = now->chunks.frame_bytes - then->chunks.frame_bytes,
        .unpacked_bytes = now->chunks.unpacked_bytes - then->chunks.unpacked_bytes,
        .stored_bytes = now->chunks.stored_bytes - then->chunks.stored_bytes,
        .read_bytes = now->chunks.read_bytes - then->chunks.read_bytes,
    };
    report->frames_shared = now->frames_shared - then->frames_shared;
    report->bad_frames = now->bad_frames - then->bad_frames;
    report->skipped_samples = now->skipped_samples - then->skipped_samples;
    report->substituted_frames = now->substituted_frames - then->substituted_frames;
    report->bad_episodes = now->bad_episodes;
    report->changed_files = now->changed_files - then->changed_files;
}

/* Of workers, and of threads that upload to a GPU. */
static uint64_t self_ns(const struct weir_snapshot *snapshot, int stage)
{
    return snapshot->stages[stage].self_ns + snapshot->others[stage].self_ns;
}

/* What loading a frame has cost in the run so far, where it was not in the cache: finding, reading, unpacking, decoding
 * and converting it. NAN before the first. */
static double loading_ns(const struct weir_snapshot *run)
{
    static const int stages[] = {WEIR_STAGE_FILE_CACHE, WEIR_STAGE_READ_BYTES, WEIR_STAGE_INFLATE,
                                 WEIR_STAGE_IMAGE_DECODE, WEIR_STAGE_TO_TENSOR};
    uint64_t sum_ns = 0;
    uint64_t frames = run->stages[WEIR_STAGE_IMAGE_DECODE].count + run->others[WEIR_STAGE_IMAGE_DECODE].count;
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
        sum_ns += self_ns(run, stages[i]);
    return frames ? (double)sum_ns / (double)frames : NAN;
}

/* run: the figures since the beginning; window: those of the time covered, NULL without timing. */
static void fill_cache(struct weir_report_cache *cache, const struct loop *l, const struct weir_loader_counts *now,
                       const struct weir_loader_counts *then, const struct weir_snapshot *run,
                       const struct weir_snapshot *window)
{
    cache->budget_bytes = l->facts.cache_budget_bytes;
    cache->all_frames = l->facts.cache_frames_all;
    cache->all_bytes = l->facts.cache_bytes_all;
    cache->used_bytes = now->cache_bytes;
    cache->frames = now->cache_frames;
    cache->hits = now->cache_hits - then->cache_hits;
    cache->misses = now->cache_misses - then->cache_misses;
    uint64_t all = cache->hits + cache->misses;
    bool known = all > 0 && now->cache_seen > 0;
    cache->all_hit_rate = known ? 1 - (double)(now->cache_seen - then->cache_seen) / (double)all : -1;
    cache->saved_s = NAN;
    if (window)
        cache->saved_s = ((double)cache->hits * loading_ns(run) -
                          (double)(self_ns(window, WEIR_STAGE_CACHE_COPY) + self_ns(window, WEIR_STAGE_CACHE_KEEP))) /
                         1e9;
}

/* Episodes left out at open belong to every report, bad frames to the one in whose time they were met. */
static void fill_errors(struct weir_report *report, struct weir_loader *loader, const struct figures *now,
                        const struct figures *then)
{
    const struct weir_dataset *dataset = weir_loader_dataset(loader);
    int n = 0;
    for (int i = 0; i < weir_dataset_bad_episodes(dataset) && n < WEIR_REPORT_ERRORS_MAX / 2; i++, n++) {
        snprintf(report->errors[n].text, sizeof report->errors[n].text, "%s", weir_dataset_bad_episode(dataset, i));
        report->errors[n].count = 1;
    }
    for (int i = 0; i < WEIR_FAULTS_MAX && n < WEIR_REPORT_ERRORS_MAX; i++) {
        uint64_t so_far;
        if (now->faults[i] == then->faults[i] || !weir_loader_fault(loader, i, report->errors[n].text, &so_far))
            continue;
        report->errors[n++].count = now->faults[i] - then->faults[i];
    }
    report->n_errors = n;
}

static void emit(struct loop *l, const struct weir_report *report)
{
    if (l->run->log)
        weir_report_log(l->run->log, report);
    if (l->run->json)
        weir_report_log(stdout, report);
    else
        weir_report_print(stdout, report, l->run->lang);
    fflush(stdout);
}

static void fill_gpu(struct weir_report *report, const struct loop *l, const struct figures *now,
                     const struct figures *then)
{
    struct weir_report_decode *decode = &report->gpu.decode;
    weir_run_gpu_report(&report->gpu, l->gpu, &now->gpu, &then->gpu, report->wall_s);
    weir_run_gpu_decode(&report->gpu, &now->decode, &then->decode, report->wall_s);
    decode->cpu_frames = now->counts.decoded.frames - then->counts.decoded.frames;
    int workers = l->facts.workers > 0 ? l->facts.workers : 1;
    if (report->wall_s > 0)
        decode->cpu_busy =
            fmin((double)(now->decode.cpu_ns - then->decode.cpu_ns) / 1e9 / report->wall_s / (double)workers, 1);
}

/* The report since a window's beginning. The window is not moved. */
static int report_since(struct loop *l, const struct window *since, bool final, const struct weir_snapshot *now,
                        const struct figures *figures)
{
    struct weir_report *report = calloc(1, sizeof *report);
    struct weir_snapshot *diff = NULL;
    int rc = report ? 0 : -ENOMEM;
    if (rc == 0 && now)
        rc = weir_snapshot_diff(now, since->snapshot, &diff);
    if (rc == 0 && diff)
        rc = weir_report_from_snapshot(report, diff);
    if (rc == 0) {
        report->epoch_first = since->first_epoch + 1;
        report->epoch_last = l->last_epoch + 1;
        report->epoch_count = l->config->num_epochs;
        report->final = final;
        report->interrupted = final && l->cut_short;
        report->timing = now != NULL;
        report->wall_s = (double)(weir_clock_monotonic_ns() - since->at_ns) / 1e9;
        fill_counts(report, l, &figures->counts, &since->figures.counts);
        if (l->gpu)
            fill_gpu(report, l, figures, &since->figures);
        report->machine = l->run->machine;
        weir_machine_between(&report->machine, &since->figures.machine, &figures->machine);
        fill_cache(&report->cache, l, &figures->counts, &since->figures.counts, now, diff);
        if (report->queue_samples) {
            report->queue_min = final ? l->queue_min : figures->counts.queue_min;
            report->queue_max = final ? l->queue_max : figures->counts.queue_max;
        }
        fill_errors(report, l->loader, figures, &since->figures);
        rc = weir_run_sources(&report->sources, l->loader, l->config->data, figures->sources, since->figures.sources);
    }
    if (rc == 0)
        emit(l, report);
    if (report)
        weir_report_free(report);
    weir_snapshot_free(&diff);
    free(report);
    return rc;
}

static int take(struct loop *l, struct weir_snapshot **now, struct figures *figures)
{
    struct weir_loader_counts *counts = &figures->counts;
    char text[WEIR_FAULT_TEXT];
    *now = NULL;
    memset(figures, 0, sizeof *figures);
    weir_loader_counts(l->loader, counts, true);
    weir_loader_gpu_figures(l->loader, &figures->gpu);
    weir_loader_gpu_decode_figures(l->loader, &figures->decode);
    weir_machine_read(&figures->machine, "");
    for (int i = 0; i < WEIR_FAULTS_MAX && weir_loader_fault(l->loader, i, text, &figures->faults[i]); i++)
        continue;
    if (counts->queue_samples > l->since_table.figures.counts.queue_samples) {
        l->queue_min = counts->queue_min < l->queue_min ? counts->queue_min : l->queue_min;
        l->queue_max = counts->queue_max > l->queue_max ? counts->queue_max : l->queue_max;
    }
    struct weir_recorder *recorder = weir_loader_recorder(l->loader);
    int rc = weir_loader_sources(l->loader, &figures->sources);
    return rc == 0 && recorder ? weir_snapshot_take(recorder, now) : rc;
}

static int table(struct loop *l)
{
    struct weir_snapshot *now;
    struct figures figures;
    int rc = take(l, &now, &figures);
    if (rc == 0)
        rc = report_since(l, &l->since_table, false, now, &figures);
    weir_snapshot_free(&l->since_table.snapshot);
    weir_source_figures_free(&l->since_table.figures.sources);
    l->since_table = (struct window){l->last_epoch + 1, weir_clock_monotonic_ns(), now, figures};
    return rc;
}

static int final_table(struct loop *l)
{
    struct weir_snapshot *now;
    struct figures figures;
    weir_zone_end(); /* all that this thread does is over: what finish waits for is the workers' */
    weir_loader_finish(l->loader);
    int rc = take(l, &now, &figures);
    if (rc == 0)
        rc = report_since(l, &l->since_start, true, now, &figures);
    weir_snapshot_free(&now);
    weir_source_figures_free(&figures.sources);
    return rc;
}

/* ---- epochs ---- */

static void clear_progress(const struct loop *l)
{
    if (l->terminal && l->progress_ns)
        fputs("\r\033[K", stderr);
}

static enum weir_reads reads_of(const struct loop *l)
{
    if (l->config->direct)
        return WEIR_READS_DIRECT;
    if (l->cached < 0 || weir_io_from_memory(l->facts.io_used))
        return WEIR_READS_UNKNOWN;
    return l->cached <= COLD_MAX ? WEIR_READS_COLD : l->cached >= WARM_MIN ? WEIR_READS_WARM : WEIR_READS_PARTLY;
}

/* The GPU's part of an epoch's line. */
static void end_epoch_gpu(struct loop *l, struct weir_epoch_line *line)
{
    struct weir_gpu_figures now;
    const struct weir_gpu_figures *then = &l->gpu_at_epoch;
    if (!l->gpu)
        return;
    weir_loader_gpu_figures(l->loader, &now);
    line->gpu = true;
    line->copy_overlap_fraction = weir_run_gpu_overlap(&now, then);
    if (line->total_s > 0)
        line->gpu_busy_fraction = fmin((double)(now.busy_ns - then->busy_ns) / 1e9 / line->total_s, 1);
    if (line->train_s > 0)
        line->data_wait_fraction += (double)(now.train_stall_ns - then->train_stall_ns) / 1e9 / line->train_s;
    line->data_wait_fraction = fmin(line->data_wait_fraction, 1); /* host and stream may wait at the same time */
    l->gpu_at_epoch = now;
}

static void end_epoch(struct loop *l)
{
    const struct epoch *e = &l->epoch;
    const struct weir_sampler *sampler = weir_loader_sampler(l->loader);
    if (e->number < 0)
        return;
    int batches = weir_sampler_batches(sampler, WEIR_SPLIT_TRAIN) + weir_sampler_batches(sampler, WEIR_SPLIT_VAL);
    double total_s = (double)(e->train_ns + e->val_ns) / 1e9;
    struct weir_epoch_line line = {
        .epoch = e->number + 1,
        .epoch_count = l->config->num_epochs,
        .total_s = total_s,
        .train_s = (double)e->train_ns / 1e9,
        .val_s = (double)e->val_ns / 1e9,
        .data_wait_fraction = e->train_ns ? (double)e->train_wait_ns / (double)e->train_ns : 0,
        .samples_per_s = total_s > 0 ? (double)e->samples / total_s : 0,
        .images_per_s = total_s > 0 ? (double)e->images / total_s : 0,
        .peak_rss_bytes = weir_peak_rss_bytes(),
        .interrupted = e->batches < (uint64_t)batches,
        .reads = reads_of(l),
        .cached_fraction = l->cached,
    };
    end_epoch_gpu(l, &line);
    clear_progress(l);
    if (l->run->json)
        weir_epoch_log(stdout, &line);
    else
        weir_epoch_print(stdout, &line, l->run->lang);
    fflush(stdout);
    if (l->run->log)
        weir_epoch_log(l->run->log, &line);
    l->last_epoch = e->number;
}

/* Four times a second on a terminal, every ten seconds as a plain line elsewhere. */
static void progress(struct loop *l, const struct weir_batch *batch)
{
    uint64_t now_ns = weir_clock_monotonic_ns(), period_ns = l->terminal ? 250000000u : 10000000000u;
    if (now_ns - (l->progress_ns ? l->progress_ns : l->since_start.at_ns) < period_ns)
        return;
    WEIR_ZONE(WEIR_STAGE_REPORT);
    l->progress_ns = now_ns;
    uint64_t spent_ns = l->epoch.train_ns + l->epoch.val_ns;
    fprintf(stderr, "%sepoch %d/%d: %s batch %d of %d, %.0f images/s%s", l->terminal ? "\r\033[K" : "",
            batch->plan.epoch + 1, l->config->num_epochs,
            batch->plan.split == WEIR_SPLIT_TRAIN ? "training" : "validation", batch->plan.index + 1,
            weir_sampler_batches(weir_loader_sampler(l->loader), batch->plan.split),
            spent_ns ? (double)l->epoch.images * 1e9 / (double)spent_ns : 0.0, l->terminal ? "" : "\n");
    fflush(stderr);
}

static void account(struct loop *l, const struct weir_batch *batch)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    struct epoch *e = &l->epoch;
    bool train = batch->plan.split == WEIR_SPLIT_TRAIN;
    *(train ? &e->train_ns : &e->val_ns) += now_ns - l->mark_ns;
    e->train_wait_ns += train ? batch->wait_ns : 0;
    e->samples += (uint64_t)batch->n;
    e->images += (uint64_t)batch->n * (uint64_t)l->facts.images_per_sample;
    e->batches++;
    l->batches++;
    l->mark_ns = now_ns;
}

/* The epoch's last batch: training's, when there is no validation. */
static bool ends_epoch(const struct loop *l, const struct weir_plan *plan)
{
    const struct weir_sampler *sampler = weir_loader_sampler(l->loader);
    int val = weir_sampler_batches(sampler, WEIR_SPLIT_VAL);
    bool last_part = plan->split == WEIR_SPLIT_VAL || val == 0;
    return last_part && plan->index + 1 == weir_sampler_batches(sampler, plan->split);
}

/* The GPU's work of an epoch belongs to its time. */
static int drain(struct loop *l, enum weir_split split, struct weir_err *err)
{
    if (!l->gpu)
        return 0;
    WEIR_ZONE(WEIR_STAGE_WAIT_GPU);
    int rc = weir_run_gpu_drain(l->gpu, err);
    uint64_t now_ns = weir_clock_monotonic_ns();
    *(split == WEIR_SPLIT_TRAIN ? &l->epoch.train_ns : &l->epoch.val_ns) += now_ns - l->mark_ns;
    l->mark_ns = now_ns;
    return rc;
}

/* Done before the next epoch's first batch is asked for, so that its wait is in its own line and table. */
static int close_epoch(struct loop *l, enum weir_split split, struct weir_err *err)
{
    int rc = drain(l, split, err);
    if (rc < 0)
        return rc;
    WEIR_ZONE(WEIR_STAGE_REPORT);
    rc = l->run->state ? weir_loader_save(l->loader, l->run->state, err) : 0;
    if (rc < 0)
        return rc;
    end_epoch(l);
    int done = l->last_epoch + 1;
    bool more = done < l->config->num_epochs;
    if (l->run->every > 0 && done % l->run->every == 0 && (more || l->since_table.first_epoch > 0))
        rc = table(l);
    l->epoch = (struct epoch){.number = -1};
    if (more && !l->config->direct)
        l->cached = weir_loader_cached(l->loader);
    l->mark_ns = weir_clock_monotonic_ns();
    return rc;
}

/* The reader of the output has left, or the disk is full: the run ends. The caller reports it when it closes the file.
 */
static bool output_lost(const struct loop *l)
{
    return ferror(stdout) || (l->run->log && ferror(l->run->log)) || (l->run->checksums && ferror(l->run->checksums));
}

static void say_first_batch(struct loop *l)
{
    WEIR_ZONE(WEIR_STAGE_REPORT);
    struct weir_loader_facts facts;
    weir_loader_facts(l->loader, &facts);
    struct weir_start_line line = {facts.first_batch_s, facts.open_s, facts.index_s, facts.files,
                                   facts.files_from_index};
    if (l->run->json)
        weir_start_log(stdout, &line);
    else
        weir_start_print(stdout, &line, l->run->lang);
    fflush(stdout);
    if (l->run->log)
        weir_start_log(l->run->log, &line);
}

static void release(struct loop *l, struct weir_batch *batch)
{
    WEIR_ZONE(WEIR_STAGE_RELEASE);
    if (l->gpu)
        weir_run_gpu_release(l->gpu, batch);
    else
        weir_loader_release(l->loader, batch);
}

static int consume(struct loop *l, struct weir_err *err)
{
    struct weir_batch *batch;
    int rc;
    while (!output_lost(l) && (rc = weir_loader_next(l->loader, &batch, err)) != 0) {
        if (rc < 0)
            return rc;
        l->epoch.number = batch->plan.epoch;
        if (l->batches == 0)
            say_first_batch(l);
        rc = l->gpu ? step_on_gpu(l, batch, err) : 0;
        if (rc == 0 && l->run->checksums)
            rc = write_checksum(l, batch, err);
        if (rc < 0)
            return rc;
        if (!l->gpu)
            step(l, batch);
        account(l, batch);
        progress(l, batch);
        bool last = ends_epoch(l, &batch->plan);
        uint64_t wait_ns = batch->wait_ns;
        enum weir_split split = batch->plan.split;
        release(l, batch);
        weir_run_profile_step(l->run->profile, wait_ns);
        rc = last ? close_epoch(l, split, err) : 0;
        if (rc < 0)
            return weir_err_set(err, rc, "out of memory for the report");
    }
    return 0;
}

/* The line of an epoch that was cut short, and the final table. */
static int finish(struct loop *l)
{
    end_epoch(l);
    return final_table(l);
}

int weir_run_loop(struct weir_loader *loader, const struct weir_loader_config *config,
                  const struct weir_run_config *run, const volatile sig_atomic_t *interrupted, struct weir_err *err)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    struct loop l = {
        .loader = loader,
        .config = config,
        .run = run,
        .interrupted = interrupted,
        .epoch = {.number = -1},
        .last_epoch = -1,
        .queue_min = INT32_MAX,
        .since_table = {.at_ns = now_ns},
        .since_start = {.at_ns = now_ns},
        .mark_ns = now_ns,
        .terminal = isatty(STDERR_FILENO),
    };
    weir_machine_read(&l.since_start.figures.machine, "");
    l.since_table.figures.machine = l.since_start.figures.machine;
    weir_loader_facts(loader, &l.facts);
    l.cached = l.facts.io_cached;
    int rc = run->state ? weir_loader_save(loader, run->state, err) : 0; /* cannot it be written? Now, not in hours. */
    if (rc == 0)
        rc = weir_run_gpu_open(&l.gpu, loader, run->sync_steps, err);
    if (rc == 0)
        rc = consume(&l, err);
    weir_zone_begin(WEIR_STAGE_REPORT);
    if (l.gpu)
        weir_run_gpu_drain(l.gpu, NULL); /* what was cut short counts too */
    weir_run_profile_finish(run->profile);
    l.cut_short = weir_loader_position(loader) < weir_sampler_total(weir_loader_sampler(loader));
    if (run->state && weir_loader_save(loader, run->state, err) < 0 && rc >= 0)
        rc = -EIO;
    weir_zone_end();
    int report_rc = finish(&l);
    weir_run_gpu_close(&l.gpu);
    weir_snapshot_free(&l.since_table.snapshot);
    weir_source_figures_free(&l.since_table.figures.sources);
    if (run->log)
        weir_run_profile_log(run->log, run->profile);
    if (run->json)
        weir_run_profile_log(stdout, run->profile);
    else
        weir_run_profile_print(stdout, run->profile);
    if (rc == 0 && report_rc < 0)
        rc = weir_err_set(err, report_rc, "out of memory for the report");
    if (rc == 0)
        rc = weir_run_profile_error(run->profile, err);
    return rc < 0 ? rc : 0;
}
