#include "base/files.h"
#include "base/shortage.h"
#include "convert/plan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDERS_OPEN = 16, TRIES = 100 };

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 || errno != ENOENT;
}

/* ---- trees ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static int remove_tree(const char *path, struct weir_err *err)
{
    if (nftw(path, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS) == 0 || !exists(path))
        return 0;
    return weir_err_set(err, -errno, "%s: cannot be removed: %s", path, strerror(errno));
}

static _Thread_local uint64_t tree_bytes;

static int count_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)path;
    (void)at;
    tree_bytes += kind == FTW_F ? (uint64_t)st->st_size : 0;
    return 0;
}

uint64_t weir_partial_bytes(const char *path)
{
    tree_bytes = 0;
    nftw(path, count_one, FOLDERS_OPEN, FTW_PHYS);
    return tree_bytes;
}

/* Path of an entry that is neither a folder nor a regular file with a single link. */
static _Thread_local char strange[4096];

static int find_strange(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)at;
    if (kind == FTW_D || (kind == FTW_F && S_ISREG(st->st_mode) && st->st_nlink == 1))
        return 0;
    snprintf(strange, sizeof strange, "%s", path);
    return 1;
}

/* Rejects links, because a resumed copy opens its files by name, and a link could lead to someone else's file. */
static int check_tree(const char *path, struct weir_err *err)
{
    int rc = nftw(path, find_strange, FOLDERS_OPEN, FTW_PHYS);
    if (rc > 0)
        return weir_err_set(err, -ELOOP, "%s: is a link or is not a regular file; remove it", strange);
    return rc < 0 ? weir_err_set(err, -errno, "%s: cannot be searched: %s", path, strerror(errno)) : 0;
}

/* ---- state.json ---- */

static bool has_text(int fd, const char *text)
{
    size_t n = strlen(text);
    struct stat st;
    if (fstat(fd, &st) != 0 || (size_t)st.st_size != n)
        return false;
    char *read = malloc(n + 1);
    bool same = read && pread(fd, read, n, 0) == (ssize_t)n && memcmp(read, text, n) == 0;
    free(read);
    return same;
}

static int put_text(const struct weir_partial *partial, const char *text, struct weir_err *err)
{
    size_t n = strlen(text);
    ssize_t put = ftruncate(partial->lock, 0) == 0 ? pwrite(partial->lock, text, n, 0) : -1;
    if (put == (ssize_t)n && fsync(partial->lock) == 0)
        return weir_durable_sync(partial->folder, err);
    int code = put < 0 || put == (ssize_t)n ? errno : ENOSPC;
    return weir_err_set(err, -code, "%s: cannot be written: %s", partial->state, strerror(code));
}

/* Returns 1 if another process has removed the folder in the meantime. */
static int make_folder(const struct weir_partial *partial, struct weir_err *err)
{
    if (mkdir(partial->folder, 0777) != 0 && errno != EEXIST)
        return weir_err_set(err, -errno, "%s: cannot be created: %s", partial->folder, strerror(errno));
    int fd = open(partial->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 1;
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: cannot be used as a folder (%s); remove it", partial->folder,
                            strerror(errno));
    DIR *folder = fdopendir(fd);
    bool has_state = false, has_more = false;
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        has_state |= strcmp(entry->d_name, "state.json") == 0;
        has_more |= strcmp(entry->d_name, "state.json") != 0 && strcmp(entry->d_name, ".") != 0 &&
                    strcmp(entry->d_name, "..") != 0;
    }
    if (folder)
        closedir(folder);
    else
        close(fd);
    return has_state || !has_more ? 0
                                  : weir_err_set(err, -EINVAL,
                                                 "%s: exists, but is not a partial copy made by weir convert; "
                                                 "remove it",
                                                 partial->folder);
}

/* Returns 1 if the process that held the lock has removed the folder or state.json in the meantime. */
static int try_lock(struct weir_partial *partial, struct weir_err *err)
{
    struct stat mine, there;
    int rc = make_folder(partial, err);
    if (rc != 0)
        return rc;
    struct weir_err why = WEIR_ERR_NONE;
    partial->lock = weir_output_private(partial->state, O_RDWR | O_CREAT, 0666, &why);
    if (partial->lock == -ENOENT)
        return 1;
    if (partial->lock < 0)
        return weir_err_set(err, partial->lock, "%s", why.text);
    if (flock(partial->lock, LOCK_EX | LOCK_NB) == 0) {
        if (fstat(partial->lock, &mine) == 0 && lstat(partial->state, &there) == 0 && mine.st_dev == there.st_dev &&
            mine.st_ino == there.st_ino)
            return 0;
        rc = 1;
    } else if (errno == EWOULDBLOCK) {
        rc = weir_err_set(err, -EBUSY,
                          "%s: another weir convert is writing this copy; wait until it ends, or choose another path",
                          partial->target);
    } else {
        rc = weir_err_set(err, -errno, "%s: cannot be locked: %s", partial->state, strerror(errno));
    }
    close(partial->lock);
    partial->lock = -1;
    return rc;
}

static int lock_state(struct weir_partial *partial, struct weir_err *err)
{
    int rc = 1;
    for (int i = 0; i < TRIES && rc > 0; i++)
        rc = try_lock(partial, err);
    return rc > 0 ? weir_err_set(err, -EBUSY, "%s: other processes keep creating and removing it; choose another path",
                                 partial->folder)
                  : rc;
}

/* ---- the partial copy ---- */

static bool make_paths(struct weir_partial *partial)
{
    const char *target = partial->target, *slash = strrchr(target, '/');
    return asprintf(&partial->folder, "%s.partial", target) >= 0 &&
           asprintf(&partial->state, "%s/state.json", partial->folder) >= 0 &&
           asprintf(&partial->copy, "%s/%s", partial->folder, slash ? slash + 1 : target) >= 0;
}

static int check_target(const struct weir_partial *partial, struct weir_err *err)
{
    return exists(partial->target)
               ? weir_err_set(err, -EEXIST, "%s: exists; remove it, or choose another path for the copy",
                              partial->target)
               : 0;
}

int weir_partial_open(struct weir_partial *partial, const char *target, struct weir_err *err)
{
    *partial = (struct weir_partial){.target = target, .lock = -1};
    int rc = check_target(partial, err);
    if (rc == 0 && !make_paths(partial))
        rc = weir_no_memory(err);
    if (rc == 0)
        rc = lock_state(partial, err);
    if (rc == 0)
        rc = check_target(partial, err); /* the previous holder of the lock may have finished the copy */
    if (rc == 0)
        partial->is_there = exists(partial->copy);
    if (rc == 0 && partial->is_there)
        rc = check_tree(partial->copy, err);
    if (rc < 0)
        weir_partial_close(partial);
    return rc;
}

int weir_partial_begin(struct weir_partial *partial, const char *state, struct weir_err *err)
{
    if (!partial->is_there)
        return put_text(partial, state, err);
    if (has_text(partial->lock, state))
        return 0;
    return weir_err_set(err, -EINVAL,
                        "%s: is a partial copy of a different source or with different options; "
                        "remove it, or repeat the earlier command",
                        partial->folder);
}

int weir_partial_clear(struct weir_partial *partial, struct weir_err *err)
{
    partial->is_there = false;
    return remove_tree(partial->copy, err);
}

int weir_partial_finish(struct weir_partial *partial, struct weir_err *err)
{
    int rc = weir_durable_sync(partial->copy, err);
    if (rc == 0)
        rc = weir_durable_rename(partial->copy, partial->target, err);
    return rc;
}

void weir_partial_close(struct weir_partial *partial)
{
    if (partial->lock >= 0 && !exists(partial->copy)) {
        unlink(partial->state);
        rmdir(partial->folder);
    }
    if (partial->lock >= 0)
        close(partial->lock);
    free(partial->folder);
    free(partial->state);
    free(partial->copy);
    *partial = (struct weir_partial){.lock = -1};
}
