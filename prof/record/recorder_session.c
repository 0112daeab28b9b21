/* Opens and closes sessions of the recorder, attaches threads to them, and measures the cost of a zone. */
#include "base/threads.h"
#include "prof/record/cells.h"
#include "prof/record/fork_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t weir_recorders_lock = PTHREAD_MUTEX_INITIALIZER;
struct weir_recorder *weir_recorders;

static void measure_cpu_read(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 200; i++) {
        uint64_t start = weir_clock_ticks();
        clock_ns(CLOCK_THREAD_CPUTIME_ID);
        uint64_t took = weir_clock_ticks() - start;
        least = took < least ? took : least;
    }
    weir_cpu_read_ticks = least;
}

/* Acquires all sessions' locks before a fork. In the child, forgets the sessions, because their other threads do not
 * exist there. */
static void on_fork(enum weir_fork when)
{
    if (when == WEIR_FORK_PREPARE)
        pthread_mutex_lock(&weir_recorders_lock);
    for (struct weir_recorder *r = weir_recorders; r; r = r->next) {
        if (when == WEIR_FORK_PREPARE)
            pthread_mutex_lock(&r->lock);
        else
            pthread_mutex_unlock(&r->lock);
    }
    /* The kernel does not copy the rings' mappings to the child. */
    for (struct weir_recorder *r = when == WEIR_FORK_CHILD ? weir_recorders : NULL; r; r = r->next)
        for (int i = 0; i < r->n_threads; i++)
            weir_switches_forget(&r->threads[i]->switches);
    if (when == WEIR_FORK_CHILD)
        weir_recorders = NULL;
    if (when != WEIR_FORK_PREPARE)
        pthread_mutex_unlock(&weir_recorders_lock);
}

int weir_recorder_open(struct weir_recorder **out)
{
    weir_clock_init();
    weir_fork_safe(WEIR_FORK_RECORDERS, on_fork);
    *out = calloc(1, sizeof **out);
    if (!*out)
        return -ENOMEM;
    weir_throttling_read(&(*out)->throttling_opened, "");
    weir_machine_time_read(&(*out)->machine_opened, "");
    pthread_mutex_init(&(*out)->lock, NULL);
    pthread_mutex_lock(&weir_recorders_lock);
    (*out)->next = weir_recorders;
    weir_recorders = *out;
    pthread_mutex_unlock(&weir_recorders_lock);
    return 0;
}

void weir_recorder_close(struct weir_recorder **recorder)
{
    struct weir_recorder *r = *recorder;
    if (!r)
        return;
    weir_bracket_print(r);
    pthread_mutex_lock(&weir_recorders_lock);
    struct weir_recorder **link = &weir_recorders;
    while (*link && *link != r) /* a child of fork() has forgotten it */
        link = &(*link)->next;
    if (*link)
        *link = r->next;
    pthread_mutex_unlock(&weir_recorders_lock);
    for (int i = 0; i < r->n_threads; i++) {
        for (int s = 0; s < WEIR_STAGE_MAX; s++) {
            struct weir_cell *cell = atomic_load_explicit(&r->threads[i]->cells[s], memory_order_relaxed);
            if (cell != &weir_cell_nobody)
                free(cell);
        }
        free(r->threads[i]);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
    *recorder = NULL;
}

/* Finds an ended thread whose cells a joining thread can reuse. Requires the recorder's lock. */
static struct weir_thread *find_ended(const struct weir_recorder *recorder, const char *name,
                                      enum weir_thread_role role)
{
    struct weir_thread *other = NULL;
    for (int i = 0; i < recorder->n_threads; i++) {
        struct weir_thread *t = recorder->threads[i];
        if (t->role != role || !atomic_load_explicit(&t->totals->ended, memory_order_relaxed))
            continue;
        if (strncmp(t->name, name, sizeof t->name - 1) == 0)
            return t;
        other = t;
    }
    return recorder->n_threads == WEIR_THREADS_MAX ? other : NULL;
}

struct weir_thread *weir_thread_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct weir_thread *t = aligned_alloc(alignof(struct weir_thread), sizeof *t);
    pthread_once(&once, measure_cpu_read);
    if (!t)
        return NULL;
    memset(t, 0, sizeof *t);
    weir_switches_forget(&t->switches);
    t->cpu_clock = CLOCK_THREAD_CPUTIME_ID;
    t->totals = &t->own_totals;
    atomic_init(&t->top, t->open);
    t->open[1 + WEIR_DEPTH_MAX].flags.special = 1;
    return t;
}

void weir_thread_use(struct weir_thread *t, struct weir_thread_totals *totals, struct weir_cell *cells)
{
    t->totals = totals;
    t->block = cells;
    for (int s = 0; s < WEIR_STAGE_MAX; s++)
        atomic_store_explicit(&t->cells[s], NULL, memory_order_relaxed);
}

void weir_totals_resume(struct weir_thread_totals *totals, uint64_t now_ns)
{
    uint64_t seen_ns = get(&totals->seen_ns), start_ns = get(&totals->start_ns);
    put(&totals->start_ns, seen_ns < start_ns || seen_ns > now_ns ? now_ns : start_ns + (now_ns - seen_ns));
    put(&totals->seen_ns, now_ns);
}

void weir_thread_resume(struct weir_thread *t, const uint64_t *delay_ns)
{
    t->cpu_at_ns = clock_ns(t->cpu_clock);
    if (delay_ns)
        t->delay_at_ns = *delay_ns;
    else
        atomic_store_explicit(&t->totals->delay_unknown, 1, memory_order_relaxed);
}

void weir_thread_account(struct weir_thread *t, uint64_t now_ns, const uint64_t *delay_ns)
{
    uint64_t cpu_ns = clock_ns(t->cpu_clock);
    add(&t->totals->cpu_ns, cpu_ns > t->cpu_at_ns ? cpu_ns - t->cpu_at_ns : 0);
    t->cpu_at_ns = cpu_ns;
    if (delay_ns) {
        add(&t->totals->delay_ns, *delay_ns > t->delay_at_ns ? *delay_ns - t->delay_at_ns : 0);
        t->delay_at_ns = *delay_ns;
    }
    if (now_ns > get(&t->totals->seen_ns))
        put(&t->totals->seen_ns, now_ns);
}

/* Requires the recorder's lock. */
static void thread_begin(struct weir_thread *t, const char *name)
{
    uint64_t delay_ns;
    memset(t->name, 0, sizeof t->name);
    memcpy(t->name, name, strnlen(name, sizeof t->name - 1));
    t->tid = weir_thread_id();
    if (pthread_getcpuclockid(pthread_self(), &t->cpu_clock) != 0)
        t->cpu_clock = CLOCK_THREAD_CPUTIME_ID;
    weir_totals_resume(t->totals, weir_clock_monotonic_ns());
    weir_thread_resume(t, weir_run_delay_ns(t->tid, &delay_ns) ? &delay_ns : NULL);
    atomic_store_explicit(&t->totals->ended, 0, memory_order_relaxed);
}

/* Sets `exact` only if the context switches of all threads that used these cells were recorded. Otherwise CPU time is
 * sampled. Requires the recorder's lock. */
static void thread_follow(struct weir_thread *t, struct weir_switches *switches, int followed, bool is_new)
{
    t->recorder->switches_error = followed < 0 ? followed : t->recorder->switches_error;
    if (followed == 0 && !is_new && !t->exact)
        weir_switches_close(switches);
    if (followed < 0 && t->exact)
        for (int s = 0; s < WEIR_STAGE_MAX; s++) {
            struct weir_cell *cell = atomic_load_explicit(&t->cells[s], memory_order_relaxed);
            if (cell && cell->work)
                cell->until_sample = 2;
        }
    t->exact = followed == 0 && (is_new || t->exact);
    t->switches = *switches;
}

int weir_thread_attach(struct weir_recorder *recorder, const char *name, enum weir_thread_role role)
{
    struct weir_switches switches;
    if (weir_thread_self)
        return -EBUSY;
    int followed = weir_switches_open(&switches); /* without a lock: the first call on a machine can take 30 ms */
    pthread_mutex_lock(&recorder->lock);
    struct weir_thread *t = find_ended(recorder, name, role);
    bool is_new = !t, full = !t && recorder->n_threads == WEIR_THREADS_MAX;
    if (!t && !full)
        t = weir_thread_new();
    if (t && is_new) {
        t->recorder = recorder;
        t->role = role;
        recorder->threads[recorder->n_threads++] = t;
    }
    if (t) {
        thread_begin(t, name);
        thread_follow(t, &switches, followed, is_new);
    }
    pthread_mutex_unlock(&recorder->lock);
    if (!t)
        weir_switches_close(&switches);
    weir_thread_self = t;
    if (t)
        return 0;
    return full ? -ENOSPC : -ENOMEM;
}

void weir_thread_detach(void)
{
    struct weir_thread *t = weir_thread_self;
    if (!t)
        return;
    while (atomic_load_explicit(&t->top, memory_order_relaxed) > t->open)
        weir_zone_end_(t);
    uint64_t delay_ns;
    pthread_mutex_lock(&t->recorder->lock); /* a snapshot must not read the CPU clock of an ended thread */
    bool delay_known = weir_run_delay_ns(t->tid, &delay_ns);
    weir_thread_account(t, weir_clock_monotonic_ns(), delay_known ? &delay_ns : NULL);
    if (!delay_known)
        atomic_store_explicit(&t->totals->delay_unknown, 1, memory_order_relaxed);
    atomic_store_explicit(&t->totals->ended, 1, memory_order_relaxed);
    weir_switches_close(&t->switches);
    pthread_mutex_unlock(&t->recorder->lock);
    weir_thread_self = NULL;
}

void weir_thread_backdate(uint64_t ticks)
{
    struct weir_thread *t = weir_thread_self;
    if (!t)
        return;
    pthread_mutex_lock(&t->recorder->lock);
    put(&t->totals->start_ns, get(&t->totals->start_ns) - weir_clock_to_ns(ticks));
    put(&t->open[1].start, get(&t->open[1].start) - ticks);
    pthread_mutex_unlock(&t->recorder->lock);
}

/* ---- own cost ---- */

static _Atomic uint64_t zone_cost_ps; /* 0 = not measured */

static void measure_round(double *best_ns)
{
    enum { ZONES = 4096, STAGE = WEIR_STAGE_MAX - 1 }; /* any stage number works, because nothing reads these zones */
    uint64_t t0 = weir_clock_ticks();
    for (int i = 0; i < ZONES; i++) {
        weir_zone_begin(STAGE);
        weir_zone_end();
    }
    double ns = (double)weir_clock_to_ns(weir_clock_ticks() - t0) / ZONES;
    *best_ns = *best_ns == 0 || ns < *best_ns ? ns : *best_ns;
}

double weir_zone_cost_ns(void)
{
    if (get(&zone_cost_ps))
        return (double)get(&zone_cost_ps) / 1000;
    struct weir_thread *mine = weir_thread_self;
    struct weir_recorder *scratch = NULL;
    double best_ns = 0;
    weir_thread_self = NULL;
    if (weir_recorder_open(&scratch) == 0 && weir_thread_attach(scratch, "cost", WEIR_ROLE_OTHER) == 0) {
        for (int round = 0; round < 5; round++)
            measure_round(&best_ns);
        if (!weir_thread_self->exact)
            best_ns += 2.0 * (double)weir_clock_to_ns(weir_cpu_read_ticks) / WEIR_CPU_SAMPLE_EVERY;
        weir_thread_detach();
    }
    weir_recorder_close(&scratch);
    weir_thread_self = mine;
    put(&zone_cost_ps, (uint64_t)(best_ns * 1000) + 1);
    return best_ns;
}
