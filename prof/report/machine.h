/* machine.h: measures activity outside the process: CPU time used by other processes, and CPU time taken away by quotas
 * and the hypervisor. */
#ifndef WEIR_PROF_REPORT_MACHINE_H
#define WEIR_PROF_REPORT_MACHINE_H

#include "base/resources.h"
#include "weir/profiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Totals since boot, or since the process began. */
struct weir_machine_now {
    uint64_t at_ns;             /* time of the reading, from weir_clock_monotonic_ns */
    bool cpus;                  /* busy_ns and steal_ns are known */
    uint64_t busy_ns, steal_ns; /* busy time of the CPUs of this process; stolen time of these CPUs */
    uint64_t own_ns;            /* CPU time of this process, its reaped children and its helpers */
    struct weir_throttling throttling;
};

/* Reads /proc/stat and similar files below root ("" for the real ones), which takes about 200 us. Figures from missing
 * files stay unknown. */
void weir_machine_read(struct weir_machine_now *now, const char *root);

/* Reads the same for another process: its CPUs and its quota. own_ns: CPU time of the processes that count as its own.
 */
void weir_machine_read_of(struct weir_machine_now *now, const char *root, int pid, uint64_t own_ns);

/* Fills the constant part of the machine line: cores, limits, and the current load. part: this process's share of the
 * usable cores. */
void weir_machine_begin(struct weir_report_machine *machine, int part, const char *root);
void weir_machine_begin_of(struct weir_report_machine *machine, const char *root, int pid);
/* Adds the CPU time used, stolen and throttled between two readings. */
void weir_machine_between(struct weir_report_machine *machine, const struct weir_machine_now *then,
                          const struct weir_machine_now *now);

/* Prints the machine line, or nothing if `machine` has not been filled. */
void weir_report_machine_print(FILE *out, const struct weir_report_machine *machine);

/* Returns the CPU time of a running process and of its reaped children; 0 if it cannot be read. */
uint64_t weir_process_cpu_ns(int pid);

/* From now on, counts the CPU time of the helper process pid, which is not a child of this process, as this process's
 * own. */
void weir_helper_begins(int pid);
/* Stops counting a helper's CPU time. Call this before waiting for the helper. */
void weir_helper_ends(int pid);

#endif
