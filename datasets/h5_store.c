/* HDF5 files as struct weir_store_ops: the library describes, in a helper process, and rows are located afterwards. */
#include "datasets/index.h"
#include "datasets/store_ops.h"

static bool has(void *store, const char *path)
{
    return weir_h5_has(store, path);
}

static bool is_group(void *store, const char *path)
{
    return weir_h5_is_group(store, path);
}

static int list(void *store, const char *group, char (**names)[64], int *n, struct weir_err *err)
{
    return weir_h5_list(store, group, names, n, err);
}

static int shape(void *store, const char *path, struct weir_h5_shape *found, struct weir_err *err)
{
    return weir_h5_shape(store, path, found, err);
}

static int read_numbers(void *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_h5_shape *found, struct weir_err *err)
{
    return weir_h5_read_numbers(store, path, type, values, found, err);
}

static int rows(void *store, const char *path, struct weir_frame_map *map, struct weir_h5_description *description,
                struct weir_err *err)
{
    (void)map;
    return weir_h5_describe(store, path, description, err);
}

const struct weir_store_ops weir_store_hdf5 = {
    .has = has,
    .is_group = is_group,
    .list = list,
    .shape = shape,
    .read_numbers = read_numbers,
    .rows = rows,
    .lister = "`h5ls -r` lists those of a file",
};
