#include "prof/cores.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, LINE_BYTES = 4096 };

/* One controller (cpu or memory) as /proc describes it: where it is mounted, which cgroup the mount shows as its root,
 * and which cgroup we are in. */
struct controller {
    char mount[PATH_BYTES];
    char mount_root[PATH_BYTES];
    char group[PATH_BYTES];
};

static bool join(char out[PATH_BYTES], const char *a, const char *b, const char *c)
{
    int n = snprintf(out, PATH_BYTES, "%s%s%s", a, b, c);
    return n >= 0 && n < PATH_BYTES;
}

/* True when word is one of the comma-separated words of list. */
static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0' || at[n] == '\n'))
            return true;
    return false;
}

/* /proc/self/cgroup: "4:memory:/group" in version 1, "0::/group" in version 2 (controller NULL). */
static bool find_group(const char *root, const char *controller, char group[PATH_BYTES])
{
    char path[PATH_BYTES], line[LINE_BYTES];
    FILE *f = join(path, root, "/proc/self/cgroup", "") ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        char *names = strchr(line, ':');
        char *at = names ? strchr(names + 1, ':') : NULL;
        if (!at)
            continue;
        *at++ = '\0';
        names++;
        at[strcspn(at, "\n")] = '\0';
        found = controller ? list_has(names, controller) : strncmp(line, "0:", 2) == 0 && names[0] == '\0';
        if (found)
            found = join(group, at, "", "");
    }
    fclose(f);
    return found;
}

/* /proc/self/mountinfo: "31 23 0:28 ROOT MOUNT options ... - TYPE source SUPER_OPTIONS". */
static bool find_mount(const char *root, const char *controller, struct controller *out)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    FILE *f = join(path, root, "/proc/self/mountinfo", "") ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        char type[32], super[1024];
        const char *tail = strstr(line, " - ");
        if (!tail || sscanf(line, "%*s %*s %*s %1023s %1023s", out->mount_root, out->mount) != 2 ||
            sscanf(tail + 3, "%31s %*s %1023s", type, super) != 2)
            continue;
        found = controller ? strcmp(type, "cgroup") == 0 && list_has(super, controller) : strcmp(type, "cgroup2") == 0;
    }
    fclose(f);
    return found;
}

static bool find_controller(const char *root, const char *controller, struct controller *out)
{
    if (!find_group(root, controller, out->group) || !find_mount(root, controller, out))
        return false;
    /* A container often sees its own cgroup as the root of the mount, by a path that does not exist in there. */
    size_t n = strcmp(out->mount_root, "/") == 0 ? 0 : strlen(out->mount_root);
    if (strncmp(out->group, out->mount_root, n) == 0 && (out->group[n] == '/' || out->group[n] == '\0'))
        memmove(out->group, out->group + n, strlen(out->group + n) + 1);
    else
        out->group[0] = '\0';
    return true;
}

static bool read_line(const char *path, char *buf, size_t size)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fgets(buf, (int)size, f) != NULL;
    fclose(f);
    return ok;
}

/* Reads one limit from a cgroup's folder; 0 = none. */
typedef double (*limit_fn)(const char *folder, char file[PATH_BYTES]);

/* Limits of the parents hold too: the smallest on the way up to the root of the mount counts. */
static double smallest_limit(const char *root, struct controller *c, limit_fn limit, char *file, size_t file_size)
{
    double least = 0;
    for (;;) {
        char folder[PATH_BYTES], from[PATH_BYTES];
        double value = join(folder, root, c->mount, c->group) ? limit(folder, from) : 0;
        if (value > 0 && (least == 0 || value < least)) {
            least = value;
            snprintf(file, file_size, "%s", from + strlen(root));
        }
        char *slash = strrchr(c->group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

static double cpu_limit_v2(const char *folder, char file[PATH_BYTES])
{
    char line[64];
    double quota, period;
    if (!join(file, folder, "/cpu.max", "") || !read_line(file, line, sizeof line) ||
        sscanf(line, "%lf %lf", &quota, &period) != 2 || period <= 0)
        return 0;
    return quota / period;
}

static double cpu_limit_v1(const char *folder, char file[PATH_BYTES])
{
    char line[64], period_file[PATH_BYTES];
    if (!join(period_file, folder, "/cpu.cfs_period_us", "") || !read_line(period_file, line, sizeof line))
        return 0;
    double period = strtod(line, NULL);
    if (!join(file, folder, "/cpu.cfs_quota_us", "") || !read_line(file, line, sizeof line) || period <= 0)
        return 0;
    double quota = strtod(line, NULL);
    return quota > 0 ? quota / period : 0;
}

static double memory_limit_in(const char *folder, const char *name, char file[PATH_BYTES])
{
    char line[64];
    if (!join(file, folder, name, "") || !read_line(file, line, sizeof line))
        return 0;
    /* Version 1 writes "no limit" as 2^63 less a page, version 2 as "max". */
    double bytes = strtod(line, NULL);
    return bytes > 0 && bytes < 0x1p62 ? bytes : 0;
}

static double memory_limit_v2(const char *folder, char file[PATH_BYTES])
{
    return memory_limit_in(folder, "/memory.max", file);
}

static double memory_limit_v1(const char *folder, char file[PATH_BYTES])
{
    return memory_limit_in(folder, "/memory.limit_in_bytes", file);
}

/* A machine may have both versions mounted (hybrid): a controller lives in one of them, so the one that answers counts.
 */
static double read_limit(const char *root, const char *name, limit_fn v1, limit_fn v2, char *file, size_t file_size)
{
    struct controller c;
    double limit = find_controller(root, name, &c) ? smallest_limit(root, &c, v1, file, file_size) : 0;
    if (limit == 0 && find_controller(root, NULL, &c))
        limit = smallest_limit(root, &c, v2, file, file_size);
    return limit;
}

/* cpu_set_t ends at 1024 CPUs; the kernel answers -EINVAL until the set is large enough. */
static int affinity_count(void)
{
    for (int cpus = 1024; cpus <= 1 << 16; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set)
            return 0;
        size_t size = CPU_ALLOC_SIZE(cpus);
        int rc = sched_getaffinity(0, size, set);
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
    int affinity = affinity_count();
    cores->affinity = affinity > 0 ? affinity : cores->online;
    cores->quota = read_limit(root, "cpu", cpu_limit_v1, cpu_limit_v2, cores->quota_file, sizeof cores->quota_file);
    cores->memory_limit_bytes = (uint64_t)read_limit(root, "memory", memory_limit_v1, memory_limit_v2,
                                                     cores->memory_file, sizeof cores->memory_file);
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
