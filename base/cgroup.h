/* cgroup.h: what the kernel's control groups, version 1, version 2 or both at once, allow this process, and what they
 * have held back. Folders are read anew by each call: some ten small files, 100 us. */
#ifndef WEIR_BASE_CGROUP_H
#define WEIR_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_CGROUP_PATH = 1024 };

/* Calls visit for the folder of this process's cgroup in the controller's hierarchy ("cpu", "memory", "cpuset"), and
 * for each of its parents up to the root of the mount, which is all that a container sees; limits of parents hold too.
 * root is put before every path (a test's own tree); "" for the machine itself. Where both versions are mounted, both
 * are walked: a controller lives in one of them, and its files are in that one only. No visit without cgroups. */
typedef void (*weir_cgroup_visit)(void *user, const char *folder, int version);
void weir_cgroup_walk(const char *root, const char *controller, weir_cgroup_visit visit, void *user);

/* The first line of FOLDER/NAME, without its end; false when there is none. path: where it was read. */
bool weir_cgroup_line(const char *folder, const char *name, char path[WEIR_CGROUP_PATH], char *line, size_t size);
/* A number from a file of "KEY NUMBER" lines such as cpu.stat; false when it is not there. */
bool weir_cgroup_stat(const char *folder, const char *name, const char *key, uint64_t *value);

/* CPU bandwidth control, of this process's cgroup and its parents together, since they were made. */
struct weir_throttling {
    bool known;            /* false: no cpu.stat that counts it */
    uint64_t periods;      /* in which something wanted to run, of cgroups that have a quota */
    uint64_t throttled;    /* of these, in which the quota was used up */
    uint64_t throttled_ns; /* run queues were held back, summed over CPUs: of four stopped CPUs four times the time */
};
void weir_throttling_read(struct weir_throttling *throttling, const char *root);

/* What the memory cgroups leave to this process, bytes: the limit less what is used, file cache that the kernel would
 * give up for it not counted as used; the least over the cgroup and its parents. UINT64_MAX without a limit. */
uint64_t weir_cgroup_memory_left(const char *root);

#endif
