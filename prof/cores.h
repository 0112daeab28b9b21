/* cores.h: how much of the machine this process may use: its CPU affinity and the limits of its control groups. */
#ifndef WEIR_PROF_CORES_H
#define WEIR_PROF_CORES_H

#include <stdint.h>

struct weir_cores {
    int online;                  /* CPUs of the machine that are on */
    int affinity;                /* CPUs that the process may be scheduled on */
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

#endif
