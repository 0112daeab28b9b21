/* Reads a kernel's clock table and adds up its laps. */
#include "weir/kernel_clock.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

size_t weir_kernel_clock_bytes(const struct weir_kernel_clock_kernel *kernel, uint32_t blocks)
{
    return blocks * weir_kernel_clock_record_bytes(kernel->n_stages, kernel->rows_max);
}

uint64_t weir_kernel_clock_step(const uint64_t *readings, size_t n)
{
    uint64_t step = 0;
    for (size_t i = 1; i < n; i++) {
        if (readings[i] < readings[i - 1])
            return 0;
        uint64_t difference = readings[i] - readings[i - 1];
        if (difference > 0 && (step == 0 || difference < step))
            step = difference;
    }
    return step;
}

/* ---- reading ---- */

void weir_kernel_clock_row(const struct weir_kernel_clock_block *block, uint32_t i,
                           uint32_t to[1 + WEIR_KERNEL_CLOCK_STAGES_MAX])
{
    size_t bytes = (1 + (size_t)block->n_stages) * sizeof *to;
    memcpy(to, block->row_at + i * bytes, bytes);
}

/* Checks that each row begins no earlier than the previous one ended, and that the last row ends within the block's
 * span. This holds for every block that stayed on its SM. A saturated value (UINT32_MAX) counts as 0, because its real
 * value is unknown. */
static bool rows_make_sense(const struct weir_kernel_clock_block *block)
{
    uint32_t row[1 + WEIR_KERNEL_CLOCK_STAGES_MAX];
    uint64_t end = 0;
    for (uint32_t i = 0; i < block->rows && end <= block->ticks; i++) {
        weir_kernel_clock_row(block, i, row);
        end = weir_kernel_clock_row_begin(row, end);
        for (uint32_t stage = 1; stage <= block->n_stages; stage++)
            end += row[stage] < UINT32_MAX ? row[stage] : 0;
    }
    return end <= block->ticks;
}

/* Sets the duration of the block's span and its error bound. Leaves them 0 if the step of %globaltimer is unknown or
 * the span is too short for it. */
static void time_span(struct weir_kernel_clock_block *block, const struct weir_kernel_clock_record *head)
{
    double ns = (double)(head->end_ns - head->begin_ns);
    double gaps = ((double)head->begin_gap_ticks + (double)head->end_gap_ticks) / 2;
    double error_ns = block->step_ns + gaps * ns / (double)block->ticks;
    if (block->step_ns <= 0 || ns < 2 * error_ns || ns > 1e18) /* 1e18 ns are about 30 years */
        return;
    block->ns = ns;
    block->error_ns = error_ns;
}

static bool is_of_kernel(const struct weir_kernel_clock_record *head, const struct weir_kernel_clock_kernel *kernel,
                         uint64_t index)
{
    return head->magic == WEIR_KERNEL_CLOCK_MAGIC && head->stages == kernel->n_stages &&
           head->rows_max == kernel->rows_max && head->block == index && head->grid > index;
}

/* Converts a record to a block. Returns false if the record is inconsistent. */
static bool read_record(struct weir_kernel_clock_block *block, const struct weir_kernel_clock_record *head,
                        const uint8_t *rows, uint64_t step_ns)
{
    if (head->end_ticks <= head->begin_ticks ||
        head->end_ns < head->begin_ns) /* the end is 0 if the block never finished */
        return false;
    *block = (struct weir_kernel_clock_block){
        .block = head->block,
        .grid = head->grid,
        .launch = head->launch,
        .sm = head->sm,
        .threads = head->threads,
        .iterations = head->iterations,
        .rows = head->iterations < head->rows_max ? head->iterations : head->rows_max,
        .n_stages = head->stages,
        .ticks = head->end_ticks - head->begin_ticks,
        .begin_ns = head->begin_ns,
        .step_ns = (double)step_ns,
        .warp_lap_ticks = head->warp_lap_ticks,
        .block_lap_ticks = head->block_lap_ticks,
        .laps = head->laps,
        .row_at = rows,
    };
    if (!rows_make_sense(block))
        return false;
    time_span(block, head);
    return true;
}

uint64_t weir_kernel_clock_each(const struct weir_kernel_clock_kernel *kernel, const void *bytes, size_t size,
                                uint32_t launch, uint64_t step_ns,
                                void (*on_block)(void *user, const struct weir_kernel_clock_block *block), void *user,
                                uint64_t *damaged)
{
    uint64_t blocks = 0, bad = 0;
    size_t record = weir_kernel_clock_record_bytes(kernel->n_stages, kernel->rows_max);
    bool possible = kernel->n_stages >= 1 && kernel->n_stages <= WEIR_KERNEL_CLOCK_STAGES_MAX &&
                    kernel->rows_max >= 1 && kernel->rows_max <= WEIR_KERNEL_CLOCK_ROWS_MAX;
    for (size_t i = 0; possible && i < size / record; i++) {
        const uint8_t *at = (const uint8_t *)bytes + i * record;
        struct weir_kernel_clock_record head;
        struct weir_kernel_clock_block block;
        memcpy(&head, at, sizeof head);
        if (head.launch != launch)
            continue;
        if (!is_of_kernel(&head, kernel, i) || !read_record(&block, &head, at + sizeof head, step_ns)) {
            bad++;
            continue;
        }
        blocks++;
        on_block(user, &block);
    }
    if (damaged)
        *damaged = bad;
    return blocks;
}

/* ---- sums ---- */

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
    weir_text_printable(to);
}

void weir_kernel_clock_init(struct weir_kernel_clock *clock, const struct weir_kernel_clock_kernel *kernel)
{
    uint32_t n = kernel->n_stages < WEIR_KERNEL_CLOCK_STAGES_MAX ? kernel->n_stages : WEIR_KERNEL_CLOCK_STAGES_MAX;
    *clock = (struct weir_kernel_clock){.n_stages = n, .rows_max = kernel->rows_max};
    copy_text(clock->name, sizeof clock->name, kernel->name);
    for (uint32_t i = 0; i < n; i++)
        copy_text(clock->stages[i].name, sizeof clock->stages[i].name, kernel->stages[i]);
}

/* Saturates, because a damaged or malicious trace can contain any numbers. */
static void add(uint64_t *to, uint64_t value)
{
    if (__builtin_add_overflow(*to, value, to))
        *to = UINT64_MAX;
}

static void add_lap(struct weir_kernel_clock *clock, struct weir_kernel_clock_stage *stage,
                    const struct weir_kernel_clock_block *block, uint32_t ticks)
{
    if (ticks == 0) /* the iteration has no lap of this stage */
        return;
    if (ticks == UINT32_MAX) {
        add(&clock->long_laps, 1);
        return;
    }
    bool first = stage->laps == 0, first_ns = stage->ns_laps == 0;
    add(&stage->laps, 1);
    add(&stage->ticks, ticks);
    add(&clock->lap_ticks, ticks);
    if (block->block == 0)
        stage->last_ticks = ticks;
    stage->min_ticks = first || ticks < stage->min_ticks ? ticks : stage->min_ticks;
    stage->max_ticks = ticks > stage->max_ticks ? ticks : stage->max_ticks;
    if (block->block == 0)
        stage->last_ns = 0;
    if (block->ns <= 0)
        return;
    double ns = ticks * block->ns / (double)block->ticks;
    if (block->block == 0)
        stage->last_ns = ns;
    add(&stage->ns_laps, 1);
    stage->ns += ns;
    stage->error_ns += ns * block->error_ns / block->ns;
    stage->min_ns = first_ns || ns < stage->min_ns ? ns : stage->min_ns;
    stage->max_ns = ns > stage->max_ns ? ns : stage->max_ns;
}

static void add_rate(struct weir_kernel_clock *clock, const struct weir_kernel_clock_block *block)
{
    double rate = (double)block->ticks / block->ns;
    bool first = clock->timed_blocks == 0;
    add(&clock->timed_blocks, 1);
    add(&clock->timed_ticks, block->ticks);
    clock->span_ns += block->ns;
    clock->span_error_ns += block->error_ns;
    clock->min_rate = first || rate < clock->min_rate ? rate : clock->min_rate;
    clock->max_rate = first || rate > clock->max_rate ? rate : clock->max_rate;
}

static void add_rows(struct weir_kernel_clock *clock, const struct weir_kernel_clock_block *block)
{
    uint32_t row[1 + WEIR_KERNEL_CLOCK_STAGES_MAX];
    uint32_t n = block->n_stages < clock->n_stages ? block->n_stages : clock->n_stages;
    for (uint32_t i = 0; i < block->rows; i++) {
        weir_kernel_clock_row(block, i, row);
        for (uint32_t stage = 0; stage < n; stage++)
            add_lap(clock, &clock->stages[stage], block, row[1 + stage]);
    }
}

void weir_kernel_clock_add_block(struct weir_kernel_clock *clock, const struct weir_kernel_clock_block *block)
{
    bool new_launch = clock->blocks == 0 || clock->last_launch != block->launch;
    clock->last_launch = block->launch;
    add(&clock->launches, new_launch);
    add(&clock->blocks, 1);
    clock->grid = block->grid > clock->grid ? block->grid : clock->grid;
    add(&clock->iterations, block->iterations);
    add(&clock->rows, block->rows);
    add(&clock->span_ticks, block->ticks);
    add(&clock->warp_lap_ticks, block->warp_lap_ticks);
    add(&clock->block_lap_ticks, block->block_lap_ticks);
    add(&clock->laps, block->laps);
    clock->step_ns = block->step_ns > clock->step_ns ? block->step_ns : clock->step_ns;
    if (block->ns > 0 && block->ticks > 0)
        add_rate(clock, block);
    if (new_launch && block->kernel_ns > 0) {
        clock->kernels++;
        clock->kernels_ns += block->kernel_ns;
    }
    if (block->row_at)
        add_rows(clock, block);
}

static void on_block(void *user, const struct weir_kernel_clock_block *block)
{
    weir_kernel_clock_add_block(user, block);
}

uint64_t weir_kernel_clock_add(struct weir_kernel_clock *clock, const void *table, size_t size, uint32_t launch,
                               uint64_t step_ns)
{
    const char *names[WEIR_KERNEL_CLOCK_STAGES_MAX] = {0};
    uint64_t damaged = 0;
    const struct weir_kernel_clock_kernel kernel = {clock->name, names, clock->n_stages, clock->rows_max};
    uint64_t blocks = weir_kernel_clock_each(&kernel, table, size, launch, step_ns, on_block, clock, &damaged);
    add(&clock->damaged, damaged);
    return blocks;
}

bool weir_kernel_clock_add_lap(struct weir_kernel_clock *clock, const struct weir_kernel_clock_block *block,
                               const char *stage, uint32_t ticks)
{
    uint32_t i = 0;
    while (i < clock->n_stages && strncmp(clock->stages[i].name, stage, sizeof clock->stages[i].name - 1) != 0)
        i++;
    if (i == WEIR_KERNEL_CLOCK_STAGES_MAX)
        return false;
    if (i == clock->n_stages)
        copy_text(clock->stages[clock->n_stages++].name, sizeof clock->stages[i].name, stage);
    add_lap(clock, &clock->stages[i], block, ticks);
    return true;
}

/* ---- plain buffers ---- */

static bool plain_fits(const struct weir_kernel_clock_plain *plain)
{
    return plain->iterations <= UINT32_MAX && plain->ticks_per_ns >= 0 && plain->ticks_per_ns < 1e9;
}

/* Converts the ticks of a lap, which can be any number, to a row value. Negative laps become 0. */
static uint32_t row_ticks(int64_t ticks)
{
    return ticks <= 0 ? 0 : ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}

/* Converts a plain buffer to a block whose span is the sum of its laps. Adds the number of negative laps to *negative.
 */
static struct weir_kernel_clock_block plain_block(const struct weir_kernel_clock_plain *plain, uint32_t n_stages,
                                                  uint64_t *negative)
{
    struct weir_kernel_clock_block block = {
        .iterations = plain->iterations, .rows = (uint32_t)plain->iterations, .n_stages = n_stages};
    uint64_t laps = 0;
    for (size_t i = 0; i < n_stages * plain->iterations; i++) {
        uint32_t ticks = row_ticks(plain->ticks[i]);
        *negative += plain->ticks[i] < 0;
        laps += ticks > 0 && ticks < UINT32_MAX;
        add(&block.ticks, ticks < UINT32_MAX ? ticks : 0);
    }
    block.laps = laps < UINT32_MAX ? (uint32_t)laps : UINT32_MAX;
    block.ns = plain->ticks_per_ns > 0 ? (double)block.ticks / plain->ticks_per_ns : 0;
    return block;
}

int weir_kernel_clock_add_plain(struct weir_kernel_clock *clock, const struct weir_kernel_clock_plain *plain)
{
    uint64_t negative = 0;
    if (!plain_fits(plain) || clock->n_stages == 0 || (clock->blocks > 0 && !clock->plain))
        return -EINVAL;
    clock->plain = true;
    struct weir_kernel_clock_block block = plain_block(plain, clock->n_stages, &negative);
    block.launch = clock->launches + 1;
    weir_kernel_clock_add_block(clock, &block);
    add(&clock->negative_laps, negative);
    for (uint32_t stage = 0; stage < clock->n_stages; stage++)
        for (size_t i = 0; i < plain->iterations; i++)
            add_lap(clock, &clock->stages[stage], &block, row_ticks(plain->ticks[stage * plain->iterations + i]));
    return 0;
}

void weir_kernel_clock_csv_plain(FILE *out, const struct weir_kernel_clock_kernel *kernel,
                                 const struct weir_kernel_clock_plain *plain)
{
    uint64_t negative;
    struct weir_kernel_clock one;
    if (!plain_fits(plain))
        return;
    weir_kernel_clock_init(&one, kernel);
    struct weir_kernel_clock_block block = plain_block(plain, one.n_stages, &negative);
    for (size_t i = 0; i < plain->iterations; i++) {
        weir_kernel_clock_init(&one, kernel);
        one.plain = true;
        for (uint32_t stage = 0; stage < one.n_stages; stage++)
            add_lap(&one, &one.stages[stage], &block, row_ticks(plain->ticks[stage * plain->iterations + i]));
        weir_kernel_clock_csv_iteration(out, &one, &block, i);
    }
}

double weir_kernel_clock_share(const struct weir_kernel_clock *clock, uint32_t stage)
{
    return clock->lap_ticks ? (double)clock->stages[stage].ticks / (double)clock->lap_ticks : 0;
}
