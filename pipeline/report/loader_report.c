/* Reports of a run: one for the time since its beginning, and one for the time since the last table. */
#include "base/option.h"
#include "base/proc.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/report/fill_priv.h"
#include "pipeline/report/live_report.h"
#include "pipeline/report/report_parts_priv.h"
#include "pipeline/samples/file_watch.h"
#include "pipeline/samples/sources.h"
#include "pipeline/work/worker.h"
#include "prof/report/machine.h"
#include "weir/loader.h"
#include "weir/report.h"
#include "weir/stages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The loader's counters at one moment. */
struct figures {
    struct weir_loader_counts counts;
    struct weir_gpu_figures gpu;
    struct weir_gpu_decode_figures decode;
    struct weir_machine_now machine;
    uint64_t faults[WEIR_FAULTS_MAX];
    struct weir_source_figures *sources; /* owned; NULL for the beginning of the run */
    struct weir_steps steps;             /* owns its arrays; they are NULL for the beginning of the run */
    uint64_t device_bytes;               /* bytes read from storage; UINT64_MAX = unknown */
};

/* The state at the last table, or at the beginning of the run. */
struct window {
    int first_epoch;
    uint64_t at_ns;
    struct weir_snapshot *snapshot; /* NULL for the beginning of the run */
    struct figures figures;
    int queue_min, queue_max; /* min and max of ready batches since then; min > max = no samples */
};

struct weir_loader_reports {
    struct weir_loader *loader;
    struct weir_loader_reports_config config; /* its member folder is owned */
    struct weir_report_machine machine;
    struct weir_loader_facts facts;
    struct window since_table, since_start;
    struct window since_fill; /* since the epoch that filled the decode cache */
    struct window since_live; /* since weir_live_report_begin, for live reports */
    struct weir_report_setup live_setup;
    bool filled;
    uint64_t cached_frames;  /* frames in the decode cache after the last epoch */
    uint64_t queue_samples;  /* value at the last take */
    double copy_bytes_per_s; /* 0 until it is measured */
};

static void fill_counts(struct weir_loader_report *report, const struct weir_loader_reports *r,
                        const struct weir_loader_counts *now, const struct weir_loader_counts *then)
{
    report->queue_slots = r->facts.slots;
    report->queue_samples = now->queue_samples - then->queue_samples;
    if (report->queue_samples)
        report->queue_mean = (double)(now->queue_sum - then->queue_sum) / (double)report->queue_samples;
    report->reads = now->reads - then->reads;
    report->read_bytes = now->read_bytes - then->read_bytes;
    report->ahead_reads = now->ahead_reads - then->ahead_reads;
    weir_fill_fallbacks(&report->fallbacks, now, then, report->wall_s);
    weir_fill_server(&report->server, now, then, report->wall_s);
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
    report->video.counts = (struct weir_video_counts){
        .groups = now->video.groups - then->video.groups,
        .group_pictures = now->video.group_pictures - then->video.group_pictures,
        .decoded = now->video.decoded - then->video.decoded,
        .used = now->video.used - then->video.used,
        .key_s = now->video.key_s - then->video.key_s,
        .gpu_groups = now->video.gpu_groups - then->video.gpu_groups,
    };
    report->frames_shared = now->frames_shared - then->frames_shared;
    report->warned_frames = now->decoded.warned_frames - then->decoded.warned_frames;
    report->bad_frames = now->bad_frames - then->bad_frames;
    report->skipped_samples = now->skipped_samples - then->skipped_samples;
    report->substituted_frames = now->substituted_frames - then->substituted_frames;
    report->bad_episodes = now->bad_episodes;
    report->changed_files = now->changed_files - then->changed_files;
}

/* Returns the self time of a stage on workers and GPU threads. */
static uint64_t self_ns(const struct weir_snapshot *snapshot, int stage)
{
    return snapshot->stages[stage].self_ns + snapshot->others[stage].self_ns;
}

/* Returns the mean time to load a frame that was not cached (find, read, unpack, decode, convert) since the beginning
 * of the run; NAN before the first frame. */
static double loading_ns(const struct weir_snapshot *run)
{
    static const int stages[] = {WEIR_STAGE_FILE_CACHE,   WEIR_STAGE_READ_BYTES,   WEIR_STAGE_INFLATE,
                                 WEIR_STAGE_VIDEO_DECODE, WEIR_STAGE_IMAGE_DECODE, WEIR_STAGE_TO_TENSOR};
    uint64_t sum_ns = 0;
    uint64_t frames = run->stages[WEIR_STAGE_IMAGE_DECODE].count + run->others[WEIR_STAGE_IMAGE_DECODE].count;
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
        sum_ns += self_ns(run, stages[i]);
    return frames ? (double)sum_ns / (double)frames : NAN;
}

/* run: figures since the beginning of the run. window: figures since the beginning of the window. Both are NULL without
 * timing. */
static void fill_cache(struct weir_report_cache *cache, const struct weir_loader_reports *r,
                       const struct weir_loader_counts *now, const struct weir_loader_counts *then,
                       const struct weir_snapshot *run, const struct weir_snapshot *window)
{
    cache->budget_bytes = r->facts.cache_budget_bytes;
    cache->all_frames = r->facts.cache_frames_all;
    cache->all_bytes = r->facts.cache_bytes_all;
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

/* Episodes skipped at open appear in every report; bad frames appear only in the report of their window. */
static void fill_errors(struct weir_loader_report *report, struct weir_loader *loader, const struct figures *now,
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

static void fill_gpu(struct weir_loader_report *report, const struct weir_loader_reports *r, const struct figures *now,
                     const struct figures *then)
{
    struct weir_report_decode *decode = &report->gpu.decode;
    weir_fill_gpu(&report->gpu, r->loader, &now->gpu, &then->gpu, report->wall_s);
    weir_fill_gpu_decode(&report->gpu, &now->decode, &then->decode, report->wall_s);
    report->gpu.sync_steps = r->config.sync_steps;
    decode->cpu_frames = now->counts.decoded.frames - then->counts.decoded.frames;
    int workers = r->facts.workers > 0 ? r->facts.workers : 1;
    if (report->wall_s > 0)
        decode->cpu_busy =
            fmin((double)(now->decode.cpu_ns - then->decode.cpu_ns) / 1e9 / report->wall_s / (double)workers, 1);
}

/* The loader's min and max cover only the time since the last take, so they are merged into all windows. */
static void widen_queue(struct weir_loader_reports *r, const struct weir_loader_counts *counts)
{
    struct window *const windows[] = {&r->since_table, &r->since_start, &r->since_fill};
    for (int i = 0; i < 3 && counts->queue_samples > r->queue_samples; i++) {
        struct window *window = windows[i];
        window->queue_min = counts->queue_min < window->queue_min ? counts->queue_min : window->queue_min;
        window->queue_max = counts->queue_max > window->queue_max ? counts->queue_max : window->queue_max;
    }
    r->queue_samples = counts->queue_samples;
}

/* Takes the figures that any thread can read. */
static void take_shared(const struct weir_loader_reports *r, struct figures *figures, bool reset_extremes)
{
    char text[WEIR_FAULT_TEXT];
    memset(figures, 0, sizeof *figures);
    weir_loader_counts(r->loader, &figures->counts, reset_extremes);
    weir_loader_gpu_figures(r->loader, &figures->gpu);
    weir_loader_gpu_decode_figures(r->loader, &figures->decode);
    weir_machine_read(&figures->machine, "");
    for (int i = 0; i < WEIR_FAULTS_MAX && weir_loader_fault(r->loader, i, text, &figures->faults[i]); i++)
        continue;
    figures->device_bytes = weir_storage_bytes();
}

static int take_snapshot(const struct weir_loader_reports *r, struct weir_snapshot **now)
{
    struct weir_recorder *recorder = weir_loader_recorder(r->loader);
    char workers[12];
    *now = NULL;
    weir_worker_prefix(workers, r->facts.number);
    return recorder ? weir_snapshot_take_workers(recorder, workers, now) : 0;
}

static int take(struct weir_loader_reports *r, struct weir_snapshot **now, struct figures *figures)
{
    *now = NULL;
    take_shared(r, figures, true);
    widen_queue(r, &figures->counts);
    int rc = weir_steps_of(r->loader, &figures->steps);
    if (rc == 0)
        rc = weir_loader_sources(r->loader, &figures->sources);
    weir_sources_widen(r->since_table.figures.sources, figures->sources);
    weir_sources_widen(r->since_start.figures.sources, figures->sources);
    weir_sources_widen(r->since_fill.figures.sources, figures->sources);
    return rc == 0 ? take_snapshot(r, now) : rc;
}

static void fill_steps(struct weir_loader_report *report, const struct weir_loader_reports *r,
                       const struct window *since, const struct figures *now)
{
    uint64_t then_bytes = since->figures.device_bytes;
    weir_fill_steps(report, r->loader, r->config.folder, r->facts.number, &now->steps, &since->figures.steps);
    report->steps.no_step = r->config.no_step;
    report->steps.step_ms = r->config.step_ms;
    report->steps.own_step = r->config.own_step;
    double stall_s = (double)(now->gpu.train_stall_ns - since->figures.gpu.train_stall_ns) / 1e9;
    report->steps.train_wait_s = fmin(report->steps.train_wait_s + stall_s, report->steps.train_s);
    if (r->config.epochs > 0)
        weir_fill_epochs(report, &now->steps, since->first_epoch, now->device_bytes);
    bool known = now->device_bytes != UINT64_MAX && then_bytes != UINT64_MAX;
    report->storage.device_bytes = known ? (double)(now->device_bytes - then_bytes) : -1;
}

/* Fills in the figures of take_shared and of the snapshot for the time since the beginning of a window. */
static int fill_shared(struct weir_loader_report *report, const struct weir_loader_reports *r,
                       const struct window *since, const struct weir_snapshot *now, const struct figures *figures)
{
    struct weir_snapshot *diff = NULL;
    int rc = now ? weir_snapshot_diff(now, since->snapshot, &diff) : 0;
    if (rc == 0 && diff)
        rc = weir_report_from_snapshot(&report->prof, diff);
    report->epoch_first = since->first_epoch + 1;
    report->epoch_count = r->config.epochs;
    report->timing = now != NULL;
    report->wall_s = (double)(weir_clock_monotonic_ns() - since->at_ns) / 1e9;
    report->cpu_s = (double)(figures->machine.own_ns - since->figures.machine.own_ns) / 1e9;
    fill_counts(report, r, &figures->counts, &since->figures.counts);
    if (weir_device_of(r->loader))
        fill_gpu(report, r, figures, &since->figures);
    report->prof.machine = r->machine;
    weir_machine_between(&report->prof.machine, &since->figures.machine, &figures->machine);
    fill_cache(&report->cache, r, &figures->counts, &since->figures.counts, now, diff);
    fill_steps(report, r, since, figures);
    fill_errors(report, r->loader, figures, &since->figures);
    weir_snapshot_free(&diff);
    return rc;
}

static int fill(struct weir_loader_report *report, struct weir_loader_reports *r, const struct window *since,
                const struct weir_snapshot *now, const struct figures *figures)
{
    int rc = fill_shared(report, r, since, now, figures);
    if (rc < 0)
        return rc;
    if (report->queue_samples) {
        report->queue_min = since->queue_min;
        report->queue_max = since->queue_max;
    }
    bool measure = report->steps.train_batches >= WEIR_REPORT_BATCHES_LEAST;
    weir_fill_setup(&report->setup, r->loader, measure, &r->copy_bytes_per_s);
    return weir_fill_sources(&report->sources, r->loader, r->config.folder, figures->sources, since->figures.sources);
}

static void emit(struct weir_loader_report *report, const struct weir_loader_report_options *options, FILE *out)
{
    const struct weir_report_addition *addition = options->addition;
    if (addition && addition->begin)
        addition->begin(addition->user, report);
    if (options->log)
        weir_report_line(options->log, report, addition);
    if (options->json) {
        weir_report_line(out, report, addition);
    } else {
        if (addition) {
            addition->print(addition->user, out, report, options->lang);
            fputc('\n', out);
        }
        weir_loader_report_print(out, report, options->lang);
    }
    fflush(out);
}

static void window_clear(struct window *window)
{
    weir_snapshot_free(&window->snapshot);
    weir_source_figures_free(&window->figures.sources);
    weir_steps_close(&window->figures.steps);
}

/* Restarts the window at the figures in `now`, and takes ownership of them. */
static void window_move(struct window *window, struct window *now)
{
    window_clear(window);
    weir_sources_begin_window(now->figures.sources);
    now->at_ns = weir_clock_monotonic_ns();
    *window = *now;
}

int weir_loader_report(struct weir_loader_reports *r, const struct weir_loader_report_options *given, FILE *out)
{
    struct weir_loader_report_options full = {.size = 0};
    const struct weir_loader_report_options *options = &full;
    int rc = weir_sized_copy(&full, sizeof full, WEIR_SIZED_LEAST(struct weir_loader_report_options, idle), given,
                             "struct weir_loader_report_options", NULL);
    if (rc < 0)
        return rc;
    struct weir_loader_report *report = calloc(1, sizeof *report);
    struct window now = {.first_epoch = options->epochs_done, .queue_min = INT32_MAX};
    rc = report ? take(r, &now.snapshot, &now.figures) : -ENOMEM;
    bool after_fill = options->final && options->after_fill && r->filled;
    const struct window *since = after_fill ? &r->since_fill : options->final ? &r->since_start : &r->since_table;
    if (rc == 0)
        rc = fill(report, r, since, now.snapshot, &now.figures);
    if (rc == 0) {
        report->after_fill = after_fill;
        report->epoch_last = options->epochs_done;
        report->final = options->final;
        report->interrupted = options->final && options->interrupted;
        if (options->idle)
            report->idle = *options->idle;
        emit(report, options, out);
    }
    if (report)
        weir_loader_report_clear(report);
    free(report);
    if (options->final) {
        window_clear(&now);
        return rc;
    }
    window_move(&r->since_table, &now);
    return rc;
}

static int window_begin(struct weir_loader_reports *r, struct window *window)
{
    struct window now = {.first_epoch = window->first_epoch, .queue_min = INT32_MAX};
    int rc = take(r, &now.snapshot, &now.figures);
    if (rc < 0) {
        window_clear(&now);
        return rc;
    }
    window_move(window, &now);
    return 0;
}

int weir_loader_reports_restart(struct weir_loader_reports *r)
{
    int rc = window_begin(r, &r->since_start);
    return rc == 0 ? window_begin(r, &r->since_table) : rc;
}

/* ---- live reports ---- */

static int take_live(const struct weir_loader_reports *r, struct window *now)
{
    take_shared(r, &now->figures, false);
    weir_steps_shown_of(r->loader, &now->figures.steps.sums);
    now->at_ns = weir_clock_monotonic_ns();
    return take_snapshot(r, &now->snapshot);
}

int weir_live_report_begin(struct weir_loader_reports *r, bool setup)
{
    window_clear(&r->since_live);
    if (setup)
        weir_fill_setup(&r->live_setup, r->loader, false, &r->copy_bytes_per_s);
    return take_live(r, &r->since_live);
}

int weir_live_report(const struct weir_loader_reports *r, struct weir_loader_report *report)
{
    struct window *now = calloc(1, sizeof *now);
    int rc = now ? take_live(r, now) : -ENOMEM;
    memset(report, 0, sizeof *report);
    if (rc == 0)
        rc = fill_shared(report, r, &r->since_live, now->snapshot, &now->figures);
    report->final = true;
    report->setup = r->live_setup;
    if (now)
        window_clear(now);
    free(now);
    if (rc < 0)
        weir_loader_report_clear(report);
    return rc;
}

int weir_loader_reports_fill(struct weir_loader_reports *r, int epochs_done)
{
    static const double MUCH = 0.1;
    struct weir_loader_counts counts;
    weir_loader_counts(r->loader, &counts, false);
    uint64_t added = counts.cache_frames - r->cached_frames;
    r->cached_frames = counts.cache_frames;
    if ((double)added <= MUCH * (double)counts.cache_frames)
        return 0;
    r->since_fill.first_epoch = epochs_done;
    int rc = window_begin(r, &r->since_fill);
    r->filled = rc == 0;
    return rc == 0 ? 1 : rc;
}

int weir_loader_reports_begin(struct weir_loader_reports **out, struct weir_loader *loader,
                              const struct weir_loader_reports_config *given)
{
    struct weir_loader_reports_config full = {.size = 0};
    const struct weir_loader_reports_config *config = &full;
    *out = NULL;
    int rc = weir_sized_copy(&full, sizeof full, WEIR_SIZED_LEAST(struct weir_loader_reports_config, machine), given,
                             "struct weir_loader_reports_config", NULL);
    if (rc < 0)
        return rc;
    struct weir_loader_reports *r = *out = calloc(1, sizeof *r);
    char *folder = config->folder ? strdup(config->folder) : NULL;
    if (!r || (config->folder && !folder)) {
        free(folder);
        free(r);
        *out = NULL;
        return -ENOMEM;
    }
    *r = (struct weir_loader_reports){.loader = loader, .config = *config};
    r->config.folder = folder;
    weir_loader_facts(loader, &r->facts);
    if (config->machine)
        r->machine = *config->machine;
    else
        weir_machine_begin(&r->machine, r->facts.cores, "");
    r->config.machine = NULL;
    r->since_start.at_ns = weir_clock_monotonic_ns();
    weir_machine_read(&r->since_start.figures.machine, "");
    r->since_start.figures.device_bytes = weir_storage_bytes();
    r->since_start.queue_min = INT32_MAX;
    r->since_table = r->since_fill = r->since_start;
    return 0;
}

void weir_loader_reports_end(struct weir_loader_reports **reports)
{
    if (!*reports)
        return;
    window_clear(&(*reports)->since_table);
    window_clear(&(*reports)->since_start);
    window_clear(&(*reports)->since_fill);
    window_clear(&(*reports)->since_live);
    free((char *)(*reports)->config.folder);
    free(*reports);
    *reports = NULL;
}
