/* clock_sources.h: who has clocks inside kernels (kernel_clock.h) that a recording of GPUs takes along. A source asks
 * before each launch whether GPUs are recorded, and only then launches its kernel with clocks; when the recording ends,
 * and the GPUs have done what was launched, its tables are collected. */
#ifndef WEIR_PROF_GPU_CLOCK_SOURCES_H
#define WEIR_PROF_GPU_CLOCK_SOURCES_H

#include "weir/kernel_clock.h"

/* One launch, and the table that it wrote. */
struct weir_clock_launch {
    const struct weir_kernel_clock_kernel *kernel; /* for the life of the process */
    const void *table;
    size_t bytes;
    uint32_t launch;              /* as weir_kernel_clock_table has it */
    uint64_t step_ns;             /* of the GPU's %globaltimer; 0: not known */
    int32_t tid;                  /* the thread that launched it */
    uint64_t before_ns, after_ns; /* weir_gpu_now_ns on either side of the call: what tells it from others */
    uint64_t skipped;             /* launches of the source that had no clocks, as its tables were in use */
};

/* The launches of a recording. */
struct weir_clock_launches {
    struct weir_clock_launch *at; /* owns their tables */
    size_t n, room, bytes;
    uint64_t lost; /* that found no memory, or were past 64 MiB */
};
/* Adds a copy. */
void weir_clock_launches_add(struct weir_clock_launches *launches, const struct weir_clock_launch *launch);
void weir_clock_launches_clear(struct weir_clock_launches *launches);

struct weir_clock_source {
    /* Adds the launches of that recording. From the thread that ends it, or removes the source; one at a time. */
    void (*collect)(void *user, uint32_t recording, struct weir_clock_launches *to);
    void *user;
    struct weir_clock_source *next; /* the list's */
};

/* The number of the recording that goes on, 0: none. Any thread; one relaxed load. */
uint32_t weir_clock_recording(void);

/* Any thread; the structure is the caller's, and in use until it is removed. Removing it hands what it has to the
 * recording that goes on, if any; not from within collect. */
void weir_clock_source_add(struct weir_clock_source *source);
void weir_clock_source_remove(struct weir_clock_source *source);

/* For gpu_trace.c, one recording at a time: launches has clocks from here on; has none any more; and, later, all
 * sources are asked. launches is in use until then. */
void weir_clock_recording_begin(struct weir_clock_launches *launches);
void weir_clock_recording_pause(void);
void weir_clock_recording_end(void);

#endif
