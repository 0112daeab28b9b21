/* file_bytes.h: bytes at an offset of an open file, all of them or an error. The file's position does not move. Any
 * thread. */
#ifndef WEIR_BASE_FILE_BYTES_H
#define WEIR_BASE_FILE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* 0, or -errno, -ENODATA when the file ends before. */
int weir_read_at(int fd, uint64_t offset, void *buffer, size_t n);
/* 0, or -errno, -EIO when nothing more is taken. */
int weir_write_at(int fd, uint64_t offset, const void *bytes, size_t n);
/* Closes what stdio has written: 0, or -errno, -EIO when an earlier write has failed. */
int weir_file_close(FILE *file);

/* n little-endian bytes as a number. */
static inline uint64_t weir_le(const uint8_t *bytes, int n)
{
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

#endif
