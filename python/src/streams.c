/* Debian's static archives are compiled for programs, so they use the addresses of stdin, stdout and stderr directly. A
 * shared module cannot do this, because it must look these variables up in the C library. Statically linked code
 * therefore uses copies of the three pointers, which are made when the module is loaded. The linker option
 * -Wl,--wrap=stderr redirects stderr to __wrap_stderr. */
#include <stdio.h>

extern FILE *__real_stdin, *__real_stdout, *__real_stderr;
extern FILE *__wrap_stdin, *__wrap_stdout, *__wrap_stderr;
FILE *__wrap_stdin, *__wrap_stdout, *__wrap_stderr;

__attribute__((constructor)) static void copy_streams(void)
{
    __wrap_stdin = __real_stdin;
    __wrap_stdout = __real_stdout;
    __wrap_stderr = __real_stderr;
}
