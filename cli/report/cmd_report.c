#include "analyze/logs/log_lines.h"
#include "analyze/logs/log_plain.h"
#include "analyze/logs/log_read.h"
#include "analyze/logs/log_totals.h"
#include "analyze/prediction/whatif.h"
#include "base/grow.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/report/report_folder.h"
#include "cli/report/report_ranks.h"
#include "cli/report/report_trace.h"
#include "prof/trace/trace_read.h"
#include "weir/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { EPOCHS_MAX = 1 << 17, FILES_MAX = 64 };

#define LOG_HAS                                                                                                        \
    "the JSON lines of weir run --log, Chinese stage tables (性能分析统计) or epoch lines (Epoch 3/10 总耗时: 12.34s)"

struct report_options {
    int lang;
    bool json, wide;
    const char *sort_by, *export_stacks, *export_clocks;
    int row_limit, by_stack;
    bool by_shape, top_level;
};

#define FIELD(member) .offset = offsetof(struct report_options, member)

static const struct weir_opt report_opts[] = {
    {"lang", WEIR_OPT_ENUM, FIELD(lang), "en|zh", "en", "language of the epoch line and the stage table"},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object"},
    {"wide", WEIR_OPT_FLAG, FIELD(wide), NULL, NULL, "all columns and rows of the tables, and no wrapping"},
    {"sort-by", WEIR_OPT_TEXT, FIELD(sort_by), "KEY", "self_cpu_time_total", "sort key of the averages",
     .topic = "Traces", .details = "The keys are those of torch.profiler."},
    {"row-limit", WEIR_OPT_INT, FIELD(row_limit), "N", "auto", "rows of the averages; -1: all", -1, 1e9, true,
     .zero_is_auto = true, .unit = "rows", .details = "auto: 20 rows, with --wide and --json 100."},
    {"group-by-input-shape", WEIR_OPT_FLAG, FIELD(by_shape), NULL, NULL, "one row per shape of an operator's inputs"},
    {"group-by-stack", WEIR_OPT_INT, FIELD(by_stack), "N", "0", "one row per call stack of the N innermost frames", 0,
     256, .unit = "frames"},
    {"top-level-events-only", WEIR_OPT_FLAG, FIELD(top_level), NULL, NULL, "only events that no other event contains"},
    {"export-stacks", WEIR_OPT_TEXT, FIELD(export_stacks), "FILE", NULL, "output file of call stacks for flamegraph.pl",
     .path = WEIR_PATH_WRITE},
    {"export-clocks", WEIR_OPT_TEXT, FIELD(export_clocks), "FILE", NULL, "output CSV file of the clocks inside kernels",
     .path = WEIR_PATH_WRITE, .details = "Contains totals, and one row per iteration."},
};

/* A log to print, and where to print it. */
struct job {
    const char *path;
    enum weir_lang lang;
    struct weir_lines *lines;
    FILE *out;
    struct weir_json *json; /* NULL for text output */
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
    part->open = true;
    part->number++;
    if (!job->json) {
        if (part->number > 1)
            putc('\n', job->out);
        if (record)
            weir_log_run_print(job->out, record);
        return;
    }
    weir_json_object(job->json, NULL);
    if (record)
        weir_log_run_json(job->json, "run", record);
    else
        weir_json_null(job->json, "run");
    weir_json_array(job->json, "reports");
}

static void part_end(const struct job *job, struct run_part *part)
{
    if (!part->open)
        return;
    if (!job->json) {
        if (part->totals.n_tables > 1)
            weir_totals_print(job->out, &part->totals, false);
        part_clear(part);
        return;
    }
    weir_json_end(job->json, ']');
    weir_json_object(job->json, "start");
    weir_start_json(job->json, &part->start);
    weir_json_end(job->json, '}');
    if (part->is_measured) {
        weir_json_object(job->json, "measured");
        weir_measured_json(job->json, &part->measured);
        weir_json_end(job->json, '}');
    } else {
        weir_json_null(job->json, "measured");
    }
    weir_json_array(job->json, "epochs");
    for (size_t i = 0; i < part->n_epochs; i++) {
        weir_json_object(job->json, NULL);
        weir_epoch_json(job->json, &part->epochs[i]);
        weir_json_end(job->json, '}');
    }
    weir_json_end(job->json, ']');
    weir_totals_json(job->json, &part->totals, false);
    weir_json_end(job->json, '}');
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
    int code = weir_totals_begin(&part->totals, &table);
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
    if (!job->json) {
        weir_whatif_print(job->out, found);
        return 0;
    }
    weir_json_object(job->json, NULL);
    weir_json_object(job->json, "whatif");
    weir_whatif_json(job->json, found);
    weir_json_end(job->json, '}');
    weir_json_end(job->json, '}');
    return 0;
}

/* Prints a record that is one line of the run's output, or keeps it for part_end. */
static int show_line(const struct job *job, struct run_part *part, const struct weir_log_record *record)
{
    if (record->type == WEIR_LOG_START) {
        part->start = record->start;
        if (!job->json)
            weir_start_print(job->out, &record->start);
    } else if (record->type == WEIR_LOG_MEASURED) {
        part->is_measured = true;
        part->measured = record->measured;
        if (!job->json)
            weir_measured_print(job->out, &record->measured);
    } else if (job->json) {
        return keep_epoch(part, &record->epoch);
    } else {
        weir_epoch_print(job->out, &record->epoch, job->lang);
    }
    return 0;
}

static int show_record(const struct job *job, struct run_part *part, const struct weir_log_record *record)
{
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
    if (job->json) {
        weir_json_object(job->json, NULL);
        weir_log_report_json(job->json, record);
        weir_json_end(job->json, '}');
    } else {
        weir_log_report_print(job->out, record, job->lang);
    }
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
        records++;
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
    if (job->json) {
        weir_json_text(job->json, "kind", "weir");
        weir_json_array(job->json, "runs");
    }
    int code = read_records(job, &part, &cut, err);
    if (code == 0) {
        warn_dropped(job, &part.totals, part.epochs_dropped);
        part_end(job, &part);
        if (job->json) {
            weir_json_end(job->json, ']');
            weir_json_bool(job->json, "cut_off", cut);
        }
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
    warn_dropped(job, &log->totals, log->epochs_dropped);
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
        if (job->json)
            weir_plain_json(job->json, &log);
        else
            weir_plain_print(job->out, &log);
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

static void copy_to_stdout(FILE *aside)
{
    char block[16384];
    size_t n;
    rewind(aside);
    while ((n = fread(block, 1, sizeof block, aside)) > 0)
        fwrite(block, 1, n, stdout);
}

/* Writes the report to a temporary file, so that a damaged log produces one error line and no partial report. json is
 * an open object, or NULL for text. */
static int report_one_log(const char *path, const struct report_options *options, FILE *aside, struct weir_json *json,
                          struct weir_err *err)
{
    struct weir_lines lines;
    const struct job job = {path, (enum weir_lang)options->lang, &lines, aside, json};
    FILE *in;
    int code = weir_report_open_log(path, &in, err);
    if (code == 0) {
        weir_lines_open(&lines, in);
        if (json)
            weir_json_text(json, "log", path);
        code = report_log(&job, err);
        weir_lines_close(&lines);
        if (code < 0)
            weir_err_prefix(err, "%s", path);
    }
    if (in)
        fclose(in);
    return code;
}

/* Reports the logs one after the other, then compares those of several ranks. */
static int report_each_log(const char *const *paths, int n, const struct report_options *o, FILE *aside,
                           struct weir_json *json, const struct weir_report_ranks *ranks, struct weir_err *err)
{
    int code = 0;
    for (int i = 0, printed = 0; i < n && code == 0; i++) {
        if (weir_report_ranks_skips(ranks, i))
            continue;
        if (json && n > 1)
            weir_json_object(json, NULL);
        else if (n > 1)
            fprintf(aside, "%s%s\n", printed++ > 0 ? "\n" : "", paths[i]);
        code = report_one_log(paths[i], o, aside, json, err);
        if (json && code == 0 && n > 1)
            weir_json_end(json, '}');
    }
    return code;
}

static int report_logs(const char *const *paths, int n, const struct report_options *o, FILE *aside,
                       struct weir_err *err)
{
    struct weir_json json;
    struct weir_report_ranks ranks;
    int code = weir_report_ranks_read(&ranks, paths, n, err);
    if (o->json)
        weir_cli_json_open(&json, aside);
    if (o->json && n > 1) {
        weir_json_text(&json, "kind", "logs");
        weir_json_array(&json, "logs");
    }
    if (code == 0)
        code = report_each_log(paths, n, o, aside, o->json ? &json : NULL, &ranks, err);
    if (o->json && code == 0 && n > 1) {
        weir_json_end(&json, ']');
        weir_report_ranks_json(&json, &ranks);
    } else if (code == 0) {
        weir_report_ranks_print(aside, &ranks);
    }
    if (o->json && code == 0)
        weir_cli_json_close(&json);
    weir_report_ranks_free(&ranks);
    return code;
}

static int report_traces(const char *const *paths, int n, const struct report_options *o, FILE *aside,
                         struct weir_err *err)
{
    const struct weir_report_trace_config config = {
        .by = {o->by_shape, o->by_stack},
        .table = {o->sort_by,
                  o->row_limit         ? o->row_limit
                  : o->json || o->wide ? 100
                                       : 20,
                  o->top_level, NULL},
        .export_stacks = o->export_stacks,
        .export_clocks = o->export_clocks,
    };
    struct weir_json json;
    int code = 0;
    if (o->json) {
        weir_cli_json_open(&json, aside);
        weir_json_text(&json, "kind", "traces");
        weir_json_array(&json, "traces");
    }
    for (int i = 0; i < n && code == 0; i++)
        code = o->json ? weir_report_trace_json(&json, paths[i], &config, err)
                       : weir_report_trace_print(aside, paths[i], &config, n > 1, err);
    if (o->json && code == 0) {
        weir_json_end(&json, ']');
        weir_cli_json_close(&json);
    }
    return code;
}

/* Returns true and sets err if the options do not apply to these files. log is the first one that is not a trace. */
static bool is_misused(int n, const struct report_options *o, int traces, const char *log, struct weir_err *err)
{
    bool for_traces = o->by_shape || o->by_stack || o->top_level || o->export_stacks || o->export_clocks;
    if (traces > 0 && traces < n)
        weir_err_set(err, -EINVAL,
                     "%s is not a trace; several files can be reported together only if all are traces or all are logs",
                     log);
    else if (traces < n && for_traces)
        weir_err_set(err, -EINVAL,
                     "%s is a log, but --group-by-input-shape, --group-by-stack, --top-level-events-only, "
                     "--export-stacks and --export-clocks are for traces",
                     log);
    else if (n > 1 && (o->export_stacks || o->export_clocks))
        weir_err_set(err, -EINVAL, "--export-%s accepts only one trace at a time",
                     o->export_stacks ? "stacks" : "clocks");
    else if (weir_averages_check_sort(o->sort_by, err) < 0)
        weir_err_prefix(err, "--sort-by");
    return err->code < 0;
}

/* Rejects named pipes. The first bytes are read to distinguish logs from traces, and a pipe can be read only once. */
static int check_pipes(const char *const *paths, int n, struct weir_err *err)
{
    struct stat st;
    for (int i = 0; i < n; i++)
        if (strcmp(paths[i], "-") != 0 && stat(paths[i], &st) == 0 && S_ISFIFO(st.st_mode))
            return weir_err_set(err, -EINVAL,
                                "%s is a pipe, which can be read only once; pass it on standard input: "
                                "weir report - < FILE",
                                paths[i]);
    return 0;
}

static int report_files(const struct weir_command *command, const char *const *paths, int n,
                        const struct report_options *options)
{
    struct weir_err err = WEIR_ERR_NONE;
    const char *log = NULL;
    int traces = 0;
    for (int i = 0; i < n; i++) {
        bool is_trace = weir_trace_recognised(paths[i]);
        traces += is_trace;
        log = log || is_trace ? log : paths[i];
    }
    if (is_misused(n, options, traces, log, &err)) {
        weir_cli_fail(command, &err);
        return WEIR_EXIT_USAGE;
    }
    FILE *aside = tmpfile();
    weir_terminal_set_wide(options->wide);
    weir_terminal_set_aside(aside);
    int code =
        aside ? 0 : weir_err_set(&err, -errno, "cannot make a temporary file for the report: %s", strerror(errno));
    if (code == 0)
        code =
            traces == n ? report_traces(paths, n, options, aside, &err) : report_logs(paths, n, options, aside, &err);
    if (code == 0 && (fflush(aside) != 0 || ferror(aside)))
        code = weir_err_set(&err, -EIO, "cannot write the temporary file for the report: %s", strerror(errno));
    if (code == 0)
        copy_to_stdout(aside);
    if (aside)
        fclose(aside);
    return code == 0 ? 0 : weir_cli_fail(command, &err);
}

static int report(const struct weir_command *command, int argc, char **argv)
{
    struct report_options options;
    const char *paths[FILES_MAX];
    char *found[FILES_MAX] = {0};
    int n;
    enum weir_parse parse = weir_options_parse(command, &options, sizeof options, argc, argv, paths, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    struct weir_err err = WEIR_ERR_NONE;
    bool fine = check_pipes(paths, n, &err) == 0 && weir_report_folders(paths, n, found, &err) == 0;
    int status = fine ? report_files(command, paths, n, &options) : weir_cli_fail(command, &err);
    for (int i = 0; i < n; i++)
        free(found[i]);
    return status;
}

const struct weir_command weir_cmd_report = {
    .name = "report",
    .summary = "print a log's tables, or a trace's GPU idle time, steps and averages",
    .group = WEIR_GROUP_MEASURE,
    .args = "LOG...|TRACE...",
    .min_args = 1,
    .max_args = FILES_MAX,
    .arg_paths = {WEIR_PATH_READ, WEIR_PATH_READ},
    .opts = report_opts,
    .n_opts = sizeof report_opts / sizeof *report_opts,
    .notes =
        "LOG is a file written by weir run --log or weir.watch, or a plain training log with stage tables "
        "(性能分析统计) or "
        "epoch lines (Epoch 3/10 总耗时: 12.34s); - reads standard input. The logs of several ranks are also compared: "
        "which rank is slow, and why. TRACE is a file recorded by weir "
        "run --profile or torch.profiler (.json or .json.gz); a folder stands for the newest trace in it. Its "
        "report shows what each GPU waited for while it was idle (launches, synchronising calls, data, "
        "allocations or other host code) and what helps, how the time of each step was spent, a table of "
        "averages, and the stages inside kernels that have clocks. To record 16 steps of a training loop: "
        "from torch.profiler import profile, schedule, tensorboard_trace_handler; with profile(schedule=schedule("
        "wait=5, warmup=2, active=16, repeat=1), on_trace_ready=tensorboard_trace_handler(\"trace\")) as prof: "
        "around the loop, and prof.step() "
        "after each batch.",
    .run = report,
};
