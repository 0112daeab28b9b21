/* Prints clocks inside kernels as a table, as CSV and as JSON. */
#include "base/field_rows.h"
#include "base/terminal.h"
#include "base/text.h"
#include "weir/kernel_clock.h"

#include <inttypes.h>

static double mean(double sum, uint64_t n)
{
    return n ? sum / (double)n : 0;
}

/* ---- fields ---- */

/* Figures of a stage; -1 = unknown. */
struct stage_row {
    struct weir_kernel_clock_stage stage;
    double share, mean_ticks, mean_ns, mean_error_ns, last_ns, min_ns, max_ns;
};

static void row_fill(struct stage_row *row, const struct weir_kernel_clock *clock, uint32_t i)
{
    const struct weir_kernel_clock_stage *stage = &clock->stages[i];
    bool ns = stage->ns_laps > 0;
    *row = (struct stage_row){.stage = *stage,
                              .share = weir_kernel_clock_share(clock, i),
                              .mean_ticks = mean((double)stage->ticks, stage->laps),
                              .mean_ns = ns ? mean(stage->ns, stage->ns_laps) : -1,
                              .mean_error_ns = ns ? mean(stage->error_ns, stage->ns_laps) : -1,
                              .last_ns = stage->last_ns > 0 ? stage->last_ns : -1,
                              .min_ns = ns ? stage->min_ns : -1,
                              .max_ns = ns ? stage->max_ns : -1};
}

/* Prints a time and its error, such as "1234.5 +-0.2", or "-" if it is unknown. */
static void print_mean_ns(FILE *out, const void *object)
{
    const struct stage_row *row = object;
    if (row->mean_ns > 0)
        fprintf(out, "%.1f +-%.1f", row->mean_ns, row->mean_error_ns);
    else
        fputc('-', out);
}

#define S struct stage_row
static const struct weir_field stage_table[] = {
    PLAIN("stage", stage.name, COLUMN("stage", .left = true, .width = 24, .shrink_to = 12)),
    PLAIN("laps", stage.laps, COLUMN("laps")),
    PLAIN("ticks", stage.ticks),
    PLAIN("last_ticks", stage.last_ticks, COLUMN("last ticks", .priority = 2)),
    PLAIN(NULL, mean_ticks, COLUMN("mean", .decimals = 1)),
    PLAIN("min_ticks", stage.min_ticks, COLUMN("min", .priority = 3)),
    PLAIN("max_ticks", stage.max_ticks, COLUMN("max", .priority = 3)),
    PLAIN("share", share, PERCENT("share", 1)),
    KNOWN("mean_ns", mean_ns, COLUMN("mean ns", .priority = 1, .print = print_mean_ns)),
    KNOWN("mean_error_ns", mean_error_ns),
    KNOWN("last_ns", last_ns),
    KNOWN("min_ns", min_ns),
    KNOWN("max_ns", max_ns),
};
static WEIR_FIELDS(stage_fields, stage_table);
#undef S

/* ---- table ---- */

static void print_stages(FILE *out, const struct weir_kernel_clock *clock)
{
    struct stage_row rows[WEIR_KERNEL_CLOCK_STAGES_MAX];
    for (uint32_t i = 0; i < clock->n_stages; i++)
        row_fill(&rows[i], clock, i);
    weir_table_print_fields(out, &stage_fields, rows, (int)clock->n_stages, sizeof *rows, NULL);
}

static void print_head(FILE *out, const struct weir_kernel_clock *clock)
{
    const char *plural = clock->launches == 1 ? "" : clock->plain ? "s" : "es";
    fprintf(out, "clocks inside %s: %" PRIu64 " %s%s, ", clock->name, clock->launches,
            clock->plain ? "plain buffer" : "launch", plural);
    if (!clock->plain && clock->blocks <= clock->launches)
        fprintf(out, "1 block of %" PRIu64 " each, ", clock->grid);
    else if (!clock->plain)
        fprintf(out, "%.1f blocks of %" PRIu64 " each, ", mean((double)clock->blocks, clock->launches), clock->grid);
    fprintf(out, "%" PRIu64 " iterations\n", clock->rows);
}

static void print_rate(FILE *out, const struct weir_kernel_clock *clock)
{
    if (clock->plain && clock->span_ns > 0)
        fprintf(out, "ticks as ns: %.3f ticks per ns, as specified\n", (double)clock->timed_ticks / clock->span_ns);
    else if (clock->plain)
        fprintf(out, "no ns: the tick rate was not specified\n");
    else if (clock->span_ns > 0)
        fprintf(out,
                "ticks as ns: %.3f ticks per ns within %.3g %% (%.3f to %.3f, block by block), measured with clock64 "
                "and %%globaltimer "
                "at each block's start and end; %%globaltimer advances in steps of %.0f ns\n",
                (double)clock->timed_ticks / clock->span_ns, 100 * clock->span_error_ns / clock->span_ns,
                clock->min_rate, clock->max_rate, clock->step_ns);
    else if (clock->step_ns > 0)
        fprintf(out, "no ns: the blocks are too short for %%globaltimer, which advances in steps of %.0f ns\n",
                clock->step_ns);
    else
        fprintf(out, "no ns: the step of %%globaltimer is unknown\n");
}

static void print_cost(FILE *out, const struct weir_kernel_clock *clock)
{
    double lap = mean((double)clock->warp_lap_ticks, clock->blocks);
    fprintf(out, "an empty lap takes %.1f ticks in a warp and %.1f in a block, with its barrier; ", lap,
            mean((double)clock->block_lap_ticks, clock->blocks));
    fprintf(out, "%" PRIu64 " such laps in a warp take %.1f %% of the blocks' time\n", clock->laps,
            clock->span_ticks ? 100 * (double)clock->laps * lap / (double)clock->span_ticks : 0);
}

/* Compares the sum of the stages with the time of the blocks and of the kernel. */
static void print_cover(FILE *out, const struct weir_kernel_clock *clock)
{
    double laps_ns = 0;
    if (clock->span_ticks == 0)
        return;
    for (uint32_t i = 0; i < clock->n_stages; i++)
        laps_ns += clock->stages[i].ns;
    fprintf(out, "the laps cover %.1f %% of the blocks' time",
            100 * (double)clock->lap_ticks / (double)clock->span_ticks);
    if (clock->timed_blocks > 0)
        fprintf(out, ": %.1f of %.1f ns per block", mean(laps_ns, clock->timed_blocks),
                mean(clock->span_ns, clock->timed_blocks));
    if (clock->kernels > 0)
        fprintf(out, "; CUPTI measures %.1f ns for the kernel", mean(clock->kernels_ns, clock->kernels));
    fputc('\n', out);
}

static void print_missing(FILE *out, const struct weir_kernel_clock *clock)
{
    if (clock->iterations > clock->rows)
        fprintf(out, "%" PRIu64 " of %" PRIu64 " iterations did not fit in the table and are not counted\n",
                clock->iterations - clock->rows, clock->iterations);
    if (clock->long_laps > 0)
        fprintf(out, "%" PRIu64 " laps took more ticks than 32 bits can hold and are not counted\n", clock->long_laps);
    if (clock->negative_laps > 0)
        fprintf(out,
                "%" PRIu64
                " laps are negative and are not counted; the buffer must contain differences between readings\n",
                clock->negative_laps);
    if (clock->damaged > 0)
        fprintf(out, "%" PRIu64 " records are invalid (their blocks moved to another SM or did not finish)\n",
                clock->damaged);
    if (clock->skipped > 0)
        fprintf(out, "%" PRIu64 " launches ran without clocks because all tables were in use: record fewer steps\n",
                clock->skipped);
}

void weir_kernel_clock_print(FILE *out, const struct weir_kernel_clock *clock)
{
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    print_head(text, clock);
    weir_wrap_close(&wrap);
    print_stages(out, clock);
    text = weir_wrap_open(&wrap, out, 2, NULL);
    print_rate(text, clock);
    if (!clock->plain) {
        print_cost(text, clock);
        print_cover(text, clock);
    }
    print_missing(text, clock);
    weir_wrap_close(&wrap);
}

/* ---- CSV ---- */

/* Prints an empty field if ns is 0, which means unknown. */
static void csv_ns(FILE *out, double ns)
{
    if (ns > 0)
        fprintf(out, "%.3f", ns);
    fputc(',', out);
}

void weir_kernel_clock_csv_head(FILE *out)
{
    fputs("kernel,stage,laps,ticks,last_ticks,mean_ticks,min_ticks,max_ticks,share,last_ns,mean_ns,min_ns,max_ns,"
          "mean_error_ns,launches,blocks,iterations,iterations_without_row,empty_warp_lap_ticks,"
          "empty_block_lap_ticks,globaltimer_step_ns,launch,block,iteration\n",
          out);
}

/* where: the last three fields, which are launch, block and iteration. */
static void csv_rows(FILE *out, const struct weir_kernel_clock *clock, const char *where)
{
    for (uint32_t i = 0; i < clock->n_stages; i++) {
        const struct weir_kernel_clock_stage *stage = &clock->stages[i];
        weir_text_csv(out, clock->name);
        putc(',', out);
        weir_text_csv(out, stage->name);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.3f,%" PRIu64 ",%" PRIu64 ",%.6f,", stage->laps,
                stage->ticks, stage->last_ticks, mean((double)stage->ticks, stage->laps), stage->min_ticks,
                stage->max_ticks, weir_kernel_clock_share(clock, i));
        csv_ns(out, stage->last_ns);
        csv_ns(out, mean(stage->ns, stage->ns_laps));
        csv_ns(out, stage->min_ns);
        csv_ns(out, stage->max_ns);
        csv_ns(out, mean(stage->error_ns, stage->ns_laps));
        fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", clock->launches, clock->blocks,
                clock->iterations, clock->iterations - clock->rows);
        if (clock->plain)
            fprintf(out, ",,,%s\n", where);
        else
            fprintf(out, "%.3f,%.3f,%.0f,%s\n", mean((double)clock->warp_lap_ticks, clock->blocks),
                    mean((double)clock->block_lap_ticks, clock->blocks), clock->step_ns, where);
    }
}

void weir_kernel_clock_csv(FILE *out, const struct weir_kernel_clock *clock)
{
    csv_rows(out, clock, ",,");
}

void weir_kernel_clock_csv_iteration(FILE *out, const struct weir_kernel_clock *clock,
                                     const struct weir_kernel_clock_block *block, uint64_t iteration)
{
    char where[64];
    struct weir_kernel_clock one = *clock;
    snprintf(where, sizeof where, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, block->launch, block->block, iteration);
    one.launches = one.blocks = one.iterations = one.rows = 1;
    one.warp_lap_ticks = block->warp_lap_ticks;
    one.block_lap_ticks = block->block_lap_ticks;
    one.step_ns = block->step_ns;
    csv_rows(out, &one, where);
}

/* ---- JSON ---- */

/* The figures that are not members of the clock; -1 = unknown. */
struct clock_row {
    struct weir_kernel_clock clock;
    uint64_t without_row;
    double ticks_per_ns, ns_error, warp_lap, block_lap, kernel_ns;
    int n_stages;
    struct stage_row stages[WEIR_KERNEL_CLOCK_STAGES_MAX];
};

#define S struct clock_row
static const struct weir_field clock_table[] = {
    PLAIN("kernel", clock.name),
    PLAIN("launches", clock.launches),
    PLAIN("blocks", clock.blocks),
    PLAIN("grid_blocks", clock.grid),
    PLAIN("iterations", clock.iterations),
    PLAIN("iterations_without_row", without_row),
    PLAIN("long_laps", clock.long_laps),
    PLAIN("damaged_records", clock.damaged),
    PLAIN("launches_without_clocks", clock.skipped),
    POSITIVE("globaltimer_step_ns", clock.step_ns),
    KNOWN("ticks_per_ns", ticks_per_ns),
    KNOWN("ns_error", ns_error),
    KNOWN("empty_warp_lap_ticks", warp_lap),
    KNOWN("empty_block_lap_ticks", block_lap),
    PLAIN("laps", clock.laps),
    PLAIN("lap_ticks", clock.lap_ticks),
    PLAIN("block_ticks", clock.span_ticks),
    KNOWN("kernel_ns", kernel_ns),
    ARRAY("stages", stage_fields, stages, n_stages),
};
static WEIR_FIELDS(clock_fields, clock_table);
#undef S

void weir_kernel_clock_json(struct weir_json *json, const struct weir_kernel_clock *clock)
{
    bool ns = clock->span_ns > 0;
    struct clock_row row = {
        .clock = *clock,
        .without_row = clock->iterations - clock->rows,
        .ticks_per_ns = ns ? (double)clock->timed_ticks / clock->span_ns : -1,
        .ns_error = ns ? clock->span_error_ns / clock->span_ns : -1,
        .warp_lap = clock->plain ? -1 : mean((double)clock->warp_lap_ticks, clock->blocks),
        .block_lap = clock->plain ? -1 : mean((double)clock->block_lap_ticks, clock->blocks),
        .kernel_ns = clock->kernels ? mean(clock->kernels_ns, clock->kernels) : -1,
        .n_stages = (int)clock->n_stages,
    };
    for (uint32_t i = 0; i < clock->n_stages; i++)
        row_fill(&row.stages[i], clock, i);
    weir_fields_object(json, NULL, &clock_fields, &row);
}
