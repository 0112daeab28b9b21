#include "io/file_set_priv.h"
#include "io/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* has the same number on every architecture */
#endif
enum { WINDOW_PAGES = 65536 };

/* Copies of the two structs of the system call cachestat. linux/mman.h has defined them since Linux 6.5. */
struct cache_range {
    uint64_t offset, length;
};
struct cache_figures {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

/* For kernels before 6.5, which lack cachestat: maps the file in windows and calls mincore. */
static int by_mincore(int fd, uint64_t first_page, uint64_t pages, uint64_t page, uint64_t *cached)
{
    static const size_t window = WINDOW_PAGES;
    unsigned char *flags = malloc(window);
    int rc = flags ? 0 : -ENOMEM;
    for (uint64_t at = 0; at < pages && rc == 0; at += window) {
        size_t n = (size_t)(pages - at < window ? pages - at : window);
        void *map = mmap(NULL, n * page, PROT_READ, MAP_SHARED, fd, (off_t)((first_page + at) * page));
        if (map == MAP_FAILED) {
            rc = -errno;
            break;
        }
        rc = mincore(map, n * page, flags) == 0 ? 0 : -errno;
        for (size_t i = 0; i < n && rc == 0; i++)
            *cached += flags[i] & 1;
        munmap(map, n * page);
    }
    free(flags);
    return rc;
}

int weir_page_cache_bytes(int fd, uint64_t offset, uint64_t length, uint64_t *cached)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end;
    *cached = 0;
    if (length == 0)
        return 0;
    if (__builtin_add_overflow(offset, length, &end) || end > INT64_MAX - page)
        return -EINVAL;
    uint64_t first = offset / page, pages = (end + page - 1) / page - first, found = 0;
    struct cache_range range = {offset, length};
    struct cache_figures figures = {0};
    int rc = syscall(SYS_cachestat, fd, &range, &figures, 0) == 0 ? 0 : -errno;
    found = figures.cached;
    if (rc == -ENOSYS)
        rc = by_mincore(fd, first, pages, page, &found);
    found = found < pages ? found : pages;
    *cached = found == pages ? length : found * page < length ? found * page : length;
    return rc;
}

double weir_page_cache_fraction(struct weir_file_set *set, const struct weir_extent *extents, int n)
{
    uint64_t bytes = 0, cached = 0;
    for (int i = 0; i < n; i++) {
        int fd;
        uint64_t here = 0;
        if (weir_file_acquire(set, extents[i].file, &fd) < 0)
            continue; /* reading the file later reports the reason */
        int rc = weir_page_cache_bytes(fd, extents[i].offset, extents[i].length, &here);
        weir_file_release(set, extents[i].file);
        if (rc < 0)
            return -1;
        bytes += extents[i].length;
        cached += here;
    }
    return bytes ? (double)cached / (double)bytes : -1;
}

static int drop(const char *path, uint64_t size, uint64_t *stayed)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *stayed = 0;
    fdatasync(fd); /* dirty pages would not be dropped; on a read-only file system there are none */
    int rc = -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (rc == 0)
        rc = weir_page_cache_bytes(fd, 0, size, stayed);
    close(fd);
    return rc;
}

int weir_page_cache_drop(struct weir_file_set *set, struct weir_cold *cold, struct weir_err *err)
{
    *cold = (struct weir_cold){.files = weir_file_set_count(set)};
    if (weir_file_set_origin(set))
        return weir_err_set(err, -ENOTSUP, "files on servers are not in the page cache; run without --cold");
    for (int i = 0; i < cold->files; i++) {
        uint64_t stayed, size = weir_file_set_size(set, i);
        int rc = drop(weir_file_set_path(set, i), size, &stayed);
        if (rc < 0)
            return weir_err_set(err, rc, "%s: cannot be dropped from the page cache: %s; run without --cold",
                                weir_file_set_path(set, i), strerror(-rc));
        cold->bytes += size;
        cold->stayed_bytes += stayed;
    }
    return 0;
}
