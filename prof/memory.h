/* memory.h: what the process takes from the machine. */
#ifndef WEIR_PROF_MEMORY_H
#define WEIR_PROF_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Highest resident set of this program so far, bytes (VmHWM; ru_maxrss would keep what the parent had before exec). 0
 * when the kernel does not say. */
uint64_t weir_peak_rss_bytes(void);

/* What the kernel says can be had without swapping (MemAvailable: free pages and cache it would give up); 0 when it
 * does not say. */
uint64_t weir_memory_available_bytes(void);

/* munmap of so many bytes and of what is left of their last page, as the kernel does it anyway. Said in whole pages,
 * because ThreadSanitizer forgets whole pages only, and takes who gets the last one by a system call that it does not
 * see (liburing's) for a race. */
void weir_memory_unmap(void *memory, size_t bytes);

#endif
