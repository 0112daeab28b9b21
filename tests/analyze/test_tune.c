/* The search of weir tune on synthetic machines, compared with an exhaustive search of the same settings. */
#include "analyze/tuning/tune_priv.h"
#include "analyze/tuning/tune_search.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENGINES = 3, MB = 1000000 };

/* Performance of a machine with a dataset. */
struct machine {
    char name[32];
    int cores;
    double cpu_s;    /* CPU time per image with one worker */
    double grows;    /* relative increase of cpu_s per additional worker */
    double peaks;    /* relative increase of cpu_s per (additional workers)^2 */
    double read_cpu; /* fraction of cpu_s spent on reading */
    double asleep_s; /* time per image that a worker sleeps in reads, with the first engine */
    double disk_s;   /* disk time per image; the disk serves one image at a time (0 = no disk limit) */
    double bursts;   /* fraction of the rate lost with one batch of prefetch; halves with each doubling */
    double step_s;   /* step time per image */
    double library_s;
    double neighbours; /* fraction of trials in which other processes take up to half of the rate */
    double noise;      /* relative standard deviation of a trial's rate */
    double slot_mb, base_mb, worker_mb, file_mb, memory_mb;
    double cpu_max;
    double cache_mb, cached_times; /* size of all decoded frames, and the rate multiplier when they are cached */
    bool known;                    /* trials report demands */
};

static uint64_t seed = 1;

static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static double gauss(void)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += uniform();
    return sum - 6;
}

static double worker_s(const struct machine *m, const struct weir_tune_setting *s, double *cpu_s)
{
    static const double cpu_of[ENGINES] = {1, 0.6, 1.1}, asleep_of[ENGINES] = {1, 1, 0.25};
    int engine = s->engine < 0 ? 0 : s->engine;
    *cpu_s = (s->decoder == 1 ? 0.5 : 1) * m->cpu_s * (1 - m->read_cpu + m->read_cpu * cpu_of[engine]) *
             (1 + m->grows * (s->workers - 1) + m->peaks * (s->workers - 1) * (s->workers - 1));
    return *cpu_s + m->asleep_s * asleep_of[engine];
}

static double less(double a, double each_s, double capacity)
{
    return each_s > 0 ? fmin(a, capacity / each_s) : a;
}

/* Returns the rate in images/s, without noise. */
static double rate_of(const struct machine *m, const struct weir_tune_setting *s)
{
    double cpu_s, each_s = worker_s(m, s, &cpu_s);
    double rate = fmin(s->workers / each_s, m->cores / cpu_s);
    rate = less(rate, m->disk_s, 1);
    rate = less(rate, m->library_s, 1);
    rate *= 1 - m->bursts / (s->prefetch > 0 ? s->prefetch : 2);
    if (s->cache_bytes > 0)
        rate *= m->cached_times;
    return less(rate, m->step_s, 1);
}

static double peak_of(const struct machine *m, const struct weir_tune_setting *s)
{
    double mb = m->base_mb + m->worker_mb * s->workers + m->slot_mb * ((s->prefetch > 0 ? s->prefetch : 2) + 1);
    return (mb + (s->engine == 1 ? m->file_mb : 0)) * MB + s->cache_bytes;
}

static void fill_demands(struct weir_demands *d, const struct machine *m, const struct weir_tune_setting *s,
                         double rate)
{
    double cpu_s, each_s = worker_s(m, s, &cpu_s);
    *d = (struct weir_demands){.known = true, .workers = s->workers, .rate = rate, .usable = m->cores};
    d->reachable = d->usable;
    d->own_cores = fmin(rate * cpu_s, m->cores);
    d->of.cpu = fmin(rate * cpu_s / s->workers, 1);
    d->of.blocked = fmin(rate * (each_s - cpu_s) / s->workers, 1 - d->of.cpu);
    d->of.idle = fmax(1 - d->of.cpu - d->of.blocked, 0);
    d->cpu[WEIR_CPU_READ] = m->read_cpu;
    d->cpu[WEIR_CPU_DECODE] = 1 - m->read_cpu;
    d->blocked_read = 1;
    d->bound[WEIR_RESOURCE_CORES] = m->cores / cpu_s;
    d->bound[WEIR_RESOURCE_WORKERS] = s->workers / each_s;
    d->bound[WEIR_RESOURCE_CONSUMER] = m->step_s > 0 ? 1 / m->step_s : 1e7;
    d->bound[WEIR_RESOURCE_LIBRARY] = m->library_s > 0 ? 1 / m->library_s : 0;
}

static int turns_left;

static int measure(void *user, const struct weir_tune_setting *s, struct weir_tune_figures *f, struct weir_err *err)
{
    const struct machine *m = user;
    double cpu_s, rate = rate_of(m, s) * (1 + m->noise * gauss());
    bool disturbed = uniform() < m->neighbours;
    (void)err;
    rate *= disturbed ? 1 - 0.5 * uniform() : 1;
    if (turns_left-- == 0)
        return -EINTR;
    worker_s(m, s, &cpu_s);
    f->trial = (struct weir_trial){
        .measured = {.seconds = 1,
                     .images = (uint64_t)rate,
                     .images_per_s = rate,
                     .peak_rss_bytes = (uint64_t)peak_of(m, s)},
        .used = {.workers = (int)(s->workers), .prefetch = (int)(s->prefetch > 0 ? s->prefetch : 2)},
        .cpu_s = rate * cpu_s,
        .others_cores = disturbed ? 1 + 0.3 * m->cores : 0};
    f->engine = s->engine < 0 ? 0 : s->engine;
    f->decoder = 0;
    f->slot_bytes = m->slot_mb * MB;
    f->worker_bytes = m->worker_mb * MB;
    f->frames_bytes = m->cache_mb * MB;
    f->epoch_images = 10;
    if (m->known)
        fill_demands(&f->demands, m, s, rate);
    return 0;
}

static void print_line(void *user, const char *line)
{
    (void)user;
    if (getenv("WEIR_TUNE_SAY"))
        printf("    %s\n", line);
}

static void open_search(struct weir_tune *tune, struct machine *m)
{
    memset(tune, 0, sizeof *tune);
    tune->space = (struct weir_tune_space){
        .cores = m->cores,
        .workers_max = m->cores + (m->cores + 1) / 2,
        .prefetch_max = 16,
        .n_engines = ENGINES,
        .n_decoders = 1,
        .engines = {"pread", "mmap", "uring"},
        .decoders = {"turbo"},
        .maps = {false, true, false},
        .deep = {false, false, true},
        .file_bytes = m->file_mb * MB,
        .memory_max = m->memory_mb * MB,
        .cache_max = m->cache_mb * MB,
        .cpu_max = m->cpu_max,
    };
    if (m->cpu_max > 0)
        tune->space.cores = tune->space.workers_max = (int)m->cpu_max;
    tune->measure = measure;
    tune->say = print_line;
    tune->user = m;
    turns_left = -1;
}

/* A server, whose requests are slept for: with twice as many in flight, half as long. */
static int measure_server(void *user, const struct weir_tune_setting *s, struct weir_tune_figures *f,
                          struct weir_err *err)
{
    struct machine m = *(const struct machine *)user;
    m.asleep_s *= 64.0 / (s->depth > 0 ? s->depth : 64);
    return measure(&m, s, f, err);
}

Test(tune, requests_in_flight_are_varied_for_servers)
{
    static struct weir_tune tune;
    struct machine m = {
        .name = "a server", .cores = 2, .cpu_s = 1e-4, .asleep_s = 4e-3, .read_cpu = 0.1, .known = true};
    struct weir_err err = WEIR_ERR_NONE;
    bool tried_128 = false;
    seed = 1;
    open_search(&tune, &m);
    tune.measure = measure_server;
    tune.space.n_engines = 1;
    tune.space.engines[0] = "http";
    tune.space.deep[0] = tune.space.remote[0] = true;
    cr_assert_eq(weir_tune_run(&tune, &err), 0, "%s", err.text);
    for (int i = 0; i < tune.n; i++)
        tried_128 |= tune.candidates[i].setting.depth == 128;
    cr_assert(tried_128);
    cr_assert_eq(tune.candidates[tune.chosen].setting.depth, 512);
    weir_tune_free(&tune);
}

/* Returns the best rate of all settings within the limits, and counts these settings. */
static double exhaustive(const struct machine *m, int *candidates)
{
    static const int prefetch[] = {1, 2, 4, 8, 16};
    double best = 0;
    *candidates = 0;
    for (int w = 1; w; w = w == m->cores + m->cores / 2 ? 0 : w == m->cores ? m->cores + m->cores / 2 : 2 * w)
        for (size_t p = 0; p < sizeof prefetch / sizeof prefetch[0]; p++)
            for (int e = 0; e < ENGINES; e++) {
                struct weir_tune_setting s = {.workers = w, .prefetch = prefetch[p], .engine = e};
                bool fits = m->memory_mb <= 0 || peak_of(m, &s) <= m->memory_mb * MB;
                fits = fits && (m->cpu_max <= 0 || w <= m->cpu_max);
                (*candidates)++;
                best = fits ? fmax(best, rate_of(m, &s)) : best;
            }
    return best;
}

static struct machine machines[] = {
    {.name = "CPU-bound", .cores = 16, .cpu_s = 1e-3, .read_cpu = 0.02, .known = true},
    {.name = "CPU-bound, 2 cores", .cores = 2, .cpu_s = 1e-3, .read_cpu = 0.02, .known = true},
    {.name = "memory bandwidth", .cores = 16, .cpu_s = 1e-3, .grows = 0.0154, .read_cpu = 0.02, .known = true},
    {.name = "peaked", .cores = 16, .cpu_s = 1e-4, .peaks = 0.03, .read_cpu = 0.5, .known = true},
    {.name = "flat", .cores = 8, .cpu_s = 1e-6, .library_s = 1e-3, .known = true},
    {.name = "flat, and no demands", .cores = 8, .cpu_s = 1e-6, .disk_s = 1e-3},
    {.name = "reading is half of it", .cores = 4, .cpu_s = 1e-4, .read_cpu = 0.5, .known = true},
    {.name = "step-bound", .cores = 16, .cpu_s = 1e-3, .step_s = 0.2e-3, .known = true},
    {.name = "step-bound, 2 cores", .cores = 2, .cpu_s = 1e-4, .step_s = 1e-3, .known = true},
    {.name = "slow storage", .cores = 4, .cpu_s = 1e-4, .asleep_s = 1e-3, .read_cpu = 0.1, .known = true},
    {.name = "one disk", .cores = 8, .cpu_s = 1e-4, .asleep_s = 1e-3, .disk_s = 0.5e-3, .known = true},
    {.name = "bursts", .cores = 8, .cpu_s = 1e-3, .bursts = 0.3, .read_cpu = 0.01, .known = true},
    {.name = "memory",
     .cores = 16,
     .cpu_s = 1e-3,
     .known = true,
     .read_cpu = 0.3,
     .bursts = 0.1,
     .slot_mb = 50,
     .base_mb = 60,
     .worker_mb = 5,
     .file_mb = 500,
     .memory_mb = 300},
    {.name = "little memory",
     .cores = 4,
     .cpu_s = 1e-3,
     .known = true,
     .slot_mb = 50,
     .base_mb = 60,
     .worker_mb = 20,
     .file_mb = 500,
     .memory_mb = 210},
    {.name = "few cores of many", .cores = 16, .cpu_s = 1e-3, .known = true, .cpu_max = 4},
};
enum { MACHINES = sizeof machines / sizeof machines[0], REPEATS = 5, ROUNDS = 5 };

static double chosen_rate(const struct weir_tune *tune, const struct machine *m)
{
    return rate_of(m, &tune->candidates[tune->chosen].setting);
}

/* Runs five searches with noise. Each must reach 0.97 of the best rate with at most 15 % of the trials, and their rates
 * must agree. */
static void expect_machine(struct machine *m, double noise)
{
    static struct weir_tune tune; /* too large for the stack */
    double rates[REPEATS], best;
    char text[160];
    int candidates;
    m->noise = noise;
    best = exhaustive(m, &candidates);
    for (int r = 0; r < REPEATS; r++) {
        struct weir_err err = WEIR_ERR_NONE;
        seed = (uint64_t)(r + 1) * 7919;
        open_search(&tune, m);
        cr_assert_eq(weir_tune_run(&tune, &err), 0, "%s: %s", m->name, err.text);
        const struct weir_tune_setting *s = &tune.candidates[tune.chosen].setting;
        rates[r] = chosen_rate(&tune, m);
        weir_tune_describe(&tune.space, s, text, sizeof text);
        if (getenv("WEIR_TUNE_SAY"))
            printf("%s, noise %.2f: %.3f of the best rate, %d of %d trials: %s\n", m->name, noise, rates[r] / best,
                   tune.trials, candidates * ROUNDS, text);
        cr_expect(rates[r] >= 0.97 * best, "%s, noise %g: %.3f of the best rate: %s", m->name, noise, rates[r] / best,
                  text);
        cr_expect(tune.trials <= 0.15 * candidates * ROUNDS, "%s: %d of %d trials", m->name, tune.trials,
                  candidates * ROUNDS);
        for (int i = 0; i < tune.n && m->memory_mb > 0; i++)
            cr_expect(peak_of(m, &tune.candidates[i].setting) <= m->memory_mb * MB, "%s: too much memory", m->name);
        cr_expect(m->cpu_max <= 0 || s->workers <= m->cpu_max, "%s", m->name);
        cr_expect(fabs(rates[r] / rates[0] - 1) < 0.035, "%s: %g and %g", m->name, rates[r], rates[0]);
        weir_tune_free(&tune);
    }
}

Test(tune, nearly_the_best_with_few_turns)
{
    for (int i = 0; i < MACHINES; i++)
        expect_machine(&machines[i], 0.002);
}

Test(tune, with_noise_too)
{
    for (int i = 0; i < MACHINES; i++)
        expect_machine(&machines[i], 0.015);
}

/* Other processes slow down a third of the trials, but the result must still be near the best. */
Test(tune, beside_other_processes)
{
    static struct weir_tune tune;
    int good = 0, all = 0, candidates;
    for (int i = 0; i < MACHINES; i++) {
        double best = exhaustive(&machines[i], &candidates);
        machines[i].noise = 0.01;
        machines[i].neighbours = 0.33;
        for (int r = 0; r < REPEATS; r++, all++) {
            struct weir_err err = WEIR_ERR_NONE;
            seed = (uint64_t)(r + 1) * 104729;
            open_search(&tune, &machines[i]);
            cr_assert_eq(weir_tune_run(&tune, &err), 0, "%s: %s", machines[i].name, err.text);
            double part = chosen_rate(&tune, &machines[i]) / best;
            print_line(NULL, machines[i].name);
            if (getenv("WEIR_TUNE_SAY"))
                printf("with other processes: %s %.3f, %d trials\n", machines[i].name, part, tune.trials);
            good += part >= 0.97;
            cr_expect(part >= 0.6 && tune.trials <= 0.25 * candidates * ROUNDS, "%s: %.3f of the best rate, %d trials",
                      machines[i].name, part, tune.trials);
            weir_tune_free(&tune);
        }
    }
    cr_expect(good >= 0.9 * all, "%d of %d", good, all);
}

/* ---- special cases ---- */

static struct machine plain = {.name = "plain", .cores = 4, .cpu_s = 1e-3, .read_cpu = 0.3, .known = true};

Test(tune, an_end_before_it_is_over_has_the_best_so_far)
{
    static struct weir_tune tune;
    for (int trials = 0; trials < 12; trials++) {
        struct weir_err err = WEIR_ERR_NONE;
        open_search(&tune, &plain);
        turns_left = trials;
        cr_assert_eq(weir_tune_run(&tune, &err), -EINTR, "%d", trials);
        cr_assert_eq(tune.end, WEIR_TUNE_INTERRUPTED);
        cr_assert_eq(tune.trials, trials);
        cr_assert((tune.chosen >= 0) == (trials > 0), "%d", trials);
        for (int i = 0; trials > 0 && trials < 6 && i < tune.n; i++)
            cr_expect(chosen_rate(&tune, &plain) >= rate_of(&plain, &tune.candidates[i].setting) - 1e-9);
        weir_tune_free(&tune);
    }
}

static int refuse(void *user, const struct weir_tune_setting *s, struct weir_tune_figures *f, struct weir_err *err)
{
    if (s->engine == 1 || (s->engine >= 0 && user == NULL))
        return weir_err_set(err, -ECHILD, "engine mmap cannot be had");
    return user ? measure(user, s, f, err) : weir_err_set(err, -ECHILD, "the data cannot be read");
}

Test(tune, settings_that_fail_are_left_out)
{
    static struct weir_tune tune;
    struct weir_err err = WEIR_ERR_NONE;
    open_search(&tune, &plain);
    tune.measure = refuse;
    cr_assert_eq(weir_tune_run(&tune, &err), 0, "%s", err.text);
    cr_assert_neq(tune.candidates[tune.chosen].setting.engine, 1);
    weir_tune_free(&tune);
    open_search(&tune, &plain);
    tune.measure = refuse;
    tune.user = NULL;
    cr_assert_eq(weir_tune_run(&tune, &err), -ENODATA);
    cr_assert_str_eq(err.text, "nothing could be measured: the data cannot be read");
    cr_assert_eq(tune.end, WEIR_TUNE_FAILED);
    weir_tune_free(&tune);
}

Test(tune, no_setting_within_the_limits)
{
    static struct weir_tune tune;
    struct machine large = {.name = "large", .cores = 2, .cpu_s = 1e-3, .base_mb = 100, .memory_mb = 50, .known = true};
    struct weir_err err = WEIR_ERR_NONE;
    open_search(&tune, &large);
    cr_assert_eq(weir_tune_run(&tune, &err), -ENODATA);
    cr_assert_str_eq(err.text, "nothing could be measured: it used 95.4 MiB, more than --max-memory");
    weir_tune_free(&tune);
}

Test(tune, a_decode_cache_when_it_is_worth_it)
{
    static struct weir_tune tune;
    struct machine m = plain;
    struct weir_err err = WEIR_ERR_NONE;
    static const struct {
        double times, step_s, memory_mb;
        bool chosen;
    } cases[] = {{4, 0, 0, true}, {1.01, 0, 0, false}, {4, 1e-3, 0, false}, {4, 0, 150, false}};
    m.cache_mb = 200;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        m.cached_times = cases[c].times;
        m.step_s = cases[c].step_s;
        m.memory_mb = cases[c].memory_mb;
        open_search(&tune, &m);
        cr_assert_eq(weir_tune_run(&tune, &err), 0, "%s", err.text);
        cr_expect_eq(tune.candidates[tune.chosen].setting.cache_bytes > 0, cases[c].chosen, "case %zu", c);
        weir_tune_free(&tune);
    }
}

/* A different decoder may need a different prefetch, which the search must find itself. */
Test(tune, another_decoder)
{
    static struct weir_tune tune;
    struct weir_err err = WEIR_ERR_NONE;
    plain.neighbours = 0;
    open_search(&tune, &plain);
    tune.space.n_decoders = 2;
    tune.space.decoders[1] = "nvjpeg";
    cr_assert_eq(weir_tune_run(&tune, &err), 0, "%s", err.text);
    const struct weir_tune_setting *s = &tune.candidates[tune.chosen].setting;
    cr_expect(s->decoder == 1 && s->prefetch >= 1 && s->workers == plain.cores);
    for (int i = 0; i < tune.n; i++)
        cr_expect(tune.candidates[i].setting.prefetch >= 1);
    weir_tune_free(&tune);
}

/* An automatic prefetch counts with the depth that was measured, not as zero batches. */
Test(tune, memory_of_batches_ahead)
{
    static struct weir_tune tune;
    const struct weir_trial trial = {.measured = {.images_per_s = 1, .peak_rss_bytes = 100 * MB}};
    struct weir_tune_setting setting = {.workers = 2, .prefetch = 4};
    tune.space.memory_max = 95 * MB;
    tune.look.slot_bytes = 10 * MB;
    tune.candidates[0].setting = setting;
    tune.n = 1;
    cr_assert_eq(weir_candidate_add(&tune.candidates[0].measured, &trial), 0);
    setting.prefetch = 3;
    cr_expect(weir_tune_fits(&tune, &setting));
    setting.prefetch = 0;
    cr_expect_not(weir_tune_fits(&tune, &setting));
    setting.workers = 1;
    tune.look.worker_bytes = 6 * MB;
    cr_expect(weir_tune_fits(&tune, &setting));
    weir_tune_free(&tune);
}

/* Cheaper means fewer workers first, then less prefetch, then less cache, then the simpler engine. */
Test(tune, what_is_cheaper)
{
    static const struct weir_tune_setting order[] = {{.workers = 1, .prefetch = 16, .engine = 2},
                                                     {.workers = 2, .prefetch = 1, .cache_bytes = 5},
                                                     {.workers = 2, .prefetch = 2, .engine = 1},
                                                     {.workers = 2, .prefetch = 2, .engine = 2},
                                                     {.workers = 2, .prefetch = 2, .engine = 2, .depth = 16},
                                                     {.workers = 2, .prefetch = 2, .cache_bytes = 1}};
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            cr_expect_eq(weir_tune_compare(&order[i], &order[j]), i < j ? -1 : i > j, "%d %d", i, j);
}

/* ---- rounds on a busy machine ---- */

enum { SCRIPT_ROUNDS = 5 };

/* Measured on two cores that other processes used 10 to 80 % of: in every round, two workers were faster. */
static const double scripted[][SCRIPT_ROUNDS] = {
    {1584, 1440, 1387, 1181, 991}, {1096, 1142, 1204, 954, 914}, {1086, 1132, 1193, 945, 906}};
/* Two workers were first measured under a heavier load than one worker. */
static const double before[][4] = {{702, 688, 731, 715}, {1208}, {1190}};
static const struct weir_tune_setting scripted_settings[] = {
    {.workers = 2, .prefetch = 2}, {.workers = 1, .prefetch = 2}, {.workers = 1, .prefetch = 1}};

static int measure_script(void *user, const struct weir_tune_setting *s, struct weir_tune_figures *f,
                          struct weir_err *err)
{
    const struct weir_tune *tune = user;
    int i = s->workers == 2 ? 0 : s->prefetch == 2 ? 1 : 2;
    if (tune->rounds > SCRIPT_ROUNDS)
        return weir_err_set(err, -ETIME, "the script has ended");
    f->trial.measured.images_per_s = tune->rounds ? scripted[i][tune->rounds - 1] : before[i][0];
    f->trial.others_cores = 1;
    return 0;
}

static void open_script(struct weir_tune *tune)
{
    memset(tune, 0, sizeof *tune);
    tune->space = (struct weir_tune_space){.cores = 2, .workers_max = 3, .n_engines = 1, .engines = {"pread"}};
    tune->measure = measure_script;
    tune->user = tune;
    tune->disturbed = true;
    tune->chosen = tune->fastest = -1;
    for (int i = 0; i < 3; i++) {
        tune->candidates[i] = (struct weir_tune_candidate){.setting = scripted_settings[i], .finalist = true};
        for (int t = 0; t < 4 && before[i][t] > 0; t++) {
            const struct weir_trial trial = {.measured.images_per_s = before[i][t]};
            cr_assert_eq(weir_candidate_add(&tune->candidates[i].measured, &trial), 0);
        }
    }
    tune->n = 3;
}

/* The reference is the winner of the rounds, whatever was measured before them. */
Test(tune, the_winner_of_every_round_is_the_fastest)
{
    static struct weir_tune tune;
    open_script(&tune);
    cr_assert_eq(weir_tune_race(&tune), 0);
    cr_expect_eq(tune.fastest, 0, "fastest: candidate %d", tune.fastest);
    cr_expect_eq(tune.chosen, 0, "chosen: candidate %d", tune.chosen);
    cr_expect_eq(tune.ratio.n, 0);
    weir_tune_free(&tune);
}

/* Rates and noise are those of the rounds too: trials before them had another load. */
Test(tune, rates_after_the_rounds_leave_out_earlier_trials)
{
    static struct weir_tune tune;
    struct weir_interval rate;
    open_script(&tune);
    for (tune.rounds = 1; tune.rounds <= SCRIPT_ROUNDS; tune.rounds++)
        for (int i = 0; i < tune.n; i++)
            cr_assert_eq(weir_tune_trial(&tune, i), 0);
    weir_tune_interval(&tune, 0, &rate);
    cr_expect_eq(rate.n, SCRIPT_ROUNDS);
    cr_expect_eq(rate.least, 991);
    cr_expect_eq(rate.median, 1387);
    cr_expect_eq(weir_tune_rate(&tune, 0), 1387);
    cr_expect_eq(weir_tune_fastest(&tune), 0);
    weir_tune_free(&tune);
}

static char said[8192];

static void keep_line(void *user, const char *line)
{
    (void)user;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

/* Where identical trials differ by more than 10 %, no line claims 3 %. */
static bool claims_3_percent(struct weir_tune *tune, double noise, int run)
{
    struct machine m = plain;
    struct weir_err err = WEIR_ERR_NONE;
    seed = (uint64_t)(run + 1) * 7919;
    m.noise = noise;
    open_search(tune, &m);
    tune->say = keep_line;
    *said = '\0';
    cr_assert_eq(weir_tune_run(tune, &err), 0, "%s", err.text);
    const char *line = strstr(said, " finalist");
    cr_assert_not_null(line, "%s", said);
    cr_expect_eq(strstr(line, "identical trials differ by ") != NULL, tune->noise > 0.1, "%g: %s", tune->noise, line);
    cr_expect_eq(weir_tune_is_noisy(tune), tune->noise > 0.1);
    weir_tune_free(tune);
    return strstr(line, "within 3 %") != NULL;
}

Test(tune, no_claim_of_3_percent_in_noise)
{
    static struct weir_tune tune;
    int claims = 0;
    for (int run = 0; run < 10; run++) {
        cr_expect(claims_3_percent(&tune, 0.002, run));
        claims += claims_3_percent(&tune, 0.3, run);
    }
    cr_expect(claims <= 3, "%d of 10 runs", claims); /* two trials can agree by chance */
}
