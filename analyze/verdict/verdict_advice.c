/* What would help. Predictions are ratios of the least bounds then and now: a change that makes a resource cheaper
 * gives no more than the next resource allows. */
#include "analyze/verdict/verdict_priv.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double WORTH = 1.05; /* a ratio below is not worth a line */

void weir_cache_bytes_text(char text[24], double bytes)
{
    double mib = ceil(bytes / (1 << 20));
    if (mib >= 10240) /* less than a tenth is added */
        snprintf(text, 24, "%.0fG", ceil(mib / 1024));
    else
        snprintf(text, 24, "%.0fM", fmax(mib, 1));
}

static struct weir_advice *add(struct weir_verdict *verdict, enum weir_advice_kind kind)
{
    bool is_room = verdict->n_advices < WEIR_VERDICT_ADVICES;
    for (int i = 0; i < verdict->n_advices; i++)
        is_room &= verdict->advices[i].kind != kind;
    struct weir_advice *advice = is_room ? &verdict->advices[verdict->n_advices++] : &verdict->no_advice_;
    *advice = (struct weir_advice){.kind = kind};
    return advice;
}

/* NULL when the change is not worth it. */
static struct weir_advice *add_predicted(struct weir_verdict *verdict, enum weir_advice_kind kind,
                                         const struct weir_change *change)
{
    enum weir_resource limit = WEIR_RESOURCE_CORES;
    double ratio = weir_demands_predict(&verdict->demands, change, &limit);
    /* Two resources that are nearly balanced stay below the bounds of both. */
    double simulated = weir_model_predict_demands(&verdict->model, &verdict->demands, change, NULL);
    if (simulated > 0)
        ratio = fmin(ratio, simulated);
    if (ratio < WORTH)
        return NULL;
    struct weir_advice *advice = add(verdict, kind);
    advice->ratio = ratio;
    advice->limit = limit;
    return advice;
}

/* Of an image's CPU time, that of these parts. */
static double cpu_part(const struct weir_demands *d, unsigned parts)
{
    double sum = 0;
    for (int part = 0; part < WEIR_CPU_PARTS; part++)
        if (parts & (1u << part))
            sum += fmax(d->cpu[part], 0);
    return sum;
}

/* The change when images cost so much less CPU time, and a worker sleeps so much less for them. */
static struct weir_change cheaper(const struct weir_demands *d, double cpu_saved_s, double asleep_saved_s)
{
    struct weir_change change = WEIR_NO_CHANGE;
    change.cpu_s = fmax(d->each_s[WEIR_RESOURCE_CORES] - cpu_saved_s, 1e-9);
    double load_s = fmax(d->each_s[WEIR_RESOURCE_WORKERS] - d->each_s[WEIR_RESOURCE_CONSUMER], 0);
    double stretch = d->workers == 0 && d->load_s > 0 ? fmax(load_s / d->load_s, 1) : 1; /* by waits for a core */
    change.worker_s = fmax(d->each_s[WEIR_RESOURCE_WORKERS] - stretch * (cpu_saved_s + asleep_saved_s), 1e-9);
    return change;
}

/* Seconds of an image that the workers were on a core, and asleep or in front of the HDF5 helper process. */
static double worker_cpu_s(const struct weir_demands *d)
{
    double on_and_off = d->of.cpu + d->of.blocked;
    if (d->workers > 0)
        return d->rate > 0 ? d->of.cpu * d->workers / d->rate : d->each_s[WEIR_RESOURCE_CORES];
    return on_and_off > 0 ? d->load_s * d->of.cpu / on_and_off : d->each_s[WEIR_RESOURCE_CORES];
}

static double asleep_s(const struct weir_demands *d)
{
    if (d->workers > 0)
        return d->rate > 0 ? (d->of.blocked + d->of.library) * d->workers / d->rate : 0;
    return d->load_s - worker_cpu_s(d) > 0 ? d->load_s - worker_cpu_s(d) : 0;
}

/* ---- advices ---- */

/* Frames out of memory cost a copy. What does not fit is loaded as now. */
static void advise_cache(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    static const double OF_FREE = 0.8;
    static const unsigned saved =
        1u << WEIR_CPU_DECODE | 1u << WEIR_CPU_INFLATE | 1u << WEIR_CPU_CONVERT | 1u << WEIR_CPU_READ;
    const struct weir_demands *d = &verdict->demands;
    const struct weir_report_setup *setup = &report->setup;
    double all = (double)setup->frames_bytes, free_bytes = OF_FREE * (double)setup->memory_free_bytes;
    if (!setup->known || all <= 0 || free_bytes <= 0 || setup->copy_bytes_per_s <= 0)
        return;
    if ((double)report->cache.budget_bytes >= all || report->cache.hits > report->cache.misses)
        return;
    double part = fmin(free_bytes / all, 1);
    double copy_s = weir_setup_image_bytes(setup) / setup->copy_bytes_per_s;
    double looked_up = (double)report->cache.hits + (double)report->cache.misses;
    double missed = looked_up > 0 ? (double)report->cache.misses / looked_up : 1; /* hits are copied already */
    double cpu_s = part * (worker_cpu_s(d) * cpu_part(d, saved) - missed * copy_s);
    struct weir_change change = cheaper(d, cpu_s, part * asleep_s(d));
    change.library_s = (1 - part) * d->each_s[WEIR_RESOURCE_LIBRARY];
    struct weir_advice *advice = add_predicted(verdict, WEIR_ADVICE_CACHE, &change);
    if (!advice)
        return;
    char bytes[24];
    advice->figure = fmin(all, free_bytes);
    advice->part = part;
    weir_cache_bytes_text(bytes, advice->figure);
    snprintf(advice->flag, sizeof advice->flag, "--decode-cache %s", bytes);
}

static void advise_half_size(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_demands *d = &verdict->demands;
    const struct weir_report_setup *setup = &report->setup;
    bool whole = setup->out_width == setup->width && setup->out_height == setup->height && !setup->sizes_differ;
    bool jpeg = setup->encoded && (*setup->codec == '\0' || strcmp(setup->codec, "jpeg") == 0);
    if (!setup->known || !whole || !jpeg || setup->width < 64 || setup->height < 64 || d->cpu[0] < 0)
        return;
    double decode_s = worker_cpu_s(d) * d->cpu[WEIR_CPU_DECODE], convert_s = worker_cpu_s(d) * d->cpu[WEIR_CPU_CONVERT];
    struct weir_change change = cheaper(d, (1 - WEIR_VERDICT_HALF_SIZE) * decode_s + 0.75 * convert_s, 0);
    struct weir_advice *advice = add_predicted(verdict, WEIR_ADVICE_HALF_SIZE, &change);
    if (advice)
        snprintf(advice->flag, sizeof advice->flag, "--image-size %dx%d", setup->width / 2, setup->height / 2);
}

/* How much one more gives; whether it can be had is not for us to say. Where something takes cores away, that is the
 * advice. */
static void advise_more_cores(struct weir_verdict *verdict)
{
    const struct weir_demands *d = &verdict->demands;
    if (weir_verdict_has(verdict, WEIR_CAUSE_QUOTA) || weir_verdict_has(verdict, WEIR_CAUSE_HOST) ||
        weir_verdict_has(verdict, WEIR_CAUSE_NEIGHBOURS))
        return;
    struct weir_change change = WEIR_NO_CHANGE;
    change.cores = d->reachable + 1;
    change.workers = d->workers > 0 ? d->workers + 1 : 0;
    struct weir_advice *advice = add_predicted(verdict, WEIR_ADVICE_MORE_CORES, &change);
    if (advice && d->each_s[WEIR_RESOURCE_CORES] > 0)
        advice->figure = 1 / d->each_s[WEIR_RESOURCE_CORES];
}

/* As many as the cores have time for, each sleeping as now. */
static void advise_more_workers(struct weir_verdict *verdict)
{
    const struct weir_demands *d = &verdict->demands;
    double at_work = d->workers > 0 ? 1 : d->of.cpu + d->of.blocked;
    double busy = fmax(at_work > 0 ? d->of.cpu / at_work : 1, 0.02), n = d->usable / busy;
    n = fmin(fmax(round(n), d->workers + 1), 4 * fmax(d->workers, d->usable));
    struct weir_change change = WEIR_NO_CHANGE;
    change.workers = n;
    if (d->workers == 0) { /* beside the step, not in turns with it */
        change.worker_s = d->load_s;
    }
    struct weir_advice *advice = add_predicted(verdict, WEIR_ADVICE_MORE_WORKERS, &change);
    if (!advice)
        return;
    advice->figure = n;
    advice->if_latency = weir_verdict_has(verdict, WEIR_CAUSE_STORAGE);
    snprintf(advice->flag, sizeof advice->flag, "--num-workers %.0f", n);
}

static void advise_fewer_workers(struct weir_verdict *verdict)
{
    struct weir_advice *advice = add(verdict, WEIR_ADVICE_FEWER_WORKERS);
    advice->ratio = 1;
    advice->figure = fmax(floor(verdict->demands.usable + 0.25), 1);
    snprintf(advice->flag, sizeof advice->flag, "--num-workers %.0f", advice->figure);
}

/* Nobody waits for anybody then, and the least bound holds the run. */
static void advise_more_batches(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_demands *d = &verdict->demands;
    int prefetch = report->queue_slots > 1 ? report->queue_slots - 1 : 1;
    struct weir_advice *advice = add(verdict, WEIR_ADVICE_MORE_BATCHES);
    advice->ratio = d->rate > 0 ? d->bound_rate / d->rate : 0;
    advice->limit = d->least;
    if (advice->ratio < WORTH)
        advice->ratio = 0;
    snprintf(advice->flag, sizeof advice->flag, "--prefetch %d", 4 * prefetch > 16 ? 4 * prefetch : 16);
}

static void advise_read_ahead(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    if (report->setup.reads_ahead)
        return;
    enum { DEPTH = 64 }; /* reads in flight in place of a worker's one */
    const struct weir_demands *d = &verdict->demands;
    double hidden = 1 - fmin(fmax(d->workers, 1) / DEPTH, 1);
    struct weir_change change = cheaper(d, 0, hidden * asleep_s(d));
    struct weir_advice *advice = add_predicted(verdict, WEIR_ADVICE_READ_AHEAD, &change);
    if (!advice)
        return;
    advice->if_latency = weir_verdict_has(verdict, WEIR_CAUSE_STORAGE);
    snprintf(advice->flag, sizeof advice->flag, "--io uring");
}

/* The run has trained a policy, by weir train, which takes floats and runs for epochs. */
static bool is_training(const struct weir_loader_report *report)
{
    return weir_demands_row(report, "21_backward", WEIR_SIDE_CONSUMER) != NULL;
}

static void advise_u8(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_demands *d = &verdict->demands;
    struct weir_change change = cheaper(d, worker_cpu_s(d) * fmax(d->cpu[WEIR_CPU_CONVERT], 0), 0);
    bool normalised = report->setup.normalised && !is_training(report);
    struct weir_advice *advice = normalised ? add_predicted(verdict, WEIR_ADVICE_U8, &change) : NULL;
    if (advice)
        snprintf(advice->flag, sizeof advice->flag, "--dtype u8");
}

static void advise_cores(struct weir_verdict *verdict, enum weir_advice_kind kind)
{
    struct weir_change change = WEIR_NO_CHANGE;
    change.cores = verdict->demands.usable;
    change.worker_s = verdict->demands.each_s[WEIR_RESOURCE_WORKERS];
    struct weir_advice *advice = add_predicted(verdict, kind, &change);
    if (advice)
        advice->figure = verdict->demands.usable;
}

/* Twice the quota, or all cores that the affinity has. */
static void advise_quota(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_demands *d = &verdict->demands;
    struct weir_change change = WEIR_NO_CHANGE;
    change.cores = fmin(fmax(2 * d->usable, 1), report->prof.machine.online > 0 ? report->prof.machine.online : 1);
    struct weir_advice *advice = add_predicted(verdict, WEIR_ADVICE_QUOTA, &change);
    if (advice)
        advice->figure = change.cores;
}

static void advise_library(struct weir_verdict *verdict)
{
    struct weir_change change = cheaper(&verdict->demands, 0, asleep_s(&verdict->demands));
    change.library_s = 0;
    struct weir_advice *advice = add_predicted(verdict, WEIR_ADVICE_CONVERT, &change);
    if (advice)
        snprintf(advice->flag, sizeof advice->flag, "weir convert");
}

static void advise_warm(struct weir_verdict *verdict, const struct weir_found *cold)
{
    struct weir_change change = cheaper(&verdict->demands, 0, asleep_s(&verdict->demands));
    if (cold->b > 0 && cold->a > 0) {
        struct weir_advice *advice = add(verdict, WEIR_ADVICE_WARM);
        advice->ratio = cold->b / cold->a;
        advice->measured = true;
        advice->figure = cold->b;
        return;
    }
    add_predicted(verdict, WEIR_ADVICE_WARM, &change);
}

/* ---- which ---- */

static void advise_consumer(struct weir_verdict *verdict, const struct weir_found *found)
{
    const struct weir_demands *d = &verdict->demands;
    if (found->consumer != WEIR_CONSUMER_COMPUTING && !found->traced) {
        snprintf(add(verdict, WEIR_ADVICE_TRACE)->flag, 64, "--profile DIR");
        return;
    }
    struct weir_advice *advice = add(verdict, WEIR_ADVICE_FASTER_STEP);
    double next = INFINITY;
    for (int i = 0; i < WEIR_RESOURCES; i++)
        if (i != WEIR_RESOURCE_CONSUMER && d->bound[i] > 0 && d->bound[i] < next) {
            next = d->bound[i];
            advice->limit = (enum weir_resource)i;
        }
    advice->ratio = isfinite(next) && d->rate > 0 ? next / d->rate : 0;
}

static void advise_compute(struct weir_verdict *verdict, const struct weir_loader_report *report, enum weir_cause cause)
{
    if (cause == WEIR_CAUSE_CONVERT)
        advise_u8(verdict, report);
    advise_cache(verdict, report);
    if (cause == WEIR_CAUSE_DECODE)
        advise_half_size(verdict, report);
    if (!weir_verdict_has(verdict, WEIR_CAUSE_TOO_FEW_WORKERS))
        advise_more_cores(verdict);
}

/* If it were as fast as the others. */
static void advise_look_at(struct weir_verdict *verdict, const struct weir_found *found)
{
    const struct weir_demands *d = &verdict->demands;
    double saved = found->a > 0 ? found->share * fmax(1 - found->b / found->a, 0) : 0;
    struct weir_change change = cheaper(d, 0, saved * asleep_s(d));
    if (!add_predicted(verdict, WEIR_ADVICE_LOOK_AT, &change))
        add(verdict, WEIR_ADVICE_LOOK_AT);
}

static void advise_storage(struct weir_verdict *verdict, const struct weir_loader_report *report,
                           const struct weir_found *found)
{
    bool one = found->cause == WEIR_CAUSE_SLOW_CAMERA || found->cause == WEIR_CAUSE_SLOW_FILE;
    if (one)
        advise_look_at(verdict, found);
    if (found->cause != WEIR_CAUSE_STORAGE_BANDWIDTH && !one)
        advise_read_ahead(verdict, report);
    if (found->cause == WEIR_CAUSE_STORAGE_LATENCY || found->cause == WEIR_CAUSE_STORAGE || one)
        advise_more_workers(verdict);
    if (found->cause == WEIR_CAUSE_STORAGE_TAIL)
        advise_more_batches(verdict, report);
    advise_cache(verdict, report);
}

static void advise_one(struct weir_verdict *verdict, const struct weir_loader_report *report,
                       const struct weir_found *found)
{
    switch (found->cause) {
    case WEIR_CAUSE_CONSUMER:
        advise_consumer(verdict, found);
        break;
    case WEIR_CAUSE_DECODE:
    case WEIR_CAUSE_INFLATE:
    case WEIR_CAUSE_CONVERT:
    case WEIR_CAUSE_READ_CPU:
    case WEIR_CAUSE_OTHER_CPU:
        advise_compute(verdict, report, found->cause);
        break;
    case WEIR_CAUSE_STORAGE:
    case WEIR_CAUSE_STORAGE_BANDWIDTH:
    case WEIR_CAUSE_STORAGE_LATENCY:
    case WEIR_CAUSE_STORAGE_TAIL:
    case WEIR_CAUSE_SLOW_CAMERA:
    case WEIR_CAUSE_SLOW_FILE:
        advise_storage(verdict, report, found);
        break;
    case WEIR_CAUSE_SLOW_WORKER:
        add(verdict, WEIR_ADVICE_LOOK_AT);
        break;
    case WEIR_CAUSE_LIBRARY:
        advise_library(verdict);
        advise_cache(verdict, report);
        break;
    case WEIR_CAUSE_GPU_DECODER:
        if (report->gpu.decode.cpu_frames == 0)
            snprintf(add(verdict, WEIR_ADVICE_HYBRID)->flag, 64, "--decoder hybrid");
        break;
    case WEIR_CAUSE_BURSTS:
        advise_more_batches(verdict, report);
        break;
    case WEIR_CAUSE_TOO_FEW_WORKERS:
        advise_more_workers(verdict);
        break;
    case WEIR_CAUSE_TOO_MANY_WORKERS:
        advise_fewer_workers(verdict);
        break;
    case WEIR_CAUSE_QUOTA:
        advise_quota(verdict, report);
        break;
    case WEIR_CAUSE_HOST:
    case WEIR_CAUSE_NEIGHBOURS:
        advise_cores(verdict, WEIR_ADVICE_FREE_CORES);
        break;
    case WEIR_CAUSE_COLD:
        advise_warm(verdict, found);
        break;
    case WEIR_CAUSE_CANNOT_TELL:
        if (found->doubt == WEIR_DOUBT_TOO_SHORT)
            snprintf(add(verdict, WEIR_ADVICE_LONGER)->flag, 64,
                     is_training(report) ? "--num-epochs 10" : "--seconds 5");
        break;
    case WEIR_CAUSE_BUS:
    case WEIR_CAUSE_MEMORY_BANDWIDTH:
    case WEIR_CAUSES:
        break;
    }
}

void weir_verdict_advise(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    weir_model_make(&verdict->model, &verdict->demands, report, NULL);
    for (int i = 0; i < verdict->n_causes; i++)
        advise_one(verdict, report, &verdict->causes[i]);
}
