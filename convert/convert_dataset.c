#include "convert/convert_dataset.h"
#include "base/hash.h"
#include "base/resources.h"
#include "base/shortage.h"
#include "base/text.h"
#include "convert/plan.h"
#include "convert/units.h"
#include "weir/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum { WORKERS_MAX = 256, STATE_VERSION = 1 };

/* The most recent good frame of a camera in the current episode, which can replace a bad frame. */
struct latest {
    uint8_t *bytes;
    size_t length, capacity; /* length 0: no frame yet */
};

struct conversion {
    struct weir_convert_plan plan;
    const struct weir_convert_config *config;
    struct weir_convert_report *report;
    struct weir_partial partial;
    int workers;
    struct weir_file_set *files;
    struct weir_transcoder *transcoders; /* one per worker */
    struct weir_units units;
    struct weir_unit_slot *slots;
    struct weir_writer *writer;
    int episode;    /* number of the episode being written; -1: none */
    char name[512]; /* name of the current episode; the members down to latest also belong to it */
    void *qpos, *actions;
    struct weir_copy_text texts[WEIR_TEXTS_MAX];
    struct latest latest[WEIR_CAMERAS_MAX];
    bool *is_bad; /* per episode, for --on-error skip */
    const char *doing;
    uint64_t done, total;
};

static void note(const struct conversion *c, bool is_bad, const char *line)
{
    if (c->config->note)
        c->config->note(c->config->user, is_bad, line);
}

static void tick(void *user)
{
    const struct conversion *c = user;
    if (c->config->progress)
        c->config->progress(c->config->user, c->doing, c->done, c->total);
}

/* ---- frames, converted by several threads ---- */

static int work(void *user, int worker, uint64_t unit, int slot, struct weir_err *err)
{
    struct conversion *c = user;
    return weir_unit_make(&c->transcoders[worker], &c->units.units[unit], &c->slots[slot], err);
}

/* Processes all episodes from `first` on. */
static int run(struct conversion *c, bool by_step, int first, int (*deliver)(void *, uint64_t, int, struct weir_err *),
               struct weir_err *err)
{
    int rc = weir_units_make(&c->units, &c->plan, by_step, first, err);
    if (rc < 0)
        return rc;
    int window = weir_units_window(&c->units, c->workers);
    rc = weir_unit_slots_open(&c->slots, window, &c->units, err);
    const struct weir_ordered ordered = {c->units.n, c->workers, window, work, deliver, tick, c};
    if (rc == 0)
        rc = weir_ordered_run(&ordered, err);
    weir_unit_slots_close(&c->slots, window);
    weir_units_free(&c->units);
    return rc;
}

static const struct weir_unit_frame *frame_at(const struct conversion *c, const struct weir_unit *unit, int slot, int i,
                                              int *camera, int *t)
{
    *camera = unit->camera + i % unit->n_cameras;
    *t = unit->first + i / unit->n_cameras;
    return &c->slots[slot].frames[i];
}

/* ---- --on-error skip: checks all episodes before the first is written ---- */

static int look(void *user, uint64_t number, int slot, struct weir_err *err)
{
    struct conversion *c = user;
    const struct weir_unit *unit = &c->units.units[number];
    int n = unit->n * unit->n_cameras, camera, t;
    (void)err;
    for (int i = 0; i < n; i++) {
        const struct weir_unit_frame *frame = frame_at(c, unit, slot, i, &camera, &t);
        struct weir_err bad = WEIR_ERR_NONE;
        if (frame->code == 0)
            continue;
        weir_unit_bad(&c->plan, unit->episode, camera, t, frame->code, frame->reason, &bad);
        note(c, true, bad.text);
        c->report->bad_frames++;
        c->is_bad[unit->episode] = true;
    }
    c->done += (uint64_t)n;
    return 0;
}

static int leave_out_bad(struct conversion *c, struct weir_err *err)
{
    struct weir_copy *copy = &c->plan.copy;
    int good = 0;
    for (int e = 0; e < copy->n_episodes; e++) {
        char line[4352];
        const char *path = weir_dataset_episode_path(c->plan.dataset, c->plan.episodes[e]);
        const char *group = weir_dataset_episode_group(c->plan.dataset, c->plan.episodes[e]);
        if (!c->is_bad[e]) {
            c->plan.episodes[good++] = c->plan.episodes[e];
            continue;
        }
        snprintf(line, sizeof line, "%.4000s%s%.200s: the episode is left out", path, *group ? ": " : "", group);
        note(c, true, line);
        c->report->bad_episodes++;
    }
    copy->n_episodes = good;
    return good > 0 ? 0 : weir_err_set(err, -EBADMSG, "%s: all episodes have bad frames", c->config->source);
}

static int look_at_all(struct conversion *c, struct weir_err *err)
{
    c->is_bad = calloc((size_t)c->plan.copy.n_episodes, sizeof *c->is_bad);
    if (!c->is_bad)
        return weir_no_memory(err);
    c->doing = "scanning";
    c->done = 0;
    c->total = weir_plan_frames(&c->plan);
    int rc = run(c, false, 0, look, err);
    return rc < 0 ? rc : leave_out_bad(c, err);
}

/* ---- writing ---- */

static int begin_episode(struct conversion *c, int episode, struct weir_err *err)
{
    const struct weir_dataset *dataset = c->plan.dataset;
    int of = c->plan.episodes[episode], n = 0;
    const char *path = weir_dataset_episode_path(dataset, of), *slash = strrchr(path, '/');
    snprintf(c->name, sizeof c->name, "%.250s%s%.200s", slash ? slash + 1 : path,
             *weir_dataset_episode_group(dataset, of) ? ": " : "", weir_dataset_episode_group(dataset, of));
    free(c->qpos);
    free(c->actions);
    c->qpos = c->actions = NULL;
    int rc = weir_plan_numbers(&c->plan, episode, false, &c->qpos, err);
    if (rc == 0)
        rc = weir_plan_numbers(&c->plan, episode, true, &c->actions, err);
    if (rc < 0)
        return rc;
    while (n < WEIR_TEXTS_MAX && weir_dataset_text(dataset, of, n, &c->texts[n].key, &c->texts[n].value))
        n++;
    for (int i = 0; i < c->plan.copy.n_cameras; i++)
        c->latest[i].length = 0;
    c->episode = episode;
    return weir_writer_begin(c->writer,
                             &(struct weir_copy_episode){episode, c->name, weir_dataset_steps(dataset, of), c->qpos,
                                                         c->actions, c->texts, n},
                             err);
}

static int keep_latest(struct latest *latest, const uint8_t *bytes, size_t length, struct weir_err *err)
{
    if (length > latest->capacity) {
        free(latest->bytes);
        latest->bytes = malloc(length);
        latest->capacity = latest->bytes ? length : 0;
    }
    if (!latest->bytes)
        return weir_no_memory(err);
    memcpy(latest->bytes, bytes, length);
    latest->length = length;
    return 0;
}

static int substitute(struct conversion *c, int episode, int camera, int t, const struct weir_unit_frame *frame,
                      struct weir_err *err)
{
    const struct latest *latest = &c->latest[camera];
    struct weir_err bad = WEIR_ERR_NONE;
    weir_unit_bad(&c->plan, episode, camera, t, frame->code, frame->reason, &bad);
    c->report->bad_frames++;
    if (c->config->on_error != WEIR_ON_ERROR_SUBSTITUTE)
        return weir_err_set(err, bad.code, "%s%s", bad.text,
                            bad.code == -ENOTSUP /* the reason says what to install */
                                ? ""
                                : "; repair or remove the frame, or use --on-error skip or substitute");
    if (latest->length == 0)
        return weir_err_set(err, bad.code, "%s; the episode has no earlier frame that could replace it", bad.text);
    note(c, true, bad.text);
    c->report->substituted_frames++;
    return c->plan.ops->frame(c->writer, camera, t, latest->bytes, latest->length, err);
}

static int write_unit(void *user, uint64_t number, int slot, struct weir_err *err)
{
    struct conversion *c = user;
    const struct weir_unit *unit = &c->units.units[number];
    int n = unit->n * unit->n_cameras, camera, t;
    int rc = c->episode == unit->episode ? 0 : begin_episode(c, unit->episode, err);
    for (int i = 0; i < n && rc == 0; i++) {
        const struct weir_unit_frame *frame = frame_at(c, unit, slot, i, &camera, &t);
        const uint8_t *bytes = c->slots[slot].bytes + frame->offset;
        if (frame->code < 0) {
            rc = substitute(c, unit->episode, camera, t, frame, err);
            continue;
        }
        rc = c->plan.ops->frame(c->writer, camera, t, bytes, frame->length, err);
        if (rc == 0 && c->config->on_error == WEIR_ON_ERROR_SUBSTITUTE)
            rc = keep_latest(&c->latest[camera], bytes, frame->length, err);
    }
    c->done += (uint64_t)n;
    c->report->written_frames += (uint64_t)n;
    return rc == 0 && unit->is_last ? c->plan.ops->end(c->writer, err) : rc;
}

static int write_copy(struct conversion *c, struct weir_err *err)
{
    const struct weir_writer_ops *ops = c->plan.ops;
    int complete = 0, rc = 0;
    if (c->partial.is_there && !ops->resumes) {
        note(c, false, "the interrupted copy starts over, because this format stores all episodes in one file");
        rc = weir_partial_clear(&c->partial, err);
    }
    if (rc == 0)
        rc = weir_writer_open(&c->writer, ops, &c->plan.copy, c->partial.copy, &complete, err);
    if (rc < 0)
        return rc;
    c->report->resumed = complete;
    c->episode = -1;
    c->doing = "copying";
    c->total = weir_plan_frames(&c->plan);
    c->done = 0;
    for (int e = 0; e < complete; e++)
        c->done +=
            (uint64_t)weir_dataset_steps(c->plan.dataset, c->plan.episodes[e]) * (uint64_t)c->plan.copy.n_cameras;
    rc = run(c, ops->by_step, complete, write_unit, err);
    if (rc == 0)
        return weir_writer_finish(&c->writer, err);
    weir_writer_close(&c->writer);
    return rc;
}

/* ---- identity of a copy, for resuming ---- */

static uint64_t hash_files(const struct weir_convert_plan *plan)
{
    uint64_t hash = 0;
    for (int i = 0; i < weir_dataset_files(plan->dataset); i++) {
        struct weir_dataset_file file;
        char text[4352];
        weir_dataset_file(plan->dataset, i, &file);
        int n = snprintf(text, sizeof text, "%016llx %.4096s %llu %lld", (unsigned long long)hash, file.path,
                         (unsigned long long)file.size_bytes, (long long)file.mtime_ns);
        hash = weir_hash64(text, (size_t)n);
    }
    return hash ^ weir_hash64(plan->episodes, (size_t)plan->copy.n_episodes * sizeof *plan->episodes);
}

static char *state_of(const struct weir_convert_plan *plan)
{
    const struct weir_convert_config *config = plan->config;
    char *text = NULL, hash[24];
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)hash_files(plan));
    struct weir_json json;
    weir_json_open(&json, out, true);
    weir_json_object(&json, NULL);
    weir_json_int(&json, "version", STATE_VERSION);
    weir_json_text(&json, "to", config->to);
    weir_json_text(&json, "source", config->source);
    weir_json_text(&json, "source_files", hash);
    weir_json_int(&json, "episodes", plan->copy.n_episodes);
    weir_json_array(&json, "cameras");
    for (int c = 0; c < plan->copy.n_cameras; c++)
        weir_json_text(&json, NULL, plan->copy.cameras[c].name);
    weir_json_end(&json, ']');
    weir_json_int(&json, "codec", (int)config->codec);
    weir_json_int(&json, "quality", config->quality);
    weir_json_int(&json, "width", config->width);
    weir_json_int(&json, "height", config->height);
    weir_json_bool(&json, "is_bgr", plan->copy.is_bgr);
    weir_json_bool(&json, "swaps", plan->swaps);
    weir_json_int(&json, "chunk_frames", config->chunk_frames);
    weir_json_text(&json, "qpos_type", weir_number_name(plan->copy.qpos_type));
    weir_json_text(&json, "action_type", weir_number_name(plan->copy.action_type));
    weir_json_text(&json, "how", config->how);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static int begin_partial(struct conversion *c, struct weir_err *err)
{
    char *state = state_of(&c->plan);
    int rc = state ? weir_partial_begin(&c->partial, state, err) : weir_no_memory(err);
    free(state);
    return rc;
}

static int check_space(const struct conversion *c, struct weir_err *err)
{
    struct statvfs fs;
    uint64_t needed = weir_plan_bytes(&c->plan), there = weir_partial_bytes(c->partial.copy);
    if (statvfs(c->partial.folder, &fs) != 0)
        return 0;
    uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (needed <= there || needed - there <= free_bytes)
        return 0;
    return weir_err_set(err, -ENOSPC,
                        "%s: the copy needs at least %s, but only %s are free; choose another disk, or use --codec "
                        "jpeg or --sample",
                        c->config->target, weir_size((double)needed).text, weir_size((double)free_bytes).text);
}

/* ---- the conversion ---- */

static int open_transcoders(struct conversion *c, struct weir_err *err)
{
    c->transcoders = calloc((size_t)c->workers, sizeof *c->transcoders);
    if (!c->transcoders || weir_fetch_files(c->plan.dataset, &c->files) < 0)
        return weir_no_memory(err);
    int rc = 0;
    for (int i = 0; i < c->workers && rc == 0; i++)
        rc = weir_transcoder_open(&c->transcoders[i], &c->plan, c->files, err);
    return rc;
}

static void close_transcoders(struct conversion *c)
{
    for (int i = 0; i < c->workers && c->transcoders; i++)
        weir_transcoder_close(&c->transcoders[i]);
    free(c->transcoders);
    c->transcoders = NULL;
    weir_file_set_close(&c->files);
}

static void drop(struct conversion *c)
{
    close_transcoders(c);
    weir_partial_close(&c->partial);
    weir_plan_close(&c->plan);
    for (int i = 0; i < WEIR_CAMERAS_MAX; i++)
        free(c->latest[i].bytes);
    free(c->qpos);
    free(c->actions);
    free(c->is_bad);
}

/* Returns the total size of the source files that contain episodes of the copy. */
static uint64_t source_bytes(const struct weir_convert_plan *plan)
{
    uint64_t bytes = 0;
    for (int e = 0, before = -1; e < plan->copy.n_episodes; e++) {
        struct weir_dataset_file file;
        int number = weir_dataset_episode_file(plan->dataset, plan->episodes[e]);
        weir_dataset_file(plan->dataset, number, &file);
        bytes += number != before ? file.size_bytes : 0;
        before = number;
    }
    return bytes;
}

static int copy_and_check(struct conversion *c, struct weir_err *err)
{
    uint64_t start_ns = weir_clock_monotonic_ns();
    int rc = write_copy(c, err);
    close_transcoders(c);
    uint64_t written_ns = weir_clock_monotonic_ns();
    c->report->seconds = (double)(written_ns - start_ns) / 1e9;
    if (rc == 0)
        rc = weir_convert_compare(&c->plan, c->partial.copy, c->workers, c->report, err);
    c->report->check_seconds = (double)(weir_clock_monotonic_ns() - written_ns) / 1e9;
    c->report->copy_bytes = weir_partial_bytes(c->partial.copy);
    return rc < 0 ? rc : weir_partial_finish(&c->partial, err);
}

int weir_convert(struct weir_dataset *dataset, const struct weir_convert_config *config,
                 struct weir_convert_report *report, struct weir_err *err)
{
    int workers = config->workers > 0 ? config->workers : weir_cores_usable();
    struct conversion c = {.config = config,
                           .report = report,
                           .partial = {.lock = -1},
                           .workers = workers < WORKERS_MAX ? workers : WORKERS_MAX};
    *report = (struct weir_convert_report){.bad_episodes = (uint64_t)weir_dataset_bad_episodes(dataset)};
    for (int i = 0; i < weir_dataset_bad_episodes(dataset); i++)
        note(&c, true, weir_dataset_bad_episode(dataset, i));
    char line[1024];
    for (int i = 0; weir_dataset_left_out(dataset, i, line, sizeof line); i++)
        note(&c, false, line);
    if (weir_dataset_drift(dataset, line, sizeof line))
        note(&c, false, line);
    int rc = weir_plan_open(&c.plan, dataset, config, err);
    if (rc == 0)
        rc = weir_partial_open(&c.partial, config->target, err);
    if (rc == 0)
        rc = open_transcoders(&c, err);
    if (rc == 0 && config->on_error == WEIR_ON_ERROR_SKIP)
        rc = look_at_all(&c, err);
    if (rc == 0)
        rc = begin_partial(&c, err);
    if (rc == 0)
        rc = check_space(&c, err);
    if (rc == 0)
        rc = copy_and_check(&c, err);
    if (rc == 0) {
        report->episodes = c.plan.copy.n_episodes;
        report->frames = weir_plan_frames(&c.plan);
        report->source_bytes = source_bytes(&c.plan);
        report->qpos_type = weir_number_name(c.plan.copy.qpos_type);
        report->action_type = weir_number_name(c.plan.copy.action_type);
    }
    drop(&c);
    return rc;
}
