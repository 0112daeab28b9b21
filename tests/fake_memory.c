/* GPU memory of the stand-in: addresses that fault when the host touches them, and host memory behind them. */
#include "tests/fake_cuda.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MADE_OF = 0xA5 }; /* what was never written is not zero */

struct range {
    struct range *next;
    const struct weir_gpu *gpu;
    uintptr_t from;
    size_t bytes;
    uint8_t *data; /* behind GPU memory */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *memory, *pinned;

static uint64_t used_bytes(int number)
{
    uint64_t bytes = 0;
    for (const struct range *range = memory; range; range = range->next)
        bytes += range->gpu->number == number ? range->bytes : 0;
    return bytes;
}

static bool holds(const struct range *range, const void *at, size_t bytes)
{
    uintptr_t from = (uintptr_t)at;
    return from >= range->from && from - range->from <= range->bytes && bytes <= range->bytes - (from - range->from);
}

static const struct range *find(const struct range *list, const void *at, size_t bytes)
{
    while (list && !holds(list, at, bytes))
        list = list->next;
    return list;
}

/* Takes the range that begins there out of the list. */
static struct range *take(struct range **list, const void *at)
{
    while (*list && (*list)->from != (uintptr_t)at)
        list = &(*list)->next;
    struct range *range = *list;
    if (range)
        *list = range->next;
    return range;
}

void *fake_memory(const void *gpu, size_t bytes, const char *what)
{
    pthread_mutex_lock(&lock);
    const struct range *range = find(memory, gpu, bytes);
    uint8_t *data = range ? range->data + ((uintptr_t)gpu - range->from) : NULL;
    pthread_mutex_unlock(&lock);
    if (!data)
        fake_die("%s: %zu bytes at %p are not within one allocation of GPU memory", what, bytes, gpu);
    return data;
}

int fake_memory_info(struct weir_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes, struct weir_err *err)
{
    int rc = fake_check_lost(err);
    pthread_mutex_lock(&lock);
    *total_bytes = fake_config()->memory_bytes;
    *free_bytes = *total_bytes - used_bytes(gpu->number);
    pthread_mutex_unlock(&lock);
    return rc;
}

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static int no_memory(const struct weir_gpu *gpu, size_t bytes, uint64_t free_bytes, struct weir_err *err)
{
    return weir_err_set(err, -ENOMEM,
                        "GPU %d (stand-in) has no %zu bytes of memory left (%llu are free): make --batch-size or "
                        "--prefetch smaller",
                        gpu->number, bytes, (unsigned long long)free_bytes);
}

int fake_alloc(struct weir_gpu *gpu, size_t bytes, void **out, struct weir_err *err)
{
    *out = NULL;
    int rc = fake_check_lost(err);
    if (rc < 0)
        return rc;
    if (bytes == 0)
        fake_die("alloc: 0 bytes of GPU memory");
    const struct fake_config *config = fake_config();
    pthread_mutex_lock(&lock);
    uint64_t left = config->memory_bytes - used_bytes(gpu->number);
    bool fits = bytes <= left && (config->oom_bytes == 0 || bytes < config->oom_bytes);
    struct range *range = fits ? calloc(1, sizeof *range) : NULL;
    void *address = fits ? mmap(NULL, whole_pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                         : MAP_FAILED;
    uint8_t *data = fits ? malloc(bytes) : NULL;
    if (fits && (!range || address == MAP_FAILED || !data))
        fake_die("alloc: the host has no %zu bytes", bytes);
    if (fits) {
        memset(data, MADE_OF, bytes);
        *range = (struct range){memory, gpu, (uintptr_t)address, bytes, data};
        memory = range;
        *out = address;
    }
    pthread_mutex_unlock(&lock);
    return fits ? 0 : no_memory(gpu, bytes, left, err);
}

void fake_free(struct weir_gpu *gpu, void *address)
{
    if (!address)
        return;
    fake_drain(gpu);
    pthread_mutex_lock(&lock);
    struct range *range = take(&memory, address);
    pthread_mutex_unlock(&lock);
    if (!range || range->gpu != gpu)
        fake_die("free: %p is no memory of this GPU, or was freed before", address);
    munmap(address, whole_pages(range->bytes));
    free(range->data);
    free(range);
}

/* ---- pinning ---- */

static bool touches(const struct range *range, const void *at, size_t bytes)
{
    return (uintptr_t)at < range->from + range->bytes && range->from < (uintptr_t)at + bytes;
}

bool fake_is_pinned(const void *host, size_t bytes)
{
    pthread_mutex_lock(&lock);
    bool whole = find(pinned, host, bytes) != NULL, part = false;
    for (const struct range *range = pinned; range; range = range->next)
        part = part || touches(range, host, bytes);
    pthread_mutex_unlock(&lock);
    if (part && !whole)
        fake_die("copy: %zu bytes at %p are pinned in part", bytes, host);
    return whole;
}

int fake_pin(struct weir_gpu *gpu, void *address, size_t bytes, struct weir_err *err)
{
    int rc = fake_check_lost(err);
    if (rc < 0)
        return rc;
    if (fake_config()->pin_fails)
        return weir_err_set(err, -ENOMEM, "%zu bytes of the host's memory cannot be pinned (stand-in)", bytes);
    if ((uintptr_t)address % (uintptr_t)sysconf(_SC_PAGESIZE) != 0 || bytes == 0)
        fake_die("pin: %zu bytes at %p do not begin with a page", bytes, address);
    struct range *range = calloc(1, sizeof *range);
    if (!range)
        fake_die("pin: no memory");
    pthread_mutex_lock(&lock);
    for (const struct range *other = pinned; other; other = other->next)
        if (touches(other, address, bytes))
            fake_die("pin: %zu bytes at %p are pinned already, at least in part", bytes, address);
    *range = (struct range){pinned, gpu, (uintptr_t)address, bytes, NULL};
    pinned = range;
    pthread_mutex_unlock(&lock);
    return 0;
}

void fake_unpin(struct weir_gpu *gpu, void *address)
{
    if (!address)
        return;
    pthread_mutex_lock(&lock);
    struct range *range = take(&pinned, address);
    pthread_mutex_unlock(&lock);
    if (!range || range->gpu != gpu)
        fake_die("unpin: %p is not pinned by this GPU", address);
    if (fake_in_flight(address, range->bytes))
        fake_die("unpin: a copy that is queued uses the %zu bytes at %p", range->bytes, address);
    free(range);
}

static size_t count_of(const struct range *list, const struct weir_gpu *gpu)
{
    size_t n = 0;
    for (; list; list = list->next)
        n += list->gpu == gpu;
    return n;
}

void fake_memory_check_empty(const struct weir_gpu *gpu)
{
    pthread_mutex_lock(&lock);
    size_t blocks = count_of(memory, gpu), pins = count_of(pinned, gpu);
    pthread_mutex_unlock(&lock);
    if (blocks + pins > 0)
        fake_die("close: GPU %d has %zu blocks of memory and %zu pinned ranges still", gpu->number, blocks, pins);
}
