/* heap.h: global heap collections (HDF5 File Format Specification 3.0, III.E), which hold variable-length data.
 *
 * A collection starts with "GCOL", version 1, 3 reserved bytes and a u64 total size. Objects follow: each has a u16
 * index, a u16 reference count, 4 reserved bytes, a u64 size, and its data padded to 8 bytes. Index 0 is the free space
 * at the end. All numbers are little-endian; sizes and addresses have 8 bytes. */
#ifndef WEIR_DATASETS_CHUNKS_HEAP_H
#define WEIR_DATASETS_CHUNKS_HEAP_H

#include "base/files.h"

#include <stddef.h>
#include <stdint.h>

enum { WEIR_HEAP_HEADER = 16, WEIR_HEAP_OBJECT_HEADER = 16, WEIR_HEAP_WINDOW = 4096 };

/* State of a walk through a collection, window by window. */
struct weir_heap_walk {
    uint64_t address;       /* address of the collection */
    uint64_t file_bytes;    /* size of the file */
    uint64_t end;           /* end of the collection; 0 until its header has been read */
    uint64_t at;            /* offset of the next object's header */
    uint32_t index, length; /* index and length of the requested object */
    uint32_t objects;       /* number of objects visited so far */
};

/* Continues the walk with the bytes [from, from + n) of the file. Returns 0 if the object was found: its data is at
 * *payload in the file. Returns 1 if another call with the bytes from walk->at on is needed. Returns -EBADMSG with
 * *reason for a malformed collection. */
int weir_heap_walk_step(struct weir_heap_walk *walk, const uint8_t *bytes, uint64_t from, size_t n, uint64_t *payload,
                        const char **reason);

#endif
