#include "base/field_rows.h"
#include "cli/bench/bench_print.h"
#include "cli/sysinfo.h"
#include "pipeline/report/log_fields.h"
#include "prof/report/report_fields.h"
#include "weir/base.h"

#include <limits.h>
#include <string.h>

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

static double round_from_0(const void *trial)
{
    return ((const struct weir_trial *)trial)->round - 1;
}

#define S struct weir_trial
static const struct weir_field used[] = {
    KNOWN("num_workers", used.workers),
    KNOWN("prefetch", used.prefetch),
    OPTIONAL("io", used.io),
    OPTIONAL("decoder", used.decoder),
};
static WEIR_FIELDS(used_fields, used);
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

static const char *end_name(int end)
{
    static const char *const ends[] = {"converged", "rounds", "time", "interrupted"};
    return ends[end];
}

#define S struct bench_rounds
static const struct weir_field rounds[] = {
    NAME("end", end, end_name),
    PLAIN("rounds", rounds),
    PLAIN("not_converged", not_converged),
};
static WEIR_FIELDS(rounds_fields, rounds);
#undef S

#define S struct weir_grid_format
static const struct weir_field format[] = {
    PLAIN("name", name),
    PLAIN("path", path),
    PLAIN("size_bytes", bytes),
    PLAIN("bytes_per_frame", bytes_each),
};
static WEIR_FIELDS(format_fields, format);
#undef S

static void figures(struct weir_json *json, const struct weir_candidate *candidate)
{
    static const struct {
        const char *name;
        weir_trial_figure *figure;
    } all[] = {
        {"images_per_s", weir_trial_images_per_s},
        {"samples_per_s", weir_trial_samples_per_s},
        {"cpu_s_per_1000_images", weir_trial_cpu_s_per_1000_images},
        {"read_bytes_per_image", weir_trial_bytes_per_image},
        {"batch_wait_p99_s", weir_trial_wait_p99_s},
        {"peak_rss_bytes", weir_trial_peak_bytes},
        {"data_wait_fraction", weir_trial_data_wait},
        {"page_cache_fraction", weir_trial_cached},
        {"others_cores", weir_trial_others_cores},
    };
    struct weir_interval found;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        weir_candidate_interval(candidate, all[i].figure, &found);
        weir_fields_object(json, all[i].name, &interval_fields, found.n ? &found : NULL);
    }
}

static void ratio(struct weir_json *json, const char *key, const struct weir_candidate *candidate,
                  const struct weir_candidate *other, bool *tie)
{
    struct weir_interval found = {.n = 0};
    if (other)
        weir_candidate_ratio(candidate, other, 1, &found);
    weir_fields_object(json, key, &interval_fields, found.n ? &found : NULL);
    *tie = weir_relation_is_tie(weir_relation_of(&found));
}

static void candidate_json(struct weir_json *json, const struct weir_grid *grid, const struct weir_candidate *candidate)
{
    static const struct weir_trial none = {.used = {.workers = -1, .prefetch = -1}};
    const struct weir_trial *typical = weir_candidate_typical(candidate), *trial = typical ? typical : &none;
    const struct weir_candidate *reference = bench_reference(grid, candidate->cold);
    struct weir_interval images;
    bool tie, ignored;
    weir_candidate_interval(candidate, weir_trial_images_per_s, &images);
    weir_json_object(json, NULL);
    weir_json_text(json, "format", grid->formats[candidate->format].name);
    weir_json_text(json, "cache", candidate->limit ? "memory" : candidate->cold ? "cold" : "warm");
    weir_fields_object(json, "settings", &settings_fields, &candidate->settings);
    weir_fields_object(json, "used", &used_fields, trial);
    weir_strings_json(json, "command", candidate->argv, INT_MAX);
    weir_json_text(json, "error", *candidate->why ? candidate->why : NULL);
    weir_json_bool(json, "converged", weir_interval_converged(&images, WEIR_CLOSE));
    figures(json, candidate);
    ratio(json, "ratio", candidate, reference, &tie);
    weir_json_bool(json, "tie", tie);
    ratio(json, "limit_fraction", candidate,
          candidate->limit_candidate >= 0 ? &grid->candidates[candidate->limit_candidate] : NULL, &ignored);
    weir_fields_array(json, "stages", &weir_row_fields, trial->stages, trial->n_stages, sizeof *trial->stages);
    double part = -1;
    const struct weir_report_row *bound = typical ? weir_trial_bound(typical, &part) : NULL;
    weir_json_text(json, "bound_by", bound ? bound->name : NULL);
    weir_json_known(json, "bound_part", bound ? part : -1);
    /* Every trial, so that readers can compute other statistics. */
    weir_fields_array(json, "turns", &turn_fields, candidate->trials, candidate->n_trials, sizeof *candidate->trials);
    weir_json_end(json, '}');
}

static void advice_json(struct weir_json *json, const struct weir_grid_advice *advice)
{
    weir_json_object(json, "advice");
    weir_json_text(json, "format", advice->format);
    weir_json_text(json, "next", advice->next);
    weir_strings_json(json, "command", advice->best ? advice->best->argv : NULL, advice->best ? INT_MAX : 0);
    weir_json_end(json, '}');
}

void bench_print_json(const struct bench_results *results, const struct weir_command *command, FILE *out)
{
    struct weir_json json;
    struct weir_sysinfo machine;
    char text[64];
    weir_sysinfo_read(&machine);
    weir_cli_json_open(&json, out);
    weir_json_text(&json, "weir", weir_version());
    weir_json_text(&json, "git", weir_git_describe());
    weir_json_object(&json, "machine");
    weir_fields_json(&json, &weir_sysinfo_fields, &machine);
    weir_filesystem_of(results->setup->data, text, sizeof text);
    weir_json_text(&json, "data_filesystem", text);
    weir_filesystem_of(results->setup->folder, text, sizeof text);
    weir_json_text(&json, "work_filesystem", text);
    weir_json_end(&json, '}');
    weir_json_object(&json, "copies");
    weir_json_text(&json, "folder", *results->setup->folder ? results->setup->folder : NULL);
    weir_json_bool(&json, "temporary", results->setup->temporary != NULL);
    weir_json_bool(&json, "in_memory", results->setup->in_memory);
    weir_json_end(&json, '}');
    weir_options_object(&json, "config", results->setup->data, command, results->setup->options);
    weir_fields_array(&json, "formats", &format_fields, results->grid->formats, results->grid->n_formats,
                      sizeof *results->grid->formats);
    weir_json_text(&json, "left_out", results->setup->left_out);
    weir_fields_object(&json, "warm", &rounds_fields, &results->warm);
    weir_fields_object(&json, "cold", &rounds_fields, &results->cold);
    weir_json_double(&json, "took_s", results->took_s);
    weir_json_array(&json, "cells");
    for (int i = 0; i < results->grid->n; i++)
        candidate_json(&json, results->grid, &results->grid->candidates[i]);
    weir_json_end(&json, ']');
    advice_json(&json, &results->advice);
    weir_cli_json_close(&json);
}
