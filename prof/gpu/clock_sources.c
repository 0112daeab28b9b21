#include "prof/gpu/clock_sources.h"
#include "base/grow.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 64 << 20 };

static _Atomic uint32_t recording; /* relaxed, because it does no harm if a launch sees a change slightly late */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the variables below */
static struct weir_clock_source *sources;
static struct weir_clock_launches *launches; /* launches of the recording that is running or paused */
static uint32_t number;

uint32_t weir_clock_recording(void)
{
    return atomic_load_explicit(&recording, memory_order_relaxed);
}

/* ---- launches ---- */

static bool has_room(struct weir_clock_launches *l, size_t bytes)
{
    return bytes <= BYTES_MAX - l->bytes && weir_grow(&l->at, l->n, sizeof *l->at);
}

void weir_clock_launches_add(struct weir_clock_launches *l, const struct weir_clock_launch *launch)
{
    void *table = has_room(l, launch->bytes) ? malloc(launch->bytes ? launch->bytes : 1) : NULL;
    if (!table) {
        l->lost++;
        return;
    }
    memcpy(table, launch->table, launch->bytes);
    l->bytes += launch->bytes;
    l->at[l->n] = *launch;
    l->at[l->n++].table = table;
}

void weir_clock_launches_clear(struct weir_clock_launches *l)
{
    for (size_t i = 0; i < l->n; i++)
        free((void *)(uintptr_t)l->at[i].table);
    free(l->at);
    *l = (struct weir_clock_launches){0};
}

/* ---- sources ---- */

void weir_clock_source_add(struct weir_clock_source *source)
{
    pthread_mutex_lock(&lock);
    source->next = sources;
    sources = source;
    pthread_mutex_unlock(&lock);
}

void weir_clock_source_remove(struct weir_clock_source *source)
{
    pthread_mutex_lock(&lock);
    struct weir_clock_source **at = &sources;
    while (*at && *at != source)
        at = &(*at)->next;
    if (*at) {
        *at = source->next;
        if (launches)
            source->collect(source->user, number, launches);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- a recording ---- */

void weir_clock_recording_begin(struct weir_clock_launches *to)
{
    pthread_mutex_lock(&lock);
    launches = to;
    number = number == UINT32_MAX ? 1 : number + 1;
    atomic_store_explicit(&recording, number, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

void weir_clock_recording_pause(void)
{
    atomic_store_explicit(&recording, 0, memory_order_relaxed);
}

void weir_clock_recording_end(void)
{
    pthread_mutex_lock(&lock);
    for (struct weir_clock_source *source = sources; source && launches; source = source->next)
        source->collect(source->user, number, launches);
    launches = NULL;
    pthread_mutex_unlock(&lock);
}
