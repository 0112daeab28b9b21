/* The recording state, which all recording code reads. In a separate file, so that tracks, zones and NVTX can all use
 * it. */
#include "weir/recorder.h"

uint32_t weir_recording_state;
__thread uint64_t weir_item_self __attribute__((tls_model("initial-exec")));
__thread uint32_t weir_stack_self __attribute__((tls_model("initial-exec")));
