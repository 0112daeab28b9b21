#include "io/file_set_priv.h"
#include "io/io_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    char *path;
    struct weir_file_id id;
    int fd;           /* -1 = closed */
    int pins;         /* reads under way */
    int newer, older; /* neighbours in the list of open files by last use; -1 = none */
};

struct weir_file_set {
    pthread_mutex_t lock;
    struct file *files;
    int count, capacity;
    int open_count, open_max;
    int newest, oldest;
    const struct weir_io_ops *ops; /* whose shared state this is */
    void *shared;
};

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
    set->open_max = max_open > 0 ? max_open : default_open_max();
    set->newest = set->oldest = -1;
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
        if (s->files[i].fd >= 0)
            close(s->files[i].fd);
        free(s->files[i].path);
    }
    free(s->files);
    pthread_mutex_destroy(&s->lock);
    free(s);
    *set = NULL;
}

int weir_file_set_add(struct weir_file_set *set, const char *path, const struct weir_file_id *id)
{
    if (set->count == set->capacity) {
        int capacity = set->capacity ? set->capacity * 2 : 64;
        struct file *files = realloc(set->files, sizeof *files * (size_t)capacity);
        if (!files)
            return -ENOMEM;
        set->files = files;
        set->capacity = capacity;
    }
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    set->files[set->count] = (struct file){.path = copy, .id = *id, .fd = -1, .newer = -1, .older = -1};
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

int weir_file_set_share(struct weir_file_set *set, const struct weir_io_ops *ops, void **shared, struct weir_err *err)
{
    if (set->ops && set->ops != ops)
        return weir_err_set(err, -EBUSY, "the files are already read by io engine %s", set->ops->name);
    if (!set->ops && ops->shared_open) {
        int rc = ops->shared_open(&set->shared, set, err);
        if (rc < 0)
            return rc;
    }
    set->ops = ops;
    *shared = set->shared;
    return 0;
}

static void unlink_used(struct weir_file_set *set, int file)
{
    struct file *f = &set->files[file];
    *(f->newer >= 0 ? &set->files[f->newer].older : &set->newest) = f->older;
    *(f->older >= 0 ? &set->files[f->older].newer : &set->oldest) = f->newer;
}

static void link_newest(struct weir_file_set *set, int file)
{
    struct file *f = &set->files[file];
    f->newer = -1;
    f->older = set->newest;
    *(set->newest >= 0 ? &set->files[set->newest].newer : &set->oldest) = file;
    set->newest = file;
}

/* Makes room for one more. Takes several when there were more pins than handles before. */
static void evict(struct weir_file_set *set)
{
    for (int i = set->oldest, newer; i >= 0 && set->open_count >= set->open_max; i = newer) {
        newer = set->files[i].newer;
        if (set->files[i].pins > 0)
            continue;
        close(set->files[i].fd);
        set->files[i].fd = -1;
        unlink_used(set, i);
        set->open_count--;
    }
}

static int open_checked(const struct file *f, int *fd)
{
    *fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return -errno;
    struct stat st;
    int rc = fstat(*fd, &st) == 0 ? 0 : -errno;
    int64_t mtime_ns = rc == 0 ? (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec : 0;
    if (rc == 0 && ((uint64_t)st.st_size != f->id.size_bytes || st.st_ino != f->id.inode || st.st_dev != f->id.device ||
                    mtime_ns != f->id.mtime_ns))
        rc = -ESTALE;
    if (rc < 0)
        close(*fd);
    return rc;
}

/* The process is out of descriptors (others need some too): lives with fewer from now on. False when there is none left
 * to close. */
static bool make_do(struct weir_file_set *set)
{
    int before = set->open_count;
    set->open_max = before > 1 ? before - 1 : 1;
    evict(set);
    return set->open_count < before;
}

/* Opens a file that is closed. The lock is dropped meanwhile: opening may take long on a network file system. */
static int open_now(struct weir_file_set *set, int file)
{
    struct file *f = &set->files[file];
    int fd, rc;
    do {
        pthread_mutex_unlock(&set->lock);
        rc = open_checked(f, &fd);
        pthread_mutex_lock(&set->lock);
    } while ((rc == -EMFILE || rc == -ENFILE) && make_do(set));
    if (rc < 0)
        return rc;
    if (f->fd >= 0) { /* another thread was faster */
        close(fd);
        return 0;
    }
    evict(set);
    f->fd = fd;
    set->open_count++;
    link_newest(set, file);
    return 0;
}

int weir_file_acquire(struct weir_file_set *set, int file, int *fd)
{
    pthread_mutex_lock(&set->lock);
    struct file *f = &set->files[file];
    int rc = f->fd >= 0 ? 0 : open_now(set, file);
    if (rc == 0) {
        if (set->newest != file) {
            unlink_used(set, file);
            link_newest(set, file);
        }
        f->pins++;
        *fd = f->fd;
    }
    pthread_mutex_unlock(&set->lock);
    return rc;
}

void weir_file_release(struct weir_file_set *set, int file)
{
    pthread_mutex_lock(&set->lock);
    set->files[file].pins--;
    pthread_mutex_unlock(&set->lock);
}
