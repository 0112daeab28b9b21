/* HDF5 as a file format. */
#include "base/shortage.h"
#include "datasets/episode_bytes.h"
#include "datasets/format_ops.h"
#include "datasets/hdf5/hdf5_helper.h"
#include "datasets/hdf5/hdf5_open.h"
#include "origin/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ---- descriptions ---- */

/* Returns true if the byte is 0 or 1, because it is undefined to read any other byte as a bool. */
static bool is_bool(const bool *value)
{
    unsigned char byte;
    memcpy(&byte, value, 1);
    return byte <= 1;
}

static bool bools_fit(const struct weir_h5_description *d)
{
    return is_bool(&d->other_file) && is_bool(&d->plain_sizes) && is_bool(&d->written) && is_bool(&d->filters_kept) &&
           is_bool(&d->fill_is_zero) && is_bool(&d->fill_is_known) && is_bool(&d->has_probe) &&
           is_bool(&d->shape.is_big_endian) && is_bool(&d->shape.is_signed) && is_bool(&d->grid.filtered);
}

/* Shapes that do not form blocks are left to the library. Blocks must have the row size of the map and at least as many
 * rows as it has frames. */
static bool grid_fits(const struct weir_frame_map *map, const struct weir_h5_description *d)
{
    enum { REF_BYTES = 16 };
    struct weir_blocks blocks = {.grid = d->grid};
    if (d->layout != WEIR_H5_CHUNKED || !weir_blocks_init(&blocks))
        return true;
    uint64_t row_bytes = map->rows == WEIR_ROWS_VLEN ? REF_BYTES : map->row_bytes;
    return blocks.row_bytes == row_bytes && d->grid.dims[0] >= (uint64_t)map->frames;
}

static bool description_fits(const struct weir_frame_map *map, const struct weir_h5_description *d)
{
    return map->storage == WEIR_STORED_CONTIGUOUS && (unsigned)d->layout <= WEIR_H5_EXTERNAL && bools_fit(d) &&
           d->shape.rank >= 0 && d->shape.rank <= WEIR_GRID_RANK_MAX && d->grid.rank >= 0 &&
           d->grid.rank <= WEIR_GRID_RANK_MAX && d->filters.n >= 0 && d->filters.n <= WEIR_FILTERS_MAX &&
           grid_fits(map, d);
}

bool weir_hdf5_described_is_sane(const struct weir_episode *episode, const struct weir_h5_description *cameras)
{
    /* An episode without any requested camera has no map; dataset.c reports this. */
    bool sane = weir_index_shapes_fit(episode);
    for (int i = 0; i < episode->n_maps && sane; i++)
        sane = description_fits(&episode->maps[i], &cameras[i]);
    return sane;
}

void weir_hdf5_described_free(struct weir_hdf5_described *described)
{
    for (int i = 0; i < described->n && described->cameras; i++)
        free(described->cameras[i]);
    free(described->cameras);
    *described = (struct weir_hdf5_described){0};
}

/* ---- opening ---- */

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
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".hdf5") == 0 || strcasecmp(dot, ".h5") == 0);
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
