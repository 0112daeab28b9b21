
#include "extras/motion/clips/clips_priv.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

/* A weir_motion_clips with the capacity of its arrays. */
struct store {
    struct weir_motion_clips clips;
    size_t clip_capacity, frame_capacity;
};

static int no_memory(struct weir_err *err)
{
    return weir_err_set(err, -ENOMEM, "out of memory for the motions; use fewer or shorter motions");
}

int weir_motion_clips_new(struct weir_motion_clips **clips, size_t dofs, size_t bodies, struct weir_err *err)
{
    *clips = NULL;
    if (dofs < 1 || dofs > WEIR_MOTION_PARTS_MAX)
        return weir_err_set(err, -EINVAL, "has %zu dofs; there must be 1 to %d", dofs, WEIR_MOTION_PARTS_MAX);
    if (bodies < 1 || bodies > WEIR_MOTION_PARTS_MAX)
        return weir_err_set(err, -EINVAL, "has %zu bodies besides the root; there must be 1 to %d", bodies,
                            WEIR_MOTION_PARTS_MAX);
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return no_memory(err);
    store->clips.dofs = dofs;
    store->clips.bodies = bodies;
    *clips = &store->clips;
    return 0;
}

void weir_motion_clips_free(struct weir_motion_clips **clips)
{
    if (!clips || !*clips)
        return;
    struct weir_motion_clips *c = *clips;
    void *const arrays[] = {c->clip,       c->dof_names,      c->body_names, c->root_pos_w, c->root_quat,
                            c->root_vel_w, c->root_ang_vel_w, c->dof_pos,    c->dof_vel,    c->key_body_pos_w};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        free(arrays[i]);
    free((struct store *)c);
    *clips = NULL;
}

static bool grow(float **array, size_t n, size_t floats)
{
    float *more = realloc(*array, n * floats * sizeof **array);
    *array = more ? more : *array;
    return more != NULL;
}

static bool grow_frames(struct weir_motion_clips *c, size_t n)
{
    return grow(&c->root_pos_w, n, 3) && grow(&c->root_quat, n, 4) && grow(&c->root_vel_w, n, 3) &&
           grow(&c->root_ang_vel_w, n, 3) && grow(&c->dof_pos, n, c->dofs) && grow(&c->dof_vel, n, c->dofs) &&
           grow(&c->key_body_pos_w, n, 3 * c->bodies);
}

/* Grows the arrays if necessary. Doubles their capacity, so that adding many clips copies each frame only a few times.
 * The first clip gets exactly the memory it needs. */
static bool reserve(struct store *store, size_t clips, size_t frames)
{
    if (clips > store->clip_capacity) {
        size_t n = clips > 2 * store->clip_capacity ? clips : 2 * store->clip_capacity;
        struct weir_motion_clip *more = realloc(store->clips.clip, n * sizeof *more);
        if (!more)
            return false;
        store->clips.clip = more;
        store->clip_capacity = n;
    }
    if (frames > store->frame_capacity) {
        size_t n = frames > 2 * store->frame_capacity ? frames : 2 * store->frame_capacity;
        if (!grow_frames(&store->clips, n))
            return false;
        store->frame_capacity = n;
    }
    return true;
}

int weir_motion_clips_add(struct weir_motion_clips *clips, size_t frames, double fps, struct weir_motion_clip **added,
                          struct weir_err *err)
{
    *added = NULL;
    if (frames < 2)
        return weir_err_set(err, -EINVAL, "has %zu frame%s; a motion needs at least 2", frames, frames == 1 ? "" : "s");
    if (!(fps > 0) || !((float)(1 / fps) >= FLT_MIN) || !((float)(1 / fps) <= FLT_MAX))
        return weir_err_set(err, -EINVAL, "fps is %g; it must be a positive number of frames per second", fps);
    if (clips->clips >= WEIR_MOTION_CLIPS_MAX || frames > (size_t)INT32_MAX - clips->frames)
        return weir_err_set(err, -EFBIG, "more than %d clips or %d frames in total; use fewer motions",
                            WEIR_MOTION_CLIPS_MAX, INT32_MAX);
    if (!reserve((struct store *)clips, clips->clips + 1, clips->frames + frames))
        return no_memory(err);
    *added = &clips->clip[clips->clips++];
    **added = (struct weir_motion_clip){
        .first_frame = clips->frames, .frames = frames, .fps = fps, .duration_s = (double)(frames - 1) / fps};
    clips->frames += frames;
    return 0;
}
