/* nvjpeg: measures the limits of a GPU's JPEG decoders on this machine, by engine, group size, threads and output.
 * It also measures two decoders per thread, an engine alongside CPU cores, and both engines simultaneously. Reports
 * express the loader's rate as a fraction of the best row. */
#include "base/resources.h"
#include "bench/bench_gpu.h"
#include "bench/nvjpeg_side.h"
#include "bench/series.h"
#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_MAX = 4096, COUNTS_MAX = 8, ROWS_MAX = 256, SKIPPED = 77 };
enum engines { ENGINES_HW, ENGINES_SM, ENGINES_BOTH };

struct nvjpeg_options {
    const char *groups, *threads, *outputs;
    int engine, cpu, rounds;
    double seconds;
    bool json;
};

#define FIELD(name) .offset = offsetof(struct nvjpeg_options, name)

static const struct weir_opt nvjpeg_opts[] = {
    {"groups", WEIR_OPT_TEXT, FIELD(groups), "N,N", "16,64,128,256", "numbers of frames submitted together"},
    {"threads", WEIR_OPT_TEXT, FIELD(threads), "N,N", "1,2,4", "numbers of submitting threads, each with a decoder"},
    {"outputs", WEIR_OPT_TEXT, FIELD(outputs), "LIST", "rgbi,yuv,turns",
     "outputs: RGB, planes, planes from two alternating decoders"},
    {"engine", WEIR_OPT_ENUM, FIELD(engine), "hw|sm|both", "hw", "JPEG engines (hw) or multiprocessors (sm)"},
    {"cpu", WEIR_OPT_INT, FIELD(cpu), "N", "auto", "concurrent CPU decoding threads; auto: usable cores - 2", 0, 1024,
     true},
    {"rounds", WEIR_OPT_INT, FIELD(rounds), "N", "3", "trials per row", 1, SERIES_MAX, false},
    {"seconds", WEIR_OPT_DOUBLE, FIELD(seconds), "F", "0.5", "duration of a trial", 0.01, 600, false},
    {"json", WEIR_OPT_FLAG, FIELD(json), .help = "JSON output"},
};

/* A row of the table: engines and CPU threads that run simultaneously. */
struct row {
    struct nvjpeg_side sides[WEIR_GPU_JPEG_ENGINES];
    int n_sides, cpu_threads;
    struct series rates[WEIR_GPU_JPEG_ENGINES], cpu_rate, sum;
    double cores; /* mean number of CPU cores that the submitting threads use */
    char why_not[256];
};

struct bench {
    const struct nvjpeg_options *o;
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    struct weir_gpu_info info;
    char library[128];
    int jpeg_engines;
    struct nvjpeg_frames frames;
    struct row *rows;
    int n_rows;
};

/* ---- the rows ---- */

/* Parses the list of outputs into a bit mask. Returns 0 if an output is unknown. */
static unsigned parse_outputs(const char *text)
{
    static const char *const names[NVJPEG_OUTPUTS] = {"rgbi", "yuv", "turns"};
    unsigned wanted = 0, before;
    for (;; text++) {
        size_t length = strcspn(text, ",");
        before = wanted;
        for (int i = 0; i < NVJPEG_OUTPUTS; i++)
            if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0)
                wanted |= 1u << i;
        text += length;
        if (wanted == before || *text == '\0')
            return wanted == before ? 0 : wanted;
    }
}

static struct row *new_row(struct bench *b)
{
    return b->n_rows < ROWS_MAX ? &b->rows[b->n_rows++] : NULL;
}

static void add_alone(struct bench *b, enum weir_gpu_jpeg_engine engine, enum nvjpeg_output output, int group,
                      int threads)
{
    struct row *row = new_row(b);
    if (!row)
        return;
    row->n_sides = 1;
    row->sides[0] = (struct nvjpeg_side){.engine = engine, .output = output, .group = group, .threads = threads};
}

static int plan_alone(struct bench *b, struct weir_err *err)
{
    int groups[COUNTS_MAX], threads[COUNTS_MAX];
    int n_groups = bench_counts("groups", b->o->groups, WEIR_GPU_JPEG_BATCH_MAX, groups, COUNTS_MAX, err);
    int n_threads =
        n_groups < 0 ? -EINVAL : bench_counts("threads", b->o->threads, NVJPEG_THREADS_MAX, threads, COUNTS_MAX, err);
    unsigned outputs = parse_outputs(b->o->outputs);
    if (n_threads < 0)
        return -EINVAL;
    if (!outputs)
        return weir_err_set(err, -EINVAL, "--outputs accepts a list of rgbi, yuv and turns, such as rgbi,turns");
    for (int e = 0; e < WEIR_GPU_JPEG_ENGINES; e++) {
        if (b->o->engine != ENGINES_BOTH && b->o->engine != e)
            continue;
        for (int output = 0; output < NVJPEG_OUTPUTS; output++)
            for (int g = 0; g < n_groups && (outputs & 1u << output); g++)
                for (int t = 0; t < n_threads && (t == 0 || output != NVJPEG_TURNS); t++)
                    add_alone(b, (enum weir_gpu_jpeg_engine)e, (enum nvjpeg_output)output, groups[g],
                              output == NVJPEG_TURNS ? 1 : threads[t]);
    }
    return 0;
}

/* Returns the fastest row of an engine running alone, with or without interleaved RGB, or NULL if none exists. */
static const struct row *best_row(const struct bench *b, enum weir_gpu_jpeg_engine engine, bool rgbi)
{
    const struct row *best = NULL;
    for (int i = 0; i < b->n_rows; i++) {
        const struct row *row = &b->rows[i];
        if (row->n_sides != 1 || row->cpu_threads || row->why_not[0] || row->sides[0].engine != engine ||
            (row->sides[0].output == NVJPEG_RGBI) != rgbi)
            continue;
        if (!best || series_at(&row->sum, 0.5) > series_at(&best->sum, 0.5))
            best = row;
    }
    return best;
}

/* Adds a row for the CPU cores alone, and rows that combine them with the best row of each engine. Also adds two rows
 * that combine both engines, each with a different engine on high-priority streams. */
static void plan_together(struct bench *b)
{
    const struct row *best[WEIR_GPU_JPEG_ENGINES];
    int cpu = b->o->cpu == WEIR_OPT_AUTO ? weir_cores_usable() - 2 : b->o->cpu;
    for (int e = 0; e < WEIR_GPU_JPEG_ENGINES; e++)
        best[e] = best_row(b, (enum weir_gpu_jpeg_engine)e, false);
    struct row *row = cpu > 0 ? new_row(b) : NULL;
    if (row)
        row->cpu_threads = cpu;
    for (int e = 0; e < WEIR_GPU_JPEG_ENGINES && cpu > 0; e++) {
        row = best[e] ? new_row(b) : NULL;
        if (row) {
            row->n_sides = 1;
            row->sides[0] = best[e]->sides[0];
            row->cpu_threads = cpu;
        }
    }
    for (int urgent = 0; urgent < 2 && best[0] && best[1]; urgent++) {
        row = new_row(b);
        if (!row)
            return;
        row->n_sides = 2;
        for (int e = 0; e < 2; e++) {
            row->sides[e] = best[e]->sides[0];
            row->sides[e].urgent = e == urgent;
        }
    }
}

static void note(struct row *row, double cpu_rate, int rounds)
{
    double sum = cpu_rate;
    for (int s = 0; s < row->n_sides; s++) {
        series_add(&row->rates[s], row->sides[s].images_per_s);
        row->cores += row->sides[s].cores / rounds;
        sum += row->sides[s].images_per_s;
    }
    series_add(&row->cpu_rate, cpu_rate);
    series_add(&row->sum, sum);
}

/* Measures rows. If a row fails, because a library is missing or memory is too small, records the reason and continues
 * with the next row. A lost GPU ends the run. */
static int measure_rows(struct bench *b, int from, struct weir_err *err)
{
    for (int i = from; i < b->n_rows; i++) {
        struct row *row = &b->rows[i];
        for (int r = 0; r < b->o->rounds && !row->why_not[0]; r++) {
            struct weir_err row_err = WEIR_ERR_NONE;
            double cpu_rate;
            int rc = nvjpeg_run(b->ops, b->gpu, &b->frames, row->sides, row->n_sides, row->cpu_threads, b->o->seconds,
                                &cpu_rate, &row_err);
            if (rc == -EIO)
                return weir_err_set(err, rc, "%s", row_err.text);
            if (rc < 0)
                snprintf(row->why_not, sizeof row->why_not, "%.255s", row_err.text);
            else
                note(row, cpu_rate, b->o->rounds);
        }
    }
    return 0;
}

static int measure(struct bench *b, struct weir_err *err)
{
    int rc = measure_rows(b, 0, err);
    int alone = b->n_rows;
    if (rc < 0)
        return rc;
    plan_together(b);
    return measure_rows(b, alone, err);
}

/* ---- printing ---- */

static double bytes_mean(const struct raw_frames *raw)
{
    double sum = 0;
    for (int i = 0; i < raw->n; i++)
        sum += (double)raw->lengths[i];
    return raw->n ? sum / raw->n : 0;
}

static void print_side(const struct row *row, int s, const char *more)
{
    const struct nvjpeg_side *side = &row->sides[s];
    char rate[64];
    snprintf(rate, sizeof rate, "%.0f (%.0f - %.0f)", series_at(&row->rates[s], 0.5), series_at(&row->rates[s], 0),
             series_at(&row->rates[s], 1));
    printf("%-8s  %-13s  %5d  %7d  %-26s  %s\n", weir_gpu_jpeg_engine_name(side->engine),
           nvjpeg_output_name(side->output), side->group, side->threads, row->why_not[0] ? "-" : rate, more);
}

static void print_row(const struct row *row)
{
    char more[512], rate[64];
    double sum = series_at(&row->sum, 0.5);
    if (row->why_not[0])
        snprintf(more, sizeof more, "%s", row->why_not);
    else if (row->n_sides == 2)
        snprintf(more, sizeof more, "together %.0f, %s on high-priority streams", sum,
                 weir_gpu_jpeg_engine_name(row->sides[row->sides[1].urgent].engine));
    else if (row->cpu_threads > 0)
        snprintf(more, sizeof more, "together %.0f", sum);
    else
        snprintf(more, sizeof more, "%.2f cores", row->cores);
    for (int s = 0; s < row->n_sides; s++)
        print_side(row, s, s ? "" : more);
    if (row->cpu_threads == 0)
        return;
    snprintf(rate, sizeof rate, "%.0f (%.0f - %.0f)", series_at(&row->cpu_rate, 0.5), series_at(&row->cpu_rate, 0),
             series_at(&row->cpu_rate, 1));
    printf("%-8s  %-13s  %5s  %7d  %-26s  %s\n", "cpu", "rgb", "1", row->cpu_threads, rate,
           row->n_sides ? "  alongside it" : "alone");
}

static void print_best(const struct bench *b, enum weir_gpu_jpeg_engine engine)
{
    const struct row *raw = best_row(b, engine, true), *ours = best_row(b, engine, false);
    for (int i = 0; i < 2; i++) {
        const struct row *row = i ? ours : raw;
        if (row)
            printf("best of %s, %s: %.0f images/s (%s, groups of %d, %d threads)\n", weir_gpu_jpeg_engine_name(engine),
                   i ? "planes" : "nvJPEG alone", series_at(&row->sum, 0.5), nvjpeg_output_name(row->sides[0].output),
                   row->sides[0].group, row->sides[0].threads);
    }
}

static void print_text(const struct bench *b, const char *data)
{
    bench_print_machine();
    printf("GPU:     %s, %d JPEG engines, %s\n", b->info.name, b->jpeg_engines, b->library);
    printf("frames:  %s, in memory, %d of %dx%d, %.1f KB each; %d left out\n", data, b->frames.raw.n,
           b->frames.raw.width, b->frames.raw.height, bytes_mean(&b->frames.raw) / 1e3, b->frames.left_out);
    printf("method:  n = %d trials of %g s; median (min - max)\n", b->o->rounds, b->o->seconds);
    printf("\nengine    output         group  threads  images/s\n");
    for (int i = 0; i < b->n_rows; i++)
        print_row(&b->rows[i]);
    printf("\n");
    for (int e = 0; e < WEIR_GPU_JPEG_ENGINES; e++)
        print_best(b, (enum weir_gpu_jpeg_engine)e);
}

static void json_row(struct weir_json *json, const struct row *row)
{
    weir_json_object(json, NULL);
    weir_json_array(json, "sides");
    for (int s = 0; s < row->n_sides; s++) {
        const struct nvjpeg_side *side = &row->sides[s];
        weir_json_object(json, NULL);
        weir_json_text(json, "engine", weir_gpu_jpeg_engine_name(side->engine));
        weir_json_text(json, "output", nvjpeg_output_name(side->output));
        weir_json_int(json, "group", side->group);
        weir_json_int(json, "threads", side->threads);
        weir_json_bool(json, "urgent", side->urgent);
        series_json(json, "images_per_s", &row->rates[s]);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    weir_json_double(json, "feeding_cores", row->cores);
    weir_json_int(json, "cpu_threads", row->cpu_threads);
    series_json(json, "cpu_images_per_s", &row->cpu_rate);
    series_json(json, "images_per_s", &row->sum);
    weir_json_text(json, "why_not", row->why_not[0] ? row->why_not : NULL);
    weir_json_end(json, '}');
}

static void print_json(const struct bench *b, const struct weir_command *command, const char *data)
{
    struct weir_json json;
    bench_json_begin(&json, command, b->o);
    weir_json_text(&json, "data", data);
    weir_json_text(&json, "gpu", b->info.name);
    weir_json_int(&json, "jpeg_engines", b->jpeg_engines);
    weir_json_text(&json, "library", b->library);
    weir_json_int(&json, "frames", b->frames.raw.n);
    weir_json_int(&json, "frames_left_out", b->frames.left_out);
    weir_json_int(&json, "width", b->frames.raw.width);
    weir_json_int(&json, "height", b->frames.raw.height);
    weir_json_double(&json, "frame_bytes_mean", bytes_mean(&b->frames.raw));
    weir_json_array(&json, "rows");
    for (int i = 0; i < b->n_rows; i++)
        json_row(&json, &b->rows[i]);
    weir_json_end(&json, ']');
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

/* ---- the program ---- */

/* Returns -ENODEV if there is no GPU to measure. */
static int open_gpu(struct bench *b, struct weir_err *err)
{
    enum weir_gpu_jpeg_engine engine = b->o->engine == ENGINES_SM ? WEIR_GPU_JPEG_SM : WEIR_GPU_JPEG_HARDWARE;
    int rc = bench_gpu_open(&b->ops, &b->gpu, err);
    rc = rc < 0 ? rc : weir_gpu_jpeg_check(0, engine, &b->jpeg_engines, err);
    if (rc == 0)
        b->ops->describe(0, false, &b->info, NULL);
    weir_gpu_jpeg_library(b->library, sizeof b->library);
    return rc;
}

static int run_bench(struct bench *b, const struct weir_command *command, const char *data, struct weir_err *err)
{
    b->rows = calloc(ROWS_MAX, sizeof *b->rows);
    if (!b->rows)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = plan_alone(b, err);
    rc = rc < 0 ? rc : open_gpu(b, err);
    rc = rc < 0 ? rc : nvjpeg_frames_load(&b->frames, data, FRAMES_MAX, WEIR_GPU_JPEG_HARDWARE, err);
    rc = rc < 0 ? rc : measure(b, err);
    if (rc < 0)
        return rc;
    if (b->o->json)
        print_json(b, command, data);
    else
        print_text(b, data);
    return 0;
}

static int nvjpeg_main(const struct weir_command *command, int argc, char **argv)
{
    struct nvjpeg_options o;
    const char *data;
    struct weir_err err = WEIR_ERR_NONE;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &data, &(int){0});
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    struct bench b = {.o = &o};
    int rc = run_bench(&b, command, data, &err);
    if (rc < 0)
        fprintf(stderr, "nvjpeg: %s%s\n", rc == -ENODEV ? "skipped: " : "", err.text);
    nvjpeg_frames_free(&b.frames);
    free(b.rows);
    if (b.gpu)
        b.ops->close(&b.gpu);
    return rc == 0 ? 0 : rc == -ENODEV ? SKIPPED : rc == -EINVAL ? 2 : 1;
}

static const struct weir_command nvjpeg_command = {
    .name = "nvjpeg",
    .summary = "Images per second that the JPEG decoders of GPU 0 decode from memory: the raw limits.",
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .opts = nvjpeg_opts,
    .n_opts = sizeof nvjpeg_opts / sizeof nvjpeg_opts[0],
    .notes = "DATA is a dataset of JPEGs, or a folder with *.jpg. The output rgbi comes from nvJPEG alone. The output\n"
             "yuv is the planes that the loader uses. The exit status is 77 if there is no GPU.",
    .run = nvjpeg_main,
};

int main(int argc, char **argv)
{
    return nvjpeg_main(&nvjpeg_command, argc, argv);
}
