#include "cli/run/run_profile.h"
#include "analyze/gpu_idle/gpu_idle.h"
#include "base/document.h"
#include "base/field_rows.h"
#include "cli/progress.h"
#include "pipeline/gpu/gpu.h"
#include "prof/gpu/gpu_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { STEPS_KEPT = 1 << 16, WINDOWS_KEPT = 64 };

/* Times of a step, measured by the loop's own clock independently of the trace. */
struct step {
    int64_t number;
    uint64_t ns, wait_ns;
};

struct window {
    int64_t first, last, steps;
    uint64_t ns, wait_ns; /* sums over the window's steps */
    uint64_t events, dropped;
    char path[4096]; /* empty if the trace was not written */
    char error[512];
};

struct weir_run_profile {
    struct weir_profiler *profiler;
    struct weir_run_profile_config config;
    struct weir_loader *loader;
    int64_t step;
    uint64_t step_start_ns;
    pthread_mutex_t lock; /* guards steps and windows, which the profiler's thread reads */
    struct step *steps;   /* ring buffer: step n is at n % STEPS_KEPT */
    struct window windows[WINDOWS_KEPT];
    int64_t n_windows, n_failed; /* number of windows, and of windows whose trace was not written */
    struct weir_err first;       /* error of the first window that failed */
};

static void on_message(void *user, const char *line)
{
    const struct weir_run_profile *profile = user;
    fprintf(stderr, "%sweir %s: profile: %s\n", weir_progress_erase(), profile->config.command, line);
}

static void on_sample(void *user)
{
    struct weir_run_profile *profile = user;
    weir_loader_count_now(profile->loader);
}

static void sum_steps(const struct weir_run_profile *profile, struct window *window)
{
    for (int64_t n = window->first; n >= 0 && n <= window->last; n++) {
        const struct step *step = &profile->steps[n % STEPS_KEPT];
        if (step->number != n)
            continue;
        window->steps++;
        window->ns += step->ns;
        window->wait_ns += step->wait_ns;
    }
}

static void on_window(void *user, const struct weir_profiler_window *recorded)
{
    struct weir_run_profile *profile = user;
    struct window window = {
        .first = recorded->first_step,
        .last = recorded->last_step,
        .events = recorded->trace ? recorded->trace->n_events : 0,
        .dropped = recorded->dropped,
    };
    snprintf(window.path, sizeof window.path, "%s", recorded->path ? recorded->path : "");
    snprintf(window.error, sizeof window.error, "%s", recorded->error ? recorded->error : "");
    pthread_mutex_lock(&profile->lock);
    sum_steps(profile, &window);
    profile->windows[profile->n_windows++ % WINDOWS_KEPT] = window;
    profile->n_failed += recorded->error != NULL;
    if (recorded->error)
        weir_err_set(&profile->first, -EIO, "%s", recorded->error);
    pthread_mutex_unlock(&profile->lock);
}

static char *metadata_of(const struct weir_loader *loader)
{
    struct weir_loader_facts facts;
    char *text = NULL;
    weir_loader_facts(loader, &facts);
    if (asprintf(&text, "\"weir_workers\": %d, \"weir_prefetch\": %d, \"weir_slot_bytes\": %zu", facts.workers,
                 facts.prefetch, facts.slot_bytes) < 0)
        return NULL;
    return text;
}

static int open_profiler(struct weir_run_profile *profile, struct weir_err *err)
{
    struct weir_profiler_config config;
    struct weir_loader_facts facts;
    char *metadata = metadata_of(profile->loader);
    weir_loader_facts(profile->loader, &facts);
    weir_profiler_config_default(&config);
    if (profile->config.folder)
        config.schedule = profile->config.schedule;
    config.nvtx = profile->config.nvtx;
    config.gpu = facts.device >= 0;
    config.record_shapes = profile->config.record_shapes;
    config.profile_memory = profile->config.profile_memory;
    config.with_stack = profile->config.with_stack;
    config.worker_ops = profile->config.worker_ops;
    config.whole_steps = true; /* omits the step that begins after the last batch */
    config.folder = profile->config.folder;
    config.metadata = metadata;
    config.on_trace_ready = on_window;
    config.on_message = on_message;
    config.on_sample = on_sample;
    config.user = profile;
    int rc = weir_profiler_open(&profile->profiler, &config, err);
    free(metadata);
    return rc;
}

int weir_run_profile_open(struct weir_run_profile **out, const struct weir_run_profile_config *config,
                          struct weir_loader *loader, struct weir_err *err)
{
    *out = NULL;
    if (!config->folder && !config->nvtx)
        return 0;
    struct stat st;
    if (config->folder && stat(config->folder, &st) == 0 && !S_ISDIR(st.st_mode))
        return weir_err_set(err, -ENOTDIR, "%s: --profile needs a folder, but this is a file; choose another path",
                            config->folder);
    struct weir_run_profile *profile = calloc(1, sizeof *profile);
    if (profile)
        profile->steps = calloc(STEPS_KEPT, sizeof *profile->steps);
    if (!profile || !profile->steps) {
        free(profile);
        return weir_err_set(err, -ENOMEM, "out of memory");
    }
    for (int i = 0; i < STEPS_KEPT; i++)
        profile->steps[i].number = -1;
    profile->config = *config;
    profile->loader = loader;
    pthread_mutex_init(&profile->lock, NULL);
    int rc = open_profiler(profile, err);
    profile->step_start_ns = weir_clock_monotonic_ns();
    if (rc < 0)
        weir_run_profile_close(&profile);
    *out = profile;
    return rc;
}

void weir_run_profile_step(struct weir_run_profile *profile, uint64_t wait_ns)
{
    if (!profile)
        return;
    uint64_t now_ns = weir_clock_monotonic_ns();
    pthread_mutex_lock(&profile->lock);
    profile->steps[profile->step % STEPS_KEPT] = (struct step){profile->step, now_ns - profile->step_start_ns, wait_ns};
    pthread_mutex_unlock(&profile->lock);
    profile->step++;
    weir_profiler_step(profile->profiler);
    profile->step_start_ns = weir_clock_monotonic_ns();
}

void weir_run_profile_finish(struct weir_run_profile *profile)
{
    if (!profile)
        return;
    weir_profiler_stop(profile->profiler);
    weir_profiler_flush(profile->profiler);
}

int weir_run_profile_error(struct weir_run_profile *profile, struct weir_err *err)
{
    if (!profile || profile->n_failed == 0)
        return 0;
    return weir_err_set(err, -EIO, "--profile: %" PRId64 " of %" PRId64 " traces were not written; the first error: %s",
                        profile->n_failed, profile->n_windows, profile->first.text);
}

void weir_run_profile_close(struct weir_run_profile **profile)
{
    struct weir_run_profile *p = *profile;
    if (!p)
        return;
    weir_profiler_close(&p->profiler);
    pthread_mutex_destroy(&p->lock);
    free(p->steps);
    free(p);
    *profile = NULL;
}

/* ---- printing ---- */

static double seconds(const void *window)
{
    return (double)((const struct window *)window)->ns / 1e9;
}

static double share(const void *from)
{
    const struct window *window = from;
    return window->ns ? (double)window->wait_ns / (double)window->ns : 0;
}

/* On a GPU, prints only the host's waits. The stream's waits are known only after the GPU has finished the step. */
static void print_window(FILE *out, const struct window *window, bool on_gpu)
{
    if (window->first == window->last)
        fprintf(out, "profile: step %" PRId64, window->first);
    else
        fprintf(out, "profile: steps %" PRId64 " to %" PRId64, window->first, window->last);
    fprintf(out, ", %.3f s, %sdata wait %.1f %%; %" PRIu64 " events", seconds(window), on_gpu ? "host " : "",
            100 * share(window), window->events);
    if (window->dropped)
        fprintf(out, ", %" PRIu64 " more dropped (record fewer steps)", window->dropped);
    fprintf(out, "; %s\n", window->path[0] ? window->path : "not written");
}

static void print_averages(FILE *out, struct weir_run_profile *profile)
{
    struct weir_trace *trace = weir_profiler_last(profile->profiler);
    struct weir_averages *averages;
    const struct weir_averages_config config = {.by_shape = profile->config.record_shapes};
    const struct weir_averages_table table = {profile->config.sort_by, profile->config.row_limit, false, NULL};
    if (!trace || weir_averages_open(&averages, trace, &config) < 0)
        return;
    weir_averages_print(out, averages, &table);
    weir_averages_close(&averages);
}

/* Fills in the GPU's idle time in the last window. It remains empty if no window was recorded. */
static int make_idle(struct weir_run_profile *profile, struct weir_gpu_idle *idle)
{
    struct weir_trace *trace = weir_profiler_last(profile->profiler);
    struct weir_step *steps;
    *idle = (struct weir_gpu_idle){0};
    int64_t n = trace ? weir_steps_split(trace, &steps) : 0;
    if (!trace || n < 0)
        return (int)n;
    int rc = weir_gpu_idle_make(idle, trace, steps, n);
    free(steps);
    return rc;
}

void weir_run_profile_idle(struct weir_run_profile *profile, struct weir_report_idle *report)
{
    struct weir_gpu_idle idle = {0};
    struct weir_loader_facts facts;
    if (profile) {
        weir_loader_facts(profile->loader, &facts);
        make_idle(profile, &idle);
    }
    weir_gpu_idle_report(report, &idle, profile ? facts.device : -1);
    weir_gpu_idle_clear(&idle);
}

/* Prints the GPU's idle time, if the trace contains a GPU. */
static void print_idle(FILE *out, struct weir_run_profile *profile)
{
    struct weir_gpu_idle idle;
    if (make_idle(profile, &idle) == 0 && idle.n_devices > 0) {
        fputc('\n', out);
        weir_gpu_idle_print(out, &idle);
    }
    weir_gpu_idle_clear(&idle);
}

/* Prints the kernel clocks of the last window, if it contains any. */
static void print_clocks(FILE *out, struct weir_run_profile *profile)
{
    const struct weir_trace *trace = weir_profiler_last(profile->profiler);
    if (trace)
        weir_kernel_clocks_print_trace(out, trace);
}

static int64_t first_kept(const struct weir_run_profile *profile)
{
    return profile->n_windows > WINDOWS_KEPT ? profile->n_windows - WINDOWS_KEPT : 0;
}

void weir_run_profile_print(FILE *out, struct weir_run_profile *profile)
{
    if (!profile || !profile->config.folder)
        return;
    if (profile->n_windows == 0)
        fprintf(out,
                "profile: nothing was recorded, because the run had only %" PRId64 " steps; use a shorter --schedule\n",
                profile->step);
    if (first_kept(profile) > 0)
        fprintf(out, "profile: %" PRId64 " earlier windows are not listed\n", first_kept(profile));
    for (int64_t i = first_kept(profile); i < profile->n_windows; i++)
        print_window(out, &profile->windows[i % WINDOWS_KEPT], weir_device_of(profile->loader) != NULL);
    print_averages(out, profile);
    print_idle(out, profile);
    print_clocks(out, profile);
}

#define S struct window
static const struct weir_field window_rows[] = {
    PLAIN("first_step", first), PLAIN("last_step", last),  DERIVED("seconds", seconds), DERIVED("data_wait", share),
    PLAIN("events", events),    PLAIN("dropped", dropped), OPTIONAL("path", path),      OPTIONAL("error", error),
};
static WEIR_FIELDS(window_fields, window_rows);
#undef S

void weir_run_profile_log(FILE *log, struct weir_run_profile *profile)
{
    struct weir_document document;
    if (!profile || !profile->config.folder)
        return;
    weir_document_open(&document, &weir_line_writer, log);
    weir_document_fact(&document, "type", "profile");
    weir_document_fact(&document, "windows_before", first_kept(profile));
    weir_document_begin(&document, "windows", '[');
    for (int64_t i = first_kept(profile); i < profile->n_windows; i++)
        weir_document_object(&document, NULL, &window_fields, &profile->windows[i % WINDOWS_KEPT]);
    weir_document_end(&document, ']');
    weir_document_close(&document);
}
