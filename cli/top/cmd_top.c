#include "analyze/trials/child.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "cli/sysinfo.h"
#include "cli/top/top.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct top_options {
    bool once, json, wide;
    double seconds;
};

static const double ONCE_S = 10;

#define FIELD(field) .offset = offsetof(struct top_options, field)

static const struct weir_opt own_options[] = {
    {"once", WEIR_OPT_FLAG, FIELD(once), NULL, NULL, "figures and verdict once, over --seconds (10)"},
    {"seconds", WEIR_OPT_DOUBLE, FIELD(seconds), "N", "0", "time after which to end (0: with the jobs)", 0, 1e9,
     .unit = "seconds"},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object; implies --once"},
    {"wide", WEIR_OPT_FLAG, FIELD(wide), NULL, NULL, "all columns of the tables, and no wrapping"},
};

struct session {
    const struct weir_command *command;
    struct top_options options;
    struct top top;
    pid_t child; /* of weir top -- COMMAND; 0: none */
    int child_status;
    bool child_ended;
    FILE *out;
    uint64_t end_ns;
};

/* ---- what to watch ---- */

static int no_job(const struct session *session, struct weir_err *err)
{
    pid_t pid = session->top.wanted;
    if (pid == 0)
        return weir_err_set(err, -ESRCH,
                            "no training job of this user was found; give the PID of one, or start it with weir top -- "
                            "python train.py");
    uid_t user = weir_process_user("", pid);
    if (user == (uid_t)-1)
        return weir_err_set(err, -ESRCH, "no process %d exists, or /proc hides it; find the PID with pgrep -af python",
                            (int)pid);
    if (user != getuid() && geteuid() != 0)
        return weir_err_set(
            err, -EPERM,
            "process %d belongs to user %u, and has no DataLoader workers that can be seen; run weir top "
            "as that user",
            (int)pid, (unsigned)user);
    return weir_err_set(err, -ESRCH,
                        "process %d is not a training job: neither it nor a descendant has loaded libtorch or opened "
                        "a loader of Weir; weir top without a PID lists all jobs",
                        (int)pid);
}

static int parse_pid(const struct weir_command *command, const char *text, pid_t *pid)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno || *end || end == text || number < 1 || number > INT32_MAX)
        return weir_usage_error(command, "%s: not a PID; to start a command, use weir top -- %s", text, text);
    *pid = (pid_t)number;
    return 0;
}

/* ---- output ---- */

static void print_json(struct session *session)
{
    struct weir_document document;
    weir_document_open(&document, &weir_json_writer, stdout);
    weir_document_fact(&document, "weir", weir_version());
    top_describe_json(&document, &session->top);
    weir_document_close(&document);
}

static void print_last(struct session *session)
{
    top_finish(&session->top);
    session->top.totals = true;
    if (session->options.json)
        print_json(session);
    else if (session->top.n_jobs > 0)
        top_print(session->out, &session->top);
    else
        fprintf(session->out, "weir top: the command ran no training job\n");
    fflush(session->out);
}

/* Lines of a live output that is no terminal: one per job and second, and the verdict every ten seconds. Beside a
 * command there are only the verdicts. */
static void print_live(struct session *session)
{
    const struct top *top = &session->top;
    for (int i = 0; i < top->n_jobs; i++) {
        if (top->jobs[i]->ended)
            continue;
        if (!session->child)
            top_print_line(session->out, top, top->jobs[i]);
        if (top->n_intervals % WEIR_OUTSIDE_INTERVALS == 0 && top->jobs[i]->verdict.ready) {
            if (top->n_jobs > 1 || session->child)
                fprintf(session->out, "weir top, process %d:\n", (int)top->jobs[i]->job.pid);
            top_print_verdict(session->out, top, top->jobs[i]);
        }
    }
    fflush(session->out);
}

/* ---- the loop ---- */

static bool has_ended(struct session *session)
{
    if (session->child) {
        session->child_ended = session->child_ended || top_command_ended(session->child, &session->child_status);
        return session->child_ended;
    }
    return weir_interrupted || weir_clock_monotonic_ns() >= session->end_ns ||
           (session->top.n_jobs > 0 && !top_is_running(&session->top));
}

/* Takes samples until the end. quiet: no output before it. */
static int watch(struct session *session, bool quiet, struct weir_err *err)
{
    while (!has_ended(session)) {
        bool watched = weir_clock_monotonic_ns() < session->end_ns;
        int rc = watched ? top_sample(&session->top, err) : 0;
        if (rc < 0)
            return rc;
        if (rc > 0 && !quiet)
            print_live(session);
        poll(NULL, 0, TOP_SAMPLE_MS);
    }
    return 0;
}

static bool has_screen(const struct session *session)
{
    const char *term = getenv("TERM");
    return !session->options.once && !session->child && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term &&
           strcmp(term, "dumb") != 0;
}

static void set_times(struct session *session)
{
    double seconds = session->options.seconds;
    if (session->options.once && seconds <= 0 && !session->child)
        seconds = ONCE_S;
    session->end_ns = seconds > 0 ? weir_clock_monotonic_ns() + (uint64_t)(seconds * 1e9) + 50000000 : UINT64_MAX;
    session->top.interval_s = session->options.once ? fmin(fmax(seconds / WEIR_OUTSIDE_INTERVALS, 1), 60) : 1;
}

static int run_session(struct session *session, struct weir_err *err)
{
    int rc = session->child ? 0 : top_find(&session->top, err);
    if (rc < 0)
        return rc;
    if (rc == 0 && !session->child)
        return no_job(session, err);
    set_times(session);
    if (has_screen(session))
        rc = top_screen(&session->top, session->end_ns, err);
    else
        rc = watch(session, session->options.once, err);
    if (rc == 0)
        print_last(session);
    return rc;
}

/* ---- the command ---- */

static int start(struct session *session, char **argv, struct weir_err *err)
{
    session->child = top_command_start(argv, err);
    if (session->child < 0)
        return session->child;
    session->top.wanted = session->child;
    session->out = stderr; /* standard output belongs to the command */
    return 0;
}

static int find_command(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return i;
    return argc;
}

static int run_top(const struct weir_command *command, int argc, char **argv)
{
    static struct session session;
    struct weir_err err = WEIR_ERR_NONE;
    const char *args[1];
    int n_args = 0, at = find_command(argc, argv);
    pid_t wanted = 0;
    enum weir_parse parse =
        weir_options_parse(command, &session.options, sizeof session.options, at, argv, args, &n_args);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    if (n_args == 1 && parse_pid(command, args[0], &wanted) < 0)
        return WEIR_EXIT_USAGE;
    if (at < argc && (n_args > 0 || at + 1 == argc)) {
        weir_usage_error(command, at + 1 == argc ? "no command after --" : "give a PID or a command, not both");
        return WEIR_EXIT_USAGE;
    }
    session.command = command;
    session.out = stdout;
    session.options.once = session.options.once || session.options.json;
    weir_terminal_set_wide(session.options.wide);
    int rc = top_open(&session.top, &err);
    session.top.wanted = wanted;
    if (rc == 0 && at < argc)
        rc = start(&session, argv + at + 1, &err);
    else
        weir_catch_interrupts();
    bool started = session.child > 0;
    if (rc == 0)
        rc = run_session(&session, &err);
    top_close(&session.top);
    if (rc < 0)
        weir_cli_fail(command, &err);
    if (started)
        return session.child_status;
    return rc < 0 ? WEIR_EXIT_FAILURE : weir_interrupted ? weir_exit_by_signal(weir_interrupted) : WEIR_EXIT_SUCCESS;
}

const struct weir_command weir_cmd_top = {
    .name = "top",
    .summary = "show how a running training job spends its time",
    .group = WEIR_GROUP_MEASURE,
    .args = "[PID | -- COMMAND ...]",
    .max_args = 1,
    .opts = own_options,
    .n_opts = sizeof own_options / sizeof *own_options,
    .examples = "weir top\tall training jobs of this user\n"
                "weir top 4242\tthe job that has this process, or was started by it\n"
                "weir top -- python train.py\tstart a job and print verdicts on stderr\n"
                "weir top --json --seconds 20 4242\tfigures and verdict of 20 seconds, for scripts\n",
    .notes =
        "PID is a training process of PyTorch or Weir (weir run, weir train, weir.Loader), one of its DataLoader "
        "workers, or a process above it, such as torchrun or a shell. Without PID, all jobs of this user are shown. "
        "Nothing in the job is changed or stopped.\n"
        "On a terminal, keys work as in top: q quits, h explains the keys and columns. Otherwise each second "
        "prints one line per job, and each ten seconds a verdict.\n"
        "A command keeps its standard input and output; its exit status and signals are passed on.",
    .run = run_top,
};
