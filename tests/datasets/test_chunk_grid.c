/* Arithmetic that chunk indexes use: grid sizes and checksums. */
#include "base/hash.h"
#include "datasets/chunks/chunk_grid.h"
#include "datasets/hdf5/chunk_walk_priv.h"

#include <criterion/criterion.h>

Test(chunk_grid, grids_that_make_no_sense)
{
    struct weir_chunk_grid grid = {.rank = 2, .dims = {1u << 31, 1u << 31}, .chunk = {1, 1}, .element_bytes = 1};
    cr_assert_eq(weir_chunk_grid_count(&grid), 0);
    grid.chunk[0] = 0;
    cr_assert_eq(weir_chunk_grid_count(&grid), 0);
    grid = (struct weir_chunk_grid){.rank = 2, .dims = {9, 0}, .chunk = {2, 2}, .element_bytes = 1};
    cr_assert_eq(weir_chunk_grid_count(&grid), 0);
    grid = (struct weir_chunk_grid){.rank = 2, .dims = {9, 9}, .chunk = {1u << 31, 1u << 31}, .element_bytes = 4};
    cr_assert_eq(weir_chunk_grid_bytes(&grid), 0);
    grid = (struct weir_chunk_grid){.rank = 3, .dims = {9, 9, 3}, .chunk = {2, 4, 3}, .element_bytes = 2};
    cr_assert_eq(weir_chunk_grid_count(&grid), 5 * 3 * 1);
    cr_assert_eq(weir_chunk_grid_bytes(&grid), 2 * 4 * 3 * 2);
}

/* Bob Jenkins' published values (lookup3.c, driver5). */
Test(chunk_grid, checksums_are_those_published)
{
    static const char text[] = "Four score and seven years ago";
    cr_assert_eq(weir_lookup3((const uint8_t *)"", 0), 0xdeadbeef);
    cr_assert_eq(weir_lookup3((const uint8_t *)text, sizeof text - 1), 0x17770551);
}
