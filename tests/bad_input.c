#include "tests/bad_input.h"
#include "pipeline/loader.h"
#include "prof/text.h"
#include "tests/loader_fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, LIMIT_S = 120, BATCH = 64 };

const char *bad_input_episode(int i)
{
    char name[64];
    snprintf(name, sizeof name, "d/episode_%d.hdf5", i);
    return fixture_path(name);
}

const char *bad_input_episodes(const struct h5fx_episode *episode)
{
    mkdir(fixture_path("d"), 0777);
    for (int i = 0; i < 3; i++) {
        struct h5fx_episode one = *episode;
        one.seed = i;
        h5fx_write(bad_input_episode(i), &one);
    }
    return fixture_path("d");
}

/* ---- the program ---- */

static char *slurp(FILE *file)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    rewind(file);
    for (int c; (c = fgetc(file)) != EOF;)
        fputc(c, memory);
    fclose(memory);
    fclose(file);
    return text;
}

static void become(const char *program, const char *const *arguments, bool unprivileged, FILE *out, FILE *err)
{
    const char *argv[32] = {program};
    for (int i = 0; arguments[i] && i < 30; i++)
        argv[i + 1] = arguments[i];
    alarm(LIMIT_S);
    if (unprivileged && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || access(program, X_OK) != 0))
        _exit(0);
    if (dup2(fileno(out), 1) < 0 || dup2(fileno(err), 2) < 0)
        _exit(127);
    execv(program, (char *const *)argv);
    _exit(127);
}

int bad_input_program(const char *const *arguments, bool unprivileged, char **out_text, char **err_text)
{
    const char *program = getenv("WEIR_PROGRAM");
    static bool told;
    if (!program) {
        if (!told)
            fprintf(stderr, "skipped: the program (set WEIR_PROGRAM)\n");
        told = true;
        return -1;
    }
    FILE *out = tmpfile(), *err = tmpfile();
    cr_assert(out && err);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0)
        become(program, arguments, unprivileged, out, err);
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    *err_text = slurp(err);
    char *text = slurp(out);
    if (out_text)
        *out_text = text;
    else
        free(text);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* Lines of text, or of those that begin with a prefix. */
static int lines(const char *text, const char *prefix)
{
    int n = 0;
    for (const char *at = text; *at; at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n'))
        n += strncmp(at, prefix, strlen(prefix)) == 0;
    return n;
}

static void expect_printable(const char *about, const char *text)
{
    char *copy = strdup(text);
    for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n")) {
        char *clean = strdup(line);
        weir_text_printable(clean);
        cr_assert_str_eq(line, clean, "%s: control characters", about);
        free(clean);
    }
    free(copy);
}

static void expect_parts(const char *about, const struct bad_expect *expect, const char *text)
{
    for (int i = 0; i < 4 && expect->parts[i]; i++)
        cr_assert_not_null(strstr(text, expect->parts[i]), "%s: no \"%s\" in: %s", about, expect->parts[i], text);
}

/* One line that begins with the command's name; at_open: and nothing else. */
static void expect_failure(const char *about, const char *const *arguments, const struct bad_expect *expect,
                           bool at_open)
{
    char *text, prefix[64];
    int status = bad_input_program(arguments, false, NULL, &text);
    if (status < 0)
        return;
    snprintf(prefix, sizeof prefix, "weir %s: ", arguments[0]);
    cr_assert_eq(status, 1, "%s: %s ends with %d: %s", about, arguments[0], status, text);
    cr_assert_eq(lines(text, prefix), 1, "%s: %s", about, text);
    cr_assert(!at_open || lines(text, "") == 1, "%s: more than one line: %s", about, text);
    expect_printable(about, text);
    expect_parts(about, expect, text);
    free(text);
}

static void expect_success(const char *about, const char *const *arguments)
{
    char *text, *out;
    int status = bad_input_program(arguments, false, &out, &text);
    if (status < 0)
        return;
    cr_assert_eq(status, 0, "%s: %s ends with %d: %s", about, arguments[0], status, text);
    expect_printable(about, text);
    expect_printable(about, out);
    free(text);
    free(out);
}

static void try_program(const char *about, const char *path, const struct bad_expect *expect, bool at_open)
{
    static const char *const policies[] = {"skip", "substitute"};
    const char *plain[] = {"run", path, "--num-workers", "2", "--batch-size", "64", NULL};
    expect_failure(about, plain, expect, at_open);
    const char *info[] = {"info", path, NULL};
    if (expect->info_is_fine)
        expect_success(about, info);
    else
        expect_failure(about, info, expect, true);
    for (int i = 0; i < 2; i++) {
        const char *tolerant[] = {"run", path,         "--num-workers", "2", "--batch-size",
                                  "64",  "--on-error", policies[i],     NULL};
        if (expect->tolerated == BAD_STOPS)
            expect_failure(about, tolerant, &(struct bad_expect){.code = 0}, true);
        else
            expect_success(about, tolerant);
    }
}

/* ---- the loader ---- */

static int drain(const char *path, enum weir_on_error on_error, bool *at_open, struct weir_loader_counts *counts,
                 struct weir_err *err)
{
    struct weir_loader_config config;
    struct weir_loader *loader;
    struct weir_batch *batch;
    weir_loader_config_default(&config);
    config.data = path;
    config.num_workers = 2;
    config.batch_size = BATCH;
    config.train_split = 1;
    config.on_error = on_error;
    memset(counts, 0, sizeof *counts);
    int rc = weir_loader_open(&loader, &config, err);
    *at_open = rc < 0;
    cr_assert_eq(loader == NULL, rc < 0);
    if (rc < 0)
        return rc;
    while ((rc = weir_loader_next(loader, &batch, err)) > 0)
        weir_loader_release(loader, batch);
    weir_loader_counts(loader, counts, false);
    weir_loader_close(&loader);
    return rc;
}

static void try_tolerant(const char *about, const char *path, const struct bad_expect *expect, enum weir_on_error how)
{
    struct weir_loader_counts counts;
    struct weir_err err = WEIR_ERR_NONE;
    bool at_open, skip = how == WEIR_ON_ERROR_SKIP;
    int rc = drain(path, how, &at_open, &counts, &err);
    if (expect->tolerated == BAD_STOPS) {
        cr_assert_lt(rc, 0, "%s", about);
        cr_assert_neq(strlen(err.text), 0);
        expect_printable(about, err.text);
        return;
    }
    cr_assert_eq(rc, 0, "%s: %s", about, err.text);
    cr_assert_eq(counts.bad_episodes, (uint64_t)expect->episodes, "%s: %d episodes", about, (int)counts.bad_episodes);
    cr_assert_eq(counts.skipped_samples, (uint64_t)(skip ? expect->skipped : expect->lost), "%s: %d samples", about,
                 (int)counts.skipped_samples);
    cr_assert_eq(counts.substituted_frames, (uint64_t)(skip ? 0 : expect->substituted), "%s: %d frames", about,
                 (int)counts.substituted_frames);
    cr_assert(!skip || counts.bad_frames == (uint64_t)expect->frames, "%s: %d bad frames", about,
              (int)counts.bad_frames);
}

struct bad_expect bad_stops(int code, const char *part, const char *other)
{
    return (struct bad_expect){.code = code, .parts = {part, other}, .tolerated = BAD_STOPS};
}

struct bad_expect bad_leaves_out_one(int code, const char *file, const char *part, const char *other)
{
    return (struct bad_expect){.code = code, .parts = {file, part, other}, .tolerated = BAD_LEAVES_OUT, .episodes = 1};
}

void bad_input_try(const char *about, const char *path, struct bad_expect expect)
{
    struct weir_loader_counts counts;
    struct weir_err err = WEIR_ERR_NONE;
    bool at_open;
    int rc = drain(path, WEIR_ON_ERROR_FAIL, &at_open, &counts, &err);
    cr_assert_lt(rc, 0, "%s: is taken", about);
    cr_assert_eq(rc, expect.code, "%s: code %d: %s", about, rc, err.text);
    cr_assert_eq(err.code, rc);
    cr_assert_null(strchr(err.text, '\n'));
    expect_printable(about, err.text);
    expect_parts(about, &expect, err.text);
    expect.info_is_fine |= strstr(err.text, "several datasets") != NULL; /* it prints each */
    try_tolerant(about, path, &expect, WEIR_ON_ERROR_SKIP);
    try_tolerant(about, path, &expect, WEIR_ON_ERROR_SUBSTITUTE);
    try_program(about, path, &expect, at_open);
}
