/* Direct reads bypass the page cache. Offsets, lengths and memory must therefore be aligned to whole blocks. */
#include "io/io_ops.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int grow(struct weir_bounce *bounce, size_t align, size_t bytes)
{
    if (bytes <= bounce->capacity)
        return 0;
    size_t page = align > 4096 ? align : 4096;
    size_t capacity = (bytes + page - 1) / page * page;
    uint8_t *more = aligned_alloc(page, capacity);
    if (!more)
        return -ENOMEM;
    free(bounce->bytes);
    bounce->bytes = more;
    bounce->capacity = capacity;
    return 0;
}

int weir_direct_read(struct weir_bounce *bounce, int fd, size_t align, uint64_t offset, size_t length,
                     const uint8_t **data)
{
    size_t skip = (size_t)(offset & (align - 1)), need, want, done = 0;
    if (__builtin_add_overflow(skip, length, &need) || __builtin_add_overflow(need, align - 1, &want))
        return -EOVERFLOW;
    want &= ~(align - 1);
    int rc = grow(bounce, align, want);
    if (rc < 0)
        return rc;
    while (done < need) {
        ssize_t n = pread(fd, bounce->bytes + done, want - done, (off_t)(offset - skip + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        done += (size_t)n;
        if (n == 0 || (done < need && (done & (align - 1)) != 0)) /* the file ends inside this block */
            return -ENODATA;
    }
    *data = bounce->bytes + skip;
    return 0;
}
