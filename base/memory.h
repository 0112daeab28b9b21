/* memory.h: what the process takes from the machine. */
#ifndef WEIR_BASE_MEMORY_H
#define WEIR_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Highest resident set of this program so far, bytes (VmHWM; ru_maxrss would keep what the parent had before exec). 0
 * when /proc does not have it. */
uint64_t weir_peak_rss_bytes(void);

/* What can be had without swapping: MemAvailable (free pages and cache that the kernel would give up), or what the
 * memory cgroups of this process leave of their limit, whichever is less; at least 1, and 0 when neither is known.
 * Address space (RLIMIT_AS) is not counted: the page cache needs none, and mmap fails when it is used up. */
uint64_t weir_memory_available_bytes(void);
/* The same of another root folder: root/proc/meminfo and so on, for tests. */
uint64_t weir_memory_available_in(const char *root);
/* For one of so many processes that take the same on this machine, about now: what is available, but not more than an
 * even part of all there is. What the others have taken so far is not available any more, so it is not divided. */
uint64_t weir_memory_available_each(int processes);

/* munmap of so many bytes and of what is left of their last page, as the kernel does it anyway. Given in whole pages,
 * because ThreadSanitizer forgets whole pages only, and reports a race with whoever gets the last one by a system call
 * that it does not see (liburing's). */
void weir_memory_unmap(void *memory, size_t bytes);

#endif
