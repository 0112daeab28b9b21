/* libFuzzer: reads frames from a hostile file, given a hostile description of a dataset in it. As in the loader, the
 * path leads from the object header through the chunk index, the chunks' filters and heap references to the frames. In
 * this build, checksums of HDF5's metadata are not checked (see weir_checksum_holds), so that the fuzzer reaches the
 * code behind them.
 *
 * Input: 40 bytes that describe the dataset (see describe), then the file. tests/tools/make_track_seeds.py makes seeds.
 */
#include "datasets/chunks/heap.h"
#include "datasets/hdf5/hdf5_open.h"
#include "datasets/index.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

enum { HEAD = 40, CHUNKED = 1, VLEN = 2, DEFLATE = 4, SHUFFLE = 8, FLETCHER32 = 16, LZF = 32, UNLIMITED = 0xffff };
static const uint64_t BYTES_MAX = 1 << 20;

struct file {
    const uint8_t *bytes;
    size_t n;
};

static int read_file(void *user, uint64_t offset, void *buffer, size_t n)
{
    const struct file *file = user;
    if (offset > file->n || n > file->n - offset)
        return -ENODATA;
    memcpy(buffer, file->bytes + offset, n);
    return 0;
}

static void add_filter(struct weir_filters *filters, int id, uint32_t element_bytes)
{
    filters->filter[filters->n].id = id;
    filters->filter[filters->n++].element_bytes = element_bytes;
}

/* Makes the description that the library would return. Like the library's, it has not been validated against the file.
 */
static void describe(struct weir_h5_description *d, const uint8_t *head)
{
    uint8_t flags = head[0];
    struct weir_chunk_grid *grid = &d->grid;
    *d = (struct weir_h5_description){.layout = flags & CHUNKED ? WEIR_H5_CHUNKED : WEIR_H5_CONTIGUOUS,
                                      .plain_sizes = true,
                                      .written = true,
                                      .filters_kept = true,
                                      .fill_is_zero = true,
                                      .offset = weir_le(head + 36, 4),
                                      .object_address = weir_le(head + 32, 4)};
    grid->rank = flags & VLEN ? 1 : 1 + head[1] % 4;
    grid->element_bytes = flags & VLEN ? 16 : 1 + head[2] % 16;
    grid->filtered = flags & (DEFLATE | SHUFFLE | FLETCHER32 | LZF);
    for (int i = 0; i < grid->rank; i++) {
        uint64_t max = weir_le(head + 8 + 6 * i, 2);
        grid->dims[i] = weir_le(head + 4 + 6 * i, 2);
        grid->chunk[i] = weir_le(head + 6 + 6 * i, 2);
        grid->max_dims[i] = max == UNLIMITED ? UINT64_MAX : max;
        d->shape.dims[i] = grid->dims[i];
    }
    d->shape.rank = grid->rank;
    if (flags & LZF)
        add_filter(&d->filters, WEIR_FILTER_LZF, 0);
    if (flags & SHUFFLE)
        add_filter(&d->filters, WEIR_FILTER_SHUFFLE, grid->element_bytes);
    if (flags & DEFLATE)
        add_filter(&d->filters, WEIR_FILTER_DEFLATE, 0);
    if (flags & FLETCHER32)
        add_filter(&d->filters, WEIR_FILTER_FLETCHER32, 0);
}

/* Returns true if the dataset is small enough for fast iterations. */
static bool is_handy(const struct weir_h5_description *d, uint64_t *row_bytes)
{
    uint64_t chunk = d->grid.element_bytes;
    *row_bytes = d->grid.element_bytes;
    for (int i = 0; i < d->grid.rank; i++) {
        chunk *= d->grid.chunk[i];
        *row_bytes *= i ? d->grid.dims[i] : 1;
    }
    uint64_t n = weir_chunk_grid_count(&d->grid);
    bool fine = chunk <= BYTES_MAX && *row_bytes <= BYTES_MAX && *row_bytes > 0 && d->grid.dims[0] > 0 && n <= 65536;
    return fine && (*row_bytes + chunk) * d->grid.dims[0] <= 16 * BYTES_MAX;
}

/* Copies bytes into a buffer of exact size, so that reads past its end are detected. */
static uint8_t *copy_of(const struct file *file, uint64_t offset, size_t n)
{
    require(offset <= file->n && n <= file->n - offset);
    uint8_t *bytes = malloc(n ? n : 1);
    memcpy(bytes, file->bytes + offset, n);
    return bytes;
}

static void read_extent(const struct weir_dataset *dataset, struct weir_location *at, const struct file *file)
{
    int rc = 1;
    for (size_t reads = 0; rc == 1; reads++) {
        const char *reason = NULL;
        require(at->length <= weir_dataset_extent_max(dataset) && reads <= file->n / WEIR_HEAP_OBJECT_HEADER + 2);
        uint8_t *bytes = copy_of(file, at->offset, at->length);
        rc = weir_unwrap(dataset, at, bytes, &reason);
        free(bytes);
        require(rc >= 0 || (reason && *reason));
        require(rc != 0 || (at->payload <= at->length && at->payload_length <= at->length - at->payload));
    }
}

static void read_block(const struct weir_dataset *dataset, int t, const struct file *file, struct weir_unpacker *tools)
{
    struct weir_block block;
    weir_block_of(dataset, 0, 0, t, &block);
    uint8_t *frame = malloc(block.row_bytes);
    for (uint32_t piece = 0; piece < block.pieces; piece++) {
        int number;
        uint64_t offset;
        size_t n;
        const uint8_t *unpacked;
        const char *reason = NULL;
        weir_block_piece(&block, piece, &number, &offset, &n);
        uint8_t *bytes = copy_of(file, offset, n);
        int rc = weir_block_unpack(&block, piece, tools, bytes, frame, &unpacked, &reason);
        if (rc == 0)
            weir_block_clip(&block, piece, unpacked, t, frame);
        free(bytes);
        require(rc == 0 || (rc == -EBADMSG && reason && *reason));
    }
    free(frame);
}

static void read_frames(struct weir_frame_map *map, const struct file *file)
{
    struct weir_episode episode = {.steps = map->frames, .n_maps = 1, .maps = map};
    struct weir_file_index index = {.file = {.path = "file", .size_bytes = file->n}};
    struct weir_dataset dataset = {.n_episodes = 1, .episodes = &episode, .n_files = 1, .files = &index};
    struct weir_unpacker *tools = weir_unpacker_open();
    dataset.extent_max = weir_frame_map_extent_max(map, map->frames, file->n);
    for (int t = 0; t < map->frames; t++) {
        struct weir_location at;
        struct weir_frame_cost cost;
        int how = weir_locate(&dataset, 0, 0, t, &at);
        weir_frame_cost(&dataset, 0, 0, t, &cost);
        require(how >= 0 || how == -EBADMSG);
        if (how == WEIR_HOW_EXTENT)
            read_extent(&dataset, &at, file);
        else if (how == WEIR_HOW_BLOCK)
            read_block(&dataset, t, file, tools);
    }
    weir_unpacker_close(&tools);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_h5_description description;
    uint64_t row_bytes;
    if (size < HEAD)
        return 0;
    describe(&description, data);
    if (!is_handy(&description, &row_bytes))
        return 0;
    struct file file = {data + HEAD, size - HEAD};
    struct weir_raw_file raw = {read_file, &file, weir_le(data + 28, 2), file.n};
    struct weir_unfilter_context *unfilter = weir_unfilter_open();
    struct weir_frame_map map = {.key = strdup("frames"),
                                 .kind = WEIR_FRAME_RAW,
                                 .frames = (int)description.grid.dims[0],
                                 .rows = data[0] & VLEN ? WEIR_ROWS_VLEN : WEIR_ROWS_PADDED,
                                 .row_bytes = row_bytes};
    struct weir_err err = WEIR_ERR_NONE;
    char text[256];
    int rc = weir_locate_frames(&map, &description, &raw, 0, unfilter, &err);
    require(rc <= 0 && (rc == 0) == (err.text[0] == '\0'));
    if (rc == 0) {
        weir_frame_map_storage_text(&map, text, sizeof text);
        read_frames(&map, &file);
    }
    weir_frame_map_close(&map);
    weir_unfilter_close(&unfilter);
    return 0;
}
