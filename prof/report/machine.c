#include "prof/report/machine.h"
#include "base/resources.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/threads.h"
#include "prof/processes/process_files.h"
#include "weir/base.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_BYTES = 256, CPUS_MAX = 1 << 16 };
/* /proc/stat counts ticks of about 10 ms, so shorter intervals give no usable figure. */
enum { SHORTEST_NS = 100 * 1000 * 1000 };

/* ---- helpers ---- */

enum { HELPERS_MAX = 64 };

static struct {
    pthread_mutex_t lock;
    int n, pid[HELPERS_MAX]; /* PIDs of helpers; helpers beyond HELPERS_MAX are not counted */
    uint64_t ended_ns;
} helpers = {.lock = PTHREAD_MUTEX_INITIALIZER};
__attribute__((constructor)) static void watch_forks(void)
{
    weir_fork_lock(&helpers.lock);
}

uint64_t weir_process_cpu_ns(int pid)
{
    struct weir_task_stat stat;
    return weir_task_stat_read(&stat, "", pid, 0) ? stat.cpu_ns + stat.children_ns : 0;
}

void weir_helper_begins(int pid)
{
    pthread_mutex_lock(&helpers.lock);
    if (helpers.n < HELPERS_MAX)
        helpers.pid[helpers.n++] = pid;
    pthread_mutex_unlock(&helpers.lock);
}

void weir_helper_ends(int pid)
{
    pthread_mutex_lock(&helpers.lock);
    for (int i = 0; i < helpers.n; i++) {
        if (helpers.pid[i] != pid)
            continue;
        helpers.ended_ns += weir_process_cpu_ns(pid);
        helpers.pid[i] = helpers.pid[--helpers.n];
        break;
    }
    pthread_mutex_unlock(&helpers.lock);
}

static uint64_t helpers_ns(void)
{
    pthread_mutex_lock(&helpers.lock);
    uint64_t sum = helpers.ended_ns;
    for (int i = 0; i < helpers.n; i++)
        sum += weir_process_cpu_ns(helpers.pid[i]);
    pthread_mutex_unlock(&helpers.lock);
    return sum;
}

/* ---- the machine ---- */

static uint64_t usage_ns(int who)
{
    struct rusage usage;
    if (getrusage(who, &usage) != 0)
        return 0;
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

static FILE *open_below(const char *root, const char *name)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof path, "%s%s", root, name);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
}

/* Adds one line of /proc/stat: "cpu3 user nice system idle iowait irq softirq steal ...", in ticks. */
static void add_cpu(struct weir_machine_now *now, const char *line, const cpu_set_t *allowed, size_t size)
{
    unsigned cpu;
    unsigned long long user, nice, system, irq, softirq, steal;
    bool one = strncmp(line, "cpu", 3) == 0 && line[3] >= '0' &&
               line[3] <= '9'; /* true for a single CPU; the line "cpu " is the sum over all CPUs */
    if (!one || sscanf(line, "cpu%u %llu %llu %llu %*u %*u %llu %llu %llu", &cpu, &user, &nice, &system, &irq, &softirq,
                       &steal) != 7)
        return;
    if (cpu >= CPUS_MAX || (allowed && !CPU_ISSET_S(cpu, size, allowed)))
        return;
    now->cpus = true;
    now->busy_ns += weir_ticks_to_ns(user + nice + system + irq + softirq);
    now->steal_ns += weir_ticks_to_ns(steal);
}

static void read_cpus(struct weir_machine_now *now, const char *root, int pid)
{
    char line[512];
    FILE *f = open_below(root, "/proc/stat");
    if (!f)
        return;
    cpu_set_t *allowed = CPU_ALLOC(CPUS_MAX);
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    if (allowed)
        CPU_ZERO_S(size, allowed);
    bool known = allowed && *root == '\0' && sched_getaffinity(pid, size, allowed) == 0;
    while (fgets(line, sizeof line, f))
        add_cpu(now, line, known ? allowed : NULL, size);
    if (allowed)
        CPU_FREE(allowed);
    fclose(f);
}

void weir_machine_read(struct weir_machine_now *now, const char *root)
{
    weir_machine_read_of(now, root, 0, usage_ns(RUSAGE_SELF) + usage_ns(RUSAGE_CHILDREN) + helpers_ns());
}

void weir_machine_read_of(struct weir_machine_now *now, const char *root, int pid, uint64_t own_ns)
{
    *now = (struct weir_machine_now){.at_ns = weir_clock_monotonic_ns(), .own_ns = own_ns};
    read_cpus(now, root, pid);
    weir_throttling_read_of(&now->throttling, root, pid);
}

static void begin(struct weir_report_machine *machine, int part, const char *root, int pid)
{
    struct weir_cores cores;
    weir_cores_read_of(&cores, root, pid);
    *machine = (struct weir_report_machine){.used = true,
                                            .cores = cores.usable,
                                            .online = cores.online,
                                            .part = part,
                                            .quota_cores = cores.quota,
                                            .memory_limit_bytes = cores.memory_limit_bytes,
                                            .load_average = -1,
                                            .others_cores = -1,
                                            .steal_cores = -1};
    double load;
    FILE *f = open_below(root, "/proc/loadavg");
    if (f && fscanf(f, "%lf", &load) == 1)
        machine->load_average = load;
    if (f)
        fclose(f);
}

void weir_machine_begin(struct weir_report_machine *machine, int part, const char *root)
{
    begin(machine, part, root, 0);
}

void weir_machine_begin_of(struct weir_report_machine *machine, const char *root, int pid)
{
    begin(machine, 0, root, pid);
}

static uint64_t since(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

void weir_machine_between(struct weir_report_machine *machine, const struct weir_machine_now *then,
                          const struct weir_machine_now *now)
{
    double wall_ns = (double)since(now->at_ns, then->at_ns);
    machine->throttling = machine->quota_cores > 0 && then->throttling.known && now->throttling.known;
    if (machine->throttling) {
        machine->periods = since(now->throttling.periods, then->throttling.periods);
        machine->throttled = since(now->throttling.throttled, then->throttling.throttled);
        machine->throttled_s = (double)since(now->throttling.throttled_ns, then->throttling.throttled_ns) / 1e9;
    }
    if (!then->cpus || !now->cpus || wall_ns < SHORTEST_NS)
        return;
    uint64_t busy_ns = since(now->busy_ns, then->busy_ns), own_ns = since(now->own_ns, then->own_ns);
    machine->others_cores = (double)since(busy_ns, own_ns) / wall_ns;
    machine->steal_cores = (double)since(now->steal_ns, then->steal_ns) / wall_ns;
}

void weir_report_machine_print(FILE *out, const struct weir_report_machine *m)
{
    struct weir_wrap wrap;
    if (!m->used)
        return;
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    fprintf(text, "machine: %d of %d cores", m->cores, m->online);
    if (m->part > 0 && m->part < m->cores)
        fprintf(text, ", %d of them for this local rank", m->part);
    if (m->quota_cores > 0)
        fprintf(text, "; CPU quota %.2f cores", m->quota_cores);
    if (m->throttling)
        fprintf(text, ", throttled in %" PRIu64 " of %" PRIu64 " periods, %.2f s", m->throttled, m->periods,
                m->throttled_s);
    if (m->memory_limit_bytes > 0)
        fprintf(text, "; memory limit %s", weir_size((double)m->memory_limit_bytes).text);
    if (m->others_cores >= 0)
        fprintf(text, "; others used %.2f cores, %.2f stolen", m->others_cores, m->steal_cores);
    if (m->load_average >= 0)
        fprintf(text, "; load average %.2f at the start", m->load_average);
    fputc('\n', text);
    weir_wrap_close(&wrap);
}
