#include "cli/run/tune_print.h"
#include "base/fields.h"
#include "base/files.h"

#include "analyze/trials/child.h"
#include "analyze/verdict/verdict.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/options.h"
#include "cli/sysinfo.h"
#include "weir/base.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

enum { BAR = 30 };
#define CACHE_EPOCHS "3" /* epochs of the proposed run with a decode cache */

void tune_print_head(const struct tune_session *s, FILE *out)
{
    const struct weir_tune_space *space = &s->trials.tune.space;
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    char data[1024];
    snprintf(data, sizeof data, "%s", s->data);
    weir_text_printable(data);
    fprintf(text, "%s: %s", data, weir_size(space->file_bytes).text);
    if (s->cached >= 0)
        fprintf(text, ", %.0f %% in the page cache", 100 * s->cached);
    fprintf(text, "; %d of %d usable cores; engines:", space->cores, s->trials.cores);
    for (int i = 0; i < space->n_engines; i++)
        fprintf(text, " %s", space->engines[i]);
    fprintf(text, "; trials of %.2g s\n", s->trials.seconds);
    weir_wrap_close(&wrap);
    fflush(out);
}

/* ---- the curve ---- */

/* Returns the fastest candidate with this number of workers and no decode cache; -1 if none succeeded. */
static int best_with(const struct weir_tune *tune, int workers)
{
    int best = -1;
    double most = 0;
    for (int i = 0; i < tune->n; i++) {
        const struct weir_tune_candidate *c = &tune->candidates[i];
        struct weir_interval rate;
        weir_tune_interval(tune, i, &rate);
        if (c->setting.workers == workers && c->setting.cache_bytes <= 0 && !*c->measured.why && rate.median > most) {
            best = i;
            most = rate.median;
        }
    }
    return best;
}

static double rate_with(const struct weir_tune *tune, int workers)
{
    struct weir_interval rate = {0};
    int best = best_with(tune, workers);
    if (best >= 0)
        weir_tune_interval(tune, best, &rate);
    return rate.median;
}

/* The curve contains powers of two, and other numbers of workers that were measured. */
static bool in_curve(const struct weir_tune *tune, int workers)
{
    return best_with(tune, workers) >= 0 || ((workers & (workers - 1)) == 0 && workers <= tune->space.cores);
}

static void print_curve(const struct weir_tune *tune, FILE *out)
{
    double most = 0;
    for (int w = 1; w <= tune->space.workers_max; w++)
        most = fmax(most, rate_with(tune, w));
    fprintf(out, "\nworkers  images/s\n");
    for (int w = 1; w <= tune->space.workers_max; w++) {
        double rate = rate_with(tune, w), ceiling = weir_tune_ceiling(tune, w);
        if (!in_curve(tune, w))
            continue;
        if (rate > 0)
            fprintf(out, "%7d  %8.0f  %.*s%s\n", w, rate, (int)lround(BAR * rate / most),
                    "##############################",
                    w == tune->candidates[tune->chosen].setting.workers ? " <- chosen" : "");
        else if (isfinite(ceiling))
            fprintf(out, "%7d  %8s  not measured (at most %.0f)\n", w, "", ceiling);
        else
            fprintf(out, "%7d  %8s  not measured\n", w, "");
    }
}

/* ---- the result ---- */

static void add_word(void *user, const char *name, const char *value)
{
    weir_words_add_option(user, name, value);
}

static const struct weir_tune_setting *chosen(const struct tune_session *s)
{
    return &s->trials.tune.candidates[s->trials.tune.chosen].setting;
}

/* Passes the options of the chosen setting to `put`. The first epoch only fills a decode cache, so a run needs more. */
static void put_chosen(const struct tune_session *s, weir_tune_put *put, void *user)
{
    weir_tune_setting_options(&s->trials.tune.space, chosen(s), put, user);
    if (chosen(s)->cache_bytes > 0)
        put(user, "num-epochs", CACHE_EPOCHS);
}

/* Builds the command line of the chosen setting. */
static struct weir_words command_words(const struct tune_session *s)
{
    struct weir_words words = {0};
    weir_words_add(&words, "weir");
    weir_words_add(&words, "run");
    weir_words_add(&words, s->data);
    weir_words_add_all(&words, (const char *const *)s->words.argv);
    put_chosen(s, add_word, &words);
    return words;
}

static void print_command(const struct tune_session *s, FILE *out)
{
    struct weir_words words = command_words(s);
    for (int i = 0; i < words.n; i++) {
        if (i > 0)
            fputc(' ', out);
        weir_shell_word(out, words.argv[i]);
    }
    fputc('\n', out);
    weir_words_free(&words);
}

static double took_s(const struct tune_session *s)
{
    return (double)(weir_clock_monotonic_ns() - s->begin_ns) / 1e9;
}

static void print_noise(const struct weir_tune *tune, FILE *out)
{
    struct weir_wrap wrap;
    if (!weir_tune_is_noisy(tune))
        return;
    fprintf(weir_wrap_open(&wrap, out, 2, NULL),
            "noise: identical trials differ by up to %.0f %%, so no choice is certain within 3 %%; stop other "
            "processes, then run weir tune again\n",
            100 * tune->noise);
    weir_wrap_close(&wrap);
}

static void print_chosen(const struct tune_session *s, FILE *out)
{
    const struct weir_tune *tune = &s->trials.tune;
    const struct weir_tune_candidate *c = &tune->candidates[tune->chosen];
    struct weir_interval rate;
    struct weir_wrap wrap;
    char setting[192];
    fputc('\n', out);
    print_noise(tune, out);
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    wrap.highlight = true;
    weir_tune_describe(&tune->space, &c->setting, setting, sizeof setting);
    weir_tune_interval(tune, tune->chosen, &rate);
    fprintf(text, "chosen: %s: %.0f images/s (%.0f to %.0f), peak memory %s", setting, rate.median, rate.least,
            rate.most, weir_size(weir_candidate_median(&c->measured, weir_trial_peak_bytes)).text);
    if (c->setting.cache_bytes > 0)
        fputs("; from the second epoch on, because the first fills the cache", text);
    if (tune->ratio.n > 0)
        fprintf(text, "; %.3f of the rate of the fastest setting", tune->ratio.median);
    fputc('\n', text);
    weir_wrap_close(&wrap);
}

static void print_end(const struct tune_session *s, FILE *out)
{
    const struct weir_tune *tune = &s->trials.tune;
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    fprintf(text, "\n%d settings, %d trials, %.1f s", tune->n, tune->trials, took_s(s));
    if (tune->noise > 0)
        fprintf(text, "; noise: trials of the same setting differ by up to %.1f %%", 100 * tune->noise);
    fputc('\n', text);
    weir_wrap_close(&wrap);
    if (tune->end == WEIR_TUNE_INTERRUPTED)
        fputs("interrupted: this is the best setting so far\n", out);
    if (tune->end == WEIR_TUNE_TIME)
        fputs("--max-minutes reached: this is the best setting so far\n", out);
}

void tune_print(const struct tune_session *s, FILE *out)
{
    print_chosen(s, out);
    print_curve(&s->trials.tune, out);
    print_end(s, out);
    print_command(s, out);
}

/* ---- JSON ---- */

static void write_setting(struct weir_json *json, const struct weir_tune_space *space,
                          const struct weir_tune_setting *setting)
{
    weir_json_object(json, "setting");
    weir_json_int(json, "num_workers", setting->workers);
    weir_json_int(json, "prefetch", setting->prefetch);
    weir_json_text(json, "io", setting->engine >= 0 ? space->engines[setting->engine] : "auto");
    weir_json_known(json, "io_depth", setting->depth > 0 ? setting->depth : -1);
    weir_json_text(json, "decoder", setting->decoder >= 0 ? space->decoders[setting->decoder] : "auto");
    weir_json_double(json, "decode_cache_bytes", setting->cache_bytes);
    weir_json_end(json, '}');
}

static void write_candidate(struct weir_json *json, const struct weir_tune *tune, int i)
{
    const struct weir_tune_candidate *c = &tune->candidates[i];
    struct weir_interval rate;
    weir_tune_interval(tune, i, &rate);
    weir_json_object(json, NULL);
    write_setting(json, &tune->space, &c->setting);
    weir_json_known(json, "images_per_s", rate.n > 0 ? rate.median : -1);
    weir_json_known(json, "peak_rss_bytes", weir_candidate_median(&c->measured, weir_trial_peak_bytes));
    weir_json_text(json, "error", *c->measured.why ? c->measured.why : NULL);
    weir_json_array(json, "turns");
    for (int t = 0; t < c->measured.n_trials; t++) {
        const struct weir_trial *trial = &c->measured.trials[t];
        weir_json_object(json, NULL);
        weir_json_int(json, "round", MAX(trial->round, 0));
        weir_json_double(json, "images_per_s", trial->measured.images_per_s);
        weir_json_double(json, "seconds", trial->measured.seconds);
        weir_json_double(json, "cpu_s", trial->cpu_s);
        weir_json_uint(json, "peak_rss_bytes", trial->measured.peak_rss_bytes);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    weir_json_end(json, '}');
}

static void write_bounds(struct weir_json *json, const struct weir_demands *demands)
{
    weir_json_object(json, "bounds");
    for (int i = 0; i < WEIR_RESOURCES && demands->known; i++)
        if (demands->bound[i] > 0)
            weir_json_double(json, weir_resource_name((enum weir_resource)i), demands->bound[i]);
    weir_json_end(json, '}');
}

void tune_print_json(const struct tune_session *s, const struct weir_command *command, FILE *out)
{
    static const char *const ends[] = {"done", "time", "interrupted", "failed"};
    const struct weir_tune *tune = &s->trials.tune;
    struct weir_json json;
    weir_cli_json_open(&json, out);
    weir_json_text(&json, "weir", weir_version());
    weir_json_text(&json, "data", s->data);
    weir_options_object(&json, "config", NULL, command, s->options);
    weir_json_int(&json, "cores", tune->space.cores);
    weir_json_known(&json, "page_cache_fraction", s->cached);
    write_bounds(&json, &tune->look.demands);
    weir_strings_json(&json, "path", s->lines, s->n_lines);
    weir_json_array(&json, "candidates");
    for (int i = 0; i < tune->n; i++)
        write_candidate(&json, tune, i);
    weir_json_end(&json, ']');
    weir_json_int(&json, "chosen", tune->chosen);
    weir_json_int(&json, "fastest", tune->fastest);
    weir_json_known(&json, "ratio_to_fastest", tune->ratio.n > 0 ? tune->ratio.median : -1);
    weir_json_known(&json, "noise", tune->noise > 0 ? tune->noise : -1);
    weir_json_int(&json, "turns", tune->trials);
    weir_json_text(&json, "end", ends[tune->end]);
    weir_json_double(&json, "took_s", took_s(s));
    struct weir_words words = command_words(s);
    weir_strings_json(&json, "command", words.argv, words.n);
    weir_words_free(&words);
    weir_cli_json_close(&json);
}

/* ---- the file of --out ---- */

struct settings_file {
    FILE *file;
    const char *refused; /* first option whose value cannot be stored in the file; NULL if none exists */
};

static void write_setting_line(void *user, const char *name, const char *value)
{
    struct settings_file *settings = user;
    if (!settings->refused && !weir_config_write(settings->file, name, value ? value : "true"))
        settings->refused = name;
}

static void write_typed(void *user, const struct weir_opt *opt, const char *value)
{
    write_setting_line(user, opt->name, value);
}

static int write_settings(const struct tune_session *s, FILE *file, struct weir_err *err)
{
    struct settings_file settings = {.file = file};
    fputs("# Settings found by weir tune; use them with weir run DATA --config FILE.\n", file);
    weir_options_typed(weir_tune_sets, s->options, write_typed, &settings);
    put_chosen(s, write_setting_line, &settings);
    if (!settings.refused)
        return 0;
    return weir_err_set(err, -EINVAL,
                        "%s: the value of --%s cannot be stored in a settings file, because it is empty, starts or "
                        "ends with a space, starts with #, or contains \" #\" or a control character",
                        s->options->out, settings.refused);
}

int tune_write_config(struct tune_session *s, struct weir_err *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *file = open_memstream(&text, &n);
    int rc = file ? write_settings(s, file, err) : weir_err_set(err, -ENOMEM, "out of memory");
    if (file && fclose(file) != 0 && rc == 0)
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0) {
        weir_gz_write(s->settings, text, n);
        rc = weir_gz_commit(&s->settings, err);
    }
    free(text);
    return rc;
}
