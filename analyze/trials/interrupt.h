/* interrupt.h: Ctrl-C in commands that run child processes. */
#ifndef WEIR_ANALYZE_TRIALS_INTERRUPT_H
#define WEIR_ANALYZE_TRIALS_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* Set by SIGINT, SIGTERM and SIGHUP (a closed terminal; not under nohup) after weir_catch_interrupts. A second signal
 * of the same kind ends the process unless interrupts are held. */
extern volatile sig_atomic_t weir_interrupted;

void weir_catch_interrupts(void);

/* Holds interrupts while there are files to remove; the caller then has to end soon once weir_interrupted is set. */
void weir_hold_interrupts(bool hold);

#endif
