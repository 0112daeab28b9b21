/* memory.h: what the process takes from the machine. */
#ifndef WEIR_PROF_MEMORY_H
#define WEIR_PROF_MEMORY_H

#include <stdint.h>

/* Highest resident set so far, bytes (getrusage ru_maxrss). */
uint64_t weir_peak_rss_bytes(void);

#endif
