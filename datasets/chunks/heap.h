/* heap.h: global heap collections (HDF5 File Format Specification 3.0, III.E), which hold variable-length data.
 *
 * A collection: "GCOL", version 1, 3 reserved bytes, u64 total size. Then objects: u16 index, u16 references, 4
 * reserved bytes, u64 size, data padded to 8; index 0 is the free space at the end. All little-endian; sizes and
 * addresses of 8 bytes. */
#ifndef WEIR_DATASETS_CHUNKS_HEAP_H
#define WEIR_DATASETS_CHUNKS_HEAP_H

#include "base/files.h"

#include <stddef.h>
#include <stdint.h>

enum { WEIR_HEAP_HEADER = 16, WEIR_HEAP_OBJECT_HEADER = 16, WEIR_HEAP_WINDOW = 4096 };

/* State of a walk through a collection, window by window. */
struct weir_heap_walk {
    uint64_t address;       /* of the collection */
    uint64_t file_bytes;    /* size of the file */
    uint64_t end;           /* of the collection; 0 until its header was read */
    uint64_t at;            /* of the next object's header */
    uint32_t index, length; /* of the wanted object */
    uint32_t objects;       /* seen so far */
};

/* bytes hold [from, from + n) of the file. Returns 0 when the object's data is at *payload in the file; 1 to be called
 * again with bytes from walk->at on; -EBADMSG with *reason. */
int weir_heap_walk_step(struct weir_heap_walk *walk, const uint8_t *bytes, uint64_t from, size_t n, uint64_t *payload,
                        const char **reason);

#endif
