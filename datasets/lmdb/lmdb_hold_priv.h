/* lmdb_hold_priv.h: messages between the loader and the process that holds a read transaction: a request followed by
 * the path, and a reply; then a byte, WEIR_LMDB_RENEW or WEIR_LMDB_END, and a reply. */
#ifndef WEIR_DATASETS_LMDB_LMDB_HOLD_PRIV_H
#define WEIR_DATASETS_LMDB_LMDB_HOLD_PRIV_H

#include "datasets/lmdb/lmdb_hold.h"

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_LMDB_PATH_MAX = 65536, WEIR_LMDB_RENEW = 'r', WEIR_LMDB_END = 'e' };

struct weir_lmdb_request {
    uint32_t path_bytes; /* including the final zero */
    uint32_t mode;       /* of a new lock file */
    bool is_file;        /* lock file is PATH-lock; else path is FOLDER/data.mdb, and it is FOLDER/lock.mdb */
};

struct weir_lmdb_reply {
    int rc;         /* 0, an errno, or a negative code of liblmdb */
    bool is_locked; /* the transaction is in the reader table */
    uint64_t transaction;
    char text[WEIR_LMDB_HOLD_WHY]; /* of rc */
};

#endif
