#include "base/files.h"
#include "base/grow.h"
#include "prof/gpu/gpu_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- args ---- */

/* Returns the start of a member's value, or NULL. name includes its quotes, the colon and the space. It cannot match
 * inside a string value, because quotes inside strings are escaped. */
static const char *member(const char *args, const char *name)
{
    const char *at = strstr(args, name);
    return at ? at + strlen(name) : NULL;
}

static uint64_t integer(const char *args, const char *name)
{
    const char *at = member(args, name);
    return at && *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : 0;
}

static double number(const char *args, const char *name)
{
    const char *at = member(args, name);
    double value = at ? strtod(at, NULL) : 0;
    return isfinite(value) && value > 0 && value < 1e18 ? value : 0;
}

static uint32_t number32(const char *args, const char *name)
{
    uint64_t value = integer(args, name);
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* ---- events ---- */

/* The block whose range is open on a row. */
struct open_block {
    int64_t end_ns;
    int clock; /* index of its kernel's clock; -1 if there is no block or it is skipped */
    struct weir_kernel_clock_block block;
};

static int clock_named(struct weir_kernel_clocks *clocks, const char *name)
{
    const struct weir_kernel_clock_kernel kernel = {.name = name};
    struct weir_kernel_clock fresh;
    weir_kernel_clock_init(&fresh, &kernel);
    for (int i = 0; i < clocks->n; i++)
        if (strcmp(clocks->at[i].name, fresh.name) == 0)
            return i;
    if (clocks->n == WEIR_KERNEL_CLOCKS_MAX)
        return -1;
    if (!weir_grow(&clocks->at, (size_t)clocks->n, sizeof *clocks->at))
        return -ENOMEM;
    clocks->at[clocks->n] = fresh;
    return clocks->n++;
}

/* Reads a block from an event. The laps that follow on the same row belong to it. */
static void read_block(struct open_block *open, const struct weir_trace *trace, const struct weir_event *event)
{
    const char *args = weir_trace_text(trace, event->args);
    struct weir_kernel_clock_block *block = &open->block;
    *block = (struct weir_kernel_clock_block){
        .block = integer(args, "\"block\": "),
        .grid = integer(args, "\"grid blocks\": "),
        .launch = integer(args, "\"launch\": "),
        .sm = number32(args, "\"SM\": "),
        .threads = number32(args, "\"threads\": "),
        .iterations = integer(args, "\"iterations\": "),
        .rows = number32(args, "\"rows\": "),
        .ticks = integer(args, "\"ticks\": "),
        .ns = number(args, "\"ns\": "),
        .error_ns = number(args, "\"ns error\": "),
        .step_ns = number(args, "\"globaltimer step ns\": "),
        .warp_lap_ticks = number32(args, "\"empty warp lap ticks\": "),
        .block_lap_ticks = number32(args, "\"empty block lap ticks\": "),
        .laps = number32(args, "\"laps\": "),
        .kernel_ns = number(args, "\"kernel ns\": "),
    };
    block->ns = block->ticks ? block->ns : 0;
    block->rows = block->rows < block->iterations ? block->rows : (uint32_t)block->iterations;
    open->end_ns = event->start_ns + event->duration_ns;
}

static int open_block(struct weir_kernel_clocks *clocks, struct open_block *open, const struct weir_trace *trace,
                      const struct weir_event *event)
{
    read_block(open, trace, event);
    open->clock = clock_named(clocks, weir_trace_text(trace, event->name));
    if (open->clock == -ENOMEM)
        return -ENOMEM;
    if (open->clock < 0) {
        clocks->left_out++;
        return 0;
    }
    struct weir_kernel_clock *clock = &clocks->at[open->clock];
    uint64_t skipped = integer(weir_trace_text(trace, event->args), "\"launches without clocks\": ");
    weir_kernel_clock_add_block(clock, &open->block);
    clock->skipped = skipped > clock->skipped ? skipped : clock->skipped;
    return 0;
}

static bool is_clock(const struct weir_event *event)
{
    return event->cat == WEIR_CAT_GPU_STAGE && event->kind == WEIR_EVENT_RANGE;
}

static bool is_block(const struct weir_trace *trace, const struct weir_event *event)
{
    return member(weir_trace_text(trace, event->args), "\"block\": ");
}

static void add_lap(struct weir_kernel_clocks *clocks, const struct open_block *open, const struct weir_trace *trace,
                    const struct weir_event *event)
{
    const char *args = weir_trace_text(trace, event->args);
    bool inside = open->clock >= 0 && event->start_ns <= open->end_ns;
    if (!inside || !weir_kernel_clock_add_lap(&clocks->at[open->clock], &open->block,
                                              weir_trace_text(trace, event->name), number32(args, "\"ticks\": ")))
        clocks->left_out++;
}

int weir_kernel_clocks_make(struct weir_kernel_clocks *clocks, const struct weir_trace *trace)
{
    *clocks = (struct weir_kernel_clocks){0};
    struct open_block *rows = malloc(((size_t)trace->n_tracks + 1) * sizeof *rows);
    int rc = rows ? 0 : -ENOMEM;
    for (uint32_t i = 0; rows && i < trace->n_tracks; i++)
        rows[i] = (struct open_block){.clock = -1};
    for (size_t i = 0; i < trace->n_events && rc == 0; i++) {
        const struct weir_event *event = &trace->events[i];
        if (!is_clock(event))
            continue;
        if (is_block(trace, event))
            rc = open_block(clocks, &rows[event->track], trace, event);
        else
            add_lap(clocks, &rows[event->track], trace, event);
    }
    free(rows);
    if (rc < 0)
        weir_kernel_clocks_clear(clocks);
    return rc;
}

void weir_kernel_clocks_clear(struct weir_kernel_clocks *clocks)
{
    free(clocks->at);
    *clocks = (struct weir_kernel_clocks){0};
}

/* ---- output ---- */

void weir_kernel_clocks_print(FILE *out, const struct weir_kernel_clocks *clocks)
{
    for (int i = 0; i < clocks->n; i++) {
        fputc('\n', out);
        weir_kernel_clock_print(out, &clocks->at[i]);
    }
    if (clocks->left_out > 0)
        fprintf(out, "%" PRIu64 " ranges of category gpu_stage belong to none of these kernels and are left out\n",
                clocks->left_out);
}

void weir_kernel_clocks_print_trace(FILE *out, const struct weir_trace *trace)
{
    struct weir_kernel_clocks clocks;
    if (weir_kernel_clocks_make(&clocks, trace) == 0)
        weir_kernel_clocks_print(out, &clocks);
    weir_kernel_clocks_clear(&clocks);
}

void weir_kernel_clocks_json(struct weir_json *json, const struct weir_kernel_clocks *clocks)
{
    weir_json_array(json, "kernel_clocks");
    for (int i = 0; i < clocks->n; i++)
        weir_kernel_clock_json(json, &clocks->at[i]);
    weir_json_end(json, ']');
}

/* State of the export: the iteration that is being read. */
struct iteration {
    FILE *out;
    const struct weir_trace *trace;
    struct open_block open;
    const char *kernel; /* NULL if no block is open */
    uint64_t number;
    struct weir_kernel_clock laps; /* laps of this iteration only */
};

static void begin_iteration(struct iteration *it, uint64_t number)
{
    if (it->laps.n_stages > 0)
        weir_kernel_clock_csv_iteration(it->out, &it->laps, &it->open.block, it->number);
    const struct weir_kernel_clock_kernel kernel = {.name = it->kernel};
    weir_kernel_clock_init(&it->laps, &kernel);
    it->number = number;
}

static void export_event(struct iteration *it, const struct weir_event *event)
{
    const char *args = weir_trace_text(it->trace, event->args), *name = weir_trace_text(it->trace, event->name);
    uint64_t number = integer(args, "\"iteration\": ");
    if (is_block(it->trace, event)) {
        begin_iteration(it, 0);
        read_block(&it->open, it->trace, event);
        it->kernel = name;
        begin_iteration(it, 0);
    } else if (it->kernel && event->start_ns <= it->open.end_ns) {
        if (number != it->number)
            begin_iteration(it, number);
        weir_kernel_clock_add_lap(&it->laps, &it->open.block, name, number32(args, "\"ticks\": "));
    }
}

/* Sorts by row. Events of the same row stay in order of time. */
static int by_track(const void *a, const void *b)
{
    const struct weir_event *x = *(const struct weir_event *const *)a, *y = *(const struct weir_event *const *)b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Returns 0 or -ENOMEM. */
static int export_iterations(FILE *out, const struct weir_trace *trace)
{
    size_t n = 0, count = 0;
    for (size_t i = 0; i < trace->n_events; i++)
        count += is_clock(&trace->events[i]);
    const struct weir_event **events = malloc((count + 1) * sizeof *events);
    struct iteration *it = calloc(1, sizeof *it);
    int rc = events && it ? 0 : -ENOMEM;
    for (size_t i = 0; i < trace->n_events && rc == 0; i++)
        if (is_clock(&trace->events[i]))
            events[n++] = &trace->events[i];
    if (rc == 0) {
        qsort(events, n, sizeof(const struct weir_event *), by_track);
        it->out = out;
        it->trace = trace;
        for (size_t i = 0; i < n; i++) {
            if (i > 0 && events[i]->track != events[i - 1]->track) {
                begin_iteration(it, 0);
                it->kernel = NULL;
            }
            export_event(it, events[i]);
        }
        begin_iteration(it, 0);
    }
    free(it);
    free(events);
    return rc;
}

int weir_kernel_clocks_export(const struct weir_kernel_clocks *clocks, const struct weir_trace *trace, const char *path,
                              struct weir_err *err)
{
    FILE *out = weir_output_file(path);
    int rc = out ? 0 : -errno;
    if (out) {
        weir_kernel_clock_csv_head(out);
        for (int i = 0; i < clocks->n; i++)
            weir_kernel_clock_csv(out, &clocks->at[i]);
        rc = export_iterations(out, trace);
        int close_rc = weir_file_close(out);
        rc = rc == 0 ? close_rc : rc;
    }
    return rc == 0 ? 0
                   : weir_err_set(err, -EIO, "%s: cannot be written: %s; choose another file or free some space", path,
                                  strerror(-rc));
}
