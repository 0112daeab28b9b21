/* elf_file.h: detects truncated shared libraries. The dynamic linker trusts a library's headers and maps the missing
 * pages of a truncated file. An access to these pages raises SIGBUS. */
#ifndef WEIR_PROF_GPU_ELF_FILE_H
#define WEIR_PROF_GPU_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_ELF_WHY = 128 };

/* Returns true if the file is a 64-bit little-endian shared library that is as long as its headers require. Also
 * returns true if it cannot be read or is not a regular file, because dlopen reports this better. Otherwise writes the
 * reason to why, as a clause that begins with "it". */
bool weir_elf_is_whole(const char *path, char why[WEIR_ELF_WHY]);

#endif
