/* Threads and their slots. */
#include "base/threads.h"
#include "prof/watch/zones_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__thread struct weir_watch_thread *weir_watch_mine __attribute__((tls_model("initial-exec")));
static pthread_key_t ends; /* calls thread_end when a thread ends */

static void thread_end(void *unused)
{
    (void)unused;
    weir_watch_thread_end();
}

/* The slots of the thread that forked belong to the parent. The segment stays mapped for it. */
static void in_child(void)
{
    if (!weir_watch_mine)
        return;
    weir_own_file_close(&weir_watch_mine->schedstat);
    atomic_fetch_sub(&weir_watch_mine->watch->users, 1);
    free(weir_watch_mine->thread);
    free(weir_watch_mine);
    weir_watch_mine = NULL;
    pthread_setspecific(ends, NULL);
}

static void begin(void)
{
    pthread_key_create(&ends, thread_end);
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- the kernel's figures ---- */

static void open_schedstat(struct weir_own_file *file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)weir_thread_id());
    weir_own_file_set(file, open(path, O_RDONLY | O_CLOEXEC));
}

static bool read_delay(struct weir_own_file *file, uint64_t *delay_ns)
{
    char text[96];
    uint64_t run_ns;
    if (file->fd >= 0 && !weir_own_file_is_open(file))
        open_schedstat(file);
    ssize_t n = file->fd >= 0 ? pread(file->fd, text, sizeof text - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    return sscanf(text, "%" SCNu64 " %" SCNu64, &run_ns, delay_ns) == 2 && run_ns > 0;
}

void weir_watch_account(struct weir_watch_thread *t, uint64_t now)
{
    uint64_t delay_ns;
    bool known = read_delay(&t->schedstat, &delay_ns);
    weir_thread_account(t->thread, weir_clock_to_ns(now), known ? &delay_ns : NULL);
    if (!known)
        atomic_store_explicit(&t->slot->totals.delay_unknown, 1, memory_order_relaxed);
}

/* ---- slots ---- */

static uint64_t owner_of_self(void)
{
    return (uint64_t)(uint32_t)getpid() << 32 | (uint32_t)weir_thread_id();
}

static bool is_dead(uint64_t owner)
{
    pid_t pid = (pid_t)(owner >> 32);
    return pid <= 0 || (kill(pid, 0) < 0 && errno == ESRCH);
}

static bool has_key(struct weir_shared_slot *slot, int loader, int role, int worker)
{
    return atomic_load(&slot->loader) == loader && atomic_load(&slot->role) == role &&
           atomic_load(&slot->worker) == worker;
}

/* Takes over the slot if its thread has ended, as the only one that does. */
static bool take_back(struct weir_shared_slot *slot, uint64_t me)
{
    uint64_t owner = atomic_load(&slot->owner);
    if (!atomic_load(&slot->totals.ended) && !is_dead(owner))
        return false;
    return atomic_compare_exchange_strong(&slot->owner, &owner, me);
}

/* A fresh slot's key is written before its number is counted, so that readers see the key. */
static struct weir_shared_slot *take_slot(struct weir_segment *segment, int loader, int role, int worker)
{
    uint64_t me = owner_of_self();
    struct weir_shared_slot *slot = NULL;
    weir_segment_lock(segment);
    uint32_t n = atomic_load(&segment->slots);
    n = n < WEIR_SEGMENT_SLOTS ? n : WEIR_SEGMENT_SLOTS;
    for (uint32_t i = 0; i < n && !slot; i++)
        if (has_key(&segment->slot[i], loader, role, worker) && take_back(&segment->slot[i], me))
            slot = &segment->slot[i];
    bool is_new = !slot && n < WEIR_SEGMENT_SLOTS;
    if (is_new) {
        slot = &segment->slot[n];
        atomic_store(&slot->loader, loader);
        atomic_store(&slot->role, role);
        atomic_store(&slot->worker, worker);
        atomic_store(&slot->owner, me);
        atomic_store(&segment->slots, n + 1);
    }
    if (slot)
        atomic_store(&slot->totals.ended, 0);
    weir_segment_unlock(segment);
    return slot;
}

/* The time in which the thread worked for another loader, or the slot had no thread, does not count. */
static void use_slot(struct weir_watch_thread *t, struct weir_shared_slot *slot, uint64_t now)
{
    t->slot = slot;
    weir_thread_use(t->thread, &slot->totals, slot->cells);
    weir_totals_resume(&slot->totals, weir_clock_to_ns(now));
}

bool weir_watch_turn_to(struct weir_watch_thread *t, int loader)
{
    struct weir_shared_slot *slot = NULL;
    if (!t || loader < 0 || loader >= WEIR_WATCH_LOADERS)
        return false;
    if (atomic_load_explicit(&t->slot->loader, memory_order_relaxed) == loader)
        return true;
    for (int i = 0; i < t->n_own; i++)
        if (atomic_load_explicit(&t->own[i]->loader, memory_order_relaxed) == loader)
            slot = t->own[i];
    uint64_t now = weir_clock_ticks();
    weir_watch_account(t, now);
    if (!slot && t->n_own < WEIR_WATCH_OWN_SLOTS) {
        slot = take_slot(t->watch->segment, loader, atomic_load(&t->slot->role), atomic_load(&t->slot->worker));
        if (slot)
            t->own[t->n_own++] = slot;
    }
    if (slot)
        use_slot(t, slot, now);
    return slot != NULL;
}

void weir_watch_turn_back(struct weir_watch_thread *t)
{
    const struct weir_open_zone *zone = weir_zone_top(t->thread);
    const struct weir_shared_slot *slot = zone > t->thread->open ? zone->owner : NULL;
    if (slot)
        weir_watch_turn_to(t, atomic_load_explicit(&slot->loader, memory_order_relaxed));
}

static struct weir_watch_thread *thread_new(struct weir_watch *watch, struct weir_shared_slot *slot)
{
    struct weir_watch_thread *t = calloc(1, sizeof *t);
    struct weir_thread *thread = weir_thread_new();
    uint64_t delay_ns;
    if (!t || !thread) {
        free(t);
        free(thread);
        return NULL;
    }
    t->watch = watch;
    t->thread = thread;
    t->own[0] = slot;
    t->n_own = 1;
    t->until_sample = 1;
    weir_thread_sample(thread, false);
    t->lap.at = weir_clock_ticks();
    use_slot(t, slot, t->lap.at);
    open_schedstat(&t->schedstat);
    weir_thread_resume(thread, read_delay(&t->schedstat, &delay_ns) ? &delay_ns : NULL);
    atomic_fetch_add(&watch->users, 1);
    return t;
}

int weir_watch_thread(struct weir_watch *watch, int loader, int role, int worker)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!watch || loader < 0 || loader >= WEIR_WATCH_LOADERS || role < 0 || role >= WEIR_WATCH_ROLES)
        return -1;
    pthread_once(&once, begin);
    if (weir_watch_mine && weir_watch_mine->watch == watch && atomic_load(&weir_watch_mine->slot->role) == role &&
        atomic_load(&weir_watch_mine->slot->worker) == worker)
        return weir_watch_turn_to(weir_watch_mine, loader) ? 0 : -1;
    weir_watch_thread_end();
    struct weir_shared_slot *slot = take_slot(watch->segment, loader, role, worker);
    if (!slot)
        return -1;
    weir_watch_mine = thread_new(watch, slot);
    if (!weir_watch_mine) {
        atomic_store(&slot->totals.ended, 1);
        return -1;
    }
    pthread_setspecific(ends, weir_watch_mine);
    return 0;
}

void weir_watch_thread_end(void)
{
    struct weir_watch_thread *t = weir_watch_mine;
    if (!t)
        return;
    while (weir_zone_top(t->thread) > t->thread->open)
        weir_zone_end_(t->thread);
    weir_watch_account(t, weir_clock_ticks());
    for (int i = 0; i < t->n_own; i++)
        atomic_store(&t->own[i]->totals.ended, 1);
    weir_own_file_close(&t->schedstat);
    weir_watch_mine = NULL;
    pthread_setspecific(ends, NULL);
    weir_watch_release(t->watch);
    free(t->thread);
    free(t);
}

void weir_watch_close(struct weir_watch *watch)
{
    if (!watch)
        return;
    if (weir_watch_mine && weir_watch_mine->watch == watch)
        weir_watch_thread_end();
    weir_watch_release(watch);
}
