#include "prof/memory.h"

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

uint64_t weir_memory_available_bytes(void)
{
    return read_kib("/proc/meminfo", "MemAvailable: %llu kB");
}

void weir_memory_unmap(void *memory, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(memory, (bytes + page - 1) / page * page);
}
