/* elf_file.h: detects truncated shared libraries. The dynamic linker trusts the headers: it maps missing pages of a
 * truncated file, and touching them raises SIGBUS. */
#ifndef WEIR_PROF_GPU_ELF_FILE_H
#define WEIR_PROF_GPU_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_ELF_WHY = 128 };

/* Returns true when the file is a 64-bit little-endian shared library as long as its headers say, and also when it
 * cannot be read or is not a regular file, which dlopen reports better. Otherwise why is a clause that begins with
 * "it". */
bool weir_elf_is_whole(const char *path, char why[WEIR_ELF_WHY]);

#endif
