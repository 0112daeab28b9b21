/* limits: images/s of the loader beside raw libjpeg-turbo on the same frames, in the same number of threads, taking
 * turns within one run. */
#include "bench/raw_turbo.h"
#include "bench/weir_side.h"
#include "cli/options.h"
#include "cli/sysinfo.h"
#include "datasets/synth.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FRAMES_MAX = 4096, ROUNDS_MAX = 99, WORKERS_LISTED = 16 };
static const double TARGET = 0.90;

struct limits_options {
    const char *data, *workers;
    int rounds, output, layout, batch_size;
    double seconds;
    bool json;
};

static const struct weir_opt limits_opts[] = {
    {"data", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, data), "DIR", "build/bench-640x480-q95",
     "JPEG dataset; made here (640x480, quality 95) when it is not there"},
    {"workers", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, workers), "1,auto", "1,auto",
     "worker counts to compare"},
    {"rounds", WEIR_OPT_INT, .offset = offsetof(struct limits_options, rounds), "N", "7", "turns of each side", 1,
     ROUNDS_MAX},
    {"seconds", WEIR_OPT_DOUBLE, .offset = offsetof(struct limits_options, seconds), "F", "1.5", "length of a turn",
     0.05, 600},
    {"batch-size", WEIR_OPT_INT, .offset = offsetof(struct limits_options, batch_size), "N", "8", "samples per batch",
     1, 1024},
    {"output", WEIR_OPT_ENUM, .offset = offsetof(struct limits_options, output), "u8|f32", "u8", "the loader's images"},
    {"layout", WEIR_OPT_ENUM, .offset = offsetof(struct limits_options, layout), "nhwc|nchw", "nhwc", "likewise"},
    {"json", WEIR_OPT_FLAG, .offset = offsetof(struct limits_options, json), .help = "print JSON"},
};

struct series {
    int n;
    double values[ROUNDS_MAX];
};

struct comparison {
    int workers;
    struct series raw, weir, ratio;
    double split_error, profiler_share; /* largest seen */
};

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void add(struct series *series, double value)
{
    series->values[series->n++] = value;
}

static double at(const struct series *series, double q)
{
    double sorted[ROUNDS_MAX];
    memcpy(sorted, series->values, sizeof *sorted * (size_t)series->n);
    qsort(sorted, (size_t)series->n, sizeof *sorted, by_value);
    double place = q * (series->n - 1);
    int low = (int)place, high = low + 1 < series->n ? low + 1 : low;
    return sorted[low] + (sorted[high] - sorted[low]) * (place - low);
}

static void to_config(const struct limits_options *o, int workers, struct weir_loader_config *config)
{
    weir_loader_config_default(config);
    config->data = o->data;
    config->num_workers = workers;
    config->batch_size = o->batch_size;
    config->num_epochs = 1000000; /* ended by time */
    config->train_split = 1;
    config->format.dtype = (enum weir_dtype)o->output;
    config->format.layout = (enum weir_image_layout)o->layout;
}

static int compare(const struct limits_options *o, const struct raw_frames *frames, struct comparison *c,
                   struct weir_err *err)
{
    struct weir_loader_config config;
    to_config(o, c->workers, &config);
    raw_turbo_rate(frames, c->workers, o->seconds / 5);
    for (int i = 0; i < o->rounds; i++) {
        struct weir_side side;
        double raw = raw_turbo_rate(frames, c->workers, o->seconds);
        if (raw < 0)
            return weir_err_set(err, -EBADMSG, "%s: a frame does not decode", o->data);
        int rc = weir_side_run(&config, o->seconds, &side, err);
        if (rc < 0)
            return rc;
        add(&c->raw, raw);
        add(&c->weir, side.images_per_s);
        add(&c->ratio, side.images_per_s / raw);
        c->split_error = side.split_error > c->split_error ? side.split_error : c->split_error;
        c->profiler_share = side.profiler_share > c->profiler_share ? side.profiler_share : c->profiler_share;
    }
    return 0;
}

static int make_data(const char *path, struct weir_err *err)
{
    struct stat st;
    if (stat(path, &st) == 0)
        return 0;
    struct weir_synth_config config;
    weir_synth_config_default(&config);
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return weir_err_set(err, -ENAMETOOLONG, "%s: name too long", path);
    config.out = part;
    config.format = "act-jpeg";
    config.cameras = "top,left,right,low";
    config.episodes = 6;
    config.steps = 40;
    fprintf(stderr, "making %s: 960 frames of 640x480 at quality 95\n", path);
    int rc = weir_synth_write(&config, err);
    return rc == 0 && rename(part, path) != 0 ? weir_err_set(err, -errno, "%s: %s", path, strerror(errno)) : rc;
}

/* "1,2,auto" as numbers, ascending order and doubles left to the caller; how many, or -EINVAL. */
static int parse_workers(const char *text, int *workers, struct weir_err *err)
{
    int n = 0;
    while (*text && n < WORKERS_LISTED) {
        char *end = NULL;
        long value = strncmp(text, "auto", 4) == 0 ? weir_cores_usable() : strtol(text, &end, 10);
        end = end ? end : (char *)text + 4;
        if (value < 1 || value > WEIR_WORKERS_MAX || (*end != ',' && *end != '\0'))
            return weir_err_set(err, -EINVAL, "--workers takes numbers and auto, as in 1,auto");
        workers[n++] = (int)value;
        text = *end ? end + 1 : end;
    }
    return n;
}

struct extras {
    uint64_t peak_bytes, bound_bytes;
    double harness; /* images/s with null engines */
};

static int measure_extras(const struct limits_options *o, int workers, struct extras *extras, struct weir_err *err)
{
    struct weir_loader_config config;
    struct weir_side side;
    to_config(o, workers, &config);
    int rc = weir_side_peak(&config, o->seconds, &side, &extras->peak_bytes);
    if (rc < 0)
        return weir_err_set(err, rc, "the child process for the memory figure failed");
    extras->bound_bytes = side.slots_bytes + side.index_bytes + (uint64_t)side.workers * side.extent_max + (64u << 20);
    config.io = "null";
    config.decoder = "null";
    rc = weir_side_run(&config, o->seconds, &side, err);
    extras->harness = side.images_per_s;
    return rc;
}

static void print_machine(const struct raw_frames *frames, const struct limits_options *o)
{
    struct weir_sysinfo info;
    char text[256];
    weir_sysinfo_read(&info);
    printf("%s, %d usable cores (quota %g), governor %s, %s\n", info.cpu_model, info.cores.usable, info.cores.quota,
           info.governor, info.kernel);
    weir_decoder_library(text, sizeof text);
    printf("weir %s (%s), %s, %s\n", weir_version(), weir_git_describe(), weir_compiler(), text);
    weir_filesystem_of(o->data, text, sizeof text);
    printf("%s (%s): %d frames of %dx%d; %d turns of %g s a side\n", o->data, text, frames->n, frames->width,
           frames->height, o->rounds, o->seconds);
}

static void print_text(const struct comparison *c, int n, const struct extras *extras)
{
    printf("\nworkers   raw libjpeg-turbo, images/s      weir, images/s                 weir/raw\n");
    printf("          median (min - max)               median (min - max)             median (min - max)\n");
    for (int i = 0; i < n; i++)
        printf("%-9d %-8.0f (%.0f - %.0f)%*s%-8.0f (%.0f - %.0f)%*s%.3f (%.3f - %.3f)  %s %.2f\n", c[i].workers,
               at(&c[i].raw, 0.5), at(&c[i].raw, 0), at(&c[i].raw, 1), 8, "", at(&c[i].weir, 0.5), at(&c[i].weir, 0),
               at(&c[i].weir, 1), 8, "", at(&c[i].ratio, 0.5), at(&c[i].ratio, 0), at(&c[i].ratio, 1),
               at(&c[i].ratio, 0.5) >= TARGET ? "meets" : "misses", TARGET);
    for (int i = 0; i < n; i++)
        printf("%d workers: work + waits + other is within %.3f %% of wall time; timers cost %.3f %% of thread time\n",
               c[i].workers, 100 * c[i].split_error, 100 * c[i].profiler_share);
    printf("peak memory %.1f MB; slots + index + workers x largest piece + 64 MB = %.1f MB: %s\n",
           (double)extras->peak_bytes / 1e6, (double)extras->bound_bytes / 1e6,
           extras->peak_bytes <= extras->bound_bytes ? "within" : "over");
    printf("harness alone (--io null --decoder null): %.0f images/s\n", extras->harness);
}

static void json_series(struct weir_json *json, const char *key, const struct series *series)
{
    weir_json_object(json, key);
    weir_json_int(json, "n", series->n);
    weir_json_double(json, "min", at(series, 0));
    weir_json_double(json, "median", at(series, 0.5));
    weir_json_double(json, "max", at(series, 1));
    weir_json_end(json, '}');
}

static void print_json(const struct weir_command *command, const struct limits_options *o, const struct comparison *c,
                       int n, const struct extras *extras)
{
    struct weir_json json;
    struct weir_sysinfo info;
    weir_sysinfo_read(&info);
    weir_json_open(&json, stdout, true);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "git", weir_git_describe());
    weir_json_object(&json, "machine");
    weir_sysinfo_json(&info, &json);
    weir_json_end(&json, '}');
    weir_json_object(&json, "config");
    weir_options_json(command, o, &json);
    weir_json_end(&json, '}');
    weir_json_array(&json, "comparisons");
    for (int i = 0; i < n; i++) {
        weir_json_object(&json, NULL);
        weir_json_int(&json, "workers", c[i].workers);
        json_series(&json, "raw_images_per_s", &c[i].raw);
        json_series(&json, "weir_images_per_s", &c[i].weir);
        json_series(&json, "ratio", &c[i].ratio);
        weir_json_double(&json, "split_error", c[i].split_error);
        weir_json_double(&json, "profiler_share", c[i].profiler_share);
        weir_json_end(&json, '}');
    }
    weir_json_end(&json, ']');
    weir_json_uint(&json, "peak_rss_bytes", extras->peak_bytes);
    weir_json_uint(&json, "peak_rss_bound_bytes", extras->bound_bytes);
    weir_json_double(&json, "harness_images_per_s", extras->harness);
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

static int limits_main(const struct weir_command *command, int argc, char **argv)
{
    struct limits_options o;
    int n_args, workers[WORKERS_LISTED];
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, NULL, &n_args);
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    static struct comparison comparisons[WORKERS_LISTED];
    struct weir_err err = WEIR_ERR_NONE;
    struct raw_frames frames = {0};
    struct extras extras = {0};
    int n = parse_workers(o.workers, workers, &err), rc = n < 0 ? n : make_data(o.data, &err);
    if (rc == 0)
        rc = measure_extras(&o, workers[n - 1], &extras, &err); /* first: the memory figure wants a small process */
    if (rc == 0)
        rc = raw_frames_load(&frames, o.data, FRAMES_MAX, &err);
    for (int i = 0; i < n && rc == 0; i++) {
        comparisons[i].workers = workers[i];
        fprintf(stderr, "%d workers: %d turns of %g s\n", workers[i], 2 * o.rounds, o.seconds);
        rc = compare(&o, &frames, &comparisons[i], &err);
    }
    if (rc < 0) {
        fprintf(stderr, "limits: %s\n", err.text);
    } else if (o.json) {
        print_json(command, &o, comparisons, n, &extras);
    } else {
        print_machine(&frames, &o);
        print_text(comparisons, n, &extras);
    }
    raw_frames_free(&frames);
    return rc < 0 ? 1 : 0;
}

static const struct weir_command limits_command = {
    .name = "limits",
    .summary = "images/s of the loader beside raw libjpeg-turbo",
    .opts = limits_opts,
    .n_opts = sizeof limits_opts / sizeof limits_opts[0],
    .run = limits_main,
};

int main(int argc, char **argv)
{
    return limits_main(&limits_command, argc, argv);
}
