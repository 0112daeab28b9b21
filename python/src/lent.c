#include "python/src/lent.h"
#include "pipeline/loader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct weir_lent {
    _Atomic int references;
    int fork_depth;
    void *memory; /* NULL = the loader's */
    size_t bytes;
};

static _Atomic int depth;

static void on_child(void)
{
    atomic_fetch_add_explicit(&depth, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, on_child);
}

void weir_lent_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}

int weir_fork_depth(void)
{
    return atomic_load_explicit(&depth, memory_order_relaxed);
}

struct weir_lent *weir_lent_new(void)
{
    struct weir_lent *lent = calloc(1, sizeof *lent);
    if (!lent)
        return NULL;
    atomic_init(&lent->references, 1);
    lent->fork_depth = weir_fork_depth();
    return lent;
}

void weir_lent_take(struct weir_lent *lent)
{
    atomic_fetch_add_explicit(&lent->references, 1, memory_order_relaxed);
}

void weir_lent_drop(struct weir_lent *lent)
{
    if (lent->fork_depth != weir_fork_depth())
        return;
    /* Release: what this thread read of the memory was read before it is anyone else's. */
    if (atomic_fetch_sub_explicit(&lent->references, 1, memory_order_acq_rel) > 1)
        return;
    if (lent->memory)
        weir_loader_free_kept(lent->memory, lent->bytes);
    free(lent);
}

bool weir_lent_is_free(const struct weir_lent *lent)
{
    return atomic_load_explicit(&lent->references, memory_order_acquire) == 1;
}

void weir_lent_give(struct weir_lent *lent, void *memory, size_t bytes)
{
    lent->memory = memory;
    lent->bytes = bytes;
}
