/* pread: one system call per extent, from the page cache or the disk. */
#include "io/io_ops.h"

#include <errno.h>
#include <unistd.h>

static int read_extent(void *shared, int file, int fd, uint64_t offset, size_t length, void *buffer,
                       const uint8_t **data, struct weir_err *err)
{
    (void)err;
    (void)shared;
    (void)file;
    size_t done = 0;
    while (done < length) {
        ssize_t n = pread(fd, (char *)buffer + done, length - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -ENODATA;
        done += (size_t)n;
    }
    *data = buffer;
    return 0;
}

const struct weir_io_ops weir_io_pread = {
    .name = "pread",
    .summary = "plain reads through the page cache",
    .read = read_extent,
    .can_direct = true,
    .auto_tries = true,
    .hints = true,
};
