/* limits: compares the loader's images/s with libjpeg-turbo alone, both Debian's and the one in simplejpeg. All sides
 * decode the same frames with the same number of threads, and their trials are interleaved. */
#include "bench/limits.h"
#include "bench/first_batch.h"
#include "weir/decoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct weir_opt limits_opts[] = {
    {"data", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, data), "DIR", NULL,
     "JPEG dataset with cameras of one size; generated if missing (640x480); default: "
     "build/bench-640x480-qN for each quality"},
    {"quality", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, quality), "N,N", "95",
     "JPEG qualities of generated data"},
    {"workers", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, workers), "N,N,auto", "1,auto",
     "numbers of worker threads; auto: one per usable core"},
    {"formats", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, formats), "LIST", "u8",
     "formats of the loader's images: u8, u8-nchw, f32, f32-nchw; with a size: u8@224x224"},
    {"decoder", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, decoder), "NAME,NAME", "turbo",
     "CPU decoders of the loader, such as turbo,turbo-original"},
    {"simplejpeg", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, simplejpeg), "PYTHON|none", NULL,
     "Python with simplejpeg (default build/peers-venv or python3)"},
    {"rounds", WEIR_OPT_INT, .offset = offsetof(struct limits_options, rounds), "N", "7", "trials of each side", 1,
     SERIES_MAX},
    {"seconds", WEIR_OPT_DOUBLE, .offset = offsetof(struct limits_options, seconds), "F", "1.5", "duration of a trial",
     0.05, 600},
    {"batch-size", WEIR_OPT_INT, .offset = offsetof(struct limits_options, batch_size), "N", "8", "samples per batch",
     1, 1024},
    {"prefetch", WEIR_OPT_INT, .offset = offsetof(struct limits_options, prefetch), "N", "0",
     "batches to prefetch; 0: automatic", 0, 4096},
    {"raw-only", WEIR_OPT_FLAG, .offset = offsetof(struct limits_options, raw_only),
     .help = "libjpeg-turbo only (bench/peers measures the loader)"},
    {"first-batch", WEIR_OPT_TEXT, .offset = offsetof(struct limits_options, first_batch), "DIR", NULL,
     "only write the unshuffled first batch to DIR/TENSOR.npy"},
    {"json", WEIR_OPT_FLAG, .offset = offsetof(struct limits_options, json), .help = "JSON output"},
};

static const struct limits_format formats_known[] = {
    {.name = "u8", .dtype = WEIR_DTYPE_U8, .layout = WEIR_LAYOUT_NHWC},
    {.name = "u8-nchw", .dtype = WEIR_DTYPE_U8, .layout = WEIR_LAYOUT_NCHW},
    {.name = "f32", .dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NHWC},
    {.name = "f32-nchw", .dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW},
};

/* Splits "a,b" into names. Returns the number of names, or -EINVAL if a name is empty or too long, or if there are too
 * many names. */
static int split(const char *text, char names[LIMITS_LIST_MAX][LIMITS_NAME_BYTES])
{
    for (int n = 0; n < LIMITS_LIST_MAX; text++) {
        size_t length = strcspn(text, ",");
        if (length == 0 || length >= LIMITS_NAME_BYTES)
            return -EINVAL;
        memcpy(names[n], text, length);
        names[n++][length] = '\0';
        text += length;
        if (*text == '\0')
            return n;
    }
    return -EINVAL;
}

/* Reads NAME or NAME@WIDTHxHEIGHT. */
static bool read_format(const char *name, struct limits_format *format)
{
    size_t length = strcspn(name, "@");
    char rest;
    for (size_t k = 0; k < sizeof formats_known / sizeof *formats_known; k++) {
        if (strlen(formats_known[k].name) != length || strncmp(name, formats_known[k].name, length) != 0)
            continue;
        *format = formats_known[k];
        snprintf(format->name, sizeof format->name, "%s", name);
        return !name[length] || (sscanf(name + length, "@%5dx%5d%c", &format->width, &format->height, &rest) == 2 &&
                                 format->width > 0 && format->height > 0);
    }
    return false;
}

static int plan_formats(const struct limits_options *o, struct limits_plan *plan, struct weir_err *err)
{
    char names[LIMITS_LIST_MAX][LIMITS_NAME_BYTES];
    int n = split(o->formats, names);
    while (plan->n_formats < n && read_format(names[plan->n_formats], &plan->formats[plan->n_formats]))
        plan->n_formats++;
    if (n > 0 && plan->n_formats == n)
        return 0;
    return weir_err_set(err, -EINVAL,
                        "--formats accepts up to %d of u8, u8-nchw, f32 and f32-nchw, with a size or without one, "
                        "such as u8,f32-nchw@224x224",
                        LIMITS_LIST_MAX);
}

static int plan_decoders(const struct limits_options *o, struct limits_plan *plan, struct weir_err *err)
{
    plan->n_decoders = split(o->decoder, plan->decoders);
    if (plan->n_decoders < 0)
        return weir_err_set(err, -EINVAL, "--decoder accepts up to %d names, such as turbo,turbo-original",
                            LIMITS_LIST_MAX);
    for (int i = 0; i < plan->n_decoders; i++) {
        if (weir_decoder_check_device(plan->decoders[i], false, err) < 0)
            return -EINVAL;
    }
    return 0;
}

static int plan_data(const struct limits_options *o, struct limits_plan *plan, struct weir_err *err)
{
    char names[LIMITS_LIST_MAX][LIMITS_NAME_BYTES];
    plan->n_data = split(o->quality, names);
    for (int i = 0; i < plan->n_data; i++) {
        char *end;
        long quality = strtol(names[i], &end, 10);
        if (quality < 1 || quality > 100 || *end)
            plan->n_data = -EINVAL;
        else
            plan->data[i].quality_made = (int)quality;
    }
    if (plan->n_data < 0)
        return weir_err_set(err, -EINVAL, "--quality accepts up to %d numbers from 1 to 100, such as 95,50",
                            LIMITS_LIST_MAX);
    if (o->data && plan->n_data > 1)
        return weir_err_set(err, -EINVAL, "--data is a single dataset; specify only one --quality, or none");
    for (int i = 0; i < plan->n_data; i++) {
        struct limits_data *data = &plan->data[i];
        int n = o->data ? snprintf(data->path, sizeof data->path, "%s", o->data)
                        : snprintf(data->path, sizeof data->path, "build/bench-640x480-q%d", data->quality_made);
        if (n >= (int)sizeof data->path)
            return weir_err_set(err, -EINVAL, "--data: the path is too long");
    }
    return 0;
}

/* Plans all comparisons. Returns -EINVAL for a usage error. */
static int make_plan(const struct limits_options *o, struct limits_plan *plan, struct weir_err *err)
{
    plan->n_counts = bench_counts("workers", o->workers, WEIR_WORKERS_MAX, plan->counts, LIMITS_COUNTS_MAX, err);
    if (plan->n_counts < 0 || plan_formats(o, plan, err) < 0 || plan_decoders(o, plan, err) < 0 ||
        plan_data(o, plan, err) < 0)
        return -EINVAL;
    int n = plan->n_data * plan->n_formats * plan->n_counts * plan->n_decoders;
    plan->comparisons = calloc((size_t)n, sizeof *plan->comparisons);
    if (!plan->comparisons)
        return weir_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0, decoder, count; i < n; i++) {
        decoder = i % plan->n_decoders, count = i / plan->n_decoders;
        plan->comparisons[i].decoder = plan->decoders[decoder];
        plan->comparisons[i].workers = plan->counts[count % plan->n_counts];
        plan->comparisons[i].format = &plan->formats[count / plan->n_counts % plan->n_formats];
        plan->comparisons[i].data = &plan->data[count / plan->n_counts / plan->n_formats];
    }
    return 0;
}

static int write_first_batch(const struct limits_options *o, const struct limits_plan *plan, struct weir_err *err)
{
    struct weir_loader_config config;
    limits_config(o, &plan->data[0], &plan->formats[0], 1, &config);
    config.decoder = plan->decoders[0];
    int rc = first_batch_write(&config, o->first_batch, err);
    if (rc == 0)
        fprintf(stderr, "wrote the first batch of %s to %s\n", plan->data[0].path, o->first_batch);
    return rc;
}

static int measure(const struct weir_command *command, const struct limits_options *o, struct limits_plan *plan,
                   struct weir_err *err)
{
    if (!o->json)
        limits_print_head(o);
    int rc = limits_measure(o, plan, o->json ? NULL : limits_print, err);
    if (rc == 0 && o->json)
        limits_print_json(command, o, plan);
    return rc;
}

static int limits_main(const struct weir_command *command, int argc, char **argv)
{
    struct limits_options o;
    struct limits_plan plan = {0};
    struct weir_err err = WEIR_ERR_NONE;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, NULL, &(int){0});
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    int rc = make_plan(&o, &plan, &err), status = rc == -EINVAL ? 2 : 1;
    if (rc == 0)
        rc = o.first_batch ? write_first_batch(&o, &plan, &err) : measure(command, &o, &plan, &err);
    if (rc < 0)
        fprintf(stderr, "limits: %s\n", err.text);
    free(plan.comparisons);
    return rc < 0 ? status : 0;
}

static const struct weir_command limits_command = {
    .name = "limits",
    .summary = "Images per second of the loader compared with libjpeg-turbo alone, both Debian's and simplejpeg's. The "
               "frames and the number of threads are the same, and trials are interleaved.",
    .opts = limits_opts,
    .n_opts = sizeof limits_opts / sizeof limits_opts[0],
    .notes =
        "docs/internals/measuring.md explains the result. Speed is printed with its target, and does not affect the\n"
        "exit status.",
    .run = limits_main,
};

int main(int argc, char **argv)
{
    return limits_main(&limits_command, argc, argv);
}
