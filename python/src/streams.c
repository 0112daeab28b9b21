/* Debian's archives are made for programs, whose code may take the address of stdin, stdout and stderr as if they were
 * its own. A module may not: there it must ask where the C library's are. So what is linked statically has copies of
 * these three pointers, made when the module is loaded (-Wl,--wrap=stderr: "stderr" becomes __wrap_stderr). */
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
