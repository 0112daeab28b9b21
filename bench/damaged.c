/* damaged: measures how long decoders take for a damaged JPEG. The decoder "turbo" decodes the JPEG itself, and
 * then lets libjpeg-turbo find the error. It is compared with "turbo-original", which uses only libjpeg-turbo. */
#include "bench/series.h"
#include "cli/options.h"
#include "datasets/synth/image_write.h"
#include "datasets/synth/scene.h"
#include "decoders/jpeg_header.h"
#include "weir/base.h"
#include "weir/decoder.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 8, QUALITIES = 2, SIDES = 2 };
static const double target = 2;
static const int qualities[QUALITIES] = {95, 50};
static const char *const sides[SIDES] = {"turbo", "turbo-original"};

struct damaged_options {
    int width, height, rounds;
    bool json;
};

static const struct weir_opt damaged_opts[] = {
    {"width", WEIR_OPT_INT, .offset = offsetof(struct damaged_options, width), "N", "640", "width of the frames", 16,
     4096},
    {"height", WEIR_OPT_INT, .offset = offsetof(struct damaged_options, height), "N", "480", "height of the frames", 16,
     4096},
    {"rounds", WEIR_OPT_INT, .offset = offsetof(struct damaged_options, rounds), "N", "31",
     "measurements per row, with interleaved decoders", 1, SERIES_MAX},
    {"json", WEIR_OPT_FLAG, .offset = offsetof(struct damaged_options, json), .help = "JSON output"},
};

enum how { FINE, MARKER, CUT, FLIPPED, GARBAGE };
static const struct damage {
    const char *name, *key;
    enum how how;
    int percent; /* position of the damage, in percent of the entropy-coded data */
} damages[] = {
    {"none", "none", FINE, 0},
    {"a marker at 10 %", "marker_10", MARKER, 10},
    {"a marker at 50 %", "marker_50", MARKER, 50},
    {"a marker at 95 %", "marker_95", MARKER, 95},
    {"cut at 10 %", "cut_10", CUT, 10},
    {"cut at 50 %", "cut_50", CUT, 50},
    {"cut at 95 %", "cut_95", CUT, 95},
    {"bits flipped at 10 %", "flipped_10", FLIPPED, 10},
    {"bits flipped at 50 %", "flipped_50", FLIPPED, 50},
    {"bits flipped at 95 %", "flipped_95", FLIPPED, 95},
    {"extra bytes before EOI", "bytes_before_eoi", GARBAGE, 100},
};
enum { DAMAGES = sizeof damages / sizeof damages[0] };

struct frame {
    uint8_t *bytes;
    size_t length, scan; /* scan is the offset of the entropy-coded data */
};

struct bench {
    const struct damaged_options *options;
    struct weir_decoder *decoders[SIDES];
    uint8_t *image;
    struct frame fine[QUALITIES][FRAMES];
};

struct row {
    struct series us[SIDES], ratio;
    int refused; /* number of rejected frames, at most FRAMES */
};

/* ---- frames ---- */

static int make_frames(struct bench *bench)
{
    int width = bench->options->width, height = bench->options->height, rc;
    const char *camera = "top";
    struct weir_scene_config config = {
        .seed = 1, .steps = FRAMES, .rate_hz = 50, .width = width, .height = height, .camera = &camera, .n_cameras = 1};
    struct weir_scene *scene = NULL;
    uint16_t *depth = malloc((size_t)width * (size_t)height * sizeof *depth);
    rc = depth ? weir_scene_open(&scene, &config) : -ENOMEM;
    for (int i = 0; i < FRAMES && rc == 0; i++) {
        weir_scene_render(scene, 0, i, 0, bench->image, depth);
        for (int q = 0; q < QUALITIES && rc == 0; q++) {
            struct weir_bytes out = {0};
            struct weir_jpeg_header header = {0};
            rc = weir_jpeg_write(bench->image, width, height, qualities[q], NULL, &out);
            if (rc == 0)
                weir_jpeg_header_read(&header, out.data, out.size);
            bench->fine[q][i] = (struct frame){out.data, out.size, header.scan_offset};
        }
    }
    weir_scene_close(&scene);
    free(depth);
    return rc;
}

/* Returns a damaged copy of a frame, whose bytes the caller frees. Its bytes are NULL if out of memory. */
static struct frame damage(const struct frame *fine, const struct damage *damage)
{
    enum { MORE = 5 };
    struct frame frame = *fine;
    frame.bytes = malloc(fine->length + MORE);
    if (!frame.bytes)
        return frame;
    memcpy(frame.bytes, fine->bytes, fine->length);
    size_t end = fine->length - 2, at = fine->scan + (end - fine->scan) * (size_t)damage->percent / 100;
    switch (damage->how) {
    case FINE:
        break;
    case MARKER:
        memcpy(frame.bytes + at, "\xFF\xD5", 2);
        break;
    case CUT:
        frame.length = at;
        break;
    case FLIPPED:
        frame.bytes[at] ^= 0x10;
        break;
    case GARBAGE:
        memmove(frame.bytes + end + MORE, frame.bytes + end, 2);
        memset(frame.bytes + end, 0x55, MORE);
        frame.length += MORE;
    }
    return frame;
}

/* ---- measuring ---- */

/* Decodes all frames. Returns the microseconds per frame, and stores the number of rejected frames in *refused. */
static double decode_all(struct bench *bench, int side, const struct frame frames[FRAMES], int *refused)
{
    uint64_t start_ns = weir_clock_monotonic_ns();
    *refused = 0;
    for (int i = 0; i < FRAMES; i++) {
        struct weir_frame frame = {WEIR_FRAME_IMAGE,      frames[i].bytes,        frames[i].length,
                                   bench->options->width, bench->options->height, NULL};
        *refused += weir_decode(bench->decoders[side], &frame, bench->image) < 0;
    }
    return (double)(weir_clock_monotonic_ns() - start_ns) / 1e3 / FRAMES;
}

static int measure(struct bench *bench, int quality, const struct damage *how, struct row *row)
{
    struct frame frames[FRAMES];
    int refused[SIDES] = {0};
    bool enough = true;
    for (int i = 0; i < FRAMES; i++) {
        frames[i] = damage(&bench->fine[quality][i], how);
        enough = enough && frames[i].bytes;
    }
    for (int round = -1; round < bench->options->rounds && enough; round++) /* round -1 is a warm-up */
        for (int turn = 0; turn < SIDES; turn++) {
            int side = (turn + round) & 1;
            double us = decode_all(bench, side, frames, &refused[side]);
            if (round >= 0)
                series_add(&row->us[side], us);
        }
    for (int i = 0; i < FRAMES; i++)
        free(frames[i].bytes);
    series_ratio(&row->us[0], &row->us[1], &row->ratio);
    row->refused = refused[0];
    return !enough ? -ENOMEM : refused[0] == refused[1] ? 0 : -EIO;
}

static int run(struct bench *bench, struct row rows[QUALITIES * DAMAGES], struct weir_err *err)
{
    const struct damaged_options *o = bench->options;
    struct weir_pixel_format format = {.dtype = WEIR_DTYPE_U8};
    int rc = 0;
    for (int i = 0; i < SIDES && rc == 0; i++)
        rc = weir_decoder_open(&bench->decoders[i], sides[i], &format, o->width, err);
    if (rc < 0)
        return rc;
    bench->image = malloc((size_t)o->width * (size_t)o->height * 3);
    if (!bench->image || make_frames(bench) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < QUALITIES * DAMAGES; i++) {
        rc = measure(bench, i / DAMAGES, &damages[i % DAMAGES], &rows[i]);
        if (rc == -ENOMEM)
            return weir_err_set(err, rc, "out of memory");
        if (rc < 0)
            return weir_err_set(err, rc, "quality %d, %s: turbo and turbo-original reject different frames",
                                qualities[i / DAMAGES], damages[i % DAMAGES].name);
    }
    return 0;
}

static void close_bench(struct bench *bench)
{
    for (int i = 0; i < SIDES; i++)
        weir_decoder_close(&bench->decoders[i]);
    for (int i = 0; i < QUALITIES * FRAMES; i++)
        free(bench->fine[i / FRAMES][i % FRAMES].bytes);
    free(bench->image);
}

/* ---- results ---- */

static void print_text(const struct damaged_options *o, const struct row rows[QUALITIES * DAMAGES])
{
    bench_print_machine();
    printf("\n%dx%d, median us per frame                                       turbo / turbo-original, %d rounds\n"
           "quality  damage                     rejected    turbo  turbo-original    median    min    max\n",
           o->width, o->height, o->rounds);
    for (int i = 0; i < QUALITIES * DAMAGES; i++) {
        const struct row *row = &rows[i];
        bool fine = damages[i % DAMAGES].how == FINE;
        double ratio = series_at(&row->ratio, 0.5);
        printf("%7d  %-25s  %d of %d  %8.1f        %8.1f      %5.2f  %5.2f  %5.2f  %s\n", qualities[i / DAMAGES],
               damages[i % DAMAGES].name, row->refused, FRAMES, series_at(&row->us[0], 0.5),
               series_at(&row->us[1], 0.5), ratio, series_at(&row->ratio, 0), series_at(&row->ratio, 1),
               fine             ? ""
               : ratio > target ? "MISS"
                                : "PASS");
    }
    printf("target: turbo takes at most %g times as long as turbo-original to decode a damaged frame\n", target);
}

static void print_json(const struct weir_command *command, const struct damaged_options *o,
                       const struct row rows[QUALITIES * DAMAGES])
{
    struct weir_json json;
    bench_json_begin(&json, command, o);
    weir_json_array(&json, "rows");
    for (int i = 0; i < QUALITIES * DAMAGES; i++) {
        weir_json_object(&json, NULL);
        weir_json_int(&json, "quality", qualities[i / DAMAGES]);
        weir_json_text(&json, "damage", damages[i % DAMAGES].key);
        weir_json_int(&json, "frames", FRAMES);
        weir_json_int(&json, "refused", rows[i].refused);
        series_json(&json, "turbo_us", &rows[i].us[0]);
        series_json(&json, "turbo_original_us", &rows[i].us[1]);
        series_json(&json, "ratio", &rows[i].ratio);
        weir_json_end(&json, '}');
    }
    weir_json_end(&json, ']');
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

static int damaged_main(const struct weir_command *command, int argc, char **argv)
{
    static struct row rows[QUALITIES * DAMAGES];
    struct damaged_options o;
    struct weir_err err = WEIR_ERR_NONE;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, NULL, &(int){0});
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    weir_clock_init();
    struct bench bench = {.options = &o};
    int rc = run(&bench, rows, &err);
    close_bench(&bench);
    if (rc < 0) {
        fprintf(stderr, "damaged: %s\n", err.text);
        return 1;
    }
    if (o.json)
        print_json(command, &o, rows);
    else
        print_text(&o, rows);
    return 0;
}

static const struct weir_command damaged_command = {
    .name = "damaged",
    .summary = "Time that turbo takes for damaged JPEGs, compared with turbo-original: us per frame, interleaved.",
    .opts = damaged_opts,
    .n_opts = sizeof damaged_opts / sizeof damaged_opts[0],
    .run = damaged_main,
};

int main(int argc, char **argv)
{
    return damaged_main(&damaged_command, argc, argv);
}
