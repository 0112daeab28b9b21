/* cores.h: who takes cores from a job's threads. Pure functions of figures, whatever measured them: a loader, a watched
 * DataLoader, a job seen from outside, or the loop of a Python program. */
#ifndef WEIR_ANALYZE_CAUSES_CORES_H
#define WEIR_ANALYZE_CAUSES_CORES_H

#include <stdbool.h>

/* Fractions are of the threads' time; cores are means over that time. */
struct weir_core_figures {
    double core_wait;   /* ready to run, but on no core; throttling included where it cannot be told apart */
    double throttled;   /* the same, because the quota was used up; 0 = unknown */
    double ready;       /* on a core, or ready to run for either reason */
    double periods;     /* fraction of the quota's periods in which it was used up */
    double quota_cores; /* 0 = no quota */
    int cores;          /* that the job may use, without the quota */
    double usable;      /* the same, with the quota and a rank's part */
    double own_cores;   /* used by the job; 0 = unknown */
    double others_cores, steal_cores; /* used by other processes, and taken by the host; -1 = unknown */
};

/* Returns the fraction of threads' time from which their waits for a core are notable: half as much if others use most
 * of the cores. */
double weir_core_wait_least(const struct weir_core_figures *figures);
/* Returns whether the CPU quota is used up. */
bool weir_quota_is_used_up(const struct weir_core_figures *figures);
/* Returns whether the host gives the machine's cores to others, and threads could have used them. */
bool weir_host_takes_cores(const struct weir_core_figures *figures);
/* Returns whether threads wait for cores that the job does not use itself. True also if nobody knows what others use.
 */
bool weir_others_take_cores(const struct weir_core_figures *figures);

#endif
