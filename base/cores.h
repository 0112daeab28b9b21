/* cores.h: how much of the machine this process may use: its CPU affinity and the limits of its control groups. */
#ifndef WEIR_BASE_CORES_H
#define WEIR_BASE_CORES_H

#include <stdint.h>

struct weir_cores {
    int online;                  /* CPUs of the machine that are on */
    int affinity;                /* CPUs that the process may be scheduled on */
    int cpuset;                  /* CPUs that its cgroups allow, other processes in them too; 0 = not known */
    double quota;                /* CPU time per second that its cgroups allow, in cores; 0 = no limit */
    int usable;                  /* min(affinity, quota rounded up), at least 1 */
    uint64_t memory_limit_bytes; /* of its cgroups; 0 = no limit */
    char quota_file[256];        /* where the quota was read; empty without one */
    char memory_file[256];       /* likewise */
};

/* Reads all of it. root is put before every path (a test's own tree); "" for the machine itself. What cannot be read
 * counts as no limit. */
void weir_cores_read(struct weir_cores *cores, const char *root);

/* weir_cores_read(..., "").usable */
int weir_cores_usable(void);

/* CPUs that another process may be scheduled on; 0 = not known. */
int weir_cores_affinity(int pid);

/* What of the usable cores is one process's part, when so many share them (the local ranks of a distributed run). Where
 * a launcher has given each process cores of its own (srun --cpu-bind, mpirun --bind-to), these are not divided again:
 * the part is an even one of the cores that all have together, and never more than the affinity. together: CPUs that
 * the process that started them may use; 0 = not known, and an affinity smaller than the cgroup's CPUs is the process's
 * own. At least 1. */
int weir_cores_part(const struct weir_cores *cores, int processes, int together);

#endif
