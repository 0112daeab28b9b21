#include "cli/devices.h"
#include "io/io.h"

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

/* First number in a file of /proc, -1 when there is none. */
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
              disabled == 1 ? " (privileged processes and kernel.io_uring_group may)" : "");
    else if ((error == EPERM || error == ENOSYS) && filtered)
        found(device, false, "%s: refused by a seccomp filter (containers often have one)", strerror(error));
    else if (error == ENOSYS)
        found(device, false, "the kernel has no io_uring (it came with Linux 5.1)");
    else if (error == ENOMEM)
        found(device, false, "no memory for a ring: raise the limit of locked memory (ulimit -l)");
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

/* The calls of the driver that doctor makes, with their documented C signatures: no header of CUDA is needed to build.
 */
struct cuda {
    int (*init)(unsigned flags);
    int (*driver_version)(int *version);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_name)(char *name, int size, int device);
    int (*device_memory)(size_t *bytes, int device);
    int (*error_string)(int error, const char **text);
};

/* POSIX promises that a data pointer from dlsym converts to a function pointer; ISO C has no cast for it. */
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
        found(device, false, "the driver sees no GPU");
        return;
    }
    cuda->driver_version(&version);
    if (cuda->device_get(&first, 0) == 0) {
        cuda->device_name(name, sizeof name, first);
        cuda->device_memory(&bytes, first);
    }
    found(device, true, "%d x %s (%.1f GiB), driver for CUDA %d.%d", count, name, (double)bytes / 0x1p30,
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
    /* dlclose would unmap code that the driver's own threads still run. */
}
