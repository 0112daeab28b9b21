/* interrupt.h: Ctrl-C of commands that run others as child processes. */
#ifndef WEIR_ANALYZE_TRIALS_INTERRUPT_H
#define WEIR_ANALYZE_TRIALS_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* Not 0 once SIGINT, SIGTERM or SIGHUP (a terminal that was closed; not under nohup) has come, after
 * weir_catch_interrupts. A second one of its kind ends the process, but not while they are held. */
extern volatile sig_atomic_t weir_interrupted;

void weir_catch_interrupts(void);

/* True while there are files to be removed before the process ends, which it does soon once weir_interrupted is set. */
void weir_hold_interrupts(bool hold);

#endif
