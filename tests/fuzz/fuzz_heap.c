/* libFuzzer: reads a frame through a hostile heap reference into a hostile file, as the loader does: it locates the
 * frame, reads exactly the extent and unwraps it, until the frame is found or refused.
 *
 * Input: reference (address 8 bytes, length 4, index 4, little-endian), then the file. */
#include "datasets/chunks/heap.h"
#include "datasets/index.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* Unwraps an extent from a buffer of exact size, so that reads past its end are detected. */
static int unwrap(const struct weir_dataset *dataset, struct weir_location *at, const uint8_t *file, uint64_t n)
{
    const char *reason = NULL;
    require(at->offset <= n && at->length <= n - at->offset);
    require(at->length <= weir_dataset_extent_max(dataset));
    uint8_t *extent = malloc(at->length ? at->length : 1);
    memcpy(extent, file + at->offset, at->length);
    int rc = weir_unwrap(dataset, at, extent, &reason);
    free(extent);
    require(rc >= 0 || (reason && *reason));
    require(rc != 0 || (at->payload <= at->length && at->payload_length <= at->length - at->payload));
    return rc;
}

static int find(const struct weir_dataset *dataset, const uint8_t *file, uint64_t n, uint64_t *begin)
{
    struct weir_location at;
    int rc = weir_locate(dataset, 0, 0, 0, &at);
    if (rc < 0)
        return rc;
    require(rc == WEIR_HOW_EXTENT);
    size_t reads = 0;
    do {
        require(++reads <= n / WEIR_HEAP_OBJECT_HEADER + 2);
        rc = unwrap(dataset, &at, file, n);
    } while (rc == 1);
    *begin = at.offset + at.payload;
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 16)
        return 0;
    struct weir_heap_slot slot = {.payload = 0};
    struct weir_frame_map map = {
        .key = (char *)"frames", .kind = WEIR_FRAME_IMAGE, .storage = WEIR_STORED_HEAP, .slots = &slot};
    struct weir_episode episode = {.steps = 1, .n_maps = 1, .maps = &map};
    struct weir_file_index index = {.file = {.path = "file"}};
    struct weir_dataset dataset = {.n_episodes = 1, .episodes = &episode, .n_files = 1, .files = &index};
    const uint8_t *file = data + 16;
    uint64_t n = size - 16, first = 0, again = 0;
    memcpy(&slot.ref.address, data, 8);
    memcpy(&slot.ref.length, data + 8, 4);
    memcpy(&slot.ref.index, data + 12, 4);
    index.file.size_bytes = n;
    dataset.extent_max = weir_frame_map_extent_max(&map, 1, n);
    int rc = find(&dataset, file, n, &first);
    int second = find(&dataset, file, n, &again); /* uses the payload's position cached in the slot */
    require(rc == second);
    require(rc != 0 || (first == again && slot.payload == first));
    return 0;
}
