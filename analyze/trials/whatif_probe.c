/* Short runs that measure the base run, its CPU time with other numbers of workers, and the costs of changes. */
#include "analyze/trials/whatif_priv.h"
#include "weir/base.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double NOW_S = 1, NOW_MOST_S = 2, PROBE_S = 0.2, PATIENCE_S = 60, ALL_S = 40, SLOW_S = 1;
enum { NOW_RUNS = 3 };

static double worker_cpu_s(const struct weir_demands *d)
{
    return d->workers > 0 && d->rate > 0 ? d->of.cpu * d->workers / d->rate : d->each_s[WEIR_RESOURCE_CORES];
}

/* Returns a factor that shortens measurements if the time limit is small. */
static double scale(const struct whatif *w)
{
    return fmin(w->config->max_minutes * 60 / ALL_S, 1);
}

double whatif_probe_seconds(const struct whatif *w)
{
    return PROBE_S * scale(w);
}

/* Measures a plan. The caller clears record, also after an error. */
static int measure(struct whatif *w, struct weir_trial *trial, struct weir_log_record *record,
                   const struct whatif_plan *plan, double seconds, double *took_s, struct weir_err *err)
{
    struct weir_words words = {0};
    weir_run_words(&words, &plan->run, plan->data);
    weir_words_add_measured(&words, seconds);
    if (words.failed)
        return weir_err_set(err, -ENOMEM, "out of memory");
    const struct weir_child_config command = {.program = w->config->program,
                                              .argv = words.argv,
                                              .seconds = PATIENCE_S,
                                              .interrupted = w->config->interrupted};
    uint64_t begin_ns = weir_clock_monotonic_ns();
    whatif_set_cpus(plan->cpus);
    int rc = weir_trial_run(trial, record, &command, err);
    whatif_set_cpus(0);
    *took_s = (double)(weir_clock_monotonic_ns() - begin_ns) / 1e9;
    weir_words_free(&words);
    return rc;
}

static void learn(struct whatif_probe *probe, const struct weir_trial *trial, const struct weir_loader_report *report,
                  double took_s, const struct weir_model_facts *facts)
{
    const struct weir_model_facts handover = {.handover_s = facts->handover_s};
    weir_demands_make(&probe->demands, report);
    weir_model_make(&probe->model, &probe->demands, report, &handover);
    probe->known = probe->model.known;
    probe->setup = report->setup;
    probe->cpu_s = worker_cpu_s(&probe->demands);
    probe->data_wait = trial->measured.data_wait_fraction;
    probe->others = trial->others_cores;
    probe->start_s = fmax(took_s - 1.2 * trial->measured.seconds, 0.05);
    if (!probe->known)
        snprintf(probe->why, sizeof probe->why, "a run had too few batches; use a smaller --batch-size or more data");
}

/* Measures a plan and fills in the probe. The caller clears record. */
static int probe_into(struct whatif *w, struct weir_log_record *record, struct whatif_probe *probe,
                      const struct whatif_plan *plan, double seconds)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_trial trial;
    double took_s = 0;
    *probe = (struct whatif_probe){.known = false};
    int rc = measure(w, &trial, record, plan, seconds, &took_s, &err);
    probe->cpus = plan->cpus;
    whatif_count_trial(w);
    if (rc == 0)
        learn(probe, &trial, &record->report, took_s, &w->facts);
    else
        snprintf(probe->why, sizeof probe->why, "%s", whatif_error_of(err.text));
    return rc == -EINTR ? rc : 0;
}

int whatif_probe(struct whatif *w, struct whatif_probe *probe, const struct whatif_plan *plan, double seconds)
{
    int rc = probe_into(w, &w->record, probe, plan, seconds);
    weir_log_record_clear(&w->record);
    return rc;
}

double whatif_probe_rate(const struct whatif *w, const struct whatif_probe *probe, int slots, enum weir_resource *limit)
{
    struct weir_model_change change = WEIR_MODEL_AS_IT_IS;
    double times = w->model.images_each > 0 ? probe->model.images_each / w->model.images_each : 1;
    if (w->config->run.step_ms > 0) {
        change.step_s = w->model.now.step_s * times;
        change.step_cpu_s = w->model.now.step_cpu_s * times;
    }
    if (slots > 0)
        change.slots = slots;
    double others = fmax(w->now.others, probe->others);
    bool same = w->model.known && w->now.setup.device == probe->setup.device && probe->cpus == 0;
    /* Use the base run's cores, because other processes left this run a different number of cores. */
    if (same && others > WEIR_VERDICT_OTHERS * w->now.demands.usable)
        change.cores = w->model.now.cores;
    double rate = weir_model_predict(&probe->model, &change, limit) * probe->model.rate;
    double step_s = fmax(change.step_s, 0) + fmax(change.step_cpu_s, 0);
    return step_s > 0 ? fmin(rate, probe->model.images_each / step_s) : rate;
}

/* ---- the base run ---- */

struct first_run {
    struct whatif_probe probe;
    struct weir_log_record record;
};

static int by_rate(const void *a, const void *b)
{
    const struct first_run *const *x = a, *const *y = b;
    return ((*x)->probe.demands.rate > (*y)->probe.demands.rate) -
           ((*x)->probe.demands.rate < (*y)->probe.demands.rate);
}

/* Returns a duration with enough steps for a verdict. */
static double seconds_of(const struct whatif *w)
{
    return fmin(fmax(NOW_S, 30 * w->config->run.step_ms / 1e3), NOW_MOST_S);
}

/* ---- numbers of workers ---- */

static struct whatif_plan without_step(const struct whatif *w, int workers)
{
    struct whatif_plan plan = w->base;
    plan.run.step_ms = 0;
    plan.run.step_spin = false;
    plan.run.loader.num_workers = workers;
    return plan;
}

static void add_growth(struct weir_model_facts *facts, double busy, double cpu_s)
{
    if (facts->n_growth == WEIR_SIMULATE_POINTS || cpu_s <= 0 || busy <= 0)
        return;
    if (facts->n_growth > 0 && busy < facts->growth[facts->n_growth - 1].busy + 0.5)
        return;
    facts->growth[facts->n_growth++] = (struct weir_growth_point){busy, cpu_s};
}

/* Measures how the CPU time of an image grows with the number of workers: with one worker, and with workers on half and
 * on all of the cores. A decrease is noise and is ignored. */
static int measure_growth(struct whatif *w)
{
    int cores = (int)fmax(round(w->now.demands.usable), 1);
    const int counts[] = {1, cores / 2, cores};
    struct weir_model_facts *facts = &w->facts;
    struct whatif_probe *probe = calloc(1, sizeof *probe);
    int rc = 0, last = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && rc == 0 && probe; i++) {
        if (counts[i] <= last)
            continue;
        last = counts[i];
        struct whatif_plan plan = without_step(w, last);
        rc = whatif_probe(w, probe, &plan, whatif_probe_seconds(w));
        if (probe->known)
            add_growth(facts, probe->demands.own_cores, probe->cpu_s);
    }
    free(probe);
    if (rc < 0)
        return rc;
    double one_s = facts->n_growth > 0 ? facts->growth[0].times : 1, most = 1;
    for (int i = 0; i < facts->n_growth; i++) {
        most = fmax(most, facts->growth[i].times / one_s);
        facts->growth[i].times = most;
    }
    if (facts->n_growth == 1)
        facts->n_growth = 0;
    return 0;
}

/* Finds the handover time for which the simulated rate equals the measured rate, in the run without a step and with a
 * prefetch of one batch. */
static double handover_of(const struct whatif_probe *full, double rate)
{
    static const double MOST_S = 5e-3;
    double low_s = 0, high_s = MOST_S;
    struct weir_model model = full->model;
    struct weir_model_change change = WEIR_MODEL_AS_IT_IS;
    change.slots = 2;
    if (!model.known || weir_model_predict(&model, &change, NULL) * model.rate <= rate)
        return 0;
    for (int i = 0; i < 8; i++) {
        model.now.handover_s = (low_s + high_s) / 2;
        if (weir_model_predict(&model, &change, NULL) * model.rate > rate)
            low_s = model.now.handover_s;
        else
            high_s = model.now.handover_s;
    }
    return (low_s + high_s) / 2;
}

/* Measures the cost of handing over a batch. Uses a prefetch of one batch, which makes this cost visible. */
static int measure_handover(struct whatif *w)
{
    struct whatif_plan plan = without_step(w, w->now.setup.workers);
    struct whatif_probe *probe = calloc(1, sizeof *probe);
    plan.run.loader.prefetch = 1;
    int rc = probe ? whatif_probe(w, probe, &plan, whatif_probe_seconds(w)) : 0;
    if (probe && probe->known && w->now.setup.slots > 2)
        w->facts.handover_s = handover_of(&w->full, probe->demands.rate);
    free(probe);
    return rc;
}

/* Returns the ratio of a run with more workers; 0 = not measured, or too noisy. */
static double more_workers(const struct whatif *w)
{
    for (int i = 0; i < w->found->n_changes; i++) {
        const struct weir_whatif_change *change = &w->found->changes[i];
        if (w->plans[i].run.loader.num_workers > w->now.setup.workers && !weir_whatif_is_noisy(change))
            return weir_whatif_ratio(change);
    }
    return 0;
}

void whatif_judge(struct whatif *w)
{
    const struct weir_loader_report *report = &w->first.report;
    struct weir_verdict verdict;
    const struct weir_verdict_facts facts = {
        .cpu_growth =
            w->facts.n_growth > 1 ? weir_growth_at(w->facts.growth, w->facts.n_growth, w->now.demands.own_cores) : 0,
        .more_workers = more_workers(w)};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    weir_verdict_make(&verdict, report, &facts);
    weir_verdict_lines(out, &verdict);
    fclose(out);
    snprintf(w->found->verdict, sizeof w->found->verdict, "%s", text ? text : "");
    w->found->step_is_limit = verdict.found.bound == WEIR_BOUND_NO;
    free(text);
}

static void fill_found(struct whatif *w)
{
    struct weir_whatif *found = w->found;
    const struct weir_report_setup *setup = &w->now.setup;
    snprintf(found->data, sizeof found->data, "%s", w->config->data);
    found->cold = w->config->run.loader.cold;
    found->workers = setup->workers;
    found->prefetch = setup->slots - 1;
    found->batch_size = setup->batch_size;
    found->cores = (int)fmax(round(w->now.demands.usable), 1);
    found->images_per_s = w->now.demands.rate;
    found->simulated = w->model.simulated;
    found->stretch = w->model.stretch;
    found->data_wait = w->now.data_wait;
    found->others_cores = fmax(w->now.others, 0);
    w->frame_bytes = weir_setup_image_bytes(setup);
}

/* Measures the base run, and then runs with other numbers of workers. The verdict uses the first run, which is longer.
 * Predictions use the run with the median rate. */
static int measure_all(struct whatif *w, struct first_run *runs, struct weir_err *err)
{
    const struct first_run *sorted[NOW_RUNS];
    int n = NOW_RUNS;
    for (int i = 0; i < n; i++) {
        double seconds = i == 0 ? seconds_of(w) : fmin(seconds_of(w), NOW_S) * scale(w);
        int rc = probe_into(w, &runs[i].record, &runs[i].probe, &w->base, seconds);
        sorted[i] = &runs[i];
        if (rc < 0)
            return rc;
        if (!runs[i].probe.known)
            return weir_err_set(err, -ENODATA, "%s", runs[i].probe.why);
        w->slow_start = runs[i].probe.setup.device >= 0 && runs[i].probe.start_s > SLOW_S;
        n = w->slow_start ? i + 1 : NOW_RUNS;
    }
    qsort(sorted, (size_t)n, sizeof *sorted, by_rate);
    const struct weir_loader_report *report = &sorted[n / 2]->record.report;
    w->now = sorted[n / 2]->probe;
    struct whatif_plan full = without_step(w, w->now.setup.workers);
    int rc = w->slow_start ? 0 : measure_growth(w);
    if (rc == 0)
        rc = whatif_probe(w, &w->full, &full, whatif_probe_seconds(w));
    if (rc == 0 && !w->slow_start && w->now.setup.workers > 0)
        rc = measure_handover(w);
    if (rc == 0 && w->facts.handover_s > 0)
        rc = whatif_probe(w, &w->full, &full, whatif_probe_seconds(w));
    weir_model_make(&w->model, &w->now.demands, report, &w->facts);
    fill_found(w);
    return rc;
}

int whatif_measure_now(struct whatif *w, struct weir_err *err)
{
    struct first_run *runs = calloc(NOW_RUNS, sizeof *runs);
    double cached;
    if (!runs)
        return weir_err_set(err, -ENOMEM, "out of memory");
    if (!w->config->run.loader.cold) /* all measurements expect the files in the page cache */
        weir_copy_warm(w->config->files, &cached, NULL);
    whatif_progress(w, "measuring the base run and other numbers of workers");
    int rc = measure_all(w, runs, err);
    w->first = runs[0].record;
    for (int i = 1; i < NOW_RUNS; i++)
        weir_log_record_clear(&runs[i].record);
    free(runs);
    return rc;
}
