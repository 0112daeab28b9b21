#include "cli/run/run_session.h"
#include "cli/norms.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/run/run_head.h"
#include "cli/run/run_loop.h"
#include "cli/run/run_place.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/read_ahead.h"
#include "pipeline/views.h"
#include "prof/report/machine.h"
#include "weir/stages.h"

#include <errno.h>
#include <signal.h>

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

/* What the loader reports while it opens and works. */
struct messages {
    struct weir_index_progress progress;
    const char *command;
};

static void on_index(void *user, int done, int total)
{
    struct messages *messages = user;
    weir_index_progress(&messages->progress, done, total);
}

static void on_stall(void *user, const char *text)
{
    const struct messages *messages = user;
    fprintf(stderr, "weir %s: %s", messages->command, text);
}

static void to_config(const struct weir_run_head *head, struct messages *messages, struct weir_loader_config *config)
{
    const struct run_options *o = head->options;
    const struct weir_ranks *ranks = head->ranks;
    weir_loader_config_default(config);
    config->data = head->data;
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
    config->on_index = on_index;
    config->user = messages;
}

/* ---- the options ---- */

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

/* ---- running ---- */

/* What is written before the first batch. */
static int begin_outputs(const struct weir_run_head *head, const struct weir_run_profile_config *profile,
                         struct weir_loader *loader, struct weir_run_config *run, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_REPORT);
    int rc = weir_outputs_spare(head->command, head->values, weir_loader_dataset(loader), err);
    if (rc == 0)
        rc = weir_output_open(&run->log, head->options->log, err);
    if (rc == 0)
        rc = weir_output_open(&run->checksums, head->options->checksums, err);
    if (rc < 0)
        return rc;
    weir_run_head_print(head, loader);
    weir_run_place_machine(&run->machine, loader);
    if (run->log)
        weir_run_head_log(run->log, head, loader, run->machine.load_average);
    if (run->json)
        weir_run_head_log(stdout, head, loader, run->machine.load_average);
    return weir_run_profile_open(&run->profile, profile, loader, err);
}

static int run_loader(const struct weir_run_head *head, const struct weir_run_profile_config *profile,
                      struct weir_run_config *run, struct weir_err *err)
{
    struct weir_loader_config config;
    struct weir_loader *loader;
    struct messages messages = {.command = head->command->name};
    weir_index_progress_begin(&messages.progress);
    to_config(head, &messages, &config);
    run->state = head->options->state;
    int rc = run->state ? weir_loader_restore(&config, run->state, err) : 0;
    if (rc == 0 && run->consumer)
        rc = run->consumer->config(run->consumer->user, &config, err);
    if (rc == 0)
        rc = weir_loader_open(&loader, &config, err);
    if (rc < 0)
        return rc;
    run->opened_ns = weir_clock_monotonic_ns();
    running = loader;
    if (interrupted)
        weir_loader_stop(loader);
    weir_zone_begin(WEIR_STAGE_WORKER_LOOP); /* the consumer's whole time adds up: run_loop.h */
    rc = run->consumer ? run->consumer->open(run->consumer->user, loader, err) : 0;
    if (rc == 0)
        rc = begin_outputs(head, profile, loader, run, err);
    if (rc == 0)
        rc = weir_run_loop(loader, &config, run, &interrupted, err);
    else
        weir_zone_end();
    weir_run_profile_close(&run->profile);
    running = NULL;
    if (run->consumer)
        run->consumer->close(run->consumer->user);
    weir_loader_close(&loader);
    return rc;
}

static int run_checked(const struct weir_run_head *head, const struct weir_run_profile_config *profile)
{
    const struct run_options *o = head->options;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_run_config run = {.every = o->every,
                                  .lang = (enum weir_lang)o->lang,
                                  .json = o->json,
                                  .consumer = head->consumer,
                                  .step_ms = o->step_ms,
                                  .seconds = o->seconds,
                                  .step_spin = o->step_spin,
                                  .sync_steps = o->sync_steps};
    weir_machine_begin(&run.machine, 0, "");
    catch_signals();
    int rc = run_loader(head, profile, &run, &err);
    int log_rc = weir_output_close(o->log, run.log, &err);
    int sums_rc = weir_output_close(o->checksums, run.checksums, &err);
    if (rc < 0 || log_rc < 0 || sums_rc < 0)
        return weir_cli_fail(head->command, &err);
    return interrupted ? 130 : 0;
}

int weir_run_session(const struct weir_run_session *session)
{
    struct run_options *o = session->options;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_run_profile_config profile;
    struct weir_ranks ranks;
    if (weir_reading_check(o->io, o->direct, &err) == -EINVAL || to_format(o, &err) < 0 ||
        to_profile(o, &profile, &err) < 0 || weir_ranks_find(&ranks, o->rank, o->world_size, &err) < 0) {
        weir_cli_fail(session->command, &err);
        return 2;
    }
    profile.command = session->command->name;
    const struct weir_run_head head = {session->command, session->values, o, session->data, &ranks, session->consumer};
    return run_checked(&head, &profile);
}
