#include "analyze/prediction/model.h"

#include "pipeline/offload/upload.h"

#include <math.h>
#include <string.h>

static const double AGREE = 0.005; /* max relative difference of equal rates, measured and simulated */

static double within(double value, double least, double most)
{
    return isfinite(value) ? fmin(fmax(value, least), most) : least;
}

/* ---- distributions ---- */

static double spread_of(const struct weir_loader_report *report)
{
    const struct weir_report_row *row = weir_demands_row(report, "03b_image_decode", WEIR_SIDE_WORKER);
    if (!row || row->count < 30 || row->mean_s <= 0)
        return 0.1;
    return within((row->p90_s - row->p50_s) / 1.28 / row->mean_s, 0, 0.5);
}

/* Models reads that take the median time, except for a few slower ones, so that the mean is correct. */
static void fill_tail(struct weir_simulation *to, const struct weir_loader_report *report)
{
    static const double LEAST = 3, MOST = 1000;
    const struct weir_report_row *row = weir_demands_row(report, "03c_read_bytes", WEIR_SIDE_WORKER);
    if (!row || row->count < 30 || row->p50_s <= 0 || row->mean_s <= row->p50_s)
        return;
    double slow_s = row->p99_s, part = (row->mean_s - row->p50_s) / (slow_s - row->p50_s);
    if (!(slow_s > LEAST * row->p50_s) || part > 0.5) { /* slow reads are rarer than 1 in 100 */
        slow_s = row->max_s;
        part = (row->mean_s - row->p50_s) / (slow_s - row->p50_s);
    }
    if (!(slow_s > LEAST * row->p50_s) || !(part > 0 && part < 0.5))
        return;
    to->slow_times = within(slow_s / row->p50_s, 1, MOST);
    to->slow_part = part;
}

/* ---- the base run ---- */

static double batches_of(const struct weir_loader_report *report)
{
    return (double)report->steps.train_batches + (double)report->steps.val_batches;
}

/* Returns the consumer's CPU time per batch, including busy-waiting in a step. */
static double consumer_cpu_s(const struct weir_demands *d, const struct weir_loader_report *report, double step_s)
{
    double wall_s = report->prof.consumer.wall_s, cpu_s = report->prof.consumer.cpu_s;
    double part = d->workers > 0 && wall_s > 0 ? within(cpu_s / wall_s, 0, 1) : 0;
    double period_s = (report->steps.train_s + report->steps.val_s) / batches_of(report);
    return fmin(part * period_s, step_s);
}

static void fill_task(struct weir_simulation *to, const struct weir_demands *d, const struct weir_loader_report *report)
{
    bool decodes = report->gpu.decode.n_engines > 0;
    double each_s = d->workers / d->rate; /* a worker's wall time per image */
    to->library_s = d->each_s[WEIR_RESOURCE_LIBRARY];
    to->cpu_s = d->of.cpu * each_s;
    to->asleep_s = fmax((d->of.blocked + (decodes ? 0 : d->of.other_waits)) * each_s - to->library_s, 0);
    if (d->workers > 0)
        return;
    /* Without workers, loading takes the time that the step does not take. */
    double load_s = fmax(1 / d->rate - d->each_s[WEIR_RESOURCE_CONSUMER], 0);
    to->asleep_s = fmax(d->of.blocked * load_s - to->library_s, 0);
    to->cpu_s = fmax(load_s - to->asleep_s - to->library_s, 0);
}

static void fill(struct weir_model *model, const struct weir_demands *d, const struct weir_loader_report *report)
{
    struct weir_simulation *to = &model->now;
    double images = model->images_each;
    to->workers = d->workers;
    to->slots = report->setup.slots > 0 ? report->setup.slots : report->queue_slots > 0 ? report->queue_slots : 2;
    to->tasks = (int)fmax(round(images), 1);
    to->cores = d->reachable;
    to->spread = spread_of(report);
    fill_task(to, d, report);
    fill_tail(to, report);
    double per_task = images / to->tasks; /* corrects for a mean batch size that is not an integer */
    to->cpu_s *= per_task / weir_growth_at(to->growth, to->n_growth, d->own_cores);
    to->asleep_s *= per_task;
    to->library_s *= per_task;
    double step_s = d->each_s[WEIR_RESOURCE_CONSUMER] * images;
    to->step_cpu_s = consumer_cpu_s(d, report, step_s);
    to->step_s = step_s - to->step_cpu_s;
    if (report->gpu.used) {
        to->outputs = WEIR_UPLOAD_BATCHES;
        model->feed = d->each_s[WEIR_RESOURCE_BUS] >= d->each_s[WEIR_RESOURCE_ENGINES] ? WEIR_RESOURCE_BUS
                                                                                       : WEIR_RESOURCE_ENGINES;
        to->feed_s = d->each_s[model->feed] * images;
    }
}

/* ---- calibration ---- */

/* Multiplies the times of everything before the consumer by `stretch`. */
static struct weir_simulation stretched(const struct weir_simulation *in, double stretch)
{
    struct weir_simulation out = *in;
    out.cpu_s *= stretch;
    out.asleep_s *= stretch;
    out.library_s *= stretch;
    out.feed_s *= stretch;
    return out;
}

static double simulated_rate(struct weir_model *model, double stretch)
{
    struct weir_simulation in = stretched(&model->now, stretch);
    return weir_simulate(&model->was, &in) == 0 ? model->was.batches_per_s * model->images_each : 0;
}

/* Stretches the times of loading until the simulated rate equals the measured rate. The times then include handovers
 * between threads, short batches at the ends of epochs, and so on. If the consumer hardly waited, its step is stretched
 * instead. */
static void calibrate(struct weir_model *model, double wait)
{
    enum { TRIES = 8 };
    static const double WAITS = 0.1;
    double least = wait > WAITS ? 0.1 : 0.8, most = wait > WAITS ? 20 : 1.35;
    /* If handovers alone make the simulation slower than the run, they cannot have taken that long. */
    if (model->now.handover_s > 0 && simulated_rate(model, least) < model->rate)
        model->now.handover_s = 0;
    double stretch = 1, rate = simulated_rate(model, 1);
    for (int i = 0; i < TRIES && rate > 0 && fabs(rate / model->rate - 1) > AGREE; i++) {
        stretch =
            within(stretch * rate / model->rate, least, most); /* the rate is roughly proportional to 1 / stretch */
        rate = simulated_rate(model, stretch);
    }
    bool agrees = fabs(rate / model->rate - 1) <= 4 * AGREE;
    model->stretch = agrees ? stretch : 1;
    model->now = stretched(&model->now, model->stretch);
    model->simulated = simulated_rate(model, 1);
    if (agrees || wait > WAITS || model->simulated <= model->rate)
        return;
    model->now.step_s *= model->simulated / model->rate;
    model->simulated = simulated_rate(model, 1);
}

void weir_model_calibrate(struct weir_model *model, double wait)
{
    if (!(simulated_rate(model, 1) > 0))
        return;
    calibrate(model, wait);
    model->known = model->simulated > 0;
}

static bool is_sound(const struct weir_demands *d, const struct weir_loader_report *report)
{
    enum {
        WORKERS_MOST = 128,
        IMAGES_MOST = 1000000
    }; /* larger runs would take seconds to simulate; predictions then use bounds only */
    for (int i = 0; i < WEIR_RESOURCES; i++)
        if (!isfinite(d->each_s[i]) || d->each_s[i] < 0)
            return false;
    if (d->workers > WORKERS_MOST || d->images > IMAGES_MOST * batches_of(report))
        return false;
    return d->known && batches_of(report) > 0 && isfinite(d->rate) && d->rate > 0 && isfinite(d->reachable) &&
           d->reachable > 0 && d->workers >= 0;
}

void weir_model_make(struct weir_model *model, const struct weir_demands *demands,
                     const struct weir_loader_report *report, const struct weir_model_facts *facts)
{
    memset(model, 0, sizeof *model);
    if (!is_sound(demands, report))
        return;
    if (facts) {
        model->now.handover_s = facts->handover_s;
        model->now.n_growth = facts->n_growth;
        memcpy(model->now.growth, facts->growth, sizeof model->now.growth);
    }
    model->images_each = demands->images / batches_of(report);
    model->rate = demands->rate;
    fill(model, demands, report);
    const struct weir_report_steps *steps = &report->steps;
    weir_model_calibrate(model, (steps->train_wait_s + steps->val_wait_s) / (steps->train_s + steps->val_s));
}

/* ---- predictions ---- */

static void apply(struct weir_simulation *to, const struct weir_model_change *change)
{
    if (change->workers >= 0)
        to->workers = (int)change->workers;
    if (change->slots >= 1)
        to->slots = (int)change->slots;
    if (change->cores > 0)
        to->cores = change->cores;
    if (change->n_growth > 0) {
        to->n_growth = change->n_growth;
        memcpy(to->growth, change->growth, sizeof to->growth);
    }
    if (change->step_s >= 0)
        to->step_s = change->step_s;
    if (change->step_cpu_s >= 0)
        to->step_cpu_s = change->step_cpu_s;
    to->cpu_s *= change->cpu_times;
    to->asleep_s *= change->asleep_times;
    to->library_s *= change->library_times;
    to->feed_s *= change->feed_times;
    to->step_s *= change->step_times;
    to->step_cpu_s *= change->step_times;
}

double weir_model_predict(const struct weir_model *model, const struct weir_model_change *change,
                          enum weir_resource *limit)
{
    struct weir_simulation in = model->now;
    struct weir_simulated then;
    if (!model->known)
        return 0;
    apply(&in, change);
    if (weir_simulate(&then, &in) < 0)
        return 0;
    if (limit)
        *limit = then.busiest == WEIR_RESOURCE_BUS ? model->feed : then.busiest;
    double ratio = then.batches_per_s * model->images_each / model->simulated;
    return isfinite(ratio) ? ratio : 0;
}

/* Returns the fraction of a time that remains after a saving. */
static double times_left(double all_s, double saved_s)
{
    return all_s > 0 ? within(1 - saved_s / all_s, 0, 1e6) : 1;
}

double weir_model_predict_demands(const struct weir_model *model, const struct weir_demands *demands,
                                  const struct weir_change *demanded, enum weir_resource *limit)
{
    struct weir_model_change change = WEIR_MODEL_AS_IT_IS;
    const double *each_s = demands->each_s;
    double cpu_saved_s = demanded->cpu_s >= 0 ? each_s[WEIR_RESOURCE_CORES] - demanded->cpu_s : 0;
    double asleep_saved_s =
        demanded->worker_s >= 0 ? each_s[WEIR_RESOURCE_WORKERS] - demanded->worker_s - cpu_saved_s : 0;
    /* Tasks per image, corrected for the stretch. */
    double each = model->now.tasks / (model->images_each * model->stretch);
    double growth = weir_growth_at(model->now.growth, model->now.n_growth, demands->own_cores);
    /* The number of workers changes while other processes take cores. */
    bool shares = demanded->workers > 0 && demands->reachable < demands->usable;
    if (!model->known || demands->workers == 0 || shares)
        return 0;
    change.cpu_times = times_left(model->now.cpu_s * growth * each, cpu_saved_s);
    change.asleep_times = times_left(model->now.asleep_s * each, asleep_saved_s);
    if (demanded->library_s >= 0 && each_s[WEIR_RESOURCE_LIBRARY] > 0)
        change.library_times = demanded->library_s / each_s[WEIR_RESOURCE_LIBRARY];
    change.cores = demanded->cores;
    if (demanded->workers > 0)
        change.workers = demanded->workers;
    return weir_model_predict(model, &change, limit);
}
