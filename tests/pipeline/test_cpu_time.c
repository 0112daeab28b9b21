/* CPU time per zone, compared with the thread's CPU clock, while other threads use the same core. */
#include "weir/profiler.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct weir_recorder *recorder;

static void open_recorder(void)
{
    cr_assert_eq(weir_loader_stages(), 0);
    cr_assert_eq(weir_recorder_open(&recorder), 0);
}

static void close_recorder(void)
{
    weir_thread_detach();
    weir_recorder_close(&recorder);
}

TestSuite(cpu_time, .init = open_recorder, .fini = close_recorder);

static struct weir_snapshot *take(void)
{
    struct weir_snapshot *snapshot;
    cr_assert_eq(weir_snapshot_take(recorder, &snapshot), 0);
    return snapshot;
}

/* Returns false if the kernel or a container does not permit recording context switches. Then there is nothing to test.
 */
static bool attach(void)
{
    cr_assert_eq(weir_thread_attach(recorder, "tester", WEIR_ROLE_WORKER), 0);
    struct weir_snapshot *s = take();
    int why = s->switches_error;
    weir_snapshot_free(&s);
    if (why)
        fprintf(stderr, "context switches cannot be recorded here (%s), so CPU time is sampled\n", strerror(-why));
    return why == 0;
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Uses this much CPU time, however long it takes on a busy core. */
static void burn(uint64_t ns)
{
    for (uint64_t end = cpu_ns() + ns; cpu_ns() < end;)
        continue;
}

static void nap_us(long us)
{
    nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

/* ---- threads that compete for the core ---- */

enum { NEIGHBOURS = 3 };
static atomic_bool neighbours_stop;
static pthread_t neighbours[NEIGHBOURS];

static void on_one_core(void)
{
    cpu_set_t mine, one;
    cr_assert_eq(sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &mine))
            CPU_SET(i, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
}

static void *neighbour(void *unused)
{
    while (!atomic_load(&neighbours_stop))
        continue;
    return unused;
}

/* Starts competing threads on this thread's core. */
static void neighbours_begin(void)
{
    atomic_store(&neighbours_stop, false);
    on_one_core();
    for (int i = 0; i < NEIGHBOURS; i++)
        cr_assert_eq(pthread_create(&neighbours[i], NULL, neighbour, NULL), 0);
}

static void neighbours_end(void)
{
    atomic_store(&neighbours_stop, true);
    for (int i = 0; i < NEIGHBOURS; i++)
        pthread_join(neighbours[i], NULL);
}

/* ---- sums ---- */

static void expect_near(double is, double should, double within, const char *what)
{
    cr_assert(fabs(is / should - 1) < within, "%s: %g ms, but the CPU clock measured %g ms", what, is / 1e6,
              should / 1e6);
}

/* Bounds of a zone's CPU time, read from the CPU clock inside and outside the zone. With neighbours, a zone takes four
 * times as long as it computes. Time in which a hypervisor stops the core counts for zones, but not for the CPU clock.
 */
struct bounds {
    uint64_t least_ns, most_ns;
};

static bool is_between(double is, struct bounds bounds)
{
    return is > 0.75 * (double)bounds.least_ns && is < 1.25 * (double)bounds.most_ns;
}

static void expect_between(double is, struct bounds bounds, const char *what)
{
    cr_assert(is_between(is, bounds), "%s: %g ms, but the CPU clock measured %g to %g ms", what, is / 1e6,
              (double)bounds.least_ns / 1e6, (double)bounds.most_ns / 1e6);
}

static void add_bounds(struct bounds *to, uint64_t least_ns, uint64_t most_ns)
{
    to->least_ns += least_ns;
    to->most_ns += most_ns;
}

static void one_call(struct bounds *around, struct bounds *decode, struct bounds *inside)
{
    uint64_t before, first, second, third, fourth, after_inside, after_decode;
    before = cpu_ns();
    {
        WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
        first = cpu_ns();
        burn(700000);
        second = cpu_ns();
        add_bounds(around, second - first, 0);
        {
            WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
            first = cpu_ns();
            burn(1500000);
            third = cpu_ns();
            {
                WEIR_ZONE(WEIR_STAGE_INFLATE);
                fourth = cpu_ns();
                burn(1000000);
                nap_us(100);
                burn(300000);
                add_bounds(inside, cpu_ns() - fourth, 0);
            }
            after_inside = cpu_ns();
        }
        after_decode = cpu_ns();
    }
    add_bounds(inside, 0, after_inside - third);
    add_bounds(decode, third - first, (after_decode - second) - (after_inside - fourth));
    add_bounds(around, 0, (cpu_ns() - before) - (after_inside - first));
}

/* CPU time of the first thread according to its zones, as a fraction of its CPU clock. */
static double sum_of(const struct weir_snapshot *s)
{
    const struct weir_thread_stats *t = &s->threads[0];
    cr_assert(t->cpu_known);
    return (double)(t->work_cpu_ns + t->wait_cpu_ns + t->unattributed_cpu_ns) / (double)t->cpu_ns;
}

static double cpu_of(const struct weir_snapshot *s, unsigned stage)
{
    return weir_stage_cpu_ns(&s->stages[stage]);
}

static bool zones_match(const struct weir_snapshot *s, struct bounds around, struct bounds decode, struct bounds inside)
{
    return fabs(sum_of(s) - 1) < 0.05 && is_between(cpu_of(s, WEIR_STAGE_ONE_CAMERA), around) &&
           is_between(cpu_of(s, WEIR_STAGE_IMAGE_DECODE), decode) && is_between(cpu_of(s, WEIR_STAGE_INFLATE), inside);
}

/* A round in which a hypervisor stopped the core is repeated: the stop may make one zone longer and leave the sum
 * within its limits. A zone that gets the wrong CPU time differs in all rounds. */
Test(cpu_time, stages_add_up_to_the_cpu_clock_beside_neighbours)
{
    enum { CALLS = 30, ROUNDS = 10 };
    struct weir_snapshot *s = NULL;
    struct bounds around, decode, inside;
    if (!attach())
        return;
    for (int round = 0; round < ROUNDS && (!s || !zones_match(s, around, decode, inside)); round++) {
        weir_snapshot_free(&s);
        around = decode = inside = (struct bounds){0};
        struct weir_snapshot *then = take(), *now;
        neighbours_begin();
        for (int i = 0; i < CALLS; i++) {
            WEIR_ZONE(WEIR_STAGE_WORKER_LOOP);
            {
                WEIR_ZONE(WEIR_STAGE_WAIT_WORK);
                nap_us(200);
            }
            one_call(&around, &decode, &inside);
        }
        neighbours_end();
        now = take();
        cr_assert_eq(weir_snapshot_diff(now, then, &s), 0);
        weir_snapshot_free(&then);
        weir_snapshot_free(&now);
    }
    cr_assert_lt(fabs(sum_of(s) - 1), 0.05, "the sum is %g of the CPU clock", sum_of(s));
    expect_between(cpu_of(s, WEIR_STAGE_IMAGE_DECODE), decode, "decoding");
    expect_between(cpu_of(s, WEIR_STAGE_INFLATE), inside, "unpacking");
    expect_between(cpu_of(s, WEIR_STAGE_ONE_CAMERA), around, "the outer zone");
    /* With three neighbours on the core, decoding was often preempted, but sleeping was not. */
    const struct weir_stage_stats *stage = &s->stages[WEIR_STAGE_IMAGE_DECODE];
    cr_assert_gt(stage->self_ns, decode.least_ns * 3 / 2);
    cr_assert_gt(stage->preempted_ns, (stage->self_ns - decode.most_ns) / 2, "preempted time is too short");
    cr_assert_lt(weir_stage_cpu_ns(&s->stages[WEIR_STAGE_WAIT_WORK]),
                 (double)s->stages[WEIR_STAGE_WAIT_WORK].self_ns / 2);
    weir_snapshot_free(&s);
}

/* Decodes and converts beside neighbours; bounds gets the CPU time of both. The time to start the neighbours is outside
 * all zones. */
static struct weir_snapshot *carve_some(struct bounds *bounds)
{
    struct weir_snapshot *then = take(), *now, *window;
    *bounds = (struct bounds){0};
    neighbours_begin();
    for (int i = 0; i < 30; i++) {
        uint64_t before = cpu_ns();
        {
            WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
            uint64_t start = weir_clock_ticks();
            burn(1000000);
            weir_zone_carve(WEIR_STAGE_TO_TENSOR, weir_clock_ticks() - start);
            burn(1000000);
        }
        add_bounds(bounds, 2000000, cpu_ns() - before);
    }
    neighbours_end();
    now = take();
    cr_assert_eq(weir_snapshot_diff(now, then, &window), 0);
    weir_snapshot_free(&then);
    weir_snapshot_free(&now);
    return window;
}

/* A round in which a hypervisor stopped the core is repeated. */
Test(cpu_time, carved_time_has_its_part)
{
    double decode = 0, convert = 0;
    struct bounds zones = {0};
    if (!attach())
        return;
    for (int round = 0; round < 10 && !is_between(decode + convert, zones); round++) {
        struct weir_snapshot *s = carve_some(&zones);
        decode = cpu_of(s, WEIR_STAGE_IMAGE_DECODE);
        convert = cpu_of(s, WEIR_STAGE_TO_TENSOR);
        weir_snapshot_free(&s);
    }
    expect_between(decode + convert, zones, "the sum");
    cr_assert(convert > 0 && decode > 0);
}

/* The kernel's figures for a thread that had the core only part of the time. */
Test(cpu_time, waiting_for_a_core_is_known)
{
    attach();
    neighbours_begin();
    burn(30000000);
    nap_us(20000);
    neighbours_end();
    struct weir_snapshot *s = take();
    struct weir_report *report = calloc(1, sizeof *report);
    cr_assert_eq(weir_report_from_snapshot(report, s), 0);
    const struct weir_report_worker *w = &report->workers[0];
    if (s->threads[0].delay_known) {
        double sum_s = w->cpu_s + w->throttled_s + w->core_wait_s + w->blocked_s;
        cr_assert(fabs(sum_s / w->wall_s - 1) < 0.05, "%g of %g s", sum_s, w->wall_s);
        cr_assert_gt(w->core_wait_s + w->throttled_s, w->cpu_s / 2, "three neighbours on its core");
        cr_assert_geq(w->blocked_s, 0.015);
    } else {
        fprintf(stderr, "without /proc/self/task/*/schedstat, waits for a core are unknown\n");
        cr_assert(w->core_wait_s == -1 && w->blocked_s == -1);
    }
    weir_report_free(report);
    free(report);
    weir_snapshot_free(&s);
}

/* Measures, for a window, how far the CPU time of a zone and of its thread deviates from the CPU clock. */
static void burn_in_window(double *zone_off, double *thread_off)
{
    struct weir_snapshot *then = take();
    uint64_t before_ns = cpu_ns();
    {
        WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
        burn(10000000);
        nap_us(2000);
    }
    double spent_ns = (double)(cpu_ns() - before_ns);
    struct weir_snapshot *now = take(), *window;
    cr_assert_eq(weir_snapshot_diff(now, then, &window), 0);
    *zone_off = fabs(weir_stage_cpu_ns(&window->stages[WEIR_STAGE_IMAGE_DECODE]) / spent_ns - 1);
    *thread_off = fabs((double)window->threads[0].work_cpu_ns / spent_ns - 1);
    weir_snapshot_free(&then);
    weir_snapshot_free(&now);
    weir_snapshot_free(&window);
}

/* CPU time before a window is subtracted from it. The best of several rounds counts, since a hypervisor may stop the
 * core inside the zone without a context switch in this kernel. */
Test(cpu_time, of_a_window)
{
    double zone = 1, thread = 1;
    if (!attach())
        return;
    for (int i = 0; i < 2; i++) {
        WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
        burn(20000000);
    }
    for (int round = 0; round < 5; round++) {
        double zone_off, thread_off;
        burn_in_window(&zone_off, &thread_off);
        zone = fmin(zone, zone_off);
        thread = fmin(thread, thread_off);
    }
    cr_assert(zone < 0.10, "the window's CPU time is %.1f %% off the CPU clock", 100 * zone);
    cr_assert(thread < 0.10, "the thread's work is %.1f %% off the CPU clock", 100 * thread);
}

/* One zone has more context switches than the ring can hold. The best of several rounds counts, since on a loaded
 * machine a time slice may end between the readings of two clocks. */
Test(cpu_time, lost_records_are_made_up_for)
{
    double best = 1;
    if (!attach())
        return;
    for (int round = 0; round < 5; round++) {
        struct weir_snapshot *then = take(), *now, *window;
        uint64_t at = cpu_ns();
        {
            WEIR_ZONE(WEIR_STAGE_READ_BYTES);
            for (int i = 0; i < 400; i++)
                nap_us(20);
            burn(2000000);
        }
        uint64_t spent_ns = cpu_ns() - at;
        now = take();
        cr_assert_eq(weir_snapshot_diff(now, then, &window), 0);
        const struct weir_stage_stats *read = &window->stages[WEIR_STAGE_READ_BYTES];
        best = fmin(best, fabs(weir_stage_cpu_ns(read) - (double)spent_ns) / (double)read->self_ns);
        weir_snapshot_free(&then);
        weir_snapshot_free(&now);
        weir_snapshot_free(&window);
    }
    cr_assert_lt(best, 0.05, "%g of the zone's time", best);
}

/* ---- snapshots while a thread waits ---- */

static int wait_pipe[2];

static void *wait_long(void *unused)
{
    char byte;
    weir_thread_attach(recorder, "waits", WEIR_ROLE_WORKER);
    weir_zone_begin(WEIR_STAGE_WAIT_SLOT);
    cr_assert_eq(read(wait_pipe[0], &byte, 1), 1);
    weir_zone_end();
    weir_thread_detach();
    return unused;
}

Test(cpu_time, a_wait_that_has_not_ended_takes_none)
{
    pthread_t thread;
    if (!attach())
        return;
    weir_thread_detach();
    cr_assert_eq(pipe(wait_pipe), 0);
    cr_assert_eq(pthread_create(&thread, NULL, wait_long, NULL), 0);
    struct weir_thread_stats t = {0};
    while (t.wait_ns < 50000000) {
        struct weir_snapshot *s = take();
        t = s->threads[s->n_threads - 1];
        weir_snapshot_free(&s);
        nap_us(5000);
    }
    cr_assert_eq(write(wait_pipe[1], "x", 1), 1);
    pthread_join(thread, NULL);
    cr_assert_lt(t.wait_cpu_ns, t.wait_ns / 4, "%g of %g ms", (double)t.wait_cpu_ns / 1e6, (double)t.wait_ns / 1e6);
}

/* ---- without permission to record context switches ---- */

static void attach_sampled(void)
{
    struct rlimit files, none;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){0, files.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    cr_assert_eq(weir_thread_attach(recorder, "tester", WEIR_ROLE_WORKER), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
}

Test(cpu_time, is_sampled_where_the_kernel_says_no)
{
    enum { CALLS = 16 * 34 };
    attach_sampled();
    uint64_t at = cpu_ns(), few_ns = 0;
    neighbours_begin();
    struct weir_snapshot *s;
    for (int i = 0; i < CALLS; i++) {
        WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
        burn(250000);
        if (i == 16 * 20)
            few_ns = cpu_ns();
        if (i != 16 * 20)
            continue;
        s = take();
        cr_assert(s->stages[WEIR_STAGE_IMAGE_DECODE].sampled > 10 && s->stages[WEIR_STAGE_IMAGE_DECODE].sampled < 30);
        cr_assert_eq(weir_stage_cpu_ns(&s->stages[WEIR_STAGE_IMAGE_DECODE]), -1, "too few readings");
        weir_snapshot_free(&s);
    }
    uint64_t spent_ns = cpu_ns() - at;
    neighbours_end();
    s = take();
    cr_assert_gt(few_ns, 0);
    cr_assert_eq(s->switches_error, -EMFILE);
    cr_assert_not(s->threads[0].cpu_known);
    cr_assert_geq(s->stages[WEIR_STAGE_IMAGE_DECODE].sampled, 30);
    expect_near(weir_stage_cpu_ns(&s->stages[WEIR_STAGE_IMAGE_DECODE]), (double)spent_ns, 0.15, "decoding");
    weir_snapshot_free(&s);
}

/* ---- released resources ---- */

static int mappings(void)
{
    char line[512];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    cr_assert_not_null(f);
    while (fgets(line, sizeof line, f))
        n += strstr(line, "perf_event") != NULL;
    fclose(f);
    return n;
}

static int files_open(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    cr_assert_not_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

Test(cpu_time, a_thread_that_ends_gives_its_ring_back)
{
    int files = files_open(), maps = mappings();
    bool exact = attach();
    cr_assert_eq(files_open(), files, "a file stays open");
    cr_assert_eq(mappings(), maps + exact);
    weir_thread_detach();
    cr_assert_eq(mappings(), maps);
}

/* The ring is not mapped in the child. */
Test(cpu_time, a_child_may_go_on_with_zones)
{
    attach();
    weir_zone_begin(WEIR_STAGE_COLLATE);
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        nap_us(1000);
        weir_zone_end();
        weir_zone_begin(WEIR_STAGE_COLLATE);
        nap_us(1000);
        weir_zone_end();
        weir_thread_detach();
        _exit(0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    weir_zone_end();
}
