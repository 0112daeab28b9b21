#include "cli/sysinfo.h"
#include "base/field_rows.h"
#include "base/resources.h"
#include "base/version.h"
#include "origin/url.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

static void copy_line(char *out, size_t size, const char *text)
{
    text += strspn(text, " \t");
    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

/* Copies the value of the first line that starts with key and the separator. */
static bool find_value(const char *file, const char *key, char separator, char *out, size_t size)
{
    FILE *f = fopen(file, "re");
    if (!f)
        return false;
    char line[8192]; /* large, because the flags of a current CPU take 2 KB */
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        const char *at = strchr(line, separator);
        if (strncmp(line, key, strlen(key)) != 0 || !at)
            continue;
        copy_line(out, size, at + 1);
        found = true;
    }
    fclose(f);
    return found;
}

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = strstr(words, word); at; at = strstr(at + n, word))
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static void read_cpu(struct weir_sysinfo *info)
{
    static const char *const wanted[] = {"sse4_2",   "avx",      "avx2",        "bmi2",     "avx512f",
                                         "avx512bw", "avx512vl", "avx512_vnni", "amx_tile", "amx_int8",
                                         "asimd",    "sve",      "sve2",        "crc32"};
    char flags[8192] = "";
    if (!find_value("/proc/cpuinfo", "model name", ':', info->cpu_model, sizeof info->cpu_model))
        snprintf(info->cpu_model, sizeof info->cpu_model, "unknown");
    if (!find_value("/proc/cpuinfo", "flags", ':', flags, sizeof flags))
        find_value("/proc/cpuinfo", "Features", ':', flags, sizeof flags);
    size_t used = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (has_word(flags, wanted[i]))
            used += (size_t)snprintf(info->isa + used, sizeof info->isa - used, "%s%s", used ? " " : "", wanted[i]);
    info->tsc_invariant = has_word(flags, "constant_tsc") && has_word(flags, "nonstop_tsc");
}

static uint64_t meminfo_bytes(const char *key)
{
    char text[64];
    return find_value("/proc/meminfo", key, ':', text, sizeof text) ? strtoull(text, NULL, 10) * 1024 : 0;
}

static void read_system(struct weir_sysinfo *info)
{
    struct utsname name;
    if (uname(&name) == 0)
        snprintf(info->kernel, sizeof info->kernel, "%.20s %.100s %.30s", name.sysname, name.release, name.machine);
    char os[128] = "unknown";
    find_value("/etc/os-release", "PRETTY_NAME=", '=', os, sizeof os);
    const char *text = os[0] == '"' ? os + 1 : os;
    snprintf(info->os, sizeof info->os, "%.*s", (int)strcspn(text, "\""), text);
    snprintf(info->governor, sizeof info->governor, "not exposed");
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "re");
    char line[32];
    if (f && fgets(line, sizeof line, f))
        copy_line(info->governor, sizeof info->governor, line);
    if (f)
        fclose(f);
}

void weir_sysinfo_read(struct weir_sysinfo *info)
{
    *info = (struct weir_sysinfo){0};
    read_cpu(info);
    read_system(info);
    weir_cores_read(&info->cores, "");
    info->memory_total_bytes = meminfo_bytes("MemTotal");
    info->memory_available_bytes = weir_memory_available_bytes();
}

#define S struct weir_sysinfo
static const struct weir_field machine[] = {
    PLAIN("cpu_model", cpu_model),
    PLAIN("isa", isa),
    PLAIN("tsc_invariant", tsc_invariant),
    PLAIN("cores_usable", cores.usable),
    PLAIN("cores_online", cores.online),
    PLAIN("cores_affinity", cores.affinity),
    POSITIVE("cores_cgroup_quota", cores.quota),
    POSITIVE("memory_total_bytes", memory_total_bytes),
    POSITIVE("memory_available_bytes", memory_available_bytes),
    POSITIVE("memory_cgroup_limit_bytes", cores.memory_limit_bytes),
    PLAIN("kernel", kernel),
    PLAIN("os", os),
    PLAIN("governor", governor),
};
WEIR_FIELDS(weir_sysinfo_fields, machine);
#undef S

/* Finds the mount whose folder is the longest prefix of path. If several mounts share a folder, the last one hides the
 * others, so it is preferred. */
static void longest_mount(FILE *mounts, const char *path, dev_t device, char *buf, size_t size)
{
    char line[8192];
    size_t best = 0;
    while (fgets(line, sizeof line, mounts)) {
        unsigned major_number, minor_number;
        char mount[4096], type[64];
        const char *tail = strstr(line, " - ");
        if (!tail || sscanf(line, "%*s %*s %u:%u %*s %4095s", &major_number, &minor_number, mount) != 3 ||
            sscanf(tail + 3, "%63s", type) != 1)
            continue;
        size_t n = strcmp(mount, "/") == 0 ? 0 : strlen(mount);
        bool prefix = strncmp(path, mount, n) == 0 && (path[n] == '/' || path[n] == '\0');
        /* On btrfs subvolumes, st_dev differs from the mount's device, so a matching prefix is enough. An equal device
         * only decides between equal prefixes. */
        bool same = makedev(major_number, minor_number) == device;
        if (!prefix || 2 * n + same + 1 < best)
            continue;
        best = 2 * n + same + 1;
        snprintf(buf, size, "%s", type);
    }
}

const char *weir_filesystem_name(unsigned long number)
{
    static const struct {
        unsigned long number;
        const char *name;
    } types[] = {{0xef53, "ext4"},        {0x58465342, "xfs"},  {0x9123683e, "btrfs"}, {0x01021994, "tmpfs"},
                 {0x794c7630, "overlay"}, {0x6969, "nfs"},      {0x2fc12fc1, "zfs"},   {0x0bd00bd0, "lustre"},
                 {0xfe534d42, "smb2"},    {0xff534d42, "cifs"}, {0x65735546, "fuse"},  {0xf2f52010, "f2fs"},
                 {0x00c36400, "ceph"},    {0x47504653, "gpfs"}, {0x01021997, "9p"},    {0x19830326, "beegfs"},
                 {0x5346414f, "afs"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].number == number)
            return types[i].name;
    return NULL;
}

const char *weir_filesystem_advice(const char *type)
{
    static const char *const remote[] = {"nfs",  "nfs4", "lustre", "smb2",   "smb3", "cifs",
                                         "ceph", "gpfs", "9p",     "beegfs", "afs"};
    if (strcmp(type, "fuse") == 0 || strncmp(type, "fuse.", 5) == 0)
        return "a program serves it, and adds its time to every read: a URL is faster, if the data has one";
    for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++)
        if (strcmp(type, remote[i]) == 0)
            return "on another machine: opening a file and a random read wait for it; --index FILE and --io uring help";
    return NULL;
}

/* Gets the type from statfs, since under chroot no listed mount may contain the path. */
static void type_by_number(const char *path, char *buf, size_t size)
{
    struct statfs fs;
    if (statfs(path, &fs) != 0)
        return;
    const char *name = weir_filesystem_name((unsigned long)fs.f_type & 0xffffffff); /* signed on some machines */
    if (name)
        snprintf(buf, size, "%s", name);
    else
        snprintf(buf, size, "type 0x%lx", (unsigned long)fs.f_type);
}

void weir_filesystem_of(const char *path, char *buf, size_t size)
{
    snprintf(buf, size, "%s", weir_url_is(path) ? "a server" : "unknown");
    struct stat st;
    char *real = realpath(path, NULL);
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (real && mounts && stat(real, &st) == 0)
        longest_mount(mounts, real, st.st_dev, buf, size);
    if (real && strcmp(buf, "unknown") == 0)
        type_by_number(real, buf, size);
    if (mounts)
        fclose(mounts);
    free(real);
}

const char *weir_version(void)
{
    return WEIR_VERSION;
}

const char *weir_git_describe(void)
{
    return WEIR_GIT_DESCRIBE;
}

const char *weir_compiler(void)
{
#define TEXT(x)    TEXT_OF(x)
#define TEXT_OF(x) #x
#if defined(__clang__)
    return "clang " TEXT(__clang_major__) "." TEXT(__clang_minor__) "." TEXT(__clang_patchlevel__);
#else
    return "gcc " __VERSION__;
#endif
}

void weir_libc(char *buf, size_t size)
{
#if defined(__GLIBC__)
    snprintf(buf, size, "glibc %s", gnu_get_libc_version());
#else
    snprintf(buf, size, "unknown");
#endif
}
