/* symbols.h: code addresses of this process as the lines of a call stack: "task.c(57): run_camera". libdw (elfutils)
 * reads them; where it is missing, the dynamic linker knows the functions that are exported. */
#ifndef WEIR_PROF_SYMBOLS_SYMBOLS_H
#define WEIR_PROF_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

/* The modules of the process (program and shared libraries) and what their files hold. One user at a time. */
struct weir_symbols;

/* What reads stacks here, with its version (true), or why source lines cannot be had (false). Opens libdw. */
bool weir_symbols_library(char *text, size_t size);

/* 0 or -ENOMEM. *out is the caller's. */
int weir_symbols_open(struct weir_symbols **out);
/* Sets *symbols to NULL; NULL is fine. */
void weir_symbols_close(struct weir_symbols **symbols);

/* Writes one line for the call that returns to address (so address - 1 is looked up):
 *
 *     task.c(57): run_camera           source file and line
 *     libfoo.so(0x1234): name          no line table: the return address as an address of that file
 *     libfoo.so(0x1234): name+0x1a     without libdw: an exported function, and how far behind its beginning
 *     libfoo.so(0x1234): ??            no symbol either
 *     ??(0x7f0012345678): ??           in no module
 *
 * Frames that were inlined are not listed, C++ names stay mangled, and names are cut after 1023 bytes. Returns the
 * length as snprintf does; size may be 0. Files on this machine are read, and no debuginfo server is asked. The first
 * address in a module takes a while (the C library with its debug file: some 20 ms), later ones microseconds. */
int weir_symbols_frame(struct weir_symbols *symbols, const void *address, char *text, size_t size);

#endif
