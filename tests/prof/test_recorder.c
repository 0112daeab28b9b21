#include "weir/profiler.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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
    cr_assert_null(recorder);
}

TestSuite(recorder, .init = open_recorder, .fini = close_recorder);

static void attach(void)
{
    cr_assert_eq(weir_thread_attach(recorder, "tester", WEIR_ROLE_WORKER), 0);
}

static struct weir_snapshot *take(void)
{
    struct weir_snapshot *snapshot;
    cr_assert_eq(weir_snapshot_take(recorder, &snapshot), 0);
    return snapshot;
}

static struct weir_snapshot *diff(const struct weir_snapshot *now, const struct weir_snapshot *then)
{
    struct weir_snapshot *out;
    cr_assert_eq(weir_snapshot_diff(now, then, &out), 0);
    return out;
}

static uint64_t in_ticks(double ns)
{
    return (uint64_t)(ns * (1 << 16) / ((double)weir_clock.ns_per_tick_32 / (1 << 16)));
}

static void spin_ns(uint64_t ns)
{
    uint64_t end = weir_clock_monotonic_ns() + ns;
    while (weir_clock_monotonic_ns() < end)
        continue;
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* ---- zones ---- */

Test(recorder, a_thread_that_is_not_attached_records_nothing)
{
    weir_zone_begin(WEIR_STAGE_COLLATE);
    weir_zone_carve(WEIR_STAGE_TO_TENSOR, 100);
    weir_span(WEIR_STAGE_TOTAL_GETITEM, 0, 100);
    weir_zone_end();
    weir_thread_detach();
    struct weir_snapshot *s = take();
    cr_assert_eq(s->n_threads, 0);
    for (int i = 0; i < WEIR_STAGE_MAX; i++)
        cr_assert_eq(s->stages[i].count, 0);
    weir_snapshot_free(&s);
    cr_assert_null(s);
}

Test(recorder, self_time_leaves_out_what_is_nested)
{
    attach();
    for (int i = 0; i < 20; i++) {
        WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
        spin_ns(200000);
        for (int k = 0; k < 2; k++) {
            WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
            spin_ns(300000);
            WEIR_ZONE(WEIR_STAGE_READ_BYTES);
            spin_ns(100000);
        }
    }
    struct weir_snapshot *s = take();
    const struct weir_stage_stats *outer = &s->stages[WEIR_STAGE_ONE_CAMERA];
    const struct weir_stage_stats *middle = &s->stages[WEIR_STAGE_IMAGE_DECODE];
    const struct weir_stage_stats *inner = &s->stages[WEIR_STAGE_READ_BYTES];
    cr_assert_eq(outer->count, 20);
    cr_assert_eq(middle->count, 40);
    cr_assert_eq(inner->count, 40);
    cr_assert_eq(inner->self_ns, inner->total_ns);
    /* Exact except for the time subtracted from sampled calls. 1 us per call is a generous limit. */
    cr_assert_leq(fabs((double)middle->self_ns + (double)inner->total_ns - (double)middle->total_ns), 40e3);
    cr_assert_leq(fabs((double)outer->self_ns + (double)middle->total_ns - (double)outer->total_ns), 20e3);
    cr_assert_geq(inner->total_ns, 40 * 95000);
    cr_assert_geq(middle->self_ns, 40 * 290000);
    cr_assert_geq(outer->self_ns, 20 * 190000);
    cr_assert_geq(inner->min_ns, 95000);
    cr_assert_geq(inner->max_ns, inner->min_ns);
    cr_assert_eq(s->threads[0].zones, 100);
    cr_assert_eq(s->threads[0].open_stage, -1);
    weir_snapshot_free(&s);
}

Test(recorder, a_stage_may_be_nested_in_itself)
{
    attach();
    weir_zone_begin(WEIR_STAGE_COLLATE);
    weir_zone_begin(WEIR_STAGE_COLLATE);
    spin_ns(1000000);
    weir_zone_end();
    weir_zone_end();
    struct weir_snapshot *s = take();
    cr_assert_eq(s->stages[WEIR_STAGE_COLLATE].count, 2);
    cr_assert_lt(s->stages[WEIR_STAGE_COLLATE].self_ns, s->stages[WEIR_STAGE_COLLATE].total_ns * 6 / 10);
    weir_snapshot_free(&s);
}

Test(recorder, sixteen_zones_may_be_open)
{
    attach();
    for (int i = 0; i < 16; i++)
        weir_zone_begin(i % 2 ? WEIR_STAGE_ONE_CAMERA : WEIR_STAGE_COLLATE);
    struct weir_snapshot *s = take();
    cr_assert_eq(s->threads[0].open_stage, WEIR_STAGE_ONE_CAMERA);
    weir_snapshot_free(&s);
    for (int i = 0; i < 16; i++)
        weir_zone_end();
    s = take();
    cr_assert_eq(s->threads[0].zones, 16);
    cr_assert_eq(s->threads[0].open_stage, -1);
    weir_snapshot_free(&s);
}

/* The time of dropped zones counts for the innermost kept zone, except for laps inside them, which must not be counted
 * twice. */
Test(recorder, zones_too_deep_are_dropped_and_counted)
{
    attach();
    for (int i = 0; i < WEIR_ZONES_DEEP; i++)
        weir_zone_begin(i < WEIR_ZONES_DEEP - 1 ? WEIR_STAGE_ONE_CAMERA : WEIR_STAGE_COLLATE);
    weir_zone_begin(WEIR_STAGE_IMAGE_DECODE);
    weir_zone_begin(WEIR_STAGE_INFLATE);
    spin_ns(2000000);
    weir_zone_carve(WEIR_STAGE_TO_TENSOR, in_ticks(1000));
    weir_zone_shapes(0);
    weir_zone_end();
    weir_zone_begin(WEIR_STAGE_IMAGE_DECODE);
    weir_zone_carve(WEIR_STAGE_READ_BYTES, in_ticks(1000));
    struct weir_lap lap = weir_lap_begin();
    spin_ns(1000000);
    weir_lap(&lap, WEIR_STAGE_READ_QPOS);
    struct weir_snapshot *s = take();
    cr_assert_eq(s->threads[0].open_stage, WEIR_STAGE_COLLATE);
    cr_assert_eq(s->threads[0].too_deep, 3);
    weir_snapshot_free(&s);
    for (int i = 0; i < 2 + WEIR_ZONES_DEEP; i++)
        weir_zone_end();
    weir_zone_begin(WEIR_STAGE_IMAGE_DECODE);
    weir_zone_end();
    s = take();
    cr_assert_eq(s->threads[0].too_deep, 3);
    cr_assert_eq(s->threads[0].zones, WEIR_ZONES_DEEP + 1 + 1);
    cr_assert_eq(s->threads[0].open_stage, -1);
    cr_assert_eq(s->stages[WEIR_STAGE_IMAGE_DECODE].count, 1, "only the last zone, which was not too deep, counts");
    cr_assert_eq(s->stages[WEIR_STAGE_INFLATE].count, 0);
    const struct weir_stage_stats *kept = &s->stages[WEIR_STAGE_COLLATE], *lapped = &s->stages[WEIR_STAGE_READ_QPOS];
    cr_assert_geq(lapped->self_ns, 990000);
    cr_assert_geq(kept->self_ns, 1990000);
    cr_assert_leq(kept->self_ns + lapped->self_ns, kept->total_ns);
    weir_snapshot_free(&s);
}

/* Misuse is ignored, since a library must not abort its host. */
Test(recorder, calls_out_of_order_change_nothing)
{
    attach();
    cr_assert_eq(weir_thread_attach(recorder, "again", WEIR_ROLE_OTHER), -EBUSY);
    weir_zone_end();
    weir_zone_carve(WEIR_STAGE_TO_TENSOR, 1);
    weir_zone_begin(WEIR_STAGE_IMAGE_DECODE);
    for (int i = 0; i < 2; i++) {
        weir_zone_begin(i ? WEIR_STAGE_MAX : -ENOSPC); /* an error code of weir_stage_register */
        weir_span(-1, 0, 1);
        weir_zone_end();
    }
    weir_zone_carve(WEIR_STAGE_TO_TENSOR, 1);
    weir_zone_carve(WEIR_STAGE_COLLATE, 1);
    weir_zone_end();
    weir_zone_end();
    struct weir_snapshot *s = take();
    cr_assert_eq(s->stages[WEIR_STAGE_IMAGE_DECODE].count, 1);
    cr_assert_eq(s->stages[WEIR_STAGE_TO_TENSOR].count, 1);
    cr_assert_eq(s->stages[WEIR_STAGE_COLLATE].count, 0);
    cr_assert_eq(s->threads[0].zones, 2);
    cr_assert_eq(s->threads[0].open_stage, -1);
    weir_snapshot_free(&s);
}

Test(recorder, zones_left_open_end_with_the_thread)
{
    for (int deep = 1; deep <= WEIR_ZONES_DEEP + 3; deep += WEIR_ZONES_DEEP + 1) {
        attach();
        weir_zone_begin(WEIR_STAGE_COLLATE);
        for (int i = 0; i < deep; i++)
            weir_zone_begin(WEIR_STAGE_IMAGE_DECODE);
        sleep_ms(2);
        weir_thread_detach();
        weir_thread_detach();
    }
    struct weir_snapshot *s = take();
    cr_assert_eq(s->stages[WEIR_STAGE_COLLATE].count, 2);
    cr_assert_geq(s->stages[WEIR_STAGE_COLLATE].total_ns, 4000000);
    cr_assert_eq(s->stages[WEIR_STAGE_IMAGE_DECODE].count, 1 + WEIR_ZONES_DEEP - 1);
    cr_assert_eq(s->threads[0].open_stage, -1);
    weir_snapshot_free(&s);
}

/* ---- carving and spans ---- */

Test(recorder, carved_time_moves_to_the_other_stage)
{
    attach();
    for (int i = 0; i < 50; i++) {
        WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
        uint64_t start = weir_clock_ticks();
        spin_ns(100000);
        weir_zone_carve(WEIR_STAGE_TO_TENSOR, weir_clock_ticks() - start);
        spin_ns(100000);
        weir_zone_carve(WEIR_STAGE_TO_TENSOR, in_ticks(20000));
    }
    struct weir_snapshot *s = take();
    const struct weir_stage_stats *decode = &s->stages[WEIR_STAGE_IMAGE_DECODE];
    const struct weir_stage_stats *convert = &s->stages[WEIR_STAGE_TO_TENSOR];
    cr_assert_eq(decode->count, 50);
    cr_assert_eq(convert->count, 50); /* one call per zone, however often time was carved */
    cr_assert_geq(convert->total_ns, 50 * 118000);
    cr_assert_eq(convert->self_ns, convert->total_ns);
    cr_assert_geq(decode->total_ns, 50 * 75000);
    cr_assert_eq(decode->self_ns, decode->total_ns);
    cr_assert_geq(s->threads[0].work_ns, 50 * 195000);
    cr_assert_leq(fabs((double)s->threads[0].work_ns - (double)(decode->total_ns + convert->total_ns)), 1000);
    weir_snapshot_free(&s);
}

/* No more than a zone's own time can be carved from it. */
Test(recorder, carving_is_bounded_by_the_zone)
{
    attach();
    weir_zone_begin(WEIR_STAGE_IMAGE_DECODE);
    weir_zone_carve(WEIR_STAGE_TO_TENSOR, in_ticks(1e9));
    weir_zone_end();
    struct weir_snapshot *s = take();
    cr_assert_eq(s->stages[WEIR_STAGE_IMAGE_DECODE].total_ns, 0);
    cr_assert_lt(s->stages[WEIR_STAGE_TO_TENSOR].total_ns, 100000000);
    weir_snapshot_free(&s);
}

Test(recorder, a_span_takes_no_time_from_zones)
{
    attach();
    weir_zone_begin(WEIR_STAGE_COLLATE);
    weir_span(WEIR_STAGE_TOTAL_GETITEM, 0, in_ticks(5e9));
    spin_ns(100000);
    weir_zone_end();
    struct weir_snapshot *s = take();
    const struct weir_stage_stats *span = &s->stages[WEIR_STAGE_TOTAL_GETITEM];
    cr_assert_eq(span->count, 1);
    cr_assert_eq(span->self_ns, 0);
    cr_assert_leq(fabs((double)span->total_ns - 5e9), 10);
    cr_assert_geq(s->stages[WEIR_STAGE_COLLATE].self_ns, 95000);
    cr_assert_lt(s->threads[0].work_ns, 1000000000);
    weir_snapshot_free(&s);
}

/* ---- snapshots and windows ---- */

static void record_ns(int stage, uint64_t ns)
{
    weir_span(stage, 0, in_ticks((double)ns));
}

Test(recorder, quantiles_come_from_the_histogram)
{
    attach();
    for (int i = 1; i <= 1000; i++)
        record_ns(WEIR_STAGE_TOTAL_GETITEM, (uint64_t)i * 1000);
    struct weir_snapshot *s = take();
    const struct weir_stage_stats *stats = &s->stages[WEIR_STAGE_TOTAL_GETITEM];
    static const double quantiles[] = {0.01, 0.5, 0.9, 0.99};
    for (int i = 0; i < 4; i++) {
        double got = weir_stage_quantile_ns(stats, quantiles[i]);
        cr_assert(fabs(got / (quantiles[i] * 1e6) - 1) < 0.0625, "p%g: %g", quantiles[i] * 100, got);
    }
    cr_assert_leq(fabs((double)stats->min_ns - 1000), 2);
    cr_assert_leq(fabs((double)stats->max_ns - 1000000), 2);
    weir_snapshot_free(&s);
}

Test(recorder, a_window_has_only_what_fell_into_it)
{
    attach();
    for (int i = 0; i < 100; i++)
        record_ns(WEIR_STAGE_TOTAL_GETITEM, 50);  /* overall minimum */
    record_ns(WEIR_STAGE_TOTAL_GETITEM, 9000000); /* overall maximum */
    struct weir_snapshot *a = take();
    for (int i = 0; i < 10; i++) {
        record_ns(WEIR_STAGE_TOTAL_GETITEM, 20000);
        record_ns(WEIR_STAGE_TOTAL_GETITEM, 40000);
    }
    record_ns(WEIR_STAGE_IMAGES_TOTAL, 777);
    struct weir_snapshot *b = take(), *window = diff(b, a), *none = diff(b, b), *whole = diff(b, NULL);
    const struct weir_stage_stats *stats = &window->stages[WEIR_STAGE_TOTAL_GETITEM];
    cr_assert_eq(stats->count, 20);
    cr_assert_leq(fabs((double)stats->total_ns - 600000), 40);
    uint64_t n = 0;
    for (int i = 0; i < WEIR_HIST_BUCKETS; i++)
        n += stats->hist[i];
    cr_assert_eq(n, 20);
    /* A window's extremes come from the histogram, so they are accurate to a bucket's width. */
    cr_assert(stats->min_ns <= 20001 && stats->min_ns >= 18700, "%d", (int)stats->min_ns);
    cr_assert(stats->max_ns >= 39999 && stats->max_ns <= 42600, "%d", (int)stats->max_ns);
    double p50 = weir_stage_quantile_ns(stats, 0.5);
    cr_assert(p50 > 18000 && p50 < 42600);
    /* If all calls of a stage are in the window, its extremes are exact. */
    cr_assert_leq(fabs((double)window->stages[WEIR_STAGE_IMAGES_TOTAL].min_ns - 777), 1);
    cr_assert_leq(fabs((double)window->stages[WEIR_STAGE_IMAGES_TOTAL].max_ns - 777), 1);
    cr_assert_eq(none->stages[WEIR_STAGE_TOTAL_GETITEM].count, 0);
    cr_assert_eq(none->stages[WEIR_STAGE_TOTAL_GETITEM].max_ns, 0);
    cr_assert_eq(whole->stages[WEIR_STAGE_TOTAL_GETITEM].count, 121);
    cr_assert_eq(whole->stages[WEIR_STAGE_TOTAL_GETITEM].max_ns, b->stages[WEIR_STAGE_TOTAL_GETITEM].max_ns);
    cr_assert_eq(window->threads[0].zones, 21);
    struct weir_snapshot *all[] = {a, b, window, none, whole};
    for (int i = 0; i < 5; i++)
        weir_snapshot_free(&all[i]);
}

Test(recorder, open_zones_count_in_their_threads_time)
{
    attach();
    weir_zone_begin(WEIR_STAGE_WAIT_SLOT);
    sleep_ms(30);
    weir_zone_begin(WEIR_STAGE_IMAGE_DECODE);
    sleep_ms(20);
    struct weir_snapshot *s = take();
    const struct weir_thread_stats *t = &s->threads[0];
    cr_assert_eq(t->open_stage, WEIR_STAGE_IMAGE_DECODE);
    cr_assert(t->open_ns >= 19000000 && t->open_ns <= t->work_ns, "%d", (int)t->open_ns);
    cr_assert_geq(t->wait_ns, 29000000);
    cr_assert_geq(t->work_ns, 19000000);
    cr_assert_eq(t->zones, 0);
    cr_assert_eq(s->stages[WEIR_STAGE_IMAGE_DECODE].count, 0);
    cr_assert_leq(t->work_ns + t->wait_ns + t->unattributed_ns, t->wall_ns + 1000);
    weir_snapshot_free(&s);
    weir_zone_end();
    weir_zone_end();
    s = take();
    cr_assert_leq(s->threads[0].wait_ns + s->threads[0].work_ns, s->threads[0].wall_ns + 1000);
    weir_snapshot_free(&s);
}

/* ---- calls timed by the program itself ---- */

Test(recorder, a_logged_call_has_the_time_that_it_takes_out_of_the_zone_around_it)
{
    attach();
    weir_zone_begin(WEIR_STAGE_WORKER_LOOP);
    spin_ns(3000000);
    uint64_t ticks = in_ticks(2e6), begin = weir_clock_ticks(), before = weir_zone_own();
    weir_zone_logged(WEIR_STAGE_WAIT_DATA, ticks, ticks / 2);
    uint64_t after = weir_zone_own();
    cr_assert_leq(after, before - ticks / 2 + (weir_clock_ticks() - begin), "the time is not subtracted from the zone");
    cr_assert_eq(weir_zone_now().stage, WEIR_STAGE_WORKER_LOOP);
    weir_zone_end();
    cr_assert_eq(weir_zone_now().stage, -1);
    cr_assert_eq(weir_zone_own(), 0);
    struct weir_snapshot *s = take();
    const struct weir_stage_stats *wait = &s->stages[WEIR_STAGE_WAIT_DATA];
    const struct weir_thread_stats *t = &s->threads[0];
    cr_assert_eq(wait->count, 1);
    cr_assert_leq(fabs((double)wait->total_ns - 2e6), 10);
    cr_assert_leq(fabs((double)wait->self_ns - 1e6), 10);
    cr_assert_eq(t->wait_ns, wait->self_ns);
    cr_assert_eq(t->self_ns[WEIR_STAGE_WAIT_DATA], wait->self_ns);
    cr_assert_eq(t->self_ns[WEIR_STAGE_WORKER_LOOP], t->unattributed_ns);
    cr_assert(t->is_caller);
    cr_assert_geq(t->unattributed_ns, 1990000);
    cr_assert_leq(t->wait_ns + t->unattributed_ns, t->wall_ns + 1000, "the time is counted twice");
    cr_assert_lt(weir_stage_cpu_ns(wait), 0, "unmeasured CPU time must be unknown");
    weir_snapshot_free(&s);
}

Test(recorder, a_zone_of_a_span_counts_in_its_threads_time)
{
    attach();
    weir_zone_begin(WEIR_STAGE_TOTAL_GETITEM);
    spin_ns(2000000);
    weir_zone_end();
    struct weir_snapshot *s = take();
    cr_assert_geq(s->threads[0].unattributed_ns, 1990000);
    weir_snapshot_free(&s);
}

Test(recorder, a_thread_that_attached_late_has_its_time_from_before)
{
    attach();
    weir_zone_begin(WEIR_STAGE_WORKER_LOOP);
    weir_thread_backdate(in_ticks(5e9));
    struct weir_snapshot *s = take();
    cr_assert_geq(s->threads[0].wall_ns, 4999000000);
    cr_assert_leq(fabs((double)s->threads[0].wall_ns - (double)s->threads[0].unattributed_ns), 1e9);
    weir_snapshot_free(&s);
    weir_zone_end();
}

static void *work_as(void *name)
{
    cr_assert_eq(weir_thread_attach(recorder, name, WEIR_ROLE_WORKER), 0);
    weir_zone_begin(WEIR_STAGE_COLLATE);
    spin_ns(100000);
    weir_zone_end();
    weir_thread_detach();
    return NULL;
}

Test(recorder, workers_of_another_loader_are_left_out)
{
    static const char *const names[] = {"weir-w0", "weir1-w0"};
    struct weir_snapshot *s[3];
    pthread_t thread;
    for (int i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, work_as, (void *)names[i]);
        pthread_join(thread, NULL);
    }
    cr_assert_eq(weir_snapshot_take_workers(recorder, "weir-w", &s[0]), 0);
    cr_assert_eq(weir_snapshot_take_workers(recorder, "weir1-w", &s[1]), 0);
    s[2] = take();
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(s[i]->n_threads, 2);
        cr_assert_eq(s[i]->stages[WEIR_STAGE_COLLATE].count, i < 2 ? 1 : 2);
        cr_assert_eq(s[i]->threads[0].role == WEIR_ROLE_WORKER, i != 1);
        cr_assert_eq(s[i]->threads[1].role == WEIR_ROLE_WORKER, i != 0);
    }
    for (int i = 0; i < 3; i++)
        weir_snapshot_free(&s[i]);
}

/* Returns the relative difference between a thread's total time and the sum of its work, waits and unattributed time.
 */
static double split_off(void)
{
    attach();
    for (int i = 0; i < 10000; i++) {
        WEIR_ZONE(WEIR_STAGE_WORKER_LOOP);
        {
            WEIR_ZONE(WEIR_STAGE_WAIT_WORK);
            spin_ns(2000);
        }
        WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
        WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
        spin_ns(20000);
    }
    struct weir_snapshot *s = take();
    const struct weir_thread_stats *t = &s->threads[0];
    double sum = (double)(t->work_ns + t->wait_ns + t->unattributed_ns), off = sum / (double)t->wall_ns - 1;
    fprintf(stderr, "work + waits + unattributed = wall %+.3f %%\n", 100 * off);
    cr_assert_gt(t->work_ns, t->wait_ns);
    cr_assert_gt(t->wait_ns, 0);
    cr_assert_eq(t->zones, 4 * 10000);
    weir_snapshot_free(&s);
    return fabs(off);
}

Test(recorder, a_threads_time_is_work_and_waits_and_other)
{
    double off = split_off();
    for (int i = 0; i < 9 && off >= 0.05; i++) { /* other processes may take the core before the first zone */
        weir_thread_detach();
        weir_recorder_close(&recorder);
        cr_assert_eq(weir_recorder_open(&recorder), 0);
        off = split_off();
    }
    cr_assert_lt(off, 0.05, "%g", off);
}

/* ---- threads ---- */

struct some {
    const char *name;
    int count;
    pthread_barrier_t *all; /* barrier at which threads meet before they end; NULL = none */
};

static void *record_some(void *user)
{
    const struct some *some = user;
    cr_assert_eq(weir_thread_attach(recorder, some->name, WEIR_ROLE_WORKER), 0);
    for (int i = 0; i < some->count; i++) {
        WEIR_ZONE(WEIR_STAGE_COLLATE);
    }
    if (some->all)
        pthread_barrier_wait(some->all);
    weir_thread_detach();
    cr_assert_null(weir_thread_self);
    return NULL;
}

static void record_in_thread(const char *name, int count)
{
    pthread_t thread;
    struct some some = {name, count, NULL};
    cr_assert_eq(pthread_create(&thread, NULL, record_some, &some), 0);
    pthread_join(thread, NULL);
}

Test(recorder, the_figures_of_threads_that_ended_stay)
{
    pthread_barrier_t all;
    struct some some[4];
    pthread_t threads[4];
    pthread_barrier_init(&all, NULL, 4);
    for (int i = 0; i < 4; i++) {
        some[i] = (struct some){"a very long name of a thread", 100 * (i + 1), &all};
        pthread_create(&threads[i], NULL, record_some, &some[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&all);
    struct weir_snapshot *a = take();
    sleep_ms(20);
    struct weir_snapshot *b = take();
    cr_assert_eq(b->n_threads, 4);
    cr_assert_eq(b->stages[WEIR_STAGE_COLLATE].count, 1000);
    for (int i = 0; i < 4; i++) {
        cr_assert_str_eq(b->threads[i].name, "a very long nam");
        cr_assert_eq(a->threads[i].wall_ns, b->threads[i].wall_ns); /* the thread's clocks stopped when it ended */
        cr_assert_eq(a->threads[i].cpu_ns, b->threads[i].cpu_ns);
        cr_assert_eq(b->threads[i].open_stage, -1);
    }
    weir_snapshot_free(&a);
    weir_snapshot_free(&b);
}

Test(recorder, a_thread_that_joins_inside_a_window_is_taken_whole)
{
    attach();
    record_ns(WEIR_STAGE_COLLATE, 10);
    struct weir_snapshot *a = take();
    record_in_thread("another", 50);
    struct weir_snapshot *b = take(), *window = diff(b, a);
    cr_assert_eq(window->n_threads, 2);
    cr_assert_eq(window->stages[WEIR_STAGE_COLLATE].count, 50);
    cr_assert_eq(window->threads[0].zones, 0);
    cr_assert_eq(window->threads[1].zones, 50);
    cr_assert_gt(window->threads[1].wall_ns, 0);
    struct weir_snapshot *all[] = {a, b, window};
    for (int i = 0; i < 3; i++)
        weir_snapshot_free(&all[i]);
}

/* A thread reuses the counters of a thread that has ended, but windows still contain only their own calls. */
Test(recorder, the_cells_of_a_thread_that_ended_are_used_again)
{
    attach();
    record_in_thread("w0", 10);
    record_in_thread("w1", 20);
    struct weir_snapshot *a = take();
    sleep_ms(20); /* meanwhile no thread uses w0's counters */
    uint64_t begin_ns = weir_clock_monotonic_ns();
    record_in_thread("w0", 300);
    uint64_t took_ns = weir_clock_monotonic_ns() - begin_ns;
    struct weir_snapshot *b = take(), *window = diff(b, a);
    cr_assert_eq(a->n_threads, 3);
    cr_assert_eq(b->n_threads, 3);
    cr_assert_str_eq(b->threads[1].name, "w0");
    cr_assert_eq(b->threads[1].zones, 310);
    cr_assert_eq(b->threads[2].zones, 20);
    cr_assert_eq(b->stages[WEIR_STAGE_COLLATE].count, 330);
    cr_assert_eq(window->threads[1].zones, 300);
    cr_assert_eq(window->threads[2].zones, 0);
    cr_assert_eq(window->threads[2].wall_ns, 0);
    cr_assert_eq(window->stages[WEIR_STAGE_COLLATE].count, 300);
    cr_assert_gt(window->threads[1].wall_ns, 0);
    cr_assert_leq(window->threads[1].wall_ns, took_ns, "the gap must not count");
    cr_assert_gt(window->threads[1].cpu_ns, 0);
    cr_assert_leq(window->threads[1].cpu_ns, took_ns);
    struct weir_snapshot *all[] = {a, b, window};
    for (int i = 0; i < 3; i++)
        weir_snapshot_free(&all[i]);
}

/* Records one zone as WEIR_ROLE_OTHER. A thread reuses only the counters of threads with its own role. */
static void *join_once(void *user)
{
    int *number = user;
    char name[16];
    snprintf(name, sizeof name, "n%d", *number);
    *number = weir_thread_attach(recorder, name, WEIR_ROLE_OTHER);
    {
        WEIR_ZONE(WEIR_STAGE_COLLATE);
    }
    weir_thread_detach();
    return NULL;
}

static int join_thread(int number)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, join_once, &number), 0);
    pthread_join(thread, NULL);
    return number;
}

static void *join_and_stay(void *user)
{
    pthread_barrier_t *barrier = user;
    cr_assert_eq(weir_thread_attach(recorder, "stays", WEIR_ROLE_OTHER), 0);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    weir_thread_detach();
    return NULL;
}

Test(recorder, more_than_1024_threads_in_a_life_are_counted)
{
    for (int i = 0; i < 1100; i++)
        cr_assert_eq(join_thread(i), 0);
    cr_assert_eq(weir_thread_attach(recorder, "worker", WEIR_ROLE_WORKER), -ENOSPC,
                 "all counters belong to another role");
    struct weir_snapshot *s = take();
    cr_assert_eq(s->n_threads, 1024);
    cr_assert_eq(s->others[WEIR_STAGE_COLLATE].count, 1100, "the threads are not workers");
    cr_assert_eq(s->stages[WEIR_STAGE_COLLATE].count, 0);
    weir_snapshot_free(&s);
}

Test(recorder, threads_beyond_1024_at_once_run_untimed)
{
    pthread_barrier_t barrier;
    pthread_t *threads = calloc(1024, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&barrier, NULL, 1025);
    for (int i = 0; i < 1024; i++)
        cr_assert_eq(pthread_create(&threads[i], &small, join_and_stay, &barrier), 0);
    pthread_barrier_wait(&barrier);
    cr_assert_eq(join_thread(0), -ENOSPC);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 1024; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(join_thread(0), 0);
    pthread_barrier_destroy(&barrier);
    pthread_attr_destroy(&small);
    free(threads);
}

/* Snapshots are taken while threads record. Figures must never decrease or be torn, and the final ones must be exact.
 */
enum { BUSY_THREADS = 3, BUSY_ZONES = 60000 };
static _Atomic int busy_left;

static void *record_busily(void *unused)
{
    (void)unused;
    cr_assert_eq(weir_thread_attach(recorder, "busy", WEIR_ROLE_WORKER), 0);
    for (int i = 0; i < BUSY_ZONES; i++) {
        WEIR_ZONE(WEIR_STAGE_WORKER_LOOP);
        WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
        WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
    }
    weir_thread_detach();
    busy_left--;
    return NULL;
}

Test(recorder, snapshots_of_running_threads_never_go_back)
{
    pthread_t threads[BUSY_THREADS];
    busy_left = BUSY_THREADS;
    for (int i = 0; i < BUSY_THREADS; i++)
        pthread_create(&threads[i], NULL, record_busily, NULL);
    struct weir_snapshot *last = take();
    for (int n = 0; busy_left > 0 || n < 10; n++) {
        struct weir_snapshot *now = take();
        for (int s = 0; s < WEIR_STAGE_MAX; s++) {
            cr_assert_geq(now->stages[s].count, last->stages[s].count);
            cr_assert_geq(now->stages[s].total_ns, last->stages[s].total_ns);
        }
        for (int t = 0; t < now->n_threads; t++) {
            const struct weir_thread_stats *x = &now->threads[t];
            double sum = (double)(x->work_ns + x->wait_ns + x->unattributed_ns);
            cr_assert_leq(sum, 1.02 * (double)x->wall_ns + 2e6, "%g of %g", sum, (double)x->wall_ns);
        }
        weir_snapshot_free(&last);
        last = now;
    }
    for (int i = 0; i < BUSY_THREADS; i++)
        pthread_join(threads[i], NULL);
    weir_snapshot_free(&last);
    last = take();
    cr_assert_eq(last->stages[WEIR_STAGE_IMAGE_DECODE].count, BUSY_THREADS * BUSY_ZONES);
    cr_assert_eq(last->stages[WEIR_STAGE_ONE_CAMERA].count, BUSY_THREADS * BUSY_ZONES);
    weir_snapshot_free(&last);
}

/* ---- stages registered at run time, and the profiler's own cost ---- */

/* Runs without the suite's setup, so no stage is registered. */
Test(stages, the_profiler_has_none_of_its_own)
{
    static const struct weir_stage_info mine[] = {{.name = "mine", .kind = WEIR_KIND_WAIT}, {0}, {.name = "third"}};
    static const struct weir_stage_info other[] = {{.name = "other"}}, many[WEIR_STAGE_TABLE_MAX + 1] = {{0}};
    for (int stage = -1; stage <= WEIR_STAGE_MAX; stage++)
        cr_assert_null(weir_stage_info(stage), "%d", stage);
    cr_assert_eq(weir_stage_count(), 0);
    cr_assert_str_eq(weir_name_text(0), "");
    cr_assert_eq(weir_stages_register(mine, 3), 0);
    cr_assert_eq(weir_stages_register(mine, 3), 0, "again");
    cr_assert_eq(weir_stages_register(other, 1), -EEXIST);
    cr_assert_eq(weir_loader_stages(), -EEXIST);
    cr_assert_eq(weir_stages_register(many, WEIR_STAGE_TABLE_MAX + 1), -E2BIG);
    cr_assert_eq(weir_stage_count(), 3);
    cr_assert_str_eq(weir_stage_info(0)->name, "mine");
    cr_assert_null(weir_stage_info(1), "free");
    cr_assert_str_eq(weir_name_text(2), "third");
    cr_assert_eq(weir_stage_register("third", WEIR_KIND_WORK, false), 2);
    cr_assert_eq(weir_stage_register("further", WEIR_KIND_WORK, false), WEIR_STAGE_TABLE_MAX);
}

/* The profiler counts calls of a stage without a name, but does not report them. */
Test(stages, zones_of_nobodys_stages_are_counted_and_not_shown)
{
    struct weir_report *report = calloc(1, sizeof *report);
    cr_assert_eq(weir_recorder_open(&recorder), 0);
    attach();
    weir_zone_begin(7);
    weir_zone_end();
    struct weir_snapshot *s = take();
    cr_assert_eq(s->stages[7].count, 1);
    cr_assert_eq(weir_report_from_snapshot(report, s), 0);
    cr_assert_eq(report->n_rows, 0);
    weir_report_free(report);
    free(report);
    weir_snapshot_free(&s);
    close_recorder();
}

/* A report of a program that uses only the profiler, as text and as JSON. */
Test(recorder, a_whole_report_is_printed)
{
    static struct weir_report report;
    static const char *const wanted[] = {
        "30_mine ",
        "tester ",
        "profiler",
        "\"stages\":[{\"name\":\"30_mine\",\"kind\":\"work\",\"side\":\"worker\",\"count\":1,",
        "\"workers\":[{\"name\":\"tester\",",
        "\"profiler\":{\"zones\":1,",
        "\"row\":[{\"name\":\"30_mine\",",
    };
    attach();
    weir_zone_begin(weir_stage_register("30_mine", WEIR_KIND_WORK, false));
    spin_ns(1000000);
    weir_zone_end();
    struct weir_snapshot *s = take();
    cr_assert_eq(weir_report_from_snapshot(&report, s), 0);
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    weir_report_print(out, &report);
    struct weir_json json;
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    weir_report_json(&json, &report);
    weir_report_cost_json(&json, &report);
    weir_json_array(&json, "row");
    weir_report_row_json(&json, &report.rows[report.n_rows - 1]);
    weir_json_end(&json, ']');
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fclose(out);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        cr_assert_not_null(strstr(text, wanted[i]), "no %s in %s", wanted[i], text);
    free(text);
    weir_report_free(&report);
    weir_snapshot_free(&s);
}

Test(recorder, stages_can_be_added_and_are_found_again)
{
    attach();
    int id = weir_stage_register("30_my_augmentation", WEIR_KIND_WORK, false);
    cr_assert_geq(id, WEIR_STAGE_TABLE_MAX);
    cr_assert_eq(weir_stage_register("30_my_augmentation", WEIR_KIND_WORK, false), id);
    cr_assert_eq(weir_stage_register("03b_image_decode", WEIR_KIND_WORK, false), WEIR_STAGE_IMAGE_DECODE);
    weir_zone_begin(id);
    spin_ns(1000000);
    weir_zone_end();
    struct weir_snapshot *s = take();
    cr_assert_eq(s->stages[id].count, 1);
    cr_assert_geq(s->threads[0].work_ns, 900000);
    struct weir_report *report = calloc(1, sizeof *report);
    cr_assert_eq(weir_report_from_snapshot(report, s), 0);
    cr_assert_str_eq(report->rows[report->n_rows - 1].name, "30_my_augmentation");
    cr_assert_gt(report->rows[report->n_rows - 1].share, 0.99);
    weir_report_free(report);
    free(report);
    weir_snapshot_free(&s);
    static char names[WEIR_STAGE_MAX][16];
    int rc = 0;
    for (int i = 0; i < WEIR_STAGE_MAX && rc >= 0; i++) {
        snprintf(names[i], sizeof names[i], "x%d", i);
        rc = weir_stage_register(names[i], WEIR_KIND_WORK, false);
    }
    cr_assert_eq(rc, -ENOSPC);
    cr_assert_eq(weir_stage_count(), WEIR_STAGE_MAX);
}

Test(recorder, a_zones_cost_is_measured)
{
    double cost = weir_zone_cost_ns();
    cr_assert(cost > 1 && cost < 100000, "%g ns", cost);
    cr_assert(fabs(weir_zone_cost_ns() - cost) <= 0.002);
    cr_assert_null(weir_thread_self);
    attach();
    struct weir_thread *self = weir_thread_self;
    weir_zone_cost_ns();
    cr_assert_eq(weir_thread_self, self);
    struct weir_snapshot *s = take();
    cr_assert_eq(s->threads[0].zones, 0);
    weir_snapshot_free(&s);
}

Test(recorder, the_clock_agrees_with_the_systems)
{
    double off = 1;
    for (int i = 0; i < 20 && off >= 0.01; i++) { /* other processes may take the core between the two clock readings */
        uint64_t ticks = weir_clock_ticks(), ns = weir_clock_monotonic_ns();
        sleep_ms(200);
        double by_ticks = (double)weir_clock_to_ns(weir_clock_ticks() - ticks);
        off = fabs(by_ticks / (double)(weir_clock_monotonic_ns() - ns) - 1);
    }
    cr_assert_lt(off, 0.01, "%g", off);
    cr_assert(weir_clock.error_ppm >= 0 && weir_clock.error_ppm < 10000, "%g", weir_clock.error_ppm);
}
