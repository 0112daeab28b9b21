#include "datasets/hdf5/h5_read.h"
#include "datasets/hdf5/h5_read_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

enum { TEXT_MAX = 65536 };

bool weir_h5_is_false(struct weir_h5 *h5, const char *name)
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

bool weir_h5_text(struct weir_h5 *h5, const char *name, char *text, size_t size)
{
    if (H5Aexists_by_name(h5->file, "/", name, H5P_DEFAULT) <= 0)
        return false;
    hid_t id = H5Aopen_by_name(h5->file, "/", name, H5P_DEFAULT, H5P_DEFAULT);
    if (id < 0)
        return false;
    hid_t type = H5Aget_type(id), space = H5Aget_space(id);
    bool fine = type >= 0 && space >= 0 && H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1;
    if (fine)
        fine = H5Tis_variable_str(type) > 0 ? read_text(id, type, space, text, size)
                                            : read_fixed_text(id, type, text, size);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    H5Aclose(id);
    return fine;
}
