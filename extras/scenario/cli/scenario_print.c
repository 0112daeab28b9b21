#include "base/field_rows.h"
#include "base/terminal.h"
#include "extras/scenario/cli/scenario_cli.h"
#include "pipeline/gpu/gpu.h"
#include "weir/trace.h"

#include <string.h>

enum { TOP_ROWS = 12, FEW_STEPS = 3 };

static void full_name(const struct scenario_run *run, char name[32])
{
    snprintf(name, 32, "%s%s", weir_scenario_texts[run->kind].name, run->fix ? " --fix" : "");
}

/* ---- before the runs ---- */

void weir_scenario_print_warning(FILE *out, const struct scenario_options *o, bool cpu)
{
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    if (o->profile_steps < FEW_STEPS)
        fprintf(text, "warning: with --profile_steps %d, one disturbed step dominates the figures; use at least %d\n",
                o->profile_steps, FEW_STEPS);
    if (cpu && o->amp && o->pin_memory)
        fputs("--amp and --pin_memory are ignored: they are for a GPU\n", text);
    else if (cpu && (o->amp || o->pin_memory))
        fprintf(text, "--%s is ignored: it is for a GPU\n", o->amp ? "amp" : "pin_memory");
    weir_wrap_close(&wrap);
}

void weir_scenario_print_head(FILE *out, const struct scenario_run *run)
{
    const struct scenario_options *o = run->options;
    char name[32];
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    full_name(run, name);
    fprintf(text, "%s on %s: batches of %d in %s memory, %d workers", name,
            run->device ? weir_device_name(run->device) : "the CPU", o->batch_size,
            o->pin_memory ? "pinned" : "pageable", run->workers);
    if (run->workers > 0)
        fprintf(text, " that prefetch %d batches each%s", run->prefetch,
                o->persistent_workers ? " and persist across epochs" : "");
    fprintf(text, "; %s; %d steps, %d of them recorded\n", o->amp ? "float16 (--amp)" : "float32",
            o->warmup_steps + 2 + o->profile_steps, o->profile_steps);
    if (run->fix && run->kind == WEIR_SCENARIO_DATALOADER)
        fprintf(text,
                "--fix: %d workers instead of %d, because an item sleeps ten times as long as it computes and one "
                "core is kept "
                "free; prefetch %d instead of %d\n",
                run->workers, o->num_workers, run->prefetch, o->prefetch_factor);
    else if (run->fix)
        fprintf(text, "--fix: %s\n", weir_scenario_texts[run->kind].fix);
    if (run->workers == 0)
        fprintf(text, "no workers: the loop's thread makes the items; --prefetch_factor and --persistent_workers "
                      "have no effect\n");
    weir_wrap_close(&wrap);
}

/* ---- one run ---- */

static void print_operations(FILE *out, const struct scenario_run *run, struct scenario_result *result)
{
    static const struct weir_averages_config config = {0};
    const struct weir_averages_table table = {run->device ? "self_cuda_time_total" : "self_cpu_time_total", TOP_ROWS,
                                              false, NULL};
    struct weir_averages *averages;
    if (weir_averages_open(&averages, result->trace, &config) < 0)
        return;
    fprintf(out, run->device ? "\nTop CUDA operations, by self CUDA time:\n" : "\nTop operations, by self CPU time:\n");
    weir_averages_print(out, averages, &table);
    weir_averages_close(&averages);
}

static double share(const struct weir_idle_device *idle, int64_t ns)
{
    int64_t wall_ns = idle->end_ns - idle->begin_ns;
    return wall_ns > 0 ? 100 * (double)ns / (double)wall_ns : 0;
}

/* Prints the main cause of GPU idle time. If the scenario demonstrates a different cause, prints that one too. */
static void print_cause(FILE *out, const struct scenario_run *run, const struct weir_idle_device *idle)
{
    const struct scenario_text *text = &weir_scenario_texts[run->kind];
    enum weir_idle_cause largest = idle ? weir_gpu_idle_largest(idle) : WEIR_IDLE_NONE;
    if (!idle)
        fprintf(out, "The trace has no GPU activities, so the cause of idle time is unknown. weir doctor reports "
                     "whether CUPTI is available.\n");
    else if (largest == WEIR_IDLE_NONE)
        fprintf(out, "The GPU was never idle.\n");
    else
        fprintf(out, "First cause of GPU idle time: %s, %.1f %% of the time.\n", weir_idle_cause_name(largest),
                share(idle, idle->cause_ns[largest]));
    if (idle && largest != text->cause)
        fprintf(out, "%s (the cause that %s shows without --fix): %.1f %%.\n", weir_idle_cause_name(text->cause),
                text->name, share(idle, idle->cause_ns[text->cause]));
}

static void print_verdict(FILE *out, const struct scenario_run *run, const struct scenario_result *result)
{
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, 0, NULL);
    wrap.highlight = true;
    fprintf(text, "%s\n",
            result->wait_s > result->step_s
                ? "The data wait is longer than the step: prepare items faster (more workers, or less work per item)."
                : "The step is longer than the data wait: see the step's operators.");
    if (run->device)
        print_cause(text, run, weir_scenario_idle(result, run->device));
    weir_wrap_close(&wrap);
}

static double shown_calls(const struct scenario_result *result)
{
    return (double)result->shown_calls / result->steps;
}

static double shown_share(const struct scenario_result *result)
{
    return result->iteration_s > 0 ? 100 * result->shown_s / result->steps / result->iteration_s : 0;
}

/* The CPU has no GPU idle time, so this prints the ranges that show the cause there. */
static void print_shown(FILE *out, const struct scenario_run *run, const struct scenario_result *result)
{
    const char *range = weir_scenario_texts[run->kind].cpu_range;
    bool wait = run->kind == WEIR_SCENARIO_DATALOADER;
    fprintf(out, "\n%s: %.1f calls and %.3f ms per iteration, %.1f %% of it.\n",
            wait ? "enumerate(DataLoader)#WeirLoader.__next__" : range, shown_calls(result),
            1e3 * result->shown_s / result->steps, shown_share(result));
    fprintf(out, "The CPU has no GPU idle time: remove --device cpu if the machine has a GPU.\n");
}

static void print_reading(FILE *out, const struct scenario_run *run)
{
    const struct scenario_text *text = &weir_scenario_texts[run->kind];
    fprintf(out, "%s: %s.\n", text->name, text->shows);
    fprintf(out, "  How to read it%s: %s\n", run->device ? "" : " on a GPU", text->rule);
    if (!run->device)
        fprintf(out, "  On the CPU: %s\n", text->cpu_rule);
    fprintf(out, "  Remedy: %s --fix applies it here: %s.\n", text->remedy, text->fix);
}

static void print_statistics(FILE *out, const struct scenario_run *run, const struct scenario_result *result)
{
    double per_s = result->iteration_s > 0 ? 1 / result->iteration_s : 0;
    fprintf(out,
            "steps %d to %d: average iteration %.3f ms: step %.3f ms, data wait %.3f ms (%.1f %%); %.1f steps/s, %.0f "
            "images/s\n",
            result->first_step, result->first_step + result->steps - 1, 1e3 * result->iteration_s, 1e3 * result->step_s,
            1e3 * result->wait_s, 100 * result->wait_s * per_s, per_s, run->options->batch_size * per_s);
    fprintf(out, "network: %zu parameters, %s; loss %.6f after the last step", result->parameters, result->engine,
            result->loss);
    if (run->options->amp)
        fprintf(out, ", loss scale %g", result->loss_scale);
    fputc('\n', out);
}

void weir_scenario_print(FILE *out, const struct scenario_run *run, struct scenario_result *result)
{
    struct weir_wrap wrap;
    print_verdict(out, run, result);
    print_statistics(weir_wrap_open(&wrap, out, 2, NULL), run, result);
    weir_wrap_close(&wrap);
    print_operations(out, run, result);
    if (run->device) {
        fputc('\n', out);
        weir_gpu_idle_print(out, &result->idle);
    }
    FILE *text = weir_wrap_open(&wrap, out, 4, NULL);
    if (run->device)
        fputc('\n', text);
    else
        print_shown(text, run, result);
    print_reading(text, run);
    weir_wrap_close(&wrap);
    if (*result->trace_path)
        fprintf(out, "trace: %s\n", result->trace_path);
}

/* ---- several runs ---- */

void weir_scenario_print_line(FILE *out, const struct scenario_run *run, const struct scenario_result *result)
{
    char name[32];
    struct weir_wrap wrap;
    full_name(run, name);
    fprintf(weir_wrap_open(&wrap, out, 2, NULL),
            "%s: average iteration %.3f ms: step %.3f ms, data wait %.3f ms; loss %.6f%s%s\n", name,
            1e3 * result->iteration_s, 1e3 * result->step_s, 1e3 * result->wait_s, result->loss,
            *result->trace_path ? "; trace: " : "", result->trace_path);
    weir_wrap_close(&wrap);
    fflush(out);
}

/* A row of the table of several runs. Times are in ms. */
struct row {
    char name[32];
    double iteration, step, wait, share, per_step; /* share in percent; -1 = unknown */
    const char *shows, *remedy;
};

#define S             struct row
#define MS(text, ...) COLUMN(text, .suffix = "ms", .decimals = 3, __VA_ARGS__)
static const struct weir_field row_columns[] = {
    PLAIN(NULL, name, COLUMN("scenario", .left = true)),
    PLAIN(NULL, iteration, MS("iteration")),
    PLAIN(NULL, step, MS("step", .priority = 1)),
    PLAIN(NULL, wait, MS("data wait")),
    PLAIN(NULL, shows, COLUMN("first cause, idle", .left = true)),
    PLAIN(NULL, share, COLUMN("share", .suffix = "%", .decimals = 1)),
    PLAIN(NULL, per_step, COLUMN("kernels/step", .decimals = 1, .priority = 3)),
    PLAIN(NULL, remedy, COLUMN("remedy", .priority = 2, .left = true)),
};
static WEIR_FIELDS(row_fields, row_columns);
#undef S

static struct row row_of(const struct scenario_run *run, const struct scenario_result *result)
{
    const struct scenario_text *text = &weir_scenario_texts[run->kind];
    struct row row = {.iteration = 1e3 * result->iteration_s,
                      .step = 1e3 * result->step_s,
                      .wait = 1e3 * result->wait_s,
                      .share = shown_share(result),
                      .per_step = shown_calls(result),
                      .shows = run->kind == WEIR_SCENARIO_DATALOADER ? "08_wait_for_data" : text->cpu_range,
                      .remedy = text->fix};
    full_name(run, row.name);
    if (!run->device)
        return row;
    const struct weir_idle_device *idle = weir_scenario_idle(result, run->device);
    enum weir_idle_cause largest = idle ? weir_gpu_idle_largest(idle) : WEIR_IDLE_NONE;
    row.shows = weir_idle_cause_name(largest);
    row.share = largest == WEIR_IDLE_NONE ? -1 : share(idle, idle->cause_ns[largest]);
    row.per_step = idle && result->idle.n_steps > 0 ? (double)idle->step_kernels / (double)result->idle.n_steps : -1;
    return row;
}

void weir_scenario_print_table(FILE *out, const struct scenario_run *runs, const struct scenario_result *results, int n)
{
    struct weir_table table;
    struct weir_wrap wrap;
    weir_table_open_fields(&table, &row_fields);
    if (!runs[0].device) {
        table.own[0].heading = "scenario, on the CPU";
        table.own[4].heading = "shown by";
        table.own[6].heading = "calls/step";
    }
    for (int i = 0; i < n; i++) {
        struct row row = row_of(&runs[i], &results[i]);
        weir_table_row(&table, &row_fields, &row);
    }
    fputc('\n', out);
    weir_table_print(out, &table);
    fputc('\n', out);
    FILE *text = weir_wrap_open(&wrap, out, 4, NULL);
    for (int i = 0; i < n; i++)
        if (i == 0 || runs[i].kind != runs[i - 1].kind)
            print_reading(text, &runs[i]);
    weir_wrap_close(&wrap);
}

/* ---- after the runs ---- */

void weir_scenario_print_not_written(FILE *out, const struct scenario_options *o)
{
    struct weir_wrap wrap;
    if (o->trace_dir && o->output_json)
        return;
    fprintf(weir_wrap_open(&wrap, out, 2, ", "), "not written: %s%s%s\n",
            o->trace_dir ? "" : "the trace (--trace_dir results/traces/profiler_demo)",
            o->trace_dir || o->output_json ? "" : ", ",
            o->output_json ? "" : "the figures (--output_json results/metrics_demo.json)");
    weir_wrap_close(&wrap);
}
