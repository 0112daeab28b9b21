/* disk_cache.h: a folder with copies of parts of files that are on servers, shared by the processes of a machine.
 *
 * A checksum of each block covers its bytes and the identity of its file. Everything that does not match is read from
 * the server again: bytes of a changed or another file, what a killed process or a crash left behind, what two
 * processes wrote to one place, and damage. So no write is ever flushed, and nothing needs repair
 * (docs/internals/remote.md). Any thread may call all functions except open and close. */
#ifndef WEIR_ORIGIN_DISK_CACHE_H
#define WEIR_ORIGIN_DISK_CACHE_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_DISK_BLOCK = 4096 }; /* bytes; blocks begin at multiples of it */

struct weir_disk_cache;

/* Identity of a file. A changed file has another one. */
struct weir_disk_key {
    uint64_t high, low;
    uint64_t size_bytes; /* 0: the file is not cached */
};

/* Opens the cache "DIR" or "DIR:SIZE", and creates it if it does not exist. Without a size, a new cache may take half
 * of the free space. Another size than before empties the cache. Returns -EBUSY if other processes use it with another
 * size; other negative codes with err, which names the folder. */
int weir_disk_cache_open(struct weir_disk_cache **out, const char *text, struct weir_err *err);
void weir_disk_cache_close(struct weir_disk_cache **cache);

/* Computes a key. identity: what distinguishes the file from all others and from its own other versions. */
struct weir_disk_key weir_disk_cache_key(const struct weir_disk_cache *cache, const char *identity,
                                         uint64_t size_bytes);

/* Returns whether the cache seems to contain the range, and makes the kernel read it soon. Does not block. */
bool weir_disk_cache_find(struct weir_disk_cache *cache, const struct weir_disk_key *key, uint64_t offset, size_t n);
/* Reads bytes from offset on. Returns their number, at most n: those before the first missing block. */
size_t weir_disk_cache_read(struct weir_disk_cache *cache, const struct weir_disk_key *key, uint64_t offset,
                            uint8_t *to, size_t n);
/* Stores the whole blocks of the range. A failure ends storing, which the counts report. */
void weir_disk_cache_store(struct weir_disk_cache *cache, const struct weir_disk_key *key, uint64_t offset,
                           const uint8_t *bytes, size_t n);

/* Totals of this process. */
struct weir_disk_counts {
    uint64_t read_bytes, stored_bytes;
    uint64_t full_bytes;     /* not stored, because the cache had no room */
    uint64_t damaged_blocks; /* blocks whose checksums did not match */
    int error;               /* -errno that ended storing; 0 = none */
};
void weir_disk_cache_counts(const struct weir_disk_cache *cache, struct weir_disk_counts *counts);

#endif
