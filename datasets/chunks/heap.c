#include "datasets/chunks/heap.h"

#include <errno.h>
#include <string.h>

static int bad(const char **reason, const char *text)
{
    *reason = text;
    return -EBADMSG;
}

static int read_header(struct weir_heap_walk *walk, const uint8_t *bytes, uint64_t from, size_t n, const char **reason)
{
    if (walk->at != from || n < WEIR_HEAP_HEADER)
        return bad(reason, "the heap collection of this frame is past the end of the file");
    if (memcmp(bytes, "GCOL", 4) != 0 || bytes[4] != 1)
        return bad(reason, "its reference does not lead to a heap collection");
    uint64_t size = weir_le(bytes + 8, 8);
    if (size < WEIR_HEAP_HEADER || walk->address > walk->file_bytes || size > walk->file_bytes - walk->address)
        return bad(reason, "its heap collection extends past the end of the file");
    walk->end = walk->address + size;
    walk->at += WEIR_HEAP_HEADER;
    return 0;
}

int weir_heap_walk_step(struct weir_heap_walk *walk, const uint8_t *bytes, uint64_t from, size_t n, uint64_t *payload,
                        const char **reason)
{
    if (walk->end == 0) {
        int rc = read_header(walk, bytes, from, n, reason);
        if (rc < 0)
            return rc;
    }
    for (;;) {
        if (walk->end - walk->at < WEIR_HEAP_OBJECT_HEADER || walk->objects > UINT16_MAX)
            return bad(reason, "its heap collection has no object with this number");
        if (walk->at < from || walk->at - from > n || n - (size_t)(walk->at - from) < WEIR_HEAP_OBJECT_HEADER)
            return 1;
        const uint8_t *object = bytes + (walk->at - from);
        uint64_t index = weir_le(object, 2), size = weir_le(object + 8, 8);
        uint64_t left = walk->end - walk->at - WEIR_HEAP_OBJECT_HEADER;
        if (index == 0)
            return bad(reason, "its heap collection has no object with this number");
        if (size > left)
            return bad(reason, "an object of its heap collection is larger than the collection");
        if (index == walk->index) {
            if (size < walk->length)
                return bad(reason, "its heap object is shorter than its reference requires");
            *payload = walk->at + WEIR_HEAP_OBJECT_HEADER;
            return 0;
        }
        uint64_t padded = (size + 7) & ~(uint64_t)7;
        if (padded > left)
            return bad(reason, "its heap collection has no object with this number");
        walk->at += WEIR_HEAP_OBJECT_HEADER + padded;
        walk->objects++;
    }
}
