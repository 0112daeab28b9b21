/* The figures of jobs as JSON (docs/internals/log-format.md). */
#include "cli/top/top.h"

#include "base/field_rows.h"

#include <stdio.h>

/* "core-wait" has the key core_wait. */
static void put_shares(struct weir_json *json, const void *from)
{
    const struct weir_task_shares *shares = from;
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

static void put_files(struct weir_json *json, const void *from)
{
    const struct weir_process_figures *figures = from;
    weir_json_array(json, "files");
    for (int i = 0; i < figures->n_files && i < WEIR_PROCESS_FILES; i++)
        weir_json_text(json, NULL, figures->files[i]);
    weir_json_end(json, ']');
}

static void put_verdict(struct weir_json *json, const void *from)
{
    const struct weir_job_verdict *verdict = from;
    const struct weir_diagnosis *found = &verdict->found;
    weir_json_object(json, "verdict");
    weir_json_bool(json, "ready", verdict->ready);
    weir_json_text(json, "certainty", found->n_causes ? weir_certainty_name(found->causes[0].certainty) : NULL);
    weir_diagnosis_json(json, found);
    weir_json_end(json, '}');
}

static const char *loader_name(int is_weir)
{
    return is_weir ? "weir" : "torch";
}

/* Fraction of the quota's periods; -1: there is no throttling. */
static double throttled(const void *job)
{
    const struct top_job *of = job;
    double periods = (double)of->figures.machine.periods;
    return !of->machine.throttling ? -1 : periods > 0 ? (double)of->figures.machine.throttled / periods : 0;
}

static double job_cores(const void *job)
{
    const struct weir_dataloader_figures *figures = &((const struct top_job *)job)->figures;
    return figures->wall_s > 0 ? figures->cpu_s / figures->wall_s : 0;
}

#define S struct weir_process_figures
static const struct weir_field process[] = {
    PLAIN("pid", pid),
    WRITTEN_AT(put_shares, shares),
    KNOWN("storage_bytes_per_s", storage_bytes_per_s),
    KNOWN("cached_bytes_per_s_estimate", cached_bytes_per_s),
    KNOWN("pss_bytes", pss_bytes),
    KNOWN("threads", n_threads),
    KNOWN("other_threads_cores", other_cores),
    KNOWN("ready_threads", ready_threads),
    KNOWN("dataset_files", n_files),
    WRITTEN(put_files),
};
static WEIR_FIELDS(process_fields, process);
#undef S

#define S struct top_job
static const struct weir_field machine[] = {
    PLAIN("cores", machine.cores),
    PLAIN("online", machine.online),
    POSITIVE("quota_cores", machine.quota_cores),
    DERIVED_KNOWN("throttled", throttled),
    DERIVED("job_cores", job_cores),
    PLAIN("others_cores", figures.machine.others_cores),
    PLAIN("other_jobs_cores", figures.outside.other_jobs_cores),
    PLAIN("steal_cores", figures.machine.steal_cores),
};
static WEIR_FIELDS(machine_fields, machine);
static const struct weir_field gpu[] = {
    PLAIN("index", gpu),
    PLAIN("name", gpu_now.name),
    KNOWN("busy", figures.outside.gpu_busy),
    PLAIN("memory_used_bytes", gpu_now.memory_used_bytes),
    PLAIN("memory_bytes", gpu_now.memory_bytes),
    KNOWN("to_gpu_bytes_per_s", gpu_now.to_gpu_bytes_per_s),
    KNOWN("from_gpu_bytes_per_s", gpu_now.from_gpu_bytes_per_s),
};
static WEIR_FIELDS(gpu_fields, gpu);
static const struct weir_field pin[] = {
    WRITTEN_AT(put_shares, total.pin),
};
static WEIR_FIELDS(pin_fields, pin);
static const struct weir_field job[] = {
    PLAIN("pid", job.pid),
    PLAIN("command", job.command),
    NAME("loader", job.weir, loader_name),
    KNOWN("rank", job.rank),
    KNOWN("world_size", job.world_size),
    KNOWN("local_rank", job.local_rank),
    PLAIN("ended", ended),
    PLAIN("other_user", job.foreign),
    PLAIN("seconds", total.seconds),
    OBJECT("machine", machine_fields),
    OBJECT_OR_NULL("gpu", gpu_fields, has_gpu),
    MEMBER("main", process_fields, total.main),
    PLAIN("other_thread", total.other_thread),
    OBJECT_OR_NULL("pin_thread", pin_fields, total.has_pin),
    PLAIN("workers_begun", total.workers_begun),
    ARRAY("workers", process_fields, total.workers, total.n_workers),
    WRITTEN_AT(put_verdict, verdict),
};
static WEIR_FIELDS(job_fields, job);
#undef S

void top_describe_json(struct weir_document *document, const struct top *top)
{
    double least, median;
    int slowest = top_slowest_rank(top, &least, &median);
    weir_document_fact(document, "type", "top");
    weir_document_begin(document, "jobs", '[');
    for (int i = 0; i < top->n_jobs; i++)
        weir_document_object(document, NULL, &job_fields, top->jobs[i]);
    weir_document_end(document, ']');
    weir_document_known(document, "slowest_rank", slowest >= 0 ? top->jobs[slowest]->job.rank : -1);
}
