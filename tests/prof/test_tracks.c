/* The ring buffers into which threads record, when threads end faster than their rings are collected. */
#include "prof/record/track_priv.h"

#include <criterion/criterion.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 1000, SLOTS = 2 * RECORDS /* two slots per record */, SLOT_BYTES = 16 };
enum { FITTING = WEIR_REST_MAX_BYTES / (SLOTS * SLOT_BYTES) };

static weir_name name;

static void *write_records(void *user)
{
    for (int i = 0; i < RECORDS; i++)
        weir_counter(name, i); /* takes two slots */
    return user;
}

static void run_threads(int n)
{
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, write_records, NULL), 0);
        pthread_join(thread, NULL);
    }
}

static void count_slots(void *user, const struct weir_ring *ring, const struct weir_run *run)
{
    (void)ring;
    *(size_t *)user += run->n[0] + run->n[1];
}

static size_t drain(void)
{
    size_t slots = 0;
    weir_tracks_drain(count_slots, &slots);
    return slots;
}

/* Ended threads must not each keep a ring of half a megabyte until it is read, so the memory for all of them is
 * limited. */
Test(tracks, of_threads_that_end_only_so_much_is_kept)
{
    name = weir_name_intern("n", WEIR_CAT_OTHER);
    __atomic_store_n(&weir_recording_state, WEIR_RECORDING_ON, __ATOMIC_RELEASE);
    weir_tracks_collect(true);
    for (int again = 0; again < 2; again++) {
        run_threads(FITTING + 10);
        cr_assert_eq(weir_tracks_dropped(), 10 * RECORDS);
        cr_assert_eq(drain(), (size_t)FITTING * SLOTS);
        cr_assert_eq(drain(), 0);
        cr_assert_eq(weir_tracks_dropped(), 0);
    }
    weir_tracks_collect(false);
    run_threads(1);
    cr_assert_eq(drain(), 0);
}

/* When a thread ends, only the unread part of its ring is kept. Here this part wraps around the ring's end. */
static void *write_in_two_parts(void *user)
{
    pthread_barrier_t *drained = user;
    for (int i = 0; i < WEIR_RING_SLOTS / 2 - RECORDS; i++)
        weir_counter(name, i);
    pthread_barrier_wait(drained);
    pthread_barrier_wait(drained);
    for (int i = 0; i < 2 * RECORDS; i++)
        weir_counter(name, 1e6 + i);
    return NULL;
}

static void expect_second_part(void *user, const struct weir_ring *ring, const struct weir_run *run)
{
    size_t n = run->n[0] + run->n[1];
    (void)ring;
    cr_assert_eq(n, 2 * SLOTS);
    for (size_t i = 0; i < n; i += 2) {
        double value;
        memcpy(&value, &weir_run_slot(run, i + 1)->a, sizeof value);
        cr_assert_eq(value, 1e6 + (double)(i / 2));
    }
    ++*(int *)user;
}

Test(tracks, what_a_thread_wrote_last_is_kept_in_order)
{
    pthread_barrier_t drained;
    pthread_t thread;
    int calls = 0;
    name = weir_name_intern("n", WEIR_CAT_OTHER);
    __atomic_store_n(&weir_recording_state, WEIR_RECORDING_ON, __ATOMIC_RELEASE);
    weir_tracks_collect(true);
    pthread_barrier_init(&drained, NULL, 2);
    cr_assert_eq(pthread_create(&thread, NULL, write_in_two_parts, &drained), 0);
    pthread_barrier_wait(&drained);
    cr_assert_eq(drain(), WEIR_RING_SLOTS - SLOTS);
    pthread_barrier_wait(&drained);
    pthread_join(thread, NULL);
    weir_tracks_drain(expect_second_part, &calls);
    cr_assert_eq(calls, 1);
    weir_tracks_collect(false);
}

/* ---- stacks ---- */

static struct weir_stacks_seen *seen;
static int compared;

#if defined(__SANITIZE_ADDRESS__)
enum { OWN = 1 }; /* AddressSanitizer's backtrace adds a frame of its own */
#else
enum { OWN = 0 };
#endif

/* Compares our stack with glibc's backtrace at the same point, except for the first frame: both are in this function,
 * but at different calls. */
static __attribute__((noinline)) void compare_stacks(void)
{
    void *wanted[WEIR_STACK_DEPTH + 1];
    const void *const *got;
    int n = backtrace(wanted, WEIR_STACK_DEPTH + OWN) - OWN;
    int mine = weir_stack_addresses(weir_stack_capture(&seen, 1), &got);
    cr_assert_eq(mine, n);
    for (int i = 1; i < n; i++)
        cr_assert_eq(got[i], wanted[i + OWN], "frame %d of %d", i, n);
    compared++;
}

static void go_deeper(unsigned way, int depth);

static __attribute__((noinline)) void one_way(unsigned way, int depth)
{
    go_deeper(way, depth);
    compared += 0;
}

/* Has the same depth and frame size as one_way. */
static __attribute__((noinline)) void other_way(unsigned way, int depth)
{
    go_deeper(way, depth);
    compared += 0;
}

/* Has a frame size that is known only at run time. */
static __attribute__((noinline)) void wide_way(unsigned way, int depth)
{
    volatile char *bytes = __builtin_alloca(16 + (way & 3) * 64);
    bytes[0] = 0;
    go_deeper(way, depth);
    compared += bytes[0];
}

static __attribute__((noinline)) void go_deeper(unsigned way, int depth)
{
    if (depth == 0)
        compare_stacks();
    else if (way % 3 == 0)
        one_way(way / 3, depth - 1);
    else if (way % 3 == 1)
        other_way(way / 3, depth - 1);
    else
        wide_way(way / 3, depth - 1);
    compared += 0;
}

Test(tracks, stacks_that_are_given_as_text)
{
    const void *const *addresses;
    uint32_t one = weir_stack_text("a.py(1): f;a.py(2): g"), other = weir_stack_text("a.py(2): g");
    cr_assert(one != 0 && other != 0 && one != other);
    cr_assert_eq(weir_stack_text("a.py(1): f;a.py(2): g"), one);
    cr_assert_str_eq(weir_stack_frames(one), "a.py(1): f;a.py(2): g");
    cr_assert_eq(weir_stack_addresses(one, &addresses), 0);
    cr_assert_null(weir_stack_frames(0));
    uint32_t native = weir_stack_capture(&seen, 1);
    cr_assert(native != one && native != other);
    cr_assert_null(weir_stack_frames(native));
}

Test(tracks, stacks_that_were_seen_before_are_known_again_and_no_others)
{
    unsigned random = 1;
    for (int i = 0; i < 20000; i++) {
        random = random * 1103515245 + 12345;
        unsigned way = random >> 16;
        go_deeper(i % 4 ? way % 27 : way, i % 4 ? 3 : (int)(way % 12));
    }
    cr_assert_eq(compared, 20000);
    free(seen);
}
