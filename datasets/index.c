#include "datasets/index_priv.h"
#include "prof/text.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { STEPS_MAX = 100 * 1000 * 1000, DIM_MAX = 65536, SIDE_MAX = 65500 };

struct weir_episode_builder {
    struct weir_h5 *h5;
    struct weir_episode *episode;
    const char *cameras; /* asked for; NULL = all */
    bool tolerant;
};

static pthread_mutex_t h5_lock = PTHREAD_MUTEX_INITIALIZER;

void weir_h5_lock(void)
{
    pthread_mutex_lock(&h5_lock);
}

void weir_h5_unlock(void)
{
    pthread_mutex_unlock(&h5_lock);
}

int weir_builder_steps(const struct weir_episode_builder *builder)
{
    return builder->episode->steps;
}

/* ---- state ---- */

/* One number that is none would make the mean, and so every sample, that too. */
static int check_finite(const char *key, const float *values, size_t steps, size_t dim, struct weir_err *err)
{
    for (size_t i = 0; i < steps * dim; i++)
        if (!isfinite(values[i]))
            return weir_err_set(err, -EBADMSG, "%s[%zu][%zu]: is %g; repair it or remove the episode", key, i / dim,
                                i % dim, (double)values[i]);
    return 0;
}

static int read_state(struct weir_episode_builder *builder, const char *key, float **values, int *steps, int *dim,
                      struct weir_err *err)
{
    struct weir_h5_shape shape;
    int rc = weir_h5_shape(builder->h5, key, &shape, err);
    if (rc < 0)
        return rc;
    if (shape.rank != 2)
        return weir_err_set(err, -EBADMSG, "%s: has rank %d; (steps, dimensions) is needed", key, shape.rank);
    if (shape.dims[0] == 0)
        return weir_err_set(err, -EBADMSG, "%s: has 0 steps; remove the episode", key);
    if (shape.dims[0] > STEPS_MAX || shape.dims[1] == 0 || shape.dims[1] > DIM_MAX)
        return weir_err_set(err, -EBADMSG, "%s: its shape (%llu, %llu) makes no sense", key,
                            (unsigned long long)shape.dims[0], (unsigned long long)shape.dims[1]);
    rc = weir_h5_read_floats(builder->h5, key, values, &shape, err);
    if (rc < 0)
        return rc;
    *steps = (int)shape.dims[0];
    *dim = (int)shape.dims[1];
    builder->episode->bytes += (size_t)*steps * (size_t)*dim * sizeof(float);
    return check_finite(key, *values, (size_t)*steps, (size_t)*dim, err);
}

int weir_builder_state(struct weir_episode_builder *builder, const char *qpos_key, const char *action_key,
                       struct weir_err *err)
{
    struct weir_episode *e = builder->episode;
    int steps = 0;
    int rc = read_state(builder, qpos_key, &e->qpos, &e->steps, &e->qpos_dim, err);
    if (rc == 0)
        rc = read_state(builder, action_key, &e->actions, &steps, &e->action_dim, err);
    if (rc < 0)
        return rc;
    if (steps != e->steps)
        return weir_err_set(err, -EBADMSG, "%s has %d steps, %s has %d; cut them to the same length", qpos_key,
                            e->steps, action_key, steps);
    e->qpos_key = strdup(qpos_key);
    e->action_key = strdup(action_key);
    return e->qpos_key && e->action_key ? 0 : weir_err_set(err, -ENOMEM, "out of memory");
}

/* ---- cameras ---- */

bool weir_is_depth_name(const char *name)
{
    size_t n = strlen(name);
    return n > 6 && strcmp(name + n - 6, "_depth") == 0;
}

int weir_name_answers(const char *name, const char *asked, size_t length)
{
    if (strlen(name) == length && memcmp(name, asked, length) == 0)
        return 2;
    bool alias = strncmp(name, "rgb_", 4) == 0 && strlen(name + 4) == length && memcmp(name + 4, asked, length) == 0;
    return alias ? 1 : 0;
}

static bool is_asked_for(const char *list, const char *name)
{
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        if (weir_name_answers(name, at, length) > 0)
            return true;
        at += length;
        if (*at == '\0')
            return false;
    }
}

/* True when nobody asked for the camera: it is not looked at, but can be named when another is missing. */
static bool pass_over(struct weir_episode_builder *builder, const char *name)
{
    if (!builder->cameras || is_asked_for(builder->cameras, name))
        return false;
    struct weir_episode *e = builder->episode;
    char *names;
    if (asprintf(&names, "%s%s%s", e->passed_over ? e->passed_over : "", e->passed_over ? ", " : "", name) < 0)
        return true;
    weir_text_printable(names);
    free(e->passed_over);
    e->passed_over = names;
    return true;
}

/* A track of so many frames, as many as the episode has steps. */
static int new_track(struct weir_episode_builder *builder, const char *name, const char *key, uint64_t frames,
                     struct weir_track **out, struct weir_err *err)
{
    struct weir_episode *e = builder->episode;
    if (frames != (uint64_t)e->steps)
        return weir_err_set(err, -EBADMSG, "%s has %llu frames, %s has %d steps; cut them to the same length", key,
                            (unsigned long long)frames, e->qpos_key, e->steps);
    if (e->n_tracks == WEIR_CAMERAS_MAX)
        return weir_err_set(err, -EBADMSG, "%s: more than %d cameras", key, WEIR_CAMERAS_MAX);
    if (!e->tracks) {
        e->tracks = calloc(WEIR_CAMERAS_MAX, sizeof *e->tracks);
        e->names = calloc(WEIR_CAMERAS_MAX, sizeof *e->names);
    }
    char *copy = strdup(key);
    if (!e->tracks || !e->names || !copy) {
        free(copy);
        return weir_err_set(err, -ENOMEM, "out of memory");
    }
    snprintf(e->names[e->n_tracks], WEIR_NAME_MAX, "%s", name);
    weir_text_printable(e->names[e->n_tracks]); /* it will be shown; the key stays as it is */
    *out = &e->tracks[e->n_tracks++];
    (*out)->key = copy;
    return 0;
}

static int place_heap(struct weir_track *track, struct weir_h5_place *place, int steps)
{
    track->slots = calloc((size_t)steps, sizeof *track->slots);
    if (track->slots)
        for (int t = 0; t < steps; t++)
            track->slots[t].ref = place->refs[t];
    free(place->refs);
    return track->slots ? 0 : -ENOMEM;
}

static int place_track(struct weir_episode_builder *builder, struct weir_track *track, struct weir_err *err)
{
    struct weir_h5_place place;
    int rc = weir_h5_locate(builder->h5, track->key, &place, err);
    if (rc < 0)
        return rc;
    track->storage = place.storage;
    track->base = place.base;
    track->row_bytes = place.row_bytes;
    track->offsets = place.offsets;
    size_t steps = (size_t)builder->episode->steps;
    if (place.storage == WEIR_H5_HEAP) {
        rc = place_heap(track, &place, builder->episode->steps);
        builder->episode->bytes += steps * sizeof *track->slots;
    } else if (place.offsets) {
        builder->episode->bytes += steps * sizeof *track->offsets;
    }
    return rc < 0 ? weir_err_set(err, rc, "out of memory") : 0;
}

int weir_builder_raw_camera(struct weir_episode_builder *builder, const char *name, const char *key,
                            struct weir_err *err)
{
    if (pass_over(builder, name))
        return 0;
    struct weir_h5_shape shape;
    int rc = weir_h5_shape(builder->h5, key, &shape, err);
    if (rc < 0)
        return rc;
    if (shape.rank != 4 || shape.class != WEIR_H5_INTEGER || shape.type_bytes != 1 || shape.dims[3] != 3)
        return weir_err_set(err, -EBADMSG,
                            "%s: has rank %d and elements of %zu bytes; uint8 (steps, height, width, 3) "
                            "is needed",
                            key, shape.rank, shape.type_bytes);
    if (shape.dims[1] == 0 || shape.dims[1] > SIDE_MAX || shape.dims[2] == 0 || shape.dims[2] > SIDE_MAX)
        return weir_err_set(err, -EBADMSG, "%s: frames of %llux%llu make no sense", key,
                            (unsigned long long)shape.dims[2], (unsigned long long)shape.dims[1]);
    struct weir_track *track;
    rc = new_track(builder, name, key, shape.dims[0], &track, err);
    if (rc < 0)
        return rc;
    track->codec = "raw";
    track->width = (int)shape.dims[2];
    track->height = (int)shape.dims[1];
    return place_track(builder, track, err);
}

static int take_lengths(struct weir_episode_builder *builder, struct weir_track *track, const float *lengths,
                        struct weir_err *err)
{
    size_t steps = (size_t)builder->episode->steps;
    track->lengths = malloc(steps * sizeof *track->lengths);
    if (!track->lengths)
        return weir_err_set(err, -ENOMEM, "out of memory");
    builder->episode->bytes += steps * sizeof *track->lengths;
    for (size_t t = 0; t < steps; t++) {
        bool sane = isfinite(lengths[t]) && lengths[t] >= 1 && (double)lengths[t] <= (double)track->row_bytes;
        track->lengths[t] = sane ? (uint32_t)lengths[t] : WEIR_LENGTH_BAD;
        if (!sane && !builder->tolerant)
            return weir_err_set(
                err, -EBADMSG,
                "%s[%zu]: compress_len says %g bytes, a row has %zu; repair /compress_len, or pass over "
                "bad frames with `weir run --on-error skip`",
                track->key, t, (double)lengths[t], track->row_bytes);
    }
    return 0;
}

int weir_builder_jpeg_camera(struct weir_episode_builder *builder, const char *name, const char *key,
                             const float *lengths, struct weir_err *err)
{
    if (pass_over(builder, name))
        return 0;
    struct weir_h5_shape shape;
    int rc = weir_h5_shape(builder->h5, key, &shape, err);
    if (rc < 0)
        return rc;
    bool vlen = shape.class == WEIR_H5_VLEN_BYTES && shape.rank == 1;
    bool padded = shape.class == WEIR_H5_INTEGER && shape.type_bytes == 1 && shape.rank == 2;
    if (!vlen && !padded)
        return weir_err_set(err, -EBADMSG,
                            "%s: has rank %d and elements of %zu bytes; JPEGs are stored as rows of uint8 "
                            "(steps, bytes) or as variable-length uint8 (steps)",
                            key, shape.rank, shape.type_bytes);
    struct weir_track *track;
    rc = new_track(builder, name, key, shape.dims[0], &track, err);
    if (rc < 0)
        return rc;
    track->codec = "jpeg";
    track->padded = padded;
    rc = place_track(builder, track, err);
    return rc == 0 && padded && lengths ? take_lengths(builder, track, lengths, err) : rc;
}

/* ---- an episode ---- */

static const struct weir_layout_ops *const layouts[] = {&weir_layout_actpp, &weir_layout_act, &weir_layout_astrobench};
enum { LAYOUT_COUNT = sizeof layouts / sizeof layouts[0] };

bool weir_dataset_layout_row(int i, const char **name, const char **summary, const char **why_not)
{
    if (i < 0 || i >= LAYOUT_COUNT)
        return false;
    *name = layouts[i]->name;
    *summary = layouts[i]->summary;
    *why_not = NULL;
    return true;
}

const struct weir_layout_ops *weir_layout_of(struct weir_h5 *h5)
{
    for (int i = 0; i < LAYOUT_COUNT; i++)
        if (layouts[i]->detect(h5))
            return layouts[i];
    return NULL;
}

static int no_layout(struct weir_h5 *h5, struct weir_err *err)
{
    char(*names)[64];
    int n;
    char have[256] = "", known[256] = "";
    if (weir_h5_list(h5, "/", &names, &n, err) < 0)
        return -EBADMSG;
    for (int i = 0; i < n && strlen(have) + 70 < sizeof have; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s/%s", i ? ", " : "", names[i]);
    free(names);
    for (int i = 0; i < LAYOUT_COUNT; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", layouts[i]->name);
    return weir_err_set(err, -EBADMSG, "no known layout: the file has %s; layouts read: %s", n ? have : "nothing in it",
                        known);
}

static void count_text(struct weir_episode *episode, const char *text)
{
    enum { HEAP_BLOCK = 16 };
    episode->bytes += text ? strlen(text) + 1 + HEAP_BLOCK : 0;
}

/* Gives back what was reserved for more cameras, and counts what is left. */
static void shrink(struct weir_episode *episode)
{
    enum { FILE_SET_ENTRY = 96 }; /* what an io file set keeps of the file, its path apart */
    size_t n = (size_t)episode->n_tracks;
    void *tracks = n ? realloc(episode->tracks, n * sizeof *episode->tracks) : NULL;
    void *names = n ? realloc(episode->names, n * sizeof *episode->names) : NULL;
    episode->tracks = tracks ? tracks : episode->tracks;
    episode->names = names ? names : episode->names;
    episode->bytes += n * (sizeof *episode->tracks + sizeof *episode->names) + FILE_SET_ENTRY;
    for (size_t i = 0; i < n; i++)
        count_text(episode, episode->tracks[i].key);
    count_text(episode, episode->qpos_key);
    count_text(episode, episode->action_key);
    count_text(episode, episode->passed_over);
    count_text(episode, episode->file.path);
    count_text(episode, episode->file.path); /* the file set's */
}

static int describe(struct weir_h5 *h5, struct weir_episode *episode, const char *cameras, bool tolerant,
                    struct weir_err *err)
{
    episode->layout = weir_layout_of(h5);
    if (!episode->layout)
        return no_layout(h5, err);
    struct weir_episode_builder builder = {h5, episode, cameras, tolerant};
    int rc = episode->layout->index(h5, &builder, err);
    if (rc == 0 && episode->n_tracks == 0 && !cameras)
        rc = weir_err_set(err, -EBADMSG, "layout %s, but it has no cameras; remove it, or record it anew",
                          episode->layout->name);
    if (rc == 0)
        shrink(episode);
    return rc;
}

static int look_at(struct weir_dataset_file *file, const char *path, struct weir_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return weir_err_set(err, -errno, "%s; check the path and its permissions", strerror(errno));
    *file = (struct weir_dataset_file){path, (uint64_t)st.st_size, st.st_dev, st.st_ino,
                                       (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec};
    return 0;
}

static int identify(struct weir_dataset_file *file, const char *path, struct weir_err *err)
{
    char *copy = strdup(path);
    if (!copy)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = look_at(file, copy, err);
    if (rc < 0)
        free(copy);
    return rc;
}

int weir_episode_check(const struct weir_episode *episode, struct weir_err *err)
{
    struct weir_dataset_file now = {0}, then = episode->file;
    int rc = look_at(&now, then.path, err);
    if (rc < 0)
        return rc;
    if (now.size_bytes == then.size_bytes && now.device == then.device && now.inode == then.inode &&
        now.mtime_ns == then.mtime_ns)
        return 0;
    return weir_err_set(err, -ESTALE, "the file changed since it was opened; run again to index it anew");
}

int weir_episode_open(struct weir_episode *episode, const char *path, const char *cameras, bool tolerant,
                      struct weir_err *err)
{
    *episode = (struct weir_episode){.bytes = sizeof *episode};
    struct weir_h5 *h5 = NULL;
    int rc = identify(&episode->file, path, err);
    weir_h5_lock();
    if (rc == 0)
        rc = weir_h5_open(&h5, path, err);
    if (rc == 0)
        rc = describe(h5, episode, cameras, tolerant, err);
    weir_h5_close(&h5);
    weir_h5_unlock();
    if (rc < 0) {
        weir_err_prefix(err, "%s", path);
        weir_episode_close(episode);
    }
    return rc;
}

void weir_episode_close(struct weir_episode *episode)
{
    for (int i = 0; i < episode->n_tracks; i++) {
        free(episode->tracks[i].key);
        free(episode->tracks[i].offsets);
        free(episode->tracks[i].lengths);
        free(episode->tracks[i].slots);
    }
    free(episode->tracks);
    free(episode->names);
    free(episode->passed_over);
    free(episode->qpos);
    free(episode->actions);
    free(episode->qpos_key);
    free(episode->action_key);
    free((char *)episode->file.path);
    *episode = (struct weir_episode){0};
}
