/* gz_read.h: reads a file that may be compressed as gzip does, or not at all. */
#ifndef WEIR_BASE_GZ_READ_H
#define WEIR_BASE_GZ_READ_H

#include <stddef.h>
#include <sys/types.h>

struct weir_gz_reader;

/* 0, or -errno of opening it. */
int weir_gz_read_open(struct weir_gz_reader **out, const char *path);
/* Up to n bytes; 0 = the end; -EBADMSG: compressed data that is damaged or cut off; else -errno. */
ssize_t weir_gz_read(struct weir_gz_reader *reader, void *bytes, size_t n);
/* Accepts NULL. */
void weir_gz_read_close(struct weir_gz_reader **reader);

#endif
