/* Rows of Parquet files whose pages divide lists, are damaged, or announce more than they contain.
 * tests/datasets/compare_parquet.py compares with pyarrow. */
#include "datasets/chunks/unpack.h"
#include "datasets/parquet/parquet.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/parquet_build.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 5, WIDTH = 3 };

static const int64_t integers[ROWS * WIDTH] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
static const char *const texts[ROWS * WIDTH] = {"a", "bc", "",  "d", "e", "f",  "gh", "i",
                                                "j", "k",  "l", "m", "n", "op", "q"};

static struct weir_parquet *parquet;
static struct weir_err err;

TestSuite(parquet, .init = fixture_open, .fini = fixture_close);

static void open_file(const struct pq_column *column, int rows)
{
    const char *path = fixture_path("x.parquet");
    err = (struct weir_err)WEIR_ERR_NONE;
    pq_write(path, column, 1, rows);
    cr_assert_eq(weir_parquet_open(&parquet, NULL, path, &err), 0, "%s", err.text);
}

static int read_numbers(int64_t first, int64_t n, void **values, int *width)
{
    enum weir_number_type type;
    err = (struct weir_err)WEIR_ERR_NONE;
    return weir_parquet_numbers(parquet, 0, first, n, &type, values, width, &err);
}

static void check_integers(int64_t first, int64_t n, int expected_width)
{
    void *values;
    int width;
    cr_assert_eq(read_numbers(first, n, &values, &width), 0, "%s", err.text);
    cr_assert_eq(width, expected_width);
    cr_assert_arr_eq(values, integers + first * width, (size_t)n * (size_t)width * sizeof *integers);
    free(values);
}

static void check_texts(int64_t first, int64_t n)
{
    struct weir_parquet_bytes bytes;
    cr_assert_eq(weir_parquet_bytes(parquet, 0, first, n, &bytes, &err), 0, "%s", err.text);
    cr_assert_eq(bytes.n, (uint64_t)n * WIDTH);
    for (int64_t row = 0; row < n; row++)
        cr_assert_eq(bytes.row_ends[row], (uint64_t)(row + 1) * WIDTH);
    uint64_t begin = 0;
    for (uint64_t i = 0; i < bytes.n; begin = bytes.ends[i++]) {
        const char *text = texts[(uint64_t)first * WIDTH + i];
        cr_assert_eq(bytes.ends[i] - begin, strlen(text));
        cr_assert_arr_eq(bytes.data + begin, text, strlen(text));
    }
    weir_parquet_bytes_free(&bytes);
}

static void check_all_ranges(const struct pq_column *column)
{
    open_file(column, ROWS);
    for (int64_t first = 0; first < ROWS; first++)
        for (int64_t n = 1; first + n <= ROWS; n++)
            if (column->type == PQ_TEXT)
                check_texts(first, n);
            else
                check_integers(first, n, column->width ? column->width : 1);
    weir_parquet_close(&parquet);
}

Test(parquet, every_range_of_rows_for_every_size_of_pages)
{
    for (int page = 0; page <= ROWS * WIDTH; page++) {
        check_all_ranges(&(struct pq_column){.name = "i", .type = PQ_I64, .values = integers, .page_values = page});
        check_all_ranges(&(struct pq_column){
            .name = "list", .type = PQ_I64, .width = WIDTH, .values = integers, .page_values = page});
        check_all_ranges(&(struct pq_column){
            .name = "texts", .type = PQ_TEXT, .width = WIDTH, .values = texts, .page_values = page});
    }
}

static void check_error(int code, const char *part)
{
    void *values;
    int width;
    cr_assert_eq(read_numbers(0, 1, &values, &width), code, "%s", err.text);
    cr_assert_null(values);
    cr_assert_not_null(strstr(err.text, part), "%s", err.text);
    weir_parquet_close(&parquet);
}

Test(parquet, pages_with_more_rows_than_their_row_group)
{
    open_file(&(struct pq_column){.name = "i", .type = PQ_I64, .values = integers, .more_rows = 1}, ROWS - 1);
    check_error(-EBADMSG, "column i: ");
    open_file(&(struct pq_column){.name = "i", .type = PQ_I64, .width = WIDTH, .values = integers, .more_rows = 1},
              ROWS - 1);
    check_error(-EBADMSG, "column i: ");
}

static void check_refused(const struct pq_column *column, int rows, int announced, int code, const char *part)
{
    const char *path = fixture_path("x.parquet");
    err = (struct weir_err)WEIR_ERR_NONE;
    pq_write_announced(path, column, 1, rows, announced);
    cr_assert_eq(weir_parquet_open(&parquet, NULL, path, &err), code, "%s", err.text);
    cr_assert_not_null(strstr(err.text, part), "%s", err.text);
}

/* A run of levels can announce any number of rows in a few bytes. */
Test(parquet, files_that_announce_2_to_the_31_rows_are_refused_before_memory_is_allocated)
{
    check_refused(&(struct pq_column){.name = "f", .type = PQ_F32, .is_null = true}, INT32_MAX, INT32_MAX, -ENOTSUP,
                  "announces 2147483647 values in ");
}

/* Old writers leave the footer's number of rows 0. pyarrow and DuckDB read the rows of the row groups. */
Test(parquet, a_footer_of_0_rows_has_the_rows_of_its_row_groups)
{
    const struct pq_column column = {.name = "i", .type = PQ_I64, .values = integers};
    pq_write_announced(fixture_path("x.parquet"), &column, 1, ROWS, 0);
    cr_assert_eq(weir_parquet_open(&parquet, NULL, fixture_path("x.parquet"), &err), 0, "%s", err.text);
    cr_assert_eq(weir_parquet_rows(parquet), ROWS);
    check_integers(0, ROWS, 1);
    weir_parquet_close(&parquet);
    check_refused(&column, ROWS, ROWS - 1, -EBADMSG, "another number of rows");
}

/* Spark does not compress the values of a page of version 2 that has none. */
Test(parquet, pages_of_nulls_without_compressed_bytes)
{
    enum { SNAPPY = 1, BROTLI = 4, ZSTD = 6 };
    static const int codecs[] = {SNAPPY, BROTLI, ZSTD};
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        void *values;
        int width;
        open_file(
            &(struct pq_column){.name = "f", .type = PQ_F32, .is_null = true, .is_second = true, .codec = codecs[i]},
            ROWS);
        cr_assert_eq(read_numbers(0, ROWS, &values, &width), 0, "%s", err.text);
        for (int row = 0; row < ROWS; row++)
            cr_assert(isnan(((float *)values)[row]));
        free(values);
        weir_parquet_close(&parquet);
    }
    open_file(&(struct pq_column){.name = "i", .type = PQ_I64, .values = integers, .is_second = true, .codec = SNAPPY},
              ROWS);
    check_error(-EBADMSG, "its Snappy data");
}

Test(parquet, codecs_that_are_not_supported_are_named_for_each_column)
{
    static const char *const names[] = {"first", "second"};
    enum { BROTLI = 4 };
    for (int second = 0; second < 2; second++) {
        const struct pq_column columns[] = {
            {.name = names[0], .type = PQ_I64, .values = integers, .codec = BROTLI},
            {.name = names[1], .type = PQ_I64, .values = integers, .is_second = second, .codec = BROTLI},
            {.name = "plain", .type = PQ_I64, .values = integers}};
        pq_write(fixture_path("x.parquet"), columns, 3, ROWS);
        cr_assert_eq(weir_parquet_open(&parquet, NULL, fixture_path("x.parquet"), &err), 0, "%s", err.text);
        for (int i = 0; i < 3; i++) {
            enum weir_number_type type;
            void *values;
            int width, rc;
            err = (struct weir_err)WEIR_ERR_NONE;
            rc = weir_parquet_numbers(parquet, i, 0, ROWS, &type, &values, &width, &err);
            free(values);
            cr_assert_eq(rc, i < 2 ? -ENOTSUP : 0);
            cr_assert(i == 2 || strstr(err.text, names[i]), "%s", err.text);
            cr_assert(i == 2 || strstr(err.text, "compressed by BROTLI"), "%s", err.text);
        }
        weir_parquet_close(&parquet);
    }
}

Test(parquet, nulls_are_nan_or_refused)
{
    void *values;
    int width;
    open_file(&(struct pq_column){.name = "f", .type = PQ_F32, .is_null = true}, 2);
    cr_assert_eq(read_numbers(0, 2, &values, &width), 0, "%s", err.text);
    for (int i = 0; i < 2; i++)
        cr_assert(isnan(((float *)values)[i]));
    free(values);
    weir_parquet_close(&parquet);
    open_file(&(struct pq_column){.name = "i", .type = PQ_I64, .is_null = true}, 2);
    check_error(-EBADMSG, "column i: row 0 is null");
}

Test(parquet, half_precision_becomes_single_precision)
{
    static const uint16_t halves[] = {0x3c00, 0x3555, 0x0001, 0xfbff, 0xfc00, 0x7e00};
    static const float expected[] = {1, 0.333251953125f, 0x1p-24f, -65504, -INFINITY, NAN};
    for (int width = 0; width <= 3; width += 3) {
        int rows = width ? 2 : 6, found_width;
        void *values;
        open_file(&(struct pq_column){.name = "h", .type = PQ_F16, .width = width, .values = halves}, rows);
        cr_assert_eq(read_numbers(0, rows, &values, &found_width), 0, "%s", err.text);
        cr_assert_eq(found_width, width ? width : 1);
        cr_assert_arr_eq(values, expected, 5 * sizeof(float));
        cr_assert(isnan(((float *)values)[5]));
        free(values);
        weir_parquet_close(&parquet);
    }
    open_file(&(struct pq_column){.name = "h", .type = PQ_F16, .is_null = true}, 1);
    void *values;
    int width;
    cr_assert_eq(read_numbers(0, 1, &values, &width), 0, "%s", err.text);
    cr_assert(isnan(*(float *)values));
    free(values);
    weir_parquet_close(&parquet);
}

/* ---- locations of values ---- */

enum { IMAGES = 4, IMAGE_BYTES = 40000, PERIOD = 26 };

/* Reads a value by its location. */
static void expect_image(const struct weir_parquet_extent *extent, const char *image)
{
    uint8_t *stored = malloc(extent->span), *unpacked = malloc((size_t)extent->skip + extent->length);
    FILE *file = fopen(fixture_path("x.parquet"), "rb");
    cr_assert(file && stored && unpacked);
    cr_assert_eq(fseek(file, (long)extent->offset, SEEK_SET), 0);
    cr_assert_eq(fread(stored, 1, extent->span, file), extent->span);
    cr_assert_eq(extent->length, IMAGE_BYTES);
    cr_assert_eq(weir_snappy_resume(stored, extent->span, extent->first, unpacked, extent->skip + extent->length), 0);
    cr_assert_arr_eq(unpacked + extent->skip, image, IMAGE_BYTES);
    cr_assert_eq(weir_snappy_resume(stored, extent->span / 8, extent->first, unpacked, extent->skip + extent->length),
                 -EBADMSG, "truncated");
    fclose(file);
    free(stored);
    free(unpacked);
}

/* Writes images that together have more than two of Snappy's blocks, and reads each by its location. */
static void locate_images(struct pq_column column, struct weir_parquet_extent extents[IMAGES])
{
    static char images[IMAGES][IMAGE_BYTES + 1];
    const char *values[IMAGES];
    for (int i = 0; i < IMAGES; i++) {
        for (int k = 0; k < IMAGE_BYTES; k++)
            images[i][k] = (char)('a' + (k * 7 + i) % PERIOD);
        values[i] = images[i];
    }
    column.name = "x";
    column.type = PQ_TEXT;
    column.values = values;
    open_file(&column, IMAGES);
    cr_assert_eq(weir_parquet_extents(parquet, 0, 0, IMAGES, extents, &err), 0, "%s", err.text);
    for (int i = 0; i < IMAGES; i++)
        expect_image(&extents[i], images[i]);
    weir_parquet_close(&parquet);
}

Test(parquet, compressed_values_are_read_on_their_own)
{
    enum { BLOCK = 65536 };
    struct weir_parquet_extent extents[IMAGES];
    locate_images((struct pq_column){.literal_bytes = BLOCK}, extents);
    for (int i = 0; i < IMAGES; i++) /* literals only, so nothing but their tags is read in addition */
        cr_assert(extents[i].skip == 0 && extents[i].span <= IMAGE_BYTES + 6);
    locate_images((struct pq_column){.literal_bytes = 1000, .copy_distance = PERIOD}, extents);
    for (int i = 0; i < IMAGES; i++) /* decompressed from the start of a block */
        cr_assert_eq(extents[i].skip, (uint32_t)(4 + i * (IMAGE_BYTES + 4)) % BLOCK);
    locate_images((struct pq_column){.literal_bytes = 10, .copy_distance = PERIOD, .copies_across = true}, extents);
    for (int i = 0; i < IMAGES; i++) /* decompressed from the start of the page */
        cr_assert_eq(extents[i].skip, (uint32_t)(4 + i * (IMAGE_BYTES + 4)));
}

Test(parquet, decimals_are_no_integers)
{
    struct weir_parquet_column about;
    for (int width = 0; width <= WIDTH; width += WIDTH) {
        open_file(
            &(struct pq_column){.name = "x", .type = PQ_I64, .width = width, .values = integers, .is_decimal = true},
            ROWS);
        weir_parquet_column(parquet, 0, &about);
        cr_assert_eq(about.kind, WEIR_PARQUET_OTHER);
        cr_assert_str_eq(about.refused, "DECIMAL");
        void *values;
        int read;
        cr_assert_eq(read_numbers(0, 1, &values, &read), -EINVAL);
        weir_parquet_close(&parquet);
    }
    open_file(&(struct pq_column){.name = "x", .type = PQ_I64, .values = integers}, ROWS);
    weir_parquet_column(parquet, 0, &about);
    cr_assert_null(about.refused);
    weir_parquet_close(&parquet);
}

Test(parquet, rows_that_do_not_exist)
{
    void *values;
    int width;
    open_file(&(struct pq_column){.name = "i", .type = PQ_I64, .values = integers}, ROWS);
    cr_assert_eq(read_numbers(ROWS, 1, &values, &width), -EINVAL);
    cr_assert_eq(read_numbers(-1, 1, &values, &width), -EINVAL);
    cr_assert_eq(read_numbers(0, ROWS + 1, &values, &width), -EINVAL);
    weir_parquet_close(&parquet);
}

Test(parquet, truncated_files_do_not_open)
{
    const char *path = fixture_path("x.parquet");
    open_file(&(struct pq_column){.name = "i", .type = PQ_I64, .values = integers}, ROWS);
    weir_parquet_close(&parquet);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, 0, SEEK_END), 0);
    for (long size = ftell(file) - 1; size >= 0; size--) {
        cr_assert_eq(truncate(path, size), 0);
        err = (struct weir_err)WEIR_ERR_NONE;
        int rc = weir_parquet_open(&parquet, NULL, path, &err);
        cr_assert(rc == -EBADMSG || rc == -ENODATA, "%ld bytes: %d", size, rc);
        cr_assert_null(parquet);
    }
    cr_assert_eq(fclose(file), 0);
}
