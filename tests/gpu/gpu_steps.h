/* gpu_steps.h: what a training loop does with a GPU, in small: waits for data, copies a batch in, computes on it, waits
 * for the result. For whatever module the fixture has open. */
#ifndef WEIR_TESTS_GPU_GPU_STEPS_H
#define WEIR_TESTS_GPU_GPU_STEPS_H

#include "tests/gpu/gpu_fixture.h"
#include "weir/profiler.h"

enum {
    GPU_STEP_BYTES = 4 << 20, /* copied in a step */
    GPU_STEP_KERNELS = 3,     /* in a step */
};

struct gpu_steps {
    struct gpufx *fx;
    void *copying, *computing; /* streams */
    void *copied, *computed;   /* events */
    void *batch;               /* on the GPU */
    void *pinned;
};

void gpu_steps_open(struct gpu_steps *steps, struct gpufx *fx);
/* One step of about 10 ms, of which 3 are the wait for data; the calling thread is attached to a recorder as its
 * consumer. */
void gpu_steps_run(struct gpu_steps *steps);
void gpu_steps_close(struct gpu_steps *steps);

#endif
