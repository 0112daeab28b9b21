/* The figures of jobs as JSON (docs/internals/log-format.md). */
#include "cli/top/top.h"

#include <stdio.h>

/* "core-wait" has the key core_wait. */
static void put_shares(struct weir_json *json, const struct weir_task_shares *shares)
{
    weir_json_object(json, "time");
    for (int use = 0; use < WEIR_TASK_USES; use++) {
        char key[32];
        snprintf(key, sizeof key, "%s", weir_task_use_name(use));
        for (char *at = key; *at; at++)
            if (*at == ' ' || *at == '-')
                *at = '_';
        weir_json_known(json, key, shares->seconds > 0 ? shares->of[use] : -1);
    }
    weir_json_end(json, '}');
}

static void put_process(struct weir_json *json, const char *key, const struct weir_process_figures *figures)
{
    weir_json_object(json, key);
    weir_json_int(json, "pid", figures->pid);
    put_shares(json, &figures->shares);
    weir_json_known(json, "storage_bytes_per_s", figures->storage_bytes_per_s);
    weir_json_known(json, "cached_bytes_per_s_estimate", figures->cached_bytes_per_s);
    weir_json_known(json, "pss_bytes", figures->pss_bytes);
    weir_json_known(json, "threads", figures->n_threads);
    weir_json_known(json, "other_threads_cores", figures->other_cores);
    weir_json_known(json, "ready_threads", figures->ready_threads);
    weir_json_known(json, "dataset_files", figures->n_files);
    weir_json_array(json, "files");
    for (int i = 0; i < figures->n_files && i < WEIR_PROCESS_FILES; i++)
        weir_json_text(json, NULL, figures->files[i]);
    weir_json_end(json, ']');
    weir_json_end(json, '}');
}

static void put_machine(struct weir_json *json, const struct top_job *job)
{
    const struct weir_outside_figures *f = &job->figures;
    weir_json_object(json, "machine");
    weir_json_int(json, "cores", job->machine.cores);
    weir_json_int(json, "online", job->machine.online);
    weir_json_known(json, "quota_cores", job->machine.quota_cores > 0 ? job->machine.quota_cores : -1);
    weir_json_known(json, "throttled", job->machine.throttling ? f->throttled : -1);
    weir_json_double(json, "job_cores", f->job_cores);
    weir_json_double(json, "others_cores", f->others_cores);
    weir_json_double(json, "other_jobs_cores", f->other_jobs_cores);
    weir_json_double(json, "steal_cores", f->steal_cores);
    weir_json_end(json, '}');
}

static void put_gpu(struct weir_json *json, const struct top_job *job)
{
    const struct weir_nvml_gpu *gpu = &job->gpu_now;
    if (!job->has_gpu) {
        weir_json_null(json, "gpu");
        return;
    }
    weir_json_object(json, "gpu");
    weir_json_int(json, "index", job->gpu);
    weir_json_text(json, "name", gpu->name);
    weir_json_known(json, "busy", job->figures.gpu_busy);
    weir_json_uint(json, "memory_used_bytes", gpu->memory_used_bytes);
    weir_json_uint(json, "memory_bytes", gpu->memory_bytes);
    weir_json_known(json, "to_gpu_bytes_per_s", gpu->to_gpu_bytes_per_s);
    weir_json_known(json, "from_gpu_bytes_per_s", gpu->from_gpu_bytes_per_s);
    weir_json_end(json, '}');
}

static void put_job(struct weir_json *json, const struct top_job *job)
{
    weir_json_object(json, NULL);
    weir_json_int(json, "pid", job->job.pid);
    weir_json_text(json, "command", job->job.command);
    weir_json_text(json, "loader", job->job.weir ? "weir" : "torch");
    weir_json_known(json, "rank", job->job.rank);
    weir_json_known(json, "world_size", job->job.world_size);
    weir_json_known(json, "local_rank", job->job.local_rank);
    weir_json_bool(json, "ended", job->ended);
    weir_json_bool(json, "other_user", job->job.foreign);
    weir_json_double(json, "seconds", job->total.seconds);
    put_machine(json, job);
    put_gpu(json, job);
    put_process(json, "main", &job->total.main);
    weir_json_double(json, "other_thread", job->total.other_thread);
    if (job->total.has_pin) {
        weir_json_object(json, "pin_thread");
        put_shares(json, &job->total.pin);
        weir_json_end(json, '}');
    } else
        weir_json_null(json, "pin_thread");
    weir_json_int(json, "workers_begun", job->total.workers_begun);
    weir_json_array(json, "workers");
    for (int i = 0; i < job->total.n_workers; i++)
        put_process(json, NULL, &job->total.workers[i]);
    weir_json_end(json, ']');
    weir_outside_json(json, &job->verdict);
    weir_json_end(json, '}');
}

void top_json(struct weir_json *json, const struct top *top)
{
    double least, median;
    int slowest = top_slowest_rank(top, &least, &median);
    weir_json_text(json, "type", "top");
    weir_json_array(json, "jobs");
    for (int i = 0; i < top->n_jobs; i++)
        put_job(json, top->jobs[i]);
    weir_json_end(json, ']');
    if (slowest >= 0)
        weir_json_int(json, "slowest_rank", top->jobs[slowest]->job.rank);
    else
        weir_json_null(json, "slowest_rank");
}
