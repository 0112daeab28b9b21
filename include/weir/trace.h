/* trace.h: a trace in memory, recorded in a window or read from a file; its averages, and writing it.
 *
 * Times are ns since the trace's base. A trace has one owner and no locks. */
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

/* Phases of the Chrome format: X, b and e, i, C; and the i events named [memory] of torch.profiler. */
enum weir_event_kind {
    WEIR_EVENT_RANGE,
    WEIR_EVENT_ASYNC,
    WEIR_EVENT_INSTANT,
    WEIR_EVENT_COUNTER,
    WEIR_EVENT_MEMORY,
};

/* Categories of torch.profiler's traces, and Weir's own (loader_stage, loader_item, gpu_stage). */
enum weir_cat {
    WEIR_CAT_OTHER, /* another one; its text is in cat_text */
    WEIR_CAT_CPU_OP,
    WEIR_CAT_USER_ANNOTATION,
    WEIR_CAT_LOADER_STAGE, /* work of loader threads: no CPU time in TensorBoard's overview */
    WEIR_CAT_LOADER_ITEM,  /* the path of a frame or batch across threads, async */
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
    WEIR_CAT_GPU_STAGE,         /* a block with clocks inside its kernel, and its stages */
    WEIR_CAT_COUNT,
};

/* "cpu_op"; "" for WEIR_CAT_OTHER. */
const char *weir_cat_name(enum weir_cat cat);
/* Category of length bytes of text; WEIR_CAT_OTHER for an unknown name. */
enum weir_cat weir_cat_find(const char *text, size_t length);
/* Whether events of the category run on a device: kernels and their parts, copies, memsets, device-side annotations and
 * synchronisations. */
bool weir_cat_is_device(enum weir_cat cat);

/* Number of an interned text; 0 is the empty text, and means "not given" everywhere. */
typedef uint32_t weir_text_id;

struct weir_event {
    int64_t start_ns;
    int64_t duration_ns;  /* of ranges and async ranges */
    uint64_t external_id; /* links an operator with the work that it launched; 0 = none */
    uint64_t item;        /* number of an async range; links a frame's waits and work across threads; 0 = none */
    weir_text_id name;
    weir_text_id cat_text; /* of WEIR_CAT_OTHER */
    weir_text_id shapes;   /* "Input Dims" as JSON: [[480, 640, 3], []] */
    weir_text_id types;    /* "Input type" as JSON: ["unsigned char", ""] */
    weir_text_id stack;    /* "Call stack": frames FILE(LINE): FUNCTION, innermost first, joined by ; */
    weir_text_id args;     /* further members of args as JSON text: "stream": 7, "device": 0 */
    uint32_t track;        /* index into tracks */
    uint32_t correlation;  /* links a runtime call with its device event; 0 = none */
    uint8_t kind, cat;     /* enum weir_event_kind, enum weir_cat */
    bool unfinished;       /* still open when the window closed */
    bool stage;            /* work of a stage; drawn on a GPU's streams as annotations are */
    union {
        double value; /* of counters */
        struct {
            uint64_t address;
            int64_t bytes;               /* negative: freed */
            int64_t allocated, reserved; /* totals of the device after this event */
            int32_t device;              /* -1: the CPU */
        } memory;
    };
};

/* A row of the trace: a thread, or a stream of a device. */
struct weir_trace_row {
    int64_t pid, tid;
    bool device;            /* pid is the number of a device, tid that of a stream */
    weir_text_id name;      /* of the thread, as the kernel knows it */
    weir_text_id pid_label; /* text of pid or tid, for tracks named by text (Spans, Traces) */
};

struct weir_trace_device {
    int id;
    weir_text_id name;
    weir_text_id properties; /* members of deviceProperties as JSON text, without id and name */
};

struct weir_texts; /* interned texts */

/* How key_averages() treats python_function ranges, by the version of torch that wrote the trace. */
enum weir_python_frames {
    WEIR_PYTHON_LEFT_OUT, /* 2.11: ignored */
    WEIR_PYTHON_ROWS,     /* 2.13, which names the host: as other ranges */
    WEIR_PYTHON_HIDDEN,   /* 2.15, whose frames name their callers (CallFrom): ranges without rows */
};

struct weir_trace {
    struct weir_event *events; /* after weir_trace_sort: by start, longer ones first */
    size_t n_events, events_room;
    struct weir_trace_row *tracks;
    uint32_t n_tracks, tracks_room;
    uint32_t *track_slots; /* hash table of weir_trace_track: indexes + 1 */
    uint32_t n_track_slots;
    struct weir_trace_device *devices;
    int n_devices;
    struct weir_texts *texts;
    int64_t base_unix_ns;        /* Unix time of 0 ns */
    int64_t begin_ns, end_ns;    /* the window */
    int64_t main_pid;            /* the process that recorded */
    bool shapes, memory, stacks; /* options record_shapes, profile_memory, with_stack */
    enum weir_python_frames python_frames;
    bool forks;                /* contains functions run by jit.fork */
    uint64_t dropped;          /* events that did not fit */
    weir_text_id process_name; /* of main_pid */
    weir_text_id metadata;     /* further members of the file as JSON text: "name": value, ... */
};

/* Creates an empty trace. 0 or -ENOMEM. */
int weir_trace_new(struct weir_trace **out);
void weir_trace_free(struct weir_trace **trace);

/* Returns the number of length bytes of text, interning it if new. 0 for the empty text, and without memory
 * (weir_trace_failed). */
weir_text_id weir_trace_intern(struct weir_trace *trace, const char *text, size_t length);
/* Lent until the next weir_trace_intern; "" for 0. */
const char *weir_trace_text(const struct weir_trace *trace, weir_text_id id);
/* One more than the largest number in use. */
uint32_t weir_trace_text_count(const struct weir_trace *trace);

/* Returns the index of a track, creating it if new, or -ENOMEM. label: pid_label, 0 for tracks with numbers. */
int64_t weir_trace_track(struct weir_trace *trace, int64_t pid, int64_t tid, bool device, weir_text_id label);

/* Appends a copy; 0 or -ENOMEM. */
int weir_trace_add(struct weir_trace *trace, const struct weir_event *event);
/* Sorts by start, longer events first, otherwise in order of arrival. 0 or -ENOMEM. */
int weir_trace_sort(struct weir_trace *trace);
/* Shortens ranges of a sorted trace that end in the same ns as the range around them, by 1 ns. Readers add ts and dur
 * as doubles, and take an inner range that seems to end later for a partial overlap, which TensorBoard's plugin drops.
 * 0 or -ENOMEM. */
int weir_trace_nest(struct weir_trace *trace);
/* Whether memory ran out while interning: the trace is incomplete. */
bool weir_trace_failed(const struct weir_trace *trace);

/* ---- averages: torch.profiler's key_averages(), and the table that it prints ----
 *
 * Source of the semantics: pytorch torch/autograd/profiler_util.py (EventList, FunctionEvent, FunctionEventAvg,
 * _build_table). */

/* Keys of a row besides its name. */
struct weir_averages_config {
    bool by_shape; /* group_by_input_shape */
    int by_stack;  /* group_by_stack_n: number of stack frames; 0 = none */
};

struct weir_averages_row {
    weir_text_id name, shapes, stack;
    bool device;     /* ran on a device: CPU columns are 0 */
    bool annotation; /* user_annotation or gpu_user_annotation */
    bool nested;     /* its first call was inside another range: not a top-level row */
    uint64_t count;
    int64_t cpu_ns, self_cpu_ns, device_ns, self_device_ns;
    int64_t cpu_bytes, self_cpu_bytes, device_bytes, self_device_bytes;
};

struct weir_averages {
    struct weir_trace *trace; /* borrowed, for its texts */
    struct weir_averages_row *rows;
    size_t n_rows;
    int64_t self_cpu_ns, self_device_ns; /* the totals of percentages and footer */
    bool has_device_time, has_memory, has_device_memory;
    struct weir_averages_config config;
};

/* Sorts the trace. Rows are in torch's order before sorting: by first appearance. */
int weir_averages_open(struct weir_averages **out, struct weir_trace *trace, const struct weir_averages_config *config);
void weir_averages_close(struct weir_averages **averages);

struct weir_averages_table {
    const char *sort_by; /* torch's name of a column: "self_cpu_time_total"; NULL = unsorted */
    int row_limit;       /* -1 = all */
    bool top_level;      /* top_level_events_only: rows whose calls are inside no other range */
    const char *header;  /* title above the table; NULL = none */
};

/* 0 if sort_by is a known column, else -EINVAL with an error that lists them. */
int weir_averages_check_sort(const char *sort_by, struct weir_err *err);

void weir_averages_print(FILE *out, const struct weir_averages *averages, const struct weir_averages_table *table);
/* Writes the rows as an array of objects, in ns and bytes, into the open array or object. */
void weir_averages_json(struct weir_json *json, const char *key, const struct weir_averages *averages,
                        const struct weir_averages_table *table);

/* export_stacks: one line per stack, "outermost;...;innermost NUMBER", for flamegraph.pl. metric: self_cpu_time_total
 * or self_cuda_time_total, in us. */
int weir_stacks_export(struct weir_trace *trace, const char *metric, const char *path, struct weir_err *err);

/* Parts of the time of ProfilerStep#N ranges, as in TensorBoard's overview: each instant belongs to the first part that
 * any thread or device is busy with. */
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
/* Whether a range of this name is a wait for data (WEIR_STEP_DATALOADER). */
bool weir_step_is_data_wait(const char *name);

struct weir_step {
    int64_t number, start_ns, end_ns;
    int64_t part_ns[WEIR_STEP_PARTS]; /* sum is end - start */
};

/* Splits the steps of a trace, in order. *out is owned by the caller (free). Returns their number, 0 without steps, or
 * -ENOMEM. */
int64_t weir_steps_split(struct weir_trace *trace, struct weir_step **out);

/* ---- writing ----
 *
 * The format is the Chrome trace JSON that Perfetto, TensorBoard's PyTorch plugin and HolisticTraceAnalysis read
 * (docs/trace.md). */

/* Sorts the trace and writes it to path, compressed if the name ends in .gz. The file appears whole or not at all.
 * Errors name the path and what to do. */
int weir_trace_write(struct weir_trace *trace, const char *path, struct weir_err *err);

/* Composes FOLDER/HOST_PID.UNIXNS.pt.trace.json.gz, as TensorBoard's plugin requires, and creates the folder. worker:
 * NULL = HOST_PID. */
int weir_trace_path(char *path, size_t size, const char *folder, const char *worker, bool gzip, struct weir_err *err);

#ifdef __cplusplus
}
#endif

#endif
