/* Prints GPU idle time as a table and as JSON. */
#include "analyze/gpu_idle/gpu_idle.h"

#include "base/table.h"
#include "base/terminal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    const char *does;  /* completes "GPU 0", before the percentage */
    const char *kind;  /* can be NULL */
    const char *helps; /* NULL: depends on the trace, or nothing */
} words[WEIR_IDLE_NONE] = {
    [WEIR_IDLE_LAUNCHING] = {"launching", "waits for launches", "launch-bound",
                             "fewer launches: CUDA graphs, fused kernels, torch.compile, a larger batch"},
    [WEIR_IDLE_SYNC] = {"synchronising", "waits for synchronising calls", "sync-bound",
                        "move read-backs such as .item(), .cpu() and print out of the step, or do them only every few "
                        "steps"},
    [WEIR_IDLE_DATA] = {"waiting for data", "waits for data", "data-bound", NULL},
    [WEIR_IDLE_ALLOCATING] = {"allocating", "waits for allocations", "allocation-bound",
                              "reuse buffers between steps, or allocate them from a caching pool"},
    [WEIR_IDLE_QUEUED] = {"between queued work", "pauses between queued kernels", NULL,
                          "fewer and longer kernels: fused kernels, CUDA graphs, a larger batch"},
    [WEIR_IDLE_OTHER] = {"other host code", "waits for host code that launches nothing", NULL,
                         "move that code out of the step; a profile with stacks (with_stack=True) names it"},
    [WEIR_IDLE_MEASUREMENT] = {.name = "measurement"},
    [WEIR_IDLE_COPIES] =
        {"copies alone", "only copies", NULL,
         "pinned memory (pin_memory=True in a DataLoader) and non_blocking copies on a separate stream, "
         "so that they overlap with kernels"},
};

static const struct {
    const char *name, *helps;
} loaders[] = {
    [WEIR_IDLE_LOADER_UNKNOWN] = {NULL, "python -m weir watch train.py shows the slow part of a PyTorch DataLoader"},
    [WEIR_IDLE_LOADER_INLINE] = {"num_workers=0",
                                 "worker processes (num_workers=1 or more, at most one per core): without them nothing "
                                 "is loaded during the step. python -m weir watch train.py shows the slow part"},
    [WEIR_IDLE_LOADER_WORKERS] = {"worker processes", "The trace does not contain the workers: python -m weir watch "
                                                      "train.py shows their slow part"},
    [WEIR_IDLE_LOADER_WEIR] = {"Weir", "the verdict of the recorded run shows what limits Weir's loader"},
};

const char *weir_idle_cause_name(enum weir_idle_cause cause)
{
    return cause < WEIR_IDLE_NONE ? words[cause].name : "none";
}

static double part(int64_t ns, int64_t of_ns)
{
    return of_ns > 0 ? 100 * (double)ns / (double)of_ns : 0;
}

static int64_t cause_ns(const struct weir_idle_device *device, enum weir_idle_cause cause)
{
    return cause == WEIR_IDLE_COPIES ? device->copies_alone_ns : device->cause_ns[cause];
}

enum { ADVICE_SIZE = 640, STEP_LEAST_NS = 50000 };

static int decimals(int64_t ns)
{
    return ns >= 10000000 ? 1 : 3;
}

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

/* Fills in the advice against workers that are too slow, with the number that would keep up. */
static void more_workers(char *text, size_t size, const struct weir_gpu_idle *idle, int64_t step_ns)
{
    const char *rest = loaders[WEIR_IDLE_LOADER_WORKERS].helps;
    int64_t now_ns = idle->n_steps > 0 ? idle->loop.ns / idle->n_steps : 0;
    double more = step_ns > 0 ? (double)now_ns / (double)step_ns : 0;
    if (step_ns < STEP_LEAST_NS || more <= 1)
        snprintf(text, size, "more workers, while cores are idle. %s", rest);
    else
        snprintf(text, size,
                 "more workers, while cores are idle: about %.*f x num_workers (an estimate: a step takes %.*f ms, and "
                 "%.*f without the wait). %s",
                 more < 2.95, more, decimals(now_ns), ms(now_ns), decimals(now_ns), ms(step_ns), rest);
}

/* Fills in what helps against the cause. Returns NULL if nothing is known, or text. */
static const char *helps(char text[ADVICE_SIZE], const struct weir_gpu_idle *idle,
                         const struct weir_idle_device *device, enum weir_idle_cause cause)
{
    const char *known = cause == WEIR_IDLE_NONE   ? NULL
                        : cause == WEIR_IDLE_DATA ? loaders[idle->loop.loader].helps
                                                  : words[cause].helps;
    if (!known)
        return NULL;
    if (cause == WEIR_IDLE_DATA && idle->loop.loader == WEIR_IDLE_LOADER_WORKERS)
        more_workers(text, ADVICE_SIZE, idle, weir_gpu_idle_step_ns(idle, device));
    else
        snprintf(text, ADVICE_SIZE, "%s", known);
    return text;
}

/* Fills in what helps against copies from pageable memory, if they take 5 % of the time without the wait for data and
 * the first cause does not advise the same. Returns NULL otherwise, or text. */
static const char *also_helps(char text[ADVICE_SIZE], const struct weir_gpu_idle *idle,
                              const struct weir_idle_device *device, enum weir_idle_cause cause)
{
    if (!device || cause == WEIR_IDLE_COPIES || idle->loop.loader == WEIR_IDLE_LOADER_WEIR)
        return NULL;
    int64_t step_ns = weir_gpu_idle_step_ns(idle, device), n = step_ns > 0 ? idle->n_steps : 1;
    if (step_ns <= 0)
        step_ns = device->end_ns - device->begin_ns - device->cause_ns[WEIR_IDLE_DATA];
    int64_t copies_ns = device->pageable_ns / n;
    if (copies_ns == 0 || copies_ns < step_ns / 20)
        return NULL;
    snprintf(text, ADVICE_SIZE,
             "pin_memory=True, and non_blocking=True, which has no effect without it: copies from pageable memory take "
             "%.*f of the %.*f ms%s without the wait",
             decimals(step_ns), ms(copies_ns), decimals(step_ns), ms(step_ns),
             weir_gpu_idle_step_ns(idle, device) > 0 ? " of a step" : "");
    return text;
}

/* Fills in a warning if the trace has few steps and another choice of steps could show other causes: workers deliver
 * batches in bursts. Returns NULL otherwise, or text. */
static const char *few_steps(char text[ADVICE_SIZE], const struct weir_gpu_idle *idle)
{
    const struct weir_idle_loop *loop = &idle->loop;
    int64_t n = idle->n_steps, least_ns = loop->step_wait_min_ns, most_ns = loop->step_wait_max_ns;
    if (n == 0 || n >= WEIR_IDLE_ENOUGH_STEPS)
        return NULL;
    if (n == 1 ? loop->loader != WEIR_IDLE_LOADER_WORKERS
               : (double)(most_ns - least_ns) * 2 * (double)n < (double)loop->ns || loop->ns == 0)
        return NULL;
    int length =
        snprintf(text, ADVICE_SIZE, "%" PRId64 " step%s, which wait%s ", n, n == 1 ? "" : "s", n == 1 ? "s" : "");
    if (n > 1)
        length += snprintf(text + length, ADVICE_SIZE - (size_t)length, "%.*f to ", decimals(most_ns), ms(least_ns));
    snprintf(text + length, ADVICE_SIZE - (size_t)length, "%.*f ms for data: record more (active=16)",
             decimals(most_ns), ms(most_ns));
    return text;
}

/* ---- text ---- */

/* Completes "... of the time": " (data-bound): 185.0 of 221.1 ms in 3 steps". */
static void print_evidence(FILE *out, const struct weir_gpu_idle *idle, const char *kind, int64_t ns, int64_t wall_ns)
{
    if (kind)
        fprintf(out, " (%s)", kind);
    fprintf(out, ": %.*f of %.*f ms", decimals(wall_ns), ms(ns), decimals(wall_ns), ms(wall_ns));
    if (idle->n_steps > 0)
        fprintf(out, " in %" PRId64 " step%s", idle->n_steps, idle->n_steps == 1 ? "" : "s");
}

static void print_verdict(FILE *out, const struct weir_gpu_idle *idle, const struct weir_idle_device *device)
{
    int64_t wall_ns = device->end_ns - device->begin_ns;
    enum weir_idle_cause first = weir_gpu_idle_first(device);
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    wrap.highlight = true;
    fprintf(text, "GPU %" PRId64 " ", device->device);
    if (first == WEIR_IDLE_NONE) {
        fprintf(text, "is busy %.1f %% of the time", part(device->busy_ns, wall_ns));
        print_evidence(text, idle, NULL, device->busy_ns, wall_ns);
        fprintf(text, ". No cause of idle time%s takes 5 %%.\n",
                device->cause_ns[WEIR_IDLE_MEASUREMENT] > 0 ? " except measurement" : "");
    } else {
        fprintf(text, "%s %.1f %% of the time", words[first].does, part(cause_ns(device, first), wall_ns));
        print_evidence(text, idle, words[first].kind, cause_ns(device, first), wall_ns);
        fprintf(text, ". It is busy %.1f %%.\n", part(device->busy_ns, wall_ns));
    }
    weir_wrap_close(&wrap);
}

/* Prints which step Weir's loader would have to keep up with. */
static void print_weir(FILE *out, int64_t step_ns, bool copies)
{
    if (step_ns >= STEP_LEAST_NS)
        fprintf(out,
                "  Weir's loader   weir run DATA --step-ms %.1f shows whether it would keep up with your step, which "
                "takes that long without the wait%s\n",
                ms(step_ns), copies ? ", copies included" : "");
    else
        fprintf(out, "  Weir's loader   weir run DATA --step-ms MS shows whether it would keep up with your step; "
                     "MS is the time that your step takes without the wait\n");
}

/* Prints what helps. For a loop that waits for another loader, also what Weir's would give with the same step. */
static void print_help(FILE *out, const struct weir_gpu_idle *idle, const struct weir_idle_device *device,
                       enum weir_idle_cause cause)
{
    char text[ADVICE_SIZE];
    struct weir_wrap wrap;
    FILE *lines = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    if (helps(text, idle, device, cause))
        fprintf(lines, "  what helps      %s\n", text);
    bool copies = also_helps(text, idle, device, cause) != NULL;
    if (copies)
        fprintf(lines, "  also            %s\n", text);
    if (few_steps(text, idle))
        fprintf(lines, "  few steps       %s\n", text);
    if (cause == WEIR_IDLE_DATA && idle->loop.loader != WEIR_IDLE_LOADER_WEIR)
        print_weir(lines, weir_gpu_idle_step_ns(idle, device), copies);
    weir_wrap_close(&wrap);
}

struct row {
    const char *state, *name;
    int64_t ns;
};

static int longest_first(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : strcmp(x->name, y->name);
}

static void add_row(struct weir_table *table, const struct weir_gpu_idle *idle, const struct row *row, int64_t wall_ns)
{
    weir_table_cell(table, "%s%s", row->state, row->name);
    weir_table_cell(table, "%.3fms", ms(row->ns));
    weir_table_cell(table, "%.1f%%", part(row->ns, wall_ns));
    if (idle->n_steps > 0)
        weir_table_cell(table, "%.3fms", ms(row->ns) / (double)idle->n_steps);
}

/* Prints the parts of the GPU's time that are not 0, the longest first, and their sum. */
static void print_parts(FILE *out, const struct weir_gpu_idle *idle, const struct weir_idle_device *device)
{
    struct weir_column columns[] = {
        {.left = true, .width = 25}, {"time", .width = 10}, {"of total", .width = 8}, {"a step", .width = 10}};
    struct row rows[WEIR_IDLE_CAUSES + 2], total = {"", "total", device->end_ns - device->begin_ns};
    struct weir_table table;
    char heading[32];
    int n = 0;
    for (int cause = 0; cause < WEIR_IDLE_CAUSES; cause++)
        rows[n++] = (struct row){"idle: ", words[cause].name, device->cause_ns[cause]};
    rows[n++] = (struct row){"busy: ", "kernels", device->busy_ns - device->copies_alone_ns};
    rows[n++] = (struct row){"busy: ", words[WEIR_IDLE_COPIES].name, device->copies_alone_ns};
    qsort(rows, (size_t)n, sizeof *rows, longest_first);
    snprintf(heading, sizeof heading, "GPU %" PRId64, device->device);
    columns[0].heading = heading;
    weir_table_open(&table, columns, idle->n_steps > 0 ? 4 : 3);
    for (int i = 0; i < n && rows[i].ns > 0; i++)
        add_row(&table, idle, &rows[i], total.ns);
    add_row(&table, idle, &total, total.ns);
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

static void print_device(FILE *out, const struct weir_gpu_idle *idle, const struct weir_idle_device *device)
{
    struct weir_wrap wrap;
    print_verdict(out, idle, device);
    print_help(out, idle, device, weir_gpu_idle_first(device));
    print_parts(out, idle, device);
    print_launches(weir_wrap_open(&wrap, out, 2, NULL), idle, device);
    weir_wrap_close(&wrap);
}

/* Prints what the loop's thread shows in a trace without a GPU. */
static void print_loop(FILE *out, const struct weir_gpu_idle *idle)
{
    const struct weir_idle_loop *loop = &idle->loop;
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    bool weir = loop->loader == WEIR_IDLE_LOADER_WEIR, waits = loop->wait_ns > 0;
    wrap.highlight = true;
    if (waits) {
        fprintf(text, "The loop waits for data %.1f %% of the time", part(loop->wait_ns, loop->ns));
        print_evidence(text, idle, NULL, loop->wait_ns, loop->ns);
        fprintf(text, ".\n");
    }
    weir_wrap_close(&wrap);
    print_help(out, idle, NULL, waits && loop->wait_ns >= loop->ns / 20 ? WEIR_IDLE_DATA : WEIR_IDLE_NONE);
    text = weir_wrap_open(&wrap, out, 2, NULL);
    fprintf(text, "GPU idle time unknown: the trace has no GPU events; record with %s\n",
            weir ? "--device cuda" : "ProfilerActivity.CUDA");
    weir_wrap_close(&wrap);
}

void weir_gpu_idle_print(FILE *out, const struct weir_gpu_idle *idle)
{
    if (idle->n_devices == 0)
        print_loop(out, idle);
    for (int i = 0; i < idle->n_devices; i++) {
        if (i > 0)
            fputc('\n', out);
        print_device(out, idle, &idle->devices[i]);
    }
    if (idle->devices_left_out)
        fprintf(out, "%" PRIu64 " more GPUs are left out\n", idle->devices_left_out);
}

/* ---- JSON ---- */

static void causes_json(struct weir_json *json, const struct weir_idle_device *device)
{
    weir_json_array(json, "causes");
    for (int cause = 0; cause < WEIR_IDLE_CAUSES; cause++) {
        weir_json_object(json, NULL);
        weir_json_text(json, "cause", words[cause].name);
        weir_json_int(json, "ns", device->cause_ns[cause]);
        weir_json_uint(json, "gaps", device->cause_gaps[cause]);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

static void device_json(struct weir_json *json, const struct weir_gpu_idle *idle, const struct weir_idle_device *device)
{
    enum weir_idle_cause first = weir_gpu_idle_first(device);
    char text[ADVICE_SIZE];
    weir_json_object(json, NULL);
    weir_json_int(json, "device", device->device);
    weir_json_int(json, "wall_ns", device->end_ns - device->begin_ns);
    weir_json_int(json, "busy_ns", device->busy_ns);
    weir_json_int(json, "idle_ns", device->idle_ns);
    weir_json_int(json, "before_first_ns", device->before_ns);
    weir_json_int(json, "after_last_ns", device->after_ns);
    weir_json_int(json, "copies_alone_ns", device->copies_alone_ns);
    weir_json_int(json, "pageable_copies_ns", device->pageable_ns);
    causes_json(json, device);
    weir_json_text(json, "first", first == WEIR_IDLE_NONE ? NULL : words[first].name);
    weir_json_text(json, "advice", helps(text, idle, device, first));
    weir_json_text(json, "also", also_helps(text, idle, device, first));
    weir_json_known(json, "step_ns", (double)weir_gpu_idle_step_ns(idle, device));
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
    char text[ADVICE_SIZE];
    weir_json_object(json, "gpu_idle");
    weir_json_int(json, "steps", idle->n_steps);
    weir_json_object(json, "loop");
    weir_json_int(json, "ns", idle->loop.ns);
    weir_json_int(json, "data_wait_ns", idle->loop.wait_ns);
    weir_json_text(json, "loader", loaders[idle->loop.loader].name);
    weir_json_end(json, '}');
    weir_json_text(json, "few_steps", few_steps(text, idle));
    weir_json_array(json, "devices");
    for (int i = 0; i < idle->n_devices; i++)
        device_json(json, idle, &idle->devices[i]);
    weir_json_end(json, ']');
    weir_json_uint(json, "devices_left_out", idle->devices_left_out);
    weir_json_end(json, '}');
}
