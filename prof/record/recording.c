/* State that all recording code reads. It is a file of its own below tracks, zones and NVTX. */
#include "weir/recorder.h"

uint32_t weir_recording_state;
__thread uint64_t weir_item_self __attribute__((tls_model("initial-exec")));
__thread uint32_t weir_stack_self __attribute__((tls_model("initial-exec")));
