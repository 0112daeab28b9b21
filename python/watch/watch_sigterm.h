/* watch_sigterm.h: SIGTERM prints the report, and ends the process about as soon as it would end without a watch.
 *
 * Python runs handlers of signals between two instructions of its own, so a long call in C would delay both. If the
 * call lets other threads run Python, the thread that samples makes the report. */
#ifndef WEIR_PYTHON_WATCH_WATCH_SIGTERM_H
#define WEIR_PYTHON_WATCH_WATCH_SIGTERM_H

/* Goes before the handler of SIGTERM that Python has installed. report: called at most once, on the sampling thread, if
 * nobody has taken the report 0.1 s after the signal; then the process ends. Returns 0, or -1 if SIGTERM has no handler
 * or there is no timer. */
int weir_watch_sigterm(void (*report)(void));
/* Returns 1 to the caller that is to make the report, which has 5 s from now on, and 0 to others. */
int weir_watch_sigterm_take(void);
/* Ends the process by SIGTERM's default action. */
void weir_watch_sigterm_end(void);

#endif
