#include "prof/record/fork_priv.h"

#include <pthread.h>

static void prepare(void)
{
    weir_recorders_fork(WEIR_FORK_PREPARE);
    weir_tracks_fork(WEIR_FORK_PREPARE);
    weir_names_fork(WEIR_FORK_PREPARE);
    weir_stacks_fork(WEIR_FORK_PREPARE);
}

static void after(enum weir_fork when)
{
    weir_stacks_fork(when);
    weir_names_fork(when);
    weir_tracks_fork(when);
    weir_recorders_fork(when);
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

void weir_fork_safe(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
}
