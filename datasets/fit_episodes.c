/* Combines episodes into one dataset. All of them must have the first episode's cameras, frame kinds, sizes and
 * dimensions. An episode that differs is an error or is left out. */
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/index.h"
#include "datasets/open_dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_SET_ENTRY = 96 }; /* memory that an io file set needs per file, without the path */

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

/* Returns the length of the first name in a list that commas divide: that of the longest camera that it begins with,
 * because names may contain commas. */
static size_t name_length(const struct weir_episode *episode, const char *list)
{
    size_t longest = 0;
    for (int i = 0; i < episode->n_maps; i++) {
        size_t n = strlen(episode->names[i]);
        if (n > longest && strncmp(list, episode->names[i], n) == 0 && (list[n] == ',' || list[n] == '\0'))
            longest = n;
    }
    return longest ? longest : strcspn(list, ",");
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
                        episode->root, (int)(length < 128 ? length : 128), name, *have ? have : "no cameras");
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

/* Takes the names from --cameras, or all cameras of the first episode. */
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
        size_t length = name_length(first, at);
        if (length == 0)
            return weir_err_set(err, -EINVAL, "the list of cameras, \"%s\", contains an empty name", wanted);
        int map = find_name(first, at, length);
        rc = map < 0 ? no_camera(path, first, at, length, -EINVAL, err) : add_camera(dataset, first->names[map], err);
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    return rc;
}

/* ---- fitting episodes together ---- */

/* For an episode that does not have all cameras: returns -ENOKEY if it has some of them. Returns -EBADMSG if it has
 * none, because it then belongs to another dataset. */
static int lack_code(const struct weir_dataset *dataset, const struct weir_episode *episode)
{
    for (int c = 0; c < dataset->n_cameras; c++)
        if (find_name(episode, dataset->cameras[c].name, strlen(dataset->cameras[c].name)) >= 0)
            return -ENOKEY;
    return -EBADMSG;
}

/* Moves the maps of the chosen cameras to the front, in the dataset's order. The other maps are freed with the episode.
 */
static int order_maps(const struct weir_dataset *dataset, const char *path, struct weir_episode *episode,
                      struct weir_err *err)
{
    for (int c = 0; c < dataset->n_cameras; c++) {
        const char *name = dataset->cameras[c].name;
        int at = find_name(episode, name, strlen(name));
        if (at < 0)
            return no_camera(path, episode, name, strlen(name), lack_code(dataset, episode), err);
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

static bool same_depth(const float *a, const float *b)
{
    return a == b || (a && b && memcmp(a, b, WEIR_DEPTH_VALUES * sizeof *a) == 0);
}

static int check_fit(struct weir_dataset *dataset, const struct weir_file_index *file,
                     const struct weir_episode *episode, struct weir_err *err)
{
    const struct weir_episode *first = &dataset->episodes[0];
    const char *path = file->file.path, *first_path = dataset->files[first->file].file.path;
    char differences[320];
    if (episode->qpos_dim != first->qpos_dim || episode->action_dim != first->action_dim)
        return weir_err_set(err, -EBADMSG,
                            "%s: state and actions have %d and %d dimensions, but in %s they have %d and %d", path,
                            episode->qpos_dim, episode->action_dim, first_path, first->qpos_dim, first->action_dim);
    bool differs = weir_traits_differ(file->traits, dataset->traits, differences, sizeof differences);
    for (int e = 0; e < dataset->n_episodes && differs; e++) { /* the first file may lack what another has */
        const struct weir_file_index *other = &dataset->files[dataset->episodes[e].file];
        if (weir_traits_differ(file->traits, other->traits, differences, sizeof differences))
            return weir_err_set(err, -EBADMSG, "%s: is not of the same dataset as %s: %s", path, other->file.path,
                                differences);
    }
    const char *column = weir_columns_misfit(episode, first);
    if (column)
        return weir_err_set(err, -EBADMSG,
                            "%s%s%s: column %s has another type or shape than in %s%s%s, or is missing in one of them; "
                            "write all with the same columns",
                            path, *episode->root ? ": " : "", episode->root, column, first_path,
                            *first->root ? ": " : "", first->root);
    if (weir_episode_is_bgr(episode) != weir_episode_is_bgr(first))
        return weir_err_set(
            err, -EBADMSG, "%s: its colours are recorded as %s, but in %s as %s; put each kind in a folder of its own",
            path, weir_episode_is_bgr(episode) ? "bgr" : "rgb", first_path, weir_episode_is_bgr(first) ? "bgr" : "rgb");
    for (int c = 0; c < dataset->n_cameras; c++) {
        const struct weir_frame_map *a = &episode->maps[c];
        struct weir_camera *b = &dataset->cameras[c];
        if (weir_frame_is_depth(a->kind) != weir_frame_is_depth(b->kind))
            return weir_err_set(
                err, -EBADMSG,
                "%s: %s contains %s frames, but in %s it contains %s; put each kind in a folder of its own", path,
                a->key, weir_frame_kind_name(a->kind), first_path, weir_frame_kind_name(b->kind));
        if (!same_depth(a->depth_values, b->depth_values))
            return weir_err_set(err, -EBADMSG,
                                "%s: %s has another scale of depth than in %s; put each kind in a folder of its own",
                                path, a->key, first_path);
        if (a->width && b->width && (a->width != b->width || a->height != b->height))
            return weir_err_set(
                err, -EBADMSG,
                "%s: %s has frames of %dx%d, but in %s they are %dx%d; put each size in a folder of its own", path,
                a->key, a->width, a->height, first_path, b->width, b->height);
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
        dataset->cameras[c].kind = episode->maps[c].kind;
        dataset->cameras[c].depth_values = episode->maps[c].depth_values;
        dataset->cameras[c].width = episode->maps[c].width;
        dataset->cameras[c].height = episode->maps[c].height;
    }
    if (rc == 0 && !first && dataset->n_cameras == 0 && episode->n_maps > 0)
        rc = weir_err_set(err, -EBADMSG, "%s: it has the camera %s, but %s has no cameras", path, episode->names[0],
                          dataset->files[dataset->episodes[0].file].file.path);
    if (rc == 0 && !first)
        rc = check_fit(dataset, file, episode, err);
    for (int c = 0; c < dataset->n_cameras && rc == 0; c++) {
        const struct weir_frame_map *map = &episode->maps[c];
        size_t bytes = weir_frame_map_extent_max(map, episode->steps, file->file.size_bytes);
        dataset->extent_max = bytes > dataset->extent_max ? bytes : dataset->extent_max;
    }
    return rc;
}

/* ---- adding episodes ---- */

int weir_leave_out(struct weir_dataset *dataset, const char *text)
{
    if (!weir_grow(&dataset->bad, (size_t)dataset->n_bad, sizeof *dataset->bad))
        return -ENOMEM;
    dataset->bad[dataset->n_bad] = strdup(text);
    return dataset->bad[dataset->n_bad] ? (dataset->n_bad++, 0) : -ENOMEM;
}

/* Moves an episode from its file's index to the dataset, or frees the episode if it does not fit. */
static int take_episode(struct weir_dataset *dataset, const struct weir_dataset_config *config, int file,
                        struct weir_episode *from, struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    from->file = file;
    int rc = fit(dataset, &dataset->files[file], from, config->cameras, &why);
    if (rc == 0 && weir_traits_merge(&dataset->traits, dataset->files[file].traits, err) < 0)
        return -ENOMEM;
    if (rc == 0) {
        dataset->episodes[dataset->n_episodes++] = *from;
        *from = (struct weir_episode){0};
        return 0;
    }
    weir_episode_close(from);
    dataset->n_misfits++;
    /* -EINVAL: the command line names something that does not exist, so the episode is not at fault */
    bool alone = strcmp(config->path, dataset->files[file].file.path) == 0;
    if (rc == -EINVAL || (alone && !config->tolerant))
        return weir_err_set(err, rc, "%s", why.text);
    if (!config->tolerant && rc == -ENOKEY)
        return weir_err_set(err, rc,
                            "%.600s; choose cameras that all episodes have (--cameras), move the episode away, or "
                            "continue without it (--on-error skip)",
                            why.text);
    if (!config->tolerant)
        return weir_err_set(err, rc,
                            "%.600s; the folder contains several datasets: `weir info %.200s` lists them; choose the "
                            "folder or the file of one dataset",
                            why.text, config->path);
    return weir_leave_out(dataset, why.text) < 0 ? weir_no_memory(err) : 0;
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
    f->first_part = dataset->n_parts;
    uint64_t parts = (uint64_t)dataset->n_parts + (f->parts ? f->parts->n : 0);
    if (parts > INT32_MAX - 1000 * 1000 * 1000)
        return weir_err_set(err, -EFBIG, "%s: the dataset has more than a billion chunk files; use fewer files",
                            f->file.path);
    dataset->n_parts = (int)parts;
    if (reserve_episodes(dataset, f->n_episodes) < 0)
        return weir_no_memory(err);
    int rc = 0;
    for (int i = 0; i < f->n_bad && rc == 0; i++)
        if (weir_leave_out(dataset, f->bad[i]) < 0)
            rc = weir_no_memory(err);
    int before = dataset->n_episodes;
    for (int i = 0; i < f->n_episodes && rc == 0; i++)
        rc = take_episode(dataset, config, file, &f->episodes[i], err);
    for (int i = before; i < dataset->n_episodes; i++)
        dataset->index_bytes += dataset->episodes[i].bytes;
    dataset->index_bytes += sizeof *f + f->held_bytes + FILE_SET_ENTRY + 2 * strlen(f->file.path);
    if (f->parts)
        dataset->index_bytes += weir_parts_bytes(f->parts) + f->parts->n * (FILE_SET_ENTRY + strlen(f->file.path));
    return rc;
}
