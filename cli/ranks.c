#include "cli/ranks.h"
#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>

enum { WORLD_MAX = 1 << 20 };

static const struct launcher {
    const char *rank, *size, *source;
} launchers[] = {
    {"RANK", "WORLD_SIZE", "torchrun's environment"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpirun's environment"},
    {"PMI_RANK", "PMI_SIZE", "mpiexec's environment"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun's environment"},
};

static bool read_number(const char *text, int *number)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    *number = (int)value;
    return end != text && !*end && !errno && value >= 0 && value <= WORLD_MAX;
}

static int read_launcher(const struct launcher *launcher, struct weir_ranks *ranks, struct weir_err *err)
{
    const char *rank = getenv(launcher->rank), *size = getenv(launcher->size);
    if (!rank || !size)
        return 0;
    if (!read_number(rank, &ranks->rank) || !read_number(size, &ranks->world_size) || ranks->world_size < 1 ||
        ranks->rank >= ranks->world_size)
        return weir_err_set(err, -EINVAL,
                            "%s=%s and %s=%s are no rank and world size; unset them, or give --rank and "
                            "--world-size",
                            launcher->rank, rank, launcher->size, size);
    ranks->source = launcher->source;
    return 1;
}

int weir_ranks_find(struct weir_ranks *ranks, int rank, int world_size, struct weir_err *err)
{
    *ranks = (struct weir_ranks){0, 1, NULL};
    if ((rank == WEIR_OPT_AUTO) != (world_size == WEIR_OPT_AUTO))
        return weir_err_set(err, -EINVAL, "--rank and --world-size want each other");
    if (rank != WEIR_OPT_AUTO) {
        *ranks = (struct weir_ranks){rank, world_size, NULL};
        return rank < world_size ? 0
                                 : weir_err_set(err, -EINVAL, "--rank %d of --world-size %d: ranks are numbered from 0",
                                                rank, world_size);
    }
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        int rc = read_launcher(&launchers[i], ranks, err);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    return 0;
}
