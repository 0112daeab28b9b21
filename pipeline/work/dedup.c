#include "pipeline/gpu/gpu_ops.h"
#include "pipeline/work/image.h"
#include "pipeline/work/worker.h"
#include "weir/stages.h"

#include <string.h>

/* Return the first and last position of the frame in the history of the sample at this index. They differ only if t is
 * 0, because the first frame also fills the positions before the episode. */
static int first_position(const struct weir_slots *slots, const struct weir_slot *slot, int at, int t)
{
    return t > 0 ? slots->history - 1 - (slot->order[at].t - t) : 0;
}

static int last_position(const struct weir_slots *slots, const struct weir_slot *slot, int at, int t)
{
    return slots->history - 1 - (slot->order[at].t - t);
}

struct weir_image weir_dedup_image(const struct weir_slots *slots, const struct weir_batch_layout *layout,
                                   const struct weir_slot *slot, int at, int camera, int t)
{
    const struct weir_slot_order *owner = &slot->order[at];
    int position = first_position(slots, slot, at, t);
    return (struct weir_image){owner->episode, camera, t,
                               weir_layout_image(layout, slot->memory, owner->sample, camera, position)};
}

/* Returns the lowest image index in the batch among the frame's destinations. */
static int64_t lowest(const struct weir_slots *slots, const struct weir_slot *slot, int at,
                      const struct weir_image *image)
{
    int64_t number = INT64_MAX;
    for (int i = at; weir_order_needs(slots, slot, at, image->t, i); i++) {
        int64_t task = (int64_t)slot->order[i].sample * slots->tasks_per_sample + image->camera;
        int64_t mine = task * slots->history + first_position(slots, slot, i, image->t);
        number = mine < number ? mine : number;
    }
    return number;
}

static void give_up(const struct weir_slots *slots, struct weir_slot *slot, int at, int t)
{
    for (int i = at; weir_order_needs(slots, slot, at, t, i); i++)
        atomic_store_explicit(&slot->progress[slot->order[i].sample].bad, true, memory_order_relaxed);
}

static void copy(struct weir_worker *worker, struct weir_slot *slot, int at, const struct weir_image *image)
{
    const struct weir_shared *shared = worker->shared;
    const struct weir_slots *slots = &shared->slots;
    size_t bytes = shared->setup.layout.image_bytes[image->camera];
    uint64_t copied = 0;
    for (int i = at; weir_order_needs(slots, slot, at, image->t, i); i++)
        for (int h = first_position(slots, slot, i, image->t); h <= last_position(slots, slot, i, image->t); h++) {
            void *to = weir_layout_image(&shared->setup.layout, slot->memory, slot->order[i].sample, image->camera, h);
            if (to == image->destination)
                continue;
            WEIR_ZONE(WEIR_STAGE_SHARE_COPY);
            memcpy(to, image->destination, bytes);
            copied++;
        }
    if (copied) /* only this worker writes it */
        atomic_store_explicit(&worker->frames_shared, worker->frames_shared + copied, memory_order_relaxed);
}

void weir_dedup_decoded(const struct weir_slots *slots, const struct weir_batch_layout *layout, struct weir_slot *slot,
                        int at, const struct weir_image *image, const struct weir_gpu_source *source)
{
    for (int i = at; weir_order_needs(slots, slot, at, image->t, i); i++)
        for (int h = first_position(slots, slot, i, image->t); h <= last_position(slots, slot, i, image->t); h++)
            slot->decoded[weir_layout_number(layout, slot->order[i].sample, image->camera, h)] = *source;
}

void weir_dedup_complete(struct weir_worker *worker, struct weir_slot *slot, int at, const struct weir_image *image,
                         int code, const char *text)
{
    bool fine = code == 0 ||
                weir_image_recover(worker, slot, lowest(&worker->shared->slots, slot, at, image), image, code, text);
    if (fine)
        copy(worker, slot, at, image);
    else
        give_up(&worker->shared->slots, slot, at, image->t);
}

void weir_dedup_load(struct weir_worker *worker, struct weir_slot *slot, int at, int camera)
{
    WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
    const struct weir_shared *shared = worker->shared;
    for (int t = weir_order_first_owned(&shared->slots, slot, at); t <= slot->order[at].t; t++) {
        struct weir_image image = weir_dedup_image(&shared->slots, &shared->setup.layout, slot, at, camera, t);
        char text[WEIR_FAULT_TEXT];
        int rc = weir_image_load_or_submit(worker, slot, at, &image, text);
        if (rc <= 0)
            weir_dedup_complete(worker, slot, at, &image, rc, text);
    }
}
