/* clock_sources.h: registry of clocks inside kernels (kernel_clock.h) for GPU recordings. Before each launch a source
 * checks whether GPUs are recorded, and launches its kernel with clocks only then. When the recording ends and the
 * launched work is done, the source's tables are collected. */
#ifndef WEIR_PROF_GPU_CLOCK_SOURCES_H
#define WEIR_PROF_GPU_CLOCK_SOURCES_H

#include "weir/kernel_clock.h"

/* One launch and its table. */
struct weir_clock_launch {
    const struct weir_kernel_clock_kernel *kernel; /* valid for the life of the process */
    const void *table;
    size_t bytes;
    uint32_t launch;              /* as in weir_kernel_clock_table */
    uint64_t step_ns;             /* step of the GPU's %globaltimer; 0 = unknown */
    int32_t tid;                  /* the launching thread */
    uint64_t before_ns, after_ns; /* weir_gpu_now_ns before and after the call, to identify it */
    uint64_t skipped;             /* launches of the source without clocks, because its tables were in use */
};

/* The launches of a recording. */
struct weir_clock_launches {
    struct weir_clock_launch *at; /* owns their tables */
    size_t n, bytes;
    uint64_t lost; /* dropped: out of memory, or beyond 64 MiB */
};
/* Adds a copy. */
void weir_clock_launches_add(struct weir_clock_launches *launches, const struct weir_clock_launch *launch);
void weir_clock_launches_clear(struct weir_clock_launches *launches);

struct weir_clock_source {
    /* Adds the launches of that recording. Called on the thread that ends it or removes the source, one call at a time.
     */
    void (*collect)(void *user, uint32_t recording, struct weir_clock_launches *to);
    void *user;
    struct weir_clock_source *next; /* list link */
};

/* Returns the number of the running recording, 0 = none. Any thread; one relaxed load. */
uint32_t weir_clock_recording(void);

/* Any thread. The caller owns the structure and keeps it until it is removed. Removing hands its tables to the running
 * recording, if any. Do not call from within collect. */
void weir_clock_source_add(struct weir_clock_source *source);
void weir_clock_source_remove(struct weir_clock_source *source);

/* For gpu_trace.c, one recording at a time: start giving clocks to launches, stop, and later collect from all sources.
 * `launches` must stay valid until then. */
void weir_clock_recording_begin(struct weir_clock_launches *launches);
void weir_clock_recording_pause(void);
void weir_clock_recording_end(void);

#endif
