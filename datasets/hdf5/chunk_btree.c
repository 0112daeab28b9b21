/* Chunk indexes that are trees: version 1 B-trees (III.A.1, node type 1) and version 2 B-trees (III.A.2, record types
 * 10 and 11). */
#include "datasets/hdf5/chunk_walk_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- version 1 ---- */

/* Position of a chunk in the grid, in units of chunks. The last number is 0 in valid keys. */
struct key {
    uint64_t at[WEIR_GRID_RANK_MAX + 1];
};

static size_t key_bytes(const struct weir_walk *walk)
{
    return 8 + 8 * ((size_t)walk->grid->rank + 1);
}

/* A stored key consists of a u32 stored size, a u32 filter mask, and the position of the chunk's first element as rank
 * + 1 u64 numbers, the last of which is in bytes. */
static struct key key_of(const struct weir_walk *walk, const uint8_t *bytes)
{
    struct key key = {.at = {0}};
    int rank = walk->grid->rank;
    for (int d = 0; d <= rank; d++)
        key.at[d] = weir_le(bytes + 8 + 8 * d, 8) / (d < rank ? walk->grid->chunk[d] : walk->grid->element_bytes);
    return key;
}

static bool is_before(const struct weir_walk *walk, const struct key *a, const struct key *b)
{
    int d = 0;
    while (d < walk->grid->rank && a->at[d] == b->at[d])
        d++;
    return a->at[d] < b->at[d];
}

static int note_key(struct weir_walk *walk, const struct key *key, const uint8_t *bytes, uint64_t address)
{
    for (int d = 0; d < walk->grid->rank; d++)
        if (weir_le(bytes + 8 + 8 * d, 8) % walk->grid->chunk[d] != 0)
            return weir_walk_bad(walk, "a key of the index is not the start of a chunk");
    if (weir_le(bytes + 8 + 8 * walk->grid->rank, 8) != 0) /* the library lists such a chunk but cannot find it */
        return weir_walk_bad(walk, "a key of the index is not the start of a chunk");
    return weir_walk_note(walk, key->at, address, weir_le(bytes, 4), (uint32_t)weir_le(bytes + 4, 4));
}

/* Range of keys in a part of the tree, excluding `to`. */
struct span {
    struct key from, to;
};

static int walk_node1(struct weir_walk *walk, uint64_t address, int level_above, const struct span *span);

/* The library searches the tree by key, so if keys are not in order it misses chunks and reads fill values instead.
 * This walk refuses such an index, because it would find more chunks than the library. */
static int walk_child1(struct weir_walk *walk, const uint8_t *entry, int level, const struct span *span)
{
    const uint8_t *child = entry + key_bytes(walk);
    struct key key = key_of(walk, entry), next = key_of(walk, child + 8);
    struct span part = {is_before(walk, &key, &span->from) ? span->from : key,
                        is_before(walk, &next, &span->to) ? next : span->to};
    bool first_is_there = !is_before(walk, &key, &part.from) && is_before(walk, &key, &part.to);
    if (is_before(walk, &next, &key) || (level == 0 && !first_is_there))
        return weir_walk_bad(walk, "the keys of the index are not in order");
    return level == 0 ? note_key(walk, &key, entry, weir_le(child, 8))
                      : walk_node1(walk, weir_le(child, 8), level, &part);
}

static int walk_node1(struct weir_walk *walk, uint64_t address, int level_above, const struct span *span)
{
    enum { HEAD = 24, LEVEL_MAX = 16 };
    uint8_t head[HEAD];
    size_t entry_bytes = key_bytes(walk) + 8;
    int rc = weir_walk_read(walk, address, head, HEAD);
    if (rc < 0)
        return rc;
    int level = head[5];
    size_t used = (size_t)weir_le(head + 6, 2), bytes = used * entry_bytes + key_bytes(walk);
    if (memcmp(head, "TREE", 4) != 0 || head[4] != 1 || level > LEVEL_MAX ||
        (level_above >= 0 && level != level_above - 1))
        return weir_walk_bad(walk, "a part of the index is not at the expected address");
    if (!weir_walk_step(walk, used + 1))
        return weir_walk_bad(walk, "the index leads back to itself");
    if (used == 0)
        return 0;
    uint8_t *entries = malloc(bytes);
    if (!entries)
        return -ENOMEM;
    rc = weir_walk_read(walk, address + HEAD, entries, bytes);
    for (size_t i = 0; i < used && rc == 0; i++)
        rc = walk_child1(walk, entries + i * entry_bytes, level, span);
    free(entries);
    return rc;
}

int weir_walk_btree1(struct weir_walk *walk, uint64_t address)
{
    struct span all = {.from = {.at = {0}}};
    memset(&all.to, 0xff, sizeof all.to);
    return walk_node1(walk, address, -1, &all);
}

/* ---- version 2 ---- */

enum { DEPTH_MAX = 16, NODE_PREFIX = 6, CHECKSUM = 4 };

struct tree {
    struct weir_walk *walk;
    int type;
    uint64_t node_bytes, record_bytes;
    int count_bytes;                /* size of the field for a child's record count */
    int total_bytes[DEPTH_MAX + 1]; /* size of the field for the record count of a subtree of this depth */
    uint64_t max[DEPTH_MAX + 1];    /* maximum number of records per node */
};

/* Returns the number of bytes that a number up to n needs. */
static int bytes_for(uint64_t n)
{
    int bytes = 1;
    while (bytes < 8 && n >> 8 * bytes)
        bytes++;
    return bytes;
}

/* The number of records per node at each depth determines the width of the counts in the nodes above. */
static bool lay_out(struct tree *tree, int depth)
{
    uint64_t capacity = tree->node_bytes - NODE_PREFIX - CHECKSUM, total;
    tree->max[0] = capacity / tree->record_bytes;
    tree->count_bytes = bytes_for(tree->max[0]);
    total = tree->max[0];
    for (int d = 1; d <= depth; d++) {
        uint64_t pointer = 8 + (uint64_t)tree->count_bytes + (uint64_t)tree->total_bytes[d - 1];
        if (capacity < pointer)
            return false;
        tree->max[d] = (capacity - pointer) / (tree->record_bytes + pointer);
        if (__builtin_mul_overflow(total, tree->max[d] + 1, &total) ||
            __builtin_add_overflow(total, tree->max[d], &total))
            return false;
        tree->total_bytes[d] = bytes_for(total);
    }
    return tree->max[depth] > 0;
}

/* A record contains the chunk's address; in a filtered dataset, its stored size and a u32 filter mask; and its position
 * in the grid. */
static int note_record(struct tree *tree, const uint8_t *record)
{
    struct weir_walk *walk = tree->walk;
    uint64_t scaled[WEIR_GRID_RANK_MAX], address = weir_le(record, 8), bytes = walk->chunk_bytes;
    uint32_t mask = 0;
    size_t places = 8 * (size_t)walk->grid->rank;
    if (tree->type == 11) {
        size_t width = tree->record_bytes - 12 - places;
        bytes = weir_le(record + 8, (int)width);
        mask = (uint32_t)weir_le(record + 8 + width, 4);
    }
    for (int d = 0; d < walk->grid->rank; d++)
        scaled[d] = weir_le(record + tree->record_bytes - places + 8 * (size_t)d, 8);
    return weir_walk_note(walk, scaled, address, bytes, mask);
}

static int walk_node2(struct tree *tree, uint64_t address, uint64_t records, int depth)
{
    struct weir_walk *walk = tree->walk;
    uint64_t pointer = depth ? 8 + (uint64_t)tree->count_bytes + (uint64_t)tree->total_bytes[depth - 1] : 0;
    if (records > tree->max[depth])
        return weir_walk_bad(walk, "a node of the index holds too many chunks");
    if (!weir_walk_step(walk, records + 1))
        return weir_walk_bad(walk, "the index leads back to itself");
    uint64_t bytes = NODE_PREFIX + records * tree->record_bytes + (depth ? (records + 1) * pointer : 0) + CHECKSUM;
    uint8_t *node;
    int rc = weir_walk_block(walk, address, depth ? "BTIN" : "BTLF", bytes, &node);
    if (rc == 0 && node[5] != tree->type)
        rc = weir_walk_bad(walk, "a part of the index is not at the expected address");
    for (uint64_t i = 0; i < records && rc == 0; i++)
        rc = note_record(tree, node + NODE_PREFIX + i * tree->record_bytes);
    const uint8_t *child = rc == 0 ? node + NODE_PREFIX + records * tree->record_bytes : NULL;
    for (uint64_t i = 0; depth && i <= records && rc == 0; i++, child += pointer)
        rc = walk_node2(tree, weir_le(child, 8), weir_le(child + 8, tree->count_bytes), depth - 1);
    free(node);
    return rc;
}

int weir_walk_btree2(struct weir_walk *walk, uint64_t address)
{
    enum { HEAD = 38 };
    uint8_t *head;
    int rc = weir_walk_block(walk, address, "BTHD", HEAD, &head);
    if (rc < 0)
        return rc;
    struct tree tree = {walk, head[5], weir_le(head + 6, 4), weir_le(head + 10, 2), 0, {0}, {0}};
    int depth = (int)weir_le(head + 12, 2);
    uint64_t root = weir_le(head + 16, 8), records = weir_le(head + 24, 2);
    free(head);
    uint64_t places = 8 * (uint64_t)walk->grid->rank, width = tree.record_bytes - places - 12;
    bool fits = tree.type == 10   ? tree.record_bytes == 8 + places
                : tree.type == 11 ? tree.record_bytes > 12 + places && width <= 8
                                  : false;
    if (!fits || (tree.type == 11) != walk->grid->filtered || depth > DEPTH_MAX ||
        tree.node_bytes < NODE_PREFIX + CHECKSUM + tree.record_bytes || !lay_out(&tree, depth))
        return weir_walk_bad(walk, "the index does not match the dataset");
    return root == UINT64_MAX || records == 0 ? 0 : walk_node2(&tree, root, records, depth);
}
