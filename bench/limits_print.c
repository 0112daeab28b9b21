#include "bench/limits.h"
#include "cli/sysinfo.h"
#include "prof/record/recorder.h"

#include <string.h>

static double bytes_mean(const struct raw_frames *frames)
{
    double sum = 0;
    for (int i = 0; i < frames->n; i++)
        sum += (double)frames->lengths[i];
    return frames->n ? sum / frames->n : 0;
}

static const char *verdict(bool met)
{
    return met ? "PASS" : "MISS";
}

/* "558 (544 - 571)" */
static const char *spread(char text[48], const struct series *series, int digits)
{
    snprintf(text, 48, "%.*f (%.*f - %.*f)", digits, series_at(series, 0.5), digits, series_at(series, 0), digits,
             series_at(series, 1));
    return text;
}

static void print_rates(const struct comparison *c)
{
    char raw[48], weir[48], ratio[48], target[32] = "no target";
    double median = series_at(&c->ratio, 0.5);
    if (c->target > 0)
        snprintf(target, sizeof target, "%s (>= %.2f)", verdict(median >= c->target), c->target);
    printf("%7d  %-8s  %-23s  %-23s  %-22s  %s\n", c->workers, c->format, spread(raw, &c->raw, 0),
           spread(weir, &c->weir, 0), spread(ratio, &c->ratio, 3), target);
}

static void print_shares(const struct comparison *c)
{
    double rest = 1 - c->decode_share - c->convert_share - c->read_share - c->wait_share;
    char harness[48];
    snprintf(harness, sizeof harness, "%.0f (%.0f)", c->harness_tasks_per_s, c->harness_images_per_s);
    printf("%7d  %-8s  %7.2f %%  %7.2f %%  %7.2f %%  %7.2f %%  %7.2f %%   %s\n", c->workers, c->format,
           100 * c->decode_share, 100 * c->convert_share, 100 * c->read_share, 100 * c->wait_share, 100 * rest,
           harness);
}

static void print_promises(const struct comparison *c)
{
    char split[32], timers[32], memory[64];
    snprintf(split, sizeof split, "%.3f %% %s", 100 * c->split_error, verdict(c->split_error <= LIMITS_SPLIT_MAX));
    snprintf(timers, sizeof timers, "%.4f %% %s", 100 * c->profiler_share,
             verdict(c->profiler_share < LIMITS_PROFILER_MAX));
    snprintf(memory, sizeof memory, "%.1f of %.1f MB %s", (double)c->peak_bytes / 1e6, (double)c->bound_bytes / 1e6,
             verdict(c->peak_bytes <= c->bound_bytes));
    printf("%7d  %-8s  %-22s  %-22s  %s\n", c->workers, c->format, split, timers, memory);
}

void limits_print(const struct limits_options *o, const struct raw_frames *frames, const struct comparison *c, int n)
{
    char filesystem[64];
    bench_print_machine();
    weir_filesystem_of(o->data, filesystem, sizeof filesystem);
    printf("frames:  %s (%s, page cache warm), %d of %dx%d, %.1f KB each\n", o->data, filesystem, frames->n,
           frames->width, frames->height, bytes_mean(frames) / 1e3);
    printf("method:  n = %d turns of %g s a side, taking turns; batches of %d; median (min - max)\n", o->rounds,
           o->seconds, o->batch_size);
    if (o->raw_only) {
        char raw[48];
        printf("\nworkers  raw libjpeg-turbo, im/s\n");
        for (int i = 0; i < n; i++)
            printf("%7d  %s\n", c[i].workers, spread(raw, &c[i].raw, 0));
        return;
    }
    printf("\nworkers  format    raw libjpeg-turbo, im/s  weir, im/s               weir/raw of each pair   target\n");
    for (int i = 0; i < n; i++)
        print_rates(&c[i]);
    printf("\nworkers  format    decoding   converting reading    waiting    other       harness alone, tasks/s "
           "(images/s)\n");
    for (int i = 0; i < n; i++)
        print_shares(&c[i]);
    printf("\nworkers  format    wall not explained      timers (%4.1f ns a zone)  peak memory\n", weir_zone_cost_ns());
    for (int i = 0; i < n; i++)
        print_promises(&c[i]);
}

static void json_comparison(struct weir_json *json, const struct comparison *c, bool raw_only)
{
    weir_json_object(json, NULL);
    weir_json_int(json, "workers", c->workers);
    weir_json_text(json, "format", c->format);
    series_json(json, "raw_images_per_s", &c->raw);
    if (raw_only) {
        weir_json_end(json, '}');
        return;
    }
    series_json(json, "weir_images_per_s", &c->weir);
    series_json(json, "ratio", &c->ratio);
    if (c->target > 0)
        weir_json_double(json, "ratio_target", c->target);
    else
        weir_json_null(json, "ratio_target");
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
    weir_json_end(json, '}');
}

void limits_print_json(const struct weir_command *command, const struct limits_options *o,
                       const struct raw_frames *frames, const struct comparison *c, int n)
{
    struct weir_json json;
    char filesystem[64];
    weir_json_open(&json, stdout, true);
    weir_json_object(&json, NULL);
    bench_json_machine(&json);
    weir_json_object(&json, "config");
    weir_options_json(command, o, &json);
    weir_json_end(&json, '}');
    weir_filesystem_of(o->data, filesystem, sizeof filesystem);
    weir_json_text(&json, "filesystem", filesystem);
    weir_json_int(&json, "frames", frames->n);
    weir_json_int(&json, "width", frames->width);
    weir_json_int(&json, "height", frames->height);
    weir_json_double(&json, "frame_bytes_mean", bytes_mean(frames));
    weir_json_double(&json, "zone_cost_ns", weir_zone_cost_ns());
    weir_json_array(&json, "comparisons");
    for (int i = 0; i < n; i++)
        json_comparison(&json, &c[i], o->raw_only);
    weir_json_end(&json, ']');
    weir_json_end(&json, '}');
    weir_json_close(&json);
}
