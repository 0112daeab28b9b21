/* resources.h: the cores and memory that this process may use: affinity, control groups, free memory.
 *
 * Control groups of version 1, version 2 or both at once are read, with all parents, whose limits apply too. Files are
 * read anew by each call: some ten small ones, 100 us. root is put before every path (a test's own tree); "" is the
 * machine itself. Files that cannot be read count as no limit. */
#ifndef WEIR_BASE_RESOURCES_H
#define WEIR_BASE_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_cores {
    int online;                  /* CPUs of the machine that are online */
    int affinity;                /* CPUs that the process may be scheduled on */
    int cpuset;                  /* CPUs that its cgroups allow, shared with other processes; 0 = unknown */
    double quota;                /* CPU time per second that its cgroups allow, in cores; 0 = no limit */
    int usable;                  /* min(affinity, quota rounded up), at least 1 */
    uint64_t memory_limit_bytes; /* of its cgroups; 0 = no limit */
    char quota_file[256];        /* source of the quota; empty without one */
    char memory_file[256];       /* source of the memory limit; empty without one */
};
void weir_cores_read(struct weir_cores *cores, const char *root);

/* weir_cores_read(..., "").usable */
int weir_cores_usable(void);

/* CPUs that another process may be scheduled on; 0 = unknown. */
int weir_cores_affinity(int pid);

/* One process's part of the usable cores when so many processes share them (the local ranks of a distributed run).
 * Cores that a launcher has assigned to each process (srun --cpu-bind, mpirun --bind-to) are not divided again: the
 * part is an even one of all these processes' cores, and never more than the affinity. together: CPUs that the
 * processes' launcher may use; 0 = unknown, and an affinity smaller than the cgroup's CPUs is the process's own. At
 * least 1. */
int weir_cores_part(const struct weir_cores *cores, int processes, int together);

/* CPU bandwidth control of this process's cgroup and its parents together, since they were created. */
struct weir_throttling {
    bool known;            /* false: no cpu.stat counts it */
    uint64_t periods;      /* periods with runnable threads, of cgroups with a quota */
    uint64_t throttled;    /* periods that used up the quota */
    uint64_t throttled_ns; /* time that run queues were stopped, summed over CPUs */
};
void weir_throttling_read(struct weir_throttling *throttling, const char *root);

/* Bytes that the memory cgroups leave to this process: the limit minus usage, not counting file cache that the kernel
 * would reclaim; the least of the cgroup and its parents. UINT64_MAX without a limit. */
uint64_t weir_cgroup_memory_left(const char *root);

/* Peak resident set of this program, bytes (VmHWM; ru_maxrss would include the parent's before exec). 0 if /proc does
 * not have it. */
uint64_t weir_peak_rss_bytes(void);

/* Bytes available without swapping: the smaller of MemAvailable (free pages and reclaimable cache) and
 * weir_cgroup_memory_left; at least 1, and 0 when neither is known. Address space (RLIMIT_AS) is not counted: the page
 * cache needs none, and mmap fails when it is used up. */
uint64_t weir_memory_available_bytes(void);
uint64_t weir_memory_available_in(const char *root);
/* For one of several processes that allocate the same amount at about the same time: the available bytes, but at most
 * an even part of the total. Memory that the others already hold is no longer available, so it is not divided. */
uint64_t weir_memory_available_each(int processes);

/* munmap, rounded up to whole pages, as the kernel does it anyway. ThreadSanitizer forgets whole pages only, and would
 * report a race with the next owner of the last page, who may get it by a system call that it does not see
 * (liburing's).
 */
void weir_memory_unmap(void *memory, size_t bytes);

#endif
