#include "cli/bench/bench_print.h"
#include "base/field_rows.h"
#include "base/text.h"
#include "cli/sysinfo.h"
#include "pipeline/report/log_fields.h"
#include "prof/report/report_fields.h"
#include "weir/base.h"
#include "weir/profiler.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { STAGES_SHOWN = 3 };

/* ---- shared by all outputs ---- */

const struct weir_candidate *bench_reference(const struct weir_grid *grid, bool cold)
{
    const struct weir_candidate *first = NULL;
    for (int f = 0; f < grid->n_formats; f++) {
        const struct weir_candidate *best = weir_grid_best(grid, f, cold);
        if (best && grid->formats[f].is_source)
            return best;
        first = first ? first : best;
    }
    return first;
}

const char *bench_state(const struct weir_candidate *candidate)
{
    return candidate->cold ? "cold" : candidate->limit ? "from memory" : "warm";
}

/* Returns whether the candidate's copy is removed at the end. */
static bool is_removed(const struct bench_results *results, const struct weir_candidate *candidate)
{
    return results->setup->temporary && !results->grid->formats[candidate->format].is_source;
}

/* Prints the candidate's command line, quoted for a shell, without --log, and with DIR for a copy that is removed. */
static void print_command(const struct bench_results *results, const struct weir_candidate *candidate, FILE *out)
{
    const char *path = results->grid->formats[candidate->format].path;
    bool removed = is_removed(results, candidate);
    for (char **arg = candidate->argv; *arg; arg++) {
        if (strcmp(*arg, "--log") == 0 && arg[1]) {
            arg++;
            continue;
        }
        if (arg != candidate->argv)
            fputc(' ', out);
        weir_shell_word(out, removed && strcmp(*arg, path) == 0 ? "DIR" : *arg);
    }
}

static void remark(const struct bench_rounds *rounds, const char *state, FILE *out)
{
    if (rounds->end == BENCH_CONVERGED)
        return;
    static const char *const ends[] = {
        [BENCH_ROUNDS] = "the maximum number of rounds",
        [BENCH_TIME] = "--max-minutes reached",
        [BENCH_INTERRUPTED] = "interrupted",
    };
    fprintf(out, "%s: stopped after %d round%s (%s); ", state, rounds->rounds, rounds->rounds == 1 ? "" : "s",
            ends[rounds->end]);
    fprintf(
        out,
        "the medians of %d candidates still have an uncertainty above 3 %%, or come from fewer trials than --repeats\n",
        rounds->not_converged);
}

static bool on_same_file_system(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) != 0 || stat(b, &of_b) != 0 || of_a.st_dev == of_b.st_dev;
}

/* Prints what the folder of the copies means for their cold rates. */
static void print_place(const struct bench_results *results, FILE *out)
{
    const struct bench_setup *setup = results->setup;
    if (results->grid->n == results->grid->n_warm || !*setup->folder)
        return;
    char type[64];
    weir_filesystem_of(setup->folder, type, sizeof type);
    if (setup->in_memory)
        fprintf(out, "cold: the copies were in memory (%s), so their rates are not those of a disk; use --work-dir\n",
                type);
    else if (!on_same_file_system(setup->folder, setup->data))
        fprintf(out, "cold: the copies were on another file system (%s) than DATA; --work-dir makes them comparable\n",
                type);
}

/* Prints how to make the recommended copy again, if it was temporary. */
static void print_conversion(const struct bench_results *results, const struct weir_candidate *candidate, FILE *out)
{
    const struct bench_setup *setup = results->setup;
    const struct weir_grid_format *format = &results->grid->formats[candidate->format];
    struct weir_copy_spec spec;
    if (!is_removed(results, candidate) || weir_copy_spec_parse(&spec, format->name, setup->source.codec, NULL) < 0)
        return;
    fputs("The copies are removed now. To make this one:\nweir convert ", out);
    weir_shell_word(out, setup->data);
    fprintf(out, " DIR --to %s --codec %s\n", spec.format, weir_copy_codec_option(&spec, setup->source.codec));
}

/* ---- candidates ---- */

/* Figures of a candidate. */
struct row {
    const struct bench_results *results;
    const struct weir_candidate *candidate;
    const char *format, *cache, *state, *error; /* error: NULL = none */
    uint64_t size_bytes;
    struct weir_candidate_settings settings;
    char differing[128]; /* settings that differ between candidates */
    bool is_reference, converged, tie;
    struct weir_interval images, samples, cpu_s, bytes, wait_p99_s, peak_bytes, data_wait, cached, others_cores;
    struct weir_interval ratio, limit;
    double wait;                               /* median data wait; -1 = there is no training step */
    const struct weir_trial *trials, *typical; /* borrowed; typical can be NULL */
    int n_trials;
    struct weir_log_used used; /* of the typical trial, like the following */
    const struct weir_report_row *stages, *longest[STAGES_SHOWN];
    int n_stages;
    const char *bound_by, *reads; /* NULL = unknown */
    double bound_part;
};

/* Inserts the stage into the list of the longest work stages. */
static void insert_stage(const struct weir_report_row **longest, const struct weir_report_row *stage)
{
    for (int k = 0; k < STAGES_SHOWN && stage && stage->kind == WEIR_KIND_WORK && stage->self_s > 0; k++)
        if (!longest[k] || longest[k]->self_s < stage->self_s) {
            const struct weir_report_row *shorter = longest[k];
            longest[k] = stage;
            stage = shorter;
        }
}

static void fill_typical(struct row *row)
{
    const struct weir_report_row *bound = weir_trial_bound(row->typical, &row->bound_part);
    row->used = row->typical->used;
    row->stages = row->typical->stages;
    row->n_stages = row->typical->n_stages;
    for (int i = 0; i < row->n_stages; i++)
        insert_stage(row->longest, &row->stages[i]);
    row->reads = weir_report_reads_name(row->typical->measured.reads);
    row->bound_by = bound ? bound->name : NULL;
    row->bound_part = bound ? row->bound_part : -1;
}

/* Unknown figures are -1. */
static void find_interval(struct weir_interval *interval, const struct weir_candidate *candidate,
                          weir_trial_figure *figure, const struct weir_candidate *other)
{
    *interval = (struct weir_interval){0};
    if (figure)
        weir_candidate_interval(candidate, figure, interval);
    else if (other)
        weir_candidate_ratio(candidate, other, 1, interval);
    if (interval->n == 0)
        *interval = (struct weir_interval){0, -1, -1, -1, -1, -1, 0, 0};
}

static void fill_row(struct row *row, const struct bench_results *results, const struct weir_candidate *candidate)
{
    const struct weir_grid *grid = results->grid;
    const struct weir_grid_format *format = &grid->formats[candidate->format];
    const struct weir_candidate *reference = bench_reference(grid, candidate->cold);
    static const struct {
        size_t offset;
        weir_trial_figure *figure;
    } figures[] = {{offsetof(struct row, images), weir_trial_images_per_s},
                   {offsetof(struct row, samples), weir_trial_samples_per_s},
                   {offsetof(struct row, cpu_s), weir_trial_cpu_s_per_1000_images},
                   {offsetof(struct row, bytes), weir_trial_bytes_per_image},
                   {offsetof(struct row, wait_p99_s), weir_trial_wait_p99_s},
                   {offsetof(struct row, peak_bytes), weir_trial_peak_bytes},
                   {offsetof(struct row, data_wait), weir_trial_data_wait},
                   {offsetof(struct row, cached), weir_trial_cached},
                   {offsetof(struct row, others_cores), weir_trial_others_cores}};
    *row = (struct row){.results = results,
                        .candidate = candidate,
                        .format = format->name,
                        .cache = candidate->limit  ? "memory"
                                 : candidate->cold ? "cold"
                                                   : "warm",
                        .state = bench_state(candidate),
                        .error = *candidate->why ? candidate->why : NULL,
                        .size_bytes = format->bytes,
                        .settings = candidate->settings,
                        .is_reference = !reference || candidate == reference,
                        .trials = candidate->trials,
                        .n_trials = candidate->n_trials,
                        .typical = weir_candidate_typical(candidate),
                        .used = {.workers = -1, .prefetch = -1},
                        .bound_part = -1};
    weir_grid_settings(grid, candidate, row->differing, sizeof row->differing);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        find_interval((void *)((char *)row + figures[i].offset), candidate, figures[i].figure, NULL);
    find_interval(&row->ratio, candidate, NULL, reference);
    find_interval(&row->limit, candidate, NULL,
                  candidate->limit_candidate >= 0 ? &grid->candidates[candidate->limit_candidate] : NULL);
    row->converged = weir_interval_converged(&row->images, WEIR_CLOSE);
    row->wait = results->setup->options->step_ms > 0 ? row->data_wait.median : -1;
    row->tie = weir_relation_is_tie(weir_relation_of(&row->ratio));
    if (row->typical)
        fill_typical(row);
}

/* Returns the rows of all candidates, which the caller frees; NULL without memory. */
static struct row *rows_of(const struct bench_results *results)
{
    struct row *rows = calloc((size_t)results->grid->n + 1, sizeof *rows);
    for (int i = 0; rows && i < results->grid->n; i++)
        fill_row(&rows[i], results, &results->grid->candidates[i]);
    return rows;
}

/* Returns whether the fraction of the limit exceeds 1, which is impossible, by more than the usual uncertainty. */
static bool is_noise(const struct row *row)
{
    return row->limit.median > 1 + WEIR_CLOSE;
}

static bool is_measured(const void *row)
{
    const struct weir_candidate *candidate = ((const struct row *)row)->candidate;
    return !candidate->limit && candidate->n_trials > 0;
}

static void print_range(FILE *out, const void *images)
{
    const struct weir_interval *range = images;
    fprintf(out, "%.0f-%.0f", range->least, range->most);
}

/* Prints the ratio to the reference, such as "1.52", and "tie" if its interval contains 1. */
static void print_ratio(FILE *out, const void *object)
{
    const struct row *row = object;
    if (row->is_reference || row->ratio.n == 0)
        putc(row->is_reference ? '1' : '-', out);
    else
        fprintf(out, "%.2f%s", row->ratio.median, row->tie ? " tie" : "");
}

static void print_limit(FILE *out, const void *object)
{
    const struct row *row = object;
    if (row->limit.n == 0)
        putc('-', out);
    else
        fprintf(out, "%.0f%%%s", 100 * row->limit.median, is_noise(row) ? "~" : "");
}

static void write_command(struct weir_json *json, const void *object)
{
    weir_strings_json(json, "command", ((const struct row *)object)->candidate->argv, INT_MAX);
}

static double round_from_0(const void *trial)
{
    return ((const struct weir_trial *)trial)->round - 1;
}

#define S struct weir_interval
static const struct weir_field interval[] = {
    PLAIN("n", n),
    PLAIN("median", median),
    PLAIN("low", low),
    PLAIN("high", high),
    PLAIN("least", least),
    PLAIN("most", most),
    PLAIN("probability", probability),
};
static WEIR_FIELDS(interval_fields, interval);
#undef S

#define S struct weir_trial
static const struct weir_field turn[] = {
    DERIVED("round", round_from_0),
    PLAIN("seconds", measured.seconds),
    PLAIN("images", measured.images),
    PLAIN("images_per_s", measured.images_per_s),
    PLAIN("cpu_s", cpu_s),
    NAME("reads", measured.reads, weir_reads_field_name),
};
static WEIR_FIELDS(turn_fields, turn);
#undef S

#define S struct weir_candidate_settings
static const struct weir_field settings[] = {
    PLAIN("num_workers", num_workers), PLAIN("prefetch", prefetch), PLAIN("batch_size", batch_size), PLAIN("io", io),
    PLAIN("decoder", decoder),         PLAIN("device", device),
};
static WEIR_FIELDS(settings_fields, settings);
#undef S

#define S struct weir_log_used
static const struct weir_field used[] = {
    KNOWN("num_workers", workers),
    KNOWN("prefetch", prefetch),
    OPTIONAL("io", io),
    OPTIONAL("decoder", decoder),
};
static WEIR_FIELDS(used_fields, used);
#undef S

#define S struct row
#define INTERVAL(text, member)                                                                                         \
    {                                                                                                                  \
        .key = (text), .type = WEIR_FIELD_OBJECT, .inner = &interval_fields, .flags = WEIR_FIELD_NULL,                 \
        WEIR_FIELD_AT(S, member), WEIR_FIELD_PRESENT(S, member.n)                                                      \
    }
#define LIST(text, table, member, length)                                                                              \
    {                                                                                                                  \
        .key = (text), .type = WEIR_FIELD_ARRAY, .inner = &(table), .flags = WEIR_FIELD_OWNED,                         \
        .offset = offsetof(S, member), .size = sizeof *((S *)0)->member, .count = offsetof(S, length), .max = INT_MAX  \
    }
#define MEDIAN(member, ...) PLAIN(NULL, member.median, __VA_ARGS__)

static const struct weir_field row_columns[] = {
    PLAIN("format", format, COLUMN("format", .left = true, .shrink_to = 17)),
    PLAIN(NULL, state, COLUMN("", .left = true)),
    PLAIN(NULL, size_bytes, SIZE("size", .priority = 4)),
    MEDIAN(images, COLUMN("images/s")),
    CELL_AT("least-most", print_range, images, .priority = 2),
    MEDIAN(samples, COLUMN("samp/s", .priority = 7)),
    PLAIN(NULL, images.n, COLUMN("n", .priority = 6)),
    CELL("of as-is", print_ratio),
    MEDIAN(cpu_s, COLUMN("CPU/1k", .decimals = 2, .priority = 3)),
    MEDIAN(bytes, SIZE("B/img", .priority = 8)),
    MEDIAN(wait_p99_s, TIME("p99", .priority = 5)),
    MEDIAN(peak_bytes, SIZE("peak", .priority = 5)),
    PLAIN(NULL, wait, PERCENT("wait", 0, .priority = 1)),
    CELL("limit", print_limit, .priority = 1),
    PLAIN(NULL, differing, COLUMN("settings", .left = true, .shrink_to = 24, .optional = true)),
    PLAIN("cache", cache),
    MEMBER("settings", settings_fields, settings),
    MEMBER("used", used_fields, used),
    WRITTEN(write_command),
    PLAIN("error", error),
    PLAIN("converged", converged),
    INTERVAL("images_per_s", images),
    INTERVAL("samples_per_s", samples),
    INTERVAL("cpu_s_per_1000_images", cpu_s),
    INTERVAL("read_bytes_per_image", bytes),
    INTERVAL("batch_wait_p99_s", wait_p99_s),
    INTERVAL("peak_rss_bytes", peak_bytes),
    INTERVAL("data_wait_fraction", data_wait),
    INTERVAL("page_cache_fraction", cached),
    INTERVAL("others_cores", others_cores),
    INTERVAL("ratio", ratio),
    PLAIN("tie", tie),
    INTERVAL("limit_fraction", limit),
    LIST("stages", weir_row_fields, stages, n_stages),
    PLAIN("bound_by", bound_by),
    KNOWN("bound_part", bound_part),
    LIST("turns", turn_fields, trials, n_trials), /* every trial, so that readers can compute other statistics */
};
static WEIR_FIELDS(row_fields, row_columns);

/* ---- the longest stages ---- */

static void print_bound(FILE *out, const void *object)
{
    const struct row *row = object;
    if (row->bound_by)
        fprintf(out, "%.40s %.0f%%", row->bound_by, 100 * row->bound_part);
    else
        putc('-', out);
}

static void print_stage(FILE *out, const void *pointer)
{
    const struct weir_report_row *stage = *(const struct weir_report_row *const *)pointer;
    if (stage)
        fprintf(out, "%.3fs %.0fx %s %s", stage->total_s, (double)stage->count, weir_time(stage->mean_s).text,
                stage->name);
}

static const struct weir_field bounds[] = {
    PLAIN(NULL, format, COLUMN("format", .left = true, .shrink_to = 17)),
    PLAIN(NULL, state, COLUMN("", .left = true)),
    CELL("bounded by", print_bound, .left = true),
    CELL_AT("longest stages: total, calls, mean", print_stage, longest[0], .priority = 1, .left = true,
            .shrink_to = 34),
    CELL_AT("(of the median trial)", print_stage, longest[1], .priority = 2, .left = true),
    CELL_AT("", print_stage, longest[2], .priority = 3, .left = true),
};
static WEIR_FIELDS(bound_fields, bounds);
#undef S

static void print_remarks(const struct bench_results *results, const struct row *rows, FILE *out)
{
    const struct weir_grid *grid = results->grid;
    if (grid->n_warm > 0)
        remark(&results->warm, "warm", out);
    if (grid->n > grid->n_warm)
        remark(&results->cold, "cold", out);
    print_place(results, out);
    if (results->advice.others_cores > 0)
        fprintf(out, "busy machine: other processes used up to %.1f cores\n", results->advice.others_cores);
    bool noisy = false;
    for (int i = 0; i < grid->n; i++)
        noisy |= is_noise(&rows[i]);
    if (noisy)
        fputs("~: more than 100 % of the rate without reading is impossible, so this figure is noise\n", out);
    for (int f = 0; f < grid->n_formats; f++) {
        const struct weir_candidate *cold = weir_grid_best(grid, f, true), *warm = weir_grid_best(grid, f, false);
        double stayed = cold ? weir_candidate_median(cold, weir_trial_cached) : -1;
        double there = warm ? weir_candidate_median(warm, weir_trial_cached) : -1;
        if (stayed > 0.05)
            fprintf(out, "not cold: %s: %.0f %% remains in the page cache%s\n", grid->formats[f].name, 100 * stayed,
                    weir_copy_in_memory(grid->formats[f].path) ? ", because its file system is in memory" : "");
        if (there >= 0 && there < 0.95)
            fprintf(out,
                    "not warm: %s: only %.0f %% was in the page cache, because there is not enough memory for all "
                    "formats\n",
                    grid->formats[f].name, 100 * there);
    }
    for (int i = 0; i < grid->n; i++)
        if (*grid->candidates[i].why)
            fprintf(out, "failed: %s %s: %s\n", grid->formats[grid->candidates[i].format].name,
                    bench_state(&grid->candidates[i]), grid->candidates[i].why);
}

/* ---- the result ---- */

static const char *end_name(int end)
{
    static const char *const ends[] = {"converged", "rounds", "time", "interrupted"};
    return ends[end];
}

#define S struct weir_grid_format
static const struct weir_field format[] = {
    PLAIN("name", name),
    PLAIN("path", path),
    PLAIN("size_bytes", bytes),
    PLAIN("bytes_per_frame", bytes_each),
};
static WEIR_FIELDS(format_fields, format);
#undef S

#define S struct bench_rounds
static const struct weir_field rounds[] = {
    NAME("end", end, end_name),
    PLAIN("rounds", rounds),
    PLAIN("not_converged", not_converged),
};
static WEIR_FIELDS(rounds_fields, rounds);
#undef S

static void describe_build(struct weir_document *document, const struct bench_setup *setup)
{
    const struct weir_copy_source *source = &setup->source;
    char data[1024], data_type[64], folder_type[64];
    struct weir_sysinfo machine;
    weir_sysinfo_read(&machine);
    weir_filesystem_of(setup->data, data_type, sizeof data_type);
    weir_filesystem_of(setup->folder, folder_type, sizeof folder_type);
    weir_document_fact(document, "weir", weir_version());
    weir_document_fact(document, "git", weir_git_describe());
    weir_document_begin(document, "machine", '{');
    weir_document_members(document, &weir_sysinfo_fields, &machine);
    weir_document_fact(document, "data_filesystem", data_type);
    weir_document_fact(document, "work_filesystem", folder_type);
    weir_document_end(document, '}');
    weir_document_begin(document, "copies", '{');
    weir_document_fact(document, "folder", *setup->folder ? setup->folder : NULL);
    weir_document_fact(document, "temporary", (bool)setup->temporary);
    weir_document_fact(document, "in_memory", setup->in_memory);
    weir_document_end(document, '}');
    snprintf(data, sizeof data, "%s", setup->data);
    weir_text_printable(data);
    fprintf(weir_document_text(document, NULL, 2),
            "%s: %s, %d episodes, %llu frames, %s, %s on %s; %s, %d of %d cores; weir %s\n", data, source->layout,
            source->episodes, (unsigned long long)source->frames, source->codec, weir_size((double)source->bytes).text,
            data_type, machine.cpu_model, machine.cores.usable, machine.cores.online, weir_git_describe());
}

void bench_describe(struct weir_document *document, const struct bench_results *results,
                    const struct weir_command *command)
{
    const struct bench_setup *setup = results->setup;
    const struct weir_grid *grid = results->grid;
    struct row *rows = rows_of(results);
    const struct weir_candidate *candidate = results->advice.best;
    fprintf(weir_document_text(document, NULL, 0), "%s\n", results->advice.format);
    document->text.highlight = true;
    fprintf(weir_document_text(document, NULL, 0), "%s\n\n", results->advice.next);
    describe_build(document, setup);
    weir_options_document(document, "config", setup->data, command, setup->options);
    weir_document_table(document, "formats", &format_fields, grid->formats, grid->n_formats, sizeof *grid->formats,
                        NULL);
    weir_document_fact(document, "left_out", setup->left_out);
    weir_document_object(document, "warm", &rounds_fields, &results->warm);
    weir_document_object(document, "cold", &rounds_fields, &results->cold);
    weir_document_fact(document, "took_s", results->took_s);
    weir_document_table(document, "cells", &row_fields, rows, rows ? grid->n : 0, sizeof *rows, is_measured);
    putc('\n', weir_document_text(document, NULL, 0));
    weir_document_table(document, NULL, &bound_fields, rows, rows ? grid->n : 0, sizeof *rows, is_measured);
    FILE *text = weir_document_text(document, NULL, 2);
    putc('\n', text);
    if (rows)
        print_remarks(results, rows, text);
    fputs(setup->left_out, text);
    weir_document_begin(document, "advice", '{');
    weir_document_fact(document, "format", results->advice.format);
    weir_document_fact(document, "next", results->advice.next);
    weir_document_strings(document, "command", candidate ? candidate->argv : NULL, candidate ? INT_MAX : 0);
    weir_document_end(document, '}');
    FILE *out = weir_document_stream(document);
    for (int i = 0; !candidate && i < grid->n; i++)
        candidate = &grid->candidates[i];
    if (out && candidate) {
        print_conversion(results, candidate, out);
        print_command(results, candidate, out);
    }
    if (out)
        fputc('\n', out);
    free(rows);
}

/* ---- CSV ---- */

#define S struct row
static const struct weir_field csv[] = {
    PLAIN("format", format),
    PLAIN("cache", cache),
    PLAIN("num_workers", settings.num_workers),
    PLAIN("prefetch", settings.prefetch),
    PLAIN("batch_size", settings.batch_size),
    PLAIN("io", settings.io),
    PLAIN("decoder", settings.decoder),
    PLAIN("device", settings.device),
    PLAIN("reads", reads),
    PLAIN("bound_by", bound_by),
    PLAIN("error", error),
    POSITIVE("turns", images.n),
    PLAIN("size_bytes", size_bytes),
    PLAIN("images_per_s", images.median),
    PLAIN("images_per_s_least", images.least),
    PLAIN("images_per_s_most", images.most),
    PLAIN("images_per_s_low", images.low),
    PLAIN("images_per_s_high", images.high),
    PLAIN("samples_per_s", samples.median),
    PLAIN("ratio", ratio.median),
    PLAIN("ratio_low", ratio.low),
    PLAIN("ratio_high", ratio.high),
    PLAIN("cpu_s_per_1000_images", cpu_s.median),
    PLAIN("read_bytes_per_image", bytes.median),
    PLAIN("batch_wait_p99_s", wait_p99_s.median),
    PLAIN("peak_rss_bytes", peak_bytes.median),
    PLAIN("data_wait_fraction", data_wait.median),
    PLAIN("limit_fraction", limit.median),
    PLAIN("bound_part", bound_part),
    PLAIN("tie", tie),
};
static WEIR_FIELDS(csv_fields, csv);
#undef S

void bench_print_csv(const struct bench_results *results, FILE *out)
{
    struct row *rows = rows_of(results);
    weir_fields_csv(out, &csv_fields, rows, rows ? results->grid->n : 0, sizeof *rows);
    free(rows);
}
