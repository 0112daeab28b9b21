/* Processes of other programs, read from directory trees that imitate /proc. */
#include "prof/processes/task_watch.h"
#include "tests/fixtures/proc_tree.h"
#include "weir/base.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(processes, .init = proc_tree_make, .fini = proc_tree_remove);

/* ---- files ---- */

Test(processes, stat_of_a_process_with_a_strange_name)
{
    proc_put_task(&(struct proc_task){.pid = 70, .name = "a) R (b\t", .state = 'D', .parent = 7, .n_threads = 3});
    struct weir_task_stat stat;
    cr_assert(weir_task_stat_read(&stat, proc_root, 70, 0));
    cr_assert_str_eq(stat.name, "a) R (b?");
    cr_assert_eq(stat.state, 'D');
    cr_assert_eq(stat.parent, 7);
    cr_assert_eq(stat.n_threads, 3);
    cr_assert_eq(stat.page_faults, 7);
    cr_assert_eq(stat.start_ticks, 1070);
    cr_assert_not(weir_task_stat_read(&stat, proc_root, 71, 0));
    proc_put("/proc/72/stat", "72 (cut");
    cr_assert_not(weir_task_stat_read(&stat, proc_root, 72, 0));
    proc_put("/proc/73/stat", "73 (cut) S 1 2");
    cr_assert_not(weir_task_stat_read(&stat, proc_root, 73, 0));
}

Test(processes, functions_have_no_suffixes_and_0_is_unknown)
{
    char function[WEIR_TASK_WAIT];
    proc_put("/proc/5/task/5/wchan", "poll_schedule_timeout.constprop.0");
    cr_assert(weir_task_wait_read(function, proc_root, 5, 5));
    cr_assert_str_eq(function, "poll_schedule_timeout");
    proc_put("/proc/5/task/5/wchan", "0");
    cr_assert_not(weir_task_wait_read(function, proc_root, 5, 5));
    cr_assert_str_empty(function);
    cr_assert_not(weir_task_wait_read(function, proc_root, 6, 6));
}

Test(processes, bytes_and_memory)
{
    uint64_t asked;
    cr_assert_eq(weir_task_storage_bytes(proc_root, 5, 0, &asked), UINT64_MAX);
    cr_assert_eq(asked, UINT64_MAX);
    cr_assert_eq(weir_process_pss_bytes(proc_root, 5), 0);
    proc_put("/proc/5/io", "rchar: 9000\nwchar: 1\nsyscr: 2\nsyscw: 3\nread_bytes: 4096\nwrite_bytes: 0\n");
    proc_put("/proc/5/smaps_rollup",
             "55 ---p 0 00:00 0 [rollup]\nRss: 900 kB\nPss:                 300 kB\nPss_Dirty: 1 kB\n");
    cr_assert_eq(weir_task_storage_bytes(proc_root, 5, 0, &asked), 4096);
    cr_assert_eq(asked, 9000);
    cr_assert_eq(weir_process_pss_bytes(proc_root, 5), 300 << 10);
}

Test(processes, libraries_match_at_the_beginning_of_the_file_name)
{
    char path[64], cut[6];
    proc_put("/proc/5/maps", "7f0-7f1 r-xp 0 08:01 9 /opt/libtorch/lib/libc10.so\n7f2-7f3 rw-p 0 00:00 0\n");
    cr_assert_not(weir_process_library(proc_root, 5, "libtorch", path, sizeof path));
    proc_put("/proc/5/maps", "7f0-7f1 r-xp 0 08:01 9 /opt/x/libtorch_cpu.so (deleted)\n");
    cr_assert(weir_process_library(proc_root, 5, "libtorch", path, sizeof path));
    cr_assert_eq(strncmp(path, "/opt/x/libtorch_cpu.so", 22), 0, "%s", path);
    cr_assert(weir_process_library(proc_root, 5, "libtorch", cut, sizeof cut));
    cr_assert_str_eq(cut, "/opt/");
    cr_assert_not(weir_process_library(proc_root, 6, "libtorch", path, sizeof path));
}

Test(processes, own_environment_and_command)
{
    char value[64], text[4];
    pid_t child = fork();
    if (child == 0) {
        execle("/bin/sleep", "sleep", "100", (char *)NULL, (char *[]){"RANKS=3", "RANK=12", "LAST=", NULL});
        _exit(127);
    }
    while (!weir_process_variable("", child, "LAST", value, sizeof value))
        usleep(1000);
    cr_assert_str_empty(value);
    cr_assert(weir_process_variable("", child, "RANK", value, sizeof value));
    cr_assert_str_eq(value, "12");
    cr_assert_not(weir_process_variable("", child, "RANK", value, 2), "does not fit");
    cr_assert_not(weir_process_variable("", child, "RAN", value, sizeof value));
    cr_assert(weir_process_command("", child, value, sizeof value));
    cr_assert_str_eq(value, "sleep 100");
    cr_assert(weir_process_command("", child, text, sizeof text));
    cr_assert_str_eq(text, "sle");
    cr_assert_eq(weir_process_user("", child), getuid());
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_assert_eq(weir_process_user("", child), (uid_t)-1);
}

/* ---- threads ---- */

static void assert_use(char state, const char *function, enum weir_task_use use)
{
    cr_assert_eq(weir_task_use_of(state, function), use, "%c %s", state, function);
}

Test(processes, reasons_for_sleeping)
{
    assert_use('S', "futex_do_wait", WEIR_TASK_LOCK);
    assert_use('S', "futex_wait_queue", WEIR_TASK_LOCK);
    assert_use('S', "hrtimer_nanosleep", WEIR_TASK_SLEEP);
    assert_use('S', "poll_schedule_timeout", WEIR_TASK_IDLE);
    assert_use('S', "ep_poll", WEIR_TASK_IDLE);
    assert_use('D', "folio_wait_bit_common", WEIR_TASK_STORAGE);
    assert_use('S', "wait_woken", WEIR_TASK_STORAGE);
    assert_use('S', "rpc_wait_bit_killable", WEIR_TASK_STORAGE);
    assert_use('D', "", WEIR_TASK_STORAGE);
    assert_use('S', "", WEIR_TASK_OTHER);
    assert_use('S', "unheard_of", WEIR_TASK_OTHER);
    for (int use = 0; use < WEIR_TASK_USES; use++)
        cr_assert(weir_task_use_name(use)[0]);
}

static void put_thread(char state, const char *wait, uint64_t run_ns, uint64_t delay_ns)
{
    proc_put_task(&(struct proc_task){
        .pid = 5, .name = "pt_data_worker", .state = state, .wait = wait, .run_ns = run_ns, .delay_ns = delay_ns});
}

static double sum_of(const struct weir_task_shares *shares)
{
    double sum = 0;
    for (int use = 0; use < WEIR_TASK_USES; use++)
        sum += shares->of[use];
    return sum;
}

Test(processes, shares_of_an_interval)
{
    struct weir_task_watch watch;
    struct weir_task_shares shares;
    put_thread('S', "futex_do_wait", 1000, 500);
    weir_task_watch_begin(&watch, proc_root, 5, 5);
    for (int i = 0; i < 3; i++)
        cr_assert(weir_task_watch_sample(&watch));
    put_thread('S', "hrtimer_nanosleep", 1000, 500);
    cr_assert(weir_task_watch_sample(&watch));
    put_thread('R', "0", 1000, 500);
    cr_assert(weir_task_watch_sample(&watch));
    weir_task_watch_take(&watch, &shares);
    cr_assert(shares.seconds > 0);
    cr_assert_float_eq(shares.of[WEIR_TASK_LOCK], 0.75, 1e-9);
    cr_assert_float_eq(shares.of[WEIR_TASK_SLEEP], 0.25, 1e-9, "a running thread with a wchan of 0 is no sleep");
    cr_assert_float_eq(sum_of(&shares), 1, 1e-9);

    watch.at_ns -= 2000000000;
    put_thread('S', "0", 1000 + 1000000000, 500 + 500000000);
    weir_task_watch_take(&watch, &shares);
    cr_assert(shares.of[WEIR_TASK_ON_CORE] > 0 && shares.of[WEIR_TASK_ON_CORE] <= 0.5);
    cr_assert_float_eq(shares.of[WEIR_TASK_ON_CORE], 2 * shares.of[WEIR_TASK_CORE_WAIT], 1e-9);
    cr_assert_float_eq(shares.of[WEIR_TASK_OTHER], 1 - 3 * shares.of[WEIR_TASK_CORE_WAIT], 1e-9, "without samples");
}

Test(processes, threads_that_end_and_kernels_that_do_not_count)
{
    struct weir_task_watch watch;
    struct weir_task_shares shares;
    put_thread('Z', "0", 1, 1);
    weir_task_watch_begin(&watch, proc_root, 5, 5);
    cr_assert_not(weir_task_watch_sample(&watch));
    cr_assert(watch.ended);
    proc_put("/proc/6/task/6/stat", "6 (x) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0\n");
    weir_task_watch_begin(&watch, proc_root, 6, 6);
    cr_assert(weir_task_watch_sample(&watch));
    weir_task_watch_take(&watch, &shares);
    cr_assert_eq(shares.seconds, 0, "no schedstat");
}

Test(processes, a_thread_that_sleeps_here)
{
    struct weir_task_watch watch;
    struct weir_task_shares shares;
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            sleep(100);
    }
    struct weir_task_stat stat;
    do
        cr_assert(weir_task_stat_read(&stat, "", child, child));
    while (stat.state != 'S');
    weir_task_watch_begin(&watch, "", child, child);
    for (int i = 0; i < 5; i++)
        cr_assert(weir_task_watch_sample(&watch));
    weir_task_watch_take(&watch, &shares);
    if (watch.function[0]) /* otherwise the kernel hides it */
        cr_assert(shares.of[WEIR_TASK_SLEEP] > 0.5, "%s", watch.function);
    cr_assert_float_eq(sum_of(&shares), 1, 1e-9);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_assert_not(weir_task_watch_sample(&watch));
}
