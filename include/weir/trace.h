/* trace.h: a trace in memory, recorded in a window or read from a file, with functions to average it and to write it.
 *
 * Times are in ns since the trace's base. A trace has one owner and no locks. */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of events. They correspond to the Chrome format's phases X, b and e, i, and C. WEIR_EVENT_MEMORY represents the
 * "i" events named [memory] that torch.profiler writes. */
enum weir_event_kind {
    WEIR_EVENT_RANGE,
    WEIR_EVENT_ASYNC,
    WEIR_EVENT_INSTANT,
    WEIR_EVENT_COUNTER,
    WEIR_EVENT_MEMORY,
};

/* Categories of events: those of torch.profiler's traces, and Weir's own (loader_stage, loader_item, gpu_stage). */
enum weir_cat {
    WEIR_CAT_OTHER, /* any other category; cat_text contains its name */
    WEIR_CAT_CPU_OP,
    WEIR_CAT_USER_ANNOTATION,
    WEIR_CAT_LOADER_STAGE, /* work of loader threads, which TensorBoard's overview does not count as CPU time */
    WEIR_CAT_LOADER_ITEM,  /* the path of a frame or batch across threads (asynchronous) */
    WEIR_CAT_PYTHON_FUNCTION,
    WEIR_CAT_CUDA_RUNTIME,
    WEIR_CAT_CUDA_DRIVER,
    WEIR_CAT_KERNEL,
    WEIR_CAT_GPU_MEMCPY,
    WEIR_CAT_GPU_MEMSET,
    WEIR_CAT_GPU_USER_ANNOTATION,
    WEIR_CAT_CUDA_SYNC,
    WEIR_CAT_CUDA_EVENT,
    WEIR_CAT_OVERHEAD,
    WEIR_CAT_CPU_INSTANT_EVENT, /* [memory], [OutOfMemory] */
    WEIR_CAT_GPU_STAGE,         /* a block of a kernel that contains clocks, and the block's stages */
    WEIR_CAT_COUNT,
};

/* Returns the category's name in traces, such as "cpu_op"; "" for WEIR_CAT_OTHER. */
const char *weir_cat_name(enum weir_cat cat);
/* Returns the category whose name is the first length bytes of text; WEIR_CAT_OTHER if the name is unknown. */
enum weir_cat weir_cat_find(const char *text, size_t length);
/* Returns true if events of the category run on a device: kernels and their parts, copies, memsets, device-side
 * annotations and synchronisations. */
bool weir_cat_is_device(enum weir_cat cat);

/* Number of an interned string. 0 is the empty string, which means "not given". */
typedef uint32_t weir_text_id;

struct weir_event {
    int64_t start_ns;
    int64_t duration_ns;  /* of ranges and asynchronous ranges */
    uint64_t external_id; /* links an operator to the device work that it launched; 0 = none */
    uint64_t item;        /* number of the frame or batch, which links its waits and work across threads; 0 = none */
    weir_text_id name;
    weir_text_id cat_text; /* name of the category if cat is WEIR_CAT_OTHER */
    weir_text_id shapes;   /* "Input Dims" as JSON: [[480, 640, 3], []] */
    weir_text_id types;    /* "Input type" as JSON: ["unsigned char", ""] */
    weir_text_id stack;    /* "Call stack": frames as FILE(LINE): FUNCTION, innermost first, separated by ; */
    weir_text_id args;     /* other members of args as JSON: "stream": 7, "device": 0 */
    uint32_t track;        /* index into tracks */
    uint32_t correlation;  /* links a runtime call to its device event; 0 = none */
    uint8_t kind, cat;     /* enum weir_event_kind, enum weir_cat */
    bool unfinished;       /* the event had not ended when the window closed */
    bool wait;             /* a stage's wait, not work; the averages list it apart */
    bool stage;            /* work of a stage; on a GPU's streams it is drawn as an annotation */
    union {
        double value; /* value of a counter; of a range its FLOPs as torch estimates them, 0 = unknown */
        struct {
            uint64_t address;
            int64_t bytes;               /* negative if freed */
            int64_t allocated, reserved; /* totals of the device after the event */
            int32_t device;              /* -1 = the CPU */
        } memory;
    };
};

/* A row of the trace: a thread, or a stream of a device. */
struct weir_trace_row {
    int64_t pid, tid;
    bool device;            /* true: pid is the number of a device, and tid that of a stream */
    weir_text_id name;      /* name of the thread in the kernel */
    weir_text_id pid_label; /* string used as pid or tid in files, for tracks without numbers ("Spans", "Traces") */
};

struct weir_trace_device {
    int id;
    weir_text_id name;
    weir_text_id properties; /* members of deviceProperties as JSON, except id and name */
};

struct weir_texts; /* interned strings */

/* How key_averages() treats python_function ranges. It depends on the version of torch that wrote the trace. */
enum weir_python_frames {
    WEIR_PYTHON_LEFT_OUT, /* torch 2.11: ignored */
    WEIR_PYTHON_ROWS,     /* torch 2.13, which records the host's name: treated like other ranges */
    WEIR_PYTHON_HIDDEN,   /* torch 2.15, whose frames name their callers (CallFrom): ranges without rows of their own */
};

struct weir_trace {
    struct weir_event *events; /* after weir_trace_sort, ordered by start, longer events first */
    size_t n_events, events_room;
    struct weir_trace_row *tracks;
    uint32_t n_tracks, tracks_room;
    uint32_t *track_slots; /* hash table of weir_trace_track: index + 1, or 0 */
    uint32_t n_track_slots;
    struct weir_trace_device *devices;
    int n_devices;
    struct weir_texts *texts;
    int64_t base_unix_ns;        /* Unix time that corresponds to 0 ns */
    int64_t begin_ns, end_ns;    /* start and end of the window */
    int64_t main_pid;            /* the process that recorded the trace */
    bool shapes, memory, stacks; /* the options record_shapes, profile_memory and with_stack */
    enum weir_python_frames python_frames;
    bool forks;                /* contains functions that jit.fork ran */
    uint64_t dropped;          /* number of events that did not fit */
    weir_text_id process_name; /* name of process main_pid */
    weir_text_id metadata;     /* other top-level members of the file as JSON: "name": value, ... */
};

/* Creates an empty trace. Returns 0 or -ENOMEM. */
int weir_trace_new(struct weir_trace **out);
void weir_trace_free(struct weir_trace **trace);

/* Returns the number of the string in the first length bytes of text, interning it if it is new. Returns 0 for the
 * empty string, and also if memory is exhausted (weir_trace_failed). */
weir_text_id weir_trace_intern(struct weir_trace *trace, const char *text, size_t length);
/* Returns an interned string, valid until the next weir_trace_intern; "" for 0. */
const char *weir_trace_text(const struct weir_trace *trace, weir_text_id id);
/* Returns the largest number of a string plus one. */
uint32_t weir_trace_text_count(const struct weir_trace *trace);

/* Returns the index of a track, creating the track if it is new, or -ENOMEM. label becomes pid_label; it is 0 for
 * tracks that have numbers. */
int64_t weir_trace_track(struct weir_trace *trace, int64_t pid, int64_t tid, bool device, weir_text_id label);

/* Appends a copy of the event. Returns 0 or -ENOMEM. */
int weir_trace_add(struct weir_trace *trace, const struct weir_event *event);
/* Sorts events by start. Of events with the same start, longer ones come first, and events of the same length stay in
 * the order in which they were added. Returns 0 or -ENOMEM. */
int weir_trace_sort(struct weir_trace *trace);
/* Shortens each range of a sorted trace by 1 ns if it ends in the same ns as the range around it or, on a thread, in
 * the ns in which the next range starts. Programs that read traces add ts and dur as doubles. If the sum places the end
 * of a range after the end of the outer one or after the start of the next, TensorBoard's plugin regards the two as
 * partially overlapping and drops one. Rows of devices keep ranges that touch: no reader nests them, and their times
 * stay those that the device measured. Returns 0 or -ENOMEM. */
int weir_trace_nest(struct weir_trace *trace);
/* Returns true if memory ran out during weir_trace_intern, so that the trace is incomplete. */
bool weir_trace_failed(const struct weir_trace *trace);

/* ---- averages: torch.profiler's key_averages(), and the table that it prints ----
 *
 * The semantics follow pytorch's torch/autograd/profiler_util.py (EventList, FunctionEvent, FunctionEventAvg,
 * _build_table). */

/* The properties, in addition to the name, by which events are grouped into rows. */
struct weir_averages_config {
    bool by_shape; /* group_by_input_shape */
    int by_stack;  /* group_by_stack_n: number of stack frames; 0 = none */
};

struct weir_averages_row {
    weir_text_id name, shapes, stack;
    bool device;     /* ran on a device, so the CPU columns are 0 */
    bool annotation; /* user_annotation or gpu_user_annotation */
    bool nested;     /* the row's first call was inside another range, so it is not a top-level row */
    bool wait;       /* waits of a stage of Weir's, so not part of the table's shares */
    uint64_t count;
    int64_t cpu_ns, self_cpu_ns, device_ns, self_device_ns;
    int64_t work_ns; /* cpu_ns without the waits inside */
    int64_t cpu_bytes, self_cpu_bytes, device_bytes, self_device_bytes;
    double flops; /* of the operators for which torch estimates them; 0 = unknown */
};

struct weir_averages {
    struct weir_trace *trace; /* not owned; contains the strings */
    struct weir_averages_row *rows;
    size_t n_rows;
    int64_t self_cpu_ns, self_device_ns; /* totals of all rows */
    int64_t work_ns;                     /* self_cpu_ns without the waits: 100 % of the shares */
    bool has_device_time, has_memory, has_device_memory;
    struct weir_averages_config config;
};

/* Sorts the trace and computes the rows. Their order is that of torch before sorting, the order of first appearance. */
int weir_averages_open(struct weir_averages **out, struct weir_trace *trace, const struct weir_averages_config *config);
void weir_averages_close(struct weir_averages **averages);

struct weir_averages_table {
    const char *sort_by; /* torch's name of a column, such as "self_cpu_time_total"; NULL = unsorted */
    int row_limit;       /* maximum number of rows, and of waits; -1 = all */
    bool top_level;      /* top_level_events_only: omit rows whose first call was inside another range */
    const char *header;  /* title above the table; NULL = none */
};

/* Returns 0 if sort_by is a known column, else -EINVAL with an error that lists the columns. */
int weir_averages_check_sort(const char *sort_by, struct weir_err *err);

/* Prints the rows of work, whose shares add up to 100 %, then the waits, the longest first. Returns the number of rows
 * that row_limit left out. */
size_t weir_averages_print(FILE *out, const struct weir_averages *averages, const struct weir_averages_table *table);
/* Writes an array with one object per row, in the same order, in ns and bytes, into the open array or object. */
void weir_averages_json(struct weir_json *json, const char *key, const struct weir_averages *averages,
                        const struct weir_averages_table *table);

/* Like torch's export_stacks: writes one line per stack, "outermost;...;innermost NUMBER", for flamegraph.pl. metric is
 * self_cpu_time_total or self_cuda_time_total; the numbers are in us. */
int weir_stacks_export(struct weir_trace *trace, const char *metric, const char *path, struct weir_err *err);

/* Parts into which the time of ProfilerStep#N ranges is divided, as in TensorBoard's overview. If several threads or
 * devices are busy at an instant, the instant belongs to the first of their parts in this list. */
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
/* Returns true if a range with this name is a wait for data (WEIR_STEP_DATALOADER). */
bool weir_step_is_data_wait(const char *name);

struct weir_step {
    int64_t number, start_ns, end_ns;
    int64_t part_ns[WEIR_STEP_PARTS]; /* sum is end_ns - start_ns */
};

/* Splits the steps of a trace into parts, in order. The caller frees *out with free(). Returns the number of steps,
 * which may be 0, or -ENOMEM. */
int64_t weir_steps_split(struct weir_trace *trace, struct weir_step **out);

/* ---- writing ----
 *
 * The format is the Chrome trace JSON that Perfetto, TensorBoard's PyTorch plugin and HolisticTraceAnalysis can read
 * (docs/internals/trace.md). */

/* Sorts the trace and writes it to path, compressed if the name ends in .gz. The file is written completely or not at
 * all. Errors contain the path and what to do. */
int weir_trace_write(struct weir_trace *trace, const char *path, struct weir_err *err);

/* Composes the path FOLDER/WORKER.UNIXNS.pt.trace.json, as TensorBoard's plugin requires, with .gz appended if gzip is
 * true. Creates the folder. worker NULL = HOST_PID. */
int weir_trace_path(char *path, size_t size, const char *folder, const char *worker, bool gzip, struct weir_err *err);

#ifdef __cplusplus
}
#endif

#endif
