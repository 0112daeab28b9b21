#include "cli/bench/bench_setup.h"
#include "analyze/trials/child.h"
#include "base/resources.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/outputs.h"
#include "cli/sysinfo.h"
#include "convert/convert_dataset.h"
#include "decoders/frame_kind.h"
#include "origin/url.h"
#include "weir/base.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const double CONVERT_PART = 0.5;                /* max fraction of the time limit to spend on copies */
static const double DISK_PART = 0.9;                   /* max fraction of free disk space to use for copies */
static const double TEMPORARY_PART = 0.5;              /* as above, in a temporary folder, which others use too */
static const double MEMORY_PART = 0.25;                /* max fraction of the available memory for copies in memory */
enum { LIMIT_FRAMES = 512 };                           /* approximate number of frames per epoch of a limit candidate */
static const uint64_t LIMIT_BYTES = (uint64_t)4 << 30; /* max size of a copy that a limit candidate loads into memory */

struct wanted {
    struct weir_copy_spec spec;
    char path[4096];
    bool there;
    uint64_t bytes; /* estimated if the copy does not exist */
    bool left_out;
};

struct wish {
    struct wanted formats[WEIR_GRID_FORMATS];
    int n;
};

static void leave_out(struct bench_setup *setup, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void leave_out(struct bench_setup *setup, const char *format, ...)
{
    size_t used = strlen(setup->left_out);
    va_list args;
    va_start(args, format);
    vsnprintf(setup->left_out + used, sizeof setup->left_out - used, format, args);
    va_end(args);
    weir_wrap_print(stderr, setup->left_out + used, 2, NULL);
}

/* ---- choosing formats ---- */

static int find_row(const char *format)
{
    const char *name, *summary, *why_not;
    for (int i = 0; weir_convert_format(i, &name, &summary, &why_not); i++)
        if (strcmp(name, format) == 0)
            return i;
    return -1;
}

static void wish_for(struct wish *wish, const struct bench_setup *setup, const char *format, const char *codec)
{
    char text[64];
    if (wish->n == WEIR_GRID_FORMATS)
        return;
    snprintf(text, sizeof text, "%s%s%s", format, *codec ? ":" : "", codec);
    if (weir_copy_spec_parse(&wish->formats[wish->n].spec, text, setup->source.codec, NULL) == 0)
        wish->n++;
}

/* Wishes for the first format that can store the codec. */
static void wish_once(struct wish *wish, const struct bench_setup *setup, const char *codec)
{
    const char *name, *summary, *why_not;
    for (int i = 0; weir_convert_format(i, &name, &summary, &why_not); i++)
        if (!why_not && weir_convert_format_holds(i, codec)) {
            wish_for(wish, setup, name, codec);
            return;
        }
}

/* Chooses the formats if --formats is not given: DATA itself, every format that can store the source's codec, every
 * format that can store raw frames, and one PNG copy. No format stores video, so its frames also get one JPEG copy. */
static void default_formats(struct wish *wish, const struct bench_setup *setup)
{
    const char *name, *summary, *why_not;
    const char *const codecs[] = {setup->source.codec, "raw"};
    wish_for(wish, setup, "as-is", "");
    for (size_t c = 0; c < sizeof codecs / sizeof codecs[0]; c++)
        for (int i = 0; weir_convert_format(i, &name, &summary, &why_not); i++)
            if (!why_not && weir_convert_format_holds(i, codecs[c]) && (c == 0 || strcmp(codecs[0], codecs[c]) != 0))
                wish_for(wish, setup, name, codecs[c]);
    if (strcmp(setup->source.codec, weir_frame_kind_name(WEIR_FRAME_VIDEO)) == 0)
        wish_once(wish, setup, weir_frame_kind_name(WEIR_FRAME_JPEG));
    if (strcmp(setup->source.codec, weir_frame_kind_name(WEIR_FRAME_PNG)) != 0)
        wish_once(wish, setup, weir_frame_kind_name(WEIR_FRAME_PNG));
}

static int check_format(const struct weir_copy_spec *spec, struct weir_err *err)
{
    const char *name, *summary, *why_not = NULL;
    int row = *spec->format ? find_row(spec->format) : 0;
    if (row < 0)
        return weir_err_set(err, -EINVAL, "--formats: unknown format %s; weir convert --help lists the formats",
                            spec->format);
    if (!*spec->format)
        return 0;
    weir_convert_format(row, &name, &summary, &why_not);
    if (why_not)
        return weir_err_set(err, -EINVAL, "--formats: %s: %s", spec->format, why_not);
    if (!weir_convert_format_holds(row, spec->codec))
        return weir_err_set(err, -EINVAL, "--formats: %s cannot store %s frames", spec->format, spec->codec);
    return 0;
}

static int named_formats(struct wish *wish, const struct bench_setup *setup, struct weir_err *err)
{
    char values[WEIR_GRID_LIST][32];
    int n = weir_grid_split("formats", setup->options->formats, values, err);
    for (int i = 0; i < n; i++) {
        struct weir_copy_spec *spec = &wish->formats[wish->n++].spec;
        if (weir_copy_spec_parse(spec, values[i], setup->source.codec, err) < 0 || check_format(spec, err) < 0)
            return -EINVAL;
    }
    return n < 0 ? n : 0;
}

/* ---- locating copies ---- */

static int choose_folder(struct bench_setup *setup, const struct wish *wish, struct weir_err *err)
{
    const char *work_dir = setup->options->work_dir;
    bool copies = false;
    for (int i = 0; i < wish->n; i++)
        copies |= *wish->formats[i].spec.format != '\0';
    int rc = copies && !work_dir ? weir_copy_folder_make(&setup->temporary, "bench", setup->interrupted, err) : 0;
    if (copies && rc == 0)
        snprintf(setup->folder, sizeof setup->folder, "%s", work_dir ? work_dir : setup->temporary);
    setup->in_memory = copies && weir_copy_in_memory(setup->folder);
    return rc;
}

/* Writes to text, one per line, the options that determine a copy's content. */
static void copy_options(const struct bench_setup *setup, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (char **arg = setup->source_only.argv; arg && *arg && used < size; arg++)
        used += (size_t)snprintf(text + used, size - used, "%s\n", *arg);
}

static int locate(struct bench_setup *setup, struct wish *wish, struct weir_err *err)
{
    char options[4096];
    struct stat st;
    copy_options(setup, options, sizeof options);
    for (int i = 0; i < wish->n; i++) {
        struct wanted *w = &wish->formats[i];
        if (!*w->spec.format)
            continue;
        if (weir_copy_path(w->path, sizeof w->path, setup->folder, &w->spec, &setup->source, setup->options->sample,
                           options, weir_convert_format_suffix(find_row(w->spec.format))) < 0)
            return weir_err_set(err, -ENAMETOOLONG, "%s: the name of a copy is too long; choose another --work-dir",
                                setup->folder);
        w->there = stat(w->path, &st) == 0;
        w->bytes = weir_copy_bytes(&setup->source, &w->spec, setup->options->sample);
    }
    return 0;
}

/* Returns the max size of all new copies in bytes. */
static double copies_limit(const struct bench_setup *setup, double free_bytes)
{
    double limit = (setup->temporary ? TEMPORARY_PART : DISK_PART) * free_bytes;
    double available = (double)weir_memory_available_bytes();
    if (setup->options->max_copies != WEIR_OPT_BYTES_AUTO)
        return fmin((double)setup->options->max_copies, DISK_PART * free_bytes);
    return setup->in_memory && setup->temporary && available > 0 ? fmin(limit, MEMORY_PART * available) : limit;
}

static void say_no_room(struct bench_setup *setup, const char *names, double needed, double limit, double free_bytes)
{
    int all = setup->options->sample ? setup->options->sample : setup->source.episodes;
    int episodes = (int)(all * limit / needed);
    char sample[64] = "";
    if (episodes > 0)
        snprintf(sample, sizeof sample, ", or --sample %d, with which all fit", episodes);
    leave_out(setup,
              "left out: %s: the copies need up to %s, but may take only %s in %s (%s free); use --work-dir DIR for "
              "another folder%s%s\n",
              names, weir_size(needed).text, weir_size(limit).text, setup->folder, weir_size(free_bytes).text,
              limit < DISK_PART * free_bytes ? ", --max-copies for more" : "", sample);
}

/* Drops the largest copies until the rest fits into the folder. */
static void fit_disk(struct bench_setup *setup, struct wish *wish)
{
    double free_bytes = (double)weir_copy_free_bytes(setup->folder), needed = 0;
    double limit = copies_limit(setup, free_bytes);
    int out = 0;
    char names[1024] = "";
    for (int i = 0; i < wish->n; i++)
        needed += wish->formats[i].there ? 0 : (double)wish->formats[i].bytes;
    double all_bytes = needed;
    while (free_bytes > 0 && needed > limit) {
        struct wanted *largest = NULL;
        for (int i = wish->n - 1; i >= 0; i--)
            if (!wish->formats[i].there && !wish->formats[i].left_out &&
                (!largest || wish->formats[i].bytes > largest->bytes))
                largest = &wish->formats[i];
        if (!largest || largest->bytes == 0)
            break;
        largest->left_out = true;
        needed -= (double)largest->bytes;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", out++ ? ", " : "", largest->spec.name);
    }
    if (out > 0)
        say_no_room(setup, names, all_bytes, limit, free_bytes);
}

/* ---- making copies ---- */

static int make_folder(const char *path, struct weir_err *err)
{
    struct stat st;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        return 0;
    return weir_err_set(err, -errno, "%s: cannot be created: %s; choose another folder with --work-dir", path,
                        strerror(errno));
}

static int convert(struct bench_setup *setup, const struct wanted *w, double seconds, struct weir_err *err)
{
    char sample[16];
    struct weir_words words = {0};
    const char *const begin[] = {
        "weir",  "convert",      setup->data, w->path,
        "--to",  w->spec.format, "--codec",   weir_copy_codec_option(&w->spec, setup->source.codec),
        "--json"};
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++)
        weir_words_add(&words, begin[i]);
    snprintf(sample, sizeof sample, "%d", setup->options->sample);
    if (setup->options->sample > 0)
        weir_words_add_option(&words, "sample", sample);
    if (!setup->options->loader.cameras)
        weir_words_add_option(&words, "cameras", setup->cameras);
    for (char **arg = setup->source_only.argv; arg && *arg; arg++)
        weir_words_add(&words, *arg);
    if (words.failed)
        return weir_err_set(err, -ENOMEM, "out of memory");
    struct weir_child child = {0};
    const struct weir_child_config config = {.argv = words.argv, .seconds = seconds, .interrupted = setup->interrupted};
    fprintf(stderr, "converting to %s: %s\n", w->spec.name, w->path);
    int rc = weir_child_run(&child, &config, err);
    weir_child_free(&child);
    weir_words_free(&words);
    return rc;
}

static void print_place(const struct bench_setup *setup, const struct wish *wish)
{
    char type[64];
    struct weir_wrap wrap;
    double bytes = 0;
    for (int i = 0; i < wish->n; i++)
        bytes += wish->formats[i].there || wish->formats[i].left_out ? 0 : (double)wish->formats[i].bytes;
    weir_filesystem_of(setup->folder, type, sizeof type);
    fprintf(weir_wrap_open(&wrap, stderr, 2, NULL), "copies: about %s in %s, %s%s%s; %s\n", weir_size(bytes).text,
            setup->folder, setup->in_memory ? "in memory (" : "on ", type, setup->in_memory ? ")" : "",
            setup->temporary ? "removed at the end (--work-dir DIR keeps them in another folder)" : "kept");
    weir_wrap_close(&wrap);
}

/* Makes missing copies, and drops those that fail. Returns 0, -EINTR, or -EACCES without a writable folder. */
static int make_copies(struct bench_setup *setup, struct wish *wish, struct weir_err *err)
{
    uint64_t begin_ns = weir_clock_monotonic_ns();
    uint64_t until_ns = begin_ns + (uint64_t)(CONVERT_PART * (double)(setup->end_ns - begin_ns));
    bool folder = false;
    for (int i = 0; i < wish->n; i++) {
        struct wanted *w = &wish->formats[i];
        struct weir_err why = WEIR_ERR_NONE;
        if (!*w->spec.format || w->there || w->left_out)
            continue;
        if (!folder && make_folder(setup->folder, err) < 0)
            return -EACCES;
        if (!folder)
            print_place(setup, wish);
        folder = true;
        double seconds = (double)((int64_t)(until_ns - weir_clock_monotonic_ns())) / 1e9;
        int rc = seconds > 0 ? convert(setup, w, seconds, &why) : -ETIMEDOUT;
        if (rc == -EINTR)
            return rc;
        w->left_out = rc < 0;
        if (rc == -ETIMEDOUT)
            leave_out(setup, "left out: %s: half of --max-minutes, the limit for making copies, was used up; %s\n",
                      w->spec.name, setup->temporary ? "raise it" : "rerun the command to resume");
        else if (rc < 0)
            leave_out(setup, "left out: %s: %s\n", w->spec.name, why.text);
    }
    return 0;
}

/* ---- formats of the grid ---- */

/* Returns the number of batches per epoch of a limit candidate. It is small, because their bytes are loaded into memory
 * before the measurement. Returns 0 if the copy is too large. */
static int limit_batches(const struct bench_setup *setup, uint64_t bytes, int cameras)
{
    uint64_t available = weir_memory_available_bytes();
    if (bytes > LIMIT_BYTES || (available && bytes > available / 4))
        return 0;
    int samples = atoi(setup->options->batch_size), frames = (samples > 0 ? samples : 1) * (cameras > 0 ? cameras : 1);
    return LIMIT_FRAMES / frames + 1;
}

static int add_format(struct bench_setup *setup, const struct wanted *w, int cameras, struct weir_err *err)
{
    int n = setup->n_formats;
    struct weir_grid_format *format = &setup->formats[n];
    bool is_source = !*w->spec.format;
    setup->paths[n] = strdup(is_source ? setup->data : w->path);
    if (!setup->paths[n])
        return weir_err_set(err, -ENOMEM, "out of memory");
    *format = (struct weir_grid_format){.path = setup->paths[n], .is_source = is_source, .bytes = setup->source.bytes};
    snprintf(format->name, sizeof format->name, "%s", w->spec.name);
    if (is_source)
        snprintf(format->what, sizeof format->what, "the data as it is (%s, %s)", setup->source.codec,
                 setup->source.layout);
    else
        snprintf(format->what, sizeof format->what, "%s", w->spec.name);
    int rc = is_source ? 0 : weir_copy_files(format->path, &setup->files[n], &format->bytes, err);
    if (rc < 0)
        return rc;
    setup->n_formats++;
    double part = is_source || setup->options->sample <= 0 || setup->options->sample > setup->source.episodes
                      ? 1
                      : (double)setup->options->sample / setup->source.episodes;
    format->bytes_each = setup->source.frames ? (double)format->bytes / ((double)setup->source.frames * part) : 0;
    format->is_remote = is_source && weir_url_is(setup->data);
    format->limit_batches = format->is_remote ? 0 : limit_batches(setup, format->bytes, cameras);
    return 0;
}

/* ---- the source ---- */

static void common_arguments(struct bench_setup *setup)
{
    const struct weir_loader_config *loader = &setup->options->loader;
    weir_words_add_options(&setup->common, weir_loader_opts, WEIR_FOR_BENCH, loader);
    weir_words_add_options(&setup->source_only, weir_loader_opts, WEIR_FOR_DATA, loader);
}

static int open_source(struct bench_setup *setup, int *cameras, struct weir_err *err)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = setup->data};
    struct weir_dataset *dataset;
    uint64_t bytes;
    weir_loader_options_dataset(&setup->options->loader, &config);
    int rc = weir_dataset_open(&dataset, &config, err);
    if (rc < 0)
        return rc;
    rc = weir_outputs_spare(setup->command, setup->options, dataset, err);
    *cameras = weir_dataset_cameras(dataset);
    for (int c = 0; c < *cameras; c++) {
        size_t used = strlen(setup->cameras);
        snprintf(setup->cameras + used, sizeof setup->cameras - used, "%s%s", c ? "," : "",
                 weir_dataset_camera(dataset, c)->name);
    }
    if (rc == 0)
        rc = weir_copy_source_of(dataset, &setup->source, err);
    if (rc == 0)
        rc = weir_copy_source_files(dataset, &setup->files[0], &bytes, err);
    weir_dataset_close(&dataset);
    return rc;
}

/* Adds the source and the existing copies to the grid. The source's file list was stored at index 0, so it is moved to
 * the source's position in --formats. */
static int add_formats(struct bench_setup *setup, const struct wish *wish, int cameras, struct weir_err *err)
{
    struct weir_path_list of_source = setup->files[0];
    int rc = 0;
    memset(&setup->files[0], 0, sizeof setup->files[0]);
    for (int i = 0; i < wish->n && rc == 0; i++) {
        const struct wanted *w = &wish->formats[i];
        if (w->left_out)
            continue;
        if (!*w->spec.format) {
            setup->files[setup->n_formats] = of_source;
            memset(&of_source, 0, sizeof of_source);
        }
        rc = add_format(setup, w, cameras, err);
    }
    weir_path_list_free(&of_source);
    return rc;
}

int weir_bench_setup_open(struct bench_setup *setup, const struct weir_command *command,
                          const struct bench_options *options, const char *data,
                          const volatile sig_atomic_t *interrupted, struct weir_err *err)
{
    int cameras = 0;
    struct wish *wish = calloc(1, sizeof *wish);
    *setup = (struct bench_setup){.command = command, .options = options, .data = data, .interrupted = interrupted};
    setup->end_ns = weir_clock_monotonic_ns() + (uint64_t)(options->max_minutes * 60e9);
    common_arguments(setup);
    int rc = wish && !setup->common.failed && !setup->source_only.failed ? open_source(setup, &cameras, err)
                                                                         : weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0 && options->formats)
        rc = named_formats(wish, setup, err);
    else if (rc == 0)
        default_formats(wish, setup);
    if (rc == 0)
        rc = choose_folder(setup, wish, err);
    if (rc == 0)
        rc = locate(setup, wish, err);
    if (rc == 0) {
        fit_disk(setup, wish);
        rc = make_copies(setup, wish, err);
    }
    if (rc == 0)
        rc = add_formats(setup, wish, cameras, err);
    free(wish);
    if (rc < 0)
        weir_bench_setup_close(setup);
    return rc;
}

void weir_bench_setup_close(struct bench_setup *setup)
{
    for (int i = 0; i < WEIR_GRID_FORMATS; i++) {
        free(setup->paths[i]);
        setup->paths[i] = NULL;
        weir_path_list_free(&setup->files[i]);
    }
    weir_copy_folder_remove(&setup->temporary, setup->interrupted);
    weir_words_free(&setup->common);
    weir_words_free(&setup->source_only);
    setup->n_formats = 0;
}
