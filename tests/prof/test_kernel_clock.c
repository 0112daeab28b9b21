/* Tables of clocks inside a kernel: figures computed from valid tables, and handling of tables that no kernel writes.
 */
#include "tests/fixtures/clock_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- step of %globaltimer ---- */

Test(kernel_clock, the_step_is_the_least_difference)
{
    const uint64_t h200[] = {1000, 1000, 1032, 1032, 1032, 1064, 1128, 1160, 1160};
    cr_assert_eq(weir_kernel_clock_step(h200, sizeof h200 / sizeof *h200), 32);
    const uint64_t coarse[] = {1024, 1024, 2048, 2048, 4096};
    cr_assert_eq(weir_kernel_clock_step(coarse, 5), 1024);
    const uint64_t still[] = {5, 5, 5};
    cr_assert_eq(weir_kernel_clock_step(still, 3), 0);
    const uint64_t backwards[] = {64, 96, 32};
    cr_assert_eq(weir_kernel_clock_step(backwards, 3), 0);
    cr_assert_eq(weir_kernel_clock_step(h200, 1), 0);
    cr_assert_eq(weir_kernel_clock_step(NULL, 0), 0);
}

/* ---- figures ---- */

static struct weir_kernel_clock of_table(const uint8_t *table, size_t bytes, uint64_t step_ns, uint64_t want)
{
    struct weir_kernel_clock clock;
    weir_kernel_clock_init(&clock, &clockfx_kernel);
    cr_assert_eq(weir_kernel_clock_add(&clock, table, bytes, CLOCKFX_LAUNCH, step_ns), want);
    return clock;
}

Test(kernel_clock, stages_of_one_launch)
{
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 1);
    cr_assert_str_eq(clock.name, "a kernel");
    cr_assert_eq(clock.launches, 1);
    cr_assert_eq(clock.blocks, 1);
    cr_assert_eq(clock.grid, 132);
    cr_assert_eq(clock.iterations, 2);
    cr_assert_eq(clock.rows, 2);
    cr_assert_eq(clock.span_ticks, 20000);
    cr_assert_eq(clock.lap_ticks, 11100);
    const struct weir_kernel_clock_stage *load = &clock.stages[0];
    cr_assert_str_eq(load->name, "load");
    cr_assert_eq(load->laps, 2);
    cr_assert_eq(load->ticks, 4000);
    cr_assert_eq(load->last_ticks, 3000);
    cr_assert_eq(load->min_ticks, 1000);
    cr_assert_eq(load->max_ticks, 3000);
    cr_assert_float_eq(weir_kernel_clock_share(&clock, 0), 4000.0 / 11100, 1e-12);
    cr_assert_float_eq(load->ns, 2000, 1e-9);
    cr_assert_float_eq(load->last_ns, 1500, 1e-9);
    cr_assert_float_eq(load->min_ns, 500, 1e-9);
    cr_assert_float_eq(load->max_ns, 1500, 1e-9);
    cr_assert_eq(clock.warp_lap_ticks, 20);
    cr_assert_eq(clock.block_lap_ticks, 50);
    cr_assert_eq(clock.laps, 9);
    free(table);
}

/* The error is one step plus half of the two gaps: (10 + 30) / 2 ticks of 0.5 ns. */
Test(kernel_clock, the_error_of_ns)
{
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 1);
    cr_assert_float_eq(clock.span_ns, 10000, 1e-9);
    cr_assert_float_eq(clock.span_error_ns, 32 + 10, 1e-9);
    cr_assert_float_eq(clock.min_rate, 2, 1e-12);
    cr_assert_float_eq(clock.max_rate, 2, 1e-12);
    cr_assert_float_eq(clock.stages[0].error_ns, 2000 * 42.0 / 10000, 1e-9);
    cr_assert_float_eq(clock.step_ns, 32, 1e-12);
    free(table);
}

/* Two blocks, whose SMs ran at 2 ticks and at 1 tick per ns. */
Test(kernel_clock, every_block_has_its_own_rate)
{
    size_t bytes;
    uint8_t *table = clockfx_table(2, &bytes);
    struct weir_kernel_clock_record slow = clockfx_head(1);
    slow.end_ns = slow.begin_ns + 20000;
    clockfx_put(table, &slow, clockfx_rows, 2);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 2);
    cr_assert_eq(clock.launches, 1);
    cr_assert_eq(clock.blocks, 2);
    cr_assert_float_eq(clock.min_rate, 1, 1e-12);
    cr_assert_float_eq(clock.max_rate, 2, 1e-12);
    cr_assert_float_eq(clock.stages[1].ns, 6000 / 2.0 + 6000, 1e-9);
    cr_assert_eq(clock.stages[1].laps, 4);
    cr_assert_eq(clock.stages[1].last_ticks, 4000);
    cr_assert_float_eq(clock.stages[1].last_ns, 2000, 1e-9, "last_ns must be from block 0");
    free(table);
}

Test(kernel_clock, no_ns_without_a_step_or_of_a_span_that_is_too_short)
{
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock clock = of_table(table, bytes, 0, 1);
    cr_assert_eq(clock.timed_blocks, 0);
    cr_assert_eq(clock.stages[0].ns_laps, 0);
    cr_assert_eq(clock.stages[0].laps, 2);
    clock = of_table(table, bytes, 5000, 1); /* twice the error of 5010 ns exceeds the span of 10000 ns */
    cr_assert_eq(clock.timed_blocks, 0);
    clock = of_table(table, bytes, 4990, 1);
    cr_assert_eq(clock.timed_blocks, 1);
    free(table);
}

Test(kernel_clock, launches_are_told_apart)
{
    size_t bytes;
    uint8_t *table = clockfx_table(2, &bytes);
    struct weir_kernel_clock_record before = clockfx_head(1);
    before.launch = CLOCKFX_LAUNCH - 1;
    clockfx_put(table, &before, clockfx_rows, 2);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 1);
    cr_assert_eq(clock.damaged, 0, "records of an earlier launch must not count as damaged");
    cr_assert_eq(weir_kernel_clock_add(&clock, table, bytes, CLOCKFX_LAUNCH + 1, CLOCKFX_STEP_NS), 0);
    cr_assert_eq(weir_kernel_clock_add(&clock, table, bytes, CLOCKFX_LAUNCH - 1, CLOCKFX_STEP_NS), 1);
    cr_assert_eq(clock.launches, 2);
    cr_assert_eq(clock.stages[0].laps, 4);
    free(table);
}

/* ---- data that does not fit ---- */

Test(kernel_clock, iterations_without_a_row_are_counted)
{
    static const uint32_t rows[CLOCKFX_ROWS][1 + CLOCKFX_STAGES] = {
        {0, 100, 100, 100}, {300, 100, 100, 100}, {600, 100, 100, 100}, {900, 100, 100, 100}};
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock_record head = clockfx_head(0);
    head.iterations = 1000;
    clockfx_put(table, &head, rows, CLOCKFX_ROWS);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 1);
    cr_assert_eq(clock.iterations, 1000);
    cr_assert_eq(clock.rows, CLOCKFX_ROWS);
    cr_assert_eq(clock.stages[2].laps, CLOCKFX_ROWS);
    free(table);
}

/* The kernel took 2^33 ticks. The laps of its first iteration exceed 32 bits, so the second iteration starts after 2^32
 * ticks. */
Test(kernel_clock, rows_that_have_stopped_at_their_maximum)
{
    static const uint32_t rows[2][1 + CLOCKFX_STAGES] = {{5, UINT32_MAX, UINT32_MAX, UINT32_MAX}, {77, 1000, 0, 500}};
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock_record head = clockfx_head(0);
    head.end_ticks = head.begin_ticks + (UINT64_C(1) << 33);
    head.end_ns = head.begin_ns + (UINT64_C(1) << 32);
    clockfx_put(table, &head, rows, 2);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 1);
    cr_assert_eq(clock.damaged, 0);
    cr_assert_eq(clock.long_laps, 3);
    cr_assert_eq(clock.stages[0].laps, 1);
    cr_assert_eq(clock.stages[0].ticks, 1000);
    cr_assert_eq(clock.stages[1].laps, 0, "laps of 0 ticks must not count");
    free(table);
}

Test(kernel_clock, a_row_begins_after_the_one_before)
{
    const uint32_t past[] = {77}, next[] = {5000};
    cr_assert_eq(weir_kernel_clock_row_begin(next, 4000), 5000);
    cr_assert_eq(weir_kernel_clock_row_begin(past, UINT32_MAX), UINT64_C(0x100000000) + 77);
    cr_assert_eq(weir_kernel_clock_row_begin(past, 77), 77);
}

/* ---- hostile tables ---- */

typedef void (*spoil)(struct weir_kernel_clock_record *head);

static void no_magic(struct weir_kernel_clock_record *head)
{
    head->magic ^= 1;
}

static void other_stages(struct weir_kernel_clock_record *head)
{
    head->stages = UINT32_MAX;
}

static void other_rows(struct weir_kernel_clock_record *head)
{
    head->rows_max = UINT32_MAX;
}

static void other_block(struct weir_kernel_clock_record *head)
{
    head->block = UINT64_MAX;
}

static void outside_its_grid(struct weir_kernel_clock_record *head)
{
    head->grid = 0;
}

static void never_ended(struct weir_kernel_clock_record *head)
{
    head->end_ticks = head->end_ns = 0;
}

static void took_no_time(struct weir_kernel_clock_record *head)
{
    head->end_ticks = head->begin_ticks;
}

static void ended_before_it_began(struct weir_kernel_clock_record *head)
{
    head->end_ns = head->begin_ns - 1;
}

static void shorter_than_its_laps(struct weir_kernel_clock_record *head)
{
    head->end_ticks = head->begin_ticks + 11599;
}

Test(kernel_clock, records_that_make_no_sense_are_counted_and_left_out)
{
    static const spoil spoils[] = {no_magic,     other_stages,          other_rows,
                                   other_block,  outside_its_grid,      never_ended,
                                   took_no_time, ended_before_it_began, shorter_than_its_laps};
    for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++) {
        size_t bytes;
        uint8_t *table = clockfx_table(3, &bytes);
        struct weir_kernel_clock_record head = clockfx_head(1);
        spoils[i](&head);
        memcpy(table + bytes / 3, &head, sizeof head);
        struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 2);
        cr_assert_eq(clock.damaged, 1, "%zu", i);
        cr_assert_eq(clock.stages[0].laps, 4);
        free(table);
    }
}

Test(kernel_clock, a_span_as_long_as_its_laps_is_fine)
{
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock_record head = clockfx_head(0);
    head.end_ticks = head.begin_ticks + 11600;
    clockfx_put(table, &head, clockfx_rows, 2);
    of_table(table, bytes, CLOCKFX_STEP_NS, 1);
    free(table);
}

Test(kernel_clock, rows_that_overlap_make_no_sense)
{
    static const uint32_t rows[2][1 + CLOCKFX_STAGES] = {{100, 1000, 2000, 500}, {3599, 1, 1, 1}};
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock_record head = clockfx_head(0);
    clockfx_put(table, &head, rows, 2);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 0);
    cr_assert_eq(clock.damaged, 1);
    free(table);
}

/* Tables of any size and alignment. Incomplete blocks are ignored. */
Test(kernel_clock, tables_of_any_size)
{
    size_t bytes;
    uint8_t *table = clockfx_table(2, &bytes);
    struct weir_kernel_clock clock;
    weir_kernel_clock_init(&clock, &clockfx_kernel);
    for (size_t n = 0; n <= bytes; n++) {
        uint8_t *cut = malloc(n + 1);
        memcpy(cut + 1, table, n); /* unaligned */
        uint64_t want = n / (bytes / 2);
        cr_assert_eq(weir_kernel_clock_add(&clock, cut + 1, n, CLOCKFX_LAUNCH, CLOCKFX_STEP_NS), want, "%zu", n);
        free(cut);
    }
    free(table);
}

/* For any bytes, all figures are finite. */
Test(kernel_clock, any_bytes)
{
    size_t bytes;
    char *text;
    size_t length;
    srand(1);
    for (int turn = 0; turn < 20000; turn++) {
        uint8_t *table = clockfx_table(2, &bytes);
        for (int i = rand() % 6; i >= 0; i--)
            table[(size_t)rand() % bytes] = (uint8_t)(rand() % 3 ? rand() : 255 * (rand() % 2));
        struct weir_kernel_clock clock;
        weir_kernel_clock_init(&clock, &clockfx_kernel);
        weir_kernel_clock_add(&clock, table, bytes, CLOCKFX_LAUNCH, turn % 3 ? CLOCKFX_STEP_NS : UINT64_MAX);
        cr_assert(isfinite(clock.span_ns) && isfinite(clock.stages[0].error_ns) && clock.iterations >= clock.rows);
        if (turn % 100 == 0) {
            FILE *out = open_memstream(&text, &length);
            weir_kernel_clock_print(out, &clock);
            weir_kernel_clock_csv_head(out);
            weir_kernel_clock_csv(out, &clock);
            fclose(out);
            cr_assert_not(strstr(text, "nan") || strstr(text, "inf"), "%s", text);
            free(text);
        }
        free(table);
    }
}

Test(kernel_clock, kernels_that_cannot_be)
{
    static const char *const names[WEIR_KERNEL_CLOCK_STAGES_MAX + 1] = {0};
    uint8_t bytes[4096] = {0};
    const struct weir_kernel_clock_kernel none = {"none", names, 0, 4},
                                          many = {"many", names, WEIR_KERNEL_CLOCK_STAGES_MAX + 1, 4},
                                          no_rows = {"no rows", names, 1, 0};
    const struct weir_kernel_clock_kernel *const all[] = {&none, &many, &no_rows};
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(weir_kernel_clock_each(all[i], bytes, sizeof bytes, 0, 32, NULL, NULL, NULL), 0);
}

/* ---- laps from other sources ---- */

Test(kernel_clock, stages_come_with_their_laps)
{
    struct weir_kernel_clock clock;
    const struct weir_kernel_clock_kernel kernel = {.name = "of a trace"};
    const struct weir_kernel_clock_block block = {.grid = 1, .ticks = 1000, .ns = 500, .error_ns = 5, .kernel_ns = 700};
    weir_kernel_clock_init(&clock, &kernel);
    weir_kernel_clock_add_block(&clock, &block);
    cr_assert(weir_kernel_clock_add_lap(&clock, &block, "b", 300));
    cr_assert(weir_kernel_clock_add_lap(&clock, &block, "a", 100));
    cr_assert(weir_kernel_clock_add_lap(&clock, &block, "b", 200));
    cr_assert_eq(clock.n_stages, 2);
    cr_assert_str_eq(clock.stages[0].name, "b");
    cr_assert_eq(clock.stages[0].ticks, 500);
    cr_assert_float_eq(clock.stages[0].ns, 250, 1e-9);
    cr_assert_eq(clock.kernels, 1);
    cr_assert_float_eq(clock.kernels_ns, 700, 1e-9);
    char name[16];
    for (int i = 0; i < WEIR_KERNEL_CLOCK_STAGES_MAX - 2; i++) {
        snprintf(name, sizeof name, "stage %d", i);
        cr_assert(weir_kernel_clock_add_lap(&clock, &block, name, 1));
    }
    cr_assert_not(weir_kernel_clock_add_lap(&clock, &block, "one too many", 1));
    cr_assert(weir_kernel_clock_add_lap(&clock, &block, "a", 1));
}

/* ---- output ---- */

static char *printed(void (*print)(FILE *out, const struct weir_kernel_clock *clock),
                     const struct weir_kernel_clock *clock)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    print(out, clock);
    fclose(out);
    return text;
}

Test(kernel_clock, the_table)
{
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 1);
    setenv("COLUMNS", "400", 1);
    char *text = printed(weir_kernel_clock_print, &clock);
    static const char *const wanted[] = {
        "clocks inside a kernel: 1 launch, 1 block of 132 each, 2 iterations\n",
        "stage                     laps  last ticks    mean   min   max  share       mean ns\n",
        "compute                      2        4000  3000.0  2000  4000  54.1%  1500.0 +-6.3\n",
        "2.000 ticks per ns within 0.42 %",
        "%globaltimer advances in steps of 32 ns",
        "with its barrier; 9 such laps in a warp take 0.9 % of",
        "an empty lap takes 20.0 ticks in a warp and 50.0 in a block",
        "the laps cover 55.5 % of the blocks' time: 5550.0 of 10000.0 ns per block\n",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_assert(strstr(text, wanted[i]), "%s\nis not in\n%s", wanted[i], text);
    cr_assert_not(strstr(text, "did not fit"));
    free(text);
    clock.iterations += 5;
    clock.long_laps = 3;
    clock.damaged = 2;
    clock.skipped = 9;
    text = printed(weir_kernel_clock_print, &clock);
    cr_assert(strstr(text, "5 of 7 iterations did not fit in the table"), "%s", text);
    cr_assert(strstr(text, "3 laps took more ticks than 32 bits"));
    cr_assert(strstr(text, "2 records are invalid"));
    cr_assert(strstr(text, "9 launches ran without clocks"));
    free(text);
    free(table);
}

/* Columns are left out in a fixed order, and each line fits. */
Test(kernel_clock, the_table_fits_the_width)
{
    static const struct {
        const char *columns, *heading;
    } widths[] = {
        {"80", "laps  last ticks    mean   min   max  share       mean ns\n"},
        {"60", "laps  last ticks    mean  share       mean ns\n"},
        {"50", "laps    mean  share       mean ns\n"},
        {"40", "laps    mean  share\n"},
    };
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 1);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        setenv("COLUMNS", widths[i].columns, 1);
        char *text = printed(weir_kernel_clock_print, &clock);
        cr_expect(strstr(text, widths[i].heading), "at %s columns:\n%s", widths[i].columns, text);
        cr_expect(strstr(text, "54.1%"), "%s", text);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            cr_expect_leq(strlen(line), (size_t)atoi(widths[i].columns), "%s", line);
        free(text);
    }
    free(table);
}

static void print_csv(FILE *out, const struct weir_kernel_clock *clock)
{
    weir_kernel_clock_csv_head(out);
    weir_kernel_clock_csv(out, clock);
}

Test(kernel_clock, csv)
{
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 1);
    snprintf(clock.name, sizeof clock.name, "k<1, \"x\">");
    char *text = printed(print_csv, &clock);
    cr_assert(strstr(text,
                     "\n\"k<1, \"\"x\"\">\",\"load\",2,4000,3000,2000.000,1000,3000,0.360360,1500.000,1000.000,500.000,"
                     "1500.000,4.200,1,1,2,0,20.000,50.000,32,,,\n"),
              "%s", text);
    int lines = 0, commas = 0, head = 0;
    for (const char *at = text; *at; at++) {
        lines += *at == '\n';
        head += *at == ',' && lines == 0;
        /* Counts the line of "store". In the line of "load", the kernel's name contains a comma. */
        commas += *at == ',' && lines == 3;
    }
    cr_assert_eq(lines, 4);
    cr_assert_eq(commas, head + 1, "%d and %d", commas, head);
    free(text);
    clock = of_table(table, bytes, 0, 1);
    text = printed(print_csv, &clock);
    cr_assert(strstr(text, "0.360360,,,,,,1,1,2"), "unknown values must be empty: %s", text);
    free(text);
    free(table);
}

static void print_json(FILE *out, const struct weir_kernel_clock *clock)
{
    struct weir_json json;
    weir_json_open(&json, out, false);
    weir_json_array(&json, NULL);
    weir_kernel_clock_json(&json, clock);
    weir_json_end(&json, ']');
    weir_json_close(&json);
}

Test(kernel_clock, json)
{
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 1);
    char *text = printed(print_json, &clock);
    cr_assert(strstr(text, "\"ticks_per_ns\":2,"), "%s", text);
    cr_assert(strstr(text, "\"stage\":\"compute\",\"laps\":2,\"ticks\":6000"), "%s", text);
    free(text);
    free(table);
}

/* Names can come from trace files, so they must be made printable. */
Test(kernel_clock, names_are_made_printable)
{
    char name[2 * WEIR_KERNEL_CLOCK_NAME];
    struct weir_kernel_clock clock;
    memset(name, 'n', sizeof name);
    name[3] = '\n';
    name[4] = '\x1b';
    name[sizeof name - 1] = '\0';
    const struct weir_kernel_clock_kernel kernel = {.name = name};
    weir_kernel_clock_init(&clock, &kernel);
    cr_assert_eq(strlen(clock.name), WEIR_KERNEL_CLOCK_NAME - 1);
    cr_assert_eq(strncmp(clock.name, "nnn??n", 6), 0, "%s", clock.name);
}

/* ---- plain buffers of ticks ---- */

static const int64_t plain_ticks[3][4] = {{1000, 3000, 0, -5}, {2000, 4000, 100, 0}, {500, 600, (int64_t)1 << 40, 700}};

static void print_plain_csv(FILE *out, const struct weir_kernel_clock *clock)
{
    const struct weir_kernel_clock_plain plain = {&plain_ticks[0][0], 4, 2};
    (void)clock;
    weir_kernel_clock_csv_plain(out, &clockfx_kernel, &plain);
}

Test(kernel_clock, plain_buffers)
{
    struct weir_kernel_clock clock;
    struct weir_kernel_clock_plain plain = {&plain_ticks[0][0], 4, 2};
    weir_kernel_clock_init(&clock, &clockfx_kernel);
    cr_assert_eq(weir_kernel_clock_add_plain(&clock, &plain), 0);
    cr_assert_eq(clock.launches, 1);
    cr_assert_eq(clock.iterations, 4);
    cr_assert_eq(clock.negative_laps, 1);
    cr_assert_eq(clock.long_laps, 1);
    cr_assert_eq(clock.stages[0].laps, 2);
    cr_assert_eq(clock.stages[0].ticks, 4000);
    cr_assert_eq(clock.stages[2].last_ticks, 700);
    cr_assert_eq(clock.stages[1].min_ticks, 100);
    cr_assert_float_eq(clock.stages[1].ns, 3050, 1e-9);
    cr_assert_eq(clock.lap_ticks, 4000 + 6100 + 1800);
    char *text = printed(weir_kernel_clock_print, &clock);
    cr_assert(strstr(text, "clocks inside a kernel: 1 plain buffer, 4 iterations\n"), "%s", text);
    cr_assert(strstr(text, "ticks as ns: 2.000 ticks per ns, as specified\n"), "%s", text);
    cr_assert(strstr(text, "1 laps are negative and are not counted"), "%s", text);
    cr_assert_not(strstr(text, "empty lap"), "%s", text);
    free(text);
    plain.ticks_per_ns = 0;
    cr_assert_eq(weir_kernel_clock_add_plain(&clock, &plain), 0);
    cr_assert_eq(clock.launches, 2);
    cr_assert_eq(clock.stages[0].laps, 4);
    cr_assert_eq(clock.stages[0].ns_laps, 2);
    weir_kernel_clock_init(&clock, &clockfx_kernel);
    cr_assert_eq(weir_kernel_clock_add_plain(&clock, &plain), 0);
    text = printed(weir_kernel_clock_print, &clock);
    cr_assert(strstr(text, "no ns: the tick rate was not specified\n"), "%s", text);
    free(text);
}

Test(kernel_clock, plain_buffers_by_iteration)
{
    char *text = printed(print_plain_csv, NULL);
    cr_assert(strstr(text, "\"a kernel\",\"load\",1,1000,1000,1000.000,1000,1000,0.285714,500.000,500.000,500.000,"
                           "500.000,,1,1,1,0,,,,0,0,0\n"),
              "%s", text);
    cr_assert(strstr(text, "\"a kernel\",\"load\",0,0,0,0.000,0,0,0.000000,,,,,,1,1,1,0,,,,0,0,2\n"), "%s", text);
    int lines = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    cr_assert_eq(lines, 4 * 3);
    free(text);
}

Test(kernel_clock, plain_buffers_that_cannot_be)
{
    size_t bytes;
    uint8_t *table = clockfx_table(1, &bytes);
    struct weir_kernel_clock clock = of_table(table, bytes, CLOCKFX_STEP_NS, 1);
    struct weir_kernel_clock_plain plain = {&plain_ticks[0][0], 4, 2};
    cr_assert_eq(weir_kernel_clock_add_plain(&clock, &plain), -EINVAL, "a kernel with a table must be refused");
    free(table);
    weir_kernel_clock_init(&clock, &clockfx_kernel);
    static const double rates[] = {-1, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        plain.ticks_per_ns = rates[i];
        cr_assert_eq(weir_kernel_clock_add_plain(&clock, &plain), -EINVAL);
    }
    plain = (struct weir_kernel_clock_plain){&plain_ticks[0][0], (size_t)UINT32_MAX + 1, 1};
    cr_assert_eq(weir_kernel_clock_add_plain(&clock, &plain), -EINVAL);
    plain.iterations = 0;
    cr_assert_eq(weir_kernel_clock_add_plain(&clock, &plain), 0);
    const struct weir_kernel_clock_kernel none = {.name = "none"};
    weir_kernel_clock_init(&clock, &none);
    cr_assert_eq(weir_kernel_clock_add_plain(&clock, &plain), -EINVAL, "a kernel without stages must be refused");
}
