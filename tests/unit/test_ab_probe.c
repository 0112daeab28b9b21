/* A helper is tried beside the others at made-up rates, by a clock of the test's own. */
#include "pipeline/gpu/ab_probe.h"

#include <criterion/criterion.h>
#include <math.h>

static const uint64_t MS = 1000000;
enum { TICK_MS = 8 };

/* The others' rate, alone and beside the helper, and the helper's. */
struct rates {
    double alone, beside, helper, growth; /* growth: of all of them a second */
};

static struct weir_ab_probe ab_probe;
static uint64_t now_ns;
static double done, by_helper;
static bool works;

static void begin(void)
{
    ab_probe = (struct weir_ab_probe){0};
    now_ns = 1000 * MS;
    done = by_helper = 0;
    works = weir_ab_probe_step(&ab_probe, now_ns, (struct weir_ab_counts){0});
}

TestSuite(ab_probe, .init = begin);

static void run_for(struct rates rates, uint64_t ms)
{
    for (uint64_t end_ns = now_ns + ms * MS; now_ns < end_ns;) {
        double growth = 1 + rates.growth * (double)now_ns / 1e9;
        done += growth * (works ? rates.beside + rates.helper : rates.alone) * TICK_MS / 1e3;
        by_helper += works ? growth * rates.helper * TICK_MS / 1e3 : 0;
        now_ns += TICK_MS * MS;
        works = weir_ab_probe_step(&ab_probe, now_ns, (struct weir_ab_counts){(uint64_t)done, (uint64_t)by_helper});
    }
}

Test(ab_probe, it_works_until_the_first_one)
{
    cr_assert(works);
    run_for((struct rates){.alone = 30000, .beside = 10000, .helper = 1000}, 250);
    cr_assert(works, "whatever that does");
    cr_assert_eq(ab_probe.n_probes, 0);
    run_for((struct rates){.alone = 30000, .beside = 10000, .helper = 1000}, 100);
    cr_assert_not(works, "the first window is without it");
}

Test(ab_probe, one_that_slows_the_others_rests)
{
    run_for((struct rates){.alone = 30000, .beside = 23000, .helper = 5000}, 4000);
    cr_assert_eq(ab_probe.n_probes, 1);
    cr_assert_not(works);
    cr_assert_lt(fabs(ab_probe.gain + 2.0 / 30), 0.005, "%g", ab_probe.gain);
}

Test(ab_probe, one_that_adds_works)
{
    run_for((struct rates){.alone = 32000, .beside = 25000, .helper = 14000}, 4000);
    cr_assert_eq(ab_probe.n_probes, 1);
    cr_assert(works);
    cr_assert_lt(fabs(ab_probe.gain - 7.0 / 32), 0.005, "%g", ab_probe.gain);
}

Test(ab_probe, one_that_makes_no_difference_rests)
{
    run_for((struct rates){.alone = 3000, .beside = 2600, .helper = 400}, 4000);
    cr_assert_eq(ab_probe.n_probes, 1);
    cr_assert_not(works);
}

Test(ab_probe, a_rate_that_rises_favours_neither)
{
    run_for((struct rates){.alone = 10000, .beside = 8000, .helper = 2000, .growth = 0.03}, 4000);
    cr_assert_eq(ab_probe.n_probes, 1);
    cr_assert_lt(fabs(ab_probe.gain), 0.02, "%g", ab_probe.gain);
}

Test(ab_probe, is_repeated_as_things_change)
{
    run_for((struct rates){.alone = 30000, .beside = 23000, .helper = 5000}, 4000);
    cr_assert_not(works);
    run_for((struct rates){.alone = 30000, .beside = 23000, .helper = 15000}, 20000);
    cr_assert_not(works, "nobody has asked again");
    run_for((struct rates){.alone = 30000, .beside = 23000, .helper = 15000}, 15000);
    cr_assert(works);
    cr_assert_eq(ab_probe.n_probes, 2);
    run_for((struct rates){.alone = 30000, .beside = 23000, .helper = 15000}, 25000);
    cr_assert(works);
    cr_assert_eq(ab_probe.n_probes, 2);
}

Test(ab_probe, says_nothing_where_nothing_was_done)
{
    run_for((struct rates){0}, 20000);
    cr_assert_eq(ab_probe.n_probes, 0);
    cr_assert(ab_probe.helps);
    run_for((struct rates){.alone = 30000, .beside = 23000, .helper = 15000}, 10000);
    cr_assert_eq(ab_probe.n_probes, 1);
    cr_assert(works);
}

/* Beside a consumer that takes less than the others give. */
Test(ab_probe, says_nothing_of_a_helper_that_had_nothing_to_do)
{
    run_for((struct rates){.alone = 3000, .beside = 3000}, 20000);
    cr_assert_eq(ab_probe.n_probes, 0);
    cr_assert(ab_probe.helps);
}

/* A consumer that stops for a while, in whichever window that is: the trial is repeated, and its answer is right. */
Test(ab_probe, a_pause_is_nobodys_fault)
{
    for (uint64_t at_ms = 300; at_ms < 3000; at_ms += 50) {
        for (int helpful = 0; helpful < 2; helpful++) {
            struct rates rates = {.alone = 30000, .beside = 23000, .helper = helpful ? 15000 : 5000};
            begin();
            run_for(rates, at_ms);
            run_for((struct rates){0}, 200);
            run_for(rates, 10000);
            cr_assert_eq(ab_probe.n_probes, 1);
            cr_assert_eq(works, helpful, "a pause at %d ms", (int)at_ms);
            cr_assert(!helpful || ab_probe.gain < 8.0 / 30 + 0.01, "more than it is: a pause at %d ms: %g", (int)at_ms,
                      ab_probe.gain);
        }
    }
}
