#include "cli/devices.h"
#include "base/field_rows.h"
#include "base/files.h"
#include "base/text.h"
#include "io/io.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void found(struct weir_device *device, bool present, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void found(struct weir_device *device, bool present, const char *format, ...)
{
    device->present = present;
    va_list args;
    va_start(args, format);
    vsnprintf(device->text, sizeof device->text, format, args);
    va_end(args);
}

/* Returns the number that follows key at the start of a line in a /proc file, or -1 if none exists. */
static int proc_number(const char *path, const char *key)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    char line[512];
    int value = -1;
    while (value < 0 && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            value = atoi(line + strlen(key));
    fclose(f);
    return value;
}

static void why_no_io_uring(struct weir_device *device, int error)
{
    int disabled = proc_number("/proc/sys/kernel/io_uring_disabled", "");
    bool filtered = proc_number("/proc/self/status", "Seccomp:") == 2;
    if (error == EPERM && disabled > 0)
        found(device, false, "disabled by sysctl kernel.io_uring_disabled=%d%s", disabled,
              disabled == 1 ? " (except for privileged processes and kernel.io_uring_group)" : "");
    else if ((error == EPERM || error == ENOSYS) && filtered)
        found(device, false, "%s: refused by a seccomp filter (containers often have one)", strerror(error));
    else if (error == ENOSYS)
        found(device, false, "the kernel has no io_uring (added in Linux 5.1)");
    else if (error == ENOMEM)
        found(device, false, "no memory for a ring; raise the limit on locked memory (ulimit -l)");
    else
        found(device, false, "io_uring_setup: %s", strerror(error));
}

void weir_device_io_uring(struct weir_device *device)
{
    struct io_uring_params params;
    memset(&params, 0, sizeof params);
    long fd = syscall(__NR_io_uring_setup, 4, &params);
    if (fd < 0) {
        why_no_io_uring(device, errno);
        return;
    }
    close((int)fd);
    found(device, true, "works (features 0x%x)", params.features);
}

void weir_device_liburing(struct weir_device *device)
{
    device->present = weir_uring_describe(device->text, sizeof device->text);
}

/* Returns true if the folder contains the installation record of a distribution named weir. */
static bool has_other_weir(const char *folder)
{
    DIR *dir = opendir(folder);
    bool has = false;
    for (struct dirent *entry; dir && !has && (entry = readdir(dir));)
        has = strncmp(entry->d_name, "weir-", 5) == 0 && isdigit((unsigned char)entry->d_name[5]);
    if (dir)
        closedir(dir);
    return has;
}

void weir_device_python(struct weir_device *device)
{
    static const char file[] = "__init__.py", extension[] = "_weir.abi3.so";
    char package[PATH_MAX], path[PATH_MAX + sizeof extension];
    bool whole = weir_path_in_package(file, file, package) == 0;
    if (!whole && weir_path_in_package(file, extension, package) < 0) {
        found(device, false, "no package next to this program; pip install weir-loader installs both");
        return;
    }
    *strrchr(package, '/') = '\0';
    snprintf(path, sizeof path, "%s/%s", package, extension);
    bool ours = access(path, F_OK) == 0;
    snprintf(path, sizeof path, "%s/..", package);
    const char *fault = !ours                  ? "is another package named weir"
                        : has_other_weir(path) ? "mixes files of weir-loader and of another package named weir"
                        : !whole               ? "has lost files of weir-loader"
                                               : NULL;
    if (fault)
        found(device, false, "%.300s %s: pip uninstall weir weir-loader, then pip install weir-loader", package, fault);
    else
        found(device, true, "weir-loader in %.300s", package);
}

/* CUDA driver functions, declared here with their documented C signatures so that the build needs no CUDA header. */
struct cuda {
    int (*init)(unsigned flags);
    int (*driver_version)(int *version);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_name)(char *name, int size, int device);
    int (*device_memory)(size_t *bytes, int device);
    int (*error_string)(int error, const char **text);
};

/* Copies the pointer with memcpy, because ISO C has no cast from dlsym's result to a function pointer. POSIX guarantees
 * that the result can be converted. */
static bool load_symbol(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load_cuda(void *library, struct cuda *cuda)
{
    return load_symbol(library, "cuInit", &cuda->init) &&
           load_symbol(library, "cuDriverGetVersion", &cuda->driver_version) &&
           load_symbol(library, "cuDeviceGetCount", &cuda->device_count) &&
           load_symbol(library, "cuDeviceGet", &cuda->device_get) &&
           load_symbol(library, "cuDeviceGetName", &cuda->device_name) &&
           load_symbol(library, "cuDeviceTotalMem_v2", &cuda->device_memory) &&
           load_symbol(library, "cuGetErrorString", &cuda->error_string);
}

static void ask_cuda(const struct cuda *cuda, struct weir_device *device)
{
    int version = 0, count = 0, first = 0;
    char name[96] = "unknown";
    size_t bytes = 0;
    int rc = cuda->init(0);
    if (rc == 0)
        rc = cuda->device_count(&count);
    if (rc != 0) {
        const char *text = NULL;
        if (cuda->error_string(rc, &text) != 0 || !text)
            text = "unknown error";
        found(device, false, "the driver reports error %d: %s", rc, text);
        return;
    }
    if (count == 0) {
        found(device, false, "the driver found no GPU");
        return;
    }
    cuda->driver_version(&version);
    if (cuda->device_get(&first, 0) == 0) {
        cuda->device_name(name, sizeof name, first);
        cuda->device_memory(&bytes, first);
    }
    found(device, true, "%d x %s (%s), driver for CUDA %d.%d", count, name, weir_size((double)bytes).text,
          version / 1000, version % 1000 / 10);
}

void weir_device_cuda(struct weir_device *device)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        found(device, false, "no driver: %s", dlerror());
        return;
    }
    struct cuda cuda = {0};
    if (load_cuda(library, &cuda))
        ask_cuda(&cuda, device);
    else
        found(device, false, "the driver library is too old: %s", dlerror());
    /* The library stays loaded, because dlclose would unmap code that the driver's own threads still run. */
}

/* ---- GPUs, as reported by the CUDA module ---- */

typedef void row_fn(void *user, const char *name, bool present, const char *text);

struct line {
    char text[512];
    size_t length;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line->text + line->length, sizeof line->text - line->length, format, args);
    va_end(args);
    if (n > 0 && line->length + (size_t)n < sizeof line->text)
        line->length += (size_t)n;
}

static void add_count(struct line *line, int n, const char *what)
{
    add(line, ", %d %s%s", n, what, n == 1 ? "" : "s");
}

static void gpu_row(const struct weir_gpu_fact *gpu, row_fn *row, void *user)
{
    char name[24];
    struct line line = {.length = 0};
    snprintf(name, sizeof name, "gpu %d", gpu->number);
    add(&line, "%s", gpu->name);
    if (gpu->memory_bytes)
        add(&line, ", %s", weir_size((double)gpu->memory_bytes).text);
    add(&line, ", compute capability %d.%d", gpu->major, gpu->minor);
    add_count(&line, gpu->sms, "multiprocessor");
    add_count(&line, gpu->copy_engines, "copy engine");
    if (gpu->jpeg_engines >= 0)
        add_count(&line, gpu->jpeg_engines, "JPEG engine");
    if (gpu->pcie_generation && gpu->pcie_width)
        add(&line, "; PCIe %d.0 x%d", gpu->pcie_generation, gpu->pcie_width);
    if (*gpu->pci)
        add(&line, " at %s", gpu->pci);
    if (gpu->copy_in_bytes_per_s > 0)
        add(&line, ", %.1f GB/s from pinned memory", gpu->copy_in_bytes_per_s / 1e9);
    else if (gpu->usable.present)
        add(&line, ", bandwidth not measured: %.200s", gpu->copying.text);
    if (!gpu->usable.present)
        add(&line, ": %.300s", gpu->usable.text);
    row(user, name, gpu->usable.present, line.text);
}

void weir_gpu_rows(const struct weir_gpu_facts *facts, row_fn *row, void *user)
{
    static const char needs_module[] = "needs the CUDA module, which is missing";
    row(user, "cuda module", facts->module.present, facts->module.text);
    if (!facts->module.present) {
        row(user, "nvjpeg", false, needs_module);
        row(user, "cupti", false, needs_module);
        return;
    }
    for (int i = 0; i < facts->n; i++)
        gpu_row(&facts->gpus[i], row, user);
    row(user, "nvjpeg", facts->nvjpeg.present, facts->nvjpeg.text);
    row(user, "cupti", facts->cupti.present, facts->cupti.text);
}

#define S struct weir_gpu_fact
static const struct weir_field gpu_rows[] = {
    PLAIN("number", number),
    PLAIN("name", name),
    PLAIN("pci", pci),
    PLAIN("memory_bytes", memory_bytes),
    PLAIN("compute_major", major),
    PLAIN("compute_minor", minor),
    PLAIN("multiprocessors", sms),
    PLAIN("copy_engines", copy_engines),
    KNOWN("jpeg_engines", jpeg_engines),
    PLAIN("pcie_generation", pcie_generation),
    PLAIN("pcie_width", pcie_width),
    POSITIVE("pinned_copy_bytes_per_s", copy_in_bytes_per_s),
    OPTIONAL("why_not_measured", copying.text),
    OPTIONAL("why_not", usable.text),
    OPTIONAL("why_no_jpeg", jpeg.text),
};
WEIR_FIELDS(weir_gpu_fields, gpu_rows);
#undef S
