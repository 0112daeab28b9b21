#include "pipeline/samples/read_ahead.h"
#include "pipeline/samples/sampler.h"
#include "pipeline/samples/shared.h"
#include "weir/loader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_HANDLES = 2,        /* number of open files for cache queries */
    SAMPLES = 64,            /* frames that represent the dataset */
    SAMPLE_BYTES = 16 << 10, /* assumed size of a frame in a padded row, whose true size is unknown before reading */
    TRY_SAMPLES = 1536,      /* frames used to compare engines */
    WINDOW = 1 << 16,        /* max tasks to look ahead if there is little to read */
    LOOK_AT_ONCE = 1000,     /* max frames to examine before reading the extents found */
};
static const double NEARLY_ALL = 0.95; /* if this fraction is in the page cache, read-ahead gains nothing */

/* Position of the read-ahead thread. */
struct weir_read_plan {
    struct weir_shared *shared;
    uint64_t task_number; /* next task to examine */
    int position;         /* the next frame's position in its camera's window */
    uint64_t sequence;    /* number of the batch in plan and samples; UINT64_MAX = none */
    struct weir_plan plan;
    struct weir_sample *samples;
};

int weir_reading_check(const char *engine, bool direct, struct weir_err *err)
{
    if (strcmp(engine, "auto") == 0)
        return 0;
    return direct ? weir_io_check_direct(engine, err) : weir_io_check(engine, err);
}

/* ---- samples of the dataset ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Finds the first extent of a frame. Returns false if the frame has none. */
static bool extent_of(const struct weir_dataset *dataset, int episode, int camera, int t, struct weir_extent *extent)
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

/* Finds extents of frames spread over the dataset. most: max bytes of each extent. */
static int sample_frames(const struct weir_dataset *dataset, struct weir_extent *extents, int n, size_t most)
{
    int found = 0, episodes = weir_dataset_episodes(dataset), cameras = weir_dataset_cameras(dataset);
    for (int i = 0; i < n; i++) {
        uint64_t random = mix((uint64_t)i + 1);
        int episode = (int)(random % (uint64_t)episodes);
        int t = (int)((random >> 32) % (uint64_t)weir_dataset_steps(dataset, episode));
        int camera = cameras ? i % cameras : 0;
        if (!cameras || !extent_of(dataset, episode, camera, t, &extents[found]))
            continue;
        extents[found].length = extents[found].length < most ? extents[found].length : most;
        found++;
    }
    return found;
}

/* ---- the engine ---- */

static void choose(struct weir_shared *s)
{
    struct weir_reading *r = &s->reading;
    struct weir_extent *extents = malloc(sizeof *extents * TRY_SAMPLES);
    struct weir_choice_config config = {
        .set = r->look,
        .threads = s->setup.config.num_workers,
        .depth = s->setup.config.io_depth,
        .extents = extents,
        .n = extents ? sample_frames(s->setup.dataset, extents, TRY_SAMPLES, SIZE_MAX) : 0,
    };
    weir_io_choose(&r->choice, &config);
    r->used = r->choice.engine;
    free(extents);
}

int weir_reading_open(struct weir_shared *s, struct weir_err *err)
{
    struct weir_reading *r = &s->reading;
    r->used = s->setup.config.io;
    r->samples = malloc(sizeof *r->samples * SAMPLES);
    if (!r->samples)
        return weir_err_set(err, -ENOMEM, "out of memory");
    r->n_samples = sample_frames(s->setup.dataset, r->samples, SAMPLES, SAMPLE_BYTES);
    int rc = s->setup.config.cold ? weir_page_cache_drop(s->files, &r->cold, err) : 0;
    if (rc == 0 && s->setup.config.direct)
        rc = weir_file_set_direct(s->files, err);
    if (rc == 0 && weir_file_set_copy(&r->look, s->files, LOOK_HANDLES) < 0)
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    if (rc < 0)
        return rc;
    r->cached = weir_reading_cached(s);
    if (strcmp(s->setup.config.io, "auto") != 0)
        return 0;
    choose(s);
    if (s->setup.config.cold) /* drops the pages that the comparison has read */
        rc = weir_page_cache_drop(s->files, &r->cold, err);
    return rc;
}

double weir_reading_cached(struct weir_shared *s)
{
    return weir_page_cache_fraction(s->reading.look, s->reading.samples, s->reading.n_samples);
}

void weir_reading_probe(const struct weir_shared *s, int workers, struct weir_storage_probe *probe)
{
    enum { EXTENTS = 512, DEPTH_LEAST = 16, DEPTH_MOST = 64 };
    struct weir_extent *extents = malloc(sizeof *extents * EXTENTS);
    int depth = 4 * workers > DEPTH_LEAST ? 4 * workers : DEPTH_LEAST;
    *probe = (struct weir_storage_probe){0};
    if (extents)
        weir_storage_probe(probe, s->files, extents, sample_frames(s->setup.dataset, extents, EXTENTS, SIZE_MAX),
                           depth < DEPTH_MOST ? depth : DEPTH_MOST);
    free(extents);
}

/* ---- the plan ---- */

/* Plans each batch only once, for all its tasks. */
static void plan_batch(struct weir_read_plan *p, uint64_t sequence)
{
    if (p->sequence == sequence)
        return;
    weir_sampler_plan(p->shared->setup.sampler, sequence, &p->plan, p->samples);
    p->sequence = sequence;
}

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

/* Returns the window of the task's camera; NULL for the task of a state. */
static const struct weir_window *window_of(const struct weir_read_plan *p, uint64_t task)
{
    const struct weir_shared *s = p->shared;
    int camera = (int)(task % (uint64_t)s->slots.tasks_per_sample);
    return camera < s->setup.layout.n_cameras ? &s->setup.windows.cameras[camera] : NULL;
}

/* Finds the extent of the frame at the plan's position. Returns false if the frame cannot be read ahead, or will not be
 * read. */
static bool frame_at(const struct weir_read_plan *p, uint64_t task, struct weir_extent *extent)
{
    const struct weir_shared *s = p->shared;
    int sample = (int)(task / (uint64_t)s->slots.tasks_per_sample),
        camera = (int)(task % (uint64_t)s->slots.tasks_per_sample);
    const struct weir_window *window = window_of(p, task);
    if (sample >= p->plan.n || !window)
        return false;
    struct weir_sample of = p->samples[sample];
    int steps = weir_sampler_steps(s->setup.sampler, of.episode);
    int t = weir_window_step(window, p->position, of.t, steps), rows;
    return !weir_shares_blocks(s->setup.dataset, of.episode, camera, &rows) &&
           !weir_frame_cache_has(&s->cache, of.episode, camera, t) && reads_frame(p, window, sample, t) &&
           extent_of(s->setup.dataset, of.episode, camera, t, extent);
}

static int next_extent(void *user, uint64_t from, uint64_t *task_number, struct weir_extent *extent)
{
    struct weir_read_plan *p = user;
    const struct weir_shared *s = p->shared;
    uint64_t per_batch = (uint64_t)s->slots.tasks_per_batch;
    if (p->task_number < from) {
        p->task_number = from;
        p->position = 0;
    }
    for (int looked = 0; p->task_number / per_batch < s->setup.total; looked++) {
        if (p->task_number > from + WINDOW || looked == LOOK_AT_ONCE)
            return 0;
        plan_batch(p, p->task_number / per_batch);
        const struct weir_window *window = window_of(p, p->task_number % per_batch);
        bool there = frame_at(p, p->task_number % per_batch, extent);
        *task_number = p->task_number;
        p->position = window && p->position + 1 < window->n ? p->position + 1 : 0;
        p->task_number += p->position == 0;
        if (there)
            return 1;
    }
    return -1;
}

static bool has_extents(const struct weir_dataset *dataset)
{
    int rows;
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        for (int c = 0; c < weir_dataset_cameras(dataset); c++)
            if (!weir_shares_blocks(dataset, e, c, &rows))
                return true;
    return false;
}

int weir_read_ahead_open(struct weir_shared *s, struct weir_err *err)
{
    struct weir_reading *r = &s->reading;
    enum weir_ahead_kind kind = weir_ahead_kind(r->used);
    bool hints = kind == WEIR_AHEAD_HINTS;
    if (kind == WEIR_AHEAD_NOT || (hints && (s->setup.config.direct || r->cached < 0 || r->cached >= NEARLY_ALL)) ||
        !has_extents(s->setup.dataset))
        return 0;
    r->plan = calloc(1, sizeof *r->plan);
    if (r->plan)
        r->plan->samples = calloc((size_t)s->setup.config.batch_size, sizeof *r->plan->samples);
    if (!r->plan || !r->plan->samples)
        return weir_err_set(err, -ENOMEM, "out of memory");
    r->plan->shared = s;
    r->plan->sequence = UINT64_MAX;
    struct weir_ahead_config config = {
        .engine = r->used,
        .set = s->files,
        .depth = s->setup.config.io_depth,
        .takers = s->setup.config.num_workers,
        .extent_max = weir_dataset_extent_max(s->setup.dataset),
        .next = next_extent,
        .taken = &s->next_task,
        .user = r->plan,
    };
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_ahead_open(&r->ahead, &config, &why);
    if (rc == 0 || strcmp(s->setup.config.io, "auto") != 0)
        return rc == 0 ? 0 : weir_err_set(err, rc, "%s", why.text);
    r->used = weir_io_default(); /* auto must choose an available engine, so it uses the default */
    snprintf(r->choice.why, sizeof r->choice.why, "%.250s", why.text);
    return 0;
}

void weir_reading_close(struct weir_shared *s)
{
    struct weir_reading *r = &s->reading;
    weir_ahead_close(&r->ahead);
    weir_file_set_close(&r->look);
    if (r->plan)
        free(r->plan->samples);
    free(r->plan);
    free(r->samples);
    r->plan = NULL;
    r->samples = NULL;
}

void weir_reading_facts(const struct weir_shared *s, struct weir_loader_facts *facts)
{
    const struct weir_reading *r = &s->reading;
    facts->io_requested = s->setup.config.io;
    facts->io_used = r->used;
    facts->io_why = r->choice.why;
    facts->io_features = "";
    facts->io_cached = r->cached;
    facts->cold_bytes = r->cold.bytes;
    facts->cold_stayed = r->cold.bytes ? (double)r->cold.stayed_bytes / (double)r->cold.bytes : 0;
    if (!r->ahead)
        return;
    struct weir_ahead_facts ahead;
    weir_ahead_facts(r->ahead, &ahead);
    facts->io_depth = ahead.depth;
    facts->io_pool_bytes = ahead.pool_bytes;
    facts->io_features = ahead.features;
}
