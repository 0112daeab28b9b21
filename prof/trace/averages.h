/* averages.h: torch.profiler's key_averages() over a trace, and the table that it prints.
 *
 * Source of the semantics: pytorch torch/autograd/profiler_util.py (EventList, FunctionEvent, FunctionEventAvg,
 * _build_table). */
#ifndef WEIR_PROF_TRACE_AVERAGES_H
#define WEIR_PROF_TRACE_AVERAGES_H

#include "base/err.h"
#include "base/json.h"
#include "prof/trace/events.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What rows are told apart by, beside the name. */
struct weir_averages_config {
    bool by_shape; /* group_by_input_shape */
    int by_stack;  /* group_by_stack_n: so many frames of the stack; 0 = not at all */
};

struct weir_averages_row {
    weir_text_id name, shapes, stack;
    bool device;     /* ran on a device: CPU columns are 0 */
    bool annotation; /* user_annotation or gpu_user_annotation */
    bool nested;     /* its first call was inside another range: no top-level row */
    uint64_t count;
    int64_t cpu_ns, self_cpu_ns, device_ns, self_device_ns;
    int64_t cpu_bytes, self_cpu_bytes, device_bytes, self_device_bytes;
};

struct weir_averages {
    struct weir_trace *trace; /* borrowed; its texts */
    struct weir_averages_row *rows;
    size_t n_rows;
    int64_t self_cpu_ns, self_device_ns; /* the totals that percentages are of, and that the footer prints */
    bool has_device_time, has_memory, has_device_memory;
    struct weir_averages_config config;
};

/* The trace is sorted by it. The rows come in torch's order before sorting: by first appearance. */
int weir_averages_open(struct weir_averages **out, struct weir_trace *trace, const struct weir_averages_config *config);
void weir_averages_close(struct weir_averages **averages);

struct weir_averages_table {
    const char *sort_by; /* as torch names it: "self_cpu_time_total"; NULL = as they came */
    int row_limit;       /* -1 = all */
    bool top_level;      /* top_level_events_only: rows whose calls are inside no other */
    const char *header;  /* a title above; NULL = none */
};

/* Whether sort_by is a name that the table knows: 0, or -EINVAL with a line that lists them. */
int weir_averages_check_sort(const char *sort_by, struct weir_err *err);

void weir_averages_print(FILE *out, const struct weir_averages *averages, const struct weir_averages_table *table);
/* The same rows as an array of objects, ns and bytes, into an array or object that is open in json. */
void weir_averages_json(struct weir_json *json, const char *key, const struct weir_averages *averages,
                        const struct weir_averages_table *table);

/* export_stacks: one line per stack, "outermost;...;innermost NUMBER" for flamegraph.pl. metric: self_cpu_time_total or
 * self_cuda_time_total, in us. */
int weir_stacks_export(struct weir_trace *trace, const char *metric, const char *path, struct weir_err *err);

/* How the time of the ProfilerStep#N ranges is spent, split as TensorBoard's overview does: each instant belongs to the
 * first of these that some thread or device is busy with. */
enum weir_step_part {
    WEIR_STEP_KERNEL,
    WEIR_STEP_MEMCPY,
    WEIR_STEP_MEMSET,
    WEIR_STEP_COMMUNICATION,
    WEIR_STEP_RUNTIME,
    WEIR_STEP_DATALOADER,
    WEIR_STEP_CPU_EXEC,
    WEIR_STEP_OTHER,
    WEIR_STEP_PARTS,
};
const char *weir_step_part_name(enum weir_step_part part); /* "DataLoader" */
/* Whether a range of this name is a wait for data, as WEIR_STEP_DATALOADER has it. */
bool weir_step_is_data_wait(const char *name);

struct weir_step {
    int64_t number, start_ns, end_ns;
    int64_t part_ns[WEIR_STEP_PARTS]; /* sum is end - start */
};

/* The steps of a trace in order (owned by the caller, free); 0 steps when it has none. Returns the count or -ENOMEM. */
int64_t weir_steps_split(struct weir_trace *trace, struct weir_step **out);

#ifdef __cplusplus
}
#endif

#endif
