/* weir compare: its statistical test, its readers of logs, results and traces, its output and its exit status. */
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

static void run(struct output *output, const char *before, const char *after, const char *option)
{
    char *argv[] = {"compare", (char *)(uintptr_t)before, (char *)(uintptr_t)after, (char *)(uintptr_t)option, NULL};
    run_all(output, argv);
}

/* Writes the text to a temporary file, which the test's process leaves behind for the command. */
static char *file_of(const char *text)
{
    char *path = strdup("/tmp/weir-compare-XXXXXX");
    FILE *file = fdopen(mkstemp(path), "w");
    fputs(text, file);
    fclose(file);
    return path;
}

static void run_texts(struct output *output, const char *before, const char *after, const char *option)
{
    char *from = file_of(before), *to = file_of(after);
    run(output, from, to, option);
    unlink(from);
    unlink(to);
    free(from);
    free(to);
}

static void has(const struct output *output, const char *text)
{
    cr_assert(strstr(output->out, text) || strstr(output->err, text), "no \"%s\" in:\n%s%s", text, output->out,
              output->err);
}

/* A log of weir run with epochs of `rate` images/s and a decoder that takes decode_ms per image. */
static char *log_text(int epochs, double rate, double decode_ms, int batch_size)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fprintf(out,
            "{\"type\":\"run\",\"weir\":\"0.2.0\",\"machine\":{\"cores_usable\":4,\"load_average\":%g},"
            "\"config\":{\"batch_size\":%d,\"log\":\"%d\"},\"used\":{\"host\":\"one\",\"pid\":%d}}\n",
            rate, batch_size, batch_size, batch_size);
    for (int i = 0; i < epochs; i++) {
        double noise = i == 0 ? 3 : 1 + 0.002 * (i % 3); /* the first epoch is slow */
        fprintf(out,
                "{\"type\":\"epoch\",\"epoch\":%d,\"total_s\":1,\"train_s\":1,\"val_s\":0,\"data_wait_fraction\":%g,"
                "\"images_per_s\":%g}\n",
                i + 1, 0.1 + 0.001 * i, rate / noise);
        fprintf(out,
                "{\"type\":\"stages\",\"epoch_first\":%d,\"epoch_last\":%d,\"final\":false,\"timing\":true,\"stages\":["
                "{\"name\":\"03b_image_decode\",\"kind\":\"work\",\"side\":\"worker\",\"count\":50,\"total_s\":%g},"
                "{\"name\":\"06_collate\",\"kind\":\"work\",\"side\":\"worker\",\"count\":5,\"total_s\":0.00001}],"
                "\"steps\":{\"train_batches\":5,\"images\":100,\"train_s\":1}}\n",
                i + 1, i + 1, 0.1 * decode_ms * noise);
    }
    fprintf(out,
            "{\"type\":\"stages\",\"epoch_first\":1,\"epoch_last\":%d,\"final\":true,\"timing\":true,\"stages\":["
            "{\"name\":\"03b_image_decode\",\"kind\":\"work\",\"side\":\"worker\",\"count\":50,\"total_s\":99}],"
            "\"steps\":{\"train_batches\":5,\"images\":100,\"train_s\":1}}\n",
            epochs);
    fclose(out);
    return text;
}

Test(compare, logs_of_weir_run)
{
    static struct output output;
    char *before = log_text(6, 1000, 1, 8), *after = log_text(6, 900, 1.2, 16), *four = log_text(4, 900, 1.2, 16);
    run_texts(&output, before, after, NULL);
    cr_assert_eq(output.status, 0);
    has(&output, "verdict: 10.0 % slower (");
    has(&output, "beyond the noise of the epochs");
    has(&output, "a log of weir run, 5 epochs"); /* without the first */
    has(&output, "stage, per image ");
    has(&output, "03b_image_decode  ");
    has(&output, " +20.0%");
    has(&output, "1.002ms  ");
    cr_assert_null(strstr(output.out, "06_collate"), "it is small");
    has(&output, "1 more stage under 1 % of the largest: --wide");
    has(&output, "data-bound: cannot tell -> cannot tell");
    has(&output, "settings differ: config.batch_size 8 -> 16\n");
    cr_assert_null(strstr(output.out, "load_average"), "two runs of one command differ in it");
    run_texts(&output, before, before, "--wide");
    has(&output, "verdict: ~ No change beyond the noise of the epochs (");
    has(&output, "06_collate");
    cr_assert_null(strstr(output.out, "differ"));
    run_texts(&output, before, four, NULL);
    has(&output, "verdict: ~ Cannot tell: 5 and 4 measurements, and the test needs 5 on each side.");
    free(before);
    free(after);
    free(four);
}

/* Other processes make some calls of each epoch slow, but not the fastest one. */
static char *busy_text(double fastest_ms, int calls)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < 6; i++)
        fprintf(out,
                "{\"type\":\"stages\",\"epoch_first\":%d,\"epoch_last\":%d,\"final\":false,\"timing\":true,\"stages\":["
                "{\"name\":\"03b_image_decode\",\"kind\":\"work\",\"side\":\"worker\",\"count\":%d,\"total_s\":%g,"
                "\"min_s\":%g}],\"steps\":{\"train_batches\":5,\"images\":100,\"train_s\":1}}\n",
                i + 1, i + 1, calls, 0.2 + 0.1 * (i * 2 % 5), 1e-3 * (fastest_ms + 0.001 * (i % 2)));
    fclose(out);
    return text;
}

Test(compare, the_fastest_call_shows_what_noise_hides)
{
    static struct output output;
    char *before = busy_text(1, 100), *after = busy_text(1.05, 100), *close = busy_text(1.01, 100),
         *more = busy_text(1.05, 120);
    run_texts(&output, before, after, NULL);
    has(&output, " *+5.0%  ");
    has(&output, "*: of the fastest call in each epoch, where noise hides the change of all calls");
    run_texts(&output, before, after, "--wide");
    cr_assert_null(strstr(output.out, "6+6"), "the first epoch counts:\n%s", output.out);
    run_texts(&output, before, close, NULL);
    cr_assert_null(strstr(output.out, "*"), "below 2 %%:\n%s", output.out);
    run_texts(&output, before, more, NULL);
    cr_assert_null(strstr(output.out, "*"), "of more calls, the fastest is another:\n%s", output.out);
    free(before);
    free(after);
    free(close);
    free(more);
}

Test(compare, exit_status_of_fail_if_slower)
{
    static struct output output;
    char *before = log_text(6, 1000, 1, 8), *after = log_text(6, 900, 1, 8), *four = log_text(4, 900, 1, 8);
    run_texts(&output, before, after, "--fail-if-slower=5%");
    cr_assert_eq(output.status, 4);
    has(&output, "10.0 % slower than /tmp/weir-compare-");
    has(&output, ", above --fail-if-slower 5 %\n");
    run_texts(&output, before, after, "--fail-if-slower=11%");
    cr_assert_eq(output.status, 0);
    run_texts(&output, after, before, "--fail-if-slower=5%");
    cr_assert_eq(output.status, 0, "faster");
    run_texts(&output, before, before, "--fail-if-slower=0%");
    cr_assert_eq(output.status, 0, "unchanged");
    run_texts(&output, before, four, "--fail-if-slower=5%");
    cr_assert_eq(output.status, 1);
    has(&output, "has too few measurements to judge (4, compared with 5 of ");
    free(before);
    free(after);
    free(four);
}

Test(compare, results_of_json)
{
    static struct output output;
    char *before = log_text(6, 1000, 1, 8);
    run_texts(&output, before,
              "{\"schema\":1,\"run\":{\"type\":\"run\",\"config\":{\"batch_size\":8}},\"epochs\":["
              "{\"epoch\":1,\"images_per_s\":1500,\"data_wait_fraction\":0.5},{\"images_per_s\":1500},"
              "{\"images_per_s\":1500},{\"images_per_s\":1500},{\"images_per_s\":1501}],"
              "\"report\":{\"final\":true,\"stages\":[{\"name\":\"03b_image_decode\",\"kind\":\"work\",\"side\":"
              "\"worker\",\"count\":1,"
              "\"total_s\":1}],\"steps\":{\"images\":100}}}",
              "--json");
    cr_assert_eq(output.status, 0, "%s", output.err);
    has(&output, "\"schema\": 1,\n  \"comparisons\": [");
    has(&output, "\"name\": \"images/s\",\n        \"result\": \"higher\"");
    has(&output, "\"slower\": -0.50");
    has(&output, "\"name\": \"03b_image_decode\",\n          \"result\": null");
    run_texts(&output, before, "{\"schema\":1,\"ladder\":[]}", NULL);
    cr_assert_eq(output.status, 1);
    has(&output, " is output of weir whatif --json; weir compare reads the --json of weir run, ");
    run_texts(&output, before, "{\"schema\":1,\"epochs\":", NULL);
    has(&output, ": line 1 is invalid JSON: ");
    free(before);
}

/* A candidate of weir bench (with the format and "settings") or weir tune (with "setting"), with six trials. */
static void add_candidate(char text[4096], const char *format, const char *settings, int workers, int images_per_s)
{
    char *end = text + strlen(text);
    end += sprintf(end, "%s{%s\"%s\":{\"num_workers\":%d,\"io\":\"pread\"},\"turns\":[",
                   text[strlen(text) - 1] == '[' ? "" : ",", format, settings, workers);
    for (int i = 0; i < 6; i++)
        end += sprintf(end, "%s{\"round\":%d,\"images_per_s\":%d}", i > 0 ? "," : "", i, images_per_s + i);
    strcpy(end, "]}");
}

Test(compare, results_of_bench_and_tune)
{
    static struct output output;
    char before[4096] = "{\"schema\":1,\"config\":{\"sample\":1},\"cells\":[",
         after[4096] = "{\"schema\":1,\"config\":{\"sample\":2},\"cells\":[";
    add_candidate(before, "\"format\":\"as-is\",\"cache\":\"warm\",", "settings", 1, 1000);
    add_candidate(before, "\"format\":\"packed:jpeg\",\"cache\":\"warm\",", "settings", 2, 2000);
    add_candidate(after, "\"format\":\"as-is\",\"cache\":\"warm\",", "settings", 1, 800);
    add_candidate(after, "\"format\":\"packed:jpeg\",\"cache\":\"warm\",", "settings", 2, 2001);
    strcat(before, "]}");
    strcat(after, "]}");
    run_texts(&output, before, after, "--fail-if-slower=5%");
    cr_assert_eq(output.status, 4, "%s", output.err);
    has(&output, "verdict: 20.0 % slower");
    has(&output, "as-is warm num_workers=1 ");
    has(&output, "packed:jpeg warm num_workers=2 ");
    has(&output, "settings differ: config.sample 1 -> 2");

    strcpy(before, "{\"schema\":1,\"candidates\":[");
    add_candidate(before, "", "setting", 1, 1000);
    add_candidate(before, "", "setting", 2, 2000);
    strcpy(after, before);
    strcat(before, "],\"chosen\":0}");
    strcat(after, "],\"chosen\":1}");
    run_texts(&output, before, after, NULL);
    cr_assert_eq(output.status, 0, "%s", output.err);
    has(&output, "% faster");
    has(&output, "num_workers=1 ");
    cr_assert_null(strstr(output.out, "io=pread"), "%s", output.out);
}

Test(compare, runs_of_a_log_with_seconds_are_measurements)
{
    static struct output output;
    char before[4096] = "", after[4096] = "";
    for (int i = 0; i < 5; i++) {
        snprintf(before + strlen(before), sizeof before - strlen(before),
                 "{\"type\":\"run\"}\n{\"type\":\"measured\",\"seconds\":5,\"images_per_s\":%d}\n", 100 + i);
        snprintf(after + strlen(after), sizeof after - strlen(after),
                 "{\"type\":\"run\"}\n{\"type\":\"measured\",\"seconds\":5,\"images_per_s\":%d}\n", 120 + i);
    }
    strcat(after, "{\"type\":\"me");
    run_texts(&output, before, after, NULL);
    has(&output, "% faster (");
    has(&output, "beyond the noise of the runs");
    has(&output, "a log of weir run, 5 runs; its last line is cut off");
}

#define LEROBOT(step, updt, data)                                                                                      \
    "INFO 2026-01-01 10:00:00 ot_train.py:1 step:" step                                                                \
    " smpl:8 ep:0 epch:0.01 loss:1.0 grdn:1.0 lr:1.0e-05 updt_s:" updt " data_s:" data "\n"

Test(compare, training_programs)
{
    static struct output output;
    static const char before[] =
        LEROBOT("1", "0.900", "0.500") LEROBOT("2", "0.100", "0.010") LEROBOT("3", "0.101", "0.010")
            LEROBOT("4", "0.102", "0.010") LEROBOT("5", "0.103", "0.011") LEROBOT("6", "0.104", "0.011"),
                      after[] = LEROBOT("1", "0.900", "0.500") LEROBOT("2", "0.100", "0.050")
                          LEROBOT("3", "0.101", "0.050") LEROBOT("4", "0.102", "0.050") LEROBOT("5", "0.103", "0.051")
                              LEROBOT("6", "0.104", "0.051");
    run_texts(&output, before, after, NULL);
    cr_assert_eq(output.status, 0, "%s", output.err);
    has(&output, "slower (");
    has(&output, "LeRobot's step lines, 5 lines");
    has(&output, "data-bound: partly -> strongly");
    has(&output, "updt_s                      102ms      102ms        ~");
    char *weir = log_text(6, 1000, 1, 8);
    run_texts(&output, weir, after, NULL);
    cr_assert_eq(output.status, 1);
    has(&output, " is a log of weir run, but ");
    has(&output, " is LeRobot's step lines: files of different kinds cannot be compared\n");
    cr_assert_str_empty(output.out);
    run_texts(&output, weir, "nothing\nat all\n", NULL);
    cr_assert_eq(output.status, 1);
    has(&output, " is neither a trace nor a log with measurements (2 lines); ");
    run(&output, "/dev/null", "/nonexistent", NULL);
    cr_assert_eq(output.status, 1);
    run(&output, "-", "-", NULL);
    cr_assert_eq(output.status, 2);
    free(weir);
}

/* A mean since the start is not measured anew on each line. */
Test(compare, means_since_the_start_are_one_measurement)
{
    static struct output output;
    static char text[8192];
    text[0] = '\0';
    for (int i = 1; i <= 8; i++)
        snprintf(
            text + strlen(text), sizeof text - strlen(text),
            "[01/01 10:00:00 d2.utils.events]:  eta: 0:01:40  iter: %d  total_loss: 1.9  time: 0.25%d0  last_time: "
            "0.2532  data_time: 0.008%d  lr: 1e-05\n",
            20 * i - 1, i, i);
    run_texts(&output, text, text, NULL);
    has(&output, "verdict: ~ Cannot tell: 1 and 1 measurements");
    has(&output, "data_time ");
}

Test(compare, stage_tables)
{
    static struct output output;
    char before[8192] = "", after[8192] = "";
    for (int i = 1; i <= 6; i++)
        for (int side = 0; side < 2; side++)
            snprintf((side ? after : before) + strlen(side ? after : before), 1024, "Epoch %d/6 总耗时: %d.%d0s\n", i,
                     side ? 22 : 20, i);
    run_texts(&output, before, after, NULL);
    cr_assert_eq(output.status, 0, "%s", output.err);
    has(&output, "slower (");
    has(&output, "a log with stage tables or epoch lines, 5 epochs");
}

/* Steps of step_us, the first wait_us of which are a wait for data. */
static char *trace_text(int steps, int step_us, int wait_us)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fputs("{\"schemaVersion\":1,\"traceEvents\":[", out);
    for (int i = 0; i < steps; i++)
        fprintf(out,
                "%s\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,"
                "\"ts\":%d,\"dur\":%d},\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
                "\"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__\",\"pid\":1,\"tid\":1,\"ts\":%d,"
                "\"dur\":%d}",
                i ? "," : "", i, 10000 * i, step_us + i, 10000 * i, wait_us + i);
    fputs("]}\n", out);
    fclose(out);
    return text;
}

Test(compare, traces)
{
    static struct output output;
    char *before = trace_text(6, 1000, 20), *after = trace_text(6, 1200, 220);
    run_texts(&output, before, after, "--fail-if-slower=5%");
    cr_assert_eq(output.status, 4, "%s%s", output.out, output.err);
    has(&output, "a trace, 6 steps");
    has(&output, "stage, per step ");
    has(&output, "DataLoader ");
    has(&output, "data-bound: no -> partly");
    run_texts(&output, before,
              "{\"schemaVersion\":1,\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":1,"
              "\"tid\":1,\"ts\":0,\"dur\":5}]}",
              NULL);
    cr_assert_eq(output.status, 1);
    has(&output, " is a trace without steps (ProfilerStep#N); call prof.step() after each batch\n");
    free(before);
    free(after);
}

Test(compare, logs_of_watched_loaders)
{
    static struct output output;
    char *weir = log_text(6, 1000, 1, 8);
    char watched[4096] = "";
    for (int i = 1; i <= 6; i++)
        snprintf(
            watched + strlen(watched), 600,
            "{\"type\":\"epoch\",\"epoch\":%d,\"images_per_s\":50,\"data_wait_fraction\":0.2}\n"
            "{\"type\":\"stages\",\"epoch_first\":%d,\"epoch_last\":%d,\"final\":false,\"timing\":true,\"stages\":["
            "{\"name\":\"01_getitem\",\"kind\":\"work\",\"side\":\"worker\",\"count\":8,\"total_s\":1}],"
            "\"steps\":{\"images\":8,\"train_s\":1},\"watch\":{\"settings\":{\"num_workers\":4}}}\n",
            i, i, i);
    run_texts(&output, watched, watched, NULL);
    cr_assert_eq(output.status, 0, "%s", output.err);
    has(&output, "a log of weir.watch, 5 epochs");
    has(&output, "stage, per item ");
    has(&output, "items/s ");
    run_texts(&output, weir, watched, NULL);
    has(&output, " is a log of weir.watch: files of different kinds cannot be compared");
    free(weir);
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
