/* fake_cuda.h: what the parts of libweir_fake_cuda.so share, the stand-in on the CPU for libweir_cuda.so.
 *
 * A program opens it as the real one: WEIR_CUDA_MODULE names it. What its GPUs are like comes from WEIR_FAKE_CUDA,
 * words with commas between them:
 *
 *   gpus=N             1
 *   memory_bytes=N     of each GPU, 1 GiB
 *   copy_ns_per_mb=N   what copying 1,000,000 bytes takes at least, 0
 *   fail=lost:K        the GPU is lost when operation K (from 1) would be queued; everything else fails from then on
 *   fail=oom:BYTES     taking so many bytes of GPU memory, or more, at once fails
 *   fail=pin           pinning fails
 *   none               there is no GPU and no driver
 *
 * It keeps CUDA's semantics where programs could come to rely on less: streams run beside each other and beside the
 * caller; GPU memory cannot be touched by the host (it faults); freeing waits for all that is queued. What would be
 * undefined or a leak aborts with a line: memory or handles that are not there (any more), ranges that end outside
 * their allocation, memory let go of while copies are queued, anything left when the GPU is closed. */
#ifndef WEIR_TESTS_FAKE_CUDA_H
#define WEIR_TESTS_FAKE_CUDA_H

#include "pipeline/gpu_ops.h"
#include "prof/cuda_module.h"

#include <stdbool.h>
#include <sys/types.h>

struct fake_config {
    int gpus; /* 0 with none */
    bool none, pin_fails;
    uint64_t memory_bytes, copy_ns_per_mb;
    uint64_t lost_at, oom_bytes; /* 0 = never */
};
const struct fake_config *fake_config(void);

void fake_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* CLOCK_MONOTONIC; and sleeping until then. */
int64_t fake_now_ns(void);
void fake_sleep_until(int64_t ns);

struct weir_gpu {
    int number;
};

/* ---- memory (fake_memory.c) ---- */

/* Where bytes [gpu, gpu + bytes) of GPU memory really are; what: "copy_in's target", for the line it dies with when
 * they are not within one allocation. */
void *fake_memory(const void *gpu, size_t bytes, const char *what);
bool fake_is_pinned(const void *host, size_t bytes);
int fake_memory_info(struct weir_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes, struct weir_err *err);
int fake_alloc(struct weir_gpu *gpu, size_t bytes, void **memory, struct weir_err *err);
void fake_free(struct weir_gpu *gpu, void *memory);
int fake_pin(struct weir_gpu *gpu, void *memory, size_t bytes, struct weir_err *err);
void fake_unpin(struct weir_gpu *gpu, void *memory);
/* Dies if the GPU has memory, or pinned memory, still. */
void fake_memory_check_empty(const struct weir_gpu *gpu);

/* ---- streams and events (fake_streams.c) ---- */

struct fake_operation {
    const char *name;        /* of static storage */
    void (*run)(void *user); /* on the stream's thread */
    void *user;              /* freed with free() after it has run; by the caller if it was not queued */
    const void *host;        /* memory of the host that it uses, and how much; NULL = none */
    size_t bytes;            /* copied, or used; 0 = no such thing */
};
/* 0, or -EIO once the GPU is lost. */
int fake_queue(void *stream, const struct fake_operation *operation, struct weir_err *err);

/* Tells another part of the module, a recorder say, what has run: from the stream's thread, times of the clock that is
 * given, 0 for what was before the first. stream: from 1; number: counts operations, from 1. NULL = nobody, and then
 * the clock stays. */
struct fake_ran {
    const char *name;
    uint32_t stream, number;
    pid_t tid; /* the thread that queued it, and the call that it did so with */
    int64_t call_ns, called_ns;
    int64_t start_ns, end_ns;
    size_t bytes;
};
void fake_observe(void (*on_ran)(const struct fake_ran *ran), uint64_t (*now_ns)(void));

/* The same of calls about events, from the thread that made them. A wait is told of with the record that it was for;
 * record and stream waits are operations, too, and have their number; that of a wait is one of its own, above those. */
enum fake_call { FAKE_RECORD, FAKE_STREAM_WAIT, FAKE_WAIT };
struct fake_called {
    enum fake_call call;
    uint32_t stream, number; /* stream 0: of the wait of the host */
    uint32_t record_stream, record_number;
    int64_t start_ns, end_ns;
};
void fake_observe_calls(void (*on_call)(const struct fake_called *called));

/* -EIO with its line once the GPU is lost, else 0. */
int fake_check_lost(struct weir_err *err);
/* Waits for all that is queued. */
void fake_drain(const struct weir_gpu *gpu);
/* True while something queued uses these bytes of the host. */
bool fake_in_flight(const void *host, size_t bytes);
void fake_streams_check_empty(const struct weir_gpu *gpu);

int fake_stream_new(struct weir_gpu *gpu, bool urgent, void **stream, struct weir_err *err);
void fake_stream_free(struct weir_gpu *gpu, void *stream);
int fake_event_new(struct weir_gpu *gpu, bool timed, void **event, struct weir_err *err);
void fake_event_free(struct weir_gpu *gpu, void *event);
int fake_record(struct weir_gpu *gpu, void *event, void *stream, struct weir_err *err);
int fake_stream_wait(struct weir_gpu *gpu, void *stream, void *event, struct weir_err *err);
int fake_passed(struct weir_gpu *gpu, void *event, struct weir_err *err);
int fake_wait(struct weir_gpu *gpu, void *event, struct weir_err *err);
int fake_elapsed(struct weir_gpu *gpu, void *from, void *to, int64_t *ns, struct weir_err *err);

/* ---- the tables; a part that is not linked in is NULL in the module's ---- */

extern const struct weir_gpu_ops weir_gpu_fake;
extern const struct weir_gpu_jpeg_ops weir_gpu_jpeg_fake __attribute__((weak));   /* fake_cuda_jpeg.c */
extern const struct weir_gpu_trace_ops weir_gpu_trace_fake __attribute__((weak)); /* fake_cuda_trace.c */
extern const struct weir_nvtx_ops weir_nvtx_fake __attribute__((weak));

#endif
