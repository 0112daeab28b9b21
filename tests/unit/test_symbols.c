#include "prof/symbols/symbols.h"
#include "prof/symbols/symbols_priv.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 32, TEXT = 512 };

struct stack {
    void *at[DEPTH];
    int n;
};

static char wanted[TEXT];

static const char *want(const char *file, int line, const char *function)
{
    snprintf(wanted, sizeof wanted, "%s(%d): %s", file, line, function);
    return wanted;
}

static struct weir_symbols *open_symbols(void)
{
    struct weir_symbols *symbols;
    cr_assert_eq(weir_symbols_open(&symbols), 0);
    return symbols;
}

/* Whether a frame of the stack reads like that; what they read like when none does. */
static bool has_frame(struct weir_symbols *symbols, const struct stack *stack, const char *frame)
{
    char text[TEXT];
    for (int i = 0; i < stack->n; i++) {
        weir_symbols_frame(symbols, stack->at[i], text, sizeof text);
        if (strcmp(text, frame) == 0)
            return true;
    }
    for (int i = 0; i < stack->n; i++) {
        weir_symbols_frame(symbols, stack->at[i], text, sizeof text);
        cr_log_warn("%s", text);
    }
    return false;
}

/* ---- this program ---- */

static struct stack here;
static volatile int calls; /* behind each call, which is no tail call then */

__attribute__((noinline)) static void capture(void)
{
    here.n = backtrace(here.at, DEPTH);
    calls++;
}

static int line_middle, line_outer;

__attribute__((noinline)) static void middle_of_three(void)
{
    line_middle = __LINE__ + 1;
    capture();
    calls++;
}

__attribute__((noinline)) static void outer_of_three(void)
{
    line_outer = __LINE__ + 1;
    middle_of_three();
    calls++;
}

Test(symbols, static_functions_of_the_program_have_their_lines)
{
    struct weir_symbols *symbols = open_symbols();
    outer_of_three();
    cr_assert(has_frame(symbols, &here, want("test_symbols.c", line_middle, "middle_of_three")));
    cr_assert(has_frame(symbols, &here, want("test_symbols.c", line_outer, "outer_of_three")));
    weir_symbols_close(&symbols);
    cr_assert_null(symbols);
    weir_symbols_close(&symbols);
}

__attribute__((noinline)) static const void *my_return_address(void)
{
    calls++;
    return __builtin_return_address(0);
}

__attribute__((noinline)) static void call_at_line(struct weir_symbols *symbols)
{
    char text[TEXT];
    int line = __LINE__ + 1;
    const void *at = my_return_address();
    int n = weir_symbols_frame(symbols, at, text, sizeof text);
    cr_assert_str_eq(text, want("test_symbols.c", line, __func__));
    cr_assert_eq(n, (int)strlen(text));
    cr_assert_eq(weir_symbols_frame(symbols, at, NULL, 0), n);
    char small[8];
    cr_assert_eq(weir_symbols_frame(symbols, at, small, sizeof small), n);
    cr_assert_str_eq(small, "test_sy");
}

Test(symbols, a_return_address_is_the_line_of_the_call)
{
    struct weir_symbols *symbols = open_symbols();
    call_at_line(symbols);
    weir_symbols_close(&symbols);
}

Test(symbols, what_is_in_no_module_says_its_address)
{
    struct weir_symbols *symbols = open_symbols();
    char text[TEXT];
    weir_symbols_frame(symbols, NULL, text, sizeof text);
    cr_assert_str_eq(text, "?"
                           "?(0x0): ?"
                           "?");
    weir_symbols_frame(symbols, (void *)0x1234, text, sizeof text);
    cr_assert_str_eq(text, "?"
                           "?(0x1234): ?"
                           "?");
    weir_symbols_frame(symbols, (void *)UINTPTR_MAX, text, sizeof text);
    cr_assert_str_eq(text, "?"
                           "?(0xffffffffffffffff): ?"
                           "?");
    weir_symbols_close(&symbols);
}

/* ---- the C library ---- */

static int compare_and_capture(const void *left, const void *right)
{
    if (here.n == 0)
        capture();
    return *(const int *)left - *(const int *)right;
}

Test(symbols, the_c_library_that_calls_back_is_named)
{
    struct weir_symbols *symbols = open_symbols();
    int numbers[] = {3, 1, 2};
    char text[TEXT];
    bool sorts = false;
    here.n = 0;
    qsort(numbers, 3, sizeof *numbers, compare_and_capture);
    for (int i = 0; i < here.n; i++) {
        weir_symbols_frame(symbols, here.at[i], text, sizeof text);
        sorts = sorts || strstr(text, "): qsort") || strstr(text, "msort") || strstr(text, "): __interceptor_qsort");
    }
    cr_assert(sorts, "no frame of qsort");
    weir_symbols_close(&symbols);
}

/* ---- libraries that are loaded later ---- */

typedef void (*fixture_callback)(void *user);
typedef void (*fixture_function)(fixture_callback callback, void *user);

static void capture_for_fixture(void *user)
{
    (void)user;
    capture();
}

static void *load(const char *path, int *line_hidden, int *line_visible)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library, "%s", dlerror());
    fixture_function call = (fixture_function)dlsym(library, "fixture_visible");
    *line_hidden = *(const int *)dlsym(library, "fixture_line_hidden");
    *line_visible = *(const int *)dlsym(library, "fixture_line_visible");
    call(capture_for_fixture, NULL);
    return library;
}

static void try_library(struct weir_symbols *symbols, const char *path)
{
    int hidden, visible;
    void *library = load(path, &hidden, &visible);
    cr_assert(has_frame(symbols, &here, want("symbols_fixture.c", hidden, "fixture_hidden")), "%s", path);
    cr_assert(has_frame(symbols, &here, want("symbols_fixture.c", visible, "fixture_visible")), "%s", path);
    dlclose(library);
    cr_assert(has_frame(symbols, &here, want("symbols_fixture.c", visible, "fixture_visible")), "%s, closed", path);
}

/* They lie at the same addresses one after the other, mostly. */
Test(symbols, libraries_come_and_go)
{
    struct weir_symbols *symbols = open_symbols();
    call_at_line(symbols);
    for (int i = 0; i < 2; i++) {
        try_library(symbols, SYMBOLS_FIXTURE_DWARF4);
        try_library(symbols, SYMBOLS_FIXTURE_DWARF5);
        try_library(symbols, SYMBOLS_FIXTURE_COMPRESSED);
    }
    weir_symbols_close(&symbols);
}

Test(symbols, a_stripped_library_has_what_it_exports)
{
    struct weir_symbols *symbols = open_symbols();
    char text[TEXT], frame[TEXT];
    int hidden, visible, found = 0, nameless = 0;
    void *library = load(SYMBOLS_FIXTURE_STRIPPED, &hidden, &visible);
    for (int i = 0; i < here.n; i++) {
        Dl_info info;
        if (!dladdr(here.at[i], &info) || !strstr(info.dli_fname, "symbols_fixture"))
            continue;
        uintptr_t offset = (uintptr_t)here.at[i] - (uintptr_t)info.dli_fbase;
        weir_symbols_frame(symbols, here.at[i], text, sizeof text);
        const char *file = strrchr(SYMBOLS_FIXTURE_STRIPPED, '/') + 1;
        snprintf(frame, sizeof frame, "%s(0x%" PRIxPTR "): fixture_visible", file, offset);
        found += strcmp(text, frame) == 0;
        snprintf(frame, sizeof frame,
                 "%s(0x%" PRIxPTR "): ?"
                 "?",
                 file, offset);
        nameless += strcmp(text, frame) == 0;
    }
    cr_assert_eq(found, 1);
    cr_assert_eq(nameless, 1);
    dlclose(library);
    weir_symbols_close(&symbols);
}

/* ---- damaged files ---- */

static uint8_t *read_whole(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = malloc(*size);
    cr_assert_eq(fread(data, 1, *size, f), *size);
    fclose(f);
    return data;
}

static volatile size_t sink;

/* Every name that can be had is read to its end. Returns how many addresses have a function and a line. */
static int ask_all(const struct weir_symbol_tables *tables)
{
    int both = 0;
    for (uint64_t address = 0; address < 0x6000; address += 7) {
        uint32_t line = 0;
        const char *function = weir_symbol_tables_function(tables, address);
        const char *file = weir_line_table_find(&tables->lines, address, &line);
        sink += (function ? strlen(function) : 0) + (file ? strlen(file) + line : 0);
        both += function && file;
    }
    return both;
}

/* In memory of that size, so that the sanitizer sees a read past it. */
static int try_file(const uint8_t *data, size_t size)
{
    struct weir_symbol_tables tables = {0};
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    struct weir_extent file = {copy, size};
    weir_symbol_tables_read(&tables, file);
    int both = ask_all(&tables);
    sink += weir_elf_build_id(file).size;
    weir_symbol_tables_free(&tables);
    free(copy);
    return both;
}

static void mutate(uint8_t *data, size_t size, size_t from, size_t bytes)
{
    static const uint8_t with[] = {0x01, 0x80, 0xff, 0x7f};
    for (size_t i = from; i < from + bytes && i < size; i++) {
        uint8_t was = data[i];
        for (size_t k = 0; k < sizeof with; k++) {
            data[i] = was ^ with[k];
            try_file(data, size);
        }
        data[i] = was;
    }
}

/* Section by section: all of the headers and line tables, the beginning of symbols and names. */
static void mutate_file(const char *path)
{
    size_t size;
    uint8_t *data = read_whole(path, &size);
    Elf64_Ehdr header;
    memcpy(&header, data, sizeof header);
    cr_assert_gt(try_file(data, size), 0, "%s", path);
    mutate(data, size, 0, sizeof header);
    mutate(data, size, header.e_shoff, (size_t)header.e_shnum * sizeof(Elf64_Shdr));
    const Elf64_Shdr *sections = (const void *)(data + header.e_shoff);
    const char *names = (const char *)data + sections[header.e_shstrndx].sh_offset;
    for (int i = 0; i < header.e_shnum; i++) {
        const char *name = names + sections[i].sh_name;
        bool lines = strncmp(name, ".debug_line", 11) == 0;
        size_t bytes = sections[i].sh_size;
        if (lines || sections[i].sh_type == SHT_SYMTAB || sections[i].sh_type == SHT_NOTE)
            mutate(data, size, sections[i].sh_offset, lines || bytes < 256 ? bytes : 256);
    }
    free(data);
}

Test(symbols, no_wrong_byte_crashes)
{
    mutate_file(SYMBOLS_FIXTURE_DWARF4);
    mutate_file(SYMBOLS_FIXTURE_DWARF5);
    mutate_file(SYMBOLS_FIXTURE_COMPRESSED);
}

/* Cut anywhere, and in such a way that what it says of itself is at its end still. */
Test(symbols, no_cut_file_crashes)
{
    size_t size;
    uint8_t *data = read_whole(SYMBOLS_FIXTURE_DWARF5, &size);
    for (size_t n = 0; n < size; n += n < 256 ? 1 : 13)
        cr_assert_eq(try_file(data, n), 0, "%zu of %zu bytes", n, size);
    free(data);
}

static struct weir_extent debug_line(const uint8_t *data)
{
    Elf64_Ehdr header;
    memcpy(&header, data, sizeof header);
    const Elf64_Shdr *sections = (const void *)(data + header.e_shoff);
    const char *names = (const char *)data + sections[header.e_shstrndx].sh_offset;
    for (int i = 0; i < header.e_shnum; i++)
        if (strcmp(names + sections[i].sh_name, ".debug_line") == 0)
            return (struct weir_extent){data + sections[i].sh_offset, sections[i].sh_size};
    cr_assert_fail("no .debug_line");
    return (struct weir_extent){0};
}

Test(symbols, no_cut_line_table_crashes)
{
    size_t size;
    uint8_t *data = read_whole(SYMBOLS_FIXTURE_DWARF4, &size);
    struct weir_extent whole = debug_line(data);
    for (size_t n = 0; n <= whole.size; n++) {
        struct weir_symbol_tables tables = {0};
        uint8_t *copy = malloc(n ? n : 1);
        memcpy(copy, whole.data, n);
        if (n >= 4) /* the unit ends where the section does */
            memcpy(copy, &(uint32_t){(uint32_t)n - 4}, 4);
        weir_line_table_read(&tables.lines, (struct weir_extent){copy, n}, (struct weir_extent){0},
                             (struct weir_extent){0});
        ask_all(&tables);
        weir_symbol_tables_free(&tables);
        free(copy);
    }
    free(data);
}

/* ---- a line program by hand ---- */

/* DWARF 4, min_instruction 2, line_base -3, line_range 12, opcode_base 14: opcode 13 is not known and takes one
 * operand. */
/* clang-format off */
static const uint8_t by_hand[] = {
    0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 2, 1, 1, 0xfd, 12, 14,        /* header; lengths are filled in */
    0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1,                      /* operands of opcodes 1 to 13 */
    'd', 0, 0, 'a', '.', 'c', 0, 1, 0, 0, 0,                    /* folder; a.c, which is file 1 */
    0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0,                         /* set_address 0x1000 */
    3, 0xe4, 0, 5, 7, 6, 10, 11, 12, 3, 13, 99,                 /* advance_line 100; column and other noise */
    1,                                                          /* copy: 0x1000 is line 101 */
    14 + 12 * 2 + 3 + 4,                                        /* special: 2 operations, + 4 lines: 0x1004 */
    2, 4, 3, 0x7f, 1,                                           /* advance_pc 4, line - 1: 0x100c */
    8, 9, 0x10, 0, 7, 1,                                        /* const_add_pc 20, + 16 bytes: 0x1044 */
    0, 8, 3, 'x', '/', 'b', 0, 0, 0, 0,                         /* define_file x/b */
    4, 2, 0, 2, 4, 5, 2, 1, 1,                                  /* set_file 2, discriminator 5, 0x1046 */
    2, 1, 3, 0x98, 0x7f, 1,                                     /* line 104 - 104: none, at 0x1048 */
    2, 1, 0, 1, 1,                                              /* end_sequence at 0x104a */
    0, 9, 2, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2, 8, 0, 1, 1,          /* a sequence before it, 0x800 to 0x810 */
    0, 9, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0xff, 0x7f, 0, 1, 1, /* dead code at 0 */
    0, 9, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 1, 2, 8,                /* and one that does not end */
};
/* clang-format on */

Test(symbols, every_kind_of_opcode_is_run)
{
    static const struct {
        uint64_t address;
        const char *file;
        uint32_t line;
    } rows[] = {
        {0x7ff, NULL, 0},     {0x800, "a.c", 1},    {0x80f, "a.c", 1},    {0x810, NULL, 0},      {0xfff, NULL, 0},
        {0x1000, "a.c", 101}, {0x1003, "a.c", 101}, {0x1004, "a.c", 105}, {0x100b, "a.c", 105},  {0x100c, "a.c", 104},
        {0x1043, "a.c", 104}, {0x1045, "a.c", 104}, {0x1046, "b", 104},   {0x1047, "b", 104},    {0x1049, NULL, 0},
        {0x104a, NULL, 0},    {0x2000, NULL, 0},    {0, NULL, 0},         {UINT64_MAX, NULL, 0},
    };
    struct weir_line_table table;
    uint8_t bytes[sizeof by_hand];
    memcpy(bytes, by_hand, sizeof bytes);
    memcpy(bytes, &(uint32_t){sizeof bytes - 4}, 4);
    memcpy(bytes + 6, &(uint32_t){6 + 13 + 11}, 4);
    weir_line_table_read(&table, (struct weir_extent){bytes, sizeof bytes}, (struct weir_extent){0},
                         (struct weir_extent){0});
    cr_assert_eq(table.n_sequences, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t line = 0;
        const char *file = weir_line_table_find(&table, rows[i].address, &line);
        cr_assert(file ? rows[i].file && strcmp(file, rows[i].file) == 0 : !rows[i].file, "0x%" PRIx64 ": %s",
                  rows[i].address, file ? file : "none");
        cr_assert_eq(line, rows[i].line, "0x%" PRIx64 ": line %u", rows[i].address, line);
    }
    weir_line_table_free(&table);
}

/* ---- against binutils ---- */

struct answer {
    char function[256], file[256]; /* the innermost of inlined calls for the line, the outermost for the name */
    unsigned line;
};

static bool next_line(FILE *f, char *line, int size)
{
    if (!fgets(line, size, f))
        return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

/* Reads the answer to one address; *ahead holds the "0x..." of the next. */
static bool next_answer(FILE *f, char *ahead, int size, struct answer *answer)
{
    char where[1024];
    bool first = true;
    memset(answer, 0, sizeof *answer);
    while (next_line(f, ahead, size) && strncmp(ahead, "0x", 2) != 0) {
        snprintf(answer->function, sizeof answer->function, "%.255s", ahead);
        if (!next_line(f, where, sizeof where))
            return false;
        char *colon = strrchr(where, ':'), *slash = strrchr(where, '/');
        if (first && colon) {
            *colon = 0;
            answer->line = (unsigned)strtoul(colon + 1, NULL, 10);
            snprintf(answer->file, sizeof answer->file, "%.255s", slash ? slash + 1 : where);
        }
        first = false;
    }
    return !first;
}

static bool same(const struct weir_symbol_tables *tables, uint64_t address, const struct answer *answer)
{
    uint32_t line = 0;
    const char *function = weir_symbol_tables_function(tables, address);
    const char *file = weir_line_table_find(&tables->lines, address, &line);
    size_t n = function ? strcspn(function, ".") : 0; /* f.part.0 is f there */
    bool unknown = answer->line == 0 || strcmp(answer->file, "?"
                                                             "?") == 0;
    bool named = function && strncmp(answer->function, function, n) == 0 && answer->function[n] == 0;
    if (named && (unknown ? !file : file && strcmp(file, answer->file) == 0 && line == answer->line))
        return true;
    cr_log_warn("0x%" PRIx64 ": %s:%u %s, addr2line says %s:%u %s", address, file ? file : "none", line,
                function ? function : "none", answer->file, answer->line, answer->function);
    return false;
}

/* Addresses all over the functions of this program that have lines. */
Test(symbols, addr2line_says_the_same)
{
    enum { N = 400, STRIDE = 7919 };
    if (system("command -v addr2line >/dev/null 2>&1") != 0)
        cr_skip_test("no addr2line here");
    size_t size, n = 0;
    uint8_t *data = read_whole("/proc/self/exe", &size);
    struct weir_symbol_tables tables = {0};
    weir_symbol_tables_read(&tables, (struct weir_extent){data, size});
    cr_assert(tables.complete && tables.lines.n_sequences > 0);
    static uint64_t at[N];
    char command[N * 12 + 256], ahead[1024];
    int used = snprintf(command, sizeof command, "addr2line -a -f -i -e /proc/%d/exe", (int)getpid());
    for (size_t i = 0; n < N && i < N * 4; i++) {
        const struct weir_function *f = &tables.function[i * STRIDE % tables.n_functions];
        uint64_t address = f->high > f->low ? f->low + i * 37 % (f->high - f->low) : f->low;
        uint32_t line;
        if (!weir_line_table_find(&tables.lines, address, &line))
            continue;
        at[n++] = address;
        used += snprintf(command + used, sizeof command - (size_t)used, " %" PRIx64, address);
    }
    FILE *f = popen(command, "r");
    cr_assert(f && next_line(f, ahead, sizeof ahead));
    size_t differ = 0;
    for (size_t i = 0; i < n; i++) {
        struct answer answer;
        cr_assert(next_answer(f, ahead, sizeof ahead, &answer), "address %zu of %zu", i, n);
        differ += !same(&tables, at[i], &answer);
    }
    pclose(f);
    cr_log_info("%zu addresses, %zu differ", n, differ);
    cr_assert_gt(n, 100);
    cr_assert_eq(differ, 0, "%zu of %zu differ", differ, n);
    weir_symbol_tables_free(&tables);
    free(data);
}
