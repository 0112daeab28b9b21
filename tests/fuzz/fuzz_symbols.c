/* libFuzzer target: any bytes as an ELF file with its symbols and lines, and as a bare .debug_line section. */
#include "prof/symbols/symbols_priv.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink; /* so that every name is read to its end */

static void ask(const struct weir_symbol_tables *tables, uint64_t address)
{
    uint32_t line;
    const char *function = weir_symbol_tables_function(tables, address);
    const char *file = weir_line_table_find(&tables->lines, address, &line);
    sink += (function ? strlen(function) : 0) + (file ? strlen(file) + line : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_extent file = {data, size};
    struct weir_symbol_tables tables = {0};
    weir_symbol_tables_read(&tables, file);
    sink += weir_elf_build_id(file).size + weir_elf_note_build_id(file).size;
    for (size_t i = 0; i < tables.n_functions && i < 64; i++)
        ask(&tables, tables.function[i].low + 1);
    for (size_t i = 0; i < tables.lines.n_sequences && i < 64; i++)
        for (uint64_t k = 0; k < 64; k++)
            ask(&tables, tables.lines.sequence[i].low + k);
    for (uint64_t address = 0; address < 1 << 14; address += 61)
        ask(&tables, address);
    weir_symbol_tables_free(&tables);
    weir_line_table_read(&tables.lines, file, file, file);
    for (uint64_t address = 0; address < 1 << 14; address += 61)
        ask(&tables, address);
    weir_symbol_tables_free(&tables);
    return 0;
}
