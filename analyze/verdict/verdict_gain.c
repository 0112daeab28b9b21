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
