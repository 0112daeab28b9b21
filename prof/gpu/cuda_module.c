#include "prof/gpu/cuda_module.h"

#include "base/files.h"
#include "base/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FILE_NAME[] = "libweir_cuda.so";

static struct {
    pthread_mutex_t lock;
    bool tried;
    const struct weir_cuda_module *module;
    char path[PATH_MAX];
    struct weir_err err;
} opened = {.lock = PTHREAD_MUTEX_INITIALIZER};
__attribute__((constructor)) static void watch_forks(void)
{
    weir_fork_lock(&opened.lock);
}

/* Returns NULL on failure, with the reason in why. The dynamic linker searches its path for a name without a slash. */
static void *open_library(const char *path, char *why, size_t why_size)
{
    char damage[WEIR_ELF_WHY];
    if (strchr(path, '/') && !weir_elf_is_whole(path, damage)) {
        snprintf(why, why_size, "%.800s: %s; build or copy it again", path, damage);
        return NULL;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        snprintf(why, why_size, "%s", dlerror());
    return handle;
}

static void *load(struct weir_err *err)
{
    const char *named = getenv("WEIR_CUDA_MODULE");
    static const char *const folders[] = {"", "../" WEIR_LIBDIR "/", NULL};
    char installed[PATH_MAX], why[sizeof err->text];
    void *handle = NULL;
    if (named && named[0]) {
        snprintf(opened.path, sizeof opened.path, "%s", named);
        handle = open_library(named, why, sizeof why);
        if (!handle)
            weir_err_set(err, -ENODEV, "WEIR_CUDA_MODULE=%s cannot be loaded: %s", named, why);
        return handle;
    }
    bool is_installed = weir_path_installed(FILE_NAME, FILE_NAME, folders, installed) == 0;
    snprintf(opened.path, sizeof opened.path, "%s", is_installed ? installed : FILE_NAME);
    handle = open_library(opened.path, why, sizeof why);
    if (!handle)
        weir_err_set(err, -ENODEV,
                     "the CUDA module cannot be loaded: %s; build with WEIR_WITH_CUDA=ON and keep %s next to the "
                     "program, or set "
                     "WEIR_CUDA_MODULE to its path",
                     why, FILE_NAME);
    return handle;
}

static const struct weir_cuda_module *table_of(void *handle, struct weir_err *err)
{
    weir_cuda_module_entry entry;
    void *symbol = dlsym(handle, WEIR_CUDA_MODULE_ENTRY);
    memcpy(&entry, &symbol, sizeof entry);
    const struct weir_cuda_module *module = entry ? entry() : NULL;
    if (module && module->abi == WEIR_CUDA_ABI && module->bytes == sizeof *module)
        return module;
    weir_err_set(err, -ENODEV, "%s is %s; build it together with this program", opened.path,
                 module ? "a module of another version of Weir" : "not a Weir module");
    return NULL;
}

static void open_locked(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    void *handle = load(&opened.err);
    if (handle)
        opened.module = table_of(handle, &opened.err);
    if (handle && !opened.module)
        dlclose(handle);
    opened.tried = true;
}

int weir_cuda_module_open(const struct weir_cuda_module **module, struct weir_err *err)
{
    pthread_mutex_lock(&opened.lock);
    if (!opened.tried)
        open_locked();
    pthread_mutex_unlock(&opened.lock);
    *module = opened.module;
    return opened.module ? 0 : weir_err_set(err, opened.err.code, "%s", opened.err.text);
}

const void *weir_cuda_module_extra(const char *name, struct weir_err *err)
{
    const struct weir_cuda_module *module;
    if (weir_cuda_module_open(&module, err) < 0)
        return NULL;
    for (const struct weir_cuda_extra *extra = module->extras; extra->name; extra++)
        if (strcmp(extra->name, name) == 0)
            return extra->ops;
    weir_err_set(err, -ENOTSUP, "%s was built without %s; use the CPU, or build the module again with it", opened.path,
                 name);
    return NULL;
}

const char *weir_cuda_module_path(void)
{
    return opened.module ? opened.path : "";
}
