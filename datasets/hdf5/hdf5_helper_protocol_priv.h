/* hdf5_helper_protocol_priv.h: messages between the loader and an HDF5 helper process. Both are from the same build
 * (weir_helper_hello) and on the same machine, so structs are sent as they are in memory. The loader still checks every
 * reply, because the HDF5 library may have overwritten the helper's memory.
 *
 * A request is followed by its strings. A reply is followed by `bytes` bytes. They are a row; or a
 * weir_helper_described and the file's episodes (episode_bytes.h), each with the descriptions of its cameras; or a
 * weir_helper_array and its numbers or strings; or the members of a group (weir_hdf5_member).
 *
 * A file of an origin is read by the loader, so that the helper needs neither the network nor credentials: before its
 * reply, the helper sends any number of replies with rc WEIR_HELPER_WANTS and the offset and length of a range, and
 * receives a weir_helper_supply and the range's bytes. */
#ifndef WEIR_DATASETS_HDF5_HDF5_HELPER_PROTOCOL_PRIV_H
#define WEIR_DATASETS_HDF5_HDF5_HELPER_PROTOCOL_PRIV_H

#include "datasets/file_array.h"
#include "origin/source.h"
#include "weir/base.h"
#include "weir/dataset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_helper_request_kind { WEIR_HELPER_DESCRIBE, WEIR_HELPER_READ_ROW, WEIR_HELPER_READ_ARRAY, WEIR_HELPER_LIST };

/* The strings of a request, in this order. WEIR_HELPER_DESCRIBE does not send the key. All other requests send no
 * string after the key. */
enum {
    WEIR_HELPER_PATH,
    WEIR_HELPER_ROOT,
    WEIR_HELPER_KEY,
    WEIR_HELPER_CAMERAS,
    WEIR_HELPER_QPOS_KEYS,
    WEIR_HELPER_ACTION_KEYS,
    WEIR_HELPER_IMAGE_KEYS,
    WEIR_HELPER_FILTER_KEY,
    WEIR_HELPER_DATA, /* path of the dataset, for messages */
    WEIR_HELPER_TEXTS
};

/* A value of weir_helper_reply.rc, and the longest range. */
enum { WEIR_HELPER_WANTS = 1, WEIR_HELPER_RANGE_MAX = 1 << 20 };

/* Exit statuses of the helper process. */
enum {
    WEIR_HELPER_LACKED_MEMORY = 77,   /* an allocation failed */
    WEIR_HELPER_CRASHED_LACKING = 78, /* the library crashed after a failed allocation */
};

struct weir_helper_request {
    uint32_t kind,
        text_bytes[WEIR_HELPER_TEXTS]; /* sizes of the strings, including the final zero; 0 = the string is NULL */
    uint64_t t, capacity;              /* number of the row to read, and the maximum size of the reply */
    bool depth, own_types, allow_ragged, tolerant, allow_external, list_unused;
    bool is_supplied;              /* the loader reads the file; its identity is in `file`, for all kinds of requests */
    bool again;                    /* the previous helper ran out of memory, so first check that some is available */
    struct weir_dataset_file file; /* the path is sent as a string. WEIR_HELPER_DESCRIBE: only if is_supplied */
};

struct weir_helper_reply {
    int rc;
    struct weir_err err;
    uint64_t offset, length; /* length of the row; WEIR_HELPER_WANTS: the range */
    uint64_t bytes;          /* number of bytes that follow */
};

/* Start of the answer to WEIR_HELPER_WANTS. */
struct weir_helper_supply {
    int32_t rc, reserved; /* negative: no bytes follow */
};

/* Start of the description of a file. */
struct weir_helper_described {
    struct weir_dataset_file file; /* path is NULL here */
    uint64_t header_hash, base;
    int32_t n_wanted, n_episodes, n_bad, reserved;
};

/* Start of an array. */
struct weir_helper_array {
    uint64_t dims[WEIR_FILE_ARRAY_RANK];
    int32_t rank, type; /* type: enum weir_number_type, or -1 for strings of WEIR_FILE_ARRAY_TEXT bytes */
};

/* Returns the CPU time limit of the HDF5 library for a file, in seconds. */
uint64_t weir_helper_cpu_limit_s(const char *path);

/* ---- hdf5_supplier.c: reads a file of an origin for the HDF5 helper process, which has neither the network nor
 * credentials. */

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
