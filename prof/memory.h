/* memory.h: what the process takes from the machine. */
#ifndef WEIR_PROF_MEMORY_H
#define WEIR_PROF_MEMORY_H

#include <stdint.h>

/* Highest resident set of this program so far, bytes (VmHWM; ru_maxrss would keep what the parent had before exec). 0
 * when the kernel does not say. */
uint64_t weir_peak_rss_bytes(void);

/* What the kernel says can be had without swapping (MemAvailable: free pages and cache it would give up); 0 when it
 * does not say. */
uint64_t weir_memory_available_bytes(void);

#endif
