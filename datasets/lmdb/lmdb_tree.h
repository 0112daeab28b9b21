/* lmdb_tree.h: walks over the B+tree of an LMDB file where it lies, without liblmdb, which trusts what it reads.
 *
 * The format is liblmdb's (mdb.c of 0.9.24, "Meta Page", "Page", "Node"), as a 64-bit little-endian machine writes it.
 * Pages 0 and 1 are meta pages: each has the root of the main database as of one transaction, and that of the newer
 * one is the state of the file. A branch page points to pages; a leaf page has keys, each with its value or, where that
 * is long, with the number of an overflow page, behind whose header the value lies in one piece.
 *
 * All of it is hostile: nothing outside the file is read, a page is used once at most, the depth is bounded. */
#ifndef WEIR_DATASETS_LMDB_LMDB_TREE_H
#define WEIR_DATASETS_LMDB_LMDB_TREE_H

#include "datasets/chunks/chunk_grid.h"
#include "weir/base.h"

#include <stddef.h>
#include <stdint.h>

enum { WEIR_LMDB_KEY_MAX = 511, WEIR_LMDB_DEPTH_MAX = 32 };

/* The state of a file after a transaction. */
struct weir_lmdb_state {
    uint64_t transaction;
    uint64_t root; /* page; UINT64_MAX = the database is empty */
    uint64_t entries, last_page;
    uint32_t page_bytes;
    uint16_t flags, depth;
};

/* Both states that the meta pages hold, [0] of page 0. 0, or a negative code with err when the file is none of LMDB's
 * or is cut. */
int weir_lmdb_states(struct weir_lmdb_state states[2], const struct weir_raw_file *file, struct weir_err *err);
/* The newer one. */
const struct weir_lmdb_state *weir_lmdb_newest(const struct weir_lmdb_state states[2]);

/* A key and where its value lies in the file. */
struct weir_lmdb_entry {
    const uint8_t *key; /* lent for the call */
    size_t key_length;
    uint64_t offset, length;
};

/* Calls visit for every key in ascending order, until it returns something negative. 0; -EBADMSG with err for what is
 * no tree; -ENOTSUP, with err, for duplicate keys and sub-databases; or what visit or the file's read returned. */
int weir_lmdb_walk(const struct weir_lmdb_state *state, const struct weir_raw_file *file,
                   int (*visit)(void *user, const struct weir_lmdb_entry *entry, struct weir_err *err), void *user,
                   struct weir_err *err);

#endif
