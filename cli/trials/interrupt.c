#include "cli/trials/interrupt.h"

volatile sig_atomic_t weir_interrupted;

static void on_signal(int number)
{
    (void)number;
    weir_interrupted = 1;
}

void weir_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
