/* limits: images/s of the loader beside raw libjpeg-turbo on the same frames, in the same number of threads, taking
 * turns within one run. */
#include "bench/limits.h"
#include "bench/first_batch.h"
#include "bench/weir_side.h"
#include "datasets/synth/synth.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FRAMES_MAX = 4096, COUNTS_MAX = 16, FORMATS_MAX = 4, IMAGES_MIN_PER_WORKER = 64 };

static const struct weir_opt limits_opts[] = {
    {"data", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, data), "DIR", "build/bench-640x480-q95",
     "JPEG dataset, cameras of one size; made here (640x480, quality 95) when there is nothing of this name"},
    {"workers", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, workers), "N,N,auto", "1,auto",
     "numbers of worker threads; auto: one per usable core"},
    {"formats", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, formats), "LIST", "u8",
     "the loader's images: u8, u8-nchw, f32, f32-nchw (normalised), separated by commas"},
    {"rounds", WEIR_OPT_INT, .offset = offsetof(struct limits_options, rounds), "N", "7", "turns of each side", 1,
     SERIES_MAX},
    {"seconds", WEIR_OPT_DOUBLE, .offset = offsetof(struct limits_options, seconds), "F", "1.5", "length of a turn",
     0.05, 600},
    {"batch-size", WEIR_OPT_INT, .offset = offsetof(struct limits_options, batch_size), "N", "8", "samples per batch",
     1, 1024},
    {"prefetch", WEIR_OPT_INT, .offset = offsetof(struct limits_options, prefetch), "N", "0",
     "batches that workers may be ahead; 0: weir's own choice", 0, 4096},
    {"raw-only", WEIR_OPT_FLAG, .offset = offsetof(struct limits_options, raw_only),
     .help = "libjpeg-turbo's turns only (bench/peers has the loader's)"},
    {"first-batch", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, first_batch), "DIR", NULL,
     "measure nothing: write the loader's first batch, unshuffled, in the first of --formats, as DIR/TENSOR.npy"},
    {"json", WEIR_OPT_FLAG, .offset = offsetof(struct limits_options, json), .help = "print JSON"},
};

struct format {
    const char *name;
    enum weir_dtype dtype;
    enum weir_image_layout layout;
    double target; /* u8 is what raw libjpeg-turbo does, and no more */
};

static const struct format formats_known[FORMATS_MAX] = {
    {"u8", WEIR_DTYPE_U8, WEIR_LAYOUT_NHWC, 0.95},
    {"u8-nchw", WEIR_DTYPE_U8, WEIR_LAYOUT_NCHW, 0},
    {"f32", WEIR_DTYPE_F32, WEIR_LAYOUT_NHWC, 0},
    {"f32-nchw", WEIR_DTYPE_F32, WEIR_LAYOUT_NCHW, 0.80},
};

static int parse_formats(const char *text, const struct format *formats[FORMATS_MAX], struct weir_err *err)
{
    for (int n = 0; n < FORMATS_MAX; text++) {
        size_t length = strcspn(text, ",");
        const struct format *found = NULL;
        for (int i = 0; i < FORMATS_MAX; i++)
            if (strlen(formats_known[i].name) == length && strncmp(formats_known[i].name, text, length) == 0)
                found = &formats_known[i];
        if (!found)
            break;
        formats[n++] = found;
        text += length;
        if (*text == '\0')
            return n;
    }
    return weir_err_set(err, -EINVAL, "--formats takes up to %d of u8, u8-nchw, f32, f32-nchw, as in u8,f32-nchw",
                        FORMATS_MAX);
}

static void to_config(const struct limits_options *o, const struct format *format, int workers,
                      struct weir_loader_config *config)
{
    weir_loader_config_default(config);
    config->data = o->data;
    config->num_workers = workers;
    config->batch_size = o->batch_size;
    config->prefetch = o->prefetch;
    config->num_epochs = 1000000; /* ended by time */
    config->train_split = 1;
    config->format.dtype = format->dtype;
    config->format.layout = format->layout;
    for (int c = 0; c < 3 && format->dtype == WEIR_DTYPE_F32; c++) {
        config->format.mean[c] = 0.5f;
        config->format.std[c] = 0.25f;
    }
}

/* ---- data ---- */

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

/* ---- measuring ---- */

static struct turn turn_of(const struct limits_options *o, int workers)
{
    return (struct turn){o->seconds, IMAGES_MIN_PER_WORKER * workers};
}

/* Before the frames of the other side are loaded: what is measured here is the memory of a process that only loads. */
static int measure_memory(const struct limits_options *o, const struct format *format, struct comparison *c,
                          struct weir_err *err)
{
    struct weir_loader_config config;
    struct weir_side side;
    struct turn turn = turn_of(o, c->workers);
    to_config(o, format, c->workers, &config);
    int rc = weir_side_peak(&config, &turn, &side, &c->peak_bytes, err);
    if (rc < 0)
        return rc;
    c->bound_bytes = side.slots_bytes + side.index_bytes + (uint64_t)side.workers * side.extent_max + 64000000;
    return 0;
}

static int measure_harness(const struct limits_options *o, const struct format *format, struct comparison *c,
                           struct weir_err *err)
{
    struct weir_loader_config config;
    struct weir_side side;
    struct turn turn = turn_of(o, c->workers);
    to_config(o, format, c->workers, &config);
    config.io = "null";
    config.decoder = "null";
    int rc = weir_side_run(&config, &turn, &side, err);
    c->harness_tasks_per_s = side.tasks_per_s;
    c->harness_images_per_s = side.images_per_s;
    return rc;
}

static void note(struct comparison *c, double raw, const struct weir_side *side, int rounds)
{
    series_add(&c->raw, raw);
    series_add(&c->weir, side->images_per_s);
    series_add(&c->ratio, side->images_per_s / raw);
    c->split_error = side->split_error > c->split_error ? side->split_error : c->split_error;
    c->profiler_share = side->profiler_share > c->profiler_share ? side->profiler_share : c->profiler_share;
    c->decode_share += side->decode_share / rounds;
    c->convert_share += side->convert_share / rounds;
    c->read_share += side->read_share / rounds;
    c->wait_share += side->wait_share / rounds;
}

/* One turn of each; who begins changes with every round, so that a machine that gets slower or faster meanwhile favours
 * nobody. */
static int measure_pair(const struct limits_options *o, const struct raw_frames *frames, int round, uint64_t *next,
                        const struct weir_loader_config *config, struct comparison *c, struct weir_err *err)
{
    struct weir_side side;
    struct turn turn = turn_of(o, c->workers);
    double raw = -1;
    for (int i = 0; i < 2; i++) {
        bool raw_turn = i == round % 2;
        if (raw_turn)
            raw = raw_turbo_rate(frames, c->workers, turn.seconds, turn.images_min, next);
        if (raw_turn && raw < 0)
            return weir_err_set(err, -EBADMSG, "%s: libjpeg-turbo does not decode a frame", o->data);
        int rc = raw_turn ? 0 : weir_side_run(config, &turn, &side, err);
        if (rc < 0)
            return rc;
    }
    note(c, raw, &side, o->rounds);
    return 0;
}

static int measure_raw(const struct limits_options *o, const struct raw_frames *frames, uint64_t *next,
                       struct comparison *c, struct weir_err *err)
{
    struct turn turn = turn_of(o, c->workers);
    for (int i = 0; i < o->rounds; i++) {
        double raw = raw_turbo_rate(frames, c->workers, turn.seconds, turn.images_min, next);
        if (raw < 0)
            return weir_err_set(err, -EBADMSG, "%s: libjpeg-turbo does not decode a frame", o->data);
        series_add(&c->raw, raw);
    }
    return 0;
}

static int compare(const struct limits_options *o, const struct format *format, const struct raw_frames *frames,
                   struct comparison *c, struct weir_err *err)
{
    struct weir_loader_config config;
    to_config(o, format, c->workers, &config);
    if (!o->raw_only)
        fprintf(stderr, "%s, %d workers: %d turns of %g s\n", c->format, c->workers, 2 * o->rounds, o->seconds);
    int rc = o->raw_only ? 0 : measure_harness(o, format, c, err);
    uint64_t next = 0;
    if (rc == 0 && raw_turbo_rate(frames, c->workers, o->seconds / 5, 0, &next) < 0) /* warm-up */
        rc = weir_err_set(err, -EBADMSG, "%s: libjpeg-turbo does not decode a frame", o->data);
    if (rc == 0 && o->raw_only)
        return measure_raw(o, frames, &next, c, err);
    for (int i = 0; i < o->rounds && rc == 0; i++) {
        config.seed = (uint64_t)i;
        rc = measure_pair(o, frames, i, &next, &config, c, err);
    }
    return rc;
}

/* ---- the program ---- */

struct plan {
    int counts[COUNTS_MAX], n_counts, n_formats, n;
    const struct format *formats[FORMATS_MAX];
    struct comparison *comparisons; /* formats x counts */
};

static int make_plan(const struct limits_options *o, struct plan *plan, struct weir_err *err)
{
    *plan = (struct plan){0};
    plan->n_counts = bench_counts("workers", o->workers, WEIR_WORKERS_MAX, plan->counts, COUNTS_MAX, err);
    plan->n_formats = plan->n_counts < 0 ? 0 : parse_formats(o->formats, plan->formats, err);
    if (plan->n_counts < 0 || plan->n_formats < 0)
        return -EINVAL;
    plan->n = plan->n_counts * plan->n_formats;
    plan->comparisons = calloc((size_t)plan->n, sizeof *plan->comparisons);
    if (!plan->comparisons)
        return weir_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < plan->n; i++) {
        const struct format *format = plan->formats[i / plan->n_counts];
        plan->comparisons[i].workers = plan->counts[i % plan->n_counts];
        plan->comparisons[i].format = format->name;
        plan->comparisons[i].target = format->target;
    }
    return 0;
}

static int measure(const struct limits_options *o, struct plan *plan, struct raw_frames *frames, struct weir_err *err)
{
    int rc = make_data(o->data, err);
    for (int i = 0; i < plan->n && rc == 0 && !o->raw_only; i++)
        rc = measure_memory(o, plan->formats[i / plan->n_counts], &plan->comparisons[i], err);
    if (rc == 0)
        rc = raw_frames_load(frames, o->data, FRAMES_MAX, err);
    for (int i = 0; i < plan->n && rc == 0; i++)
        rc = compare(o, plan->formats[i / plan->n_counts], frames, &plan->comparisons[i], err);
    return rc;
}

static int write_first_batch(const struct limits_options *o, const struct format *format, struct weir_err *err)
{
    struct weir_loader_config config;
    to_config(o, format, 1, &config);
    return first_batch_write(&config, o->first_batch, err);
}

static int limits_main(const struct weir_command *command, int argc, char **argv)
{
    struct limits_options o;
    struct plan plan;
    struct raw_frames frames = {0};
    struct weir_err err = WEIR_ERR_NONE;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, NULL, &(int){0});
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    int rc = make_plan(&o, &plan, &err), status = rc == -EINVAL ? 2 : 1;
    if (rc == 0)
        rc = o.first_batch ? write_first_batch(&o, plan.formats[0], &err) : measure(&o, &plan, &frames, &err);
    if (rc < 0)
        fprintf(stderr, "limits: %s\n", err.text);
    else if (o.first_batch)
        fprintf(stderr, "the first batch of %s is in %s\n", o.data, o.first_batch);
    else if (o.json)
        limits_print_json(command, &o, &frames, plan.comparisons, plan.n);
    else
        limits_print(&o, &frames, plan.comparisons, plan.n);
    raw_frames_free(&frames);
    free(plan.comparisons);
    return rc < 0 ? status : 0;
}

static const struct weir_command limits_command = {
    .name = "limits",
    .summary =
        "Images per second of the loader beside raw libjpeg-turbo: same frames, same number of threads, by turns.",
    .opts = limits_opts,
    .n_opts = sizeof limits_opts / sizeof limits_opts[0],
    .notes =
        "docs/benchmarks.md says how to read the result. Speed is printed beside its target, never an exit status.",
    .run = limits_main,
};

int main(int argc, char **argv)
{
    return limits_main(&limits_command, argc, argv);
}
