#include "origin/disk_cache.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/terminal.h"
#include "origin/disk_cache_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BLOCK = WEIR_DISK_BLOCK, SEGMENT = WEIR_DISK_SEGMENT, BLOCKS = WEIR_DISK_BLOCKS, WINDOW = WEIR_DISK_WINDOW };

/* ---- places ---- */

/* The part of a range that is in one segment. */
struct piece {
    const struct weir_disk_key *key;
    uint64_t segment;
    size_t from, n;    /* bytes of the segment */
    int first, blocks; /* the blocks that contain them */
};

static struct piece piece_at(const struct weir_disk_key *key, uint64_t offset, size_t n)
{
    struct piece p = {.key = key, .segment = offset / SEGMENT, .from = (size_t)(offset % SEGMENT)};
    p.n = n < SEGMENT - p.from ? n : SEGMENT - p.from;
    p.first = (int)(p.from / BLOCK);
    p.blocks = (int)((p.from + p.n + BLOCK - 1) / BLOCK) - p.first;
    return p;
}

/* Returns the size of block i of the segment, which is short at the end of the file. */
static size_t block_bytes(const struct piece *p, int i)
{
    uint64_t left = p->key->size_bytes - p->segment * SEGMENT - (uint64_t)i * BLOCK;
    return left < BLOCK ? (size_t)left : BLOCK;
}

static uint64_t entry_at(uint64_t slot)
{
    return WEIR_DISK_HEAD + slot * sizeof(struct weir_disk_entry);
}

static uint64_t words_at(const struct weir_disk_cache *c, uint64_t slot, int block)
{
    return entry_at(c->head.slots) + (slot * BLOCKS + (uint64_t)block) * sizeof(uint64_t);
}

static uint64_t data_at(uint64_t slot, int block)
{
    return slot * SEGMENT + (uint64_t)block * BLOCK;
}

static uint64_t segment_key(const struct piece *p)
{
    const uint64_t parts[] = {p->key->high, p->key->low, p->segment};
    return weir_hash64(parts, sizeof parts) | 1;
}

/* Returns the checksum of block i of the segment; never 0, which means that the block is missing. */
static uint64_t word_of(const struct piece *p, int i, const uint8_t *bytes)
{
    const uint64_t parts[] = {p->key->low, p->key->high, p->segment * BLOCKS + (uint64_t)i,
                              weir_hash64(bytes, block_bytes(p, i))};
    uint64_t word = weir_hash64(parts, sizeof parts);
    return word ? word : 1;
}

/* ---- entries ---- */

static void fail(struct weir_disk_cache *c, int rc)
{
    int none = 0;
    atomic_compare_exchange_strong(&c->error, &none, rc);
}

static void write_table(struct weir_disk_cache *c, uint64_t at, const void *bytes, size_t n)
{
    int rc = weir_write_at(c->table, at, bytes, n);
    if (rc < 0)
        fail(c, rc);
}

/* Reads the entries of the slots that a segment can be in, from *home on. Returns their number; 0 after an error. */
static uint64_t read_window(struct weir_disk_cache *c, uint64_t key, struct weir_disk_entry window[WINDOW],
                            uint64_t *home)
{
    uint64_t count = c->head.slots < WINDOW ? c->head.slots : WINDOW;
    *home = key % (c->head.slots - count + 1);
    int rc = weir_read_at(c->table, entry_at(*home), window, (size_t)count * sizeof *window);
    if (rc < 0)
        fail(c, rc == -ENODATA ? -EIO : rc); /* the table was cut off */
    return rc < 0 ? 0 : count;
}

/* Returns a slot for a segment whose entry is damaged: used by a process that was never started. -1 = none. */
static int64_t find_damaged(struct weir_disk_cache *c, uint64_t key)
{
    struct weir_disk_entry window[WINDOW];
    struct weir_disk_head head;
    uint64_t home, count = read_window(c, key, window, &home);
    bool newer = false;
    for (uint64_t i = 0; i < count; i++)
        newer |= window[i].opened > c->head.opened;
    if (!newer || weir_read_at(c->table, 0, &head, sizeof head) < 0)
        return -1;
    for (uint64_t i = 0; i < count; i++)
        if (window[i].opened > head.opened) {
            if (!atomic_exchange(&c->noticed, true))
                weir_notice("the table of the cache (--cache) is damaged; its damaged entries are replaced");
            return (int64_t)(home + i);
        }
    return -1;
}

/* Returns the slot of a segment, or -1. *room: a slot that may be used for it, or -1: an empty one, else the one whose
 * last use is longest ago, but not one that this process or a later one has used. So a dataset that is larger than the
 * cache keeps a part of itself there, whatever the order in which it is read. */
static int64_t find(struct weir_disk_cache *c, uint64_t key, int64_t *room)
{
    struct weir_disk_entry window[WINDOW];
    uint64_t home, oldest = c->head.opened, count = read_window(c, key, window, &home);
    *room = -1;
    for (uint64_t i = 0; i < count; i++) {
        if (window[i].key == key) {
            if (window[i].opened < c->head.opened)
                write_table(c, entry_at(home + i) + offsetof(struct weir_disk_entry, opened), &c->head.opened,
                            sizeof c->head.opened);
            return (int64_t)(home + i);
        }
        if (window[i].opened < oldest || window[i].key == 0) {
            oldest = window[i].opened;
            *room = (int64_t)(home + i);
        }
        if (window[i].key == 0)
            return -1;
    }
    return -1;
}

/* Returns the slot of a segment, which it takes if the segment has none; -1 = there is no room. */
static int64_t insert(struct weir_disk_cache *c, uint64_t key)
{
    static const uint64_t missing[BLOCKS];
    int64_t room, slot = find(c, key, &room);
    if (slot >= 0)
        return slot;
    pthread_mutex_lock(&c->inserting);
    int rc = weir_disk_lock(c->table, WEIR_DISK_LOCK_HEAD, F_WRLCK, true);
    if (rc < 0)
        fail(c, rc == -EAGAIN ? -EBUSY : rc);
    slot = rc < 0 ? -1 : find(c, key, &room); /* others may have inserted it */
    if (rc == 0 && slot < 0 && room < 0)
        room = find_damaged(c, key);
    if (rc == 0 && slot < 0 && room >= 0) {
        const struct weir_disk_entry entry = {key, c->head.opened};
        write_table(c, words_at(c, (uint64_t)room, 0), missing, sizeof missing);
        write_table(c, entry_at((uint64_t)room), &entry, sizeof entry);
        slot = room;
    }
    if (rc == 0)
        weir_disk_lock(c->table, WEIR_DISK_LOCK_HEAD, F_UNLCK, true);
    pthread_mutex_unlock(&c->inserting);
    return slot;
}

/* Returns the slot that contains all blocks of a piece, and their checksums, or -1. */
static int64_t find_blocks(struct weir_disk_cache *c, const struct piece *p, uint64_t words[BLOCKS])
{
    int64_t room, slot = find(c, segment_key(p), &room);
    if (slot < 0 ||
        weir_read_at(c->table, words_at(c, (uint64_t)slot, p->first), words, (size_t)p->blocks * sizeof *words) < 0)
        return -1;
    for (int i = 0; i < p->blocks; i++)
        if (words[i] == 0)
            return -1;
    return slot;
}

/* ---- reading ---- */

static bool is_cached(const struct weir_disk_key *key, uint64_t offset, size_t n)
{
    return offset < key->size_bytes && n <= key->size_bytes - offset;
}

bool weir_disk_cache_find(struct weir_disk_cache *c, const struct weir_disk_key *key, uint64_t offset, size_t n)
{
    if (!is_cached(key, offset, n))
        return false;
    for (size_t done = 0; done < n;) {
        const struct piece p = piece_at(key, offset + done, n - done);
        uint64_t words[BLOCKS];
        int64_t slot = find_blocks(c, &p, words);
        if (slot < 0)
            return false;
        posix_fadvise(c->data, (off_t)data_at((uint64_t)slot, p.first), (off_t)p.blocks * BLOCK, POSIX_FADV_WILLNEED);
        done += p.n;
    }
    return true;
}

/* Marks a block as missing, so that it is stored again. */
static void reject(struct weir_disk_cache *c, uint64_t slot, int block)
{
    static const uint64_t missing;
    atomic_fetch_add_explicit(&c->damaged_blocks, 1, memory_order_relaxed);
    write_table(c, words_at(c, slot, block), &missing, sizeof missing);
}

static bool read_piece(struct weir_disk_cache *c, const struct piece *p, uint8_t *to)
{
    uint8_t ends[2][BLOCK]; /* blocks that are wanted in part; only the first and the last one can be */
    struct iovec blocks[BLOCKS];
    uint64_t words[BLOCKS];
    size_t total = 0;
    int64_t slot = find_blocks(c, p, words);
    if (slot < 0)
        return false;
    for (int i = 0; i < p->blocks; i++) {
        size_t begin = (size_t)(p->first + i) * BLOCK, bytes = block_bytes(p, p->first + i);
        bool whole = begin >= p->from && begin + bytes <= p->from + p->n;
        blocks[i] = (struct iovec){whole ? to + (begin - p->from) : ends[i > 0], bytes};
        total += bytes;
    }
    ssize_t got = preadv(c->data, blocks, p->blocks, (off_t)data_at((uint64_t)slot, p->first));
    bool good = got == (ssize_t)total;
    for (int i = 0; i < p->blocks; i++)
        if (!good || word_of(p, p->first + i, blocks[i].iov_base) != words[i]) {
            reject(c, (uint64_t)slot, p->first + i);
            good = false;
        }
    for (int i = 0; i < p->blocks && good; i++) {
        size_t begin = (size_t)(p->first + i) * BLOCK, end = begin + blocks[i].iov_len;
        if (blocks[i].iov_base != ends[i > 0])
            continue;
        size_t from = begin > p->from ? begin : p->from, until = end < p->from + p->n ? end : p->from + p->n;
        memcpy(to + (from - p->from), ends[i > 0] + (from - begin), until - from);
    }
    return good;
}

size_t weir_disk_cache_read(struct weir_disk_cache *c, const struct weir_disk_key *key, uint64_t offset, uint8_t *to,
                            size_t n)
{
    size_t done = 0;
    while (done < n && is_cached(key, offset, n)) {
        const struct piece p = piece_at(key, offset + done, n - done);
        if (!read_piece(c, &p, to + done))
            break;
        done += p.n;
    }
    atomic_fetch_add_explicit(&c->read_bytes, done, memory_order_relaxed);
    return done;
}

/* ---- storing ---- */

static void store_piece(struct weir_disk_cache *c, const struct piece *p, const uint8_t *bytes)
{
    uint64_t words[BLOCKS], old[BLOCKS];
    int64_t slot = insert(c, segment_key(p));
    if (slot < 0) {
        atomic_fetch_add_explicit(&c->full_bytes, p->n, memory_order_relaxed);
        return;
    }
    uint64_t at = words_at(c, (uint64_t)slot, p->first);
    size_t n = (size_t)p->blocks * sizeof *words;
    for (int i = 0; i < p->blocks; i++)
        words[i] = word_of(p, p->first + i, bytes + (size_t)i * BLOCK);
    if (weir_read_at(c->table, at, old, n) == 0 && memcmp(old, words, n) == 0)
        return;
    int rc = weir_write_at(c->data, data_at((uint64_t)slot, p->first), bytes, p->n);
    if (rc < 0)
        fail(c, rc);
    else
        write_table(c, at, words, n);
    if (rc == 0)
        atomic_fetch_add_explicit(&c->stored_bytes, p->n, memory_order_relaxed);
}

void weir_disk_cache_store(struct weir_disk_cache *c, const struct weir_disk_key *key, uint64_t offset,
                           const uint8_t *bytes, size_t n)
{
    if (!is_cached(key, offset, n))
        return;
    size_t skip = (size_t)((BLOCK - offset % BLOCK) % BLOCK);
    uint64_t end = offset + n == key->size_bytes ? offset + n : (offset + n) / BLOCK * BLOCK;
    for (uint64_t at = offset + skip; at < end && atomic_load_explicit(&c->error, memory_order_relaxed) == 0;) {
        const struct piece p = piece_at(key, at, (size_t)(end - at));
        store_piece(c, &p, bytes + (at - offset));
        at += p.n;
    }
}

void weir_disk_cache_counts(const struct weir_disk_cache *c, struct weir_disk_counts *counts)
{
    *counts = (struct weir_disk_counts){
        .read_bytes = atomic_load_explicit(&c->read_bytes, memory_order_relaxed),
        .stored_bytes = atomic_load_explicit(&c->stored_bytes, memory_order_relaxed),
        .full_bytes = atomic_load_explicit(&c->full_bytes, memory_order_relaxed),
        .damaged_blocks = atomic_load_explicit(&c->damaged_blocks, memory_order_relaxed),
        .error = atomic_load_explicit(&c->error, memory_order_relaxed),
    };
}
