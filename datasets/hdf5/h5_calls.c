#include "datasets/hdf5/h5_read_priv.h"

bool weir_h5_has(struct weir_h5 *h5, const char *path)
{
    return h5->calls->has(h5, path);
}

bool weir_h5_is_group(struct weir_h5 *h5, const char *path)
{
    return h5->calls->is_group(h5, path);
}

bool weir_h5_has_attribute(struct weir_h5 *h5, const char *path, const char *name)
{
    return h5->calls->has_attribute(h5, path, name);
}

bool weir_h5_is_false(struct weir_h5 *h5, const char *name)
{
    return h5->calls->is_false(h5, name);
}

int weir_h5_list(struct weir_h5 *h5, const char *group, char (**names)[64], int *n, struct weir_err *err)
{
    return h5->calls->list(h5, group, names, n, err);
}

int weir_h5_shape(struct weir_h5 *h5, const char *path, struct weir_h5_shape *shape, struct weir_err *err)
{
    return h5->calls->shape(h5, path, shape, err);
}

int weir_h5_read_floats(struct weir_h5 *h5, const char *path, float **values, struct weir_h5_shape *shape,
                        struct weir_err *err)
{
    return h5->calls->read_floats(h5, path, values, shape, err);
}
