/* process_files.h: reads /proc/PID of processes of other programs and of their threads.
 *
 * root is prepended to every path: "" for the machine itself, or a directory tree created by a test. For processes of
 * other users, the kernel shows stat and schedstat only. Unreadable figures are unknown, which is no error. All
 * functions can be called on any thread. */
#ifndef WEIR_PROF_PROCESSES_PROCESS_FILES_H
#define WEIR_PROF_PROCESSES_PROCESS_FILES_H

#include "base/proc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { WEIR_TASK_WAIT = 64 };

/* Returns the seconds since boot, or 0 if they are unknown. */
double weir_uptime_s(const char *root);

/* Times on a core, and waiting for a core, since the thread was created (/proc/PID/task/TID/schedstat). */
struct weir_task_times {
    uint64_t run_ns, delay_ns;
};
bool weir_task_times_read(struct weir_task_times *times, const char *root, pid_t pid, pid_t tid);

/* Copies the name of the kernel function in which the thread sleeps, without suffixes such as ".constprop.0". Returns
 * false, with an empty name, if the thread is awake or the kernel hides the name. */
bool weir_task_wait_read(char function[WEIR_TASK_WAIT], const char *root, pid_t pid, pid_t tid);
/* The same for a file that stays open, which is three times as fast. weir_task_wait_open returns a descriptor for
 * close(), or -1, with which nothing is known. */
int weir_task_wait_open(const char *root, pid_t pid, pid_t tid);
bool weir_task_wait_read_at(char function[WEIR_TASK_WAIT], int fd);

/* Returns the bytes that the process (tid 0) or its thread has read from storage, without page cache hits, or
 * UINT64_MAX. Sets *asked to the bytes that its system calls have read (rchar), from the page cache, pipes and sockets
 * too. */
uint64_t weir_task_storage_bytes(const char *root, pid_t pid, pid_t tid, uint64_t *asked);

/* Returns the proportional set size in bytes (each shared page divided by the number of its processes), or 0 if it is
 * unknown. Takes 1 to 50 ms for a process with much memory. */
uint64_t weir_process_pss_bytes(const char *root, pid_t pid);

/* Returns whether the process has mapped a file whose name begins with `library`, such as "libtorch", and copies its
 * path, cut to `size`, as the process sees it. */
bool weir_process_library(const char *root, pid_t pid, const char *library, char *path, size_t size);

/* Copies the command line, made printable and cut to `size`, with spaces between arguments. Returns false if it is
 * empty. */
bool weir_process_command(const char *root, pid_t pid, char *text, size_t size);

/* Returns the user of the process, or (uid_t)-1. */
uid_t weir_process_user(const char *root, pid_t pid);

/* Calls `each` with the path of every file that the process has open, until it returns false. Returns false if the
 * files cannot be read. */
typedef bool weir_each_file(void *user, const char *path);
bool weir_process_files(const char *root, pid_t pid, weir_each_file *each, void *user);

/* Call `each` for every process, and for every thread of a process, in no particular order, until it returns false. */
typedef bool weir_each_id(void *user, pid_t id);
void weir_processes_each(const char *root, weir_each_id *each, void *user);
void weir_threads_each(const char *root, pid_t pid, weir_each_id *each, void *user);

#endif
