#include "analyze/logs/log_lines.h"
#include "analyze/logs/log_plain.h"
#include "analyze/logs/log_read.h"
#include "base/text.h"
#include "cli/report/report_command.h"
#include "prof/trace/trace_read.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOG_HEAD_BYTES = 1 << 20 };

/* ---- logs ---- */

static bool has_records(FILE *in)
{
    struct weir_lines lines;
    struct weir_plain_log log;
    weir_lines_open(&lines, in);
    bool unread = weir_log_unread(&lines) != NULL;
    bool found = !unread && weir_lines_peek(&lines) > 0 && weir_log_recognised(lines.text, lines.length);
    if (!found && !unread && weir_plain_open(&log) == 0) {
        found = weir_plain_read(&log, &lines) == 0 && weir_plain_found(&log);
        weir_plain_close(&log);
    }
    weir_lines_close(&lines);
    return found;
}

/* Returns whether the beginning of the file is that of a log that weir report reads. */
static bool is_log(const char *path)
{
    FILE *in = fopen(path, "rb");
    char *head = in ? malloc(LOG_HEAD_BYTES) : NULL;
    size_t n = head ? fread(head, 1, LOG_HEAD_BYTES, in) : 0;
    FILE *lines = n > 0 && !memchr(head, 0, n) ? fmemopen(head, n, "rb") : NULL;
    bool found = lines && has_records(lines);
    if (lines)
        fclose(lines);
    free(head);
    if (in)
        fclose(in);
    return found;
}

/* ---- folders ---- */

/* The newest file of a kind. */
struct newest {
    bool (*is_kind)(const char *path);
    char *path; /* NULL: none */
    struct timespec time;
};

static bool is_newer(const struct newest *newest, const struct timespec *time, const char *path)
{
    const struct timespec *best = &newest->time;
    if (!newest->path || time->tv_sec != best->tv_sec)
        return !newest->path || time->tv_sec > best->tv_sec;
    return time->tv_nsec != best->tv_nsec ? time->tv_nsec > best->tv_nsec : strcmp(path, newest->path) > 0;
}

/* Owns path. */
static void look_at(struct newest *newest, char *path)
{
    struct stat st;
    bool regular = stat(path, &st) == 0 && S_ISREG(st.st_mode); /* a pipe would block */
    if (regular && is_newer(newest, &st.st_mtim, path) && newest->is_kind(path)) {
        free(newest->path);
        newest->path = path;
        newest->time = st.st_mtim;
    } else {
        free(path);
    }
}

static int find_newest(struct newest *newest, const char *folder, struct weir_err *err)
{
    int rc = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return weir_err_set(err, -errno, "%s: cannot be opened: %s", folder, strerror(errno));
    for (struct dirent *entry; rc == 0 && (entry = readdir(dir));) {
        const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
        char *path;
        if (asprintf(&path, "%s%s%s", folder, slash, entry->d_name) < 0)
            rc = weir_err_set(err, -ENOMEM, "%s: out of memory", folder);
        else
            look_at(newest, path);
    }
    closedir(dir);
    return rc;
}

/* Sets the error of a folder without a trace, which suggests the newest log in it. */
static int no_trace(const char *folder, struct weir_err *err)
{
    struct newest log = {.is_kind = is_log};
    char *text = NULL;
    size_t size = 0;
    int rc = find_newest(&log, folder, err);
    FILE *out = log.path ? open_memstream(&text, &size) : NULL;
    if (out) {
        weir_shell_word(out, log.path);
        fclose(out);
    }
    if (rc == 0 && text)
        rc = weir_err_set(err, -ENOENT, "%s: this folder contains no trace; name a file, such as: weir report %s",
                          folder, text);
    else if (rc == 0)
        rc = weir_err_set(err, -ENOENT, "%s: this folder contains no trace and no log; " WEIR_RECORD_A_TRACE, folder);
    free(text);
    free(log.path);
    return rc;
}

int weir_report_folders(const char **paths, int n, char **found, struct weir_err *err)
{
    for (int i = 0; i < n; i++) {
        struct newest trace = {.is_kind = weir_trace_recognised};
        struct stat st;
        if (strcmp(paths[i], "-") == 0 || stat(paths[i], &st) < 0 || !S_ISDIR(st.st_mode))
            continue;
        int rc = find_newest(&trace, paths[i], err);
        found[i] = trace.path;
        if (rc == 0 && !trace.path)
            rc = no_trace(paths[i], err);
        if (rc < 0)
            return rc;
        paths[i] = found[i];
        struct weir_err line = WEIR_ERR_NONE; /* makes the name printable */
        weir_err_set(&line, -EISDIR, "%s is the newest trace in its folder", found[i]);
        fprintf(stderr, "weir report: %s\n", line.text);
    }
    return 0;
}

int weir_report_open_log(const char *path, FILE **in, struct weir_err *err)
{
    *in = NULL;
    if (strcmp(path, "-") == 0) {
        int copy = dup(STDIN_FILENO);
        *in = copy < 0 ? NULL : fdopen(copy, "rb");
        if (!*in && copy >= 0)
            close(copy);
    } else {
        *in = fopen(path, "rb");
    }
    struct stat about;
    if (!*in || fstat(fileno(*in), &about) < 0)
        return weir_err_set(err, -errno, "%s: cannot be opened: %s", path, strerror(errno));
    if (S_ISDIR(about.st_mode))
        return weir_err_set(err, -EISDIR, "%s is a directory; specify a log file", path);
    if (S_ISCHR(about.st_mode) && strcmp(path, "-") != 0)
        return weir_err_set(err, -EINVAL, "%s is a device; specify a log file", path);
    return 0;
}
