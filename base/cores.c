#include "base/cores.h"
#include "base/cgroup.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CPUS_MAX = 1 << 16 };

/* The smallest limit so far, and where it was read. */
struct limit {
    double least; /* 0 = none */
    char *file;
    size_t file_size, root_length;
};

static void note(struct limit *limit, double value, const char *path)
{
    if (value <= 0 || (limit->least > 0 && value >= limit->least))
        return;
    limit->least = value;
    snprintf(limit->file, limit->file_size, "%s", path + limit->root_length);
}

static void cpu_limit(void *user, const char *folder, int version)
{
    char line[64], path[WEIR_CGROUP_PATH];
    double quota = 0, period = 0;
    if (version == 1) {
        if (weir_cgroup_line(folder, "cpu.cfs_period_us", path, line, sizeof line))
            period = strtod(line, NULL);
        if (weir_cgroup_line(folder, "cpu.cfs_quota_us", path, line, sizeof line))
            quota = strtod(line, NULL);
    } else if (weir_cgroup_line(folder, "cpu.max", path, line, sizeof line) &&
               sscanf(line, "%lf %lf", &quota, &period) != 2) {
        quota = 0;
    }
    if (quota > 0 && period > 0)
        note(user, quota / period, path);
}

/* Version 1 writes "no limit" as 2^63 less a page, version 2 as "max". */
static void memory_limit(void *user, const char *folder, int version)
{
    static const char *const names[] = {"memory.limit_in_bytes", "memory.max", "memory.high"};
    char line[64], path[WEIR_CGROUP_PATH];
    for (int i = version == 1 ? 0 : 1; i < (version == 1 ? 1 : 3); i++) {
        double bytes = weir_cgroup_line(folder, names[i], path, line, sizeof line) ? strtod(line, NULL) : 0;
        if (bytes > 0 && bytes < 0x1p62)
            note(user, bytes, path);
    }
}

static double read_limit(const char *root, const char *controller, weir_cgroup_visit visit, char *file, size_t size)
{
    struct limit limit = {0, file, size, strlen(root)};
    weir_cgroup_walk(root, controller, visit, &limit);
    return limit.least;
}

/* How many CPUs a list such as "0-3,8" has; 0 when the text is not a list. */
static int count_list(const char *list)
{
    int count = 0;
    while (*list) {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (end == list || first < 0)
            return 0;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (last < first || last >= CPUS_MAX || (*end && *end != ','))
            return 0;
        count += (int)(last - first) + 1;
        list = *end ? end + 1 : end;
    }
    return count;
}

/* The nearest cgroup that has the file: the effective set contains what its parents allow. */
static void count_cpuset(void *user, const char *folder, int version)
{
    int *count = user;
    char line[4096], path[WEIR_CGROUP_PATH];
    const char *name = version == 1 ? "cpuset.effective_cpus" : "cpuset.cpus.effective";
    if (*count == 0 && weir_cgroup_line(folder, name, path, line, sizeof line))
        *count = count_list(line);
}

/* cpu_set_t ends at 1024 CPUs; the kernel answers -EINVAL until the set is large enough. */
int weir_cores_affinity(int pid)
{
    for (int cpus = 1024; cpus <= CPUS_MAX; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set)
            return 0;
        size_t size = CPU_ALLOC_SIZE(cpus);
        int rc = sched_getaffinity(pid, size, set);
        int count = rc == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (rc == 0 || errno != EINVAL)
            return count;
    }
    return 0;
}

void weir_cores_read(struct weir_cores *cores, const char *root)
{
    *cores = (struct weir_cores){0};
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cores->online = online > 0 ? (int)online : 1;
    int affinity = weir_cores_affinity(0);
    cores->affinity = affinity > 0 ? affinity : cores->online;
    weir_cgroup_walk(root, "cpuset", count_cpuset, &cores->cpuset);
    cores->quota = read_limit(root, "cpu", cpu_limit, cores->quota_file, sizeof cores->quota_file);
    cores->memory_limit_bytes =
        (uint64_t)read_limit(root, "memory", memory_limit, cores->memory_file, sizeof cores->memory_file);
    cores->usable = cores->affinity;
    if (cores->quota > 0 && ceil(cores->quota) < cores->usable)
        cores->usable = (int)ceil(cores->quota);
}

int weir_cores_usable(void)
{
    struct weir_cores cores;
    weir_cores_read(&cores, "");
    return cores.usable;
}

int weir_cores_part(const struct weir_cores *cores, int processes, int together)
{
    int all = together > 0 ? together : cores->cpuset > 0 ? cores->cpuset : cores->affinity;
    if (cores->cpuset > 0 && all > cores->cpuset)
        all = cores->cpuset;
    if (all < cores->affinity)
        all = cores->affinity;
    if (cores->quota > 0 && ceil(cores->quota) < all)
        all = (int)ceil(cores->quota);
    int part = processes > 1 ? all / processes : all;
    part = part < cores->usable ? part : cores->usable;
    return part > 1 ? part : 1;
}
