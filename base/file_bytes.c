#include "base/file_bytes.h"

#include <errno.h>
#include <unistd.h>

int weir_read_at(int fd, uint64_t offset, void *buffer, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, (char *)buffer + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ENODATA;
        done += (size_t)got;
    }
    return 0;
}

int weir_write_at(int fd, uint64_t offset, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(fd, (const char *)bytes + done, n - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? -errno : -EIO;
        done += (size_t)put;
    }
    return 0;
}

int weir_file_close(FILE *file)
{
    int rc = ferror(file) ? -EIO : 0;
    return fclose(file) == 0 ? rc : -errno;
}
