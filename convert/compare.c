#include "base/shortage.h"
#include "convert/plan.h"
#include "convert/units.h"
#include "datasets/open_dataset.h"
#include "decoders/frame_kind.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* State of one thread. */
struct comparer {
    struct weir_transcoder source;
    struct weir_fetcher copy;
    struct weir_decoder *decoder;
    uint8_t *pixels;
    size_t pixels_bytes;
};

/* Loss over the frames of a unit that were converted to JPEG. */
struct loss {
    double sum, worst; /* in dB */
    int lossy, worst_camera, worst_t;
};

struct comparison {
    const struct weir_convert_plan *plan;
    struct weir_dataset *copy;
    const char *path;
    struct weir_convert_report *report;
    struct weir_file_set *source_files, *copy_files;
    struct comparer *comparers;
    struct weir_units units;
    struct loss *losses; /* one per slot of weir_ordered_run */
    uint64_t done, total, lossy;
    double sum;
};

static int differs(const struct comparison *c, struct weir_err *err, int episode, const char *what)
{
    return weir_err_set(
        err, -EBADMSG,
        "%s: episode %d (from %s): %s differs from the source, so the copy is not used; remove %s.partial", c->path,
        episode, weir_dataset_episode_path(c->plan->dataset, c->plan->episodes[episode]), what,
        c->plan->config->target);
}

/* ---- everything except frames ---- */

static const char *text_of(const struct weir_dataset *dataset, int episode, const char *key)
{
    const char *other, *value;
    for (int i = 0; weir_dataset_text(dataset, episode, i, &other, &value); i++)
        if (strcmp(other, key) == 0)
            return value;
    return NULL;
}

static int compare_texts(const struct comparison *c, int episode, struct weir_err *err)
{
    const char *key, *value;
    for (int i = 0; weir_dataset_text(c->plan->dataset, c->plan->episodes[episode], i, &key, &value); i++) {
        const char *copied = text_of(c->copy, episode, key);
        char what[256];
        snprintf(what, sizeof what, "its text \"%.200s\"", key);
        if (strncmp(key, "weir_", 5) != 0 && (!copied || strcmp(copied, value) != 0))
            return differs(c, err, episode, what);
    }
    return 0;
}

static int compare_numbers(const struct comparison *c, int episode, bool actions, struct weir_err *err)
{
    const struct weir_copy *copy = &c->plan->copy;
    enum weir_number_type type, wanted = actions ? copy->action_type : copy->qpos_type;
    const void *read = actions ? weir_own_actions(c->copy, episode, &type) : weir_own_qpos(c->copy, episode, &type);
    size_t n = (size_t)weir_dataset_steps(c->copy, episode) * (size_t)(actions ? copy->action_dim : copy->qpos_dim);
    void *values;
    int rc = weir_plan_numbers(c->plan, episode, actions, &values, err);
    if (rc < 0)
        return rc;
    bool same = type == wanted && memcmp(read, values, n * weir_number_bytes(type)) == 0;
    free(values);
    return same ? 0 : differs(c, err, episode, actions ? "its action array" : "its state array");
}

static int compare_episodes(const struct comparison *c, struct weir_err *err)
{
    const struct weir_copy *copy = &c->plan->copy;
    if (weir_dataset_episodes(c->copy) != copy->n_episodes)
        return weir_err_set(err, -EBADMSG, "%s: the copy has %d episodes instead of %d; remove it and convert again",
                            c->path, weir_dataset_episodes(c->copy), copy->n_episodes);
    if (weir_dataset_qpos_dim(c->copy) != copy->qpos_dim || weir_dataset_action_dim(c->copy) != copy->action_dim)
        return differs(c, err, 0, "the number of state or action dimensions");
    if (weir_dataset_is_bgr(c->copy) != copy->is_bgr)
        return differs(c, err, 0, "the channel order (RGB or BGR)");
    int rc = 0;
    for (int e = 0; e < copy->n_episodes && rc == 0; e++) {
        if (weir_dataset_steps(c->copy, e) != weir_dataset_steps(c->plan->dataset, c->plan->episodes[e]))
            return differs(c, err, e, "its length");
        rc = compare_numbers(c, e, false, err);
        if (rc == 0)
            rc = compare_numbers(c, e, true, err);
        if (rc == 0)
            rc = compare_texts(c, e, err);
    }
    return rc;
}

/* ---- frames ---- */

static int fail_frame(const struct comparison *c, int episode, int camera, int t, int code, const char *reason,
                      struct weir_err *err)
{
    char name[768];
    weir_frame_name(c->copy, episode, camera, t, name, sizeof name);
    return weir_err_set(err, code, "%s: %s", name, reason);
}

/* Converts the source frame that the copy should contain at step t. */
static int make(const struct comparison *c, struct comparer *comparer, int episode, int camera, int t,
                const uint8_t **made, size_t *length, struct weir_err *err)
{
    bool substitutes = c->plan->config->on_error == WEIR_ON_ERROR_SUBSTITUTE;
    int rc = -EBADMSG;
    for (int at = t; at >= 0; at--) {
        rc = weir_transcode_frame(&comparer->source, c->plan->episodes[episode], camera, at, made, length);
        if (rc == 0 || !substitutes || weir_is_shortage(rc))
            break;
    }
    return rc < 0 ? weir_unit_bad(c->plan, episode, camera, t, rc, comparer->source.reason, err) : 0;
}

static int decode_copy(const struct comparison *c, struct comparer *comparer, int camera, const uint8_t *bytes,
                       size_t length, const char **reason)
{
    const struct weir_copy_camera *of = &c->plan->copy.cameras[camera];
    size_t needed = weir_transcode_pixels(c->plan, camera);
    if (needed > comparer->pixels_bytes) {
        free(comparer->pixels);
        comparer->pixels = malloc(needed);
        comparer->pixels_bytes = comparer->pixels ? needed : 0;
    }
    *reason = "out of memory for its pixels";
    if (!comparer->pixels)
        return -ENOMEM;
    struct weir_frame frame = {of->kind, bytes, length, of->width, of->height, NULL};
    int rc = weir_decode(comparer->decoder, &frame, comparer->pixels);
    *reason = weir_decoder_reason(comparer->decoder);
    return rc;
}

/* Returns the PSNR in dB; infinite for equal pixels. */
static double psnr(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        int difference = a[i] - b[i];
        sum += (uint64_t)(difference * difference);
    }
    return sum ? 10 * log10(255.0 * 255.0 * (double)n / (double)sum) : INFINITY;
}

static void add_loss(struct loss *loss, double db, int camera, int t)
{
    if (isinf(db))
        return;
    if (loss->lossy == 0 || db < loss->worst) {
        loss->worst = db;
        loss->worst_camera = camera;
        loss->worst_t = t;
    }
    loss->sum += db;
    loss->lossy++;
}

static int compare_frame(const struct comparison *c, struct comparer *comparer, int episode, int camera, int t,
                         struct loss *loss, struct weir_err *err)
{
    const uint8_t *made, *bytes;
    size_t made_length, length, pixels = weir_transcode_pixels(c->plan, camera);
    enum weir_make how = c->plan->makes[camera];
    int rc = make(c, comparer, episode, camera, t, &made, &made_length, err);
    if (rc < 0)
        return rc;
    rc = weir_fetch_frame(&comparer->copy, episode, camera, t, NULL, 0, &bytes, &length);
    if (rc < 0)
        return fail_frame(c, episode, camera, t, rc, comparer->copy.reason, err);
    size_t end = weir_frame_is_encoded(c->plan->probes[camera].kind) || how == WEIR_MAKE_JPEG || how == WEIR_MAKE_PNG
                     ? weir_frame_end(bytes, length)
                     : 0;
    length = end && how != WEIR_MAKE_PIXELS ? end : length;
    const char *reason = "";
    if (how == WEIR_MAKE_JPEG || how == WEIR_MAKE_PNG)
        rc = decode_copy(c, comparer, camera, bytes, length, &reason);
    if (rc < 0)
        return fail_frame(c, episode, camera, t, rc, reason, err);
    bool same = how == WEIR_MAKE_PNG ? memcmp(comparer->source.pixels, comparer->pixels, pixels) == 0
                                     : length == made_length && memcmp(bytes, made, length) == 0;
    if (how == WEIR_MAKE_JPEG)
        add_loss(loss, psnr(comparer->source.pixels, comparer->pixels, pixels), camera, t);
    if (same)
        return 0;
    char what[96];
    snprintf(what, sizeof what, "frame %d of camera %s", t, c->plan->copy.cameras[camera].name);
    return differs(c, err, episode, what);
}

static int work(void *user, int worker, uint64_t number, int slot, struct weir_err *err)
{
    struct comparison *c = user;
    const struct weir_unit *unit = &c->units.units[number];
    int rc = 0;
    c->losses[slot] = (struct loss){0};
    for (int camera = unit->camera; camera < unit->camera + unit->n_cameras && rc == 0; camera++)
        for (int t = unit->first; t < unit->first + unit->n && rc == 0; t++)
            rc = compare_frame(c, &c->comparers[worker], unit->episode, camera, t, &c->losses[slot], err);
    return rc;
}

static int deliver(void *user, uint64_t number, int slot, struct weir_err *err)
{
    struct comparison *c = user;
    const struct weir_unit *unit = &c->units.units[number];
    const struct loss *loss = &c->losses[slot];
    struct weir_convert_report *report = c->report;
    (void)err;
    c->done += (uint64_t)unit->n * (uint64_t)unit->n_cameras;
    if (loss->lossy > 0 && (c->lossy == 0 || loss->worst < report->psnr_worst)) {
        report->psnr_worst = loss->worst;
        weir_frame_name(c->plan->dataset, c->plan->episodes[unit->episode], loss->worst_camera, loss->worst_t,
                        report->psnr_worst_frame, sizeof report->psnr_worst_frame);
    }
    c->sum += loss->sum;
    c->lossy += (uint64_t)loss->lossy;
    return 0;
}

static void tick(void *user)
{
    const struct comparison *c = user;
    const struct weir_convert_config *config = c->plan->config;
    if (config->progress)
        config->progress(config->user, "checking", c->done, c->total);
}

/* ---- source and copy ---- */

static int open_copy(struct comparison *c, struct weir_err *err)
{
    char names[WEIR_CAMERAS_MAX * (WEIR_NAME_MAX + 1)] = "";
    for (int i = 0; i < c->plan->copy.n_cameras; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? "," : "",
                 c->plan->copy.cameras[i].name);
    struct weir_dataset_config config = {
        .size = sizeof config, .path = c->path, .cameras = names, .depth = true, .own_types = true, .split = "all"};
    int rc = weir_dataset_open(&c->copy, &config, err);
    if (rc == 0 &&
        (weir_fetch_files(c->plan->dataset, &c->source_files) < 0 || weir_fetch_files(c->copy, &c->copy_files) < 0))
        rc = weir_no_memory(err);
    return rc;
}

static int open_comparer(struct comparison *c, struct comparer *comparer, struct weir_err *err)
{
    struct weir_pixel_format format = {0};
    int width = 1;
    for (int i = 0; i < c->plan->copy.n_cameras; i++)
        width = c->plan->copy.cameras[i].width > width ? c->plan->copy.cameras[i].width : width;
    int rc = weir_transcoder_open(&comparer->source, c->plan, c->source_files, err);
    if (rc == 0)
        rc = weir_fetcher_open(&comparer->copy, c->copy, c->copy_files, weir_file_set_engine(c->copy_files), err);
    if (rc == 0)
        rc = weir_decoder_open(&comparer->decoder, weir_decoder_at(WEIR_DECODE_ON_CPU), &format, width, err);
    return rc;
}

static void close_comparer(struct comparer *comparer)
{
    weir_transcoder_close(&comparer->source);
    weir_fetcher_close(&comparer->copy);
    weir_decoder_close(&comparer->decoder);
    free(comparer->pixels);
}

static int compare_frames(struct comparison *c, int workers, struct weir_err *err)
{
    int rc = weir_units_make(&c->units, c->plan, false, 0, err);
    if (rc < 0)
        return rc;
    int window = weir_units_window(&c->units, workers), opened = 0;
    c->comparers = calloc((size_t)workers, sizeof *c->comparers);
    c->losses = calloc((size_t)window, sizeof *c->losses);
    rc = c->comparers && c->losses ? 0 : weir_no_memory(err);
    while (opened < workers && rc == 0)
        rc = open_comparer(c, &c->comparers[opened++], err);
    const struct weir_ordered run = {c->units.n, workers, window, work, deliver, tick, c};
    if (rc == 0)
        rc = weir_ordered_run(&run, err);
    while (opened > 0)
        close_comparer(&c->comparers[--opened]);
    free(c->comparers);
    free(c->losses);
    weir_units_free(&c->units);
    return rc;
}

int weir_convert_compare(const struct weir_convert_plan *plan, const char *path, int workers,
                         struct weir_convert_report *report, struct weir_err *err)
{
    struct comparison c = {.plan = plan, .path = path, .report = report, .total = weir_plan_frames(plan)};
    int rc = open_copy(&c, err);
    if (rc == 0)
        rc = compare_episodes(&c, err);
    if (rc == 0)
        rc = compare_frames(&c, workers, err);
    for (int i = 0; i < plan->copy.n_cameras; i++)
        report->has_psnr |= plan->makes[i] == WEIR_MAKE_JPEG;
    report->psnr_mean = c.lossy ? c.sum / (double)c.lossy : INFINITY;
    report->psnr_worst = c.lossy ? report->psnr_worst : INFINITY;
    weir_file_set_close(&c.source_files);
    weir_file_set_close(&c.copy_files);
    weir_dataset_close(&c.copy);
    return rc;
}
