/* The table of formats. */
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

static const struct weir_format_ops *const formats[] = {&weir_format_hdf5, &weir_format_tfrecord};

const struct weir_format_ops *weir_format_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0] && name[0] != '.'; i++)
        if (formats[i]->names(name))
            return formats[i];
    return NULL;
}
