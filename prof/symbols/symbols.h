/* symbols.h: code addresses of this process as the lines of a call stack: "task.c(57): run_camera". */
#ifndef WEIR_PROF_SYMBOLS_SYMBOLS_H
#define WEIR_PROF_SYMBOLS_SYMBOLS_H

#include <stddef.h>

/* The modules of the process (program and shared libraries) and what their files say about them, read at the first
 * address in each. One user at a time. */
struct weir_symbols;

/* 0 or -ENOMEM. *out is the caller's. */
int weir_symbols_open(struct weir_symbols **out);
/* Sets *symbols to NULL; NULL is fine. */
void weir_symbols_close(struct weir_symbols **symbols);

/* Writes one line for the call that returns to address (so address - 1 is looked up):
 *
 *     task.c(57): run_camera           source file and line
 *     libfoo.so(0x1234): name          no line table: the return address as an address of that file
 *     libfoo.so(0x1234): ??            no symbol either
 *     ??(0x7f0012345678): ??           in no module
 *
 * Frames that were inlined are not told apart, C++ names stay mangled, and names are cut after 1023 bytes. Returns the
 * length as snprintf does; size may be 0. A module's tables are read at the first address in it, which takes a while
 * (the C library with its debug file: some 20 ms); after that a call takes O(log n). */
int weir_symbols_frame(struct weir_symbols *symbols, const void *address, char *text, size_t size);

#endif
