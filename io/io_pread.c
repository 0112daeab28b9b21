/* pread: one system call per extent, from the page cache or the disk. */
#include "base/files.h"
#include "io/io_ops.h"

int weir_pread_extent(void *shared, int file, int fd, uint64_t offset, size_t length, void *buffer,
                      const uint8_t **data, struct weir_err *err)
{
    (void)err;
    (void)shared;
    (void)file;
    *data = buffer;
    return weir_read_at(fd, offset, buffer, length);
}

const struct weir_io_ops weir_io_pread = {
    .name = "pread",
    .summary = "plain reads through the page cache",
    .read = weir_pread_extent,
    .can_direct = true,
    .auto_tries = true,
    .hints = true,
};
