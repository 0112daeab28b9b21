#include "base/proc.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool weir_run_delay_ns(pid_t tid, uint64_t *delay_ns)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)tid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    uint64_t run_ns; /* 0 if the kernel does not keep these counters */
    bool ok = fscanf(f, "%" SCNu64 " %" SCNu64, &run_ns, delay_ns) == 2 && run_ns > 0;
    fclose(f);
    return ok;
}

void weir_machine_time_read(struct weir_machine_time *time, const char *root)
{
    char path[1024];
    uint64_t user, nice, system, irq, softirq, steal;
    *time = (struct weir_machine_time){0, 0};
    int n = snprintf(path, sizeof path, "%s/proc/stat", root);
    FILE *f = n >= 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (!f)
        return;
    if (fscanf(f, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64, &user, &nice,
               &system, &irq, &softirq, &steal) == 6)
        *time = (struct weir_machine_time){user + nice + system + irq + softirq + steal, steal};
    fclose(f);
}

uint64_t weir_storage_bytes(void)
{
    char text[512]; /* stdio would allocate memory, and this is called during a run, when an epoch begins */
    unsigned long long bytes;
    int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return UINT64_MAX;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "\nread_bytes: ");
    return line && sscanf(line, "\nread_bytes: %llu", &bytes) == 1 ? bytes : UINT64_MAX;
}
