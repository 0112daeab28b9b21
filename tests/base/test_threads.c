/* The event count that threads sleep on: no waiter misses a notification. */
#include "base/threads.h"

#include <criterion/criterion.h>
#include <stdbool.h>

enum { ROUNDS = 20000, WAITERS = 3 };
static const uint64_t FOR_EVER_NS = 3600000000000ull; /* so that a lost notification hangs the test */

static struct weir_eventcount there, back;
static _Atomic int round_number, answers;

static void wait_until(struct weir_eventcount *wakeup, const _Atomic int *value, int at_least)
{
    for (;;) {
        uint32_t key = weir_eventcount_prepare(wakeup);
        if (atomic_load_explicit(value, memory_order_acquire) >= at_least)
            return;
        weir_eventcount_wait(wakeup, key, FOR_EVER_NS);
    }
}

static void *answer(void *user)
{
    (void)user;
    for (int i = 1; i <= ROUNDS; i++) {
        wait_until(&there, &round_number, i);
        atomic_fetch_add_explicit(&answers, 1, memory_order_release);
        weir_eventcount_notify(&back);
    }
    return NULL;
}

Test(threads, no_ring_is_lost)
{
    pthread_t threads[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        cr_assert_eq(weir_thread_start(&threads[i], answer, NULL), 0);
    for (int i = 1; i <= ROUNDS; i++) {
        atomic_store_explicit(&round_number, i, memory_order_release);
        weir_eventcount_notify(&there);
        wait_until(&back, &answers, i * WAITERS);
    }
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(answers, ROUNDS * WAITERS);
    cr_assert_eq(there.sleepers + back.sleepers, 0);
}

Test(threads, a_wait_ends_by_itself)
{
    struct weir_eventcount wakeup = {0};
    weir_eventcount_wait(&wakeup, weir_eventcount_prepare(&wakeup), 1000000);
    cr_assert_eq(wakeup.sleepers, 0);
}

Test(threads, a_ring_before_the_wait_is_not_slept_through)
{
    struct weir_eventcount wakeup = {0};
    uint32_t key = weir_eventcount_prepare(&wakeup);
    weir_eventcount_notify(&wakeup);
    weir_eventcount_wait(&wakeup, key, FOR_EVER_NS);
    cr_assert_neq(weir_eventcount_prepare(&wakeup), key);
}
