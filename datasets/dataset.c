#include "datasets/dataset.h"
#include "base/clock.h"
#include "base/text.h"
#include "datasets/builder.h"
#include "datasets/dataset_stages.h"
#include "datasets/hdf5/inside.h"
#include "datasets/hdf5_helper_priv.h"
#include "prof/record/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_SET_ENTRY = 96 }; /* what an io file set keeps of a file, its path apart */

/* ---- cameras of the dataset ---- */

static int find_name(const struct weir_episode *episode, const char *name, size_t length)
{
    int found = -1, best = 0;
    for (int i = 0; i < episode->n_maps; i++) {
        int match = weir_name_match(episode->names[i], name, length);
        if (match <= best)
            continue;
        best = match;
        found = i;
    }
    return found;
}

static int no_camera(const char *path, const struct weir_episode *episode, const char *name, size_t length, int code,
                     struct weir_err *err)
{
    char have[512] = "";
    for (int i = 0; i < episode->n_maps; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", i ? ", " : "", episode->names[i]);
    if (episode->passed_over)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", have[0] ? ", " : "", episode->passed_over);
    return weir_err_set(err, code, "%s%s%s: no camera \"%.*s\"; it has %s", path, *episode->root ? ": " : "",
                        episode->root, (int)(length < 128 ? length : 128), name, have);
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
static int choose_cameras(struct weir_dataset *dataset, const char *path, const struct weir_episode *first,
                          const char *wanted, struct weir_err *err)
{
    int rc = 0;
    if (!wanted || !*wanted) {
        for (int i = 0; i < first->n_maps && rc == 0; i++)
            rc = add_camera(dataset, first->names[i], err);
        return rc;
    }
    for (const char *at = wanted; rc == 0;) {
        size_t length = strcspn(at, ",");
        if (length == 0)
            return weir_err_set(err, -EINVAL, "the list of cameras, \"%s\", has an empty name in it", wanted);
        int map = find_name(first, at, length);
        rc = map < 0 ? no_camera(path, first, at, length, -EINVAL, err) : add_camera(dataset, first->names[map], err);
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    return rc;
}

/* ---- fitting episodes together ---- */

/* Puts the maps of the chosen cameras first, in the dataset's order; the others are freed with the episode. */
static int order_maps(const struct weir_dataset *dataset, const char *path, struct weir_episode *episode,
                      struct weir_err *err)
{
    for (int c = 0; c < dataset->n_cameras; c++) {
        const char *name = dataset->cameras[c].name;
        int at = find_name(episode, name, strlen(name));
        if (at < 0)
            return no_camera(path, episode, name, strlen(name), -EBADMSG, err);
        struct weir_frame_map map = episode->maps[c];
        episode->maps[c] = episode->maps[at];
        episode->maps[at] = map;
        char text[WEIR_NAME_MAX];
        memcpy(text, episode->names[c], sizeof text);
        memcpy(episode->names[c], episode->names[at], sizeof text);
        memcpy(episode->names[at], text, sizeof text);
    }
    return 0;
}

static bool is_depth(const char *codec)
{
    return strcmp(codec, "raw16") == 0 || strcmp(codec, "png16") == 0;
}

static int check_fit(struct weir_dataset *dataset, const char *path, const struct weir_episode *episode,
                     struct weir_err *err)
{
    const struct weir_episode *first = &dataset->episodes[0];
    const char *first_path = weir_dataset_episode_path(dataset, 0);
    if (episode->qpos_dim != first->qpos_dim || episode->action_dim != first->action_dim)
        return weir_err_set(err, -EBADMSG, "%s: state and actions have %d and %d dimensions, in %s they have %d and %d",
                            path, episode->qpos_dim, episode->action_dim, first_path, first->qpos_dim,
                            first->action_dim);
    for (int c = 0; c < dataset->n_cameras; c++) {
        const struct weir_frame_map *a = &episode->maps[c];
        struct weir_camera *b = &dataset->cameras[c];
        if (is_depth(a->codec) != is_depth(b->codec))
            return weir_err_set(err, -EBADMSG, "%s: %s holds %s frames, in %s it holds %s; give each kind a folder",
                                path, a->key, a->codec, first_path, b->codec);
        if (a->width && b->width && (a->width != b->width || a->height != b->height))
            return weir_err_set(err, -EBADMSG, "%s: %s has frames of %dx%d, in %s they are %dx%d", path, a->key,
                                a->width, a->height, first_path, b->width, b->height);
    }
    return 0;
}

static int fit(struct weir_dataset *dataset, const struct weir_file_index *file, struct weir_episode *episode,
               const char *wanted, struct weir_err *err)
{
    bool first = dataset->n_episodes == 0;
    const char *path = file->file.path;
    int rc = first ? choose_cameras(dataset, path, episode, wanted, err) : 0;
    if (rc == 0)
        rc = order_maps(dataset, path, episode, err);
    for (int c = 0; c < dataset->n_cameras && rc == 0 && first; c++) {
        dataset->cameras[c].codec = episode->maps[c].codec;
        dataset->cameras[c].width = episode->maps[c].width;
        dataset->cameras[c].height = episode->maps[c].height;
    }
    if (rc == 0 && !first)
        rc = check_fit(dataset, path, episode, err);
    for (int c = 0; c < dataset->n_cameras && rc == 0; c++) {
        const struct weir_frame_map *map = &episode->maps[c];
        size_t bytes = weir_frame_map_extent_max(map, episode->steps, file->file.size_bytes);
        dataset->extent_max = bytes > dataset->extent_max ? bytes : dataset->extent_max;
    }
    return rc;
}

/* ---- opening ---- */

int weir_leave_out(struct weir_dataset *dataset, const char *text)
{
    char **bad = realloc(dataset->bad, sizeof *bad * (size_t)(dataset->n_bad + 1));
    if (!bad)
        return -ENOMEM;
    dataset->bad = bad;
    bad[dataset->n_bad] = strdup(text);
    return bad[dataset->n_bad] ? (dataset->n_bad++, 0) : -ENOMEM;
}

/* Takes an episode over from its file's index; one that does not fit is freed. */
static int take_episode(struct weir_dataset *dataset, const struct weir_dataset_config *config, int file,
                        struct weir_episode *from, struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    from->file = file;
    int rc = fit(dataset, &dataset->files[file], from, config->cameras, &why);
    if (rc == 0) {
        dataset->episodes[dataset->n_episodes++] = *from;
        *from = (struct weir_episode){0};
        return 0;
    }
    weir_episode_close(from);
    dataset->n_misfits++;
    /* -EINVAL: the command line asks for what is not there: no episode's fault */
    bool alone = strcmp(config->path, dataset->files[file].file.path) == 0;
    if (rc == -EINVAL || (alone && !config->tolerant))
        return weir_err_set(err, rc, "%s", why.text);
    if (!config->tolerant)
        return weir_err_set(err, rc,
                            "%.300s; the folder holds several datasets: `weir info %.200s` lists them; give the folder "
                            "or the file of one",
                            why.text, config->path);
    return weir_leave_out(dataset, why.text) < 0 ? weir_err_set(err, -ENOMEM, "out of memory") : 0;
}

static int reserve_episodes(struct weir_dataset *dataset, int more)
{
    int wanted = dataset->n_episodes + more, capacity = dataset->capacity;
    if (wanted <= capacity)
        return 0;
    capacity = wanted > 2 * capacity ? wanted : 2 * capacity;
    void *episodes = realloc(dataset->episodes, sizeof *dataset->episodes * (size_t)capacity);
    if (!episodes)
        return -ENOMEM;
    dataset->episodes = episodes;
    dataset->capacity = capacity;
    return 0;
}

int weir_take_file(struct weir_dataset *dataset, const struct weir_dataset_config *config, struct weir_file_index *from,
                   struct weir_err *err)
{
    int file = dataset->n_files++;
    dataset->files[file] = *from;
    *from = (struct weir_file_index){0};
    struct weir_file_index *f = &dataset->files[file];
    if (reserve_episodes(dataset, f->n_episodes) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = 0;
    for (int i = 0; i < f->n_bad && rc == 0; i++)
        if (weir_leave_out(dataset, f->bad[i]) < 0)
            rc = weir_err_set(err, -ENOMEM, "out of memory");
    int before = dataset->n_episodes;
    for (int i = 0; i < f->n_episodes && rc == 0; i++)
        rc = take_episode(dataset, config, file, &f->episodes[i], err);
    for (int i = before; i < dataset->n_episodes; i++)
        dataset->index_bytes += dataset->episodes[i].bytes;
    dataset->index_bytes += sizeof *f + FILE_SET_ENTRY + 2 * strlen(f->file.path);
    return rc;
}

/* What is wrong with the whole, once all files were looked at. */
static int check_whole(const struct weir_dataset *dataset, const char *path, int n_files, struct weir_err *err)
{
    if (dataset->n_episodes == 0 && n_files == 1 && dataset->n_bad == 1)
        return weir_err_set(err, -EBADMSG, "%s", dataset->bad[0]);
    if (dataset->n_episodes == 0)
        return weir_err_set(err, -EBADMSG, "%s: none of its %d files can be read; the first: %s", path, n_files,
                            dataset->n_bad ? dataset->bad[0] : "it has no episodes");
    int all = dataset->n_episodes + dataset->n_bad;
    if (dataset->n_misfits > dataset->n_episodes)
        return weir_err_set(err, -EBADMSG,
                            "%d of %d episodes do not fit the first one, %s: the folder holds several datasets; `weir "
                            "info %s` lists them; give the folder or the file of one, or move the odd ones away: %s",
                            dataset->n_misfits, all, weir_dataset_episode_path(dataset, 0), path,
                            dataset->bad[dataset->n_bad - 1]);
    return 0;
}

/* What the search could not reach: episodes may be missing there. */
static int note_left_out(struct weir_dataset *dataset, const struct weir_dataset_config *config,
                         const struct weir_path_list *left_out, struct weir_err *err)
{
    if (left_out->n > 0 && !config->tolerant)
        return weir_err_set(err, -ENOENT, "%s (--on-error skip goes on without it)", left_out->paths[0]);
    for (int i = 0; i < left_out->n; i++)
        if (weir_leave_out(dataset, left_out->paths[i]) < 0)
            return weir_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

static int find_files(const struct weir_dataset_config *config, struct weir_path_list *paths,
                      struct weir_path_list *left_out, struct weir_err *err)
{
    *paths = *left_out = (struct weir_path_list){0};
    if (config->n_files == 0)
        return weir_scan(config->path, paths, left_out, err);
    int rc = 0;
    for (int i = 0; i < config->n_files && rc == 0; i++)
        rc = weir_path_list_add(paths, strdup(config->files[i]));
    if (rc == 0)
        return 0;
    weir_path_list_free(paths);
    return weir_err_set(err, rc, "out of memory");
}

int weir_dataset_open(struct weir_dataset **out, const struct weir_dataset_config *config, struct weir_err *err)
{
    *out = NULL;
    struct weir_path_list paths, left_out;
    int rc = weir_keys_check(config, err);
    if (rc == 0)
        rc = find_files(config, &paths, &left_out, err);
    if (rc < 0)
        return rc;
    struct weir_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset) {
        pthread_mutex_init(&dataset->helper_lock, NULL);
        dataset->root = weir_inside_root(config->path);
        dataset->allow_external = config->allow_external;
        dataset->files = calloc((size_t)paths.n, sizeof *dataset->files);
    }
    rc = dataset && dataset->files ? 0 : weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = note_left_out(dataset, config, &left_out, err);
    if (rc == 0)
        rc = weir_open_files(dataset, config, paths.paths, paths.n, err);
    if (rc == 0)
        rc = check_whole(dataset, config->path, paths.n, err);
    weir_path_list_free(&paths);
    weir_path_list_free(&left_out);
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

const char *weir_dataset_codec(const struct weir_dataset *dataset, int episode, int camera)
{
    return dataset->episodes[episode].maps[camera].codec;
}

int weir_dataset_files(const struct weir_dataset *dataset)
{
    return dataset->n_files;
}

int weir_dataset_files_from_index(const struct weir_dataset *dataset)
{
    return dataset->n_from_index;
}

void weir_dataset_file(const struct weir_dataset *dataset, int file, struct weir_dataset_file *out)
{
    *out = dataset->files[file].file;
}

size_t weir_dataset_extent_max(const struct weir_dataset *dataset)
{
    return dataset->extent_max;
}

int weir_dataset_episode_file(const struct weir_dataset *dataset, int episode)
{
    return dataset->episodes[episode].file;
}

const char *weir_dataset_episode_path(const struct weir_dataset *dataset, int episode)
{
    return dataset->files[dataset->episodes[episode].file].file.path;
}

const char *weir_dataset_episode_group(const struct weir_dataset *dataset, int episode)
{
    return dataset->episodes[episode].root;
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
    return sizeof *dataset + dataset->index_bytes;
}

enum { KINDS_MAX = 32 };

static void count_kind(struct weir_storage_kind *kinds, int *n, const char *text, bool library, uint64_t frames)
{
    int i = 0;
    while (i < *n && strcmp(kinds[i].text, text) != 0)
        i++;
    if (frames == 0 || i == KINDS_MAX)
        return;
    if (i == *n) {
        kinds[(*n)++] = (struct weir_storage_kind){.library = library};
        snprintf(kinds[i].text, sizeof kinds[i].text, "%s", text);
    }
    kinds[i].frames += frames;
}

bool weir_dataset_storage(const struct weir_dataset *dataset, int camera, int i, struct weir_storage_kind *kind)
{
    struct weir_storage_kind kinds[KINDS_MAX];
    int n = 0;
    for (int e = 0; e < dataset->n_episodes; e++) {
        const struct weir_frame_map *map = &dataset->episodes[e].maps[camera];
        uint64_t steps = (uint64_t)dataset->episodes[e].steps, missing = 0;
        char text[sizeof kinds->text];
        for (uint64_t t = 0; t < steps && map->storage == WEIR_STORED_CHUNKS; t++)
            missing += map->offsets[t] == UINT64_MAX;
        weir_frame_map_storage_text(map, text, sizeof text);
        count_kind(kinds, &n, text, map->storage == WEIR_STORED_LIBRARY, steps - missing);
        count_kind(kinds, &n, "only through the HDF5 library: never written", true, missing);
    }
    if (i >= n)
        return false;
    *kind = kinds[i];
    return true;
}

int weir_dataset_ragged(const struct weir_dataset *dataset, uint64_t *rows_cut)
{
    int n = 0;
    *rows_cut = 0;
    for (int e = 0; e < dataset->n_episodes; e++) {
        n += dataset->episodes[e].rows_cut > 0;
        *rows_cut += (uint64_t)dataset->episodes[e].rows_cut;
    }
    return n;
}

bool weir_dataset_note(const struct weir_dataset *dataset, int i, char *text, size_t size)
{
    static const char *const what[WEIR_NOTES] = {
        [WEIR_NOTE_LENGTHS_UNREADABLE] = "cannot be read as numbers",
        [WEIR_NOTE_LENGTHS_SHAPE] = "is not of shape (cameras, steps)",
        [WEIR_NOTE_LENGTHS_VALUES] = "holds values that are no length of a row",
    };
    for (int note = 1; note < WEIR_NOTES; note++) {
        int n = 0, first = 0;
        for (int e = dataset->n_episodes - 1; e >= 0; e--) {
            bool has = (int)dataset->episodes[e].note == note;
            n += has;
            first = has ? e : first;
        }
        if (n == 0 || i-- > 0)
            continue;
        snprintf(text, size,
                 "compress_len %s in %d of %d episodes, the first %s; it is a hint only: frames end where "
                 "their images end",
                 what[note], n, dataset->n_episodes, weir_dataset_episode_path(dataset, first));
        weir_text_printable(text);
        return true;
    }
    return false;
}

void weir_dataset_library(char *text, size_t size)
{
    weir_h5_library(text, size);
}

/* ---- reading through the library ---- */

static void lock_timed(struct weir_dataset *dataset)
{
    WEIR_ZONE(WEIR_STAGE_WAIT_LIBRARY);
    pthread_mutex_lock(&dataset->helper_lock);
}

/* Under the lock, so that there is one writer. */
static void add(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

static void count_helper(struct weir_dataset *dataset, uint64_t asked_ns, uint64_t begun_ns)
{
    add(&dataset->helper_calls, 1);
    add(&dataset->helper_wait_ns, begun_ns - asked_ns);
    add(&dataset->helper_busy_ns, weir_clock_monotonic_ns() - begun_ns);
}

void weir_dataset_helper(const struct weir_dataset *dataset, struct weir_helper_counts *counts)
{
    counts->calls = atomic_load_explicit(&dataset->helper_calls, memory_order_relaxed);
    counts->busy_ns = atomic_load_explicit(&dataset->helper_busy_ns, memory_order_relaxed);
    counts->wait_ns = atomic_load_explicit(&dataset->helper_wait_ns, memory_order_relaxed);
}

int weir_fetch(struct weir_dataset *dataset, int episode, int camera, int t, void *buffer, size_t capacity,
               size_t *length, struct weir_err *err)
{
    const struct weir_frame_map *map = &dataset->episodes[episode].maps[camera];
    const struct weir_dataset_file *file = &dataset->files[dataset->episodes[episode].file].file;
    uint64_t asked_ns = weir_clock_monotonic_ns();
    lock_timed(dataset);
    uint64_t begun_ns = weir_clock_monotonic_ns();
    if (!dataset->helper)
        dataset->helper = weir_hdf5_helper_open(NULL, dataset->root, dataset->allow_external);
    int rc = dataset->helper ? weir_hdf5_helper_read_row(dataset->helper, file, map->key, (uint64_t)t, buffer, capacity,
                                                         length, err)
                             : weir_err_set(err, -ENOMEM, "out of memory");
    count_helper(dataset, asked_ns, begun_ns);
    pthread_mutex_unlock(&dataset->helper_lock);
    return rc;
}

void weir_dataset_close(struct weir_dataset **dataset)
{
    struct weir_dataset *d = *dataset;
    if (!d)
        return;
    for (int i = 0; i < d->n_episodes; i++)
        weir_episode_close(&d->episodes[i]);
    for (int i = 0; i < d->n_files; i++)
        weir_file_index_close(&d->files[i]);
    for (int i = 0; i < d->n_bad; i++)
        free(d->bad[i]);
    weir_hdf5_helper_close(&d->helper);
    pthread_mutex_destroy(&d->helper_lock);
    free(d->bad);
    free(d->episodes);
    free(d->files);
    free(d->lent);
    free(d->root);
    free(d);
    *dataset = NULL;
}
