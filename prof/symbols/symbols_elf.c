#include "prof/symbols/symbols_priv.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    FUNCTIONS_MAX = (48 << 20) / sizeof(struct weir_function),
    INFLATED_MAX = 64 << 20,
    NOTES_MAX = 1 << 16,
    NESTED_MAX = 8, /* functions that may lie inside another, behind which it goes on */
};

/* The file and its sections' headers, which may lie at odd addresses. */
struct elf {
    struct weir_extent file, names;
    const uint8_t *sections;
    size_t n_sections;
};

static bool cut(struct weir_extent from, uint64_t offset, uint64_t size, struct weir_extent *part)
{
    *part = (struct weir_extent){0};
    if (offset > from.size || size > from.size - offset)
        return false;
    *part = (struct weir_extent){from.data + offset, (size_t)size};
    return true;
}

static Elf64_Shdr section(const struct elf *elf, size_t i)
{
    Elf64_Shdr header = {0};
    if (i < elf->n_sections)
        memcpy(&header, elf->sections + i * sizeof header, sizeof header);
    return header;
}

static struct weir_extent contents(const struct elf *elf, const Elf64_Shdr *header)
{
    struct weir_extent part = {0};
    if (header->sh_type != SHT_NOBITS && header->sh_type != SHT_NULL)
        cut(elf->file, header->sh_offset, header->sh_size, &part);
    return part;
}

static bool open_elf(struct elf *elf, struct weir_extent file)
{
    static const unsigned char ident[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
    Elf64_Ehdr header;
    *elf = (struct elf){.file = file};
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || file.size < sizeof header ||
        memcmp(file.data, ident, sizeof ident) != 0)
        return false;
    memcpy(&header, file.data, sizeof header);
    struct weir_extent table;
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff == 0 ||
        !cut(file, header.e_shoff, sizeof(Elf64_Shdr), &table))
        return false;
    elf->sections = table.data;
    elf->n_sections = 1;
    Elf64_Shdr first = section(elf, 0); /* has what does not fit the header */
    uint64_t n = header.e_shnum ? header.e_shnum : first.sh_size;
    elf->n_sections = 0;
    if (n > file.size / sizeof(Elf64_Shdr) || !cut(file, header.e_shoff, n * sizeof(Elf64_Shdr), &table))
        return false;
    elf->n_sections = (size_t)n;
    Elf64_Shdr names = section(elf, header.e_shstrndx == SHN_XINDEX ? first.sh_link : header.e_shstrndx);
    elf->names = contents(elf, &names);
    return true;
}

/* ---- functions ---- */

static bool is_function(const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0;
}

/* Underscores in front, then length: the first 4095 bytes of each, for a damaged file may have it all as one name. */
static size_t plainness(const char *name)
{
    size_t underscores = 0;
    while (underscores < 15 && name[underscores] == '_')
        underscores++;
    return (underscores << 12) + strnlen(name, 4095);
}

/* Of names for one address: the one whose size is known, then without underscores in front, then the shorter. */
static int by_address(const void *left, const void *right)
{
    const struct weir_function *a = left, *b = right;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    if ((a->high > a->low) != (b->high > b->low))
        return a->high > a->low ? -1 : 1;
    size_t first = plainness(a->name), second = plainness(b->name);
    if (first != second)
        return first < second ? -1 : 1;
    return strncmp(a->name, b->name, 4095);
}

/* One name for each address. A function of unknown size, which is written in assembly, ends where the next begins. */
static size_t settle(struct weir_function *function, size_t n)
{
    size_t kept = 0;
    if (n > 1)
        qsort(function, n, sizeof *function, by_address);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || function[i].low != function[kept - 1].low)
            function[kept++] = function[i];
    for (size_t i = 0; i + 1 < kept; i++)
        if (function[i].high <= function[i].low)
            function[i].high = function[i + 1].low;
    return kept;
}

static void read_functions(struct weir_symbol_tables *tables, const struct elf *elf, const Elf64_Shdr *header)
{
    Elf64_Shdr link = section(elf, header->sh_link);
    struct weir_extent symbols = contents(elf, header), names = contents(elf, &link);
    size_t n = symbols.size / sizeof(Elf64_Sym), kept = 0;
    if (header->sh_entsize != sizeof(Elf64_Sym) || n == 0 || n > FUNCTIONS_MAX)
        return;
    struct weir_function *function = malloc(n * sizeof *function);
    if (!function)
        return;
    for (size_t i = 0; i < n; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, symbols.data + i * sizeof symbol, sizeof symbol);
        const char *name = is_function(&symbol) ? weir_extent_string(names, symbol.st_name) : NULL;
        uint64_t high;
        if (name && *name && !__builtin_add_overflow(symbol.st_value, symbol.st_size, &high))
            function[kept++] = (struct weir_function){symbol.st_value, high, name};
    }
    if (kept == 0) {
        free(function);
        return;
    }
    free(tables->function);
    tables->function = function;
    tables->n_functions = settle(function, kept);
    tables->complete = header->sh_type == SHT_SYMTAB;
}

const char *weir_symbol_tables_function(const struct weir_symbol_tables *tables, uint64_t address)
{
    size_t low = 0, high = tables->n_functions; /* the first that begins behind address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tables->function[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (int i = 0; i <= NESTED_MAX && low > 0; i++) {
        const struct weir_function *function = &tables->function[--low];
        if (address < function->high)
            return function->name;
    }
    return NULL;
}

/* ---- lines ---- */

/* Inflates a section into memory of its own, which *own is; nothing when it is not what it says. */
static struct weir_extent inflated(struct weir_extent from, uint8_t **own)
{
    const struct weir_extent none = {0};
    Elf64_Chdr header;
    if (from.size < sizeof header)
        return none;
    memcpy(&header, from.data, sizeof header);
    if (header.ch_type != ELFCOMPRESS_ZLIB || header.ch_size == 0 || header.ch_size > INFLATED_MAX ||
        header.ch_size / 1100 > from.size) /* zlib's best is 1 : 1032 */
        return none;
    uLongf size = (uLongf)header.ch_size;
    *own = malloc(size);
    if (!*own)
        return none;
    int rc = uncompress(*own, &size, from.data + sizeof header, from.size - sizeof header);
    if (rc == Z_OK && size == header.ch_size)
        return (struct weir_extent){*own, size};
    free(*own);
    *own = NULL;
    return none;
}

static struct weir_extent named(const struct elf *elf, const char *name, Elf64_Shdr *header)
{
    for (size_t i = 0; i < elf->n_sections; i++) {
        *header = section(elf, i);
        const char *is = weir_extent_string(elf->names, header->sh_name);
        if (is && strcmp(is, name) == 0)
            return contents(elf, header);
    }
    return (struct weir_extent){0};
}

static void read_lines(struct weir_symbol_tables *tables, const struct elf *elf)
{
    static const char *const name[WEIR_INFLATED] = {".debug_line", ".debug_line_str"};
    struct weir_extent part[WEIR_INFLATED], str;
    Elf64_Shdr header;
    for (int k = 0; k < WEIR_INFLATED; k++) {
        part[k] = named(elf, name[k], &header);
        if (part[k].size > 0 && (header.sh_flags & SHF_COMPRESSED))
            part[k] = inflated(part[k], &tables->inflated[k]);
    }
    /* Large, and compilers name no files there: not worth inflating. */
    str = named(elf, ".debug_str", &header);
    if (str.size > 0 && (header.sh_flags & SHF_COMPRESSED))
        str = (struct weir_extent){0};
    weir_line_table_read(&tables->lines, part[0], part[1], str);
    if (tables->lines.n_sequences > 0)
        return;
    weir_line_table_free(&tables->lines);
    for (int k = 0; k < WEIR_INFLATED; k++) {
        free(tables->inflated[k]);
        tables->inflated[k] = NULL;
    }
}

static bool find_type(const struct elf *elf, uint32_t type, Elf64_Shdr *header)
{
    for (size_t i = 0; i < elf->n_sections; i++) {
        *header = section(elf, i);
        if (header->sh_type == type)
            return true;
    }
    return false;
}

void weir_symbol_tables_read(struct weir_symbol_tables *tables, struct weir_extent file)
{
    struct elf elf;
    Elf64_Shdr header;
    if (!open_elf(&elf, file))
        return;
    if (!tables->complete && find_type(&elf, SHT_SYMTAB, &header))
        read_functions(tables, &elf, &header);
    if (tables->n_functions == 0 && find_type(&elf, SHT_DYNSYM, &header))
        read_functions(tables, &elf, &header);
    if (tables->lines.n_sequences == 0)
        read_lines(tables, &elf);
}

void weir_symbol_tables_free(struct weir_symbol_tables *tables)
{
    free(tables->function);
    weir_line_table_free(&tables->lines);
    for (int k = 0; k < WEIR_INFLATED; k++)
        free(tables->inflated[k]);
    *tables = (struct weir_symbol_tables){0};
}

/* ---- build ids ---- */

static uint64_t padded(uint32_t size)
{
    return ((uint64_t)size + 3) & ~UINT64_C(3);
}

struct weir_extent weir_elf_note_build_id(struct weir_extent notes)
{
    Elf64_Nhdr header;
    struct weir_extent id;
    uint64_t offset = 0;
    while (offset < NOTES_MAX && cut(notes, offset, sizeof header, &id)) {
        memcpy(&header, id.data, sizeof header);
        const uint8_t *name = id.data + sizeof header;
        offset += sizeof header + padded(header.n_namesz);
        if (!cut(notes, offset, header.n_descsz, &id))
            break;
        if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && memcmp(name, "GNU", 4) == 0)
            return id;
        offset += padded(header.n_descsz);
    }
    return (struct weir_extent){0};
}

struct weir_extent weir_elf_build_id(struct weir_extent file)
{
    struct elf elf;
    struct weir_extent id = {0};
    if (!open_elf(&elf, file))
        return id;
    for (size_t i = 0; i < elf.n_sections && id.size == 0; i++) {
        Elf64_Shdr header = section(&elf, i);
        if (header.sh_type == SHT_NOTE)
            id = weir_elf_note_build_id(contents(&elf, &header));
    }
    return id;
}
