/* Threads check runs of frames in dataset order. The calling thread reports a track (one camera of one episode) once it
 * is fully checked, one track after the other. */
#include "pipeline/verify/verify.h"
#include "base/resources.h"
#include "base/shortage.h"
#include "base/threads.h"
#include "pipeline/verify/check_files.h"
#include "pipeline/verify/check_frame.h"
#include "pipeline/verify/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_FRAMES = 64, WORKERS_MAX = 512 };
static const uint64_t PROGRESS_NS = 100000000;

struct track {
    int taken, checked; /* frames: the first one that no thread has taken, and the number checked */
    uint64_t *hashes;   /* one per frame; allocated until the track is reported */
    struct weir_found_list found;
};

struct verifier {
    struct weir_dataset *dataset;
    const struct weir_verify_config *config;
    struct weir_verify_totals *totals;
    struct weir_file_set *files;
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    int cameras, n_tracks;
    uint64_t total;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    struct track *tracks;
    int next; /* first track with frames that no thread has taken */
    uint64_t done, bytes;
    bool stop;
    struct weir_err err;
};

/* Frames of one thread; found belongs to it until it has finished. */
struct unit {
    struct verifier *v;
    int track, first, n;
    uint64_t *hashes;
    struct weir_found_list found;
    struct weir_err err;
};

static int episode_of(const struct verifier *v, int track)
{
    return track / v->cameras;
}

static int camera_of(const struct verifier *v, int track)
{
    return track % v->cameras;
}

static int fail(struct verifier *v, const struct weir_err *err)
{
    pthread_mutex_lock(&v->lock);
    weir_err_set(&v->err, err->code, "%s", err->text);
    v->stop = true;
    pthread_cond_broadcast(&v->changed);
    pthread_mutex_unlock(&v->lock);
    return err->code;
}

static int no_memory(struct verifier *v)
{
    struct weir_err err = WEIR_ERR_NONE;
    weir_err_set(&err, -ENOMEM, "out of memory");
    return fail(v, &err);
}

/* ---- checking frames ---- */

/* Whole chunks, so that no two threads unpack the same one. */
static int unit_frames(const struct verifier *v, int track)
{
    int rows;
    if (!weir_shares_blocks(v->dataset, episode_of(v, track), camera_of(v, track), &rows, NULL) || rows < 1)
        return UNIT_FRAMES;
    return rows >= UNIT_FRAMES ? rows : UNIT_FRAMES / rows * rows;
}

/* Call with the lock held. Returns false when no frames are left, or without memory. */
static bool take_locked(struct verifier *v, struct unit *unit)
{
    if (v->stop || v->next == v->n_tracks)
        return false;
    struct track *track = &v->tracks[v->next];
    int steps = weir_dataset_steps(v->dataset, episode_of(v, v->next)), n = unit_frames(v, v->next);
    if (!track->hashes)
        track->hashes = calloc((size_t)steps, sizeof *track->hashes);
    if (!track->hashes)
        return false;
    unit->track = v->next;
    unit->first = track->taken;
    unit->n = n < steps - track->taken ? n : steps - track->taken;
    unit->hashes = track->hashes;
    track->taken += unit->n;
    v->next += track->taken == steps;
    return true;
}

static bool take(struct verifier *v, struct unit *unit)
{
    pthread_mutex_lock(&v->lock);
    bool taken = take_locked(v, unit);
    bool lacks = !taken && !v->stop && v->next < v->n_tracks;
    pthread_mutex_unlock(&v->lock);
    if (lacks)
        no_memory(v);
    return taken;
}

static void give_back(struct verifier *v, struct unit *unit, uint64_t bytes)
{
    pthread_mutex_lock(&v->lock);
    struct track *track = &v->tracks[unit->track];
    int rc = weir_found_move(&track->found, &unit->found);
    track->checked += unit->n;
    v->done += (uint64_t)unit->n;
    v->bytes += bytes;
    pthread_cond_broadcast(&v->changed);
    pthread_mutex_unlock(&v->lock);
    if (rc < 0)
        no_memory(v);
}

static int lacks(struct unit *unit, int t, int code, const char *reason)
{
    char name[768];
    weir_frame_name(unit->v->dataset, episode_of(unit->v, unit->track), camera_of(unit->v, unit->track), t, name,
                    sizeof name);
    return weir_err_set(&unit->err, code, "%s: %s; %s", name, reason, weir_machine_advice(code));
}

static int checked(void *user, int t, int code, uint64_t hash, enum weir_finding_kind kind, const char *reason)
{
    struct unit *unit = user;
    unit->hashes[t] = hash;
    if (code == 0)
        return 0;
    if (weir_is_shortage(code))
        return lacks(unit, t, code, reason);
    int rc = weir_found_add(&unit->found, t, kind, reason);
    return rc < 0 ? lacks(unit, t, rc, "out of memory") : 0;
}

struct worker {
    struct verifier *v;
    struct weir_frame_checker checker;
    pthread_t thread;
};

static void *work(void *user)
{
    struct worker *worker = user;
    struct verifier *v = worker->v;
    struct unit unit = {.v = v};
    int rc = 0;
    while (rc == 0 && take(v, &unit)) {
        uint64_t before = worker->checker.bytes;
        rc = weir_check_frames(&worker->checker, episode_of(v, unit.track), camera_of(v, unit.track), unit.first,
                               unit.n, checked, &unit);
        if (rc == 0)
            give_back(v, &unit, worker->checker.bytes - before);
    }
    if (rc < 0)
        fail(v, &unit.err);
    weir_found_free(&unit.found);
    return NULL;
}

/* ---- reporting ---- */

static void show_progress(struct verifier *v)
{
    uint64_t done = v->done;
    pthread_mutex_unlock(&v->lock);
    if (v->config->progress)
        v->config->progress(v->config->user, done, v->total);
    pthread_mutex_lock(&v->lock);
}

/* Waits until a track is fully checked; false if it never will be. */
static bool await(struct verifier *v, int track)
{
    int steps = weir_dataset_steps(v->dataset, episode_of(v, track));
    pthread_mutex_lock(&v->lock);
    while (!v->stop && v->tracks[track].checked < steps) {
        weir_cond_wait_ns(&v->changed, &v->lock, PROGRESS_NS);
        show_progress(v);
    }
    bool complete = v->tracks[track].checked == steps;
    pthread_mutex_unlock(&v->lock);
    return complete;
}

static int report_track(struct verifier *v, int number)
{
    struct track *track = &v->tracks[number];
    int episode = episode_of(v, number), steps = weir_dataset_steps(v->dataset, episode);
    int repeat_steps = v->config->repeat_steps > 0 ? v->config->repeat_steps : WEIR_VERIFY_REPEAT_STEPS;
    if (weir_found_repeats(&track->found, track->hashes, steps, repeat_steps) < 0 ||
        weir_found_fill(&track->found, v->dataset, episode, camera_of(v, number)) < 0)
        return no_memory(v);
    weir_found_report(&track->found, v->dataset, episode, camera_of(v, number), v->config, v->totals);
    weir_found_free(&track->found);
    free(track->hashes);
    track->hashes = NULL;
    v->totals->frames += (uint64_t)steps;
    return 0;
}

static void report_changed_files(struct verifier *v)
{
    char why[WEIR_FILE_CHANGE];
    for (int file = 0; file < weir_file_set_count(v->files); file++) {
        if (weir_file_set_changed(v->files, file, true, why) != 1)
            continue;
        struct weir_finding finding = {
            .kind = WEIR_FOUND_FILE, .file = weir_file_set_path(v->files, file), .t = -1, .dimension = -1, .why = why};
        weir_finding_report(&finding, v->config, v->totals);
    }
}

static void report_note(struct verifier *v, const char *why)
{
    struct weir_finding finding = {
        .kind = WEIR_FOUND_NOTE, .file = v->config->data, .t = -1, .dimension = -1, .why = why};
    weir_finding_report(&finding, v->config, v->totals);
}

static int report_dataset(struct verifier *v)
{
    char note[1024];
    uint64_t cut;
    int ragged = weir_dataset_ragged(v->dataset, &cut);
    for (int i = 0; weir_dataset_note(v->dataset, i, note, sizeof note); i++)
        report_note(v, note);
    snprintf(note, sizeof note, "%d episodes cut to their shortest part, %llu rows of the longest left out", ragged,
             (unsigned long long)cut);
    if (ragged > 0)
        report_note(v, note);
    return weir_found_outliers(v->dataset, v->config, v->totals) < 0 ||
                   weir_found_dimensions(v->dataset, v->config, v->totals) < 0
               ? no_memory(v)
               : 0;
}

/* ---- verification ---- */

static void report_all(struct verifier *v)
{
    struct weir_err err = WEIR_ERR_NONE;
    bool fine = true;
    for (int i = 0; i < v->n_tracks && fine; i++)
        fine = await(v, i) && report_track(v, i) == 0;
    if (!fine)
        return;
    if (!v->config->fast && weir_check_files(v->dataset, v->config, v->totals, &err) < 0) {
        fail(v, &err);
        return;
    }
    report_changed_files(v);
    report_dataset(v);
}

/* Continues with fewer threads if not all can be started. */
static int work_and_report(struct verifier *v, struct worker *workers, int n, struct weir_err *err)
{
    int started = 0, rc = 0;
    while (started < n && (rc = weir_thread_start(&workers[started].thread, work, &workers[started])) == 0)
        started++;
    if (started == 0)
        return weir_err_set(err, rc, "cannot start a thread: %s; %s", strerror(-rc), weir_open_advice(rc));
    report_all(v);
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    v->totals->bytes += v->bytes;
    return v->err.code < 0 ? weir_err_set(err, v->err.code, "%s", v->err.text) : 0;
}

/* One thread opens all readers of a set of files. */
static int run(struct verifier *v, int n, struct weir_err *err)
{
    struct worker *workers = calloc((size_t)n, sizeof *workers);
    int opened = 0, rc = workers ? 0 : weir_err_set(err, -ENOMEM, "out of memory");
    for (; opened < n && rc == 0; opened += rc == 0) {
        workers[opened].v = v;
        rc = weir_frame_checker_open(&workers[opened].checker, v->dataset, v->files, v->probes, v->config, err);
    }
    if (rc == 0)
        rc = work_and_report(v, workers, n, err);
    while (opened-- > 0)
        weir_frame_checker_close(&workers[opened].checker);
    free(workers);
    return rc;
}

static int prepare(struct verifier *v, struct weir_err *err)
{
    v->cameras = weir_dataset_cameras(v->dataset);
    v->n_tracks = v->cameras * weir_dataset_episodes(v->dataset);
    for (int e = 0; e < weir_dataset_episodes(v->dataset); e++)
        v->total += (uint64_t)weir_dataset_steps(v->dataset, e) * (uint64_t)v->cameras;
    int rc = 0;
    for (int c = 0; c < v->cameras && rc == 0; c++)
        rc = weir_probe_camera(v->dataset, c, &v->probes[c], err);
    if (rc < 0)
        return rc;
    v->tracks = calloc((size_t)v->n_tracks + 1, sizeof *v->tracks);
    rc = v->tracks ? weir_fetch_files(v->dataset, &v->files) : -ENOMEM;
    return rc < 0 ? weir_err_set(err, rc, "out of memory") : 0;
}

static void drop(struct verifier *v)
{
    for (int i = 0; v->tracks && i < v->n_tracks; i++) {
        weir_found_free(&v->tracks[i].found);
        free(v->tracks[i].hashes);
    }
    free(v->tracks);
    weir_file_set_close(&v->files);
    pthread_cond_destroy(&v->changed);
    pthread_mutex_destroy(&v->lock);
}

int weir_verify(struct weir_dataset *dataset, const struct weir_verify_config *config,
                struct weir_verify_totals *totals, struct weir_err *err)
{
    struct verifier v = {.dataset = dataset, .config = config, .totals = totals};
    int workers = config->workers > 0 ? config->workers : weir_cores_usable();
    pthread_mutex_init(&v.lock, NULL);
    weir_cond_init(&v.changed);
    for (int i = 0; i < weir_dataset_bad_episodes(dataset); i++)
        weir_verify_bad_episode(config, totals, weir_dataset_bad_episode(dataset, i));
    totals->episodes += (uint64_t)weir_dataset_episodes(dataset);
    int rc = prepare(&v, err);
    if (rc == 0)
        rc = run(&v, workers < WORKERS_MAX ? workers : WORKERS_MAX, err);
    drop(&v);
    return rc;
}
