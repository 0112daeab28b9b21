/* fork_priv.h: fork() while threads hold the profiler's locks. All locks are taken before the fork and released on both
 * sides after it. */
#ifndef WEIR_PROF_RECORD_FORK_PRIV_H
#define WEIR_PROF_RECORD_FORK_PRIV_H

enum weir_fork { WEIR_FORK_PREPARE, WEIR_FORK_PARENT, WEIR_FORK_CHILD };

/* Owners of locks, in nesting order. PREPARE follows this order; the two handlers after the fork follow the reverse. */
enum weir_fork_part {
    WEIR_FORK_RECORDERS,
    WEIR_FORK_TRACKS,
    WEIR_FORK_NAMES,
    WEIR_FORK_STACKS,
    WEIR_FORK_PARTS,
};

/* Registers a handler to call around every later fork. Each part calls this before it takes its lock for the first
 * time, while holding no part's lock; repeated calls have no effect. */
typedef void weir_fork_fn(enum weir_fork when);
void weir_fork_safe(enum weir_fork_part part, weir_fork_fn *handler);

/* The handler in stacks.c; tests call it directly. */
void weir_stacks_fork(enum weir_fork when);

#endif
