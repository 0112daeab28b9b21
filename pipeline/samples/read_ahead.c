#include "pipeline/samples/read_ahead.h"
#include "datasets/open_dataset.h"
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
};
static const double NEARLY_ALL = 0.95; /* if this fraction is in the page cache, read-ahead gains nothing */

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

/* Finds extents of frames spread over the dataset. most: max bytes of each extent. */
static int sample_frames(const struct weir_dataset *dataset, struct weir_extent *extents, int n, size_t most)
{
    int found = 0, episodes = weir_dataset_episodes(dataset), cameras = weir_dataset_cameras(dataset);
    for (int i = 0; i < n; i++) {
        uint64_t random = mix((uint64_t)i + 1);
        int episode = (int)(random % (uint64_t)episodes);
        int t = (int)((random >> 32) % (uint64_t)weir_dataset_steps(dataset, episode));
        int camera = cameras ? i % cameras : 0;
        if (!cameras || !weir_read_plan_frame(dataset, episode, camera, t, &extents[found]))
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

/* ---- read-ahead ---- */

/* Returns whether frames can be read ahead: not those that are in blocks of chunks. */
static bool has_extents(const struct weir_dataset *dataset)
{
    int rows, file;
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        for (int c = 0; c < weir_dataset_cameras(dataset); c++)
            if (!weir_shares_blocks(dataset, e, c, &rows) || weir_dataset_video(dataset, e, c, &file))
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
    if (weir_read_plan_open(&r->plan, s) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    struct weir_ahead_config config = {
        .engine = r->used,
        .set = s->files,
        .depth = s->setup.config.io_depth,
        .takers = s->setup.config.num_workers,
        .extent_max = weir_read_plan_extent_max(r->plan),
        .next = weir_read_plan_next,
        .recorder = s->recorder,
        .taken = &s->next_task,
        .user = r->plan,
    };
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_ahead_open(&r->ahead, &config, &why);
    if (rc == 0 || strcmp(s->setup.config.io, "auto") != 0)
        return rc == 0 ? 0 : weir_err_set(err, rc, "%s", why.text);
    r->used = weir_file_set_engine(s->files); /* auto must choose an available engine, so it uses the default */
    snprintf(r->choice.why, sizeof r->choice.why, "%.250s", why.text);
    return 0;
}

void weir_reading_close(struct weir_shared *s)
{
    struct weir_reading *r = &s->reading;
    weir_ahead_close(&r->ahead);
    weir_file_set_close(&r->look);
    weir_read_plan_close(&r->plan);
    free(r->samples);
    r->samples = NULL;
}

void weir_reading_in_flight(const struct weir_shared *s, struct weir_loader_counts *counts)
{
    struct weir_ahead_facts ahead;
    if (!s->reading.ahead || !weir_io_is_remote(s->reading.used))
        return;
    weir_ahead_facts(s->reading.ahead, &ahead);
    counts->in_flight = ahead.in_flight;
    counts->in_flight_most = ahead.depth;
    counts->in_flight_fixed = s->setup.config.io_depth > 0;
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
