/* pinned_read: measures the limits of this machine for raw frames. Threads read from the page cache into pinned memory,
 * the bus copies to GPU 0, and then both happen simultaneously. Trials are interleaved. No loader can upload raw frames
 * faster than this. */
#include "base/resources.h"
#include "bench/bench_gpu.h"
#include "bench/pinned_side.h"
#include "bench/series.h"
#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>

enum { SKIPPED = 77 };

struct pinned_options {
    int threads, rounds;
    double seconds;
    bool json;
};

#define FIELD(name) .offset = offsetof(struct pinned_options, name)

static const struct weir_opt pinned_opts[] = {
    {"threads", WEIR_OPT_INT, FIELD(threads), "N", "auto", "number of reading threads; auto: one per usable core", 1,
     PINNED_THREADS_MAX, true},
    {"rounds", WEIR_OPT_INT, FIELD(rounds), "N", "5", "trials of each kind", 1, SERIES_MAX, false},
    {"seconds", WEIR_OPT_DOUBLE, FIELD(seconds), "F", "0.5", "duration of a trial", 0.01, 600, false},
    {"json", WEIR_OPT_FLAG, FIELD(json), .help = "JSON output"},
};

struct bench {
    const struct pinned_options *o;
    int threads;
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    struct weir_gpu_info info;
    struct pinned_frames frames;
    struct pinned_ring ring;
    struct series rates[PINNED_KINDS]; /* in bytes/s */
};

static int measure(struct bench *b, struct weir_err *err)
{
    double rate;
    int rc = pinned_run(&b->ring, &b->frames, PINNED_BOTH, b->threads, b->o->seconds / 5, &rate, err); /* warm-up */
    for (int r = 0; r < b->o->rounds; r++)
        for (int k = 0; k < PINNED_KINDS && rc == 0; k++) {
            enum pinned_kind kind = (enum pinned_kind)((k + r) % PINNED_KINDS);
            rc = pinned_run(&b->ring, &b->frames, kind, b->threads, b->o->seconds, &rate, err);
            if (rc == 0)
                series_add(&b->rates[kind], rate);
        }
    return rc;
}

static void print_text(const struct bench *b, const char *data)
{
    static const char *const titles[PINNED_KINDS] = {[PINNED_READ] = "page cache to pinned memory",
                                                     [PINNED_BUS] = "pinned memory to the GPU",
                                                     [PINNED_BOTH] = "both simultaneously"};
    bench_print_machine();
    printf("GPU:     %s\n", b->info.name);
    printf("frames:  %s, %d pieces of %d bytes in %d files, page cache warm\n", data, b->frames.n, PINNED_FRAME_BYTES,
           b->frames.n_files);
    printf("method:  %d threads, a ring of %d blocks of %.1f MB; n = %d trials of %g s; median (min - max)\n",
           b->threads, PINNED_BLOCKS, (double)PINNED_BLOCK_BYTES / 1e6, b->o->rounds, b->o->seconds);
    printf("\n%-28s  %-22s  images/s of 640x480x3\n", "", "GB/s");
    for (int k = 0; k < PINNED_KINDS; k++) {
        char rate[64];
        const struct series *s = &b->rates[k];
        snprintf(rate, sizeof rate, "%.2f (%.2f - %.2f)", series_at(s, 0.5) / 1e9, series_at(s, 0) / 1e9,
                 series_at(s, 1) / 1e9);
        printf("%-28s  %-22s  %.0f\n", titles[k], rate, series_at(s, 0.5) / PINNED_FRAME_BYTES);
    }
}

static void print_json(const struct bench *b, const struct weir_command *command, const char *data)
{
    struct weir_json json;
    bench_json_begin(&json, command, b->o);
    weir_json_text(&json, "data", data);
    weir_json_text(&json, "gpu", b->info.name);
    weir_json_int(&json, "threads", b->threads);
    weir_json_int(&json, "frames", b->frames.n);
    weir_json_int(&json, "frame_bytes", PINNED_FRAME_BYTES);
    weir_json_int(&json, "ring_bytes", (int64_t)(PINNED_BLOCKS * PINNED_BLOCK_BYTES));
    weir_json_object(&json, "bytes_per_s");
    for (int k = 0; k < PINNED_KINDS; k++)
        series_json(&json, pinned_kind_name((enum pinned_kind)k), &b->rates[k]);
    weir_json_end(&json, '}');
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

static int run_bench(struct bench *b, const struct weir_command *command, const char *data, struct weir_err *err)
{
    int rc = bench_gpu_open(&b->ops, &b->gpu, err);
    if (rc == 0)
        b->ops->describe(0, false, &b->info, NULL);
    rc = rc < 0 ? rc : pinned_frames_open(&b->frames, data, err);
    rc = rc < 0 ? rc : pinned_ring_open(&b->ring, b->ops, b->gpu, err);
    rc = rc < 0 ? rc : measure(b, err);
    if (rc < 0)
        return rc;
    if (b->o->json)
        print_json(b, command, data);
    else
        print_text(b, data);
    return 0;
}

static int pinned_main(const struct weir_command *command, int argc, char **argv)
{
    struct pinned_options o;
    const char *data;
    struct weir_err err = WEIR_ERR_NONE;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &data, &(int){0});
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        return 1;
    b->o = &o;
    b->threads = o.threads == WEIR_OPT_AUTO ? weir_cores_usable() : o.threads;
    int rc = run_bench(b, command, data, &err);
    if (rc < 0)
        fprintf(stderr, "pinned_read: %s%s\n", rc == -ENODEV ? "skipped: " : "", err.text);
    if (b->ring.ops)
        pinned_ring_close(&b->ring);
    pinned_frames_close(&b->frames);
    if (b->gpu)
        b->ops->close(&b->gpu);
    free(b);
    return rc == 0 ? 0 : rc == -ENODEV ? SKIPPED : 1;
}

static const struct weir_command pinned_command = {
    .name = "pinned_read",
    .summary = "Bytes per second of raw frames into pinned memory, from there to GPU 0, and both simultaneously.",
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .opts = pinned_opts,
    .n_opts = sizeof pinned_opts / sizeof pinned_opts[0],
    .notes = "DATA is a file with raw frames, or a folder of such files. The files are read once before the\n"
             "measurement, and must fit in the page cache. The exit status is 77 if there is no GPU.",
    .run = pinned_main,
};

int main(int argc, char **argv)
{
    return pinned_main(&pinned_command, argc, argv);
}
