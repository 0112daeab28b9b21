#include "cli/run/tune_print.h"
#include "base/field_rows.h"
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

struct point {
    int workers;
    double rate, most, ceiling; /* images/s: measured (0 = not), that of the fastest point, and the predicted maximum */
    bool is_chosen;
};

static void print_bar(FILE *out, const void *object)
{
    const struct point *point = object;
    if (point->rate > 0)
        fprintf(out, "%.*s%s", (int)lround(BAR * point->rate / point->most), "##############################",
                point->is_chosen ? " <- chosen" : "");
    else if (isfinite(point->ceiling))
        fprintf(out, "not measured (at most %.0f)", point->ceiling);
    else
        fputs("not measured", out);
}

static void print_rate(FILE *out, const void *object)
{
    const struct point *point = object;
    if (point->rate > 0)
        fprintf(out, "%.0f", point->rate);
}

#define S struct point
static const struct weir_field points[] = {
    PLAIN(NULL, workers, COLUMN("workers")),
    CELL("images/s", print_rate),
    CELL("", print_bar, .left = true),
};
static WEIR_FIELDS(point_fields, points);
#undef S

static void add_curve(struct weir_document *document, const struct weir_tune *tune)
{
    struct point *curve = calloc((size_t)tune->space.workers_max + 1, sizeof *curve);
    double most = 0;
    int n = 0;
    for (int w = 1; w <= tune->space.workers_max; w++)
        most = fmax(most, rate_with(tune, w));
    for (int w = 1; curve && w <= tune->space.workers_max; w++)
        if (in_curve(tune, w))
            curve[n++] = (struct point){w, rate_with(tune, w), most, weir_tune_ceiling(tune, w),
                                        w == tune->candidates[tune->chosen].setting.workers};
    putc('\n', weir_document_text(document, NULL, 0));
    weir_document_table(document, NULL, &point_fields, curve, n, sizeof *curve, NULL);
    free(curve);
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

static double took_s(const struct tune_session *s)
{
    return (double)(weir_clock_monotonic_ns() - s->begin_ns) / 1e9;
}

static void add_chosen(struct weir_document *document, const struct weir_tune *tune)
{
    const struct weir_tune_candidate *c = &tune->candidates[tune->chosen];
    struct weir_interval rate;
    char setting[192];
    FILE *text = weir_document_text(document, NULL, 2);
    putc('\n', text);
    if (weir_tune_is_noisy(tune))
        fprintf(text,
                "noise: identical trials differ by up to %.0f %%, so no choice is certain within 3 %%; stop other "
                "processes, then run weir tune again\n",
                100 * tune->noise);
    text = weir_document_text(document, NULL, 2);
    document->text.highlight = true;
    weir_tune_describe(&tune->space, &c->setting, setting, sizeof setting);
    weir_tune_interval(tune, tune->chosen, &rate);
    fprintf(text, "chosen: %s: %.0f images/s (%.0f to %.0f), peak memory %s", setting, rate.median, rate.least,
            rate.most, weir_size(weir_candidate_median(&c->measured, weir_trial_peak_bytes)).text);
    if (c->setting.cache_bytes > 0)
        fputs("; from the second epoch on, because the first fills the cache", text);
    if (tune->ratio.n > 0)
        fprintf(text, "; %.3f of the rate of the fastest setting", tune->ratio.median);
    fputc('\n', text);
}

static const char *end_name(int end)
{
    static const char *const ends[] = {"done", "time", "interrupted", "failed"};
    return ends[end];
}

static void add_end(struct weir_document *document, const struct tune_session *s)
{
    const struct weir_tune *tune = &s->trials.tune;
    struct weir_words words = command_words(s);
    FILE *text = weir_document_text(document, NULL, 2);
    fprintf(text, "\n%d settings, %d trials, %.1f s", tune->n, tune->trials, took_s(s));
    if (tune->noise > 0)
        fprintf(text, "; noise: trials of the same setting differ by up to %.1f %%", 100 * tune->noise);
    fputc('\n', text);
    if (tune->end == WEIR_TUNE_INTERRUPTED)
        fputs("interrupted: this is the best setting so far\n", text);
    if (tune->end == WEIR_TUNE_TIME)
        fputs("--max-minutes reached: this is the best setting so far\n", text);
    weir_document_fact(document, "chosen", tune->chosen);
    weir_document_fact(document, "fastest", tune->fastest);
    weir_document_known(document, "ratio_to_fastest", tune->ratio.n > 0 ? tune->ratio.median : -1);
    weir_document_known(document, "noise", tune->noise > 0 ? tune->noise : -1);
    weir_document_fact(document, "turns", tune->trials);
    weir_document_fact(document, "end", end_name((int)tune->end));
    weir_document_fact(document, "took_s", took_s(s));
    weir_document_strings(document, "command", words.argv, words.n);
    FILE *out = weir_document_stream(document);
    for (int i = 0; out && i < words.n; i++) {
        fputs(i > 0 ? " " : "", out);
        weir_shell_word(out, words.argv[i]);
    }
    if (out)
        fputc('\n', out);
    weir_words_free(&words);
}

/* ---- candidates ---- */

static double round_of(const void *trial)
{
    return MAX(((const struct weir_trial *)trial)->round, 0);
}

#define S struct weir_trial
static const struct weir_field turn[] = {
    DERIVED("round", round_of), PLAIN("images_per_s", measured.images_per_s),     PLAIN("seconds", measured.seconds),
    PLAIN("cpu_s", cpu_s),      PLAIN("peak_rss_bytes", measured.peak_rss_bytes),
};
static WEIR_FIELDS(turn_fields, turn);
#undef S

static void add_candidate(struct weir_document *document, const struct weir_tune *tune, int i)
{
    const struct weir_tune_candidate *c = &tune->candidates[i];
    const struct weir_tune_setting *setting = &c->setting;
    struct weir_interval rate;
    weir_tune_interval(tune, i, &rate);
    weir_document_begin(document, NULL, '{');
    weir_document_begin(document, "setting", '{');
    weir_document_fact(document, "num_workers", setting->workers);
    weir_document_fact(document, "prefetch", setting->prefetch);
    weir_document_fact(document, "io", setting->engine >= 0 ? tune->space.engines[setting->engine] : "auto");
    weir_document_known(document, "io_depth", setting->depth > 0 ? setting->depth : -1);
    weir_document_fact(document, "decoder", setting->decoder >= 0 ? tune->space.decoders[setting->decoder] : "auto");
    weir_document_fact(document, "decode_cache_bytes", setting->cache_bytes);
    weir_document_end(document, '}');
    weir_document_known(document, "images_per_s", rate.n > 0 ? rate.median : -1);
    weir_document_known(document, "peak_rss_bytes", weir_candidate_median(&c->measured, weir_trial_peak_bytes));
    weir_document_fact(document, "error", *c->measured.why ? (const char *)c->measured.why : NULL);
    weir_document_table(document, "turns", &turn_fields, c->measured.trials, c->measured.n_trials,
                        sizeof *c->measured.trials, NULL);
    weir_document_end(document, '}');
}

static void add_space(struct weir_document *document, const struct weir_tune *tune)
{
    const struct weir_demands *demands = &tune->look.demands;
    weir_document_begin(document, "bounds", '{');
    for (int i = 0; i < WEIR_RESOURCES && demands->known; i++)
        if (demands->bound[i] > 0)
            weir_document_fact(document, weir_resource_name((enum weir_resource)i), demands->bound[i]);
    weir_document_end(document, '}');
}

void tune_describe(struct weir_document *document, const struct tune_session *s, const struct weir_command *command)
{
    const struct weir_tune *tune = &s->trials.tune;
    weir_document_fact(document, "weir", weir_version());
    weir_document_fact(document, "data", s->data);
    weir_options_document(document, "config", NULL, command, s->options);
    weir_document_fact(document, "cores", tune->space.cores);
    weir_document_known(document, "page_cache_fraction", s->cached);
    add_space(document, tune);
    weir_document_strings(document, "path", s->lines, s->n_lines);
    weir_document_begin(document, "candidates", '[');
    for (int i = 0; i < tune->n; i++)
        add_candidate(document, tune, i);
    weir_document_end(document, ']');
    add_chosen(document, tune);
    add_curve(document, tune);
    add_end(document, s);
    weir_document_close(document);
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
