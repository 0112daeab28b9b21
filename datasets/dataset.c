#include "datasets/dataset.h"
#include "datasets/index_priv.h"
#include "prof/memory.h"
#include "prof/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cameras of the dataset ---- */

static int find_name(const struct weir_episode *episode, const char *name, size_t length)
{
    int found = -1, best = 0;
    for (int i = 0; i < episode->n_tracks; i++) {
        int answers = weir_name_answers(episode->names[i], name, length);
        if (answers <= best)
            continue;
        best = answers;
        found = i;
    }
    return found;
}

static int no_camera(const struct weir_episode *episode, const char *name, size_t length, int code,
                     struct weir_err *err)
{
    char have[512] = "";
    for (int i = 0; i < episode->n_tracks; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", i ? ", " : "", episode->names[i]);
    if (episode->passed_over)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", have[0] ? ", " : "", episode->passed_over);
    return weir_err_set(err, code, "%s: no camera \"%.*s\"; it has %s", episode->file.path,
                        (int)(length < 128 ? length : 128), name, have);
}

static int add_camera(struct weir_dataset *dataset, const char *name, struct weir_err *err)
{
    for (int i = 0; i < dataset->n_cameras; i++)
        if (strcmp(dataset->cameras[i].name, name) == 0)
            return weir_err_set(err, -EINVAL, "camera %s is named twice", name);
    if (dataset->n_cameras == WEIR_CAMERAS_MAX)
        return weir_err_set(err, -EINVAL, "more than %d cameras", WEIR_CAMERAS_MAX);
    snprintf(dataset->cameras[dataset->n_cameras++].name, WEIR_NAME_MAX, "%s", name);
    return 0;
}

/* Takes the names from --cameras, or all of the first episode. */
static int choose_cameras(struct weir_dataset *dataset, const char *wanted, struct weir_err *err)
{
    const struct weir_episode *first = &dataset->episodes[0];
    int rc = 0;
    if (!wanted || !*wanted) {
        for (int i = 0; i < first->n_tracks && rc == 0; i++)
            rc = add_camera(dataset, first->names[i], err);
        return rc;
    }
    for (const char *at = wanted; rc == 0;) {
        size_t length = strcspn(at, ",");
        if (length == 0)
            return weir_err_set(err, -EINVAL, "the list of cameras, \"%s\", has an empty name in it", wanted);
        int track = find_name(first, at, length);
        rc = track < 0 ? no_camera(first, at, length, -EINVAL, err) : add_camera(dataset, first->names[track], err);
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    return rc;
}

/* ---- fitting episodes together ---- */

/* Puts the tracks of the chosen cameras first, in the dataset's order; the others are freed with the episode. */
static int order_tracks(const struct weir_dataset *dataset, struct weir_episode *episode, struct weir_err *err)
{
    for (int c = 0; c < dataset->n_cameras; c++) {
        const char *name = dataset->cameras[c].name;
        int at = find_name(episode, name, strlen(name));
        if (at < 0)
            return no_camera(episode, name, strlen(name), -EBADMSG, err);
        struct weir_track track = episode->tracks[c];
        episode->tracks[c] = episode->tracks[at];
        episode->tracks[at] = track;
        char text[WEIR_NAME_MAX];
        memcpy(text, episode->names[c], sizeof text);
        memcpy(episode->names[c], episode->names[at], sizeof text);
        memcpy(episode->names[at], text, sizeof text);
    }
    return 0;
}

static int check_fit(struct weir_dataset *dataset, const struct weir_episode *episode, struct weir_err *err)
{
    const struct weir_episode *first = &dataset->episodes[0];
    const char *path = episode->file.path;
    if (episode->qpos_dim != first->qpos_dim || episode->action_dim != first->action_dim)
        return weir_err_set(err, -EBADMSG, "%s: state and actions have %d and %d dimensions, in %s they have %d and %d",
                            path, episode->qpos_dim, episode->action_dim, first->file.path, first->qpos_dim,
                            first->action_dim);
    for (int c = 0; c < dataset->n_cameras; c++) {
        const struct weir_track *a = &episode->tracks[c], *b = &first->tracks[c];
        if (strcmp(a->codec, b->codec) != 0)
            return weir_err_set(err, -EBADMSG, "%s: %s holds %s frames, in %s it holds %s; give each kind a folder",
                                path, a->key, a->codec, first->file.path, b->codec);
        if (a->width != b->width || a->height != b->height)
            return weir_err_set(err, -EBADMSG, "%s: %s has frames of %dx%d, in %s they are %dx%d", path, a->key,
                                a->width, a->height, first->file.path, b->width, b->height);
    }
    return 0;
}

static int fit(struct weir_dataset *dataset, const char *wanted, struct weir_err *err)
{
    struct weir_episode *episode = &dataset->episodes[dataset->n_episodes];
    bool first = dataset->n_episodes == 0;
    int rc = first ? choose_cameras(dataset, wanted, err) : 0;
    if (rc == 0)
        rc = order_tracks(dataset, episode, err);
    if (rc < 0)
        return rc;
    for (int c = 0; c < dataset->n_cameras; c++) {
        const struct weir_track *track = &episode->tracks[c];
        if (first) {
            dataset->cameras[c].codec = track->codec;
            dataset->cameras[c].width = track->width;
            dataset->cameras[c].height = track->height;
        }
        size_t bytes = weir_track_extent_max(track, episode->steps, episode->file.size_bytes);
        dataset->extent_max = bytes > dataset->extent_max ? bytes : dataset->extent_max;
    }
    return check_fit(dataset, episode, err);
}

static int keep_bad(struct weir_dataset *dataset, const struct weir_err *why)
{
    char **bad = realloc(dataset->bad, sizeof *bad * (size_t)(dataset->n_bad + 1));
    if (!bad)
        return -ENOMEM;
    dataset->bad = bad;
    bad[dataset->n_bad] = strdup(why->text);
    return bad[dataset->n_bad] ? (dataset->n_bad++, 0) : -ENOMEM;
}

static int add_episode(struct weir_dataset *dataset, const struct weir_dataset_config *config, const char *path,
                       struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    struct weir_episode *episode = &dataset->episodes[dataset->n_episodes];
    const char *cameras = config->cameras && *config->cameras ? config->cameras : NULL;
    int rc = weir_episode_open(episode, path, cameras, config->tolerant, &why);
    if (rc == 0) {
        rc = fit(dataset, config->cameras, &why);
        if (rc == 0) {
            dataset->n_episodes++;
            return 0;
        }
        weir_episode_close(episode);
        dataset->n_misfits++;
        if (rc == -EINVAL) /* the command line asks for what is not there: no episode's fault */
            return weir_err_set(err, rc, "%s", why.text);
    }
    if (!config->tolerant || rc == -ENOMEM)
        return weir_err_set(err, rc, "%s", why.text);
    return keep_bad(dataset, &why) < 0 ? weir_err_set(err, -ENOMEM, "out of memory") : 0;
}

int weir_dataset_open(struct weir_dataset **out, const struct weir_dataset_config *config, struct weir_err *err)
{
    *out = NULL;
    char **files;
    int n;
    int rc = weir_scan(config->path, &files, &n, err);
    if (rc < 0)
        return rc;
    struct weir_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset)
        dataset->episodes = calloc((size_t)n, sizeof *dataset->episodes);
    rc = dataset && dataset->episodes ? 0 : weir_err_set(err, -ENOMEM, "out of memory");
    uint64_t available = weir_memory_available_bytes(), taken = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        int before = dataset->n_episodes;
        rc = add_episode(dataset, config, files[i], err);
        taken += rc == 0 && dataset->n_episodes > before ? dataset->episodes[before].bytes : 0;
        if (rc == 0 && available && taken > available)
            rc = weir_err_set(err, -ENOMEM,
                              "%s: state, actions and index of %d of its %d files fill the memory; use fewer",
                              config->path, i + 1, n);
        if (config->progress)
            config->progress(config->user, i + 1, n);
    }
    weir_scan_free(files, n);
    if (rc == 0 && dataset->n_episodes == 0)
        rc = weir_err_set(err, -EBADMSG, "%s: none of its %d files can be read; the first: %s", config->path, n,
                          dataset->bad[0]);
    else if (rc == 0 && dataset->n_misfits > dataset->n_episodes)
        rc = weir_err_set(err, -EBADMSG, "%d of %d episodes do not fit the first one, %s; move the odd ones away: %s",
                          dataset->n_misfits, n, weir_dataset_episode_path(dataset, 0),
                          dataset->bad[dataset->n_bad - 1]);
    if (rc < 0)
        weir_dataset_close(&dataset);
    *out = dataset;
    return rc;
}

/* ---- what is in it ---- */

int weir_dataset_episodes(const struct weir_dataset *dataset)
{
    return dataset->n_episodes;
}

int weir_dataset_cameras(const struct weir_dataset *dataset)
{
    return dataset->n_cameras;
}

int weir_dataset_qpos_dim(const struct weir_dataset *dataset)
{
    return dataset->episodes[0].qpos_dim;
}

int weir_dataset_action_dim(const struct weir_dataset *dataset)
{
    return dataset->episodes[0].action_dim;
}

int weir_dataset_steps(const struct weir_dataset *dataset, int episode)
{
    return dataset->episodes[episode].steps;
}

const float *weir_dataset_qpos(const struct weir_dataset *dataset, int episode)
{
    return dataset->episodes[episode].qpos;
}

const float *weir_dataset_actions(const struct weir_dataset *dataset, int episode)
{
    return dataset->episodes[episode].actions;
}

const struct weir_camera *weir_dataset_camera(const struct weir_dataset *dataset, int camera)
{
    return &dataset->cameras[camera];
}

int weir_dataset_files(const struct weir_dataset *dataset)
{
    return dataset->n_episodes;
}

void weir_dataset_file(const struct weir_dataset *dataset, int file, struct weir_dataset_file *out)
{
    *out = dataset->episodes[file].file;
}

size_t weir_dataset_extent_max(const struct weir_dataset *dataset)
{
    return dataset->extent_max;
}

const char *weir_dataset_episode_path(const struct weir_dataset *dataset, int episode)
{
    return dataset->episodes[episode].file.path;
}

const char *weir_dataset_layout(const struct weir_dataset *dataset, int episode)
{
    return dataset->episodes[episode].layout->name;
}

const char *weir_dataset_qpos_key(const struct weir_dataset *dataset, int episode)
{
    return dataset->episodes[episode].qpos_key;
}

const char *weir_dataset_action_key(const struct weir_dataset *dataset, int episode)
{
    return dataset->episodes[episode].action_key;
}

int weir_dataset_bad_episodes(const struct weir_dataset *dataset)
{
    return dataset->n_bad;
}

const char *weir_dataset_bad_episode(const struct weir_dataset *dataset, int i)
{
    return dataset->bad[i];
}

size_t weir_dataset_index_bytes(const struct weir_dataset *dataset)
{
    size_t bytes = sizeof *dataset;
    for (int i = 0; i < dataset->n_episodes; i++)
        bytes += dataset->episodes[i].bytes;
    return bytes;
}

static void count_chunks(const struct weir_track *track, int steps, struct weir_storage_counts *counts)
{
    for (int t = 0; t < steps; t++)
        (*(track->offsets[t] == UINT64_MAX ? &counts->library : &counts->chunks))++;
}

void weir_dataset_storage(const struct weir_dataset *dataset, int camera, struct weir_storage_counts *counts)
{
    *counts = (struct weir_storage_counts){0};
    for (int i = 0; i < dataset->n_episodes; i++) {
        const struct weir_track *track = &dataset->episodes[i].tracks[camera];
        int steps = dataset->episodes[i].steps;
        switch (track->storage) {
        case WEIR_H5_CONTIGUOUS:
            *(track->padded ? &counts->padded_rows : &counts->contiguous) += (uint64_t)steps;
            break;
        case WEIR_H5_CHUNKS:
            count_chunks(track, steps, counts);
            break;
        case WEIR_H5_HEAP:
            counts->heap += (uint64_t)steps;
            break;
        case WEIR_H5_LIBRARY:
            counts->library += (uint64_t)steps;
            break;
        }
    }
}

void weir_dataset_library(char *text, size_t size)
{
    weir_h5_lock();
    weir_h5_library(text, size);
    weir_h5_unlock();
}

/* ---- reading through the library ---- */

/* The file that weir_fetch used last stays open: frames of one episode tend to come together. */
struct weir_h5_cache {
    int episode;
    struct weir_h5 *h5;
};

static int fetch_locked(struct weir_dataset *dataset, int episode, const char *key, int t, void *buffer,
                        size_t capacity, size_t *length, struct weir_err *err)
{
    if (!dataset->cache) {
        dataset->cache = calloc(1, sizeof *dataset->cache);
        if (!dataset->cache)
            return weir_err_set(err, -ENOMEM, "out of memory");
    }
    struct weir_h5_cache *cache = dataset->cache;
    if (cache->h5 && cache->episode != episode)
        weir_h5_close(&cache->h5);
    if (!cache->h5) {
        int rc = weir_h5_open(&cache->h5, dataset->episodes[episode].file.path, err);
        if (rc == 0)
            rc = weir_episode_check(&dataset->episodes[episode], err);
        if (rc < 0) {
            weir_h5_close(&cache->h5);
            return rc;
        }
        cache->episode = episode;
    }
    return weir_h5_read_row(cache->h5, key, (uint64_t)t, buffer, capacity, length, err);
}

static void lock_timed(void)
{
    WEIR_ZONE(WEIR_STAGE_WAIT_LIBRARY);
    weir_h5_lock();
}

int weir_fetch(struct weir_dataset *dataset, int episode, int camera, int t, void *buffer, size_t capacity,
               size_t *length, struct weir_err *err)
{
    const struct weir_track *track = &dataset->episodes[episode].tracks[camera];
    lock_timed();
    int rc = fetch_locked(dataset, episode, track->key, t, buffer, capacity, length, err);
    weir_h5_unlock();
    if (rc < 0 || !track->lengths)
        return rc;
    *length = track->lengths[t] < *length ? track->lengths[t] : *length;
    return 0;
}

void weir_dataset_close(struct weir_dataset **dataset)
{
    struct weir_dataset *d = *dataset;
    if (!d)
        return;
    for (int i = 0; i < d->n_episodes; i++)
        weir_episode_close(&d->episodes[i]);
    for (int i = 0; i < d->n_bad; i++)
        free(d->bad[i]);
    if (d->cache) {
        weir_h5_lock();
        weir_h5_close(&d->cache->h5);
        weir_h5_unlock();
        free(d->cache);
    }
    free(d->bad);
    free(d->episodes);
    free(d);
    *dataset = NULL;
}
