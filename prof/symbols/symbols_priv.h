/* symbols_priv.h: the tables of one ELF file. Its bytes may be anything: what is damaged is a table less. */
#ifndef WEIR_PROF_SYMBOLS_SYMBOLS_PRIV_H
#define WEIR_PROF_SYMBOLS_SYMBOLS_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_extent {
    const uint8_t *data;
    size_t size;
};

/* ---- line table ---- */

/* From this address of its sequence on. */
struct weir_line_row {
    uint32_t offset, file, line;
};

/* Code that lies together, [low, high), and its rows by ascending offset. */
struct weir_line_sequence {
    uint64_t low, high;
    uint32_t first, n_rows;
};

struct weir_line_table {
    struct weir_line_sequence *sequence; /* by ascending low */
    struct weir_line_row *row;
    const char **file; /* in the sections, as the compiler wrote them: mostly with directories; may be NULL */
    size_t n_sequences, n_rows, n_files;
};

/* Decodes .debug_line of DWARF 2 to 5; the two sections of strings may be empty. The table borrows the sections until
 * it is freed. What cannot be read, and what is beyond the limits on memory, is left out. */
void weir_line_table_read(struct weir_line_table *table, struct weir_extent line, struct weir_extent line_str,
                          struct weir_extent str);
void weir_line_table_free(struct weir_line_table *table);
/* The file of the instruction at address, without directories, and its line; NULL when the table does not say. */
const char *weir_line_table_find(const struct weir_line_table *table, uint64_t address, uint32_t *line);

/* The string at offset of a section of strings; NULL when it begins behind the section's end, or the section does not
 * end with a string. */
const char *weir_extent_string(struct weir_extent span, uint64_t offset);

/* ---- ELF file ---- */

struct weir_function {
    uint64_t low, high;
    const char *name;
};

enum { WEIR_INFLATED = 2 };

/* All zero is empty. */
struct weir_symbol_tables {
    struct weir_function *function; /* by ascending low, which differ */
    size_t n_functions;
    bool complete; /* the functions are those of .symtab, not of .dynsym */
    struct weir_line_table lines;
    uint8_t *inflated[WEIR_INFLATED]; /* sections that were compressed */
};

/* Adds what the ELF64 file has and the tables lack: functions and lines. They borrow the file until they are freed.
 * Anything else than such a file adds nothing. */
void weir_symbol_tables_read(struct weir_symbol_tables *tables, struct weir_extent file);
void weir_symbol_tables_free(struct weir_symbol_tables *tables);
/* The function around address, NULL when there is none. */
const char *weir_symbol_tables_function(const struct weir_symbol_tables *tables, uint64_t address);

/* The build id in the file, or in ELF notes; .size is 0 when there is none. */
struct weir_extent weir_elf_build_id(struct weir_extent file);
struct weir_extent weir_elf_note_build_id(struct weir_extent notes);

#endif
