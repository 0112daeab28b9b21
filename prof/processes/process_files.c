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

enum { LINE_BYTES = 4096 };

/* ---- threads ---- */

double weir_uptime_s(const char *root)
{
    char path[WEIR_PROC_PATH];
    double seconds = 0;
    int n = snprintf(path, sizeof path, "%s/proc/uptime", root);
    FILE *f = n > 0 && n < WEIR_PROC_PATH ? fopen(path, "re") : NULL;
    if (f && fscanf(f, "%lf", &seconds) != 1)
        seconds = 0;
    if (f)
        fclose(f);
    return seconds;
}

bool weir_task_times_read(struct weir_task_times *times, const char *root, pid_t pid, pid_t tid)
{
    char text[128];
    return weir_proc_read(text, sizeof text, root, pid, tid, "schedstat") > 0 &&
           sscanf(text, "%" SCNu64 " %" SCNu64, &times->run_ns, &times->delay_ns) == 2;
}

int weir_task_wait_open(const char *root, pid_t pid, pid_t tid)
{
    char path[WEIR_PROC_PATH];
    return weir_proc_path(path, root, pid, tid, "wchan") ? open(path, O_RDONLY | O_CLOEXEC) : -1;
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

uint64_t weir_task_storage_bytes(const char *root, pid_t pid, pid_t tid, uint64_t *asked)
{
    char text[512];
    *asked = UINT64_MAX;
    if (weir_proc_read(text, sizeof text, root, pid, tid, "io") <= 0)
        return UINT64_MAX;
    *asked = number_after(text, "rchar: ");
    return number_after(text, "\nread_bytes: ");
}

uint64_t weir_process_pss_bytes(const char *root, pid_t pid)
{
    char text[2048];
    if (weir_proc_read(text, sizeof text, root, pid, 0, "smaps_rollup") <= 0)
        return 0;
    uint64_t kib = number_after(text, "\nPss:");
    return kib > UINT64_MAX / 1024 ? 0 : kib * 1024;
}

bool weir_process_library(const char *root, pid_t pid, const char *library, char *path, size_t size)
{
    char maps[WEIR_PROC_PATH], line[LINE_BYTES + 256];
    FILE *f = weir_proc_path(maps, root, pid, 0, "maps") ? fopen(maps, "re") : NULL;
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *name = strrchr(line, '/');
        found = name && strncmp(name + 1, library, strlen(library)) == 0;
    }
    if (found)
        snprintf(path, size, "%s", strchr(line, '/'));
    if (f)
        fclose(f);
    return found;
}

bool weir_process_command(const char *root, pid_t pid, char *text, size_t size)
{
    ssize_t n = weir_proc_read(text, size, root, pid, 0, "cmdline");
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
    char path[WEIR_PROC_PATH];
    struct stat st;
    return weir_proc_path(path, root, pid, 0, "") && stat(path, &st) == 0 ? st.st_uid : (uid_t)-1;
}

/* ---- lists ---- */

bool weir_process_files(const char *root, pid_t pid, weir_each_file *each, void *user)
{
    char path[WEIR_PROC_PATH], target[LINE_BYTES];
    DIR *dir = weir_proc_path(path, root, pid, 0, "fd") ? opendir(path) : NULL;
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
    char path[WEIR_PROC_PATH];
    int n = snprintf(path, sizeof path, "%s/proc", root);
    if (n > 0 && n < WEIR_PROC_PATH)
        each_number(path, each, user);
}

void weir_threads_each(const char *root, pid_t pid, weir_each_id *each, void *user)
{
    char path[WEIR_PROC_PATH];
    if (weir_proc_path(path, root, pid, 0, "task"))
        each_number(path, each, user);
}
