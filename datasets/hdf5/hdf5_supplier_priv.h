/* hdf5_supplier_priv.h: reads a file of an origin for the HDF5 helper process, which has neither the network nor
 * credentials. */
#ifndef WEIR_DATASETS_HDF5_HDF5_SUPPLIER_PRIV_H
#define WEIR_DATASETS_HDF5_HDF5_SUPPLIER_PRIV_H

#include "datasets/hdf5/hdf5_helper_protocol_priv.h"
#include "origin/source.h"

struct weir_hdf5_supplier {
    struct weir_origin *origin;    /* NULL = the process reads files of this machine itself */
    struct weir_source *source;    /* of the last request's file */
    struct weir_dataset_file file; /* its identity; the path is owned */
    uint64_t sent_bytes;           /* in this request */
    struct weir_err err;           /* of the first failed read of this request */
    uint8_t *buffer;               /* WEIR_HELPER_RANGE_MAX bytes */
};

/* Prepares a request about a file: identifies it (*file, except its path) and opens it. */
int weir_hdf5_supplier_begin(struct weir_hdf5_supplier *supplier, const char *path, struct weir_dataset_file *file,
                             struct weir_err *err);
/* Sends the range that the process wants, or the error of reading it. Returns false if the process is gone. */
bool weir_hdf5_supplier_send(struct weir_hdf5_supplier *supplier, int fd, const struct weir_helper_reply *wants);
void weir_hdf5_supplier_close(struct weir_hdf5_supplier *supplier);

#endif
