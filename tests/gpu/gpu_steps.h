/* gpu_steps.h: a miniature training loop on a GPU. Each step waits for data, copies a batch to the GPU, computes, and
 * waits for the result. Works with any module that the fixture has opened. */
#ifndef WEIR_TESTS_GPU_GPU_STEPS_H
#define WEIR_TESTS_GPU_GPU_STEPS_H

#include "tests/gpu/gpu_fixture.h"
#include "weir/profiler.h"

enum {
    GPU_STEP_BYTES = 4 << 20, /* copied per step */
    GPU_STEP_KERNELS = 3,     /* kernels per step */
};

struct gpu_steps {
    struct gpufx *fx;
    void *copying, *computing; /* streams */
    void *copied, *computed;   /* events */
    void *batch;               /* in GPU memory */
    void *pinned;
};

void gpu_steps_open(struct gpu_steps *steps, struct gpufx *fx);
/* Runs one step of about 10 ms, including a wait for data of 3 ms. The calling thread must be attached to a recorder as
 * its consumer. */
void gpu_steps_run(struct gpu_steps *steps);
void gpu_steps_close(struct gpu_steps *steps);

#endif
