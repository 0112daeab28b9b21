#include "datasets/lmdb/lmdb_tree.h"
#include "base/files.h"
#include "base/shortage.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Offsets of fields in a page, and in a meta page after its header (MDB_page, MDB_meta, MDB_db, MDB_node). */
enum {
    PAGE_FLAGS = 10,
    PAGE_LOWER = 12,
    PAGE_UPPER = 14,
    PAGE_HEADER = 16,
    META_MAGIC = 16,
    META_VERSION = 20,
    META_PAGE_BYTES = 40, /* the field md_pad of the database of free pages */
    META_MAIN = 88,
    META_LAST_PAGE = 136,
    META_TRANSACTION = 144,
    META_BYTES = 152,
    DB_FLAGS = 4,
    DB_DEPTH = 6,
    DB_ENTRIES = 32,
    DB_ROOT = 40,
    NODE_FLAGS = 4,
    NODE_KEY_BYTES = 6,
    NODE_HEADER = 8,
    NODE_PAGE_BYTES = 6, /* in a branch node the page number takes the place of length and flags */
};
enum { P_BRANCH = 1, P_LEAF = 2, P_META = 8, P_LEAF2 = 0x20 };
enum { F_BIGDATA = 1, F_SUBDATA = 2, F_DUPDATA = 4, MDB_DUPSORT = 4 };
enum { PAGE_BYTES_MIN = 512, PAGE_BYTES_MAX = 32768, VERSION = 1 };
static const uint32_t MAGIC = 0xBEEFC0DE, MAGIC_SWAPPED = 0xDEC0EFBE;

static unsigned little16(const uint8_t *bytes)
{
    return bytes[0] | (unsigned)bytes[1] << 8;
}

static int damaged(uint64_t page, const char *what, struct weir_err *err)
{
    return weir_err_set(err, -EBADMSG, "page %llu %s; the file is damaged or was not copied completely",
                        (unsigned long long)page, what);
}

/* ---- meta pages ---- */

static int no_lmdb(const uint8_t *page, struct weir_err *err)
{
    enum { META_MAGIC_32_BITS = 12 };
    if (weir_le(page + META_MAGIC_32_BITS, 4) == MAGIC)
        return weir_err_set(err, -ENOTSUP,
                            "LMDB file from a 32-bit program, which 64-bit programs cannot read; export it with "
                            "mdb_dump there, and import it with mdb_load here");
    if (weir_le(page + META_MAGIC, 4) == MAGIC_SWAPPED)
        return weir_err_set(err, -ENOTSUP,
                            "LMDB file from a machine with the other byte order; export it with mdb_dump there, and "
                            "import it with mdb_load here");
    return weir_err_set(err, -EBADMSG, "not an LMDB file: it has no meta pages; repair or remove it");
}

static int read_state(struct weir_lmdb_state *state, const struct weir_raw_file *file, uint64_t offset,
                      struct weir_err *err)
{
    uint8_t page[META_BYTES];
    if (offset > file->size_bytes || file->size_bytes - offset < sizeof page)
        return weir_err_set(err, -EBADMSG, "not an LMDB file, or a truncated one: it has %llu bytes",
                            (unsigned long long)file->size_bytes);
    int rc = file->read(file->user, offset, page, sizeof page);
    if (rc < 0)
        return weir_err_set(err, rc, "%s", strerror(-rc));
    if (!(little16(page + PAGE_FLAGS) & P_META) || weir_le(page + META_MAGIC, 4) != MAGIC)
        return no_lmdb(page, err);
    if (weir_le(page + META_VERSION, 4) != VERSION)
        return weir_err_set(err, -ENOTSUP, "LMDB format version %u is not supported; only version %d is",
                            (unsigned)weir_le(page + META_VERSION, 4), VERSION);
    const uint8_t *main_db = page + META_MAIN;
    *state = (struct weir_lmdb_state){
        .transaction = weir_le(page + META_TRANSACTION, 8),
        .root = weir_le(main_db + DB_ROOT, 8),
        .entries = weir_le(main_db + DB_ENTRIES, 8),
        .last_page = weir_le(page + META_LAST_PAGE, 8),
        .page_bytes = (uint32_t)weir_le(page + META_PAGE_BYTES, 4),
        .flags = (uint16_t)little16(main_db + DB_FLAGS),
        .depth = (uint16_t)little16(main_db + DB_DEPTH),
    };
    uint32_t bytes = state->page_bytes;
    if (bytes < PAGE_BYTES_MIN || bytes > PAGE_BYTES_MAX || (bytes & (bytes - 1)))
        return weir_err_set(err, -EBADMSG, "its page size is invalid (%u bytes); the file is damaged", bytes);
    return 0;
}

int weir_lmdb_states(struct weir_lmdb_state states[2], const struct weir_raw_file *file, struct weir_err *err)
{
    int rc = read_state(&states[0], file, 0, err);
    if (rc == 0)
        rc = read_state(&states[1], file, states[0].page_bytes, err);
    if (rc == 0 && states[1].page_bytes != states[0].page_bytes)
        return weir_err_set(err, -EBADMSG, "its meta pages do not agree; the file is damaged");
    if (rc == 0 && file->size_bytes < 2 * (uint64_t)states[0].page_bytes)
        return weir_err_set(err, -EBADMSG, "it is truncated within its meta pages");
    return rc;
}

const struct weir_lmdb_state *weir_lmdb_newest(const struct weir_lmdb_state states[2])
{
    return &states[states[0].transaction < states[1].transaction];
}

/* ---- the tree ---- */

/* A page on the path from the root to the current node. */
struct level {
    uint64_t number;
    unsigned node, nodes;
    uint8_t *page; /* page_bytes bytes */
};

struct walk {
    const struct weir_lmdb_state *state;
    const struct weir_raw_file *file;
    uint64_t pages; /* number of pages in the file that the database uses */
    uint8_t *used;  /* one bit per page */
    struct level levels[WEIR_LMDB_DEPTH_MAX];
    uint8_t *buffer; /* memory for the pages of all levels */
    uint8_t last_key[WEIR_LMDB_KEY_MAX];
    size_t last_length;
    uint64_t entries;
};

/* Marks pages as used. Returns false if one of them is missing or already used. */
static bool use_pages(struct walk *w, uint64_t first, uint64_t n)
{
    if (first < 2 || first >= w->pages || n > w->pages - first)
        return false;
    for (uint64_t page = first; page < first + n; page++) {
        uint8_t bit = (uint8_t)(1 << (page & 7));
        if (w->used[page >> 3] & bit)
            return false;
        w->used[page >> 3] |= bit;
    }
    return true;
}

/* Returns node i of a page; NULL if the node or its key exceeds the page. */
static const uint8_t *node_at(const struct walk *w, const struct level *level, unsigned i)
{
    unsigned at = little16(level->page + PAGE_HEADER + 2 * (size_t)i), upper = little16(level->page + PAGE_UPPER);
    if (at < upper || at + NODE_HEADER > w->state->page_bytes)
        return NULL;
    const uint8_t *node = level->page + at;
    return at + NODE_HEADER + little16(node + NODE_KEY_BYTES) <= w->state->page_bytes ? node : NULL;
}

static int enter(struct walk *w, int depth, uint64_t number, struct weir_err *err)
{
    struct level *level = &w->levels[depth];
    uint32_t bytes = w->state->page_bytes;
    if (!use_pages(w, number, 1))
        return damaged(number, number < w->pages ? "of the tree is used twice" : "of the tree is not in the file", err);
    *level = (struct level){.number = number, .page = w->buffer + (size_t)depth * bytes};
    int rc = w->file->read(w->file->user, number * bytes, level->page, bytes);
    if (rc < 0)
        return weir_err_set(err, rc, "page %llu: %s", (unsigned long long)number, strerror(-rc));
    unsigned flags = little16(level->page + PAGE_FLAGS), lower = little16(level->page + PAGE_LOWER);
    bool is_leaf = depth + 1 == w->state->depth;
    if (flags & P_LEAF2)
        return weir_err_set(err, -ENOTSUP, "it has keys with several values (MDB_DUPFIXED), which is not supported");
    if (weir_le(level->page, 8) != number || (flags & (P_BRANCH | P_LEAF)) != (is_leaf ? P_LEAF : P_BRANCH))
        return damaged(number, "is not of the kind that the tree needs there", err);
    if (lower < PAGE_HEADER || lower > little16(level->page + PAGE_UPPER) || lower > bytes)
        return damaged(number, "has an invalid header", err);
    level->nodes = (lower - PAGE_HEADER) / 2;
    return 0;
}

static bool is_next_key(struct walk *w, const uint8_t *key, size_t length)
{
    size_t shorter = length < w->last_length ? length : w->last_length;
    int order = memcmp(key, w->last_key, shorter);
    bool fine = w->entries == 0 || order > 0 || (order == 0 && length > w->last_length);
    memcpy(w->last_key, key, length);
    w->last_length = length;
    w->entries++;
    return fine;
}

/* Locates the value of a leaf node, which follows the key or is in overflow pages. */
static int find_value(struct walk *w, const struct level *level, const uint8_t *node, struct weir_lmdb_entry *entry,
                      struct weir_err *err)
{
    uint32_t bytes = w->state->page_bytes;
    const uint8_t *data = entry->key + entry->key_length;
    size_t at = (size_t)(data - level->page), inside = little16(node + NODE_FLAGS) & F_BIGDATA ? 8 : entry->length;
    if (inside > bytes - at)
        return damaged(level->number, "has a value that extends beyond the page", err);
    if (!(little16(node + NODE_FLAGS) & F_BIGDATA)) {
        entry->offset = level->number * bytes + at;
        return 0;
    }
    uint64_t first = weir_le(data, 8);
    if (!use_pages(w, first, (PAGE_HEADER - 1 + entry->length) / bytes + 1))
        return damaged(level->number, "has a value whose pages are not in the file, or belong to another value", err);
    entry->offset = first * bytes + PAGE_HEADER;
    return 0;
}

static int visit_node(struct walk *w, const struct level *level, const uint8_t *node,
                      int (*visit)(void *user, const struct weir_lmdb_entry *entry, struct weir_err *err), void *user,
                      struct weir_err *err)
{
    struct weir_lmdb_entry entry = {node + NODE_HEADER, little16(node + NODE_KEY_BYTES), 0, weir_le(node, 4)};
    unsigned flags = little16(node + NODE_FLAGS);
    if (entry.key_length > WEIR_LMDB_KEY_MAX || (flags & ~(unsigned)(F_BIGDATA | F_SUBDATA | F_DUPDATA)))
        return damaged(level->number, "has an invalid key", err);
    if (!is_next_key(w, entry.key, entry.key_length))
        return damaged(level->number, "has keys that are not in ascending order", err);
    if (flags & F_DUPDATA)
        return weir_err_set(err, -ENOTSUP, "key \"%.*s\" has several values (MDB_DUPSORT), which is not supported",
                            (int)entry.key_length, (const char *)entry.key);
    if (flags & F_SUBDATA)
        return weir_err_set(err, -ENOTSUP,
                            "\"%.*s\" is a named database within the file (mdb_dbi_open with a name), which is not "
                            "supported; write its keys into the file's main database",
                            (int)entry.key_length, (const char *)entry.key);
    int rc = find_value(w, level, node, &entry, err);
    return rc < 0 ? rc : visit(user, &entry, err);
}

static int walk_tree(struct walk *w,
                     int (*visit)(void *user, const struct weir_lmdb_entry *entry, struct weir_err *err), void *user,
                     struct weir_err *err)
{
    int depth = 0, leaf = w->state->depth - 1;
    int rc = enter(w, 0, w->state->root, err);
    while (rc >= 0 && depth >= 0) {
        struct level *level = &w->levels[depth];
        if (level->node == level->nodes) {
            depth--;
            continue;
        }
        const uint8_t *node = node_at(w, level, level->node++);
        if (!node)
            rc = damaged(level->number, "has a node that extends beyond the page", err);
        else if (depth == leaf)
            rc = visit_node(w, level, node, visit, user, err);
        else
            rc = enter(w, ++depth, weir_le(node, NODE_PAGE_BYTES), err);
    }
    if (rc >= 0 && w->entries != w->state->entries)
        return weir_err_set(err, -EBADMSG, "it has %llu keys, but should have %llu; the file is damaged",
                            (unsigned long long)w->entries, (unsigned long long)w->state->entries);
    return rc < 0 ? rc : 0;
}

static int check_state(const struct weir_lmdb_state *state, struct weir_err *err)
{
    if (state->flags & MDB_DUPSORT)
        return weir_err_set(err, -ENOTSUP, "its keys may have several values (MDB_DUPSORT), which is not supported");
    if (state->flags)
        return weir_err_set(err, -ENOTSUP,
                            "its keys are integers or reversed (flags %#x of its main database), which is "
                            "not supported",
                            state->flags);
    bool is_empty = state->root == UINT64_MAX && state->depth == 0;
    if (is_empty ? state->entries > 0 : state->depth == 0 || state->depth > WEIR_LMDB_DEPTH_MAX)
        return weir_err_set(err, -EBADMSG, "the depth of its tree is invalid (%u); the file is damaged", state->depth);
    return 0;
}

int weir_lmdb_walk(const struct weir_lmdb_state *state, const struct weir_raw_file *file,
                   int (*visit)(void *user, const struct weir_lmdb_entry *entry, struct weir_err *err), void *user,
                   struct weir_err *err)
{
    int rc = check_state(state, err);
    if (rc < 0 || state->depth == 0)
        return rc;
    struct walk *w = calloc(1, sizeof *w);
    if (!w)
        return weir_no_memory(err);
    w->state = state;
    w->file = file;
    w->pages = file->size_bytes / state->page_bytes; /* the file may be shorter, without the free pages at its end */
    if (state->last_page < w->pages)
        w->pages = state->last_page + 1;
    w->used = calloc((size_t)(w->pages / 8 + 1), 1);
    w->buffer = malloc((size_t)state->depth * state->page_bytes);
    rc = w->used && w->buffer ? walk_tree(w, visit, user, err) : weir_no_memory(err);
    free(w->used);
    free(w->buffer);
    free(w);
    return rc;
}
