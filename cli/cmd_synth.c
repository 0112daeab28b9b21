#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "datasets/synth/synth.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct synth_options {
    int format, episodes, steps, quality, threads;
    const char *cameras;
    struct weir_opt_size size;
    uint64_t seed;
    bool json;
};

#define FIELD(member) .offset = offsetof(struct synth_options, member)

static const struct weir_opt synth_opts[] = {
    {"format", WEIR_OPT_ENUM, FIELD(format), weir_synth_format_names, "act-jpeg", "layout of the files"},
    {"episodes", WEIR_OPT_INT, FIELD(episodes), "N", "10", "number of episodes", 1, 1000000, .unit = "episodes"},
    {"steps", WEIR_OPT_INT, FIELD(steps), "N", "50", "time steps per episode", 1, 1000000, .unit = "steps"},
    {"cameras", WEIR_OPT_TEXT, FIELD(cameras), "A,B", NULL, "names of the cameras, at most 16", .is_list = true,
     .details = "A camera's name determines its position."},
    {"size", WEIR_OPT_SIZE, FIELD(size), "WxH", "640x480", "size of the images", 16, 8192, .unit = "pixels"},
    {"quality", WEIR_OPT_INT, FIELD(quality), "N", "95", "quality of JPEGs", 1, 100},
    {"seed", WEIR_OPT_UINT64, FIELD(seed), "N", "0", "seed of the content",
     .details = "The same seed always produces identical files."},
    {"threads", WEIR_OPT_INT, FIELD(threads), "N", "auto", "number of threads for rendering and encoding", 1, 1024,
     true, .unit = "threads", .details = "auto is one per usable core."},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object"},
};

/* ---- progress, on stderr ---- */

struct progress {
    const struct weir_synth_stats *stats;
    uint64_t frames_total;
    bool terminal, shown;
    double started_s, last_s;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void on_progress(void *user, int episodes_done, int episodes_total)
{
    struct progress *progress = user;
    double now = now_s();
    /* Redraws the line often on a terminal, but writes a line only every five seconds otherwise, to keep logs short. */
    if (now - progress->last_s < (progress->terminal ? 0.1 : 5.0))
        return;
    progress->last_s = now;
    progress->shown = true;
    double rate = (double)progress->stats->frames / (now - progress->started_s);
    fprintf(stderr, "%ssynth: %d/%d episodes, %llu/%llu frames, %.0f frames/s%s", progress->terminal ? "\r" : "",
            episodes_done, episodes_total, (unsigned long long)progress->stats->frames,
            (unsigned long long)progress->frames_total, rate, progress->terminal ? "\033[K" : "\n");
    fflush(stderr);
}

static void end_progress(const struct progress *progress)
{
    if (progress->terminal && progress->shown)
        fputs("\r\033[K", stderr);
}

/* ---- the summary ---- */

static double mean_jpeg_bytes(const struct weir_synth_stats *stats)
{
    return stats->jpeg_frames ? (double)stats->jpeg_bytes / (double)stats->jpeg_frames : 0;
}

static void print_text(FILE *out, const struct weir_synth_config *config, const struct weir_synth_stats *stats,
                       double seconds)
{
    fprintf(out, "format     %s\n", config->format);
    fputs("cameras    ", out);
    for (const char *at = config->cameras; *at; at++)
        fprintf(out, "%c%s", *at, *at == ',' ? " " : "");
    fprintf(out, ", %dx%d\n", config->width, config->height);
    fprintf(out, "episodes   %d, each with %d steps\n", stats->episodes, config->steps);
    fprintf(out, "frames     %llu\n", (unsigned long long)stats->frames);
    fprintf(out, "size       %s\n", weir_size((double)stats->bytes).text);
    if (stats->jpeg_frames)
        fprintf(out, "mean JPEG  %s at quality %d\n", weir_size(mean_jpeg_bytes(stats)).text, config->quality);
    fprintf(out, "time       %.1f s, %.0f frames/s\n", seconds, seconds > 0 ? (double)stats->frames / seconds : 0);
}

static void describe(struct weir_document *document, const struct weir_command *command,
                     const struct synth_options *options, const struct weir_synth_config *config,
                     const struct weir_synth_stats *stats, double seconds)
{
    weir_document_path(document, "folder", "folder     ", config->out);
    weir_options_document(document, "options", NULL, command, options);
    weir_document_fact(document, "format", config->format);
    weir_document_fact(document, "cameras", config->cameras);
    weir_document_fact(document, "episodes", stats->episodes);
    weir_document_fact(document, "frames", stats->frames);
    weir_document_fact(document, "bytes", stats->bytes);
    weir_document_known(document, "mean_jpeg_bytes", stats->jpeg_frames ? mean_jpeg_bytes(stats) : -1);
    weir_document_fact(document, "seconds", seconds);
    print_text(weir_document_text(document, NULL, WEIR_WRAP_COLUMN), config, stats, seconds);
}

/* ---- the command ---- */

static uint64_t count_cameras(const char *names)
{
    uint64_t n = 1;
    for (; *names; names++)
        n += *names == ',';
    return n;
}

static struct weir_synth_config config_of(const struct synth_options *options, const char *out)
{
    struct weir_synth_config config;
    weir_synth_config_default(&config);
    config.out = out;
    config.format = weir_synth_format_name(options->format);
    config.episodes = options->episodes;
    config.steps = options->steps;
    config.cameras = options->cameras ? options->cameras : weir_synth_format_cameras(options->format);
    config.width = options->size.width;
    config.height = options->size.height;
    config.quality = options->quality;
    config.seed = options->seed;
    config.threads = options->threads == WEIR_OPT_AUTO ? 0 : options->threads;
    return config;
}

static int run_synth(const struct weir_command *command, int argc, char **argv)
{
    struct synth_options options;
    const char *out = NULL;
    int n_args = 0;
    enum weir_parse parsed = weir_options_parse(command, &options, sizeof options, argc, argv, &out, &n_args);
    if (parsed != WEIR_PARSE_RUN)
        return weir_parse_status(parsed);

    struct weir_synth_stats stats = {0};
    struct weir_synth_config config = config_of(&options, out);
    struct progress progress = {.stats = &stats, .terminal = isatty(STDERR_FILENO), .started_s = now_s()};
    progress.frames_total = (uint64_t)config.episodes * (uint64_t)config.steps * count_cameras(config.cameras);
    progress.last_s = progress.started_s;
    config.stats = &stats;
    config.progress = on_progress;
    config.user = &progress;

    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_synth_write(&config, &err);
    end_progress(&progress);
    if (rc < 0)
        return weir_cli_fail(command, &err);
    double seconds = now_s() - progress.started_s;
    struct weir_document document;
    weir_document_open(&document, options.json ? &weir_json_writer : &weir_terminal_writer, stdout);
    describe(&document, command, &options, &config, &stats, seconds);
    weir_document_close(&document);
    return 0;
}

const struct weir_command weir_cmd_synth = {
    .name = "synth",
    .summary = "write synthetic robot episodes in a supported layout",
    .group = WEIR_GROUP_DATASETS,
    .args = "OUT",
    .min_args = 1,
    .max_args = 1,
    .arg_paths = {WEIR_PATH_WRITE_DATA},
    .opts = synth_opts,
    .n_opts = sizeof synth_opts / sizeof synth_opts[0],
    .notes = "OUT is a new or empty folder. robomimic, libero and isaaclab write all episodes to one file; "
             "other layouts write one file per episode. Without --cameras, the cameras of the layout are "
             "used. A camera's name determines its position: low, left and right cameras stand in that place, "
             "wrist and hand cameras are mounted on an arm (the right arm if the name contains \"right\"), "
             "and all others look from above.",
    .run = run_synth,
};
