/* libFuzzer target for hostile npy arrays. Parses the header, and converts the array if the data is as long as the
 * header says. */
#include "extras/motion/clips/npz.h"
#include "tests/fuzz/fuzz_bytes.h"

static void check_array(const struct weir_npy *npy, const uint8_t *data, size_t n)
{
    struct weir_file_array array;
    struct weir_err err = WEIR_ERR_NONE;
    uint8_t *exact = malloc(n);
    if (n > 0)
        memcpy(exact, data, n);
    int rc = weir_npy_array(npy, exact ? exact : (const uint8_t *)"", &array, &err);
    bool texts = npy->kind == 'U' || npy->kind == 'S';
    require(rc == 0 || (*err.text && !array.values && !array.texts));
    require(rc < 0 || (array.items == npy->items && !array.texts != texts && !array.values == texts));
    for (uint64_t i = 0; rc == 0 && texts && i < array.items; i++)
        require(strnlen(array.texts[i], WEIR_FILE_ARRAY_TEXT) < WEIR_FILE_ARRAY_TEXT);
    weir_file_array_free(&array);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_npy npy;
    if (size < WEIR_NPY_PREFIX)
        return 0;
    int n = weir_npy_header_bytes(data, &err);
    require(n > 0 || *err.text);
    if (n < 0 || (size_t)n > size)
        return 0;
    uint8_t *header = malloc((size_t)n);
    memcpy(header, data, (size_t)n);
    int rc = weir_npy_parse(header, (size_t)n, &npy, &err);
    free(header);
    require(rc == 0 || (*err.text && !strchr(err.text, '\n')));
    if (rc < 0)
        return 0;
    uint64_t items = 1;
    for (int d = 0; d < npy.rank; d++)
        items *= npy.dims[d];
    require(items == npy.items && npy.data_bytes == items * npy.item_bytes && npy.data_bytes <= WEIR_FILE_ARRAY_BYTES);
    if (npy.data_bytes <= size - (size_t)n)
        check_array(&npy, data + n, (size_t)npy.data_bytes);
    return 0;
}
