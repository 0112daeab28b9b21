/* HDF5 as a format of files: by their names. Its library is asked in a process of its own (hdf5_helper.c). */
#include "datasets/format_ops.h"

#include <string.h>
#include <strings.h>

static bool is_hdf5(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".hdf5") == 0 || strcasecmp(dot, ".h5") == 0);
}

const struct weir_format_ops weir_format_hdf5 = {
    .name = "hdf5",
    .summary = "HDF5, one episode a file or several",
    .names = is_hdf5,
};
