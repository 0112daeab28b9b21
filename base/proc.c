#include "base/proc.h"
#include "base/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool weir_proc_path(char path[WEIR_PROC_PATH], const char *root, pid_t pid, pid_t tid, const char *name)
{
    int n = tid ? snprintf(path, WEIR_PROC_PATH, "%s/proc/%d/task/%d/%s", root, (int)pid, (int)tid, name)
                : snprintf(path, WEIR_PROC_PATH, "%s/proc/%d/%s", root, (int)pid, name);
    return n > 0 && n < WEIR_PROC_PATH;
}

ssize_t weir_proc_read(char *text, size_t size, const char *root, pid_t pid, pid_t tid, const char *name)
{
    char path[WEIR_PROC_PATH];
    int fd = weir_proc_path(path, root, pid, tid, name) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

uint64_t weir_ticks_to_ns(uint64_t ticks)
{
    long per_s = sysconf(_SC_CLK_TCK);
    return ticks * (UINT64_C(1000000000) / (uint64_t)(per_s > 0 ? per_s : 100));
}

/* The name is between the first '(' and the last ')', because it can contain both. Fields are numbered as in proc(5).
 */
bool weir_task_stat_read(struct weir_task_stat *stat, const char *root, pid_t pid, pid_t tid)
{
    char text[1024];
    memset(stat, 0, sizeof *stat);
    if (weir_proc_read(text, sizeof text, root, pid, tid, "stat") <= 0)
        return false;
    const char *name = strchr(text, '('), *end = strrchr(text, ')');
    if (!name || !end || end < name)
        return false;
    size_t length = (size_t)(end - name - 1);
    memcpy(stat->name, name + 1, length < sizeof stat->name ? length : sizeof stat->name - 1);
    weir_text_printable(stat->name);
    int parent;
    uint64_t user, system, children_user, children_system;
    if (sscanf(end + 1,
               " %c %d %*d %*d %*d %*d %*u %*u %*u %" SCNu64 " %*u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %*d %*d %d %*d %" SCNu64,
               &stat->state, &parent, &stat->page_faults, &user, &system, &children_user, &children_system,
               &stat->n_threads, &stat->start_ticks) != 9)
        return false;
    stat->parent = parent;
    stat->cpu_ns = weir_ticks_to_ns(user + system);
    stat->children_ns = weir_ticks_to_ns(children_user + children_system);
    return true;
}

bool weir_process_variable(const char *root, pid_t pid, const char *name, char *value, size_t size)
{
    char path[WEIR_PROC_PATH], *entry = NULL;
    size_t capacity = 0, length = strlen(name);
    FILE *f = weir_proc_path(path, root, pid, 0, "environ") ? fopen(path, "re") : NULL;
    bool found = false;
    ssize_t n;
    while (f && !found && (n = getdelim(&entry, &capacity, '\0', f)) > 0) {
        if (strncmp(entry, name, length) != 0 || entry[length] != '=')
            continue;
        found = true;
        n = snprintf(value, size, "%s", entry + length + 1);
    }
    free(entry);
    if (f)
        fclose(f);
    return found && n >= 0 && (size_t)n < size;
}
