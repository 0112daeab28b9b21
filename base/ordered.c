#include "base/shortage.h"
#include "base/threads.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t TICK_NS = 100000000;

struct run {
    const struct weir_ordered *of;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t done;  /* signalled when a unit is done or the run ends */
    pthread_cond_t room;  /* signalled when a slot becomes free or the run ends */
    uint64_t next, delivered;
    bool *is_done; /* for each slot, whether its unit is done */
    bool stop;
    struct weir_err err;
};

struct worker {
    struct run *run;
    int number;
    pthread_t thread;
};

static void stop(struct run *run, const struct weir_err *err)
{
    pthread_mutex_lock(&run->lock);
    run->stop = true;
    if (err)
        weir_err_set(&run->err, err->code, "%s", err->text);
    pthread_cond_broadcast(&run->done);
    pthread_cond_broadcast(&run->room);
    pthread_mutex_unlock(&run->lock);
}

static bool take(struct run *run, uint64_t *unit)
{
    pthread_mutex_lock(&run->lock);
    while (!run->stop && run->next < run->of->n && run->next - run->delivered >= (uint64_t)run->of->window)
        pthread_cond_wait(&run->room, &run->lock);
    bool taken = !run->stop && run->next < run->of->n;
    *unit = run->next;
    run->next += taken;
    pthread_mutex_unlock(&run->lock);
    return taken;
}

static void *work(void *user)
{
    struct worker *worker = user;
    struct run *run = worker->run;
    for (uint64_t unit; take(run, &unit);) {
        struct weir_err err = WEIR_ERR_NONE;
        int slot = (int)(unit % (uint64_t)run->of->window);
        if (run->of->work(run->of->user, worker->number, unit, slot, &err) < 0) {
            stop(run, &err);
            break;
        }
        pthread_mutex_lock(&run->lock);
        run->is_done[slot] = true;
        pthread_cond_signal(&run->done);
        pthread_mutex_unlock(&run->lock);
    }
    return NULL;
}

/* Waits for the unit in a slot. Returns false if the run ends first. */
static bool await(struct run *run, int slot)
{
    pthread_mutex_lock(&run->lock);
    while (!run->stop && !run->is_done[slot]) {
        bool late = weir_cond_wait_ns(&run->done, &run->lock, TICK_NS) == ETIMEDOUT;
        if (!late || !run->of->tick)
            continue;
        pthread_mutex_unlock(&run->lock);
        run->of->tick(run->of->user);
        pthread_mutex_lock(&run->lock);
    }
    bool here = !run->stop;
    pthread_mutex_unlock(&run->lock);
    return here;
}

static void deliver_all(struct run *run)
{
    for (uint64_t unit = 0; unit < run->of->n; unit++) {
        struct weir_err err = WEIR_ERR_NONE;
        int slot = (int)(unit % (uint64_t)run->of->window);
        if (!await(run, slot))
            return;
        if (run->of->deliver(run->of->user, unit, slot, &err) < 0) {
            stop(run, &err);
            return;
        }
        if (run->of->tick)
            run->of->tick(run->of->user);
        pthread_mutex_lock(&run->lock);
        run->is_done[slot] = false;
        run->delivered++;
        pthread_cond_signal(&run->room);
        pthread_mutex_unlock(&run->lock);
    }
}

static int run_workers(struct run *run, struct worker *workers, struct weir_err *err)
{
    int started = 0, rc = 0;
    for (; started < run->of->workers && rc == 0; started += rc == 0) {
        workers[started] = (struct worker){.run = run, .number = started};
        rc = weir_thread_start(&workers[started].thread, work, &workers[started]);
    }
    if (started == 0)
        return weir_err_set(err, rc, "cannot start a thread: %s; %s", strerror(-rc), weir_open_advice(rc));
    deliver_all(run);
    stop(run, NULL);
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    return run->err.code < 0 ? weir_err_set(err, run->err.code, "%s", run->err.text) : 0;
}

int weir_ordered_run(const struct weir_ordered *of, struct weir_err *err)
{
    struct run run = {.of = of, .is_done = calloc((size_t)of->window, sizeof *run.is_done)};
    struct worker *workers = calloc((size_t)of->workers, sizeof *workers);
    pthread_mutex_init(&run.lock, NULL);
    weir_cond_init(&run.done);
    weir_cond_init(&run.room);
    int rc = run.is_done && workers ? run_workers(&run, workers, err) : weir_err_set(err, -ENOMEM, "out of memory");
    pthread_cond_destroy(&run.room);
    pthread_cond_destroy(&run.done);
    pthread_mutex_destroy(&run.lock);
    free(run.is_done);
    free(workers);
    return rc;
}
