/* The building blocks of `weir bench`: medians and their confidence intervals, the parser of a child's output, the
 * grid, the rotation of trials, and the advice sentences. All results are synthetic. */
#include "analyze/trials/child.h"
#include "analyze/trials/copies.h"
#include "analyze/trials/grid.h"
#include "analyze/trials/rounds.h"
#include "weir/base.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- intervals ---- */

Test(interval, ranks_and_probabilities)
{
    static const struct {
        int n, low, high; /* low, high: 1-based ranks in the sorted list */
        double probability;
    } cases[] = {{1, 1, 1, 0},       {2, 1, 2, 0.5},    {4, 1, 4, 0.875},   {5, 1, 5, 0.9375},
                 {7, 1, 7, 0.98437}, {8, 2, 7, 0.9297}, {9, 2, 8, 0.96094}, {101, 42, 60, 0.92724}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        double values[101];
        struct weir_interval found;
        for (int i = 0; i < cases[c].n; i++)
            values[i] = (i * 37) % cases[c].n + 1; /* 1 to n, shuffled */
        weir_interval_of(values, cases[c].n, &found);
        cr_expect(found.n == cases[c].n && found.low == cases[c].low && found.high == cases[c].high, "%d: %g %g",
                  cases[c].n, found.low, found.high);
        cr_expect(fabs(found.probability - cases[c].probability) < 6e-5, "%d: %.6f", cases[c].n, found.probability);
        cr_expect(found.median == (cases[c].n + 1) / 2.0 && found.least == 1 && found.most == cases[c].n);
    }
}

Test(interval, odd_values)
{
    struct weir_interval found;
    const double values[] = {NAN, 100, 101, INFINITY, 99, 100, 100};
    weir_interval_of(values, 7, &found);
    cr_assert(found.n == 5 && found.median == 100 && found.low == 99 && found.high == 101);
    cr_assert(weir_interval_converged(&found, 0.03) && !weir_interval_converged(&found, 0.005));
    weir_interval_of(values, 4, &found);
    cr_assert(found.n == 2 && !weir_interval_converged(&found, 0.03), "two values are too few");
    const double spread[] = {1, 5, 2, 4, 3}; /* median absolute deviation: 1 */
    weir_interval_of(spread, 5, &found);
    cr_expect(fabs(found.error - 1.2533 * 1.4826 / sqrt(5)) < 1e-12, "%g", found.error);
    weir_interval_of(NULL, 0, &found);
    cr_assert(found.n == 0 && found.median == 0 && !weir_interval_converged(&found, 0.03));
}

/* ---- output of a child ---- */

#define RUN                                                                                                            \
    "{\"type\":\"run\",\"used\":{\"num_workers\":2,\"prefetch\":3,\"decoder\":\"turbo\",\"io\":{\"used\":\"pread\"}}}" \
    "\n"
#define MEASURED(images)                                                                                               \
    "{\"type\":\"measured\",\"seconds\":2,\"samples\":50,\"images\":" images                                           \
    ",\"samples_per_s\":25,\"images_per_s\":50,"                                                                       \
    "\"data_wait_fraction\":0.5,\"peak_rss_bytes\":1000000,\"reads\":\"warm\",\"page_cache_fraction\":1}\n"
#define ROW(name, side, kind, self, p99)                                                                               \
    "{\"name\":\"" name "\",\"kind\":\"" kind "\",\"side\":\"" side "\",\"count\":9,\"total_s\":" self                 \
    ",\"self_s\":" self ",\"mean_s\":0.1,\"p99_s\":" p99 ",\"share\":null}"
#define TABLE(rows)                                                                                                    \
    "{\"type\":\"stages\",\"cpu_s\":3,\"io\":{\"read_bytes\":500},\"workers\":[{\"name\":\"a\",\"wall_s\":2},{"        \
    "\"name\":\"b\",\"wall_s\":2}],"                                                                                   \
    "\"machine\":{},\"stages\":[" rows "]}\n"
#define DECODING                                                                                                       \
    ROW("03b_image_decode", "worker", "work", "3.0", "0.2")                                                            \
    "," ROW("03c_read_bytes", "worker", "work", "0.5", "0.2") "," ROW("09_wait_for_slot", "worker", "wait", "0.4",     \
                                                                      "1") "," ROW("08_wait_for_data", "consumer",     \
                                                                                   "wait", "1.0", "0.25")

static int parse(struct weir_trial *trial, const char *text, char why[1024])
{
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_trial_parse(trial, NULL, text, strlen(text), &err);
    snprintf(why, 1024, "%s", err.text);
    return rc;
}

Test(trial, figures)
{
    struct weir_trial trial;
    char why[1024];
    double part;
    cr_assert_eq(parse(&trial, RUN "{\"type\":\"later\",\"x\":[1]}\n\n" MEASURED("100") TABLE(DECODING), why), 0, "%s",
                 why);
    cr_assert(trial.measured.images == 100 && trial.measured.images_per_s == 50 && trial.read_bytes == 500 &&
              trial.cpu_s == 3);
    cr_assert(trial.used.workers == 2 && trial.used.prefetch == 3 && trial.workers_wall_s == 4 && trial.n_stages == 4);
    cr_assert(trial.wait_p99_s == 0.25 && trial.others_cores == -1 && trial.measured.cached_fraction == 1);
    cr_assert_str_eq(trial.used.io, "pread");
    cr_assert_str_eq(trial.used.decoder, "turbo");
    cr_assert_eq(trial.measured.reads, WEIR_READS_WARM);
    cr_assert_str_eq(weir_trial_bound(&trial, &part)->name, "03b_image_decode");
    cr_assert_eq(part, 0.75);
}

Test(trial, workers_that_wait_are_not_the_bound)
{
    struct weir_trial trial;
    char why[1024];
    double part;
    cr_assert_eq(parse(&trial,
                       RUN MEASURED("100") TABLE(ROW("09_wait_for_slot", "worker", "wait", "3", "1") "," ROW(
                           "03b_image_decode", "worker", "work", "1", "1") "," ROW("20_train_forward_pass", "consumer",
                                                                                   "work", "1.8", "1")),
                       why),
                 0, "%s", why);
    cr_assert_str_eq(weir_trial_bound(&trial, &part)->name, "20_train_forward_pass");
    cr_assert(fabs(part - 0.9) < 1e-9);
    cr_assert_eq(parse(&trial, RUN MEASURED("100") TABLE(""), why), 0);
    cr_assert_null(weir_trial_bound(&trial, &part));
}

Test(trial, hostile)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "no line \"run\""},
        {RUN, "no line \"measured\""},
        {RUN MEASURED("100"), "no line \"stages\""},
        {"\x7f\x45LF\x02\xff\xfe", "no line \"run\""},
        {"\x7f\x45LF\x02\xff\xfe\n", "line 1 is invalid JSON"},
        {RUN "{\"type\":\"measured\"", "no line \"measured\""},
        {RUN "[1,2]\n{\"type\":7}\nnull\n", "line 2 is not a record"},
        {"{\"type\":\"run\",\"used\":[]}", "no line \"run\""},
        {"{\"type\":\"run\",\"used\":{\"num_workers\":-3,\"prefetch\":1}}", "\"num_workers\" is not an integer"},
        {RUN MEASURED("-1") TABLE(DECODING), "\"images\" is not an integer"},
        {RUN MEASURED("\"many\"") TABLE(DECODING), "\"images\" is not an integer"},
        {RUN MEASURED("1e300") TABLE(DECODING), "\"images\" is not an integer"},
        {RUN MEASURED("1e999") TABLE(DECODING), "invalid JSON"},
        {RUN MEASURED("0") TABLE(DECODING), "before anything was measured"},
        {RUN MEASURED("1") TABLE("7"), "\"stages\" contains an element that is not an object"},
        {RUN MEASURED("1") TABLE("{\"name\":\"x\"}"), "\"kind\" is missing"},
        {RUN MEASURED("1") "{\"type\":\"stages\",\"workers\":[3]}",
         "\"workers\" contains an element that is not an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_trial trial;
        char why[1024];
        cr_expect(parse(&trial, cases[i].text, why) < 0 && strstr(why, cases[i].why), "%zu: %s", i, why);
    }
}

Test(trial, more_stages_than_are_kept_and_long_names)
{
    size_t size = 1 << 20, used = 0;
    char *text = malloc(size), *name = malloc(5000), why[1024];
    struct weir_trial trial;
    memset(name, 'n', 4999);
    name[4999] = '\0';
    used += (size_t)snprintf(text, size, RUN MEASURED("7"));
    used += (size_t)snprintf(text + used, size - used,
                             "{\"type\":\"stages\",\"cpu_s\":3,\"io\":{\"read_bytes\":5},\"stages\":[");
    for (int i = 0; i < 100; i++)
        used += (size_t)snprintf(text + used, size - used,
                                 "%s{\"name\":\"%s\",\"kind\":\"work\",\"side\":\"worker\",\"count\":1,\"total_s\":1,"
                                 "\"self_s\":1,\"mean_s\":1,\"p99_s\":1}",
                                 i ? "," : "", name);
    snprintf(text + used, size - used, "]}");
    cr_assert_eq(parse(&trial, text, why), 0, "%s", why);
    cr_assert_eq(trial.n_stages, WEIR_TRIAL_STAGES);
    cr_assert_eq(strlen(trial.stages[0].name), sizeof trial.stages[0].name - 1);
    free(text);
    free(name);
}

/* ---- children ---- */

static int shell(const char *script, struct weir_child *trial, double seconds, const volatile sig_atomic_t *interrupted,
                 struct weir_err *err)
{
    char *const argv[] = {"sh", "-c", (char *)script, NULL};
    const struct weir_child_config config = {
        .program = "/bin/sh", .argv = argv, .seconds = seconds, .interrupted = interrupted};
    return weir_child_run(trial, &config, err);
}

Test(trial, ends)
{
    static const volatile sig_atomic_t stop = 1;
    static const struct {
        const char *script;
        int rc;
        const char *why;
    } cases[] = {
        {"echo a; echo b >&2", 0, ""},
        {"echo first >&2; echo 'weir run: no such file' >&2; exit 1", -ECHILD, "weir run: no such file"},
        {"exit 3", -ECHILD, "exited with status 3"},
        {"kill -9 $$", -ECHILD, "signal 9"},
        {"sleep 600", -ETIMEDOUT, "within"},
        /* Closes both pipes and keeps running. */
        {"trap '' TERM; exec 1>&- 2>&-; while :; do :; done", -ETIMEDOUT, "signal 9"},
        {"cat /dev/zero", -E2BIG, "more than"},
        {"yes >&2", -ETIMEDOUT, "within"}, /* only the end of stderr is kept */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_child trial;
        struct weir_err err = WEIR_ERR_NONE;
        bool late = cases[i].rc == -ETIMEDOUT;
        int rc = shell(cases[i].script, &trial, late ? 0.3 : 600, NULL, &err);
        cr_expect(strstr(err.text, cases[i].why), "%s: %d %s", cases[i].script, rc, err.text);
        cr_expect((rc == 0) == (cases[i].rc == 0), "%s: %d %s", cases[i].script, rc, err.text);
        cr_expect(i != 0 || (trial.length == 2 && strcmp(trial.output, "a\n") == 0));
        weir_child_free(&trial);
    }
    struct weir_child trial;
    struct weir_err err = WEIR_ERR_NONE;
    cr_expect_eq(shell("sleep 600", &trial, 600, &stop, &err), -EINTR);
    weir_child_free(&trial);
    char *const argv[] = {"none", NULL};
    const struct weir_child_config none = {.program = "/nowhere/none", .argv = argv, .seconds = 1};
    err = WEIR_ERR_NONE;
    cr_expect(weir_child_run(&trial, &none, &err) == -ENOENT && strstr(err.text, "cannot be started"), "%s", err.text);
}

/* ---- the grid ---- */

static const struct weir_grid_format two[] = {
    {.name = "as-is",
     .what = "the data as it is",
     .path = "/d/a b",
     .is_source = true,
     .bytes_each = 100,
     .limit_batches = 9},
    {.name = "hdf5:raw", .what = "hdf5:raw", .path = "/d/raw", .bytes_each = 910, .limit_batches = 0},
};

static void words(const struct weir_candidate *candidate, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (char **arg = candidate->argv; *arg && used < size; arg++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "|" : "", *arg);
}

Test(grid, every_combination)
{
    const char *common[] = {"--dtype", "f32", NULL}, *source_only[] = {"--image-keys", "a b", NULL};
    const struct weir_grid_config config = {.formats = two,
                                            .n_formats = 2,
                                            .num_workers = "1,auto",
                                            .prefetch = "2,4,8",
                                            .cache = "cold,warm",
                                            .seconds = 0.5,
                                            .common = common,
                                            .source_only = source_only};
    struct weir_grid grid;
    struct weir_err err = WEIR_ERR_NONE;
    char text[512];
    cr_assert_eq(weir_grid_open(&grid, &config, &err), 0, "%s", err.text);
    /* as-is has one extra candidate per number of workers: its limit without reading, which does not depend on prefetch
     */
    cr_assert_eq(grid.n_warm, 2 * 6 + 2);
    cr_assert_eq(grid.n, grid.n_warm + 2 * 6);
    words(&grid.candidates[0], text, sizeof text);
    cr_assert_str_eq(text,
                     "weir|run|/d/a b|--image-keys|a b|--dtype|f32|--num-workers|1|--prefetch|2|--seconds|0.5|--log|-");
    cr_assert_eq(grid.candidates[0].limit_candidate, 1);
    words(&grid.candidates[1], text, sizeof text);
    cr_assert_str_eq(text, "weir|run|/d/a b|--image-keys|a b|--dtype|f32|--num-workers|1|--io|null|--no-shuffle|"
                           "--max-batches|9|--seconds|0.5|--log|-");
    words(&grid.candidates[grid.n - 1], text, sizeof text);
    cr_assert_str_eq(text, "weir|run|/d/raw|--dtype|f32|--prefetch|8|--cold|--seconds|0.5|--log|-");
    weir_grid_settings(&grid, &grid.candidates[grid.n - 1], text, sizeof text);
    cr_assert_str_eq(text, "num-workers auto, prefetch 8");
    int limits = 0;
    for (int i = 0; i < grid.n; i++) {
        limits += grid.candidates[i].limit;
        cr_assert(!grid.candidates[i].limit || !grid.candidates[i].cold);
    }
    cr_assert_eq(limits, 2);
    weir_grid_close(&grid);
}

Test(grid, lists_that_are_wrong)
{
    static const struct {
        struct weir_grid_config config;
        const char *why;
    } cases[] = {
        {{.num_workers = "1,,2"}, "--num-workers: '1,,2' is not a list"},
        {{.num_workers = "1,2,"}, "is not a list"},
        {{.num_workers = "1,1"}, "'1' is listed twice"},
        {{.num_workers = "513"}, "must be a number from 0 to 512, or auto"},
        {{.num_workers = "-1"}, "must be a number"},
        {{.num_workers = "2x"}, "'2x' must be a number"},
        {{.batch_size = "auto"}, "--batch-size: 'auto' must be a number from 1 to 65536"},
        {{.prefetch = "0"}, "--prefetch"},
        {{.cache = "warm,hot"}, "--cache: 'hot' is neither"},
        {{.cache = ""}, "is not a list"},
        {{.io = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, "is not a list"},
        {{.io = "aaaaaaaaaaaaaaaaaaaaa"}, "too long"},
        {{.num_workers = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"}, "at most 16 values"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_err err = WEIR_ERR_NONE;
        cr_expect(weir_grid_check(&cases[i].config, &err) == -EINVAL && strstr(err.text, cases[i].why), "%zu: %s", i,
                  err.text);
    }
    struct weir_grid_config many = {.formats = two,
                                    .n_formats = 2,
                                    .num_workers = "1,2,3,4,5,6,7,8",
                                    .prefetch = "1,2,3,4,5,6,7,8",
                                    .batch_size = "1,2,3,4,5,6,7,8"};
    struct weir_grid grid;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert(weir_grid_open(&grid, &many, &err) == -EINVAL && strstr(err.text, "more than 512 candidates"), "%s",
              err.text);
    weir_grid_close(&grid);
}

Test(grid, decoders_of_a_gpu_want_batches_there)
{
    const struct weir_grid_config config = {
        .formats = two + 1, .n_formats = 1, .device = "cpu,cuda:1", .decoder = "auto,nvjpeg", .seconds = 1};
    struct weir_grid grid;
    struct weir_err err = WEIR_ERR_NONE;
    char text[512];
    cr_assert_eq(weir_grid_open(&grid, &config, &err), 0, "%s", err.text);
    cr_assert_eq(grid.n, 3);
    words(&grid.candidates[2], text, sizeof text);
    cr_assert_str_eq(text, "weir|run|/d/raw|--decoder|nvjpeg|--device|cuda:1|--seconds|1|--log|-");
    weir_grid_close(&grid);
}

/* ---- the rotation ---- */

struct notes {
    struct weir_candidate candidates[3];
    const volatile sig_atomic_t *interrupted;
    char order[256];
};

static int trial(void *user, int number, int round, int position)
{
    struct notes *notes = user;
    struct weir_candidate *candidate = &notes->candidates[number];
    const struct weir_child_config command = {.program = "/bin/sh", .seconds = 600, .interrupted = notes->interrupted};
    int rc = weir_candidate_trial(candidate, round, &command);
    size_t used = strlen(notes->order);
    snprintf(notes->order + used, sizeof notes->order - used, "%s%c%s", used && position == 0 ? " " : "", 'A' + number,
             *candidate->why ? "!" : "");
    return rc;
}

static bool takes_part(const void *user, int number)
{
    return !*((const struct notes *)user)->candidates[number].why;
}

static bool is_decided(void *user, int round)
{
    const struct notes *notes = user;
    return round >= 5 && weir_candidates_not_converged(notes->candidates, 3, 5) == 0;
}

static void shell_cell(struct weir_candidate *candidate, int number, const char *script)
{
    *candidate = (struct weir_candidate){.format = number, .limit_candidate = -1, .argv = calloc(4, sizeof(char *))};
    candidate->argv[0] = strdup("sh");
    candidate->argv[1] = strdup("-c");
    candidate->argv[2] = strdup(script);
}

Test(rounds, interleaves_and_drops_what_fails)
{
    static const char good[] = "cat <<'END'\n" RUN MEASURED("100") TABLE(DECODING) "END\n";
    static struct notes notes;
    struct weir_candidate *candidates = notes.candidates;
    shell_cell(&candidates[0], 0, good);
    shell_cell(&candidates[1], 1, "echo 'weir run: gone' >&2; exit 1");
    shell_cell(&candidates[2], 2, good);
    struct weir_rounds_config config = {
        .n = 3, .rounds_max = 9, .trial = trial, .takes_part = takes_part, .is_decided = is_decided, .user = &notes};
    cr_assert_eq(weir_rounds_run(&config), 0);
    cr_assert_str_eq(notes.order, "AB!C CA AC CA AC");
    cr_assert(candidates[0].n_trials == 5 && candidates[1].n_trials == 0 && candidates[2].trials[4].round == 5);
    cr_assert_str_eq(candidates[1].why, "weir run: gone");
    cr_assert_eq(weir_candidates_not_converged(candidates, 3, 6), 2); /* too few trials */
    /* the time is already up: no trial starts */
    config.end_ns = 1;
    cr_assert_eq(weir_rounds_run(&config), -ETIME);
    cr_assert_eq(candidates[0].n_trials, 5);
    config.end_ns = 0;
    volatile sig_atomic_t stop = 1;
    config.interrupted = &stop;
    cr_assert_eq(weir_rounds_run(&config), -EINTR);
    cr_assert_eq(candidates[0].n_trials, 5);
    /* a trial that is interrupted has no figures and is no failure */
    config.interrupted = NULL;
    notes.interrupted = &stop;
    cr_assert_eq(weir_rounds_run(&config), -EINTR);
    cr_assert(candidates[0].n_trials == 5 && !*candidates[0].why);
    for (int i = 0; i < 3; i++)
        weir_candidate_free(&candidates[i]);
}

/* ---- ratios and sentences ---- */

static struct weir_grid_format formats[6];
static struct weir_candidate candidates[12];
static struct weir_grid results;

/* Adds a candidate with one trial per rate. Its workers spend 95 % of their time in the stage. */
static struct weir_candidate *give(int format, bool cold, const char *stage, const double *rates, int n)
{
    struct weir_candidate *candidate = &candidates[results.n++];
    *candidate = (struct weir_candidate){.format = format, .cold = cold, .limit_candidate = -1};
    for (int i = 0; i < n; i++) {
        struct weir_trial trial = {
            .round = i + 1,
            .measured = {
                .images_per_s = rates[i], .seconds = 1, .images = (uint64_t)rates[i], .data_wait_fraction = 0.01}};
        trial.workers_wall_s = 2;
        trial.n_stages = 1;
        trial.stages[0].self_s = 1.9;
        snprintf(trial.stages[0].name, sizeof trial.stages[0].name, "%s", stage);
        trial.stages[0].side = WEIR_SIDE_WORKER;
        trial.stages[0].kind = WEIR_KIND_WORK;
        weir_candidate_add(candidate, &trial);
    }
    return candidate;
}

static struct weir_candidate *steady(int format, bool cold, double rate)
{
    const double rates[] = {rate, 1.01 * rate, 0.99 * rate, rate, rate};
    return give(format, cold, "03b_image_decode", rates, 5);
}

static void begin(void)
{
    static const char *const names[] = {"as-is", "lmdb:jpeg", "packed:jpeg", "hdf5:raw", "hdf5:png", "zarr:raw"};
    static const double sizes[] = {100, 101, 99, 910, 500, 880};
    memset(candidates, 0, sizeof candidates);
    for (int i = 0; i < 6; i++) {
        formats[i] = (struct weir_grid_format){.path = "x", .is_source = i == 0, .bytes_each = sizes[i]};
        snprintf(formats[i].name, sizeof formats[i].name, "%s", names[i]);
        snprintf(formats[i].what, sizeof formats[i].what, "%s", i == 0 ? "the data as it is (jpeg, act)" : names[i]);
    }
    results = (struct weir_grid){.formats = formats, .n_formats = 6, .candidates = candidates};
}

static void advise(struct weir_grid_advice *advice, double step_ms)
{
    weir_advise(&results, step_ms, 2, advice);
    for (int i = 0; i < results.n; i++) /* safe: callers only compare advice->best with other pointers */
        free(candidates[i].trials);
}

#define EXPECT(text, expected) cr_expect(strcmp(text, expected) == 0, "%s", text)
#define BEGINS(text, expected) cr_expect(strncmp(text, expected, strlen(expected)) == 0, "%s", text)

/* The ratio to two candidates is that to their mean. Rounds that one of them lacks, and trials outside rounds, do not
 * count. */
Test(ratio, pairs_trials_of_a_round)
{
    static const double both[] = {100, 100, 100}, one[] = {300, 100}, rates[] = {400, 200, 900};
    struct weir_interval ratio;
    begin();
    struct weir_candidate *pair = give(0, false, "03b_image_decode", both, 3);
    give(0, false, "03b_image_decode", one, 2);
    struct weir_candidate *candidate = give(0, false, "03b_image_decode", rates, 3);
    weir_candidate_ratio(candidate, pair, 2, &ratio);
    cr_expect(ratio.n == 2 && ratio.least == 2 && ratio.most == 2, "%d %g %g", ratio.n, ratio.least, ratio.most);
    weir_candidate_ratio(candidate, pair, 1, &ratio);
    cr_expect(ratio.n == 3 && ratio.median == 4, "%d %g", ratio.n, ratio.median);
    pair->trials[0].round = candidate->trials[0].round = 0;
    weir_candidate_ratio(candidate, pair, 1, &ratio);
    cr_expect(ratio.n == 2 && ratio.least == 2, "%d %g", ratio.n, ratio.least);
    for (int i = 0; i < results.n; i++)
        weir_candidate_free(&candidates[i]);
}

Test(advice, ties_and_cold_that_contradicts_warm)
{
    struct weir_grid_advice advice;
    begin();
    struct weir_candidate *source = steady(0, false, 1000);
    steady(1, false, 1010);
    steady(2, false, 985);
    steady(3, false, 4200);
    steady(0, true, 800);
    steady(1, true, 800);
    steady(2, true, 801);
    steady(3, true, 300);
    advise(&advice, 0);
    EXPECT(advice.format,
           "Keep the data as it is (jpeg, act): lmdb:jpeg and packed:jpeg are within 3 % warm, hdf5:raw is "
           "4.2 x faster warm and 9.1 x larger, and slower from this disk when cold.");
    EXPECT(advice.next, "Decoding is the limit (03b_image_decode, 95 % of the workers' time): more cores, a smaller "
                        "--image-size, --decode-cache or a GPU make it faster.");
    cr_expect(advice.best == source && !advice.cold_best);
}

Test(advice, one_that_is_better)
{
    struct weir_grid_advice advice;
    begin();
    steady(0, false, 1000);
    struct weir_candidate *better = steady(2, false, 1300);
    steady(1, false, 1290);
    steady(3, false, 5000);
    steady(0, true, 500);
    steady(2, true, 900);
    steady(1, true, 505);
    steady(3, true, 900);
    advise(&advice, 0);
    EXPECT(advice.format,
           "Convert to packed:jpeg: it is 1.3 x faster warm and 1.8 x faster cold than as-is; lmdb:jpeg is "
           "within 3 % warm, hdf5:raw is 5.0 x faster warm and 1.8 x faster cold and 9.1 x larger.");
    cr_expect(advice.best == better);
}

Test(advice, a_gain_that_is_not_worth_a_conversion)
{
    struct weir_grid_advice advice;
    begin();
    struct weir_candidate *source = steady(0, false, 1000);
    steady(1, false, 1070);
    advise(&advice, 0);
    EXPECT(advice.format,
           "Keep the data as it is (jpeg, act): lmdb:jpeg is 1.1 x faster warm, which is not worth a conversion.");
    cr_expect(advice.best == source);
    begin(); /* within 3 % warm, and 8 % faster only when cold */
    steady(0, false, 1000);
    steady(1, false, 1005);
    steady(0, true, 500);
    steady(1, true, 540);
    advise(&advice, 0);
    BEGINS(advice.format, "Keep the data as it is (jpeg, act): lmdb:jpeg is within 3 % warm");
    begin();
    steady(0, false, 1000);
    struct weir_candidate *better = steady(1, false, 1150);
    advise(&advice, 0);
    BEGINS(advice.format, "Convert to lmdb:jpeg: it is 1.1 x faster warm than as-is");
    cr_expect(advice.best == better);
    /* Faster when cold; only the trials of the first pass are too short to count. */
    for (double seconds = 0.05; seconds < 0.3; seconds += 0.1) {
        begin();
        steady(0, false, 1000);
        steady(1, false, 1005);
        steady(0, true, 500);
        struct weir_candidate *cold = steady(1, true, 900);
        for (int i = 0; i < cold->n_trials; i++)
            cold->trials[i].measured.seconds = seconds;
        advise(&advice, 0);
        BEGINS(advice.format, seconds < 0.1 ? "Keep the data as it is (jpeg, act): lmdb:jpeg is within 3 % warm"
                                            : "Convert to lmdb:jpeg: it is 1.8 x faster cold than as-is");
    }
}

Test(advice, all_slower_and_one_cell)
{
    struct weir_grid_advice advice;
    begin();
    steady(0, false, 1000);
    steady(4, false, 250);
    steady(3, false, 500);
    advise(&advice, 0);
    EXPECT(advice.format,
           "Keep the data as it is (jpeg, act): every other format is slower, hdf5:raw by the least (2.0 x).");
    begin();
    steady(0, true, 1000);
    advise(&advice, 0);
    EXPECT(advice.format, "Keep the data as it is (jpeg, act): no other format was measured.");
    cr_expect(advice.cold_best);
    begin(); /* the source itself was not measured */
    steady(1, false, 1000);
    steady(3, false, 990);
    advise(&advice, 0);
    EXPECT(advice.format, "Keep lmdb:jpeg: hdf5:raw is within 3 %.");
}

Test(advice, nothing_measured)
{
    struct weir_grid_advice advice;
    begin();
    give(0, false, "", NULL, 0);
    snprintf(candidates[0].why, sizeof candidates[0].why, "weir run: no such file");
    advise(&advice, 0);
    EXPECT(advice.format, "Nothing was measured: weir run: no such file.");
    cr_expect_null(advice.best);
    begin();
    advise(&advice, 0);
    EXPECT(advice.format, "Nothing was measured.");
    EXPECT(advice.next, "Raise --max-minutes.");
}

Test(advice, noise_is_said_and_rounds_take_it_out)
{
    struct weir_grid_advice advice;
    const double noisy[] = {1000, 1900, 1100, 1700, 1300}, other[] = {1900, 1000, 1500, 1100, 1800};
    const double slower[] = {500, 960, 548, 850, 655};
    begin();
    give(0, false, "03b_image_decode", noisy, 5);
    struct weir_candidate *cheap = give(1, false, "03b_image_decode", other, 5);
    for (int i = 0; i < 5; i++) {
        candidates[0].trials[i].cpu_s = (double)candidates[0].trials[i].measured.images / 1000;
        cheap->trials[i].cpu_s = (double)cheap->trials[i].measured.images / 2000;
    }
    advise(&advice, 0);
    BEGINS(advice.format, "No format is distinguishable from another here: identical trials differ by up to 3");
    cr_expect(
        strstr(advice.format,
               " In CPU time per image, lmdb:jpeg is the cheapest: 0.50 s per 1,000 images, but as-is takes 1.00 s."),
        "%s", advice.format);
    begin(); /* some rounds were slow for both candidates alike, so their ratio is steady */
    give(0, false, "03b_image_decode", noisy, 5);
    give(1, false, "03b_image_decode", slower, 5);
    advise(&advice, 0);
    EXPECT(advice.format,
           "Keep the data as it is (jpeg, act): every other format is slower, lmdb:jpeg by the least (2.0 x).");
}

Test(advice, unsure)
{
    struct weir_grid_advice advice;
    const double noisy[] = {900, 1300, 1100, 1300, 1000};
    begin();
    steady(0, false, 1000);
    give(1, false, "03b_image_decode", noisy, 5);
    steady(2, false, 1000);
    advise(&advice, 0);
    EXPECT(advice.format,
           "Keep the data as it is (jpeg, act): packed:jpeg is within 3 %, lmdb:jpeg shows no clear difference.");
}

/* One round compares nothing, however large the ratio is. */
Test(advice, none_from_fewer_than_three_rounds)
{
    static const double slow[] = {1000, 1000, 1000}, fast[] = {2200, 2200, 2200};
    for (int rounds = 1; rounds <= 3; rounds++) {
        struct weir_grid_advice advice;
        begin();
        struct weir_candidate *source = give(0, false, "03b_image_decode", slow, rounds);
        struct weir_candidate *better = give(1, false, "03b_image_decode", fast, rounds);
        give(0, true, "03b_image_decode", slow, 1);
        give(1, true, "03b_image_decode", fast, 1);
        advise(&advice, 0);
        if (rounds == 1)
            EXPECT(advice.format, "No recommendation: the formats were compared in 1 round, and 3 are needed; raise "
                                  "--max-minutes, or specify fewer --formats.");
        if (rounds == 2)
            BEGINS(advice.format, "No recommendation: the formats were compared in 2 rounds, and 3 are needed; ");
        if (rounds == 3)
            EXPECT(advice.format, "Convert to lmdb:jpeg: it is 2.2 x faster warm than as-is.");
        cr_expect_eq(advice.best, rounds == 3 ? better : source);
    }
}

/* Ratios of one round are steady, but the slowest trial of the copy was slower than the fastest of the source. */
Test(advice, none_when_ranges_overlap)
{
    struct weir_grid_advice advice;
    static const double drift[] = {1000, 1300, 900, 1400, 1100}, faster[] = {1300, 1690, 1170, 1820, 1430};
    begin();
    struct weir_candidate *source = give(0, false, "03b_image_decode", drift, 5);
    give(1, false, "03b_image_decode", faster, 5);
    advise(&advice, 0);
    EXPECT(advice.format, "No recommendation: lmdb:jpeg seems 1.3 x faster warm than as-is, but the ranges of their "
                          "trials overlap; stop other processes, or raise --max-minutes.");
    cr_expect_eq(advice.best, source);
    begin(); /* another format is faster beyond doubt */
    give(0, false, "03b_image_decode", drift, 5);
    give(1, false, "03b_image_decode", faster, 5);
    struct weir_candidate *better = steady(2, false, 1600);
    advise(&advice, 0);
    BEGINS(advice.format, "Convert to packed:jpeg: it is 1.5 x faster warm than as-is");
    cr_expect_eq(advice.best, better);
}

Test(advice, none_on_a_busy_machine)
{
    struct weir_grid_advice advice;
    begin();
    struct weir_candidate *source = steady(0, false, 1000), *copy = steady(1, false, 2200);
    for (int i = 0; i < 5; i++) {
        copy->trials[i].others_cores = i == 0 ? 0.1 : 1.6;
        source->trials[i].cpu_s = copy->trials[i].cpu_s = 0;
    }
    advise(&advice, 0);
    EXPECT(advice.format,
           "No recommendation: other processes used up to 1.6 of 2 cores; measure again on a quiet machine.");
    cr_expect_eq(advice.best, source);
    cr_expect_eq(advice.others_cores, 1.6);
    begin(); /* without a comparison, there is nothing to doubt */
    steady(0, false, 1000)->trials[0].others_cores = 2;
    advise(&advice, 0);
    EXPECT(advice.format, "Keep the data as it is (jpeg, act): no other format was measured.");
}

Test(advice, what_bounds_it)
{
    struct weir_grid_advice advice;
    const double rates[] = {100, 100, 100, 100, 100};
    begin();
    give(0, false, "03c_read_bytes", rates, 5);
    advise(&advice, 0);
    BEGINS(advice.next, "Reading is the limit (03c_read_bytes, 95 % of the workers' time): ");
    begin();
    give(0, false, "03c_read_bytes", rates, 5);
    advise(&advice, 20);
    BEGINS(advice.next, "A step of 20 ms waits for data 1.0 % of the time: loading is not the limit");
    begin();
    give(0, false, "77_something_else", rates, 5);
    advise(&advice, 0);
    EXPECT(advice.next, "The stage 77_something_else is the limit; see the stages.");
    begin(); /* with a limit candidate, whose bytes come from memory, and with settings that differ between candidates
              */
    give(0, false, "09c_wait_for_library", rates, 5)->limit_candidate = 1;
    const double limit[] = {200, 200, 200, 200, 200};
    give(0, false, "03b_image_decode", limit, 5)->limit = true;
    snprintf(give(0, false, "03b_image_decode", NULL, 0)->settings.num_workers, 12, "2");
    snprintf(candidates[0].settings.num_workers, 12, "1");
    advise(&advice, 0);
    BEGINS(advice.next, "With num-workers 1 the HDF5 library is the limit, because it serves one worker at a time "
                        "(09c_wait_for_library, 95 % of the workers' time; 50 % of the rate without reading): ");
    begin(); /* reading cannot make it faster */
    give(0, false, "03c_read_bytes", limit, 5)->limit_candidate = 1;
    give(0, false, "03b_image_decode", rates, 5)->limit = true;
    advise(&advice, 0);
    BEGINS(advice.next, "Reading is the limit (03c_read_bytes, 95 % of the workers' time): ");
}

/* ---- copies ---- */

Test(copies, names_and_sizes)
{
    struct weir_copy_source source = {
        .codec = "jpeg", .frames = 1000, .bytes = 100000000, .raw_bytes = 900000000, .fingerprint = 7, .episodes = 10};
    struct weir_copy_spec spec;
    struct weir_err err = WEIR_ERR_NONE;
    char path[128], other[128];
    static const struct {
        const char *text, *name, *option;
        uint64_t bytes;
    } good[] = {{"as-is", "as-is", "keep", 0},
                {"lmdb", "lmdb:jpeg", "keep", 50000000},
                {"lmdb:jpeg", "lmdb:jpeg", "keep", 50000000},
                {"zarr:raw", "zarr:raw", "raw", 450000000},
                {"hdf5:png", "hdf5:png", "png", 450000000}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        cr_assert_eq(weir_copy_spec_parse(&spec, good[i].text, source.codec, &err), 0);
        cr_expect_str_eq(spec.name, good[i].name);
        cr_expect_str_eq(weir_copy_codec_option(&spec, source.codec), good[i].option);
        cr_expect_eq(weir_copy_bytes(&source, &spec, 5), good[i].bytes, "%s", good[i].text);
    }
    static const char *const bad[] = {
        "hdf5:gif", ":raw",           "",
        "hdf5:",    "as-is:jpeg:raw", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:raw"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect_eq(weir_copy_spec_parse(&spec, bad[i], source.codec, NULL), -EINVAL, "%s", bad[i]);
    cr_assert_eq(weir_copy_spec_parse(&spec, "zarr:raw", source.codec, &err), 0);
    cr_assert_eq(weir_copy_path(path, sizeof path, "/w", &spec, &source, 0, "", ".zarr"), 0);
    cr_expect(strncmp(path, "/w/zarr-raw-", 12) == 0 && strlen(path) == 12 + 16 + 5, "%s", path);
    weir_copy_path(other, sizeof other, "/w", &spec, &source, 3, "", ".zarr");
    cr_expect_str_neq(path, other, "another sample");
    source.fingerprint++;
    weir_copy_path(other, sizeof other, "/w", &spec, &source, 0, "", ".zarr");
    cr_expect_str_neq(path, other, "another source");
    source.fingerprint--;
    weir_copy_path(other, sizeof other, "/w", &spec, &source, 0, "--cameras\ntop\n", ".zarr");
    cr_expect_str_neq(path, other, "other options");
    cr_assert_eq(weir_copy_path(path, 20, "/w", &spec, &source, 0, "", ".zarr"), -ENAMETOOLONG);
}

Test(copies, files_are_listed_and_warmed)
{
    char folder[] = "/tmp/test_bench_XXXXXX", path[64];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/data", folder);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 100000; i++)
        fputc(i, file);
    fclose(file);
    struct weir_path_list files;
    struct weir_err err = WEIR_ERR_NONE;
    uint64_t bytes;
    double cached;
    cr_assert_eq(weir_copy_files(folder, &files, &bytes, &err), 0, "%s", err.text);
    cr_assert(files.n == 1 && bytes == 100000 && strcmp(files.paths[0], path) == 0);
    cr_assert_eq(weir_copy_warm(&files, &cached, &err), 0, "%s", err.text);
    cr_assert(cached == 1 || cached == -1, "%g", cached);
    cr_assert(weir_copy_free_bytes(folder) > 0 && weir_copy_free_bytes("/tmp/not/there/yet") > 0);
    weir_path_list_free(&files);
    unlink(path);
    cr_assert(weir_copy_files(path, &files, &bytes, &err) < 0 && strstr(err.text, "cannot be listed"));
    rmdir(folder);
}
