/* libFuzzer: parses a hostile .zarray. If it is accepted, all values must be within their bounds. */
#include "datasets/blocks_priv.h"
#include "datasets/zarr/zarr_files.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_zarray array;
    char *text = malloc(size + 1); /* not NUL-terminated, so that reads past the end are detected */
    memcpy(text, data, size);
    int rc = weir_zarray_parse(text, size, &array, &err);
    free(text);
    if (rc < 0) {
        require(*err.text && !strchr(err.text, '\n'));
        return 0;
    }
    uint32_t bytes = array.grid.element_bytes;
    require(array.grid.rank >= 1 && array.grid.rank <= WEIR_GRID_RANK_MAX);
    require(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
    require(array.separator == '.' || array.separator == '/');
    require(array.filters.n == 0 || (array.filters.n == 1 && weir_filters_can_undo(&array.filters)));
    struct weir_blocks blocks = {.grid = array.grid, .filters = array.filters};
    if (weir_blocks_init(&blocks))
        require(blocks.n_chunks == weir_chunk_grid_count(&array.grid) && blocks.row_bytes < (size_t)1 << 30);
    return 0;
}
