/* The PSNR check: selection of frames to compare, effects of a verdict, and the PSNR itself. */
#include "decoders/gpu/psnr_check.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

static const enum weir_gpu_jpeg_engine HW = WEIR_GPU_JPEG_HARDWARE, SM = WEIR_GPU_JPEG_SM;

static struct weir_psnr_check *open_check(void)
{
    struct weir_psnr_check *check;
    cr_assert_eq(weir_psnr_check_open(&check, NULL), 0);
    return check;
}

static struct weir_psnr_check_counts counts_of(struct weir_psnr_check *check)
{
    struct weir_psnr_check_counts counts;
    weir_psnr_check_counts(check, &counts);
    return counts;
}

Test(psnr_check, distance)
{
    static uint8_t a[10000], b[10000];
    for (size_t i = 0; i < sizeof a; i++)
        a[i] = b[i] = (uint8_t)(i * 7);
    cr_assert_eq(weir_psnr_db(a, b, sizeof a), WEIR_PSNR_MAX_DB);
    for (size_t i = 0; i < sizeof a; i++)
        b[i] = (uint8_t)(a[i] < 255 ? a[i] + 1 : a[i] - 1);
    cr_assert_float_eq(weir_psnr_db(a, b, sizeof a), 10 * log10(255.0 * 255.0), 1e-9); /* 48.13 dB */
    memset(a, 0, sizeof a);
    memset(b, 255, sizeof b);
    cr_assert_float_eq(weir_psnr_db(a, b, sizeof a), 0, 1e-9);
    memset(b, 0, sizeof b);
    b[0] = 1; /* the smallest possible difference */
    cr_assert_lt(weir_psnr_db(a, b, sizeof a), WEIR_PSNR_MAX_DB);
}

/* The limit is a mean squared error of 0.2. A difference of one level in every fifth sample passes, but in every fourth
 * it fails. */
Test(psnr_check, threshold)
{
    static uint8_t a[60000], b[60000];
    for (size_t i = 0; i < sizeof a; i += 5)
        b[i] = 1;
    cr_assert_geq(weir_psnr_db(a, b, sizeof a), WEIR_PSNR_LEAST_DB);
    for (size_t i = 0; i < sizeof a; i += 4)
        b[i] = 1;
    cr_assert_lt(weir_psnr_db(a, b, sizeof a), WEIR_PSNR_LEAST_DB);
}

Test(psnr_check, the_first_of_a_kind_and_one_of_so_many)
{
    struct weir_psnr_check *check = open_check();
    int compared = 0;
    for (int i = 0; i < 3 * WEIR_PSNR_CHECK_EVERY; i++) {
        enum weir_psnr_advice advice = weir_psnr_check_advise(check, HW, 17);
        cr_assert_eq(advice, i % WEIR_PSNR_CHECK_EVERY == 0 ? WEIR_PSNR_COMPARE : WEIR_PSNR_USE, "frame %d", i);
        if (advice == WEIR_PSNR_COMPARE)
            cr_assert(weir_psnr_check_report(check, HW, 17, WEIR_PSNR_MAX_DB));
        compared += advice == WEIR_PSNR_COMPARE;
    }
    struct weir_psnr_check_counts counts = counts_of(check);
    cr_assert_eq(counts.compared, 3);
    cr_assert_eq(compared, 3);
    cr_assert_eq(counts.kinds, 1);
    cr_assert_eq(counts.below, 0);
    cr_assert_eq(counts.least_db, WEIR_PSNR_MAX_DB);
    weir_psnr_check_close(&check);
    cr_assert_null(check);
}

Test(psnr_check, while_nothing_is_reported_all_are_compared)
{
    struct weir_psnr_check *check = open_check();
    for (int i = 0; i < 5; i++)
        cr_assert_eq(weir_psnr_check_advise(check, HW, 17), WEIR_PSNR_COMPARE);
    weir_psnr_check_report(check, HW, 17, 70);
    cr_assert_eq(weir_psnr_check_advise(check, HW, 17), WEIR_PSNR_USE);
    cr_assert_eq(weir_psnr_check_advise(check, SM, 17), WEIR_PSNR_COMPARE); /* another engine has no result yet */
    cr_assert_eq(weir_psnr_check_advise(check, HW, 16), WEIR_PSNR_COMPARE); /* nor has another kind */
    weir_psnr_check_close(&check);
}

Test(psnr_check, a_frame_that_the_engine_refuses_is_its_own_fault_at_first)
{
    struct weir_psnr_check *check;
    struct weir_psnr_check_counts counts;
    cr_assert_eq(weir_psnr_check_open(&check, NULL), 0);
    cr_assert(weir_psnr_check_report(check, WEIR_GPU_JPEG_HARDWARE, 2, WEIR_PSNR_MAX_DB)); /* kind 1 has no result */
    for (uint64_t kind = 1; kind <= 2; kind++)
        for (int i = 1; i <= WEIR_PSNR_CHECK_REFUSALS; i++) {
            weir_psnr_check_engine_refused(check, WEIR_GPU_JPEG_HARDWARE, kind);
            cr_assert_eq(weir_psnr_check_refusal(check, WEIR_GPU_JPEG_HARDWARE, kind),
                         i == WEIR_PSNR_CHECK_REFUSALS ? WEIR_JPEG_ENGINE_REFUSED : WEIR_JPEG_TAKEN);
        }
    weir_psnr_check_engine_refused(check, WEIR_GPU_JPEG_HARDWARE, 2);
    weir_psnr_check_counts(check, &counts);
    cr_assert_eq(counts.kinds_refused, 2);
    weir_psnr_check_close(&check);
}

Test(psnr_check, a_kind_below_stays_refused)
{
    struct weir_psnr_check *check = open_check();
    cr_assert_not(weir_psnr_check_refusal(check, HW, 17));
    cr_assert_eq(weir_psnr_check_advise(check, HW, 17), WEIR_PSNR_COMPARE);
    cr_assert_not(weir_psnr_check_report(check, HW, 17, WEIR_PSNR_LEAST_DB - 0.01));
    cr_assert_eq(weir_psnr_check_refusal(check, HW, 17), WEIR_JPEG_PSNR_REFUSED);
    cr_assert_not(weir_psnr_check_refusal(check, SM, 17));
    cr_assert_not(weir_psnr_check_refusal(check, HW, 18));
    for (int i = 0; i < 2 * WEIR_PSNR_CHECK_EVERY; i++)
        cr_assert_eq(weir_psnr_check_advise(check, HW, 17), WEIR_PSNR_REFUSE);
    weir_psnr_check_report(check, HW, 17, 90); /* a late result of a frame submitted earlier */
    cr_assert_eq(weir_psnr_check_refusal(check, HW, 17), WEIR_JPEG_PSNR_REFUSED);
    struct weir_psnr_check_counts counts = counts_of(check);
    cr_assert_eq(counts.below, 1);
    cr_assert_eq(counts.compared, 2);
    cr_assert_eq(counts.kinds_refused, 1);
    cr_assert_eq(counts.refused, 2 * WEIR_PSNR_CHECK_EVERY);
    cr_assert_float_eq(counts.least_db, WEIR_PSNR_LEAST_DB - 0.01, 1e-9);
    weir_psnr_check_close(&check);
}

Test(psnr_check, what_is_no_number_is_below)
{
    struct weir_psnr_check *check = open_check();
    cr_assert_not(weir_psnr_check_report(check, HW, 1, NAN));
    cr_assert(weir_psnr_check_refusal(check, HW, 1));
    weir_psnr_check_close(&check);
}

/* Once the maximum number of kinds is reached, further kinds share one verdict. */
Test(psnr_check, more_kinds_than_there_is_room_for)
{
    struct weir_psnr_check *check = open_check();
    for (uint64_t kind = 0; kind < WEIR_PSNR_CHECK_KINDS_MAX; kind++) {
        cr_assert_eq(weir_psnr_check_advise(check, HW, kind << 32), WEIR_PSNR_COMPARE);
        weir_psnr_check_report(check, HW, kind << 32, 80);
    }
    uint64_t more = WEIR_PSNR_CHECK_KINDS_MAX;
    cr_assert_eq(weir_psnr_check_advise(check, HW, more << 32), WEIR_PSNR_COMPARE);
    weir_psnr_check_report(check, HW, more << 32, 80);
    for (uint64_t i = 1; i < WEIR_PSNR_CHECK_EVERY; i++)
        cr_assert_eq(weir_psnr_check_advise(check, HW, (more + i) << 32), WEIR_PSNR_USE);
    cr_assert_eq(weir_psnr_check_advise(check, HW, (3 * more) << 32), WEIR_PSNR_COMPARE);
    weir_psnr_check_report(check, HW, (3 * more) << 32, 20);
    cr_assert(weir_psnr_check_refusal(check, HW, (5 * more) << 32));
    cr_assert_not(weir_psnr_check_refusal(check, HW, 3ULL << 32)); /* a kind that has its own result */
    cr_assert_eq(counts_of(check).kinds, WEIR_PSNR_CHECK_KINDS_MAX);
    weir_psnr_check_close(&check);
}

static void *ask_often(void *user)
{
    struct weir_psnr_check *check = user;
    for (int i = 0; i < 20000; i++) {
        uint64_t kind = (uint64_t)i % 50;
        if (weir_psnr_check_advise(check, HW, kind) == WEIR_PSNR_COMPARE)
            weir_psnr_check_report(check, HW, kind, kind == 7 ? 30 : 90);
    }
    return NULL;
}

Test(psnr_check, threads)
{
    struct weir_psnr_check *check = open_check();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, ask_often, check);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    struct weir_psnr_check_counts counts = counts_of(check);
    cr_assert_eq(counts.kinds, 50);
    cr_assert_eq(counts.kinds_refused, 1);
    cr_assert_eq(counts.refused + counts.below, 4 * 20000 / 50);
    for (uint64_t kind = 0; kind < 50; kind++)
        cr_assert_eq(weir_psnr_check_refusal(check, HW, kind), kind == 7 ? WEIR_JPEG_PSNR_REFUSED : WEIR_JPEG_TAKEN);
    weir_psnr_check_close(&check);
}
