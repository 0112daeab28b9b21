#include "base/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = WEIR_CGROUP_PATH, LINE_BYTES = 4096 };

/* One controller as /proc describes it: where it is mounted, which cgroup the mount shows as its root, and which cgroup
 * we are in. */
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
    if (strcmp(out->group, "/") == 0)
        out->group[0] = '\0';
    return true;
}

static void walk_up(const char *root, struct controller *c, int version, weir_cgroup_visit visit, void *user)
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

void weir_cgroup_walk(const char *root, const char *controller, weir_cgroup_visit visit, void *user)
{
    struct controller c;
    if (find_controller(root, controller, &c))
        walk_up(root, &c, 1, visit, user);
    if (find_controller(root, NULL, &c))
        walk_up(root, &c, 2, visit, user);
}

bool weir_cgroup_line(const char *folder, const char *name, char path[WEIR_CGROUP_PATH], char *line, size_t size)
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

bool weir_cgroup_stat(const char *folder, const char *name, const char *key, uint64_t *value)
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
    if (!weir_cgroup_stat(folder, "cpu.stat", "nr_periods", &periods) ||
        !weir_cgroup_stat(folder, "cpu.stat", "nr_throttled", &throttled) ||
        !weir_cgroup_stat(folder, "cpu.stat", version == 1 ? "throttled_time" : "throttled_usec", &time))
        return;
    sum->known = true;
    sum->periods += periods;
    sum->throttled += throttled;
    sum->throttled_ns += version == 1 ? time : time * 1000;
}

void weir_throttling_read(struct weir_throttling *throttling, const char *root)
{
    *throttling = (struct weir_throttling){0};
    weir_cgroup_walk(root, "cpu", add_throttling, throttling);
}

/* ---- memory ---- */

static uint64_t bytes_in(const char *folder, const char *name, uint64_t missing)
{
    char path[PATH_BYTES], line[64], *end;
    if (!weir_cgroup_line(folder, name, path, line, sizeof line))
        return missing;
    unsigned long long bytes = strtoull(line, &end, 10); /* version 2 writes "max" */
    return end == line ? missing : bytes;
}

/* Version 1 counts a cgroup's own under the plain names and that of its children too under these. */
static uint64_t file_cache(const char *folder, int version)
{
    uint64_t inactive = 0, active = 0;
    weir_cgroup_stat(folder, "memory.stat", version == 1 ? "total_inactive_file" : "inactive_file", &inactive);
    weir_cgroup_stat(folder, "memory.stat", version == 1 ? "total_active_file" : "active_file", &active);
    return inactive + active;
}

static void least_memory(void *user, const char *folder, int version)
{
    uint64_t *least = user, limit, used;
    if (version == 1) {
        limit = bytes_in(folder, "memory.limit_in_bytes", UINT64_MAX);
        used = bytes_in(folder, "memory.usage_in_bytes", 0);
    } else {
        uint64_t high = bytes_in(folder, "memory.high", UINT64_MAX); /* from here on the kernel slows us down */
        limit = bytes_in(folder, "memory.max", UINT64_MAX);
        limit = limit < high ? limit : high;
        used = bytes_in(folder, "memory.current", 0);
    }
    if (limit >= UINT64_C(1) << 62) /* version 1 writes "no limit" as 2^63 less a page */
        return;
    uint64_t cache = file_cache(folder, version);
    used = used > cache ? used - cache : 0;
    uint64_t left = limit > used ? limit - used : 0;
    *least = left < *least ? left : *least;
}

uint64_t weir_cgroup_memory_left(const char *root)
{
    uint64_t least = UINT64_MAX;
    weir_cgroup_walk(root, "memory", least_memory, &least);
    return least;
}
