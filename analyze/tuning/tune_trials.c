#include "analyze/tuning/tune_trials.h"

#include "analyze/trials/trial.h"
#include "base/ranks.h"
#include "base/resources.h"
#include "io/io.h"
#include "origin/url.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/loader_options.h"
#include "weir/decoder.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

enum { BATCHES = 10, PREFETCH_MAX = 16, PATIENCE_S = 120 };
static const double SECONDS_MAX = 10;       /* max duration of a trial that is lengthened because it has few batches */
static const double WORKER_BYTES = 4 << 20; /* stacks and buffers of a worker, excluding its frame */

/* ---- settings as options ---- */

static void put_int(weir_tune_put *put, void *user, const char *name, int value)
{
    char text[24];
    snprintf(text, sizeof text, "%d", value);
    put(user, name, text);
}

void weir_tune_setting_options(const struct weir_tune_space *space, const struct weir_tune_setting *setting,
                               weir_tune_put *put, void *user)
{
    char cache[WEIR_OPTION_TEXT];
    put_int(put, user, "num-workers", setting->workers);
    if (setting->prefetch > 0)
        put_int(put, user, "prefetch", setting->prefetch);
    if (setting->engine >= 0)
        put(user, "io", space->engines[setting->engine]);
    if (setting->depth > 0)
        put_int(put, user, "io-depth", setting->depth);
    if (setting->decoder >= 0)
        put(user, "decoder", space->decoders[setting->decoder]);
    snprintf(cache, sizeof cache, "%.0fM", ceil(setting->cache_bytes / (1 << 20)));
    if (setting->cache_bytes > 0)
        put(user, "decode-cache", cache);
}

static void add_word(void *user, const char *name, const char *value)
{
    weir_words_add_option(user, name, value);
}

/* ---- one trial ---- */

static int number_of(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return i;
    return WEIR_TUNE_AUTO;
}

/* Fills in the figures that are not the trial's own. */
static void fill(struct weir_tune_figures *figures, const struct weir_tune_space *space,
                 const struct weir_loader_report *report)
{
    const struct weir_report_setup *setup = &report->setup;
    double frame = weir_setup_image_bytes(setup);
    weir_demands_make(&figures->demands, report);
    figures->engine = number_of(space->engines, space->n_engines, figures->trial.used.io);
    figures->decoder = number_of(space->decoders, space->n_decoders, figures->trial.used.decoder);
    figures->slot_bytes = frame * setup->batch_size * setup->images_per_sample;
    figures->worker_bytes = WORKER_BYTES + 3.0 * setup->width * setup->height;
    figures->frames_bytes = (double)setup->frames_bytes;
    figures->epoch_images = frame > 0 ? (double)setup->frames_bytes / frame : 0;
}

/* Lengthens later trials if the first one had too few batches for a reliable rate. */
static void lengthen(struct weir_tune_trials *trials, const struct weir_loader_report *report)
{
    double batches = (double)(report->steps.train_batches + report->steps.val_batches);
    char line[96];
    if (trials->tune.trials > 0 || batches >= BATCHES || batches <= 0)
        return;
    trials->seconds =
        fmin(fmax(trials->seconds, report->wall_s) * BATCHES / batches, fmax(SECONDS_MAX, trials->seconds));
    snprintf(line, sizeof line, "trials take %.1f s, because the first one had only %.0f batches", trials->seconds,
             batches);
    if (trials->config->note)
        trials->config->note(trials->config->user, line);
}

static int measure(void *user, const struct weir_tune_setting *setting, struct weir_tune_figures *figures,
                   struct weir_err *err)
{
    struct weir_tune_trials *trials = user;
    const struct weir_tune_config *c = trials->config;
    const char *const begin[] = {"weir", "run", c->data, NULL};
    struct weir_words words = {0};
    if (weir_clock_monotonic_ns() >= c->end_ns)
        return -ETIME;
    weir_words_add_all(&words, begin);
    weir_words_add_all(&words, (const char *const *)c->options->argv);
    weir_tune_setting_options(&trials->tune.space, setting, add_word, &words);
    weir_words_add_measured(&words, trials->seconds);
    if (words.failed)
        return weir_err_set(err, -ENOMEM, "out of memory");
    const struct weir_child_config command = {.program = c->program,
                                              .argv = words.argv,
                                              .seconds = PATIENCE_S + 20 * trials->seconds,
                                              .interrupted = c->interrupted};
    int rc = weir_trial_run(&figures->trial, &trials->record, &command, err);
    if (rc == 0) {
        fill(figures, &trials->tune.space, &trials->record.report);
        lengthen(trials, &trials->record.report);
    }
    if (rc != -EINTR && c->trial)
        c->trial(c->user, setting, &figures->trial, rc < 0 ? err->text : NULL);
    weir_log_record_clear(&trials->record);
    weir_words_free(&words);
    return rc;
}

static void say(void *user, const char *line)
{
    const struct weir_tune_trials *trials = user;
    if (trials->config->step)
        trials->config->step(trials->config->user, line);
}

/* ---- the search space ---- */

/* Lists the engines that the build contains and the kernel allows. */
static void list_engines(struct weir_tune_space *space, const char *path, bool direct)
{
    const char *name, *summary, *why_not;
    for (int i = 0; weir_io_row(i, &name, &summary, &why_not) && space->n_engines < WEIR_TUNE_NAMES; i++) {
        if (weir_io_ready(name, NULL) < 0 || weir_io_from_memory(name) ||
            weir_io_is_remote(name) != weir_url_is(path) || (direct && weir_io_check_direct(name, NULL) < 0))
            continue;
        space->maps[space->n_engines] = weir_io_maps(name);
        space->deep[space->n_engines] = weir_io_has_depth(name);
        space->remote[space->n_engines] = weir_io_is_remote(name);
        space->engines[space->n_engines++] = name;
    }
}

/* Lists the decoders for batches on a GPU. For batches on the CPU the list stays empty, because there is no choice. */
static void list_decoders(struct weir_tune_space *space, enum weir_on_warning on_warning)
{
    static const enum weir_decode_where places[] = {WEIR_DECODE_ON_CPU, WEIR_DECODE_ON_GPU, WEIR_DECODE_ON_BOTH};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *name = weir_decoder_at(places[i]);
        if (weir_loader_decoder_check(name, true, on_warning, NULL) == 0)
            space->decoders[space->n_decoders++] = name;
    }
}

static int usable_cores(const struct weir_loader_config *loader, struct weir_err *err)
{
    struct weir_ranks ranks;
    struct weir_cores cores;
    int rc = weir_ranks_find(&ranks, loader->rank, loader->world_size, err);
    weir_cores_read(&cores, "");
    return rc < 0 ? rc : weir_cores_part(&cores, ranks.local_size, ranks.local_cores);
}

int weir_tune_trials_open(struct weir_tune_trials *trials, const struct weir_tune_config *c, struct weir_err *err)
{
    struct weir_tune_space *space = &trials->tune.space;
    *trials = (struct weir_tune_trials){.config = c, .seconds = c->min_seconds};
    int device, rc = weir_device_parse(c->loader->device, &device, err);
    if (rc < 0) {
        weir_err_prefix(err, "--device");
        return rc;
    }
    trials->cores = usable_cores(c->loader, err);
    if (trials->cores < 0)
        return trials->cores;
    int most = MIN(trials->cores + (trials->cores + 1) / 2, 512);
    space->cores = c->max_cpu > 0 ? MIN(trials->cores, c->max_cpu) : trials->cores;
    space->workers_max = c->max_cpu > 0 ? MIN(most, c->max_cpu) : most;
    space->prefetch_max = PREFETCH_MAX;
    space->memory_max = (double)c->max_memory;
    space->cpu_max = c->max_cpu;
    space->cache_max =
        c->max_cache == WEIR_OPT_BYTES_AUTO ? 0.5 * (double)weir_memory_available_bytes() : (double)c->max_cache;
    list_engines(space, c->data, c->loader->direct);
    if (device >= 0)
        list_decoders(space, c->loader->on_warning);
    trials->tune.measure = measure;
    trials->tune.say = say;
    trials->tune.user = trials;
    return 0;
}

void weir_tune_trials_close(struct weir_tune_trials *trials)
{
    weir_tune_free(&trials->tune);
}
