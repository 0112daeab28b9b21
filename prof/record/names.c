#include "base/hash.h"
#include "prof/record/fork_priv.h"
#include "prof/record/track_priv.h"
#include "weir/recorder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 256,
    BLOCKS = 256,
    SLOTS_FIRST = 256,
    FULL = BLOCK * BLOCKS - 1
}; /* FULL: id of all names that no longer fit */

/* An entry of an append-only table. Readers need no lock, because an entry never moves and its id is published only
 * after the entry is written. */
struct entry {
    char *text;
    void *more; /* the element types of shapes, or the addresses of a stack */
    size_t more_bytes;
    int cat;
};

struct table {
    struct entry *_Atomic blocks[BLOCKS];
    uint32_t count; /* the next id; lower ids are in use or reserved */
    uint32_t *slots, n_slots;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table names = {.count = WEIR_STAGE_MAX}, shapes = {.count = 1}, stacks = {.count = 1};

static struct entry *entry_of(struct table *table, uint32_t id)
{
    struct entry *block =
        id < BLOCK * BLOCKS ? atomic_load_explicit(&table->blocks[id / BLOCK], memory_order_acquire) : NULL;
    return block ? &block[id % BLOCK] : NULL;
}

static uint32_t hash_of(const struct entry *e)
{
    uint64_t hash = weir_hash64(e->text, strlen(e->text)) + 31 * weir_hash64(e->more, e->more_bytes) + (uint64_t)e->cat;
    return (uint32_t)(hash ^ hash >> 32);
}

static uint32_t *slot_of(struct table *table, const struct entry *key)
{
    for (uint32_t at = hash_of(key);; at++) {
        uint32_t *slot = &table->slots[at & (table->n_slots - 1)];
        const struct entry *e = *slot ? entry_of(table, *slot) : NULL;
        if (!e || (e->cat == key->cat && e->more_bytes == key->more_bytes && strcmp(e->text, key->text) == 0 &&
                   memcmp(e->more, key->more, key->more_bytes) == 0))
            return slot;
    }
}

static bool slots_grow(struct table *table)
{
    if (table->n_slots && table->count < table->n_slots / 2)
        return true;
    uint32_t old = table->n_slots, n = old ? 2 * old : SLOTS_FIRST;
    uint32_t *before = table->slots, *slots = calloc(n, sizeof *slots);
    if (!slots)
        return false;
    table->slots = slots;
    table->n_slots = n;
    for (uint32_t i = 0; i < old; i++) {
        const struct entry *e = before[i] ? entry_of(table, before[i]) : NULL;
        if (e)
            *slot_of(table, e) = before[i];
    }
    free(before);
    return true;
}

/* Returns a new id, or 0 if the table is full. */
static uint32_t append(struct table *table, const struct entry *key)
{
    uint32_t id = table->count;
    if (id >= FULL)
        return 0;
    struct entry *block = atomic_load_explicit(&table->blocks[id / BLOCK], memory_order_relaxed);
    bool is_new = !block;
    if (is_new)
        block = calloc(BLOCK, sizeof *block);
    struct entry e = {strdup(key->text), malloc(key->more_bytes + 1), key->more_bytes, key->cat};
    if (!block || !e.text || !e.more) {
        free(e.text);
        free(e.more);
        if (is_new)
            free(block);
        return 0;
    }
    memcpy(e.more, key->more, key->more_bytes);
    block[id % BLOCK] = e;
    atomic_store_explicit(&table->blocks[id / BLOCK], block, memory_order_release);
    table->count = id + 1;
    return id;
}

void weir_names_fork(enum weir_fork when)
{
    if (when == WEIR_FORK_PREPARE)
        pthread_mutex_lock(&lock);
    else
        pthread_mutex_unlock(&lock);
}

static uint32_t intern(struct table *table, const struct entry *key)
{
    uint32_t id = 0;
    weir_fork_safe(WEIR_FORK_NAMES, weir_names_fork);
    pthread_mutex_lock(&lock);
    if (slots_grow(table)) {
        uint32_t *slot = slot_of(table, key);
        if (*slot == 0)
            *slot = append(table, key);
        id = *slot;
    }
    pthread_mutex_unlock(&lock);
    return id;
}

/* ---- names ---- */

weir_name weir_name_intern(const char *text, enum weir_cat cat)
{
    uint32_t id = intern(&names, &(struct entry){(char *)(uintptr_t)text, "", 0, (int)cat});
    return (weir_name)(id == 0 ? FULL : id);
}

const char *weir_name_text(weir_name name)
{
    const struct weir_stage_info *stage = weir_stage_info(name);
    if (stage)
        return stage->name;
    if (name == FULL)
        return "(too many names)";
    const struct entry *e = name >= WEIR_STAGE_MAX ? entry_of(&names, name) : NULL;
    return e && e->text ? e->text : "";
}

enum weir_cat weir_name_cat(weir_name name)
{
    const struct entry *e = name >= WEIR_STAGE_MAX && name != FULL ? entry_of(&names, name) : NULL;
    return e ? (enum weir_cat)e->cat : WEIR_CAT_CPU_OP;
}

/* ---- shapes ---- */

enum { SHAPES_TEXT = 2048 };

struct text {
    char bytes[SHAPES_TEXT];
    size_t n;
    bool cut;
};

static void put(struct text *to, const char *text)
{
    size_t n = strlen(text);
    to->cut |= to->n + n >= sizeof to->bytes;
    if (to->cut)
        return;
    memcpy(to->bytes + to->n, text, n + 1);
    to->n += n;
}

static void put_dims(struct text *to, int rank, const int64_t *sizes)
{
    put(to, "[");
    for (int d = 0; d < rank; d++) {
        char number[32];
        snprintf(number, sizeof number, "%s%lld", d ? ", " : "", (long long)sizes[d]);
        put(to, number);
    }
    put(to, "]");
}

uint32_t weir_shapes_intern(int n, const int *ranks, const int64_t *sizes, const char *const *types)
{
    struct text dims = {.n = 0}, kinds = {.n = 0};
    put(&dims, "[");
    put(&kinds, "[");
    for (int i = 0; i < n; i++) {
        put(&dims, i ? ", " : "");
        put_dims(&dims, ranks[i], sizes);
        sizes += ranks[i];
        put(&kinds, i ? ", \"" : "\"");
        put(&kinds, types[i]);
        put(&kinds, "\"");
    }
    put(&dims, "]");
    put(&kinds, "]");
    return dims.cut || kinds.cut ? 0 : intern(&shapes, &(struct entry){dims.bytes, kinds.bytes, kinds.n + 1, 0});
}

const char *weir_shapes_dims(uint32_t id)
{
    const struct entry *e = id ? entry_of(&shapes, id) : NULL;
    return e && e->text ? e->text : "";
}

const char *weir_shapes_types(uint32_t id)
{
    const struct entry *e = id ? entry_of(&shapes, id) : NULL;
    return e && e->more ? e->more : "";
}

/* ---- stacks ---- */

enum { FRAMES, ADDRESSES };

uint32_t weir_stack_text(const char *frames)
{
    return intern(&stacks, &(struct entry){(char *)(uintptr_t)frames, "", 0, FRAMES});
}

uint32_t weir_stack_intern(void *const *addresses, int n)
{
    return intern(&stacks, &(struct entry){"", (void *)(uintptr_t)addresses, (size_t)n * sizeof *addresses, ADDRESSES});
}

int weir_stack_addresses(uint32_t stack, const void *const **addresses)
{
    const struct entry *e = stack ? entry_of(&stacks, stack) : NULL;
    *addresses = e ? e->more : NULL;
    return e ? (int)(e->more_bytes / sizeof(void *)) : 0;
}

const char *weir_stack_frames(uint32_t stack)
{
    const struct entry *e = stack ? entry_of(&stacks, stack) : NULL;
    return e && e->cat == FRAMES ? e->text : NULL;
}
