/* shared_library.h: libraries that are opened when first needed and never linked, so that the program runs without
 * them.
 */
#ifndef WEIR_BASE_SHARED_LIBRARY_H
#define WEIR_BASE_SHARED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function of the library, and the address of the function pointer that receives it. */
struct weir_symbol {
    const char *name;
    void *function;
};

/* Opens the first of `files` (names that ld.so looks up, ended by NULL) that exists and has all n symbols. The
 * libraries that a file with a path needs may be in its folder, as in wheels of Python. It stays open until the process
 * ends. Returns false with one line in why: the error of the first file that exists, or of the last one, then
 * `install`, or advice if memory was short. */
bool weir_shared_library_open(const char *const *files, const struct weir_symbol *symbols, size_t n,
                              const char *install, char *why, size_t why_size);

#endif
