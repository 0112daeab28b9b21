/* Collects the records of logs. */
#include "analyze/logs/log_read.h"
#include "analyze/page/page_priv.h"
#include "base/grow.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int weir_page_open(struct weir_page **page, enum weir_lang lang)
{
    *page = calloc(1, sizeof **page);
    if (!*page)
        return -ENOMEM;
    (*page)->lang = lang;
    return 0;
}

static void free_report(struct weir_page_run *run)
{
    if (run->report)
        weir_loader_report_clear(run->report);
    free(run->report);
    free(run->watch);
    run->report = NULL;
    run->watch = NULL;
}

static void free_run(struct weir_page_run *run)
{
    free_report(run);
    if (run->plain)
        weir_plain_close(run->plain);
    free(run->plain);
    free(run->settings);
    free(run->epochs);
    free(run->tables);
    free(run);
}

void weir_page_close(struct weir_page **page)
{
    if (!*page)
        return;
    for (int i = 0; i < (*page)->n_runs; i++)
        free_run((*page)->runs[i]);
    free(*page);
    *page = NULL;
}

static struct weir_page_run *begin_run(struct weir_page *page, const char *name)
{
    struct weir_page_run *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    snprintf(run->log, sizeof run->log, "%s", name);
    if (page->n_runs == WEIR_PAGE_RUNS) {
        free_run(page->runs[0]);
        memmove(page->runs, page->runs + 1, (WEIR_PAGE_RUNS - 1) * sizeof page->runs[0]);
        page->n_runs--;
    }
    page->runs[page->n_runs++] = run;
    return run;
}

/* ---- settings ---- */

/* Tables repeat the settings of a watched loader; the newest value counts. */
static int put_setting(void *user, const char *name, const char *value)
{
    struct weir_page_run *run = user;
    int i = 0;
    while (i < run->n_settings && strcmp(run->settings[i].name, name) != 0)
        i++;
    if (i == WEIR_PAGE_SETTINGS)
        return 0;
    if (i == run->n_settings && !weir_grow(&run->settings, (size_t)i, sizeof *run->settings))
        return -ENOMEM;
    run->n_settings += i == run->n_settings;
    snprintf(run->settings[i].name, sizeof run->settings[i].name, "%s", name);
    snprintf(run->settings[i].value, sizeof run->settings[i].value, "%s", value);
    return 0;
}

const char *weir_page_setting(const struct weir_page_run *run, const char *name)
{
    for (int i = 0; i < run->n_settings; i++)
        if (strcmp(run->settings[i].name, name) == 0)
            return run->settings[i].value;
    return NULL;
}

/* ---- epochs ---- */

static void merge_epoch(struct weir_page_epoch *to, const struct weir_page_epoch *next)
{
    to->last = next->last;
    to->total_s += next->total_s;
    to->train_s += next->train_s;
    to->wait_s += next->wait_s;
    to->images += next->images;
    to->wait_min = fmin(to->wait_min, next->wait_min);
    to->wait_max = fmax(to->wait_max, next->wait_max);
    to->rate_min = fmin(to->rate_min, next->rate_min);
    to->rate_max = fmax(to->rate_max, next->rate_max);
    to->total_min = fmin(to->total_min, next->total_min);
    to->total_max = fmax(to->total_max, next->total_max);
}

static int add_epoch(struct weir_page_run *run, const struct weir_epoch_line *line)
{
    if (run->n_epochs == WEIR_PAGE_POINTS) {
        for (size_t i = 0; i < WEIR_PAGE_POINTS / 2; i++) {
            run->epochs[i] = run->epochs[2 * i];
            merge_epoch(&run->epochs[i], &run->epochs[2 * i + 1]);
        }
        run->n_epochs /= 2;
    } else if (!weir_grow(&run->epochs, run->n_epochs, sizeof *run->epochs)) {
        return -ENOMEM;
    }
    run->epochs[run->n_epochs++] = (struct weir_page_epoch){
        .first = line->epoch,
        .last = line->epoch,
        .total_s = line->total_s,
        .train_s = line->train_s,
        .wait_s = line->data_wait_fraction * line->train_s,
        .images = line->images_per_s * line->total_s,
        .wait_min = line->data_wait_fraction,
        .wait_max = line->data_wait_fraction,
        .rate_min = line->images_per_s,
        .rate_max = line->images_per_s,
        .total_min = line->total_s,
        .total_max = line->total_s,
    };
    return 0;
}

/* ---- tables ---- */

static int stage_index(struct weir_page_run *run, const struct weir_report_row *row)
{
    char name[WEIR_REPORT_NAME];
    weir_report_row_name(row, name);
    for (int i = 0; i < run->n_stages; i++)
        if (strcmp(run->stages[i], name) == 0)
            return i;
    if (run->n_stages == WEIR_PAGE_STAGES)
        return -1;
    memcpy(run->stages[run->n_stages], name, sizeof name);
    return run->n_stages++;
}

static void add_rows(struct weir_page_run *run, struct weir_page_table *table, const struct weir_report_row *rows,
                     int n)
{
    for (int i = 0; i < n; i++) {
        int stage = stage_index(run, &rows[i]);
        if (stage >= 0)
            table->stage_s[stage] += (float)rows[i].total_s;
    }
}

static void merge_table(struct weir_page_table *to, const struct weir_page_table *next)
{
    to->last = next->last;
    to->ready_min = next->ready_min < to->ready_min ? next->ready_min : to->ready_min;
    to->ready_max = next->ready_max > to->ready_max ? next->ready_max : to->ready_max;
    to->requests += next->requests;
    to->ready += next->ready;
    to->images += next->images;
    for (int i = 0; i < WEIR_PAGE_STAGES; i++)
        to->stage_s[i] += next->stage_s[i];
}

static int add_table(struct weir_page_run *run, const struct weir_loader_report *report)
{
    if (run->n_tables == WEIR_PAGE_POINTS) {
        for (size_t i = 0; i < WEIR_PAGE_POINTS / 2; i++) {
            run->tables[i] = run->tables[2 * i];
            merge_table(&run->tables[i], &run->tables[2 * i + 1]);
        }
        run->n_tables /= 2;
    } else if (!weir_grow(&run->tables, run->n_tables, sizeof *run->tables)) {
        return -ENOMEM;
    }
    struct weir_page_table *table = &run->tables[run->n_tables++];
    *table = (struct weir_page_table){
        .first = report->epoch_first,
        .last = report->epoch_last,
        .requests = (double)report->queue_samples,
        .ready = report->queue_mean * (double)report->queue_samples,
        .ready_min = report->queue_min,
        .ready_max = report->queue_max,
        .images = (double)report->steps.images,
    };
    add_rows(run, table, report->prof.rows, report->prof.n_rows);
    add_rows(run, table, report->gpu.rows, report->gpu.n_rows);
    return 0;
}

/* Moves the report out of the record. */
static int take_report(struct weir_page_run *run, struct weir_log_record *record)
{
    int rc = record->report.final ? 0 : add_table(run, &record->report);
    struct weir_loader_report *report = malloc(sizeof *report);
    if (rc < 0 || !report) {
        free(report);
        return -ENOMEM;
    }
    free_report(run);
    *report = record->report;
    record->report = (struct weir_loader_report){0};
    run->report = report;
    run->watch = record->watch;
    record->watch = NULL;
    return run->watch ? weir_log_settings(record, put_setting, run) : 0;
}

/* ---- the log ---- */

static int add_record(struct weir_page *page, const char *name, struct weir_page_run **run,
                      struct weir_log_record *record)
{
    if (!*run || record->type == WEIR_LOG_RUN)
        *run = begin_run(page, name);
    if (!*run)
        return -ENOMEM;
    switch (record->type) {
    case WEIR_LOG_RUN:
        (*run)->rank = record->used.rank;
        (*run)->world_size = record->used.world_size;
        return weir_log_settings(record, put_setting, *run);
    case WEIR_LOG_START:
        (*run)->start = record->start;
        return 0;
    case WEIR_LOG_EPOCH:
        return add_epoch(*run, &record->epoch);
    case WEIR_LOG_MEASURED:
        (*run)->is_measured = true;
        (*run)->measured = record->measured;
        return 0;
    case WEIR_LOG_STAGES:
        return take_report(*run, record);
    case WEIR_LOG_PROFILE:
        memcpy((*run)->trace, record->window.trace, sizeof(*run)->trace);
        return 0;
    default:
        return 0;
    }
}

static int read_records(struct weir_page *page, const char *name, struct weir_lines *lines, struct weir_err *err)
{
    struct weir_log_record *record = calloc(1, sizeof *record);
    struct weir_page_run *run = NULL;
    int code = record ? 0 : -ENOMEM;
    while (code == 0 && (code = weir_log_next(lines, record, err)) == WEIR_LOG_RECORD)
        code = record->type == WEIR_LOG_WHATIF ? 0 : add_record(page, name, &run, record);
    if (record)
        weir_log_record_clear(record);
    free(record);
    if (code == -ENOMEM)
        return weir_err_set(err, code, "out of memory");
    if (code >= 0 && !run)
        return weir_err_set(err, -ENODATA, "contains no records of a run, so it has no page");
    return code < 0 ? code : 0;
}

/* Adds the epochs of a plain log. */
static int add_plain_epochs(struct weir_page_run *run)
{
    int code = 0;
    for (size_t i = 0; i < run->plain->n_epochs && code == 0; i++) {
        const struct weir_plain_epoch *epoch = &run->plain->epochs[i];
        const struct weir_epoch_line line = {.epoch = epoch->epoch, .total_s = epoch->total_s};
        if (epoch->total_s >= 0)
            code = add_epoch(run, &line);
    }
    return code;
}

static int read_plain(struct weir_page *page, const char *name, struct weir_lines *lines, struct weir_err *err)
{
    struct weir_page_run *run = begin_run(page, name);
    struct weir_plain_log *log = run ? malloc(sizeof *log) : NULL;
    if (!log || weir_plain_open(log) < 0) {
        free(log);
        return weir_err_set(err, -ENOMEM, "out of memory");
    }
    run->plain = log;
    int code = weir_plain_read(log, lines);
    if (code == 0)
        code = add_plain_epochs(run);
    if (code < 0)
        return weir_err_set(err, code, "line %" PRIu64 ": %s", lines->number, strerror(-code));
    if (log->totals.n_tables == 0)
        return weir_err_set(
            err, -ENODATA,
            "is no log of weir run, weir train or weir.watch, and has no stage table (性能分析统计), so "
            "it has no page");
    return 0;
}

int weir_page_add_log(struct weir_page *page, const char *name, FILE *in, struct weir_err *err)
{
    struct weir_lines lines;
    weir_lines_open(&lines, in);
    int code = weir_lines_peek(&lines);
    if (code < 0)
        code = weir_err_set(err, code, "cannot be read: %s", strerror(-code));
    else if (code > 0 && weir_log_recognised(lines.text, lines.length))
        code = read_records(page, name, &lines, err);
    else
        code = read_plain(page, name, &lines, err);
    weir_lines_close(&lines);
    return code;
}

void weir_page_add_ranks(struct weir_page *page, const struct weir_rank_verdict *verdict, const struct weir_rank *ranks,
                         int n)
{
    page->rank_verdict = verdict;
    page->ranks = ranks;
    page->n_ranks = n;
}

int weir_page_of_log(FILE *out, const char *lines, size_t length, enum weir_lang lang, struct weir_err *err)
{
    struct weir_page *page;
    FILE *in = length > 0 ? fmemopen((void *)(uintptr_t)lines, length, "r") : NULL;
    int code = weir_page_open(&page, lang);
    if (code == 0 && !in)
        code = weir_err_set(err, length > 0 ? -ENOMEM : -ENODATA, length > 0 ? "out of memory" : "has no records");
    if (code == 0)
        code = weir_page_add_log(page, "", in, err);
    if (code == 0)
        code = weir_page_write(out, page);
    if (in)
        fclose(in);
    weir_page_close(&page);
    return code;
}
