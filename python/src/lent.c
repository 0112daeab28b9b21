#include "python/src/lent.h"
#include "base/grow.h"
#include "pipeline/gpu/gpu.h"
#include "weir/loader.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PER_THREAD = 2 }; /* cudaStreamPerThread; NULL and 1 mean the legacy default stream */

struct weir_lender {
    _Atomic int references;
    struct weir_loader *loader;
    pthread_mutex_t lock; /* protects the batches in use */
};

struct weir_lent {
    _Atomic int references;
    int fork_depth;
    struct weir_kept kept;      /* memory is NULL while the memory belongs to the loader */
    bool is_kept;               /* the memory was given away by weir_lent_keep */
    struct weir_device *device; /* shared handle; NULL for host memory */
    /* Only for batches on a GPU: */
    struct weir_lender *lender;
    struct weir_batch *batch; /* NULL after it was returned or kept */
    void **streams;           /* streams that the batch was delivered on */
    int n_streams;
};

static _Atomic int depth;
static _Atomic size_t kept_bytes; /* total of all kept batches, whatever their loader */

static void on_child(void)
{
    atomic_fetch_add_explicit(&depth, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, on_child);
}

void weir_lent_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}

int weir_fork_depth(void)
{
    return atomic_load_explicit(&depth, memory_order_relaxed);
}

struct weir_lender *weir_lender_new(struct weir_loader *loader)
{
    struct weir_lender *lender = calloc(1, sizeof *lender);
    if (!lender)
        return NULL;
    pthread_mutex_init(&lender->lock, NULL);
    atomic_init(&lender->references, 1);
    lender->loader = loader;
    return lender;
}

void weir_lender_drop(struct weir_lender *lender)
{
    if (!lender || atomic_fetch_sub_explicit(&lender->references, 1, memory_order_acq_rel) > 1)
        return;
    pthread_mutex_destroy(&lender->lock);
    free(lender);
}

struct weir_lent *weir_lent_new(void)
{
    struct weir_lent *lent = calloc(1, sizeof *lent);
    if (!lent)
        return NULL;
    atomic_init(&lent->references, 1);
    lent->fork_depth = weir_fork_depth();
    return lent;
}

struct weir_lent *weir_lent_new_on_gpu(struct weir_lender *lender, struct weir_batch *batch)
{
    struct weir_lent *lent = weir_lent_new();
    if (!lent)
        return NULL;
    atomic_fetch_add_explicit(&lender->references, 1, memory_order_relaxed);
    lent->lender = lender;
    lent->batch = batch;
    lent->device = weir_device_share(weir_device_of(lender->loader));
    return lent;
}

static int take_memory(size_t bytes, struct weir_device *device, void **memory, struct weir_err *err)
{
    if (device)
        return weir_device_alloc(device, bytes, memory, err);
    *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return *memory == MAP_FAILED ? weir_err_set(err, -ENOMEM, "out of memory for an array of %zu bytes", bytes) : 0;
}

struct weir_lent *weir_lent_new_memory(size_t bytes, struct weir_device *device, void **memory, struct weir_err *err)
{
    struct weir_lent *lent = weir_lent_new();
    if (!lent) {
        weir_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    bytes = bytes ? bytes : 1;
    if (take_memory(bytes, device, memory, err) < 0) {
        weir_lent_drop(lent);
        return NULL;
    }
    lent->kept = (struct weir_kept){.memory = *memory, .bytes = bytes};
    lent->device = device ? weir_device_share(device) : NULL;
    return lent;
}

void weir_lent_take(struct weir_lent *lent)
{
    atomic_fetch_add_explicit(&lent->references, 1, memory_order_relaxed);
}

/* Frees the memory. There must be no references left. */
static void destroy(struct weir_lent *lent)
{
    if (lent->is_kept)
        atomic_fetch_sub_explicit(&kept_bytes, lent->kept.bytes, memory_order_relaxed);
    if (lent->device && lent->kept.memory && !lent->kept.block)
        weir_device_free(lent->device, lent->kept.memory);
    else if (lent->kept.memory)
        weir_loader_free_kept(&lent->kept, lent->streams, lent->n_streams);
    weir_device_close(&lent->device);
    weir_lender_drop(lent->lender);
    free(lent->streams);
    free(lent);
}

/* Returns the batch to the loader, which has the only reference left. The lock must be held. */
static void give_back(struct weir_lent *lent)
{
    weir_loader_release_after_all(lent->lender->loader, lent->batch, lent->streams, lent->n_streams);
    lent->batch = NULL;
}

void weir_lent_drop(struct weir_lent *lent)
{
    if (weir_lent_is_foreign(lent))
        return;
    struct weir_lender *lender = lent->lender;
    if (lender)
        pthread_mutex_lock(&lender->lock);
    /* The release order ensures that this thread's reads of the memory precede its reuse. */
    int left = atomic_fetch_sub_explicit(&lent->references, 1, memory_order_acq_rel) - 1;
    if (left == 1 && lent->batch)
        give_back(lent);
    if (lender)
        pthread_mutex_unlock(&lender->lock);
    if (left == 0)
        destroy(lent);
}

bool weir_lent_is_free(const struct weir_lent *lent)
{
    if (!lent->lender)
        return atomic_load_explicit(&lent->references, memory_order_acquire) == 1;
    pthread_mutex_lock(&lent->lender->lock);
    bool is_back = !lent->batch && !lent->kept.memory;
    pthread_mutex_unlock(&lent->lender->lock);
    return is_back;
}

int weir_lent_keep(struct weir_lent *lent, struct weir_loader *loader, struct weir_batch *batch, struct weir_err *err)
{
    struct weir_lender *lender = lent->lender;
    int rc = 0;
    if (lender)
        pthread_mutex_lock(&lender->lock);
    if (!lender || lent->batch) /* a batch on a GPU may have been returned by its last reference in the meantime */
        rc = weir_loader_keep(loader, batch, &lent->kept, err);
    if (rc == 0)
        lent->batch = NULL;
    if (rc == 0 && lent->kept.memory) {
        lent->is_kept = true;
        atomic_fetch_add_explicit(&kept_bytes, lent->kept.bytes, memory_order_relaxed);
    }
    if (lender)
        pthread_mutex_unlock(&lender->lock);
    return rc;
}

size_t weir_lent_kept_bytes(void)
{
    return atomic_load_explicit(&kept_bytes, memory_order_relaxed);
}

/* ---- streams; the lock must be held ---- */

/* Records a stream that uses the batch. Default streams of threads are recorded as the legacy default stream, because
 * work on the legacy stream waits for earlier work on them. One event on it therefore covers all threads. */
static int remember(struct weir_lent *lent, void *stream, struct weir_err *err)
{
    stream = (uintptr_t)stream <= PER_THREAD ? NULL : stream;
    for (int i = 0; i < lent->n_streams; i++)
        if (lent->streams[i] == stream)
            return 0;
    if (!weir_grow(&lent->streams, (size_t)lent->n_streams, sizeof *lent->streams))
        return weir_err_set(err, -ENOMEM, "out of memory");
    lent->streams[lent->n_streams++] = stream;
    return 0;
}

int weir_lent_ready(struct weir_lent *lent, void *stream, bool keep, struct weir_err *err)
{
    struct weir_lender *lender = lent->lender;
    if (!lender) /* host memory and separate copies are already complete */
        return 0;
    pthread_mutex_lock(&lender->lock);
    int rc = keep ? remember(lent, stream, err) : 0;
    if (rc == 0 && lent->batch) /* otherwise the memory is kept, and kept memory is already complete */
        rc = weir_loader_wait(lender->loader, lent->batch, stream, err);
    pthread_mutex_unlock(&lender->lock);
    return rc;
}

void weir_lent_step_end(struct weir_lent *lent)
{
    struct weir_lender *lender = lent->lender;
    if (!lender)
        return;
    pthread_mutex_lock(&lender->lock);
    if (lent->batch && lent->n_streams > 0) /* the loader's next batch reports errors */
        weir_loader_step_end(lender->loader, lent->batch, lent->streams[0], NULL);
    pthread_mutex_unlock(&lender->lock);
}

bool weir_lent_is_foreign(const struct weir_lent *lent)
{
    return lent->fork_depth != weir_fork_depth();
}

struct weir_device *weir_lent_device(const struct weir_lent *lent)
{
    return lent->device;
}
