#include "prof/processes/process_files.h"
#include "base/text.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 512, LINE_BYTES = 4096 };

/* ---- files ---- */

/* Builds the path of a file of the process (tid 0) or of its thread. */
static bool path_of(char path[PATH_BYTES], const char *root, pid_t pid, pid_t tid, const char *name)
{
    int n = tid ? snprintf(path, PATH_BYTES, "%s/proc/%d/task/%d/%s", root, (int)pid, (int)tid, name)
                : snprintf(path, PATH_BYTES, "%s/proc/%d/%s", root, (int)pid, name);
    return n > 0 && n < PATH_BYTES;
}

/* Reads at most size - 1 bytes and ends them with '\0'. Returns their number, or -1. The kernel returns short files of
 * /proc by one call. */
static ssize_t read_text(char *text, size_t size, const char *root, pid_t pid, pid_t tid, const char *name)
{
    char path[PATH_BYTES];
    int fd = path_of(path, root, pid, tid, name) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

/* ---- threads ---- */

uint64_t weir_ticks_to_ns(uint64_t ticks)
{
    long per_s = sysconf(_SC_CLK_TCK);
    return ticks * (UINT64_C(1000000000) / (uint64_t)(per_s > 0 ? per_s : 100));
}

double weir_uptime_s(const char *root)
{
    char path[PATH_BYTES];
    double seconds = 0;
    int n = snprintf(path, sizeof path, "%s/proc/uptime", root);
    FILE *f = n > 0 && n < PATH_BYTES ? fopen(path, "re") : NULL;
    if (f && fscanf(f, "%lf", &seconds) != 1)
        seconds = 0;
    if (f)
        fclose(f);
    return seconds;
}

/* The name is between the first '(' and the last ')', because it can contain both. Fields are numbered as in proc(5).
 */
bool weir_task_stat_read(struct weir_task_stat *stat, const char *root, pid_t pid, pid_t tid)
{
    char text[1024];
    memset(stat, 0, sizeof *stat);
    if (read_text(text, sizeof text, root, pid, tid, "stat") <= 0)
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

bool weir_task_times_read(struct weir_task_times *times, const char *root, pid_t pid, pid_t tid)
{
    char text[128];
    return read_text(text, sizeof text, root, pid, tid, "schedstat") > 0 &&
           sscanf(text, "%" SCNu64 " %" SCNu64, &times->run_ns, &times->delay_ns) == 2;
}

int weir_task_wait_open(const char *root, pid_t pid, pid_t tid)
{
    char path[PATH_BYTES];
    return path_of(path, root, pid, tid, "wchan") ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

bool weir_task_wait_read_at(char function[WEIR_TASK_WAIT], int fd)
{
    ssize_t n = pread(fd, function, WEIR_TASK_WAIT - 1, 0);
    function[n > 0 ? n : 0] = '\0';
    if (strcmp(function, "0") == 0)
        function[0] = '\0';
    function[strcspn(function, ".\n")] = '\0';
    weir_text_printable(function);
    return function[0] != '\0';
}

bool weir_task_wait_read(char function[WEIR_TASK_WAIT], const char *root, pid_t pid, pid_t tid)
{
    int fd = weir_task_wait_open(root, pid, tid);
    bool known = weir_task_wait_read_at(function, fd);
    if (fd >= 0)
        close(fd);
    return known;
}

/* ---- processes ---- */

static uint64_t number_after(const char *text, const char *label)
{
    const char *line = strstr(text, label);
    uint64_t value;
    return line && sscanf(line + strlen(label), "%" SCNu64, &value) == 1 ? value : UINT64_MAX;
}

uint64_t weir_process_storage_bytes(const char *root, pid_t pid, uint64_t *asked)
{
    char text[512];
    *asked = UINT64_MAX;
    if (read_text(text, sizeof text, root, pid, 0, "io") <= 0)
        return UINT64_MAX;
    *asked = number_after(text, "rchar: ");
    return number_after(text, "\nread_bytes: ");
}

uint64_t weir_process_pss_bytes(const char *root, pid_t pid)
{
    char text[2048];
    if (read_text(text, sizeof text, root, pid, 0, "smaps_rollup") <= 0)
        return 0;
    uint64_t kib = number_after(text, "\nPss:");
    return kib > UINT64_MAX / 1024 ? 0 : kib * 1024;
}

bool weir_process_has_library(const char *root, pid_t pid, const char *library)
{
    char path[PATH_BYTES], line[LINE_BYTES + 256];
    FILE *f = path_of(path, root, pid, 0, "maps") ? fopen(path, "re") : NULL;
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *name = strrchr(line, '/');
        found = name && strncmp(name + 1, library, strlen(library)) == 0;
    }
    if (f)
        fclose(f);
    return found;
}

bool weir_process_variable(const char *root, pid_t pid, const char *name, char *value, size_t size)
{
    char path[PATH_BYTES], *entry = NULL;
    size_t capacity = 0, length = strlen(name);
    FILE *f = path_of(path, root, pid, 0, "environ") ? fopen(path, "re") : NULL;
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

bool weir_process_command(const char *root, pid_t pid, char *text, size_t size)
{
    ssize_t n = read_text(text, size, root, pid, 0, "cmdline");
    if (n <= 0)
        text[0] = '\0';
    for (ssize_t i = 0; i + 1 < n; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    weir_text_printable(text);
    return n > 0;
}

uid_t weir_process_user(const char *root, pid_t pid)
{
    char path[PATH_BYTES];
    struct stat st;
    return path_of(path, root, pid, 0, "") && stat(path, &st) == 0 ? st.st_uid : (uid_t)-1;
}

/* ---- lists ---- */

bool weir_process_files(const char *root, pid_t pid, weir_each_file *each, void *user)
{
    char path[PATH_BYTES], target[LINE_BYTES];
    DIR *dir = path_of(path, root, pid, 0, "fd") ? opendir(path) : NULL;
    if (!dir)
        return false;
    for (struct dirent *entry; (entry = readdir(dir));) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        if (n <= 0)
            continue;
        target[n] = '\0';
        if (target[0] == '/' && !each(user, target))
            break;
    }
    closedir(dir);
    return true;
}

static void each_number(const char *path, weir_each_id *each, void *user)
{
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char *end;
        long id = isdigit((unsigned char)entry->d_name[0]) ? strtol(entry->d_name, &end, 10) : 0;
        if (id > 0 && id <= INT32_MAX && *end == '\0' && !each(user, (pid_t)id))
            break;
    }
    closedir(dir);
}

void weir_processes_each(const char *root, weir_each_id *each, void *user)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof path, "%s/proc", root);
    if (n > 0 && n < PATH_BYTES)
        each_number(path, each, user);
}

void weir_threads_each(const char *root, pid_t pid, weir_each_id *each, void *user)
{
    char path[PATH_BYTES];
    if (path_of(path, root, pid, 0, "task"))
        each_number(path, each, user);
}
