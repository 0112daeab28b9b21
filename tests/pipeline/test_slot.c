/* Slots: from arming to release, waits, and the failure that a batch reports. */
#include "base/resources.h"
#include "tests/fixtures/slot_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

static const int STEPS[] = {5, 5, 5};

Test(slot, arming_plans_a_batch_and_sorts_its_samples)
{
    struct slot_fixture f;
    slot_fixture_open(&f, 2, 1, STEPS, 3);
    struct weir_slot *slot = weir_slot_of(&f.slots, 0);
    cr_expect_eq(slot, weir_slot_of(&f.slots, 2), "slots are reused");
    cr_expect_eq(atomic_load(&slot->armed), 0);
    weir_slot_arm(&f.slots, f.sampler, 0);
    cr_expect_eq(atomic_load(&slot->armed), 1);
    cr_expect(weir_slot_wait_armed(&f.slots, 0));
    cr_expect_eq(slot->plan.n, SLOT_BATCH);
    for (int i = 0; i < slot->plan.n; i++) {
        cr_expect_eq(slot->samples[i].episode, i / 5);
        cr_expect_eq(slot->samples[i].t, i % 5);
        cr_expect_eq(slot->order[slot->rank[i]].sample, i, "rank is the inverse of order");
    }
    slot_fixture_close(&f);
}

Test(slot, a_batch_is_complete_once_it_is_finished)
{
    struct slot_fixture f;
    slot_fixture_open(&f, 2, 1, STEPS, 3);
    weir_slot_arm(&f.slots, f.sampler, 0);
    struct weir_slot *slot = weir_slot_of(&f.slots, 0);
    weir_slot_finish(&f.slots, slot);
    cr_expect(weir_slot_wait_complete(&f.slots, 0));
    cr_expect_eq(atomic_load(&f.slots.completed), 1);
    weir_slot_arm(&f.slots, f.sampler, 2);
    cr_expect_eq(slot->plan.sequence, 2);
    cr_expect_eq(atomic_load(&slot->complete), 1, "batch 2 is not complete");
    slot_fixture_close(&f);
}

struct waiter {
    struct weir_slots *slots;
    bool armed, complete;
};

static void *wait_for_both(void *user)
{
    struct waiter *waiter = user;
    waiter->armed = weir_slot_wait_armed(waiter->slots, 1);
    waiter->complete = weir_slot_wait_complete(waiter->slots, 1);
    return NULL;
}

Test(slot, waits_end_with_their_event_or_with_the_stop)
{
    for (int stop = 0; stop < 2; stop++) {
        struct slot_fixture f;
        pthread_t thread;
        slot_fixture_open(&f, 2, 1, STEPS, 3);
        struct waiter waiter = {.slots = &f.slots};
        cr_assert_eq(pthread_create(&thread, NULL, wait_for_both, &waiter), 0);
        if (stop) {
            weir_slots_stop(&f.slots);
        } else {
            weir_slot_arm(&f.slots, f.sampler, 1);
            weir_slot_finish(&f.slots, weir_slot_of(&f.slots, 1));
        }
        pthread_join(thread, NULL);
        cr_expect_eq(waiter.armed, !stop);
        cr_expect_eq(waiter.complete, !stop);
        slot_fixture_close(&f);
    }
}

static bool at_once(void *user)
{
    ++*(int *)user;
    return true;
}

Test(slot, a_wait_can_be_interrupted)
{
    struct slot_fixture f;
    int asked = 0;
    slot_fixture_open(&f, 1, 1, STEPS, 3);
    weir_slot_arm(&f.slots, f.sampler, 0);
    cr_expect_eq(weir_slot_wait_interruptible(&f.slots, 0, at_once, &asked), -EINTR);
    cr_expect_eq(asked, 1);
    slot_fixture_close(&f);
}

/* The kept failure does not depend on the order in which workers report. */
Test(slot, the_failure_of_the_lowest_image_is_kept)
{
    static const int64_t images[] = {7, 3, 9, 3};
    struct slot_fixture f;
    slot_fixture_open(&f, 1, 1, STEPS, 3);
    weir_slot_arm(&f.slots, f.sampler, 0);
    struct weir_slot *slot = weir_slot_of(&f.slots, 0);
    for (int i = 0; i < 4; i++) {
        struct weir_err err = WEIR_ERR_NONE;
        weir_err_set(&err, -EBADMSG, "image %d, report %d", (int)images[i], i);
        weir_slot_fail(&f.slots, slot, images[i], &err);
    }
    cr_expect_eq(slot->failed_image, 3);
    cr_expect_str_eq(slot->err.text, "image 3, report 1");
    weir_slot_finish(&f.slots, slot);
    weir_slot_arm(&f.slots, f.sampler, 1);
    cr_expect_eq(slot->failed_image, -1, "a new batch has no failure");
    slot_fixture_close(&f);
}

Test(slot, moved_memory_is_the_consumers)
{
    struct slot_fixture f;
    struct weir_err err = WEIR_ERR_NONE;
    void *memory;
    slot_fixture_open(&f, 1, 1, STEPS, 3);
    weir_slot_arm(&f.slots, f.sampler, 0);
    struct weir_slot *slot = weir_slot_of(&f.slots, 0);
    size_t offset = (size_t)((uint8_t *)slot->batch.tensors[0].data - slot->memory), bytes = f.slots.slot_bytes;
    memset(slot->memory, 42, bytes);
    weir_slot_lend(&f.slots, slot);
    cr_assert_eq(weir_slot_move(&f.slots, slot, true, &memory, &err), 0, "%s", err.text);
    cr_expect_neq((uint8_t *)memory, slot->memory);
    cr_expect_eq((uint8_t *)slot->batch.tensors[0].data, slot->memory + offset);
    memset(slot->memory, 1, bytes);
    slot_fixture_close(&f);
    cr_expect_eq(((uint8_t *)memory)[bytes - 1], 42, "the kept batch outlives the slots");
    weir_memory_unmap(memory, bytes);
}
