/* trace_fixture.h: traces as a run would record them, with times that are known. */
#ifndef WEIR_TESTS_TRACE_FIXTURE_H
#define WEIR_TESTS_TRACE_FIXTURE_H

#include "prof/events.h"

enum {
    FIXTURE_STEPS = 6,
    FIXTURE_FIRST_STEP = 2,
    FIXTURE_STEP_US = 10000,
    FIXTURE_WAIT_US = 3000, /* of each step in enumerate(DataLoader): 30 % */
    FIXTURE_WORKERS = 4,
    FIXTURE_PID = 4242,
};

weir_text_id fixture_text(struct weir_trace *trace, const char *text);
uint32_t fixture_thread(struct weir_trace *trace, int64_t tid, const char *name);
/* Appends a range and lends it until the next: more may be set. */
struct weir_event *fixture_range(struct weir_trace *trace, uint32_t track, enum weir_cat cat, const char *name,
                                 int64_t start_us, int64_t us);

/* Steps of a training loop with waits, operators, workers, frames, a queue's depth and memory. */
struct weir_trace *fixture_cpu_trace(void);
/* The same, and a GPU that copies and computes. */
struct weir_trace *fixture_gpu_trace(void);
/* n operators, for speed. */
struct weir_trace *fixture_long_trace(size_t n);

#endif
