#include "analyze/watch/watch_figures.h"
#include "python/watch/watch_module.h"
#include "weir/base.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { OTHERS_NS = 100 * 1000 * 1000, GRACE_S = 1, REPORT_S = 5 };

static struct {
    pid_t pid;
    timer_t timer; /* sends SIGTERM when the time is over; a forked child has none */
    struct sigaction python;
    void (*report)(void);
    _Atomic uint64_t asked_ns; /* 0 = no SIGTERM yet */
    atomic_int taken;
} term;

/* Safe in a handler. */
static void set_timer(int seconds)
{
    timer_settime(term.timer, 0, &(struct itimerspec){.it_value.tv_sec = seconds}, NULL);
}

void weir_watch_sigterm_end(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(SIGTERM, &action, NULL);
    kill(getpid(), SIGTERM);
}

static void on_sigterm(int number, siginfo_t *info, void *context)
{
    int code = errno;
    uint64_t none = 0;
    (void)context;
    if (getpid() != term.pid || info->si_code == SI_TIMER) {
        weir_watch_sigterm_end();
    } else if (atomic_compare_exchange_strong(&term.asked_ns, &none, weir_clock_monotonic_ns())) {
        set_timer(GRACE_S);
        term.python.sa_handler(number);
    }
    errno = code;
}

int weir_watch_sigterm_take(void)
{
    if (atomic_exchange(&term.taken, 1))
        return 0;
    set_timer(REPORT_S);
    return 1;
}

/* On the sampling thread. Python's own handler goes first if it can. */
static void poll_sigterm(void)
{
    uint64_t asked_ns = atomic_load(&term.asked_ns);
    if (asked_ns == 0 || weir_clock_monotonic_ns() - asked_ns < OTHERS_NS || getpid() != term.pid)
        return;
    term.report(); /* waits for the GIL, and takes the report once it has it */
}

int weir_watch_sigterm(void (*report)(void))
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM};
    struct sigaction action = {.sa_sigaction = on_sigterm, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (sigaction(SIGTERM, NULL, &term.python) < 0 || term.python.sa_handler == SIG_DFL ||
        term.python.sa_handler == SIG_IGN || term.python.sa_flags & SA_SIGINFO ||
        timer_create(CLOCK_MONOTONIC, &event, &term.timer) < 0)
        return -1;
    term.pid = getpid();
    term.report = report;
    action.sa_mask = term.python.sa_mask;
    weir_watch_samples_also(poll_sigterm);
    return sigaction(SIGTERM, &action, NULL);
}
