#include "base/terminal.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/sysinfo.h"
#include "datasets/hdf5/h5_read.h"
#include "weir/dataset.h"
#include "weir/decoder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_WIDTH = 8 }; /* of commands */

static void print_command(FILE *out, const char *name, const char *summary)
{
    struct weir_wrap wrap;
    fprintf(weir_wrap_open(&wrap, out, NAME_WIDTH + 4, NULL), "  %-*s  %s\n", NAME_WIDTH, name, summary);
    weir_wrap_close(&wrap);
}

static void print_exit_statuses(FILE *out)
{
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, 2, ", ");
    fputs("Exit status:", text);
    for (const struct weir_exit_status *row = weir_exit_statuses; row->meaning; row++)
        fprintf(text, "%s %d %s", row == weir_exit_statuses ? "" : ",", row->status, row->meaning);
    fputs(".\n", text);
    weir_wrap_close(&wrap);
}

static void print_help(FILE *out)
{
    const char *group = "";
    fprintf(out, "Usage: weir COMMAND [ARGUMENTS]\n\nWeir, %s.\n", weir_program.summary);
    for (const struct weir_command *const *row = weir_commands; *row; row++) {
        if (strcmp(group, (*row)->group) != 0)
            fprintf(out, "\n%s:\n", (*row)->group);
        group = (*row)->group;
        print_command(out, (*row)->name, (*row)->summary);
    }
    fputs("\n", out);
    print_command(out, "help", weir_program.help);
    fputs("\n", out);
    weir_wrap_print(out, weir_program.hint, 0, "; ");
    fputs("\n", out);
    print_exit_statuses(out);
}

static void print_version(void)
{
    char text[256];
    printf("weir %s (%s), %s\n", weir_version(), weir_git_describe(), weir_compiler());
    weir_h5_library(text, sizeof text);
    puts(text);
    weir_decoder_library(text, sizeof text);
    puts(text);
    weir_dataset_inflate(text, sizeof text);
    puts(text);
    weir_libc(text, sizeof text);
    puts(text);
}

static const struct weir_command *find_command(const char *name)
{
    for (const struct weir_command *const *command = weir_commands; *command; command++)
        if (strcmp((*command)->name, name) == 0)
            return *command;
    return NULL;
}

static int unknown_command(const char *typed)
{
    const struct weir_command *near = NULL;
    int best = INT_MAX;
    for (const struct weir_command *const *command = weir_commands; *command; command++)
        if (weir_names_close(typed, (*command)->name, &best))
            near = *command;
    struct weir_err err = WEIR_ERR_NONE;
    weir_err_set(&err, -EINVAL, "unknown command '%s'%s%s%s", typed, near ? "; did you mean " : "",
                 near ? near->name : "", near ? "?" : "");
    fprintf(stderr, "weir: %s\nTry: weir --help\n", err.text);
    return WEIR_EXIT_USAGE;
}

static int help(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stdout);
        return 0;
    }
    const struct weir_command *command = find_command(argv[1]);
    if (!command)
        return unknown_command(argv[1]);
    weir_options_help(command, false, stdout);
    return 0;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return WEIR_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        print_version();
        return 0;
    }
    if (strcmp(name, "--generate") == 0)
        return weir_generate(argc - 1, argv + 1);
    const struct weir_command *command = find_command(name);
    return command ? command->run(command, argc - 1, argv + 1) : unknown_command(name);
}

/* Opens /dev/null in place of closed descriptors 0 to 2. Otherwise the next file opened would get one of these numbers,
 * and output would be written to it. Uses the opposite access mode, so that reads of stdin and writes to stdout still
 * fail. */
static void hold_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            _exit(1);
}

/* Fails if output was lost. Prints no message if the reader closed the pipe, as in weir info | head. */
static int finish_stdout(int status)
{
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    int error = errno;
    if (!failed)
        return status;
    struct pollfd reader = {.fd = STDOUT_FILENO, .events = POLLOUT};
    bool gone = error == EPIPE || (poll(&reader, 1, 0) == 1 && reader.revents & POLLERR);
    if (!gone)
        fprintf(stderr, "weir: cannot write to standard output: %s\n",
                error ? strerror(error) : "an earlier write failed");
    return status ? status : 1;
}

/* ---- crashes for lack of memory ---- */

/* The CUDA runtime and the HDF5 library do not check every allocation, so they crash when memory runs out. Weir cannot
 * prevent these crashes, but it reports their cause. */
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASHES = sizeof crashes / sizeof crashes[0] };
static struct sigaction before[CRASHES];
static bool ends_by_itself;

/* HDF5 1.10 calls exit if its initialisation fails. This handler then prints the probable cause. */
static void on_end_by_library(void)
{
    static const char line[] =
        "weir: a library ended the program, probably because memory ran out; free some memory, or "
        "raise this process's memory limit (ulimit -v, or the container's limit)\n";
    if (ends_by_itself)
        return;
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
        errno = 0;
    _exit(1);
}

/* errno is ENOMEM if the crash followed a failed malloc. Other crashes are passed on to the previous handler. */
static void on_crash(int number)
{
    static const char line[] =
        "weir: out of memory: a library crashed because an allocation failed; free some memory, or raise this "
        "process's memory limit (ulimit -v, or the container's limit)\n";
    if (errno == ENOMEM) {
        if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
            errno = 0; /* stderr is closed */
        _exit(1);
    }
    for (int i = 0; i < CRASHES; i++)
        if (crashes[i] == number)
            sigaction(number, &before[i], NULL);
    raise(number); /* takes effect after this handler returns */
}

/* Marks the exit as intended, and returns status. */
static int end(int status)
{
    ends_by_itself = true;
    return status;
}

/* Installs handlers that print one line and exit with status 1 if a library crashes right after a failed allocation, or
 * calls exit. */
static void watch_crashes(void)
{
    atexit(on_end_by_library);
    static uint8_t bytes[16384]; /* signal stack, since a stack overflow leaves no room on the normal one */
    const stack_t stack = {.ss_sp = bytes, .ss_size = sizeof bytes};
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &action, &before[i]);
}

static void print_notice(const char *text)
{
    fprintf(stderr, "%sweir: %s\n", weir_progress_erase(), text);
}

int main(int argc, char **argv)
{
    weir_notice_set(print_notice);
    hold_standard_descriptors();
    weir_commands_complete();
    watch_crashes();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe must not kill a run */
    signal(SIGXFSZ, SIG_IGN); /* writing past the file size limit then returns an error instead */
    return end(finish_stdout(dispatch(argc, argv)));
}
