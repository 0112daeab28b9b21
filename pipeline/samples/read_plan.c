#include "datasets/open_dataset.h"
#include "pipeline/samples/fetch_priv.h"
#include "pipeline/samples/read_ahead.h"
#include "pipeline/samples/sampler.h"
#include "pipeline/samples/shared.h"
#include "pipeline/samples/slot.h"

#include <errno.h>
#include <stdlib.h>

enum {
    WINDOW = 1 << 16,        /* max tasks to look ahead if there is little to read */
    UNFOUND_WINDOW = 256,    /* the same before frames whose location is found by the tasks before them */
    LOOK_AT_ONCE = 1000,     /* max frames to examine before reading the extents found */
    PIECE_BYTES = 256 << 10, /* longer groups of pictures are read ahead in several extents */
};

/* Position in the groups of pictures that a task reads. */
struct groups {
    bool is_open;
    int from, to;          /* remaining samples that the task loads: indexes in the order of the batch */
    int block, last_block; /* next and last block */
    uint32_t sample, last; /* next and last coded sample of the current block; none if sample > last */
    struct weir_video_run run;
    uint64_t planned; /* bytes of the run */
};

struct weir_read_plan {
    const struct weir_shared *shared;
    uint64_t task_number; /* next task to examine */
    int position;         /* the next frame's position in its camera's window */
    struct groups groups; /* instead of position, for a video */
    uint64_t sequence;    /* number of the batch in plan, samples, order and rank; UINT64_MAX = none */
    struct weir_plan plan;
    struct weir_sample *samples;
    struct weir_slot_order *order;
    int *rank;
};

/* The task that is examined. */
struct task {
    int sample, camera;
    const struct weir_window *window; /* of the camera */
};

int weir_read_plan_open(struct weir_read_plan **out, const struct weir_shared *shared)
{
    size_t n = (size_t)shared->setup.config.batch_size;
    struct weir_read_plan *p = *out = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->shared = shared;
    p->sequence = UINT64_MAX;
    p->samples = calloc(n, sizeof *p->samples);
    p->order = calloc(n, sizeof *p->order);
    p->rank = calloc(n, sizeof *p->rank);
    if (p->samples && p->order && p->rank)
        return 0;
    weir_read_plan_close(out);
    return -ENOMEM;
}

void weir_read_plan_close(struct weir_read_plan **plan)
{
    struct weir_read_plan *p = *plan;
    if (!p)
        return;
    free(p->samples);
    free(p->order);
    free(p->rank);
    free(p);
    *plan = NULL;
}

size_t weir_read_plan_extent_max(const struct weir_read_plan *plan)
{
    size_t max = weir_dataset_extent_max(plan->shared->setup.dataset);
    return max > PIECE_BYTES ? max : PIECE_BYTES;
}

bool weir_read_plan_frame(const struct weir_dataset *dataset, int episode, int camera, int t,
                          struct weir_extent *extent)
{
    struct weir_location location;
    int how = weir_locate(dataset, episode, camera, t, &location);
    if (how == WEIR_HOW_EXTENT || how == WEIR_HOW_VIDEO) {
        *extent = (struct weir_extent){location.file, location.offset, location.length};
    } else if (how == WEIR_HOW_BLOCK) {
        struct weir_block block;
        weir_block_of(dataset, episode, camera, t, &block);
        weir_block_piece(&block, 0, &extent->file, &extent->offset, &extent->length);
    } else {
        return false;
    }
    return extent->length > 0;
}

/* Plans each batch only once, for all its tasks. */
static void plan_batch(struct weir_read_plan *p, uint64_t sequence)
{
    if (p->sequence == sequence)
        return;
    const struct weir_setup *setup = &p->shared->setup;
    weir_sampler_plan(setup->sampler, sequence, &p->plan, p->samples);
    p->sequence = sequence;
    if (setup->block_rows > 0)
        weir_order_sort(p->order, p->rank, p->samples, p->plan.n, setup->sampler);
}

/* ---- frames that have extents of their own ---- */

/* Returns whether a sample at step `at` has this frame at one of the first n positions of its window. */
static bool takes(const struct weir_window *window, int n, int at, int steps, int t)
{
    for (int i = 0; i < n; i++)
        if (weir_window_step(window, i, at, steps) == t)
            return true;
    return false;
}

/* Returns whether the task of this sample reads this frame. It does not if an earlier sample of the batch (dedup.c), or
 * an earlier position of the same sample, reads it. Very large batches are not checked, so some of their frames are
 * read ahead in vain. */
static bool reads_frame(const struct weir_read_plan *p, const struct weir_window *window, int sample, int t)
{
    enum { LOOK_MAX = 1024 };
    struct weir_sample of = p->samples[sample];
    int steps = weir_sampler_steps(p->shared->setup.sampler, of.episode);
    if (takes(window, p->position, of.t, steps, t))
        return false;
    for (int i = 0; window->n > 1 && i < p->plan.n && p->plan.n <= LOOK_MAX; i++) {
        struct weir_sample other = p->samples[i];
        bool before = other.t < of.t || (other.t == of.t && i < sample);
        if (other.episode == of.episode && before && takes(window, window->n, other.t, steps, t))
            return false;
    }
    return true;
}

/* Finds the extent of the frame at the plan's position. Returns false if the frame cannot be read ahead, or will not be
 * read. */
static bool frame_at(const struct weir_read_plan *p, const struct task *task, struct weir_extent *extent)
{
    const struct weir_shared *s = p->shared;
    struct weir_sample of = p->samples[task->sample];
    int steps = weir_sampler_steps(s->setup.sampler, of.episode);
    int t = weir_window_step(task->window, p->position, of.t, steps), rows;
    return !weir_shares_blocks(s->setup.dataset, of.episode, task->camera, &rows) &&
           !weir_frame_cache_has(&s->cache, of.episode, task->camera, t) &&
           reads_frame(p, task->window, task->sample, t) &&
           weir_read_plan_frame(s->setup.dataset, of.episode, task->camera, t, extent);
}

/* ---- videos ---- */

/* Finds what the task of this sample reads. This is nothing if an earlier task loads its frames (coalesce.c). Whether
 * the task of an earlier batch loads them is not known yet. */
static void open_groups(struct weir_read_plan *p, const struct task *task)
{
    const struct weir_setup *setup = &p->shared->setup;
    struct groups *g = &p->groups;
    *g = (struct groups){.is_open = true, .sample = 1};
    weir_sharing_group(setup, p->order, p->plan.n, p->rank[task->sample], task->camera, &g->from, &g->to);
    g->block = weir_sharing_first_block(setup, &p->order[g->from], task->camera);
    g->last_block = weir_sharing_last_block(setup, &p->order[g->to - 1], task->camera);
    for (int i = g->from; i < g->to; i++)
        if (p->order[i].sample < task->sample)
            g->last_block = g->block - 1;
}

/* Extends the coded samples to read up to those that a sample of the batch needs from the block. */
static void add_frames(struct weir_read_plan *p, const struct task *task, const struct weir_video_track *track,
                       const struct weir_slot_order *at, int block)
{
    const struct weir_shared *s = p->shared;
    const struct weir_dataset *dataset = s->setup.dataset;
    for (int i = 0; i < task->window->n; i++) {
        int t = weir_window_step(task->window, i, at->t, at->steps);
        if (weir_block_number(dataset, at->episode, task->camera, t) != block ||
            weir_frame_cache_has(&s->cache, at->episode, task->camera, t))
            continue;
        uint32_t last = weir_video_track_at_rank(track, weir_dataset_video_rank(dataset, at->episode, task->camera, t));
        bool is_first = p->groups.sample > p->groups.last;
        p->groups.sample = weir_video_track_block_sync(track, (uint32_t)block);
        p->groups.last = is_first || last > p->groups.last ? last : p->groups.last;
    }
}

/* Moves to the next block with coded samples to read. Returns false after the last one. */
static bool next_block(struct weir_read_plan *p, const struct task *task, const struct weir_video_track *track)
{
    const struct weir_setup *setup = &p->shared->setup;
    struct groups *g = &p->groups;
    for (; g->block <= g->last_block && g->sample > g->last; g->block++) {
        while (g->from < g->to && weir_sharing_last_block(setup, &p->order[g->from], task->camera) < g->block)
            g->from++;
        for (int i = g->from; i < g->to && weir_sharing_first_block(setup, &p->order[i], task->camera) <= g->block; i++)
            add_frames(p, task, track, &p->order[i], g->block);
    }
    return g->sample <= g->last;
}

/* Finds the next extent of the task's groups of pictures. Returns false after the last one. */
static bool group_extent(struct weir_read_plan *p, const struct task *task, const struct weir_video_track *track,
                         int file, struct weir_extent *extent)
{
    struct groups *g = &p->groups;
    if (!g->is_open)
        open_groups(p, task);
    while (g->planned == g->run.bytes) {
        if (g->sample > g->last && !next_block(p, task, track))
            return false;
        g->run = weir_video_run_from(track, g->sample, g->last);
        g->sample += g->run.n;
        g->planned = 0;
    }
    uint64_t left = g->run.bytes - g->planned;
    *extent = (struct weir_extent){file, g->run.offset + g->planned, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES};
    g->planned += extent->length;
    return true;
}

/* ---- all tasks ---- */

static void next_task(struct weir_read_plan *p, uint64_t task_number)
{
    p->task_number = task_number;
    p->position = 0;
    p->groups.is_open = false;
}

/* Returns whether the location of the next task's frames is not known yet. */
static bool is_unfound(const struct weir_read_plan *p)
{
    const struct weir_shared *s = p->shared;
    uint64_t task = p->task_number % (uint64_t)s->slots.tasks_per_batch;
    int sample = (int)(task / (uint64_t)s->slots.tasks_per_sample),
        camera = (int)(task % (uint64_t)s->slots.tasks_per_sample);
    return sample < p->plan.n && camera < s->setup.layout.n_cameras &&
           weir_dataset_can_find_frames(s->setup.dataset, p->samples[sample].episode, camera);
}

/* Examines the next frame, or the next part of a video. Returns false if it is not to be read ahead. */
static bool examine(struct weir_read_plan *p, struct weir_extent *extent)
{
    const struct weir_shared *s = p->shared;
    uint64_t per_batch = (uint64_t)s->slots.tasks_per_batch, per_sample = (uint64_t)s->slots.tasks_per_sample;
    struct task task = {(int)(p->task_number % per_batch / per_sample), (int)(p->task_number % per_sample), NULL};
    if (task.sample >= p->plan.n || task.camera >= s->setup.layout.n_cameras) { /* the last task is that of the state */
        next_task(p, p->task_number + 1);
        return false;
    }
    task.window = &s->setup.windows.cameras[task.camera];
    int file, episode = p->samples[task.sample].episode;
    const struct weir_video_track *track = weir_dataset_video(s->setup.dataset, episode, task.camera, &file);
    bool found = track ? group_extent(p, &task, track, file, extent) : frame_at(p, &task, extent);
    if (track ? !found : ++p->position == task.window->n)
        next_task(p, p->task_number + 1);
    return found;
}

int weir_read_plan_next(void *user, uint64_t from, uint64_t *task_number, struct weir_extent *extent)
{
    struct weir_read_plan *p = user;
    const struct weir_shared *s = p->shared;
    uint64_t per_batch = (uint64_t)s->slots.tasks_per_batch;
    if (p->task_number < from)
        next_task(p, from);
    for (int looked = 0; p->task_number / per_batch < s->setup.total; looked++) {
        if (p->task_number > from + WINDOW || looked == LOOK_AT_ONCE)
            return 0;
        plan_batch(p, p->task_number / per_batch);
        if (p->task_number > from + UNFOUND_WINDOW && is_unfound(p))
            return 0;
        *task_number = p->task_number;
        if (examine(p, extent))
            return 1;
    }
    return -1;
}
