/* The training loop: epochs, requests, steps, and steps without waits. */
#include "prof/watch/zones_priv.h"

#include <math.h>

/* Returns the calling thread, working for the loader, or NULL if it is not a training loop's. */
static struct weir_watch_thread *loop_thread(int loader)
{
    struct weir_watch_thread *t = weir_watch_self();
    if (!t || atomic_load_explicit(&t->slot->role, memory_order_relaxed) != WEIR_WATCH_LOOP)
        return NULL;
    return weir_watch_turn_to(t, loader) ? t : NULL;
}

static struct weir_shared_loader *shared_of(struct weir_watch_thread *t, int loader)
{
    return &t->watch->segment->loader[loader];
}

/* ---- steps ---- */

static void add_rate(struct weir_shared_rate *rate, uint64_t ticks)
{
    add(&rate->batches, 1);
    add(&rate->ticks, ticks);
    weir_shared_add_square(&rate->squares, ticks);
}

static void count_wait(struct weir_shared_loader *shared, const struct weir_watch_loop *loop)
{
    add(&shared->waits[loop->why], 1);
    add(&shared->wait_of[loop->why], loop->wait);
    if (loop->why == WEIR_WATCH_WAIT_OUT_OF_ORDER && loop->due_worker >= 0 && loop->due_worker < WEIR_WATCH_WORKERS)
        add(&shared->worker_wait[loop->due_worker], loop->wait);
    if (!loop->is_first)
        return;
    if (get(&shared->first_waits) == 0)
        put(&shared->run_first, loop->wait);
    add(&shared->first_waits, 1);
    add(&shared->first_wait_ticks, loop->wait);
}

/* Counts the batch whose step has just ended. All of its figures are added here, so that they agree at any time. */
static void close_step(struct weir_watch_thread *t, int loader, uint64_t now)
{
    struct weir_watch_loop *loop = &t->loops[loader];
    struct weir_shared_loader *shared = shared_of(t, loader);
    if (!loop->has_batch)
        return;
    loop->has_batch = false;
    uint64_t period = now > loop->request_start ? now - loop->request_start : 0;
    weir_watch_zone_close_stage(t, WEIR_WATCH_STEP, loader, now);
    if (loop->request_mode == WEIR_WATCH_HELD) {
        add(&shared->held_ticks, period);
    } else if (loop->request_mode == WEIR_WATCH_WINDOW) {
        loop->window++;
        add_rate(&shared->window, period);
    } else if (loop->request_mode == WEIR_WATCH_RECOVER) {
        if (--loop->recover <= 0 && loop->mode == WEIR_WATCH_RECOVER)
            loop->mode = WEIR_WATCH_NORMAL;
    } else {
        add(&shared->batches, 1);
        add(&shared->items, (uint64_t)loop->items);
        add(&shared->loop_ticks, period);
        add(&shared->wait_ticks, loop->wait);
        count_wait(shared, loop);
        if (!loop->is_first)
            add_rate(&shared->rest, period);
    }
    loop->is_first = false;
}

static void count_ready(struct weir_shared_loader *shared, int ready)
{
    bool is_first = get(&shared->ready_known) == 0;
    uint64_t n = (uint64_t)ready;
    add(&shared->ready_sum, n);
    if (is_first || n < get(&shared->ready_min))
        put(&shared->ready_min, n);
    if (n > get(&shared->ready_max))
        put(&shared->ready_max, n);
    add(&shared->ready_none, n == 0);
    add(&shared->ready_known, 1);
}

static enum weir_watch_wait why_of(int ready, int due_ready)
{
    if (ready < 0 || due_ready < 0)
        return ready == 0 ? WEIR_WATCH_WAIT_NONE_READY : WEIR_WATCH_WAIT_UNKNOWN;
    if (due_ready > 0)
        return WEIR_WATCH_WAIT_DUE_READY;
    return ready > 0 ? WEIR_WATCH_WAIT_OUT_OF_ORDER : WEIR_WATCH_WAIT_NONE_READY;
}

void weir_watch_request_begin(int loader, int ready, int due_ready, int due_worker)
{
    struct weir_watch_thread *t = loop_thread(loader);
    if (!t)
        return;
    struct weir_watch_loop *loop = &t->loops[loader];
    struct weir_shared_loader *shared = shared_of(t, loader);
    if (atomic_load_explicit(&t->watch->wake, memory_order_relaxed))
        t->watch->on_wake(t->watch);
    uint64_t now = weir_clock_ticks();
    close_step(t, loader, now);
    weir_watch_account(t, now);
    if (get(&shared->begun) == 0)
        put(&shared->begun, now);
    loop->request_start = now;
    loop->request_mode = loop->mode;
    loop->why = why_of(ready, due_ready);
    loop->ready = ready;
    loop->due_worker = due_worker;
    loop->is_open = true;
    if (loop->mode == WEIR_WATCH_NORMAL && !loop->is_first && ready >= 0)
        count_ready(shared, ready);
    weir_watch_sample_next(t);
    /* The program can time its request in a stage of the same name, which is then the only row. */
    loop->has_zone = loop->mode != WEIR_WATCH_HELD && weir_zone_stage(weir_zone_top(t->thread)) != WEIR_WATCH_WAIT_DATA;
    if (loop->has_zone)
        weir_watch_zone_open(t, WEIR_WATCH_WAIT_DATA, now);
}

void weir_watch_request_due(int loader, int due_ready)
{
    struct weir_watch_thread *t = loop_thread(loader);
    if (t && t->loops[loader].is_open)
        t->loops[loader].why = why_of(t->loops[loader].ready, due_ready);
}

/* The wait of a request that found the end of the epoch is a wait without a batch. */
static void end_of_epoch(struct weir_watch_thread *t, int loader, uint64_t wait)
{
    struct weir_shared_loader *shared = shared_of(t, loader);
    struct weir_watch_loop *loop = &t->loops[loader];
    loop->epoch_wait += wait;
    if (loop->request_mode != WEIR_WATCH_NORMAL)
        return;
    add(&shared->loop_ticks, wait);
    add(&shared->wait_ticks, wait);
}

void weir_watch_request_end(int loader, int items)
{
    struct weir_watch_thread *t = loop_thread(loader);
    struct weir_watch_loop *loop = t ? &t->loops[loader] : NULL;
    if (!t || !loop->is_open)
        return;
    uint64_t now = weir_clock_ticks();
    loop->is_open = false;
    loop->wait = now > loop->request_start ? now - loop->request_start : 0;
    if (loop->has_zone)
        weir_watch_zone_close_stage(t, WEIR_WATCH_WAIT_DATA, loader, now);
    if (items <= 0) {
        end_of_epoch(t, loader, loop->wait);
        return;
    }
    loop->items = items;
    loop->has_batch = true;
    loop->epoch_wait += loop->request_mode == WEIR_WATCH_HELD ? 0 : loop->wait;
    loop->epoch_first_wait = loop->is_first ? loop->wait : loop->epoch_first_wait;
    loop->epoch_batches++;
    loop->epoch_items += (uint64_t)items;
    add(&shared_of(t, loader)->requests, 1);
    weir_watch_zone_open(t, WEIR_WATCH_STEP, now);
}

/* ---- epochs ---- */

void weir_watch_epoch_begin(int loader)
{
    struct weir_watch_thread *t = loop_thread(loader);
    if (!t)
        return;
    struct weir_watch_loop *loop = &t->loops[loader];
    weir_watch_zone_drop(t, WEIR_WATCH_STEP, loader);
    uint64_t startup = loop->startup;
    *loop = (struct weir_watch_loop){.mode = loop->mode, .recover = loop->recover};
    loop->startup = startup;
    loop->in_epoch = loop->is_first = true;
    loop->epoch_start = weir_clock_ticks();
}

void weir_watch_epoch_end(int loader, int complete)
{
    struct weir_watch_thread *t = loop_thread(loader);
    struct weir_watch_loop *loop = t ? &t->loops[loader] : NULL;
    if (!t || !loop->in_epoch)
        return;
    struct weir_shared_loader *shared = shared_of(t, loader);
    uint64_t now = weir_clock_ticks(), number = get(&shared->epochs) + 1;
    struct weir_shared_epoch *epoch = &shared->epoch[number % WEIR_WATCH_EPOCHS];
    if (loop->is_open && loop->has_zone)
        weir_watch_zone_drop(t, WEIR_WATCH_WAIT_DATA, loader);
    weir_watch_zone_drop(t, WEIR_WATCH_STEP, loader); /* the end of the last step of a broken loop is not known */
    loop->is_open = loop->has_batch = loop->in_epoch = false;
    weir_watch_account(t, now);
    put(&epoch->number, number);
    put(&epoch->complete, complete != 0);
    put(&epoch->total, now > loop->epoch_start ? now - loop->epoch_start : 0);
    put(&epoch->wait, loop->epoch_wait);
    put(&epoch->first_wait, loop->epoch_first_wait);
    put(&epoch->startup, loop->startup);
    put(&epoch->batches, loop->epoch_batches);
    put(&epoch->items, loop->epoch_items);
    loop->startup = 0;
    add(&shared->epochs_complete, complete != 0);
    put(&shared->epochs, number);
    weir_watch_turn_back(t);
}

void weir_watch_startup(int loader, double seconds)
{
    struct weir_watch_thread *t = loop_thread(loader);
    if (!t || !isfinite(seconds) || seconds < 0 || seconds > 1e6)
        return;
    uint64_t ticks = (uint64_t)(seconds * 1e9 / weir_clock_ns_per_tick());
    add(&shared_of(t, loader)->startups, 1);
    add(&shared_of(t, loader)->startup_ticks, ticks);
    t->loops[loader].startup = ticks;
}

/* ---- without waits ---- */

static double setting(const struct weir_shared_loader *shared, const char *key)
{
    return fmax(weir_shared_double(&shared->numbers[weir_watch_number_key(key)]), 0);
}

void weir_watch_headroom(int loader, int phase)
{
    struct weir_watch_thread *t = loop_thread(loader);
    if (!t)
        return;
    struct weir_watch_loop *loop = &t->loops[loader];
    struct weir_shared_loader *shared = shared_of(t, loader);
    int workers = (int)fmin(setting(shared, "num_workers"), 1024);
    int prefetch = (int)fmin(setting(shared, "prefetch_factor"), 64);
    if (phase == 2) {
        loop->mode = WEIR_WATCH_HELD;
        loop->window = 0;
    } else if (phase == 1) {
        loop->mode = WEIR_WATCH_WINDOW;
    } else {
        add(phase == 0 ? &shared->windows : &shared->given_up, 1);
        /* How many batches any other iterable has prepared meanwhile is not known. */
        loop->recover = setting(shared, "any_iterable") > 0 ? loop->window : workers * prefetch;
        loop->mode = loop->recover > 0 ? WEIR_WATCH_RECOVER : WEIR_WATCH_NORMAL;
    }
}
