/* .debug_line, DWARF 2 to 5: a program per compilation unit, which makes rows of (address, file, line). Every step
 * reads a byte at least, so that a program ends; what a damaged one has made by then stays, by whole sequences. */
#include "prof/symbols/symbols_priv.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = (48 << 20) / sizeof(struct weir_line_row),
    SEQUENCES_MAX = (8 << 20) / sizeof(struct weir_line_sequence),
    FILES_MAX = (8 << 20) / sizeof(char *),
    OVERLAPS_MAX = 8, /* sequences in which an address may lie, by one that names more than it has */
};

enum {
    LNS_COPY = 1,
    LNS_ADVANCE_PC = 2,
    LNS_ADVANCE_LINE = 3,
    LNS_SET_FILE = 4,
    LNS_SET_COLUMN = 5,
    LNS_CONST_ADD_PC = 8,
    LNS_FIXED_ADVANCE_PC = 9,
    LNS_SET_ISA = 12,
    LNE_END_SEQUENCE = 1,
    LNE_SET_ADDRESS = 2,
    LNE_DEFINE_FILE = 3,
    LNCT_PATH = 1,
};

/* How an attribute of a file is kept. */
enum {
    FORM_BLOCK2 = 0x03,
    FORM_BLOCK4 = 0x04,
    FORM_DATA2 = 0x05,
    FORM_DATA4 = 0x06,
    FORM_DATA8 = 0x07,
    FORM_STRING = 0x08,
    FORM_BLOCK = 0x09,
    FORM_BLOCK1 = 0x0a,
    FORM_DATA1 = 0x0b,
    FORM_SDATA = 0x0d,
    FORM_STRP = 0x0e,
    FORM_UDATA = 0x0f,
    FORM_STRX = 0x1a,
    FORM_STRP_SUP = 0x1d,
    FORM_DATA16 = 0x1e,
    FORM_LINE_STRP = 0x1f,
    FORM_STRX1 = 0x25,
    FORM_STRX4 = 0x28,
};

struct cursor {
    const uint8_t *at;
    size_t left;
    bool bad; /* more was asked for than there is; everything reads as 0 then */
};

struct unit {
    struct weir_extent line_str, str;
    int version, offset_bytes;
    uint8_t min_instruction, max_operations, line_range, opcode_base;
    int8_t line_base;
    const uint8_t *operands; /* of opcode i: [i - 1] */
    size_t first_file, n_files;
};

/* The registers of the program. */
struct machine {
    uint64_t address, operation, file, line;
};

struct builder {
    struct weir_line_table *table;
    size_t row_room, sequence_room, file_room;
    size_t first; /* row of the sequence being made */
    uint64_t low, last;
    bool open, dropped, full;
};

static uint64_t take(struct cursor *c, size_t n)
{
    uint64_t value = 0;
    if (c->left < n) {
        c->bad = true;
        c->left = 0;
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)c->at[i] << (8 * i);
    c->at += n;
    c->left -= n;
    return value;
}

static void skip(struct cursor *c, uint64_t n)
{
    if (n > c->left) {
        c->bad = true;
        n = c->left;
    }
    c->at += n;
    c->left -= (size_t)n;
}

/* The first n bytes, as a cursor of their own. */
static struct cursor split(struct cursor *c, uint64_t n)
{
    struct cursor part = {c->at, 0, n > c->left};
    skip(c, n);
    part.left = (size_t)(c->at - part.at);
    return part;
}

static uint64_t take_uleb(struct cursor *c)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = take(c, 1);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) && !c->bad);
    return value;
}

static uint64_t take_sleb(struct cursor *c)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = take(c, 1);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
        shift = shift < 64 ? shift + 7 : shift;
    } while ((byte & 0x80) && !c->bad);
    if (shift < 64 && (byte & 0x40))
        value |= UINT64_MAX << shift;
    return value;
}

static const char *take_string(struct cursor *c)
{
    const uint8_t *text = c->at, *end = c->left ? memchr(text, 0, c->left) : NULL;
    skip(c, end ? (uint64_t)(end - text) + 1 : UINT64_MAX);
    return end ? (const char *)text : NULL;
}

const char *weir_extent_string(struct weir_extent extent, uint64_t offset)
{
    if (offset >= extent.size || extent.data[extent.size - 1] != 0)
        return NULL;
    return (const char *)extent.data + offset;
}

/* ---- what is made ---- */

/* Room for one more of so many bytes each; false when there is none, which is remembered. */
static bool reserve(struct builder *b, void **items, size_t n, size_t *room, size_t bytes, size_t most)
{
    if (n < *room)
        return true;
    size_t wanted = *room ? *room * 2 : 64;
    wanted = wanted < most ? wanted : most;
    void *grown = n < wanted ? realloc(*items, wanted * bytes) : NULL;
    if (!grown) {
        b->full = true;
        return false;
    }
    *items = grown;
    *room = wanted;
    return true;
}

static void add_file(struct builder *b, struct unit *u, const char *name)
{
    struct weir_line_table *t = b->table;
    void *files = (void *)t->file;
    bool fits = reserve(b, &files, t->n_files, &b->file_room, sizeof *t->file, FILES_MAX);
    t->file = files;
    if (!fits)
        return;
    t->file[t->n_files++] = name;
    u->n_files++;
}

static void add_row(struct builder *b, const struct unit *u, const struct machine *m)
{
    struct weir_line_table *t = b->table;
    uint64_t file = m->file - (u->version < 5); /* counts from 1 before DWARF 5 */
    struct weir_line_row row = {(uint32_t)(m->address - b->low), UINT32_MAX, 0};
    if (file < u->n_files && m->line <= UINT32_MAX) {
        row.file = (uint32_t)(u->first_file + file);
        row.line = (uint32_t)m->line;
    }
    struct weir_line_row *last = t->n_rows > b->first ? &t->row[t->n_rows - 1] : NULL;
    if (last && last->offset == row.offset) {
        *last = row;
        return;
    }
    if (last && last->file == row.file && last->line == row.line)
        return;
    void *rows = t->row;
    bool fits = reserve(b, &rows, t->n_rows, &b->row_room, sizeof row, ROWS_MAX);
    t->row = rows;
    if (fits)
        t->row[t->n_rows++] = row;
}

static void add_sequence(struct builder *b, uint64_t high)
{
    struct weir_line_table *t = b->table;
    void *sequences = t->sequence;
    bool fits = reserve(b, &sequences, t->n_sequences, &b->sequence_room, sizeof *t->sequence, SEQUENCES_MAX);
    t->sequence = sequences;
    if (fits)
        t->sequence[t->n_sequences++] =
            (struct weir_line_sequence){b->low, high, (uint32_t)b->first, (uint32_t)(t->n_rows - b->first)};
}

static void begin_sequence(struct builder *b)
{
    b->first = b->table->n_rows;
    b->open = b->dropped = false;
}

static void drop_sequence(struct builder *b)
{
    b->table->n_rows = b->first;
    begin_sequence(b);
}

/* Addresses within a sequence ascend. One that begins at 0 is code that the linker has left out. */
static void emit(struct builder *b, const struct unit *u, const struct machine *m)
{
    if (!b->open) {
        b->open = true;
        b->low = b->last = m->address;
        b->dropped = m->address == 0;
    }
    if (m->address < b->last || m->address - b->low > UINT32_MAX)
        b->dropped = true;
    b->last = m->address;
    if (!b->dropped)
        add_row(b, u, m);
}

static void end_sequence(struct builder *b, const struct machine *m)
{
    bool fine = b->open && !b->dropped && !b->full && m->address > b->low && m->address >= b->last;
    if (fine)
        add_sequence(b, m->address);
    if (!fine || b->full)
        drop_sequence(b);
    else
        begin_sequence(b);
}

/* ---- the program ---- */

static void advance(struct machine *m, const struct unit *u, uint64_t operations)
{
    if (u->max_operations <= 1) {
        m->address += u->min_instruction * operations;
        return;
    }
    uint64_t sum = m->operation + operations;
    m->address += u->min_instruction * (sum / u->max_operations);
    m->operation = sum % u->max_operations;
}

static void special(struct machine *m, const struct unit *u, unsigned opcode)
{
    unsigned adjusted = opcode - u->opcode_base;
    advance(m, u, adjusted / u->line_range);
    m->line += (uint64_t)(u->line_base + (int)(adjusted % u->line_range));
}

static const struct machine start = {.file = 1, .line = 1};

static void extended(struct builder *b, struct unit *u, struct machine *m, struct cursor *c)
{
    struct cursor body = split(c, take_uleb(c));
    unsigned opcode = (unsigned)take(&body, 1);
    c->bad |= body.bad;
    if (c->bad)
        return;
    if (opcode == LNE_END_SEQUENCE) {
        end_sequence(b, m);
        *m = start;
    } else if (opcode == LNE_SET_ADDRESS && (body.left == 4 || body.left == 8)) {
        m->address = take(&body, body.left);
        m->operation = 0;
    } else if (opcode == LNE_DEFINE_FILE) {
        add_file(b, u, take_string(&body));
    }
}

static void standard(struct builder *b, struct unit *u, struct machine *m, struct cursor *c, unsigned opcode)
{
    switch (opcode) {
    case LNS_COPY:
        emit(b, u, m);
        break;
    case LNS_ADVANCE_PC:
        advance(m, u, take_uleb(c));
        break;
    case LNS_ADVANCE_LINE:
        m->line += take_sleb(c);
        break;
    case LNS_SET_FILE:
        m->file = take_uleb(c);
        break;
    case LNS_CONST_ADD_PC:
        advance(m, u, (255u - u->opcode_base) / u->line_range);
        break;
    case LNS_FIXED_ADVANCE_PC:
        m->address += take(c, 2);
        m->operation = 0;
        break;
    case LNS_SET_COLUMN:
    case LNS_SET_ISA:
        take_uleb(c);
        break;
    default: /* statements, blocks, prologues: no operands; what is not known says how many it has */
        for (unsigned i = 0; i < u->operands[opcode - 1] && !c->bad; i++)
            take_uleb(c);
    }
}

static void run(struct builder *b, struct unit *u, struct cursor *c)
{
    struct machine m = start;
    begin_sequence(b);
    while (c->left > 0 && !c->bad && !b->full) {
        unsigned opcode = (unsigned)take(c, 1);
        if (opcode >= u->opcode_base) {
            special(&m, u, opcode);
            emit(b, u, &m);
        } else if (opcode == 0) {
            extended(b, u, &m, c);
        } else {
            standard(b, u, &m, c, opcode);
        }
    }
    drop_sequence(b);
}

/* ---- its header ---- */

/* The attribute, when it is a string that can be had. */
static const char *take_form(struct cursor *c, const struct unit *u, uint64_t form)
{
    switch (form) {
    case FORM_STRING:
        return take_string(c);
    case FORM_LINE_STRP:
        return weir_extent_string(u->line_str, take(c, (size_t)u->offset_bytes));
    case FORM_STRP:
        return weir_extent_string(u->str, take(c, (size_t)u->offset_bytes));
    case FORM_STRP_SUP:
        take(c, (size_t)u->offset_bytes);
        return NULL;
    case FORM_UDATA:
    case FORM_SDATA:
    case FORM_STRX:
        take_uleb(c);
        return NULL;
    case FORM_BLOCK:
        skip(c, take_uleb(c));
        return NULL;
    case FORM_BLOCK1:
    case FORM_BLOCK2:
    case FORM_BLOCK4:
        skip(c, take(c, form == FORM_BLOCK1 ? 1 : form == FORM_BLOCK2 ? 2 : 4));
        return NULL;
    case FORM_DATA1:
    case FORM_DATA2:
    case FORM_DATA4:
    case FORM_DATA8:
        take(c, form == FORM_DATA1 ? 1 : form == FORM_DATA2 ? 2 : form == FORM_DATA4 ? 4 : 8);
        return NULL;
    case FORM_DATA16:
        skip(c, 16);
        return NULL;
    default:
        if (form < FORM_STRX1 || form > FORM_STRX4)
            c->bad = true;
        skip(c, form - FORM_STRX1 + 1);
        return NULL;
    }
}

/* A table of DWARF 5: first the form of each attribute, then the attributes of each entry. */
static void read_entries(struct builder *b, struct unit *u, struct cursor *c, bool files)
{
    unsigned n_forms = (unsigned)take(c, 1);
    struct cursor forms = *c;
    for (unsigned i = 0; i < 2 * n_forms; i++)
        take_uleb(c);
    uint64_t n = take_uleb(c);
    c->bad |= n_forms == 0 ? n > 0 : n > c->left; /* each takes a byte at least */
    for (uint64_t k = 0; k < n && !c->bad && !b->full; k++) {
        struct cursor form = forms;
        const char *path = NULL;
        for (unsigned i = 0; i < n_forms && !c->bad; i++) {
            uint64_t what = take_uleb(&form);
            const char *text = take_form(c, u, take_uleb(&form));
            path = what == LNCT_PATH ? text : path;
        }
        if (files && !c->bad)
            add_file(b, u, path);
    }
}

/* Before DWARF 5: strings up to an empty one. */
static void read_names(struct builder *b, struct unit *u, struct cursor *c)
{
    while (c->left > 0 && *c->at != 0)
        take_string(c);
    take(c, 1);
    while (c->left > 0 && *c->at != 0 && !b->full) {
        const char *name = take_string(c);
        for (int i = 0; i < 3; i++)
            take_uleb(c); /* folder, time, bytes */
        if (!c->bad)
            add_file(b, u, name);
    }
}

static bool read_header(struct unit *u, struct builder *b, struct cursor *c)
{
    u->version = (int)take(c, 2);
    if (u->version < 2 || u->version > 5)
        return false;
    if (u->version == 5)
        take(c, 2); /* bytes of an address and of a segment selector */
    struct cursor header = split(c, take(c, (size_t)u->offset_bytes));
    u->min_instruction = (uint8_t)take(&header, 1);
    u->max_operations = u->version >= 4 ? (uint8_t)take(&header, 1) : 1;
    take(&header, 1); /* whether rows are statements at first */
    u->line_base = (int8_t)take(&header, 1);
    u->line_range = (uint8_t)take(&header, 1);
    u->opcode_base = (uint8_t)take(&header, 1);
    u->operands = header.at;
    if (header.bad || u->line_range == 0 || u->opcode_base == 0)
        return false;
    skip(&header, u->opcode_base - 1u);
    u->first_file = b->table->n_files;
    if (u->version == 5) {
        read_entries(b, u, &header, false);
        read_entries(b, u, &header, true);
    } else {
        read_names(b, u, &header);
    }
    return !header.bad && !c->bad && !b->full;
}

static int by_low(const void *left, const void *right)
{
    const struct weir_line_sequence *a = left, *b = right;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

void weir_line_table_read(struct weir_line_table *table, struct weir_extent line, struct weir_extent line_str,
                          struct weir_extent str)
{
    struct cursor c = {line.data, line.size, false};
    struct builder b = {.table = table};
    *table = (struct weir_line_table){0};
    while (c.left > 0 && !c.bad && !b.full) {
        struct unit u = {.line_str = line_str, .str = str, .offset_bytes = 4};
        uint64_t bytes = take(&c, 4);
        if (bytes == UINT32_MAX) {
            u.offset_bytes = 8;
            bytes = take(&c, 8);
        }
        struct cursor body = split(&c, bytes);
        if (!c.bad && read_header(&u, &b, &body))
            run(&b, &u, &body);
    }
    if (table->n_sequences > 1)
        qsort(table->sequence, table->n_sequences, sizeof *table->sequence, by_low);
}

void weir_line_table_free(struct weir_line_table *table)
{
    free(table->sequence);
    free(table->row);
    free((void *)table->file);
    *table = (struct weir_line_table){0};
}

/* ---- looking up ---- */

static const struct weir_line_row *find_row(const struct weir_line_table *t, const struct weir_line_sequence *s,
                                            uint64_t address)
{
    const struct weir_line_row *row = t->row + s->first;
    size_t low = 0, high = s->n_rows; /* the row is in [low, high) */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (row[middle].offset <= address - s->low)
            low = middle;
        else
            high = middle;
    }
    return row + low;
}

const char *weir_line_table_find(const struct weir_line_table *table, uint64_t address, uint32_t *line)
{
    size_t low = 0, high = table->n_sequences; /* the first that begins behind address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->sequence[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (int i = 0; i < OVERLAPS_MAX && low > 0; i++) {
        const struct weir_line_sequence *sequence = &table->sequence[--low];
        if (address >= sequence->high)
            continue;
        const struct weir_line_row *row = find_row(table, sequence, address);
        const char *path = row->file < table->n_files ? table->file[row->file] : NULL;
        if (!path || row->line == 0) /* code of no line of the source */
            return NULL;
        const char *slash = strrchr(path, '/');
        *line = row->line;
        return slash ? slash + 1 : path;
    }
    return NULL;
}
