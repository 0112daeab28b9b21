/* The CUDA runtime and the HDF5 library use pointers that malloc did not give them when they start without memory, and
 * crash. Weir cannot prevent that, but it can report that the reason was memory. */
#include "cli/no_memory.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASHES = sizeof crashes / sizeof crashes[0] };
static struct sigaction before[CRASHES];
static bool ends_by_itself;

/* HDF5 1.10 calls exit when its initialisation fails. */
static void on_end_by_library(void)
{
    static const char line[] =
        "weir: a library ended the program, which it does when it gets no memory; free some, or raise this "
        "process's limit of it (ulimit -v, its container's)\n";
    if (ends_by_itself)
        return;
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
        errno = 0;
    _exit(1);
}

/* malloc leaves ENOMEM in errno. Any other crash, and a signal that somebody sent, is left to who had it before. */
static void on_crash(int number)
{
    static const char line[] =
        "weir: out of memory: a library crashed because an allocation failed; free some memory, or raise this "
        "process's limit of it (ulimit -v, its container's)\n";
    if (errno == ENOMEM) {
        if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
            errno = 0; /* there is no standard error to write to */
        _exit(1);
    }
    for (int i = 0; i < CRASHES; i++)
        if (crashes[i] == number)
            sigaction(number, &before[i], NULL);
    raise(number); /* when this handler is left */
}

int weir_no_memory_end(int status)
{
    ends_by_itself = true;
    return status;
}

void weir_no_memory_watch(void)
{
    atexit(on_end_by_library);
    static uint8_t bytes[16384]; /* some crashes are an end of the stack */
    const stack_t stack = {.ss_sp = bytes, .ss_size = sizeof bytes};
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &action, &before[i]);
}
