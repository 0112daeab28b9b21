/* The table of writers. */
#include "convert/writer_ops.h"

static const struct weir_writer_ops *const writers[] = {
    &weir_writer_hdf5,
    &weir_writer_hdf5_vlen,
    &weir_writer_hdf5_gzip,
    &weir_writer_lmdb,
    &weir_writer_packed,
    &weir_writer_tfrecord,
};

const struct weir_writer_ops *weir_writer_at(int i)
{
    return i >= 0 && i < (int)(sizeof writers / sizeof writers[0]) ? writers[i] : NULL;
}
