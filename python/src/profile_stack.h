/* profile_stack.h: the stack of Python functions as the profiler's records carry it, under with_stack. */
#ifndef WEIR_PYTHON_SRC_PROFILE_STACK_H
#define WEIR_PYTHON_SRC_PROFILE_STACK_H

#include "weir/recorder.h"

/* The number of the calling thread's stack (weir_stack_text), 0 when it cannot be had. With the interpreter's lock;
 * leaves no exception. */
uint32_t weir_profile_stack(void);

/* From here on the calling thread's records carry it, where a recording has stacks; returns what they carried before,
 * for weir_stack_self. */
static inline uint32_t weir_profile_stack_here(void)
{
    uint32_t before = weir_stack_self;
    if (weir_recording() & WEIR_RECORDING_STACKS)
        weir_stack_self = weir_profile_stack();
    return before;
}

#endif
