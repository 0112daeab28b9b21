/* symbols.h: converts code addresses of this process to lines of a call stack, such as "task.c(57): run_camera". Uses
 * libdw (elfutils) if it is available, otherwise the exported functions that the dynamic linker finds. */
#ifndef WEIR_PROF_SYMBOLS_SYMBOLS_H
#define WEIR_PROF_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

/* Symbols of the process's modules (program and shared libraries). Not thread-safe. */
struct weir_symbols;

/* Opens libdw. Returns true and writes its version to text, or returns false and writes why source lines are
 * unavailable. */
bool weir_symbols_library(char *text, size_t size);

/* Returns 0 or -ENOMEM. The caller owns *out. */
int weir_symbols_open(struct weir_symbols **out);
/* Sets *symbols to NULL; accepts NULL. */
void weir_symbols_close(struct weir_symbols **symbols);

/* Writes one line for the call that returns to address (so it looks up address - 1):
 *
 *     task.c(57): run_camera           source file and line
 *     libfoo.so(0x1234): name          no line table: the return address, relative to the module
 *     libfoo.so(0x1234): name+0x1a     without libdw: an exported function and the offset from its start
 *     libfoo.so(0x1234): ??            no symbol found
 *     ??(0x7f0012345678): ??           outside all modules
 *
 * Inlined frames are not listed, C++ names stay mangled, and names are cut after 1023 bytes. Returns the length as
 * snprintf does; size can be 0. Reads files on this machine only and never contacts a debuginfo server. The first
 * address in a module takes up to about 20 ms (the C library with its debug file), later addresses take microseconds.
 */
int weir_symbols_frame(struct weir_symbols *symbols, const void *address, char *text, size_t size);

#endif
