#include "cli/run/run_loop.h"
#include "analyze/verdict/verdict.h"
#include "base/resources.h"
#include "cli/progress.h"
#include "cli/run/run_live.h"
#include "cli/run/run_step.h"
#include "io/io.h"
#include "pipeline/samples/batch_layout.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double COLD_MAX = 0.05, WARM_MIN = 0.95; /* max cached fraction of a cold dataset, min of a warm one */

/* Totals of the current epoch so far. */
struct epoch {
    int number; /* from 0; -1 before an epoch's first batch */
    uint64_t train_ns, val_ns, train_wait_ns;
    uint64_t samples, images, batches;
};

struct loop {
    struct weir_loader *loader;
    const struct weir_loader_config *config;
    const struct weir_run_config *run;
    const volatile sig_atomic_t *interrupted;
    struct weir_loader_facts facts;
    struct weir_run_gpu *gpu;             /* NULL if batches are in host memory */
    struct weir_gpu_figures gpu_at_epoch; /* at the start of the epoch */
    struct epoch epoch;
    double cached; /* cached fraction of the dataset at the start of the epoch */
    struct weir_loader_reports *reports;
    struct weir_run_window window;
    uint64_t stall_ns; /* on a GPU: the stream's waits before the window */
    int tables;        /* number of tables printed */
    uint64_t batches;  /* number of batches consumed in the run */
    bool cut_short;    /* the run ended before its last batch */
    bool failed;       /* the run ended with an error */
    bool filled;       /* an epoch filled the decode cache; the next two members count from its end */
    uint64_t filled_batches, filled_ns;
    int last_epoch; /* last finished or interrupted epoch, from 0; -1 if none */
    uint64_t mark_ns;
    struct weir_run_live live;
};

/* ---- the step ---- */

static bool has_step(const struct weir_run_config *run)
{
    return run->consumer || run->step_ms > 0;
}

static int stage_of_step(const struct weir_batch *batch)
{
    return batch->plan.split == WEIR_SPLIT_TRAIN ? WEIR_STAGE_TRAIN_FORWARD : WEIR_STAGE_VAL_FORWARD;
}

/* Runs the consumer's step. Without a consumer, simulates a step and counts all of its time as the forward pass. */
static int step(const struct loop *l, const struct weir_batch *batch, struct weir_err *err)
{
    const struct weir_run_consumer *consumer = l->run->consumer;
    if (consumer)
        return consumer->step(consumer->user, batch, err);
    if (l->run->step_ms <= 0)
        return 0;
    WEIR_ZONE(stage_of_step(batch));
    weir_run_step_shapes(batch);
    weir_run_step_stand_in((uint64_t)(l->run->step_ms * 1e6), l->run->step_spin, l->interrupted);
    return 0;
}

static int step_on_gpu(const struct loop *l, struct weir_batch *batch, struct weir_err *err)
{
    WEIR_ZONE(stage_of_step(batch));
    weir_run_step_shapes(batch);
    return weir_run_gpu_step(l->gpu, batch, (uint64_t)(l->run->step_ms * 1e6), err);
}

/* Lets the consumer queue its step on the GPU. */
static int queue_step(const struct loop *l, struct weir_batch *batch, struct weir_err *err)
{
    const struct weir_run_consumer *consumer = l->run->consumer;
    int rc = weir_run_gpu_begin(l->gpu, batch, err);
    if (rc == 0)
        rc = consumer->step(consumer->user, batch, err);
    if (rc < 0)
        return rc;
    WEIR_ZONE(WEIR_STAGE_WAIT_GPU);
    return weir_run_gpu_end(l->gpu, err);
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

/* Reports a failed run. Prints the table only if it supports a verdict, since otherwise it would only hide the error.
 * The log always gets the table. */
static int report_of_failed(struct loop *l, const struct weir_loader_report_options *options,
                            const struct weir_added_verdict *added)
{
    char *text = NULL;
    size_t size = 0;
    FILE *aside = open_memstream(&text, &size);
    int rc = aside ? weir_loader_report(l->reports, options, aside) : -ENOMEM;
    if (aside && fclose(aside) != 0)
        rc = -ENOMEM;
    if (rc == 0 && weir_added_verdict_tells(added))
        fwrite(text, 1, size, l->run->out);
    free(text);
    return rc;
}

static int report(struct loop *l, bool final)
{
    bool skip = l->run->only_final && !final;
    FILE *out = skip ? l->run->log : l->run->out;
    struct weir_added_verdict added;
    struct weir_report_idle idle;
    if (!out)
        return 0;
    weir_add_verdict(&added, l->loader);
    if (final)
        weir_run_profile_idle(l->run->profile, &idle);
    const struct weir_loader_report_options options = {
        .size = sizeof options,
        .final = final,
        .interrupted = l->cut_short,
        .epochs_done = l->last_epoch + 1,
        .lang = l->run->lang,
        .json = l->run->lines,
        .log = skip ? NULL : l->run->log,
        .addition = weir_run_ranks_addition(l->run->ranks, &added.addition),
        .idle = final ? &idle : NULL,
        .after_fill = l->filled && weir_verdict_suffices(l->filled_batches, (double)l->filled_ns / 1e9, l->facts.slots),
    };
    l->tables++;
    weir_progress_clear();
    bool aside = l->failed && !l->run->lines;
    int rc = aside ? report_of_failed(l, &options, &added) : weir_loader_report(l->reports, &options, out);
    if (final && l->run->data_wait)
        *l->run->data_wait = weir_added_verdict_wait(&added);
    return rc;
}

static int final_table(struct loop *l)
{
    weir_zone_end(); /* ends this thread's last zone, since weir_loader_finish only waits for the workers */
    weir_loader_finish(l->loader);
    return report(l, true);
}

/* ---- epochs ---- */

static enum weir_reads reads_of(const struct loop *l)
{
    if (l->config->direct)
        return WEIR_READS_DIRECT;
    if (l->cached < 0 || weir_io_from_memory(l->facts.io_used))
        return WEIR_READS_UNKNOWN;
    return l->cached <= COLD_MAX ? WEIR_READS_COLD : l->cached >= WARM_MIN ? WEIR_READS_WARM : WEIR_READS_PARTLY;
}

/* Fills in the GPU figures of an epoch's line. */
static void end_epoch_gpu(struct loop *l, struct weir_epoch_line *line)
{
    struct weir_gpu_figures now;
    const struct weir_gpu_figures *then = &l->gpu_at_epoch;
    if (!l->gpu)
        return;
    weir_loader_gpu_figures(l->loader, &now);
    line->gpu = true;
    line->copy_overlap_fraction = weir_gpu_copy_overlap(&now, then);
    if (line->total_s > 0)
        line->gpu_busy_fraction = fmin((double)(now.busy_ns - then->busy_ns) / 1e9 / line->total_s, 1);
    if (line->train_s > 0)
        line->data_wait_fraction += (double)(now.train_stall_ns - then->train_stall_ns) / 1e9 / line->train_s;
    line->data_wait_fraction = fmin(line->data_wait_fraction, 1); /* host and stream can wait at the same time */
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
        .cached_fraction = reads_of(l) == WEIR_READS_UNKNOWN ? -1 : l->cached,
    };
    end_epoch_gpu(l, &line);
    if (l->run->consumer)
        l->run->consumer->line(l->run->consumer->user, &line);
    weir_progress_clear();
    if (l->run->lines)
        weir_epoch_log(l->run->out, &line);
    else
        weir_epoch_print(l->run->out, &line, l->run->lang);
    fflush(l->run->out);
    if (l->run->log)
        weir_epoch_log(l->run->log, &line);
    l->last_epoch = e->number;
}

/* ---- the window of --seconds ---- */

static uint64_t stall_ns(const struct loop *l)
{
    struct weir_gpu_figures figures;
    weir_loader_gpu_figures(l->loader, &figures);
    return figures.stall.total_ns;
}

static void begin_window(struct loop *l)
{
    bool kept = weir_io_from_memory(l->facts.io_used) || l->facts.cache_budget_bytes > 0;
    l->window = (struct weir_run_window){
        .seconds = l->run->seconds, .no_warm_up = l->config->cold, .whole_epoch = kept, .slots = l->facts.slots};
    weir_run_window_begin(&l->window, l->run->opened_ns);
}

static void begin_live(struct loop *l)
{
    l->live = (struct weir_run_live){.loader = l->loader,
                                     .window = &l->window,
                                     .epochs = l->config->num_epochs,
                                     .images_per_sample = l->facts.images_per_sample,
                                     .has_step = has_step(l->run)};
    weir_run_live_begin(&l->live);
}

/* Adds a batch to the window. When the window opens, restarts the other counters. */
static int note_window(struct loop *l, const struct weir_batch *batch, bool last, struct weir_err *err)
{
    if (!weir_run_window_batch(&l->window, batch, l->facts.images_per_sample, last, l->mark_ns))
        return 0;
    WEIR_ZONE(WEIR_STAGE_REPORT);
    l->stall_ns = l->gpu ? stall_ns(l) : 0;
    return weir_loader_reports_restart(l->reports) < 0
               ? weir_err_set(err, -ENOMEM, "out of memory while collecting the report")
               : 0;
}

static void say_measured(struct loop *l)
{
    struct weir_measured_line line;
    weir_run_window_finish(&l->window, &line);
    if (l->gpu && line.seconds > 0) /* the host and the stream can wait at the same time */
        line.data_wait_fraction =
            fmin(line.data_wait_fraction + (double)(stall_ns(l) - l->stall_ns) / 1e9 / line.seconds, 1);
    line.peak_rss_bytes = weir_peak_rss_bytes();
    line.reads = reads_of(l);
    line.cached_fraction = line.reads == WEIR_READS_UNKNOWN ? -1 : l->cached;
    weir_progress_clear();
    if (l->run->lines)
        weir_measured_log(l->run->out, &line);
    else
        weir_measured_print(l->run->out, &line);
    fflush(l->run->out);
    if (l->run->log)
        weir_measured_log(l->run->log, &line);
}

static void account(struct loop *l, const struct weir_batch *batch)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    struct epoch *e = &l->epoch;
    bool train = batch->plan.split == WEIR_SPLIT_TRAIN;
    *(train ? &e->train_ns : &e->val_ns) += now_ns - l->mark_ns;
    l->filled_batches += train;
    l->filled_ns += train ? now_ns - l->mark_ns : 0;
    e->train_wait_ns += train ? batch->wait_ns : 0;
    e->samples += (uint64_t)batch->n;
    e->images += (uint64_t)batch->n * (uint64_t)l->facts.images_per_sample;
    e->batches++;
    l->batches++;
    l->mark_ns = now_ns;
}

/* Returns whether the batch is the last one of its epoch. */
static bool ends_epoch(const struct loop *l, const struct weir_plan *plan)
{
    const struct weir_sampler *sampler = weir_loader_sampler(l->loader);
    int val = weir_sampler_batches(sampler, WEIR_SPLIT_VAL);
    bool last_part = plan->split == WEIR_SPLIT_VAL || val == 0;
    return last_part && plan->index + 1 == weir_sampler_batches(sampler, plan->split);
}

/* Waits for the GPU work of the epoch, so that it counts towards the epoch's time. */
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

/* Loading is slower while the decode cache is being filled, so the final report covers later epochs if they suffice. */
static int note_fill(struct loop *l, int epochs_done)
{
    int rc = weir_loader_reports_fill(l->reports, epochs_done);
    if (rc <= 0)
        return rc;
    l->filled = true;
    l->filled_batches = l->filled_ns = 0;
    return 0;
}

/* Returns whether output was lost, because its reader left or the disk is full. The caller reports the error when it
 * closes the file. */
static bool output_lost(const struct loop *l)
{
    return ferror(l->run->out) || (l->run->log && ferror(l->run->log)) ||
           (l->run->checksums && ferror(l->run->checksums));
}

/* Saves the position, after the lines of all batches before it. */
static int save_state(const struct loop *l, struct weir_err *err)
{
    if (!l->run->state)
        return 0;
    if (l->run->log)
        fflush(l->run->log);
    if (l->run->checksums)
        fflush(l->run->checksums);
    return output_lost(l) ? 0 : weir_loader_save(l->loader, l->run->state, err);
}

/* Finishes an epoch before the next epoch's first batch is requested, so that the wait for this batch counts towards
 * the next epoch. */
static int close_epoch(struct loop *l, enum weir_split split, struct weir_err *err)
{
    weir_run_serve_epoch(l->run->serve, l->epoch.number + 1);
    int rc = l->run->seconds > 0 ? 0 : drain(l, split, err); /* with --seconds, the window continues across epochs */
    if (rc < 0)
        return rc;
    WEIR_ZONE(WEIR_STAGE_REPORT);
    if (l->run->seconds > 0)
        return save_state(l, err);
    end_epoch(l);
    rc = save_state(l, err);
    if (rc < 0)
        return rc;
    rc = l->run->consumer ? l->run->consumer->epoch(l->run->consumer->user, err) : 0;
    if (rc < 0)
        return rc;
    int done = l->last_epoch + 1;
    bool more = done < l->config->num_epochs;
    if (l->run->every > 0 && done % l->run->every == 0 && (more || l->tables > 0))
        rc = report(l, false);
    if (rc >= 0 && more)
        rc = note_fill(l, done);
    l->epoch = (struct epoch){.number = -1};
    if (more && !l->config->direct)
        l->cached = weir_loader_cached(l->loader);
    l->mark_ns = weir_clock_monotonic_ns();
    return rc;
}

static void say_first_batch(struct loop *l)
{
    WEIR_ZONE(WEIR_STAGE_REPORT);
    struct weir_loader_facts facts;
    weir_loader_facts(l->loader, &facts);
    struct weir_start_line line = {facts.first_batch_s, facts.open_s, facts.index_s, facts.files,
                                   facts.files_from_index};
    if (l->run->lines)
        weir_start_log(l->run->out, &line);
    else
        weir_start_print(l->run->out, &line);
    fflush(l->run->out);
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
        if (l->gpu)
            rc = l->run->consumer ? queue_step(l, batch, err) : step_on_gpu(l, batch, err);
        else
            rc = 0;
        if (rc == 0 && l->run->checksums)
            rc = write_checksum(l, batch, err);
        if (rc == 0 && !l->gpu)
            rc = step(l, batch, err);
        if (rc < 0)
            return rc;
        account(l, batch);
        weir_run_live_batch(&l->live, batch, l->mark_ns);
        bool last = ends_epoch(l, &batch->plan);
        uint64_t wait_ns = batch->wait_ns;
        enum weir_split split = batch->plan.split;
        rc = note_window(l, batch, last, err);
        release(l, batch);
        weir_run_profile_step(l->run->profile, wait_ns);
        weir_run_ranks_poll(l->run->ranks);
        if (rc == 0 && last)
            rc = close_epoch(l, split, err);
        if (rc < 0)
            return weir_err_set(err, rc, "out of memory while collecting the report");
        if (l->window.over)
            break;
    }
    return 0;
}

/* Prints the last line (of the --seconds window, or of an epoch that was cut short) and the final table. */
static int finish(struct loop *l)
{
    if (l->run->seconds > 0)
        say_measured(l);
    else
        end_epoch(l);
    return final_table(l);
}

static void *consumer_stream(const struct weir_run_config *run)
{
    return run->consumer ? run->consumer->stream(run->consumer->user) : NULL;
}

static int open_parts(struct loop *l, struct weir_err *err)
{
    const struct weir_run_config *run = l->run;
    /* Saves the state now, so that an unwritable file fails at the start rather than after hours. */
    int rc = run->state ? weir_loader_save(l->loader, run->state, err) : 0;
    if (rc == 0)
        rc = weir_run_serve_begin(run->serve, l->loader, l->reports, l->config->data, err);
    return rc == 0 ? weir_run_gpu_open(&l->gpu, l->loader, run->sync_steps, consumer_stream(run), err) : rc;
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
        .mark_ns = now_ns,
    };
    const struct weir_loader_reports_config reports = {.size = sizeof reports,
                                                       .epochs = run->seconds > 0 ? 0 : config->num_epochs,
                                                       .folder = config->data,
                                                       .sync_steps = run->sync_steps,
                                                       .machine = &run->machine,
                                                       .no_step = !has_step(run),
                                                       .step_ms = run->consumer ? 0 : run->step_ms,
                                                       .own_step = run->consumer != NULL};
    if (weir_loader_reports_begin(&l.reports, loader, &reports) < 0) {
        weir_zone_end();
        return weir_err_set(err, -ENOMEM, "out of memory while preparing the reports");
    }
    weir_loader_facts(loader, &l.facts);
    l.cached = l.facts.io_cached;
    begin_window(&l);
    begin_live(&l);
    int rc = open_parts(&l, err);
    if (rc == 0)
        rc = consume(&l, err);
    l.failed = rc < 0;
    weir_zone_begin(WEIR_STAGE_REPORT);
    if (l.gpu)
        weir_run_gpu_drain(l.gpu, NULL); /* includes the queued GPU work of an interrupted epoch */
    weir_run_profile_finish(run->profile);
    l.cut_short = !l.window.over && weir_loader_position(loader) < weir_sampler_total(weir_loader_sampler(loader));
    struct weir_err end_err = WEIR_ERR_NONE;
    int end_rc = run->consumer ? run->consumer->end(run->consumer->user, &end_err) : 0;
    if (rc >= 0 && end_rc < 0)
        rc = weir_err_set(err, end_rc, "%s", end_err.text);
    weir_zone_end();
    weir_progress_clear();
    int report_rc = finish(&l);
    if (save_state(&l, err) < 0 && rc >= 0)
        rc = -EIO;
    weir_run_ranks_finish(run->ranks, interrupted);
    weir_run_gpu_close(&l.gpu);
    weir_run_serve_end(run->serve);
    weir_loader_reports_end(&l.reports);
    if (run->log)
        weir_run_profile_log(run->log, run->profile);
    if (run->lines)
        weir_run_profile_log(run->out, run->profile);
    else
        weir_run_profile_print(run->out, run->profile);
    if (rc == 0 && report_rc < 0)
        rc = weir_err_set(err, report_rc, "out of memory while writing the report");
    if (rc == 0)
        rc = weir_run_profile_error(run->profile, err);
    return rc < 0 ? rc : 0;
}
