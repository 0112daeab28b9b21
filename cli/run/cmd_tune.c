#include "analyze/trials/child.h"
#include "analyze/trials/copies.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/run/tune_print.h"
#include "origin/url.h"
#include "weir/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(field) .offset = offsetof(struct tune_options, field)

static const struct weir_opt own_options[] = {
    {"max-memory", WEIR_OPT_BYTES, FIELD(max_memory), "BYTES", "0", "limit on resident memory, such as 2G; 0: none",
     .topic = "Search", .is_common = true},
    {"max-cpu", WEIR_OPT_INT, FIELD(max_cpu), "N", "0", "max number of cores; 0: all usable cores", 0, 4096,
     .unit = "cores", .is_common = true},
    {"max-cache", WEIR_OPT_BYTES, FIELD(max_cache), "BYTES", "auto", "max size of the decode cache; 0: no cache", 0, 0,
     true, .details = "auto is half of the free memory.", .is_common = true},
    {"min-seconds", WEIR_OPT_DOUBLE, FIELD(min_seconds), "S", "0.5", "measured time per trial, after a warm-up", 0.01,
     3600, .unit = "seconds"},
    {"max-minutes", WEIR_OPT_DOUBLE, FIELD(max_minutes), "MIN", "5", "time limit", 0.01, 1e5, .unit = "minutes",
     .is_common = true},
    {"out", WEIR_OPT_TEXT, FIELD(out), "FILE", NULL, "settings file to write, for --config", .path = WEIR_PATH_WRITE,
     .is_common = true},
    {"log", WEIR_OPT_TEXT, FIELD(log), "FILE.jsonl", NULL, "log of the trials as JSON lines", .path = WEIR_PATH_WRITE,
     .is_common = true},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object", .is_common = true},
    {"html", WEIR_OPT_TEXT, FIELD(html), "FILE.html", NULL, "the result as a web page that needs no network",
     .path = WEIR_PATH_WRITE},
    {"wide", WEIR_OPT_FLAG, FIELD(wide), NULL, NULL, "all columns and rows of the tables, and no wrapping"},
};
const struct weir_opt_set weir_tune_sets[] = WEIR_RUN_SETS(0, WEIR_FOR_TUNE);

/* ---- callbacks ---- */

static void log_trial(void *user, const struct weir_tune_setting *setting, const struct weir_trial *trial,
                      const char *why)
{
    struct tune_session *s = user;
    struct weir_document document;
    char text[192];
    weir_tune_describe(&s->trials.tune.space, setting, text, sizeof text);
    weir_trial_progress(&s->progress, text);
    if (!s->log)
        return;
    weir_document_open(&document, &weir_line_writer, s->log);
    weir_document_fact(&document, "type", "turn");
    weir_document_fact(&document, "setting", text);
    weir_document_fact(&document, "num_workers", setting->workers);
    weir_document_fact(&document, "prefetch", setting->prefetch);
    weir_document_fact(&document, "io", trial->used.io);
    weir_document_fact(&document, "round", s->trials.tune.rounds);
    weir_document_fact(&document, "seconds", trial->measured.seconds);
    weir_document_fact(&document, "images_per_s", trial->measured.images_per_s);
    weir_document_fact(&document, "cpu_s", trial->cpu_s);
    weir_document_fact(&document, "peak_rss_bytes", trial->measured.peak_rss_bytes);
    weir_document_fact(&document, "error", why);
    weir_document_close(&document);
}

static void note(void *user, const char *line)
{
    const struct tune_session *s = user;
    struct weir_wrap wrap;
    weir_progress_clear();
    fprintf(weir_wrap_open(&wrap, s->out, 2, NULL), "%s\n", line);
    weir_wrap_close(&wrap);
}

static void step(void *user, const char *line)
{
    struct tune_session *s = user;
    struct weir_wrap wrap;
    weir_progress_clear();
    fprintf(weir_wrap_open(&wrap, s->out, WEIR_WRAP_COLUMN, NULL), "%3d  %s\n", s->n_lines + 1, line);
    weir_wrap_close(&wrap);
    fflush(s->out);
    if (s->n_lines < TUNE_LINES && (s->lines[s->n_lines] = strdup(line)))
        s->n_lines++;
}

/* ---- the command ---- */

/* Lists the dataset's files, and reads them into the page cache if memory has room for them. */
static int read_source(struct tune_session *s, const struct weir_command *command, struct weir_err *err)
{
    const struct weir_loader_config *loader = &s->options->run.loader;
    struct weir_path_list files = {0};
    uint64_t bytes = 0;
    s->cached = -1;
    int rc = weir_run_source(command, s->options, loader, s->data, NULL, &files, &bytes, err);
    s->trials.tune.space.file_bytes = (double)bytes;
    if (rc == 0 && !loader->direct && !weir_url_is(s->data))
        rc = weir_copy_warm(&files, &s->cached, err);
    weir_path_list_free(&files);
    return rc;
}

static int open_session(struct tune_session *s, const struct weir_command *command, struct weir_err *err)
{
    const struct tune_options *o = s->options;
    s->config = (struct weir_tune_config){.data = s->data,
                                          .loader = &o->run.loader,
                                          .options = &s->words,
                                          .max_memory = o->max_memory,
                                          .max_cache = o->max_cache,
                                          .max_cpu = o->max_cpu,
                                          .min_seconds = o->min_seconds,
                                          .end_ns = s->begin_ns + (uint64_t)(o->max_minutes * 60e9),
                                          .interrupted = &weir_interrupted,
                                          .step = step,
                                          .note = note,
                                          .trial = log_trial,
                                          .user = s};
    weir_words_add_options(&s->words, weir_loader_opts, WEIR_FOR_TUNE, &o->run.loader);
    weir_words_add_options(&s->words, weir_run_opts, WEIR_FOR_TUNE, &o->run);
    if (s->words.failed)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = weir_tune_trials_open(&s->trials, &s->config, err);
    if (rc == 0)
        rc = read_source(s, command, err);
    if (rc == 0 && o->out)
        rc = weir_gz_open(&s->settings, o->out, WEIR_GZ_PLAIN, err);
    if (rc == 0)
        rc = weir_output_page_open(&s->page, o->html, err);
    return rc < 0 ? rc : weir_output_open(&s->log, o->log, err);
}

/* Runs the search and prints its result. A search that ends early also has a result, but a different exit status. */
static int search(const struct weir_command *command, struct tune_session *s, struct weir_err *err)
{
    struct weir_document document;
    weir_trial_progress_begin(&s->progress, 0, s->config.end_ns, "--max-minutes");
    tune_print_head(s, s->out);
    int rc = weir_tune_run(&s->trials.tune, err);
    weir_progress_clear();
    if (s->trials.tune.chosen < 0)
        return rc;
    weir_document_open(&document, s->options->json ? &weir_json_writer : &weir_terminal_writer, stdout);
    tune_describe(&document, s, command);
    if (s->page.json) {
        weir_document_open(&document, &weir_json_writer, s->page.json);
        tune_describe(&document, s, command);
    }
    if (rc == -ENOMEM)
        return weir_err_set(err, rc, "out of memory");
    return s->options->out ? tune_write_config(s, err) : 0;
}

static int tune(const struct weir_command *command, struct tune_session *s, struct weir_err *err)
{
    int rc = open_session(s, command, err);
    if (rc == 0)
        rc = search(command, s, err);
    int closed = weir_output_close(s->options->log, s->log, err);
    int page_closed = weir_output_page_close(&s->page, s->options->html, err);
    weir_gz_discard(&s->settings);
    weir_tune_trials_close(&s->trials);
    weir_words_free(&s->words);
    for (int i = 0; i < s->n_lines; i++)
        free(s->lines[i]);
    return rc < 0 ? rc : closed < 0 ? closed : page_closed;
}

static int tune_main(const struct weir_command *command, int argc, char **argv)
{
    static struct tune_session session; /* static because it is too large for the stack */
    struct tune_options o;
    const char *data;
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &data, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    struct weir_err err = WEIR_ERR_NONE;
    session = (struct tune_session){
        .options = &o, .data = data, .out = o.json ? stderr : stdout, .begin_ns = weir_clock_monotonic_ns()};
    weir_terminal_set_wide(o.wide);
    weir_catch_interrupts();
    int rc = tune(command, &session, &err);
    if (rc < 0 && !weir_interrupted)
        weir_cli_fail(command, &err);
    if (rc == -EINVAL)
        return WEIR_EXIT_USAGE;
    return weir_interrupted ? weir_exit_by_signal(weir_interrupted) : rc < 0;
}

const struct weir_command weir_cmd_tune = {
    .name = "tune",
    .summary = "find the best loader settings for this machine",
    .group = WEIR_GROUP_IMPROVE,
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .arg_paths = {WEIR_PATH_READ},
    .opts = own_options,
    .n_opts = sizeof own_options / sizeof own_options[0],
    .takes_config = true,
    .sets = weir_tune_sets,
    .examples = "weir tune episodes/ --step-ms 20\tThe cheapest settings that keep up with a training step of 20 ms.\n"
                "weir tune episodes/ --max-memory 4G --max-cpu 8 --out node.conf\tSearch within limits, and a settings "
                "file for --config.\n"
                "weir run episodes/ --config node.conf\tA run with the settings found.\n",
    .notes = "weir run measures the settings, with one process per trial. Settings are skipped if the first "
             "trial shows that they cannot help. Finalists are measured in rounds. Among those within 3 % of "
             "the fastest, the cheapest is chosen: it has the fewest workers, then the least memory, then the "
             "simplest engine. Ctrl-C stops the search and prints the best setting so far.",
    .run = tune_main,
};
