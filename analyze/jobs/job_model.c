/* The simulated loader: a task is a batch, and workers x prefetch_factor batches are in preparation or ready. */
#include "analyze/jobs/job_verdict_priv.h"

#include <math.h>

enum { WORKERS_MOST = 128 };

static double lock_share(const struct weir_job_case *c)
{
    return weir_job_use(c, WEIR_TASK_LOCK);
}

/* The time that a lock is held: each worker waits for those of all others. */
static double held_s(const struct weir_job_case *c)
{
    double waited_s = lock_share(c) * c->verdict->workers.batch_s;
    return c->workers > 1 ? waited_s / (c->workers - 1) : 0;
}

static void fill_task(const struct weir_job_case *c, struct weir_simulation *to)
{
    const struct weir_thread_figures *sum = &c->verdict->workers;
    double on_core = weir_job_use(c, WEIR_TASK_ON_CORE);
    static const double LOCKED = 0.1;
    if (c->workers <= 0) { /* the loop's thread does the workers' work, in its waits */
        to->cpu_s = c->wait_s / fmax(c->batches, 1);
        return;
    }
    to->cpu_s = on_core * sum->batch_s;
    to->asleep_s = fmax(1 - on_core - weir_job_use(c, WEIR_TASK_CORE_WAIT), 0) * sum->batch_s;
    to->spread = fmin(sum->spread, 1);
    if (lock_share(c) < LOCKED)
        return;
    to->library_s = held_s(c);
    to->asleep_s = fmax(to->asleep_s - lock_share(c) * sum->batch_s, 0);
    to->cpu_s = fmax(to->cpu_s - to->library_s, 0.05 * to->cpu_s);
}

void weir_job_model_make(const struct weir_job_case *c)
{
    struct weir_model *model = &c->verdict->model;
    const struct weir_dataloader_figures *f = c->figures;
    const struct weir_thread_figures *loop = &f->loop;
    double steady_s = f->loop_s - f->first_wait_s, waits_s = f->wait_s - f->first_wait_s;
    *model = (struct weir_model){0};
    if (c->verdict->found.wait < 0 || c->batches < 2 || steady_s <= 0 ||
        (c->workers > 0 && c->verdict->workers.batch_s <= 0) || c->workers > WORKERS_MOST)
        return;
    struct weir_simulation *to = &model->now;
    to->workers = (int)c->workers;
    to->slots = (int)fmax(fmin(c->workers * c->prefetch, 4096), 1) + 1;
    to->tasks = 1;
    to->cores = c->cores;
    fill_task(c, to);
    double step_s = fmax(steady_s - waits_s, 0) / c->batches;
    double on_core = loop->wall_s > 0 && c->workers > 0 ? fmin(loop->cpu_s / loop->wall_s, 1) : 0;
    to->step_cpu_s = fmin(on_core * steady_s / c->batches, step_s);
    to->step_s = step_s - to->step_cpu_s;
    model->images_each = 1;
    model->rate = c->batches / steady_s;
    if (to->cpu_s + to->asleep_s + to->library_s > 0)
        weir_model_calibrate(model, waits_s / steady_s);
}

/* No change can save more than all waits. */
static double capped(const struct weir_job_case *c, double ratio)
{
    double most = c->verdict->headroom > 1 ? fmin(c->verdict->most, c->verdict->headroom) : c->verdict->most;
    return most > 1 ? fmin(ratio, most) : ratio;
}

double weir_job_gain_workers(const struct weir_job_case *c, double workers, double prefetch)
{
    struct weir_model_change change = WEIR_MODEL_AS_IT_IS;
    if (!c->verdict->model.known || workers > WORKERS_MOST)
        return 0;
    change.workers = workers;
    change.slots = workers * prefetch + 1;
    return capped(c, weir_model_predict(&c->verdict->model, &change, NULL));
}

double weir_job_gain_times(const struct weir_job_case *c, double cpu_times, double asleep_times)
{
    struct weir_model_change change = WEIR_MODEL_AS_IT_IS;
    if (!c->verdict->model.known)
        return 0;
    change.cpu_times = fmax(cpu_times, 0.001);
    change.asleep_times = fmax(asleep_times, 0);
    change.library_times = change.cpu_times;
    return capped(c, weir_model_predict(&c->verdict->model, &change, NULL));
}

/* Without the lock the waits for it become work, as far as there are cores for it. The simulation cannot tell how long
 * the lock is held from how long its owner waits for a core. */
double weir_job_gain_lock(const struct weir_job_case *c)
{
    double used = c->figures->wall_s > 0 ? c->figures->cpu_s / c->figures->wall_s : 0;
    double ratio = 1 / fmax(1 - lock_share(c), 0.02);
    return capped(c, used > 0 ? fmin(ratio, fmax(c->cores / used, 1)) : ratio);
}

double weir_job_gain_saved(const struct weir_job_case *c, double saved_s)
{
    double rest_s = c->train_s - fmin(fmax(saved_s, 0), 0.98 * c->train_s);
    return c->train_s > 0 ? c->train_s / rest_s : 0;
}

bool weir_job_sleeps(const struct weir_job_case *c)
{
    return weir_job_use(c, WEIR_TASK_ON_CORE) + weir_job_use(c, WEIR_TASK_CORE_WAIT) < 0.5;
}

double weir_job_best_workers(const struct weir_job_case *c, double most, double *gain)
{
    double gains[WORKERS_MOST + 1], best = 1;
    double prefetch = c->workers > 0 ? c->prefetch : 2;
    int first = (int)fmin(fmax(c->workers, 0), WORKERS_MOST) + 1, last = (int)fmin(most, WORKERS_MOST);
    *gain = 1;
    if (c->workers >= WORKERS_MOST)
        return c->workers;
    for (int n = first; n <= last; n++) {
        gains[n] = weir_job_gain_workers(c, n, prefetch);
        best = fmax(best, gains[n]);
        if (best >= capped(c, INFINITY)) /* more workers cannot gain more, and each prediction takes 0.1 ms */
            last = n;
    }
    for (int n = first; n <= last; n++) {
        if (gains[n] < (1 - WEIR_CLOSE) * best)
            continue;
        *gain = gains[n];
        return n;
    }
    return c->workers;
}
