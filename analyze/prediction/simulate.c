#include "analyze/prediction/simulate.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    SLOTS_MAX = 64,     /* more slots make no difference within a few hundred batches */
    TASKS_MAX = 256,    /* max tasks per batch; larger batches get fewer, longer tasks */
    TASKS_ALL = 2048,   /* approximate number of tasks to simulate */
    BATCHES_LEAST = 16, /* min batches to simulate after those that fill the slots */
    BATCHES_MAX = 256,
    WORKERS_MAX = 4096,
};

/* What a thread is doing. */
enum doing { TAKES, WAITS_FOR_SLOT, SLEEPS, QUEUES, SERVED, RUNS, WAITS, WAKES };

struct thread {
    enum doing doing;
    double until_s;                    /* end of SLEEPS, SERVED or WAKES */
    double left_s;                     /* in RUNS: remaining CPU time, without contention */
    double asleep_s, library_s, cpu_s; /* parts of its task that have not begun yet */
    double since_s;                    /* start of WAITS_FOR_SLOT or WAITS */
    long long task, turn;
};

struct machine {
    struct weir_simulation in;
    struct thread *threads; /* first the workers, then the consumer, then the feed */
    struct thread *consumer, *feed;
    int n;
    int left[SLOTS_MAX]; /* remaining tasks of each slot's batch */
    long long next_task, turns;
    long long freed, delivered, released; /* numbers of batches with a freed slot, ready, and returned */
    long long feeding;
    bool library_busy;
    bool look; /* a worker needs a task, or a slot has become free */
    double now_s, busy_s[WEIR_RESOURCES], wait_s;
    uint64_t random;
};

double weir_growth_at(const struct weir_growth_point *points, int n, double busy)
{
    if (n == 0)
        return 1;
    if (busy <= points[0].busy)
        return points[0].times;
    for (int i = 1; i < n; i++) {
        const struct weir_growth_point *a = &points[i - 1], *b = &points[i];
        if (busy > b->busy || b->busy <= a->busy)
            continue;
        return a->times + (b->times - a->times) * (busy - a->busy) / (b->busy - a->busy);
    }
    return points[n - 1].times;
}

/* ---- figures ---- */

static bool is_time(double seconds)
{
    return isfinite(seconds) && seconds >= 0 && seconds < 1e9;
}

static bool makes_sense(const struct weir_simulation *in)
{
    if (in->workers < 0 || in->workers > WORKERS_MAX || in->slots < 1 || in->tasks < 1 || in->outputs < 0)
        return false;
    if (!is_time(in->cpu_s) || !is_time(in->asleep_s) || !is_time(in->library_s) || !is_time(in->feed_s) ||
        !is_time(in->step_s) || !is_time(in->step_cpu_s) || !is_time(in->spread) || !is_time(in->slow_part) ||
        !is_time(in->slow_times) || !is_time(in->handover_s) || !is_time(in->cores) || in->cores <= 0 ||
        in->slow_part > 1)
        return false;
    if (in->n_growth < 0 || in->n_growth > WEIR_SIMULATE_POINTS)
        return false;
    for (int i = 0; i < in->n_growth; i++)
        if (!is_time(in->growth[i].busy) || !is_time(in->growth[i].times) || in->growth[i].times <= 0)
            return false;
    return true;
}

/* Reduces the numbers of tasks and slots to the limits. */
static void coarsen(struct weir_simulation *in)
{
    int most = in->workers > TASKS_MAX / 4 ? 4 * in->workers : TASKS_MAX;
    if (in->tasks > most) {
        double times = (double)in->tasks / most;
        in->tasks = most;
        in->cpu_s *= times;
        in->asleep_s *= times;
        in->library_s *= times;
        in->spread /= sqrt(times);
    }
    in->slots = in->slots < SLOTS_MAX ? in->slots : SLOTS_MAX;
}

/* Returns a uniformly distributed random number, 0..1. */
static double draw(struct machine *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (double)(m->random >> 11) * 0x1p-53;
}

/* ---- threads ---- */

static void begin_task(struct machine *m, struct thread *t)
{
    const struct weir_simulation *in = &m->in;
    double mean_times = 1 + in->slow_part * (in->slow_times - 1);
    double quick_s = mean_times > 0 ? in->asleep_s / mean_times : in->asleep_s;
    bool slow = draw(m) < in->slow_part;
    t->asleep_s = slow ? quick_s * in->slow_times : quick_s;
    t->library_s = in->library_s;
    t->cpu_s = in->cpu_s * fmax(1 + in->spread * sqrt(3) * (2 * draw(m) - 1), 0.05);
}

static void complete_task(struct machine *m, struct thread *t)
{
    m->left[(t->task / m->in.tasks) % m->in.slots]--;
    t->doing = TAKES;
    m->look = true;
}

/* Starts the next part of the thread's task. If none is left, completes the task. */
static void next_part(struct machine *m, struct thread *t)
{
    if (t->asleep_s > 0) {
        t->doing = SLEEPS;
        t->until_s = m->now_s + t->asleep_s;
        t->asleep_s = 0;
    } else if (t->library_s > 0) {
        t->doing = QUEUES;
        t->turn = m->turns++;
    } else if (t->cpu_s > 0) {
        t->doing = RUNS;
        t->left_s = t->cpu_s;
        t->cpu_s = 0;
    } else {
        complete_task(m, t);
    }
}

static bool is_complete(const struct machine *m, long long batch)
{
    return m->left[batch % m->in.slots] == 0 && batch < m->freed + m->in.slots &&
           m->next_task >= (batch + 1) * m->in.tasks;
}

static void free_slot(struct machine *m)
{
    m->left[m->freed % m->in.slots] = m->in.tasks;
    m->freed++;
    m->look = true;
}

/* Applies a worker's transitions that take no time. Returns whether there was one. */
static bool move_worker(struct machine *m, struct thread *t)
{
    if (t->doing == TAKES) {
        t->task = m->next_task++;
        t->doing = WAITS_FOR_SLOT;
        t->since_s = m->now_s;
    }
    if (t->doing != WAITS_FOR_SLOT || t->task / m->in.tasks >= m->freed + m->in.slots)
        return false;
    begin_task(m, t);
    if (t->since_s < m->now_s && m->in.handover_s > 0) {
        t->doing = WAKES;
        t->until_s = m->now_s + m->in.handover_s;
    } else {
        next_part(m, t);
    }
    return true;
}

static bool serve_library(struct machine *m)
{
    struct thread *first = NULL;
    if (m->library_busy || m->in.library_s <= 0)
        return false;
    for (int i = 0; i < m->in.workers; i++)
        if (m->threads[i].doing == QUEUES && (!first || m->threads[i].turn < first->turn))
            first = &m->threads[i];
    if (!first)
        return false;
    m->library_busy = true;
    first->doing = SERVED;
    first->until_s = m->now_s + first->library_s;
    first->library_s = 0;
    return true;
}

static bool move_feed(struct machine *m)
{
    struct thread *t = m->feed;
    if (m->in.outputs == 0 || t->doing != WAITS || m->feeding >= m->released + m->in.outputs ||
        !is_complete(m, m->feeding))
        return false;
    t->doing = SLEEPS;
    t->until_s = m->now_s + m->in.feed_s;
    return true;
}

static bool move_consumer(struct machine *m)
{
    struct thread *t = m->consumer;
    bool ready = m->in.outputs > 0 ? m->released < m->delivered : is_complete(m, m->released);
    if (t->doing != WAITS || !ready)
        return false;
    t->left_s = m->in.step_cpu_s;
    t->until_s = m->now_s + m->in.handover_s;
    t->doing = t->since_s < m->now_s && m->in.handover_s > 0 ? WAKES : RUNS;
    return true;
}

static void move_all(struct machine *m)
{
    bool moved = true;
    while (moved) {
        moved = false;
        bool look = m->look;
        m->look = false;
        for (int i = 0; look && i < m->in.workers; i++)
            moved |= move_worker(m, &m->threads[i]);
        moved |= serve_library(m);
        moved |= move_feed(m);
        moved |= move_consumer(m);
    }
}

/* ---- time ---- */

static void end_step(struct machine *m)
{
    m->released++;
    if (m->in.outputs == 0)
        free_slot(m);
    m->consumer->doing = WAITS;
    m->consumer->since_s = m->now_s;
}

/* Ends the part that the thread is executing. */
static void end_part(struct machine *m, struct thread *t)
{
    if (t == m->consumer && t->doing == WAKES) {
        t->doing = RUNS;
    } else if (t == m->consumer && t->doing == RUNS && m->in.step_s > 0) {
        t->doing = SLEEPS;
        t->until_s = m->now_s + m->in.step_s;
    } else if (t == m->consumer) {
        end_step(m);
    } else if (t == m->feed) {
        t->doing = WAITS;
        m->feeding++;
        m->delivered++;
        free_slot(m);
    } else {
        m->library_busy &= t->doing != SERVED;
        next_part(m, t);
    }
}

static void book(struct machine *m, double dt_s, int running, int working)
{
    m->busy_s[WEIR_RESOURCE_CORES] += dt_s * fmin(running / m->in.cores, 1);
    m->busy_s[WEIR_RESOURCE_WORKERS] += dt_s * working / (m->in.workers > 0 ? m->in.workers : 1);
    m->busy_s[WEIR_RESOURCE_LIBRARY] += m->library_busy ? dt_s : 0;
    m->busy_s[WEIR_RESOURCE_BUS] += m->feed->doing == SLEEPS ? dt_s : 0;
    if (m->consumer->doing == WAITS || m->consumer->doing == WAKES)
        m->wait_s += dt_s;
    else
        m->busy_s[WEIR_RESOURCE_CONSUMER] += dt_s;
}

static bool sleeps(const struct thread *t)
{
    return t->doing == SLEEPS || t->doing == SERVED || t->doing == WAKES;
}

/* Advances the time to the next end of a part. Returns false if no part will ever end. */
static bool advance(struct machine *m)
{
    int running = 0, working = 0;
    double least_s = INFINITY, until_s = INFINITY; /* min remaining CPU time, and earliest end of a sleep */
    for (int i = 0; i < m->n; i++) {
        const struct thread *t = &m->threads[i];
        bool runs = t->doing == RUNS, asleep = sleeps(t);
        running += runs;
        working += i < m->in.workers && (runs || (asleep && t->doing != WAKES));
        least_s = runs && t->left_s < least_s ? t->left_s : least_s;
        until_s = asleep && t->until_s < until_s ? t->until_s : until_s;
    }
    double share = running > m->in.cores ? m->in.cores / running : 1;
    double speed = share / weir_growth_at(m->in.growth, m->in.n_growth, fmin(running, m->in.cores));
    double dt_s = fmax(fmin(least_s / speed, until_s - m->now_s), 0);
    if (!isfinite(dt_s))
        return false;
    book(m, dt_s, running, working);
    m->now_s += dt_s;
    for (int i = 0; i < m->n; i++) {
        struct thread *t = &m->threads[i];
        bool ran = t->doing == RUNS;
        if (ran)
            t->left_s -= dt_s * speed;
        if ((ran && t->left_s <= 1e-12) || (sleeps(t) && t->until_s <= m->now_s))
            end_part(m, t);
    }
    return true;
}

/* Advances until the consumer has returned this many batches. */
static bool advance_to(struct machine *m, long long batches)
{
    while (m->released < batches) {
        move_all(m);
        if (m->released < batches && !advance(m))
            return false;
    }
    return true;
}

/* ---- results ---- */

static void finish(struct weir_simulated *result, const struct machine *m, double seconds, double batches)
{
    static const double SAME = 0.02;
    double most = -1;
    if (!(seconds > 0) || !isfinite(batches / seconds))
        return;
    result->batches_per_s = batches / seconds;
    result->wait = fmin(m->wait_s / seconds, 1);
    for (int i = 0; i < WEIR_RESOURCES; i++) {
        result->busy[i] = fmin(m->busy_s[i] / seconds, 1);
        if (result->busy[i] <= most + SAME) /* on a tie the cores come first, then the workers that keep them busy */
            continue;
        most = result->busy[i];
        result->busiest = (enum weir_resource)i;
    }
}

/* Computes the result for one thread that alternates between loading and the step. */
static void in_turns(struct weir_simulated *result, const struct weir_simulation *in)
{
    struct machine m = {.in = *in};
    double growth = weir_growth_at(in->growth, in->n_growth, 1), slower = in->cores < 1 ? 1 / in->cores : 1;
    double load_s = in->tasks * (in->cpu_s * growth * slower + in->asleep_s + in->library_s) + in->feed_s;
    double step_s = in->step_s + in->step_cpu_s * growth * slower;
    m.busy_s[WEIR_RESOURCE_WORKERS] = m.wait_s = load_s;
    m.busy_s[WEIR_RESOURCE_CONSUMER] = step_s;
    m.busy_s[WEIR_RESOURCE_LIBRARY] = in->tasks * in->library_s;
    m.busy_s[WEIR_RESOURCE_CORES] = (in->tasks * in->cpu_s + in->step_cpu_s) * growth / in->cores;
    finish(result, &m, load_s + step_s, 1);
}

static int batches_of(const struct weir_simulation *in)
{
    int batches = TASKS_ALL / in->tasks;
    return batches < BATCHES_LEAST ? BATCHES_LEAST : batches > BATCHES_MAX ? BATCHES_MAX : batches;
}

int weir_simulate(struct weir_simulated *result, const struct weir_simulation *simulation)
{
    *result = (struct weir_simulated){.busiest = WEIR_RESOURCE_CORES};
    if (!makes_sense(simulation))
        return -EINVAL;
    struct machine m = {.in = *simulation, .look = true, .random = 0x9e3779b97f4a7c15u};
    if (simulation->workers == 0) {
        in_turns(result, simulation);
        return 0;
    }
    coarsen(&m.in);
    m.n = m.in.workers + 2;
    m.threads = calloc((size_t)m.n, sizeof *m.threads);
    if (!m.threads)
        return -ENOMEM;
    m.consumer = &m.threads[m.in.workers];
    m.feed = &m.threads[m.in.workers + 1];
    m.consumer->doing = m.feed->doing = WAITS;
    for (int i = 0; i < m.in.slots; i++)
        m.left[i] = m.in.tasks;
    int fill = (m.in.slots < 16 ? m.in.slots : 16) + 4, batches = batches_of(&m.in);
    bool alive = advance_to(&m, fill);
    double begin_s = m.now_s;
    m.wait_s = 0;
    for (int i = 0; i < WEIR_RESOURCES; i++)
        m.busy_s[i] = 0;
    if (alive && advance_to(&m, fill + batches))
        finish(result, &m, m.now_s - begin_s, batches);
    free(m.threads);
    return 0;
}
