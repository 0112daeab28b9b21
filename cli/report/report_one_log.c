
#include "analyze/logs/log_lines.h"
#include "analyze/logs/log_plain.h"
#include "analyze/logs/log_read.h"
#include "analyze/logs/log_totals.h"
#include "analyze/prediction/whatif.h"
#include "base/grow.h"
#include "cli/report/report_command.h"
#include "pipeline/report/log_fields.h"
#include "prof/trace/trace_read.h"
#include "weir/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCHS_MAX = 1 << 17 };

#define LOG_HAS                                                                                                          \
    "the JSON lines of weir run --log, Chinese stage tables (性能分析统计) or epoch lines (Epoch 3/10 总耗时: " \
    "12.34s), "                                                                                                          \
    "or lines of a program that docs/report.md lists"

/* A log to print, and where to print it. */
struct job {
    const char *path;
    enum weir_lang lang;
    struct weir_lines *lines;
    struct weir_document *document;
};

/* The current run of a JSON-lines log. A log that was opened for appending can contain several runs. */
struct run_part {
    int number;
    bool open;
    struct weir_totals totals;
    struct weir_start_line start;
    bool is_measured; /* a run with --seconds */
    struct weir_measured_line measured;
    size_t n_epochs;
    struct weir_epoch_line *epochs;
    uint64_t epochs_dropped;
};

static void part_clear(struct run_part *part)
{
    weir_totals_free(&part->totals);
    free(part->epochs);
    *part = (struct run_part){.number = part->number, .totals.decimals = 3};
}

/* record is NULL if the log has no line "run". */
static void part_begin(const struct job *job, struct run_part *part, const struct weir_log_record *record)
{
    FILE *out = weir_document_stream(job->document);
    part->open = true;
    part->number++;
    if (out && part->number > 1)
        putc('\n', out);
    if (out && record)
        weir_log_run_print(out, record);
    weir_document_begin(job->document, NULL, '{');
    if (!out && record)
        weir_log_run_json(job->document->json, "run", record);
    else
        weir_document_fact(job->document, "run", (const char *)NULL);
    weir_document_begin(job->document, "reports", '[');
}

static void part_end(const struct job *job, struct run_part *part)
{
    struct weir_document *document = job->document;
    FILE *out = weir_document_stream(document);
    if (!part->open)
        return;
    weir_document_end(document, ']');
    weir_document_object(document, "start", &weir_start_fields, &part->start);
    weir_document_object(document, "measured", &weir_measured_fields, part->is_measured ? &part->measured : NULL);
    weir_document_table(document, "epochs", &weir_epoch_fields, part->epochs, (int)part->n_epochs, sizeof *part->epochs,
                        NULL);
    if (!out)
        weir_totals_json(document->json, &part->totals, false);
    else if (part->totals.n_tables > 1)
        weir_totals_print(out, &part->totals, false);
    weir_document_end(document, '}');
    part_clear(part);
}

static int keep_epoch(struct run_part *part, const struct weir_epoch_line *epoch)
{
    if (part->n_epochs == EPOCHS_MAX) {
        part->epochs_dropped++;
        return 0;
    }
    if (!weir_grow(&part->epochs, part->n_epochs, sizeof *part->epochs))
        return -ENOMEM;
    part->epochs[part->n_epochs++] = *epoch;
    return 0;
}

/* Rows with the same name can belong to different threads. The key therefore includes the threads, like the names in
 * the table. */
static int add_row(struct weir_totals *totals, const struct weir_report_row *row)
{
    char name[WEIR_REPORT_NAME];
    weir_report_row_name(row, name);
    return weir_totals_add(totals, name, row->total_s, row->count, row->mean_s);
}

static int keep_totals(struct run_part *part, const struct weir_loader_report *report, uint64_t line)
{
    struct weir_totals_table table = {.line = line,
                                      .epoch_first = report->epoch_first,
                                      .epoch_last = report->epoch_last,
                                      .final = report->final,
                                      .after_epoch = -1,
                                      .closed = true};
    int code = weir_totals_begin_table(&part->totals, &table);
    for (int i = 0; i < report->prof.n_rows && code == 0; i++)
        code = add_row(&part->totals, &report->prof.rows[i]);
    for (int i = 0; i < report->gpu.n_rows && code == 0; i++)
        code = add_row(&part->totals, &report->gpu.rows[i]);
    return code;
}

/* Prints a whatif record on its own, since it does not belong to a run. */
static int show_whatif(const struct job *job, struct run_part *part, const struct weir_whatif *found)
{
    part_end(job, part);
    weir_document_begin(job->document, NULL, '{');
    weir_document_begin(job->document, "whatif", '{');
    weir_whatif_describe(job->document, found);
    weir_document_end(job->document, '}');
    weir_document_end(job->document, '}');
    return 0;
}

/* Prints a record that is one line of the run's output, or keeps it for part_end. */
static int show_line(const struct job *job, struct run_part *part, const struct weir_log_record *record)
{
    FILE *out = weir_document_stream(job->document);
    if (record->type == WEIR_LOG_START) {
        part->start = record->start;
        if (out)
            weir_start_print(out, &record->start);
    } else if (record->type == WEIR_LOG_MEASURED) {
        part->is_measured = true;
        part->measured = record->measured;
        if (out)
            weir_measured_print(out, &record->measured);
    } else if (out) {
        weir_epoch_print(out, &record->epoch, job->lang);
    } else {
        return keep_epoch(part, &record->epoch);
    }
    return 0;
}

static int show_record(const struct job *job, struct run_part *part, const struct weir_log_record *record)
{
    if (record->type == WEIR_LOG_PROFILE)
        return 0;
    if (record->type == WEIR_LOG_WHATIF)
        return show_whatif(job, part, record->whatif);
    if (record->type == WEIR_LOG_RUN)
        part_end(job, part);
    if (!part->open)
        part_begin(job, part, record->type == WEIR_LOG_RUN ? record : NULL);
    if (record->type == WEIR_LOG_RUN)
        return 0;
    if (record->type != WEIR_LOG_STAGES)
        return show_line(job, part, record);
    FILE *out = weir_document_stream(job->document);
    weir_document_begin(job->document, NULL, '{');
    if (out)
        weir_log_report_print(out, record, job->lang);
    else
        weir_log_report_json(job->document->json, record);
    weir_document_end(job->document, '}');
    return keep_totals(part, &record->report, record->line);
}

static void warn_dropped(const struct job *job, const struct weir_totals *totals, uint64_t epochs)
{
    if (totals->dropped_rows > 0)
        fprintf(stderr, "weir report: %s: %" PRIu64 " table rows exceed the limit and are not in the totals\n",
                job->path, totals->dropped_rows);
    if (epochs > 0)
        fprintf(stderr, "weir report: %s: %" PRIu64 " epoch lines exceed the limit and are left out\n", job->path,
                epochs);
}

static int read_records(const struct job *job, struct run_part *part, bool *cut, struct weir_err *err)
{
    struct weir_log_record record = {0};
    int code, records = 0;
    while ((code = weir_log_next(job->lines, &record, err)) == WEIR_LOG_RECORD) {
        records += record.type != WEIR_LOG_PROFILE;
        if (show_record(job, part, &record) < 0) {
            code = weir_err_set(err, -ENOMEM, "line %" PRIu64 ": out of memory", record.line);
            break;
        }
    }
    *cut = code == WEIR_LOG_CUT;
    weir_log_record_clear(&record);
    if (code < 0)
        return code;
    if (records == 0)
        return weir_err_set(err, -ENODATA, "%s",
                            *cut ? "its only line is cut off, so it contains no complete record"
                                 : "contains no records");
    return 0;
}

static int report_weir_log(const struct job *job, struct weir_err *err)
{
    struct run_part part = {.totals.decimals = 3};
    bool cut = false;
    weir_document_fact(job->document, "kind", "weir");
    weir_document_begin(job->document, "runs", '[');
    int code = read_records(job, &part, &cut, err);
    if (code == 0) {
        warn_dropped(job, &part.totals, part.epochs_dropped);
        part_end(job, &part);
        weir_document_end(job->document, ']');
        weir_document_fact(job->document, "cut_off", cut);
        if (cut)
            fprintf(stderr,
                    "weir report: %s: line %" PRIu64
                    " is cut off (the run was stopped while writing it); only the lines before it are shown\n",
                    job->path, job->lines->number);
    }
    part_clear(&part);
    return code;
}

static int nothing_found(const struct job *job, const struct weir_plain_log *log, struct weir_err *err)
{
    if (job->lines->number == 0)
        return weir_err_set(err, -ENODATA, "is empty");
    if (log->empty_title > 0)
        return weir_err_set(err, -ENODATA, "line %" PRIu64 ": the stage table that begins here has no rows",
                            log->empty_title);
    if (job->lines->nul_bytes > 0)
        return weir_err_set(err, -EBADMSG,
                            "cannot be read as a log: line %" PRIu64 " is not text; if the log is in UTF-16, convert "
                            "it with iconv -f UTF-16 -t UTF-8",
                            log->first_not_utf8 ? log->first_not_utf8 : job->lines->number);
    if (log->not_utf8 > 0)
        return weir_err_set(err, -EBADMSG,
                            "contains no readable table, and line %" PRIu64
                            " is not UTF-8; convert the file with iconv -f GB18030 -t UTF-8",
                            log->first_not_utf8);
    if (strcmp(job->path, "-") == 0)
        return weir_err_set(err, -ENODATA,
                            "no table in its %" PRIu64 " line%s; a log has " LOG_HAS "; specify a trace as a file",
                            job->lines->number, job->lines->number == 1 ? "" : "s");
    return weir_err_set(err, -ENODATA,
                        "is neither a trace nor a log with a table (%" PRIu64 " line%s); " WEIR_RECORD_A_TRACE
                        "; a log has " LOG_HAS,
                        job->lines->number, job->lines->number == 1 ? "" : "s");
}

static void warn_plain(const struct job *job, const struct weir_plain_log *log)
{
    const struct weir_trainer_log *trainer = weir_trainers_found(&log->trainers);
    warn_dropped(job, &log->totals, log->epochs_dropped);
    if (trainer && trainer->rows_dropped > 0)
        fprintf(stderr, "weir report: %s: %" PRIu64 " rows exceed the limit and are left out\n", job->path,
                trainer->rows_dropped);
    if (log->not_utf8 > 0)
        fprintf(stderr,
                "weir report: %s: %" PRIu64 " lines are not UTF-8 (line %" PRIu64
                " is the first); each invalid byte is read as ?\n",
                job->path, log->not_utf8, log->first_not_utf8);
    if (log->rows_cut > 0)
        fprintf(stderr, "weir report: %s: %" PRIu64 " table rows are incomplete and are left out\n", job->path,
                log->rows_cut);
    if (log->times_left > 0)
        fprintf(stderr,
                "weir report: %s: %" PRIu64
                " durations (耗时) are not the total, training or validation time of an epoch and are left out\n",
                job->path, log->times_left);
    if (job->lines->cut_lines > 0)
        fprintf(stderr, "weir report: %s: %" PRIu64 " lines are longer than %d bytes and were cut to this length\n",
                job->path, job->lines->cut_lines, WEIR_LINE_MAX_BYTES);
}

static int read_plain(const struct job *job, struct weir_plain_log *log, struct weir_err *err)
{
    int code = weir_plain_read(log, job->lines);
    if (code < 0)
        return weir_err_set(err, code, "line %" PRIu64 ": %s", job->lines->number, strerror(-code));
    if (!weir_plain_found(log))
        return nothing_found(job, log, err);
    return 0;
}

static int report_plain_log(const struct job *job, struct weir_err *err)
{
    struct weir_plain_log log;
    int code = weir_plain_open(&log);
    if (code < 0)
        return weir_err_set(err, code, "out of memory");
    code = read_plain(job, &log, err);
    if (code == 0) {
        FILE *out = weir_document_stream(job->document);
        if (out)
            weir_plain_print(out, &log, job->lang);
        else
            weir_plain_json(job->document->json, &log);
        warn_plain(job, &log);
    }
    weir_plain_close(&log);
    return code;
}

/* The first line that is not blank determines the kind of log. */
static int report_log(const struct job *job, struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    const char *what = weir_log_unread(job->lines);
    int code = weir_lines_peek(job->lines);
    if (code < 0)
        return weir_err_set(err, code, "cannot be read: %s", strerror(-code));
    bool ours = code > 0 && weir_log_recognised(job->lines->text, job->lines->length);
    code = ours ? report_weir_log(job, &why) : report_plain_log(job, &why);
    if (code == -ENODATA && what)
        return weir_err_set(err, code, "is %s; weir report does not read it, only logs of run, train and whatif", what);
    return code < 0 ? weir_err_set(err, code, "%s", why.text) : code;
}

int weir_report_one_log(struct weir_document *document, const char *path, enum weir_lang lang, struct weir_err *err)
{
    struct weir_lines lines;
    const struct job job = {path, lang, &lines, document};
    FILE *in;
    int code = weir_report_open_log(path, &in, err);
    if (code == 0) {
        weir_lines_open(&lines, in);
        weir_document_fact(document, "log", path);
        code = report_log(&job, err);
        weir_lines_close(&lines);
        if (code < 0)
            weir_err_prefix(err, "%s", path);
    }
    if (in)
        fclose(in);
    return code;
}
