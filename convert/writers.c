/* The table of dataset writers. */
#include "convert/convert_dataset.h"
#include "datasets/writer.h"

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

bool weir_writer_holds(const struct weir_writer_ops *ops, enum weir_frame_kind kind)
{
    return ops->holds & weir_frame_kind_row(kind)->group;
}

bool weir_convert_format_holds(int i, const char *codec)
{
    const struct weir_writer_ops *ops = weir_writer_at(i);
    int kind = weir_frame_kind_from_name(codec);
    return ops && kind >= 0 && weir_writer_holds(ops, (enum weir_frame_kind)kind);
}

const char *weir_convert_fastest(const char *codec, const char *except, const char **suffix)
{
    const struct weir_writer_ops *best = NULL, *ops;
    for (int i = 0; (ops = weir_writer_at(i)); i++)
        if (ops->read_rank > 0 && (!best || ops->read_rank < best->read_rank) && !ops->why_not &&
            strcmp(ops->name, except) != 0 && weir_convert_format_holds(i, codec))
            best = ops;
    *suffix = best ? best->suffix : "";
    return best ? best->name : NULL;
}

void weir_convert_format_kinds(int i, const char *separator, char *text, size_t size)
{
    weir_frame_kind_list(weir_writer_at(i)->holds, separator, text, size);
}
