/* Walks over hand-built global heap collections: objects are found for any window size, and a collection whose content
 * contradicts its headers is refused with a reason. */
#include "datasets/chunks/heap.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { AT = 96, FILE_BYTES = 1 << 16 };

struct object {
    uint16_t index;
    uint64_t size;   /* size in the object's header */
    uint64_t really; /* bytes that actually follow, padded to a multiple of 8 */
};

static void put(uint8_t *at, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* Builds a file with one collection at AT. Returns the offset after its last object. */
static uint64_t build(uint8_t *file, uint64_t size, const struct object *objects, int n)
{
    memset(file, 0, FILE_BYTES);
    memcpy(file + AT, "GCOL\1\0\0\0", 8);
    put(file + AT + 8, size, 8);
    uint64_t at = AT + WEIR_HEAP_HEADER;
    for (int i = 0; i < n; i++) {
        put(file + at, objects[i].index, 2);
        put(file + at + 2, 1, 2);
        put(file + at + 8, objects[i].size, 8);
        memset(file + at + WEIR_HEAP_OBJECT_HEADER, 'a' + i, objects[i].really);
        at += WEIR_HEAP_OBJECT_HEADER + (objects[i].really + 7) / 8 * 8;
    }
    return at;
}

static struct weir_heap_walk walk_for(uint32_t index, uint32_t length)
{
    return (struct weir_heap_walk){AT, FILE_BYTES, 0, AT, index, length, 0};
}

/* Walks with windows of `window` bytes. Each step gets a copy of its window, so that reads outside it are detected. */
static int run(const uint8_t *file, struct weir_heap_walk *walk, size_t window, uint64_t *payload, const char **reason)
{
    for (int step = 0; step < 100000; step++) {
        uint64_t from = walk->at, last_at = walk->at;
        size_t n = from + window > FILE_BYTES ? FILE_BYTES - from : window;
        uint8_t *bytes = malloc(n);
        memcpy(bytes, file + from, n);
        int rc = weir_heap_walk_step(walk, bytes, from, n, payload, reason);
        free(bytes);
        if (rc != 1)
            return rc;
        cr_assert_gt(walk->at, last_at, "a step that needs more bytes has not advanced");
        cr_assert_leq(walk->at, FILE_BYTES);
    }
    cr_assert_fail("the walk does not end");
    return 0;
}

static void expect_reason(const uint8_t *file, struct weir_heap_walk walk, const char *part)
{
    static const size_t windows[] = {32, 33, 64, 4096, FILE_BYTES};
    for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++) {
        struct weir_heap_walk copy = walk;
        uint64_t payload = 0;
        const char *reason = NULL;
        cr_assert_eq(run(file, &copy, windows[w], &payload, &reason), -EBADMSG, "%s, window %zu", part, windows[w]);
        cr_assert_not_null(strstr(reason, part), "%s", reason);
        cr_assert_eq(payload, 0);
    }
}

Test(heap, every_object_is_found_with_every_window)
{
    static const struct object objects[] = {{3, 5, 5}, {1, 8, 8}, {2, 0, 0}, {700, 4000, 4000}, {65535, 17, 17}};
    uint8_t *file = malloc(FILE_BYTES);
    build(file, 8192, objects, 5);
    for (size_t window = 32; window < 5000; window = window < 200 ? window + 1 : window + 397) {
        uint64_t expected = AT + WEIR_HEAP_HEADER + WEIR_HEAP_OBJECT_HEADER;
        for (int i = 0; i < 5; i++) {
            struct weir_heap_walk walk = walk_for(objects[i].index, (uint32_t)objects[i].size);
            uint64_t payload = 0;
            const char *reason = "";
            cr_assert_eq(run(file, &walk, window, &payload, &reason), 0, "%s", reason);
            cr_assert_eq(payload, expected, "object %d, window %zu", i, window);
            expected += WEIR_HEAP_OBJECT_HEADER + (objects[i].really + 7) / 8 * 8;
        }
    }
    free(file);
}

Test(heap, a_shorter_reference_is_fine_a_longer_one_is_not)
{
    static const struct object objects[] = {{1, 100, 100}};
    uint8_t *file = malloc(FILE_BYTES);
    build(file, 4096, objects, 1);
    struct weir_heap_walk walk = walk_for(1, 60);
    uint64_t payload;
    const char *reason;
    cr_assert_eq(run(file, &walk, 64, &payload, &reason), 0);
    expect_reason(file, walk_for(1, 101), "shorter than its reference requires");
    expect_reason(file, walk_for(1, UINT32_MAX), "shorter than its reference requires");
    free(file);
}

Test(heap, numbers_that_are_not_there)
{
    static const struct object objects[] = {{1, 100, 100}, {2, 10, 10}, {0, 3000, 3000}, {7, 8, 8}};
    uint8_t *file = malloc(FILE_BYTES);
    build(file, 8192, objects, 4);
    expect_reason(file, walk_for(3, 1), "no object with this number");
    expect_reason(file, walk_for(0, 1), "no object with this number"); /* object 0 is the free space */
    expect_reason(file, walk_for(7, 1), "no object with this number"); /* the free space ends the collection */
    /* The number must not be truncated to 16 bits. */
    expect_reason(file, walk_for(65536 + 1, 1), "no object with this number");
    build(file, 16 + 16 + 104 + 8, objects, 2); /* no space for a second object header */
    expect_reason(file, walk_for(2, 1), "no object with this number");
    free(file);
}

Test(heap, headers_that_lie)
{
    static const struct object big[] = {{1, 5000, 100}}, huge[] = {{1, UINT64_MAX - 3, 8}}, odd[] = {{1, 61, 61}};
    uint8_t *file = malloc(FILE_BYTES);
    build(file, 4096, big, 1);
    expect_reason(file, walk_for(1, 8), "larger than the collection");
    expect_reason(file, walk_for(2, 8), "larger than the collection");
    build(file, 4096, huge, 1);
    expect_reason(file, walk_for(2, 8), "larger than the collection");
    build(file, 16 + 16 + 61, odd, 1); /* the object's padding exceeds the collection */
    expect_reason(file, walk_for(2, 8), "no object with this number");
    static const uint64_t sizes[] = {FILE_BYTES, FILE_BYTES - AT + 1, UINT64_MAX, UINT64_MAX - AT + 1, 1ull << 63};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        build(file, sizes[i], odd, 1);
        expect_reason(file, walk_for(1, 8), "past the end of the file");
    }
    for (uint64_t size = 0; size < 16; size++) {
        build(file, size, odd, 1);
        expect_reason(file, walk_for(1, 8), "past the end of the file");
    }
    build(file, 4096, odd, 1);
    file[AT] = 'g';
    expect_reason(file, walk_for(1, 8), "lead to a heap collection");
    file[AT] = 'G';
    file[AT + 4] = 2;
    expect_reason(file, walk_for(1, 8), "lead to a heap collection");
    free(file);
}

Test(heap, a_collection_at_the_very_end)
{
    uint8_t bytes[16] = "GCOL\1";
    uint64_t payload = 0;
    const char *reason = NULL;
    struct weir_heap_walk walk = {FILE_BYTES - 15, FILE_BYTES, 0, FILE_BYTES - 15, 1, 1, 0};
    cr_assert_eq(weir_heap_walk_step(&walk, bytes, FILE_BYTES - 15, 15, &payload, &reason), -EBADMSG);
    cr_assert_not_null(strstr(reason, "past the end of the file"));
    put(bytes + 8, 16, 8);
    walk = (struct weir_heap_walk){FILE_BYTES - 16, FILE_BYTES, 0, FILE_BYTES - 16, 1, 1, 0};
    cr_assert_eq(weir_heap_walk_step(&walk, bytes, FILE_BYTES - 16, 16, &payload, &reason), -EBADMSG);
    cr_assert_not_null(strstr(reason, "no object with this number"));
}

/* The file is full of empty objects. The number of objects that fit bounds the walk, whatever sizes the file contains.
 */
Test(heap, endless_empty_objects)
{
    size_t size = 16 + 16 * (size_t)70000;
    uint8_t *bytes = calloc(1, size);
    memcpy(bytes, "GCOL\1\0\0\0", 8);
    put(bytes + 8, size, 8);
    for (size_t at = 16; at < size; at += 16)
        bytes[at] = 9;
    struct weir_heap_walk walk = {0, size, 0, 0, 5, 1, 0};
    uint64_t payload = 0;
    const char *reason = NULL;
    cr_assert_eq(weir_heap_walk_step(&walk, bytes, 0, size, &payload, &reason), -EBADMSG);
    cr_assert_not_null(strstr(reason, "no object with this number"));
    cr_assert_leq(walk.objects, 65536u);
    free(bytes);
}
