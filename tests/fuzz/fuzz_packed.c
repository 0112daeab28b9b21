/* libFuzzer: opens a hostile packed file with corrected checksums as a dataset, and looks up every frame. */
#include "base/files.h"
#include "base/hash.h"
#include "datasets/format_ops.h"
#include "datasets/packed/packed_file.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Computes the checksum of n bytes, with zeros in its own place at offset `at`, and stores it there. */
static void seal(uint8_t *bytes, size_t n, size_t at)
{
    memset(bytes + at, 0, 4);
    weir_put_le(bytes + at, weir_crc32c(0, bytes, n), 4);
}

/* Corrects all checksums that are reachable through offsets inside the file. */
static void seal_all(uint8_t *bytes, size_t n)
{
    if (n < WEIR_PACKED_HEADER)
        return;
    uint64_t index = weir_le(bytes + 24, 8);
    for (uint64_t at = index; at < n && n - at >= WEIR_PACKED_INDEX_ENTRY; at += WEIR_PACKED_INDEX_ENTRY) {
        uint64_t record = weir_le(bytes + at, 8), length = weir_le(bytes + at + 8, 8);
        if (record >= WEIR_PACKED_HEADER && record < n && length >= WEIR_PACKED_RECORD_MIN && length <= n - record)
            seal(bytes + record, (size_t)length, 8);
    }
    if (index <= n && index >= WEIR_PACKED_HEADER)
        weir_put_le(bytes + 48, weir_crc32c(0, bytes + index, n - (size_t)index), 4);
    seal(bytes, WEIR_PACKED_HEADER, 12);
}

static int ignore(void *user, const char *part, const char *why)
{
    (void)user;
    require(part && why);
    return 0;
}

static void look_at(const struct weir_episode *episode, uint64_t file_bytes)
{
    float sum = 0;
    for (int c = 0; c < episode->n_maps; c++) {
        const struct weir_frame_map *map = &episode->maps[c];
        require(map->frames == episode->steps && map->storage == WEIR_STORED_EXTENTS);
        for (int t = 0; t < map->frames; t++) {
            const struct weir_frame_extent *extent = &map->extents[t];
            require(extent->offset <= file_bytes && extent->length <= file_bytes - extent->offset);
            require(map->rows == WEIR_ROWS_VLEN || extent->length == 0 || extent->length == map->row_bytes);
        }
    }
    for (int i = 0; i < episode->steps * episode->qpos_dim; i++)
        sum += episode->qpos[i];
    for (int i = 0; i < episode->steps * episode->action_dim; i++)
        sum += episode->actions[i];
    require(sum == sum || sum != sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    uint8_t *bytes = malloc(size + 1);
    memcpy(bytes, data, size);
    seal_all(bytes, size);
    require(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size);
    free(bytes);
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .tolerant = true, .depth = true};
    struct weir_file_result result;
    weir_file_open(&result, path, &weir_format_packed, &(struct weir_opening){.config = &config});
    require(result.rc == 0 || (result.rc < 0 && result.err.text[0]));
    for (int e = 0; e < result.file.n_episodes; e++)
        look_at(&result.file.episodes[e], size);
    if (result.rc == 0)
        weir_format_packed.check(NULL, &result.file.file, ignore, NULL, NULL);
    weir_file_index_close(&result.file);
    return 0;
}
