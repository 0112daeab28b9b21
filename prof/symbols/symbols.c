#include "prof/symbols/symbols.h"
#include "base/memory.h"
#include "base/text.h"
#include "prof/symbols/symbols_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID_MAX = 32, NAME_MAX_BYTES = 1024 };

struct module {
    uint64_t low, high; /* of what is mapped */
    uint64_t bias;      /* from addresses in the file to those in memory */
    char *path;         /* to open it, NULL when it has no file */
    char *name;         /* its last part */
    uint8_t id[ID_MAX]; /* build id in memory */
    size_t id_size;
    bool read;
    struct weir_extent file, debug; /* mapped */
    struct weir_symbol_tables tables;
};

struct weir_symbols {
    struct module **module; /* by ascending low, none overlaps another */
    size_t n, room;
    unsigned long long added, removed; /* modules since the process began, at the last scan */
    bool scanned;
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- files ---- */

static struct weir_extent map_file(const char *path)
{
    struct weir_extent file = {0};
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return file;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED)
            file = (struct weir_extent){data, (size_t)status.st_size};
    }
    close(fd);
    return file;
}

static void unmap(struct weir_extent *file)
{
    if (file->size > 0)
        weir_memory_unmap((void *)(uintptr_t)file->data, file->size);
    *file = (struct weir_extent){0};
}

static bool is_build(const struct module *m, struct weir_extent id)
{
    return id.size == m->id_size && memcmp(id.data, m->id, id.size) == 0;
}

/* Distributions keep what they strip by build id. */
static struct weir_extent map_debug_file(const struct module *m)
{
    static const char folder[] = "/usr/lib/debug/.build-id/";
    char path[sizeof folder + 2 * ID_MAX + sizeof "/.debug"];
    struct weir_extent file = {0};
    if (m->id_size < 2)
        return file;
    char *at = path + sprintf(path, "%s", folder);
    for (size_t i = 0; i < m->id_size; i++)
        at += sprintf(at, i == 0 ? "%02x/" : "%02x", m->id[i]);
    sprintf(at, ".debug");
    file = map_file(path);
    if (file.size > 0 && !is_build(m, weir_elf_build_id(file)))
        unmap(&file);
    return file;
}

/* A file that was replaced since it was loaded says nothing about what is in memory. */
static void read_module(struct module *m)
{
    m->read = true;
    if (m->path)
        m->file = map_file(m->path);
    if (m->file.size > 0 && m->id_size > 0 && !is_build(m, weir_elf_build_id(m->file)))
        unmap(&m->file);
    weir_symbol_tables_read(&m->tables, m->file);
    if (m->tables.complete && m->tables.lines.n_sequences > 0)
        return;
    m->debug = map_debug_file(m);
    weir_symbol_tables_read(&m->tables, m->debug);
}

/* ---- modules ---- */

static void free_module(struct module *m)
{
    weir_symbol_tables_free(&m->tables);
    unmap(&m->file);
    unmap(&m->debug);
    free(m->path);
    free(m->name);
    free(m);
}

/* What dl_iterate_phdr says of a module, before it is known whether it is a new one. */
struct loaded {
    uint64_t low, high, bias;
    const char *path;
    struct weir_extent notes;
};

static struct loaded inspect(const struct dl_phdr_info *info, bool is_program)
{
    struct loaded l = {.low = UINT64_MAX, .bias = info->dlpi_addr};
    const ElfW(Phdr) *header = info->dlpi_phdr;
    l.path = is_program ? "/proc/self/exe" : info->dlpi_name ? info->dlpi_name : "";
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uint64_t low = l.bias + header[i].p_vaddr, high = low + header[i].p_memsz;
        if (header[i].p_type != PT_LOAD || high <= low)
            continue;
        l.low = low < l.low ? low : l.low;
        l.high = high > l.high ? high : l.high;
    }
    return l;
}

/* Notes are read only where the module is mapped. */
static void copy_build_id(struct module *m, const struct dl_phdr_info *info)
{
    const ElfW(Phdr) *header = info->dlpi_phdr;
    for (int i = 0; i < info->dlpi_phnum && m->id_size == 0; i++) {
        uint64_t first = header[i].p_vaddr, last = first + header[i].p_memsz;
        bool mapped = false;
        for (int k = 0; k < info->dlpi_phnum; k++)
            mapped |= header[k].p_type == PT_LOAD && (header[k].p_flags & PF_R) && header[k].p_vaddr <= first &&
                      last <= header[k].p_vaddr + header[k].p_filesz;
        if (header[i].p_type != PT_NOTE || !mapped)
            continue;
        struct weir_extent notes = {(const uint8_t *)(uintptr_t)(m->bias + first), header[i].p_memsz};
        struct weir_extent id = weir_elf_note_build_id(notes);
        if (id.size == 0 || id.size > ID_MAX)
            continue;
        memcpy(m->id, id.data, id.size);
        m->id_size = id.size;
    }
}

static struct module *new_module(const struct loaded *l, const struct dl_phdr_info *info, bool is_program)
{
    char program[4096];
    const char *path = l->path;
    if (is_program) {
        ssize_t n = readlink(path, program, sizeof program - 1);
        program[n > 0 ? n : 0] = 0;
        path = program;
    }
    struct module *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    *m = (struct module){.low = l->low, .high = l->high, .bias = l->bias};
    m->name = strdup(*path ? last_part(path) : "??");
    bool has_file = strchr(l->path, '/'); /* the kernel's own has a name only */
    m->path = has_file ? strdup(l->path) : NULL;
    copy_build_id(m, info);
    if (m->name && (m->path || !has_file))
        return m;
    free_module(m);
    return NULL;
}

/* Index of the first module that ends behind address. */
static size_t find_place(const struct weir_symbols *symbols, uint64_t address)
{
    size_t low = 0, high = symbols->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symbols->module[middle]->high <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool make_room(struct weir_symbols *symbols)
{
    if (symbols->n < symbols->room)
        return true;
    size_t room = symbols->room ? symbols->room * 2 : 64;
    struct module **grown = realloc(symbols->module, room * sizeof *grown);
    if (!grown)
        return false;
    symbols->module = grown;
    symbols->room = room;
    return true;
}

static void put_module(struct weir_symbols *symbols, struct module *m)
{
    size_t from = find_place(symbols, m->low), to = from;
    for (; to < symbols->n && symbols->module[to]->low < m->high; to++)
        free_module(symbols->module[to]);
    struct module **place = symbols->module + from;
    memmove(place + 1, symbols->module + to, (symbols->n - to) * sizeof *place);
    *place = m;
    symbols->n += 1 + from - to;
}

struct scan {
    struct weir_symbols *symbols;
    bool others; /* the program is first */
};

/* One that was unloaded stays until another is in its place: there may be addresses in it still. */
static int on_module(struct dl_phdr_info *info, size_t size, void *user)
{
    struct scan *scan = user;
    struct weir_symbols *symbols = scan->symbols;
    bool is_program = !scan->others;
    struct loaded l = inspect(info, is_program);
    (void)size;
    scan->others = true;
    if (l.low >= l.high)
        return 0;
    size_t i = find_place(symbols, l.low);
    const struct module *there = i < symbols->n ? symbols->module[i] : NULL;
    if (there && there->low == l.low && there->high == l.high && there->bias == l.bias &&
        strcmp(there->path ? there->path : "", strchr(l.path, '/') ? l.path : "") == 0)
        return 0;
    struct module *m = make_room(symbols) ? new_module(&l, info, is_program) : NULL;
    if (m)
        put_module(symbols, m);
    return 0;
}

/* Counts of modules added and removed come with each of them; the first says enough. */
static int on_first(struct dl_phdr_info *info, size_t size, void *user)
{
    struct weir_symbols *symbols = user;
    (void)size;
    if (symbols->scanned && symbols->added == info->dlpi_adds && symbols->removed == info->dlpi_subs)
        return 1;
    symbols->added = info->dlpi_adds;
    symbols->removed = info->dlpi_subs;
    symbols->scanned = false;
    return 1;
}

static struct module *find_module(struct weir_symbols *symbols, uint64_t address)
{
    dl_iterate_phdr(on_first, symbols);
    if (!symbols->scanned) {
        struct scan scan = {symbols, false};
        dl_iterate_phdr(on_module, &scan);
        symbols->scanned = true;
    }
    size_t i = find_place(symbols, address);
    return i < symbols->n && symbols->module[i]->low <= address ? symbols->module[i] : NULL;
}

int weir_symbols_open(struct weir_symbols **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? 0 : -ENOMEM;
}

void weir_symbols_close(struct weir_symbols **symbols)
{
    if (!*symbols)
        return;
    for (size_t i = 0; i < (*symbols)->n; i++)
        free_module((*symbols)->module[i]);
    free((*symbols)->module);
    free(*symbols);
    *symbols = NULL;
}

/* ---- frames ---- */

static const char *printable(char copy[NAME_MAX_BYTES], const char *name)
{
    size_t n = strnlen(name, NAME_MAX_BYTES - 1);
    memcpy(copy, name, n);
    copy[n] = 0;
    weir_text_printable(copy);
    return copy;
}

int weir_symbols_frame(struct weir_symbols *symbols, const void *address, char *text, size_t size)
{
    static const char unknown[] = "??";
    char file[NAME_MAX_BYTES], function[NAME_MAX_BYTES];
    uint64_t at = (uintptr_t)address, inside = at ? at - 1 : 0; /* the call, not what follows it */
    struct module *m = find_module(symbols, inside);
    if (!m)
        return snprintf(text, size, "%s(0x%" PRIx64 "): %s", unknown, at, unknown);
    if (!m->read)
        read_module(m);
    const char *name = weir_symbol_tables_function(&m->tables, inside - m->bias);
    uint32_t line = 0;
    const char *source = weir_line_table_find(&m->tables.lines, inside - m->bias, &line);
    printable(function, name ? name : unknown);
    function[1 + strcspn(function + 1, "@")] = 0; /* a version: dlopen@@GLIBC_2.34 */
    if (source)
        return snprintf(text, size, "%s(%" PRIu32 "): %s", printable(file, source), line, function);
    return snprintf(text, size, "%s(0x%" PRIx64 "): %s", printable(file, m->name), at - m->bias, function);
}
