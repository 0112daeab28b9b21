/* fuzz_bytes.h: shared by the fuzz targets of file formats: the input as a file in memory, and an assertion that NDEBUG
 * does not disable. */
#ifndef WEIR_TESTS_FUZZ_FUZZ_BYTES_H
#define WEIR_TESTS_FUZZ_FUZZ_BYTES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_bytes {
    const uint8_t *at;
    size_t n;
};

static inline void require(bool holds)
{
    if (!holds)
        abort();
}

/* Reads like weir_raw_read; `user` is a struct fuzz_bytes. Returns -ENODATA past the end. */
static inline int fuzz_read(void *user, uint64_t offset, void *buffer, size_t n)
{
    const struct fuzz_bytes *bytes = user;
    if (offset > bytes->n || n > bytes->n - offset)
        return -ENODATA;
    memcpy(buffer, bytes->at + offset, n);
    return 0;
}

/* For parsers that must never read past the end. */
static inline int fuzz_read_inside(void *user, uint64_t offset, void *buffer, size_t n)
{
    int rc = fuzz_read(user, offset, buffer, n);
    require(rc == 0);
    return rc;
}

#endif
