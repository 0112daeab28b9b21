/* The list of changes and their predictions. Changes of numbers (workers, prefetch, cores, the step) are simulated. For
 * changes of an image's cost, the cost is measured for up to 0.2 s, and the run is simulated with it. */
#include "analyze/trials/whatif_priv.h"
#include "base/resources.h"
#include "base/text.h"
#include "origin/url.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/samples/defaults.h"
#include "weir/decoder.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static struct whatif_plan *plan_of(struct whatif *w, const struct weir_whatif_change *change)
{
    return &w->plans[change - w->found->changes];
}

/* Adds a change with this name. Its plan is a copy of the base run's, which the caller modifies. Returns NULL if there
 * is no room. */
static struct weir_whatif_change *begin(struct whatif *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static struct weir_whatif_change *begin(struct whatif *w, const char *format, ...)
{
    char name[WEIR_WHATIF_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    struct weir_whatif_change *change = weir_whatif_add_change(w->found, name);
    if (!change)
        return NULL;
    *plan_of(w, change) = w->base;
    plan_of(w, change)->can_check = true;
    return change;
}

static void set_limit(struct weir_whatif_change *change, enum weir_resource limit)
{
    snprintf(change->limit, sizeof change->limit, "%s", weir_resource_name(limit));
}

/* ---- numbers ---- */

static void simulate(struct whatif *w, struct weir_whatif_change *change, const struct weir_model_change *numbers)
{
    enum weir_resource limit = WEIR_RESOURCE_CORES;
    change->predicted = weir_model_predict(&w->model, numbers, &limit);
    snprintf(change->basis, sizeof change->basis, "simulated");
    if (change->predicted > 0)
        set_limit(change, limit);
}

/* Returns the value that --prefetch auto would choose for this number of workers. */
static int prefetch_with(const struct whatif *w, int workers)
{
    const struct weir_report_setup *setup = &w->now.setup;
    int frames = setup->batch_size * setup->images_per_sample, now = setup->slots - 1;
    if (w->config->run.loader.prefetch > 0 || frames <= 0)
        return now;
    int wanted = (WEIR_PREFETCH_FRAMES_PER_WORKER * workers + frames - 1) / frames;
    int before = (WEIR_PREFETCH_FRAMES_PER_WORKER * setup->workers + frames - 1) / frames;
    before = before > WEIR_PREFETCH_MIN ? before : WEIR_PREFETCH_MIN;
    if (before != now) /* the number of workers does not determine the prefetch */
        return now;
    return wanted > WEIR_PREFETCH_MIN ? wanted : WEIR_PREFETCH_MIN;
}

static void change_prefetch(struct whatif *w, int prefetch)
{
    struct weir_whatif_change *change = begin(w, "%d batch%s prefetched", prefetch, prefetch == 1 ? "" : "es");
    if (!change)
        return;
    struct weir_model_change numbers = WEIR_MODEL_AS_IT_IS;
    plan_of(w, change)->run.loader.prefetch = prefetch;
    snprintf(change->flag, sizeof change->flag, "--prefetch %d", prefetch);
    numbers.slots = prefetch + 1;
    simulate(w, change, &numbers);
}

/* Predicts more cores than the process can use. This cannot be checked. */
static void change_to_more_cores(struct whatif *w, int cores)
{
    struct weir_whatif_change *change = begin(w, "%d cores", cores);
    if (!change)
        return;
    struct weir_model_change numbers = WEIR_MODEL_AS_IT_IS;
    int workers = w->now.setup.workers;
    bool automatic = w->config->run.loader.num_workers == WEIR_OPT_AUTO && workers > 0;
    plan_of(w, change)->can_check = false;
    numbers.cores = w->model.now.cores * cores / w->found->cores;
    numbers.workers = automatic ? cores : workers;
    numbers.slots = prefetch_with(w, (int)numbers.workers) + 1;
    simulate(w, change, &numbers);
    snprintf(change->why, sizeof change->why, "not checked: this process can use only %d", w->found->cores);
}

static void change_step(struct whatif *w, double times)
{
    double step_ms = w->config->run.step_ms * times;
    if (w->config->run.step_ms <= 0)
        return;
    struct weir_whatif_change *change = times > 0 ? begin(w, "a step of %.4g ms", step_ms) : begin(w, "no step");
    if (!change)
        return;
    struct weir_model_change numbers = WEIR_MODEL_AS_IT_IS;
    plan_of(w, change)->run.step_ms = step_ms;
    plan_of(w, change)->run.step_spin &= times > 0;
    snprintf(change->flag, sizeof change->flag, "--step-ms %.4g", step_ms);
    /* The step's other costs (timers, releasing the batch) remain, unless there is no step. */
    double step_s = w->model.now.step_s + w->model.now.step_cpu_s, saved_s = w->config->run.step_ms / 1e3 * (1 - times);
    numbers.step_times = times > 0 && step_s > saved_s ? 1 - saved_s / step_s : times;
    simulate(w, change, &numbers);
}

/* ---- costs ---- */

/* Probes the plan without its step. Replaces an automatic number of workers with the base run's where possible. */
static int probe_plan(struct whatif *w, struct whatif_probe *probe, const struct whatif_plan *plan)
{
    struct whatif_plan short_run = *plan;
    short_run.run.step_ms = 0;
    short_run.run.step_spin = false;
    if (short_run.run.loader.num_workers == WEIR_OPT_AUTO && w->now.setup.device < 0 && short_run.cpus == 0)
        short_run.run.loader.num_workers = w->now.setup.workers;
    return whatif_probe(w, probe, &short_run, whatif_probe_seconds(w));
}

static void no_prediction(struct whatif *w, struct weir_whatif_change *change, const char *why)
{
    snprintf(change->why, sizeof change->why, "no prediction: %.400s", why);
    plan_of(w, change)->can_check = false;
}

/* Measures the base run without its step once more, so that a temporary slowdown of the machine affects both sides.
 * Returns the mean of the rates before and after. */
static double rate_now(struct whatif *w, int *rc)
{
    struct whatif_probe *again = calloc(1, sizeof *again);
    double before = whatif_probe_rate(w, &w->full, w->model.now.slots, NULL), after = 0;
    if (again && *rc == 0 && !w->slow_start)
        *rc = probe_plan(w, again, &w->base);
    if (again && again->known) {
        after = whatif_probe_rate(w, again, w->model.now.slots, NULL);
        w->full = *again;
    }
    free(again);
    return before > 0 && after > 0 ? (before + after) / 2 : fmax(before, after);
}

/* Measures an image's cost after the change, and predicts the rate from it. */
static int measure(struct whatif *w, struct weir_whatif_change *change, struct whatif_probe *keep)
{
    struct whatif_probe *probe = calloc(1, sizeof *probe);
    enum weir_resource limit = WEIR_RESOURCE_CORES;
    if (!probe)
        return -ENOMEM;
    int rc = probe_plan(w, probe, plan_of(w, change));
    double then = probe->known ? whatif_probe_rate(w, probe, 0, &limit) : 0;
    double before = rate_now(w, &rc);
    if (!probe->known || before <= 0) {
        no_prediction(w, change, *probe->why ? probe->why : w->full.why);
    } else {
        change->predicted = then / before;
        snprintf(change->basis, sizeof change->basis, "measured for %.2g s, %.3g ms of CPU time per image",
                 whatif_probe_seconds(w), 1e3 * probe->cpu_s);
        set_limit(change, limit);
    }
    if (keep)
        *keep = *probe;
    free(probe);
    return rc;
}

static int change_size(struct whatif *w, const char *name, int part)
{
    const struct weir_report_setup *setup = &w->now.setup;
    bool whole = setup->out_width == setup->width && setup->out_height == setup->height;
    if (!whole || setup->width / part < 16 || setup->height / part < 16)
        return 0;
    struct weir_whatif_change *change = begin(w, "%s", name);
    if (!change)
        return 0;
    struct weir_run_options *run = &plan_of(w, change)->run;
    run->loader.image_width = setup->width / part;
    run->loader.image_height = setup->height / part;
    snprintf(change->flag, sizeof change->flag, "--image-size %dx%d", run->loader.image_width,
             run->loader.image_height);
    return measure(w, change, NULL);
}

static int change_crop(struct whatif *w)
{
    static char crop[64];
    const struct weir_report_setup *setup = &w->now.setup;
    if (w->config->run.loader.crop || w->config->run.loader.image_width > 0 || setup->width < 64 || setup->height < 64)
        return 0;
    struct weir_whatif_change *change = begin(w, "cropped to the middle half");
    if (!change)
        return 0;
    snprintf(crop, sizeof crop, "%dx%d+%d+%d", setup->width / 2, setup->height / 2, setup->width / 4,
             setup->height / 4);
    plan_of(w, change)->run.loader.crop = crop;
    snprintf(change->flag, sizeof change->flag, "--crop %s", crop);
    return measure(w, change, NULL);
}

static int change_dtype(struct whatif *w)
{
    if (!w->now.setup.normalised)
        return 0;
    struct weir_whatif_change *change = begin(w, "images as bytes, not floats");
    if (!change)
        return 0;
    struct weir_run_options *run = &plan_of(w, change)->run;
    run->loader.format.dtype = WEIR_DTYPE_U8;
    run->mean = run->std = NULL;
    snprintf(change->flag, sizeof change->flag, "--dtype u8");
    return measure(w, change, NULL);
}

static int change_warm(struct whatif *w)
{
    struct weir_whatif_change *change = w->config->run.loader.cold ? begin(w, "page cache warm") : NULL;
    if (!change)
        return 0;
    plan_of(w, change)->run.loader.cold = false;
    return measure(w, change, NULL);
}

/* Predicts epochs without requests to the server. Not checked, because it would store the dataset on this machine. */
static void change_to_cached(struct whatif *w)
{
    struct weir_model_change numbers = WEIR_MODEL_AS_IT_IS;
    struct weir_whatif_change *change =
        weir_url_is(w->base.data) && !w->config->run.loader.cache ? begin(w, "a cache on disk, filled") : NULL;
    if (!change)
        return;
    plan_of(w, change)->can_check = false;
    numbers.asleep_times = 0;
    snprintf(change->flag, sizeof change->flag, "--cache DIR");
    simulate(w, change, &numbers);
    snprintf(change->why, sizeof change->why, "not checked: it would store the files on this machine");
}

/* Varies the requests to a server that are in flight. */
static int change_in_flight(struct whatif *w)
{
    enum { FIRST = 64, TIMES = 4, MOST = 1024 };
    int now = w->config->run.loader.io_depth > 0 ? w->config->run.loader.io_depth : FIRST, rc = 0;
    const int depths[] = {TIMES * now < MOST ? TIMES * now : MOST, now / TIMES};
    for (int i = 0; i < 2 && rc == 0 && weir_url_is(w->base.data); i++) {
        struct weir_whatif_change *change =
            depths[i] > 0 && depths[i] != now ? begin(w, "%d requests in flight", depths[i]) : NULL;
        if (!change)
            continue;
        plan_of(w, change)->run.loader.io_depth = depths[i];
        snprintf(change->flag, sizeof change->flag, "--io-depth %d", depths[i]);
        rc = measure(w, change, NULL);
    }
    return rc;
}

/* ---- workers and cores: how they share the machine ---- */

/* Measures the change together with the step. This is more accurate if there are more threads than cores, because the
 * kernel then decides how soon the consumer gets a core. Sets *rc as measure does. Returns false if there is no result,
 * for example because a run is too short. */
static bool measure_with_step(struct whatif *w, struct weir_whatif_change *change, int *rc)
{
    struct whatif_probe *probe = calloc(2, sizeof *probe);
    *rc = probe ? 0 : -ENOMEM;
    if (*rc == 0)
        *rc = whatif_probe(w, &probe[0], plan_of(w, change), whatif_probe_seconds(w));
    if (*rc == 0)
        *rc = whatif_probe(w, &probe[1], &w->base, whatif_probe_seconds(w));
    bool known = *rc == 0 && probe[0].known && probe[1].known && probe[1].demands.rate > 0;
    if (known) {
        change->predicted = probe[0].demands.rate / probe[1].demands.rate;
        snprintf(change->basis, sizeof change->basis, "measured for %.2g s, with the step", whatif_probe_seconds(w));
        set_limit(change, probe[0].demands.least);
    }
    free(probe);
    return known;
}

static int change_workers(struct whatif *w, int workers)
{
    struct weir_whatif_change *change = begin(w, "%d worker%s", workers, workers == 1 ? "" : "s");
    if (!change)
        return 0;
    plan_of(w, change)->run.loader.num_workers = workers;
    snprintf(change->flag, sizeof change->flag, "--num-workers %d", workers);
    int rc = 0;
    bool crowded = workers > w->found->cores && w->config->run.step_ms > 0;
    if (crowded && measure_with_step(w, change, &rc))
        return 0;
    return rc < 0 ? rc : measure(w, change, NULL);
}

static int change_to_fewer_cores(struct whatif *w, int cores)
{
    char list[sizeof((struct weir_whatif_change *)NULL)->flag - 32];
    struct weir_whatif_change *change = begin(w, "%d core%s", cores, cores == 1 ? "" : "s");
    if (!change)
        return 0;
    plan_of(w, change)->cpus = cores;
    whatif_cpu_list(cores, list, sizeof list);
    snprintf(change->flag, sizeof change->flag, "taskset -c %s weir run ...", list);
    return measure(w, change, NULL);
}

static int change_threads(struct whatif *w)
{
    int workers = w->now.setup.workers, cores = w->found->cores;
    int rc = w->slow_start ? 0 : change_workers(w, workers > 0 ? 2 * workers : cores);
    if (rc == 0 && workers > 1)
        rc = change_workers(w, workers / 2);
    if (rc == 0 && workers > 3 && !w->slow_start)
        rc = change_workers(w, 1);
    if (rc == 0 && cores > 1 && !w->slow_start)
        rc = change_to_fewer_cores(w, cores / 2);
    return rc;
}

/* ---- the decode cache ---- */

bool whatif_cache_plan(const struct whatif *w, double part, struct whatif_plan *plan, double *bytes, char *why,
                       size_t size)
{
    static const double OF_FREE = 0.7, TABLES = 1.02, EPOCH_S = 3, LEAST = 512 << 20;
    const struct weir_report_setup *setup = &w->now.setup;
    double all = (double)setup->frames_bytes, free_bytes = OF_FREE * (double)setup->memory_free_bytes;
    double batch = w->frame_bytes * setup->batch_size * setup->images_per_sample;
    *plan = w->base;
    *bytes = part * all;
    if (!setup->known || setup->frames_bytes == 0 || batch <= 0) {
        snprintf(why, size, "the size of the frames is unknown");
        return false;
    }
    if (*bytes > free_bytes) {
        snprintf(why, size, "%s of decoded frames do not fit into the free memory (%s)", weir_size(*bytes).text,
                 weir_size(free_bytes / OF_FREE).text);
        return false;
    }
    plan->run.loader.decode_cache_bytes = (uint64_t)*bytes;
    double epoch_s = (double)w->config->source.frames * setup->images_per_sample / w->now.demands.rate;
    if (epoch_s <= EPOCH_S)
        return true;
    if (part < 1) {
        snprintf(why, size, "not checked: an epoch takes %.0f s, and the cache is full only after the first one",
                 epoch_s);
        plan->can_check = false;
        return true;
    }
    /* repeat a few batches, which are soon cached but larger than the CPU's caches */
    double enough = fmin(fmax(LEAST, w->now.demands.rate * w->frame_bytes), free_bytes);
    int batches = (int)fmin(fmax(enough / 2 / batch, setup->slots + 2), 1e6);
    plan->run.loader.max_batches = batches;
    plan->run.loader.no_shuffle = true;
    plan->run.loader.decode_cache_bytes =
        (uint64_t)fmin(2.0 * batches * batch * TABLES + 16.0 * (double)w->config->source.frames + (1 << 20), *bytes);
    return true;
}

/* Predicts a cache that holds a part of the frames, from the costs of cached and uncached frames. */
static void mix(struct whatif *w, struct weir_whatif_change *change, const struct whatif_probe *cached, double part)
{
    const struct weir_simulation *from = &w->full.model.now, *to = &cached->model.now;
    struct weir_model_change costs = WEIR_MODEL_AS_IT_IS;
    enum weir_resource limit = WEIR_RESOURCE_CORES;
    double before = whatif_probe_rate(w, &w->full, w->model.now.slots, NULL);
    costs.cpu_times = from->cpu_s > 0 ? 1 - part + part * to->cpu_s / from->cpu_s : 1;
    costs.asleep_times = from->asleep_s > 0 ? 1 - part + part * fmin(to->asleep_s / from->asleep_s, 1) : 1;
    costs.library_times = 1 - part;
    struct whatif_probe mixed = w->full;
    mixed.model.now.cpu_s *= costs.cpu_times;
    mixed.model.now.asleep_s *= costs.asleep_times;
    mixed.model.now.library_s *= costs.library_times;
    if (before <= 0)
        return;
    change->predicted = whatif_probe_rate(w, &mixed, w->model.now.slots, &limit) / before;
    snprintf(change->basis, sizeof change->basis, "%.0f %% of the frames at the cost in a full cache", 100 * part);
    set_limit(change, limit);
}

static int change_cache(struct whatif *w)
{
    char bytes_flag[24], why[WEIR_WHATIF_WHY] = "";
    struct whatif_probe *cached = calloc(1, sizeof *cached);
    const double parts[] = {1, 0.5};
    int rc = cached ? 0 : -ENOMEM;
    for (int i = 0; i < 2 && rc == 0; i++) {
        struct whatif_plan plan;
        double bytes = 0;
        bool can = whatif_cache_plan(w, parts[i], &plan, &bytes, why, sizeof why);
        char size[24];
        weir_cache_bytes_text(size, bytes, false);
        struct weir_whatif_change *change = begin(w, "decode cache, %s frames, %s", i ? "half of the" : "all", size);
        if (!change)
            break;
        *plan_of(w, change) = plan;
        plan_of(w, change)->can_check = can && !*why;
        snprintf(change->why, sizeof change->why, "%s", why);
        weir_cache_bytes_text(bytes_flag, bytes, true);
        snprintf(change->flag, sizeof change->flag, "--decode-cache %s", bytes_flag);
        if (!can)
            no_prediction(w, change, why);
        else if (i == 0)
            rc = measure(w, change, cached);
        else if (cached->known)
            mix(w, change, cached, parts[i]);
        else
            no_prediction(w, change, "a full cache could not be measured");
        *why = '\0';
    }
    free(cached);
    return rc;
}

/* ---- formats ---- */

static int change_format(struct whatif *w, const char *format, const char *suffix, const char *codec)
{
    char why[WEIR_WHATIF_WHY] = "";
    const char *path = NULL;
    struct weir_whatif_change *change = begin(w, "stored as %s:%s", format, codec);
    if (!change)
        return 0;
    struct whatif_plan *plan = plan_of(w, change);
    bool keep = strcmp(codec, w->config->source.codec) == 0;
    snprintf(change->flag, sizeof change->flag, "weir convert SRC DST --to %s%s%s", format, keep ? "" : " --codec ",
             keep ? "" : codec);
    struct weir_copy_spec spec = {0};
    snprintf(spec.format, sizeof spec.format, "%s", format);
    snprintf(spec.codec, sizeof spec.codec, "%s", codec);
    int rc = whatif_copy(w, &spec, suffix, &path, why, sizeof why);
    if (rc < 0)
        return rc;
    if (!path) {
        no_prediction(w, change, why);
        return 0;
    }
    plan->data = path;
    struct weir_loader_config *loader = &plan->run.loader; /* the copy contains only the selected data */
    loader->qpos_keys = loader->action_keys = loader->image_keys = loader->split = loader->index = NULL;
    loader->allow_ragged = loader->allow_external = false;
    return measure(w, change, NULL);
}

static int change_formats(struct whatif *w)
{
    bool encoded = w->now.setup.encoded;
    const char *other = weir_frame_kind_name(encoded ? WEIR_FRAME_RAW : WEIR_FRAME_JPEG);
    const char *const codecs[] = {w->config->source.codec, other};
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0 && !w->config->run.loader.cold; i++) {
        const char *suffix, *format = w->config->fastest_format(codecs[i], w->config->source.layout, &suffix);
        rc = format ? change_format(w, format, suffix, codecs[i]) : 0;
    }
    return rc;
}

/* ---- a GPU ---- */

static int change_decoder(struct whatif *w, const char *decoder)
{
    struct weir_whatif_change *change = begin(w, "JPEGs decoded by %s", decoder);
    if (!change)
        return 0;
    plan_of(w, change)->run.loader.decoder = decoder;
    snprintf(change->flag, sizeof change->flag, "--decoder %s", decoder);
    return measure(w, change, NULL);
}

static int change_to_gpu(struct whatif *w)
{
    int gpus = 0;
    if (weir_device_count(&gpus, NULL) < 0 || gpus <= 0)
        return 0;
    struct weir_whatif_change *change = begin(w, "batches on a GPU");
    if (!change)
        return 0;
    struct weir_run_options *run = &plan_of(w, change)->run;
    run->loader.device = "cuda";
    run->step_spin = false;
    run->loader.decode_cache_bytes = 0;
    snprintf(change->flag, sizeof change->flag, "--device cuda");
    return measure(w, change, NULL);
}

static int change_gpu(struct whatif *w)
{
    const enum weir_decode_where wheres[] = {WEIR_DECODE_ON_CPU, WEIR_DECODE_ON_GPU, WEIR_DECODE_ON_BOTH};
    int rc = 0;
    if (w->now.setup.device < 0)
        return change_to_gpu(w);
    for (size_t i = 0; i < sizeof wheres / sizeof wheres[0] && rc == 0 && w->now.setup.encoded; i++)
        if (weir_decoder_where(w->now.setup.decoder) != wheres[i])
            rc = change_decoder(w, weir_decoder_at(wheres[i]));
    return rc;
}

/* ---- all changes ---- */

static void change_numbers(struct whatif *w)
{
    int ahead = w->now.setup.slots - 1;
    if (!w->slow_start)
        change_prefetch(w, 4 * ahead);
    if (ahead > 3)
        change_prefetch(w, ahead / 2);
    if (ahead > 1 && !w->slow_start)
        change_prefetch(w, 1);
    change_to_more_cores(w, 2 * w->found->cores);
    change_step(w, 0.5);
    if (!w->slow_start)
        change_step(w, 0);
    change_to_cached(w);
}

static int change_frames(struct whatif *w)
{
    int rc = change_size(w, "half-size frames", 2);
    if (rc == 0 && !w->slow_start)
        rc = change_size(w, "quarter-size frames", 4);
    if (rc == 0 && !w->slow_start)
        rc = change_crop(w);
    return rc == 0 ? change_dtype(w) : rc;
}

int whatif_predict(struct whatif *w)
{
    static int (*const parts[])(struct whatif * w) = {change_threads, change_in_flight, change_warm, change_frames,
                                                      change_cache,   change_formats,   change_gpu};
    int rc = 0;
    whatif_progress(w, "measuring the cost of changes");
    change_numbers(w);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && rc == 0; i++)
        rc = parts[i](w);
    return rc;
}
