/* symbols_priv.h: looks up the function, file and line of an address in symbol tables and DWARF, using libdw
 * (elfutils). libdw is loaded at its first use instead of being linked, so recording without stacks does not require
 * it. */
#ifndef WEIR_PROF_SYMBOLS_SYMBOLS_PRIV_H
#define WEIR_PROF_SYMBOLS_SYMBOLS_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_libdw;

/* Strings are valid until the next look-up. Unknown strings are NULL; an unknown line is 0. */
struct weir_place {
    const char *module, *function, *file; /* module and file without directories */
    int line;
    uint64_t bias; /* difference between an address in memory and in the module's file */
};

/* Returns true and the library's version, such as "libdw 0.188", or false and the reason why it is unavailable. */
bool weir_libdw_describe(char *text, size_t size);
/* Returns NULL if libdw is unavailable or memory is short. */
struct weir_libdw *weir_libdw_open(void);
/* Sets *dw to NULL; accepts NULL. */
void weir_libdw_close(struct weir_libdw **dw);
/* Updates the list of loaded modules. Returns true if modules were loaded since the last scan, so earlier look-ups can
 * be out of date. */
bool weir_libdw_scan(struct weir_libdw *dw);
/* Returns false if the address is outside all modules of the last scan. */
bool weir_libdw_find(struct weir_libdw *dw, uint64_t address, struct weir_place *place);

#endif
