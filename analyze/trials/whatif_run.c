/* Child processes of the experiment: their CPUs, command lines, times and errors. */
#include "analyze/trials/whatif_run.h"
#include "analyze/trials/whatif_priv.h"
#include "pipeline/loader_options.h"

#include <sched.h>
#include <string.h>

/* ---- CPUs of children ---- */

static cpu_set_t had;
static bool restricted;

/* Returns the first CPU of the core, or `cpu` itself if the kernel does not report siblings. */
static int first_sibling(int cpu)
{
    char path[96];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &first) != 1)
        first = cpu;
    if (file)
        fclose(file);
    return first;
}

/* Chooses one CPU of each core first, then their siblings. */
static void choose(cpu_set_t *to, int cpus)
{
    CPU_ZERO(to);
    for (int round = 0; round < 2; round++)
        for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(to) < cpus; cpu++) {
            int first = CPU_ISSET(cpu, &had) ? first_sibling(cpu) : -1;
            bool sibling = first >= 0 && first < CPU_SETSIZE && first != cpu && CPU_ISSET(first, &had);
            if (CPU_ISSET(cpu, &had) && sibling == (round == 1))
                CPU_SET(cpu, to);
        }
}

void whatif_set_cpus(int cpus)
{
    cpu_set_t to;
    if (restricted && cpus <= 0)
        sched_setaffinity(0, sizeof had, &had);
    restricted = cpus > 0 && sched_getaffinity(0, sizeof had, &had) == 0;
    if (!restricted)
        return;
    choose(&to, cpus);
    sched_setaffinity(0, sizeof to, &to);
}

void whatif_cpu_list(int cpus, char *text, size_t size)
{
    cpu_set_t to;
    size_t used = 0;
    *text = '\0';
    if (!restricted && sched_getaffinity(0, sizeof had, &had) != 0)
        return;
    choose(&to, cpus);
    for (int cpu = 0, last = -1; cpu < CPU_SETSIZE && used < size; cpu++) {
        bool begins = CPU_ISSET(cpu, &to) && (cpu == 0 || !CPU_ISSET(cpu - 1, &to));
        bool ends = CPU_ISSET(cpu, &to) && (cpu + 1 == CPU_SETSIZE || !CPU_ISSET(cpu + 1, &to));
        if (begins)
            last = cpu;
        if (ends)
            used +=
                (size_t)snprintf(text + used, size - used, cpu > last ? "%s%d-%d" : "%s%d", used ? "," : "", last, cpu);
    }
}

/* ---- command lines ---- */

static void add_own_options(struct weir_words *words, const struct weir_run_options *run)
{
    char step[32];
    snprintf(step, sizeof step, "%.15g", run->step_ms);
    if (run->step_ms != 0)
        weir_words_add_option(words, "step-ms", step);
    if (run->mean)
        weir_words_add_option(words, "mean", run->mean);
    if (run->std)
        weir_words_add_option(words, "std", run->std);
    if (run->step_spin)
        weir_words_add_option(words, "step-spin", NULL);
    if (run->sync_steps)
        weir_words_add_option(words, "sync-steps", NULL);
}

void weir_run_words(struct weir_words *words, const struct weir_run_options *run, const char *data)
{
    weir_words_add(words, "weir");
    weir_words_add(words, "run");
    weir_words_add(words, data);
    weir_words_add_options(words, weir_loader_opts, WEIR_FOR_RUN, &run->loader);
    add_own_options(words, run);
}

/* ---- time ---- */

double whatif_seconds(const struct whatif *w)
{
    return (double)(weir_clock_monotonic_ns() - w->begin_ns) / 1e9;
}

double whatif_seconds_left(const struct whatif *w)
{
    return ((double)w->end_ns - (double)weir_clock_monotonic_ns()) / 1e9;
}

void whatif_count_trial(const struct whatif *w)
{
    if (w->config->trial)
        w->config->trial(w->part);
}

void whatif_progress(struct whatif *w, const char *what)
{
    snprintf(w->part, sizeof w->part, "%s", what);
    if (w->config->progress)
        w->config->progress(whatif_seconds(w), what);
}

/* ---- errors ---- */

const char *whatif_error_of(const char *line)
{
    static const char *const prefixes[] = {"weir run: ", "weir convert: "};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(line, prefixes[i], strlen(prefixes[i])) == 0)
            return line + strlen(prefixes[i]);
    return line;
}
