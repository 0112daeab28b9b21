/* Training jobs are found and watched in directory trees that imitate /proc. */
#include "prof/processes/job_watch.h"
#include "tests/fixtures/proc_tree.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct weir_job_search *search;
static struct weir_job jobs[WEIR_JOBS];

static void set_up(void)
{
    proc_tree_make();
    search = weir_job_search_open(proc_root);
    cr_assert(search);
}

static void tear_down(void)
{
    weir_job_search_close(search);
    proc_tree_remove();
}

TestSuite(training_jobs, .init = set_up, .fini = tear_down);

static const char torch_maps[] = "7f0-7f1 r-xp 0 08:01 9 /opt/lib/libtorch_cpu.so\n";

static void put_process(int pid, int parent, const char *name, const char *command, bool torch)
{
    char path[64], text[128];
    proc_put_task(&(struct proc_task){.pid = pid, .name = name, .state = 'S', .parent = parent});
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    snprintf(text, sizeof text, "%s", command);
    proc_put(path, text);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    proc_put(path, torch ? torch_maps : "");
}

/* lines: the variables, one per line */
static void put_environment(int pid, const char *lines)
{
    char path[sizeof proc_root + 32];
    snprintf(path, sizeof path, "%s/proc/%d/environ", proc_root, pid);
    FILE *f = fopen(path, "w");
    cr_assert(f);
    for (; *lines; lines++)
        putc(*lines == '\n' ? '\0' : *lines, f);
    putc('\0', f);
    cr_assert_eq(fclose(f), 0);
}

static int find(pid_t wanted)
{
    struct weir_err err = {0};
    int n = weir_jobs_find(search, jobs, wanted, &err);
    cr_assert_geq(n, 0, "%s", err.text);
    return n;
}

static void put_named_job(void)
{
    put_process(10, 1, "bash", "bash", false);
    put_process(20, 10, "python", "python train.py", true);
    put_process(31, 20, "pt_data_worker", "python train.py", true);
    put_process(30, 20, "pt_data_worker", "python train.py", true);
    proc_put_task(&(struct proc_task){.pid = 20, .tid = 25, .name = "pt_data_pin", .state = 'S', .parent = 10});
}

static void assert_named_job(pid_t wanted)
{
    cr_assert_eq(find(wanted), 1, "%d", (int)wanted);
    cr_assert_eq(jobs[0].pid, 20);
    cr_assert_str_eq(jobs[0].command, "python train.py");
    cr_assert_eq(jobs[0].n_workers, 2);
    cr_assert_eq(jobs[0].workers[0], 30);
    cr_assert_eq(jobs[0].workers[1], 31);
    cr_assert_eq(jobs[0].pin_thread, 25);
    cr_assert_eq(jobs[0].rank, -1);
    cr_assert_not(jobs[0].foreign);
}

Test(training_jobs, named_workers_from_every_process_around_them)
{
    put_named_job();
    put_process(40, 1, "python", "python -m http.server", false);
    assert_named_job(0);
    assert_named_job(20);
    assert_named_job(10);
    assert_named_job(31);
    cr_assert_eq(find(40), 0);
    cr_assert_eq(find(99), 0, "missing");
}

Test(training_jobs, workers_without_their_main_process)
{
    put_process(1, 0, "init", "/sbin/init", false);
    put_process(30, 1, "pt_data_worker", "python train.py", true);
    cr_assert_eq(find(0), 0);
    put_process(1, 0, "python", "python train.py", true);
    cr_assert_eq(find(0), 1, "the main process of a container");
    cr_assert_eq(jobs[0].n_workers, 1);
}

Test(training_jobs, workers_come_and_go_and_pids_are_reused)
{
    put_named_job();
    assert_named_job(20);
    proc_delete("/proc/30");
    proc_put_task(&(struct proc_task){.pid = 31, .name = "pt_data_worker", .state = 'Z', .parent = 20});
    put_process(33, 20, "pt_data_worker", "python train.py", false);
    cr_assert_eq(find(20), 1);
    cr_assert_eq(jobs[0].n_workers, 1);
    cr_assert_eq(jobs[0].workers[0], 33);
}

Test(training_jobs, libtorch_that_is_mapped_later)
{
    put_process(20, 1, "python", "python train.py", false);
    cr_assert_eq(find(0), 0);
    proc_put("/proc/20/maps", torch_maps);
    cr_assert_eq(find(0), 1);
    cr_assert_eq(jobs[0].n_workers, 0);
    proc_put("/proc/20/maps", "");
    cr_assert_eq(find(0), 1, "remembered");
}

Test(training_jobs, unnamed_workers_of_old_torch)
{
    put_process(20, 1, "python", "python train.py", true);
    put_process(30, 20, "python", "python train.py", true);
    put_process(31, 20, "python", "python train.py", true);
    cr_assert_eq(find(0), 1);
    cr_assert_eq(jobs[0].pid, 20);
    cr_assert_eq(jobs[0].n_workers, 2);
}

Test(training_jobs, a_fork_server_is_no_worker_and_its_children_are)
{
    put_process(20, 1, "python", "python train.py", true);
    put_process(29, 20, "python", "python -c from multiprocessing.forkserver import main", true);
    put_process(28, 20, "python", "python -c from multiprocessing.resource_tracker import main", false);
    put_process(30, 29, "pt_data_worker", "python -c from multiprocessing.forkserver import main", true);
    cr_assert_eq(find(0), 1);
    cr_assert_eq(jobs[0].pid, 20);
    cr_assert_eq(jobs[0].n_workers, 1);
    cr_assert_eq(jobs[0].workers[0], 30);
}

Test(training_jobs, ranks_below_a_launcher_that_imports_torch)
{
    put_process(10, 1, "torchrun", "python torchrun train.py", true);
    put_process(22, 10, "python", "python train.py", true);
    put_process(21, 10, "python", "python train.py", true);
    put_process(30, 21, "pt_data_worker", "python train.py", true);
    put_process(31, 22, "pt_data_worker", "python train.py", true);
    put_process(50, 22, "python", "python torch/_inductor/compile_worker/__main__.py", true);
    put_environment(21, "RANK=1\nWORLD_SIZE=2");
    put_environment(22, "RANK=0\nWORLD_SIZE=2");
    cr_assert_eq(find(10), 2);
    cr_assert_eq(jobs[0].pid, 22);
    cr_assert_eq(jobs[0].rank, 0);
    cr_assert_eq(jobs[1].pid, 21);
    cr_assert_eq(jobs[1].rank, 1);
    cr_assert_eq(jobs[1].n_workers, 1);
    cr_assert_eq(find(21), 1);
}

/* ---- Weir's loader ---- */

static void put_thread(int pid, int tid, const char *name, const char *wait)
{
    proc_put_task(&(struct proc_task){.pid = pid, .tid = tid, .name = name, .state = 'S', .parent = 1, .wait = wait});
}

/* A process with a loader of three workers, and a second loader of one. */
static void put_loader(bool torch)
{
    put_process(20, 1, "weir", "weir run data", torch);
    proc_put_task(&(struct proc_task){
        .pid = 20, .name = "weir", .state = 'S', .parent = 1, .n_threads = 7, .wait = "futex_do_wait"});
    put_thread(20, 21, "weir-files", "futex_do_wait");
    put_thread(20, 22, "weir-watchdog", "futex_do_wait");
    put_thread(20, 110, "weir-w1", "hrtimer_nanosleep");
    put_thread(20, 23, "weir-w0", "futex_do_wait");
    put_thread(20, 25, "weir12-w0", "io_cqring_wait");
    put_thread(20, 26, "weir-write", "futex_do_wait");
}

Test(training_jobs, threads_of_weirs_loader_are_workers)
{
    put_process(20, 1, "weir", "weir run data", false);
    cr_assert_eq(find(20), 0, "it has no loader yet");
    put_loader(false);
    put_process(40, 1, "python", "python -m http.server", false);
    cr_assert_eq(find(0), 1);
    cr_assert(jobs[0].weir && !jobs[0].torch);
    cr_assert_str_eq(jobs[0].command, "weir run data");
    cr_assert_eq(jobs[0].n_workers, 3);
    const int tids[] = {23, 25, 110};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(jobs[0].workers[i], tids[i]);
    proc_delete("/proc/20/task/22");
    for (int i = 0; i < 3; i++) {
        char path[32];
        snprintf(path, sizeof path, "/proc/20/task/%d", tids[i]);
        proc_delete(path);
    }
    cr_assert_eq(find(0), 0, "the loader was closed");
}

Test(training_jobs, a_loader_without_workers_has_a_watchdog)
{
    put_process(20, 1, "weir", "weir run data --num-workers 0", false);
    proc_put_task(&(struct proc_task){.pid = 20, .name = "weir", .state = 'S', .parent = 1, .n_threads = 2});
    put_thread(20, 22, "weir-watchdog", NULL);
    cr_assert_eq(find(20), 1);
    cr_assert(jobs[0].weir);
    cr_assert_eq(jobs[0].n_workers, 0);
}

Test(training_jobs, a_process_with_both_loaders_has_the_dataloaders_workers)
{
    put_loader(true);
    put_process(30, 20, "pt_data_worker", "weir run data", true);
    cr_assert_eq(find(20), 1);
    cr_assert(jobs[0].torch && !jobs[0].weir);
    cr_assert_eq(jobs[0].n_workers, 1);
    cr_assert_eq(jobs[0].workers[0], 30);
}

Test(training_jobs, workers_beyond_the_maximum)
{
    put_process(20, 1, "weir", "weir run data", false);
    proc_put_task(&(struct proc_task){.pid = 20, .name = "weir", .state = 'S', .parent = 1, .n_threads = 300});
    for (int i = 0; i <= WEIR_JOB_WORKERS; i++) {
        char name[WEIR_TASK_NAME];
        snprintf(name, sizeof name, "weir-w%d", i % 1000);
        put_thread(20, 100 + i, name, NULL);
    }
    cr_assert_eq(find(20), 1);
    cr_assert_eq(jobs[0].n_workers, WEIR_JOB_WORKERS);
    cr_assert(jobs[0].more_workers);
}

/* ---- torch.multiprocessing.spawn ---- */

static const char spawned[] = "python -c from multiprocessing.spawn import spawn_main; spawn_main(pipe_handle=7)";

/* A process whose torch has a file with its version. */
static void put_torch_process(int pid, int parent, const char *command, const char *version)
{
    char path[64], text[128];
    put_process(pid, parent, "python", command, false);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    proc_put(path, "7f0-7f1 r-xp 0 08:01 9 /opt/site/torch/lib/libtorch_cpu.so\n");
    snprintf(path, sizeof path, "/proc/%d/root/opt/site/torch/version.py", pid);
    snprintf(text, sizeof text, "from typing import Optional\n__version__ = '%s'\n", version);
    proc_put(path, text);
}

/* A launcher and two processes that train, without workers. */
static void put_spawned(const char *version, const char *command)
{
    put_torch_process(20, 1, "python train.py", version);
    put_torch_process(31, 20, command, version);
    put_torch_process(32, 20, command, version);
    put_process(29, 20, "python", "python -c from multiprocessing.resource_tracker import main", false);
    proc_put("/proc/uptime", "100.00 1\n");
}

static void assert_ranks(int n, const int pids[], const int ranks[])
{
    cr_assert_eq(find(20), n);
    for (int i = 0; i < n; i++) {
        cr_assert_eq(jobs[i].pid, pids[i], "%d", i);
        cr_assert_eq(jobs[i].rank, ranks[i], "%d", i);
    }
}

Test(training_jobs, spawned_processes_that_train_are_no_workers)
{
    put_spawned("2.6.0+cu124", spawned);
    assert_ranks(2, (int[]){31, 32}, (int[]){-1, -1});
    cr_assert_eq(jobs[0].n_workers, 0);
    cr_assert_str_eq(jobs[0].command, "python train.py");
    cr_assert_eq(jobs[0].starter, 20);
    put_spawned("2.10.1", "python train.py"); /* by fork */
    assert_ranks(2, (int[]){31, 32}, (int[]){-1, -1});
}

Test(training_jobs, spawned_processes_with_workers)
{
    put_spawned("2.15.0", spawned);
    put_process(40, 31, "pt_data_worker", spawned, true);
    put_process(41, 32, "pt_data_worker", spawned, true);
    proc_put("/proc/uptime", "11.00 1\n");
    assert_ranks(2, (int[]){31, 32}, (int[]){-1, -1});
    cr_assert_eq(jobs[1].workers[0], 41);
}

/* Until a worker of spawn has imported the program, it looks like any process that trains. */
Test(training_jobs, spawned_processes_that_have_just_begun)
{
    put_spawned("2.6.0", spawned);
    proc_put("/proc/uptime", "12.00 1\n");
    assert_ranks(1, (int[]){20}, (int[]){-1});
    cr_assert_eq(jobs[0].n_workers, 0);
    cr_assert_eq(jobs[0].starter, 0);
    put_process(31, 20, "pt_data_worker", spawned, true);
    assert_ranks(1, (int[]){20}, (int[]){-1});
    cr_assert_eq(jobs[0].n_workers, 1);
}

Test(training_jobs, spawned_processes_that_have_just_begun_to_serve_a_store)
{
    put_spawned("2.6.0", spawned);
    proc_put("/proc/uptime", "12.00 1\n");
    proc_put_task(&(struct proc_task){.pid = 31, .tid = 300, .name = "pt_tcpstore_uv", .state = 'S', .parent = 20});
    assert_ranks(2, (int[]){31, 32}, (int[]){0, 1});
}

Test(training_jobs, unnamed_workers_by_the_version_of_torch)
{
    static const char *const old[] = {"2.5.1+cpu", "1.13.1", "x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        put_spawned(old[i], spawned);
        assert_ranks(1, (int[]){20}, (int[]){-1});
        cr_assert_eq(jobs[0].n_workers, 2, "%s", old[i]);
    }
}

Test(training_jobs, ranks_of_spawned_processes_begin_with_the_one_that_serves_the_store)
{
    put_spawned("2.10.0", spawned);
    put_torch_process(30, 20, spawned, "2.10.0"); /* begun before rank 0 */
    put_torch_process(50, 1, "python other.py", "2.10.0");
    proc_put_task(&(struct proc_task){.pid = 31, .tid = 300, .name = "pt_tcpstore_uv", .state = 'S', .parent = 20});
    assert_ranks(3, (int[]){30, 31, 32}, (int[]){-1, 0, 1});
    cr_assert_eq(jobs[2].world_size, 2);
    cr_assert_eq(jobs[2].local_rank, 1);
    cr_assert_eq(find(0), 4);
    put_environment(31, "RANK=4\nWORLD_SIZE=8");
    put_environment(32, "RANK=5\nWORLD_SIZE=8");
    assert_ranks(3, (int[]){30, 31, 32}, (int[]){-1, 4, 5});
}

/* The process and its fork server's child have the same command; a fork server of a child has another one. */
Test(training_jobs, fork_servers_of_processes_that_a_fork_server_has_started)
{
    static const char server[] = "python -c from multiprocessing.forkserver import main; main(3)",
                      own[] = "python -c from multiprocessing.forkserver import main; main(9)";
    put_spawned("2.15.0", server);
    put_torch_process(25, 20, server, "2.15.0");
    put_torch_process(31, 25, server, "2.15.0");
    put_torch_process(32, 25, server, "2.15.0");
    assert_ranks(2, (int[]){31, 32}, (int[]){-1, -1});
    put_torch_process(39, 31, own, "2.15.0");
    put_process(40, 39, "pt_data_worker", own, true);
    assert_ranks(2, (int[]){31, 32}, (int[]){-1, -1});
    cr_assert_eq(jobs[0].n_workers, 1);
    cr_assert_eq(jobs[0].workers[0], 40);
}

/* Each line: a process's environment, and its rank, world size and local rank. mpirun in a job of Slurm leaves Slurm's
 * variables of the task that mpirun or its daemon is. */
Test(training_jobs, launchers_in_the_order_of_ranks_h)
{
    static const struct {
        const char *environment;
        int rank, world_size, local_rank;
    } cases[] = {
        {"SLURM_PROCID=0\nSLURM_STEP_NUM_TASKS=1\nSLURM_LOCALID=0\nOMPI_COMM_WORLD_RANK=3\nOMPI_COMM_WORLD_SIZE=4\n"
         "OMPI_COMM_WORLD_LOCAL_RANK=1",
         3, 4, 1},
        {"OMPI_COMM_WORLD_RANK=0\nOMPI_COMM_WORLD_SIZE=1\nRANK=2\nWORLD_SIZE=8\nLOCAL_RANK=2", 2, 8, 2},
        {"SLURM_PROCID=1\nSLURM_STEP_NUM_TASKS=2\nSLURM_LOCALID=1", 1, 2, 1},
        {"SLURM_PROCID=0\nSLURM_NTASKS=2\nSLURM_LOCALID=0", -1, -1, -1}, /* a batch script */
        {"RANK=5\nWORLD_SIZE=2", -1, -1, -1},
        {"RANK=0", -1, -1, -1},
    };
    put_process(20, 10, "python", "python train.py", true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_environment(20, cases[i].environment);
        cr_assert_eq(find(0), 1);
        cr_expect_eq(jobs[0].rank, cases[i].rank, "%s", cases[i].environment);
        cr_expect_eq(jobs[0].world_size, cases[i].world_size, "%s", cases[i].environment);
        cr_expect_eq(jobs[0].local_rank, cases[i].local_rank, "%s", cases[i].environment);
    }
}

/* ---- watching ---- */

static struct weir_job_figures figures;

static void put_task(int pid, int tid, const char *name, char state, const char *wait, uint64_t run_ns)
{
    proc_put_task(&(struct proc_task){
        .pid = pid, .tid = tid, .name = name, .state = state, .parent = 20, .wait = wait, .run_ns = run_ns});
}

static struct weir_job_watch *open_watch(void)
{
    struct weir_job_watch *watch;
    struct weir_err err = {0};
    assert_named_job(20);
    cr_assert_eq(weir_job_watch_open(&watch, &jobs[0], proc_root, &err), 0, "%s", err.text);
    return watch;
}

Test(training_jobs, figures_of_an_interval)
{
    put_named_job();
    put_task(20, 0, "python", 'S', "poll_schedule_timeout", 0);
    put_task(20, 25, "pt_data_pin", 'S', "futex_do_wait", 0);
    put_task(30, 0, "pt_data_worker", 'R', NULL, 0);
    put_task(30, 300, "pt_data_worker", 'R', NULL, 0);
    put_task(31, 0, "pt_data_worker", 'S', "hrtimer_nanosleep", 0);
    proc_put("/proc/30/io", "rchar: 1000\nread_bytes: 400\n");
    proc_put("/proc/30/smaps_rollup", "x\nPss: 2048 kB\n");
    proc_link("/proc/30/fd/3", "/data/episode\033]0;x\a_1.hdf5");
    proc_link("/proc/30/fd/4", "pipe:[99]");
    proc_link("/proc/30/fd/5", "/tmp/log.txt");
    struct weir_job_watch *watch = open_watch();
    for (int i = 0; i < 10; i++)
        cr_assert(weir_job_watch_sample(watch));
    proc_put("/proc/30/io", "rchar: 900001000\nread_bytes: 300000400\n");
    weir_job_watch_take(watch, &figures);
    cr_assert_float_eq(figures.main.shares.of[WEIR_TASK_IDLE], 1, 1e-9);
    cr_assert(figures.has_pin);
    cr_assert_float_eq(figures.pin.of[WEIR_TASK_LOCK], 1, 1e-9);
    cr_assert_eq(figures.n_workers, 2);
    const struct weir_process_figures *worker = &figures.workers[0];
    cr_assert_eq(worker->pid, 30);
    cr_assert_float_eq(worker->ready_threads, 2, 1e-9);
    cr_assert(worker->storage_bytes_per_s > 0);
    cr_assert_float_eq(worker->cached_bytes_per_s / worker->storage_bytes_per_s, 2, 1e-6);
    cr_assert_float_eq(worker->pss_bytes, 2 << 20, 1);
    cr_assert_eq(worker->n_files, 1);
    cr_assert_str_eq(worker->files[0], "episode?]0;x?_1.hdf5", "without escape sequences");
    cr_assert_float_eq(figures.workers[1].shares.of[WEIR_TASK_SLEEP], 1, 1e-9);
    cr_assert(figures.workers[1].pss_bytes < 0 && figures.workers[1].n_files < 0, "unknown");
    cr_assert(figures.workers[1].storage_bytes_per_s < 0);
    weir_job_watch_close(watch);
}

/* Weir's loader waits on locks, so that its workers are idle; a loop with torch also waits on locks for other things.
 */
Test(training_jobs, figures_of_threads)
{
    static struct weir_job_figures total;
    for (int torch = 0; torch < 2; torch++) {
        struct weir_job_watch *watch;
        struct weir_err err = {0};
        put_loader(torch);
        proc_put("/proc/20/task/23/io", "rchar: 1000\nread_bytes: 400\n");
        cr_assert_eq(find(20), 1);
        cr_assert_eq(weir_job_watch_open(&watch, &jobs[0], proc_root, &err), 0, "%s", err.text);
        cr_assert(weir_job_watch_sample(watch));
        proc_put("/proc/20/task/23/io", "rchar: 900001000\nread_bytes: 300000400\n");
        weir_job_watch_take(watch, &figures);
        cr_assert_eq(figures.weir && figures.torch == (torch == 1), true);
        cr_assert_float_eq(figures.main.shares.of[torch ? WEIR_TASK_LOCK : WEIR_TASK_IDLE], 1, 1e-9);
        cr_assert_str_eq(figures.main.name, "");
        cr_assert_eq(figures.n_workers, 3);
        cr_assert_eq(figures.workers[0].pid, 23);
        cr_assert_str_eq(figures.workers[0].name, "weir-w0");
        cr_assert_float_eq(figures.workers[0].shares.of[WEIR_TASK_IDLE], 1, 1e-9);
        cr_assert_float_eq(figures.workers[0].cached_bytes_per_s / figures.workers[0].storage_bytes_per_s, 2, 1e-6);
        cr_assert_float_eq(figures.workers[1].shares.of[WEIR_TASK_STORAGE], 1, 1e-9);
        cr_assert_str_eq(figures.workers[2].name, "weir-w1");
        cr_assert_float_eq(figures.workers[2].shares.of[WEIR_TASK_SLEEP], 1, 1e-9);
        cr_assert(figures.workers[0].pss_bytes < 0 && figures.workers[0].n_threads < 0, "the process has them");
        memset(&total, 0, sizeof total);
        weir_job_figures_add(&total, &figures);
        cr_assert_str_eq(total.workers[2].name, "weir-w1");
        cr_assert(total.weir);
        proc_delete("/proc/20/task/110");
        cr_assert(weir_job_watch_sample(watch));
        weir_job_watch_take(watch, &figures);
        cr_assert_eq(find(20), 1);
        put_process(30, 20, "pt_data_worker", "weir run data", true);
        weir_job_watch_update(watch, &jobs[0]);
        weir_job_watch_take(watch, &figures);
        cr_assert_eq(figures.n_workers, 2);
        cr_assert_eq(find(20), 1);
        weir_job_watch_update(watch, &jobs[0]);
        weir_job_watch_take(watch, &figures);
        cr_assert_eq(figures.n_workers, 1, "a DataLoader's worker replaces the threads");
        cr_assert_eq(figures.workers[0].pid, 30);
        cr_assert_not(figures.weir);
        weir_job_watch_close(watch);
        proc_delete("/proc/30");
    }
}

Test(training_jobs, new_workers_are_followed)
{
    put_named_job();
    struct weir_job_watch *watch = open_watch();
    proc_delete("/proc/30");
    put_process(35, 20, "pt_data_worker", "python train.py", true);
    proc_delete("/proc/20/task/25");
    cr_assert(weir_job_watch_sample(watch));
    weir_job_watch_take(watch, &figures);
    cr_assert(figures.workers[0].ended);
    cr_assert_eq(find(20), 1);
    weir_job_watch_update(watch, &jobs[0]);
    cr_assert(weir_job_watch_sample(watch));
    weir_job_watch_take(watch, &figures);
    cr_assert_not(figures.has_pin);
    cr_assert_eq(figures.workers_begun, 1);
    cr_assert_eq(figures.workers_ended, 1);
    cr_assert_eq(figures.n_workers, 2);
    cr_assert_eq(figures.workers[0].pid, 31);
    cr_assert(figures.workers[0].age_s < 0);
    cr_assert_eq(figures.workers[1].pid, 35);
    cr_assert(figures.workers[1].age_s >= 0);
    proc_delete("/proc/20");
    cr_assert_not(weir_job_watch_sample(watch));
    weir_job_watch_close(watch);
}

Test(training_jobs, a_training_loop_on_another_thread)
{
    put_named_job();
    put_task(20, 0, "python", 'S', "futex_do_wait", 0);
    put_task(20, 26, "python", 'R', NULL, 0);
    put_task(20, 27, "pt_autograd_0", 'R', NULL, 0);
    struct weir_job_watch *watch = open_watch();
    cr_assert(weir_job_watch_sample(watch));
    put_task(20, 26, "python", 'S', "hrtimer_nanosleep", 3600000000000);
    put_task(20, 27, "pt_autograd_0", 'R', NULL, 7200000000000);
    weir_job_watch_take(watch, &figures);
    cr_assert_float_eq(figures.main.shares.of[WEIR_TASK_LOCK], 1, 1e-9);
    cr_assert_float_eq(figures.other_thread, 1, 1e-9);
    cr_assert(weir_job_watch_sample(watch));
    weir_job_watch_take(watch, &figures);
    cr_assert_float_eq(figures.main.shares.of[WEIR_TASK_SLEEP], 1, 1e-9);
    weir_job_watch_close(watch);
}

Test(training_jobs, names_of_datasets)
{
    cr_assert(weir_is_dataset_file("/a/b.HDF5"));
    cr_assert(weir_is_dataset_file("/a/x.tfrecord-00001-of-00010"));
    cr_assert_not(weir_is_dataset_file("/a/hdf5"));
    cr_assert_not(weir_is_dataset_file(".h5"));
    cr_assert_not(weir_is_dataset_file("/usr/lib/libz.so.1"));
}
