/* trace.h: a trace in memory: what a window recorded, or what was read from a trace file.
 *
 * The trace writer, the averages, the step split and weir report all work on this one structure. Times are ns since the
 * trace's base. A trace has one owner and no locks. */
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

/* Chrome's phases: X, b and e, i, C; and the i events named [memory] that torch.profiler writes. */
enum weir_event_kind {
    WEIR_EVENT_RANGE,
    WEIR_EVENT_ASYNC,
    WEIR_EVENT_INSTANT,
    WEIR_EVENT_COUNTER,
    WEIR_EVENT_MEMORY,
};

/* Categories of torch.profiler's traces, and ours (loader_stage, loader_item, gpu_stage). */
enum weir_cat {
    WEIR_CAT_OTHER, /* none of these; the text is in cat_text */
    WEIR_CAT_CPU_OP,
    WEIR_CAT_USER_ANNOTATION,
    WEIR_CAT_LOADER_STAGE, /* what loader threads do: no CPU time in TensorBoard's overview */
    WEIR_CAT_LOADER_ITEM,  /* a frame's or batch's way through the threads, async */
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
/* WEIR_CAT_OTHER for a text that is none of the names; length bytes of it. */
enum weir_cat weir_cat_find(const char *text, size_t length);
/* True for what runs on a device: kernels and what is inside them, copies, memsets, device-side annotations and
 * synchronisations. */
bool weir_cat_is_device(enum weir_cat cat);

/* Ids of texts: 0 is the empty text, everywhere "not given". */
typedef uint32_t weir_text_id;

struct weir_event {
    int64_t start_ns;
    int64_t duration_ns;  /* ranges and async ones */
    uint64_t external_id; /* links an operator with what it launched; 0 = none */
    uint64_t item;        /* of async ranges their id; links a frame's waits and work across threads; 0 = none */
    weir_text_id name;
    weir_text_id cat_text; /* of WEIR_CAT_OTHER */
    weir_text_id shapes;   /* "Input Dims" as JSON: [[480, 640, 3], []] */
    weir_text_id types;    /* "Input type" as JSON: ["unsigned char", ""] */
    weir_text_id stack;    /* "Call stack": frames FILE(LINE): FUNCTION, innermost first, joined by ; */
    weir_text_id args;     /* further members of args as JSON text: "stream": 7, "device": 0; none of those above */
    uint32_t track;        /* index into tracks */
    uint32_t correlation;  /* links a runtime call with its device event; 0 = none */
    uint8_t kind, cat;     /* enum weir_event_kind, enum weir_cat */
    bool unfinished;       /* the range was open when the window closed */
    bool stage;            /* work of a stage: on a GPU's streams it is drawn, as annotations are */
    union {
        double value; /* of counters */
        struct {
            uint64_t address;
            int64_t bytes;               /* negative: freed */
            int64_t allocated, reserved; /* totals of the device after it */
            int32_t device;              /* -1: the CPU */
        } memory;
    };
};

/* A row of the trace: a thread, or a stream of a device. */
struct weir_trace_row {
    int64_t pid, tid;
    bool device;            /* pid is a device's number, tid a stream's */
    weir_text_id name;      /* of the thread, as the system knows it */
    weir_text_id pid_label; /* tracks whose pid or tid is a text (Spans, Traces): that text */
};

struct weir_trace_device {
    int id;
    weir_text_id name;
    weir_text_id properties; /* members of deviceProperties as JSON text, id and name left out */
};

struct weir_texts; /* interned texts */

/* What key_averages() makes of python_function ranges, by what the trace shows of the torch that wrote it. */
enum weir_python_frames {
    WEIR_PYTHON_LEFT_OUT, /* 2.11: nothing */
    WEIR_PYTHON_ROWS,     /* 2.13, which names the host: ranges like others */
    WEIR_PYTHON_HIDDEN,   /* 2.15, whose frames name their callers (CallFrom): ranges without rows */
};

struct weir_trace {
    struct weir_event *events; /* weir_trace_sort: by start, longer ones first */
    size_t n_events, events_room;
    struct weir_trace_row *tracks;
    uint32_t n_tracks, tracks_room;
    uint32_t *track_slots; /* of weir_trace_track: indexes + 1 by hash */
    uint32_t n_track_slots;
    struct weir_trace_device *devices;
    int n_devices;
    struct weir_texts *texts;
    int64_t base_unix_ns;        /* what Unix time 0 ns of the trace is */
    int64_t begin_ns, end_ns;    /* the window */
    int64_t main_pid;            /* process that recorded */
    bool shapes, memory, stacks; /* record_shapes, profile_memory, with_stack were on */
    enum weir_python_frames python_frames;
    bool forks;                /* it has functions that jit.fork ran */
    uint64_t dropped;          /* events that found no room */
    weir_text_id process_name; /* of main_pid */
    weir_text_id metadata;     /* further members of the file as JSON text: "name": value, ... */
};

/* An empty trace; 0 or -ENOMEM. */
int weir_trace_new(struct weir_trace **out);
void weir_trace_free(struct weir_trace **trace);

/* The id of length bytes of text, made if new; 0 for the empty text, and when memory is short (weir_trace_failed). */
weir_text_id weir_trace_intern(struct weir_trace *trace, const char *text, size_t length);
/* Lent until the next intern; "" for 0. */
const char *weir_trace_text(const struct weir_trace *trace, weir_text_id id);
/* Number of ids given out: ids are below it. */
uint32_t weir_trace_text_count(const struct weir_trace *trace);

/* The index of the track, made if new; -ENOMEM. label: pid_label, 0 for tracks with numbers. */
int64_t weir_trace_track(struct weir_trace *trace, int64_t pid, int64_t tid, bool device, weir_text_id label);

/* Appends a copy; 0 or -ENOMEM. */
int weir_trace_add(struct weir_trace *trace, const struct weir_event *event);
/* By start; of those that start together the longer first; else in the order they came. 0 or -ENOMEM. */
int weir_trace_sort(struct weir_trace *trace);
/* Of a sorted trace: a range that ends in the same ns as the one around it on its row ends 1 ns before it. Readers add
 * ts and dur as doubles, and take an inner range that then seems to end later for one that overlaps in part:
 * TensorBoard's plugin drops it. 0 or -ENOMEM. */
int weir_trace_nest(struct weir_trace *trace);
/* True when memory was short at some intern: the trace is not whole. */
bool weir_trace_failed(const struct weir_trace *trace);

/* Torch.profiler's key_averages() over a trace, and the table that it prints.
 *
 * Source of the semantics: pytorch torch/autograd/profiler_util.py (EventList, FunctionEvent, FunctionEventAvg,
 * _build_table). */

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

/* Writes a trace as the chrome-trace JSON that Perfetto, TensorBoard's PyTorch plugin and
 * HolisticTraceAnalysis read: docs/trace.md has the dialect. */

/* Sorts the trace and writes it to path (through zlib when the name ends in .gz): aside first, then renamed, so that
 * there is a whole file or none. Errors name the path and what to do. */
int weir_trace_write(struct weir_trace *trace, const char *path, struct weir_err *err);

/* HOST_PID.UNIXNS.pt.trace.json.gz in folder, as TensorBoard's plugin wants it; the folder is made when it is not
 * there. worker: NULL = HOST_PID. */
int weir_trace_path(char *path, size_t size, const char *folder, const char *worker, bool gzip, struct weir_err *err);

#ifdef __cplusplus
}
#endif

#endif
