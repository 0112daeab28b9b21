/* Threads check runs of consecutive frames. The calling thread collects their results in the order of the dataset, and
 * reports a track (one camera of one episode) when it is complete. */
#include "pipeline/verify/verify.h"
#include "base/grow.h"
#include "base/resources.h"
#include "base/shortage.h"
#include "base/threads.h"
#include "pipeline/verify/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_FRAMES = 64, WORKERS_MAX = 512, UNITS_PER_WORKER = 8 };

/* Consecutive frames of a track, checked by one thread. */
struct unit {
    struct verifier *v;
    int track, first, n;
    uint64_t *hashes; /* one per frame; grows on demand */
    int capacity;
    struct weir_findings found;
    uint64_t bytes;
    struct weir_err *err;
};

struct verifier {
    struct weir_dataset *dataset;
    const struct weir_verify_config *config;
    struct weir_verify_totals *totals;
    struct weir_file_set *files;
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    int cameras, n_tracks;
    uint64_t *first_unit; /* number of each track's first unit; the last element is the number of all units */
    struct weir_frame_checker *checkers; /* one per thread */
    struct unit *units;                  /* one per slot */
    uint64_t done, total;                /* frames checked, frames in total */
    uint64_t *hashes;                    /* hashes of the track that is being collected */
    struct weir_findings found;
};

static int episode_of(const struct verifier *v, int track)
{
    return track / v->cameras;
}

static int camera_of(const struct verifier *v, int track)
{
    return track % v->cameras;
}

static int steps_of(const struct verifier *v, int track)
{
    return weir_dataset_steps(v->dataset, episode_of(v, track));
}

/* ---- checking frames ---- */

/* Returns the number of frames per unit. Units consist of whole blocks, so that no two threads unpack the same chunk.
 */
static int unit_frames(const struct verifier *v, int track)
{
    int rows;
    if (!weir_shares_blocks(v->dataset, episode_of(v, track), camera_of(v, track), &rows) || rows < 1)
        return UNIT_FRAMES;
    return rows >= UNIT_FRAMES ? rows : UNIT_FRAMES / rows * rows;
}

static int count_units(struct verifier *v)
{
    v->first_unit = calloc((size_t)v->n_tracks + 1, sizeof *v->first_unit);
    for (int track = 0; track < v->n_tracks && v->first_unit; track++) {
        int n = unit_frames(v, track);
        v->first_unit[track + 1] = v->first_unit[track] + (uint64_t)((steps_of(v, track) + n - 1) / n);
    }
    return v->first_unit ? 0 : -ENOMEM;
}

static int track_of(const struct verifier *v, uint64_t number)
{
    return WEIR_FIRST(i, v->n_tracks - 1, v->first_unit[i + 1] > number);
}

static int lacks(struct unit *unit, int t, int code, const char *reason)
{
    char name[768];
    weir_frame_name(unit->v->dataset, episode_of(unit->v, unit->track), camera_of(unit->v, unit->track), t, name,
                    sizeof name);
    const char *advice = weir_frame_advice(code, reason);
    return weir_err_set(unit->err, code, "%s: %s%s%s", name, reason, *advice ? "; " : "", advice);
}

static int checked(void *user, int t, int code, uint64_t hash, enum weir_finding_kind kind, const char *reason)
{
    struct unit *unit = user;
    unit->hashes[t - unit->first] = hash;
    if (code == 0)
        return 0;
    if (weir_is_shortage(code))
        return lacks(unit, t, code, reason);
    int rc = weir_findings_add(&unit->found, t, kind, reason);
    return rc < 0 ? lacks(unit, t, rc, "out of memory") : 0;
}

static int check_unit(void *user, int worker, uint64_t number, int slot, struct weir_err *err)
{
    struct verifier *v = user;
    struct weir_frame_checker *checker = &v->checkers[worker];
    struct unit *unit = &v->units[slot];
    int track = track_of(v, number), n = unit_frames(v, track), first = (int)(number - v->first_unit[track]) * n;
    int left = steps_of(v, track) - first;
    unit->v = v;
    unit->err = err;
    unit->track = track;
    unit->first = first;
    unit->n = n < left ? n : left;
    if (unit->capacity < unit->n) {
        free(unit->hashes);
        unit->hashes = malloc((size_t)unit->n * sizeof *unit->hashes);
        unit->capacity = unit->hashes ? unit->n : 0;
    }
    if (!unit->hashes)
        return lacks(unit, first, -ENOMEM, "out of memory");
    uint64_t before = checker->bytes;
    int rc = weir_check_frames(checker, episode_of(v, track), camera_of(v, track), first, unit->n, checked, unit);
    unit->bytes = checker->bytes - before;
    return rc;
}

/* ---- reporting ---- */

static int report_track(struct verifier *v, int track)
{
    int episode = episode_of(v, track), camera = camera_of(v, track), steps = steps_of(v, track);
    int repeat_steps = v->config->repeat_steps > 0 ? v->config->repeat_steps : WEIR_VERIFY_REPEAT_STEPS;
    int rc = weir_findings_repeats(&v->found, v->hashes, steps, repeat_steps);
    if (rc == 0)
        rc = weir_findings_fill(&v->found, v->dataset, episode, camera);
    if (rc == 0)
        weir_findings_report(&v->found, v->dataset, episode, camera, v->config, v->totals);
    weir_findings_free(&v->found);
    v->totals->frames += rc == 0 ? (uint64_t)steps : 0;
    return rc;
}

static int collect(void *user, uint64_t number, int slot, struct weir_err *err)
{
    struct verifier *v = user;
    struct unit *unit = &v->units[slot];
    memcpy(v->hashes + unit->first, unit->hashes, (size_t)unit->n * sizeof *v->hashes);
    v->done += (uint64_t)unit->n;
    v->totals->bytes += unit->bytes;
    int rc = weir_findings_move(&v->found, &unit->found);
    if (rc == 0 && number + 1 == v->first_unit[unit->track + 1])
        rc = report_track(v, unit->track);
    return rc < 0 ? weir_err_set(err, rc, "out of memory") : 0;
}

static void show_progress(void *user)
{
    const struct verifier *v = user;
    if (v->config->progress)
        v->config->progress(v->config->user, v->done, v->total);
}

static void report_changed_files(struct verifier *v)
{
    char why[WEIR_FILE_CHANGE];
    for (int file = 0; file < weir_file_set_count(v->files); file++)
        if (weir_file_set_changed(v->files, file, true, why) == 1)
            weir_finding_of_file(WEIR_FOUND_FILE, weir_file_set_path(v->files, file), NULL, why, v->config, v->totals);
}

static int report_dataset(struct verifier *v, struct weir_err *err)
{
    char note[1024];
    uint64_t cut;
    int ragged = weir_dataset_ragged(v->dataset, &cut);
    for (int i = 0; weir_dataset_note(v->dataset, i, note, sizeof note); i++)
        weir_finding_of_file(WEIR_FOUND_NOTE, v->config->data, NULL, note, v->config, v->totals);
    snprintf(note, sizeof note, "%d episodes cut to their shortest part, %llu rows of the longest left out", ragged,
             (unsigned long long)cut);
    if (ragged > 0)
        weir_finding_of_file(WEIR_FOUND_NOTE, v->config->data, NULL, note, v->config, v->totals);
    weir_findings_key_frames(v->dataset, v->config, v->totals);
    int rc = weir_findings_outliers(v->dataset, v->config, v->totals);
    if (rc == 0)
        rc = weir_findings_dimensions(v->dataset, v->config, v->totals);
    return rc < 0 ? weir_err_set(err, rc, "out of memory") : 0;
}

/* ---- verification ---- */

static int prepare(struct verifier *v, struct weir_err *err)
{
    int rc = 0, longest = 0;
    v->cameras = weir_dataset_cameras(v->dataset);
    v->n_tracks = v->cameras * weir_dataset_episodes(v->dataset);
    for (int track = 0; track < v->n_tracks; track++) {
        int steps = steps_of(v, track);
        v->total += (uint64_t)steps;
        longest = steps > longest ? steps : longest;
    }
    for (int c = 0; c < v->cameras && rc == 0; c++)
        rc = weir_probe_camera(v->dataset, c, &v->probes[c], err);
    if (rc < 0)
        return rc;
    v->hashes = calloc((size_t)longest + 1, sizeof *v->hashes);
    rc = v->hashes ? count_units(v) : -ENOMEM;
    if (rc == 0)
        rc = weir_fetch_files(v->dataset, &v->files);
    return rc < 0 ? weir_err_set(err, rc, "out of memory") : 0;
}

/* Opens all readers on this thread, as a set of files requires. */
static int check_all(struct verifier *v, int workers, struct weir_err *err)
{
    int window = workers * UNITS_PER_WORKER, opened = 0;
    v->checkers = calloc((size_t)workers, sizeof *v->checkers);
    v->units = calloc((size_t)window, sizeof *v->units);
    int rc = v->checkers && v->units ? 0 : weir_err_set(err, -ENOMEM, "out of memory");
    for (; opened < workers && rc == 0; opened += rc == 0)
        rc = weir_frame_checker_open(&v->checkers[opened], v->dataset, v->files, v->probes, v->config, err);
    const struct weir_ordered run = {
        v->first_unit[v->n_tracks], workers, window, check_unit, collect, show_progress, v};
    if (rc == 0)
        rc = weir_ordered_run(&run, err);
    while (opened > 0) {
        struct weir_decoder_counts counts;
        weir_decoder_counts(v->checkers[--opened].decoder, &counts);
        v->totals->warned_frames += counts.warned_frames;
        weir_frame_checker_close(&v->checkers[opened]);
    }
    for (int i = 0; i < window && v->units; i++) {
        weir_findings_free(&v->units[i].found);
        free(v->units[i].hashes);
    }
    free(v->checkers);
    free(v->units);
    return rc;
}

int weir_verify(struct weir_dataset *dataset, const struct weir_verify_config *config,
                struct weir_verify_totals *totals, struct weir_err *err)
{
    struct verifier v = {.dataset = dataset, .config = config, .totals = totals};
    int workers = config->workers > 0 ? config->workers : weir_cores_usable();
    for (int i = 0; i < weir_dataset_bad_episodes(dataset); i++)
        weir_verify_bad_episode(config, totals, weir_dataset_bad_episode(dataset, i));
    totals->episodes += (uint64_t)weir_dataset_episodes(dataset);
    int rc = prepare(&v, err);
    if (rc == 0)
        rc = check_all(&v, workers < WORKERS_MAX ? workers : WORKERS_MAX, err);
    if (rc == 0 && !config->fast)
        rc = weir_check_files(dataset, config, totals, err);
    if (rc == 0)
        rc = weir_review_files(dataset, config, totals, err);
    if (rc == 0)
        weir_findings_described_sizes(dataset, v.probes, config, totals);
    if (rc == 0) {
        report_changed_files(&v);
        rc = report_dataset(&v, err);
    }
    weir_findings_free(&v.found);
    free(v.hashes);
    free(v.first_unit);
    weir_file_set_close(&v.files);
    return rc;
}
