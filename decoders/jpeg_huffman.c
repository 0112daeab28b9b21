#include "decoders/jpeg_fast_priv.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK = WEIR_HUFFMAN_LOOK, RUN_OF_16 = 0xF0, NOWHERE = WEIR_HUFFMAN_NOWHERE };

struct kept {
    struct weir_huffman table;
    uint64_t used; /* number of the last call that used the table; 0: never used */
    bool made;
};

struct weir_huffman_tables {
    struct kept kept[WEIR_HUFFMAN_KINDS][WEIR_HUFFMAN_CACHE];
    uint64_t calls;
};

struct weir_huffman_tables *weir_huffman_open(void)
{
    return calloc(1, sizeof(struct weir_huffman_tables));
}

void weir_huffman_close(struct weir_huffman_tables *tables)
{
    free(tables);
}

/* ---- codes ---- */

static void make_codes(struct weir_huffman_codes *codes)
{
    int32_t code = 0, n = 0;
    for (int length = 1; length <= WEIR_HUFFMAN_BITS; length++) {
        codes->offset[length] = n - code;
        code += codes->counts[length];
        n += codes->counts[length];
        codes->largest[length] = codes->counts[length] ? code - 1 : -1;
        code <<= 1;
    }
}

int weir_huffman_symbol(const struct weir_huffman_codes *codes, uint64_t bits, uint8_t *symbol)
{
    for (int length = 1; length <= WEIR_HUFFMAN_BITS; length++) {
        int32_t code = (int32_t)(bits >> (64 - length));
        if (code > codes->largest[length])
            continue;
        *symbol = codes->symbols[(code + codes->offset[length]) & 255];
        return length;
    }
    return 0;
}

/* Returns the value encoded by `size` additional bits (EXTEND in T.81, F.2.2.1). */
static int extend(unsigned bits, int size)
{
    int value = (int)bits;
    return size > 0 && value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

/* The first code in every prefix of `look` bits: the symbol in bits 0 to 7 and the code length above them. The entry is
 * 0 if the code is invalid or longer than the prefix. */
struct list {
    int look;
    unsigned entries;
    uint16_t codes[1 << WEIR_HUFFMAN_SKIP_LOOK];
};

static void list_codes(const struct weir_huffman_codes *codes, int look, struct list *list)
{
    list->look = look;
    list->entries = 1u << look;
    for (unsigned i = 0; i < list->entries;) {
        uint8_t symbol = 0;
        int length = weir_huffman_symbol(codes, (uint64_t)i << (64 - look), &symbol);
        unsigned end = i + (length && length <= look ? 1u << (look - length) : 1);
        for (; i < end; i++)
            list->codes[i] = (uint16_t)(length <= look ? symbol | length << 8 : 0);
    }
}

static void make_dc(uint16_t *look, const struct list *list)
{
    for (unsigned i = 0; i < list->entries; i++) {
        unsigned size = list->codes[i] & 15, length = list->codes[i] >> 8;
        look[i] = (uint16_t)(length ? (length + size) | size << 8 : 0);
    }
}

/* ---- several coefficients per entry ---- */

struct coefficient {
    int code, size, run; /* bits of the code, bits of the value, preceding zero coefficients */
    int next;            /* increment of the coefficient index */
};

/* Finds the code after the first `at` bits of a prefix. Returns false if it is invalid or not wholly in the prefix. */
static bool find(const struct list *list, unsigned prefix, int at, struct coefficient *c)
{
    unsigned code = list->codes[(prefix << at) & (list->entries - 1)];
    int symbol = code & 255, length = (int)(code >> 8);
    *c = (struct coefficient){.code = at + length <= list->look ? length : 0, .size = symbol & 15};
    c->run = c->size ? symbol >> 4 : 0;
    c->next = c->size ? c->run + 1 : symbol == RUN_OF_16 ? 16 : WEIR_HUFFMAN_END;
    return c->code > 0;
}

static uint16_t step(int total, int next)
{
    return (uint16_t)(total | (total ? next : NOWHERE) << 6);
}

/* Sets `two` for a prefix and returns its step. */
static uint16_t find_two(const struct list *list, unsigned prefix, struct weir_huffman_two *two)
{
    struct coefficient first = {0}, second;
    bool found = find(list, prefix, 0, &second);
    int value = 0, whole = second.code + second.size;
    if (found && whole <= LOOK) { /* otherwise the value exceeds the prefix and is read from the stream */
        first = second;
        value = extend((prefix >> (LOOK - whole)) & ((1u << first.size) - 1), first.size);
        if (first.next >= WEIR_HUFFMAN_END || whole == LOOK || !find(list, prefix, whole, &second))
            second = (struct coefficient){0};
    } else {
        whole = 0;
    }
    *two = (struct weir_huffman_two){
        .value = (int16_t)value,
        .before = (uint8_t)(whole + second.code),
        .size = (uint8_t)second.size,
        .first = (uint8_t)(first.size ? first.run : NOWHERE),
        .second = (uint8_t)(second.size ? first.next + second.run : NOWHERE),
    };
    return step(whole + second.code + second.size, first.next + second.next);
}

/* Returns the number of consecutive prefixes, all starting with this code, that have equal entries: all of them if the
 * code ends the block or if its value is read from the stream, otherwise only one. */
static unsigned same_entries(const struct list *list, unsigned prefix)
{
    struct coefficient c;
    bool found = find(list, prefix, 0, &c), ends = c.next == WEIR_HUFFMAN_END;
    return found && (ends || c.code + c.size > list->look) ? 1u << (list->look - c.code) : 1;
}

static void make_ac(struct weir_huffman *table, const struct list *list)
{
    for (unsigned i = 0; i < list->entries;) {
        struct weir_huffman_two two;
        uint16_t made = find_two(list, i, &two);
        for (unsigned end = i + same_entries(list, i); i < end; i++) {
            table->steps[i] = made;
            table->two[i] = two;
        }
    }
}

/* Returns the step over as many coefficients as there are whole codes in a prefix. */
static uint16_t find_many(const struct list *list, unsigned prefix)
{
    /* Added to an index in a block, the increments of more coefficients could exceed WEIR_HUFFMAN_END. */
    enum { NEXT_MAX = WEIR_HUFFMAN_END - WEIR_JPEG_BLOCK - 16 };
    struct coefficient c;
    int total = 0, next = 0;
    while (total < list->look && next <= NEXT_MAX && find(list, prefix, total, &c)) {
        total += c.code + c.size;
        next += c.next;
    }
    return step(total, next);
}

static void make_skip(uint16_t *skips, const struct list *list)
{
    for (unsigned i = 0; i < list->entries;) {
        uint16_t made = find_many(list, i);
        for (unsigned end = i + same_entries(list, i); i < end; i++)
            skips[i] = made;
    }
}

static void make(struct weir_huffman *table, enum weir_huffman_kind kind)
{
    struct list list;
    make_codes(&table->codes);
    list_codes(&table->codes, kind == WEIR_HUFFMAN_SKIP ? WEIR_HUFFMAN_SKIP_LOOK : LOOK, &list);
    if (kind == WEIR_HUFFMAN_DC)
        make_dc(table->dc, &list);
    else if (kind == WEIR_HUFFMAN_AC)
        make_ac(table, &list);
    else
        make_skip(table->skips, &list);
}

/* ---- cache ---- */

static bool same(const struct weir_huffman_codes *codes, const uint8_t *counts, const uint8_t *symbols)
{
    int n = 0;
    for (int length = 1; length <= WEIR_HUFFMAN_BITS; length++)
        n += counts[length];
    return memcmp(codes->counts + 1, counts + 1, WEIR_HUFFMAN_BITS) == 0 &&
           memcmp(codes->symbols, symbols, n < 256 ? (size_t)n : 256) == 0;
}

static struct kept *oldest(struct kept *kept)
{
    struct kept *found = kept;
    for (int i = 1; i < WEIR_HUFFMAN_CACHE; i++)
        found = kept[i].used < found->used ? &kept[i] : found;
    return found;
}

static void replace(struct kept *kept, const uint8_t *counts, const uint8_t *symbols)
{
    memcpy(kept->table.codes.counts, counts, sizeof kept->table.codes.counts);
    memcpy(kept->table.codes.symbols, symbols, sizeof kept->table.codes.symbols);
    kept->made = false;
}

const struct weir_huffman *weir_huffman_table(struct weir_huffman_tables *tables, enum weir_huffman_kind kind,
                                              const uint8_t *counts, const uint8_t *symbols, bool make_new)
{
    struct kept *kept = tables->kept[kind], *found = NULL;
    for (int i = 0; i < WEIR_HUFFMAN_CACHE && !found; i++)
        found = kept[i].used && same(&kept[i].table.codes, counts, symbols) ? &kept[i] : NULL;
    bool is_new = !found;
    if (is_new)
        replace(found = oldest(kept), counts, symbols);
    found->used = ++tables->calls;
    if (!found->made && (make_new || !is_new)) {
        make(&found->table, kind);
        found->made = true;
    }
    return found->made ? &found->table : NULL;
}
