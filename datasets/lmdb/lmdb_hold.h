/* lmdb_hold.h: holds a read transaction of an LMDB file while a dataset is open, so that a writer reuses no page of
 * what is read: liblmdb does so in a process of its own, as the HDF5 library (helper_spawner.h). Nothing is read
 * through it. The process ends its transaction, and gives back its place in the table of readers, when this one ends in
 * whatever way. */
#ifndef WEIR_DATASETS_LMDB_LMDB_HOLD_H
#define WEIR_DATASETS_LMDB_LMDB_HOLD_H

#include <stdbool.h>
#include <stdint.h>

struct weir_lmdb_hold;

enum { WEIR_LMDB_HOLD_WHY = 256 };

/* path: of a file whose meta pages are in order, for liblmdb trusts them. NULL: no transaction can be held, and why
 * says the reason. *transaction is the last one that was committed, whose pages stay as they are from now on. Any
 * thread. */
struct weir_lmdb_hold *weir_lmdb_hold(const char *path, uint64_t *transaction, char why[WEIR_LMDB_HOLD_WHY]);
/* Holds what was committed last in its place. False: nothing is held any more. */
bool weir_lmdb_hold_renew(struct weir_lmdb_hold *hold, uint64_t *transaction);
/* A process that was forked while it was held only forgets it. hold is a struct weir_lmdb_hold, or NULL. */
void weir_lmdb_hold_release(void *hold);

/* The process that holds the transaction: until the other side says so or is gone. Without liblmdb it ends at once. */
void weir_lmdb_hold_serve(int fd);

#endif
