#include "base/memory.h"
#include "base/cgroup.h"
#include "base/cores.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* A line "NAME:   123 kB" of a file in /proc, in bytes; 0 when it is not there. */
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

uint64_t weir_peak_rss_bytes(void)
{
    return read_kib("/proc/self/status", "VmHWM: %llu kB");
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
    left = left > 0 ? left : 1; /* 0 is "not known" */
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
