/* watch_ranks.h: the table over the ranks of a watched job. Exported like prof/watch/watch.h, for ctypes. The calls
 * are made one at a time. weir_watch_ranks_pause waits up to 2 s for a thread that uses the network, and
 * weir_watch_ranks_end as long as it says; the others do not wait for the network. */
#ifndef WEIR_PYTHON_WATCH_WATCH_RANKS_H
#define WEIR_PYTHON_WATCH_WATCH_RANKS_H

#include <stddef.h>

struct weir_watch;

/* What the launcher's environment says of this process; 0 of 1 if nothing, or nothing valid. */
void weir_watch_launched(int *rank, int *world_size);

/* Begins to compare this rank's loader with that of the other ranks, through the store of torch.distributed (host NULL:
 * MASTER_ADDR and MASTER_PORT). Returns 0, also with a single rank; or -errno with one line in why, after which the
 * other calls do nothing. Only one loader of a process is compared. */
int weir_watch_ranks(struct weir_watch *watch, int loader, int rank, int world_size, const char *host, int port,
                     char *why, size_t why_size);
/* Sends the figures since the previous call to rank 0: after every N epochs, on every rank. */
void weir_watch_ranks_publish(void);
/* Rank 0: returns 1 and the next table in *text (weir_watch_free) when all ranks have reported or are missing, else 0.
 * Costs a few ns, for calls after each batch. */
int weir_watch_ranks_table(char **text);
/* No thread of the ranks exists between pause (1) and resume (0): for fork(). */
void weir_watch_ranks_pause(int pause);
/* At the end: rank 0 waits up to wait_s for the last figures, whose table it then returns as weir_watch_ranks_table.
 * Ends the comparison. */
int weir_watch_ranks_end(double wait_s, char **text);

#endif
