/* helper_spawner.h: starts processes of the helper program, weir-hdf5: HDF5 helpers, processes that hold LMDB read
 * transactions, and the spawner, which forks the other two kinds.
 *
 * The program is started with posix_spawn, because a process that has threads or uses CUDA cannot be forked safely. The
 * program is single-threaded, so its children start without held locks. Only the program is linked with the HDF5
 * library. It forks the spawner and exits. init adopts the spawner, so programs that wait for their children do not see
 * it. One spawner serves all datasets and ends with the process that started it; a forked process gets a new spawner.
 * Any thread may call these functions. */
#ifndef WEIR_DATASETS_HELPER_HELPER_SPAWNER_H
#define WEIR_DATASETS_HELPER_HELPER_SPAWNER_H

#include "weir/base.h"

#include <stdint.h>
#include <sys/types.h>

/* Purpose of a helper process. It is also the index of its function in the program's table. */
enum weir_helper_kind { WEIR_HELPER_HDF5, WEIR_HELPER_LMDB, WEIR_HELPER_KINDS };

/* Forks a process of this kind, whose only descriptors are /dev/null and its socket. *fd is the other end of the
 * socket, which the caller closes. The process is killed when the spawner ends, and therefore when the caller's process
 * ends. The program is the file in the environment variable WEIR_HDF5_HELPER. Without this variable, weir-hdf5 is
 * searched for next to the program or library that contains this code, then in ../bin and ../../bin relative to it, in
 * the Python package, and on the PATH. */
int weir_helper_spawn(enum weir_helper_kind kind, pid_t *pid, int *fd, struct weir_err *err);

/* Kills the process if it is still running. Returns its wait status, or 0 if the spawner is gone. */
int weir_helper_reap(pid_t pid);

/* ---- in the helper program ---- */

/* Serves the loader over a socket until the loader closes it; the process then exits. */
typedef void weir_helper_serve_fn(int fd);

/* The main function of the program; returns its exit status. serve: n functions, one per kind. */
int weir_helper_program(int argc, weir_helper_serve_fn *const *serve, int n);

/* ---- messages ---- */

enum { WEIR_HELPER_FD = 3 /* the spawner's end of the socket */ };

/* The spawner's first message, which proves that both sides are from the same build. After it, the spawner sends one
 * result per command. */
struct weir_helper_hello {
    char name[16];
    uint32_t abi, bytes[4]; /* sizes of the messages */
};
/* Defined next to the structs whose sizes it contains. */
struct weir_helper_hello weir_helper_hello(void);

struct weir_helper_command {
    pid_t end; /* the helper process to end; 0 = fork a new one */
    int kind;
};

struct weir_helper_result {
    int rc, status;
    pid_t pid; /* pid of the new process; the descriptor of its socket is sent with it */
};

/* Return false if the other side is gone. timeout_s: maximum time without data; negative = unlimited. */
bool weir_helper_send(int fd, const void *data, size_t n);
bool weir_helper_receive(int fd, void *data, size_t n, int timeout_s);

#endif
