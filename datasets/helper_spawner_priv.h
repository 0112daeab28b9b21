/* helper_spawner_priv.h: the process that forks the HDF5 helper processes. It has one thread, so its children start
 * without a lock held, however many threads the program has.
 *
 * A child that is forked while other threads run may inherit one of their locks: its first allocation can hang. So the
 * spawner is forked when the first dataset is opened, and stays. It is forked twice and so belongs to init: programs
 * that wait for their children do not see it. It ends with the process that started it; a process that was itself
 * forked gets a spawner of its own. Any thread may call these. */
#ifndef WEIR_DATASETS_HELPER_SPAWNER_PRIV_H
#define WEIR_DATASETS_HELPER_SPAWNER_PRIV_H

#include "base/err.h"

#include <sys/types.h>

/* Starts the spawner if there is none: to be called before other threads are started. A failure is not reported here;
 * the first weir_helper_spawn tries again and reports it. */
void weir_helper_spawner_start(void);

/* Forks a process that runs serve(fd) and then calls _exit. It has no other descriptors but /dev/null. *fd is the other
 * end of its socket, for the caller to close. It is killed when the spawner ends, and so with the caller's process. */
int weir_helper_spawn(void (*serve)(int fd), pid_t *pid, int *fd, struct weir_err *err);

/* Kills such a process if it still runs, and returns its wait status; 0 when the spawner is gone. */
int weir_helper_reap(pid_t pid);

#endif
