#include "cli/bench/bench_print.h"
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/sysinfo.h"
#include "weir/profiler.h"

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

static double limit_fraction(const struct weir_grid *grid, const struct weir_candidate *candidate)
{
    struct weir_interval ratio;
    if (candidate->limit_candidate < 0)
        return -1;
    weir_candidate_ratio(candidate, &grid->candidates[candidate->limit_candidate], 1, &ratio);
    return ratio.n > 0 ? ratio.median : -1;
}

/* Returns whether the fraction exceeds 1, which is impossible, by more than the usual uncertainty. */
static bool is_noise(double limit)
{
    return limit > 1 + WEIR_CLOSE;
}

static bool has_noisy_limit(const struct weir_grid *grid)
{
    for (int i = 0; i < grid->n; i++)
        if (is_noise(limit_fraction(grid, &grid->candidates[i])))
            return true;
    return false;
}

static void print_remarks(const struct bench_results *results, FILE *out)
{
    const struct weir_grid *grid = results->grid;
    if (grid->n_warm > 0)
        remark(&results->warm, "warm", out);
    if (grid->n > grid->n_warm)
        remark(&results->cold, "cold", out);
    print_place(results, out);
    if (results->advice.others_cores > 0)
        fprintf(out, "busy machine: other processes used up to %.1f cores\n", results->advice.others_cores);
    if (has_noisy_limit(grid))
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

/* ---- the table ---- */

static void percent(char text[16], double fraction)
{
    if (fraction < 0)
        snprintf(text, 16, "-");
    else
        snprintf(text, 16, "%.0f%%%s", 100 * fraction, is_noise(fraction) ? "~" : "");
}

/* Formats the ratio to the reference, such as "1.52". Appends "tie" if its interval contains 1. */
static void ratio_text(char text[24], const struct weir_candidate *candidate, const struct weir_candidate *reference)
{
    struct weir_interval ratio;
    if (!reference || candidate == reference) {
        snprintf(text, 24, "1");
        return;
    }
    weir_candidate_ratio(candidate, reference, 1, &ratio);
    if (ratio.n == 0)
        snprintf(text, 24, "-");
    else
        snprintf(text, 24, "%.2f%s", ratio.median, weir_relation_is_tie(weir_relation_of(&ratio)) ? " tie" : "");
}

static const struct weir_column columns[] = {
    {"format", .left = true, .shrink_to = 17},
    {"", .left = true},
    {"size", .priority = 4},
    {.heading = "images/s"},
    {"least-most", .priority = 2},
    {"samp/s", .priority = 7},
    {"n", .priority = 6},
    {.heading = "of as-is"},
    {"CPU/1k", .priority = 3},
    {"B/img", .priority = 8},
    {"p99", .priority = 5},
    {"peak", .priority = 5},
    {"wait", .priority = 1},
    {"limit", .priority = 1},
    {"settings", .left = true, .shrink_to = 24},
};

static void add_candidate(struct weir_table *table, const struct bench_results *results,
                          const struct weir_candidate *candidate)
{
    const struct weir_grid *grid = results->grid;
    const struct weir_grid_format *format = &grid->formats[candidate->format];
    struct weir_interval images;
    char wait[16], limit[16], ratio[24], settings[128], p99[24];
    weir_candidate_interval(candidate, weir_trial_images_per_s, &images);
    struct weir_size_text size = weir_size_short((double)format->bytes),
                          each = weir_size_short(weir_candidate_median(candidate, weir_trial_bytes_per_image)),
                          peak = weir_size_short(weir_candidate_median(candidate, weir_trial_peak_bytes));
    percent(wait, results->setup->options->step_ms > 0 ? weir_candidate_median(candidate, weir_trial_data_wait) : -1);
    percent(limit, limit_fraction(grid, candidate));
    ratio_text(ratio, candidate, bench_reference(grid, candidate->cold));
    weir_report_time(p99, weir_candidate_median(candidate, weir_trial_wait_p99_s));
    weir_grid_settings(grid, candidate, settings, sizeof settings);
    weir_table_cell(table, "%s", format->name);
    weir_table_cell(table, "%s", bench_state(candidate));
    weir_table_cell(table, "%s", size.text);
    weir_table_cell(table, "%.0f", images.median);
    weir_table_cell(table, "%.0f-%.0f", images.least, images.most);
    weir_table_cell(table, "%.0f", weir_candidate_median(candidate, weir_trial_samples_per_s));
    weir_table_cell(table, "%d", images.n);
    weir_table_cell(table, "%s", ratio);
    weir_table_cell(table, "%.2f", weir_candidate_median(candidate, weir_trial_cpu_s_per_1000_images));
    weir_table_cell(table, "%s", each.text);
    weir_table_cell(table, "%s", p99);
    weir_table_cell(table, "%s", peak.text);
    weir_table_cell(table, "%s", wait);
    weir_table_cell(table, "%s", limit);
    if (*settings)
        weir_table_cell(table, "%s", settings);
}

static void print_table(const struct bench_results *results, FILE *out)
{
    const struct weir_grid *grid = results->grid;
    struct weir_table table;
    char settings[128];
    weir_grid_settings(grid, &grid->candidates[0], settings, sizeof settings);
    weir_table_open(&table, columns, (int)(sizeof columns / sizeof *columns) - (*settings ? 0 : 1));
    for (int i = 0; i < grid->n; i++)
        if (!grid->candidates[i].limit && grid->candidates[i].n_trials > 0)
            add_candidate(&table, results, &grid->candidates[i]);
    weir_table_print(out, &table);
}

/* Adds cells with the longest work stages of a trial, longest first. */
static void add_stages(struct weir_table *table, const struct weir_trial *trial)
{
    bool shown[WEIR_TRIAL_STAGES] = {false};
    for (int k = 0; k < STAGES_SHOWN; k++) {
        int longest = -1;
        for (int i = 0; i < trial->n_stages; i++)
            if (!shown[i] && trial->stages[i].self_s > 0 && trial->stages[i].kind == WEIR_KIND_WORK &&
                (longest < 0 || trial->stages[i].self_s > trial->stages[longest].self_s))
                longest = i;
        if (longest < 0) {
            weir_table_cell(table, "%s", "");
            continue;
        }
        const struct weir_report_row *stage = &trial->stages[longest];
        char mean[24];
        shown[longest] = true;
        weir_report_time(mean, stage->mean_s);
        weir_table_cell(table, "%.3fs %.0fx %s %s", stage->total_s, (double)stage->count, mean, stage->name);
    }
}

static void print_bounds(const struct bench_results *results, FILE *out)
{
    static const struct weir_column bounds[] = {
        {"format", .left = true, .shrink_to = 17},
        {"", .left = true},
        {"bounded by", .left = true},
        {"longest stages: total, calls, mean", .priority = 1, .left = true, .shrink_to = 34},
        {"(of the median trial)", .priority = 2, .left = true},
        {"", .priority = 3, .left = true},
    };
    const struct weir_grid *grid = results->grid;
    struct weir_table table;
    weir_table_open(&table, bounds, sizeof bounds / sizeof *bounds);
    for (int i = 0; i < grid->n; i++) {
        const struct weir_candidate *candidate = &grid->candidates[i];
        const struct weir_trial *trial = weir_candidate_typical(candidate);
        char text[64] = "-";
        double part;
        if (candidate->limit || !trial)
            continue;
        const struct weir_report_row *stage = weir_trial_bound(trial, &part);
        if (stage)
            snprintf(text, sizeof text, "%.40s %.0f%%", stage->name, 100 * part);
        weir_table_cell(&table, "%s", grid->formats[candidate->format].name);
        weir_table_cell(&table, "%s", bench_state(candidate));
        weir_table_cell(&table, "%s", text);
        add_stages(&table, trial);
    }
    fputc('\n', out);
    weir_table_print(out, &table);
}

static void print_head(const struct bench_results *results, FILE *out)
{
    const struct weir_copy_source *source = &results->setup->source;
    struct weir_sysinfo machine;
    char file_system[64], data[1024];
    weir_sysinfo_read(&machine);
    weir_filesystem_of(results->setup->data, file_system, sizeof file_system);
    snprintf(data, sizeof data, "%s", results->setup->data);
    weir_text_printable(data);
    fprintf(out, "%s: %s, %d episodes, %llu frames, %s, %s on %s; %s, %d of %d cores; weir %s\n", data, source->layout,
            source->episodes, (unsigned long long)source->frames, source->codec, weir_size((double)source->bytes).text,
            file_system, machine.cpu_model, machine.cores.usable, machine.cores.online, weir_git_describe());
}

static void print_advice(const struct weir_grid_advice *advice, FILE *out)
{
    struct weir_wrap wrap;
    fprintf(weir_wrap_open(&wrap, out, 0, NULL), "%s\n", advice->format);
    wrap.highlight = true;
    weir_wrap_close(&wrap);
    weir_wrap_print(out, advice->next, 0, NULL);
    fputs("\n\n", out);
}

void bench_print(const struct bench_results *results, FILE *out)
{
    struct weir_wrap wrap;
    print_advice(&results->advice, out);
    print_head(results, weir_wrap_open(&wrap, out, 2, NULL));
    weir_wrap_close(&wrap);
    print_table(results, out);
    print_bounds(results, out);
    fputc('\n', out);
    FILE *remarks = weir_wrap_open(&wrap, out, 2, NULL);
    print_remarks(results, remarks);
    fputs(results->setup->left_out, remarks);
    weir_wrap_close(&wrap);
    const struct weir_candidate *candidate = results->advice.best;
    for (int i = 0; !candidate && i < results->grid->n; i++)
        candidate = &results->grid->candidates[i];
    if (candidate) {
        print_conversion(results, candidate, out);
        print_command(results, candidate, out);
    }
    fputc('\n', out);
}

/* ---- CSV ---- */

static void csv_number(double value, FILE *out)
{
    if (value >= 0)
        fprintf(out, "%.9g", value);
    fputc(',', out);
}

static void csv_row(const struct weir_grid *grid, const struct weir_candidate *candidate, FILE *out)
{
    const struct weir_trial *trial = weir_candidate_typical(candidate);
    const struct weir_candidate *reference = bench_reference(grid, candidate->cold);
    struct weir_interval images, ratio = {.n = 0};
    double part = -1;
    const struct weir_report_row *bound = trial ? weir_trial_bound(trial, &part) : NULL;
    weir_candidate_interval(candidate, weir_trial_images_per_s, &images);
    if (reference)
        weir_candidate_ratio(candidate, reference, 1, &ratio);
    const char *reads = trial ? weir_report_reads_name(trial->measured.reads) : NULL;
    const struct weir_candidate_settings *s = &candidate->settings;
    const char *const texts[] = {grid->formats[candidate->format].name,
                                 candidate->limit  ? "memory"
                                 : candidate->cold ? "cold"
                                                   : "warm",
                                 s->num_workers,
                                 s->prefetch,
                                 s->batch_size,
                                 s->io,
                                 s->decoder,
                                 s->device,
                                 reads ? reads : "",
                                 bound ? bound->name : "",
                                 candidate->why};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        weir_text_csv(out, texts[i]);
    const double numbers[] = {images.n,
                              (double)grid->formats[candidate->format].bytes,
                              images.median,
                              images.least,
                              images.most,
                              images.low,
                              images.high,
                              weir_candidate_median(candidate, weir_trial_samples_per_s),
                              ratio.n ? ratio.median : -1,
                              ratio.n ? ratio.low : -1,
                              ratio.n ? ratio.high : -1,
                              weir_candidate_median(candidate, weir_trial_cpu_s_per_1000_images),
                              weir_candidate_median(candidate, weir_trial_bytes_per_image),
                              weir_candidate_median(candidate, weir_trial_wait_p99_s),
                              weir_candidate_median(candidate, weir_trial_peak_bytes),
                              weir_candidate_median(candidate, weir_trial_data_wait),
                              limit_fraction(grid, candidate),
                              bound ? part : -1};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        csv_number(images.n > 0 ? numbers[i] : -1, out);
    fprintf(out, "%d\n", ratio.n > 0 && weir_relation_is_tie(weir_relation_of(&ratio)));
}

void bench_print_csv(const struct bench_results *results, FILE *out)
{
    fputs("format,cache,num_workers,prefetch,batch_size,io,decoder,device,reads,bound_by,error,turns,size_bytes,"
          "images_per_s,images_per_s_least,images_per_s_most,images_per_s_low,images_per_s_high,samples_per_s,ratio,"
          "ratio_low,ratio_high,cpu_s_per_1000_images,read_bytes_per_image,batch_wait_p99_s,peak_rss_bytes,"
          "data_wait_fraction,limit_fraction,bound_part,tie\n",
          out);
    for (int i = 0; i < results->grid->n; i++)
        csv_row(results->grid, &results->grid->candidates[i], out);
}
