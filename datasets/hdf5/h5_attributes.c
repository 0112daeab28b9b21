#include "datasets/hdf5/h5_guard_priv.h"
#include "datasets/hdf5/h5_read.h"
#include "datasets/hdf5/h5_read_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

enum { TEXT_MAX = 65536 };

bool weir_h5_attribute_is_false(struct weir_h5 *h5, const char *name)
{
    hid_t id = H5Aopen_by_name(h5->file, "/", name, H5P_DEFAULT, H5P_DEFAULT);
    if (id < 0)
        return false;
    hid_t type = H5Aget_type(id);
    signed char value = 1;
    bool is_false = type >= 0 && H5Tget_size(type) == 1 && H5Tget_class(type) != H5T_VLEN &&
                    H5Aget_storage_size(id) == 1 && H5Aread(id, type, &value) >= 0 && value == 0;
    if (type >= 0)
        H5Tclose(type);
    H5Aclose(id);
    return is_false;
}

/* Of any length, as h5py writes str. */
static bool read_text(hid_t id, hid_t type, hid_t space, char *text, size_t size)
{
    char *read = NULL;
    if (H5Aread(id, type, &read) < 0 || !read)
        return false;
    snprintf(text, size, "%s", read);
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, &read);
    return true;
}

/* Of a fixed length, as h5py writes numpy.bytes_. */
static bool read_fixed_text(hid_t id, hid_t type, char *text, size_t size)
{
    size_t bytes = H5Tget_size(type);
    char *read = bytes < TEXT_MAX ? calloc(1, bytes + 1) : NULL;
    bool fine = read && H5Aread(id, type, read) >= 0;
    if (fine)
        snprintf(text, size, "%s", read);
    free(read);
    return fine;
}

static bool read_attribute(hid_t id, char *text, size_t size)
{
    hid_t type = H5Aget_type(id), space = H5Aget_space(id);
    bool fine = type >= 0 && space >= 0 && H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1;
    if (fine)
        fine = H5Tis_variable_str(type) > 0 ? read_text(id, type, space, text, size)
                                            : read_fixed_text(id, type, text, size);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return fine;
}

bool weir_h5_text(struct weir_h5 *h5, const char *name, char *text, size_t size)
{
    if (H5Aexists_by_name(h5->file, "/", name, H5P_DEFAULT) <= 0)
        return false;
    hid_t id = H5Aopen_by_name(h5->file, "/", name, H5P_DEFAULT, H5P_DEFAULT);
    if (id < 0)
        return false;
    bool fine = read_attribute(id, text, size);
    H5Aclose(id);
    return fine;
}

/* ---- all texts of an object ---- */

struct telling {
    weir_h5_text_fn *take;
    void *user;
    int seen, rc;
    char text[TEXT_MAX];
};

/* 1 ends the iteration. */
static herr_t tell_attribute(hid_t object, const char *name, const H5A_info_t *info, void *user)
{
    enum { ATTRIBUTES_MAX = 1000 };
    struct telling *telling = user;
    (void)info;
    if (telling->seen++ == ATTRIBUTES_MAX)
        return 1;
    hid_t id = H5Aopen(object, name, H5P_DEFAULT);
    if (id < 0)
        return 0;
    if (read_attribute(id, telling->text, sizeof telling->text))
        telling->rc = telling->take(telling->user, name, telling->text);
    H5Aclose(id);
    return telling->rc < 0;
}

int weir_h5_texts(struct weir_h5 *h5, const char *path, weir_h5_text_fn *take, void *user)
{
    struct telling *telling = calloc(1, sizeof *telling);
    if (!telling)
        return -ENOMEM;
    *telling = (struct telling){.take = take, .user = user};
    H5Aiterate_by_name(h5->file, path, H5_INDEX_NAME, H5_ITER_INC, NULL, tell_attribute, telling, H5P_DEFAULT);
    int rc = telling->rc;
    free(telling);
    return rc;
}

/* Of a scalar, or of one element. */
bool weir_h5_text_of(struct weir_h5 *h5, const char *path, char *text, size_t size)
{
    struct weir_h5_dataset d;
    if (!weir_h5_has(h5, path) || weir_h5_open_whole(h5, path, &d, NULL) < 0)
        return false;
    bool fixed =
        d.shape.class == WEIR_H5_FIXED_BYTES && H5Tget_class(d.type) == H5T_STRING && d.shape.type_bytes < TEXT_MAX;
    bool one = H5Sget_simple_extent_npoints(d.space) == 1;
    char *read = NULL, *buffer = one && fixed ? calloc(1, d.shape.type_bytes + 1) : NULL;
    hid_t type = H5Tcopy(H5T_C_S1);
    bool fine = one && type >= 0 && (d.shape.class == WEIR_H5_VLEN_STRING || buffer) &&
                H5Tset_size(type, buffer ? d.shape.type_bytes : H5T_VARIABLE) >= 0 &&
                H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0 && H5Tset_cset(type, H5Tget_cset(d.type)) >= 0;
    const struct weir_h5_read how = {d.path, type, true};
    fine = fine && weir_h5_read_selected(&how, d.id, d.space, d.space, buffer ? (void *)buffer : &read, NULL) == 0;
    if (fine && (buffer || read))
        snprintf(text, size, "%s", buffer ? buffer : read);
    fine = fine && (buffer || read);
    if (read)
        H5Dvlen_reclaim(type, d.space, H5P_DEFAULT, &read);
    if (type >= 0)
        H5Tclose(type);
    free(buffer);
    weir_h5_close_dataset(&d);
    return fine;
}
