/* ranks.h: this process's rank in a distributed run, from options or the launcher's environment. */
#ifndef WEIR_BASE_RANKS_H
#define WEIR_BASE_RANKS_H

#include "weir/base.h"

enum { WEIR_RANKS_AUTO = -1 }; /* not given by options */

struct weir_ranks {
    int rank, world_size;
    const char *source;         /* "torchrun's environment"; NULL: from options, or 0 of 1 */
    int local_rank, local_size; /* on this machine; 0 of 1 */
    int local_cores;            /* CPUs that their launcher may use; 0 = unknown */
};

/* rank and world_size come from options, or are WEIR_RANKS_AUTO. Options take precedence, and must be given together.
 * Environments: torchrun (RANK, WORLD_SIZE), srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS: of the step, so that a program
 * started directly in a batch script is alone), Open MPI (OMPI_COMM_WORLD_RANK, _SIZE) and MPICH (PMI_RANK, PMI_SIZE).
 * -EINVAL: impossible numbers.
 *
 * Local ranks always come from the environment: torchrun's LOCAL_RANK and LOCAL_WORLD_SIZE, Open MPI's
 * OMPI_COMM_WORLD_LOCAL_RANK and _LOCAL_SIZE, Hydra's (MPICH, Intel MPI) MPI_LOCALRANKID and MPI_LOCALNRANKS,
 * PMI_LOCAL_RANK and PMI_LOCAL_SIZE, and srun's SLURM_LOCALID with SLURM_STEP_TASKS_PER_NODE, SLURM_NTASKS_PER_NODE or,
 * on one node, SLURM_STEP_NUM_TASKS. If the size is missing it is local_rank + 1. */
int weir_ranks_find(struct weir_ranks *ranks, int rank, int world_size, struct weir_err *err);

#endif
