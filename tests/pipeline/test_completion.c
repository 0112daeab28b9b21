/* Completion: a batch is complete after the last of its tasks, in whatever order they end, and skipped samples leave no
 * gap. */
#include "pipeline/work/image.h"
#include "tests/fixtures/slot_fixture.h"

#include <criterion/criterion.h>
#include <string.h>

static const int STEPS[] = {4, 4, 4};

static bool is_complete(const struct slot_fixture *f)
{
    return atomic_load(&f->slots.slot[0].complete) == f->slots.slot[0].plan.sequence + 1;
}

/* Performs a task like a worker, but without writing pixels. */
static void do_task(struct slot_fixture *f, int task)
{
    struct weir_slot *slot = &f->slots.slot[0];
    struct weir_task_clock clock = {.worker = 1, .id = weir_task_id(&f->slots, slot->plan.sequence, (uint64_t)task)};
    int sample = task / f->slots.tasks_per_sample;
    if (task % f->slots.tasks_per_sample == SLOT_CAMERAS) {
        weir_completion_begin_state(slot, sample, 5);
        weir_completion_end_state(slot, sample);
    } else {
        weir_completion_begin_images(&f->slots, slot, slot->rank[sample], 5);
        if (!weir_completion_arrive(slot, task))
            return;
        weir_completion_end_images(&f->slots, slot, slot->rank[sample]);
    }
    weir_completion_end_task(&f->completion, slot, task, &clock, true);
}

Test(completion, the_last_task_completes_whatever_the_order)
{
    /* Of the strides 1, 5, 9, 13 and 17, only 1 and 9 divide the 18 tasks. */
    for (int stride = 1; stride <= 17; stride += 4) {
        struct slot_fixture f;
        slot_fixture_open(&f, 1, 3, STEPS, 3);
        weir_slot_arm(&f.slots, f.sampler, 0);
        int n = SLOT_BATCH * f.slots.tasks_per_sample, last = 0;
        bool done[SLOT_BATCH * (SLOT_CAMERAS + 1)] = {false};
        for (int i = 0, task = 0; i < n; i++, task = (task + stride) % n) {
            while (done[task])
                task = (task + 1) % n;
            cr_expect_not(is_complete(&f), "after %d of %d tasks", i, n);
            do_task(&f, task);
            done[task] = true;
            last = task;
        }
        struct weir_slot *slot = &f.slots.slot[0];
        cr_expect(is_complete(&f));
        cr_expect_eq(slot->batch.n, SLOT_BATCH);
        cr_expect_eq(slot->last_task_id, weir_task_id(&f.slots, 0, (uint64_t)last));
        cr_expect_eq(slot->last.worker, 1);
        for (int i = 0; i < slot->plan.n; i++) {
            cr_expect_eq(atomic_load(&slot->progress[i].parts_left), 0, "sample %d", i);
            cr_expect_eq(atomic_load(&slot->progress[i].images_left), 0, "sample %d", i);
            cr_expect_eq(atomic_load(&slot->progress[i].start_ticks), 5);
        }
        slot_fixture_close(&f);
    }
}

Test(completion, tasks_of_later_batches_count_for_their_slot)
{
    struct slot_fixture f;
    slot_fixture_open(&f, 1, 1, STEPS, 3);
    weir_slot_arm(&f.slots, f.sampler, 0);
    struct weir_slot *slot = &f.slots.slot[0];
    struct weir_task_clock clock = {.worker = 2, .id = 99};
    int n = SLOT_BATCH * f.slots.tasks_per_sample;
    weir_completion_add_task(slot);
    for (int task = 0; task < n; task++)
        do_task(&f, task);
    cr_expect_not(is_complete(&f), "a task of an earlier batch is still loading frames for this one");
    weir_completion_end_task(&f.completion, slot, 0, &clock, false);
    cr_expect(is_complete(&f));
    cr_expect_eq(slot->last_task_id, 99);
    slot_fixture_close(&f);
}

Test(completion, a_task_waits_for_its_deferred_frames)
{
    _Atomic int deferred[SLOT_BATCH * (SLOT_CAMERAS + 1)];
    struct slot_fixture f;
    slot_fixture_open(&f, 1, 1, STEPS, 3);
    struct weir_slot *slot = &f.slots.slot[0];
    slot->deferred = deferred;
    slot->n_tasks = SLOT_BATCH * (SLOT_CAMERAS + 1);
    weir_slot_arm(&f.slots, f.sampler, 0);
    weir_completion_defer(slot, 0);
    weir_completion_defer(slot, 0);
    cr_expect_not(weir_completion_arrive(slot, 0), "the worker, with two frames still in flight");
    cr_expect_not(weir_completion_arrive(slot, 0), "one frame");
    cr_expect(weir_completion_arrive(slot, 0), "the last frame");
    cr_expect(weir_completion_arrive(slot, 1), "a task without deferred frames");
    weir_completion_defer(slot, 3);
    weir_completion_forget_deferred(slot);
    cr_expect(weir_completion_arrive(slot, 3));
    slot->deferred = NULL;
    slot_fixture_close(&f);
}

Test(completion, later_rows_move_up_over_skipped_samples)
{
    struct slot_fixture f;
    slot_fixture_open(&f, 1, 1, STEPS, 3);
    weir_slot_arm(&f.slots, f.sampler, 0);
    struct weir_slot *slot = &f.slots.slot[0];
    for (int i = 0; i < slot->plan.n; i++)
        for (int tensor = 0; tensor < f.layout.n_tensors; tensor++)
            memset(weir_layout_row(&f.layout, slot->memory, tensor, i), 10 + i, f.layout.tensors[tensor].sample_bytes);
    atomic_store(&slot->progress[0].bad, true);
    atomic_store(&slot->progress[3].bad, true);
    for (int task = 0; task < SLOT_BATCH * f.slots.tasks_per_sample; task++)
        do_task(&f, task);
    static const int kept[] = {1, 2, 4, 5};
    cr_assert_eq(slot->batch.n, 4);
    cr_expect_eq(slot->batch.tensors[0].shape[0], 4);
    cr_expect_eq(atomic_load(&f.skipped), 2);
    for (int i = 0; i < 4; i++) {
        cr_expect_eq(slot->samples[i].episode * 4 + slot->samples[i].t, kept[i]);
        for (int tensor = 0; tensor < f.layout.n_tensors; tensor++)
            cr_expect_eq(*(uint8_t *)weir_layout_row(&f.layout, slot->memory, tensor, i), 10 + kept[i]);
    }
    slot_fixture_close(&f);
}

/* ---- frames that samples share ---- */

/* Every image of a batch has one owner, which loads it. Counts are per owner. */
Test(dedup, each_frame_of_a_batch_has_one_owner)
{
    static const int histories[] = {1, 2, 3, 6};
    for (size_t h = 0; h < sizeof histories / sizeof *histories; h++) {
        struct slot_fixture f;
        bool owned[3][4] = {{false}};
        slot_fixture_open(&f, 1, histories[h], STEPS, 3);
        weir_slot_arm(&f.slots, f.sampler, 0);
        const struct weir_slot *slot = &f.slots.slot[0];
        for (int at = 0; at < slot->plan.n; at++) {
            const struct weir_slot_order *order = &slot->order[at];
            for (int t = weir_order_first_owned(&f.slots, slot, at); t <= weir_order_last(&f.slots, slot, at); t++) {
                cr_expect_not(owned[order->episode][t], "frame %d of episode %d has two owners", t, order->episode);
                owned[order->episode][t] = true;
                struct weir_image image;
                cr_assert(weir_dedup_image(&f.slots, slot, at, 1, t, &image));
                cr_expect_eq(image.episode, order->episode);
                cr_expect_eq(image.t, t);
                int position = t > 0 ? histories[h] - 1 - (order->t - t) : 0;
                cr_expect_eq(image.destination, weir_layout_image(&f.layout, slot->memory, order->sample, 1, position));
            }
            int owners = 1;
            for (int before = 0; before < at; before++)
                owners += weir_order_owns_any(&f.slots, slot, before) &&
                          weir_order_covers(&f.slots, slot, before, weir_order_last(&f.slots, slot, before), at);
            cr_expect_eq(order->parts, owners, "history %d, index %d", histories[h], at);
        }
        for (int i = 0; i < slot->plan.n; i++)
            for (int back = 0; back < histories[h] && back <= slot->samples[i].t; back++)
                cr_expect(owned[slot->samples[i].episode][slot->samples[i].t - back], "a frame has no owner");
        slot_fixture_close(&f);
    }
}
