/* machine.h: what else went on on the machine: CPU time of others, time that quotas and the hypervisor took. */
#ifndef WEIR_PROF_REPORT_MACHINE_H
#define WEIR_PROF_REPORT_MACHINE_H

#include "base/resources.h"
#include "weir/profiler.h"

#include <stdbool.h>
#include <stdint.h>

/* Sums since the machine, or the process, began. */
struct weir_machine_now {
    uint64_t at_ns; /* weir_clock_monotonic_ns */
    bool cpus;      /* known: */
    uint64_t busy_ns,
        steal_ns;    /* of the CPUs that this process may run on; busy with whatever, stolen for other guests */
    uint64_t own_ns; /* CPU time of this process, of its children that were waited for, and of helpers */
    struct weir_throttling throttling;
};

/* Reads /proc/stat and so on below root ("" for the machine itself); some 200 us. What is not there is not known. */
void weir_machine_read(struct weir_machine_now *now, const char *root);

/* Of the report's line what does not change: cores, limits, and how loaded the machine is at this moment. part: this
 * process's part of the usable cores. */
void weir_machine_begin(struct weir_report_machine *machine, int part, const char *root);
/* And what happened between two readings. */
void weir_machine_between(struct weir_report_machine *machine, const struct weir_machine_now *then,
                          const struct weir_machine_now *now);

/* One line, and an object of the object that is open in json; nothing of a machine that is not used. */
void weir_report_machine_print(FILE *out, const struct weir_report_machine *machine);
void weir_report_machine_json(struct weir_json *json, const struct weir_report_machine *machine);

/* A process that works for this one and is not its child: its CPU time counts as this one's from now on. */
void weir_helper_begins(int pid);
/* Before it is waited for. */
void weir_helper_ends(int pid);

#endif
