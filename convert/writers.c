/* The table of writers. */
#include "convert/convert_dataset.h"
#include "convert/writer_ops.h"

#include <string.h>

static const struct weir_writer_ops *const writers[] = {
    &weir_writer_hdf5,   &weir_writer_hdf5_vlen, &weir_writer_hdf5_gzip, &weir_writer_lmdb,
    &weir_writer_packed, &weir_writer_tfrecord,  &weir_writer_zarr,
};

const struct weir_writer_ops *weir_writer_at(int i)
{
    return i >= 0 && i < (int)(sizeof writers / sizeof writers[0]) ? writers[i] : NULL;
}

const char *weir_convert_format_suffix(int i)
{
    const struct weir_writer_ops *ops = weir_writer_at(i);
    return ops ? ops->suffix : "";
}

bool weir_convert_format(int i, const char **name, const char **summary, const char **why_not)
{
    const struct weir_writer_ops *ops = weir_writer_at(i);
    if (!ops)
        return false;
    *name = ops->name;
    *summary = ops->summary;
    *why_not = ops->why_not;
    return true;
}

bool weir_writer_holds(const struct weir_writer_ops *ops, const char *codec)
{
    for (int i = 0; ops->codecs[i]; i++)
        if (strcmp(ops->codecs[i], codec) == 0)
            return true;
    return false;
}

bool weir_convert_format_holds(int i, const char *codec)
{
    const struct weir_writer_ops *ops = weir_writer_at(i);
    return ops && weir_writer_holds(ops, codec);
}
