#include "base/files.h"
#include "base/shortage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int weir_read_at(int fd, uint64_t offset, void *buffer, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, (char *)buffer + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ENODATA;
        done += (size_t)got;
    }
    return 0;
}

bool weir_is_lfs_pointer(const void *bytes, size_t n)
{
    static const char begin[WEIR_LFS_BYTES + 1] = "version https://git-lfs.github.com/spec/";
    return n >= WEIR_LFS_BYTES && memcmp(bytes, begin, WEIR_LFS_BYTES) == 0;
}

int weir_write_at(int fd, uint64_t offset, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(fd, (const char *)bytes + done, n - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? -errno : -EIO;
        done += (size_t)put;
    }
    return 0;
}

int weir_file_close(FILE *file)
{
    int rc = ferror(file) ? -EIO : 0;
    return fclose(file) == 0 ? rc : -errno;
}

void weir_descriptors_close(unsigned first, unsigned last)
{
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
    close((int)first); /* frees a descriptor for the folder */
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        unsigned long fd = strtoul(entry->d_name, NULL, 10); /* 0 for "." and ".." */
        if (fd >= first && fd <= last && fd != (unsigned)dirfd(folder))
            close((int)fd);
    }
    if (folder)
        closedir(folder);
}

int weir_folders_make(const char *folder)
{
    char path[PATH_MAX];
    struct stat st;
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path)
        return -ENAMETOOLONG;
    for (char *at = path + 1; *path && *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST && stat(path, &st) != 0)
            return -errno;
        *at = '/';
    }
    if (mkdir(path, 0777) == 0)
        return 0;
    int rc = -errno;
    if (stat(path, &st) != 0)
        return rc;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

enum { LINKS_MAX = 40 /* the kernel's limit */, TRIES = 300, TRY_NS = 10000000 };

char *weir_output_resolve(const char *path)
{
    char *at = strdup(path);
    for (int links = 0; at && links <= LINKS_MAX; links++) {
        char to[PATH_MAX], *next;
        ssize_t n = readlink(at, to, sizeof to);
        if (n < 0 || n == (ssize_t)sizeof to)
            return at; /* not a link, or a link that open() will reject */
        const char *slash = *to == '/' ? NULL : strrchr(at, '/');
        if (asprintf(&next, "%.*s%.*s", slash ? (int)(slash - at) + 1 : 0, at, (int)n, to) < 0)
            next = NULL;
        free(at);
        at = next;
    }
    errno = at ? ELOOP : ENOMEM;
    free(at);
    return NULL;
}

/* Replaces the path with that of its parent: "a" becomes ".", and "/a" becomes "/". Returns false if there is no
 * parent. */
static bool to_parent(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash && strcmp(path, ".") == 0)
        return false;
    if (slash == path && !slash[1])
        return false;
    strcpy(slash == path ? path + 1 : slash ? slash : path, slash ? "" : ".");
    return true;
}

/* Returns the nearest existing parent folder, without links and "..". */
static char *folder_of(const char *path)
{
    char *at = weir_output_resolve(path), *real = NULL;
    size_t n = at ? strlen(at) : 0;
    char *room = at ? realloc(at, n + 2) : NULL; /* room for "." if the path is empty */
    at = room ? room : at;
    while (room && !real && to_parent(at))
        real = realpath(at, NULL);
    free(at);
    return real;
}

bool weir_output_is_inside(const char *path, dev_t device, ino_t inode)
{
    struct stat st;
    char *at = folder_of(path);
    bool inside = false, more = at != NULL;
    for (; more && !inside; more = to_parent(at))
        inside = stat(at, &st) == 0 && st.st_dev == device && st.st_ino == inode;
    free(at);
    return inside;
}

static bool is_fifo(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Uses O_NONBLOCK, because otherwise opening a FIFO without a reader would wait forever. */
static int open_to_write(const char *path)
{
    const struct timespec pause = {.tv_nsec = TRY_NS};
    for (int tries = 0;; tries++) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
        if (fd >= 0 && fcntl(fd, F_SETFL, 0) == 0)
            return fd;
        int code = errno;
        if (fd >= 0)
            close(fd);
        if (code != ENXIO || tries == TRIES || !is_fifo(path))
            return -code;
        nanosleep(&pause, NULL);
    }
}

int weir_output_fd(const char *path)
{
    struct stat st;
    int fd = open_to_write(path);
    if (fd < 0 || (fstat(fd, &st) == 0 && (!S_ISREG(st.st_mode) || ftruncate(fd, 0) == 0)))
        return fd;
    int code = errno;
    close(fd);
    return -code;
}

FILE *weir_output_file(const char *path)
{
    int fd = weir_output_fd(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    int code = fd < 0 ? -fd : errno;
    if (fd >= 0 && !file)
        close(fd);
    errno = code;
    return file;
}

static int refuse(const char *path, int code, const char *what, struct weir_err *err)
{
    return weir_err_set(err, code, "%s: refusing to write to %s; remove it", path, what);
}

int weir_output_private(const char *path, int flags, mode_t mode, struct weir_err *err)
{
    struct stat st;
    int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    if (fd < 0 && lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return refuse(path, -ELOOP, S_ISLNK(st.st_mode) ? "a symbolic link" : "a folder or special file", err);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int code = errno;
        if (fd >= 0)
            close(fd);
        return weir_err_set(err, -code, "%s: cannot be opened: %s", path, strerror(code));
    }
    if (S_ISREG(st.st_mode) && st.st_nlink <= 1)
        return fd;
    close(fd);
    return S_ISREG(st.st_mode) ? refuse(path, -EMLINK, "a hard link to another file", err)
                               : refuse(path, -EINVAL, "a folder or special file", err);
}

int weir_durable_sync(const char *path, struct weir_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: cannot be opened: %s", path, strerror(errno));
    int rc = fsync(fd) == 0 || errno == EINVAL ? 0 : -errno; /* EINVAL: the file system has no storage to flush to */
    close(fd);
    return rc < 0 ? weir_err_set(err, rc, "%s: cannot be written: %s", path, strerror(-rc)) : 0;
}

static int sync_folder_of(const char *path, struct weir_err *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int rc = folder ? weir_durable_sync(folder, err) : weir_err_set(err, -ENOMEM, "%s: out of memory", path);
    free(folder);
    return rc;
}

static int no_name(const char *to, struct weir_err *err)
{
    return weir_err_set(err, -errno, "%s: cannot be renamed into place: %s", to, strerror(errno));
}

int weir_durable_rename(const char *from, const char *to, struct weir_err *err)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) != 0 &&
        (errno != EINVAL || access(to, F_OK) == 0 || rename(from, to) != 0))
        return no_name(to, err);
    return sync_folder_of(to, err);
}

int weir_durable_replace(const char *from, const char *to, struct weir_err *err)
{
    return rename(from, to) != 0 ? no_name(to, err) : sync_folder_of(to, err);
}

/* Finds the file in /proc/self/maps, because only the kernel has the complete path of the mapping. The linker knows
 * only the name that it was given, and a program only the name with which it was called. */
static int file_of(const void *ours, char path[PATH_MAX])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    if (!maps)
        return -errno;
    errno = 0;
    while (!found && getline(&line, &size, maps) > 0) {
        uintptr_t from, to;
        const char *name = strchr(line, '/'); /* the fields before the name contain no slash */
        if (!name || sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) != 2)
            continue;
        found = (uintptr_t)ours >= from && (uintptr_t)ours < to;
        if (found)
            snprintf(path, PATH_MAX, "%s", name);
    }
    int rc = found ? 0 : errno ? -errno : -ENOENT;
    free(line);
    fclose(maps);
    return rc;
}

static int resolve(const char *folder, const char *relative, char path[PATH_MAX])
{
    char joined[2 * PATH_MAX];
    snprintf(joined, sizeof joined, "%s/%s", folder, relative);
    if (realpath(joined, path))
        return 0;
    int rc = -errno;
    path[0] = '\0';
    return rc;
}

static int folder_with(const void *ours, char folder[PATH_MAX])
{
    int rc = file_of(ours, folder);
    if (rc == 0)
        *strrchr(folder, '/') = '\0';
    return rc;
}

/* Chooses the file that was installed last: pip replaces the program when it installs the package for another Python.
 */
static int newest(const glob_t *found, char path[PATH_MAX])
{
    const char *best = NULL;
    struct timespec best_time = {0};
    for (size_t i = 0; i < found->gl_pathc; i++) {
        struct stat st;
        if (stat(found->gl_pathv[i], &st) != 0)
            continue;
        if (best && (st.st_ctim.tv_sec < best_time.tv_sec ||
                     (st.st_ctim.tv_sec == best_time.tv_sec && st.st_ctim.tv_nsec <= best_time.tv_nsec)))
            continue;
        best = found->gl_pathv[i];
        best_time = st.st_ctim;
    }
    return best && realpath(best, path) ? 0 : -ENOENT;
}

/* folders: n patterns relative to the folder of `ours`. */
static int search(const void *ours, const char *const *folders, size_t n, const char *name, char path[PATH_MAX])
{
    char folder[PATH_MAX], pattern[2 * PATH_MAX + 64], *end = pattern;
    int rc = folder_with(ours, folder);
    path[0] = '\0';
    if (rc < 0)
        return rc;
    for (const char *c = folder; *c; *end++ = *c++)
        if (strchr("*?[\\", *c))
            *end++ = '\\';
    rc = -ENOENT;
    for (size_t i = 0; i < n && rc == -ENOENT; i++) {
        glob_t found;
        snprintf(end, sizeof pattern - (size_t)(end - pattern), "/%s/%s", folders[i], name);
        int status = glob(pattern, 0, NULL, &found);
        rc = status == 0 ? newest(&found, path) : status == GLOB_NOSPACE ? -ENOMEM : -ENOENT;
        globfree(&found);
    }
    return rc;
}

int weir_path_in_package(const void *ours, const char *name, char path[PATH_MAX])
{
    static const char *const folders[] = {"../lib*/python3*/*-packages/weir", "../weir" /* pip install --target */};
    return search(ours, folders, sizeof folders / sizeof *folders, name, path);
}

int weir_path_in_nvidia(const void *ours, const char *name, char path[PATH_MAX])
{
    static const char *const folders[] = {"../nvidia/*/lib"};
    return search(ours, folders, 1, name, path);
}

int weir_path_installed(const void *ours, const char *name, const char *const *folders, char path[PATH_MAX])
{
    char folder[PATH_MAX], relative[PATH_MAX];
    int rc = folder_with(ours, folder);
    path[0] = '\0';
    if (rc < 0)
        return rc;
    for (; *folders; folders++) {
        snprintf(relative, sizeof relative, "%s%s", *folders, name);
        rc = resolve(folder, relative, path);
        if (rc == 0 || weir_is_shortage(rc))
            return rc;
    }
    return weir_path_in_package(ours, name, path);
}
