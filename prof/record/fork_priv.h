/* fork_priv.h: makes fork() safe while other threads hold the profiler's locks. All locks are acquired before the fork
 * and released after it, in the parent and in the child. */
#ifndef WEIR_PROF_RECORD_FORK_PRIV_H
#define WEIR_PROF_RECORD_FORK_PRIV_H

enum weir_fork { WEIR_FORK_PREPARE, WEIR_FORK_PARENT, WEIR_FORK_CHILD };

/* Owners of locks, in the order in which their locks nest. PREPARE handlers run in this order, the handlers after the
 * fork in reverse order. */
enum weir_fork_part {
    WEIR_FORK_RECORDERS,
    WEIR_FORK_TRACKS,
    WEIR_FORK_NAMES,
    WEIR_FORK_PARTS,
};

/* Registers a handler that runs around every later fork. Each owner calls this before it acquires its lock for the
 * first time, while it holds no owner's lock. Repeated calls have no effect. */
typedef void weir_fork_fn(enum weir_fork when);
void weir_fork_safe(enum weir_fork_part part, weir_fork_fn *handler);

/* The fork handler of names.c, declared here because tests call it directly. */
void weir_names_fork(enum weir_fork when);

#endif
