/* interrupt.h: Ctrl-C of commands that run others as child processes. */
#ifndef WEIR_CLI_TRIALS_INTERRUPT_H
#define WEIR_CLI_TRIALS_INTERRUPT_H

#include <signal.h>

/* Not 0 once SIGINT or SIGTERM has come, after weir_catch_interrupts. A second one ends the process. */
extern volatile sig_atomic_t weir_interrupted;

void weir_catch_interrupts(void);

#endif
