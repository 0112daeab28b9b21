#include "pipeline/gpu/gpu_ops.h"
#include "pipeline/work/image.h"
#include "pipeline/work/worker.h"
#include "weir/stages.h"

#include <string.h>

/* A destination of a frame: position `i` of the window of the sample at index `at`. */
struct place {
    int at, i;
};

/* Advances to the next destination of frame t, which the sample at index `owner` owns. Returns false after the
 * last one. Begin with {owner, -1}. */
static bool next_place(const struct weir_slots *slots, const struct weir_slot *slot, int owner, int camera, int t,
                       struct place *place)
{
    int n = weir_layout_frames(slots->layout, camera);
    for (; weir_order_covers(slots, slot, owner, t, place->at); *place = (struct place){place->at + 1, -1})
        while (++place->i < n)
            if (weir_order_frame(slots, slot, place->at, camera, place->i) == t)
                return true;
    return false;
}

static void *memory_of(const struct weir_batch_layout *layout, const struct weir_slot *slot, int camera,
                       const struct place *place)
{
    return weir_layout_image(layout, slot->memory, slot->order[place->at].sample, camera, place->i);
}

bool weir_dedup_image(const struct weir_slots *slots, const struct weir_slot *slot, int at, int camera, int t,
                      struct weir_image *image)
{
    struct place place = {at, -1};
    if (!next_place(slots, slot, at, camera, t, &place))
        return false;
    *image = (struct weir_image){slot->order[at].episode, camera, t, memory_of(slots->layout, slot, camera, &place)};
    return true;
}

/* Returns the lowest image index in the batch among the frame's destinations. */
static int64_t lowest(const struct weir_slots *slots, const struct weir_slot *slot, int at,
                      const struct weir_image *image)
{
    int64_t number = INT64_MAX;
    for (struct place place = {at, -1}; next_place(slots, slot, at, image->camera, image->t, &place);) {
        int64_t task = (int64_t)slot->order[place.at].sample * slots->tasks_per_sample + image->camera;
        int64_t mine = task * slots->layout->windows->images_max + place.i;
        number = mine < number ? mine : number;
    }
    return number;
}

static void give_up(const struct weir_slots *slots, struct weir_slot *slot, int at, const struct weir_image *image)
{
    for (struct place place = {at, -1}; next_place(slots, slot, at, image->camera, image->t, &place);)
        atomic_store_explicit(&slot->progress[slot->order[place.at].sample].bad, true, memory_order_relaxed);
}

static void copy(struct weir_worker *worker, struct weir_slot *slot, int at, const struct weir_image *image)
{
    const struct weir_slots *slots = &worker->shared->slots;
    size_t bytes = slots->layout->image_bytes[image->camera];
    uint64_t copied = 0;
    for (struct place place = {at, -1}; next_place(slots, slot, at, image->camera, image->t, &place);) {
        void *to = memory_of(slots->layout, slot, image->camera, &place);
        if (to == image->destination)
            continue;
        WEIR_ZONE(WEIR_STAGE_SHARE_COPY);
        memcpy(to, image->destination, bytes);
        copied++;
    }
    if (copied) /* only this worker writes it */
        atomic_store_explicit(&worker->frames_shared, worker->frames_shared + copied, memory_order_relaxed);
}

void weir_dedup_decoded(const struct weir_slots *slots, struct weir_slot *slot, int at, const struct weir_image *image,
                        const struct weir_gpu_source *source)
{
    for (struct place place = {at, -1}; next_place(slots, slot, at, image->camera, image->t, &place);)
        slot->decoded[weir_layout_number(slots->layout, slot->order[place.at].sample, image->camera, place.i)] =
            *source;
}

void weir_dedup_complete(struct weir_worker *worker, struct weir_slot *slot, int at, const struct weir_image *image,
                         int code, const char *text)
{
    bool fine = code == 0 ||
                weir_image_recover(worker, slot, lowest(&worker->shared->slots, slot, at, image), image, code, text);
    if (fine)
        copy(worker, slot, at, image);
    else
        give_up(&worker->shared->slots, slot, at, image);
}

void weir_dedup_load(struct weir_worker *worker, struct weir_slot *slot, int at, int camera)
{
    WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
    const struct weir_slots *slots = &worker->shared->slots;
    for (int t = weir_order_first_owned(slots, slot, at); t <= weir_order_last(slots, slot, at); t++) {
        struct weir_image image;
        char text[WEIR_FAULT_TEXT];
        if (!weir_dedup_image(slots, slot, at, camera, t, &image))
            continue;
        int rc = weir_image_load_or_submit(worker, slot, at, &image, text);
        if (rc <= 0)
            weir_dedup_complete(worker, slot, at, &image, rc, text);
    }
}
