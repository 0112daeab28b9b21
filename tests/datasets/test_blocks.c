/* Frames copied out of chunks, compared with a simple reference that works element by element. */
#include "datasets/blocks_priv.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 5;

static uint32_t draw(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

struct dataset {
    struct weir_blocks blocks;
    uint64_t elements; /* in the whole dataset */
    uint8_t *whole;    /* row-major, as H5Dread would return it */
    uint8_t **chunks;  /* unfiltered; NULL = never written */
};

/* Locates element i of the dataset: the index of its chunk, and its index within that chunk. */
static void find(const struct weir_chunk_grid *grid, uint64_t i, uint64_t *chunk, uint64_t *element)
{
    uint64_t at[WEIR_GRID_RANK_MAX];
    for (int d = grid->rank - 1; d >= 0; d--) {
        at[d] = i % grid->dims[d];
        i /= grid->dims[d];
    }
    *chunk = *element = 0;
    for (int d = 0; d < grid->rank; d++) {
        uint64_t along = (grid->dims[d] + grid->chunk[d] - 1) / grid->chunk[d];
        *chunk = *chunk * along + at[d] / grid->chunk[d];
        *element = *element * grid->chunk[d] + at[d] % grid->chunk[d];
    }
}

static void make(struct dataset *set)
{
    static const uint32_t element_bytes[] = {1, 2, 3, 8, 16, 40};
    struct weir_chunk_grid *grid = &set->blocks.grid;
    memset(set, 0, sizeof *set);
    grid->rank = 1 + (int)draw(4);
    grid->element_bytes = element_bytes[draw(6)];
    set->elements = 1;
    for (int d = 0; d < grid->rank; d++) {
        grid->dims[d] = 1 + draw(9);
        grid->chunk[d] = 1 + draw(6);
        set->elements *= grid->dims[d];
    }
    cr_assert(weir_blocks_init(&set->blocks));
    bool fits = grid->element_bytes <= sizeof set->blocks.fill;
    for (size_t i = 0; i < sizeof set->blocks.fill; i++)
        set->blocks.fill[i] = (uint8_t)(i < grid->element_bytes && fits ? 200 + i : 0);
    set->whole = malloc(set->elements * grid->element_bytes);
    set->chunks = calloc(set->blocks.n_chunks, sizeof *set->chunks);
    set->blocks.chunks = calloc(set->blocks.n_chunks, sizeof *set->blocks.chunks);
    for (uint32_t i = 0; i < set->blocks.n_chunks; i++)
        if (draw(4) > 0) {
            set->chunks[i] = malloc(set->blocks.chunk_bytes);
            /* Bytes past the dataset's edge must never be copied. */
            memset(set->chunks[i], 0xee, set->blocks.chunk_bytes);
        }
    for (uint64_t i = 0; i < set->elements; i++) {
        uint8_t *value = set->whole + i * grid->element_bytes;
        uint64_t chunk, element;
        find(grid, i, &chunk, &element);
        for (uint32_t b = 0; b < grid->element_bytes; b++)
            value[b] = set->chunks[chunk] ? (uint8_t)draw(200) : fits ? set->blocks.fill[b] : 0;
        if (set->chunks[chunk])
            memcpy(set->chunks[chunk] + element * grid->element_bytes, value, grid->element_bytes);
    }
}

static void drop(struct dataset *set)
{
    for (uint32_t i = 0; i < set->blocks.n_chunks; i++)
        free(set->chunks[i]);
    free(set->chunks);
    free(set->blocks.chunks);
    free(set->whole);
}

/* Assembles every frame from its pieces, and compares it with the whole dataset. */
static void check(const struct dataset *set, int number)
{
    const struct weir_blocks *blocks = &set->blocks;
    uint8_t *frame = malloc(blocks->row_bytes);
    cr_assert_eq(blocks->row_bytes * blocks->grid.dims[0], set->elements * blocks->grid.element_bytes);
    for (uint64_t t = 0; t < blocks->grid.dims[0]; t++) {
        memset(frame, 0xdd, blocks->row_bytes);
        for (uint32_t piece = 0; piece < blocks->per_block; piece++) {
            uint64_t chunk = t / blocks->rows * blocks->per_block + piece;
            cr_assert_lt(chunk, blocks->n_chunks);
            weir_blocks_clip(blocks, piece, set->chunks[chunk], t, frame);
        }
        cr_assert_eq(memcmp(frame, set->whole + t * blocks->row_bytes, blocks->row_bytes), 0, "dataset %d, row %d",
                     number, (int)t);
    }
    free(frame);
}

/* Converts row t to interleaved RGB, value by value. */
static void reference_pixels(const struct dataset *set, uint64_t t, uint8_t *frame)
{
    const struct weir_blocks *blocks = &set->blocks;
    uint64_t pixels = blocks->row_bytes / 3, values = pixels * blocks->channels;
    for (uint64_t i = 0; i < values; i++) {
        uint64_t c = blocks->is_planar ? i / pixels : i % blocks->channels;
        uint64_t pixel = blocks->is_planar ? i % pixels : i / blocks->channels;
        for (uint64_t to = 0; to < 3; to++)
            if (blocks->channels == 1 || to == c)
                frame[3 * pixel + to] = set->whole[t * values + i];
    }
}

static void check_pixels(const struct dataset *set, int number)
{
    const struct weir_blocks *blocks = &set->blocks;
    uint8_t *frame = malloc(blocks->row_bytes), *wanted = malloc(blocks->row_bytes);
    for (uint64_t t = 0; t < blocks->grid.dims[0]; t++) {
        memset(frame, 0xdd, blocks->row_bytes);
        reference_pixels(set, t, wanted);
        for (uint32_t piece = 0; piece < blocks->per_block; piece++)
            weir_blocks_clip(blocks, piece, set->chunks[t / blocks->rows * blocks->per_block + piece], t, frame);
        cr_assert_eq(memcmp(frame, wanted, blocks->row_bytes), 0, "dataset %d, row %d: %u channels%s", number, (int)t,
                     blocks->channels, blocks->is_planar ? ", planar" : "");
    }
    free(wanted);
    free(frame);
}

/* Gray, planar and RGBA images, with chunk borders at arbitrary places. */
Test(blocks, pixels_in_any_order)
{
    int tried = 0;
    for (int i = 0; tried < 1000; i++) {
        struct dataset set;
        make(&set);
        set.blocks.channels = (uint32_t[]){1, 3, 4}[draw(3)];
        set.blocks.is_planar = draw(2);
        if (weir_blocks_init(&set.blocks)) {
            check_pixels(&set, i);
            tried++;
        }
        drop(&set);
    }
}

/* A run of pixels that crosses from one plane into the next would be written past the end of the frame. */
Test(blocks, planes_that_cut_runs_are_refused)
{
    struct weir_blocks planes = {
        .grid = {.rank = 2, .dims = {4, 27}, .chunk = {1, 27}, .element_bytes = 1}, .channels = 3, .is_planar = true};
    cr_assert_not(weir_blocks_init(&planes));
    planes.is_planar = false;
    cr_assert(weir_blocks_init(&planes));
    planes.channels = 2;
    cr_assert_not(weir_blocks_init(&planes));
}

Test(blocks, any_geometry)
{
    for (int i = 0; i < 3000; i++) {
        struct dataset set;
        make(&set);
        check(&set, i);
        drop(&set);
    }
}

/* h5py's automatic chunks for a (20, 240, 320, 3) dataset span several frames and split height, width and channels. */
Test(blocks, a_known_shape)
{
    struct weir_blocks blocks = {
        .grid = {.rank = 4, .dims = {20, 240, 320, 3}, .chunk = {2, 30, 80, 1}, .element_bytes = 1, .filtered = true}};
    cr_assert(weir_blocks_init(&blocks));
    cr_assert_eq(blocks.rows, 2);
    cr_assert_eq(blocks.per_block, 8 * 4 * 3);
    cr_assert_eq(blocks.n_chunks, 10 * 8 * 4 * 3);
    cr_assert_eq(blocks.chunk_bytes, 2 * 30 * 80);
    cr_assert_eq(blocks.row_bytes, 240 * 320 * 3);
}

Test(blocks, shapes_that_are_refused)
{
    struct weir_blocks deep = {
        .grid = {.rank = 5, .dims = {1, 1, 1, 1, 1}, .chunk = {1, 1, 1, 1, 1}, .element_bytes = 1}};
    cr_assert_not(weir_blocks_init(&deep));
    struct weir_blocks huge = {.grid = {.rank = 2, .dims = {4, 1 << 30}, .chunk = {1, 1 << 30}, .element_bytes = 1}};
    cr_assert_not(weir_blocks_init(&huge));
    struct weir_blocks row = {
        .grid = {.rank = 4, .dims = {4, 1 << 20, 1 << 20, 1 << 20}, .chunk = {1, 1 << 20, 1, 1}, .element_bytes = 8}};
    cr_assert_not(weir_blocks_init(&row));
    struct weir_blocks none = {.grid = {.rank = 2, .dims = {4, 4}, .chunk = {0, 4}, .element_bytes = 1}};
    cr_assert_not(weir_blocks_init(&none));
}

static bool is_handled(uint64_t rows, uint64_t row, uint64_t chunk_rows, uint64_t chunk_row)
{
    struct weir_blocks blocks = {
        .grid = {.rank = 2, .dims = {rows, row}, .chunk = {chunk_rows, chunk_row}, .element_bytes = 1}};
    return weir_blocks_init(&blocks);
}

/* A row or a chunk of 1 GiB is refused, and so are sizes that overflow. */
Test(blocks, the_largest_shapes)
{
    const uint64_t limit = 1 << 30;
    cr_assert(is_handled(4, limit - 1, 1, limit - 1));
    cr_assert_not(is_handled(4, limit, 1, limit / 4));
    cr_assert_not(is_handled(1024, limit / 1024, 1024, limit / 1024));
    cr_assert_not(is_handled(4, 9, limit, limit));
    cr_assert_not(is_handled(limit, limit / 2, 1, 1));
}

Test(blocks, the_largest_stored_chunk)
{
    struct weir_chunk chunks[] = {{100, 7, 0}, {WEIR_CHUNK_NONE, 900, 0}, {300, 40, 0}, {400, 8, 0}};
    struct weir_blocks blocks = {.n_chunks = 4, .chunks = chunks};
    cr_assert_eq(weir_blocks_stored_max(&blocks), 40);
}
