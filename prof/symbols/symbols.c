#include "prof/symbols/symbols.h"
#include "base/text.h"
#include "prof/symbols/symbols_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 1024 };

/* Number of addresses in the cache. libdw searches a module's symbols linearly, which takes about 0.3 ms per address,
 * but the stacks of a trace contain only a few hundred different addresses. */
enum { KNOWN = 1 << 12 };
struct known {
    const void *address;
    char *text; /* NULL: unused entry */
};

struct weir_symbols {
    struct weir_libdw *dw; /* NULL: use the dynamic linker */
    struct known known[KNOWN];
};

bool weir_symbols_library(char *text, size_t size)
{
    return weir_libdw_describe(text, size);
}

int weir_symbols_open(struct weir_symbols **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return -ENOMEM;
    (*out)->dw = weir_libdw_open();
    return 0;
}

static void forget(struct weir_symbols *symbols)
{
    for (size_t i = 0; i < KNOWN; i++) {
        free(symbols->known[i].text);
        symbols->known[i] = (struct known){0};
    }
}

void weir_symbols_close(struct weir_symbols **symbols)
{
    if (!*symbols)
        return;
    weir_libdw_close(&(*symbols)->dw);
    forget(*symbols);
    free(*symbols);
    *symbols = NULL;
}

static const char *printable(char copy[NAME_MAX_BYTES], const char *name)
{
    size_t n = strnlen(name, NAME_MAX_BYTES - 1);
    memcpy(copy, name, n);
    copy[n] = 0;
    weir_text_printable(copy);
    return copy;
}

static int no_module(uint64_t address, char *text, size_t size)
{
    static const char unknown[] = "??";
    return snprintf(text, size, "%s(0x%" PRIx64 "): %s", unknown, address, unknown);
}

/* Sets the module's name as the dynamic linker knows it and its load address. Returns false if no module is loaded at
 * the address. */
static bool module_of(uint64_t address, Dl_info *info, char name[NAME_MAX_BYTES], uint64_t *bias)
{
    char program[4096];
    struct link_map *map = NULL;
    if (!dladdr1((const void *)(uintptr_t)address, info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return false;
    const char *path = map->l_name;
    if (!path[0]) { /* the program has an empty name */
        ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
        program[n > 0 ? n : 0] = 0;
        path = program;
    }
    const char *slash = strrchr(path, '/');
    printable(name, slash ? slash + 1 : path);
    *bias = map->l_addr;
    return true;
}

static int frame_of_linker(uint64_t at, uint64_t inside, char *text, size_t size)
{
    char module[NAME_MAX_BYTES], function[NAME_MAX_BYTES];
    uint64_t bias;
    Dl_info info;
    if (!module_of(inside, &info, module, &bias))
        return no_module(at, text, size);
    if (!info.dli_sname)
        return snprintf(text, size, "%s(0x%" PRIx64 "): ??", module, at - bias);
    return snprintf(text, size, "%s(0x%" PRIx64 "): %s+0x%" PRIx64, module, at - bias,
                    printable(function, info.dli_sname), at - (uintptr_t)info.dli_saddr);
}

static int look_up(struct weir_symbols *symbols, const void *address, char *text, size_t size)
{
    char file[NAME_MAX_BYTES], function[NAME_MAX_BYTES];
    uint64_t at = (uintptr_t)address, inside = at ? at - 1 : 0; /* a return address, and an address inside the call */
    struct weir_place place;
    Dl_info info;
    if (!symbols->dw)
        return frame_of_linker(at, inside, text, size);
    if (!weir_libdw_find(symbols->dw, inside, &place))
        return no_module(at, text, size);
    printable(function, place.function ? place.function : "??");
    function[1 + strcspn(function + 1, "@")] = 0; /* removes a version suffix, as in dlopen@@GLIBC_2.34 */
    if (place.file)
        return snprintf(text, size, "%s(%d): %s", printable(file, place.file), place.line, function);
    /* libdw resolves symbolic links to names like libz.so.1.2.13, so prefer the dynamic linker's name. */
    if (!module_of(inside, &info, file, &place.bias))
        printable(file, place.module);
    return snprintf(text, size, "%s(0x%" PRIx64 "): %s", file, at - place.bias, function);
}

int weir_symbols_frame(struct weir_symbols *symbols, const void *address, char *text, size_t size)
{
    char found[2 * NAME_MAX_BYTES + 32];
    if (symbols->dw && weir_libdw_scan(symbols->dw))
        forget(symbols);
    struct known *known = &symbols->known[((uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - 12)];
    if (known->text && known->address == address)
        return snprintf(text, size, "%s", known->text);
    look_up(symbols, address, found, sizeof found);
    free(known->text);
    *known = (struct known){address, strdup(found)};
    return snprintf(text, size, "%s", found);
}
