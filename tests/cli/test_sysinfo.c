#include "cli/sysinfo.h"

#include <criterion/criterion.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

Test(sysinfo, filesystems)
{
    char type[32];
    weir_filesystem_of("/proc/self", type, sizeof type);
    cr_assert_str_eq(type, "proc");
    struct statfs sys;
    if (statfs("/sys", &sys) == 0 && sys.f_type == SYSFS_MAGIC) { /* some containers have no sysfs at /sys */
        weir_filesystem_of("/sys", type, sizeof type);
        cr_assert_str_eq(type, "sysfs");
    }
    /* Relative paths and symbolic links are resolved. */
    cr_assert_eq(chdir("/proc/self/fd/.."), 0);
    weir_filesystem_of("fd/../..", type, sizeof type);
    cr_assert_str_eq(type, "proc");
    weir_filesystem_of("/no/such/place", type, sizeof type);
    cr_assert_str_eq(type, "unknown");
    weir_filesystem_of("/", type, sizeof type);
    cr_assert_str_neq(type, "unknown");
}

Test(sysinfo, filesystems_of_other_machines)
{
    static const struct {
        unsigned long number; /* as statfs reports it */
        const char *name, *words;
    } types[] = {{0x6969, "nfs", "--index"},      {0x0bd00bd0, "lustre", "--io uring"},
                 {0x65735546, "fuse", "a URL"},   {0xfe534d42, "smb2", "--index"},
                 {0x00c36400, "ceph", "--index"}, {0xef53, "ext4", NULL},
                 {0x01021994, "tmpfs", NULL},     {0x58465342, "xfs", NULL}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        cr_assert_str_eq(weir_filesystem_name(types[i].number), types[i].name);
        const char *advice = weir_filesystem_advice(types[i].name);
        cr_assert_eq(advice != NULL, types[i].words != NULL, "%s", types[i].name);
        cr_assert(!advice || strstr(advice, types[i].words), "%s", advice);
    }
    cr_assert_null(weir_filesystem_name(1));
    cr_assert(weir_filesystem_advice("nfs4") && weir_filesystem_advice("fuse.s3fs"));
    cr_assert(!weir_filesystem_advice("fuseblk") && !weir_filesystem_advice("unknown") && !weir_filesystem_advice(""));
}

Test(sysinfo, machine)
{
    struct weir_sysinfo info;
    weir_sysinfo_read(&info);
    cr_assert_str_not_empty(info.cpu_model);
    cr_assert_str_not_empty(info.governor);
    cr_assert(strncmp(info.kernel, "Linux ", 6) == 0, "%s", info.kernel);
    cr_assert_gt(info.memory_total_bytes, info.memory_available_bytes);
    cr_assert_gt(info.memory_available_bytes, 0);
    cr_assert_leq(info.memory_total_bytes,
                  (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) + (1 << 20));
    cr_assert_leq(info.cores.usable, info.cores.affinity);
    cr_assert_leq(info.cores.affinity, info.cores.online);
#if defined(__SSE2__)
    cr_assert_eq(strstr(info.isa, "avx2") != NULL, __builtin_cpu_supports("avx2") != 0);
    cr_assert_eq(strstr(info.isa, "avx512bw") != NULL, __builtin_cpu_supports("avx512bw") != 0);
#endif
}

Test(sysinfo, json_says_null_for_what_is_not_limited)
{
    struct weir_sysinfo info = {.cpu_model = "A \"CPU\"",
                                .cores = {.online = 4, .affinity = 3, .usable = 2, .quota = 1.5}};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct weir_json json;
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    weir_fields_json(&json, &weir_sysinfo_fields, &info);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fclose(out);
    cr_assert(strstr(text, "A \\\"CPU\\\""), "%s", text);
    cr_assert(strstr(text, "memory_cgroup_limit_bytes"), "%s", text);
    cr_assert(strstr(text, "null"), "%s", text);
    cr_assert(strstr(text, "1.5"), "%s", text);
    free(text);
}
