/* sched_stats.h: what the kernel's scheduler has counted: how long a thread was ready to run without a core, and what a
 * hypervisor has taken from the machine. */
#ifndef WEIR_BASE_SCHED_STATS_H
#define WEIR_BASE_SCHED_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* For how long the thread of this process was ready to run and had no core, ns, since it was made: because others had
 * them, or because its cgroup had used up its quota. False when the kernel does not count it
 * (/proc/self/task/TID/schedstat). Any thread may ask; some 20 us. */
bool weir_run_delay_ns(pid_t tid, uint64_t *delay_ns);

/* Of all CPUs of the machine since it started, in units that do not matter (/proc/stat). steal is what a hypervisor
 * gave to other machines while this one had work; busy includes it. All 0 when it cannot be read. */
struct weir_machine_time {
    uint64_t busy, steal;
};
void weir_machine_time_read(struct weir_machine_time *time, const char *root);

#endif
