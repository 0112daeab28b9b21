/* Prints GPU idle time as a table and as JSON. */
#include "analyze/gpu_idle/gpu_idle.h"

#include "base/table.h"
#include "base/terminal.h"

#include <inttypes.h>

static const char *const names[WEIR_IDLE_NONE] = {
    [WEIR_IDLE_LAUNCHING] = "launching",        [WEIR_IDLE_SYNC] = "synchronising",
    [WEIR_IDLE_DATA] = "waiting for data",      [WEIR_IDLE_ALLOCATING] = "allocating",
    [WEIR_IDLE_QUEUED] = "between queued work", [WEIR_IDLE_OTHER] = "other host code",
    [WEIR_IDLE_MEASUREMENT] = "measurement",    [WEIR_IDLE_COPIES] = "copies alone",
};

static const char *const advice[WEIR_IDLE_NONE] = {
    [WEIR_IDLE_LAUNCHING] = "launch-bound: the GPU waits for launches. Use fewer launches: CUDA graphs, fused kernels, "
                            "torch.compile, a larger batch",
    [WEIR_IDLE_SYNC] =
        "sync-bound: synchronising calls leave the GPU without work. Move read-backs such as .item(), .cpu() "
        "and print out of the step, or do them only every few steps",
    [WEIR_IDLE_DATA] = "data-bound: the GPU waits for batches. Use more workers, or see the verdict of weir run",
    [WEIR_IDLE_ALLOCATING] =
        "allocation-bound: the GPU waits for allocations. Reuse buffers between steps, or allocate "
        "them from a caching pool",
    [WEIR_IDLE_QUEUED] = "the GPU's own time between queued kernels is the largest part. Use fewer and longer kernels: "
                         "fused kernels, CUDA graphs, a larger batch",
    [WEIR_IDLE_OTHER] = "the GPU waits for host code that launches nothing. A CPU profile (--with-stack) shows which "
                        "code this is; move it out of the step",
    [WEIR_IDLE_COPIES] =
        "copies that no kernel overlaps are the largest part. Use pinned memory and non_blocking copies "
        "on a separate stream, so that they overlap with kernels",
};

const char *weir_idle_cause_name(enum weir_idle_cause cause)
{
    return cause < WEIR_IDLE_NONE ? names[cause] : "none";
}

static double part(int64_t ns, int64_t of_ns)
{
    return of_ns > 0 ? 100 * (double)ns / (double)of_ns : 0;
}

/* Adds one row. If gaps is negative, its column has a dash. */
static void add_row(struct weir_table *table, const struct weir_gpu_idle *idle, const struct weir_idle_device *device,
                    const char *name, int64_t ns, int64_t gaps)
{
    weir_table_cell(table, "%s", name);
    weir_table_cell(table, "%.3fms %5.1f%%", (double)ns / 1e6, part(ns, device->end_ns - device->begin_ns));
    if (idle->n_steps > 0)
        weir_table_cell(table, "%.3fms", (double)ns / 1e6 / (double)idle->n_steps);
    if (gaps >= 0)
        weir_table_cell(table, "%" PRId64, gaps);
    else
        weir_table_cell(table, "-");
}

static void print_causes(FILE *out, const struct weir_gpu_idle *idle, const struct weir_idle_device *device)
{
    static const struct weir_column with_steps[] = {{"idle time by cause", .left = true, .width = 24},
                                                    {"time", .width = 19},
                                                    {"a step", .width = 12},
                                                    {"gaps", .width = 8}};
    static const struct weir_column without[] = {
        {"idle time by cause", .left = true, .width = 24}, {"time", .width = 19}, {"gaps", .width = 8}};
    struct weir_table table;
    weir_table_open(&table, idle->n_steps > 0 ? with_steps : without, idle->n_steps > 0 ? 4 : 3);
    for (int cause = 0; cause < WEIR_IDLE_CAUSES; cause++)
        if (cause < WEIR_IDLE_QUEUED || device->cause_ns[cause] > 0)
            add_row(&table, idle, device, names[cause], device->cause_ns[cause], (int64_t)device->cause_gaps[cause]);
    add_row(&table, idle, device, "(busy) copies alone", device->copies_alone_ns, -1);
    weir_table_print(out, &table);
}

static void print_launches(FILE *out, const struct weir_gpu_idle *idle, const struct weir_idle_device *device)
{
    if (idle->n_steps > 0)
        fprintf(out, "kernels per step: %.1f; ", (double)device->step_kernels / (double)idle->n_steps);
    else
        fprintf(out, "kernels: %" PRIu64 "; ", device->kernels);
    if (device->launches == 0)
        fprintf(out, "no launch into an empty queue\n");
    else
        fprintf(out, "launch delay: p50 %.1fus, p99 %.1fus (%" PRIu64 " launches into an empty queue)\n",
                (double)device->delay_p50_ns / 1e3, (double)device->delay_p99_ns / 1e3, device->launches);
}

/* Prints the GPU's block: what limits it, then the table. */
static void print_device(FILE *out, const struct weir_gpu_idle *idle, const struct weir_idle_device *device)
{
    int64_t wall_ns = device->end_ns - device->begin_ns;
    enum weir_idle_cause first = weir_gpu_idle_first(device);
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    wrap.highlight = true;
    fprintf(text, "GPU %" PRId64 ": busy %.1f%%, idle %.1f%% of %.3fms\n", device->device,
            part(device->busy_ns, wall_ns), part(device->idle_ns, wall_ns), (double)wall_ns / 1e6);
    fprintf(text, "%s\n", first == WEIR_IDLE_NONE ? "no cause takes 5 % of the time" : advice[first]);
    weir_wrap_close(&wrap);
    print_causes(out, idle, device);
    text = weir_wrap_open(&wrap, out, 2, NULL);
    print_launches(text, idle, device);
    weir_wrap_close(&wrap);
}

void weir_gpu_idle_print(FILE *out, const struct weir_gpu_idle *idle)
{
    if (idle->n_devices == 0)
        weir_wrap_print(out, "no GPU idle time: this trace contains no kernels, copies or memsets of a GPU\n", 2, NULL);
    for (int i = 0; i < idle->n_devices; i++) {
        if (i > 0)
            fputc('\n', out);
        print_device(out, idle, &idle->devices[i]);
    }
    if (idle->devices_left_out)
        fprintf(out, "%" PRIu64 " more GPUs are left out\n", idle->devices_left_out);
}

static void causes_json(struct weir_json *json, const struct weir_idle_device *device)
{
    weir_json_array(json, "causes");
    for (int cause = 0; cause < WEIR_IDLE_CAUSES; cause++) {
        weir_json_object(json, NULL);
        weir_json_text(json, "cause", names[cause]);
        weir_json_int(json, "ns", device->cause_ns[cause]);
        weir_json_uint(json, "gaps", device->cause_gaps[cause]);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

static void device_json(struct weir_json *json, const struct weir_gpu_idle *idle, const struct weir_idle_device *device)
{
    enum weir_idle_cause first = weir_gpu_idle_first(device);
    weir_json_object(json, NULL);
    weir_json_int(json, "device", device->device);
    weir_json_int(json, "wall_ns", device->end_ns - device->begin_ns);
    weir_json_int(json, "busy_ns", device->busy_ns);
    weir_json_int(json, "idle_ns", device->idle_ns);
    weir_json_int(json, "before_first_ns", device->before_ns);
    weir_json_int(json, "after_last_ns", device->after_ns);
    weir_json_int(json, "copies_alone_ns", device->copies_alone_ns);
    causes_json(json, device);
    weir_json_text(json, "first", first == WEIR_IDLE_NONE ? NULL : names[first]);
    weir_json_text(json, "advice", first == WEIR_IDLE_NONE ? NULL : advice[first]);
    weir_json_uint(json, "kernels", device->kernels);
    weir_json_uint(json, "copies", device->copies);
    weir_json_known(json, "kernels_per_step",
                    idle->n_steps > 0 ? (double)device->step_kernels / (double)idle->n_steps : -1);
    weir_json_uint(json, "launches", device->launches);
    weir_json_known(json, "launch_delay_p50_ns", device->launches ? (double)device->delay_p50_ns : -1);
    weir_json_known(json, "launch_delay_p99_ns", device->launches ? (double)device->delay_p99_ns : -1);
    weir_json_end(json, '}');
}

void weir_gpu_idle_json(struct weir_json *json, const struct weir_gpu_idle *idle)
{
    weir_json_object(json, "gpu_idle");
    weir_json_int(json, "steps", idle->n_steps);
    weir_json_array(json, "devices");
    for (int i = 0; i < idle->n_devices; i++)
        device_json(json, idle, &idle->devices[i]);
    weir_json_end(json, ']');
    weir_json_uint(json, "devices_left_out", idle->devices_left_out);
    weir_json_end(json, '}');
}
