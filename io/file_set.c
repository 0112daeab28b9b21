#include "base/grow.h"
#include "io/file_set_priv.h"
#include "io/io_ops.h"
#include "origin/origin.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The state contains fd + 1 in the upper half (0: closed) and the number of reads in flight in the lower half. It is a
 * single word, so that reading from an open file needs no lock. */
struct file {
    char *path;
    struct weir_file_id id;
    alignas(64) _Atomic uint64_t state;
    _Atomic bool used; /* since the clock hand last passed the file */
    _Atomic bool was_read, spoiled;
    int spoiled_fd; /* fd + 1 of the handle that was open when the file was spoiled, kept for reads in flight; 0: none
                     */
};

struct weir_file_set {
    pthread_mutex_t lock; /* protects opening and closing */
    struct file *files;
    int count, capacity;
    /* Unordered indexes of the files that have an open handle. The set can contain far more files than handles. */
    int *open, open_count, open_max;
    int hand;                   /* clock hand: index into open of the next candidate for closing */
    size_t align;               /* required alignment of offsets, lengths and memory for O_DIRECT; 1 without O_DIRECT */
    struct weir_origin *origin; /* NULL = files of this machine */
    const struct weir_io_ops *ops; /* the engine that owns the shared state */
    void *shared;
};

static int fd_of(uint64_t state)
{
    return (int)(state >> 32) - 1;
}

static uint64_t opened(int fd)
{
    return ((uint64_t)fd + 1) << 32;
}

static int default_open_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > 16384)
        return 8192;
    return limit.rlim_cur > 32 ? (int)(limit.rlim_cur / 2) : 16;
}

int weir_file_set_open(struct weir_file_set **out, int max_open)
{
    struct weir_file_set *set = calloc(1, sizeof *set);
    *out = set;
    if (!set)
        return -ENOMEM;
    pthread_mutex_init(&set->lock, NULL);
    set->align = 1;
    set->open_max = max_open > 0 ? max_open : default_open_max();
    return 0;
}

void weir_file_set_close(struct weir_file_set **set)
{
    struct weir_file_set *s = *set;
    if (!s)
        return;
    if (s->ops && s->ops->shared_close)
        s->ops->shared_close(s->shared);
    for (int i = 0; i < s->count; i++) {
        int fd = fd_of(atomic_load(&s->files[i].state));
        if (fd >= 0)
            close(fd);
        if (s->files[i].spoiled_fd > 0)
            close(s->files[i].spoiled_fd - 1);
        free(s->files[i].path);
    }
    free(s->files);
    free(s->open);
    pthread_mutex_destroy(&s->lock);
    free(s);
    *set = NULL;
}

int weir_file_set_add(struct weir_file_set *set, const char *path, const struct weir_file_id *id)
{
    if (set->count == set->capacity) {
        int capacity = set->capacity ? set->capacity * 2 : 64;
        struct file *files = aligned_alloc(alignof(struct file), sizeof *files * (size_t)capacity);
        if (!files)
            return -ENOMEM;
        if (set->count)
            memcpy(files, set->files, sizeof *files * (size_t)set->count);
        free(set->files);
        set->files = files;
        set->capacity = capacity;
    }
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    set->files[set->count] = (struct file){.path = copy, .id = *id};
    return set->count++;
}

const char *weir_file_set_path(const struct weir_file_set *set, int file)
{
    return set->files[file].path;
}

int weir_file_set_count(const struct weir_file_set *set)
{
    return set->count;
}

uint64_t weir_file_set_size(const struct weir_file_set *set, int file)
{
    return set->files[file].id.size_bytes;
}

struct weir_file_id weir_file_set_id(const struct weir_file_set *set, int file)
{
    return set->files[file].id;
}

void weir_file_set_use(struct weir_file_set *set, struct weir_origin *origin)
{
    set->origin = origin;
}

struct weir_origin *weir_file_set_origin(const struct weir_file_set *set)
{
    return set->origin;
}

size_t weir_file_set_align(const struct weir_file_set *set)
{
    return set->align;
}

int weir_file_set_open_max(const struct weir_file_set *set)
{
    return set->open_max;
}

int weir_file_set_copy(struct weir_file_set **out, const struct weir_file_set *set, int max_open)
{
    int rc = weir_file_set_open(out, max_open);
    for (int i = 0; i < set->count && rc >= 0; i++)
        rc = weir_file_set_add(*out, set->files[i].path, &set->files[i].id);
    if (rc < 0) {
        weir_file_set_close(out);
        return rc;
    }
    (*out)->align = set->align;
    (*out)->origin = set->origin;
    return 0;
}

/* Determines the alignment that the file system requires for direct reads. Kernels before 6.1 do not report it; the
 * page size then works on every file system. */
static int direct_align(const char *path, size_t *align)
{
    *align = 4096;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (fd < 0)
        return -errno;
    int rc = 0;
#ifdef STATX_DIOALIGN
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) == 0 && (st.stx_mask & STATX_DIOALIGN)) {
        *align = st.stx_dio_mem_align > st.stx_dio_offset_align ? st.stx_dio_mem_align : st.stx_dio_offset_align;
        rc = st.stx_dio_offset_align == 0 ? -EINVAL : 0;
        *align = *align > 512 ? *align : 512;
    }
#endif
    close(fd);
    return rc == 0 && (*align & (*align - 1)) != 0 ? -EINVAL : rc;
}

int weir_file_set_direct(struct weir_file_set *set, struct weir_err *err)
{
    uint64_t device = 0;
    if (set->origin)
        return weir_err_set(err, -ENOTSUP, "direct reads (O_DIRECT) need files of this machine; omit --direct");
    for (int i = 0; i < set->count; i++) {
        size_t align;
        if (i > 0 && set->files[i].id.device == device)
            continue; /* one file per file system is enough */
        int rc = direct_align(set->files[i].path, &align);
        if (rc == -EINVAL || rc == -EOPNOTSUPP)
            return weir_err_set(err, -ENOTSUP,
                                "%s: its file system does not support direct reads (O_DIRECT); omit --direct, or move "
                                "the data to a local disk",
                                set->files[i].path);
        if (rc < 0)
            return weir_err_set(err, rc, "%s: %s", set->files[i].path, strerror(-rc));
        device = set->files[i].id.device;
        set->align = align > set->align ? align : set->align;
    }
    return 0;
}

int weir_file_set_share(struct weir_file_set *set, const struct weir_io_ops *ops, void **shared, struct weir_err *err)
{
    if (set->ops && set->ops != ops)
        return weir_err_set(err, -EBUSY, "the files are already being read by io engine %s", set->ops->name);
    if (!set->ops && ops->shared_open) {
        int rc = ops->shared_open(&set->shared, set, err);
        if (rc < 0)
            return rc;
    }
    set->ops = ops;
    *shared = set->shared;
    return 0;
}

/* Closes a file unless it is being read. Returns whether it was closed. */
static bool try_close(struct file *f)
{
    uint64_t state = atomic_load_explicit(&f->state, memory_order_relaxed);
    if (fd_of(state) < 0 || (uint32_t)state != 0 ||
        !atomic_compare_exchange_strong_explicit(&f->state, &state, 0, memory_order_acq_rel, memory_order_relaxed))
        return false;
    close(fd_of(state));
    return true;
}

/* Closes a handle by the clock algorithm so that another file can be opened. A file that was used since the hand last
 * passed it is skipped once. Closes several handles if a burst of reads exceeded the limit, and none if all of them are
 * being read. */
static void evict(struct weir_file_set *set)
{
    for (int left = 2 * set->open_count; left > 0 && set->open_count >= set->open_max; left--) {
        set->hand = set->hand < set->open_count ? set->hand : 0;
        struct file *f = &set->files[set->open[set->hand]];
        if (!atomic_exchange_explicit(&f->used, false, memory_order_relaxed) && try_close(f))
            set->open[set->hand] = set->open[--set->open_count];
        else
            set->hand++;
    }
}

static int reserve_open(struct weir_file_set *set)
{
    return weir_grow(&set->open, (size_t)set->open_count, sizeof *set->open) ? 0 : -ENOMEM;
}

/* Compares an open file with its id in the index. Returns 0, -ESTALE if they differ, or another -errno. */
static int compare(const struct file *f, int fd, int how)
{
    struct weir_file_id now;
    int rc = weir_file_id_now(fd, "", AT_EMPTY_PATH | how, &now);
    return rc < 0 ? rc : weir_file_id_same(&now, &f->id) ? 0 : -ESTALE;
}

int weir_file_check(const struct weir_file_set *set, int file, int fd)
{
    if (set->origin)
        return 0; /* each response was checked */
    return compare(&set->files[file], fd, AT_STATX_DONT_SYNC);
}

static int open_checked(const struct file *f, int flags, int *fd)
{
    *fd = open(f->path, O_RDONLY | O_CLOEXEC | flags);
    if (*fd < 0)
        return -errno;
    int rc = compare(f, *fd, AT_STATX_SYNC_AS_STAT);
    if (rc < 0)
        close(*fd);
    return rc;
}

/* Reduces the set's limit because the process has run out of file descriptors. Returns false if no handle could be
 * closed. */
static bool make_do(struct weir_file_set *set)
{
    int before = set->open_count;
    set->open_max = before > 1 ? before - 1 : 1;
    evict(set);
    return set->open_count < before;
}

/* Opens a closed file. Releases the lock in the meantime, because opening a file can take a long time on a network file
 * system. */
static int open_now(struct weir_file_set *set, int file)
{
    struct file *f = &set->files[file];
    int fd, rc;
    do {
        pthread_mutex_unlock(&set->lock);
        rc = open_checked(f, set->align > 1 ? O_DIRECT : 0, &fd);
        pthread_mutex_lock(&set->lock);
    } while ((rc == -EMFILE || rc == -ENFILE) && make_do(set));
    if (rc == 0 && atomic_load_explicit(&f->spoiled, memory_order_relaxed)) {
        close(fd);
        rc = -ESTALE;
    }
    if (rc == -ESTALE) /* so that weir_file_set_changed compares the file and reports the difference */
        atomic_store_explicit(&f->was_read, true, memory_order_relaxed);
    if (rc < 0)
        return rc;
    bool faster =
        fd_of(atomic_load_explicit(&f->state, memory_order_relaxed)) >= 0; /* another thread opened the file first */
    if (!faster)
        evict(set);
    rc = faster ? 0 : reserve_open(set);
    if (faster || rc < 0) {
        close(fd);
        return rc;
    }
    atomic_store_explicit(&f->used, true, memory_order_relaxed);
    atomic_store_explicit(&f->was_read, true, memory_order_relaxed);
    atomic_store_explicit(&f->state, opened(fd), memory_order_release);
    set->open[set->open_count++] = file;
    return 0;
}

/* Pins an open file for one more read. Returns false if the file is closed. */
static bool pin(struct file *f, int *fd)
{
    uint64_t state = atomic_load_explicit(&f->state, memory_order_relaxed);
    while (fd_of(state) >= 0)
        if (atomic_compare_exchange_weak_explicit(&f->state, &state, state + 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            *fd = fd_of(state);
            if (!atomic_load_explicit(&f->used, memory_order_relaxed)) /* saves writes to a shared cache line */
                atomic_store_explicit(&f->used, true, memory_order_relaxed);
            return true;
        }
    return false;
}

int weir_file_acquire(struct weir_file_set *set, int file, int *fd)
{
    struct file *f = &set->files[file];
    int rc = 0;
    if (set->origin) {
        *fd = -1;
        weir_file_set_note(set, file);
        return weir_file_set_is_spoiled(set, file) ? -ESTALE : 0;
    }
    while (rc == 0 && !pin(f, fd)) {
        if (atomic_load_explicit(&f->spoiled, memory_order_acquire))
            return -ESTALE;
        pthread_mutex_lock(&set->lock);
        if (fd_of(atomic_load_explicit(&f->state, memory_order_relaxed)) < 0)
            rc = open_now(set, file);
        pthread_mutex_unlock(&set->lock);
    }
    return rc;
}

void weir_file_release(struct weir_file_set *set, int file)
{
    if (!set->origin)
        atomic_fetch_sub_explicit(&set->files[file].state, 1, memory_order_release);
}

bool weir_file_set_spoil(struct weir_file_set *set, int file)
{
    struct file *f = &set->files[file];
    pthread_mutex_lock(&set->lock);
    bool first = !atomic_exchange_explicit(&f->spoiled, true, memory_order_release);
    uint64_t state = atomic_load_explicit(&f->state, memory_order_relaxed);
    while (fd_of(state) >= 0 && !atomic_compare_exchange_weak_explicit(&f->state, &state, (uint32_t)state,
                                                                       memory_order_acq_rel, memory_order_relaxed))
        continue;
    if (fd_of(state) >= 0)
        f->spoiled_fd = fd_of(state) + 1; /* the handle stays open and counted until the set is closed */
    pthread_mutex_unlock(&set->lock);
    return first;
}

bool weir_file_set_is_spoiled(const struct weir_file_set *set, int file)
{
    return atomic_load_explicit(&set->files[file].spoiled, memory_order_acquire);
}

void weir_file_set_note(struct weir_file_set *set, int file)
{
    _Atomic bool *was_read = &set->files[file].was_read;
    if (!atomic_load_explicit(was_read, memory_order_relaxed)) /* saves writes to a shared cache line */
        atomic_store_explicit(was_read, true, memory_order_relaxed);
}

int weir_file_set_changed(struct weir_file_set *set, int file, bool ask_server, char text[WEIR_FILE_CHANGE])
{
    const struct file *f = &set->files[file];
    *text = 0;
    if (!atomic_load_explicit(&f->was_read, memory_order_relaxed))
        return 0;
    if (set->origin)
        return 0; /* each response was compared: a range of another version is an error */
    return weir_file_id_compare(f->path, &f->id, ask_server, text);
}
