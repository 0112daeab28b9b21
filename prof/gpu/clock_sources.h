/* clock_sources.h: registry of clocks inside kernels (kernel_clock.h) for GPU recordings. Before each launch, a source
 * checks whether GPUs are being recorded, and launches its kernel with clocks only if they are. When the recording has
 * ended and the launched work is done, the sources' tables are collected. */
#ifndef WEIR_PROF_GPU_CLOCK_SOURCES_H
#define WEIR_PROF_GPU_CLOCK_SOURCES_H

#include "weir/kernel_clock.h"

/* One launch and its table. */
struct weir_clock_launch {
    const struct weir_kernel_clock_kernel *kernel; /* valid until the process ends */
    const void *table;
    size_t bytes;
    uint32_t launch;              /* same as in weir_kernel_clock_table */
    uint64_t step_ns;             /* resolution of the GPU's %globaltimer; 0 = unknown */
    int32_t tid;                  /* the launching thread */
    uint64_t before_ns, after_ns; /* weir_gpu_now_ns before and after the launching call, to identify this call */
    uint64_t skipped;             /* launches that the source made without clocks, because all its tables were in use */
};

/* The launches of a recording. */
struct weir_clock_launches {
    struct weir_clock_launch *at; /* array; owns the launches' tables */
    size_t n, bytes;
    uint64_t lost; /* launches dropped because memory was short or the tables exceeded 64 MiB */
};
/* Adds a copy of the launch and of its table. */
void weir_clock_launches_add(struct weir_clock_launches *launches, const struct weir_clock_launch *launch);
void weir_clock_launches_clear(struct weir_clock_launches *launches);

struct weir_clock_source {
    /* Adds the source's launches during this recording to `to`. Called on the thread that ends the recording or removes
     * the source, never concurrently. */
    void (*collect)(void *user, uint32_t recording, struct weir_clock_launches *to);
    void *user;
    struct weir_clock_source *next; /* list link */
};

/* Returns the number of the running recording, or 0 if none exists. Any thread can call it; costs one relaxed load.
 */
uint32_t weir_clock_recording(void);

/* Add and remove a source, on any thread. The caller owns the structure and must keep it until it is removed. Removing
 * a source collects its launches if a recording is running. Do not call these from within collect. */
void weir_clock_source_add(struct weir_clock_source *source);
void weir_clock_source_remove(struct weir_clock_source *source);

/* Used by gpu_trace.c, for one recording at a time. begin enables clocks in launches, pause disables them, and end
 * collects the launches from all sources. `launches` must stay valid until then. */
void weir_clock_recording_begin(struct weir_clock_launches *launches);
void weir_clock_recording_pause(void);
void weir_clock_recording_end(void);

#endif
