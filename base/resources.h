/* resources.h: the cores and memory that this process may use, according to its affinity, its control groups and the
 * free memory.
 *
 * Control groups of version 1, version 2 or both are read, including all parents, whose limits also apply. Each call
 * reads the files again (about ten small ones, 100 us). root is prepended to every path: "" for the machine itself, or
 * a directory tree created by a test. A file that cannot be read counts as no limit. */
#ifndef WEIR_BASE_RESOURCES_H
#define WEIR_BASE_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_cores {
    int online;                  /* CPUs of the machine that are online */
    int affinity;                /* CPUs that the process may be scheduled on */
    int cpuset;                  /* CPUs that its cgroups allow, which other processes may share; 0 = unknown */
    double quota;                /* CPU time per second that its cgroups allow, in cores; 0 = no limit */
    int usable;                  /* min(affinity, quota rounded up), at least 1 */
    uint64_t memory_limit_bytes; /* limit of its cgroups; 0 = no limit */
    char quota_file[256];        /* file that contains the quota; empty if none exists */
    char memory_file[256];       /* file that contains the memory limit; empty if none exists */
};
void weir_cores_read(struct weir_cores *cores, const char *root);
/* Reads the limits of another process. Its cgroup must be below those that this process can see. pid 0: this one. */
void weir_cores_read_of(struct weir_cores *cores, const char *root, int pid);

/* Returns the usable cores of this machine, as weir_cores_read does. */
int weir_cores_usable(void);

/* Returns the number of CPUs on which another process may be scheduled; 0 = unknown. */
int weir_cores_affinity(int pid);

/* Returns one process's share of the usable cores (at least 1) when this number of processes share them, such as the
 * local ranks of a distributed run. Cores that a launcher has already assigned to each process (srun --cpu-bind, mpirun
 * --bind-to) are not divided again: the share is an equal part of all these processes' cores, but never more than the
 * affinity. together is the number of CPUs that the processes' launcher may use. If it is 0 (unknown), an affinity
 * smaller than the cgroup's CPUs is assumed to belong to this process alone. */
int weir_cores_part(const struct weir_cores *cores, int processes, int together);

/* CPU bandwidth control of this process's cgroup and its parents, summed, since the cgroups were created. */
struct weir_throttling {
    bool known;            /* false: no cpu.stat file contains these counters */
    uint64_t periods;      /* number of periods with runnable threads, in cgroups with a quota */
    uint64_t throttled;    /* number of periods in which the quota was used up */
    uint64_t throttled_ns; /* time for which run queues were stopped, summed over CPUs */
};
void weir_throttling_read(struct weir_throttling *throttling, const char *root);
void weir_throttling_read_of(struct weir_throttling *throttling, const char *root, int pid);

/* Returns the number of bytes that the memory cgroups leave to this process, or UINT64_MAX if there is no limit. For
 * each cgroup this is the limit minus the usage, where file cache that the kernel would reclaim does not count as used.
 * The result is the minimum over the process's cgroup and its parents. */
uint64_t weir_cgroup_memory_left(const char *root);

/* Returns the peak resident set size of this program in bytes, or 0 if /proc does not contain it. Reads VmHWM, because
 * ru_maxrss would include the parent's memory before exec. */
uint64_t weir_peak_rss_bytes(void);
/* Excludes memory that was allocated for a measurement only: call it when that memory is unmapped, with the peak from
 * before. Until the process needs more than the measurement did, the peak is then that value or, if larger, the size at
 * the time of the call. */
void weir_peak_rss_exclude(uint64_t before_bytes);

/* Returns the number of bytes available without swapping: the smaller of MemAvailable (free pages and reclaimable
 * cache) and weir_cgroup_memory_left. The result is at least 1, or 0 if neither is known. The address space limit
 * (RLIMIT_AS) is not considered, because the page cache does not need address space, and mmap fails when the limit is
 * reached. */
uint64_t weir_memory_available_bytes(void);
uint64_t weir_memory_available_in(const char *root);
/* Returns the number of bytes available to one of several processes that allocate the same amount at about the same
 * time: the available bytes, but at most an equal share of the total. The available bytes themselves are not divided,
 * because memory that the other processes already use is no longer part of them. */
uint64_t weir_memory_available_each(int processes);

/* Calls munmap with the size rounded up to whole pages, as the kernel would round it anyway. ThreadSanitizer forgets
 * only whole pages. It would report a race with the next owner of the last page if that owner obtained it through a
 * system call that ThreadSanitizer does not intercept (liburing's). */
void weir_memory_unmap(void *memory, size_t bytes);

#endif
