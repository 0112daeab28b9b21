#include "base/shared_library.h"
#include "base/shortage.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ATTEMPTS_MAX = 1000 };

static bool find_all(void *library, const struct weir_symbol *symbols, size_t n)
{
    bool all = true;
    for (size_t i = 0; i < n && all; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        memcpy(symbols[i].function, &symbol, sizeof symbol); /* ISO C has no cast from a data to a function pointer */
        all = symbol != NULL;
    }
    return all;
}

/* Writes the path of the library that dlerror names as missing, if it is in the folder of `file`. */
static bool missing_neighbour(const char *file, const char *error, char *path, size_t size)
{
    const char *slash = strrchr(file, '/'), *colon = error ? strchr(error, ':') : NULL;
    if (!slash || !colon || memchr(error, '/', (size_t)(colon - error)))
        return false;
    int n = snprintf(path, size, "%.*s/%.*s", (int)(slash - file), file, (int)(colon - error), error);
    return n > 0 && (size_t)n < size && access(path, F_OK) == 0;
}

/* Opens a library and the libraries in its folder that it needs. Libraries in wheels of Python do not record that
 * folder: their extension module does. *left bounds the number of attempts. */
static void *open_with_neighbours(const char *file, int *left)
{
    char path[4096];
    void *library;
    while (!(library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) && --*left > 0)
        if (!missing_neighbour(file, dlerror(), path, sizeof path) || !open_with_neighbours(path, left)) {
            dlopen(file, RTLD_NOW | RTLD_LOCAL); /* for the caller's dlerror */
            return NULL;
        }
    return library;
}

/* Returns whether the file does not exist; a library that it needs may be missing instead. */
static bool is_missing(const char *file, const char *error)
{
    size_t n = strlen(file);
    return error && strncmp(error, file, n) == 0 && error[n] == ':' && strstr(error, strerror(ENOENT));
}

static bool lacks_memory(const char *error)
{
    return error && (strstr(error, strerror(ENOMEM)) || strstr(error, "failed to map segment"));
}

bool weir_shared_library_open(const char *const *files, const struct weir_symbol *symbols, size_t n,
                              const char *install, char *why, size_t why_size)
{
    bool exists = false;
    for (; *files; files++) {
        int attempts = ATTEMPTS_MAX;
        void *library = open_with_neighbours(*files, &attempts);
        if (library && find_all(library, symbols, n))
            return true;
        const char *error = dlerror();
        bool missing = !library && is_missing(*files, error);
        if (!exists)
            snprintf(why, why_size, "%s; %s", error ? error : *files,
                     lacks_memory(error) ? weir_machine_advice(-ENOMEM) : install);
        exists |= !missing;
        if (library)
            dlclose(library);
    }
    return false;
}
