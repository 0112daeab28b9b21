/* uring: reads ahead with one io_uring, using the features that the kernel supports: a single issuer with deferred task
 * work, registered files, a registered buffer. Each feature is tried and omitted if the kernel rejects it. Extents that
 * were not read ahead are read with pread. */
#include "base/threads.h"
#include "io/file_set_priv.h"
#include "io/io_ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if WEIR_HAVE_URING
#include <liburing.h>
#include <pthread.h>

enum { FILES_MAX = 1024 };

struct ring {
    struct io_uring uring;
    bool fixed_pool;
    int n_files;      /* number of registered file slots; 0: no files are registered */
    bool *registered; /* for each slot, whether it contains the file's handle */
};

/* Rings are set up and closed one at a time. Otherwise a new ring could reuse the addresses of one that is being
 * closed, which ThreadSanitizer would report as a race, because it does not know liburing's system calls. */
static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((constructor)) static void watch_forks(void)
{
    weir_fork_lock(&setup_lock);
}

/* Tests the ring with a no-op, because a seccomp filter may permit creating a ring but not using it. */
static int try_use(struct io_uring *uring)
{
    struct io_uring_cqe *cqe;
    struct io_uring_sqe *sqe = io_uring_get_sqe(uring);
    if (!sqe)
        return -EBUSY;
    io_uring_prep_nop(sqe);
    int rc = io_uring_submit_and_wait(uring, 1);
    if (rc >= 0)
        rc = io_uring_wait_cqe(uring, &cqe);
    if (rc == 0)
        io_uring_cqe_seen(uring, cqe);
    return rc;
}

/* Creates a ring with these flags. Returns 0 or -errno. */
static int try_setup(struct io_uring *uring, unsigned entries, unsigned flags)
{
    struct io_uring_params params;
    memset(&params, 0, sizeof params);
    params.flags = flags | IORING_SETUP_CQSIZE;
    params.cq_entries = 2 * entries;
    pthread_mutex_lock(&setup_lock);
    int rc = io_uring_queue_init_params(entries, uring, &params);
    pthread_mutex_unlock(&setup_lock);
    return rc;
}

static void shut(struct io_uring *uring)
{
    pthread_mutex_lock(&setup_lock);
    io_uring_queue_exit(uring);
    pthread_mutex_unlock(&setup_lock);
}

static int setup(struct io_uring *uring, unsigned entries, const char **how)
{
    static const struct {
        unsigned flags;
        const char *name;
    } ways[] = {
#ifdef IORING_SETUP_DEFER_TASKRUN
        {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, "single issuer, deferred task runs"},
#endif
        {0, "a plain ring"},
    };
    int rc = -EINVAL;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && rc == -EINVAL; i++) {
        rc = try_setup(uring, entries, ways[i].flags);
        *how = ways[i].name;
    }
    if (rc < 0)
        return rc;
    rc = try_use(uring);
    if (rc < 0)
        shut(uring);
    return rc;
}

static int setup_error(struct weir_err *err, int rc)
{
    if (rc == -ENOMEM)
        return weir_err_set(err, rc,
                            "io engine uring: no memory for a ring; raise the limit on locked memory (ulimit -l), or "
                            "use --io pread");
    return weir_err_set(err, rc,
                        "io engine uring: the kernel refuses io_uring (%s), because it is too old or because sysctl "
                        "kernel.io_uring_disabled or a seccomp filter forbids io_uring; use --io pread",
                        strerror(-rc));
}

static void register_files(struct ring *ring, struct weir_file_set *set)
{
    int n = weir_file_set_count(set);
    if (n > FILES_MAX || n > weir_file_set_open_max(set) || io_uring_register_files_sparse(&ring->uring, (unsigned)n))
        return; /* such a set closes and reopens handles, and registered handles would stay open */
    ring->registered = calloc((size_t)n, sizeof *ring->registered);
    ring->n_files = ring->registered ? n : 0;
}

static void ring_close(void *user)
{
    struct ring *ring = user;
    shut(&ring->uring);
    free(ring->registered);
    free(ring);
}

static int ring_open(void **out, struct weir_file_set *set, int depth, bool is_fixed, uint8_t *pool, size_t pool_bytes,
                     char *features, size_t size, struct weir_err *err)
{
    const char *how;
    (void)is_fixed;
    struct ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = setup(&ring->uring, (unsigned)depth, &how);
    if (rc < 0) {
        free(ring);
        return setup_error(err, rc);
    }
    struct iovec whole = {pool, pool_bytes};
    ring->fixed_pool = io_uring_register_buffers(&ring->uring, &whole, 1) == 0;
    register_files(ring, set);
    snprintf(features, size, "%s, %s, %s", how, ring->fixed_pool ? "registered buffers" : "buffers not registered",
             ring->n_files ? "registered files" : "files not registered");
    *out = ring;
    return 0;
}

/* Whether the file's handle is in its slot; registers it on first use. A handle can stay in its slot even if the set
 * closes the file, because the set compared the file with the index when it opened it. */
static bool in_slot(struct ring *ring, int file, int fd)
{
    if (file >= ring->n_files)
        return false;
    if (!ring->registered[file])
        ring->registered[file] = io_uring_register_files_update(&ring->uring, (unsigned)file, &fd, 1) == 1;
    return ring->registered[file];
}

static int ring_queue(void *user, int file, int fd, uint64_t offset, size_t length, uint8_t *to, uint32_t tag)
{
    struct ring *ring = user;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
    if (!sqe && io_uring_submit(&ring->uring) >= 0) /* a continued read can find the queue full */
        sqe = io_uring_get_sqe(&ring->uring);
    if (!sqe)
        return -EBUSY;
    bool slot = in_slot(ring, file, fd);
    int handle = slot ? file : fd;
    if (ring->fixed_pool)
        io_uring_prep_read_fixed(sqe, handle, to, (unsigned)length, offset, 0);
    else
        io_uring_prep_read(sqe, handle, to, (unsigned)length, offset);
    if (slot)
        sqe->flags |= IOSQE_FIXED_FILE;
    sqe->user_data = tag;
    return 0;
}

static int ring_wait(void *user, uint32_t *tags, int *results, int max)
{
    struct ring *ring = user;
    struct io_uring_cqe *cqe;
    unsigned head;
    int rc = io_uring_submit_and_wait(&ring->uring, 1), n = 0;
    io_uring_for_each_cqe(&ring->uring, head, cqe)
    {
        if (n == max)
            break;
        tags[n] = (uint32_t)cqe->user_data;
        results[n++] = cqe->res;
    }
    io_uring_cq_advance(&ring->uring, (unsigned)n);
    return n == 0 && rc < 0 ? rc : n;
}

static const struct weir_ring_ops ring_ops = {
    .open = ring_open,
    .close = ring_close,
    .queue = ring_queue,
    .wait = ring_wait,
};

bool weir_uring_describe(char *text, size_t size)
{
    struct io_uring uring;
    const char *how;
    uint8_t page[4096];
    struct iovec iov = {page, sizeof page};
    int rc = setup(&uring, 4, &how);
    if (rc < 0) {
        snprintf(text, size, "liburing " WEIR_URING_VERSION ", but the kernel refuses a ring: %s", strerror(-rc));
        return false;
    }
    bool buffers = io_uring_register_buffers(&uring, &iov, 1) == 0;
    bool files = io_uring_register_files_sparse(&uring, 4) == 0;
    snprintf(text, size, "liburing " WEIR_URING_VERSION "; %s, %s, %s", how,
             buffers ? "registered buffers" : "no registered buffers",
             files ? "registered files" : "no registered files");
    shut(&uring);
    return true;
}

static int ready(struct weir_err *err)
{
    struct io_uring uring;
    const char *how;
    int rc = setup(&uring, 4, &how);
    if (rc < 0)
        return setup_error(err, rc);
    shut(&uring);
    return 0;
}

const struct weir_io_ops weir_io_uring = {
    .name = "uring",
    .summary = "read-ahead through io_uring, many reads in flight",
    .read = weir_pread_extent,
    .can_direct = true,
    .auto_tries = true,
    .ring = &ring_ops,
    .ready = ready,
};

#else

bool weir_uring_describe(char *text, size_t size)
{
    snprintf(text, size, "built without liburing");
    return false;
}

const struct weir_io_ops weir_io_uring = {
    .name = "uring",
    .summary = "read-ahead through io_uring, many reads in flight",
    .why_not = "built without liburing",
    .auto_tries = true,
};

#endif
