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
#include <time.h>
#include <unistd.h>

static __thread struct weir_watch_thread *self;
static pthread_key_t ends; /* calls thread_end when a thread ends */

struct weir_watch_thread *weir_watch_self(void)
{
    return self;
}

static void thread_end(void *unused)
{
    (void)unused;
    weir_watch_thread_end();
}

/* The slots of the thread that forked belong to the parent. The segment stays mapped for it. */
static void in_child(void)
{
    if (!self)
        return;
    weir_own_file_close(&self->schedstat);
    atomic_fetch_sub(&self->watch->users, 1);
    free(self);
    self = NULL;
    pthread_setspecific(ends, NULL);
}

static void begin(void)
{
    pthread_key_create(&ends, thread_end);
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- the kernel's figures ---- */

static uint64_t thread_cpu_ns(void)
{
    struct timespec ts;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) == 0 ? (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec
                                                            : 0;
}

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
    struct weir_shared_slot *slot = t->slot;
    uint64_t cpu_ns = thread_cpu_ns(), delay_ns;
    if (cpu_ns > t->cpu_ns)
        weir_shared_add(&slot->cpu_ns, cpu_ns - t->cpu_ns);
    t->cpu_ns = cpu_ns;
    if (read_delay(&t->schedstat, &delay_ns)) {
        weir_shared_add(&slot->delay_ns, delay_ns > t->delay_ns ? delay_ns - t->delay_ns : 0);
        t->delay_ns = delay_ns;
    } else {
        atomic_store_explicit(&slot->delay_known, 0, memory_order_relaxed);
    }
    if (now > weir_shared_get(&slot->seen))
        weir_shared_put(&slot->seen, now);
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
    if (!atomic_load(&slot->ended) && !is_dead(owner))
        return false;
    return atomic_compare_exchange_strong(&slot->owner, &owner, me);
}

static void continue_slot(struct weir_shared_slot *slot, uint64_t now, bool is_new)
{
    uint64_t seen = weir_shared_get(&slot->seen), started = weir_shared_get(&slot->started);
    if (is_new || seen < started || seen > now)
        started = now;
    else
        started += now - seen; /* the time between the two threads does not count */
    weir_shared_put(&slot->started, started);
    weir_shared_put(&slot->seen, now);
    if (is_new)
        atomic_store(&slot->delay_known, 1);
    atomic_store(&slot->ended, 0);
}

/* A fresh slot's key is written before its number is counted, so that readers see the key. */
static struct weir_shared_slot *take_slot(struct weir_segment *segment, int loader, int role, int worker)
{
    uint64_t me = owner_of_self(), now = weir_clock_ticks();
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
        continue_slot(slot, now, is_new);
    weir_segment_unlock(segment);
    return slot;
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
    if (slot) {
        /* Meanwhile the thread worked for another loader. */
        uint64_t seen = weir_shared_get(&slot->seen);
        weir_shared_add(&slot->started, now > seen ? now - seen : 0);
        weir_shared_put(&slot->seen, now);
    } else if (t->n_own < WEIR_WATCH_OWN_SLOTS) {
        slot = take_slot(t->watch->segment, loader, atomic_load(&t->slot->role), atomic_load(&t->slot->worker));
        if (slot)
            t->own[t->n_own++] = slot;
    }
    if (slot)
        t->slot = slot;
    return slot != NULL;
}

void weir_watch_turn_back(struct weir_watch_thread *t)
{
    if (t->depth > 0)
        weir_watch_turn_to(t, atomic_load_explicit(&t->zones[t->depth].slot->loader, memory_order_relaxed));
}

static struct weir_watch_thread *thread_new(struct weir_watch *watch, struct weir_shared_slot *slot)
{
    struct weir_watch_thread *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->watch = watch;
    t->slot = t->own[0] = slot;
    t->n_own = 1;
    open_schedstat(&t->schedstat);
    t->cpu_ns = thread_cpu_ns();
    if (!read_delay(&t->schedstat, &t->delay_ns))
        atomic_store(&slot->delay_known, 0);
    t->attached = weir_shared_get(&slot->seen); /* when it took the slot */
    t->until_sample = 1;
    atomic_fetch_add(&watch->users, 1);
    return t;
}

int weir_watch_thread(struct weir_watch *watch, int loader, int role, int worker)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!watch || loader < 0 || loader >= WEIR_WATCH_LOADERS || role < 0 || role >= WEIR_WATCH_ROLES)
        return -1;
    pthread_once(&once, begin);
    if (self && self->watch == watch && atomic_load(&self->slot->role) == role &&
        atomic_load(&self->slot->worker) == worker)
        return weir_watch_turn_to(self, loader) ? 0 : -1;
    weir_watch_thread_end();
    struct weir_shared_slot *slot = take_slot(watch->segment, loader, role, worker);
    if (!slot)
        return -1;
    self = thread_new(watch, slot);
    if (!self) {
        atomic_store(&slot->ended, 1);
        return -1;
    }
    pthread_setspecific(ends, self);
    return 0;
}

void weir_watch_thread_end(void)
{
    struct weir_watch_thread *t = self;
    if (!t)
        return;
    while (t->depth > 0)
        weir_watch_zone_close(t, weir_clock_ticks());
    weir_watch_account(t, weir_clock_ticks());
    for (int i = 0; i < t->n_own; i++)
        atomic_store(&t->own[i]->ended, 1);
    weir_own_file_close(&t->schedstat);
    self = NULL;
    pthread_setspecific(ends, NULL);
    weir_watch_release(t->watch);
    free(t);
}

void weir_watch_close(struct weir_watch *watch)
{
    if (!watch)
        return;
    if (self && self->watch == watch)
        weir_watch_thread_end();
    weir_watch_release(watch);
}
