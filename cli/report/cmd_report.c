#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/report/report_command.h"
#include "prof/trace/trace_read.h"
#include "weir/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 64 };

struct report_options {
    int lang;
    bool json, wide;
    const char *html, *sort_by, *export_stacks, *export_clocks;
    int row_limit, by_stack;
    bool by_shape, top_level;
};

#define FIELD(member) .offset = offsetof(struct report_options, member)

static const struct weir_opt report_opts[] = {
    {"lang", WEIR_OPT_ENUM, FIELD(lang), "en|zh", "en", "language of the epoch line and the stage table"},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object"},
    {"wide", WEIR_OPT_FLAG, FIELD(wide), NULL, NULL, "all columns and rows of the tables, and no wrapping"},
    {"html", WEIR_OPT_TEXT, FIELD(html), "FILE.html", NULL, "the same as a web page that needs no network",
     .path = WEIR_PATH_WRITE,
     .details =
         "For logs of weir run, weir train and weir.watch, and plain logs with stage tables; the logs of all ranks "
         "make one page."},
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

static void copy_to_stdout(FILE *aside)
{
    char block[16384];
    size_t n;
    rewind(aside);
    while ((n = fread(block, 1, sizeof block, aside)) > 0)
        fwrite(block, 1, n, stdout);
}

/* Reports the logs one after the other, then compares those of several ranks. */
static int describe_logs(struct weir_document *document, const char *const *paths, int n,
                         const struct report_options *o, const struct weir_report_ranks *ranks, struct weir_err *err)
{
    int code = 0;
    if (n == 1)
        return weir_report_one_log(document, paths[0], (enum weir_lang)o->lang, err);
    weir_document_fact(document, "kind", "logs");
    weir_document_begin(document, "logs", '[');
    for (int i = 0, printed = 0; i < n && code == 0; i++) {
        FILE *out = weir_document_stream(document);
        if (weir_report_ranks_skips(ranks, i))
            continue;
        if (out)
            fprintf(out, "%s%s\n", printed++ > 0 ? "\n" : "", paths[i]);
        weir_document_begin(document, NULL, '{');
        code = weir_report_one_log(document, paths[i], (enum weir_lang)o->lang, err);
        weir_document_end(document, '}');
    }
    weir_document_end(document, ']');
    if (code == 0)
        weir_report_ranks_describe(document, ranks);
    return code;
}

static int report_logs(struct weir_document *document, const char *const *paths, int n, const struct report_options *o,
                       struct weir_err *err)
{
    struct weir_report_ranks ranks;
    int code = weir_report_ranks_read(&ranks, paths, n, err);
    if (code == 0)
        code = describe_logs(document, paths, n, o, &ranks, err);
    if (o->html && code == 0)
        code = weir_report_page(o->html, paths, n, (enum weir_lang)o->lang, &ranks, err);
    weir_report_ranks_free(&ranks);
    return code;
}

static int report_traces(struct weir_document *document, const char *const *paths, int n,
                         const struct report_options *o, struct weir_err *err)
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
    int code = 0;
    weir_document_fact(document, "kind", "traces");
    weir_document_begin(document, "traces", '[');
    for (int i = 0; i < n && code == 0; i++)
        code = weir_report_trace(document, paths[i], &config, n > 1, err);
    weir_document_end(document, ']');
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
    else if (traces > 0 && o->html)
        weir_err_set(err, -EINVAL, "--html is for logs; a log of weir run --profile DIR shows its trace too");
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
    struct weir_document document;
    weir_document_open(&document, options->json ? &weir_json_writer : &weir_terminal_writer, aside);
    if (code == 0)
        code = traces == n ? report_traces(&document, paths, n, options, &err)
                           : report_logs(&document, paths, n, options, &err);
    if (code == 0)
        weir_document_close(&document);
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
        "LOG is a file written by weir run --log or weir.watch, a plain training log with stage tables (性能分析统计) "
        "or epoch lines (Epoch 3/10 总耗时: 12.34s), or the output of a well-known training program, such as LeRobot; "
        "- reads standard input. The logs of several ranks are also compared: "
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
