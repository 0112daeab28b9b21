#include "analyze/gpu_idle/gpu_idle.h"
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/report/report_command.h"
#include "prof/gpu/gpu_trace.h"
#include "prof/trace/trace_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Figures computed from a trace. */
struct result {
    struct weir_trace *trace;
    struct weir_averages *averages;
    struct weir_step *steps;
    int64_t n_steps;
    struct weir_gpu_idle idle;
    struct weir_kernel_clocks clocks;
};

static void clear(struct result *r)
{
    if (r->averages)
        weir_averages_close(&r->averages);
    free(r->steps);
    weir_gpu_idle_clear(&r->idle);
    weir_kernel_clocks_clear(&r->clocks);
    weir_trace_free(&r->trace);
}

static int export(const struct result *r, const char *path, const struct weir_report_trace_config *config,
                  struct weir_err *err)
{
    int rc =
        config->export_stacks ? weir_stacks_export(r->trace, "self_cpu_time_total", config->export_stacks, err) : 0;
    if (rc == 0 && config->export_stacks && !r->trace->stacks)
        fprintf(stderr, "weir report: %s: recorded without stacks, so %s is empty; record it with --with-stack\n", path,
                config->export_stacks);
    if (rc == 0 && config->export_clocks)
        rc = weir_kernel_clocks_export(&r->clocks, r->trace, config->export_clocks, err);
    if (rc == 0 && config->export_clocks && r->clocks.n == 0)
        fprintf(stderr, "weir report: %s: has no kernels with clocks inside, so %s has a header but no rows\n", path,
                config->export_clocks);
    return rc;
}

static int compute(struct result *r, const char *path, const struct weir_report_trace_config *config,
                   struct weir_err *err)
{
    int rc = weir_trace_read(&r->trace, path, err);
    if (rc < 0)
        return rc;
    rc = weir_averages_open(&r->averages, r->trace, &config->by);
    if (rc == 0 && (r->n_steps = weir_steps_split(r->trace, &r->steps)) < 0)
        rc = (int)r->n_steps;
    if (rc == 0)
        rc = weir_gpu_idle_make(&r->idle, r->trace, r->steps, r->n_steps);
    if (rc == 0)
        rc = weir_kernel_clocks_make(&r->clocks, r->trace);
    return rc < 0 ? weir_err_set(err, rc, "%s: out of memory", path) : export(r, path, config, err);
}

/* ---- text ---- */

static void add_step(struct weir_step *sum, const struct weir_step *step)
{
    sum->end_ns += step->end_ns - step->start_ns;
    for (int part = 0; part < WEIR_STEP_PARTS; part++)
        sum->part_ns[part] += step->part_ns[part];
}

static void add_step_row(struct weir_table *table, const struct weir_step *step, int64_t n, const bool *shown)
{
    int64_t ns = step->end_ns - step->start_ns;
    weir_table_cell(table, "%.3fms", (double)ns / 1e6 / (double)n);
    for (int part = 0; part < WEIR_STEP_PARTS; part++)
        if (shown[part])
            weir_table_cell(table, "%.3fms %5.1f%%", (double)step->part_ns[part] / 1e6 / (double)n,
                            ns ? 100 * (double)step->part_ns[part] / (double)ns : 0);
}

/* Returns the priority of a part's column: the wait for data is always printed, then kernels are the most important,
 * then the longest parts, and Other last. */
static int priority_of(int part, const struct weir_step *sum)
{
    int longer = 0;
    if (part == WEIR_STEP_DATALOADER)
        return 0;
    for (int other = 0; other < WEIR_STEP_PARTS; other++)
        longer += sum->part_ns[other] > sum->part_ns[part];
    return part == WEIR_STEP_KERNEL ? 1 : part == WEIR_STEP_OTHER ? 2 + WEIR_STEP_PARTS : 2 + longer;
}

/* Fills in the columns of the parts that are shown. Returns the number of columns. */
static int plan_steps(struct weir_column *columns, const struct weir_step *sum, const bool *shown)
{
    int n = 0;
    columns[n++] = (struct weir_column){.heading = "step", .left = true, .width = 15};
    columns[n++] = (struct weir_column){.heading = "time"};
    for (int part = 0; part < WEIR_STEP_PARTS; part++)
        if (shown[part])
            columns[n++] = (struct weir_column){.heading = weir_step_part_name((enum weir_step_part)part),
                                                .priority = priority_of(part, sum)};
    return n;
}

/* Prints the table and, if columns do not fit, a line such as "2 more columns (CPU Exec, Other): --wide". */
static void print_table(FILE *out, struct weir_table *table)
{
    struct weir_wrap wrap;
    FILE *footer = weir_wrap_open(&wrap, out, 2, NULL);
    int n = 0;
    for (int i = 0; i < table->n_columns; i++)
        n += !weir_table_shows(table, out, i);
    if (n > 0)
        fprintf(footer, "%d more column%s (", n, n == 1 ? "" : "s");
    for (int i = 0, named = 0; i < table->n_columns; i++)
        if (!weir_table_shows(table, out, i))
            fprintf(footer, "%s%s", named++ ? ", " : "", table->columns[i].heading);
    if (n > 0)
        fputs("): --wide\n", footer);
    weir_table_print(out, table);
    weir_wrap_close(&wrap);
}

/* Prints one line per step and the mean. Omits parts that take no time in any step. */
static void print_steps(FILE *out, const struct result *r)
{
    struct weir_step sum = {0};
    struct weir_column columns[2 + WEIR_STEP_PARTS];
    struct weir_table table;
    bool shown[WEIR_STEP_PARTS] = {
        [WEIR_STEP_DATALOADER] = true, [WEIR_STEP_CPU_EXEC] = true, [WEIR_STEP_OTHER] = true};
    for (int64_t i = 0; i < r->n_steps; i++)
        add_step(&sum, &r->steps[i]);
    for (int part = 0; part < WEIR_STEP_PARTS; part++)
        shown[part] |= sum.part_ns[part] > 0;
    if (r->n_steps == 0) {
        fprintf(out, "no steps (ProfilerStep#N) in this trace\n");
        return;
    }
    weir_table_open(&table, columns, plan_steps(columns, &sum, shown));
    for (int64_t i = 0; i < r->n_steps; i++) {
        weir_table_cell(&table, "ProfilerStep#%" PRId64, r->steps[i].number);
        add_step_row(&table, &r->steps[i], 1, shown);
    }
    weir_table_cell(&table, "mean");
    add_step_row(&table, &sum, r->n_steps, shown);
    print_table(out, &table);
}

static void print_averages(FILE *out, const struct result *r, const struct weir_averages_table *table)
{
    size_t left_out = weir_averages_print(out, r->averages, table);
    if (r->averages->n_rows == 0)
        fprintf(out, "no operators, stages or kernels in this trace\n");
    else if (left_out > 0)
        fprintf(out, "%zu more rows: --row-limit -1\n", left_out);
    if (r->trace->forks)
        weir_wrap_print(out,
                        "jit.fork: an operator that waits for a fork can end on another thread, but the trace does not "
                        "record which operators did. torch shows no children and no self time for these operators. "
                        "This table treats them like all others.\n",
                        2, NULL);
}

static void add_step_parts(struct weir_document *document, const struct weir_step *step)
{
    weir_document_begin(document, NULL, '{');
    weir_document_fact(document, "number", step->number);
    weir_document_fact(document, "ns", step->end_ns - step->start_ns);
    weir_document_begin(document, "parts_ns", '{');
    for (int part = 0; part < WEIR_STEP_PARTS; part++)
        weir_document_fact(document, weir_step_part_name((enum weir_step_part)part), step->part_ns[part]);
    weir_document_end(document, '}');
    weir_document_end(document, '}');
}

/* Describes what the GPUs waited for, which is the result of the report, before the steps and the averages. */
static void describe(struct weir_document *document, const struct result *r, const struct weir_averages_table *table)
{
    FILE *out = weir_document_stream(document);
    weir_document_fact(document, "events", r->trace->n_events);
    weir_document_fact(document, "dropped", r->trace->dropped);
    weir_document_fact(document, "forks", (bool)r->trace->forks);
    weir_document_fact(document, "self_cpu_ns", r->averages->self_cpu_ns);
    weir_document_fact(document, "self_device_ns", r->averages->self_device_ns);
    if (out) {
        weir_gpu_idle_print(out, &r->idle);
        fputc('\n', out);
        print_steps(out, r);
        fputc('\n', out);
        print_averages(out, r, table);
        weir_kernel_clocks_print(out, &r->clocks);
    } else {
        weir_averages_json(document->json, "averages", r->averages, table);
        weir_document_begin(document, "steps", '[');
        for (int64_t i = 0; i < r->n_steps; i++)
            add_step_parts(document, &r->steps[i]);
        weir_document_end(document, ']');
        weir_gpu_idle_json(document->json, &r->idle);
        weir_kernel_clocks_json(document->json, &r->clocks);
    }
    if (r->trace->dropped)
        fprintf(weir_document_text(document, NULL, 0),
                "%" PRIu64 " events were dropped while recording, so they are missing from these figures\n",
                r->trace->dropped);
}

int weir_report_trace(struct weir_document *document, const char *path, const struct weir_report_trace_config *config,
                      bool title, struct weir_err *err)
{
    struct result r = {0};
    int rc = compute(&r, path, config, err);
    if (rc == 0) {
        weir_document_begin(document, NULL, '{');
        if (title || document->json)
            weir_document_path(document, "trace", "", path);
        describe(document, &r, &config->table);
        if (title)
            fputc('\n', weir_document_text(document, NULL, 0));
        weir_document_end(document, '}');
    }
    clear(&r);
    return rc;
}
