#include "weir/dataset.h"
#include "base/option.h"
#include "base/shortage.h"
#include "base/text.h"
#include "datasets/builder.h"
#include "datasets/format_ops.h"
#include "datasets/scan_remote.h"
#include "origin/origin.h"
#include "weir/base.h"

#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- opening ---- */

static int check_whole(const struct weir_dataset *dataset, const char *path, int n_files, struct weir_err *err)
{
    if (dataset->n_episodes == 0 && n_files == 1 && dataset->n_bad == 1)
        return weir_err_set(err, -EBADMSG, "%s", dataset->bad[0]);
    if (dataset->n_episodes == 0)
        return weir_err_set(err, -EBADMSG, "%s: none of its %d files can be read; error of the first file: %s", path,
                            n_files, dataset->n_bad ? dataset->bad[0] : "it has no episodes");
    int all = dataset->n_episodes + dataset->n_bad;
    if (dataset->n_misfits > dataset->n_episodes)
        return weir_err_set(
            err, -EBADMSG,
            "%d of %d episodes do not fit the first one, %s: the folder contains several datasets; `weir info %s` "
            "lists them; choose the folder or the file of one dataset, or move the differing episodes away: %s",
            dataset->n_misfits, all, weir_dataset_episode_path(dataset, 0), path, dataset->bad[dataset->n_bad - 1]);
    return 0;
}

/* Records paths that the search could not read, because episodes may be missing there. */
static int note_left_out(struct weir_dataset *dataset, const struct weir_dataset_config *config,
                         const struct weir_path_list *left_out, struct weir_err *err)
{
    if (left_out->n > 0 && !config->tolerant)
        return weir_err_set(err, -ENOENT, "%s (--on-error skip leaves it out)", left_out->paths[0]);
    for (int i = 0; i < left_out->n; i++)
        if (weir_leave_out(dataset, left_out->paths[i]) < 0)
            return weir_no_memory(err);
    return 0;
}

static int search(const struct weir_dataset_config *config, struct weir_origin *origin, struct weir_path_list *paths,
                  struct weir_path_list *left_out, struct weir_err *err)
{
    int rc = origin ? weir_scan_remote(origin, config->path, paths, left_out, err)
                    : weir_scan(config->path, paths, left_out, err);
    if (rc == 0 && (rc = weir_path_list_leave_out_old(paths, config->path, left_out)) < 0)
        weir_err_set(err, rc, "%s: %s", config->path, strerror(-rc));
    if (rc == 0)
        rc = weir_choose_split(paths, config->path, config->split, err);
    if (rc == 0 && (rc = weir_find_missing(paths, left_out)) < 0)
        weir_no_memory(err);
    if (rc < 0) {
        weir_path_list_free(paths);
        weir_path_list_free(left_out);
    }
    return rc;
}

static int find_files(const struct weir_dataset_config *config, struct weir_origin *origin,
                      struct weir_path_list *paths, struct weir_path_list *left_out, struct weir_err *err)
{
    int rc = 0;
    *paths = *left_out = (struct weir_path_list){0};
    if (config->n_files == 0)
        return search(config, origin, paths, left_out, err);
    for (int i = 0; i < config->n_files && rc == 0; i++)
        rc = weir_path_list_add(paths, strdup(config->files[i]));
    if (rc == 0)
        return 0;
    weir_path_list_free(paths);
    return weir_err_set(err, rc, "out of memory");
}

static void note_opening(struct weir_dataset *dataset)
{
    struct weir_origin_counts counts;
    dataset->origin->ops->counts(dataset->origin, &counts);
    dataset->opening_requests = counts.requests;
}

/* Returns the real path of a dataset's folder: path itself, or the folder that contains it; NULL if that does not exist
 * or memory runs out. */
static char *root_of(const char *path)
{
    struct stat st;
    char *copy = strdup(path);
    bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    char *root = copy ? realpath(is_folder ? copy : dirname(copy), NULL) : NULL;
    free(copy);
    return root;
}

int weir_dataset_open(struct weir_dataset **out, const struct weir_dataset_config *given, struct weir_err *err)
{
    *out = NULL;
    struct weir_path_list paths, left_out;
    struct weir_origin *origin = NULL;
    struct weir_dataset_config full = {.size = 0};
    const struct weir_dataset_config *config = &full;
    int rc = weir_sized_copy(&full, sizeof full, WEIR_SIZED_LEAST(struct weir_dataset_config, user), given,
                             "struct weir_dataset_config", err);
    if (rc == 0)
        rc = weir_keys_check(config, err);
    if (rc == 0)
        rc = weir_remote_origin(config, &origin, err);
    if (rc == 0)
        rc = find_files(config, origin, &paths, &left_out, err);
    if (rc < 0) {
        weir_origin_close(&origin);
        return rc;
    }
    struct weir_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset) {
        pthread_mutex_init(&dataset->helper_lock, NULL);
        dataset->origin = origin;
        dataset->root = origin ? NULL : root_of(config->path);
        dataset->library =
            (struct weir_opening){.origin = origin, .root = dataset->root, .allow_external = config->allow_external};
        dataset->files = calloc((size_t)paths.n, sizeof *dataset->files);
    }
    rc = dataset && dataset->files ? 0 : weir_no_memory(err);
    if (rc == 0)
        rc = note_left_out(dataset, config, &left_out, err);
    if (rc == 0)
        rc = weir_open_files(dataset, config, paths.paths, paths.n, err);
    if (rc == 0)
        rc = check_whole(dataset, config->path, paths.n, err);
    weir_path_list_free(&paths);
    weir_path_list_free(&left_out);
    weir_remote_opened(origin);
    if (rc == 0 && origin)
        note_opening(dataset);
    if (rc < 0 && !dataset)
        weir_origin_close(&origin);
    if (rc < 0)
        weir_dataset_close(&dataset);
    *out = dataset;
    return rc;
}

struct weir_origin *weir_dataset_origin(const struct weir_dataset *dataset)
{
    return dataset->origin;
}

void weir_dataset_server(const struct weir_dataset *dataset, struct weir_server_counts *to)
{
    struct weir_origin_counts c = {0};
    if (dataset->origin)
        dataset->origin->ops->counts(dataset->origin, &c);
    *to = (struct weir_server_counts){
        .requests = c.requests,
        .bytes = c.bytes,
        .opening_requests = dataset->opening_requests,
        .retries = c.retries,
        .limited = c.limited,
        .connections = c.connections,
        .wait_ns = c.wait_ns,
        .transfer_ns = c.transfer_ns,
        .cache_bytes = c.cache.read_bytes,
        .cache_stored_bytes = c.cache.stored_bytes,
        .cache_full_bytes = c.cache.full_bytes,
        .cache_damaged_blocks = c.cache.damaged_blocks,
        .host = c.host,
        .cache_errno = (uint64_t)-c.cache.error,
    };
}

void weir_dataset_cancel_reads(const struct weir_dataset *dataset)
{
    if (dataset->origin)
        dataset->origin->ops->cancel(dataset->origin);
}

/* ---- contents ---- */

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

const void *weir_own_qpos(const struct weir_dataset *dataset, int episode, enum weir_number_type *type)
{
    const struct weir_own_numbers *own = &dataset->episodes[episode].qpos_own;
    *type = own->type;
    return own->values;
}

const void *weir_own_actions(const struct weir_dataset *dataset, int episode, enum weir_number_type *type)
{
    const struct weir_own_numbers *own = &dataset->episodes[episode].actions_own;
    *type = own->type;
    return own->values;
}

const struct weir_camera *weir_dataset_camera(const struct weir_dataset *dataset, int camera)
{
    return &dataset->cameras[camera];
}

bool weir_dataset_is_bgr(const struct weir_dataset *dataset)
{
    return weir_episode_is_bgr(&dataset->episodes[0]);
}

struct weir_frame_rules weir_dataset_frame_rules(const struct weir_dataset *dataset)
{
    return (struct weir_frame_rules){.swapped = weir_dataset_is_bgr(dataset),
                                     .turns = !dataset->episodes[0].layout->ignores_exif};
}

enum weir_frame_kind weir_dataset_kind(const struct weir_dataset *dataset, int episode, int camera)
{
    return dataset->episodes[episode].maps[camera].kind;
}

const char *weir_dataset_camera_key(const struct weir_dataset *dataset, int episode, int camera)
{
    return dataset->episodes[episode].maps[camera].key;
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

const char *weir_dataset_not_used(const struct weir_dataset *dataset)
{
    return dataset->episodes[0].not_used;
}

const char *weir_dataset_about(const struct weir_dataset *dataset)
{
    return dataset->files[0].about;
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

enum { KINDS_MAX = 32, LEFT_OUT_MAX = 64 };

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
        count_kind(kinds, &n, text, map->storage == WEIR_STORED_LIBRARY && !map->located_max, steps - missing);
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

/* Writes one line for all files with notes: the first note and the number of other files. */
static bool file_notes(const struct weir_dataset *dataset, char *text, size_t size)
{
    const struct weir_file_index *first = NULL;
    int n = 0;
    for (int f = dataset->n_files - 1; f >= 0; f--)
        if (dataset->files[f].note) {
            first = &dataset->files[f];
            n++;
        }
    if (!first)
        return false;
    snprintf(text, size, "%s: %s", first->file.path, first->note);
    if (n > 1)
        snprintf(text + strlen(text), size - strlen(text), " (and %d more files)", n - 1);
    weir_text_printable(text);
    return true;
}

/* Reports a camera that later episodes have but the first one does not, unless the user chose the cameras. */
static bool camera_note(const struct weir_dataset *dataset, char *text, size_t size)
{
    int n = 0, first = 0;
    if (dataset->episodes[0].n_maps != dataset->n_cameras)
        return false;
    for (int e = dataset->n_episodes - 1; e > 0; e--)
        if (dataset->episodes[e].n_maps > dataset->n_cameras) {
            n++;
            first = e;
        }
    if (n == 0)
        return false;
    snprintf(text, size,
             "camera %s of %s is left out: the first episode, %s, has no such camera (%d of %d episodes have "
             "additional cameras)",
             dataset->episodes[first].names[dataset->n_cameras], weir_dataset_episode_path(dataset, first),
             weir_dataset_episode_path(dataset, 0), n, dataset->n_episodes);
    weir_text_printable(text);
    return true;
}

struct left_out {
    const char *line; /* `length` bytes, without a final zero */
    size_t length;
    int episodes, first;
};

/* Counts the line if the list contains an equal one; otherwise appends it. Returns the new number of lines. */
static int count_left_out(struct left_out *list, int n, const char *line, size_t length, int episode)
{
    for (int i = 0; i < n; i++)
        if (list[i].length == length && memcmp(list[i].line, line, length) == 0) {
            list[i].episodes++;
            return n;
        }
    if (n < LEFT_OUT_MAX)
        list[n++] = (struct left_out){line, length, 1, episode};
    return n;
}

bool weir_dataset_left_out(const struct weir_dataset *dataset, int i, char *text, size_t size)
{
    struct left_out list[LEFT_OUT_MAX];
    int n = 0;
    for (int e = 0; e < dataset->n_episodes; e++)
        for (const char *at = dataset->episodes[e].left_out; at && *at; at += *at == '\n') {
            size_t length = strcspn(at, "\n");
            n = count_left_out(list, n, at, length, e);
            at += length;
        }
    if (i == n)
        return camera_note(dataset, text, size);
    if (i < 0 || i > n)
        return false;
    const char *path = weir_dataset_episode_path(dataset, list[i].first);
    const char *group = weir_dataset_episode_group(dataset, list[i].first);
    snprintf(text, size, "%.*s (in %d of %d episodes, the first is %s%s%s)", (int)list[i].length, list[i].line,
             list[i].episodes, dataset->n_episodes, path, *group ? ": " : "", group);
    weir_text_printable(text);
    return true;
}

bool weir_dataset_note(const struct weir_dataset *dataset, int i, char *text, size_t size)
{
    static const char hint[] = "it is only a hint, because the images show where frames end";
    static const struct {
        const char *what, *so;
    } notes[WEIR_NOTES] = {
        [WEIR_NOTE_LENGTHS_UNREADABLE] = {"compress_len cannot be read as numbers", hint},
        [WEIR_NOTE_LENGTHS_SHAPE] = {"compress_len is not of shape (cameras, steps)", hint},
        [WEIR_NOTE_LENGTHS_VALUES] = {"compress_len holds values that are not row lengths", hint},
        [WEIR_NOTE_FILL] = {"chunks of state or actions were never written, or are lost,",
                            "their rows contain the fill value"},
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
        const char *group = weir_dataset_episode_group(dataset, first);
        snprintf(text, size, "%s in %d of %d episodes, the first is %s%s%s; %s", notes[note].what, n,
                 dataset->n_episodes, weir_dataset_episode_path(dataset, first), *group ? ": " : "", group,
                 notes[note].so);
        weir_text_printable(text);
        return true;
    }
    if (file_notes(dataset, text, size) && i-- == 0)
        return true;
    return weir_dataset_left_out(dataset, i, text, size);
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
    weir_opening_end(&d->library);
    pthread_mutex_destroy(&d->helper_lock);
    free(d->bad);
    free(d->episodes);
    free(d->files);
    free(d->traits);
    free(d->lent);
    free(d->root);
    weir_origin_close(&d->origin);
    free(d);
    *dataset = NULL;
}

/* ---- statistics ---- */

/* Sums are in double and in a fixed order, so that results do not depend on the machine or the number of threads. */
static void add_rows(const float *rows, int steps, int dim, const double *mean, double *sum)
{
    for (int t = 0; t < steps; t++)
        for (int d = 0; d < dim; d++) {
            double x = rows[(size_t)t * (size_t)dim + (size_t)d];
            sum[d] += mean ? (x - mean[d]) * (x - mean[d]) : x;
        }
}

/* The estimate of the standard deviation is unbiased, as in torch.std. */
int weir_dataset_stats(const struct weir_dataset *dataset, const int *episodes, int n, bool actions, double *mean,
                       double *std)
{
    int dim = actions ? weir_dataset_action_dim(dataset) : weir_dataset_qpos_dim(dataset);
    uint64_t count = 0;
    for (int d = 0; d < dim; d++)
        mean[d] = std[d] = 0;
    for (int i = 0; i < n; i++)
        count += (uint64_t)dataset->episodes[episodes[i]].steps;
    if (count == 0)
        return -EINVAL;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++) {
            const struct weir_episode *e = &dataset->episodes[episodes[i]];
            add_rows(actions ? e->actions : e->qpos, e->steps, dim, pass ? mean : NULL, pass ? std : mean);
        }
        for (int d = 0; d < dim && pass == 0; d++)
            mean[d] /= (double)count;
    }
    for (int d = 0; d < dim; d++)
        std[d] = count > 1 ? sqrt(std[d] / (double)(count - 1)) : 0;
    return 0;
}
