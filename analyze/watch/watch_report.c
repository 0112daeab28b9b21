#include "analyze/watch/watch_report.h"
#include "analyze/watch/watch_figures.h"
#include "analyze/watch/watch_text.h"
#include "base/gz_file.h"
#include "base/proc.h"
#include "base/resources.h"
#include "base/text.h"
#include "pipeline/report/log_fields.h"
#include "prof/report/machine.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The figures at the beginning of a period; zeros = the watch began. */
struct mark {
    struct weir_snapshot *snapshot;
    struct weir_watch_counts counts;
    struct weir_watch_samples samples;
    struct weir_machine_now machine;
};

struct watched {
    struct mark since_table, since_log, since_record;
    int epochs_logged;
};

/* What is kept for the reports of a watch. */
struct reports {
    const struct weir_watch *watch;
    struct weir_report_machine machine;
    struct weir_machine_now begun;
    struct watched loaders[WEIR_WATCH_LOADERS];
};

/* A report while it is made. */
struct made {
    struct weir_watch_reading reading;
    struct weir_watch_samples samples;
    struct weir_machine_now machine;
    struct weir_snapshot *snapshot;
    struct weir_dataloader_figures figures;
    struct weir_loader_report report;
};

/* Reports are made by one thread at a time. In a child, a thread that held the lock does not exist. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
}
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- what is kept ---- */

/* Adds the CPU time of the processes that this one has started, with those that they have reaped: workers, and the
 * server of forkserver. Returns false if the kernel does not list them. */
static bool add_children(struct weir_machine_now *now)
{
    DIR *tasks = opendir("/proc/self/task");
    bool listed = false;
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        char list[4096], *at = list, *end;
        if (weir_proc_read(list, sizeof list, "", getpid(), atoi(task->d_name), "children") < 0)
            continue;
        listed = true;
        for (long pid; (pid = strtol(at, &end, 10)) > 0; at = end)
            now->own_ns += weir_process_cpu_ns((int)pid);
    }
    if (tasks)
        closedir(tasks);
    return listed;
}

/* The CPU time of worker processes is this program's. */
static void read_machine(const struct weir_watch *watch, struct weir_machine_now *now)
{
    enum { MANY = 512 };
    struct weir_watch_thread_id ids[MANY];
    weir_machine_read(now, "");
    bool listed = add_children(now);
    int n = weir_watch_threads(watch, -1, ids, MANY);
    for (int i = 0; i < n; i++) {
        struct weir_task_stat stat;
        bool counts = ids[i].pid != getpid();
        for (int k = 0; k < i && counts; k++)
            counts = ids[k].pid != ids[i].pid;
        if (counts && weir_task_stat_read(&stat, "", ids[i].pid, 0) && !(listed && stat.parent == getpid()))
            now->own_ns += stat.cpu_ns + stat.children_ns;
    }
}

static void free_reports(void *object)
{
    struct reports *reports = object;
    weir_watch_samples_end(reports->watch);
    for (int i = 0; i < WEIR_WATCH_LOADERS; i++) {
        weir_snapshot_free(&reports->loaders[i].since_table.snapshot);
        weir_snapshot_free(&reports->loaders[i].since_log.snapshot);
        weir_snapshot_free(&reports->loaders[i].since_record.snapshot);
    }
    free(reports);
}

static struct reports *reports_of(struct weir_watch *watch)
{
    struct reports *reports = weir_watch_kept(watch);
    if (reports || !(reports = calloc(1, sizeof *reports)))
        return reports;
    reports->watch = watch;
    weir_machine_begin(&reports->machine, 0, "");
    read_machine(watch, &reports->begun);
    weir_watch_keep(watch, reports, free_reports);
    return reports;
}

/* ---- making a report ---- */

static void free_made(struct made *made)
{
    if (made) {
        weir_snapshot_free(&made->snapshot);
        weir_loader_report_clear(&made->report);
    }
    free(made);
}

static void fill_report(struct made *made, bool whole)
{
    struct weir_loader_report *report = &made->report;
    const struct weir_dataloader_figures *f = &made->figures;
    const struct weir_watch_settings *s = &f->settings;
    report->timing = true;
    report->final = whole;
    report->epoch_last = (int)fmin(made->reading.counts.epochs, 1e9);
    report->epoch_first = (int)fmax(report->epoch_last - fmin(f->epochs, 1e9) + 1, 1);
    report->epoch_count = report->epoch_last;
    report->queue_slots = (int)fmin(fmax(s->num_workers, 0) * fmax(s->prefetch_factor, 0), 1e6);
    report->queue_samples = (uint64_t)f->ready_known;
    report->queue_mean = f->ready_mean;
    report->queue_min = (int)f->ready_min;
    report->queue_max = (int)f->ready_max;
    report->steps.train_batches = (uint64_t)f->batches;
    report->steps.images = (uint64_t)f->items;
    report->steps.train_s = f->loop_s;
    report->steps.train_wait_s = f->wait_s;
    report->steps.first_wait_s = f->run_first_s;
    report->storage.device_bytes = -1;
}

_Static_assert(offsetof(struct weir_report_row, name) == 0, "for weir_compare_text");

static void fill_prof(struct weir_report *prof, const struct weir_watch_settings *settings)
{
    qsort(prof->rows, (size_t)prof->n_rows, sizeof *prof->rows, weir_compare_text);
    prof->zone_cost_ns = settings->zone_ns > 0 ? settings->zone_ns : prof->zone_cost_ns;
    prof->profiler_share = prof->thread_s > 0 ? (double)prof->zones * prof->zone_cost_ns / 1e9 / prof->thread_s : 0;
    snprintf(prof->cpu_sampled, sizeof prof->cpu_sampled, "other processes");
}

static int make_period(struct made *made, const struct reports *reports, const struct mark *then, bool whole)
{
    struct weir_snapshot *diff = NULL;
    const struct weir_machine_now *since = whole || !then->snapshot ? &reports->begun : &then->machine;
    if (!whole) {
        weir_watch_counts_subtract(&made->reading.counts, &then->counts);
        weir_watch_samples_subtract(&made->samples, &then->samples);
    }
    int rc = weir_snapshot_diff(made->snapshot, whole ? NULL : then->snapshot, &diff);
    if (rc < 0)
        return rc;
    made->report.prof.machine = reports->machine;
    weir_machine_between(&made->report.prof.machine, since, &made->machine);
    diff->throttled_ns = (uint64_t)(made->report.prof.machine.throttled_s * 1e9);
    rc = weir_report_from_snapshot(&made->report.prof, diff);
    weir_snapshot_free(&diff);
    bool has_first = whole || then->counts.first_waits <= 0;
    weir_watch_figures_make(&made->figures, &made->reading, has_first ? made->reading.run_first_s : 0);
    weir_watch_samples_fill(&made->figures, &made->samples);
    made->report.wall_s = (double)(made->machine.at_ns - since->at_ns) / 1e9;
    made->report.cpu_s =
        made->machine.own_ns > since->own_ns ? (double)(made->machine.own_ns - since->own_ns) / 1e9 : 0;
    fill_prof(&made->report.prof, &made->figures.settings);
    return rc;
}

/* Ends the period: the next one begins with what was read. */
static void move_mark(struct mark *to, struct made *made, const struct weir_watch_counts *counts,
                      const struct weir_watch_samples *samples)
{
    weir_snapshot_free(&to->snapshot);
    to->snapshot = made->snapshot;
    made->snapshot = NULL;
    to->counts = *counts;
    to->samples = *samples;
    to->machine = made->machine;
}

/* then: the beginning of the period, which ends with this report if `ends`; NULL = the whole run. */
static int make(struct made *made, struct weir_watch *watch, struct reports *reports, int loader, struct mark *then,
                bool ends)
{
    int rc = weir_watch_read(watch, loader, &made->reading, &made->snapshot);
    if (rc < 0)
        return rc;
    weir_watch_samples_read(loader, &made->samples);
    read_machine(watch, &made->machine);
    const struct weir_watch_counts counts = made->reading.counts;
    const struct weir_watch_samples samples = made->samples;
    rc = make_period(made, reports, then, !then);
    if (rc < 0)
        return rc;
    made->reading.counts.epochs = counts.epochs;
    fill_report(made, !then);
    weir_dataloader_add_report(&made->figures, &made->report);
    if (then && ends)
        move_mark(then, made, &counts, &samples);
    return 0;
}

/* ---- writing it ---- */

static void fill_epoch(struct weir_epoch_line *line, const struct weir_watch_epoch *epoch)
{
    double rate = epoch->total_s > 0 ? (double)epoch->items / epoch->total_s : 0;
    *line =
        (struct weir_epoch_line){.epoch = epoch->number,
                                 .epoch_count = epoch->number,
                                 .total_s = epoch->total_s,
                                 .train_s = epoch->total_s,
                                 .data_wait_fraction = epoch->total_s > 0 ? fmin(epoch->wait_s / epoch->total_s, 1) : 0,
                                 .samples_per_s = rate,
                                 .images_per_s = rate,
                                 .peak_rss_bytes = weir_peak_rss_bytes(),
                                 .interrupted = !epoch->complete,
                                 .cached_fraction = -1};
}

static void write_stages(FILE *out, const struct made *made, bool logs)
{
    struct weir_json json;
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    if (!logs)
        weir_json_int(&json, "schema", WEIR_JSON_SCHEMA);
    weir_json_text(&json, "type", logs ? "stages" : "watch");
    weir_fields_json(&json, &weir_stages_fields, &made->report);
    weir_watch_json(&json, &made->figures);
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

/* Writes the epochs after a number, and returns the last one's. */
static int write_epochs(FILE *out, const struct made *made, int after)
{
    struct weir_epoch_line line;
    int last = after;
    for (int i = 0; i < made->reading.n_epochs; i++) {
        if (made->reading.epochs[i].number <= last)
            continue;
        last = made->reading.epochs[i].number;
        fill_epoch(&line, &made->reading.epochs[i]);
        weir_epoch_log(out, &line);
    }
    return last;
}

static void write_log(FILE *out, struct watched *watched, const struct made *made)
{
    watched->epochs_logged = write_epochs(out, made, watched->epochs_logged);
    write_stages(out, made, true);
}

static void write_report(FILE *out, struct watched *watched, const struct made *made, int what, enum weir_lang lang)
{
    switch (what) {
    case WEIR_WATCH_TABLE:
    case WEIR_WATCH_VERDICT:
        weir_watch_print(out, &made->figures, &made->report, lang, what == WEIR_WATCH_VERDICT);
        break;
    case WEIR_WATCH_TRIAL:
        weir_watch_trial_print(out, &made->figures);
        break;
    case WEIR_WATCH_JSON:
        write_stages(out, made, false);
        break;
    case WEIR_WATCH_PAGE:
        write_epochs(out, made, 0);
        write_stages(out, made, true);
        break;
    default:
        write_log(out, watched, made);
    }
}

static int report_to(FILE *out, struct weir_watch *watch, int loader, int what, bool whole, enum weir_lang lang)
{
    struct reports *reports = reports_of(watch);
    struct made *made = calloc(1, sizeof *made);
    /* A verdict alone does not end the period of the next table. */
    bool ends = what == WEIR_WATCH_TABLE || what == WEIR_WATCH_LOG || what == WEIR_WATCH_JSON;
    struct watched *watched = reports ? &reports->loaders[loader] : NULL;
    struct mark *then = !watched || whole ? NULL : what == WEIR_WATCH_LOG ? &watched->since_log : &watched->since_table;
    int rc = reports && made ? make(made, watch, reports, loader, then, ends) : -ENOMEM;
    if (rc == 0)
        write_report(out, watched, made, what, lang);
    free_made(made);
    return rc;
}

int weir_watch_report(struct weir_watch *watch, int loader, int what, int whole, const char *lang, char **text)
{
    size_t size;
    *text = NULL;
    bool zh = lang && strcmp(lang, "zh") == 0;
    if (!watch || what < WEIR_WATCH_TABLE || what > WEIR_WATCH_TRIAL || (lang && !zh && strcmp(lang, "en") != 0))
        return -EINVAL;
    loader = loader < 0 ? weir_watch_slowest_loader(watch) : loader;
    FILE *out = open_memstream(text, &size);
    if (!out)
        return -ENOMEM;
    pthread_mutex_lock(&lock);
    int rc = report_to(out, watch, loader, what, whole != 0, zh ? WEIR_LANG_ZH : WEIR_LANG_EN);
    pthread_mutex_unlock(&lock);
    if (fclose(out) != 0 && rc == 0)
        rc = -ENOMEM;
    if (rc < 0)
        weir_watch_free(*text);
    *text = rc < 0 ? NULL : *text;
    return rc;
}

int weir_watch_write(const char *path, const char *bytes, size_t n, char *why, size_t why_size)
{
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_gz_write_plain(path, bytes, n, &err);
    if (rc < 0)
        snprintf(why, why_size, "%s", err.text);
    return rc;
}

int weir_watch_report_take(struct weir_watch *watch, int loader, bool whole, struct weir_loader_report *report,
                           struct weir_watch_about *about)
{
    memset(report, 0, sizeof *report);
    if (!watch || loader < 0 || loader >= weir_watch_loaders(watch))
        return -EINVAL;
    pthread_mutex_lock(&lock);
    struct reports *reports = reports_of(watch);
    struct made *made = calloc(1, sizeof *made);
    struct mark *then = reports && !whole ? &reports->loaders[loader].since_record : NULL;
    int rc = reports && made ? make(made, watch, reports, loader, then, true) : -ENOMEM;
    if (rc == 0) {
        *report = made->report;
        made->report.prof.workers = NULL; /* the caller's now */
        *about = (struct weir_watch_about){.epochs = made->reading.counts.epochs,
                                           .workers = (int)fmin(fmax(made->figures.settings.num_workers, 0), 1e6)};
        memcpy(about->name, made->figures.name, sizeof about->name);
    }
    free_made(made);
    pthread_mutex_unlock(&lock);
    return rc;
}

void weir_watch_sampling(struct weir_watch *watch, int on)
{
    if (!watch)
        return;
    pthread_mutex_lock(&lock);
    bool ready = reports_of(watch) != NULL;
    pthread_mutex_unlock(&lock);
    weir_watch_samples_run(watch, on && ready);
}

void weir_watch_free(char *text)
{
    free(text);
}
