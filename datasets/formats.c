/* The table of formats, and what formats do with the files of a dataset. */
#include "base/threads.h"
#include "datasets/format_ops.h"
#include "origin/origin.h"
#include "origin/url.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct weir_format_ops *const formats[] = {&weir_format_hdf5, &weir_format_tfrecord, &weir_format_zarr,
                                                        &weir_format_lmdb, &weir_format_packed,   &weir_format_lerobot};

const struct weir_format_ops *weir_format_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0] && name[0] != '.'; i++)
        if (formats[i]->names && formats[i]->names(name))
            return formats[i];
    return NULL;
}

const struct weir_format_ops *weir_file_format(const struct weir_file_index *file)
{
    return file->format ? file->format : weir_format_of_named(file->file.path);
}

const struct weir_format_ops *weir_format_of_named(const char *path)
{
    const struct weir_format_ops *format = weir_format_of(path);
    return format ? format : &weir_format_hdf5;
}

bool weir_dataset_format_row(int i, const char **name, const char **summary, const char **why_not)
{
    if (i < 0 || i >= (int)(sizeof formats / sizeof formats[0]))
        return false;
    *name = formats[i]->name;
    *summary = formats[i]->summary;
    *why_not = NULL;
    return true;
}

int weir_dataset_check_file(const struct weir_dataset *dataset, int file, weir_damaged_fn *damaged, void *user,
                            struct weir_err *err)
{
    const struct weir_dataset_file *of = &dataset->files[file].file;
    const struct weir_format_ops *format = weir_file_format(&dataset->files[file]);
    return format && format->check ? format->check(dataset->origin, of, damaged, user, err) : 0;
}

int weir_dataset_review(const struct weir_dataset *dataset, int file, const char *episodes, weir_review_fn *found,
                        void *user, struct weir_err *err)
{
    const struct weir_format_ops *format = weir_file_format(&dataset->files[file]);
    const struct weir_dataset_file *of = &dataset->files[file].file;
    return format && format->review ? format->review(dataset->origin, of, episodes, found, user, err) : 0;
}

const struct weir_format_ops *weir_format_of_folder(int folder, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i]->is_folder && formats[i]->is_folder(folder, name))
            return formats[i];
    return NULL;
}

const struct weir_format_ops *weir_format_of_mark(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        const char *mark = weir_format_mark(formats[i], "");
        if (mark && strcmp(mark, name) == 0)
            return formats[i];
    }
    return NULL;
}

const struct weir_format_ops *weir_format_of_url(struct weir_origin *origin, const char *url)
{
    bool answers = true;
    for (size_t i = sizeof formats / sizeof formats[0]; i-- > 0 && answers;) {
        char path[WEIR_URL_MAX];
        struct weir_file_id id;
        struct weir_err ignored = WEIR_ERR_NONE;
        const char *mark = weir_format_mark(formats[i], url);
        if (!mark || !weir_url_join(path, sizeof path, url, mark))
            continue;
        int rc = origin->ops->identify(origin, path, &id, &ignored);
        if (rc == 0)
            return formats[i];
        answers = rc != -ETIMEDOUT && rc != -ECONNREFUSED && rc != -EHOSTUNREACH && rc != -ECANCELED;
    }
    return NULL;
}

int weir_find_missing(const struct weir_path_list *files, struct weir_path_list *left_out)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0] && rc == 0; i++)
        rc = formats[i]->missing ? formats[i]->missing(files, left_out) : 0;
    return rc;
}

/* ---- frames that the format reads or locates ---- */

static void lock_timed(struct weir_dataset *dataset)
{
    WEIR_ZONE(WEIR_STAGE_WAIT_LIBRARY);
    pthread_mutex_lock(&dataset->helper_lock);
}

/* Called with the lock held, so there is only one writer. */
static void count_helper(struct weir_dataset *dataset, uint64_t asked_ns, uint64_t begun_ns)
{
    weir_counter_add(&dataset->helper_calls, 1);
    weir_counter_add(&dataset->helper_wait_ns, begun_ns - asked_ns);
    weir_counter_add(&dataset->helper_busy_ns, weir_clock_monotonic_ns() - begun_ns);
}

void weir_dataset_helper(const struct weir_dataset *dataset, struct weir_helper_counts *counts)
{
    counts->calls = atomic_load_explicit(&dataset->helper_calls, memory_order_relaxed);
    counts->busy_ns = atomic_load_explicit(&dataset->helper_busy_ns, memory_order_relaxed);
    counts->wait_ns = atomic_load_explicit(&dataset->helper_wait_ns, memory_order_relaxed);
}

static const struct weir_file_index *file_of(const struct weir_dataset *dataset, int episode)
{
    return &dataset->files[dataset->episodes[episode].file];
}

bool weir_dataset_can_find_frames(const struct weir_dataset *dataset, int episode, int camera)
{
    struct weir_frame_map *map = &dataset->episodes[episode].maps[camera];
    return map->storage == WEIR_STORED_LIBRARY && !atomic_load_explicit(&map->located, memory_order_acquire) &&
           weir_file_format(file_of(dataset, episode))->find_frames;
}

int weir_dataset_find_frames(struct weir_dataset *dataset, int episode, int camera, struct weir_err *err)
{
    if (!weir_dataset_can_find_frames(dataset, episode, camera))
        return 0;
    WEIR_ZONE(WEIR_STAGE_READ_BYTES);
    const struct weir_file_index *file = file_of(dataset, episode);
    int rc = weir_file_format(file)->find_frames(dataset->origin, file, &dataset->episodes[episode].maps[camera], err);
    return rc < 0 ? rc : 1;
}

int weir_fetch(struct weir_dataset *dataset, int episode, int camera, int t, void *buffer, size_t capacity,
               size_t *length, struct weir_err *err)
{
    struct weir_frame_map *map = &dataset->episodes[episode].maps[camera];
    const struct weir_file_index *file = file_of(dataset, episode);
    const struct weir_format_ops *format = weir_file_format(file);
    uint64_t asked_ns = weir_clock_monotonic_ns();
    lock_timed(dataset);
    uint64_t begun_ns = weir_clock_monotonic_ns();
    if (dataset->library_format != format)
        weir_opening_end(&dataset->library);
    dataset->library_format = format;
    int rc = format->read_row(&dataset->library, file, map, (uint64_t)t, buffer, capacity, length, err);
    count_helper(dataset, asked_ns, begun_ns);
    pthread_mutex_unlock(&dataset->helper_lock);
    return rc;
}

/* ---- splits ---- */

static const char *split_of(const char *path, size_t *length)
{
    const struct weir_format_ops *format = weir_format_of(path);
    const char *slash = strrchr(path, '/');
    return format && format->split ? format->split(slash ? slash + 1 : path, length) : NULL;
}

static bool is_split(const char *path, const char *split, size_t length)
{
    size_t n;
    const char *found = split_of(path, &n);
    return found && n == length && memcmp(found, split, n) == 0;
}

/* Writes the names of the splits ("train, val") as far as they fit. Returns the number of splits. */
static int list_splits(const struct weir_path_list *files, char *text, size_t size)
{
    int found = 0;
    text[0] = '\0';
    for (int i = 0; i < files->n; i++) {
        size_t length;
        const char *split = split_of(files->paths[i], &length);
        bool again = !split;
        for (int before = 0; before < i && !again; before++)
            again = is_split(files->paths[before], split, length);
        if (again)
            continue;
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%.*s", found++ ? ", " : "", (int)(length < 64 ? length : 64), split);
    }
    return found;
}

static void keep_split(struct weir_path_list *files, const char *split)
{
    int kept = 0;
    size_t length;
    for (int i = 0; i < files->n; i++) {
        if (!split_of(files->paths[i], &length) || is_split(files->paths[i], split, strlen(split)))
            files->paths[kept++] = files->paths[i];
        else
            free(files->paths[i]);
    }
    files->n = kept;
}

int weir_choose_split(struct weir_path_list *files, const char *folder, const char *split, struct weir_err *err)
{
    char splits[256];
    int n = list_splits(files, splits, sizeof splits);
    if (split && strcmp(split, "all") == 0)
        return 0;
    if (!split && n > 1)
        return weir_err_set(err, -EINVAL,
                            "%s: has the splits %s; choose one with --split, or all of them with --split all", folder,
                            splits);
    if (!split)
        return 0;
    keep_split(files, split);
    if (files->n > 0)
        return 0;
    return weir_err_set(err, -EINVAL, "%s: has no split %s%s%s", folder, split, n ? "; it has " : "", splits);
}
