#include "base/resources.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, LINE_BYTES = 4096 };

/* ---- control groups ---- */

/* A controller as described in /proc: its mount point, the cgroup at the root of the mount, and the process's cgroup.
 */
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

/* Returns true if word is an element of a comma-separated list. */
static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0' || at[n] == '\n'))
            return true;
    return false;
}

/* Parses /proc/PID/cgroup; pid 0 is this process. Lines are "4:memory:/group" in version 1, and "0::/group" in version
 * 2 (controller NULL). */
static bool find_group(const char *root, int pid, const char *controller, char group[PATH_BYTES])
{
    char path[PATH_BYTES], line[LINE_BYTES], name[32];
    if (pid > 0)
        snprintf(name, sizeof name, "/proc/%d/cgroup", pid);
    else
        strcpy(name, "/proc/self/cgroup");
    FILE *f = join(path, root, name, "") ? fopen(path, "re") : NULL;
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

/* Parses /proc/self/mountinfo, which has lines "31 23 0:28 ROOT MOUNT options ... - TYPE source SUPER_OPTIONS". */
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

static bool find_controller(const char *root, int pid, const char *controller, struct controller *out)
{
    if (!find_group(root, pid, controller, out->group) || !find_mount(root, controller, out))
        return false;
    /* In a container, the root of the mount is often the container's own cgroup, whose path does not exist inside. */
    size_t n = strcmp(out->mount_root, "/") == 0 ? 0 : strlen(out->mount_root);
    if (strncmp(out->group, out->mount_root, n) == 0 && (out->group[n] == '/' || out->group[n] == '\0'))
        memmove(out->group, out->group + n, strlen(out->group + n) + 1);
    else
        out->group[0] = '\0';
    if (strcmp(out->group, "/") == 0)
        out->group[0] = '\0';
    return true;
}

typedef void (*cgroup_visit)(void *user, const char *folder, int version);

static void walk_up(const char *root, struct controller *c, int version, cgroup_visit visit, void *user)
{
    for (;;) {
        char folder[PATH_BYTES];
        if (join(folder, root, c->mount, c->group))
            visit(user, folder, version);
        char *slash = strrchr(c->group, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

/* Calls visit for the process's cgroup in the controller's hierarchy, and for each parent up to the root of the mount,
 * which is all that is visible inside a container. If both versions are mounted, both are visited, because a
 * controller's files exist in only one of them. */
static void cgroup_walk(const char *root, int pid, const char *controller, cgroup_visit visit, void *user)
{
    struct controller c;
    if (find_controller(root, pid, controller, &c))
        walk_up(root, &c, 1, visit, user);
    if (find_controller(root, pid, NULL, &c))
        walk_up(root, &c, 2, visit, user);
}

/* Reads the first line of FOLDER/NAME. Sets path to the path of this file. */
static bool cgroup_line(const char *folder, const char *name, char path[PATH_BYTES], char *line, size_t size)
{
    FILE *f = join(path, folder, "/", name) ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    bool ok = fgets(line, (int)size, f) != NULL;
    fclose(f);
    if (ok)
        line[strcspn(line, "\n")] = '\0';
    return ok;
}

/* Reads the number for a key from a file with "KEY NUMBER" lines, such as cpu.stat. */
static bool cgroup_stat(const char *folder, const char *name, const char *key, uint64_t *value)
{
    char path[PATH_BYTES], line[128], found[64];
    unsigned long long number;
    FILE *f = join(path, folder, "/", name) ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    bool ok = false;
    while (!ok && fgets(line, sizeof line, f))
        ok = sscanf(line, "%63s %llu", found, &number) == 2 && strcmp(found, key) == 0;
    fclose(f);
    if (ok)
        *value = number;
    return ok;
}

/* ---- throttling ---- */

static void add_throttling(void *user, const char *folder, int version)
{
    struct weir_throttling *sum = user;
    uint64_t periods, throttled, time;
    if (!cgroup_stat(folder, "cpu.stat", "nr_periods", &periods) ||
        !cgroup_stat(folder, "cpu.stat", "nr_throttled", &throttled) ||
        !cgroup_stat(folder, "cpu.stat", version == 1 ? "throttled_time" : "throttled_usec", &time))
        return;
    sum->known = true;
    sum->periods += periods;
    sum->throttled += throttled;
    sum->throttled_ns += version == 1 ? time : time * 1000;
}

void weir_throttling_read(struct weir_throttling *throttling, const char *root)
{
    weir_throttling_read_of(throttling, root, 0);
}

void weir_throttling_read_of(struct weir_throttling *throttling, const char *root, int pid)
{
    *throttling = (struct weir_throttling){0};
    cgroup_walk(root, pid, "cpu", add_throttling, throttling);
}

/* ---- memory ---- */

static uint64_t bytes_in(const char *folder, const char *name, uint64_t missing)
{
    char path[PATH_BYTES], line[64], *end;
    if (!cgroup_line(folder, name, path, line, sizeof line))
        return missing;
    unsigned long long bytes = strtoull(line, &end, 10); /* version 2 writes "max" if there is no limit */
    return end == line ? missing : bytes;
}

/* In version 1, the plain names count only the cgroup itself, and the names with "total_" include its children. */
static uint64_t file_cache(const char *folder, int version)
{
    uint64_t inactive = 0, active = 0;
    cgroup_stat(folder, "memory.stat", version == 1 ? "total_inactive_file" : "inactive_file", &inactive);
    cgroup_stat(folder, "memory.stat", version == 1 ? "total_active_file" : "active_file", &active);
    return inactive + active;
}

static void least_memory(void *user, const char *folder, int version)
{
    uint64_t *least = user, limit, used;
    if (version == 1) {
        limit = bytes_in(folder, "memory.limit_in_bytes", UINT64_MAX);
        used = bytes_in(folder, "memory.usage_in_bytes", 0);
    } else {
        /* Above memory.high, the kernel slows the process down. */
        uint64_t high = bytes_in(folder, "memory.high", UINT64_MAX);
        limit = bytes_in(folder, "memory.max", UINT64_MAX);
        limit = limit < high ? limit : high;
        used = bytes_in(folder, "memory.current", 0);
    }
    if (limit >= UINT64_C(1) << 62) /* version 1 writes "no limit" as 2^63 minus a page */
        return;
    uint64_t cache = file_cache(folder, version);
    used = used > cache ? used - cache : 0;
    uint64_t left = limit > used ? limit - used : 0;
    *least = left < *least ? left : *least;
}

uint64_t weir_cgroup_memory_left(const char *root)
{
    uint64_t least = UINT64_MAX;
    cgroup_walk(root, 0, "memory", least_memory, &least);
    return least;
}

enum { CPUS_MAX = 1 << 16 };

/* The smallest limit so far, and the file that contains it. */
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
    char line[64], path[PATH_BYTES];
    double quota = 0, period = 0;
    if (version == 1) {
        if (cgroup_line(folder, "cpu.cfs_period_us", path, line, sizeof line))
            period = strtod(line, NULL);
        if (cgroup_line(folder, "cpu.cfs_quota_us", path, line, sizeof line))
            quota = strtod(line, NULL);
    } else if (cgroup_line(folder, "cpu.max", path, line, sizeof line) &&
               sscanf(line, "%lf %lf", &quota, &period) != 2) {
        quota = 0;
    }
    if (quota > 0 && period > 0)
        note(user, quota / period, path);
}

/* "No limit" is 2^63 minus a page in version 1, and "max" in version 2. */
static void memory_limit(void *user, const char *folder, int version)
{
    static const char *const names[] = {"memory.limit_in_bytes", "memory.max", "memory.high"};
    char line[64], path[PATH_BYTES];
    for (int i = version == 1 ? 0 : 1; i < (version == 1 ? 1 : 3); i++) {
        double bytes = cgroup_line(folder, names[i], path, line, sizeof line) ? strtod(line, NULL) : 0;
        if (bytes > 0 && bytes < 0x1p62)
            note(user, bytes, path);
    }
}

static double read_limit(const char *root, int pid, const char *controller, cgroup_visit visit, char *file, size_t size)
{
    struct limit limit = {0, file, size, strlen(root)};
    cgroup_walk(root, pid, controller, visit, &limit);
    return limit.least;
}

/* Returns the number of CPUs in a list such as "0-3,8"; 0 if the list is invalid. */
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

/* Uses the nearest cgroup that has the file, because the effective set already takes the parents into account. */
static void count_cpuset(void *user, const char *folder, int version)
{
    int *count = user;
    char line[4096], path[PATH_BYTES];
    const char *name = version == 1 ? "cpuset.effective_cpus" : "cpuset.cpus.effective";
    if (*count == 0 && cgroup_line(folder, name, path, line, sizeof line))
        *count = count_list(line);
}

/* cpu_set_t has only 1024 CPUs. The kernel returns -EINVAL until the set is large enough. */
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
    weir_cores_read_of(cores, root, 0);
}

void weir_cores_read_of(struct weir_cores *cores, const char *root, int pid)
{
    *cores = (struct weir_cores){0};
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cores->online = online > 0 ? (int)online : 1;
    int affinity = weir_cores_affinity(pid);
    cores->affinity = affinity > 0 ? affinity : cores->online;
    cgroup_walk(root, pid, "cpuset", count_cpuset, &cores->cpuset);
    cores->quota = read_limit(root, pid, "cpu", cpu_limit, cores->quota_file, sizeof cores->quota_file);
    cores->memory_limit_bytes =
        (uint64_t)read_limit(root, pid, "memory", memory_limit, cores->memory_file, sizeof cores->memory_file);
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

/* Returns the value of a line "NAME:   123 kB" in a file of /proc, in bytes; 0 if the line is missing. */
static uint64_t read_kib(const char *path, const char *format)
{
    FILE *file = fopen(path, "re");
    char line[128];
    unsigned long long kib = 0;
    while (file && kib == 0 && fgets(line, sizeof line, file))
        sscanf(line, format, &kib);
    if (file)
        fclose(file);
    return kib * 1024;
}

static struct {
    _Atomic uint64_t before, during; /* peaks before and during the last excluded measurement */
} excluded;

uint64_t weir_peak_rss_bytes(void)
{
    uint64_t peak = read_kib("/proc/self/status", "VmHWM: %llu kB");
    if (peak > excluded.during)
        return peak;
    uint64_t now = read_kib("/proc/self/status", "VmRSS: %llu kB"), before = excluded.before;
    return now > before ? now : before;
}

void weir_peak_rss_exclude(uint64_t before_bytes)
{
    excluded.before = before_bytes;
    excluded.during = read_kib("/proc/self/status", "VmHWM: %llu kB");
}

static uint64_t meminfo(const char *root, const char *format)
{
    char path[256];
    int n = snprintf(path, sizeof path, "%s/proc/meminfo", root);
    return n > 0 && (size_t)n < sizeof path ? read_kib(path, format) : 0;
}

uint64_t weir_memory_available_in(const char *root)
{
    uint64_t machine = meminfo(root, "MemAvailable: %llu kB"), left = weir_cgroup_memory_left(root);
    if (left == UINT64_MAX)
        return machine;
    left = left > 0 ? left : 1; /* 0 means unknown */
    return machine > 0 && machine < left ? machine : left;
}

uint64_t weir_memory_available_bytes(void)
{
    return weir_memory_available_in("");
}

uint64_t weir_memory_available_each(int processes)
{
    struct weir_cores cores;
    weir_cores_read(&cores, "");
    uint64_t available = weir_memory_available_bytes(), all = meminfo("", "MemTotal: %llu kB");
    if (cores.memory_limit_bytes > 0 && (all == 0 || cores.memory_limit_bytes < all))
        all = cores.memory_limit_bytes;
    uint64_t part = all / (uint64_t)(processes > 1 ? processes : 1);
    return part > 0 && part < available ? part : available;
}

void weir_memory_unmap(void *memory, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(memory, (bytes + page - 1) / page * page);
}
