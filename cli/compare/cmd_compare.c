#include "analyze/compare/compared.h"
#include "analyze/compare/comparison.h"
#include "analyze/trials/child.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/report/report_command.h"
#include "prof/trace/trace_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 16, ARGS_MAX = 512 };

struct compare_options {
    double fail_if_slower;
    int repeat;
    bool json, wide;
    const char *html;
};

#define FIELD(member) .offset = offsetof(struct compare_options, member)

static const struct weir_opt compare_opts[] = {
    {"fail-if-slower", WEIR_OPT_DOUBLE, FIELD(fail_if_slower), "PERCENT", "100",
     "max slowdown; above it, the exit status is 4", 0, 100, .unit = "%",
     .details = "Applies to each file. A slowdown within the noise does not count. With too few measurements, the exit "
                "status is 1."},
    {"repeat", WEIR_OPT_INT, FIELD(repeat), "N", "0", "runs of two commands, in turns; 0: files", 0, 1000,
     .unit = "runs",
     .details = "The commands follow: -- COMMAND -- COMMAND. A run is one measurement: the medians of what the command "
                "prints, if weir compare reads that (weir run --log -), else its duration. 5 runs or more are needed."},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object"},
    {"html", WEIR_OPT_TEXT, FIELD(html), "FILE.html", NULL, "the same as a web page that needs no network",
     .path = WEIR_PATH_WRITE},
    {"wide", WEIR_OPT_FLAG, FIELD(wide), NULL, NULL, "all columns and rows of the tables, and no wrapping"},
};

static int read_file(struct weir_compared *compared, const char *path, struct weir_err *err)
{
    FILE *in = NULL;
    int code = weir_trace_recognised(path) ? 0 : weir_report_open_log(path, &in, err);
    *compared = (struct weir_compared){.path = path};
    if (code == 0)
        code = weir_compared_read(compared, path, in, err);
    if (in)
        fclose(in);
    return code;
}

static bool limits(const struct compare_options *o)
{
    return o->fail_if_slower < 100;
}

/* Returns the exit status of a comparison, and prints a line on stderr if it is not 0. */
static int judge(const struct weir_command *command, const struct weir_comparison *c, const struct compare_options *o)
{
    struct weir_err err = WEIR_ERR_NONE;
    double slower = 100 * weir_comparison_slower(c);
    if (!limits(o) || c->whole.kind == WEIR_DELTA_NOISE)
        return WEIR_EXIT_SUCCESS;
    if (c->whole.kind == WEIR_DELTA_UNKNOWN) {
        weir_err_set(&err, -ENODATA,
                     "--fail-if-slower: %s has too few measurements to judge (%d, compared with %d of %s; %d needed)",
                     c->after->path, c->whole.n_after, c->whole.n_before, c->before->path, WEIR_DELTA_LEAST);
        return weir_cli_fail(command, &err);
    }
    if (!(slower > o->fail_if_slower))
        return WEIR_EXIT_SUCCESS;
    weir_err_set(&err, -EBUSY, "%s is %.1f %% slower than %s, above --fail-if-slower %.12g %%", c->after->path, slower,
                 c->before->path, o->fail_if_slower);
    weir_cli_fail(command, &err);
    return WEIR_EXIT_SLOWER;
}

static void describe(const struct weir_document_writer *writer, FILE *out, const struct weir_comparison *comparisons,
                     int n, bool all)
{
    struct weir_document document;
    weir_document_open(&document, writer, out);
    weir_document_begin(&document, "comparisons", '[');
    for (int i = 0; i < n; i++) {
        fputs(i > 0 ? "\n" : "", weir_document_text(&document, NULL, 0));
        weir_document_begin(&document, NULL, '{');
        weir_comparison_describe(&document, &comparisons[i], all);
        weir_document_end(&document, '}');
    }
    weir_document_end(&document, ']');
    weir_document_close(&document);
}

static int write_page(const char *path, const struct weir_comparison *comparisons, int n, struct weir_err *err)
{
    struct weir_output_page page;
    int rc = weir_output_page_open(&page, path, err);
    if (page.json)
        describe(&weir_json_writer, page.json, comparisons, n, true);
    int closed = weir_output_page_close(&page, path, err);
    return rc < 0 ? rc : closed;
}

/* Compares each later file with the first. Nothing is printed unless all can be compared. Returns the exit status. */
static int show(const struct weir_command *command, const struct weir_comparison *comparisons, int n,
                const struct compare_options *o)
{
    struct weir_err err = WEIR_ERR_NONE;
    int status = WEIR_EXIT_SUCCESS;
    describe(o->json ? &weir_json_writer : &weir_terminal_writer, stdout, comparisons, n, o->wide);
    for (int i = 0; i < n; i++) {
        int one = judge(command, &comparisons[i], o);
        status = one > status ? one : status;
    }
    if (write_page(o->html, comparisons, n, &err) < 0)
        return weir_cli_fail(command, &err);
    return status;
}

static int compare_files(const struct weir_command *command, const char *const *paths, int n,
                         const struct compare_options *o)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_compared files[FILES_MAX] = {{0}};
    struct weir_comparison comparisons[FILES_MAX] = {{0}};
    int code = 0;
    for (int i = 0; i < n && code == 0; i++)
        code = read_file(&files[i], paths[i], &err);
    for (int i = 1; i < n && code == 0; i++)
        code = weir_comparison_make(&comparisons[i - 1], &files[0], &files[i], &err);
    int status = code < 0 ? weir_cli_fail(command, &err) : show(command, comparisons, n - 1, o);
    for (int i = 0; i < n; i++) {
        weir_comparison_free(&comparisons[i]);
        weir_compared_free(&files[i]);
    }
    return status;
}

/* ---- --repeat ---- */

static void show_run(const struct weir_repeat *repeat, int side, int run, double seconds)
{
    fprintf(stderr, "weir compare: run %d of %d of the %s command: %.2f s\n", run, repeat->runs,
            side == 0 ? "first" : "second", seconds);
}

/* Finds the second command. Returns its index, or 0 if there are not two commands. */
static int split_commands(const char **args, int n)
{
    for (int i = 1; i + 1 < n; i++)
        if (strcmp(args[i], "--") == 0) {
            args[i] = NULL;
            return i + 1;
        }
    return 0;
}

static int repeat(const struct weir_command *command, const char **args, int n, const struct compare_options *o)
{
    struct weir_comparison comparison = {0};
    int second = split_commands(args, n);
    if (second == 0 || second == n) {
        weir_usage_error(command, "--repeat needs two commands: weir compare --repeat %d -- COMMAND -- COMMAND",
                         o->repeat);
        return WEIR_EXIT_USAGE;
    }
    weir_catch_interrupts();
    struct weir_repeat repeat = {
        .runs = o->repeat, .argv = {args, args + second}, .interrupted = &weir_interrupted, .done = show_run};
    int code = weir_repeat_run(&repeat);
    if (code == 0)
        code = weir_comparison_make(&comparison, &repeat.sides[0], &repeat.sides[1], &repeat.err);
    int status = weir_interrupted ? weir_exit_by_signal(weir_interrupted)
                 : code < 0       ? weir_cli_fail(command, &repeat.err)
                                  : show(command, &comparison, 1, o);
    weir_comparison_free(&comparison);
    weir_repeat_free(&repeat);
    return status;
}

/* Returns -EINVAL after printing a usage error, or 0. */
static int check_files(const struct weir_command *command, const char *const *paths, int n)
{
    int standard_inputs = 0;
    for (int i = 0; i < n; i++)
        standard_inputs += strcmp(paths[i], "-") == 0;
    if (standard_inputs > 1)
        return weir_usage_error(command, "- is given %d times; standard input can be read once", standard_inputs);
    return n > FILES_MAX ? weir_usage_error(command, "%d files; at most %d can be compared", n, FILES_MAX) : 0;
}

static int compare(const struct weir_command *command, int argc, char **argv)
{
    struct compare_options options;
    const char *args[ARGS_MAX + 1] = {NULL};
    int n;
    enum weir_parse parse = weir_options_parse(command, &options, sizeof options, argc, argv, args, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    weir_terminal_set_wide(options.wide);
    if (options.repeat > 0)
        return repeat(command, args, n, &options);
    if (check_files(command, args, n) < 0)
        return WEIR_EXIT_USAGE;
    return compare_files(command, args, n, &options);
}

const struct weir_command weir_cmd_compare = {
    .name = "compare",
    .summary = "compare logs or traces: what changed beyond the noise",
    .group = WEIR_GROUP_MEASURE,
    .args = "BEFORE AFTER...",
    .min_args = 2,
    .max_args = ARGS_MAX,
    .arg_paths = {WEIR_PATH_READ, WEIR_PATH_READ},
    .opts = compare_opts,
    .n_opts = sizeof compare_opts / sizeof *compare_opts,
    .examples = "weir compare before.jsonl after.jsonl\tlogs of weir run --every 1 --log\n"
                "weir compare before.jsonl after.jsonl --fail-if-slower 5%\ta check in CI",
    .notes = "BEFORE and AFTER are files of one kind: logs of weir run or weir.watch, the output of --json of weir "
             "run, bench or tune, traces, or training logs that weir report reads; - reads standard input. Each AFTER "
             "is compared with BEFORE: images/s (or the time of a step or epoch), data wait, the time of each stage, "
             "the verdict, and the settings and machines that differ. One measurement is an epoch of a run, a run with"
             " --seconds, a line of a training program, a trial of bench or tune, or a step of a trace. The first of a"
             " run does not count if 5 others remain. To compare stages, run with --every 1. A change counts if Mann-"
             "Whitney's U test finds it (p < 0.01) and it is at least 1 %; otherwise the table shows ~. Machines "
             "drift, so measure before and after in turns: weir compare --repeat 6 -- weir run DATA --seconds 5 --log "
             "- -- weir run DATA --seconds 5 --log - --num-workers 4.",
    .run = compare,
};
