#include "cli/commands.h"
#include "cli/no_memory.h"
#include "cli/sysinfo.h"
#include "datasets/dataset.h"
#include "datasets/hdf5/h5_read.h"
#include "decoders/decoder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct weir_program program = {
    .summary = "loads robot episodes for training and times every stage of it",
    .help = "explain a command: weir help run",
    .hint = "weir COMMAND --help lists the command's options; weir --version prints the version and the compiler.",
    .exit_status = "0 fine, 1 the run failed, 2 usage, 130 interrupted.",
    .commands = weir_commands,
    .n_commands = WEIR_COMMANDS,
};

static void print_help(FILE *out)
{
    fprintf(out, "Usage: weir COMMAND [ARGUMENTS]\n\nWeir %s.\n\nCommands:\n", program.summary);
    for (int i = 0; i < WEIR_COMMANDS; i++)
        fprintf(out, "  %-8s  %s\n", weir_commands[i]->name, weir_commands[i]->summary);
    fprintf(out, "  %-8s  %s\n\n%s\nExit status: %s\n", "help", program.help, program.hint, program.exit_status);
}

static void print_version(void)
{
    char text[128];
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
    for (int i = 0; i < WEIR_COMMANDS; i++)
        if (strcmp(weir_commands[i]->name, name) == 0)
            return weir_commands[i];
    return NULL;
}

static int unknown_command(const char *typed)
{
    const struct weir_command *near = NULL;
    int best = INT_MAX;
    for (int i = 0; i < WEIR_COMMANDS; i++)
        if (weir_names_close(typed, weir_commands[i]->name, &best))
            near = weir_commands[i];
    struct weir_err err = WEIR_ERR_NONE;
    weir_err_set(&err, -EINVAL, "unknown command '%s'%s%s%s", typed, near ? "; did you mean " : "",
                 near ? near->name : "", near ? "?" : "");
    fprintf(stderr, "weir: %s\nTry: weir --help\n", err.text);
    return 2;
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
    weir_options_help(command, stdout);
    return 0;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0) {
        print_version();
        return 0;
    }
    if (strcmp(name, "--generate") == 0)
        return weir_generate(&program, argc - 1, argv + 1);
    const struct weir_command *command = find_command(name);
    return command ? command->run(command, argc - 1, argv + 1) : unknown_command(name);
}

/* A descriptor 0, 1 or 2 that the parent closed would be given to the next file opened, and results printed into it:
 * put something in its place that refuses them. */
static void hold_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            _exit(1);
}

/* Results that did not reach their reader are a failure, except that a reader who has seen enough (weir info | head)
 * needs no message. */
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

int main(int argc, char **argv)
{
    hold_standard_descriptors();
    weir_commands_complete();
    weir_no_memory_watch();
    signal(SIGPIPE, SIG_IGN); /* a reader that leaves must not cut a run off in the middle */
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of its writer, which has a line */
    return weir_no_memory_end(finish_stdout(dispatch(argc, argv)));
}
