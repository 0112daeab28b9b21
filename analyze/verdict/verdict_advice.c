/* Advice: suggestions for each cause, from a table, followed by capabilities of the machine that the run does not use.
 */
#include "analyze/verdict/verdict_priv.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void weir_cache_bytes_text(char text[24], double bytes, bool flag)
{
    double mib = ceil(bytes / (1 << 20));
    if (mib >= 10240) /* from 10 GiB on, rounding up adds less than a tenth */
        snprintf(text, 24, flag ? "%.0fG" : "%.0f GiB", ceil(mib / 1024));
    else
        snprintf(text, 24, flag ? "%.0fM" : "%.0f MiB", fmax(mib, 1));
}

static bool has_advice(const struct weir_verdict *verdict, enum weir_advice_kind kind)
{
    for (int i = 0; i < verdict->n_advices; i++)
        if (verdict->advices[i].kind == kind)
            return true;
    return false;
}

/* Appends advice if there is room and no advice of the same kind. */
static void add(struct weir_verdict *verdict, const struct weir_verdict_advice *advice)
{
    if (!has_advice(verdict, advice->kind) && verdict->n_advices < WEIR_VERDICT_ADVICES)
        verdict->advices[verdict->n_advices++] = *advice;
}

static void add_flag(struct weir_verdict *verdict, enum weir_advice_kind kind, const char *flag)
{
    struct weir_verdict_advice advice = {.kind = kind};
    snprintf(advice.flag, sizeof advice.flag, "%s", flag);
    add(verdict, &advice);
}

/* Fills in the advice with its predicted gain. Returns false if the gain is too small to be worth printing. */
static bool predict(struct weir_verdict_advice *advice, const struct weir_verdict *verdict, enum weir_advice_kind kind,
                    const struct weir_change *change)
{
    *advice = (struct weir_verdict_advice){.kind = kind};
    advice->ratio = weir_verdict_predict(verdict, change, &advice->limit);
    return advice->ratio >= WEIR_VERDICT_WORTH;
}

/* Returns the fraction of an image's CPU time spent in these parts. */
static double cpu_part(const struct weir_demands *d, unsigned parts)
{
    double sum = 0;
    for (int part = 0; part < WEIR_CPU_PARTS; part++)
        if (parts & (1u << part))
            sum += fmax(d->cpu[part], 0);
    return sum;
}

/* ---- advice for causes ---- */

typedef void advise_fn(struct weir_verdict *verdict, const struct weir_loader_report *report,
                       const struct weir_verdict_cause *cause);

/* Suggests a decode cache. Each frame from the cache costs a copy. Frames that do not fit are loaded as before. */
static void advise_cache(struct weir_verdict *verdict, const struct weir_loader_report *report,
                         const struct weir_verdict_cause *cause)
{
    static const double OF_FREE = 0.8;
    static const unsigned saved =
        1u << WEIR_CPU_DECODE | 1u << WEIR_CPU_INFLATE | 1u << WEIR_CPU_CONVERT | 1u << WEIR_CPU_READ;
    const struct weir_demands *d = &verdict->demands;
    const struct weir_report_setup *setup = &report->setup;
    double all = (double)setup->frames_bytes, free_bytes = OF_FREE * (double)setup->memory_free_bytes;
    (void)cause;
    if (!setup->known || all <= 0 || free_bytes <= 0 || setup->copy_bytes_per_s <= 0)
        return;
    if ((double)report->cache.budget_bytes >= all || report->cache.hits > report->cache.misses)
        return;
    double part = fmin(free_bytes / all, 1);
    double copy_s = weir_setup_image_bytes(setup) / setup->copy_bytes_per_s;
    double looked_up = (double)report->cache.hits + (double)report->cache.misses;
    /* Only misses incur an additional copy, because the current cost of hits already includes one. */
    double missed = looked_up > 0 ? (double)report->cache.misses / looked_up : 1;
    double cpu_s = part * (weir_demands_worker_cpu_s(d) * cpu_part(d, saved) - missed * copy_s);
    struct weir_change change = weir_change_cheaper(d, cpu_s, part * weir_demands_asleep_s(d));
    change.library_s = (1 - part) * d->each_s[WEIR_RESOURCE_LIBRARY];
    struct weir_verdict_advice advice;
    if (!predict(&advice, verdict, WEIR_ADVICE_CACHE, &change))
        return;
    char bytes[24];
    advice.figure = fmin(all, free_bytes);
    advice.part = part;
    weir_cache_bytes_text(bytes, advice.figure, true);
    snprintf(advice.flag, sizeof advice.flag, "--decode-cache %s", bytes);
    add(verdict, &advice);
}

static bool is_jpeg(const struct weir_report_setup *setup)
{
    return setup->encoded && (setup->kind == WEIR_FRAME_IMAGE || setup->kind == WEIR_FRAME_JPEG);
}

static void advise_half_size(struct weir_verdict *verdict, const struct weir_loader_report *report,
                             const struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = &verdict->demands;
    const struct weir_report_setup *setup = &report->setup;
    bool whole = setup->out_width == setup->width && setup->out_height == setup->height && !setup->sizes_differ;
    bool scales = setup->encoded && weir_decoder_scales(setup->kind);
    (void)cause;
    if (!setup->known || !whole || !scales || setup->width < 64 || setup->height < 64 || d->cpu[0] < 0)
        return;
    double decode = d->cpu[WEIR_CPU_DECODE], convert = d->cpu[WEIR_CPU_CONVERT];
    double saved = (1 - WEIR_VERDICT_HALF_SIZE) * decode + 0.75 * convert;
    struct weir_change change = weir_change_cheaper(d, weir_demands_worker_cpu_s(d) * saved, 0);
    struct weir_verdict_advice advice;
    if (!predict(&advice, verdict, WEIR_ADVICE_HALF_SIZE, &change))
        return;
    snprintf(advice.flag, sizeof advice.flag, "--image-size %dx%d", setup->width / 2, setup->height / 2);
    add(verdict, &advice);
}

/* ---- videos ---- */

/* Returns the CPU time of an image spent in decoding pictures of videos, without their conversion. */
static double video_cpu_s(const struct weir_demands *d, const struct weir_loader_report *report)
{
    const struct weir_report_row *pictures = weir_demands_row(report, "03j_video_decode", WEIR_SIDE_WORKER);
    const struct weir_report_row *images = weir_demands_row(report, "03b_image_decode", WEIR_SIDE_WORKER);
    if (!pictures || d->cpu[WEIR_CPU_DECODE] <= 0)
        return 0;
    double all_s = pictures->self_s + (images ? images->self_s : 0);
    return all_s > 0 ? weir_demands_worker_cpu_s(d) * d->cpu[WEIR_CPU_DECODE] * pictures->self_s / all_s : 0;
}

/* Returns the probability that a picture is wanted, if `each` pictures are wanted in a group with any, of `size`
 * pictures: the solution of each = size p / (1 - (1 - p)^size). */
static double wanted_part(double each, double size)
{
    double low = 0, high = 1;
    for (int i = 0; i < 40; i++) {
        double p = (low + high) / 2;
        *(size * p / (1 - pow(1 - p, size)) < each ? &low : &high) = p;
    }
    return low;
}

/* Returns the time to decode a frame if every other picture were a key frame, over the time now; 1 if it is unknown. If
 * few pictures are wanted, a frame costs a key frame, and in half of the cases another picture. If all are wanted, it
 * costs half of each. */
static double closer_key_frames(const struct weir_loader_report *report)
{
    const struct weir_video_counts *video = &report->video.counts;
    const struct weir_report_row *row = weir_demands_row(report, "03j_video_decode", WEIR_SIDE_WORKER);
    if (!row || video->used == 0 || video->decoded <= video->groups || video->key_s <= 0 || row->total_s <= 0)
        return 1;
    double groups = (double)video->groups, key_s = video->key_s / groups;
    double other_s = fmax(row->total_s - video->key_s, 0) / ((double)video->decoded - groups);
    double wanted = wanted_part((double)video->used / groups, (double)video->group_pictures / groups);
    return fmin(((1 - wanted / 2) * key_s + other_s / 2) * (double)video->used / row->total_s, 1);
}

static void advise_key_frames(struct weir_verdict *verdict, const struct weir_loader_report *report,
                              const struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = &verdict->demands;
    double saved_s = (1 - closer_key_frames(report)) * video_cpu_s(d, report);
    struct weir_change change = weir_change_cheaper(d, saved_s, 0);
    struct weir_verdict_advice advice;
    (void)cause;
    if (!predict(&advice, verdict, WEIR_ADVICE_KEY_FRAMES, &change))
        return;
    advice.figure = (double)report->video.counts.decoded / (double)report->video.counts.used;
    add(verdict, &advice);
}

/* Suggests a copy of the dataset whose frames are JPEGs. Their conversion costs as much as that of pictures. */
static void advise_jpegs(struct weir_verdict *verdict, const struct weir_loader_report *report,
                         const struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = &verdict->demands;
    double now_s = weir_demands_worker_cpu_s(d) * fmax(d->cpu[WEIR_CPU_DECODE], 0);
    struct weir_change change = weir_change_cheaper(d, now_s - report->video.jpeg_s, 0);
    struct weir_verdict_advice advice;
    (void)cause;
    if (report->video.jpeg_s <= 0 || !predict(&advice, verdict, WEIR_ADVICE_JPEGS, &change))
        return;
    advice.figure = report->video.jpeg_s;
    snprintf(advice.flag, sizeof advice.flag, "weir convert --frames jpeg:95");
    add(verdict, &advice);
}

/* ---- cores and workers ---- */

/* Suggests more cores, with the gain per core, even if this machine has no more. Omitted if another cause shows that
 * the run does not get, or does not use, the existing cores, because the advice for that cause comes first. */
static void advise_more_cores(struct weir_verdict *verdict, const struct weir_loader_report *report,
                              const struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = &verdict->demands;
    (void)report, (void)cause;
    if (weir_verdict_has(verdict, WEIR_CAUSE_QUOTA) || weir_verdict_has(verdict, WEIR_CAUSE_HOST) ||
        weir_verdict_has(verdict, WEIR_CAUSE_NEIGHBOURS) || weir_verdict_has(verdict, WEIR_CAUSE_TOO_FEW_WORKERS) ||
        has_advice(verdict, WEIR_ADVICE_FREE_CORES))
        return;
    struct weir_change change = WEIR_NO_CHANGE;
    struct weir_verdict_advice advice;
    change.cores = d->reachable + 1;
    change.workers = d->workers > 0 ? d->workers + 1 : 0;
    if (!predict(&advice, verdict, WEIR_ADVICE_MORE_CORES, &change))
        return;
    advice.figure = d->each_s[WEIR_RESOURCE_CORES] > 0 ? 1 / d->each_s[WEIR_RESOURCE_CORES] : 0;
    add(verdict, &advice);
}

static void advise_more_workers(struct weir_verdict *verdict, const struct weir_loader_report *report,
                                const struct weir_verdict_cause *cause)
{
    struct weir_change change = weir_change_more_workers(&verdict->demands);
    struct weir_verdict_advice advice;
    (void)report, (void)cause;
    if (weir_verdict_workers_refuted(&verdict->facts) || !predict(&advice, verdict, WEIR_ADVICE_MORE_WORKERS, &change))
        return;
    advice.figure = change.workers;
    advice.if_latency = weir_verdict_has(verdict, WEIR_CAUSE_STORAGE);
    snprintf(advice.flag, sizeof advice.flag, "--num-workers %.0f", change.workers);
    add(verdict, &advice);
}

/* Suggests the cores that other processes use, with a worker on each. */
static void advise_free_cores(struct weir_verdict *verdict, const struct weir_loader_report *report,
                              const struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = &verdict->demands;
    struct weir_change change = weir_change_free_cores(d);
    struct weir_verdict_advice advice;
    (void)cause;
    if (report->prof.machine.others_cores < WEIR_VERDICT_OTHERS * d->usable || change.workers > d->usable + 0.25 ||
        !predict(&advice, verdict, WEIR_ADVICE_FREE_CORES, &change))
        return;
    advice.figure = change.cores;
    snprintf(advice.flag, sizeof advice.flag, "--num-workers %.0f", change.workers);
    add(verdict, &advice);
}

static void advise_fewer_workers(struct weir_verdict *verdict, const struct weir_loader_report *report,
                                 const struct weir_verdict_cause *cause)
{
    struct weir_verdict_advice advice = {.kind = WEIR_ADVICE_FEWER_WORKERS, .ratio = 1};
    (void)report, (void)cause;
    advice.figure = fmax(floor(verdict->demands.usable + 0.25), 1);
    snprintf(advice.flag, sizeof advice.flag, "--num-workers %.0f", advice.figure);
    add(verdict, &advice);
}

/* Suggests more prefetch. Threads then no longer wait for each other, so the predicted rate is the lowest bound. */
static void advise_more_batches(struct weir_verdict *verdict, const struct weir_loader_report *report,
                                const struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = &verdict->demands;
    int prefetch = report->queue_slots > 1 ? report->queue_slots - 1 : 1;
    struct weir_verdict_advice advice = {.kind = WEIR_ADVICE_MORE_BATCHES, .limit = d->least};
    double ratio = d->rate > 0 ? d->bound_rate / d->rate : 0;
    (void)cause;
    advice.ratio = ratio >= WEIR_VERDICT_WORTH ? ratio : 0;
    snprintf(advice.flag, sizeof advice.flag, "--prefetch %d", 4 * prefetch > 16 ? 4 * prefetch : 16);
    add(verdict, &advice);
}

static void advise_read_ahead(struct weir_verdict *verdict, const struct weir_loader_report *report,
                              const struct weir_verdict_cause *cause)
{
    enum { DEPTH = 64 }; /* number of reads in flight, instead of one per worker */
    const struct weir_demands *d = &verdict->demands;
    double hidden = 1 - fmin(fmax(d->workers, 1) / DEPTH, 1);
    struct weir_change change = weir_change_cheaper(d, 0, hidden * weir_demands_asleep_s(d));
    struct weir_verdict_advice advice;
    (void)cause;
    if (report->setup.reads_ahead || !predict(&advice, verdict, WEIR_ADVICE_READ_AHEAD, &change))
        return;
    advice.if_latency = weir_verdict_has(verdict, WEIR_CAUSE_STORAGE);
    snprintf(advice.flag, sizeof advice.flag, "--io uring");
    add(verdict, &advice);
}

/* Whether the run trained a policy (weir train). Such a run needs floats, and its length is a number of epochs. */
static bool is_training(const struct weir_loader_report *report)
{
    return weir_demands_row(report, "21_backward", WEIR_SIDE_CONSUMER) != NULL;
}

static void advise_taker(struct weir_verdict *verdict, const struct weir_loader_report *report,
                         const struct weir_verdict_cause *cause)
{
    struct weir_change change = weir_change_no_taker(&verdict->demands, cause, report);
    struct weir_verdict_advice advice;
    enum weir_advice_kind kind = cause->cause == WEIR_CAUSE_QUOTA  ? WEIR_ADVICE_QUOTA
                                 : cause->cause == WEIR_CAUSE_HOST ? WEIR_ADVICE_HOST
                                                                   : WEIR_ADVICE_FREE_CORES;
    if (!predict(&advice, verdict, kind, &change))
        return;
    advice.figure = change.cores;
    add(verdict, &advice);
}

static void advise_convert(struct weir_verdict *verdict, const struct weir_loader_report *report,
                           const struct weir_verdict_cause *cause)
{
    struct weir_verdict_advice advice = {.kind = WEIR_ADVICE_CONVERT, .ratio = cause->gain};
    struct weir_change change = weir_change_cheaper(&verdict->demands, 0, weir_demands_asleep_s(&verdict->demands));
    (void)report;
    change.library_s = 0;
    if (!predict(&advice, verdict, WEIR_ADVICE_CONVERT, &change))
        return;
    snprintf(advice.flag, sizeof advice.flag, "weir convert");
    add(verdict, &advice);
}

static void advise_warm(struct weir_verdict *verdict, const struct weir_loader_report *report,
                        const struct weir_verdict_cause *cause)
{
    struct weir_change change = weir_change_cheaper(&verdict->demands, 0, weir_demands_asleep_s(&verdict->demands));
    bool measured = cause->cold.later_rate > 0 && cause->cold.first_rate > 0;
    struct weir_verdict_advice advice;
    (void)report;
    if (!predict(&advice, verdict, WEIR_ADVICE_WARM, &change) && !measured)
        return;
    if (measured)
        advice = (struct weir_verdict_advice){
            .kind = WEIR_ADVICE_WARM, .ratio = cause->gain, .measured = true, .figure = cause->cold.later_rate};
    add(verdict, &advice);
}

static void advise_consumer(struct weir_verdict *verdict, const struct weir_loader_report *report,
                            const struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = &verdict->demands;
    bool simulated = report->steps.step_ms > 0 && !report->gpu.used; /* a trace would show its sleep */
    if (cause->consumer.kind != WEIR_CONSUMER_COMPUTING && !cause->consumer.traced && !simulated) {
        add_flag(verdict, WEIR_ADVICE_TRACE, "--profile DIR");
        return;
    }
    struct weir_verdict_advice advice = {.kind = WEIR_ADVICE_FASTER_STEP};
    double next = INFINITY;
    for (int i = 0; i < WEIR_RESOURCES; i++)
        if (i != WEIR_RESOURCE_CONSUMER && d->bound[i] > 0 && d->bound[i] < next) {
            next = d->bound[i];
            advice.limit = (enum weir_resource)i;
        }
    advice.ratio = isfinite(next) && d->rate > 0 ? next / d->rate : 0;
    add(verdict, &advice);
}

/* Suggests finding out why something is slow. For a slow worker there is no prediction. */
static void advise_look_at(struct weir_verdict *verdict, const struct weir_loader_report *report,
                           const struct weir_verdict_cause *cause)
{
    struct weir_verdict_advice advice = {.kind = WEIR_ADVICE_LOOK_AT};
    (void)report;
    if (cause->cause != WEIR_CAUSE_SLOW_WORKER) {
        struct weir_change change = weir_change_no_slow_source(&verdict->demands, cause);
        if (!predict(&advice, verdict, WEIR_ADVICE_LOOK_AT, &change))
            advice.ratio = 0;
    }
    add(verdict, &advice);
}

/* Suggests the number of requests in flight that hides their latency. */
static void advise_in_flight(struct weir_verdict *verdict, const struct weir_loader_report *report,
                             const struct weir_verdict_cause *cause)
{
    struct weir_change change = weir_change_no_server(&verdict->demands, report);
    struct weir_verdict_advice advice;
    (void)cause;
    if (!predict(&advice, verdict, WEIR_ADVICE_IN_FLIGHT, &change))
        return;
    int depth = weir_verdict_in_flight(verdict, report, &advice.ratio);
    snprintf(advice.flag, sizeof advice.flag, "--io-depth %d", depth);
    if (depth > report->server.limit && advice.ratio >= WEIR_VERDICT_WORTH)
        add(verdict, &advice);
}

static void advise_near(struct weir_verdict *verdict, const struct weir_loader_report *report,
                        const struct weir_verdict_cause *cause)
{
    struct weir_change change = weir_change_no_server(&verdict->demands, report);
    const struct weir_report_server *server = &report->server;
    struct weir_verdict_advice advice;
    bool has_cache = server->cache_bytes + server->cache_stored_bytes + server->cache_full_bytes > 0;
    (void)cause;
    if (has_cache || !predict(&advice, verdict, WEIR_ADVICE_NEAR, &change))
        return;
    snprintf(advice.flag, sizeof advice.flag, "--cache DIR");
    add(verdict, &advice);
}

static void advise_hybrid(struct weir_verdict *verdict, const struct weir_loader_report *report,
                          const struct weir_verdict_cause *cause)
{
    (void)cause;
    if (report->gpu.decode.cpu_frames == 0)
        add_flag(verdict, WEIR_ADVICE_HYBRID, "--decoder hybrid");
}

static void advise_longer(struct weir_verdict *verdict, const struct weir_loader_report *report,
                          const struct weir_verdict_cause *cause)
{
    if (cause->doubt.why == WEIR_DOUBT_TOO_SHORT)
        add_flag(verdict, WEIR_ADVICE_LONGER, is_training(report) ? "--num-epochs 10" : "--seconds 5");
}

/* ---- unused capabilities ---- */

/* Inserts advice before the first one with a smaller predicted gain. If the list is full, the last one is dropped. */
static void insert(struct weir_verdict *verdict, const struct weir_verdict_advice *advice)
{
    int at = 0, n = verdict->n_advices;
    if (has_advice(verdict, advice->kind))
        return;
    while (at < n && !(verdict->advices[at].ratio > 0 && verdict->advices[at].ratio < advice->ratio))
        at++;
    if (at == WEIR_VERDICT_ADVICES)
        return;
    verdict->n_advices = n < WEIR_VERDICT_ADVICES ? n + 1 : n;
    for (int i = verdict->n_advices - 1; i > at; i--)
        verdict->advices[i] = verdict->advices[i - 1];
    verdict->advices[at] = *advice;
}

/* Suggests the JPEG engines if batches go to a GPU that has some but CPU cores decode all JPEGs. Conversion to floats
 * is not part of the saving, because the GPU already does it. */
static void advise_engines(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_demands *d = &verdict->demands;
    const struct weir_report_setup *setup = &report->setup;
    double pixels = (double)setup->width * setup->height;
    if (setup->device < 0 || setup->jpeg_engines <= 0 || report->gpu.decode.n_engines > 0 || !is_jpeg(setup) ||
        pixels <= 0)
        return;
    struct weir_change change = weir_change_cheaper(d, weir_demands_worker_cpu_s(d) * fmax(d->cpu[WEIR_CPU_DECODE], 0),
                                                    d->blocked_decode * weir_demands_asleep_s(d));
    struct weir_verdict_advice advice;
    predict(&advice, verdict, WEIR_ADVICE_ENGINES, &change);
    double most = setup->jpeg_engines * WEIR_VERDICT_ENGINE_PIXELS / pixels / d->bound_rate;
    if (most < advice.ratio) {
        advice.ratio = most;
        advice.limit = WEIR_RESOURCE_ENGINES;
    }
    advice.figure = setup->jpeg_engines;
    snprintf(advice.flag, sizeof advice.flag, "--decoder auto");
    if (advice.ratio >= WEIR_VERDICT_WORTH)
        insert(verdict, &advice);
}

/* Suggests batches of bytes if conversion to floats, which runs inside decoding but has its own stage, takes much CPU
 * time. Training code can convert instead. */
static void advise_u8(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_demands *d = &verdict->demands;
    double convert = d->cpu[WEIR_CPU_CONVERT];
    struct weir_change change = weir_change_cheaper(d, weir_demands_worker_cpu_s(d) * fmax(convert, 0), 0);
    struct weir_verdict_advice advice;
    if (!report->setup.normalised || is_training(report) || convert < WEIR_VERDICT_CONVERT ||
        !predict(&advice, verdict, WEIR_ADVICE_U8, &change))
        return;
    snprintf(advice.flag, sizeof advice.flag, "--dtype u8");
    insert(verdict, &advice);
}

/* Suggests an index file if opening the dataset took long, because the file saves its result for later runs. */
static void advise_index(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_report_setup *setup = &report->setup;
    struct weir_verdict_advice advice = {.kind = WEIR_ADVICE_INDEX, .figure = setup->index_s, .flag = "--index FILE"};
    if (!setup->indexed && setup->index_s >= WEIR_VERDICT_INDEX_S &&
        setup->index_s >= WEIR_VERDICT_INDEX_PART * report->wall_s)
        insert(verdict, &advice);
}

/* ---- the table ---- */

/* The advice for one cause is printed in the order of these rows. */
static const struct {
    uint64_t causes;
    advise_fn *advise;
} advice_for[] = {
    {WEIR_CAUSE_BIT(CONSUMER), advise_consumer},
    {WEIR_CAUSE_BIT(SLOW_CAMERA) | WEIR_CAUSE_BIT(SLOW_FILE) | WEIR_CAUSE_BIT(SLOW_WORKER), advise_look_at},
    {WEIR_CAUSE_BIT(STORAGE) | WEIR_CAUSE_BIT(STORAGE_LATENCY) | WEIR_CAUSE_BIT(STORAGE_TAIL), advise_read_ahead},
    {WEIR_CAUSE_BIT(STORAGE) | WEIR_CAUSE_BIT(STORAGE_LATENCY) | WEIR_CAUSE_BIT(SLOW_CAMERA) |
         WEIR_CAUSE_BIT(SLOW_FILE) | WEIR_CAUSE_BIT(TOO_FEW_WORKERS),
     advise_more_workers},
    {WEIR_CAUSE_BIT(FEW_IN_FLIGHT), advise_in_flight},
    {WEIR_CAUSES_SERVER, advise_near},
    {WEIR_CAUSE_BIT(BUSY_WORKERS), advise_free_cores},
    {WEIR_CAUSE_BIT(STORAGE_TAIL) | WEIR_CAUSE_BIT(BURSTS), advise_more_batches},
    {WEIR_CAUSE_BIT(LIBRARY), advise_convert},
    {WEIR_CAUSES_COMPUTE | WEIR_CAUSES_STORAGE | WEIR_CAUSE_BIT(LIBRARY), advise_cache},
    {WEIR_CAUSE_BIT(DECODE), advise_key_frames},
    {WEIR_CAUSE_BIT(DECODE), advise_jpegs},
    {WEIR_CAUSE_BIT(DECODE), advise_half_size},
    {WEIR_CAUSES_COMPUTE, advise_more_cores},
    {WEIR_CAUSE_BIT(GPU_DECODER), advise_hybrid},
    {WEIR_CAUSE_BIT(TOO_MANY_WORKERS), advise_fewer_workers},
    {WEIR_CAUSE_BIT(QUOTA) | WEIR_CAUSE_BIT(HOST) | WEIR_CAUSE_BIT(NEIGHBOURS), advise_taker},
    {WEIR_CAUSE_BIT(COLD), advise_warm},
    {WEIR_CAUSE_BIT(CANNOT_TELL), advise_longer},
};

void weir_verdict_advise(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    for (int i = 0; i < verdict->n_causes; i++) {
        const struct weir_verdict_cause *cause = &verdict->causes[i];
        for (size_t row = 0; row < sizeof advice_for / sizeof advice_for[0]; row++)
            if (advice_for[row].causes & UINT64_C(1) << cause->cause)
                advice_for[row].advise(verdict, report, cause);
    }
    if (verdict->bound == WEIR_BOUND_UNKNOWN || verdict->bound == WEIR_BOUND_NO)
        return;
    advise_engines(verdict, report);
    advise_u8(verdict, report);
    advise_index(verdict, report);
}
