/* symbols_priv.h: function, file and line of an address, as libdw (elfutils) reads them from symbol tables and DWARF.
 * The library is opened at the first use and is never linked: who records no stacks does not need it. */
#ifndef WEIR_PROF_SYMBOLS_SYMBOLS_PRIV_H
#define WEIR_PROF_SYMBOLS_SYMBOLS_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_libdw;

/* Strings are lent until the next look-up. What is not known is NULL, line then 0. */
struct weir_place {
    const char *module, *function, *file; /* module and file without directories */
    int line;
    uint64_t bias; /* from addresses in the module's file to those in memory */
};

/* Where libdw is, as "libdw 0.188" (true), or why it is not (false). */
bool weir_libdw_describe(char *text, size_t size);
/* NULL without libdw, or without memory. */
struct weir_libdw *weir_libdw_open(void);
/* Sets *dw to NULL; NULL is fine. */
void weir_libdw_close(struct weir_libdw **dw);
/* Looks at what is loaded now. True: libraries were loaded since the last time, and addresses may mean something else.
 */
bool weir_libdw_scan(struct weir_libdw *dw);
/* False: address is in no module of the last scan. */
bool weir_libdw_find(struct weir_libdw *dw, uint64_t address, struct weir_place *place);

#endif
