/* nvtx.h: ranges, zones and steps as Nsight Systems shows them, in the domain "weir", whether or not a window records.
 *
 * A bit of recording.h's state says that it is on, so that nobody pays for it while it is off. Laps, spans, what is
 * carved out of a zone and ranges that cross threads are known only when they end, and are not shown. */
#ifndef WEIR_PROF_RECORD_NVTX_H
#define WEIR_PROF_RECORD_NVTX_H

#include "weir/base.h"
#include "weir/recorder.h"

/* What the state of recording.h has to hold besides the recording: WEIR_RECORDING_NVTX or 0. */
uint32_t weir_nvtx_state(void);

/* Opens and closes a range of the calling thread, named as the records are; only while a state with the bit says so. */
void weir_nvtx_push_(weir_name name);
void weir_nvtx_pop_(void);
/* How many are open on the calling thread; closes those above. */
uint16_t weir_nvtx_depth_(void);
void weir_nvtx_pop_to_(uint16_t depth);

/* ProfilerStep#N, from 0, as ranges of one thread. All zeros to begin with. */
struct weir_nvtx_steps {
    bool on;
    int64_t number;
    uint16_t depth; /* what was open below the step */
};
/* Switches NVTX on and opens step 0; 0, or -errno: it stays off, err says why (-ENODEV, no tool listens, too). */
int weir_nvtx_steps_begin(struct weir_nvtx_steps *steps, struct weir_err *err);
/* Closes the step, and what is open inside it, and opens the next. Does nothing when it is off, as end. */
void weir_nvtx_steps_next(struct weir_nvtx_steps *steps);
void weir_nvtx_steps_end(struct weir_nvtx_steps *steps);

#endif
