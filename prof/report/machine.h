/* machine.h: activity outside the process: CPU time of other processes, and time taken by quotas and the hypervisor. */
#ifndef WEIR_PROF_REPORT_MACHINE_H
#define WEIR_PROF_REPORT_MACHINE_H

#include "base/resources.h"
#include "weir/profiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Sums since boot, or since the process began. */
struct weir_machine_now {
    uint64_t at_ns;             /* weir_clock_monotonic_ns */
    bool cpus;                  /* the next two are known */
    uint64_t busy_ns, steal_ns; /* of the CPUs usable by this process; stolen for other guests */
    uint64_t own_ns;            /* CPU time of this process, its reaped children and its helpers */
    struct weir_throttling throttling;
};

/* Reads /proc/stat and similar files below root ("" for the real ones); takes about 200 us. Missing files leave their
 * figures unknown. */
void weir_machine_read(struct weir_machine_now *now, const char *root);

/* Fills the constant part of the report's line: cores, limits, and the load at this moment. part: this process's share
 * of the usable cores. */
void weir_machine_begin(struct weir_report_machine *machine, int part, const char *root);
/* Adds what happened between two readings. */
void weir_machine_between(struct weir_report_machine *machine, const struct weir_machine_now *then,
                          const struct weir_machine_now *now);

/* Prints one line; nothing when the machine is unused. */
void weir_report_machine_print(FILE *out, const struct weir_report_machine *machine);

/* Counts the CPU time of pid, a helper that is not a child of this process, as this process's from now on. */
void weir_helper_begins(int pid);
/* Call before waiting for the helper. */
void weir_helper_ends(int pid);

#endif
