#include "bench/limits.h"
#include "cli/sysinfo.h"
#include "weir/recorder.h"

#include <string.h>

/* Returns the target for the ratio to libjpeg-turbo, or 0 if none exists. Targets exist only for the decoder turbo,
 * the formats u8 and f32-nchw, and qualities 95 and 50. f32-nchw is compared with u8, because libjpeg-turbo cannot
 * output floats. */
static double raw_target(const struct comparison *c)
{
    int quality = c->data->quality;
    if ((quality != 95 && quality != 50) || strcmp(c->decoder, "turbo") != 0)
        return 0;
    if (strcmp(c->format->name, "f32-nchw") == 0)
        return 1.15;
    return strcmp(c->format->name, "u8") != 0 ? 0 : quality == 95 ? 1.4 : 1.3;
}

static double simplejpeg_target(const struct comparison *c)
{
    return strcmp(c->format->name, "u8") == 0 && raw_target(c) > 0 ? 1.3 : 0;
}

static const char *verdict(bool met)
{
    return met ? "PASS" : "MISS";
}

/* Formats the median, min and max, such as "558 (544 - 571)". */
static const char *spread(char text[48], const struct series *series, int digits)
{
    snprintf(text, 48, "%.*f (%.*f - %.*f)", digits, series_at(series, 0.5), digits, series_at(series, 0), digits,
             series_at(series, 1));
    return text;
}

/* Formats the ratios of all rounds and the verdict, such as "1.512 (1.490 - 1.530) PASS (>= 1.40)". */
static const char *ratio(char text[96], const struct series *above, const struct series *below, double target)
{
    struct series ratios;
    char values[48];
    series_ratio(above, below, &ratios);
    int n = snprintf(text, 96, "%s", spread(values, &ratios, 3));
    if (target > 0)
        snprintf(text + n, 96 - (size_t)n, " %s (>= %.2f)", verdict(series_at(&ratios, 0.5) >= target), target);
    return text;
}

/* ---- the tables, one row per comparison ---- */

static void print_name(const struct comparison *c)
{
    printf("%7d  %-16s  %-14s", c->workers, c->format->name, c->decoder);
}

static void print_rates(const struct comparison *c)
{
    char raw[48], simplejpeg[48], weir[48];
    print_name(c);
    printf("  %-26s", spread(raw, &c->raw, 0));
    if (c->data->has_simplejpeg)
        printf("  %-26s", spread(simplejpeg, &c->simplejpeg, 0));
    printf("  %s\n", spread(weir, &c->weir, 0));
}

static void print_ratios(const struct comparison *c)
{
    char raw[96], simplejpeg[96], both[96];
    print_name(c);
    printf("  %-36s", ratio(raw, &c->weir, &c->raw, raw_target(c)));
    if (c->data->has_simplejpeg)
        printf("  %-36s  %s", ratio(simplejpeg, &c->weir, &c->simplejpeg, simplejpeg_target(c)),
               ratio(both, &c->simplejpeg, &c->raw, 0));
    puts("");
}

static void print_shares(const struct comparison *c)
{
    double rest = 1 - c->decode_share - c->convert_share - c->read_share - c->wait_share;
    print_name(c);
    printf("  %7.2f %%  %7.2f %%  %7.2f %%  %7.2f %%  %7.2f %%   %.0f (%.0f)\n", 100 * c->decode_share,
           100 * c->convert_share, 100 * c->read_share, 100 * c->wait_share, 100 * rest, c->harness_tasks_per_s,
           c->harness_images_per_s);
}

static void print_promises(const struct comparison *c)
{
    char split[32], timers[32];
    snprintf(split, sizeof split, "%.3f %% %s", 100 * c->split_error, verdict(c->split_error <= LIMITS_SPLIT_MAX));
    snprintf(timers, sizeof timers, "%.4f %% %s", 100 * c->profiler_share,
             verdict(c->profiler_share < LIMITS_PROFILER_MAX));
    print_name(c);
    printf("  %-22s  %-22s  %.1f of %.1f MB %s\n", split, timers, (double)c->peak_bytes / 1e6,
           (double)c->bound_bytes / 1e6, verdict(c->peak_bytes <= c->bound_bytes));
}

static void print_raw(const struct comparison *c)
{
    char raw[48];
    printf("%7d  %s\n", c->workers, spread(raw, &c->raw, 0));
}

struct rows {
    const struct comparison *c; /* the comparisons of one dataset */
    int n, step;
};

static void print_table(const char *head, struct rows rows, void (*print)(const struct comparison *c))
{
    printf("%s\n", head);
    for (int i = 0; i < rows.n; i += rows.step)
        print(&rows.c[i]);
}

/* Prints the ratio of Weir's first decoder to each of the others, computed per round. */
static void print_decoders(struct rows rows, int n_decoders)
{
    if (n_decoders > 1)
        puts("");
    for (int i = 0; i < rows.n; i++) {
        const struct comparison *c = &rows.c[i], *first = &rows.c[i - i % n_decoders];
        char text[96];
        if (c != first)
            printf("%7d  %-16s  %s / %s: %s\n", c->workers, c->format->name, first->decoder, c->decoder,
                   ratio(text, &first->weir, &c->weir, 0));
    }
}

/* ---- complete output ---- */

void limits_print_head(const struct limits_options *o)
{
    bench_print_machine();
    printf("method:  n = %d trials of %g s per side, interleaved; batches of %d; median (min - max)\n", o->rounds,
           o->seconds, o->batch_size);
    fflush(stdout);
}

static struct rows rows_of(const struct limits_plan *plan, const struct limits_data *data)
{
    int n = plan->n_formats * plan->n_counts * plan->n_decoders;
    return (struct rows){&plan->comparisons[(data - plan->data) * n], n, 1};
}

static void print_data(const struct limits_data *data)
{
    char filesystem[64], quality[32] = "mixed qualities";
    weir_filesystem_of(data->path, filesystem, sizeof filesystem);
    if (data->quality)
        snprintf(quality, sizeof quality, "quality %d", data->quality);
    printf("\nframes:  %s (%s, page cache warm), %d of %dx%d, %s, %.1f KB each\n", data->path, filesystem, data->frames,
           data->width, data->height, quality, data->bytes_mean / 1e3);
    if (*data->simplejpeg)
        printf("peer:    %s%s\n", data->has_simplejpeg ? "" : "simplejpeg is left out: ", data->simplejpeg);
}

void limits_print(const struct limits_options *o, const struct limits_plan *plan, const struct limits_data *data)
{
    struct rows rows = rows_of(plan, data);
    bool three = data->has_simplejpeg;
    char head[160];
    print_data(data);
    if (o->raw_only) {
        rows.step = plan->n_decoders;
        print_table("\nworkers  raw libjpeg-turbo, im/s", rows, print_raw);
        return;
    }
    print_table(three ? "\nworkers  format            decoder         raw libjpeg-turbo, im/s     simplejpeg, im/s     "
                        "       weir, im/s"
                      : "\nworkers  format            decoder         raw libjpeg-turbo, im/s     weir, im/s",
                rows, print_rates);
    print_table(
        three
            ? "\nworkers  format            decoder         weir/raw per round                    weir/simplejpeg     "
              "                  simplejpeg/raw"
            : "\nworkers  format            decoder         weir/raw per round",
        rows, print_ratios);
    print_decoders(rows, plan->n_decoders);
    print_table(
        "\nworkers  format            decoder         decoding   converting reading    waiting    other       harness "
        "alone, tasks/s (images/s)",
        rows, print_shares);
    snprintf(
        head, sizeof head,
        "\nworkers  format            decoder         unaccounted time        timers (%4.1f ns/zone)    peak memory",
        weir_zone_cost_ns());
    print_table(head, rows, print_promises);
    fflush(stdout);
}

/* ---- JSON ---- */

static void json_data(struct weir_json *json, const struct limits_data *data)
{
    char filesystem[64];
    weir_filesystem_of(data->path, filesystem, sizeof filesystem);
    weir_json_object(json, NULL);
    weir_json_text(json, "data", data->path);
    weir_json_text(json, "filesystem", filesystem);
    weir_json_int(json, "frames", data->frames);
    weir_json_int(json, "width", data->width);
    weir_json_int(json, "height", data->height);
    weir_json_double(json, "frame_bytes_mean", data->bytes_mean);
    if (data->quality)
        weir_json_int(json, "quality", data->quality);
    else
        weir_json_null(json, "quality");
    if (*data->simplejpeg)
        weir_json_text(json, data->has_simplejpeg ? "simplejpeg" : "simplejpeg_left_out", data->simplejpeg);
    weir_json_end(json, '}');
}

/* target is 0 if none exists. */
static void json_ratio(struct weir_json *json, const char *key, const struct series *above, const struct series *below,
                       double target)
{
    struct series ratios;
    char target_key[64];
    series_ratio(above, below, &ratios);
    series_json(json, key, &ratios);
    snprintf(target_key, sizeof target_key, "%s_target", key);
    if (target > 0)
        weir_json_double(json, target_key, target);
    else
        weir_json_null(json, target_key);
}

static void json_weir(struct weir_json *json, const struct comparison *c)
{
    weir_json_text(json, "decoder", c->decoder);
    series_json(json, "weir_images_per_s", &c->weir);
    json_ratio(json, "weir_over_raw", &c->weir, &c->raw, raw_target(c));
    if (c->data->has_simplejpeg) {
        series_json(json, "simplejpeg_images_per_s", &c->simplejpeg);
        json_ratio(json, "weir_over_simplejpeg", &c->weir, &c->simplejpeg, simplejpeg_target(c));
        json_ratio(json, "simplejpeg_over_raw", &c->simplejpeg, &c->raw, 0);
    }
    weir_json_double(json, "decode_share", c->decode_share);
    weir_json_double(json, "convert_share", c->convert_share);
    weir_json_double(json, "read_share", c->read_share);
    weir_json_double(json, "wait_share", c->wait_share);
    weir_json_double(json, "split_error_max", c->split_error);
    weir_json_double(json, "profiler_share_max", c->profiler_share);
    weir_json_uint(json, "peak_rss_bytes", c->peak_bytes);
    weir_json_uint(json, "peak_rss_bound_bytes", c->bound_bytes);
    weir_json_double(json, "harness_tasks_per_s", c->harness_tasks_per_s);
    weir_json_double(json, "harness_images_per_s", c->harness_images_per_s);
}

static void json_comparisons(struct weir_json *json, const struct limits_options *o, const struct limits_plan *plan,
                             const struct limits_data *data)
{
    struct rows rows = rows_of(plan, data);
    for (int i = 0; i < rows.n; i += o->raw_only ? plan->n_decoders : 1) {
        const struct comparison *c = &rows.c[i];
        weir_json_object(json, NULL);
        weir_json_text(json, "data", data->path);
        weir_json_int(json, "workers", c->workers);
        weir_json_text(json, "format", c->format->name);
        series_json(json, "raw_images_per_s", &c->raw);
        if (!o->raw_only)
            json_weir(json, c);
        weir_json_end(json, '}');
    }
}

void limits_print_json(const struct weir_command *command, const struct limits_options *o,
                       const struct limits_plan *plan)
{
    struct weir_json json;
    bench_json_begin(&json, command, o);
    weir_json_double(&json, "zone_cost_ns", weir_zone_cost_ns());
    weir_json_array(&json, "datasets");
    for (int i = 0; i < plan->n_data; i++)
        json_data(&json, &plan->data[i]);
    weir_json_end(&json, ']');
    weir_json_array(&json, "comparisons");
    for (int i = 0; i < plan->n_data; i++)
        json_comparisons(&json, o, plan, &plan->data[i]);
    weir_json_end(&json, ']');
    weir_json_end(&json, '}');
    weir_json_close(&json);
}
