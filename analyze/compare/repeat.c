#include "analyze/compare/compared_priv.h"
#include "analyze/trials/child.h"
#include "analyze/trials/rounds.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIME_LIMIT_S (30 * 86400.0)

/* What one run printed. */
struct printed {
    struct weir_child child; /* standard output */
    char path[32];           /* temporary file of standard error */
    FILE *errors;
    double seconds;
};

/* ---- running ---- */

static int open_printed(struct printed *printed, struct weir_err *err)
{
    *printed = (struct printed){.path = "/tmp/weir-compare-XXXXXX"};
    int fd = mkstemp(printed->path);
    printed->errors = fd < 0 ? NULL : fdopen(fd, "r");
    if (!printed->errors && fd >= 0)
        close(fd);
    return printed->errors ? 0 : weir_err_set(err, -errno, "cannot make a temporary file: %s", strerror(errno));
}

static void close_printed(struct printed *printed)
{
    if (printed->errors) {
        fclose(printed->errors);
        unlink(printed->path);
    }
    weir_child_free(&printed->child);
}

/* Sets the error of a command that failed: its last line. */
static int command_failed(const struct printed *printed, const char *command, int code, struct weir_err *err,
                          const struct weir_err *why)
{
    char line[512] = "", last[512] = "";
    while (fgets(line, sizeof line, printed->errors))
        if (strspn(line, " \t\r\n") < strlen(line))
            memcpy(last, line, sizeof last);
    last[strcspn(last, "\r\n")] = '\0';
    return weir_err_set(err, code, "%s: %s%s%s", command, why->text, last[0] ? ": " : "", last);
}

/* The shell sends standard error to the file, because the output of a child is its standard output. */
static int run_command(struct printed *printed, struct weir_repeat *repeat, int side)
{
    struct weir_words words = {0};
    struct weir_err why = WEIR_ERR_NONE;
    weir_words_add(&words, "sh");
    weir_words_add(&words, "-c");
    weir_words_add(&words, "exec \"$@\" 2>\"$0\"");
    weir_words_add(&words, printed->path);
    weir_words_add_all(&words, repeat->argv[side]);
    if (words.failed)
        return -ENOMEM;
    const struct weir_child_config child = {
        .program = "/bin/sh", .argv = words.argv, .seconds = TIME_LIMIT_S, .interrupted = repeat->interrupted};
    uint64_t begin_ns = weir_clock_monotonic_ns();
    int code = weir_child_run(&printed->child, &child, &why);
    printed->seconds = (double)(weir_clock_monotonic_ns() - begin_ns) / 1e9;
    weir_words_free(&words);
    return code < 0 ? command_failed(printed, repeat->commands[side], code, &repeat->err, &why) : 0;
}

/* ---- measuring ---- */

static int read_duration(struct weir_compared *run, const char *command, double seconds)
{
    weir_compared_begin(run, command);
    run->what = "a command without measurements in its output";
    run->family = "command";
    run->whole_name = "duration";
    return weir_series_add(&run->whole, seconds);
}

/* Reads what the run printed. Returns 0 or -ENOMEM. */
static int read_printed(struct weir_compared *run, const struct printed *printed, const char *command)
{
    struct weir_err why = WEIR_ERR_NONE;
    FILE *out = printed->child.length > 0 ? fmemopen(printed->child.output, printed->child.length, "r") : NULL;
    int code = out ? weir_compared_read(run, command, out, &why) : -ENODATA;
    if (out)
        fclose(out);
    if (code < 0 && code != -ENOMEM) {
        weir_compared_free(run);
        code = weir_compared_read(run, command, printed->errors, &why);
    }
    if (code == -ENOMEM || (code == 0 && run->whole.n > 0))
        return code;
    weir_compared_free(run);
    return read_duration(run, command, printed->seconds);
}

static int add_stage(struct weir_compared *side, const struct weir_compared_stage *stage)
{
    int code = weir_compared_stage(side, stage->name, weir_series_median(&stage->seconds));
    if (code == 0 && stage->fastest.n > 0)
        code = weir_compared_fastest(side, stage->name, weir_series_median(&stage->fastest),
                                     weir_series_median(&stage->calls));
    return code;
}

/* Adds the medians of a run. Takes its settings and its verdict. */
static int add_run(struct weir_compared *side, struct weir_compared *run, struct weir_err *err)
{
    if (side->family && strcmp(side->family, run->family) != 0)
        return weir_err_set(err, -EINVAL, "%s: one run printed %s, another %s; runs of a command must be alike",
                            side->path, side->what, run->what);
    struct weir_compared_setting *settings = side->settings;
    side->what = run->what;
    side->family = run->family;
    side->unit = "run";
    side->per = run->per;
    side->whole_name = run->whole_name;
    side->more_is_better = run->more_is_better;
    side->bound = run->bound;
    memcpy(side->cause, run->cause, sizeof side->cause);
    side->others_cores = run->others_cores;
    side->cores = run->cores;
    side->settings = run->settings;
    side->n_settings = run->n_settings;
    run->settings = settings;
    int code = weir_series_add(&side->whole, weir_series_median(&run->whole));
    if (code == 0)
        code = weir_series_add(&side->wait, weir_series_median(&run->wait));
    for (int i = 0; i < run->n_stages && code == 0; i++)
        code = add_stage(side, &run->stages[i]);
    return code < 0 ? weir_err_set(err, code, "out of memory") : 0;
}

static int take_run(void *user, int number, int round, int position)
{
    struct weir_repeat *repeat = user;
    struct weir_compared *side = &repeat->sides[number], run = {0};
    struct printed printed;
    (void)position;
    int code = open_printed(&printed, &repeat->err);
    if (code == 0)
        code = run_command(&printed, repeat, number);
    if (code == 0)
        code = read_printed(&run, &printed, side->path);
    close_printed(&printed);
    if (code == 0)
        code = add_run(side, &run, &repeat->err);
    weir_compared_free(&run);
    if (code == 0 && repeat->done)
        repeat->done(repeat, number, round, printed.seconds);
    return code;
}

static char *command_text(const char *const *argv)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (int i = 0; argv[i]; i++) {
        fputs(i > 0 ? " " : "", out);
        weir_shell_word(out, argv[i]);
    }
    fclose(out);
    return text;
}

int weir_repeat_run(struct weir_repeat *repeat)
{
    const struct weir_rounds_config rounds = {.n = WEIR_REPEAT_SIDES,
                                              .rounds_max = repeat->runs,
                                              .interrupted = repeat->interrupted,
                                              .trial = take_run,
                                              .user = repeat};
    int code = 0;
    for (int i = 0; i < WEIR_REPEAT_SIDES; i++) {
        repeat->commands[i] = command_text(repeat->argv[i]);
        weir_compared_begin(&repeat->sides[i], repeat->commands[i]);
        code = repeat->commands[i] ? code : -ENOMEM;
    }
    if (code == 0)
        code = weir_rounds_run(&rounds);
    return code == -ENOMEM ? weir_err_set(&repeat->err, code, "out of memory") : code;
}

void weir_repeat_free(struct weir_repeat *repeat)
{
    for (int i = 0; i < WEIR_REPEAT_SIDES; i++) {
        weir_compared_free(&repeat->sides[i]);
        free(repeat->commands[i]);
    }
}
