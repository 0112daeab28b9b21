/* weir compare: its statistical test, and --repeat. tests/golden compares files. */
#include "analyze/compare/comparison.h"
#include "cli/commands.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void wide(void)
{
    setenv("COLUMNS", "1000", 1);
}
TestSuite(compare, .init = wide);
TestSuite(delta);

/* ---- the test ---- */

static struct weir_delta delta_of(const double *before, size_t n, const double *after, size_t m, bool difference)
{
    struct weir_series from = {0}, to = {0};
    struct weir_delta delta;
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(weir_series_add(&from, before[i]), 0);
    for (size_t i = 0; i < m; i++)
        cr_assert_eq(weir_series_add(&to, after[i]), 0);
    cr_assert_eq(weir_delta_of(&delta, &from, &to, difference), 0);
    weir_series_free(&from);
    weir_series_free(&to);
    return delta;
}

/* All orders of n and m measurements, of which U is at most u in `few`. */
static void count_orders(int n, int m, int u, double *few, double *all)
{
    *few = *all = 0;
    for (unsigned bits = 0; bits < 1u << (n + m); bits++) {
        int seen = 0, above = 0;
        if (__builtin_popcount(bits) != n)
            continue;
        for (int i = 0; i < n + m; i++) {
            seen += bits >> i & 1;
            above += bits >> i & 1 ? 0 : seen;
        }
        *all += 1;
        *few += above <= u;
    }
}

Test(delta, probabilities_are_those_of_all_orders)
{
    static const double before[] = {10, 11, 12, 13, 14, 15};
    for (int wanted = 0; wanted <= 6; wanted++) {
        double few, all, after[] = {20, 21, 22, 23, 24, 25, 26};
        after[0] = 15.5 - wanted; /* above 6 - wanted of before, so U = wanted */
        struct weir_delta delta = delta_of(before, 6, after, 7, false);
        count_orders(6, 7, wanted, &few, &all);
        cr_assert_float_eq(delta.p, 2 * few / all, 1e-12, "U = %d: %g, not %g", wanted, delta.p, 2 * few / all);
    }
}

Test(delta, separate_runs_of_five_epochs_differ)
{
    static const double before[] = {1.00, 1.01, 0.99, 1.02, 0.98}, after[] = {1.05, 1.06, 1.04, 1.07, 1.03};
    struct weir_delta delta = delta_of(before, 5, after, 5, false);
    cr_assert_eq(delta.kind, WEIR_DELTA_HIGHER);
    cr_assert_float_eq(delta.p, 2.0 / 252, 1e-12);
    cr_assert_float_eq(delta.probability, 1 - 2.0 / 252, 1e-12);
    cr_assert_float_eq(delta.change, 0.05, 0.001);
    cr_assert_float_eq(delta.low, 1.03 / 1.02 - 1, 1e-12);
    cr_assert_float_eq(delta.high, 1.07 / 0.98 - 1, 1e-12);
    cr_assert_eq(delta_of(after, 5, before, 5, false).kind, WEIR_DELTA_LOWER);
}

Test(delta, nothing_can_be_said_of_four_epochs)
{
    static const double before[] = {1, 1, 1, 1, 1}, after[] = {9, 9, 9, 9, 9};
    struct weir_delta delta = delta_of(before, 5, after, 4, false);
    cr_assert_eq(delta.kind, WEIR_DELTA_UNKNOWN);
    cr_assert(isnan(delta.p) && isnan(delta.low));
    cr_assert_eq(delta.after, 9);
    cr_assert_eq(delta_of(before, 0, after, 5, false).kind, WEIR_DELTA_UNKNOWN);
    static const double none[5] = {0};
    cr_assert_eq(delta_of(none, 5, after, 5, false).kind, WEIR_DELTA_UNKNOWN, "a ratio to 0");
}

Test(delta, small_changes_and_overlaps_are_noise)
{
    static const double before[] = {1.000, 1.001, 1.002, 1.003, 1.004}, after[] = {1.006, 1.007, 1.008, 1.009, 1.010},
                        one_below[] = {1.1, 1.1, 1.1, 1.1, 1.003};
    cr_assert_eq(delta_of(before, 5, after, 5, false).kind, WEIR_DELTA_NOISE, "below 1 %%");
    cr_assert_eq(delta_of(before, 5, one_below, 5, false).kind, WEIR_DELTA_NOISE);
    cr_assert_eq(delta_of(before, 5, before, 5, false).kind, WEIR_DELTA_NOISE);
    cr_assert_float_eq(delta_of(before, 5, before, 5, false).p, 1, 1e-12);
}

Test(delta, fractions_are_compared_by_their_difference)
{
    static const double before[5] = {0}, after[] = {0.10, 0.11, 0.12, 0.13, 0.14};
    struct weir_delta delta = delta_of(before, 5, after, 5, true);
    cr_assert_eq(delta.kind, WEIR_DELTA_HIGHER);
    cr_assert_float_eq(delta.change, 0.12, 1e-12);
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* Normally distributed, so a few epochs are far off. */
static void fill(double *values, size_t n, double mean, double sd, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        values[i] = mean + sd * sqrt(-2 * log(1 - uniform(state))) * cos(6.283185307179586 * uniform(state));
}

Test(delta, unchanged_pairs_rarely_differ_and_changes_are_found)
{
    static const size_t sizes[] = {5, 8, 25, 30, 300}; /* exact, exact, exact, normal, averaged */
    uint64_t state = 1;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double before[300], after[300];
        int changes = 0, found = 0, rounds = sizes[s] > 100 ? 40 : 400;
        for (int i = 0; i < rounds; i++) {
            fill(before, sizes[s], 1, 0.05, &state);
            fill(after, sizes[s], 1, 0.05, &state);
            enum weir_delta_kind kind = delta_of(before, sizes[s], after, sizes[s], false).kind;
            changes += kind == WEIR_DELTA_LOWER || kind == WEIR_DELTA_HIGHER;
            fill(before, sizes[s], 1, 0.01, &state);
            fill(after, sizes[s], 1.05, 0.01, &state);
            found += delta_of(before, sizes[s], after, sizes[s], false).kind == WEIR_DELTA_HIGHER;
        }
        cr_assert_leq(changes, rounds / 40, "%d of %d unchanged pairs of %zu differ", changes, rounds, sizes[s]);
        cr_assert_geq(found, rounds * 9 / 10, "%d of %d changes found, of %zu", found, rounds, sizes[s]);
    }
}

/* 10 stages of 5 epochs, as in a comparison. */
Test(delta, among_several_stages_a_false_change_is_rare)
{
    uint64_t state = 2;
    int pairs_with_changes = 0, found = 0, pairs = 300;
    for (int i = 0; i < pairs; i++) {
        double before[5], after[5];
        int changes = 0;
        for (int stage = 0; stage < 10; stage++) {
            fill(before, 5, 1, 0.02, &state);
            fill(after, 5, stage == 0 ? 1.1 : 1, 0.02, &state);
            struct weir_delta delta = delta_of(before, 5, after, 5, false);
            weir_delta_confirm(&delta, 10);
            bool changed = delta.kind == WEIR_DELTA_LOWER || delta.kind == WEIR_DELTA_HIGHER;
            found += stage == 0 && changed;
            changes += stage > 0 && changed;
        }
        pairs_with_changes += changes > 0;
    }
    cr_assert_leq(pairs_with_changes, pairs / 20, "%d of %d pairs", pairs_with_changes, pairs);
    cr_assert_geq(found, pairs * 9 / 10, "%d of %d changes found", found, pairs);
}

/* ---- the command ---- */

struct output {
    int status;
    char out[1 << 16], err[4096];
};

static void read_back(FILE *file, char *text, size_t size)
{
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static void run_all(struct output *output, char **argv)
{
    FILE *out = tmpfile(), *err = tmpfile();
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        int argc = 0;
        while (argv[argc])
            argc++;
        int code = weir_cmd_compare.run(&weir_cmd_compare, argc, argv);
        fflush(NULL);
        _exit(code);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "crashed on %s", argv[1]);
    output->status = WEXITSTATUS(status);
    read_back(out, output->out, sizeof output->out);
    read_back(err, output->err, sizeof output->err);
}

static void has(const struct output *output, const char *text)
{
    cr_assert(strstr(output->out, text) || strstr(output->err, text), "no \"%s\" in:\n%s%s", text, output->out,
              output->err);
}

/* ---- --repeat ---- */

#define MEASURED(rate) "{\"type\":\"measured\",\"seconds\":1,\"images_per_s\":" rate "}"

Test(compare, commands_are_run_in_turns)
{
    static struct output output;
    char *argv[] = {"compare", "--repeat=5", "--fail-if-slower=5%",           "--", "echo", MEASURED("100"), "--",
                    "sh",      "-c",         "echo '" MEASURED("90") "' >&2", NULL};
    run_all(&output, argv);
    cr_assert_eq(output.status, 4, "%s%s", output.out, output.err);
    has(&output, "10.0 % slower (10.0 % to 10.0 %), beyond the noise of the runs.");
    has(&output, "a log of weir run, 5 runs");
    has(&output, "run 5 of 5 of the second command: ");
    const char *second = strstr(output.err, "run 2 of 5 of the second"),
               *first = strstr(output.err, "run 2 of 5 of the first");
    cr_assert(second && first && second < first, "the second round begins with the second command");
}

Test(compare, commands_without_measurements_take_time)
{
    static struct output output;
    char *argv[] = {"compare", "--repeat=2", "--", "true", "--", "echo", "hello", NULL};
    run_all(&output, argv);
    cr_assert_eq(output.status, 0, "%s", output.err);
    has(&output, "after  echo hello: a command without measurements in its output, 2 runs");
    has(&output, "duration ");
    char *different[] = {"compare", "--repeat=1", "--", "true", "--", "echo", MEASURED("1"), NULL};
    run_all(&output, different);
    cr_assert_eq(output.status, 1);
    has(&output, "files of different kinds cannot be compared");
}

Test(compare, commands_that_fail)
{
    static struct output output;
    char *argv[] = {"compare", "--repeat=5", "--", "sh", "-c", "echo one >&2; echo the reason >&2; exit 3",
                    "--",      "true",       NULL};
    run_all(&output, argv);
    cr_assert_eq(output.status, 1);
    has(&output, ": it exited with status 3: the reason\n");
    char *alone[] = {"compare", "--repeat=5", "--", "true", "false", NULL};
    run_all(&output, alone);
    cr_assert_eq(output.status, 2);
    has(&output, "--repeat needs two commands: weir compare --repeat 5 -- COMMAND -- COMMAND");
}
