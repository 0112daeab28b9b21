/* Reads whole numeric datasets through the HDF5 library. */
#include "base/claims.h"
#include "datasets/hdf5/h5_guard_priv.h"
#include "datasets/hdf5/h5_read_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hdf5.h>

static const uint64_t NUMBERS_MAX_BYTES = 1ull << 30;

/* Returns the type in which the numbers are returned. */
static enum weir_number_type number_type(const struct weir_h5_dataset *d)
{
    static const enum weir_number_type integers[2][4] = {{WEIR_U8, WEIR_U16, WEIR_U32, WEIR_U64},
                                                         {WEIR_I8, WEIR_I16, WEIR_I32, WEIR_I64}};
    size_t bytes = d->shape.type_bytes;
    if (d->shape.element == WEIR_ELEMENT_FLOAT)
        return bytes > sizeof(float) ? WEIR_F64 : WEIR_F32;
    int width = bytes <= 1 ? 0 : bytes <= 2 ? 1 : bytes <= 4 ? 2 : 3;
    return bytes > 8 ? WEIR_F64 : integers[H5Tget_sign(d->type) == H5T_SGN_2][width];
}

/* Returns how many bytes of the dataset's file are stored. */
static uint64_t stored_bytes(const struct weir_h5_dataset *d)
{
    void *fd = NULL;
    hsize_t bytes = 0;
    hid_t file = H5Iget_file_id(d->id);
    bool known = file >= 0 && H5Fget_filesize(file, &bytes) >= 0;
    if (known && H5Fget_vfd_handle(file, H5P_DEFAULT, &fd) >= 0 && fd && *(const int *)fd >= 0)
        bytes = weir_stored_bytes(*(const int *)fd, 0, bytes);
    if (file >= 0)
        H5Fclose(file);
    return known ? bytes : UINT64_MAX;
}

/* Checks what numbers take together with those that were read before. The loader converts and copies them, so they
 * count twice, and as four bytes at least. Virtual and external datasets are stored elsewhere. */
static int check_claim(struct weir_h5 *h5, const struct weir_h5_dataset *d, uint64_t bytes, struct weir_err *err)
{
    H5O_info_t info;
    if (H5Pget_layout(d->plist) == H5D_VIRTUAL || H5Pget_external_count(d->plist) > 0)
        return 0;
    bool is_here = H5Oget_info(d->id, &info) >= 0 && info.fileno == h5->fileno;
    uint64_t all = bytes + (is_here ? h5->numbers_bytes : 0), stored = 2 * all > WEIR_CLAIM_SPARE ? stored_bytes(d) : 0;
    if (!weir_claim_fits(2 * all, stored))
        return weir_err_set(err, -EFBIG,
                            "%s: the numbers of its file up to here have %" PRIu64
                            " MiB, but the file stores only %" PRIu64 " bytes; are the shapes right?",
                            d->path, all >> 20, stored);
    h5->numbers_bytes = is_here ? all : h5->numbers_bytes;
    return 0;
}

static int read_numbers(struct weir_h5 *h5, struct weir_h5_dataset *d, enum weir_number_type type, void **values,
                        struct weir_err *err)
{
    uint64_t n = 1;
    size_t bytes = weir_number_bytes(type);
    for (int i = 0; i < d->shape.rank; i++)
        if (__builtin_mul_overflow(n, d->shape.dims[i], &n) || n > NUMBERS_MAX_BYTES / bytes)
            return weir_err_set(err, -EFBIG, "%s: is larger than 1 GiB; is its shape right?", d->path);
    int rc = check_claim(h5, d, n * (bytes < sizeof(float) ? sizeof(float) : bytes), err);
    if (rc < 0)
        return rc;
    *values = malloc(n ? n * bytes : 1);
    if (!*values)
        return weir_err_set(err, -ENOMEM, "%s: out of memory", d->path);
    const struct weir_h5_read read = {d->path, weir_h5_memory_type(type), true};
    rc = n == 0 ? 0 : weir_h5_read_selected(&read, d->id, d->space, d->space, *values, err);
    if (rc == 0)
        return 0;
    free(*values);
    *values = NULL;
    return rc;
}

static int open_numbers(struct weir_h5 *h5, const char *path, struct weir_h5_dataset *d, struct weir_err *err)
{
    int rc = weir_h5_open_whole(h5, path, d, err);
    if (rc < 0)
        return rc;
    bool numbers = d->shape.element == WEIR_ELEMENT_FLOAT || d->shape.element == WEIR_ELEMENT_INTEGER;
    if (numbers && H5Sget_simple_extent_type(d->space) != H5S_NULL)
        return 0;
    rc = weir_err_set(err, -EBADMSG, "%s: contains no numbers; it must contain floats or integers", d->path);
    weir_h5_close_dataset(d);
    return rc;
}

/* Returns true if some chunks, or all data of a contiguous dataset, were never written. The library's own space status
 * is useless for filtered datasets, because it compares compressed with unpacked sizes. */
static bool has_fill(const struct weir_h5_dataset *d)
{
    hsize_t chunk[WEIR_GRID_RANK_MAX], written = 0;
    uint64_t chunks = 1;
    H5D_layout_t layout = H5Pget_layout(d->plist);
    if (layout == H5D_CONTIGUOUS)
        return H5Pget_external_count(d->plist) == 0 && H5Dget_storage_size(d->id) == 0;
    if (layout != H5D_CHUNKED || H5Pget_chunk(d->plist, WEIR_GRID_RANK_MAX, chunk) < 0)
        return false;
    for (int i = 0; i < d->shape.rank; i++)
        chunks *=
            (d->shape.dims[i] + chunk[i] - 1) / chunk[i]; /* cannot overflow: there are at most as many chunks as
                                                             elements, and all elements were already read into memory */
    return H5Dget_num_chunks(d->id, d->space, &written) >= 0 && written < chunks;
}

int weir_h5_read_numbers(struct weir_h5 *h5, const char *path, enum weir_number_type *type, void **values,
                         struct weir_array_shape *shape, struct weir_err *err)
{
    *values = NULL;
    struct weir_h5_dataset d;
    int rc = open_numbers(h5, path, &d, err);
    if (rc < 0)
        return rc;
    *shape = d.shape;
    *type = number_type(&d);
    rc = read_numbers(h5, &d, *type, values, err);
    shape->has_fill = rc == 0 && has_fill(&d);
    weir_h5_close_dataset(&d);
    return rc;
}
