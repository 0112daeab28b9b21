/* Control group limits, remaining memory and throttling, read from directory trees that imitate cgroup version 1,
 * version 2 and containers. */
#include "base/resources.h"
#include "prof/report/machine.h"
#include "tests/fixtures/proc_tree.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void put_v2(const char *group)
{
    char line[128];
    snprintf(line, sizeof line, "0::%s\n", group);
    proc_put("/proc/self/cgroup", line);
    proc_put("/proc/self/mountinfo", "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
                                     "30 22 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
}

static struct weir_cores read_cores(void)
{
    struct weir_cores cores;
    weir_cores_read(&cores, proc_root);
    return cores;
}

TestSuite(cores, .init = proc_tree_make, .fini = proc_tree_remove);

Test(cores, v2_smallest_of_the_parents)
{
    put_v2("/a.slice/b.scope");
    proc_put("/sys/fs/cgroup/a.slice/cpu.max", "50000 100000\n");
    proc_put("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "300000 100000\n");
    proc_put("/sys/fs/cgroup/a.slice/memory.max", "max\n");
    proc_put("/sys/fs/cgroup/a.slice/b.scope/memory.max", "1073741824\n");
    struct weir_cores cores = read_cores();
    cr_assert_float_eq(cores.quota, 0.5, 1e-9);
    cr_assert_str_eq(cores.quota_file, "/sys/fs/cgroup/a.slice/cpu.max");
    cr_assert_eq(cores.usable, 1);
    cr_assert_eq(cores.memory_limit_bytes, 1ull << 30);
    cr_assert_str_eq(cores.memory_file, "/sys/fs/cgroup/a.slice/b.scope/memory.max");
}

Test(cores, limits_of_another_process)
{
    put_v2("/own");
    struct weir_cores cores;
    struct weir_throttling throttling;
    proc_put("/proc/77/cgroup", "0::/job\n");
    proc_put("/sys/fs/cgroup/own/cpu.max", "100000 100000\n");
    proc_put("/sys/fs/cgroup/job/cpu.max", "50000 100000\n");
    proc_put("/sys/fs/cgroup/job/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_usec 7\n");
    weir_cores_read_of(&cores, proc_root, 77);
    cr_assert_float_eq(cores.quota, 0.5, 1e-9);
    cr_assert_float_eq(read_cores().quota, 1, 1e-9);
    weir_throttling_read_of(&throttling, proc_root, 77);
    cr_assert_eq(throttling.throttled, 4);
    weir_throttling_read(&throttling, proc_root);
    cr_assert_not(throttling.known);
}

Test(cores, v2_no_limit)
{
    put_v2("/a.slice");
    proc_put("/sys/fs/cgroup/a.slice/cpu.max", "max 100000\n");
    proc_put("/sys/fs/cgroup/a.slice/memory.max", "max\n");
    struct weir_cores cores = read_cores();
    cr_assert_eq(cores.quota, 0);
    cr_assert_eq(cores.memory_limit_bytes, 0);
    cr_assert_eq(cores.usable, cores.affinity);
    cr_assert_str_empty(cores.quota_file);
}

Test(cores, v2_quota_is_rounded_up_and_never_above_the_affinity)
{
    put_v2("/");
    proc_put("/sys/fs/cgroup/cpu.max", "25000 100000\n");
    cr_assert_eq(read_cores().usable, 1);
    proc_put("/sys/fs/cgroup/cpu.max", "99900000 100000\n");
    struct weir_cores cores = read_cores();
    cr_assert_float_eq(cores.quota, 999, 1e-9);
    cr_assert_eq(cores.usable, cores.affinity);
}

static void put_v1(const char *group, const char *mount_root)
{
    char text[512];
    snprintf(text, sizeof text, "5:memory:%s\n4:cpuset:/other\n2:cpu,cpuacct:%s\n0::/user\n", group, group);
    proc_put("/proc/self/cgroup", text);
    snprintf(text, sizeof text,
             "32 31 0:29 /other /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
             "33 31 0:29 %s /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
             "34 31 0:32 %s /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
             mount_root, mount_root);
    proc_put("/proc/self/mountinfo", text);
}

Test(cores, v1_in_the_group)
{
    put_v1("/docker/abc", "/");
    proc_put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "10000\n");
    proc_put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "20000\n");
    proc_put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    proc_put("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "4096000\n");
    struct weir_cores cores = read_cores();
    cr_assert_float_eq(cores.quota, 0.5, 1e-9);
    cr_assert_str_eq(cores.quota_file, "/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us");
    cr_assert_eq(cores.memory_limit_bytes, 4096000);
}

/* In a container, the mount's root is the container's own group, so its files are at the mount point itself. */
Test(cores, v1_in_a_container)
{
    put_v1("/docker/abc", "/docker/abc");
    proc_put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "30000\n");
    proc_put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    proc_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    struct weir_cores cores = read_cores();
    cr_assert_float_eq(cores.quota, 0.3, 1e-9);
    cr_assert_eq(cores.memory_limit_bytes, 2ull << 30);
}

Test(cores, v1_without_quota)
{
    put_v1("/", "/");
    proc_put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    proc_put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
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
    proc_put("/proc/self/cgroup", "::::\n0:\nx\n0::/g\n");
    proc_put("/proc/self/mountinfo", " - \n- cgroup2\n1 2 3 / /sys/fs/cgroup x - cgroup2 a b\n");
    proc_put("/sys/fs/cgroup/g/cpu.max", "many 0\n");
    proc_put("/sys/fs/cgroup/g/memory.max", "\n");
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

/* ---- several processes ---- */

static int part(int affinity, int cpuset, double quota, int processes, int together)
{
    struct weir_cores cores = {.online = 128, .affinity = affinity, .cpuset = cpuset, .quota = quota};
    cores.usable = quota > 0 && quota < affinity ? (int)quota : affinity;
    return weir_cores_part(&cores, processes, together);
}

Test(cores, cores_are_divided_once)
{
    cr_assert_eq(part(32, 32, 0, 1, 0), 32);
    cr_assert_eq(part(32, 32, 0, 2, 32), 16, "torchrun: all ranks can run on any core");
    cr_assert_eq(part(32, 32, 0, 3, 0), 10, "the launcher is unknown");
    cr_assert_eq(part(32, 0, 0, 2, 0), 16, "the launcher and the cpuset are unknown");
    cr_assert_eq(part(8, 64, 0, 8, 64), 8, "srun --cpu-bind=cores: each rank has its own cores");
    cr_assert_eq(part(8, 64, 0, 8, 0), 8, "each rank has its own cpuset");
    cr_assert_eq(part(32, 32, 0, 2, 128), 16, "srun without binding: the step's cpuset, with the launcher outside it");
    cr_assert_eq(part(32, 64, 0, 4, 64), 16, "mpirun --bind-to package: two ranks share each package");
    cr_assert_eq(part(8, 64, 0, 2, 8), 4, "taskset -c 0-7 torchrun: the launcher has the same cores");
    cr_assert_eq(part(64, 64, 8, 4, 64), 2, "the ranks share one quota");
    cr_assert_eq(part(2, 2, 0, 8, 2), 1);
}

Test(cores, the_nearest_cpuset_counts)
{
    put_v2("/a.slice/b.scope");
    cr_assert_eq(read_cores().cpuset, 0);
    proc_put("/sys/fs/cgroup/cpuset.cpus.effective", "0-63\n");
    cr_assert_eq(read_cores().cpuset, 64, "b.scope has no cpuset of its own");
    proc_put("/sys/fs/cgroup/a.slice/cpuset.cpus.effective", "0-3,8,16-17\n");
    cr_assert_eq(read_cores().cpuset, 7);
    proc_put("/sys/fs/cgroup/a.slice/b.scope/cpuset.cpus.effective", "all\n");
    cr_assert_eq(read_cores().cpuset, 7);
}

Test(cores, another_process_may_run_on)
{
    cr_assert_eq(weir_cores_affinity(getpid()), weir_cores_affinity(0));
    cr_assert_eq(weir_cores_affinity(1 << 30), 0);
}

/* ---- remaining memory ---- */

Test(cores, v2_memory_left_is_the_least_of_the_parents)
{
    put_v2("/a.slice/b.scope");
    proc_put("/proc/meminfo", "MemTotal:  8000 kB\nMemAvailable:    6000 kB\n");
    proc_put("/sys/fs/cgroup/a.slice/memory.max", "3000000\n");
    proc_put("/sys/fs/cgroup/a.slice/memory.current", "2500000\n");
    proc_put("/sys/fs/cgroup/a.slice/memory.stat",
             "anon 1500000\nfile 1000000\ninactive_file 300000\nactive_file 200000\n");
    proc_put("/sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n");
    proc_put("/sys/fs/cgroup/a.slice/b.scope/memory.current", "1000000\n");
    cr_assert_eq(weir_cgroup_memory_left(proc_root), 1000000);
    proc_put("/sys/fs/cgroup/a.slice/b.scope/memory.high", "1400000\n");
    cr_assert_eq(weir_cgroup_memory_left(proc_root), 400000, "above memory.high the kernel slows the process down");
    cr_assert_eq(weir_memory_available_in(proc_root), 400000);
    cr_assert_eq(read_cores().memory_limit_bytes, 1400000);
    proc_put("/proc/meminfo", "MemAvailable: 300 kB\n");
    cr_assert_eq(weir_memory_available_in(proc_root), 300 << 10, "the machine has less memory");
}

Test(cores, v1_memory_left_counts_children)
{
    put_v1("/docker/abc", "/docker/abc");
    proc_put("/proc/meminfo", "MemAvailable: 24000000 kB\n");
    proc_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "125829120\n");
    proc_put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "120000000\n");
    proc_put("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\nactive_file 2\n"
                                                  "total_inactive_file 50000000\ntotal_active_file 10000000\n");
    cr_assert_eq(weir_memory_available_in(proc_root), 125829120 - 60000000);
}

Test(cores, memory_that_is_used_up_is_not_unknown)
{
    put_v2("/");
    proc_put("/sys/fs/cgroup/memory.max", "4096\n");
    proc_put("/sys/fs/cgroup/memory.current", "8192\n");
    cr_assert_eq(weir_cgroup_memory_left(proc_root), 0);
    cr_assert_eq(weir_memory_available_in(proc_root), 1);
}

Test(cores, no_memory_limit_leaves_the_machines)
{
    cr_assert_eq(weir_memory_available_in(proc_root), 0, "limit and usage are unknown");
    put_v1("/", "/");
    proc_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    proc_put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
    proc_put("/proc/meminfo", "MemAvailable: 5 kB\n");
    cr_assert_eq(weir_cgroup_memory_left(proc_root), UINT64_MAX);
    cr_assert_eq(weir_memory_available_in(proc_root), 5 << 10);
}

/* ---- throttling ---- */

static struct weir_throttling throttling(void)
{
    struct weir_throttling read;
    weir_throttling_read(&read, proc_root);
    return read;
}

Test(cores, v2_throttling_of_the_parents_too)
{
    put_v2("/a.slice/b.scope");
    proc_put("/sys/fs/cgroup/cpu.stat", "usage_usec 5\nuser_usec 3\nsystem_usec 2\n"); /* the root group has no quota */
    proc_put("/sys/fs/cgroup/a.slice/cpu.stat", "usage_usec 5\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2500\n");
    proc_put("/sys/fs/cgroup/a.slice/b.scope/cpu.stat",
             "nr_periods 5\nnr_throttled 1\nthrottled_usec 10\nnr_bursts 7\n");
    struct weir_throttling read = throttling();
    cr_assert(read.known);
    cr_assert_eq(read.periods, 15);
    cr_assert_eq(read.throttled, 5);
    cr_assert_eq(read.throttled_ns, 2510000);
}

Test(cores, v1_throttling)
{
    put_v1("/docker/abc", "/docker/abc");
    proc_put("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 8\nnr_throttled 3\nthrottled_time 1234567\n");
    struct weir_throttling read = throttling();
    cr_assert(read.known);
    cr_assert_eq(read.throttled, 3);
    cr_assert_eq(read.throttled_ns, 1234567);
}

Test(cores, without_cpu_stat_throttling_is_not_known)
{
    cr_assert_not(throttling().known);
    put_v2("/g");
    proc_put("/sys/fs/cgroup/g/cpu.stat", "usage_usec 5\n");
    cr_assert_not(throttling().known);
}

/* ---- CPU time of other processes ---- */

Test(cores, others_use_what_this_process_does_not)
{
    struct weir_machine_now then, now;
    struct weir_report_machine machine;
    put_v2("/g");
    proc_put("/proc/loadavg", "3.25 2.00 1.00 1/100 12345\n");
    proc_put("/sys/fs/cgroup/g/cpu.max", "150000 100000\n");
    proc_put("/sys/fs/cgroup/g/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_usec 1000\n");
    proc_put("/proc/stat",
             "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 50 50 0 0 5 0 0\nintr 1\n");
    weir_machine_begin(&machine, 1, proc_root);
    cr_assert_float_eq(machine.load_average, 3.25, 1e-9);
    cr_assert_float_eq(machine.quota_cores, 1.5, 1e-9);
    weir_machine_read(&then, proc_root);
    cr_assert(then.cpus);
    proc_put("/sys/fs/cgroup/g/cpu.stat", "nr_periods 30\nnr_throttled 9\nthrottled_usec 2501000\n");
    proc_put("/proc/stat", "cpu0 400 10 20 0 0 30 40 0 0 0\ncpu1 100 0 0 50 50 0 0 55 0 0\n");
    weir_machine_read(&now, proc_root);
    now.at_ns = then.at_ns + UINT64_C(4000000000);
    now.own_ns = then.own_ns + UINT64_C(1000000000);
    weir_machine_between(&machine, &then, &now);
    long tick = sysconf(_SC_CLK_TCK);
    cr_assert_float_eq(machine.others_cores, (500.0 / (double)tick - 1) / 4, 1e-6, "%g", machine.others_cores);
    cr_assert_float_eq(machine.steal_cores, 50.0 / (double)tick / 4, 1e-6);
    cr_assert(machine.throttling);
    cr_assert_eq(machine.periods, 20);
    cr_assert_eq(machine.throttled, 5);
    cr_assert_float_eq(machine.throttled_s, 2.5, 1e-9);
    /* The clocks have different resolutions, so a negative difference is clamped to zero. */
    now.own_ns = then.own_ns + UINT64_C(100000000000);
    weir_machine_between(&machine, &then, &now);
    cr_assert_eq(machine.others_cores, 0);
}

Test(cores, a_machine_that_says_nothing)
{
    struct weir_machine_now then, now;
    struct weir_report_machine machine;
    weir_machine_begin(&machine, 1, proc_root);
    weir_machine_read(&then, proc_root);
    weir_machine_read(&now, proc_root);
    weir_machine_between(&machine, &then, &now);
    cr_assert(machine.used && !machine.throttling && machine.cores >= 1);
    cr_assert(machine.others_cores < 0 && machine.steal_cores < 0 && machine.load_average < 0);
}

/* A helper's CPU time counts as this process's: read from /proc while the helper runs, and kept in the sum after it
 * ends. */
Test(cores, a_helpers_time_is_this_processs)
{
    struct weir_machine_now before, during, after;
    weir_machine_read(&before, "");
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            continue;
    weir_helper_begins(pid);
    do
        weir_machine_read(&during, "");
    while (during.own_ns < before.own_ns + 50000000 || weir_process_cpu_ns(pid) == 0);
    kill(pid, SIGSTOP);
    weir_helper_ends(pid);
    weir_machine_read(&after, "");
    cr_assert_geq(after.own_ns, during.own_ns);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- peak memory ---- */

/* Returns the peak before the pages were touched. */
static uint64_t touch(size_t bytes)
{
    uint64_t before = weir_peak_rss_bytes();
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(memory, MAP_FAILED);
    memset(memory, 1, bytes);
    cr_assert_eq(munmap(memory, bytes), 0);
    return before;
}

Test(resources, a_measurement_is_no_part_of_the_peak)
{
    enum { MB = 1 << 20 };
    uint64_t first = touch(16 * MB);
    cr_assert_gt(first, 0);
    cr_assert_geq(weir_peak_rss_bytes(), first + 12 * MB, "unless excluded, it counts");
    first = touch(64 * MB);
    cr_assert_geq(weir_peak_rss_bytes(), first + 40 * MB);
    weir_peak_rss_exclude(first);
    cr_assert_lt(weir_peak_rss_bytes(), first + 8 * MB);
    uint64_t again = touch(64 * MB);
    weir_peak_rss_exclude(again);
    cr_assert_lt(weir_peak_rss_bytes(), first + 8 * MB, "twice");
    touch(256 * MB);
    cr_assert_geq(weir_peak_rss_bytes(), first + 180 * MB, "more than the measurement used");
}
