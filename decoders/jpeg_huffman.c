#include "decoders/jpeg_fast_priv.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK = WEIR_HUFFMAN_LOOK, ENTRIES = 1 << LOOK, RUN_OF_16 = 0xF0, NOWHERE = WEIR_HUFFMAN_NOWHERE };

struct kept {
    struct weir_huffman table;
    uint64_t used; /* number of the last call that used the table; 0: never used */
    bool made;
};

struct weir_huffman_tables {
    struct kept kept[2][WEIR_HUFFMAN_CACHE];
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

/* Lists the first code in every 11-bit prefix: the symbol in bits 0 to 7 and the code length above them. The entry is 0
 * if the code is invalid or longer than the prefix. */
static void list_codes(const struct weir_huffman_codes *codes, uint16_t list[ENTRIES])
{
    for (unsigned i = 0; i < ENTRIES;) {
        uint8_t symbol = 0;
        int length = weir_huffman_symbol(codes, (uint64_t)i << (64 - LOOK), &symbol);
        unsigned end = i + (length && length <= LOOK ? 1u << (LOOK - length) : 1);
        for (; i < end; i++)
            list[i] = (uint16_t)(length <= LOOK ? symbol | length << 8 : 0);
    }
}

static void make_dc(uint16_t *look, const uint16_t list[ENTRIES])
{
    for (unsigned i = 0; i < ENTRIES; i++) {
        unsigned size = list[i] & 15, length = list[i] >> 8;
        look[i] = (uint16_t)(length ? (length + size) | size << 8 : 0);
    }
}

/* ---- two coefficients per entry ---- */

struct coefficient {
    int code, size, run; /* bits of the code, bits of the value, preceding zero coefficients */
    int next;            /* increment of the coefficient index */
};

static bool find(const uint16_t list[ENTRIES], unsigned bits, int known, struct coefficient *c)
{
    int symbol = list[bits] & 255, length = list[bits] >> 8;
    *c = (struct coefficient){.code = length <= known ? length : 0, .size = symbol & 15};
    c->run = c->size ? symbol >> 4 : 0;
    c->next = c->size ? c->run + 1 : symbol == RUN_OF_16 ? 16 : WEIR_HUFFMAN_END;
    return c->code > 0;
}

static uint64_t entry(const uint16_t list[ENTRIES], unsigned bits)
{
    struct coefficient first, second = {0};
    if (!find(list, bits, LOOK, &first))
        return (uint64_t)NOWHERE << 24 | (uint64_t)NOWHERE << 32 | (uint64_t)NOWHERE << 40;
    int value = 0, whole = first.code + first.size;
    if (whole > LOOK) { /* the value exceeds the prefix: make this the second coefficient, whose value is read from the
                           stream */
        second = first;
        first = (struct coefficient){0};
        whole = 0;
    } else {
        value = extend((bits >> (LOOK - whole)) & ((1u << first.size) - 1), first.size);
        bool more = first.next < WEIR_HUFFMAN_END && whole < LOOK;
        if (!more || !find(list, (bits << whole) & (ENTRIES - 1), LOOK - whole, &second))
            second = (struct coefficient){0};
    }
    uint64_t before = (uint64_t)(whole + second.code), total = before + (uint64_t)second.size;
    uint64_t at_first = (uint64_t)(first.size ? first.run : NOWHERE);
    uint64_t at_second = (uint64_t)(second.size ? first.next + second.run : NOWHERE);
    uint64_t next = (uint64_t)(first.next + second.next);
    return total | before << 8 | (uint64_t)second.size << 16 | at_first << 24 | at_second << 32 | next << 40 |
           (uint64_t)(uint16_t)value << 48;
}

/* Returns the number of consecutive prefixes, all starting with this code, that have equal entries: all of them if the
 * code ends the block or if its value is read from the stream, otherwise only one. */
static unsigned same_entries(uint16_t code)
{
    int length = code >> 8, size = code & 15, symbol = code & 255;
    bool ends = size == 0 && symbol != RUN_OF_16;
    return length > 0 && (ends || length + size > LOOK) ? 1u << (LOOK - length) : 1;
}

static void make_ac(uint64_t *look, const uint16_t list[ENTRIES])
{
    for (unsigned i = 0; i < ENTRIES;) {
        uint64_t made = entry(list, i);
        for (unsigned end = i + same_entries(list[i]); i < end; i++)
            look[i] = made;
    }
}

static void make(struct weir_huffman *table, enum weir_huffman_kind kind)
{
    uint16_t list[ENTRIES];
    make_codes(&table->codes);
    list_codes(&table->codes, list);
    if (kind == WEIR_HUFFMAN_DC)
        make_dc(table->dc, list);
    else
        make_ac(table->ac, list);
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
