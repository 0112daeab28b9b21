/* Advice: suggestions for each cause, from a table, followed by capabilities of the machine that the run does not use.
 */
#include "analyze/verdict/verdict_priv.h"
#include "base/numbers.h"

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

static void set_option(struct weir_advice *advice, const char *option)
{
    snprintf(advice->setting, sizeof advice->setting, "%s", option);
}

/* Says what limits the run after the change. */
static void set_limit(const struct weir_verdict_case *c, struct weir_advice *advice, enum weir_resource limit)
{
    bool plural = limit == WEIR_RESOURCE_CORES || limit == WEIR_RESOURCE_WORKERS || limit == WEIR_RESOURCE_ENGINES;
    if (advice->ratio <= 0)
        return;
    advice->resource = weir_resource_name(limit);
    if (limit != c->demands->least || advice->at_most)
        snprintf(advice->after, sizeof advice->after, ", until the %s %s the limit", weir_resource_text(limit),
                 plural ? "are" : "is");
}

/* Appends advice with the predicted gain of the change. Returns NULL if that is too small to be worth printing, or if
 * the advice is there already. */
static struct weir_advice *predict(struct weir_verdict_case *c, enum weir_advice_kind kind,
                                   const struct weir_change *change)
{
    enum weir_resource limit;
    double ratio = weir_verdict_predict(c->verdict, change, &limit);
    struct weir_advice *to =
        ratio >= WEIR_VERDICT_WORTH ? weir_diagnosis_advise(&c->verdict->found, kind, ratio) : NULL;
    if (to)
        set_limit(c, to, limit);
    return to;
}

static bool has_advice(const struct weir_diagnosis *found, enum weir_advice_kind kind)
{
    for (int i = 0; i < found->n_advices; i++)
        if (found->advices[i].kind == kind)
            return true;
    return false;
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

typedef void advise_fn(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause);

/* Suggests a decode cache. Each frame from the cache costs a copy. Frames that do not fit are loaded as before. */
static void advise_cache(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    static const double OF_FREE = 0.8;
    static const unsigned saved =
        1u << WEIR_CPU_DECODE | 1u << WEIR_CPU_INFLATE | 1u << WEIR_CPU_CONVERT | 1u << WEIR_CPU_READ;
    const struct weir_demands *d = c->demands;
    const struct weir_loader_report *report = c->report;
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
    struct weir_advice *to = predict(c, WEIR_ADVICE_CACHE, &change);
    char flag[24], size[24];
    if (!to)
        return;
    weir_cache_bytes_text(flag, fmin(all, free_bytes), true);
    weir_cache_bytes_text(size, fmin(all, free_bytes), false);
    snprintf(to->setting, sizeof to->setting, "--decode-cache %s", flag);
    if (part >= 1)
        snprintf(to->what, sizeof to->what, "all frames fit in %s", size);
    else
        snprintf(to->what, sizeof to->what, "%.0f %% of the frames fit in %s", weir_percent(part), size);
    size_t length = strlen(to->after);
    snprintf(to->after + length, sizeof to->after - length,
             ", from the second epoch on; the first, which fills it, is slower");
}

static bool is_jpeg(const struct weir_report_setup *setup)
{
    return setup->encoded && (setup->kind == WEIR_FRAME_IMAGE || setup->kind == WEIR_FRAME_JPEG);
}

static void advise_half_size(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    const struct weir_demands *d = c->demands;
    const struct weir_report_setup *setup = &c->report->setup;
    bool whole = setup->out_width == setup->width && setup->out_height == setup->height && !setup->sizes_differ;
    bool scales = setup->encoded && weir_decoder_scales(setup->kind);
    (void)cause;
    if (!setup->known || !whole || !scales || setup->width < 64 || setup->height < 64 || d->cpu[0] < 0)
        return;
    double decode = d->cpu[WEIR_CPU_DECODE], convert = d->cpu[WEIR_CPU_CONVERT];
    double saved = (1 - WEIR_VERDICT_HALF_SIZE) * decode + 0.75 * convert;
    struct weir_change change = weir_change_cheaper(d, weir_demands_worker_cpu_s(d) * saved, 0);
    struct weir_advice *to = predict(c, WEIR_ADVICE_HALF_SIZE, &change);
    if (to)
        snprintf(to->setting, sizeof to->setting, "--image-size %dx%d", setup->width / 2, setup->height / 2);
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

static void advise_key_frames(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    const struct weir_video_counts *video = &c->report->video.counts;
    double saved_s = (1 - closer_key_frames(c->report)) * video_cpu_s(c->demands, c->report);
    struct weir_change change = weir_change_cheaper(c->demands, saved_s, 0);
    struct weir_advice *to = predict(c, WEIR_ADVICE_KEY_FRAMES, &change);
    (void)cause;
    if (to)
        snprintf(to->what, sizeof to->what,
                 "encode the videos with one every 2 pictures; now %.1f pictures are decoded per frame",
                 (double)video->decoded / (double)video->used);
}

/* Suggests a copy of the dataset whose frames are JPEGs. Their conversion costs as much as that of pictures. */
static void advise_jpegs(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    const struct weir_demands *d = c->demands;
    double now_s = weir_demands_worker_cpu_s(d) * fmax(d->cpu[WEIR_CPU_DECODE], 0), jpeg_s = c->report->video.jpeg_s;
    struct weir_change change = weir_change_cheaper(d, now_s - jpeg_s, 0);
    struct weir_advice *to = jpeg_s > 0 ? predict(c, WEIR_ADVICE_JPEGS, &change) : NULL;
    (void)cause;
    if (!to)
        return;
    snprintf(to->what, sizeof to->what, "one takes %.2f ms to decode, measured on a few frames", 1e3 * jpeg_s);
    set_option(to, "weir convert --frames jpeg:95");
}

/* ---- cores and workers ---- */

static void set_workers(struct weir_advice *advice, double workers)
{
    snprintf(advice->setting, sizeof advice->setting, "--num-workers %.0f", workers);
}

/* Suggests more cores, with the gain per core, even if this machine has no more. Omitted if another cause shows that
 * the run does not get, or does not use, the existing cores, because the advice for that cause comes first. */
static void advise_more_cores(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    static const enum weir_cause before[] = {WEIR_CAUSE_QUOTA, WEIR_CAUSE_HOST, WEIR_CAUSE_NEIGHBOURS,
                                             WEIR_CAUSE_TOO_FEW_WORKERS};
    const struct weir_demands *d = c->demands;
    struct weir_change change = WEIR_NO_CHANGE;
    (void)cause;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        if (weir_diagnosis_has(&c->verdict->found, before[i]))
            return;
    change.cores = d->reachable + 1;
    change.workers = d->workers > 0 ? d->workers + 1 : 0;
    bool frees = has_advice(&c->verdict->found, WEIR_ADVICE_FREE_CORES);
    struct weir_advice *to = frees ? NULL : predict(c, WEIR_ADVICE_MORE_CORES, &change);
    if (to)
        snprintf(to->what, sizeof to->what, "about %.0f images/s per additional core",
                 d->each_s[WEIR_RESOURCE_CORES] > 0 ? 1 / d->each_s[WEIR_RESOURCE_CORES] : 0);
}

static void advise_more_workers(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    struct weir_change change = weir_change_more_workers(c->demands);
    bool refuted = weir_verdict_workers_refuted(&c->verdict->facts);
    struct weir_advice *to = refuted ? NULL : predict(c, WEIR_ADVICE_MORE_WORKERS, &change);
    (void)cause;
    if (!to)
        return;
    to->if_latency = weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_STORAGE);
    set_workers(to, change.workers);
    if (weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_TOO_FEW_WORKERS))
        snprintf(to->what, sizeof to->what, "cores are idle");
}

static void say_free_cores(struct weir_advice *advice, double cores)
{
    snprintf(advice->what, sizeof advice->what, "if this run had all %.3g cores", cores);
}

/* Suggests the cores that other processes use, with a worker on each. */
static void advise_free_cores(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    const struct weir_demands *d = c->demands;
    const struct weir_change *change = &c->without[cause->cause];
    bool others = c->report->prof.machine.others_cores >= WEIR_VERDICT_OTHERS * d->usable;
    struct weir_advice *to =
        others && change->workers <= d->usable + 0.25 ? predict(c, WEIR_ADVICE_FREE_CORES, change) : NULL;
    if (!to)
        return;
    say_free_cores(to, change->cores);
    set_workers(to, change->workers);
}

static void advise_fewer_workers(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    struct weir_advice *to = weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_FEWER_WORKERS, 0);
    (void)cause;
    if (!to)
        return;
    to->ratio = 1;
    to->resource = weir_resource_name(WEIR_RESOURCE_CORES);
    set_workers(to, fmax(floor(c->demands->usable + 0.25), 1));
}

/* Suggests more prefetch. Threads then no longer wait for each other, so the predicted rate is the lowest bound. */
static void advise_more_batches(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    const struct weir_demands *d = c->demands;
    int prefetch = c->report->queue_slots > 1 ? c->report->queue_slots - 1 : 1;
    struct weir_advice *to =
        weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_MORE_BATCHES, d->rate > 0 ? d->bound_rate / d->rate : 0);
    (void)cause;
    if (!to)
        return;
    set_limit(c, to, d->least);
    snprintf(to->setting, sizeof to->setting, "--prefetch %d", 4 * prefetch > 16 ? 4 * prefetch : 16);
}

static void advise_read_ahead(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    enum { DEPTH = 64 }; /* number of reads in flight, instead of one per worker */
    const struct weir_demands *d = c->demands;
    double hidden = 1 - fmin(fmax(d->workers, 1) / DEPTH, 1);
    struct weir_change change = weir_change_cheaper(d, 0, hidden * weir_demands_asleep_s(d));
    struct weir_advice *to = c->report->setup.reads_ahead ? NULL : predict(c, WEIR_ADVICE_READ_AHEAD, &change);
    (void)cause;
    if (!to)
        return;
    to->if_latency = weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_STORAGE);
    set_option(to, "--io uring");
}

/* Whether the run trained a policy (weir train). Such a run needs floats, and its length is a number of epochs. */
static bool is_training(const struct weir_loader_report *report)
{
    return weir_demands_row(report, "21_backward", WEIR_SIDE_CONSUMER) != NULL;
}

/* Suggests to stop what takes the cores. */
static void advise_taker(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    const struct weir_change *change = &c->without[cause->cause];
    enum weir_advice_kind kind = cause->cause == WEIR_CAUSE_QUOTA  ? WEIR_ADVICE_QUOTA
                                 : cause->cause == WEIR_CAUSE_HOST ? WEIR_ADVICE_HOST
                                                                   : WEIR_ADVICE_FREE_CORES;
    struct weir_advice *to = predict(c, kind, change);
    if (to && kind == WEIR_ADVICE_QUOTA)
        snprintf(to->what, sizeof to->what, "of %.3g cores", change->cores);
    else if (to && kind == WEIR_ADVICE_FREE_CORES)
        say_free_cores(to, change->cores);
}

static void advise_convert(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    struct weir_advice *to = predict(c, WEIR_ADVICE_CONVERT, &c->without[cause->cause]);
    if (to)
        set_option(to, "weir convert");
}

static void advise_warm(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    if (weir_verdict_later_rate(c->report) <= 0) {
        predict(c, WEIR_ADVICE_WARM, &c->without[cause->cause]);
        return;
    }
    struct weir_advice *to = weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_WARM, cause->gain);
    if (to)
        to->measured = true;
}

static void advise_consumer(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    const struct weir_demands *d = c->demands;
    struct weir_advice *to = weir_diagnosis_advise(&c->verdict->found, cause->advice, 0);
    enum weir_resource limit = WEIR_RESOURCE_CORES;
    double next = INFINITY;
    if (cause->advice == WEIR_ADVICE_TRACE) {
        set_option(to, "--profile DIR");
        return;
    }
    for (int i = 0; i < WEIR_RESOURCES; i++)
        if (i != WEIR_RESOURCE_CONSUMER && d->bound[i] > 0 && d->bound[i] < next) {
            next = d->bound[i];
            limit = (enum weir_resource)i;
        }
    to->at_most = true;
    to->ratio = isfinite(next) && d->rate > 0 ? next / d->rate : 0;
    set_limit(c, to, limit);
}

/* Suggests finding out why something is slow. For a slow worker there is no prediction. */
static void advise_look_at(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    bool predicted = cause->cause != WEIR_CAUSE_SLOW_WORKER;
    if (!predicted || !predict(c, WEIR_ADVICE_LOOK_AT, &c->without[cause->cause]))
        weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_LOOK_AT, 0);
}

/* Suggests the number of requests in flight that hides their latency. */
static void advise_in_flight(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    static const double SPARE = 1.25; /* requests come in bursts */
    enum { MOST = 1024 };
    const struct weir_report_server *server = &c->report->server;
    enum weir_resource limit;
    double now = fmax(server->in_flight, 1);
    double ratio = weir_verdict_predict(c->verdict, &c->without[cause->cause], &limit);
    double needed = fmin(fmax(ceil(SPARE * ratio * now), server->limit + 1), MOST);
    if (SPARE * ratio * now > MOST)
        ratio = fmin(ratio, MOST / now);
    if (needed <= server->limit || ratio < WEIR_VERDICT_WORTH)
        return;
    struct weir_advice *to = weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_IN_FLIGHT, ratio);
    if (!to)
        return;
    set_limit(c, to, limit);
    snprintf(to->setting, sizeof to->setting, "--io-depth %.0f", needed);
}

static void advise_near(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    const struct weir_report_server *server = &c->report->server;
    bool has_cache = server->cache_bytes + server->cache_stored_bytes + server->cache_full_bytes > 0;
    struct weir_advice *to = has_cache ? NULL : predict(c, WEIR_ADVICE_NEAR, &c->without[cause->cause]);
    if (to)
        set_option(to, "--cache DIR");
}

static void advise_hybrid(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    (void)cause;
    if (c->report->gpu.decode.cpu_frames == 0)
        set_option(weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_HYBRID, 0), "--decoder hybrid");
}

static void advise_longer(struct weir_verdict_case *c, const struct weir_diagnosis_cause *cause)
{
    struct weir_advice *to = weir_diagnosis_advise(&c->verdict->found, cause->advice, 0);
    if (to)
        set_option(to, is_training(c->report) ? "--num-epochs 10" : "--seconds 5");
}

/* ---- unused capabilities ---- */

/* Moves the last advice before the first one with a smaller predicted gain. */
static void rise(struct weir_diagnosis *found)
{
    struct weir_advice last = found->advices[found->n_advices - 1];
    int at = 0;
    while (at < found->n_advices - 1 && !(found->advices[at].ratio > 0 && found->advices[at].ratio < last.ratio))
        at++;
    for (int i = found->n_advices - 1; i > at; i--)
        found->advices[i] = found->advices[i - 1];
    found->advices[at] = last;
}

/* Suggests the JPEG engines if batches go to a GPU that has some but CPU cores decode all JPEGs. Conversion to floats
 * is not part of the saving, because the GPU already does it. */
static void advise_engines(struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    const struct weir_report_setup *setup = &c->report->setup;
    double pixels = (double)setup->width * setup->height;
    if (setup->device < 0 || setup->jpeg_engines <= 0 || c->report->gpu.decode.n_engines > 0 || !is_jpeg(setup) ||
        pixels <= 0)
        return;
    struct weir_change change = weir_change_cheaper(d, weir_demands_worker_cpu_s(d) * fmax(d->cpu[WEIR_CPU_DECODE], 0),
                                                    d->blocked_decode * weir_demands_asleep_s(d));
    enum weir_resource limit;
    double ratio = weir_verdict_predict(c->verdict, &change, &limit);
    double most = setup->jpeg_engines * WEIR_VERDICT_ENGINE_PIXELS / pixels / d->bound_rate;
    if (fmin(ratio, most) < WEIR_VERDICT_WORTH)
        return;
    struct weir_advice *to = weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_ENGINES, fmin(ratio, most));
    if (!to)
        return;
    set_limit(c, to, most < ratio ? WEIR_RESOURCE_ENGINES : limit);
    snprintf(to->what, sizeof to->what, "the GPU's %d engines are idle", setup->jpeg_engines);
    set_option(to, "--decoder auto");
    rise(&c->verdict->found);
}

/* Suggests batches of bytes if conversion to floats, which runs inside decoding but has its own stage, takes much CPU
 * time. Training code can convert instead. */
static void advise_u8(struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    double convert = d->cpu[WEIR_CPU_CONVERT];
    struct weir_change change = weir_change_cheaper(d, weir_demands_worker_cpu_s(d) * fmax(convert, 0), 0);
    bool applies = c->report->setup.normalised && !is_training(c->report) && convert >= WEIR_VERDICT_CONVERT;
    struct weir_advice *to = applies ? predict(c, WEIR_ADVICE_U8, &change) : NULL;
    if (!to)
        return;
    set_option(to, "--dtype u8");
    rise(&c->verdict->found);
}

/* Suggests an index file if opening the dataset took long, because the file saves its result for later runs. */
static void advise_index(struct weir_verdict_case *c)
{
    const struct weir_report_setup *setup = &c->report->setup;
    bool slow = setup->index_s >= WEIR_VERDICT_INDEX_S &&
                setup->index_s >= WEIR_VERDICT_INDEX_PART * c->report->wall_s && !setup->indexed;
    struct weir_advice *to = slow ? weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_INDEX, 0) : NULL;
    if (!to)
        return;
    snprintf(to->what, sizeof to->what, "opening the dataset took %.1f s and is repeated by every run", setup->index_s);
    set_option(to, "--index FILE");
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

void weir_verdict_advise(struct weir_verdict_case *c)
{
    enum { SHOWN = 5 };
    struct weir_diagnosis *found = &c->verdict->found;
    for (int i = 0; i < found->n_causes; i++)
        for (size_t row = 0; row < sizeof advice_for / sizeof advice_for[0]; row++)
            if (advice_for[row].causes & UINT64_C(1) << found->causes[i].cause)
                advice_for[row].advise(c, &found->causes[i]);
    if (found->bound != WEIR_BOUND_UNKNOWN && found->bound != WEIR_BOUND_NO) {
        advise_engines(c);
        advise_u8(c);
        advise_index(c);
    }
    found->n_advices = found->n_advices < SHOWN ? found->n_advices : SHOWN;
}
