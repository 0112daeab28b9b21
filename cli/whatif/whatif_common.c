/* What every part needs: how much time is left, fewer CPUs for the runs that are started (the affinity, which children
 * inherit), and their error lines. */
#include "cli/whatif/whatif_parts.h"
#include "weir/base.h"

#include <sched.h>
#include <string.h>

static cpu_set_t had;
static bool restricted;

/* The first CPU of those that share a core with this one; the CPU itself where the kernel does not say. */
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

/* One of each core, then the others. */
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

/* ---- time ---- */

double whatif_seconds_left(const struct whatif *w)
{
    return ((double)w->end_ns - (double)weir_clock_monotonic_ns()) / 1e9;
}

void whatif_say(const struct whatif *w, const char *what)
{
    double spent_s = (double)(weir_clock_monotonic_ns() - w->begin_ns) / 1e9;
    fprintf(stderr, "%5.0f s: %s\n", spent_s, what);
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
