#include "analyze/trials/interrupt.h"

#include <stddef.h>

volatile sig_atomic_t weir_interrupted;

static void on_signal(int number)
{
    (void)number;
    weir_interrupted = 1;
}

static void catch_all(int flags)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags}, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        bool ignored = numbers[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        if (!ignored) /* by nohup, which stays in force */
            sigaction(numbers[i], &action, NULL);
    }
}

void weir_catch_interrupts(void)
{
    catch_all((int)SA_RESETHAND);
}

void weir_hold_interrupts(bool hold)
{
    catch_all(hold ? 0 : (int)SA_RESETHAND);
}
