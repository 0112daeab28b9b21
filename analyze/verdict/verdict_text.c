/* Writes the sentence of each cause, with numbers from the report. Sentences are always in English; `--lang zh` applies
 * only to the table and the epoch line. */
#include "analyze/verdict/verdict_priv.h"
#include "base/numbers.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

/* Input of the functions that write sentences. */
struct telling {
    FILE *out;
    const struct weir_verdict *verdict;
    const struct weir_loader_report *report;
};

/* Formats a time as in the tables, such as "7.6us". */
static const char *time_text(char text[24], double s)
{
    if (s < 1e-3)
        snprintf(text, 24, "%.1fus", s * 1e6);
    else if (s < 1)
        snprintf(text, 24, "%.2fms", s * 1e3);
    else
        snprintf(text, 24, "%.2fs", s);
    return text;
}

static void say_others(const struct telling *t)
{
    double others = t->report->prof.machine.others_cores;
    if (others >= WEIR_VERDICT_OTHERS)
        fprintf(t->out, " (other processes use %.2f cores)", others);
}

/* ---- no verdict ---- */

static void say_doubt(const struct telling *t, const struct weir_verdict_cause *cause)
{
    const char *what = t->report->steps.validation ? "validation" : "training";
    fputs("cannot tell, because ", t->out);
    switch (cause->doubt.why) {
    case WEIR_DOUBT_NO_TIMING:
        fputs("stage timing was off (--no-timing)", t->out);
        break;
    case WEIR_DOUBT_NO_FIGURES:
        fputs("no batch or no image was delivered, or the log is from a version without these figures", t->out);
        break;
    case WEIR_DOUBT_TOO_SHORT:
        fprintf(
            t->out,
            "the run was too short: %.0f %s batches in %.2f s (a verdict needs %d in %.1f s or more, or %d in %.1f s)",
            (double)cause->doubt.batches, what, cause->doubt.seconds, WEIR_VERDICT_BATCHES_LEAST,
            WEIR_VERDICT_SECONDS_LEAST, WEIR_VERDICT_BATCHES_LONG, WEIR_VERDICT_SECONDS_LONG);
        break;
    case WEIR_DOUBT_OTHER:
        fprintf(t->out, "%.0f %% of the workers' time is in no stage", weir_percent(cause->share));
        break;
    case WEIR_DOUBT_EPOCHS:
        fprintf(t->out, "epochs differ too much, from %.0f to %.0f images/s", cause->doubt.slowest,
                cause->doubt.fastest);
        break;
    case WEIR_DOUBT_SAMPLED:
        fputs("CPU time was only sampled, with too few samples to attribute it to stages", t->out);
        break;
    case WEIR_DOUBT_NO_RESOURCE:
        fprintf(t->out,
                "no resource is near its limit: this run uses %.0f %% of the usable cores, and the workers are "
                "busy %.0f %% of their time",
                weir_percent(cause->doubt.cores_used), weir_percent(cause->doubt.at_work));
        say_others(t);
        break;
    }
}

/* ---- the consumer ---- */

static void say_core_wait(const struct telling *t, const struct weir_verdict_cause *cause, bool simulated)
{
    if (cause->consumer.core_wait <= 0)
        return;
    fprintf(t->out,
            simulated ? ": its thread waits for a core %.0f %% of the time" : ", and waits for one %.0f %% of the time",
            weir_percent(cause->consumer.core_wait));
    say_others(t);
}

static void say_consumer(const struct telling *t, const struct weir_verdict_cause *cause)
{
    double busy = weir_percent(cause->consumer.busy);
    if (cause->consumer.traced) {
        weir_verdict_say_idle(t->out, t->report);
        return;
    }
    weir_verdict_say_step(t->out, t->report);
    bool simulated =
        t->report->steps.step_ms > 0 && !t->report->gpu.used; /* sleeps or spins, so CPU time says nothing */
    switch (cause->consumer.kind) {
    case WEIR_CONSUMER_COMPUTING:
        if (t->report->gpu.used)
            fprintf(t->out, ": the GPU is busy %.0f %% of the time", busy);
        else if (!simulated)
            fprintf(t->out, ": its thread uses a core %.0f %% of the time", busy);
        say_core_wait(t, cause, simulated);
        break;
    case WEIR_CONSUMER_SYNC_BOUND:
        fprintf(t->out,
                ", and it is sync-bound: the host waits for each step before it launches the next, and the GPU is "
                "busy only %.0f %% of the time",
                busy);
        break;
    case WEIR_CONSUMER_LAUNCH_BOUND:
        fprintf(t->out,
                ", but the GPU is busy only %.0f %% of the time: the step is launch-bound or allocates memory; a "
                "trace shows which",
                busy);
        break;
    case WEIR_CONSUMER_UNKNOWN:
        if (!simulated)
            fprintf(t->out, ": its thread uses a core %.0f %% of the time", busy);
        say_core_wait(t, cause, simulated);
        if (!simulated)
            fputs("; GPU events or a trace would show what else it waits for", t->out);
        break;
    }
}

/* ---- use of the cores ---- */

/* Returns the word before "decoding", such as "JPEG ", or "" for raw frames. */
static const char *kind_text(const struct weir_report_setup *setup, char text[24])
{
    snprintf(text, 24, "%s ", weir_frame_kind_title(setup->kind));
    return setup->encoded ? text : "";
}

/* Names a camera whose images are far slower to decode than those of the other cameras, if there is one. */
static void say_heavy_camera(const struct telling *t)
{
    double share, others_s;
    char a[24], b[24];
    int camera = weir_verdict_heavy_camera(&t->report->sources, &share, &others_s);
    if (camera >= 0)
        fprintf(t->out, "; %.0f %% of it is for camera %s (%s per image, %s for the other cameras)",
                weir_percent(share), t->report->sources.cameras[camera].name,
                time_text(a, t->report->sources.cameras[camera].decode.p50_s), time_text(b, others_s));
}

/* As the first cause, the sentence says that the cores are the limit. After another cause, it only says what the cores
 * are used for. */
static void say_compute(const struct telling *t, const struct weir_verdict_cause *cause)
{
    static const char *const names[] = {
        [WEIR_CAUSE_DECODE] = "decoding",
        [WEIR_CAUSE_INFLATE] = "unpacking compressed chunks (inflate)",
        [WEIR_CAUSE_CONVERT] = "conversion to floats",
        [WEIR_CAUSE_READ_CPU] = "copying from the page cache",
        [WEIR_CAUSE_OTHER_CPU] = "copying frames and completing batches",
    };
    const struct weir_demands *d = &t->verdict->demands;
    bool decode = cause->cause == WEIR_CAUSE_DECODE;
    char text[24];
    const char *name = names[cause->cause], *kind = decode ? kind_text(&t->report->setup, text) : "";
    bool busy = cause->compute.own_cores >= WEIR_VERDICT_CORES_BUSY * cause->compute.usable;
    if (decode && d->blocked_decode >= 0.5 && d->of.blocked >= WEIR_VERDICT_BLOCKED) {
        fprintf(t->out, "%s%s is the limit: the workers spend %.0f %% of their time in it without using a core", kind,
                name, weir_percent(d->of.blocked));
        return;
    }
    if (cause == &t->verdict->causes[0] && busy)
        fprintf(t->out, "the CPU cores are the limit: this run keeps %.2f of %.3g usable cores busy, and ",
                cause->compute.own_cores, cause->compute.usable);
    fprintf(t->out, "%s%s takes %.0f %% of %s CPU time", kind, name, weir_percent(cause->share),
            d->workers > 0 ? "the workers'" : "loading's");
    if (decode)
        say_heavy_camera(t);
}

static void say_memory_bandwidth(const struct telling *t, const struct weir_verdict_cause *cause)
{
    fprintf(t->out,
            "the CPU time per image is %.2f times that with one worker: memory bandwidth, hyper-threading or a lower "
            "clock frequency; only hardware counters can tell these apart",
            cause->share);
}

/* ---- storage ---- */

static void say_storage(const struct telling *t, const struct weir_verdict_cause *cause)
{
    static const struct {
        const char *what, *more;
    } words[] = {
        [WEIR_CAUSE_STORAGE] = {"storage", "; this run cannot distinguish bandwidth from latency"},
        [WEIR_CAUSE_STORAGE_BANDWIDTH] = {"storage bandwidth", ", and more concurrent reads give no higher throughput"},
        [WEIR_CAUSE_STORAGE_LATENCY] = {"storage latency", ", and more concurrent reads give a higher throughput"},
    };
    char a[24];
    fprintf(t->out,
            "%s is the limit: the workers wait for reads %.0f %% of their time (median %s, %.1f MB/s in total)%s",
            words[cause->cause].what, weir_percent(cause->share), time_text(a, cause->storage.p50_s),
            cause->storage.bytes_per_s / 1e6, words[cause->cause].more);
}

static void say_server(const struct telling *t, const struct weir_verdict_cause *cause)
{
    const struct weir_report_server *server = &t->report->server;
    const char *host = *server->host ? server->host : "the server";
    char a[24], b[24];
    double wait = weir_percent(cause->share);
    time_text(a, cause->server.first_byte_s);
    time_text(b, cause->server.least_s);
    if (cause->cause == WEIR_CAUSE_FEW_IN_FLIGHT)
        fprintf(t->out,
                "too few requests to %s are in flight: %.0f on average, at most %d%s, with %s to the first byte; the "
                "workers wait for them %.0f %% of their time",
                host, server->in_flight, server->limit, server->limit_fixed ? " (--io-depth)" : "", a, wait);
    else if (cause->cause == WEIR_CAUSE_SERVER_LATENCY)
        fprintf(t->out,
                "the latency of %s is the limit: %s to the first byte of a request; the workers wait for requests %.0f "
                "%% of their time, with only %.0f in flight on average",
                host, a, wait, server->in_flight);
    else if (cause->cause == WEIR_CAUSE_SERVER_BANDWIDTH)
        fprintf(t->out,
                "the bandwidth of %s, or of the link to it, is the limit: %.1f MB/s; with %.0f requests in flight, the "
                "first byte takes %s (at least %s), and the workers wait %.0f %% of their time",
                host, cause->server.bytes_per_s / 1e6, server->in_flight, a, b, wait);
    else
        fprintf(t->out,
                "%s limits the requests: it refused %.0f %% of them (429, 503), and the workers wait for requests %.0f "
                "%% of their time",
                host, weir_percent((double)server->limited / (double)server->requests), wait);
}

static void say_tail(const struct telling *t, const struct weir_verdict_cause *cause)
{
    char a[24], b[24];
    fprintf(
        t->out,
        "a few slow reads are the limit: the slowest tenth takes %.0f %% of the total reading time (p99 %s, median %s)",
        weir_percent(cause->share), time_text(a, cause->tail.p99_s), time_text(b, cause->tail.p50_s));
}

static void say_source(const struct telling *t, const struct weir_verdict_cause *cause)
{
    char a[24], b[24];
    bool decode = cause->source.decode;
    time_text(a, cause->source.each_s);
    time_text(b, cause->source.others_s);
    if (cause->cause == WEIR_CAUSE_SLOW_FILE)
        fprintf(t->out,
                "file %s is slow to read: %s per read (mean), compared with %s for the median file; it takes %.0f %% "
                "of the total reading time",
                cause->source.name, a, b, weir_percent(cause->share));
    else
        fprintf(t->out,
                "camera %s is slow to %s: %s per %s (median), compared with %s for the other cameras; it takes %.0f %% "
                "of the total %s time",
                cause->source.name, decode ? "decode" : "read", a, decode ? "image" : "read", b,
                weir_percent(cause->share), decode ? "decoding" : "reading");
}

static void say_cold(const struct telling *t, const struct weir_verdict_cause *cause)
{
    fprintf(t->out, "the page cache was cold: %.0f %% of the first epoch's bytes came from storage, at %.0f images/s",
            weir_percent(cause->share), cause->cold.first_rate);
    if (cause->cold.later_rate > 0)
        fprintf(t->out, "; later epochs ran at %.0f", cause->cold.later_rate);
}

/* ---- workers and batches ---- */

static void say_slow_worker(const struct telling *t, const struct weir_verdict_cause *cause)
{
    double share = weir_percent(cause->share), others = weir_percent(cause->worker.others_share);
    if (cause->worker.on_core)
        fprintf(t->out,
                "worker %s is slow: it is busy %.0f %% of its time, compared with %.0f %% for the others, and training "
                "waits for it",
                cause->worker.name, share, others);
    else
        fprintf(t->out,
                "worker %s is slow: it spends %.0f %% of its time inside tasks without using a core, compared with "
                "%.0f %% for the others",
                cause->worker.name, share, others);
}

static void say_too_few_workers(const struct telling *t, const struct weir_verdict_cause *cause)
{
    if (cause->count.workers < 1)
        fprintf(t->out,
                "there are no workers: loading and the training step alternate on one thread, while %.3g cores are "
                "usable",
                cause->count.cores);
    else
        fprintf(t->out,
                "too few workers: %.0f, busy %.0f %% of the time, but this run uses only %.2f of %.3g usable cores",
                cause->count.workers, weir_percent(cause->share), t->verdict->demands.own_cores, cause->count.cores);
    say_others(t);
}

/* Names the cores that other processes use in place of more workers. */
static void say_busy_workers(const struct telling *t, const struct weir_verdict_cause *cause)
{
    const struct weir_report_machine *machine = &t->report->prof.machine;
    double busy = weir_percent(cause->share);
    if (cause->count.workers == 1)
        fprintf(t->out, "the one worker is the limit: it is busy %.0f %% of the time", busy);
    else
        fprintf(t->out, "the %.0f workers are the limit: they are busy %.0f %% of the time", cause->count.workers,
                busy);
    if (machine->others_cores >= WEIR_VERDICT_OTHERS * cause->count.cores)
        fprintf(t->out,
                ", and other processes use the other core%s (of %d cores, they use %.2f and this run uses %.2f)",
                machine->cores - cause->count.workers >= 2 ? "s" : "", machine->cores, machine->others_cores,
                t->verdict->demands.own_cores);
}

static void say_too_many_workers(const struct telling *t, const struct weir_verdict_cause *cause)
{
    fprintf(t->out,
            "too many workers for the cores: %.0f workers share %.3g cores and wait for a core %.0f %% of their time",
            cause->count.workers, cause->count.cores, weir_percent(cause->share));
}

static void say_bursts(const struct telling *t, const struct weir_verdict_cause *cause)
{
    fprintf(t->out,
            "too few batches are prefetched (--prefetch %d): the workers are idle %.0f %% of their time, but "
            "training still waits%s",
            cause->bursts.slots > 2 ? cause->bursts.slots - 1 : 1, weir_percent(cause->share),
            cause->bursts.uneven_steps ? ", because a few steps take far longer than the others" : "");
}

/* ---- the machine ---- */

static void say_quota(const struct telling *t, const struct weir_verdict_cause *cause)
{
    fprintf(t->out,
            "the CPU quota of %.3g cores is the limit: it was used up in %.0f %% of its periods, and the workers were "
            "throttled %.0f %% of their time",
            cause->quota.cores, weir_percent(cause->quota.periods_share), weir_percent(cause->share));
}

static void say_host(const struct telling *t, const struct weir_verdict_cause *cause)
{
    fprintf(t->out, "the host takes CPU time: the hypervisor gave %.2f of the %.3g cores to other guests (steal)",
            cause->host.steal_cores, t->verdict->demands.usable);
}

static void say_neighbours(const struct telling *t, const struct weir_verdict_cause *cause)
{
    bool workers = t->verdict->demands.workers > 0;
    fprintf(t->out, "other processes take CPU time: %s for a core %.0f %% of %s time",
            workers ? "the workers wait" : "loading waits", weir_percent(cause->share), workers ? "their" : "its");
    if (cause->neighbours.others_cores < 0)
        fprintf(t->out, ", so this run gets only %.2f cores", cause->neighbours.own_cores);
    else
        fprintf(t->out, "; of %d cores, they use %.2f and this run uses %.2f", t->report->prof.machine.cores,
                cause->neighbours.others_cores, cause->neighbours.own_cores);
}

/* ---- resources that serve one request at a time ---- */

static void say_library(const struct telling *t, const struct weir_verdict_cause *cause)
{
    fprintf(t->out,
            "the HDF5 library is the limit: frames that only it can read go through one helper process, which is busy "
            "%.0f %% of the time; %.1f workers wait for it on average",
            weir_percent(cause->share), cause->library.waiting);
}

static void say_bus(const struct telling *t, const struct weir_verdict_cause *cause)
{
    fprintf(t->out, "copies to the GPU are the limit: the bus is busy %.0f %% of the time, at %.2f GB/s",
            weir_percent(cause->share), fmax(cause->bus.bytes_per_s, 0) / 1e9);
}

static void say_gpu_decoder(const struct telling *t, const struct weir_verdict_cause *cause)
{
    fprintf(t->out, "the GPU's JPEG engines are the limit: they are busy %.0f %% of the time",
            weir_percent(cause->share));
}

/* ---- the table ---- */

static void (*const say[])(const struct telling *t, const struct weir_verdict_cause *cause) = {
    [WEIR_CAUSE_CANNOT_TELL] = say_doubt,
    [WEIR_CAUSE_CONSUMER] = say_consumer,
    [WEIR_CAUSE_DECODE] = say_compute,
    [WEIR_CAUSE_INFLATE] = say_compute,
    [WEIR_CAUSE_CONVERT] = say_compute,
    [WEIR_CAUSE_READ_CPU] = say_compute,
    [WEIR_CAUSE_OTHER_CPU] = say_compute,
    [WEIR_CAUSE_STORAGE] = say_storage,
    [WEIR_CAUSE_STORAGE_BANDWIDTH] = say_storage,
    [WEIR_CAUSE_STORAGE_LATENCY] = say_storage,
    [WEIR_CAUSE_STORAGE_TAIL] = say_tail,
    [WEIR_CAUSE_SLOW_CAMERA] = say_source,
    [WEIR_CAUSE_SLOW_FILE] = say_source,
    [WEIR_CAUSE_SLOW_WORKER] = say_slow_worker,
    [WEIR_CAUSE_LIBRARY] = say_library,
    [WEIR_CAUSE_BUS] = say_bus,
    [WEIR_CAUSE_GPU_DECODER] = say_gpu_decoder,
    [WEIR_CAUSE_BURSTS] = say_bursts,
    [WEIR_CAUSE_TOO_FEW_WORKERS] = say_too_few_workers,
    [WEIR_CAUSE_BUSY_WORKERS] = say_busy_workers,
    [WEIR_CAUSE_TOO_MANY_WORKERS] = say_too_many_workers,
    [WEIR_CAUSE_QUOTA] = say_quota,
    [WEIR_CAUSE_HOST] = say_host,
    [WEIR_CAUSE_NEIGHBOURS] = say_neighbours,
    [WEIR_CAUSE_MEMORY_BANDWIDTH] = say_memory_bandwidth,
    [WEIR_CAUSE_COLD] = say_cold,
    [WEIR_CAUSE_FEW_IN_FLIGHT] = say_server,
    [WEIR_CAUSE_SERVER_LATENCY] = say_server,
    [WEIR_CAUSE_SERVER_BANDWIDTH] = say_server,
    [WEIR_CAUSE_SERVER_LIMIT] = say_server,
};

void weir_verdict_sentence(char *text, size_t size, const struct weir_verdict *verdict,
                           const struct weir_verdict_cause *cause, const struct weir_loader_report *report)
{
    struct telling t = {fmemopen(text, size, "w"), verdict, report};
    text[0] = '\0';
    if (!t.out)
        return;
    say[cause->cause](&t, cause);
    fputc('\0', t.out);
    fclose(t.out);
    text[size - 1] = '\0';
    weir_text_printable(text);
}
