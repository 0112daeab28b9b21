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

#endif
