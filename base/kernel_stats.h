/* kernel_stats.h: counters kept by the kernel: waits for a core, time stolen by a hypervisor, and bytes read from
 * storage. */
#ifndef WEIR_BASE_KERNEL_STATS_H
#define WEIR_BASE_KERNEL_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sets *delay_ns to the time that a thread of this process has been runnable without a core since it was created,
 * because other threads were running or its cgroup's quota was used up (/proc/self/task/TID/schedstat). Returns false
 * if the kernel does not count this. Thread-safe; takes about 20 us. */
bool weir_run_delay_ns(pid_t tid, uint64_t *delay_ns);

/* Times summed over all CPUs since boot, in clock ticks (/proc/stat). steal is the time that a hypervisor gave to other
 * machines although this one had work; busy includes it. Both are 0 if they are unavailable. */
struct weir_machine_time {
    uint64_t busy, steal;
};
void weir_machine_time_read(struct weir_machine_time *time, const char *root);

/* Returns the number of bytes that this process has read from storage, excluding page cache hits (read_bytes of
 * /proc/self/io), or UINT64_MAX if it is unavailable. Takes about 20 us. */
uint64_t weir_storage_bytes(void);

#endif
