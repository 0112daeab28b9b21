/* A loader delivers the same batches with every I/O engine, with and without read-ahead. */
#include "io/io.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

TestSuite(read_ahead, .init = fixture_open, .fini = fixture_close);

enum { EPISODES = 4, STEPS = 9 };

struct way {
    const char *io;
    bool direct;
    int depth;
};

/* Returns combination i of those that this machine supports, or false past the last one. */
static bool way_at(int i, struct way *way)
{
    static const struct way ways[] = {
        {"auto", false, 0},  {"pread", false, 0}, {"mmap", false, 0}, {"null", false, 0}, {"uring", false, 0},
        {"uring", false, 1}, {"auto", true, 0},   {"pread", true, 0}, {"uring", true, 0}, {"uring", true, 3},
    };
    char text[256];
    bool uring = weir_io_check("uring", NULL) == 0 && weir_uring_describe(text, sizeof text);
    for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++)
        if ((uring || strcmp(ways[k].io, "uring") != 0) && i-- == 0) {
            *way = ways[k];
            return true;
        }
    return false;
}

static struct weir_loader_config config_for(const char *data)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.batch_size = 5;
    config.num_epochs = 2;
    config.train_split = 0.7;
    config.seed = 3;
    return config;
}

static void set_way(struct weir_loader_config *config, const struct way *way)
{
    config->io = way->io;
    config->direct = way->direct;
    config->io_depth = way->depth;
}

/* Returns true if files in /tmp support direct reads. */
static bool can_direct(const struct weir_loader_config *config)
{
    struct weir_loader_config direct = *config;
    struct weir_loader *loader;
    struct weir_err err = WEIR_ERR_NONE;
    direct.direct = true;
    direct.io = "pread";
    int rc = weir_loader_open(&loader, &direct, &err);
    weir_loader_close(&loader);
    if (rc < 0)
        fprintf(stderr, "skipped: %s\n", err.text);
    return rc == 0;
}

static void assert_same_on_all(struct weir_loader_config config, int step)
{
    static const int workers[] = {0, 1, 2, 7, 16};
    enum { N_WORKERS = sizeof workers / sizeof workers[0] };
    struct weir_err err;
    struct way way;
    int rc;
    config.io = "pread";
    config.num_workers = 0;
    char *expected = fixture_checksums(&config, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    bool direct = can_direct(&config);
    for (int i = 0; way_at(i, &way); i++)
        for (int w = 0; w < N_WORKERS && (direct || !way.direct); w += step) {
            set_way(&config, &way);
            config.num_workers = workers[w];
            config.cold = w == 2;
            char *sums = fixture_checksums(&config, &rc, &err);
            cr_assert_eq(rc, 0, "%s", err.text);
            cr_assert_str_eq(sums, expected, "%s, direct %d, depth %d, %d workers: other checksums", way.io, way.direct,
                             way.depth, workers[w]);
            free(sums);
        }
    free(expected);
}

static void assert_format(const char *format)
{
    struct weir_loader_config config = config_for(fixture_synth("d", format, EPISODES, STEPS, 64, 48, "top,wrist"));
    assert_same_on_all(config, 1);
    config.obs_history = 3;
    assert_same_on_all(config, 3); /* with 0 and 7 workers */
    config.no_shuffle = true;
    assert_same_on_all(config, 3);
}

Test(read_ahead, act_is_the_same_on_all_engines)
{
    assert_format("act");
}

Test(read_ahead, act_jpeg_is_the_same_on_all_engines)
{
    assert_format("act-jpeg");
}

Test(read_ahead, astrobench_is_the_same_on_all_engines)
{
    assert_format("astrobench");
}

Test(read_ahead, chunks_are_the_same_on_all_engines)
{
    assert_format("robomimic-gzip");
}

Test(read_ahead, bad_frames_are_met_as_without_it)
{
    const char *data = fixture_synth("d", "act-jpeg", EPISODES, STEPS, 64, 48, "top,wrist");
    struct weir_loader_config config = config_for(data);
    struct weir_err err;
    struct way way;
    int rc;
    for (int t = 1; t < STEPS; t += 2)
        fixture_damage(data, t % EPISODES, t % 2, t, t % 3 ? FIXTURE_ZEROED : FIXTURE_NO_SOI);
    config.obs_history = 2;
    for (int policy = WEIR_ON_ERROR_FAIL; policy <= WEIR_ON_ERROR_SUBSTITUTE; policy++) {
        config.on_error = (enum weir_on_error)policy;
        config.io = "pread";
        config.direct = false;
        config.num_workers = 0;
        struct weir_err expected_err;
        int expected_rc;
        char *expected = fixture_checksums(&config, &expected_rc, &expected_err);
        cr_assert_eq(expected_rc == 0, policy != WEIR_ON_ERROR_FAIL);
        bool direct = policy != WEIR_ON_ERROR_FAIL && can_direct(&config);
        for (int i = 0; way_at(i, &way); i++)
            for (int w = 0; w <= 7 && (direct || !way.direct); w += 7) {
                set_way(&config, &way);
                config.num_workers = w;
                char *sums = fixture_checksums(&config, &rc, &err);
                cr_assert_eq(rc, expected_rc);
                cr_assert_str_eq(sums, expected, "%s, policy %d, %d workers: other checksums", way.io, policy, w);
                cr_assert(rc == 0 || strcmp(err.text, expected_err.text) == 0, "%s\n%s", err.text, expected_err.text);
                free(sums);
            }
        free(expected);
    }
}

Test(read_ahead, a_rank_that_goes_on_gets_what_was_left)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act-jpeg", EPISODES, STEPS, 64, 48, "top"));
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_batch *batch;
    struct way way;
    int rc;
    config.rank = 1;
    config.world_size = 2;
    config.io = "pread";
    char *expected = fixture_checksums(&config, &rc, &err);
    for (int i = 0; way_at(i, &way); i++) {
        if (way.direct)
            continue;
        set_way(&config, &way);
        config.resume = (struct weir_state){0};
        struct weir_loader *loader = fixture_loader(&config);
        char state[512];
        snprintf(state, sizeof state, "%s", fixture_path("state"));
        const char *rest = expected;
        for (int n = 0; n < 2; n++) {
            cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
            weir_loader_release(loader, batch);
            rest = strchr(rest, '\n') + 1;
        }
        cr_assert_eq(weir_loader_save(loader, state, &err), 0, "%s", err.text);
        weir_loader_close(&loader);
        cr_assert_eq(weir_loader_restore(&config, state, &err), 0, "%s", err.text);
        char *sums = fixture_checksums(&config, &rc, &err);
        cr_assert_eq(rc, 0, "%s", err.text);
        cr_assert_str_eq(sums, rest, "%s", way.io);
        free(sums);
    }
    free(expected);
}

Test(read_ahead, a_run_can_be_stopped_at_any_batch)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act", EPISODES, STEPS, 64, 48, "top,wrist"));
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_batch *batch;
    struct way way;
    for (int i = 0; way_at(i, &way); i++)
        for (int stop = 0; stop < 6 && !way.direct; stop++) {
            set_way(&config, &way);
            config.num_workers = stop % 3 * 2;
            struct weir_loader *loader = fixture_loader(&config);
            for (int n = 0; n < stop; n++) {
                cr_assert_eq(weir_loader_next(loader, &batch, &err), 1, "%s", err.text);
                weir_loader_release(loader, batch);
            }
            weir_loader_stop(loader);
            cr_assert_eq(weir_loader_next(loader, &batch, &err), 0);
            weir_loader_close(&loader);
        }
}

/* ---- reported facts ---- */

/* Keeps each batch for a while. Meanwhile the workers are idle, and the read-ahead can advance. */
static void run_at_leisure(struct weir_loader *loader)
{
    struct weir_batch *batch;
    while (weir_loader_next(loader, &batch, NULL) > 0) {
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        weir_loader_release(loader, batch);
    }
}

Test(read_ahead, what_was_used_is_said)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act", EPISODES, STEPS, 64, 48, "top,wrist"));
    struct weir_loader_facts facts;
    cr_assert_str_eq(config.io, "auto");
    struct weir_loader *loader = fixture_loader(&config);
    weir_loader_facts(loader, &facts);
    cr_assert_str_eq(facts.io_requested, "auto");
    cr_assert_str_eq(facts.io_used, "pread"); /* the files were just written, so they are in the page cache */
    cr_assert_not_null(strstr(facts.io_why, "page cache"), "%s", facts.io_why);
    cr_assert_geq(facts.io_cached, 0.95);
    cr_assert_geq(weir_loader_cached(loader), 0.95);
    cr_assert_eq(facts.io_depth, 0, "files in memory need no read-ahead");
    weir_loader_close(&loader);
    struct way way;
    for (int i = 0; way_at(i, &way); i++) {
        if (strcmp(way.io, "uring") != 0 || way.direct)
            continue;
        set_way(&config, &way);
        config.num_workers = 2;
        struct weir_loader_counts counts = {0};
        for (int tries = 0; tries < 100 && counts.ahead_reads == 0; tries++) {
            weir_loader_close(&loader);
            loader = fixture_loader(&config);
            run_at_leisure(loader);
            weir_loader_facts(loader, &facts);
            weir_loader_counts(loader, &counts, false);
        }
        cr_assert_str_eq(facts.io_used, "uring");
        cr_assert_str_empty(facts.io_why);
        cr_assert_eq(facts.io_depth, way.depth ? way.depth : 64);
        cr_assert_gt(facts.io_pool_bytes, 0);
        cr_assert_gt(strlen(facts.io_features), 0);
        cr_assert_eq(counts.reads, 2 * 2 * EPISODES * STEPS);
        cr_assert_gt(counts.ahead_reads, 0);
        weir_loader_close(&loader);
    }
}

/* Forbids io_uring, as many containers do. */
static void forbid_io_uring(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

Test(read_ahead, auto_reads_plainly_what_will_stay_in_memory)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act", EPISODES, STEPS, 64, 48, "top,wrist"));
    struct weir_loader_facts facts;
    config.cold = true;
    struct weir_loader *loader = fixture_loader(&config);
    weir_loader_facts(loader, &facts);
    cr_assert_str_eq(facts.io_used, "pread");
    cr_assert(strstr(facts.io_why, "fit in") || strstr(facts.io_why, "page cache"), "%s", facts.io_why);
    weir_loader_close(&loader);
}

Test(read_ahead, a_kernel_that_refuses_io_uring_is_one_line_and_auto_goes_on)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act", EPISODES, STEPS, 64, 48, "top,wrist"));
    struct weir_loader *loader;
    struct weir_loader_facts facts;
    struct weir_err err = WEIR_ERR_NONE;
    char text[256];
    if (weir_io_check("uring", NULL) < 0)
        return;
    forbid_io_uring();
    cr_assert_not(weir_uring_describe(text, sizeof text));
    config.io = "uring";
    cr_assert_eq(weir_loader_open(&loader, &config, &err), -EPERM);
    cr_assert_not_null(strstr(err.text, "the kernel refuses io_uring"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "use --io pread"), "%s", err.text);
    config.io = "auto";
    config.direct = can_direct(&config);
    loader = fixture_loader(&config);
    weir_loader_facts(loader, &facts);
    cr_assert_str_eq(facts.io_used, "pread");
    cr_assert(!config.direct || strstr(facts.io_why, "uring cannot be used"), "%s", facts.io_why);
    weir_loader_close(&loader);
}

Test(read_ahead, mistakes_are_named)
{
    struct weir_loader_config config = config_for("/nowhere");
    struct weir_loader *loader;
    struct weir_err err = WEIR_ERR_NONE;
    config.io = "mmap";
    config.direct = true;
    cr_assert_eq(weir_loader_open(&loader, &config, &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, "mmap does not support direct reads"), "%s", err.text);
    config.io = "auto";
    config.io_depth = 100000;
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_loader_open(&loader, &config, &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, "--io-depth 100000: must be from 1 to 1024 reads, or auto"), "%s", err.text);
}
