/* disk_cache_priv.h: the files of a cache. Both are sparse.
 *
 * weir-cache.data: slots of 64 KiB, each with the blocks of one segment (64 KiB at a multiple of 64 KiB) of a file.
 * weir-cache.table: a head; an entry per slot, with the key of its segment; the checksums of each slot's blocks.
 *
 * A segment is in one of the WINDOW slots after the one that its key selects: the first that was empty. Entries are
 * never emptied, so a search ends at the first empty one. */
#ifndef WEIR_ORIGIN_DISK_CACHE_PRIV_H
#define WEIR_ORIGIN_DISK_CACHE_PRIV_H

#include "origin/disk_cache.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    WEIR_DISK_SEGMENT = 64 << 10,
    WEIR_DISK_BLOCKS = WEIR_DISK_SEGMENT / WEIR_DISK_BLOCK,
    WEIR_DISK_WINDOW = 256,
    WEIR_DISK_HEAD = 4096,   /* offset of the entries */
    WEIR_DISK_LOCK_HEAD = 0, /* bytes of the table that are locked: for changes of the head and of entries, */
    WEIR_DISK_LOCK_USE = 1   /* and, shared, while the cache is open */
};

struct weir_disk_head {
    char magic[16];
    uint64_t slots;
    uint64_t opened; /* number of times that the cache was opened */
    uint8_t secret[32];
    uint64_t check; /* checksum of the members above */
};

struct weir_disk_entry {
    uint64_t key;    /* 0 = empty */
    uint64_t opened; /* head.opened of the last process that used the slot */
};

struct weir_disk_cache {
    int table, data;
    struct weir_disk_head head;
    pthread_mutex_t inserting;
    _Atomic int error;
    _Atomic bool noticed; /* damage of the table was reported */
    _Atomic uint64_t read_bytes, stored_bytes, full_bytes, damaged_blocks;
};

/* Locks a byte of the table; type F_UNLCK unlocks it. The kernel unlocks it when the process ends. With wait, waits
 * half a second or more, so that a stopped process stops no other one. Returns 0, or -errno (-EAGAIN: it is locked). */
int weir_disk_lock(int table, int byte, int type, bool wait);

#endif
