/* proc.h: figures that the kernel keeps of processes, threads and the machine. Of any process and its threads:
 * /proc/PID. root is prepended to every path: "" for the machine itself, or a directory tree created by a test. All
 * functions can be called on any thread. */
#ifndef WEIR_BASE_PROC_H
#define WEIR_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { WEIR_PROC_PATH = 512, WEIR_TASK_NAME = 16 };

/* Builds the path of a file of the process (tid 0) or of its thread. */
bool weir_proc_path(char path[WEIR_PROC_PATH], const char *root, pid_t pid, pid_t tid, const char *name);
/* Reads at most size - 1 bytes and ends them with '\0'. Returns their number, or -1. The kernel returns short files of
 * /proc by one call. */
ssize_t weir_proc_read(char *text, size_t size, const char *root, pid_t pid, pid_t tid, const char *name);

/* Converts the kernel's clock ticks. */
uint64_t weir_ticks_to_ns(uint64_t ticks);

/* A process or one of its threads, from /proc/PID[/task/TID]/stat. */
struct weir_task_stat {
    char name[WEIR_TASK_NAME]; /* comm, made printable */
    char state;                /* R running or ready, S asleep, D asleep in the kernel, T stopped, Z ended, ... */
    pid_t parent;
    int n_threads;
    uint64_t start_ticks;         /* since boot; with the PID, identifies the process */
    uint64_t page_faults;         /* major: the page was read from storage */
    uint64_t cpu_ns, children_ns; /* CPU time, and that of reaped children; in ticks of about 10 ms */
};
/* tid: 0 for the process as a whole. Returns false if it has ended. */
bool weir_task_stat_read(struct weir_task_stat *stat, const char *root, pid_t pid, pid_t tid);

/* Copies the value of a variable of the environment that the process was started with. Returns false if the variable is
 * missing or its value does not fit. */
bool weir_process_variable(const char *root, pid_t pid, const char *name, char *value, size_t size);

/* Counters of this process and of the machine. */

/* Sets *delay_ns to the time that a thread of this process has been runnable without a core since it was created,
 * because other threads were running or its cgroup's quota was used up (/proc/self/task/TID/schedstat). Returns false
 * if the kernel does not count this. Thread-safe; takes about 20 us. */
bool weir_run_delay_ns(pid_t tid, uint64_t *delay_ns);

/* Times summed over all CPUs since boot, in clock ticks (/proc/stat). steal is the time that a hypervisor gave to other
 * machines although this one had work; busy includes it. Both are 0 if they are unavailable. */
struct weir_machine_time {
    uint64_t busy, steal;
};
void weir_machine_time_read(struct weir_machine_time *time, const char *root);

/* Returns the number of bytes that this process has read from storage, excluding page cache hits (read_bytes of
 * /proc/self/io), or UINT64_MAX if it is unavailable. Takes about 20 us. */
uint64_t weir_storage_bytes(void);

#endif
