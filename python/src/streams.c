/* Debian's static archives are compiled for programs and take the addresses of stdin, stdout and stderr directly, which
 * a module cannot: it must look them up in the C library. So code linked statically uses copies of these three
 * pointers, made when the module is loaded (-Wl,--wrap=stderr: "stderr" becomes __wrap_stderr). */
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
