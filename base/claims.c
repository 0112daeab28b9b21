#include "base/claims.h"

#include <errno.h>
#include <unistd.h>

/* Counts data from the front. Files with more extents are stored for the greatest part. */
enum { EXTENTS_MAX = 4096 };

uint64_t weir_stored_bytes(int fd, uint64_t offset, uint64_t n)
{
    uint64_t end = offset + n, stored = 0;
    if (end < offset || end > INT64_MAX)
        return n;
    for (int i = 0; offset < end; i++) {
        off_t data = lseek(fd, (off_t)offset, SEEK_DATA), hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
        if (data < 0) /* ENXIO: only a hole follows */
            return errno == ENXIO ? stored : n;
        if (hole < 0 || i == EXTENTS_MAX)
            return n;
        if ((uint64_t)data >= end)
            break;
        stored += ((uint64_t)hole < end ? (uint64_t)hole : end) - (uint64_t)data;
        offset = (uint64_t)hole;
    }
    return stored;
}
