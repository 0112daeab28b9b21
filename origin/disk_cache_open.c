/* Opens and creates caches. */
#include "base/files.h"
#include "base/hash.h"
#include "base/option.h"
#include "base/shortage.h"
#include "base/terminal.h"
#include "base/text.h"
#include "origin/disk_cache_priv.h"
#include "origin/s3_sign.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { SIZE_MIN = 1 << 20, SLOT_BYTES = WEIR_DISK_SEGMENT + sizeof(struct weir_disk_entry) + 8 * WEIR_DISK_BLOCKS };
static const uint64_t SIZE_MAX_BYTES = (uint64_t)1 << 50;
static const char magic[16] = "weir disk cache1";

int weir_disk_lock(int table, int byte, int type, bool wait)
{
    enum { PAUSE_NS = 50 * 1000, TRIES = 10 * 1000 };
    struct flock lock = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    for (int i = 0;; i++) {
        int rc = fcntl(table, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
        if (rc != -EAGAIN && rc != -EACCES)
            return rc;
        if (!wait || i == TRIES)
            return -EAGAIN;
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    }
}

/* ---- the option ---- */

/* Splits "DIR:SIZE". Without a size, *size is 0. What follows the last colon must be a size or have a slash. */
static int split(const char *text, char folder[PATH_MAX], uint64_t *size, struct weir_err *err)
{
    static const struct weir_opt opt = {.name = "cache", .kind = WEIR_OPT_BYTES};
    struct weir_err ignored = WEIR_ERR_NONE;
    const char *colon = strrchr(text, ':');
    bool has_size = colon && !strchr(colon, '/');
    size_t n = has_size ? (size_t)(colon - text) : strlen(text);
    *size = 0;
    if (has_size && weir_option_parse(&opt, colon + 1, size, &ignored) < 0)
        return weir_err_set(err, -EINVAL,
                            "--cache %s: the size must be a number of bytes, such as 200G; a folder whose name has a "
                            "colon needs a slash at its end",
                            text);
    if (n == 0 || n >= PATH_MAX - sizeof "/weir-cache.table")
        return weir_err_set(err, -EINVAL, "--cache %s: must be DIR or DIR:SIZE, such as /ssd/weir:200G", text);
    if (has_size && (*size < SIZE_MIN || *size > SIZE_MAX_BYTES))
        return weir_err_set(err, -EINVAL, "--cache %s: the size must be at least 1M and at most 1024T", text);
    snprintf(folder, PATH_MAX, "%.*s", (int)n, text);
    return 0;
}

/* ---- files ---- */

static int open_file(const char *folder, const char *name, int *fd, struct weir_err *err)
{
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%.4070s/%s", folder, name);
    *fd = weir_output_private(path, O_RDWR | O_CREAT, 0600, err);
    if (*fd < 0)
        return *fd;
    if (fstat(*fd, &st) == 0 && st.st_uid == geteuid())
        return 0;
    return weir_err_set(err, -EPERM, "%s: belongs to another user; choose another folder for --cache", path);
}

static uint64_t check_of(const struct weir_disk_head *head)
{
    return weir_hash64(head, offsetof(struct weir_disk_head, check));
}

static off_t table_bytes(uint64_t slots)
{
    return (off_t)(WEIR_DISK_HEAD + slots * (SLOT_BYTES - WEIR_DISK_SEGMENT));
}

/* Reads the head. Returns 1; 0 if the table is new or damaged; or a negative code. */
static int read_head(int table, struct weir_disk_head *head, bool *damaged, const char *folder, struct weir_err *err)
{
    static const struct weir_disk_head none;
    struct stat st;
    *head = none;
    int rc = fstat(table, &st) != 0 ? -errno : st.st_size == 0 ? 0 : weir_read_at(table, 0, head, sizeof *head);
    if (rc < 0 && rc != -ENODATA)
        return weir_err_set(err, rc, "--cache %s: cannot be read: %s", folder, strerror(-rc));
    if (memcmp(head, &none, sizeof none) == 0) /* a new file, or its creator was killed */
        return 0;
    if (rc == 0 && memcmp(head->magic, magic, sizeof magic) == 0) {
        bool fits = head->check == check_of(head) && head->slots > 0 && head->slots <= SIZE_MAX_BYTES / SLOT_BYTES;
        *damaged = !fits || st.st_size != table_bytes(head->slots);
        return !*damaged;
    }
    return weir_err_set(err, -EINVAL,
                        "--cache %s: weir-cache.table is not the table of a cache of this version; remove it, or "
                        "choose another folder",
                        folder);
}

/* Fills in the head of an empty cache, and removes the contents of both files. */
static int make_head(struct weir_disk_cache *c, uint64_t size, const char *folder, struct weir_err *err)
{
    struct statvfs fs;
    if (size == 0 && fstatvfs(c->data, &fs) == 0)
        size = (uint64_t)fs.f_bavail * fs.f_frsize / 2;
    size = size < SIZE_MAX_BYTES ? size : SIZE_MAX_BYTES;
    c->head = (struct weir_disk_head){.slots = size / SLOT_BYTES ? size / SLOT_BYTES : 1};
    memcpy(c->head.magic, magic, sizeof magic);
    int rc = getrandom(c->head.secret, sizeof c->head.secret, 0) == (ssize_t)sizeof c->head.secret ? 0 : -EIO;
    if (rc == 0 && (ftruncate(c->data, 0) != 0 || ftruncate(c->table, 0) != 0 ||
                    ftruncate(c->table, table_bytes(c->head.slots)) != 0))
        rc = -errno;
    return rc < 0 ? weir_err_set(err, rc, "--cache %s: cannot be created: %s", folder, strerror(-rc)) : 0;
}

/* A write beyond the limit would end the process by a signal. */
static int check_limit(const struct weir_disk_cache *c, const char *folder, struct weir_err *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / WEIR_DISK_SEGMENT >= c->head.slots)
        return 0;
    return weir_err_set(err, -EFBIG,
                        "--cache %s: its file may become larger than the limit of %s (ulimit -f); raise the limit, or "
                        "choose a smaller size",
                        folder, weir_size((double)limit.rlim_cur).text);
}

/* ---- opening ---- */

/* Called with the head locked. */
static int use_head(struct weir_disk_cache *c, uint64_t size, const char *folder, struct weir_err *err)
{
    bool damaged = false;
    int rc = read_head(c->table, &c->head, &damaged, folder, err);
    bool exists = rc == 1, fits = exists && (size == 0 || c->head.slots == size / SLOT_BYTES);
    if (rc < 0)
        return rc;
    if (damaged && weir_disk_lock(c->table, WEIR_DISK_LOCK_USE, F_WRLCK, false) < 0)
        return weir_err_set(err, -EBUSY, "--cache %s: its table is damaged, and other processes use it; end them",
                            folder);
    if (!fits && weir_disk_lock(c->table, WEIR_DISK_LOCK_USE, F_WRLCK, false) < 0)
        return weir_err_set(err, -EBUSY, "--cache %s: other processes use it with a size of %s; use the same size",
                            folder, weir_size((double)c->head.slots * SLOT_BYTES).text);
    rc = fits ? 0 : make_head(c, size, folder, err);
    if (rc == 0 && damaged)
        weir_notice("--cache %s: its table is damaged, so the cache begins anew", folder);
    rc = rc < 0 ? rc : check_limit(c, folder, err);
    if (rc < 0)
        return rc;
    c->head.opened++;
    c->head.check = check_of(&c->head);
    rc = weir_write_at(c->table, 0, &c->head, sizeof c->head);
    if (rc < 0 && rc != -ENOSPC && rc != -EDQUOT)
        return weir_err_set(err, rc, "--cache %s: cannot be written: %s", folder, strerror(-rc));
    c->error = rc;
    return 0;
}

static int open_cache(struct weir_disk_cache *c, const char *text, struct weir_err *err)
{
    char folder[PATH_MAX];
    uint64_t size;
    int rc = split(text, folder, &size, err);
    if (rc < 0)
        return rc;
    if ((rc = weir_folders_make(folder)) < 0)
        return weir_err_set(err, rc, "--cache %s: %s; %s", folder, strerror(-rc), weir_write_advice(rc));
    rc = open_file(folder, "weir-cache.table", &c->table, err);
    rc = rc < 0 ? rc : open_file(folder, "weir-cache.data", &c->data, err);
    if (rc < 0)
        return rc;
    posix_fadvise(c->data, 0, 0, POSIX_FADV_RANDOM); /* neighbouring slots belong to other files */
    if ((rc = weir_disk_lock(c->table, WEIR_DISK_LOCK_HEAD, F_WRLCK, true)) < 0)
        return weir_err_set(err, rc, "--cache %s: cannot be locked: %s; %s", folder, strerror(-rc),
                            rc == -EAGAIN ? "another process that uses it has been stopped; resume or end it"
                                          : "choose a folder on a local disk");
    rc = use_head(c, size, folder, err);
    if (rc == 0 && (rc = weir_disk_lock(c->table, WEIR_DISK_LOCK_USE, F_RDLCK, true)) < 0)
        weir_err_set(err, rc, "--cache %s: cannot be locked: %s", folder, strerror(-rc));
    weir_disk_lock(c->table, WEIR_DISK_LOCK_HEAD, F_UNLCK, true);
    return rc;
}

int weir_disk_cache_open(struct weir_disk_cache **out, const char *text, struct weir_err *err)
{
    struct weir_disk_cache *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return weir_no_memory(err);
    c->table = c->data = -1;
    pthread_mutex_init(&c->inserting, NULL);
    int rc = open_cache(c, text, err);
    if (rc < 0)
        weir_disk_cache_close(&c);
    *out = c;
    return rc;
}

void weir_disk_cache_close(struct weir_disk_cache **cache)
{
    struct weir_disk_cache *c = *cache;
    if (!c)
        return;
    if (c->table >= 0)
        close(c->table);
    if (c->data >= 0)
        close(c->data);
    pthread_mutex_destroy(&c->inserting);
    explicit_bzero(&c->head, sizeof c->head);
    free(c);
    *cache = NULL;
}

/* The secret makes it impossible for a server to choose names that get the keys of another server's files. */
struct weir_disk_key weir_disk_cache_key(const struct weir_disk_cache *cache, const char *identity, uint64_t size_bytes)
{
    struct weir_disk_key key = {0};
    unsigned char hash[32];
    if (!weir_sha256(cache->head.secret, sizeof cache->head.secret, identity, hash))
        return key;
    memcpy(&key.high, hash, sizeof key.high);
    memcpy(&key.low, hash + sizeof key.high, sizeof key.low);
    key.size_bytes = size_bytes;
    return key;
}
