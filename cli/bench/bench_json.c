#include "cli/bench/bench_print.h"
#include "cli/sysinfo.h"
#include "weir/base.h"

#include <string.h>

static void interval(struct weir_json *json, const char *key, const struct weir_interval *i)
{
    if (i->n == 0) {
        weir_json_null(json, key);
        return;
    }
    weir_json_object(json, key);
    weir_json_int(json, "n", i->n);
    weir_json_double(json, "median", i->median);
    weir_json_double(json, "low", i->low);
    weir_json_double(json, "high", i->high);
    weir_json_double(json, "least", i->least);
    weir_json_double(json, "most", i->most);
    weir_json_double(json, "probability", i->probability);
    weir_json_end(json, '}');
}

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
        interval(json, all[i].name, &found);
    }
}

static void ratio(struct weir_json *json, const char *key, const struct weir_candidate *candidate,
                  const struct weir_candidate *other, bool *tie)
{
    struct weir_interval found = {.n = 0};
    if (other)
        weir_candidate_ratio(candidate, other, 1, &found);
    interval(json, key, &found);
    *tie = weir_relation_is_tie(weir_relation_of(&found));
}

static void stages(struct weir_json *json, const struct weir_trial *trial)
{
    weir_json_array(json, "stages");
    for (int i = 0; trial && i < trial->n_stages; i++) {
        const struct weir_report_row *stage = &trial->stages[i];
        weir_json_object(json, NULL);
        weir_json_text(json, "name", stage->name);
        weir_json_text(json, "kind", weir_stage_kind_name(stage->kind));
        weir_json_text(json, "side", weir_report_side_name(stage->side));
        weir_json_double(json, "count", (double)stage->count);
        weir_json_double(json, "total_s", stage->total_s);
        weir_json_double(json, "self_s", stage->self_s);
        weir_json_double(json, "mean_s", stage->mean_s);
        weir_json_double(json, "p99_s", stage->p99_s);
        weir_json_known(json, "share", stage->share);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    double part;
    const struct weir_report_row *bound = trial ? weir_trial_bound(trial, &part) : NULL;
    weir_json_text(json, "bound_by", bound ? bound->name : NULL);
    weir_json_known(json, "bound_part", bound ? part : -1);
}

/* Writes every trial, so that readers can compute other statistics. */
static void trials(struct weir_json *json, const struct weir_candidate *candidate)
{
    weir_json_array(json, "turns");
    for (int i = 0; i < candidate->n_trials; i++) {
        const struct weir_trial *trial = &candidate->trials[i];
        weir_json_object(json, NULL);
        weir_json_int(json, "round", trial->round - 1);
        weir_json_double(json, "seconds", trial->measured.seconds);
        weir_json_uint(json, "images", trial->measured.images);
        weir_json_double(json, "images_per_s", trial->measured.images_per_s);
        weir_json_double(json, "cpu_s", trial->cpu_s);
        weir_json_text(json, "reads", weir_report_reads_name(trial->measured.reads));
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

static void settings(struct weir_json *json, const struct weir_candidate *candidate, const struct weir_trial *trial)
{
    const struct weir_candidate_settings *s = &candidate->settings;
    weir_json_object(json, "settings");
    weir_json_text(json, "num_workers", s->num_workers);
    weir_json_text(json, "prefetch", s->prefetch);
    weir_json_text(json, "batch_size", s->batch_size);
    weir_json_text(json, "io", s->io);
    weir_json_text(json, "decoder", s->decoder);
    weir_json_text(json, "device", s->device);
    weir_json_end(json, '}');
    weir_json_object(json, "used");
    weir_json_known(json, "num_workers", trial ? trial->used.workers : -1);
    weir_json_known(json, "prefetch", trial ? trial->used.prefetch : -1);
    weir_json_text(json, "io", trial ? trial->used.io : NULL);
    weir_json_text(json, "decoder", trial ? trial->used.decoder : NULL);
    weir_json_end(json, '}');
}

static void candidate_json(struct weir_json *json, const struct weir_grid *grid, const struct weir_candidate *candidate)
{
    const struct weir_trial *trial = weir_candidate_typical(candidate);
    const struct weir_candidate *reference = bench_reference(grid, candidate->cold);
    struct weir_interval images;
    bool tie, ignored;
    weir_candidate_interval(candidate, weir_trial_images_per_s, &images);
    weir_json_object(json, NULL);
    weir_json_text(json, "format", grid->formats[candidate->format].name);
    weir_json_text(json, "cache", candidate->limit ? "memory" : candidate->cold ? "cold" : "warm");
    settings(json, candidate, trial);
    weir_json_array(json, "command");
    for (char **arg = candidate->argv; *arg; arg++)
        weir_json_text(json, NULL, *arg);
    weir_json_end(json, ']');
    weir_json_text(json, "error", *candidate->why ? candidate->why : NULL);
    weir_json_bool(json, "converged", weir_interval_converged(&images, WEIR_CLOSE));
    figures(json, candidate);
    ratio(json, "ratio", candidate, reference, &tie);
    weir_json_bool(json, "tie", tie);
    ratio(json, "limit_fraction", candidate,
          candidate->limit_candidate >= 0 ? &grid->candidates[candidate->limit_candidate] : NULL, &ignored);
    stages(json, trial);
    trials(json, candidate);
    weir_json_end(json, '}');
}

static void rounds_json(struct weir_json *json, const char *key, const struct bench_rounds *rounds)
{
    static const char *const ends[] = {"converged", "rounds", "time", "interrupted"};
    weir_json_object(json, key);
    weir_json_text(json, "end", ends[rounds->end]);
    weir_json_int(json, "rounds", rounds->rounds);
    weir_json_int(json, "not_converged", rounds->not_converged);
    weir_json_end(json, '}');
}

static void formats_json(struct weir_json *json, const struct bench_results *results)
{
    const struct weir_grid *grid = results->grid;
    weir_json_array(json, "formats");
    for (int f = 0; f < grid->n_formats; f++) {
        weir_json_object(json, NULL);
        weir_json_text(json, "name", grid->formats[f].name);
        weir_json_text(json, "path", grid->formats[f].path);
        weir_json_uint(json, "size_bytes", grid->formats[f].bytes);
        weir_json_double(json, "bytes_per_frame", grid->formats[f].bytes_each);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    weir_json_text(json, "left_out", results->setup->left_out);
}

static void advice_json(struct weir_json *json, const struct weir_advice *advice)
{
    weir_json_object(json, "advice");
    weir_json_text(json, "format", advice->format);
    weir_json_text(json, "next", advice->next);
    weir_json_array(json, "command");
    for (char **arg = advice->best ? advice->best->argv : NULL; arg && *arg; arg++)
        weir_json_text(json, NULL, *arg);
    weir_json_end(json, ']');
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
    weir_json_object(&json, "config");
    weir_json_text(&json, "data", results->setup->data);
    weir_options_json(command, results->setup->options, &json);
    weir_json_end(&json, '}');
    formats_json(&json, results);
    rounds_json(&json, "warm", &results->warm);
    rounds_json(&json, "cold", &results->cold);
    weir_json_double(&json, "took_s", results->took_s);
    weir_json_array(&json, "cells");
    for (int i = 0; i < results->grid->n; i++)
        candidate_json(&json, results->grid, &results->grid->candidates[i]);
    weir_json_end(&json, ']');
    advice_json(&json, &results->advice);
    weir_cli_json_close(&json);
}
