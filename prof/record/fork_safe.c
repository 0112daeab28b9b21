#include "prof/record/fork_priv.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* Held during a fork, so that a handler registered in the meantime does not release a lock that it has not acquired. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static weir_fork_fn *_Atomic handlers[WEIR_FORK_PARTS];

static void prepare(void)
{
    pthread_mutex_lock(&lock);
    for (int part = 0; part < WEIR_FORK_PARTS; part++)
        if (handlers[part])
            handlers[part](WEIR_FORK_PREPARE);
}

static void after(enum weir_fork when)
{
    for (int part = WEIR_FORK_PARTS - 1; part >= 0; part--)
        if (handlers[part])
            handlers[part](when);
    pthread_mutex_unlock(&lock);
}

static void in_parent(void)
{
    after(WEIR_FORK_PARENT);
}

static void in_child(void)
{
    after(WEIR_FORK_CHILD);
}

static void begin(void)
{
    pthread_atfork(prepare, in_parent, in_child);
}

void weir_fork_safe(enum weir_fork_part part, weir_fork_fn *handler)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (atomic_load_explicit(
            &handlers[part],
            memory_order_relaxed)) /* written once; relaxed, because no other data is published with it */
        return;
    pthread_once(&once, begin);
    pthread_mutex_lock(&lock);
    handlers[part] = handler;
    pthread_mutex_unlock(&lock);
}
