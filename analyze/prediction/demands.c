#include "analyze/prediction/demands.h"
#include "analyze/causes/thresholds.h"

#include <math.h>
#include <string.h>

const char *weir_resource_name(enum weir_resource resource)
{
    static const char *const names[WEIR_RESOURCES] = {
        [WEIR_RESOURCE_CORES] = "cores", [WEIR_RESOURCE_WORKERS] = "workers", [WEIR_RESOURCE_LIBRARY] = "library",
        [WEIR_RESOURCE_BUS] = "bus",     [WEIR_RESOURCE_ENGINES] = "engines", [WEIR_RESOURCE_CONSUMER] = "consumer",
    };
    return names[resource];
}

const char *weir_resource_text(enum weir_resource resource)
{
    static const char *const texts[WEIR_RESOURCES] = {
        [WEIR_RESOURCE_CORES] = "cores",   [WEIR_RESOURCE_WORKERS] = "workers",
        [WEIR_RESOURCE_BUS] = "bus",       [WEIR_RESOURCE_LIBRARY] = "HDF5 helper process",
        [WEIR_RESOURCE_CONSUMER] = "step", [WEIR_RESOURCE_ENGINES] = "GPU's decoders",
    };
    return texts[resource];
}

const struct weir_report_row *weir_demands_row(const struct weir_loader_report *report, const char *name,
                                               enum weir_report_side side)
{
    const struct weir_report_row *rows = side == WEIR_SIDE_GPU ? report->gpu.rows : report->prof.rows;
    int n = side == WEIR_SIDE_GPU ? report->gpu.n_rows : report->prof.n_rows;
    for (int i = 0; i < n; i++)
        if (rows[i].count > 0 && rows[i].side == side && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static double self_of(const struct weir_loader_report *report, const char *name)
{
    const struct weir_report_row *row = weir_demands_row(report, name, WEIR_SIDE_WORKER);
    return row ? row->self_s : 0;
}

/* ---- workers ---- */

struct sums {
    double wall_s, cpu_s, throttled_s, core_wait_s, blocked_s, wait_s, unattributed_s;
    bool delay_known;
};

static void add_workers(struct sums *sums, const struct weir_report *prof)
{
    sums->delay_known = prof->n_workers > 0;
    for (int i = 0; i < prof->n_workers; i++) {
        const struct weir_report_worker *worker = &prof->workers[i];
        sums->wall_s += worker->wall_s;
        sums->cpu_s += worker->cpu_s;
        sums->wait_s += worker->wait_s;
        sums->unattributed_s += worker->unattributed_s;
        sums->delay_known = sums->delay_known && worker->core_wait_s >= 0;
        sums->throttled_s += fmax(worker->throttled_s, 0);
        sums->core_wait_s += fmax(worker->core_wait_s, 0);
        sums->blocked_s += fmax(worker->blocked_s, 0);
    }
    if (!sums->delay_known) /* unknown; count all time off a core as asleep */
        sums->blocked_s = fmax(sums->wall_s - sums->cpu_s, 0);
}

/* Returns the time that workers were asleep in wait stages, which is the stages' time without CPU time and waits for a
 * core. */
static double waits_asleep(const struct weir_loader_report *report)
{
    double sum_s = 0;
    for (int i = 0; i < report->prof.n_rows; i++) {
        const struct weir_report_row *row = &report->prof.rows[i];
        if (row->kind == WEIR_KIND_WAIT && row->side == WEIR_SIDE_WORKER)
            sum_s += fmax(row->self_s - fmax(row->cpu_s, 0) - fmax(row->preempted_s, 0), 0);
    }
    return sum_s;
}

static void fill_worker_time(struct weir_demands *d, const struct weir_loader_report *report, const struct sums *sums)
{
    struct weir_worker_time *of = &d->of;
    double idle_s = self_of(report, "09_wait_for_slot") + self_of(report, "09b_wait_for_work");
    double library_s = self_of(report, "09c_wait_for_library");
    double others_s = self_of(report, "09d_wait_for_gpu_decode") + self_of(report, "09e_wait_for_read_ahead");
    of->cpu = sums->cpu_s / sums->wall_s;
    of->throttled = sums->throttled_s / sums->wall_s;
    of->core_wait = sums->core_wait_s / sums->wall_s;
    of->idle = fmin(idle_s / sums->wall_s, 1);
    of->library = library_s / sums->wall_s;
    of->other_waits = others_s / sums->wall_s;
    of->unattributed = sums->unattributed_s / sums->wall_s;
    of->blocked = fmax(sums->blocked_s - waits_asleep(report), 0) / sums->wall_s;
}

/* Without workers, the consumer's thread also runs the step, so the cost of loading is taken from the stages. */
static void fill_inline_time(struct weir_demands *d, const struct weir_loader_report *report)
{
    double wall_s = 0, cpu_s = 0, off_s = 0;
    for (int i = 0; i < report->prof.n_rows; i++) {
        const struct weir_report_row *row = &report->prof.rows[i];
        if (row->kind != WEIR_KIND_WORK || row->side != WEIR_SIDE_WORKER)
            continue;
        wall_s += row->self_s;
        cpu_s += row->cpu_s >= 0 ? row->cpu_s : row->self_s;
        off_s += row->cpu_s >= 0 ? fmax(row->self_s - row->cpu_s - fmax(row->preempted_s, 0), 0) : 0;
    }
    if (wall_s <= 0)
        return;
    d->load_s = (cpu_s + off_s) / d->images;
    d->of.cpu = cpu_s / wall_s;
    d->of.blocked = off_s / wall_s;
    d->of.core_wait = fmax(1 - d->of.cpu - d->of.blocked, 0);
}

/* ---- stages ---- */

static enum weir_cpu_part part_of(const char *name)
{
    static const struct {
        const char *begins;
        enum weir_cpu_part part;
    } parts[] = {{"03b_", WEIR_CPU_DECODE}, {"03j_", WEIR_CPU_DECODE}, {"03d_", WEIR_CPU_INFLATE},
                 {"05_", WEIR_CPU_CONVERT}, {"03c_", WEIR_CPU_READ},   {"03e_", WEIR_CPU_COPY},
                 {"03f_", WEIR_CPU_COPY},   {"03g_", WEIR_CPU_COPY},   {"03h_", WEIR_CPU_COPY}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strncmp(name, parts[i].begins, strlen(parts[i].begins)) == 0)
            return parts[i].part;
    return WEIR_CPU_REST;
}

static bool is_work(const struct weir_report_row *row)
{
    return row->kind == WEIR_KIND_WORK && row->count > 0 &&
           (row->side == WEIR_SIDE_WORKER || row->side == WEIR_SIDE_HELPER);
}

/* If a stage has too few samples of the CPU clock, all its time counts as CPU time (none for reads). The parts are set
 * to unknown if such stages take most of the time and threads often waited or slept. */
static void fill_cpu(struct weir_demands *d, const struct weir_loader_report *report)
{
    double sum_s = 0, self_s = 0, decode_s = 0, unknown_s = 0;
    double by_part[WEIR_CPU_PARTS] = {0};
    for (int i = 0; i < report->prof.n_rows; i++) {
        const struct weir_report_row *row = &report->prof.rows[i];
        if (!is_work(row))
            continue;
        enum weir_cpu_part part = part_of(row->name);
        double cpu_s = row->cpu_s >= 0 ? row->cpu_s : part == WEIR_CPU_READ ? 0 : row->self_s;
        by_part[part] += cpu_s;
        sum_s += cpu_s;
        self_s += row->self_s;
        decode_s += part == WEIR_CPU_DECODE || part == WEIR_CPU_CONVERT ? row->self_s : 0;
        unknown_s += row->cpu_s < 0 ? row->self_s : 0;
    }
    bool vague = d->of.core_wait + d->of.throttled + d->of.blocked > 0.1 && unknown_s > 0.5 * self_s;
    for (int part = 0; part < WEIR_CPU_PARTS; part++)
        d->cpu[part] = vague || sum_s <= 0 ? -1 : by_part[part] / sum_s;
    d->decode_share = self_s > 0 ? decode_s / self_s : 0;
}

/* Computes which fractions of the time that workers were asleep in tasks were spent in reads and in decoding. */
static void fill_blocked(struct weir_demands *d, const struct weir_loader_report *report)
{
    double read_s = 0, decode_s = 0, all_s = 0;
    for (int i = 0; i < report->prof.n_rows; i++) {
        const struct weir_report_row *row = &report->prof.rows[i];
        if (!is_work(row) || row->side != WEIR_SIDE_WORKER)
            continue;
        bool read = part_of(row->name) == WEIR_CPU_READ;
        double off_s =
            row->cpu_s < 0 ? (read ? row->self_s : 0) : fmax(row->self_s - row->cpu_s - fmax(row->preempted_s, 0), 0);
        all_s += off_s;
        read_s += read ? off_s : 0;
        decode_s += part_of(row->name) == WEIR_CPU_DECODE ? off_s : 0;
    }
    d->blocked_read = all_s > 0 ? read_s / all_s : 0;
    d->blocked_decode = all_s > 0 ? decode_s / all_s : 0;
}

/* ---- bounds ---- */

static double usable_cores(const struct weir_loader_report *report)
{
    const struct weir_report_machine *machine = &report->prof.machine;
    double cores = machine->cores > 0 ? machine->cores : 1;
    if (machine->part > 0 && machine->part < cores)
        cores = machine->part;
    return machine->quota_cores > 0 ? fmin(machine->quota_cores, cores) : cores;
}

/* Other processes, such as those of other ranks, can use any core of the machine. */
static double cores_left(const struct weir_demands *d, const struct weir_report_machine *machine)
{
    return fmin(fmax(machine->cores - fmax(machine->others_cores, 0), 0), d->usable);
}

static double bus_busy(const struct weir_loader_report *report)
{
    const struct weir_report_row *copies = weir_demands_row(report, "07_h2d_copy", WEIR_SIDE_GPU);
    return copies && report->wall_s > 0 ? fmin(copies->total_s / report->wall_s, 1) : 0;
}

static double engines_busy(const struct weir_loader_report *report)
{
    double busiest = 0;
    for (int i = 0; i < report->gpu.decode.n_engines; i++)
        busiest = fmax(busiest, report->gpu.decode.engines[i].busy);
    return busiest;
}

static double capacity(const struct weir_demands *d, enum weir_resource resource)
{
    if (resource == WEIR_RESOURCE_CORES)
        return d->reachable;
    return resource == WEIR_RESOURCE_WORKERS && d->workers > 0 ? d->workers : 1;
}

static double fill_bounds(struct weir_demands *d, double *bound)
{
    double least = INFINITY;
    for (int i = 0; i < WEIR_RESOURCES; i++) {
        bound[i] = d->each_s[i] > 0 ? capacity(d, (enum weir_resource)i) / d->each_s[i] : 0;
        if (bound[i] <= 0 || bound[i] >= least)
            continue;
        least = bound[i];
        d->least = (enum weir_resource)i;
    }
    return isfinite(least) ? least : 0;
}

static void fill_demands(struct weir_demands *d, const struct weir_loader_report *report)
{
    const struct weir_report_steps *steps = &report->steps;
    double images = d->images, step_s = steps->train_s + steps->val_s;
    double wait_s = steps->train_wait_s + steps->val_wait_s;
    double occupied = d->of.cpu + d->of.blocked + d->of.library + d->of.other_waits;
    double span_s = images / d->rate; /* duration in which the images were loaded */
    d->each_s[WEIR_RESOURCE_CORES] = d->own_cores * span_s / images;
    d->each_s[WEIR_RESOURCE_WORKERS] = fmin(occupied, 1) * (d->workers > 0 ? d->workers : 1) * span_s / images;
    d->each_s[WEIR_RESOURCE_LIBRARY] = report->fallbacks.busy * span_s / images;
    d->each_s[WEIR_RESOURCE_BUS] = bus_busy(report) * span_s / images;
    d->each_s[WEIR_RESOURCE_ENGINES] = engines_busy(report) * span_s / images;
    d->each_s[WEIR_RESOURCE_CONSUMER] = fmax(step_s - wait_s, 0) / images;
    if (d->workers > 0)
        d->load_s = d->each_s[WEIR_RESOURCE_WORKERS];
    if (d->workers == 0) /* one thread alternates between loading and the step */
        d->each_s[WEIR_RESOURCE_WORKERS] = span_s / images;
    d->bound_rate = fill_bounds(d, d->bound);
    d->gap = d->bound_rate > 0 ? fmax(1 - d->rate / d->bound_rate, 0) : 0;
}

/* Returns the number of cores that this many workers can get. If other processes, the quota or the host take cores,
 * each ready thread has a core only part of the time. With the current number of workers, the process gets at least as
 * many cores as it had. */
static double reachable(const struct weir_demands *d, int workers)
{
    double ready = d->of.cpu + d->of.core_wait + d->of.throttled;
    double part = ready > 0 ? d->of.cpu / ready : 1;
    return d->taken
               ? fmin(fmax(part * (workers > 0 ? workers : 1), workers == d->workers ? d->own_cores : 0), d->usable)
               : d->usable;
}

void weir_demands_make(struct weir_demands *d, const struct weir_loader_report *report)
{
    const struct weir_report_steps *steps = &report->steps;
    struct sums sums = {0};
    *d = (struct weir_demands){.usable = usable_cores(report)};
    add_workers(&sums, &report->prof);
    double step_s = steps->train_s + steps->val_s;
    if (sums.wall_s <= 0 || report->wall_s <= 0 || step_s <= 0 || steps->images == 0)
        return;
    d->known = true;
    d->delay_known = sums.delay_known;
    d->workers = report->setup.known ? report->setup.workers : report->prof.n_workers;
    d->images = (double)steps->images;
    d->rate = d->images / step_s;
    d->own_cores = report->cpu_s / report->wall_s;
    d->left = fmax(cores_left(d, &report->prof.machine), fmin(d->own_cores, d->usable));
    if (d->workers > 0)
        fill_worker_time(d, report, &sums);
    else
        fill_inline_time(d, report);
    fill_cpu(d, report);
    fill_blocked(d, report);
    d->taken = d->of.core_wait + d->of.throttled >= WEIR_VERDICT_CORE_WAIT ||
               report->prof.machine.steal_cores >= WEIR_VERDICT_STEAL * d->usable;
    d->reachable = reachable(d, d->workers);
    fill_demands(d, report);
}

double weir_setup_image_bytes(const struct weir_report_setup *setup)
{
    double first = 3.0 * setup->out_width * setup->out_height * (setup->normalised ? 4 : 1);
    return setup->image_bytes > 0 ? (double)setup->image_bytes : first;
}

double weir_demands_predict(const struct weir_demands *demands, const struct weir_change *change,
                            enum weir_resource *limit)
{
    struct weir_demands then = *demands;
    double bound[WEIR_RESOURCES];
    if (!demands->known || demands->bound_rate <= 0)
        return 0;
    if (change->cpu_s >= 0)
        then.each_s[WEIR_RESOURCE_CORES] = change->cpu_s;
    if (change->worker_s >= 0)
        then.each_s[WEIR_RESOURCE_WORKERS] = change->worker_s;
    if (change->library_s >= 0)
        then.each_s[WEIR_RESOURCE_LIBRARY] = change->library_s;
    if (change->cores >= 0)
        then.reachable = change->cores;
    if (change->workers > 0)
        then.workers = (int)change->workers;
    if (change->workers > 0 && change->cores < 0)
        then.reachable = fmax(fmin(reachable(demands, then.workers), demands->left), demands->reachable);
    double rate = fill_bounds(&then, bound);
    if (limit)
        *limit = then.least;
    return rate / demands->bound_rate;
}
