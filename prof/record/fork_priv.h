/* fork_priv.h: fork() while threads hold the profiler's locks: all are taken before, and given back on both sides
 * after. */
#ifndef WEIR_PROF_RECORD_FORK_PRIV_H
#define WEIR_PROF_RECORD_FORK_PRIV_H

enum weir_fork { WEIR_FORK_PREPARE, WEIR_FORK_PARENT, WEIR_FORK_CHILD };

/* Called once by whoever makes the first lock that another thread might hold. */
void weir_fork_safe(void);

/* Each module's part, called in the order in which its locks nest. */
void weir_recorders_fork(enum weir_fork when);
void weir_tracks_fork(enum weir_fork when);
void weir_names_fork(enum weir_fork when);
void weir_stacks_fork(enum weir_fork when);

#endif
