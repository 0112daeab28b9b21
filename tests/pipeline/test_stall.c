/* A disk that does not respond: this program replaces pread with a function that blocks while a gate is closed. */
#include "pipeline/samples/sampler.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

TestSuite(stall, .init = fixture_open, .fini = fixture_close);

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static bool closed, closed_for_all; /* closed for workers, and for every thread; guarded by `gate` */
static int n_held;                  /* threads blocked in pread; guarded by `gate` */

static bool is_worker(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    return strncmp(name, "weir-w", 6) == 0 && name[6] >= '0' && name[6] <= '9';
}

ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    pthread_mutex_lock(&gate);
    bool holds = closed_for_all || (closed && is_worker());
    n_held += holds;
    while (closed_for_all || (closed && is_worker()))
        pthread_cond_wait(&opened, &gate);
    n_held -= holds;
    pthread_mutex_unlock(&gate);
    return syscall(SYS_pread64, fd, buffer, bytes, offset);
}

/* Returns the number of threads blocked in a read. */
static int held(void)
{
    pthread_mutex_lock(&gate);
    int n = n_held;
    pthread_mutex_unlock(&gate);
    return n;
}

static void set_gate(bool for_workers, bool for_all)
{
    pthread_mutex_lock(&gate);
    closed = for_workers;
    closed_for_all = for_all;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&gate);
}

/* ---- reports of the watchdog ---- */

struct stalls {
    int open_after;      /* opens the gate after this many reports */
    int workers;         /* reports count only once this many workers are blocked in a read */
    _Atomic bool inside; /* that many workers are blocked */
    _Atomic int n;
    char text[4][8192];
};

static void on_stall(void *user, const char *text)
{
    struct stalls *stalls = user;
    if (!stalls->inside) { /* this report may have been made before the workers were blocked */
        stalls->inside = held() >= stalls->workers;
        return;
    }
    int n = stalls->n;
    if (n < 4)
        snprintf(stalls->text[n], sizeof stalls->text[0], "%s", text);
    stalls->n = n + 1;
    if (n + 1 >= stalls->open_after)
        set_gate(false, false);
}

static struct weir_loader_config config_for(const char *data, int workers, struct stalls *stalls)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.batch_size = 4;
    config.num_workers = workers;
    config.prefetch = 3;
    config.stall_s = 0.3;
    config.on_stall = on_stall;
    config.user = stalls;
    return config;
}

static const char *make(void)
{
    return fixture_synth("d", "act-jpeg", 4, 10, 32, 32, "top,wrist");
}

static int run_through(struct weir_loader *loader)
{
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    int rc, samples = 0;
    while ((rc = weir_loader_next(loader, &batch, &err)) > 0) {
        samples += batch->n;
        weir_loader_release(loader, batch);
    }
    cr_assert_eq(rc, 0, "%s", err.text);
    return samples;
}

/* The line must contain a task that belongs to its batch. */
static void assert_task_line(const struct weir_loader *loader, const char *line)
{
    unsigned long long number;
    int episode, t;
    char path[1024], camera[64];
    int n = sscanf(line, "batch %llu, episode %d (%1023[^)]) t %d, %63[a-z]", &number, &episode, path, &t, camera);
    cr_assert_eq(n, 5, "%d: %s", n, line);
    struct weir_plan plan;
    struct weir_sample samples[4];
    weir_sampler_plan(weir_loader_sampler(loader), number, &plan, samples);
    bool found = false;
    for (int i = 0; i < plan.n; i++)
        found |= samples[i].episode == episode && samples[i].t == t;
    cr_assert(found, "batch %llu has no (%d, %d)", number, episode, t);
    cr_assert_str_eq(path, weir_dataset_episode_path(weir_loader_dataset(loader), episode));
    cr_assert(strcmp(camera, "top") == 0 || strcmp(camera, "wrist") == 0, "%s", line);
}

static const char *line_of(const char *text, const char *name)
{
    char start[32];
    snprintf(start, sizeof start, "  %s: task: ", name);
    const char *at = strstr(text, start);
    cr_assert_not_null(at, "no line of %s in:\n%s", name, text);
    return at + strlen(start);
}

static void assert_report(const struct weir_loader *loader, const char *text, int workers, bool timed)
{
    double stalled_s = 0, stage_s = 0;
    cr_assert_eq(sscanf(text, "stalled: no task has finished for %lf s", &stalled_s), 1, "%s", text);
    cr_assert(stalled_s >= 0.3, "%s", text);
    for (int i = 0; i < (workers ? workers : 1); i++) {
        char name[16];
        snprintf(name, sizeof name, workers ? "weir-w%d" : "inline", i);
        const char *line = line_of(text, name), *stage = strstr(line, ", in 03c_read_bytes for ");
        assert_task_line(loader, line);
        if (!timed) {
            cr_assert_null(strstr(line, "03c"), "%s", text);
            continue;
        }
        cr_assert(stage && stage < strchr(line, '\n'), "%s", text);
        cr_assert_eq(sscanf(stage, ", in 03c_read_bytes for %lf s", &stage_s), 1);
        cr_assert_geq(stage_s, 0.25);
    }
    struct weir_loader_facts facts;
    int ready = -1, slots = -1, filling = -1, left = -1;
    unsigned long long waits_for = 99;
    const char *queue = strstr(text, "  queue: ");
    weir_loader_facts(loader, &facts);
    cr_assert_not_null(queue);
    cr_assert_eq(
        sscanf(queue,
               "  queue: %d of %d batches ready, %d being filled; the consumer waits for batch %llu (%d tasks left)",
               &ready, &slots, &filling, &waits_for, &left),
        5, "%s", queue);
    cr_assert_eq(ready, 0);
    cr_assert_eq(slots, facts.slots);
    cr_assert_eq(filling, facts.slots);
    cr_assert_eq(waits_for, 0);
    cr_assert(left > 0 && left <= 12, "%d", left);
    cr_assert_eq(text[strlen(text) - 1], '\n');
}

/* ---- tests ---- */

static void stall_and_go_on(int workers, bool no_timing)
{
    struct stalls *stalls = calloc(1, sizeof *stalls);
    struct weir_loader_config config = config_for(make(), workers, stalls);
    config.no_timing = no_timing;
    config.train_split = 1;
    stalls->open_after = 2; /* the report is repeated while the stall lasts */
    stalls->workers = workers ? workers : 1;
    set_gate(true, false);
    struct weir_loader *loader = fixture_loader(&config);
    if (workers == 0)
        set_gate(true, true);
    cr_assert_eq(run_through(loader), 40);
    cr_assert_geq(stalls->n, 2);
    assert_report(loader, stalls->text[0], workers, !no_timing);
    assert_report(loader, stalls->text[1], workers, !no_timing);
    double first = 0, second = 0;
    sscanf(stalls->text[0], "stalled: no task has finished for %lf", &first);
    sscanf(stalls->text[1], "stalled: no task has finished for %lf", &second);
    cr_assert_geq(second, first + 0.25);
    weir_loader_close(&loader);
    free(stalls);
}

Test(stall, names_every_workers_stage_and_task)
{
    stall_and_go_on(3, false);
}

Test(stall, names_tasks_without_timing)
{
    stall_and_go_on(2, true);
}

Test(stall, is_seen_without_workers)
{
    stall_and_go_on(0, false);
}

Test(stall, is_seen_without_workers_and_timing)
{
    stall_and_go_on(0, true);
}

Test(stall, a_slow_consumer_is_none)
{
    struct stalls stalls = {.open_after = 1, .inside = true};
    struct weir_loader_config config = config_for(make(), 2, &stalls);
    config.stall_s = 0.2;
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
    int before = stalls.n; /* the wait above may have been reported if the workers got no core */
    nanosleep(&(struct timespec){0, 700000000}, NULL);
    cr_assert_eq(stalls.n, before, "%s", stalls.text[0]);
    weir_loader_release(loader, batch);
    weir_loader_close(&loader);
}

static void *release_gate(void *unused)
{
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    set_gate(false, false);
    return unused;
}

/* A loader can be stopped while a read hangs. Closing it waits for the read. */
Test(stall, a_stopped_loader_returns_while_reads_hang)
{
    struct stalls stalls = {.open_after = 1, .inside = true};
    struct weir_loader_config config = config_for(make(), 2, &stalls);
    config.stall_s = 60;
    set_gate(true, false);
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    weir_loader_stop(loader);
    cr_assert_eq(weir_loader_next(loader, &batch, &err), 0);
    pthread_t thread;
    pthread_create(&thread, NULL, release_gate, NULL);
    weir_loader_close(&loader);
    pthread_join(thread, NULL);
    cr_assert_eq(stalls.n, 0);
}
