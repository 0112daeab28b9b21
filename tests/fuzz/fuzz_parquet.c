/* libFuzzer: reads a hostile Parquet file: its footer, then all columns, whole and in part. */
#include "datasets/chunks/unpack.h"
#include "datasets/parquet/parquet.h"
#include "tests/fuzz/fuzz_bytes.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROWS_MAX = 1 << 16, COLUMNS_MAX = 64 };

/* Returns the path of a file in memory that contains the bytes. */
static const char *make_file(const uint8_t *bytes, size_t n)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0)
        fd = memfd_create("parquet", MFD_CLOEXEC);
    require(fd >= 0 && ftruncate(fd, (off_t)n) == 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static bool is_expected(int code)
{
    return code == 0 || code == -EBADMSG || code == -ENOTSUP || code == -ENODATA || code == -EINVAL;
}

static void read_numbers(struct weir_parquet *parquet, int column, int64_t first, int64_t n)
{
    enum weir_number_type type;
    void *values;
    int width;
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_parquet_numbers(parquet, column, first, n, &type, &values, &width, &err);
    require(is_expected(rc) && (rc == 0) == (values != NULL) && (rc == 0) == (*err.text == '\0'));
    uint64_t sum = 0, bytes = rc == 0 ? (uint64_t)n * (uint64_t)width * weir_number_bytes(type) : 0;
    for (uint64_t i = 0; i < bytes; i++)
        sum += ((uint8_t *)values)[i];
    require(sum <= 255 * bytes);
    free(values);
}

static void read_bytes(struct weir_parquet *parquet, int column, int64_t first, int64_t n)
{
    struct weir_parquet_bytes bytes;
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_parquet_bytes(parquet, column, first, n, &bytes, &err);
    require(is_expected(rc) && (rc == 0) == (*err.text == '\0'));
    uint64_t before = 0, sum = 0;
    for (uint64_t i = 0; rc == 0 && i < bytes.n; before = bytes.ends[i++]) {
        require(bytes.ends[i] >= before);
        for (uint64_t at = before; at < bytes.ends[i]; at++)
            sum += bytes.data[at];
    }
    require(sum <= 255 * before);
    if (rc == 0 && !bytes.row_ends)
        require(bytes.n == (uint64_t)n);
    for (int64_t i = 0; rc == 0 && bytes.row_ends && i < n; i++)
        require(bytes.row_ends[i] <= bytes.n && (i == 0 || bytes.row_ends[i] >= bytes.row_ends[i - 1]));
    weir_parquet_bytes_free(&bytes);
}

/* Every value that has a location is there, verbatim or compressed. */
static void compare_extents(struct weir_parquet *parquet, int column, int64_t n, const uint8_t *file, size_t size)
{
    struct weir_parquet_bytes bytes;
    struct weir_err err = WEIR_ERR_NONE, why = WEIR_ERR_NONE;
    struct weir_parquet_extent *extents = calloc((size_t)n + 1, sizeof *extents);
    require(extents != NULL);
    int rc = weir_parquet_extents(parquet, column, 0, n, extents, &err);
    require(is_expected(rc) && (rc == 0) == (*err.text == '\0'));
    bool both = rc == 0 && weir_parquet_bytes(parquet, column, 0, n, &bytes, &why) == 0;
    for (int64_t i = 0; both && i < n; i++) {
        const struct weir_parquet_extent *extent = &extents[i];
        uint64_t begin = i ? bytes.ends[i - 1] : 0;
        require(extent->length == bytes.ends[i] - begin);
        if (extent->length == 0 || extent->offset == UINT64_MAX)
            continue;
        uint8_t *unpacked = malloc((size_t)extent->skip + extent->length);
        require(unpacked && extent->offset <= size && extent->span <= size - extent->offset);
        require(weir_snappy_resume(file + extent->offset, extent->span, extent->first, unpacked,
                                   (size_t)extent->skip + extent->length) == 0);
        require(memcmp(unpacked + extent->skip, bytes.data + begin, extent->length) == 0);
        free(unpacked);
    }
    if (both)
        weir_parquet_bytes_free(&bytes);
    free(extents);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_parquet *parquet;
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_parquet_open(&parquet, NULL, make_file(data, size), &err);
    require(is_expected(rc) && (rc == 0) == (parquet != NULL) && (rc == 0) == (*err.text == '\0'));
    int columns = parquet ? weir_parquet_columns(parquet) : 0;
    int64_t rows = parquet ? weir_parquet_rows(parquet) : 0;
    for (int i = 0; i < columns && i < COLUMNS_MAX; i++) {
        struct weir_parquet_column column;
        weir_parquet_column(parquet, i, &column);
        require(weir_parquet_find(parquet, column.name, column.leaf) >= 0);
        if (rows > ROWS_MAX)
            continue; /* a run of equal values can have any length, so reading it takes long */
        read_numbers(parquet, i, 0, rows);
        read_numbers(parquet, i, rows / 2, rows - rows / 2);
        read_bytes(parquet, i, 0, rows);
        read_bytes(parquet, i, rows / 2, rows - rows / 2);
        compare_extents(parquet, i, rows, data, size);
    }
    weir_parquet_close(&parquet);
    return 0;
}
