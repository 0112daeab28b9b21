/* mmap: maps whole files, and lets the kernel copy each extent from the mapping with process_vm_readv. Accessing the
 * mapping of a file that has been truncated would kill the process (SIGBUS), whereas process_vm_readv fails, and the
 * failure is reported as an error of the file as with any other engine. The page faults of the copy occur inside the
 * read, never during decoding. */
#include "base/files.h"
#include "base/resources.h"
#include "io/file_set_priv.h"
#include "io/io_ops.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAPS_MAX = 16384 }; /* a quarter of the kernel's default limit per process; further files are read with pread */

struct map {
    uint8_t *_Atomic bytes; /* NULL until the file is mapped */
    uint64_t size;
};

struct maps {
    pthread_mutex_t lock; /* protects creating mappings */
    int count, mapped;
    _Atomic bool no_copy; /* the kernel does not permit process_vm_readv */
    struct map map[];
};

static int shared_open(void **shared, struct weir_file_set *set, struct weir_err *err)
{
    int count = weir_file_set_count(set);
    struct maps *maps = calloc(1, sizeof *maps + sizeof maps->map[0] * (size_t)count);
    if (!maps)
        return weir_err_set(err, -ENOMEM, "out of memory");
    pthread_mutex_init(&maps->lock, NULL);
    maps->count = count;
    for (int i = 0; i < count; i++)
        maps->map[i].size = weir_file_set_size(set, i);
    *shared = maps;
    return 0;
}

static void shared_close(void *shared)
{
    struct maps *maps = shared;
    for (int i = 0; i < maps->count; i++)
        if (maps->map[i].bytes)
            weir_memory_unmap(maps->map[i].bytes, maps->map[i].size);
    pthread_mutex_destroy(&maps->lock);
    free(maps);
}

/* Returns the file's mapping, or NULL if there are too many mappings or no address space is left. */
static uint8_t *map_of(struct maps *maps, int file, int fd)
{
    struct map *map = &maps->map[file];
    if (map->bytes || map->size == 0)
        return map->bytes;
    pthread_mutex_lock(&maps->lock);
    if (!map->bytes && maps->mapped < MAPS_MAX) {
        void *bytes = mmap(NULL, map->size, PROT_READ, MAP_SHARED, fd, 0);
        if (bytes != MAP_FAILED) {
            maps->mapped++;
            map->bytes = bytes;
        }
    }
    pthread_mutex_unlock(&maps->lock);
    return map->bytes;
}

/* Returns the reason why the kernel could not access a page. */
static int fault_reason(int fd, uint64_t end)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    return (uint64_t)st.st_size < end ? -ENODATA : -EIO;
}

/* Returns 0, -errno, or 1 if the kernel does not permit process_vm_readv. */
static int copy_out(struct maps *maps, const uint8_t *from, size_t length, void *buffer)
{
    size_t done = 0;
    while (done < length) {
        struct iovec to = {(uint8_t *)buffer + done, length - done};
        struct iovec here = {(void *)(from + done), length - done};
        ssize_t n = process_vm_readv(getpid(), &to, 1, &here, 1, 0);
        if (n < 0 && (errno == EPERM || errno == ENOSYS)) {
            atomic_store_explicit(&maps->no_copy, true, memory_order_relaxed);
            return 1;
        }
        if (n <= 0)
            return n < 0 ? -errno : -EFAULT;
        done += (size_t)n;
    }
    return 0;
}

static int read_extent(void *shared, int file, int fd, uint64_t offset, size_t length, void *buffer,
                       const uint8_t **data, struct weir_err *err)
{
    struct maps *maps = shared;
    uint64_t size = maps->map[file].size;
    if (offset > size || length > size - offset)
        return -ENODATA;
    const uint8_t *bytes = atomic_load_explicit(&maps->no_copy, memory_order_relaxed) ? NULL : map_of(maps, file, fd);
    int rc = bytes ? copy_out(maps, bytes + offset, length, buffer) : 1;
    (void)err;
    *data = buffer;
    if (rc == 1)
        return weir_read_at(fd, offset, buffer, length);
    return rc == -EFAULT ? fault_reason(fd, offset + length) : rc;
}

const struct weir_io_ops weir_io_mmap = {
    .name = "mmap",
    .summary = "copies from mapped files through the page cache",
    .auto_tries = true,
    .maps = true,
    .shared_open = shared_open,
    .shared_close = shared_close,
    .read = read_extent,
};
