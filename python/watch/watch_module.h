/* watch_module.h: functions that the watch calls through ctypes, exported like those of prof/watch/watch.h: live
 * figures, the table over ranks, and SIGTERM. The calls are made one at a time; those that can wait for the thread that
 * shows the figures: weir_watch_live, _live_loader, _live_pause and _live_end. */
#ifndef WEIR_PYTHON_WATCH_WATCH_MODULE_H
#define WEIR_PYTHON_WATCH_WATCH_MODULE_H

#include <stddef.h>

struct weir_watch;

/* Checks an address for weir_watch_live. Returns 0, or -errno with one line in why. */
int weir_watch_live_check(const char *serve, char *why, size_t why_size);
/* Shows the loaders of a watch in a file, if prometheus is not NULL, and over HTTP, if serve is not NULL. version: of
 * the package. page: a weir_live_page_fn, or NULL. Returns 0 with the URL, or -errno with one line in why. */
int weir_watch_live(struct weir_watch *watch, const char *prometheus, const char *serve, int rank, int world_size,
                    const char *version, void *page, char *url, size_t url_size, char *why, size_t why_size);
/* Shows one more loader. Returns 0, or -errno with one line in why. */
int weir_watch_live_loader(int loader, char *why, size_t why_size);
void weir_watch_live_epoch(void);
/* No thread that shows figures exists between pause (1) and resume (0): for fork(). */
void weir_watch_live_pause(int pause);
void weir_watch_live_end(void);

/* Writes the metrics of all loaders of a watch to *text (weir_watch_free). Returns 0 or -errno. */
int weir_watch_metrics(struct weir_watch *watch, int rank, int world_size, const char *version, char **text);

/* ---- watch_ranks.c: the table over the ranks of a watched job. Exported like prof/watch/watch.h, for ctypes. The
 * calls are made one at a time. weir_watch_ranks_pause waits up to 2 s for a thread that uses the network, and
 * weir_watch_ranks_end as long as it says; the others do not wait for the network. */

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

/* ---- watch_sigterm.c: SIGTERM prints the report, and ends the process about as soon as it would end without a watch.
 *
 * Python runs handlers of signals between two instructions of its own, so a long call in C would delay both. If the
 * call lets other threads run Python, the thread that samples makes the report. */

/* Goes before the handler of SIGTERM that Python has installed. report: called at most once, on the sampling thread, if
 * nobody has taken the report 0.1 s after the signal; then the process ends. Returns 0, or -1 if SIGTERM has no handler
 * or there is no timer. */
int weir_watch_sigterm(void (*report)(void));
/* Returns 1 to the caller that is to make the report, which has 5 s from now on, and 0 to others. */
int weir_watch_sigterm_take(void);
/* Ends the process by SIGTERM's default action. */
void weir_watch_sigterm_end(void);

#endif
