/* no_memory.h: one clear line when a library crashes because it does not check whether malloc succeeded. */
#ifndef WEIR_CLI_NO_MEMORY_H
#define WEIR_CLI_NO_MEMORY_H

/* Installs handlers: a crash right after a failed allocation, and a call of exit by a library, then print one line and
 * end the process with status 1. Called once, by the main thread. */
void weir_no_memory_watch(void);

/* Returns status, and from here on an exit is the program's own. */
int weir_no_memory_end(int status);

#endif
