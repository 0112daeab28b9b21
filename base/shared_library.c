#include "base/shared_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool weir_symbol_find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol); /* ISO C has no cast from a data to a function pointer */
    return symbol;
}

static bool find_all(void *library, const struct weir_symbol *symbols, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!weir_symbol_find(library, symbols[i].name, symbols[i].function))
            return false;
    return true;
}

bool weir_shared_library_open(const char *const *files, const struct weir_symbol *symbols, size_t n,
                              const char *install, char *why, size_t why_size)
{
    for (; *files; files++) {
        void *library = dlopen(*files, RTLD_NOW | RTLD_LOCAL);
        if (library && find_all(library, symbols, n))
            return true;
        const char *error = dlerror();
        snprintf(why, why_size, "%s; %s", error ? error : *files, install);
        if (library)
            dlclose(library);
    }
    return false;
}
