#include "cli/run/run_session.h"
#include "base/terminal.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/run/run_loop.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/report/log_fields.h"
#include "pipeline/samples/batch_layout.h"
#include "pipeline/samples/read_ahead.h"
#include "prof/report/machine.h"
#include "weir/stages.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { EPOCHS_MAX = 1000000000 };

static struct weir_loader *volatile running; /* for the signal handler */
static volatile sig_atomic_t interrupted;    /* number of the first signal */

static void on_signal(int number)
{
    if (!interrupted)
        interrupted = number;
    if (running)
        weir_loader_stop(running);
}

/* Ends the opening of files. Later, weir_loader_stop ends the run. */
static bool is_opening_interrupted(void *user)
{
    (void)user;
    return interrupted && !running;
}

static void catch_signals(void)
{
    /* SA_RESTART resumes interrupted writes, but not sleeps. SA_RESETHAND lets a second signal kill the process. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* User data of the loader's callbacks. */
struct messages {
    struct weir_progress progress;
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
    fprintf(stderr, "%sweir %s: %s", weir_progress_erase(), messages->command, text);
}

static void to_config(const struct weir_run_head *head, struct messages *messages, struct weir_loader_config *config)
{
    const struct run_options *o = head->options;
    const struct weir_ranks *ranks = head->ranks;
    *config = o->loader;
    config->size = sizeof *config;
    config->data = head->data;
    if (o->seconds > 0)
        config->num_epochs = config->cold ? 1 : EPOCHS_MAX;
    config->rank = ranks->rank;
    config->world_size = ranks->world_size;
    config->local_rank = ranks->local_rank;
    config->local_size = ranks->local_size;
    config->local_cores = ranks->local_cores;
    config->on_stall = on_stall;
    config->on_index = on_index;
    config->user = messages;
}

/* ---- the options ---- */

/* Mean and standard deviation of ImageNet, as torchvision's models expect them. */
static const float imagenet_mean[3] = {0.485f, 0.456f, 0.406f}, imagenet_std[3] = {0.229f, 0.224f, 0.225f};

static int parse_norm(float to[3], const char *option, const char *text, const float known[3], double least,
                      struct weir_err *err)
{
    if (strcmp(text, "imagenet") == 0) {
        memcpy(to, known, 3 * sizeof *to);
        return 0;
    }
    const char *at = text;
    for (int c = 0; c < 3; c++) {
        char *end;
        double value = strtod(at, &end);
        bool ends = *end == (c < 2 ? ',' : '\0');
        if (end != at && ends && fabs(value) > 10)
            return weir_err_set(err, -EINVAL, "%s: %.100s must be in units of 0..1; divide the values by 255", option,
                                text);
        if (end == at || !ends || !(value >= least))
            return weir_err_set(
                err, -EINVAL,
                "%s: \"%.100s\" is not three numbers of at least %g; write R,G,B in units of 0..1, such "
                "as 0.5,0.5,0.5, or imagenet",
                option, text, least);
        to[c] = (float)value;
        at = end + 1;
    }
    return 0;
}

static int parse_norms(struct weir_pixel_format *format, const char *mean, const char *std, struct weir_err *err)
{
    if (!mean && !std)
        return 0;
    if (format->dtype == WEIR_DTYPE_U8)
        return weir_err_set(err, -EINVAL,
                            "--mean, --std: images must be floats; add --dtype f32, or with --device cuda also "
                            "--dtype f16 or bf16");
    for (int c = 0; c < 3; c++) {
        format->mean[c] = 0;
        format->std[c] = 1;
    }
    int rc = mean ? parse_norm(format->mean, "--mean", mean, imagenet_mean, -10, err) : 0;
    return rc == 0 && std ? parse_norm(format->std, "--std", std, imagenet_std, 1e-4, err) : rc;
}

static int check_device(const struct run_options *o, struct weir_err *err)
{
    const struct weir_loader_config *loader = &o->loader;
    int number, rc = weir_device_parse(loader->device, &number, err);
    if (rc < 0) {
        weir_err_prefix(err, "--device");
        return rc;
    }
    if (number < 0 && (loader->format.dtype == WEIR_DTYPE_F16 || loader->format.dtype == WEIR_DTYPE_BF16))
        return weir_err_set(err, -EINVAL, "--dtype: f16 and bf16 need a GPU; add --device cuda, or use f32");
    if (number < 0 && o->sync_steps)
        return weir_err_set(err, -EINVAL, "--sync-steps: needs a GPU; add --device cuda");
    if (number >= 0 && o->step_spin)
        return weir_err_set(
            err, -EINVAL,
            "--step-spin: has no effect with --device cuda, because steps are kernels; drop one of the two options");
    return weir_loader_decoder_check(loader->decoder, number >= 0, loader->on_warning, err);
}

static int to_format(struct run_options *o, struct weir_err *err)
{
    if (o->json && o->log && strcmp(o->log, "-") == 0)
        return weir_err_set(err, -EINVAL,
                            "--json, --log -: both print to standard output; drop one of the two options");
    int rc = weir_crop_check(o->loader.crop, err);
    if (rc == 0)
        rc = check_device(o, err);
    return rc < 0 ? rc : parse_norms(&o->loader.format, o->mean, o->std, err);
}

/* Checks the profile's options and copies them. Runs before anything is opened. */
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
        return weir_err_set(
            err, -EINVAL,
            "--record-shapes, --profile-memory, --with-stack, --worker-ops: require --profile; add --profile DIR");
    if ((o->profile || o->nvtx) && o->loader.no_timing)
        return weir_err_set(err, -EINVAL,
                            "--%s: requires timings, but --no-timing disables them; drop one of the two options",
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

/* ---- --json: one object, made from the log's lines at the end of the run ---- */

/* Members of the object, and the types of their lines. Only the last table is written to the record (only_final). */
static const struct member {
    const char *name, *type;
    bool is_array;
} members[] = {{"run", "run", false},           {"start", "start", false},   {"epochs", "epoch", true},
               {"measured", "measured", false}, {"report", "stages", false}, {"ranks", "ranks", true},
               {"profile", "profile", false}};

struct record {
    FILE *file;
    char *lines; /* what was written to the file, once it is closed */
    size_t size;
};

static void print_member(const struct member *member, const char *lines)
{
    char begins[32];
    int n = 0, length = snprintf(begins, sizeof begins, "{\"type\":\"%s\"", member->type);
    printf(",\n\"%s\":%s", member->name, member->is_array ? "[" : "");
    for (const char *line = lines; *line; line += strcspn(line, "\n") + 1)
        if (strncmp(line, begins, (size_t)length) == 0)
            printf("%s%.*s", n++ ? ",\n" : "", (int)strcspn(line, "\n"), line);
    fputs(member->is_array ? "]" : n ? "" : "null", stdout);
}

static int open_record(struct record *record, struct weir_run_config *run, struct weir_err *err)
{
    record->file = run->out = open_memstream(&record->lines, &record->size);
    run->lines = run->only_final = true;
    return record->file ? 0 : weir_err_set(err, -ENOMEM, "out of memory");
}

/* Prints the object, unless the run failed. */
static int close_record(struct record *record, int rc, struct weir_err *err)
{
    bool failed = record->file && (ferror(record->file) || fclose(record->file) != 0);
    if (failed && rc == 0)
        rc = weir_err_set(err, -ENOMEM, "out of memory for the output of --json; use --log FILE");
    if (rc == 0 && record->file) {
        printf("{\"schema\":%d", WEIR_JSON_SCHEMA);
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
            print_member(&members[i], record->lines);
        puts("}");
    }
    free(record->lines);
    return rc;
}

/* ---- --max-wait ---- */

static bool has_max_wait(const struct run_options *o)
{
    return o->max_wait < 100;
}

static int check_max_wait(const struct run_options *o, struct weir_err *err)
{
    if (has_max_wait(o) && o->step_ms <= 0)
        return weir_err_set(err, -EINVAL,
                            "--max-wait: without a training step, a run only waits for data; add --step-ms");
    if (has_max_wait(o) && o->loader.no_timing)
        return weir_err_set(err, -EINVAL,
                            "--max-wait: requires timings, but --no-timing disables them; drop one of the "
                            "two options");
    return 0;
}

/* A complete run with timings and a step has an unknown data wait only if it is too short. */
static void too_short(const struct run_options *o, struct weir_err *err)
{
    enum { BATCHES = 25 }; /* a verdict needs 20 training batches */
    double seconds = fmax(fmax(5, 2 * o->seconds), ceil(BATCHES * o->step_ms / 1000));
    if (o->loader.cold)
        weir_err_set(err, -ENODATA,
                     "--max-wait: the run is too short to judge; with --cold, --seconds ends after one epoch, so use a "
                     "smaller --batch-size (more steps per epoch) or more data");
    else
        weir_err_set(err, -ENODATA, "--max-wait: the run is too short to judge; %s --seconds %s%.0f",
                     o->seconds > 0 ? "raise" : "add", o->seconds > 0 ? "to " : "", seconds);
}

/* Returns the exit status of a complete run. data_wait: -1 if its verdict cannot tell. */
static int judge_wait(const struct weir_run_head *head, double data_wait)
{
    struct weir_err err = WEIR_ERR_NONE;
    double percent = 100 * data_wait, max = head->options->max_wait;
    if (!has_max_wait(head->options) || (percent >= 0 && percent <= max))
        return WEIR_EXIT_SUCCESS;
    if (percent < 0)
        too_short(head->options, &err);
    else
        weir_err_set(&err, -EBUSY, "the data wait, %.2f %%, is above --max-wait %.12g %%", percent, max);
    weir_cli_fail(head->command, &err);
    return percent < 0 ? WEIR_EXIT_FAILURE : WEIR_EXIT_FOUND;
}

/* ---- one file per rank ---- */

/* Returns the file for --log; NULL if its lines go to stdout in place of the tables. */
static const char *log_file(const struct run_options *o)
{
    return o->log && strcmp(o->log, "-") == 0 ? NULL : o->log;
}

/* Paths of this rank's output files, which replace those of the options. */
struct rank_files {
    char log[PATH_MAX], checksums[PATH_MAX], state[PATH_MAX], prometheus[PATH_MAX], html[PATH_MAX];
};

/* Inserts ".rankN" before the extension. Devices and pipes, which ranks can share, keep their names. */
static int name_rank_file(const char **path, char name[PATH_MAX], int rank, struct weir_err *err)
{
    const char *typed = *path;
    struct stat st;
    if (!typed || !*typed || (stat(typed, &st) == 0 && !S_ISREG(st.st_mode)))
        return 0;
    const char *slash = strrchr(typed, '/'), *base = slash ? slash + 1 : typed, *dot = strrchr(base, '.');
    int stem = (int)(dot && dot > base ? dot - typed : (ptrdiff_t)strlen(typed));
    if (snprintf(name, PATH_MAX, "%.*s.rank%d%s", stem, typed, rank, typed + stem) >= PATH_MAX)
        return weir_err_set(err, -EINVAL, "%.100s...: the path is too long; use a shorter one", typed);
    *path = name;
    return 0;
}

/* The renamed files are compared again, because one of them may be an input. */
static int name_rank_files(const struct weir_run_session *session, const struct weir_ranks *ranks,
                           struct rank_files *files, struct weir_err *err)
{
    struct run_options *o = session->options;
    bool any = log_file(o) || o->checksums || o->state || o->prometheus || o->html;
    if (ranks->world_size == 1 || !any)
        return 0;
    int rc = log_file(o) ? name_rank_file(&o->log, files->log, ranks->rank, err) : 0;
    if (rc == 0)
        rc = name_rank_file(&o->checksums, files->checksums, ranks->rank, err);
    if (rc == 0)
        rc = name_rank_file(&o->state, files->state, ranks->rank, err);
    if (rc == 0)
        rc = name_rank_file(&o->prometheus, files->prometheus, ranks->rank, err);
    if (rc == 0)
        rc = name_rank_file(&o->html, files->html, ranks->rank, err);
    return rc < 0 ? rc : weir_outputs_check(session->command, session->values, &session->data, 1, NULL, err);
}

/* ---- the run ---- */

/* Opens the output files and prints the head. */
static int begin_outputs(const struct weir_run_head *head, const struct weir_run_profile_config *profile,
                         struct weir_loader *loader, struct weir_run_config *run, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_REPORT);
    int rc = weir_outputs_spare(head->command, head->values, weir_loader_dataset(loader), err);
    if (rc == 0)
        rc = weir_output_open(&run->log, log_file(head->options), err);
    if (rc == 0)
        rc = weir_run_page_open(run->page, head->options->html, &run->log, err);
    if (rc == 0)
        rc = weir_output_open(&run->checksums, head->options->checksums, err);
    if (rc < 0)
        return rc;
    weir_run_head_print(head, loader);
    weir_run_head_machine(&run->machine, loader);
    if (run->log)
        weir_run_head_log(run->log, head, loader, run->machine.load_average);
    weir_run_serve_head(run->serve, head, loader, run->machine.load_average);
    if (run->lines)
        weir_run_head_log(run->out, head, loader, run->machine.load_average);
    *run->ranks = (struct weir_run_ranks){.out = run->out, .log = run->log, .lines = run->lines};
    if (!head->options->loader.no_timing)
        weir_run_ranks_open(run->ranks, head->ranks, head->command->name, log_file(head->options));
    return weir_run_profile_open(&run->profile, profile, loader, err);
}

static int run_loader(const struct weir_run_head *head, const struct weir_run_profile_config *profile,
                      struct weir_run_config *run, struct weir_err *err)
{
    struct weir_loader_config config;
    struct weir_loader *loader;
    struct messages messages = {.command = head->command->name};
    weir_progress_begin(&messages.progress);
    to_config(head, &messages, &config);
    config.interrupted = is_opening_interrupted;
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
    weir_zone_begin(WEIR_STAGE_WORKER_LOOP); /* ended by weir_run_loop */
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
                                  .lines = o->log && !log_file(o),
                                  .out = stdout,
                                  .consumer = head->consumer,
                                  .step_ms = o->step_ms,
                                  .seconds = o->seconds,
                                  .step_spin = o->step_spin,
                                  .sync_steps = o->sync_steps};
    struct record record = {0};
    struct weir_run_ranks ranks = {0};
    struct weir_run_serve serve = {0};
    struct weir_run_page page = {0};
    double data_wait = -1;
    run.ranks = &ranks;
    run.serve = &serve;
    run.page = &page;
    run.data_wait = &data_wait;
    weir_machine_begin(&run.machine, 0, "");
    catch_signals();
    int rc = o->json ? open_record(&record, &run, &err) : 0;
    if (rc == 0)
        rc = weir_run_serve_open(&serve, o, head->ranks, head->command->name, &err);
    if (rc == 0)
        rc = run_loader(head, profile, &run, &err);
    weir_run_serve_close(&serve);
    weir_rank_session_close(&ranks.session);
    int log_rc = weir_run_page_detach(&page, &run.log) < 0 ? weir_err_set(&err, -EIO, "the log was not written") : 0;
    log_rc = weir_output_close(o->log, run.log, &err) < 0 ? -EIO : log_rc;
    int sums_rc = weir_output_close(o->checksums, run.checksums, &err);
    int page_rc = weir_run_page_close(&page, o->html, run.lang, &err);
    rc = rc < 0 ? rc : log_rc < 0 ? log_rc : sums_rc < 0 ? sums_rc : page_rc;
    if (close_record(&record, rc, &err) < 0)
        return weir_cli_fail(head->command, &err);
    return interrupted ? weir_exit_by_signal(interrupted) : judge_wait(head, data_wait);
}

int weir_run_session(const struct weir_run_session *session)
{
    struct run_options *o = session->options;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_run_profile_config profile;
    struct weir_ranks ranks;
    struct rank_files files;
    weir_terminal_set_wide(o->wide);
    if (weir_reading_check(o->loader.io, o->loader.direct, &err) == -EINVAL || to_format(o, &err) < 0 ||
        to_profile(o, &profile, &err) < 0 || check_max_wait(o, &err) < 0 ||
        weir_ranks_find(&ranks, o->loader.rank, o->loader.world_size, &err) < 0 ||
        weir_run_serve_check(o, &ranks, &err) < 0 || name_rank_files(session, &ranks, &files, &err) < 0) {
        weir_cli_fail(session->command, &err);
        return WEIR_EXIT_USAGE;
    }
    profile.command = session->command->name;
    const struct weir_run_head head = {session->command, session->values, o, session->data, &ranks, session->consumer};
    return run_checked(&head, &profile);
}
