/* helper_spawner.h: the helper program, weir-hdf5, and the processes that it consists of: HDF5 helper processes,
 * holds of LMDB files, and the spawner, which forks them.
 *
 * The program is started by posix_spawn, because a process that has threads or uses CUDA cannot be forked safely. It
 * has one thread, so its children start without a lock held, and it alone is linked with the HDF5 library. It forks the
 * spawner and ends, so the spawner belongs to init: programs that wait for their children do not see it. The spawner
 * stays for all datasets, and ends with the process that started it; a process that was itself forked gets a spawner of
 * its own. Any thread may call these. */
#ifndef WEIR_DATASETS_HELPER_HELPER_SPAWNER_H
#define WEIR_DATASETS_HELPER_HELPER_SPAWNER_H

#include "weir/base.h"

#include <stdint.h>
#include <sys/types.h>

/* What a helper process is for: the place of its function in the program's table. */
enum weir_helper_kind { WEIR_HELPER_HDF5, WEIR_HELPER_LMDB, WEIR_HELPER_KINDS };

/* Forks a process of this kind. It has no other descriptors but /dev/null and its socket. *fd is the other end of
 * that, for the caller to close. It is killed when the spawner ends, and so with the caller's process. The program is
 * the file that the environment variable WEIR_HDF5_HELPER names, or weir-hdf5 beside the program or library that this
 * is in, or in ../bin or ../../bin from there, or on the PATH. */
int weir_helper_spawn(enum weir_helper_kind kind, pid_t *pid, int *fd, struct weir_err *err);

/* Kills such a process if it still runs, and returns its wait status; 0 when the spawner is gone. */
int weir_helper_reap(pid_t pid);

/* ---- in the helper program ---- */

/* Serves the loader over its end of a socket until the loader is gone; the process then ends. */
typedef void weir_helper_serve_fn(int fd);

/* All that main has to do, and its exit status. serve: n functions, a kind each. */
int weir_helper_program(int argc, weir_helper_serve_fn *const *serve, int n);

/* ---- what the two send each other ---- */

enum { WEIR_HELPER_FD = 3 /* the spawner's end of the socket */ };

/* First from the spawner: it is of the same build. Then a result for each command. */
struct weir_helper_hello {
    char name[16];
    uint32_t abi, bytes[4]; /* of what is sent */
};
/* Defined beside the structs that it measures. */
struct weir_helper_hello weir_helper_hello(void);

struct weir_helper_command {
    pid_t end; /* the helper to end; 0: fork a new one */
    int kind;
};

struct weir_helper_result {
    int rc, status;
    pid_t pid; /* the descriptor of its socket comes along */
};

/* False when the other side is gone. timeout_s: of silence; negative = none. */
bool weir_helper_send(int fd, const void *data, size_t n);
bool weir_helper_receive(int fd, void *data, size_t n, int timeout_s);

#endif
