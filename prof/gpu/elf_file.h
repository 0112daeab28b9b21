/* elf_file.h: whether a shared library is all there. The dynamic linker believes its headers: of a file that was cut
 * short it maps pages that are not there, and touching them is SIGBUS. */
#ifndef WEIR_PROF_GPU_ELF_FILE_H
#define WEIR_PROF_GPU_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_ELF_WHY = 128 };

/* True when the file is a 64-bit little-endian shared library that is as long as its headers say; also when it
 * cannot be read or is no plain file, which dlopen tells better. Else why not, a part of a sentence that begins with
 * "it". */
bool weir_elf_is_whole(const char *path, char why[WEIR_ELF_WHY]);

#endif
