#include "base/text.h"
#include "cli/commands.h"
#include "cli/norms.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/run/run_loop.h"
#include "cli/run/run_options.h"
#include "cli/run/run_place.h"
#include "cli/sysinfo.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/loader_stages.h"
#include "pipeline/read_ahead.h"
#include "pipeline/views.h"
#include "prof/report/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EPOCHS_MAX = 1000000000 };

static struct weir_loader *volatile running; /* for the signal handler */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
    if (running)
        weir_loader_stop(running);
}

static void catch_signals(void)
{
    /* A write that is under way goes on, sleeps do not; the second signal kills. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void on_stall(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "weir run: %s", text);
}

static void to_config(const struct run_options *o, const char *data, const struct weir_ranks *ranks,
                      struct weir_index_progress *progress, struct weir_loader_config *config)
{
    weir_loader_config_default(config);
    config->data = data;
    config->cameras = o->cameras;
    config->qpos_keys = o->data.qpos_keys;
    config->action_keys = o->data.action_keys;
    config->image_keys = o->data.image_keys;
    config->allow_ragged = o->data.allow_ragged;
    config->allow_external = o->data.allow_external;
    config->split = o->data.split;
    config->index = o->data.index;
    config->batch_size = o->batch_size;
    config->num_workers = o->num_workers == WEIR_OPT_AUTO ? WEIR_WORKERS_AUTO : o->num_workers;
    config->prefetch = o->prefetch == WEIR_OPT_AUTO ? 0 : o->prefetch;
    config->num_epochs = o->seconds <= 0 ? o->num_epochs : o->cold ? 1 : EPOCHS_MAX;
    config->max_batches = o->max_batches;
    config->sampling = (enum weir_sampling)o->sampling;
    config->obs_history = o->obs_history;
    config->chunk_size = o->chunk_size;
    config->pad = (enum weir_pad)o->pad;
    config->action_offset = o->action_offset;
    config->seed = o->seed;
    config->no_shuffle = o->no_shuffle;
    config->drop_last = o->drop_last;
    config->format = o->format;
    config->crop = o->crop;
    config->image_width = o->image_size.width;
    config->image_height = o->image_size.height;
    config->train_split = o->train_split;
    config->rank = ranks->rank;
    config->world_size = ranks->world_size;
    config->local_rank = ranks->local_rank;
    config->local_size = ranks->local_size;
    config->local_cores = ranks->local_cores;
    config->wrap = o->wrap;
    config->on_error = (enum weir_on_error)o->on_error;
    config->io = o->io;
    config->io_depth = o->io_depth == WEIR_OPT_AUTO ? 0 : o->io_depth;
    config->direct = o->direct;
    config->cold = o->cold;
    config->decoder = o->decoder;
    config->device = o->device;
    config->deterministic = o->deterministic;
    config->decode_cache_bytes = o->decode_cache;
    config->no_timing = o->no_timing;
    config->on_stall = on_stall;
    config->on_index = weir_index_progress;
    config->user = progress;
}

/* ---- the head of the output ---- */

static void print_camera(const char *name, const struct weir_loader_facts *facts, int c)
{
    const struct weir_view *view = &facts->views[c];
    fprintf(stderr, "%s %s %dx%d", c ? "," : "", name, view->out_width, view->out_height);
    if (!facts->whole[c])
        fprintf(stderr, " (of %dx%d+%d+%d)", view->width, view->height, view->x, view->y);
}

static void print_reading(const struct weir_loader_facts *facts, const struct run_options *o)
{
    fprintf(stderr, "reads: %s%s", facts->io_used, o->direct ? ", direct" : "");
    if (strcmp(facts->io_requested, facts->io_used) != 0)
        fprintf(stderr, " (%s: %s)", facts->io_requested, facts->io_why);
    if (facts->io_depth > 0)
        fprintf(stderr, "; up to %d ahead of the workers", facts->io_depth);
    if (facts->io_pool_bytes > 0)
        fprintf(stderr, " in %.0f MB", (double)facts->io_pool_bytes / 1e6);
    if (*facts->io_features)
        fprintf(stderr, ", %s", facts->io_features);
    if (facts->io_cached >= 0 && !o->direct)
        fprintf(stderr, "; %.0f %% in the page cache", 100 * facts->io_cached);
    fputc('\n', stderr);
    if (o->cold)
        fprintf(stderr, "cold: %.1f MB were dropped from the page cache, %.1f %% stayed\n",
                (double)facts->cold_bytes / 1e6, 100 * facts->cold_stayed);
}

static void print_decoding(const struct weir_loader_facts *facts)
{
    if (facts->device < 0)
        return;
    bool chosen = strcmp(facts->decoder_requested, "auto") == 0;
    if (*facts->decoder_why)
        fprintf(stderr, "decodes: %s (%s%s)\n", facts->decoder_used, chosen ? "auto: " : "", facts->decoder_why);
    else
        fprintf(stderr, "decodes: %s\n", facts->decoder_used);
}

static void print_head(const struct weir_loader *loader, const char *data, const struct run_options *o,
                       const struct weir_ranks *ranks)
{
    const struct weir_dataset *dataset = weir_loader_dataset(loader);
    const struct weir_sampler *sampler = weir_loader_sampler(loader);
    struct weir_loader_facts facts;
    int n_train, n_val;
    weir_loader_facts(loader, &facts);
    weir_sampler_episodes(sampler, WEIR_SPLIT_TRAIN, &n_train);
    weir_sampler_episodes(sampler, WEIR_SPLIT_VAL, &n_val);
    char shown[4096];
    snprintf(shown, sizeof shown, "%s", data);
    weir_text_printable(shown);
    fprintf(stderr, "%s: %s, %d episodes (%d to train on, %d to validate on)\n", shown, weir_dataset_layout(dataset, 0),
            weir_dataset_episodes(dataset), n_train, n_val);
    fprintf(stderr, "cameras:");
    for (int c = 0; c < weir_dataset_cameras(dataset); c++)
        print_camera(weir_dataset_camera(dataset, c)->name, &facts, c);
    fprintf(stderr, "; %d training and %d validation batches", weir_sampler_batches(sampler, WEIR_SPLIT_TRAIN),
            weir_sampler_batches(sampler, WEIR_SPLIT_VAL));
    if (o->seconds <= 0)
        fprintf(stderr, " x %d epochs", o->num_epochs);
    fprintf(stderr, "; %d workers, prefetch %d\n", facts.workers, facts.prefetch);
    print_reading(&facts, o);
    print_decoding(&facts);
    weir_run_place_print(&facts, ranks, o->sync_steps);
    if (facts.cache_budget_bytes > 0 && facts.cache_mapped_bytes == 0)
        fprintf(
            stderr,
            "the decode cache keeps nothing: its table and one frame are more than --decode-cache allows; all frames "
            "would take %.1f MB\n",
            (double)facts.cache_bytes_all / 1e6);
    if (weir_loader_position(loader) > 0)
        fprintf(stderr, "goes on after %llu of %llu batches\n", (unsigned long long)weir_loader_position(loader),
                (unsigned long long)weir_sampler_total(sampler));
    if (n_val == 0)
        fprintf(stderr, "the validation split is empty: all %d episodes are trained on\n", n_train);
    if (weir_dataset_bad_episodes(dataset) > 0)
        fprintf(stderr, "%d episodes cannot be opened and are left out; the first: %s\n",
                weir_dataset_bad_episodes(dataset), weir_dataset_bad_episode(dataset, 0));
}

static void write_reading(struct weir_json *json, const struct weir_loader_facts *facts, bool cold)
{
    weir_json_object(json, "io");
    weir_json_text(json, "requested", facts->io_requested);
    weir_json_text(json, "used", facts->io_used);
    weir_json_text(json, "why", *facts->io_why ? facts->io_why : NULL);
    weir_json_int(json, "depth", facts->io_depth);
    weir_json_uint(json, "pool_bytes", facts->io_pool_bytes);
    weir_json_text(json, "features", *facts->io_features ? facts->io_features : NULL);
    if (facts->io_cached < 0)
        weir_json_null(json, "page_cache_fraction");
    else
        weir_json_double(json, "page_cache_fraction", facts->io_cached);
    if (cold)
        weir_json_double(json, "cold_stayed_fraction", facts->cold_stayed);
    else
        weir_json_null(json, "cold_stayed_fraction");
    weir_json_end(json, '}');
}

static void write_run_line(FILE *out, const struct weir_command *command, const struct run_options *o, const char *data,
                           const struct weir_loader *loader, const struct weir_ranks *ranks, double load_average)
{
    struct weir_json json;
    struct weir_sysinfo machine;
    struct weir_loader_facts facts;
    char text[256];
    weir_sysinfo_read(&machine);
    weir_loader_facts(loader, &facts);
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "type", "run");
    weir_json_text(&json, "weir", weir_version());
    weir_json_text(&json, "git", weir_git_describe());
    weir_json_object(&json, "machine");
    weir_sysinfo_json(&machine, &json);
    if (load_average >= 0)
        weir_json_double(&json, "load_average", load_average);
    weir_filesystem_of(data, text, sizeof text);
    weir_json_text(&json, "data_filesystem", text);
    weir_json_end(&json, '}');
    weir_json_object(&json, "versions");
    weir_dataset_library(text, sizeof text);
    weir_json_text(&json, "hdf5", text);
    weir_decoder_library(text, sizeof text);
    weir_json_text(&json, "jpeg", text);
    weir_json_text(&json, "compiler", weir_compiler());
    weir_dataset_inflate(text, sizeof text);
    weir_json_text(&json, "inflate", text);
    weir_libc(text, sizeof text);
    weir_json_text(&json, "libc", text);
    weir_json_end(&json, '}');
    weir_json_object(&json, "config");
    weir_json_text(&json, "data", data);
    weir_options_json(command, o, &json);
    weir_json_end(&json, '}');
    weir_json_object(&json, "used"); /* what automatic settings became */
    weir_json_int(&json, "num_workers", facts.workers);
    weir_json_int(&json, "prefetch", facts.prefetch);
    weir_json_int(&json, "slots", facts.slots);
    weir_json_uint(&json, "slot_bytes", facts.slot_bytes);
    weir_json_uint(&json, "decode_cache_bytes", facts.cache_mapped_bytes);
    weir_json_uint(&json, "index_bytes", facts.index_bytes);
    weir_json_uint(&json, "largest_extent_bytes", facts.extent_max);
    weir_json_int(&json, "episodes", weir_dataset_episodes(weir_loader_dataset(loader)));
    weir_json_int(&json, "images_per_sample", facts.images_per_sample);
    weir_run_place_json(&json, &facts, ranks);
    weir_json_text(&json, "decoder", facts.decoder_used);
    weir_json_text(&json, "decoder_why", facts.decoder_why);
    write_reading(&json, &facts, o->cold);
    weir_json_end(&json, '}');
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fflush(out);
}

/* ---- running ---- */

static bool same_file(const struct stat *a, uint64_t device, uint64_t inode)
{
    return S_ISREG(a->st_mode) && a->st_dev == device && a->st_ino == inode;
}

static int check_output(const char *path, int fd, const struct weir_dataset *dataset, struct weir_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
    char of[WEIR_READ_PATH_MAX];
    for (int i = 0; i < weir_dataset_read_files(dataset); i++) {
        struct weir_dataset_file file;
        weir_dataset_read_file(dataset, i, &file, of);
        if (same_file(&st, file.device, file.inode))
            return weir_err_set(err, -EINVAL, "%s: is a file of the dataset and will not be overwritten", path);
    }
    return 0;
}

/* Opens a file to write, and empties it only once it is known not to be a file of the dataset. */
static int open_output(const char *path, const struct weir_dataset *dataset, FILE **file, struct weir_err *err)
{
    *file = NULL;
    if (!path)
        return 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
    int rc = check_output(path, fd, dataset, err);
    struct stat st;
    if (rc == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) != 0)
        rc = weir_err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
    *file = rc == 0 ? fdopen(fd, "w") : NULL;
    if (!*file)
        close(fd);
    return rc == 0 && !*file ? weir_err_set(err, -ENOMEM, "out of memory") : rc;
}

static int close_output(const char *path, FILE *file, struct weir_err *err)
{
    if (!file)
        return 0;
    bool bad = ferror(file) != 0;
    if (fclose(file) != 0 || bad)
        return weir_err_set(err, -EIO, "%s: could not be written completely; is the disk full?", path);
    return 0;
}

static int check_device(const struct run_options *o, struct weir_err *err)
{
    int number, rc = weir_device_parse(o->device, &number, err);
    if (rc < 0) {
        weir_err_prefix(err, "--device");
        return rc;
    }
    if (number < 0 && (o->format.dtype == WEIR_DTYPE_F16 || o->format.dtype == WEIR_DTYPE_BF16))
        return weir_err_set(err, -EINVAL, "--output f16 and bf16 are made on a GPU; add --device cuda, or take f32");
    if (number < 0 && o->sync_steps)
        return weir_err_set(err, -EINVAL, "--sync-steps waits for a GPU; add --device cuda");
    if (number >= 0 && o->step_spin)
        return weir_err_set(err, -EINVAL, "--step-spin is for steps on the CPU; with --device cuda they are kernels");
    return weir_decoder_check_device(o->decoder, number >= 0, err);
}

static int to_format(struct run_options *o, struct weir_err *err)
{
    static const enum weir_dtype dtypes[] = {WEIR_DTYPE_U8, WEIR_DTYPE_F32, WEIR_DTYPE_F16, WEIR_DTYPE_BF16};
    o->format = (struct weir_pixel_format){
        .color = (enum weir_color)o->color,
        .dtype = dtypes[o->output],
        .layout = (enum weir_image_layout)o->layout,
    };
    int rc = weir_crop_check(o->crop, err);
    if (rc == 0)
        rc = check_device(o, err);
    return rc < 0 ? rc : weir_norms_parse(&o->format, o->mean, o->std, err);
}

/* The options of the profile, checked before anything is opened. */
static int to_profile(const struct run_options *o, struct weir_run_profile_config *profile, struct weir_err *err)
{
    *profile = (struct weir_run_profile_config){
        .folder = o->profile,
        .nvtx = o->nvtx,
        .record_shapes = o->record_shapes,
        .profile_memory = o->profile_memory,
        .with_stack = o->with_stack,
        .worker_ops = o->worker_ops,
        .sort_by = o->sort_by,
        .row_limit = o->row_limit,
    };
    if (!o->profile && (o->record_shapes || o->profile_memory || o->with_stack || o->worker_ops))
        return weir_err_set(err, -EINVAL,
                            "--record-shapes, --profile-memory, --with-stack and --worker-ops need --profile DIR");
    if ((o->profile || o->nvtx) && o->no_timing)
        return weir_err_set(err, -EINVAL, "--%s shows the timings that --no-timing leaves out; drop one of them",
                            o->profile ? "profile" : "nvtx");
    if (weir_averages_check_sort(o->sort_by, err) < 0) {
        weir_err_prefix(err, "--sort-by");
        return -EINVAL;
    }
    if (weir_schedule_parse(&profile->schedule, o->schedule, err) < 0) {
        weir_err_prefix(err, "--schedule");
        return -EINVAL;
    }
    return 0;
}

/* What is written before the first batch. */
static int begin_outputs(const struct weir_command *command, const struct run_options *o, const char *data,
                         const struct weir_ranks *ranks, const struct weir_run_profile_config *profile,
                         struct weir_loader *loader, struct weir_run_config *run, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_REPORT);
    const struct weir_dataset *dataset = weir_loader_dataset(loader);
    int rc = open_output(o->log, dataset, &run->log, err);
    if (rc == 0)
        rc = open_output(o->checksums, dataset, &run->checksums, err);
    if (rc < 0)
        return rc;
    print_head(loader, data, o, ranks);
    weir_run_place_machine(&run->machine, loader);
    if (run->log)
        write_run_line(run->log, command, o, data, loader, ranks, run->machine.load_average);
    if (run->json)
        write_run_line(stdout, command, o, data, loader, ranks, run->machine.load_average);
    return weir_run_profile_open(&run->profile, profile, loader, err);
}

static int run_loader(const struct weir_command *command, const struct run_options *o, const char *data,
                      const struct weir_ranks *ranks, const struct weir_run_profile_config *profile,
                      struct weir_run_config *run, struct weir_err *err)
{
    struct weir_loader_config config;
    struct weir_loader *loader;
    struct weir_index_progress progress;
    weir_index_progress_begin(&progress);
    to_config(o, data, ranks, &progress, &config);
    int rc = o->state ? weir_loader_restore(&config, o->state, err) : 0;
    if (rc == 0)
        rc = weir_loader_open(&loader, &config, err);
    if (rc < 0)
        return rc;
    run->state = o->state;
    run->opened_ns = weir_clock_monotonic_ns();
    running = loader;
    if (interrupted)
        weir_loader_stop(loader);
    weir_zone_begin(WEIR_STAGE_WORKER_LOOP); /* the consumer's whole time adds up: run_loop.h */
    rc = begin_outputs(command, o, data, ranks, profile, loader, run, err);
    if (rc == 0)
        rc = weir_run_loop(loader, &config, run, &interrupted, err);
    else
        weir_zone_end();
    weir_run_profile_close(&run->profile);
    running = NULL;
    weir_loader_close(&loader);
    return rc;
}

static int check_outputs(const struct run_options *o, struct weir_err *err)
{
    const struct weir_output outputs[] = {
        {"--log", o->log}, {"--checksums", o->checksums}, {"--state", o->state}, {"--index", o->data.index}};
    return weir_outputs_check(outputs, sizeof outputs / sizeof outputs[0], err);
}

static int run_main(const struct weir_command *command, int argc, char **argv)
{
    struct run_options o;
    const char *data;
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &data, &n);
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_reading_check(o.io, o.direct, &err) == -EINVAL) {
        weir_cli_fail(command, &err);
        return 2;
    }
    struct weir_run_profile_config profile;
    struct weir_ranks ranks;
    if (check_outputs(&o, &err) < 0 || to_format(&o, &err) < 0 || to_profile(&o, &profile, &err) < 0 ||
        weir_ranks_find(&ranks, o.rank, o.world_size, &err) < 0) {
        weir_cli_fail(command, &err);
        return 2;
    }
    struct weir_run_config run = {.every = o.every,
                                  .lang = (enum weir_lang)o.lang,
                                  .json = o.json,
                                  .step_ms = o.step_ms,
                                  .seconds = o.seconds,
                                  .step_spin = o.step_spin,
                                  .sync_steps = o.sync_steps};
    weir_machine_begin(&run.machine, 0, "");
    catch_signals();
    int rc = run_loader(command, &o, data, &ranks, &profile, &run, &err);
    int log_rc = close_output(o.log, run.log, &err);
    int sums_rc = close_output(o.checksums, run.checksums, &err);
    if (rc < 0 || log_rc < 0 || sums_rc < 0)
        return weir_cli_fail(command, &err);
    return interrupted ? 130 : 0;
}

const struct weir_command weir_cmd_run = {
    .name = "run",
    .summary = "load a dataset as a training run would, timing every stage",
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .opts = weir_run_opts,
    .n_opts = WEIR_RUN_OPTS,
    .takes_config = true,
    .topics = weir_run_topics,
    .examples = weir_run_examples,
    .notes = "DATA is a folder of episodes or one file of them. Ctrl-C ends the run with the table so far (exit status "
             "130);\n"
             "a second one kills it.",
    .run = run_main,
};
