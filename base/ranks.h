/* ranks.h: which part of a distributed run this process is, by option or by what its launcher left in the environment.
 */
#ifndef WEIR_BASE_RANKS_H
#define WEIR_BASE_RANKS_H

#include "weir/base.h"

enum { WEIR_RANKS_AUTO = -1 }; /* not given by options */

struct weir_ranks {
    int rank, world_size;
    const char *source;         /* "torchrun's environment"; NULL: given by options, or not given at all (0 of 1) */
    int local_rank, local_size; /* of the processes on this machine; 0 of 1 */
    int local_cores;            /* CPUs that their launcher may use; 0 = not known */
};

/* rank, world_size: as given by options, WEIR_RANKS_AUTO when not. Options win; given one, the other is wanted, too.
 * Knows torchrun (RANK, WORLD_SIZE), srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS: those of a step, so that a program
 * started in a batch script by itself is not one of many), Open MPI (OMPI_COMM_WORLD_RANK, _SIZE) and MPICH (PMI_RANK,
 * PMI_SIZE). -EINVAL: numbers that cannot be.
 *
 * Local ranks are facts of the machine, whatever the options: torchrun's LOCAL_RANK and LOCAL_WORLD_SIZE, Open MPI's
 * OMPI_COMM_WORLD_LOCAL_RANK and _LOCAL_SIZE, those of Hydra (MPICH, Intel MPI: MPI_LOCALRANKID and MPI_LOCALNRANKS),
 * PMI_LOCAL_RANK and PMI_LOCAL_SIZE, and srun's SLURM_LOCALID with SLURM_STEP_TASKS_PER_NODE, SLURM_NTASKS_PER_NODE or,
 * on one node, SLURM_STEP_NUM_TASKS. Without a size there are at least local_rank + 1. */
int weir_ranks_find(struct weir_ranks *ranks, int rank, int world_size, struct weir_err *err);

#endif
