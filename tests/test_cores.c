/* The limits of control groups, read from trees of files as they look under version 1, version 2 and in containers. */
#include "prof/cores.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void make_root(void)
{
    strcpy(root, "/tmp/weir_cores_XXXXXX");
    cr_assert(mkdtemp(root));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_root(void)
{
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file of the tree, making its folders. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0777);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    cr_assert(f, "%s", full);
    fputs(text, f);
    fclose(f);
}

static void put_v2(const char *group)
{
    char line[128];
    snprintf(line, sizeof line, "0::%s\n", group);
    put("/proc/self/cgroup", line);
    put("/proc/self/mountinfo", "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
                                "30 22 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
}

static struct weir_cores read_cores(void)
{
    struct weir_cores cores;
    weir_cores_read(&cores, root);
    return cores;
}

TestSuite(cores, .init = make_root, .fini = remove_root);

Test(cores, v2_smallest_of_the_parents)
{
    put_v2("/a.slice/b.scope");
    put("/sys/fs/cgroup/a.slice/cpu.max", "50000 100000\n");
    put("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "300000 100000\n");
    put("/sys/fs/cgroup/a.slice/memory.max", "max\n");
    put("/sys/fs/cgroup/a.slice/b.scope/memory.max", "1073741824\n");
    struct weir_cores cores = read_cores();
    cr_assert_float_eq(cores.quota, 0.5, 1e-9);
    cr_assert_str_eq(cores.quota_file, "/sys/fs/cgroup/a.slice/cpu.max");
    cr_assert_eq(cores.usable, 1);
    cr_assert_eq(cores.memory_limit_bytes, 1ull << 30);
    cr_assert_str_eq(cores.memory_file, "/sys/fs/cgroup/a.slice/b.scope/memory.max");
}

Test(cores, v2_no_limit)
{
    put_v2("/a.slice");
    put("/sys/fs/cgroup/a.slice/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a.slice/memory.max", "max\n");
    struct weir_cores cores = read_cores();
    cr_assert_eq(cores.quota, 0);
    cr_assert_eq(cores.memory_limit_bytes, 0);
    cr_assert_eq(cores.usable, cores.affinity);
    cr_assert_str_empty(cores.quota_file);
}

Test(cores, v2_quota_is_rounded_up_and_never_above_the_affinity)
{
    put_v2("/");
    put("/sys/fs/cgroup/cpu.max", "25000 100000\n");
    cr_assert_eq(read_cores().usable, 1);
    put("/sys/fs/cgroup/cpu.max", "99900000 100000\n");
    struct weir_cores cores = read_cores();
    cr_assert_float_eq(cores.quota, 999, 1e-9);
    cr_assert_eq(cores.usable, cores.affinity);
}

static void put_v1(const char *group, const char *mount_root)
{
    char text[512];
    snprintf(text, sizeof text, "5:memory:%s\n4:cpuset:/other\n2:cpu,cpuacct:%s\n0::/user\n", group, group);
    put("/proc/self/cgroup", text);
    snprintf(text, sizeof text,
             "32 31 0:29 /other /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
             "33 31 0:29 %s /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
             "34 31 0:32 %s /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
             mount_root, mount_root);
    put("/proc/self/mountinfo", text);
}

Test(cores, v1_in_the_group)
{
    put_v1("/docker/abc", "/");
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "10000\n");
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "20000\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "4096000\n");
    struct weir_cores cores = read_cores();
    cr_assert_float_eq(cores.quota, 0.5, 1e-9);
    cr_assert_str_eq(cores.quota_file, "/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us");
    cr_assert_eq(cores.memory_limit_bytes, 4096000);
}

/* In a container the mount's root is the container's own group: its files lie at the mount itself. */
Test(cores, v1_in_a_container)
{
    put_v1("/docker/abc", "/docker/abc");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "30000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    struct weir_cores cores = read_cores();
    cr_assert_float_eq(cores.quota, 0.3, 1e-9);
    cr_assert_eq(cores.memory_limit_bytes, 2ull << 30);
}

Test(cores, v1_without_quota)
{
    put_v1("/", "/");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(read_cores().quota, 0);
}

Test(cores, nothing_to_read)
{
    struct weir_cores cores = read_cores();
    cr_assert_eq(cores.quota, 0);
    cr_assert_eq(cores.memory_limit_bytes, 0);
    cr_assert_geq(cores.usable, 1);
}

Test(cores, garbage_is_no_limit)
{
    put("/proc/self/cgroup", "::::\n0:\nx\n0::/g\n");
    put("/proc/self/mountinfo", " - \n- cgroup2\n1 2 3 / /sys/fs/cgroup x - cgroup2 a b\n");
    put("/sys/fs/cgroup/g/cpu.max", "many 0\n");
    put("/sys/fs/cgroup/g/memory.max", "\n");
    struct weir_cores cores = read_cores();
    cr_assert_eq(cores.quota, 0);
    cr_assert_eq(cores.memory_limit_bytes, 0);
}

Test(cores, affinity_counts)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    struct weir_cores cores = read_cores();
    cr_assert_eq(cores.affinity, 1);
    cr_assert_eq(cores.usable, 1);
}
