/* The width of the output, text and tables fitted to it, and sizes. */
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *open_pty(int *other, unsigned short columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    int terminal;
    cr_assert_eq(openpty(other, &terminal, NULL, NULL, &size), 0);
    FILE *out = fdopen(terminal, "w");
    cr_assert_not_null(out);
    return out;
}

Test(terminal, width)
{
    int other;
    FILE *narrow = open_pty(&other, 100), *tiny = open_pty(&other, 3), *unknown = open_pty(&other, 0);
    FILE *file = tmpfile();
    unsetenv("COLUMNS");
    cr_assert_eq(weir_terminal_width(narrow), 100);
    cr_assert_eq(weir_terminal_width(tiny), WEIR_TERMINAL_WIDTH_LEAST);
    cr_assert_eq(weir_terminal_width(unknown), 80);
    cr_assert_eq(weir_terminal_width(file), 80);
    setenv("COLUMNS", "132", 1);
    cr_assert_eq(weir_terminal_width(narrow), 100);
    cr_assert_eq(weir_terminal_width(unknown), 132);
    cr_assert_eq(weir_terminal_width(file), 132);
    setenv("COLUMNS", "many", 1);
    cr_assert_eq(weir_terminal_width(file), 80);
    setenv("COLUMNS", "99999999999999999999", 1);
    cr_assert_eq(weir_terminal_width(file), 1000);
    weir_terminal_set_wide(true);
    cr_assert_eq(weir_terminal_width(narrow), WEIR_TERMINAL_WIDTH_WIDE);
}

Test(terminal, colour)
{
    int other;
    FILE *terminal = open_pty(&other, 80), *file = tmpfile();
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    cr_assert(weir_terminal_has_colour(terminal));
    cr_assert_not(weir_terminal_has_colour(file));
    setenv("NO_COLOR", "", 1);
    cr_assert(weir_terminal_has_colour(terminal));
    setenv("NO_COLOR", "1", 1);
    cr_assert_not(weir_terminal_has_colour(terminal));
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    cr_assert_not(weir_terminal_has_colour(terminal));
    unsetenv("TERM");
    cr_assert_not(weir_terminal_has_colour(terminal));
}

static void check_wrap(const char *columns, const char *text, int hang, const char *separator, const char *expected)
{
    char *memory = NULL;
    size_t size;
    FILE *out = open_memstream(&memory, &size);
    setenv("COLUMNS", columns, 1);
    weir_wrap_print(out, text, hang, separator);
    fclose(out);
    cr_assert_str_eq(memory, expected);
    free(memory);
}

Test(terminal, wrap)
{
    check_wrap("40", "a short line\n", 4, NULL, "a short line\n");
    check_wrap("40", "exactly forty columns of text, no more..\n", 4, NULL,
               "exactly forty columns of text, no more..\n");
    check_wrap("40", "exactly forty columns of text, and then some more words follow\nnext", 4, NULL,
               "exactly forty columns of text, and then\n    some more words follow\nnext");
    check_wrap("40", "a number and its unit are together: 12.5 GB\n", 2, NULL,
               "a number and its unit are together:\n  12.5 GB\n");
    check_wrap("40", "epoch 1/3 total 12.34 s | train 10.00 s | val 2.30 s\n", 2, " | ",
               "epoch 1/3 total 12.34 s |\n  train 10.00 s | val 2.30 s\n");
}

Test(terminal, wrap_keeps_indents_and_words)
{
    check_wrap("40", "  advice    one two three four five six seven\n", 12, NULL,
               "  advice    one two three four five six\n            seven\n");
    check_wrap("40", "see /a/path/that/is/longer/than/forty/columns/in/all.hdf5 for it\n", 2, NULL,
               "see\n  /a/path/that/is/longer/than/forty/columns/in/all.hdf5\n  for it\n");
    check_wrap("40", "/a/path/that/is/longer/than/forty/columns/in/all.hdf5\n", 2, NULL,
               "/a/path/that/is/longer/than/forty/columns/in/all.hdf5\n");
    /* ten characters of two columns each in every line */
    check_wrap("40", "数据等待数据等待数据 数据等待数据等待数据 数据等待数据等待数据\n", 0, NULL,
               "数据等待数据等待数据\n数据等待数据等待数据\n数据等待数据等待数据\n");
}

/* The second column is aligned, and the last one stays together. */
Test(terminal, wrap_columns)
{
    check_wrap("60", "  read-ahead          64 concurrent reads: 1.5 x (predicted)  --read-ahead 64\n",
               WEIR_WRAP_COLUMN, NULL,
               "  read-ahead          64 concurrent reads: 1.5 x (predicted)\n"
               "                      --read-ahead 64\n");
    check_wrap("60", "  read-ahead          64 concurrent reads: 1.5 x (predicted), and more text than fits here\n",
               WEIR_WRAP_COLUMN, NULL,
               "  read-ahead          64 concurrent reads: 1.5 x\n"
               "                      (predicted), and more text than fits\n"
               "                      here\n");
    check_wrap("40", "one column of text, which is longer than 40\n", WEIR_WRAP_COLUMN, NULL,
               "one column of text, which is longer than\n  40\n");
}

Test(terminal, wrap_in_pieces)
{
    char *memory = NULL;
    size_t size;
    struct weir_wrap wrap;
    FILE *out = open_memstream(&memory, &size);
    setenv("COLUMNS", "40", 1);
    FILE *text = weir_wrap_open(&wrap, out, 2, ", ");
    fputs("machine: 16 of 208 cores, quota 8 cores", text);
    fprintf(text, ", load average %.2f\n", 1.5);
    weir_wrap_close(&wrap);
    fclose(out);
    cr_assert_str_eq(memory, "machine: 16 of 208 cores, quota 8 cores,\n  load average 1.50\n");
    free(memory);
}

Test(terminal, shorten)
{
    char short_one[] = "episode_1.hdf5", path[] = "task/session/episode_000123.hdf5", glyphs[] = "数据等待数据等待";
    weir_text_shorten(short_one, 14);
    cr_assert_str_eq(short_one, "episode_1.hdf5");
    weir_text_shorten(path, 20);
    cr_assert_str_eq(path, "task/s.._000123.hdf5");
    weir_text_shorten(glyphs, 11);
    cr_assert_leq(weir_text_width(glyphs), 11);
    cr_assert_not_null(strstr(glyphs, ".."));
}

Test(text, sizes)
{
    static const struct {
        double bytes;
        const char *text, *in_table;
    } cases[] = {
        {0, "0 bytes", "0"},
        {1023, "1023 bytes", "1023"},
        {1024, "1 KiB", "1K"},
        {1536, "1.5 KiB", "1.5K"},
        {9.99 * 1024, "9.99 KiB", "9.99K"},
        {9.999 * 1024, "10 KiB", "10K"},
        {563 * 1048576.0, "563 MiB", "563M"},
        {1023.4 * 1048576, "1023 MiB", "1023M"},
        {1023.6 * 1048576, "1 GiB", "1G"},
        {4.61 * 1073741824, "4.61 GiB", "4.61G"},
        {2e15, "1.78 PiB", "1.78P"},
        {1e19, "8882 PiB", "8882P"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(weir_size(cases[i].bytes).text, cases[i].text);
        cr_expect_str_eq(weir_size_short(cases[i].bytes).text, cases[i].in_table);
    }
}

static char *table(const char *columns, const char *name)
{
    static const struct weir_column specs[] = {{"file", .left = true, .shrink_to = 12},
                                               {"kind", .priority = 2, .left = true},
                                               {"reads", .priority = 1},
                                               {.heading = "total"},
                                               {"reads p90", .priority = 2, .width = 12}};
    struct weir_table made;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    setenv("COLUMNS", columns, 1);
    weir_table_open(&made, specs, 5);
    for (int i = 0; i < 2; i++) {
        weir_table_cell(&made, "%s", i ? name : "数据");
        weir_table_cell(&made, "work");
        weir_table_cell(&made, "%d", i);
        weir_table_cell(&made, "%.1fs", 1234567890.5);
        weir_table_cell(&made, "%d", 12);
    }
    weir_table_print(out, &made);
    fclose(out);
    return text;
}

static void check_table(const char *columns, const char *name, const char *expected)
{
    char *text = table(columns, name);
    cr_assert_str_eq(text, expected, "%s", text);
    free(text);
}

/* All columns of a priority are left out together, and names are shortened last. */
Test(terminal, table)
{
    check_table("54", "a.hdf5",
                "file    kind  reads          total     reads p90\n"
                "数据    work      0  1234567890.5s            12\n"
                "a.hdf5  work      1  1234567890.5s            12\n");
    check_table("45", "a.hdf5",
                "file    reads          total\n"
                "数据        0  1234567890.5s\n"
                "a.hdf5      1  1234567890.5s\n");
    check_table("40", "task/a_long_folder/episode_0012.hdf5",
                "file                reads          total\n"
                "数据                    0  1234567890.5s\n"
                "task/..e_0012.hdf5      1  1234567890.5s\n");
}

Test(terminal, table_without_headings)
{
    static const struct weir_column specs[] = {{.heading = "", .width = 8}, {.heading = "", .left = true}};
    struct weir_table made;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    weir_table_open(&made, specs, 2);
    weir_table_cell(&made, "1.5ms");
    weir_table_cell(&made, "read");
    weir_table_print(out, &made);
    fclose(out);
    cr_assert_str_eq(text, "   1.5ms  read\n");
    free(text);
}
