/* nvtx.h: shows ranges, zones and steps in Nsight Systems, in the domain "weir", even outside recording windows.
 *
 * One bit of the state in weir/recorder.h enables it, so it costs nothing while it is off. Laps, spans, carved-out time
 * and ranges that cross threads are not shown, because they are known only when they end. */
#ifndef WEIR_PROF_RECORD_NVTX_H
#define WEIR_PROF_RECORD_NVTX_H

#include "weir/base.h"
#include "weir/recorder.h"

/* Returns the bit to add to the state in weir/recorder.h: WEIR_RECORDING_NVTX or 0. */
uint32_t weir_nvtx_state(void);

/* Open and close a range of the calling thread under the name's string. Call these only while the state has the NVTX
 * bit. */
void weir_nvtx_push_(weir_name name);
void weir_nvtx_pop_(void);
/* Returns the calling thread's number of open ranges. weir_nvtx_pop_to_ closes all ranges above `depth`. */
uint16_t weir_nvtx_depth_(void);
void weir_nvtx_pop_to_(uint16_t depth);

/* Shows steps as ranges ProfilerStep#N of one thread, counting from 0. Zero-initialise. */
struct weir_nvtx_steps {
    bool on;
    int64_t number;
    uint16_t depth; /* number of ranges that enclose the step */
};
/* Enables NVTX and opens step 0. On failure, NVTX stays off; returns -errno with the reason in err (-ENODEV also if no
 * tool is attached). */
int weir_nvtx_steps_begin(struct weir_nvtx_steps *steps, struct weir_err *err);
/* Closes the current step and all ranges open inside it, and opens the next step. Both functions have no effect while
 * NVTX is off. */
void weir_nvtx_steps_next(struct weir_nvtx_steps *steps);
void weir_nvtx_steps_end(struct weir_nvtx_steps *steps);

#endif
