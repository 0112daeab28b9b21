/* libFuzzer: opens a hostile zip archive as a dataset would be opened, and looks up and locates every member. */
#include "datasets/zarr/zip_index.h"
#include "tests/fuzz/fuzz_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes bytes = {data, size};
    struct weir_raw_file raw = {fuzz_read_inside, &bytes, 0, size};
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_zip zip;
    int rc = weir_zip_open(&zip, &raw, &err);
    require(rc == 0 || ((rc == -EBADMSG || rc == -ENOTSUP) && *err.text && !strchr(err.text, '\n')));
    for (uint32_t i = 0; i < zip.n; i++) {
        const struct weir_zip_member *member = &zip.members[i];
        struct weir_err why = WEIR_ERR_NONE;
        uint64_t offset = 0;
        require(weir_zip_find(&zip, member->name) == member);
        require(i == 0 || strcmp(zip.members[i - 1].name, member->name) < 0);
        rc = weir_zip_data(&raw, member, &offset, &why);
        require(rc == 0 ? offset <= size && member->bytes <= size - offset : *why.text != '\0');
    }
    weir_zip_close(&zip);
    return 0;
}
