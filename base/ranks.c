#include "base/ranks.h"
#include "base/proc.h"
#include "base/resources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORLD_MAX = 1 << 20, PARENTS_MAX = 16, VALUE_BYTES = 64 };

/* The environment of a process. */
struct environment {
    weir_ranks_variable *variable;
    void *user;
};

static bool read_own(void *user, const char *name, char *value, size_t size)
{
    (void)user;
    const char *text = getenv(name);
    if (text)
        snprintf(value, size, "%s", text);
    return text;
}

static const struct environment own = {read_own, NULL};

static bool get(const struct environment *env, const char *name, char value[VALUE_BYTES])
{
    return env->variable(env->user, name, value, VALUE_BYTES);
}

/* ---- ranks ---- */

/* In order of precedence: torchrun can be started by mpirun or srun, and mpirun in a job of Slurm. */
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

static int read_launcher(const struct launcher *launcher, const struct environment *env, struct weir_ranks *ranks,
                         struct weir_err *err)
{
    char rank[VALUE_BYTES], size[VALUE_BYTES];
    if (!get(env, launcher->rank, rank) || !get(env, launcher->size, size))
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

/* Returns 1 if the environment contains a rank, 0 if not, or -EINVAL. */
static int read_launchers(const struct environment *env, struct weir_ranks *ranks, struct weir_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && rc == 0; i++)
        rc = read_launcher(&launchers[i], env, ranks, err);
    return rc;
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
    char text[VALUE_BYTES];
    int number;
    return get(&own, name, text) && read_number(text, &number) ? number : otherwise;
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
static const struct local_launcher *find_local(const struct environment *env, char rank[VALUE_BYTES])
{
    char step[VALUE_BYTES];
    for (size_t i = 0; i < sizeof local_launchers / sizeof *local_launchers; i++)
        if (get(env, local_launchers[i].rank, rank) &&
            (local_launchers[i].size || get(env, "SLURM_STEP_NUM_TASKS", step)))
            return &local_launchers[i];
    return NULL;
}

/* Returns true if the process was started with NAME=VALUE in its environment. */
static bool started_with(int pid, const char *name, const char *value)
{
    char text[VALUE_BYTES];
    return weir_process_variable("", pid, name, text, sizeof text) && strcmp(text, value) == 0;
}

/* Returns the number of CPUs that the launcher may use. The launcher is the first ancestor without this rank in its
 * environment. A script that runs this program has the rank too, so it is skipped. */
static int launcher_cores(const char *name, const char *value)
{
    int pid = getppid();
    struct weir_task_stat stat;
    for (int i = 0; i < PARENTS_MAX && pid > 0 && started_with(pid, name, value); i++)
        pid = weir_task_stat_read(&stat, "", pid, 0) ? stat.parent : 0;
    return pid > 0 ? weir_cores_affinity(pid) : 0;
}

static int find_local_ranks(struct weir_ranks *ranks, struct weir_err *err)
{
    char rank[VALUE_BYTES];
    const struct local_launcher *launcher = find_local(&own, rank);
    if (!launcher)
        return 0;
    const char *size = launcher->size ? getenv(launcher->size) : NULL;
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

/* ---- this process and others ---- */

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
    int rc = read_launchers(&own, ranks, err);
    return rc < 0 ? rc : 0;
}

int weir_ranks_find(struct weir_ranks *ranks, int rank, int world_size, struct weir_err *err)
{
    *ranks = (struct weir_ranks){.world_size = 1, .local_size = 1};
    int rc = find_ranks(ranks, rank, world_size, err);
    return rc == 0 ? find_local_ranks(ranks, err) : rc;
}

void weir_ranks_launched(struct weir_launched *launched, weir_ranks_variable *variable, void *user)
{
    const struct environment other = {variable, user}, *env = variable ? &other : &own;
    char local_rank[VALUE_BYTES];
    struct weir_ranks ranks;
    *launched = (struct weir_launched){.rank = -1, .world_size = -1, .local_rank = -1};
    if (read_launchers(env, &ranks, NULL) > 0) {
        launched->rank = ranks.rank;
        launched->world_size = ranks.world_size;
    }
    if (find_local(env, local_rank) && !read_number(local_rank, &launched->local_rank))
        launched->local_rank = -1;
}
