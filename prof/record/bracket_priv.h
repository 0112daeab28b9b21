/* bracket_priv.h: slow reference for CPU timing, used to validate the fast path. If built with -DWEIR_BRACKET_CPU=ON,
 * reads the thread's CPU clock at both ends of every zone. At exit, prints each stage's result next to the result from
 * context switches. Included by recorder.c only. */
#ifndef WEIR_PROF_RECORD_BRACKET_PRIV_H
#define WEIR_PROF_RECORD_BRACKET_PRIV_H

#include "prof/record/cells.h"

#ifdef WEIR_BRACKET_CPU
#include <stdio.h>
#include <string.h>

static __thread uint64_t bracket_start_ns[WEIR_DEPTH_MAX + 2], bracket_child_ns[WEIR_DEPTH_MAX + 2], bracket_end_ns;
static _Atomic uint64_t bracket_ns[WEIR_STAGE_MAX];

static inline void bracket_begin(const struct weir_thread *t, const struct weir_open_zone *zone)
{
    bracket_child_ns[zone - t->open] = 0;
    bracket_start_ns[zone - t->open] = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Runs before the clock reading that ends the zone, so that the zone includes the cost of both CPU clock readings. */
static inline void bracket_stop(void)
{
    bracket_end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Adds the cost of one reading, because half of the cost of each of the two readings is outside the measured interval.
 * Carved-out time gets a share of the CPU time in proportion to wall time, as in the fast path. */
static inline void bracket_end(const struct weir_thread *t, const struct weir_open_zone *zone,
                               const struct weir_cell *cell, uint64_t wall, uint64_t carved)
{
    int depth = (int)(zone - t->open);
    uint64_t all_ns = bracket_end_ns - bracket_start_ns[depth] + weir_clock_to_ns(weir_cpu_read_ticks);
    uint64_t own_ns = all_ns > bracket_child_ns[depth] ? all_ns - bracket_child_ns[depth] : 0;
    uint64_t nested = get(&zone->child), own = wall > nested ? wall - nested : 0;
    uint64_t carved_ns = own ? (uint64_t)((double)own_ns * (double)carved / (double)own) : 0;
    bracket_child_ns[depth - 1] += all_ns;
    atomic_fetch_add(&bracket_ns[cell->stage], own_ns - carved_ns);
    if (carved)
        atomic_fetch_add(&bracket_ns[zone->carved_stage], carved_ns);
}

void weir_bracket_print(struct weir_recorder *recorder)
{
    struct weir_snapshot *all = NULL;
    if (recorder->n_threads == 1) { /* the scratch session that measures the cost of a zone */
        memset(bracket_ns, 0, sizeof bracket_ns);
        return;
    }
    if (weir_snapshot_take(recorder, &all) < 0)
        return;
    uint64_t cpu_ns = 0, by_zones_ns = 0;
    for (int s = 0; s < WEIR_STAGE_MAX; s++) {
        const struct weir_stage_stats *stats = &all->stages[s];
        double dear_s = (double)atomic_load(&bracket_ns[s]) / 1e9, cheap_s = weir_stage_cpu_ns(stats) / 1e9;
        if (stats->count > 0 && dear_s > 0 && cheap_s >= 0)
            fprintf(stderr, "bracket: %-24s %8llu calls, self %9.4f s, CPU %9.4f s, bracketed %9.4f s, %+.1f %%\n",
                    weir_stage_info(s)->name, (unsigned long long)stats->count, (double)stats->self_ns / 1e9, cheap_s,
                    dear_s, 100 * (cheap_s / dear_s - 1));
    }
    for (int i = 0; i < all->n_threads; i++) {
        const struct weir_thread_stats *t = &all->threads[i];
        cpu_ns += t->cpu_known ? t->cpu_ns : 0;
        by_zones_ns += !t->cpu_known ? 0 : t->work_cpu_ns + t->wait_cpu_ns + t->unattributed_cpu_ns;
    }
    fprintf(stderr, "bracket: threads' CPU clocks %.4f s, by zones %.4f s, %+.2f %%\n", (double)cpu_ns / 1e9,
            (double)by_zones_ns / 1e9, 100 * ((double)by_zones_ns / (double)(cpu_ns ? cpu_ns : 1) - 1));
    weir_snapshot_free(&all);
}
#else
static inline void bracket_begin(const struct weir_thread *t, const struct weir_open_zone *zone)
{
    (void)t, (void)zone;
}

static inline void bracket_stop(void)
{
}

static inline void bracket_end(const struct weir_thread *t, const struct weir_open_zone *zone,
                               const struct weir_cell *cell, uint64_t wall, uint64_t carved)
{
    (void)t, (void)zone, (void)cell, (void)wall, (void)carved;
}
#endif

#endif
