#include "base/ranks.h"
#include "base/resources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORLD_MAX = 1 << 20, PARENTS_MAX = 16 };

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
                            "%s=%s and %s=%s are not a valid rank and world size; unset them, or use --rank and "
                            "--world-size",
                            launcher->rank, rank, launcher->size, size);
    ranks->source = launcher->source;
    return 1;
}

/* ---- local ranks ---- */

static const struct local_launcher {
    const char *rank, *size; /* size is NULL for srun, which uses several variables */
} local_launchers[] = {
    {"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"},
    {"SLURM_LOCALID", NULL},
};

/* Parses a list such as "4(x2),3": nodes 0 and 1 have 4 tasks each, and node 2 has 3. Returns 0 if the list is invalid
 * or too short. */
static int tasks_on_node(const char *list, int node)
{
    while (list && *list) {
        int tasks = 0, nodes = 1, length = 0;
        if (sscanf(list, "%d(x%d)%n", &tasks, &nodes, &length) < 2 || length == 0) {
            nodes = 1;
            if (sscanf(list, "%d%n", &tasks, &length) < 1)
                return 0;
        }
        if (tasks < 1 || nodes < 1)
            return 0;
        if (node < nodes)
            return tasks;
        node -= nodes;
        list += length;
        list += *list == ',';
    }
    return 0;
}

static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    int number;
    return text && read_number(text, &number) ? number : otherwise;
}

/* Returns 0 if the environment does not contain the size. */
static int slurm_local_size(void)
{
    int tasks = tasks_on_node(getenv("SLURM_STEP_TASKS_PER_NODE"), number_of("SLURM_NODEID", 0));
    if (tasks == 0)
        tasks = number_of("SLURM_NTASKS_PER_NODE", 0);
    if (tasks == 0 && number_of("SLURM_STEP_NUM_NODES", 0) == 1)
        tasks = number_of("SLURM_STEP_NUM_TASKS", 0);
    return tasks;
}

/* SLURM_LOCALID is ignored outside a step, because a batch script runs as task 0 without belonging to any step. */
static const struct local_launcher *find_local(void)
{
    for (size_t i = 0; i < sizeof local_launchers / sizeof *local_launchers; i++)
        if (getenv(local_launchers[i].rank) && (local_launchers[i].size || getenv("SLURM_STEP_NUM_TASKS")))
            return &local_launchers[i];
    return NULL;
}

/* Returns the parent of a process from /proc/PID/stat, "12 (name) S PARENT ...", where the name may contain any
 * character. 0 = unknown. */
static int parent_of(int pid)
{
    char path[64], line[1024];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    const char *end = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    if (f)
        fclose(f);
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Returns true if the environment with which the process was started contains NAME=VALUE. */
static bool started_with(int pid, const char *name, const char *value)
{
    char path[64], wanted[128], *word = NULL;
    size_t size = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    snprintf(wanted, sizeof wanted, "%s=%s", name, value);
    FILE *f = fopen(path, "re");
    while (f && !found && getdelim(&word, &size, '\0', f) > 0)
        found = strcmp(word, wanted) == 0;
    free(word);
    if (f)
        fclose(f);
    return found;
}

/* Returns the number of CPUs that the launcher may use. The launcher is the first ancestor without this rank in its
 * environment. A script that runs this program has the rank too, so it is skipped. */
static int launcher_cores(const char *name, const char *value)
{
    int pid = getppid();
    for (int i = 0; i < PARENTS_MAX && pid > 0 && started_with(pid, name, value); i++)
        pid = parent_of(pid);
    return pid > 0 ? weir_cores_affinity(pid) : 0;
}

static int find_local_ranks(struct weir_ranks *ranks, struct weir_err *err)
{
    const struct local_launcher *launcher = find_local();
    if (!launcher)
        return 0;
    const char *rank = getenv(launcher->rank), *size = launcher->size ? getenv(launcher->size) : NULL;
    int n = launcher->size ? 0 : slurm_local_size();
    bool fine = read_number(rank, &ranks->local_rank) && (!size || (read_number(size, &n) && n >= 1));
    if (!fine || (n > 0 && ranks->local_rank >= n))
        return weir_err_set(
            err, -EINVAL, "%s=%.40s is not a valid local rank%s%s%s%.40s; unset it, or number local ranks from 0",
            launcher->rank, rank, size ? " for " : "", size ? launcher->size : "", size ? "=" : "", size ? size : "");
    ranks->local_size = n > 0 ? n : ranks->local_rank + 1;
    if (ranks->local_size > 1)
        ranks->local_cores = launcher_cores(launcher->rank, rank);
    return 0;
}

/* ---- ranks ---- */

static int find_ranks(struct weir_ranks *ranks, int rank, int world_size, struct weir_err *err)
{
    if ((rank == WEIR_RANKS_AUTO) != (world_size == WEIR_RANKS_AUTO))
        return weir_err_set(err, -EINVAL, "--rank and --world-size must be used together: specify both or neither");
    if (rank != WEIR_RANKS_AUTO) {
        ranks->rank = rank;
        ranks->world_size = world_size;
        return rank < world_size
                   ? 0
                   : weir_err_set(err, -EINVAL, "--rank %d: must be less than --world-size %d", rank, world_size);
    }
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        int rc = read_launcher(&launchers[i], ranks, err);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    return 0;
}

int weir_ranks_find(struct weir_ranks *ranks, int rank, int world_size, struct weir_err *err)
{
    *ranks = (struct weir_ranks){.world_size = 1, .local_size = 1};
    int rc = find_ranks(ranks, rank, world_size, err);
    return rc == 0 ? find_local_ranks(ranks, err) : rc;
}
