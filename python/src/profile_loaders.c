#include "python/src/lent.h"
#include "python/src/profile_parts.h"
#include "weir/loader.h"

#include <pthread.h>
#include <stdio.h>

enum { LOADERS_MAX = 64 };

/* The profiler's thread holds this lock while it reads a loader, so that the loader cannot be closed at that time.
 * Loaders beyond LOADERS_MAX are not registered and have no counters. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct weir_loader *loaders[LOADERS_MAX]; /* in the order in which they were opened */
static int n_loaders;
static int depth; /* weir_fork_depth of the process that opened them; a child of fork() forgets its parent's loaders */

static void hold(void)
{
    pthread_mutex_lock(&lock);
}

static void let_go(void)
{
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(hold, let_go, let_go);
}

static void forget_parents(void)
{
    if (depth != weir_fork_depth())
        n_loaders = 0;
    depth = weir_fork_depth();
}

void weir_profile_loader_opened(const struct weir_loader *loader)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    hold();
    forget_parents();
    if (n_loaders < LOADERS_MAX)
        loaders[n_loaders++] = loader;
    let_go();
}

void weir_profile_loader_closes(const struct weir_loader *loader)
{
    hold();
    forget_parents();
    int n = 0;
    for (int i = 0; i < n_loaders; i++)
        if (loaders[i] != loader)
            loaders[n++] = loaders[i];
    n_loaders = n;
    let_go();
}

void weir_profile_count_loader(void *unused)
{
    hold();
    forget_parents();
    if (n_loaders > 0)
        weir_loader_count_now(loaders[n_loaders - 1]);
    let_go();
}

void weir_profile_loader_text(char *text, size_t size)
{
    struct weir_loader_facts facts;
    text[0] = '\0';
    hold();
    forget_parents();
    if (n_loaders > 0) {
        weir_loader_facts(loaders[n_loaders - 1], &facts);
        snprintf(text, size, "\"weir_workers\": %d, \"weir_prefetch\": %d, \"weir_slot_bytes\": %zu", facts.workers,
                 facts.prefetch, facts.slot_bytes);
    }
    let_go();
}
