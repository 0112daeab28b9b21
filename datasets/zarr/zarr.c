/* Replay buffers of diffusion_policy and UMI in Zarr v2. The arrays of data/ contain all episodes one after another,
 * and meta/episode_ends contains the ends of the episodes. The store is a folder, or one zip archive. */
#include "base/shortage.h"
#include "base/text.h"
#include "datasets/format_ops.h"
#include "datasets/index.h"
#include "datasets/zarr/zarr_arrays.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENDS "meta/episode_ends"

static bool is_zarr(const char *name)
{
    return weir_text_ends_any_case(name, ".zarr") || weir_text_ends_any_case(name, ".zarr.zip");
}

/* Recognises a store also by its name, so that a store without .zgroup is refused instead of being searched. */
static bool is_store(int folder, const char *name)
{
    struct stat st;
    return is_zarr(name) || (fstatat(folder, ".zgroup", &st, 0) == 0 && S_ISREG(st.st_mode));
}

/* ---- episodes ---- */

/* Reads the ends of the episodes. The caller frees *ends. */
static int read_ends(struct weir_zarr *zarr, uint64_t **ends, int *n, struct weir_err *err)
{
    enum { EPISODES_MAX = 10 * 1000 * 1000 };
    struct weir_zarr_array *array;
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_zarr_array(zarr, ENDS, &array, &why);
    if (rc < 0)
        return weir_err_set(err, rc,
                            "has no array " ENDS " that can be read, so the ends of the episodes are unknown: %.300s",
                            why.text);
    if (array->about.grid.rank != 1 || array->about.kind == 'f' || array->about.grid.dims[0] > EPISODES_MAX)
        return weir_err_set(err, -EBADMSG, ENDS ": must be a list of at most %d integers", EPISODES_MAX);
    if (array->about.grid.dims[0] == 0)
        return weir_err_set(err, -EBADMSG, ENDS ": has no episodes; remove the dataset");
    rc = weir_zarr_numbers(zarr, array, err);
    if (rc < 0)
        return rc;
    size_t count = (size_t)array->about.grid.dims[0];
    int64_t *numbers = malloc(count * sizeof *numbers), before = 0;
    if (!numbers)
        return weir_no_memory(err);
    weir_numbers_convert(array->type, array->values, count, WEIR_I64, numbers);
    for (size_t i = 0; i < count; before = numbers[i++])
        if (numbers[i] <= before || numbers[i] > INT32_MAX) {
            rc = weir_err_set(err, -EBADMSG, ENDS "[%zu]: is %lld after %lld; ends must increase, up to 2147483647", i,
                              (long long)numbers[i], (long long)before);
            free(numbers);
            return rc;
        }
    *ends = (uint64_t *)numbers; /* all ends are positive */
    *n = (int)count;
    return 0;
}

struct reading {
    struct weir_zarr *zarr;
    const uint64_t *ends;
    int n;
};

/* Reports rows after the last episode, for the first array that has any. Either all arrays have such rows, or their
 * writer was interrupted. */
static int leave_out_rest(const struct weir_zarr *zarr, uint64_t end, struct weir_episode *last, struct weir_err *err)
{
    for (int i = 0; i < zarr->n; i++) {
        uint64_t rows = zarr->arrays[i].about.grid.dims[0];
        if (rows > end && strncmp(zarr->arrays[i].path, "data/", 5) == 0)
            return weir_episode_leave_out(last, err,
                                          "%s: %llu rows are left out: they come after the last of " ENDS
                                          ", %llu; add their episode to it, or remove them",
                                          zarr->arrays[i].path, (unsigned long long)(rows - end),
                                          (unsigned long long)end);
    }
    return 0;
}

static int describe(void *user, int i, const struct weir_dataset_config *config, struct weir_episode *episode,
                    struct weir_err *err)
{
    const struct reading *reading = user;
    uint64_t begin = i ? reading->ends[i - 1] : 0;
    struct weir_zarr_episode of = {{&weir_store_zarr, i == 0}, reading->zarr, begin, reading->ends[i] - begin, i};
    *episode = (struct weir_episode){
        .layout = &weir_layout_diffusion_policy, .is_bgr = reading->zarr->is_bgr, .bytes = sizeof *episode};
    if (asprintf(&episode->root, "episode %d", i) < 0)
        return weir_no_memory(err);
    int rc = weir_episode_describe(&of.store, episode, config, err);
    if (rc == 0 && i == reading->n - 1)
        rc = leave_out_rest(reading->zarr, of.begin + of.steps, episode, err);
    if (rc == 0 && (uint64_t)episode->steps < of.steps)
        rc = weir_err_set(err, -EBADMSG, "%s: has %d steps, but according to " ENDS " %llu", episode->root,
                          episode->steps, (unsigned long long)of.steps);
    return rc;
}

/* Moves the folder's chunks to the file's index. The size of the file becomes the total size of the chunks. */
static void take_parts(struct weir_file_index *file, struct weir_zarr_files *files)
{
    file->parts = files->parts;
    files->parts = NULL;
    if (!file->parts)
        return;
    file->file.size_bytes = file->parts->looked.size_bytes;
    for (uint32_t i = 0; i < file->parts->n; i++)
        file->file.size_bytes += file->parts->parts[i].size_bytes;
}

static int open_zarr(struct weir_file_result *result, const char *path, struct weir_opening *opening)
{
    struct weir_zarr zarr = {0};
    uint64_t *ends = NULL;
    int n = 0, rc = weir_zarr_files_open(&zarr.files, opening->origin, path, &result->err);
    if (rc < 0)
        return rc;
    rc = read_ends(&zarr, &ends, &n, &result->err);
    if (rc == 0)
        rc = weir_zarr_read_color(&zarr, &result->err);
    if (rc == 0 && zarr.is_ours)
        rc = weir_zarr_announce_texts(&zarr.files, n, &result->err);
    if (rc == 0)
        rc = weir_file_describe_episodes(result, n, opening->config, describe, &(struct reading){&zarr, ends, n});
    if (rc == 0)
        take_parts(&result->file, &zarr.files);
    free(ends);
    weir_zarr_arrays_close(&zarr);
    weir_zarr_files_close(&zarr.files);
    return rc;
}

static int check(struct weir_origin *origin, const struct weir_dataset_file *of, weir_damaged_fn *damaged, void *user,
                 struct weir_err *err)
{
    struct weir_zarr_files files;
    int rc = weir_zarr_files_open(&files, origin, of->path, err);
    if (rc < 0)
        return rc;
    rc = weir_zarr_check(&files, damaged, user, err);
    weir_zarr_files_close(&files);
    return rc;
}

const struct weir_format_ops weir_format_zarr = {
    .name = "zarr",
    .summary = "Zarr v2 replay buffers of diffusion_policy and UMI: a folder, or one .zarr.zip",
    .names = is_zarr,
    .is_folder = is_store,
    .open = open_zarr,
    .check = check,
    .mark = weir_zarr_mark,
    .reads_origins = true,
};
