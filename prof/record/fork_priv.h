/* fork_priv.h: fork() while threads hold the profiler's locks: all are taken before, and given back on both sides
 * after. */
#ifndef WEIR_PROF_RECORD_FORK_PRIV_H
#define WEIR_PROF_RECORD_FORK_PRIV_H

enum weir_fork { WEIR_FORK_PREPARE, WEIR_FORK_PARENT, WEIR_FORK_CHILD };

/* Who has locks, in the order in which they nest: the order of PREPARE; afterwards it is the other way round. */
enum weir_fork_part {
    WEIR_FORK_RECORDERS,
    WEIR_FORK_TRACKS,
    WEIR_FORK_NAMES,
    WEIR_FORK_STACKS,
    WEIR_FORK_PARTS,
};

/* From the next fork on handler is called around each. Every part calls it before it takes its lock for the first time,
 * and holds no lock of any part's; further calls change nothing. */
typedef void weir_fork_fn(enum weir_fork when);
void weir_fork_safe(enum weir_fork_part part, weir_fork_fn *handler);

/* stacks.c's handler, which a test calls. */
void weir_stacks_fork(enum weir_fork when);

#endif
