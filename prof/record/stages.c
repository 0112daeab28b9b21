#include "base/threads.h"
#include "weir/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* Each entry is written once, before its pointer is published. */
static const struct weir_stage_info *_Atomic stages[WEIR_STAGE_MAX];
static struct weir_stage_info named[WEIR_STAGE_MAX]; /* entries of stages that were registered by name */
static _Atomic int stage_count;
static pthread_mutex_t stage_lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((constructor)) static void watch_forks(void)
{
    weir_fork_lock(&stage_lock);
}

const struct weir_stage_info *weir_stage_info(int stage)
{
    return stage >= 0 && stage < WEIR_STAGE_MAX ? atomic_load_explicit(&stages[stage], memory_order_acquire) : NULL;
}

int weir_stage_count(void)
{
    return atomic_load_explicit(&stage_count, memory_order_acquire);
}

/* This function and the functions below require the lock. */
static void publish(int stage, const struct weir_stage_info *info)
{
    atomic_store_explicit(&stages[stage], info, memory_order_release);
    if (stage >= weir_stage_count())
        atomic_store_explicit(&stage_count, stage + 1, memory_order_release);
}

static int find(const char *name)
{
    for (int i = 0; i < weir_stage_count(); i++)
        if (weir_stage_info(i) && strcmp(weir_stage_info(i)->name, name) == 0)
            return i;
    return -ENOENT;
}

static bool is_free(const struct weir_stage_info *table, int n)
{
    for (int i = 0; i < n; i++)
        if (table[i].name && weir_stage_info(i) && weir_stage_info(i) != &table[i])
            return false;
    return true;
}

int weir_stages_register(const struct weir_stage_info *table, int n)
{
    if (n > WEIR_STAGE_TABLE_MAX)
        return -E2BIG;
    pthread_mutex_lock(&stage_lock);
    bool free = is_free(table, n);
    for (int i = 0; i < n && free; i++)
        if (table[i].name)
            publish(i, &table[i]);
    pthread_mutex_unlock(&stage_lock);
    return free ? 0 : -EEXIST;
}

int weir_stage_register(const char *name, enum weir_stage_kind kind, bool consumer)
{
    pthread_mutex_lock(&stage_lock);
    int id = find(name), n = weir_stage_count();
    n = n > WEIR_STAGE_TABLE_MAX ? n : WEIR_STAGE_TABLE_MAX;
    if (id < 0 && n == WEIR_STAGE_MAX)
        id = -ENOSPC;
    if (id == -ENOENT) {
        id = n;
        named[id] = (struct weir_stage_info){.name = name, .kind = kind, .consumer = consumer};
        publish(id, &named[id]);
    }
    pthread_mutex_unlock(&stage_lock);
    return id;
}
