/* lmdb_tree.h: walks the B+tree of an LMDB file without liblmdb, because liblmdb trusts its input.
 *
 * The format is liblmdb's (mdb.c of 0.9.24, "Meta Page", "Page", "Node") on a 64-bit little-endian machine. Pages 0 and
 * 1 are meta pages. Each contains the root of the main database after one transaction, and the newer one is the current
 * state of the file. A branch page points to other pages. A leaf page contains keys with their values. For a long value
 * it contains the number of an overflow page, and the value is contiguous after the header of that page.
 *
 * Every byte is hostile: nothing outside the file is read, each page is used at most once, and the depth is limited. */
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
    uint64_t root; /* page number; UINT64_MAX = empty database */
    uint64_t entries, last_page;
    uint32_t page_bytes;
    uint16_t flags, depth;
};

/* Reads both meta pages; states[0] is from page 0. Returns 0, or a negative code with err for a truncated file or
 * another format. */
int weir_lmdb_states(struct weir_lmdb_state states[2], const struct weir_raw_file *file, struct weir_err *err);
const struct weir_lmdb_state *weir_lmdb_newest(const struct weir_lmdb_state states[2]);

/* A key and the location of its value. */
struct weir_lmdb_entry {
    const uint8_t *key; /* lent for the call */
    size_t key_length;
    uint64_t offset, length;
};

/* Calls visit for every key in ascending order, until visit returns a negative value. Returns 0; -EBADMSG with err for
 * a malformed tree; -ENOTSUP with err for duplicate keys and sub-databases; or an error of visit or of reading the
 * file. */
int weir_lmdb_walk(const struct weir_lmdb_state *state, const struct weir_raw_file *file,
                   int (*visit)(void *user, const struct weir_lmdb_entry *entry, struct weir_err *err), void *user,
                   struct weir_err *err);

#endif
