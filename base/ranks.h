/* ranks.h: determines this process's rank in a distributed run from options or from the launcher's environment. */
#ifndef WEIR_BASE_RANKS_H
#define WEIR_BASE_RANKS_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_RANKS_AUTO = -1 }; /* the option was not used */

struct weir_ranks {
    int rank, world_size;
    const char *source;         /* "torchrun's environment"; NULL = from options, or there is only one process */
    int local_rank, local_size; /* among the processes on this machine; 0 of 1 for a single process */
    int local_cores;            /* CPUs that the launcher of these processes may use; 0 = unknown */
};

/* rank and world_size are the values of options, or WEIR_RANKS_AUTO. The two options must be used together and take
 * precedence over the environment. Supported launchers, in order of precedence: torchrun (RANK, WORLD_SIZE), Open MPI
 * (OMPI_COMM_WORLD_RANK, _SIZE), MPICH (PMI_RANK, PMI_SIZE) and srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS). For srun,
 * the size is that of the step, so a program started directly by a batch script is a single process. Returns 0, or
 * -EINVAL if the numbers are invalid.
 *
 * Local ranks always come from the environment: torchrun's LOCAL_RANK and LOCAL_WORLD_SIZE, Open MPI's
 * OMPI_COMM_WORLD_LOCAL_RANK and _LOCAL_SIZE, MPI_LOCALRANKID and MPI_LOCALNRANKS from Hydra (MPICH, Intel MPI),
 * PMI_LOCAL_RANK and PMI_LOCAL_SIZE, and srun's SLURM_LOCALID with SLURM_STEP_TASKS_PER_NODE, SLURM_NTASKS_PER_NODE or,
 * on a single node, SLURM_STEP_NUM_TASKS. If the size is missing, it is local_rank + 1. */
int weir_ranks_find(struct weir_ranks *ranks, int rank, int world_size, struct weir_err *err);

/* Copies the value of a variable of a process's environment. Returns false if it is missing or does not fit. */
typedef bool weir_ranks_variable(void *user, const char *name, char *value, size_t size);

/* What a launcher has told any process, by the same variables in the same order. -1 = not told, or invalid. */
struct weir_launched {
    int rank, world_size, local_rank;
};
/* variable NULL: this process. */
void weir_ranks_launched(struct weir_launched *launched, weir_ranks_variable *variable, void *user);

#endif
