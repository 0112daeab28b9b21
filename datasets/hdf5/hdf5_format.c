/* HDF5 as a file format. */
#include "base/shortage.h"
#include "base/text.h"
#include "datasets/format_ops.h"
#include "datasets/hdf5/hdf5_helper.h"
#include "datasets/hdf5/hdf5_open.h"
#include "origin/source.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

void weir_hdf5_described_free(struct weir_hdf5_described *described)
{
    for (int i = 0; i < described->n && described->cameras; i++)
        free(described->cameras[i]);
    free(described->cameras);
    *described = (struct weir_hdf5_described){0};
}

static int locate_episode(struct weir_episode *episode, const struct weir_h5_description *descriptions,
                          const struct weir_raw_file *raw, uint64_t held_bytes, struct weir_unfilter_context *unfilter,
                          struct weir_err *err)
{
    int rc = 0;
    for (int c = 0; c < episode->n_maps && rc == 0; c++)
        rc = weir_locate_frames(&episode->maps[c], &descriptions[c], raw, held_bytes, unfilter, err);
    if (rc == 0)
        weir_episode_finish(episode);
    return rc;
}

static int locate_all(struct weir_file_result *r, const struct weir_hdf5_described *described,
                      const struct weir_dataset_config *config, const struct weir_raw_file *raw, uint64_t held_bytes,
                      struct weir_unfilter_context *unfilter)
{
    struct weir_file_index *file = &r->file;
    int good = 0, rc = 0;
    for (int i = 0; i < file->n_episodes && rc == 0; i++) {
        struct weir_err why = WEIR_ERR_NONE;
        rc = locate_episode(&file->episodes[i], described->cameras[i], raw, held_bytes, unfilter, &why);
        if (rc < 0) {
            weir_episode_close(&file->episodes[i]);
            rc = weir_file_leave_out(r, config, rc, &why);
            continue;
        }
        struct weir_episode episode = file->episodes[i];
        file->episodes[i] = (struct weir_episode){0};
        file->episodes[good++] = episode;
    }
    if (rc == 0)
        file->n_episodes = good;
    return rc;
}

static int locate_file(struct weir_file_result *r, const struct weir_hdf5_described *described,
                       const struct weir_opening *opening)
{
    const struct weir_dataset_file *file = &r->file.file;
    struct weir_unfilter_context *unfilter = weir_unfilter_open();
    struct weir_source *source = NULL;
    struct stat st;
    uint64_t held_bytes = !opening->origin && stat(file->path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
    int rc = unfilter ? weir_file_source(&source, opening->origin, file, &r->err) : weir_no_memory(&r->err);
    const struct weir_raw_file raw = {weir_source_read, source, described->base, file->size_bytes};
    if (rc == 0)
        rc = locate_all(r, described, opening->config, &raw, held_bytes, unfilter);
    weir_source_close(&source);
    weir_unfilter_close(&unfilter);
    return rc;
}

static void close_helper(void *kept)
{
    struct weir_hdf5_helper *helper = kept;
    weir_hdf5_helper_close(&helper);
}

static struct weir_hdf5_helper *helper_of(struct weir_opening *opening, struct weir_err *err)
{
    if (!opening->kept)
        opening->kept = weir_hdf5_helper_open(opening->config, opening->root, opening->allow_external);
    opening->release = close_helper;
    if (opening->kept)
        weir_hdf5_helper_use(opening->kept, opening->origin);
    else
        weir_no_memory(err);
    return opening->kept;
}

static int read_row(struct weir_opening *opening, const struct weir_file_index *file, struct weir_frame_map *map,
                    uint64_t t, void *buffer, size_t capacity, size_t *length, struct weir_err *err)
{
    struct weir_hdf5_helper *helper = helper_of(opening, err);
    return helper ? weir_hdf5_helper_read_row(helper, &file->file, map->key, t, buffer, capacity, length, err)
                  : -ENOMEM;
}

static int open_hdf5(struct weir_file_result *result, const char *path, struct weir_opening *opening)
{
    struct weir_hdf5_helper *helper = helper_of(opening, &result->err);
    if (!helper)
        return -ENOMEM;
    struct weir_hdf5_described described = {0};
    weir_file_index_close(&result->file); /* the helper identifies the file itself */
    weir_hdf5_helper_describe(helper, path, result, &described);
    int rc = result->rc < 0 ? result->rc : locate_file(result, &described, opening);
    weir_hdf5_described_free(&described);
    return rc;
}

static bool is_hdf5(const char *name)
{
    return weir_text_ends_any_case(name, ".hdf5") || weir_text_ends_any_case(name, ".h5");
}

const struct weir_format_ops weir_format_hdf5 = {
    .name = "hdf5",
    .summary = "HDF5, one or several episodes per file",
    .names = is_hdf5,
    .open = open_hdf5,
    .read_row = read_row,
    .reads_origins = true,
    .has_filter_keys = true,
};
