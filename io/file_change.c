/* Detects whether a file has changed since it was indexed. Looks the file up by path, so that a replaced file is also
 * detected. */
#include "io/file_set_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

static void append(char text[WEIR_FILE_CHANGE], const char *between, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, WEIR_FILE_CHANGE - used, "%s%s", between, more);
}

static void time_text(char text[40], int64_t ns)
{
    time_t s = (time_t)(ns / 1000000000);
    struct tm parts;
    if (localtime_r(&s, &parts) && strftime(text, 40, "%Y-%m-%d %H:%M:%S", &parts) > 0)
        snprintf(text + strlen(text), 40 - strlen(text), ".%03d", (int)(ns / 1000000 % 1000));
    else
        snprintf(text, 40, "second %lld", (long long)s);
}

static void describe(char text[WEIR_FILE_CHANGE], const struct weir_file_id *then, const struct weir_file_id *now)
{
    char part[128], new_time[40], old_time[40];
    const char *between = ": ";
    if (now->inode != then->inode || now->device != then->device) {
        snprintf(part, sizeof part, "replaced by another file (inode %" PRIu64 ", indexed: %" PRIu64 ")", now->inode,
                 then->inode);
        append(text, between, part);
        between = ", ";
    }
    if (now->mtime_ns != then->mtime_ns) {
        time_text(new_time, now->mtime_ns);
        time_text(old_time, then->mtime_ns);
        snprintf(part, sizeof part, "written at %s (indexed: %s)", new_time, old_time);
        append(text, between, part);
        between = ", ";
    }
    if (now->size_bytes != then->size_bytes) {
        snprintf(part, sizeof part, "%" PRIu64 " bytes (indexed: %" PRIu64 ")", now->size_bytes, then->size_bytes);
        append(text, between, part);
    }
}

/* Uses statx, because it can force a query to the file server; the client's attribute cache can be up to a minute old.
 */
int weir_file_id_now(int fd, const char *path, int how, struct weir_file_id *now)
{
    struct statx st;
    if (statx(fd, path, how, STATX_SIZE | STATX_MTIME | STATX_INO, &st) != 0)
        return -errno;
    *now = (struct weir_file_id){st.stx_size, makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino,
                                 st.stx_mtime.tv_sec * 1000000000 + st.stx_mtime.tv_nsec, false};
    return 0;
}

int weir_file_id_compare(const char *path, const struct weir_file_id *then, bool ask_server,
                         char text[WEIR_FILE_CHANGE])
{
    struct weir_file_id now = {0};
    *text = 0;
    int rc = weir_file_id_now(AT_FDCWD, path, ask_server ? AT_STATX_FORCE_SYNC : AT_STATX_SYNC_AS_STAT, &now);
    if (rc == 0 && weir_file_id_same(&now, then))
        return 0;
    if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR) {
        snprintf(text, WEIR_FILE_CHANGE, "cannot be compared with the index: %s", strerror(-rc));
        return rc;
    }
    append(text, "", rc < 0 ? "removed while it was read" : "changed while it was read");
    if (rc == 0)
        describe(text, then, &now);
    return 1;
}
