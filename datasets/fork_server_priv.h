/* fork_server_priv.h: makes processes out of a process that may have many threads.
 *
 * A child forked while other threads run may be born with one of their locks held: its first allocation can hang. So
 * one child is forked when the first dataset is opened, and stays; it has a single thread, and all others come from it.
 * It is nobody's child (forked twice), so that programs which wait for their children do not meet it, and it ends with
 * the process that started it. A process that was itself forked gets its own. Any thread. */
#ifndef WEIR_DATASETS_FORK_SERVER_PRIV_H
#define WEIR_DATASETS_FORK_SERVER_PRIV_H

#include "base/err.h"

#include <sys/types.h>

/* Starts the server, where there is none yet: for a thread that is about to start others. Failing costs nothing: it is
 * tried again, and told of, when the first process is asked for. */
void weir_fork_server_start(void);

/* A new process that runs serve(fd), has no other descriptors, writes nowhere, and _exits after it. *fd is the other
 * end of its socket, for the caller to close. It is killed when the server ends, and so with the process that asked. */
int weir_fork_server_new(void (*serve)(int fd), pid_t *pid, int *fd, struct weir_err *err);

/* Kills such a process, if it is still there, and returns its wait status; 0 when nobody knows. */
int weir_fork_server_end(pid_t pid);

#endif
