/* lmdb_hold.h: holds a read transaction of an LMDB file while a dataset is open, so that no writer reuses pages that
 * are being read. liblmdb runs in a process of its own for this, like the HDF5 library (helper_spawner.h); no data is
 * read through liblmdb. When this process ends in any way, that process ends its transaction and frees its slot in the
 * reader table. */
#ifndef WEIR_DATASETS_LMDB_LMDB_HOLD_H
#define WEIR_DATASETS_LMDB_LMDB_HOLD_H

#include <stdbool.h>
#include <stdint.h>

struct weir_lmdb_hold;

enum { WEIR_LMDB_HOLD_WHY = 256 };

/* path: a file with valid meta pages, because liblmdb trusts them. *transaction becomes the last committed transaction,
 * whose pages remain unchanged from now on. Returns NULL, with the reason in why, if no transaction can be held. Any
 * thread. */
struct weir_lmdb_hold *weir_lmdb_hold(const char *path, uint64_t *transaction, char why[WEIR_LMDB_HOLD_WHY]);
/* Replaces the held transaction with the last committed one. If it returns false, no transaction is held any more. */
bool weir_lmdb_hold_renew(struct weir_lmdb_hold *hold, uint64_t *transaction);
/* Ends the transaction. In a process that was forked after weir_lmdb_hold, only frees the memory. hold: a struct
 * weir_lmdb_hold, or NULL. */
void weir_lmdb_hold_release(void *hold);

/* Main loop of the process that holds the transaction. Returns when the loader ends the transaction or is gone. In
 * builds without liblmdb, returns immediately. */
void weir_lmdb_hold_serve(int fd);

/* ---- messages ---- */

enum { WEIR_LMDB_PATH_MAX = 65536, WEIR_LMDB_RENEW = 'r', WEIR_LMDB_END = 'e' };

struct weir_lmdb_request {
    uint32_t path_bytes; /* including the final zero */
    uint32_t mode;       /* permissions of a new lock file */
    bool is_file; /* the lock file is PATH-lock; otherwise path is FOLDER/data.mdb and the lock file is FOLDER/lock.mdb
                   */
};

struct weir_lmdb_reply {
    int rc;         /* 0, an errno, or a negative code of liblmdb */
    bool is_locked; /* the transaction has a slot in the reader table */
    uint64_t transaction;
    char text[WEIR_LMDB_HOLD_WHY]; /* description of rc */
};

#endif
