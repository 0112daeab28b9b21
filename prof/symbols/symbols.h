/* symbols.h: converts code addresses of this process to call stack lines: "task.c(57): run_camera". Uses libdw
 * (elfutils), or without it the dynamic linker's exported functions. */
#ifndef WEIR_PROF_SYMBOLS_SYMBOLS_H
#define WEIR_PROF_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

/* The modules of the process (program and shared libraries) and their symbols. One user at a time. */
struct weir_symbols;

/* Returns true and the version of the library that reads stacks, or false and why source lines are unavailable. Opens
 * libdw. */
bool weir_symbols_library(char *text, size_t size);

/* Returns 0 or -ENOMEM. The caller owns *out. */
int weir_symbols_open(struct weir_symbols **out);
/* Sets *symbols to NULL; accepts NULL. */
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
