#include "analyze/trials/child.h"
#include "base/resources.h"
#include "base/terminal.h"
#include "cli/bench/bench_print.h"
#include "cli/bench/bench_setup.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "io/io.h"
#include "pipeline/gpu/gpu.h"
#include "weir/base.h"
#include "weir/decoder.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum { REPEATS_MAX = 100, MORE_ROUNDS = 6, TRIAL_PATIENCE_S = 120 };
static const double START_S = 0.25;           /* approximate start-up time of a trial's process */
static const uint64_t LINE_NS = 10000000000u; /* period of progress lines if stderr is not a terminal */

#define FIELD(field) .offset = offsetof(struct bench_options, field)

static const struct weir_opt bench_opts[] = {
    {"formats", WEIR_OPT_TEXT, FIELD(formats), "a,b", NULL, "formats to compare, such as as-is,hdf5:raw",
     .is_list = true, .topic = "Candidates",
     .details =
         "as-is is DATA itself. The others are a format of weir convert and a codec. The default is as-is and every "
         "format that can store the frames, both encoded and raw.",
     .is_common = true},
    {"num-workers", WEIR_OPT_TEXT, FIELD(num_workers), "1,2,4", "auto", "numbers of workers to compare",
     .is_common = true},
    {"prefetch", WEIR_OPT_TEXT, FIELD(prefetch), "1,2,4", "auto", "prefetch depths to compare"},
    {"batch-size", WEIR_OPT_TEXT, FIELD(batch_size), "N,N", "8", "batch sizes to compare", .is_common = true},
    {"io", WEIR_OPT_TEXT, FIELD(io), "a,b", "auto", "I/O engines to compare"},
    {"decoder", WEIR_OPT_TEXT, FIELD(decoder), "a,b", "auto", "decoders to compare"},
    {"device", WEIR_OPT_TEXT, FIELD(device), "a,b", "cpu", "devices to compare", .is_common = true},
    {"cache", WEIR_OPT_TEXT, FIELD(cache), "warm,cold", "warm,cold", "page cache states to compare",
     .details = "cold drops the files from the page cache before each trial.", .is_common = true},
    {"step-ms", WEIR_OPT_DOUBLE, FIELD(step_ms), "MS", "0", "duration of a simulated training step", 0, 1e7,
     .unit = "ms", .topic = "Trials", .is_common = true},
    {"repeats", WEIR_OPT_INT, FIELD(repeats), "N", "5", "min trials per candidate, at most six times that", 1,
     REPEATS_MAX, .unit = "trials"},
    {"min-seconds", WEIR_OPT_DOUBLE, FIELD(min_seconds), "S", "1", "measured time per trial, after a warm-up", 0.01,
     3600, .unit = "seconds"},
    {"max-minutes", WEIR_OPT_DOUBLE, FIELD(max_minutes), "MIN", "10", "time limit, including the time for copies", 0.01,
     1e5, .unit = "minutes", .is_common = true},
    {"sample", WEIR_OPT_INT, FIELD(sample), "N", "0", "episodes to copy, from the first; 0: all", 0, 1e9,
     .unit = "episodes", .topic = "Copies", .is_common = true},
    {"work-dir", WEIR_OPT_TEXT, FIELD(work_dir), "DIR", NULL, "folder for copies (default: a temporary folder)",
     .path = WEIR_PATH_WRITE_DATA,
     .details =
         "Copies in DIR are kept, and reused by later runs. The default is a folder in $TMPDIR or /tmp, which is "
         "removed at the end.",
     .is_common = true},
    {"max-copies", WEIR_OPT_BYTES, FIELD(max_copies), "BYTES", "auto", "max size of all copies, such as 10G", 0, 0,
     true,
     .details = "auto is 90 % of the free space of --work-dir, or half of that of a temporary folder; if that is in "
                "memory (tmpfs), also at most a quarter of the available memory."},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object", .topic = "Reports", .is_common = true},
    {"html", WEIR_OPT_TEXT, FIELD(html), "FILE.html", NULL, "the same as a web page that needs no network",
     .path = WEIR_PATH_WRITE},
    {"csv", WEIR_OPT_FLAG, FIELD(csv), NULL, NULL, "CSV output, one line per candidate"},
    {"wide", WEIR_OPT_FLAG, FIELD(wide), NULL, NULL, "all columns and rows of the tables, and no wrapping"},
};

static const struct weir_opt_set bench_sets[] = {
    {weir_loader_opts, offsetof(struct bench_options, loader), WEIR_FOR_BENCH | WEIR_FOR_DATA},
    {0},
};

/* ---- the options ---- */

static struct weir_grid_config grid_config(const struct bench_options *o)
{
    return (struct weir_grid_config){.num_workers = o->num_workers,
                                     .prefetch = o->prefetch,
                                     .batch_size = o->batch_size,
                                     .cache = o->cache,
                                     .io = o->io,
                                     .decoder = o->decoder,
                                     .device = o->device,
                                     .step_ms = o->step_ms,
                                     .seconds = o->min_seconds};
}

/* Rejects engines, decoders and devices that weir run would reject. Runs before any copies are made. */
static int check_names(const struct bench_options *o, struct weir_err *err)
{
    char values[WEIR_GRID_LIST][32];
    bool gpu = false;
    int n = weir_grid_split("device", o->device, values, err);
    for (int i = 0; i < n; i++) {
        int number, rc = weir_device_parse(values[i], &number, err);
        if (rc < 0) {
            weir_err_prefix(err, "--device");
            return rc;
        }
        gpu |= number >= 0;
    }
    n = weir_grid_split("io", o->io, values, err);
    for (int i = 0; i < n; i++)
        if (strcmp(values[i], "auto") != 0 && weir_io_check(values[i], err) < 0)
            return -EINVAL;
    n = weir_grid_split("decoder", o->decoder, values, err);
    for (int i = 0; i < n; i++)
        if (weir_loader_decoder_check(values[i], gpu, o->loader.on_warning, err) < 0)
            return -EINVAL;
    return 0;
}

static int check(const struct bench_options *o, struct weir_err *err)
{
    struct weir_grid_config config = grid_config(o);
    if (o->json && o->csv)
        return weir_err_set(err, -EINVAL, "--json and --csv: use only one of them");
    if (o->formats) {
        char values[WEIR_GRID_LIST][32];
        if (weir_grid_split("formats", o->formats, values, err) < 0)
            return -EINVAL;
    }
    int rc = weir_grid_check(&config, err);
    return rc < 0 ? rc : check_names(o, err);
}

/* ---- trials ---- */

struct bench {
    struct bench_setup setup;
    struct weir_grid grid;
    struct weir_trial_progress progress;
    uint64_t line_ns; /* time of the last progress line */
    /* The candidates being measured: the warm or the cold ones. */
    struct weir_candidate *candidates;
    int n;
    struct bench_rounds *rounds;
};

static void show(struct bench *b, const struct weir_candidate *candidate, int round, int position)
{
    const char *name = b->grid.formats[candidate->format].name, *state = bench_state(candidate);
    char text[160];
    if (*candidate->why) {
        fprintf(stderr, "%s%s %s failed: %s\n", weir_progress_erase(), name, state, candidate->why);
        return;
    }
    snprintf(text, sizeof text, "%s %s %.0f images/s", name, state,
             candidate->trials[candidate->n_trials - 1].measured.images_per_s);
    weir_trial_progress(&b->progress, text);
    if (!b->progress.terminal && weir_clock_monotonic_ns() - b->line_ns > LINE_NS) {
        fprintf(stderr, "round %d, trial %d of %d: %s\n", round, position + 1, b->n, text);
        b->line_ns = weir_clock_monotonic_ns();
    }
}

static int trial(void *user, int number, int round, int position)
{
    struct bench *b = user;
    struct weir_candidate *candidate = &b->candidates[number];
    const struct weir_child_config command = {.seconds = TRIAL_PATIENCE_S + 10 * b->setup.options->min_seconds,
                                              .interrupted = &weir_interrupted};
    struct weir_err err = WEIR_ERR_NONE;
    double cached;
    int rc = 0;
    if (!candidate->cold && !candidate->limit && weir_copy_warm(&b->setup.files[candidate->format], &cached, &err) < 0)
        snprintf(candidate->why, sizeof candidate->why, "%s", err.text);
    else
        rc = weir_candidate_trial(candidate, round, &command);
    if (rc == 0)
        show(b, candidate, round, position);
    return rc;
}

static bool takes_part(const void *user, int number)
{
    return !*((const struct bench *)user)->candidates[number].why;
}

static bool is_decided(void *user, int round)
{
    struct bench *b = user;
    int least = b->setup.options->repeats;
    b->rounds->rounds = round;
    return round >= least && weir_candidates_not_converged(b->candidates, b->n, least) == 0;
}

static int run_rounds(struct bench *b, int first, int end, uint64_t end_ns, struct bench_rounds *rounds)
{
    int least = b->setup.options->repeats;
    b->candidates = b->grid.candidates + first;
    b->n = end - first;
    b->rounds = rounds;
    const struct weir_rounds_config config = {.n = b->n,
                                              .rounds_max = MORE_ROUNDS * least,
                                              .end_ns = end_ns,
                                              .interrupted = &weir_interrupted,
                                              .trial = trial,
                                              .takes_part = takes_part,
                                              .is_decided = is_decided,
                                              .user = b};
    int rc = weir_rounds_run(&config);
    weir_progress_clear();
    rounds->not_converged = weir_candidates_not_converged(b->candidates, b->n, least);
    rounds->end = rc == -ETIME                 ? BENCH_TIME
                  : rc == -EINTR               ? BENCH_INTERRUPTED
                  : rounds->not_converged == 0 ? BENCH_CONVERGED
                                               : BENCH_ROUNDS;
    return rc == -ENOMEM ? rc : 0;
}

static void announce(const struct bench *b)
{
    const struct bench_options *o = b->setup.options;
    double trials = (double)o->repeats * b->grid.n, minutes = trials * (1.2 * o->min_seconds + START_S) / 60;
    char about[WEIR_TIME_LEFT];
    struct weir_wrap wrap;
    double left = ((double)b->setup.end_ns - (double)weir_clock_monotonic_ns()) / 60e9;
    int limits = 0;
    for (int i = 0; i < b->grid.n; i++)
        limits += b->grid.candidates[i].limit;
    weir_duration(60 * minutes, about);
    FILE *text = weir_wrap_open(&wrap, stderr, 2, NULL);
    fprintf(text, "%d formats, %d candidates and %d more that load from memory; at least %.0f trials, about %s\n",
            b->grid.n_formats, b->grid.n - limits, limits, trials, about);
    if (minutes > left)
        fprintf(text, "only %.1f minutes are left; specify fewer --formats or settings, or raise --max-minutes\n",
                left > 0 ? left : 0);
    weir_wrap_close(&wrap);
}

/* Measures warm candidates first, because cold trials drop the files from the page cache. */
static int measure(struct bench *b, struct bench_results *results)
{
    uint64_t now_ns = weir_clock_monotonic_ns(), end_ns = b->setup.end_ns, half_ns = end_ns;
    if (b->grid.n > b->grid.n_warm && end_ns > now_ns)
        half_ns = now_ns + (end_ns - now_ns) / 2;
    announce(b);
    b->line_ns = now_ns;
    weir_trial_progress_begin(&b->progress, b->setup.options->repeats * b->grid.n, end_ns, NULL);
    int rc = run_rounds(b, 0, b->grid.n_warm, half_ns, &results->warm);
    return rc < 0 ? rc : run_rounds(b, b->grid.n_warm, b->grid.n, end_ns, &results->cold);
}

static void describe(const struct bench_results *results, const struct weir_command *command, bool json, FILE *out)
{
    struct weir_document document;
    weir_document_open(&document, json ? &weir_json_writer : &weir_terminal_writer, out);
    bench_describe(&document, results, command);
    weir_document_close(&document);
}

static void print(const struct bench_results *results, const struct weir_command *command, FILE *page)
{
    const struct bench_options *o = results->setup->options;
    if (o->csv && !o->json)
        bench_print_csv(results, stdout);
    else
        describe(results, command, o->json, stdout);
    if (page)
        describe(results, command, true, page);
}

static int bench(const struct weir_command *command, struct bench *b, const struct bench_options *o, const char *data,
                 struct weir_err *err)
{
    uint64_t begin_ns = weir_clock_monotonic_ns();
    struct bench_results results = {.setup = &b->setup, .grid = &b->grid};
    struct weir_grid_config config = grid_config(o);
    struct weir_output_page page = {0};
    int rc = weir_bench_setup_open(&b->setup, command, o, data, &weir_interrupted, err);
    if (rc < 0)
        return rc;
    config.formats = b->setup.formats;
    config.n_formats = b->setup.n_formats;
    config.common = (const char *const *)b->setup.common.argv;
    config.source_only = (const char *const *)b->setup.source_only.argv;
    rc = weir_output_page_open(&page, o->html, err);
    if (rc == 0)
        rc = weir_grid_open(&b->grid, &config, err);
    if (rc == 0) {
        rc = measure(b, &results);
        if (rc < 0)
            weir_err_set(err, rc, "out of memory");
        weir_advise(&b->grid, o->step_ms, weir_cores_usable(), &results.advice);
        results.took_s = (double)(weir_clock_monotonic_ns() - begin_ns) / 1e9;
        print(&results, command, page.json);
        weir_grid_close(&b->grid);
    }
    int page_rc = weir_output_page_close(&page, o->html, err);
    weir_bench_setup_close(&b->setup);
    rc = rc < 0 ? rc : page_rc;
    return rc < 0 ? rc : results.advice.best ? 0 : -ENODATA;
}

static int bench_main(const struct weir_command *command, int argc, char **argv)
{
    static struct bench b; /* static because it is too large for the stack */
    struct bench_options o;
    const char *data;
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &data, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    struct weir_err err = WEIR_ERR_NONE;
    if (check(&o, &err) < 0) {
        weir_cli_fail(command, &err);
        return WEIR_EXIT_USAGE;
    }
    weir_terminal_set_wide(o.wide);
    weir_catch_interrupts();
    int rc = bench(command, &b, &o, data, &err);
    if (rc < 0 && err.code)
        weir_cli_fail(command, &err);
    if (rc == -EINVAL)
        return WEIR_EXIT_USAGE;
    return weir_interrupted ? weir_exit_by_signal(weir_interrupted) : rc < 0;
}

const struct weir_command weir_cmd_bench = {
    .name = "bench",
    .summary = "compare dataset formats and settings",
    .group = WEIR_GROUP_IMPROVE,
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .arg_paths = {WEIR_PATH_READ},
    .opts = bench_opts,
    .n_opts = sizeof bench_opts / sizeof bench_opts[0],
    .sets = bench_sets,
    .takes_config = true,
    .examples =
        "weir bench episodes/\tEvery format that can store the frames, warm and cold, in ten minutes.\n"
        "weir bench episodes/ --formats as-is --num-workers 1,2,4,8 --cache warm\tSettings only, without copies.\n"
        "weir bench episodes/ --formats as-is,hdf5:raw,packed:jpeg --sample 20 --json\tThree formats, with copies "
        "of 20 episodes.\n",
    .notes = "weir convert makes the copies. weir run measures the candidates in rounds, with one process per "
             "trial. A ratio compares trials of the same round. Two candidates tie if the confidence interval "
             "of their ratio contains 1. Ctrl-C stops the measurement and prints the results so far.",
    .run = bench_main,
};
