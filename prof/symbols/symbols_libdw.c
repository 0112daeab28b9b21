#include "prof/symbols/symbols_priv.h"

#include "base/shared_library.h"

#include <stdio.h>

#if WEIR_HAVE_LIBDW

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID_MAX = 32 };

/* ---- the library ---- */

static struct {
    __typeof__(dwarf_getsrc_die) *getsrc_die;
    __typeof__(dwarf_haspc) *haspc;
    __typeof__(dwarf_lineno) *lineno;
    __typeof__(dwarf_linesrc) *linesrc;
    __typeof__(dwfl_addrmodule) *addrmodule;
    __typeof__(dwfl_begin) *begin;
    __typeof__(dwfl_end) *end;
    __typeof__(dwfl_linux_proc_report) *linux_proc_report;
    __typeof__(dwfl_module_addrdie) *module_addrdie;
    __typeof__(dwfl_module_addrname) *module_addrname;
    __typeof__(dwfl_module_build_id) *module_build_id;
    __typeof__(dwfl_module_getelf) *module_getelf;
    __typeof__(dwfl_module_info) *module_info;
    __typeof__(dwfl_module_nextcu) *module_nextcu;
    __typeof__(dwfl_report_begin) *report_begin;
    __typeof__(dwfl_report_end) *report_end;
    __typeof__(dwfl_version) *version;
} lib;

static const struct weir_symbol wanted[] = {
    {"dwarf_getsrc_die", &lib.getsrc_die},
    {"dwarf_haspc", &lib.haspc},
    {"dwarf_lineno", &lib.lineno},
    {"dwarf_linesrc", &lib.linesrc},
    {"dwfl_addrmodule", &lib.addrmodule},
    {"dwfl_begin", &lib.begin},
    {"dwfl_end", &lib.end},
    {"dwfl_linux_proc_report", &lib.linux_proc_report},
    {"dwfl_module_addrdie", &lib.module_addrdie},
    {"dwfl_module_addrname", &lib.module_addrname},
    {"dwfl_module_build_id", &lib.module_build_id},
    {"dwfl_module_getelf", &lib.module_getelf},
    {"dwfl_module_info", &lib.module_info},
    {"dwfl_module_nextcu", &lib.module_nextcu},
    {"dwfl_report_begin", &lib.report_begin},
    {"dwfl_report_end", &lib.report_end},
    {"dwfl_version", &lib.version},
};

static bool have_lib;
static char why_not[192];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_lib(void)
{
    static const char *const files[] = {"libdw.so.1", NULL};
    have_lib = weir_shared_library_open(files, wanted, sizeof wanted / sizeof *wanted, "install libdw (elfutils)",
                                        why_not, sizeof why_not);
}

bool weir_libdw_describe(char *text, size_t size)
{
    pthread_once(&once, load_lib);
    if (have_lib)
        snprintf(text, size, "libdw %s", lib.version(NULL));
    else
        snprintf(text, size, "%s", why_not);
    return have_lib;
}

/* ---- files ---- */

static int open_file(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* These two callbacks replace libdw's own, which request missing files from the servers in $DEBUGINFOD_URLS. A profiler
 * must not wait for a network, nor reveal to a server which programs are profiled. The kernel appends " (deleted)" to
 * the name of a mapped file that was replaced. No file has this name, so the replacement is not read by mistake. */
static int find_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
    (void)module, (void)user, (void)base, (void)elf;
    int fd = name[0] == '/' ? open_file(name) : -1;
    if (fd >= 0)
        *path = strdup(name);
    return fd;
}

/* Distributions install separate debug information in a file named after the build id. */
static int find_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *file,
                          const char *link, GElf_Word checksum, char **path)
{
    static const char folder[] = "/usr/lib/debug/.build-id/";
    char by_id[sizeof folder + 2 * ID_MAX + sizeof "/.debug"];
    const unsigned char *id;
    GElf_Addr address;
    (void)user, (void)name, (void)base, (void)file, (void)link, (void)checksum;
    int n = lib.module_build_id(module, &id, &address);
    if (n < 2 || n > ID_MAX)
        return -1;
    char *at = by_id + sprintf(by_id, "%s", folder);
    for (int i = 0; i < n; i++)
        at += sprintf(at, i == 0 ? "%02x/" : "%02x", id[i]);
    sprintf(at, ".debug");
    int fd = open_file(by_id);
    if (fd >= 0)
        *path = strdup(by_id);
    return fd;
}

/* ---- modules ---- */

struct weir_libdw {
    Dwfl *dwfl;
    unsigned long long added; /* modules loaded since the process began, at the last scan; 0 = not scanned */
};

struct weir_libdw *weir_libdw_open(void)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = find_elf, .find_debuginfo = find_debuginfo};
    pthread_once(&once, load_lib);
    struct weir_libdw *dw = have_lib ? calloc(1, sizeof *dw) : NULL;
    if (dw)
        dw->dwfl = lib.begin(&callbacks);
    if (dw && dw->dwfl)
        return dw;
    free(dw);
    return NULL;
}

void weir_libdw_close(struct weir_libdw **dw)
{
    if (!*dw)
        return;
    lib.end((*dw)->dwfl);
    free(*dw);
    *dw = NULL;
}

static int on_first(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    *(unsigned long long *)user = info->dlpi_adds;
    return 1;
}

/* Scans only after a module was loaded. An unloaded library is kept until then, because recorded stacks can contain its
 * addresses. */
bool weir_libdw_scan(struct weir_libdw *dw)
{
    unsigned long long added = 0;
    dl_iterate_phdr(on_first, &added);
    if (dw->added == added)
        return false;
    dw->added = added;
    lib.report_begin(dw->dwfl);
    lib.linux_proc_report(dw->dwfl, getpid());
    lib.report_end(dw->dwfl, NULL, NULL);
    return true;
}

/* ---- look-ups ---- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Finds the compilation unit of an address. libdw before 0.192 uses only the index .debug_aranges, which clang does not
 * write. Without this index, search the address ranges of all units. */
static Dwarf_Die *find_unit(Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *bias)
{
    Dwarf_Die *unit = lib.module_addrdie(module, address, bias);
    if (unit)
        return unit;
    while ((unit = lib.module_nextcu(module, unit, bias)))
        if (lib.haspc(unit, address - *bias) == 1)
            return unit;
    return NULL;
}

bool weir_libdw_find(struct weir_libdw *dw, uint64_t address, struct weir_place *place)
{
    Dwarf_Addr bias = 0, start = 0, end = 0;
    *place = (struct weir_place){0};
    Dwfl_Module *module = lib.addrmodule(dw->dwfl, address);
    if (!module)
        return false;
    place->module = last_part(lib.module_info(module, NULL, &start, &end, NULL, NULL, NULL, NULL));
    if (address < start || address >= end) /* libdw returns the last module for every address after its start */
        return false;
    if (!lib.module_getelf(module, &bias))
        bias = start;
    place->bias = bias;
    place->function = lib.module_addrname(module, address);
    Dwarf_Die *unit = find_unit(module, address, &bias);
    Dwarf_Line *line = unit ? lib.getsrc_die(unit, address - bias) : NULL;
    const char *file = line && lib.lineno(line, &place->line) == 0 ? lib.linesrc(line, NULL, NULL) : NULL;
    if (place->line > 0 && file)
        place->file = last_part(file);
    return true;
}

#else

bool weir_libdw_describe(char *text, size_t size)
{
    snprintf(text, size, "built without libdw");
    return false;
}

struct weir_libdw *weir_libdw_open(void)
{
    return NULL;
}

void weir_libdw_close(struct weir_libdw **dw)
{
    (void)dw;
}

bool weir_libdw_scan(struct weir_libdw *dw)
{
    (void)dw;
    return false;
}

bool weir_libdw_find(struct weir_libdw *dw, uint64_t address, struct weir_place *place)
{
    (void)dw, (void)address, (void)place;
    return false;
}

#endif
