#include "bench/limits.h"
#include "bench/simplejpeg_side.h"
#include "datasets/synth/synth.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { FRAMES_MAX = 4096, IMAGES_MIN_PER_WORKER = 64 };

void limits_config(const struct limits_options *o, const struct limits_data *data, const struct limits_format *format,
                   int workers, struct weir_loader_config *config)
{
    weir_loader_config_default(config);
    config->data = data->path;
    config->num_workers = workers;
    config->batch_size = o->batch_size;
    config->prefetch = o->prefetch;
    config->num_epochs = 1000000; /* more than needed; trials stop after a given time */
    config->train_split = 1;
    config->format.dtype = format->dtype;
    config->format.layout = format->layout;
    config->image_width = format->width;
    config->image_height = format->height;
    for (int c = 0; c < 3 && format->dtype == WEIR_DTYPE_F32; c++) {
        config->format.mean[c] = 0.5f;
        config->format.std[c] = 0.25f;
    }
}

static void config_of(const struct limits_options *o, const struct comparison *c, struct weir_loader_config *config)
{
    limits_config(o, c->data, c->format, c->workers, config);
    config->decoder = c->decoder;
}

static struct turn turn_of(const struct limits_options *o, int workers)
{
    return (struct turn){o->seconds, IMAGES_MIN_PER_WORKER * workers};
}

static int make_data(const struct limits_data *data, struct weir_err *err)
{
    struct stat st;
    if (stat(data->path, &st) == 0)
        return 0;
    struct weir_synth_config config;
    weir_synth_config_default(&config);
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s.part", data->path) >= (int)sizeof part)
        return weir_err_set(err, -ENAMETOOLONG, "%s: the path is too long", data->path);
    config.out = part;
    config.format = "act-jpeg";
    config.cameras = "top,left,right,low";
    config.episodes = 6;
    config.steps = 40;
    config.quality = data->quality_made;
    fprintf(stderr, "generating %s: 960 frames of 640x480 at quality %d\n", data->path, data->quality_made);
    int rc = weir_synth_write(&config, err);
    return rc == 0 && rename(part, data->path) != 0 ? weir_err_set(err, -errno, "%s: %s", data->path, strerror(errno))
                                                    : rc;
}

/* Measures the peak memory of a process that only loads. Must be called before the other sides load their frames. */
static int measure_memory(const struct limits_options *o, struct comparison *c, struct weir_err *err)
{
    struct weir_loader_config config;
    struct weir_side side;
    struct turn turn = turn_of(o, c->workers);
    config_of(o, c, &config);
    int rc = weir_side_peak(&config, &turn, &side, &c->peak_bytes, err);
    if (rc < 0)
        return rc;
    c->bound_bytes = side.slots_bytes + side.index_bytes + (uint64_t)side.workers * side.extent_max + 64000000;
    return 0;
}

static int measure_harness(const struct limits_options *o, struct comparison *c, struct weir_err *err)
{
    struct weir_loader_config config;
    struct weir_side side;
    struct turn turn = turn_of(o, c->workers);
    config_of(o, c, &config);
    config.io = "null";
    config.decoder = "null";
    int rc = weir_side_run(&config, &turn, &side, err);
    c->harness_tasks_per_s = side.tasks_per_s;
    c->harness_images_per_s = side.images_per_s;
    return rc;
}

/* ---- interleaved trials ---- */

/* State of the sides that are compared on one dataset. */
struct sides {
    const struct limits_options *o;
    struct raw_frames frames;
    uint64_t next;                      /* next frame of the libjpeg-turbo side */
    struct simplejpeg_side *simplejpeg; /* NULL if simplejpeg is not compared */
    int n_weir;                         /* number of Weir's decoders; 0 with --raw-only */
};

static int raw_turn(struct sides *sides, const struct comparison *c, double seconds, int images_min, double *rate,
                    struct weir_err *err)
{
    *rate = raw_turbo_rate(&sides->frames, c->workers, seconds, images_min, &sides->next);
    return *rate < 0 ? weir_err_set(err, -EBADMSG, "%s: libjpeg-turbo cannot decode a frame", c->data->path) : 0;
}

static int weir_turn(const struct sides *sides, const struct comparison *c, int round, struct weir_side *side,
                     struct weir_err *err)
{
    struct weir_loader_config config;
    struct turn turn = turn_of(sides->o, c->workers);
    config_of(sides->o, c, &config);
    config.seed = (uint64_t)round;
    return weir_side_run(&config, &turn, side, err);
}

static void note(struct comparison *c, const struct weir_side *side, int rounds)
{
    series_add(&c->weir, side->images_per_s);
    c->split_error = side->split_error > c->split_error ? side->split_error : c->split_error;
    c->profiler_share = side->profiler_share > c->profiler_share ? side->profiler_share : c->profiler_share;
    c->decode_share += side->decode_share / rounds;
    c->convert_share += side->convert_share / rounds;
    c->read_share += side->read_share / rounds;
    c->wait_share += side->wait_share / rounds;
}

/* Runs one trial of each side. A different side comes first in each round, so that a machine that speeds up or slows
 * down favours no side. c has one comparison per decoder of Weir. */
static int measure_round(struct sides *sides, struct comparison *c, int round, struct weir_err *err)
{
    const struct limits_options *o = sides->o;
    struct turn turn = turn_of(o, c->workers);
    struct weir_side weir[LIMITS_LIST_MAX];
    double raw = 0, simplejpeg = 0;
    int n = 1 + sides->n_weir + (sides->simplejpeg ? 1 : 0), rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        int side = (round + i) % n;
        if (side == 0)
            rc = raw_turn(sides, c, turn.seconds, turn.images_min, &raw, err);
        else if (side <= sides->n_weir)
            rc = weir_turn(sides, &c[side - 1], round, &weir[side - 1], err);
        else
            rc = simplejpeg_side_rate(sides->simplejpeg, c->workers, turn.seconds, turn.images_min, &simplejpeg, err);
    }
    if (rc < 0)
        return rc;
    series_add(&c->raw, raw);
    if (sides->simplejpeg)
        series_add(&c->simplejpeg, simplejpeg);
    for (int i = 0; i < sides->n_weir; i++)
        note(&c[i], &weir[i], o->rounds);
    return 0;
}

/* Warms up libjpeg-turbo and simplejpeg for a fifth of a trial. Weir's trials contain their own warm-up. */
static int warm_up(struct sides *sides, const struct comparison *c, struct weir_err *err)
{
    double ignored, seconds = sides->o->seconds / 5;
    int rc = raw_turn(sides, c, seconds, 0, &ignored, err);
    return rc == 0 && sides->simplejpeg ? simplejpeg_side_rate(sides->simplejpeg, c->workers, seconds, 0, &ignored, err)
                                        : rc;
}

/* Runs n comparisons that differ only in the decoder. */
static int compare(struct sides *sides, struct comparison *c, int n, struct weir_err *err)
{
    const struct limits_options *o = sides->o;
    int turns = o->rounds * (1 + sides->n_weir + (sides->simplejpeg ? 1 : 0));
    fprintf(stderr, "%s, %s, %d workers: %d trials of %g s\n", c->data->path, c->format->name, c->workers, turns,
            o->seconds);
    int rc = o->raw_only ? 0 : measure_harness(o, c, err);
    if (rc == 0)
        rc = warm_up(sides, c, err);
    for (int i = 0; i < o->rounds && rc == 0; i++)
        rc = measure_round(sides, c, i, err);
    for (int i = 1; i < n && rc == 0; i++) { /* these figures do not depend on Weir's decoder */
        c[i].raw = c[0].raw;
        c[i].simplejpeg = c[0].simplejpeg;
        c[i].harness_tasks_per_s = c[0].harness_tasks_per_s;
        c[i].harness_images_per_s = c[0].harness_images_per_s;
    }
    return rc;
}

/* Starts simplejpeg. If it is missing, this is an error only with --simplejpeg. Otherwise data->simplejpeg gets the
 * reason. */
static int open_simplejpeg(struct sides *sides, struct limits_data *data, struct weir_err *err)
{
    const char *python = sides->o->simplejpeg;
    struct weir_err why = WEIR_ERR_NONE;
    if (python && strcmp(python, "none") == 0) {
        snprintf(data->simplejpeg, sizeof data->simplejpeg, "--simplejpeg none");
        return 0;
    }
    int rc = simplejpeg_side_open(&sides->simplejpeg, python, &sides->frames, &why);
    if (rc < 0 && (python || rc != -ENOENT))
        return weir_err_set(err, rc, "simplejpeg: %s", why.text);
    data->has_simplejpeg = rc == 0;
    snprintf(data->simplejpeg, sizeof data->simplejpeg, "%s",
             rc == 0 ? simplejpeg_side_library(sides->simplejpeg) : why.text);
    return 0;
}

static void note_frames(const struct raw_frames *frames, struct limits_data *data)
{
    data->frames = frames->n;
    data->width = frames->width;
    data->height = frames->height;
    data->quality = raw_frames_quality(frames);
    for (int i = 0; i < frames->n; i++)
        data->bytes_mean += (double)frames->lengths[i] / frames->n;
}

static int measure_data(const struct limits_options *o, const struct limits_plan *plan, struct limits_data *data,
                        struct comparison *c, struct weir_err *err)
{
    struct sides sides = {.o = o, .n_weir = o->raw_only ? 0 : plan->n_decoders};
    int rc = raw_frames_load(&sides.frames, data->path, FRAMES_MAX, err);
    if (rc == 0)
        note_frames(&sides.frames, data);
    if (rc == 0 && !o->raw_only)
        rc = open_simplejpeg(&sides, data, err);
    for (int i = 0; i < plan->n_formats * plan->n_counts && rc == 0; i++)
        rc = compare(&sides, &c[i * plan->n_decoders], plan->n_decoders, err);
    simplejpeg_side_close(&sides.simplejpeg);
    raw_frames_free(&sides.frames);
    return rc;
}

int limits_measure(const struct limits_options *o, struct limits_plan *plan,
                   void (*done)(const struct limits_options *o, const struct limits_plan *plan,
                                const struct limits_data *data),
                   struct weir_err *err)
{
    int per_data = plan->n_formats * plan->n_counts * plan->n_decoders, rc = 0;
    for (int i = 0; i < plan->n_data && rc == 0; i++)
        rc = make_data(&plan->data[i], err);
    for (int i = 0; i < plan->n_data * per_data && rc == 0 && !o->raw_only; i++)
        rc = measure_memory(o, &plan->comparisons[i], err);
    for (int i = 0; i < plan->n_data && rc == 0; i++) {
        rc = measure_data(o, plan, &plan->data[i], &plan->comparisons[i * per_data], err);
        if (rc == 0 && done)
            done(o, plan, &plan->data[i]);
    }
    return rc;
}
