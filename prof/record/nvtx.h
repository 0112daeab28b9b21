/* nvtx.h: shows ranges, zones and steps in Nsight Systems, in the domain "weir", whether or not a window records.
 *
 * One bit of weir/recorder.h's state enables it, so it costs nothing while off. Laps, spans, carved-out time and ranges
 * that cross threads are known only when they end, and are not shown. */
#ifndef WEIR_PROF_RECORD_NVTX_H
#define WEIR_PROF_RECORD_NVTX_H

#include "weir/base.h"
#include "weir/recorder.h"

/* Returns the bit to add to weir/recorder.h's state: WEIR_RECORDING_NVTX or 0. */
uint32_t weir_nvtx_state(void);

/* Open and close a range of the calling thread, under the recorded name. Call only while the state has the bit. */
void weir_nvtx_push_(weir_name name);
void weir_nvtx_pop_(void);
/* Number of open ranges of the calling thread; and closes all above depth. */
uint16_t weir_nvtx_depth_(void);
void weir_nvtx_pop_to_(uint16_t depth);

/* ProfilerStep#N, from 0, as ranges of one thread. Zero-initialise. */
struct weir_nvtx_steps {
    bool on;
    int64_t number;
    uint16_t depth; /* depth below the step */
};
/* Enables NVTX and opens step 0. Returns 0, or -errno with the reason in err, and NVTX stays off (-ENODEV also when no
 * tool is attached). */
int weir_nvtx_steps_begin(struct weir_nvtx_steps *steps, struct weir_err *err);
/* Closes the step with everything open inside it, and opens the next. No effect while NVTX is off; the same for end. */
void weir_nvtx_steps_next(struct weir_nvtx_steps *steps);
void weir_nvtx_steps_end(struct weir_nvtx_steps *steps);

#endif
