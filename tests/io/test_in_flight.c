/* The number of requests in flight, with simulated servers. */
#include "io/in_flight.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { MOST = 1000, REQUEST_BYTES = 30000 };

/* A server that begins a request after its latency, and serves requests one after another. */
struct server {
    struct weir_in_flight f;
    double latency_s, each_s, noise; /* noise: part of both by which requests differ */
    double now_s, free_s;
    double due_s[MOST], begin_s[MOST];
    int n, highest;
    uint64_t random, done;
};

static uint64_t ns(double s)
{
    return (uint64_t)(s * 1e9) + 1;
}

static double spread(struct server *s)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return 1 + s->noise * ((double)(s->random >> 40) / (1 << 24) - 0.5);
}

static struct server *make(double latency_s, double requests_per_s, double noise, int most, bool is_fixed)
{
    struct server *s = calloc(1, sizeof *s);
    *s = (struct server){.latency_s = latency_s, .each_s = 1 / requests_per_s, .noise = noise, .random = 1};
    weir_in_flight_begin(&s->f, most, is_fixed, 65536, ns(0));
    return s;
}

static void queue(struct server *s)
{
    double arrival_s = s->now_s + s->latency_s * spread(s);
    s->free_s = fmax(s->free_s, arrival_s) + s->each_s * spread(s);
    s->begin_s[s->n] = s->now_s;
    s->due_s[s->n++] = s->free_s;
    weir_in_flight_queued(&s->f, ns(s->now_s));
}

static void finish_next(struct server *s)
{
    int next = 0;
    for (int i = 1; i < s->n; i++)
        if (s->due_s[i] < s->due_s[next])
            next = i;
    s->now_s = fmax(s->now_s, s->due_s[next]);
    double took_s = s->now_s - s->begin_s[next];
    s->n--;
    s->due_s[next] = s->due_s[s->n];
    s->begin_s[next] = s->begin_s[s->n];
    s->done++;
    weir_in_flight_done(&s->f, ns(s->now_s), REQUEST_BYTES, ns(0.9 * took_s), ns(took_s));
}

/* Runs for some time, with at most `most` requests in flight. Returns the requests per second. */
static double run(struct server *s, double seconds, int most)
{
    double until_s = s->now_s + seconds, from_s = s->now_s;
    uint64_t before = s->done;
    while (s->now_s < until_s) {
        while (s->n < s->f.limit && s->n < most)
            queue(s);
        finish_next(s);
        s->highest = s->f.limit > s->highest ? s->f.limit : s->highest;
    }
    return (double)(s->done - before) / (s->now_s - from_s);
}

Test(in_flight, it_grows_until_the_latency_is_hidden)
{
    static const double latency_s[] = {0.005, 0.02, 0.05}, rates[] = {10000, 8000, 8000}, noise[] = {0, 0.3, 0.8};
    for (int i = 0; i < 3; i++) {
        struct server *s = make(latency_s[i], rates[i], noise[i], MOST, false);
        run(s, 2, MOST);
        cr_assert_gt(run(s, 1, MOST), 0.85 * rates[i], "latency %g: %d in flight", latency_s[i], s->f.limit);
        cr_assert_lt(s->f.limit, 3 * latency_s[i] * rates[i] + 64, "latency %g: %d", latency_s[i], s->f.limit);
        free(s);
    }
}

Test(in_flight, it_shrinks_where_more_only_wait)
{
    struct server *s = make(0.0005, 5000, 0.3, MOST, false);
    run(s, 4, MOST);
    cr_assert_lt(s->f.limit, 64);
    cr_assert_gt(run(s, 2, MOST), 4500);
    free(s);
}

Test(in_flight, it_stays_where_readers_are_the_limit)
{
    struct server *s = make(0.05, 100000, 0, MOST, false);
    run(s, 4, 20); /* readers have buffers for 20 */
    cr_assert_eq(s->highest, 64);
    free(s);
}

Test(in_flight, its_bound_holds)
{
    struct server *s = make(0.05, 100000, 0, 200, false);
    run(s, 1, MOST);
    cr_assert_eq(s->highest, 200);
    free(s);
}

Test(in_flight, refusals_lower_it_and_it_grows_again)
{
    struct server *s = make(0.05, 100000, 0, MOST, false);
    run(s, 1, MOST);
    cr_assert_geq(s->f.limit, 500);
    int before = s->f.limit;
    weir_in_flight_refused(&s->f, ns(s->now_s));
    cr_assert_lt(s->f.limit, before);
    int once = s->f.limit;
    weir_in_flight_refused(&s->f, ns(s->now_s)); /* of the same burst */
    cr_assert_eq(s->f.limit, once);
    for (int i = 0; i < 20; i++) {
        run(s, 0.1, MOST);
        weir_in_flight_refused(&s->f, ns(s->now_s));
    }
    cr_assert_eq(s->f.limit, WEIR_IN_FLIGHT_LEAST);
    run(s, 6, MOST);
    cr_assert_geq(s->f.limit, 2 * WEIR_IN_FLIGHT_LEAST);
    free(s);
}

Test(in_flight, a_number_of_the_user_stays)
{
    struct server *s = make(0.05, 100000, 0.3, 7, true);
    run(s, 1, MOST);
    weir_in_flight_refused(&s->f, ns(s->now_s));
    cr_assert_eq(s->f.limit, 7);
    cr_assert_eq(s->highest, 7);
    free(s);
}

/* A gap is worth reading if the link needs less time for it than for a request. */
Test(in_flight, the_gap_follows_the_bandwidth_and_the_latency)
{
    static const double rates[] = {100, 1000, 10000};
    size_t before = 0;
    for (int i = 0; i < 3; i++) { /* a faster link: more bytes in the same time */
        struct server *s = make(0.01, rates[i], 0, 16, true);
        run(s, 1, MOST);
        cr_assert_gt(s->f.gap_bytes, before);
        before = s->f.gap_bytes;
        free(s);
    }
    struct server *far = make(0.2, 1000, 0, 16, true), *near = make(0.002, 1000, 0, 16, true);
    run(far, 1, MOST);
    run(near, 1, MOST);
    cr_assert_leq(far->f.gap_bytes, 256 << 10);
    cr_assert_geq(near->f.gap_bytes, 4 << 10);
    free(far);
    free(near);
}
