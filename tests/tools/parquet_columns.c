/* Prints a Parquet file's columns: name, leaf, kind, type, list depth; then, for columns that can be read, the values
 * of rows first .. first + n - 1: one row per line. Usage: parquet_columns FILE [FIRST N] */
#include "datasets/parquet/parquet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_number(enum weir_number_type type, const void *values, int64_t i)
{
    double f64;
    int64_t i64;
    uint64_t u64;
    const uint8_t *at = (const uint8_t *)values + (size_t)i * weir_number_bytes(type);
    if (type == WEIR_F32 || type == WEIR_F64) {
        weir_numbers_convert(type, at, 1, WEIR_F64, &f64);
        printf(" %.17g", f64);
    } else if (type == WEIR_U64) {
        memcpy(&u64, at, sizeof u64);
        printf(" %" PRIu64, u64);
    } else {
        weir_numbers_convert(type, at, 1, WEIR_I64, &i64);
        printf(" %" PRId64, i64);
    }
}

static int print_numbers(struct weir_parquet *parquet, int column, int64_t first, int64_t n, struct weir_err *err)
{
    enum weir_number_type type;
    void *values;
    int width, rc = weir_parquet_numbers(parquet, column, first, n, &type, &values, &width, err);
    for (int64_t row = 0; row < n && rc == 0; row++) {
        printf("row");
        for (int i = 0; i < width; i++)
            print_number(type, values, row * width + i);
        printf("\n");
    }
    free(values);
    return rc;
}

static int print_bytes(struct weir_parquet *parquet, int column, int64_t first, int64_t n, struct weir_err *err)
{
    struct weir_parquet_bytes bytes;
    int rc = weir_parquet_bytes(parquet, column, first, n, &bytes, err);
    uint64_t value = 0, at = 0;
    for (int64_t row = 0; row < n && rc == 0; row++) {
        printf("row");
        for (uint64_t end = bytes.row_ends ? bytes.row_ends[row] : value + 1; value < end; value++) {
            printf(" =");
            for (; at < bytes.ends[value]; at++)
                printf("%02x", bytes.data[at]);
        }
        printf("\n");
    }
    weir_parquet_bytes_free(&bytes);
    return rc;
}

int main(int argc, char **argv)
{
    struct weir_parquet *parquet;
    struct weir_err err = WEIR_ERR_NONE;
    if (argc != 2 && argc != 4)
        return 2;
    if (weir_parquet_open(&parquet, NULL, argv[1], &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int64_t first = argc == 4 ? atoll(argv[2]) : 0, n = argc == 4 ? atoll(argv[3]) : weir_parquet_rows(parquet);
    for (int i = 0; i < weir_parquet_columns(parquet); i++) {
        struct weir_parquet_column column;
        struct weir_err why = WEIR_ERR_NONE;
        weir_parquet_column(parquet, i, &column);
        printf("column %s|%s|%d|%s|%d|%d\n", column.name, column.leaf, column.kind, weir_number_name(column.type),
               column.list_depth, column.is_string);
        int rc = column.kind == WEIR_PARQUET_NUMBERS ? print_numbers(parquet, i, first, n, &why)
                 : column.kind == WEIR_PARQUET_BYTES ? print_bytes(parquet, i, first, n, &why)
                                                     : 0;
        if (rc < 0)
            printf("error %s\n", why.text);
    }
    weir_parquet_close(&parquet);
    return 0;
}
