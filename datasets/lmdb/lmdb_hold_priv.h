/* lmdb_hold_priv.h: what the loader and the process that holds a read transaction send each other: a request with the
 * path behind it, and a reply; from then on a byte, WEIR_LMDB_RENEW or WEIR_LMDB_END, and a reply. */
#ifndef WEIR_DATASETS_LMDB_LMDB_HOLD_PRIV_H
#define WEIR_DATASETS_LMDB_LMDB_HOLD_PRIV_H

#include "datasets/lmdb/lmdb_hold.h"

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_LMDB_PATH_MAX = 65536, WEIR_LMDB_RENEW = 'r', WEIR_LMDB_END = 'e' };

struct weir_lmdb_request {
    uint32_t path_bytes; /* with the final zero */
    uint32_t mode;       /* of the lock file, when it is made */
    bool is_file; /* the lock file of PATH is PATH-lock; else path is FOLDER/data.mdb, and it is FOLDER/lock.mdb */
};

struct weir_lmdb_reply {
    int rc;         /* 0, an errno, or one of liblmdb's negative numbers */
    bool is_locked; /* the transaction is in the table of readers */
    uint64_t transaction;
    char text[WEIR_LMDB_HOLD_WHY]; /* of rc */
};

#endif
