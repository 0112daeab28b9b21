#include "analyze/watch/watch_text.h"
#include "base/table.h"
#include "base/terminal.h"
#include "prof/report/report_fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the verdict ---- */

static void print_limits(FILE *out, const struct weir_job_verdict *verdict,
                         const struct weir_dataloader_figures *figures)
{
    if (verdict->most > 1.005 && verdict->found.bound != WEIR_BOUND_UNKNOWN) {
        fputs("  without any wait for data: ", out);
        weir_ratio_print(out, verdict->most);
        fputs(" x (from the waits)\n", out);
    }
    if (verdict->headroom > 0)
        fprintf(out,
                "  headroom: %.2f x +- %.2f, measured: %.1f steps/s in %.0f window%s of batches held back, %.1f "
                "otherwise\n",
                verdict->headroom, verdict->headroom_error, figures->window_batches / figures->window_s,
                figures->windows, figures->windows == 1 ? "" : "s", figures->rest_batches / figures->rest_s);
    else if (figures->given_up > 0)
        fprintf(out, "  headroom: not measured; %.0f window%s given up\n", figures->given_up,
                figures->given_up == 1 ? " was" : "s were");
}

/* items/s of weir.Loader over those of the watched loader; 0 = not measured. */
static double trial_ratio(const struct weir_watch_settings *s)
{
    return s->weir_items_s > 0 && s->watched_items_s > 0 ? s->weir_items_s / s->watched_items_s : 0;
}

static void print_trial(FILE *out, const struct weir_watch_settings *s)
{
    double ratio = trial_ratio(s);
    if (ratio <= 0)
        return;
    bool is_slow = fmin(s->weir_items_s, s->watched_items_s) < 10;
    fprintf(out, "  weir.Loader on %s: %.*f samples/s, the watched loader %.*f%s: ", s->weir_path, is_slow,
            s->weir_items_s, is_slow, s->watched_items_s, s->num_workers > 0 ? " with all workers busy" : "");
    weir_ratio_print(out, ratio);
    fprintf(
        out,
        " x (measured after training, on files that it has read). A sample is one step, %s: without the dataset's own "
        "transforms, collate function and pinning\n",
        s->weir_sample);
    if (weir_ratio_is_worth(ratio))
        fputs("  use weir.Loader         instead of the dataset and its DataLoader: docs/python.md\n", out);
}

void weir_watch_trial_print(FILE *out, const struct weir_dataloader_figures *figures)
{
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    print_trial(text, &figures->settings);
    weir_wrap_close(&wrap);
}

struct printed {
    const struct weir_job_verdict *verdict;
    const struct weir_dataloader_figures *figures;
};

static void print_more(FILE *out, const void *user)
{
    const struct printed *printed = user;
    print_limits(out, printed->verdict, printed->figures);
    print_trial(out, &printed->figures->settings);
}

void weir_watch_verdict_lines(FILE *out, const struct weir_job_verdict *verdict,
                              const struct weir_dataloader_figures *figures)
{
    weir_diagnosis_lines(out, &verdict->found, print_more, &(struct printed){verdict, figures});
}

void weir_watch_verdict_print(FILE *out, const struct weir_job_verdict *verdict,
                              const struct weir_dataloader_figures *figures)
{
    weir_diagnosis_print(out, &verdict->found, print_more, &(struct printed){verdict, figures});
}

/* ---- the loader ---- */

static void print_setting(FILE *out, const char *name, double value)
{
    if (value >= 0)
        fprintf(out, ", %s=%.0f", name, value);
}

static void print_flag(FILE *out, const char *name, double value)
{
    if (value > 0)
        fprintf(out, ", %s=True", name);
}

static void print_loader(FILE *out, const struct weir_dataloader_figures *figures,
                         const struct weir_loader_report *report)
{
    const struct weir_watch_settings *s = &figures->settings;
    fprintf(out, "loader %s: %s", figures->name, s->dataset[0] ? s->dataset : "any iterable");
    print_setting(out, "num_workers", s->num_workers);
    print_setting(out, "prefetch_factor", s->prefetch_factor);
    print_setting(out, "batch_size", s->batch_size);
    print_flag(out, "pin_memory", s->pin_memory);
    print_flag(out, "persistent_workers", s->persistent_workers);
    if (s->in_order == 0)
        fputs(", in_order=False", out);
    if (s->start_method[0])
        fprintf(out, ", %s", s->start_method);
    if (s->torch_version[0])
        fprintf(out, ", torch %s", s->torch_version);
    fprintf(out, "\ncovers %.0f epoch%s, %.0f batch%s, %.0f items in %.2f s%s\n", figures->epochs,
            figures->epochs == 1 ? "" : "s", figures->batches, figures->batches == 1 ? "" : "es", figures->items,
            report->wall_s, report->final ? "" : " since the last table");
}

static void print_ready(FILE *out, const struct weir_dataloader_figures *f)
{
    if (f->ready_known > 0)
        fprintf(out, "ready batches at each request: mean %.2f, min %.0f, max %.0f (%.0f requests, %.0f found none)\n",
                f->ready_mean, f->ready_min, f->ready_max, f->ready_known, f->ready_none);
    fprintf(out, "waits for data: %.3f s", f->wait_s);
    if (f->ready_known > 0)
        fprintf(out, " (no batch ready %.3f s, out of order %.3f s, batch ready %.3f s)", f->wait_none_s,
                f->wait_order_s, f->wait_due_s);
    if (f->first_waits > 0)
        fprintf(out, "; first batches of epochs %.3f s", f->first_wait_s);
    fputc('\n', out);
    if (f->startups > 0)
        fprintf(out, "start-up: creating workers %.3f s per epoch, first batch after %.3f s\n",
                f->startup_s / f->startups, f->first_waits > 0 ? f->first_wait_s / f->first_waits : 0);
    if (f->held_s > 0)
        fprintf(out, "held back for headroom: %.3f s of waits (excluded from the figures above)\n", f->held_s);
}

/* ---- workers ---- */

static const struct weir_column worker_columns[] = {
    {"batches of", .left = true}, {.heading = "batches"},  {.heading = "mean"},      {"+-", .priority = 3},
    {.heading = "busy"},          {.heading = "idle"},     {.heading = "on core"},   {"core-wait", .priority = 1},
    {"storage", .priority = 2},   {"lock", .priority = 2}, {"sleep", .priority = 2}, {"waited for", .priority = 4},
};

static void add_percent(struct weir_table *table, double part, double whole)
{
    if (part >= 0 && whole > 0)
        weir_table_cell(table, "%.0f%%", 100 * fmin(part / whole, 1));
    else
        weir_table_cell(table, "-");
}

static void print_workers(FILE *out, const struct weir_dataloader_figures *f)
{
    struct weir_table table;
    char time[24];
    if (f->n_workers == 0)
        return;
    weir_table_open(&table, worker_columns, sizeof worker_columns / sizeof *worker_columns);
    for (int i = 0; i < f->n_workers; i++) {
        const struct weir_thread_figures *w = &f->workers[i];
        bool sampled = w->shares.seconds > 0;
        weir_table_cell(&table, "worker %.0f", w->id);
        weir_table_cell(&table, "%.0f", w->batches);
        weir_table_cell(&table, "%s", weir_report_time(time, w->batch_s));
        weir_table_cell(&table, "%.0f%%", 100 * w->spread);
        add_percent(&table, w->busy_s, w->wall_s);
        add_percent(&table, w->wait_s, w->wall_s);
        add_percent(&table, w->cpu_s, w->wall_s);
        add_percent(&table, w->delay_s, w->wall_s);
        add_percent(&table, sampled ? w->shares.of[WEIR_TASK_STORAGE] : -1, 1);
        add_percent(&table, sampled ? w->shares.of[WEIR_TASK_LOCK] : -1, 1);
        add_percent(&table, sampled ? w->shares.of[WEIR_TASK_SLEEP] : -1, 1);
        weir_table_cell(&table, "%.2fs", w->asked_of_s);
    }
    weir_table_print(out, &table);
}

/* ---- slow items and files ---- */

static void print_items(FILE *out, const struct weir_dataloader_figures *f)
{
    static const struct weir_column columns[] = {{"slowest items", .left = true},
                                                 {.heading = "time"},
                                                 {"worker", .priority = 1},
                                                 {"file", .left = true, .shrink_to = 20}};
    struct weir_table table;
    char time[24];
    int n = 0;
    weir_table_open(&table, columns, 4);
    for (int i = 0; i < f->slowest.n_items && n < 5; i++) {
        const struct weir_watch_item *item = &f->slowest.items[i];
        if (item->index < 0 && !item->file[0])
            continue;
        n++;
        if (item->index >= 0)
            weir_table_cell(&table, "%.0f", item->index);
        else
            weir_table_cell(&table, "-");
        weir_table_cell(&table, "%s", weir_report_time(time, item->s));
        if (item->worker >= 0)
            weir_table_cell(&table, "%.0f", item->worker);
        else
            weir_table_cell(&table, "-");
        weir_table_cell(&table, "%s", item->file);
    }
    if (n > 0)
        weir_table_print(out, &table);
    else
        weir_table_free(&table);
}

static void print_files(FILE *out, const struct weir_dataloader_figures *f)
{
    static const struct weir_column columns[] = {{"slowest files", .left = true, .shrink_to = 20},
                                                 {.heading = "items"},
                                                 {.heading = "mean"},
                                                 {"max", .priority = 1}};
    struct weir_table table;
    char time[24];
    if (f->slowest.n_files == 0)
        return;
    weir_table_open(&table, columns, 4);
    for (int i = 0; i < f->slowest.n_files && i < 3; i++) {
        weir_table_cell(&table, "%s", f->slowest.files[i].name);
        weir_table_cell(&table, "%.0f", f->slowest.files[i].count);
        weir_table_cell(&table, "%s", weir_report_time(time, f->slowest.files[i].mean_s));
        weir_table_cell(&table, "%s", weir_report_time(time, f->slowest.files[i].max_s));
    }
    weir_table_print(out, &table);
    fprintf(out, "files seen: %.0f, %s per item on average\n", f->slowest.files_seen,
            weir_report_time(time, f->slowest.files_mean_s));
}

static void print_unseen(FILE *out, const struct weir_dataloader_figures *f)
{
    for (int i = 0; i < f->slowest.n_unseen; i++)
        fprintf(out, "%s%s", i == 0 ? "not timed: " : ", ", f->slowest.unseen[i].what);
    if (f->slowest.n_unseen > 0)
        fputs(" (part of the stage around the call)\n", out);
}

static void print_cost(FILE *out, const struct weir_report *report)
{
    fprintf(out,
            "watch: %" PRIu64 " zones x %.0f ns = %.3f s of %.2f s thread time (%.3f %%), clock calibrated to %.2f ppm",
            report->zones, report->zone_cost_ns, (double)report->zones * report->zone_cost_ns / 1e9, report->thread_s,
            100 * report->profiler_share, report->clock_error_ppm);
    if (report->too_deep > 0)
        fprintf(out, ", %" PRIu64 " zones nested too deep were dropped", report->too_deep);
    fputc('\n', out);
}

void weir_watch_print(FILE *out, const struct weir_dataloader_figures *figures, const struct weir_loader_report *report,
                      enum weir_lang lang, bool verdict_only)
{
    struct weir_wrap wrap;
    struct weir_job_verdict *verdict = malloc(sizeof *verdict);
    if (verdict) {
        weir_job_judge(verdict, figures);
        weir_watch_verdict_print(out, verdict, figures);
    }
    free(verdict);
    if (verdict_only)
        return;
    fputc('\n', out);
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    print_loader(text, figures, report);
    weir_wrap_close(&wrap);
    weir_loader_report_loop_print(out, report, lang);
    print_workers(out, figures);
    text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    print_ready(text, figures);
    weir_wrap_close(&wrap);
    print_items(out, figures);
    print_files(out, figures);
    text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    print_unseen(text, figures);
    print_cost(text, &report->prof);
    weir_wrap_close(&wrap);
}

/* ---- JSON ---- */

/* In the verdict 0 means unknown, for weir_json_known it is -1. */
static double known(double figure)
{
    return figure > 0 ? figure : -1;
}

static void verdict_json(struct weir_json *json, const struct weir_job_verdict *verdict)
{
    weir_json_object(json, "verdict");
    weir_json_known(json, "without_waits", known(verdict->most));
    weir_json_known(json, "headroom", known(verdict->headroom));
    weir_json_known(json, "headroom_error", verdict->headroom > 0 ? verdict->headroom_error : -1);
    weir_json_known(json, "replayed_steps_per_s", known(verdict->replayed));
    weir_diagnosis_json(json, &verdict->found);
    weir_json_end(json, '}');
}

static void json_trial(struct weir_json *json, const struct weir_watch_settings *s)
{
    double ratio = trial_ratio(s);
    if (ratio <= 0)
        return;
    weir_json_object(json, "weir_loader");
    weir_json_text(json, "path", s->weir_path);
    weir_json_text(json, "sample", s->weir_sample);
    weir_json_double(json, "samples_per_s", s->weir_items_s);
    weir_json_double(json, "watched_samples_per_s", s->watched_items_s);
    weir_json_double(json, "ratio", ratio);
    weir_json_end(json, '}');
}

void weir_watch_json(struct weir_json *json, const struct weir_dataloader_figures *figures)
{
    struct weir_job_verdict *verdict = malloc(sizeof *verdict);
    weir_json_object(json, "watch");
    weir_fields_json(json, &weir_watch_fields, figures);
    weir_json_end(json, '}');
    if (verdict) {
        weir_job_judge(verdict, figures);
        verdict_json(json, verdict);
    }
    free(verdict);
    json_trial(json, &figures->settings);
}
