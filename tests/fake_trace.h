/* fake_trace.h: what tests ask of the stand-in's recorder (fake_cuda_trace.c) and of its NVTX (fake_cuda_nvtx.c):
 * symbols of the module, which dlsym finds. */
#ifndef WEIR_TESTS_FAKE_TRACE_H
#define WEIR_TESTS_FAKE_TRACE_H

#include "prof/gpu_trace_ops.h"
#include "prof/nvtx_ops.h"

/* "fake_trace": what the recorder does, and has done. The texts of records stay the caller's. */
struct fake_trace {
    /* Given to the next stop, beside what the stand-in's streams did. Times: of the clock that start is given. */
    void (*add)(const struct weir_gpu_record *record);
    void (*set_dropped)(uint64_t records); /* what the next stops say they lost */
    void (*fail_start)(const char *why);   /* NULL: no more */
    void (*fail_stop)(const char *why);
    int (*starts)(void);
    int (*stops)(void);
    int (*kept)(void); /* recordings that are not freed yet */
};

enum { FAKE_NVTX_MAX = 4096 };
struct fake_nvtx_event {
    uint32_t tid;
    bool push;
    const char *text;
    uint64_t item;
};

/* "fake_nvtx" */
struct fake_nvtx {
    void (*listen)(bool listening);
    /* What was pushed and popped since the last call; at most FAKE_NVTX_MAX. */
    int (*take)(struct fake_nvtx_event *events);
};

#endif
