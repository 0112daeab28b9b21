/* no_memory.h: one clear line when a library crashes because it does not check whether malloc succeeded. */
#ifndef WEIR_CLI_NO_MEMORY_H
#define WEIR_CLI_NO_MEMORY_H

/* From now on a crash that follows an allocation that failed, and an end of the process by a library, are a line and
 * exit status 1. Once, in the main thread. */
void weir_no_memory_watch(void);

/* The program ends by itself: returns status. */
int weir_no_memory_end(int status);

#endif
