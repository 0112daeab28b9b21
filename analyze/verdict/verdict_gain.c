/* Predicts the gain of a run without each of its causes: the lowest bound after a change divided by the lowest bound
 * before it. So a change that makes one resource cheaper gains no more than the next resource allows. */
#include "analyze/verdict/verdict_priv.h"

#include <math.h>

double weir_verdict_predict(const struct weir_verdict *verdict, const struct weir_change *change,
                            enum weir_resource *limit)
{
    double ratio = weir_demands_predict(&verdict->demands, change, limit);
    /* If two resources are nearly balanced, the rate stays below the bounds of both; the simulation shows this. */
    double simulated = weir_model_predict_demands(&verdict->model, &verdict->demands, change, NULL);
    return simulated > 0 ? fmin(ratio, simulated) : ratio;
}

/* ---- changes ---- */

double weir_demands_worker_cpu_s(const struct weir_demands *d)
{
    double on_and_off = d->of.cpu + d->of.blocked;
    if (d->workers > 0)
        return d->rate > 0 ? d->of.cpu * d->workers / d->rate : d->each_s[WEIR_RESOURCE_CORES];
    return on_and_off > 0 ? d->load_s * d->of.cpu / on_and_off : d->each_s[WEIR_RESOURCE_CORES];
}

double weir_demands_asleep_s(const struct weir_demands *d)
{
    if (d->workers > 0)
        return d->rate > 0 ? (d->of.blocked + d->of.library) * d->workers / d->rate : 0;
    return fmax(d->load_s - weir_demands_worker_cpu_s(d), 0);
}

struct weir_change weir_change_cheaper(const struct weir_demands *d, double cpu_saved_s, double asleep_saved_s)
{
    struct weir_change change = WEIR_NO_CHANGE;
    change.cpu_s = fmax(d->each_s[WEIR_RESOURCE_CORES] - cpu_saved_s, 1e-9);
    double load_s = fmax(d->each_s[WEIR_RESOURCE_WORKERS] - d->each_s[WEIR_RESOURCE_CONSUMER], 0);
    /* Waits for a core make loading take longer. */
    double stretch = d->workers == 0 && d->load_s > 0 ? fmax(load_s / d->load_s, 1) : 1;
    change.worker_s = fmax(d->each_s[WEIR_RESOURCE_WORKERS] - stretch * (cpu_saved_s + asleep_saved_s), 1e-9);
    return change;
}

/* Enough workers to use the cores that other processes leave. More workers than cores help only if they sleep in tasks;
 * each of them is then assumed to sleep as much as now. */
struct weir_change weir_change_more_workers(const struct weir_demands *d)
{
    double ready = d->of.cpu + d->of.core_wait + d->of.throttled, at_work = d->workers > 0 ? 1 : ready + d->of.blocked;
    double busy = fmax(at_work > 0 ? ready / at_work : 1, 0.02);
    bool asleep = d->of.blocked >= WEIR_VERDICT_BLOCKED;
    double n = asleep ? round(d->left / busy) : floor(d->left + 0.25);
    struct weir_change change = WEIR_NO_CHANGE;
    change.workers = fmin(fmax(n, d->workers + 1), 4 * fmax(d->workers, d->usable));
    if (d->workers == 0) /* loading then runs alongside the step instead of alternating with it */
        change.worker_s = d->load_s;
    return change;
}

struct weir_change weir_change_free_cores(const struct weir_demands *d)
{
    struct weir_change change = WEIR_NO_CHANGE;
    double n = floor(d->usable + 0.25);
    bool more = n > d->workers;
    change.workers = more ? n : d->workers + 1;
    change.cores = more ? d->usable : d->reachable + 1;
    return change;
}

struct weir_change weir_change_no_taker(const struct weir_demands *d, const struct weir_verdict_cause *cause,
                                        const struct weir_loader_report *report)
{
    static const double STOLEN_MOST = 0.9;
    struct weir_change change = WEIR_NO_CHANGE;
    double others = fmax(report->prof.machine.others_cores, 0);
    if (cause->cause == WEIR_CAUSE_HOST) { /* stolen time is part of the threads' CPU time, so reduce that */
        double stolen = cause->host.steal_cores / fmax(d->own_cores + others, 1e-9);
        return weir_change_cheaper(d, fmin(stolen, STOLEN_MOST) * weir_demands_worker_cpu_s(d), 0);
    }
    change.cores = d->usable;
    if (cause->cause == WEIR_CAUSE_QUOTA) /* twice the quota, or all cores of the machine if they are fewer */
        change.cores = fmin(fmax(2 * d->usable, 1), report->prof.machine.online > 0 ? report->prof.machine.online : 1);
    return change;
}

struct weir_change weir_change_no_slow_source(const struct weir_demands *d, const struct weir_verdict_cause *cause)
{
    double each_s = cause->source.each_s;
    double saved = each_s > 0 ? cause->share * fmax(1 - cause->source.others_s / each_s, 0) : 0;
    return weir_change_cheaper(d, 0, saved * weir_demands_asleep_s(d));
}

/* ---- one gain per cause ---- */

/* Removes the stage's CPU time, and for a decoder in which workers sleep, also this sleep. */
static struct weir_change no_compute(const struct weir_demands *d, const struct weir_verdict_cause *cause)
{
    bool asleep =
        cause->cause == WEIR_CAUSE_DECODE && d->of.blocked >= WEIR_VERDICT_BLOCKED && d->blocked_decode >= 0.5;
    return weir_change_cheaper(d, fmax(cause->share, 0) * weir_demands_worker_cpu_s(d),
                               asleep ? d->blocked_decode * weir_demands_asleep_s(d) : 0);
}

static struct weir_change no_library(const struct weir_demands *d)
{
    struct weir_change change = weir_change_cheaper(d, 0, weir_demands_asleep_s(d));
    change.library_s = 0;
    return change;
}

/* Gain if no thread waits for another, so that the rate is the lowest bound. */
static double balanced(const struct weir_demands *d)
{
    return d->rate > 0 ? d->bound_rate / d->rate : 0;
}

/* Returns the gain if the resource of this cause had no bound, so that the lowest of the other bounds applies. */
static double without(const struct weir_demands *d, enum weir_cause cause)
{
    enum weir_resource resource = cause == WEIR_CAUSE_BUS           ? WEIR_RESOURCE_BUS
                                  : cause == WEIR_CAUSE_GPU_DECODER ? WEIR_RESOURCE_ENGINES
                                                                    : WEIR_RESOURCE_CONSUMER;
    double next = INFINITY;
    for (int i = 0; i < WEIR_RESOURCES; i++)
        if (i != (int)resource && d->bound[i] > 0)
            next = fmin(next, d->bound[i]);
    return isfinite(next) && d->rate > 0 ? next / d->rate : 0;
}

double weir_verdict_gain(const struct weir_verdict *verdict, const struct weir_verdict_cause *cause,
                         const struct weir_loader_report *report)
{
    const struct weir_demands *d = &verdict->demands;
    struct weir_change change = WEIR_NO_CHANGE;
    switch (cause->cause) {
    case WEIR_CAUSE_DECODE:
    case WEIR_CAUSE_INFLATE:
    case WEIR_CAUSE_CONVERT:
    case WEIR_CAUSE_READ_CPU:
    case WEIR_CAUSE_OTHER_CPU:
        change = no_compute(d, cause);
        break;
    case WEIR_CAUSE_STORAGE:
    case WEIR_CAUSE_STORAGE_BANDWIDTH:
    case WEIR_CAUSE_STORAGE_LATENCY:
    case WEIR_CAUSE_STORAGE_TAIL:
        change = weir_change_cheaper(d, 0, weir_demands_asleep_s(d));
        break;
    case WEIR_CAUSE_SLOW_CAMERA:
    case WEIR_CAUSE_SLOW_FILE:
        change = weir_change_no_slow_source(d, cause);
        break;
    case WEIR_CAUSE_COLD:
        if (cause->cold.later_rate > 0 && cause->cold.first_rate > 0)
            return cause->cold.later_rate / cause->cold.first_rate;
        change = weir_change_cheaper(d, 0, weir_demands_asleep_s(d));
        break;
    case WEIR_CAUSE_FEW_IN_FLIGHT:
    case WEIR_CAUSE_SERVER_LATENCY:
    case WEIR_CAUSE_SERVER_BANDWIDTH:
    case WEIR_CAUSE_SERVER_LIMIT:
        change = weir_change_no_server(d, report);
        break;
    case WEIR_CAUSE_LIBRARY:
        change = no_library(d);
        break;
    case WEIR_CAUSE_BUS:
    case WEIR_CAUSE_GPU_DECODER:
    case WEIR_CAUSE_CONSUMER:
        return without(d, cause->cause);
    case WEIR_CAUSE_SLOW_WORKER:
    case WEIR_CAUSE_BURSTS:
        return balanced(d);
    case WEIR_CAUSE_TOO_FEW_WORKERS:
        change = weir_change_more_workers(d);
        break;
    case WEIR_CAUSE_BUSY_WORKERS:
        change = weir_change_free_cores(d);
        break;
    case WEIR_CAUSE_TOO_MANY_WORKERS:
    case WEIR_CAUSE_QUOTA:
    case WEIR_CAUSE_HOST:
    case WEIR_CAUSE_NEIGHBOURS:
        change = weir_change_no_taker(d, cause, report);
        break;
    case WEIR_CAUSE_MEMORY_BANDWIDTH:
        change = weir_change_cheaper(d, (1 - 1 / fmax(cause->share, 1)) * weir_demands_worker_cpu_s(d), 0);
        break;
    default:
        return 0; /* cannot tell */
    }
    return weir_verdict_predict(verdict, &change, NULL);
}
