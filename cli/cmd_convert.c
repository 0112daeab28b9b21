#include "base/field_rows.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "convert/convert_dataset.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct convert_options {
    const char *to, *frames;
    struct weir_loader_config loader;
    struct weir_opt_size image_size;
    int codec, quality, color, chunk_frames, num_workers, sample, on_error;
    bool allow_narrowing, json;
};

#define FIELD(field) .offset = offsetof(struct convert_options, field)

static const struct weir_opt convert_opts[] = {
    {"to", WEIR_OPT_TEXT, FIELD(to), "FORMAT", NULL, "format of the copy (listed below)", .is_common = true},
    {"codec", WEIR_OPT_ENUM, FIELD(codec), "keep|raw|jpeg|png", "keep", "codec of the copy's frames",
     .details = "With keep, encoded frames are copied unchanged. With jpeg, depth frames are still stored losslessly.",
     .is_common = true},
    {"quality", WEIR_OPT_INT, FIELD(quality), "N", "95", "quality of new JPEGs, 4:2:0", 1, 100, .is_common = true},
    {"frames", WEIR_OPT_TEXT, FIELD(frames), "CODEC[:QUALITY]", NULL, "--codec and --quality in one, such as jpeg:95",
     .details = "Videos are never copied as videos, so they need this or --codec. The loss is measured and printed."},
    {"image-size", WEIR_OPT_SIZE, FIELD(image_size), "WxH", NULL, "size of the copy's frames", 1, WEIR_IMAGE_SIDE_MAX,
     .unit = "pixels",
     .details =
         "Frames are resized as by weir run --resize fast. Encoded frames also need --codec, to encode them again.",
     .is_common = true},
    {"color", WEIR_OPT_ENUM, FIELD(color), "recorded|rgb|bgr", "recorded", "channel order of the source",
     .details = "bgr means that red and blue are swapped. Unchanged frames keep this order, and the copy records it.",
     .is_common = true},
    {"chunk-frames", WEIR_OPT_INT, FIELD(chunk_frames), "N", NULL, "frames per chunk, in formats with chunks", 1,
     1000000, .unit = "frames"},
    {"num-workers", WEIR_OPT_INT, FIELD(num_workers), "N", "auto", "threads", 1, WEIR_WORKERS_MAX, true,
     .unit = "threads", .details = "auto is one per usable core.", .is_common = true},
    {"allow-narrowing", WEIR_OPT_FLAG, FIELD(allow_narrowing), NULL, NULL,
     "rounding of values to types that the format has",
     .details = "Applies to states and actions. For example, TFRecord has no float64."},
    {"on-error", WEIR_OPT_ENUM, FIELD(on_error), "fail|skip|substitute", "fail", "treatment of bad frames",
     .details = "fail ends the conversion, skip leaves out the episode, and substitute repeats the previous frame. "
                "All bad frames are listed.",
     .is_common = true},
    {"sample", WEIR_OPT_INT, FIELD(sample), "N", NULL, "number of episodes to copy, from the first", 1, 1000000000,
     .unit = "episodes", .is_common = true},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object", .is_common = true},
};

struct conversion {
    const struct convert_options *options;
    struct weir_progress progress;
    struct weir_convert_config config;
    struct weir_convert_report report;
    struct weir_path_list bad;
};

static void print_note(bool is_bad, const char *line)
{
    struct weir_wrap wrap;
    FILE *out = weir_wrap_open(&wrap, is_bad ? stdout : stderr, 2, NULL);
    fprintf(out, "%s: %s\n", is_bad ? "bad" : "weir convert: note", line);
    weir_wrap_close(&wrap);
}

static void note(void *user, bool is_bad, const char *line)
{
    struct conversion *c = user;
    char shown[4608];
    snprintf(shown, sizeof shown, "%s", line);
    weir_text_printable(shown);
    weir_progress_clear();
    if (is_bad && c->options->json)
        weir_path_list_add(&c->bad, strdup(shown));
    else
        print_note(is_bad, shown);
}

static void progress(void *user, const char *doing, uint64_t done, uint64_t total)
{
    struct conversion *c = user;
    weir_rate_progress(&c->progress, doing, done, total);
}

/* ---- the report ---- */

static double images_per_second(const void *from)
{
    const struct weir_convert_report *report = from;
    return report->seconds > 0 ? (double)report->written_frames / report->seconds : 0;
}

static void add_summary(struct weir_document *document, const struct conversion *c)
{
    const struct weir_convert_report *r = &c->report;
    char target[4096];
    FILE *out = weir_document_stream(document);
    snprintf(target, sizeof target, "%s", c->config.target);
    weir_text_printable(target);
    if (out)
        fprintf(out, "copy       %s, %s\n", target, c->config.to);
    out = weir_document_text(document, NULL, WEIR_WRAP_COLUMN);
    fprintf(out, "episodes   %d", r->episodes);
    if (r->resumed > 0)
        fprintf(out, ", %d of them from an interrupted run", r->resumed);
    if (r->bad_episodes > 0)
        fprintf(out, "; %llu left out", (unsigned long long)r->bad_episodes);
    fprintf(out, "\nframes     %llu", (unsigned long long)r->frames);
    if (r->bad_frames > 0)
        fprintf(out, "; %llu bad, %llu replaced", (unsigned long long)r->bad_frames,
                (unsigned long long)r->substituted_frames);
    fprintf(out, "\ntypes      state %s, actions %s\n", r->qpos_type, r->action_type);
    fprintf(out, "size       %s, source %s\n", weir_size((double)r->copy_bytes).text,
            weir_size((double)r->source_bytes).text);
    if (r->has_psnr && isinf(r->psnr_worst))
        fprintf(out, "PSNR       infinite (all frames are lossless)\n");
    else if (r->has_psnr)
        fprintf(out, "PSNR       mean %.2f dB, worst %.2f dB in %s\n", r->psnr_mean, r->psnr_worst,
                r->psnr_worst_frame);
    fprintf(out, "time       %.1f s, %.0f images/s; copy checked in %.1f s\n", r->seconds, images_per_second(r),
            r->check_seconds);
}

/* A PSNR is infinite without a loss, and infinite numbers are null. */
#define S struct weir_convert_report
static const struct weir_field report_rows[] = {
    PLAIN("episodes", episodes),
    PLAIN("resumed_episodes", resumed),
    PLAIN("left_out_episodes", bad_episodes),
    PLAIN("frames", frames),
    PLAIN("bad_frames", bad_frames),
    PLAIN("substituted_frames", substituted_frames),
    PLAIN("state_type", qpos_type),
    PLAIN("action_type", action_type),
    PLAIN("source_bytes", source_bytes),
    PLAIN("copy_bytes", copy_bytes),
    PLAIN("seconds", seconds),
    DERIVED("images_per_second", images_per_second),
    PLAIN("check_seconds", check_seconds),
    PLAIN("reencoded", has_psnr),
    POSITIVE("psnr_mean_db", psnr_mean),
    POSITIVE("psnr_worst_db", psnr_worst),
    OPTIONAL("psnr_worst_frame", psnr_worst_frame),
};
static WEIR_FIELDS(report_fields, report_rows);
#undef S

static void describe(struct weir_document *document, const struct weir_command *command, const struct conversion *c,
                     const struct weir_err *err)
{
    weir_document_fact(document, "source", c->config.source);
    weir_document_fact(document, "copy", c->config.target);
    weir_document_fact(document, "error", err->code < 0 ? err->text : NULL);
    weir_options_document(document, "options", NULL, command, c->options);
    weir_document_members(document, &report_fields, &c->report);
    weir_document_strings(document, "bad", c->bad.paths, c->bad.n);
    if (err->code == 0)
        add_summary(document, c);
}

/* ---- the conversion ---- */

/* Sets codec and quality from a text such as "jpeg:95". Returns 0, or a usage error. */
static int take_frames(struct convert_options *o)
{
    char codec[WEIR_OPTION_TEXT], *end = NULL;
    size_t length = o->frames ? strcspn(o->frames, ":") : 0;
    struct weir_err err = WEIR_ERR_NONE;
    if (!o->frames)
        return 0;
    snprintf(codec, sizeof codec, "%.*s", (int)length, o->frames);
    long quality = o->frames[length] ? strtol(o->frames + length + 1, &end, 10) : o->quality;
    for (size_t i = 0; i < sizeof convert_opts / sizeof convert_opts[0]; i++)
        if (strcmp(convert_opts[i].name, "codec") == 0 && weir_option_parse(&convert_opts[i], codec, o, &err) < 0)
            o->codec = WEIR_CONVERT_KEEP;
    bool is_quality = !end || (end > o->frames + length + 1 && *end == '\0' && o->codec == WEIR_CONVERT_JPEG);
    if (o->codec != WEIR_CONVERT_KEEP && is_quality && quality >= 1 && quality <= 100) {
        o->quality = (int)quality;
        return 0;
    }
    fprintf(stderr, "weir convert: --frames %s: must be raw, png, jpeg, or jpeg:QUALITY from 1 to 100\n", o->frames);
    return WEIR_EXIT_USAGE;
}

/* Formats the options that select what is read from the source, as a string to record in the copy. Returns NULL if out
 * of memory. */
static char *how_of(const struct convert_options *o)
{
    const struct weir_loader_config *data = &o->loader;
    const char *texts[] = {data->cameras,    data->qpos_keys, data->action_keys,
                           data->image_keys, data->split,     data->episodes};
    enum { TEXTS = sizeof texts / sizeof texts[0] };
    for (int i = 0; i < TEXTS; i++)
        texts[i] = texts[i] ? texts[i] : "";
    char *how;
    int n = asprintf(&how, "cameras=%s;qpos=%s;action=%s;image=%s;split=%s;episodes=%s;ragged=%d", texts[0], texts[1],
                     texts[2], texts[3], texts[4], texts[5], data->allow_ragged);
    return n < 0 ? NULL : how;
}

static int convert(struct conversion *c, const char *source, struct weir_err *err)
{
    const struct convert_options *o = c->options;
    struct weir_dataset *dataset;
    struct weir_dataset_config data = {.size = sizeof data,
                                       .path = source,
                                       .depth = true,
                                       .own_types = true,
                                       .tolerant = o->on_error != WEIR_ON_ERROR_FAIL,
                                       .progress = weir_index_progress,
                                       .user = &c->progress};
    weir_loader_options_dataset(&o->loader, &data);
    weir_progress_begin(&c->progress);
    int rc = weir_dataset_open(&dataset, &data, err);
    weir_progress_clear();
    weir_progress_begin(&c->progress);
    if (rc == 0)
        rc = weir_convert(dataset, &c->config, &c->report, err);
    weir_dataset_close(&dataset);
    weir_progress_clear();
    return rc;
}

static struct weir_convert_config config_of(struct conversion *c, const char *source, const char *target,
                                            const char *how)
{
    const struct convert_options *o = c->options;
    return (struct weir_convert_config){.to = o->to,
                                        .target = target,
                                        .source = source,
                                        .codec = (enum weir_convert_codec)o->codec,
                                        .quality = o->quality,
                                        .width = o->image_size.width,
                                        .height = o->image_size.height,
                                        .color = (enum weir_convert_color)o->color,
                                        .chunk_frames = o->chunk_frames,
                                        .workers = o->num_workers == WEIR_OPT_AUTO ? 0 : o->num_workers,
                                        .sample = o->sample,
                                        .allow_narrowing = o->allow_narrowing,
                                        .on_error = (enum weir_on_error)o->on_error,
                                        .on_warning = o->loader.on_warning,
                                        .how = how,
                                        .note = note,
                                        .progress = progress,
                                        .user = c};
}

static int convert_main(const struct weir_command *command, int argc, char **argv)
{
    struct convert_options o;
    const char *paths[2];
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, paths, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    if (!o.to) {
        fputs("weir convert: --to FORMAT is missing; weir convert --help lists the formats\n", stderr);
        return WEIR_EXIT_USAGE;
    }
    if (take_frames(&o) != 0)
        return WEIR_EXIT_USAGE;
    struct weir_err err = WEIR_ERR_NONE;
    struct conversion c = {.options = &o};
    char *target = strdup(paths[1]), *how = how_of(&o);
    size_t length = target ? strlen(target) : 0;
    while (length > 1 && target[length - 1] == '/')
        target[--length] = '\0';
    int rc = target && how ? 0 : weir_err_set(&err, -ENOMEM, "out of memory");
    c.config = config_of(&c, paths[0], target, how);
    if (rc == 0)
        rc = convert(&c, paths[0], &err);
    struct weir_document document;
    weir_document_open(&document, o.json ? &weir_json_writer : &weir_terminal_writer, stdout);
    if (target)
        describe(&document, command, &c, &err);
    weir_document_close(&document);
    weir_path_list_free(&c.bad);
    free(target);
    free(how);
    return rc < 0 ? weir_cli_fail(command, &err) : 0;
}

static char convert_notes[4096] = "";

static void add_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void add_note(const char *format, ...)
{
    va_list args;
    size_t used = strlen(convert_notes);
    va_start(args, format);
    vsnprintf(convert_notes + used, sizeof convert_notes - used, format, args);
    va_end(args);
}

void weir_convert_list_formats(void)
{
    const char *name, *summary, *why_not;
    char kinds[128];
    add_note("Formats for --to and their codecs (jpeg is any encoded colour image, including PNG; raw16 and png16 are "
             "depth):\n");
    for (int i = 0; weir_convert_format(i, &name, &summary, &why_not); i++) {
        weir_convert_format_kinds(i, " ", kinds, sizeof kinds);
        add_note("  %-10s %s: %s%s%s%s\n", name, summary, kinds, why_not ? " (not available: " : "",
                 why_not ? why_not : "", why_not ? ")" : "");
    }
    add_note("\nThe copy is written to DST.partial, and renamed once it is complete and its samples match those of the "
             "source. Rerun an interrupted command to resume. States and actions keep their type, except that float16 "
             "becomes float32. Encoded frames are copied unchanged unless --codec specifies another codec. "
             "Video needs --frames jpeg:95 or --frames raw.\n");
}

const struct weir_command weir_cmd_convert = {
    .name = "convert",
    .summary = "copy a dataset into another format",
    .group = WEIR_GROUP_DATASETS,
    .args = "SRC DST",
    .min_args = 2,
    .max_args = 2,
    .arg_paths = {WEIR_PATH_READ, WEIR_PATH_WRITE_DATA},
    .opts = convert_opts,
    .n_opts = sizeof convert_opts / sizeof convert_opts[0],
    .sets = (const struct weir_opt_set[])WEIR_DATASET_SETS(offsetof(struct convert_options, loader)),
    .takes_config = true,
    .notes = convert_notes,
    .examples = "weir convert episodes/ copy --to hdf5-vlen\tThe same frames in rows of variable length.\n"
                "weir convert episodes/ raw --to hdf5 --codec raw\tDecoded frames, one per chunk.\n",
    .run = convert_main,
};
