#include "convert/partial.h"
#include "base/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDERS_OPEN = 16 };

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

static int lock_state(struct weir_partial *partial, struct weir_err *err)
{
    bool is_new = mkdir(partial->folder, 0777) == 0;
    if (!is_new && errno != EEXIST)
        return weir_err_set(err, -errno, "%s: cannot be created: %s", partial->folder, strerror(errno));
    if (!is_new && !exists(partial->state) && rmdir(partial->folder) != 0)
        return weir_err_set(err, -EINVAL, "%s: is there, and not what an interrupted weir convert left; remove it",
                            partial->folder);
    if (!is_new && mkdir(partial->folder, 0777) != 0 && errno != EEXIST)
        return weir_err_set(err, -errno, "%s: cannot be created: %s", partial->folder, strerror(errno));
    partial->lock = open(partial->state, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (partial->lock < 0)
        return weir_err_set(err, -errno, "%s: cannot be opened: %s", partial->state, strerror(errno));
    if (flock(partial->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    close(partial->lock);
    partial->lock = -1;
    return weir_err_set(err, -EBUSY, "%s: another weir convert is writing it", partial->target);
}

/* ---- all of it ---- */

static bool make_paths(struct weir_partial *partial)
{
    const char *target = partial->target, *slash = strrchr(target, '/');
    return asprintf(&partial->folder, "%s.partial", target) >= 0 &&
           asprintf(&partial->state, "%s/state.json", partial->folder) >= 0 &&
           asprintf(&partial->copy, "%s/%s", partial->folder, slash ? slash + 1 : target) >= 0;
}

int weir_partial_open(struct weir_partial *partial, const char *target, const char *state, struct weir_err *err)
{
    *partial = (struct weir_partial){.target = target, .lock = -1};
    int rc = 0;
    if (exists(target))
        rc = weir_err_set(err, -EEXIST, "%s: exists; remove it, or give the copy another name", target);
    else if (!make_paths(partial))
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = lock_state(partial, err);
    if (rc == 0)
        partial->is_there = exists(partial->copy);
    if (rc == 0 && partial->is_there && !has_text(partial->lock, state))
        rc = weir_err_set(err, -EINVAL,
                          "%s: is what a copy of another source, or with other options, left when it was interrupted; "
                          "remove it, or call weir convert as then",
                          partial->folder);
    if (rc == 0 && !partial->is_there)
        rc = put_text(partial, state, err);
    if (rc < 0)
        weir_partial_close(partial);
    return rc;
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
    return rc < 0 ? rc : remove_tree(partial->folder, err);
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
