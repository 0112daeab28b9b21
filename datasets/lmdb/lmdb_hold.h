/* lmdb_hold.h: holds a read transaction of an LMDB file while a dataset is open, so that a writer does not reuse pages
 * that are read. liblmdb does this in its own process, like the HDF5 library (helper_spawner.h); nothing is read
 * through it. The process ends its transaction, and frees its slot in the reader table, when this process ends in any
 * way. */
#ifndef WEIR_DATASETS_LMDB_LMDB_HOLD_H
#define WEIR_DATASETS_LMDB_LMDB_HOLD_H

#include <stdbool.h>
#include <stdint.h>

struct weir_lmdb_hold;

enum { WEIR_LMDB_HOLD_WHY = 256 };

/* path: of a file with valid meta pages, which liblmdb trusts. *transaction is the last committed one, whose pages stay
 * unchanged from now on. NULL, with why, when no transaction can be held. Any thread. */
struct weir_lmdb_hold *weir_lmdb_hold(const char *path, uint64_t *transaction, char why[WEIR_LMDB_HOLD_WHY]);
/* Holds the last committed transaction instead. False: nothing is held any more. */
bool weir_lmdb_hold_renew(struct weir_lmdb_hold *hold, uint64_t *transaction);
/* In a process forked since, only frees the memory. hold is a struct weir_lmdb_hold, or NULL. */
void weir_lmdb_hold_release(void *hold);

/* Main loop of the process that holds the transaction, until the loader ends it or is gone. Returns at once without
 * liblmdb. */
void weir_lmdb_hold_serve(int fd);

/* ---- messages ---- */

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
