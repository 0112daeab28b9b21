#include "cli/run/run_serve.h"
#include "analyze/live/http_server.h"
#include "cli/run/run_session.h"
#include "cli/sysinfo.h"
#include "pipeline/report/live_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int collect(void *user, struct weir_metrics *metrics)
{
    struct weir_run_serve *serve = user;
    memcpy(metrics->loader, serve->label, sizeof metrics->loader);
    weir_loader_now(serve->loader, &metrics->now);
    metrics->epochs = serve->epochs;
    return weir_live_report(serve->reports, &metrics->report);
}

int weir_run_serve_check(const struct run_options *options, const struct weir_ranks *ranks, struct weir_err *err)
{
    struct weir_http_address address;
    int rc = options->serve ? weir_http_address_parse(&address, options->serve, ranks->local_rank, err) : 0;
    if (rc < 0)
        weir_err_prefix(err, "--serve");
    return rc;
}

int weir_run_serve_open(struct weir_run_serve *serve, const struct run_options *options, const struct weir_ranks *ranks,
                        const char *command, struct weir_err *err)
{
    const struct weir_live_config config = {
        .prometheus = options->prometheus,
        .serve = options->serve,
        .page = weir_live_page,
        .local_rank = ranks->local_rank,
        .process = {.version = weir_version(), .source = command, .rank = ranks->rank, .world_size = ranks->world_size},
    };
    if (!config.prometheus && !config.serve)
        return 0;
    int rc = weir_live_open(&serve->live, &config, err);
    if (rc == 0 && weir_live_url(serve->live))
        fprintf(stderr, "live figures: %s/\n", weir_live_url(serve->live));
    return rc;
}

static void write_run(void *user, FILE *out)
{
    const struct weir_run_serve *serve = user;
    fputs(serve->run_line ? serve->run_line : "", out);
}

void weir_run_serve_head(struct weir_run_serve *serve, const struct weir_run_head *head,
                         const struct weir_loader *loader, double load_average)
{
    size_t size;
    FILE *out = serve->live ? open_memstream(&serve->run_line, &size) : NULL;
    if (!out)
        return;
    weir_run_head_log(out, head, loader, load_average);
    if (fclose(out) == 0)
        return;
    free(serve->run_line);
    serve->run_line = NULL;
}

/* Epochs that a run has completed before it was continued (--state). */
static int epochs_before(const struct weir_loader *loader)
{
    const struct weir_sampler *sampler = weir_loader_sampler(loader);
    int per_epoch = weir_sampler_batches(sampler, WEIR_SPLIT_TRAIN) + weir_sampler_batches(sampler, WEIR_SPLIT_VAL);
    return per_epoch > 0 ? (int)(weir_loader_position(loader) / (uint64_t)per_epoch) : 0;
}

int weir_run_serve_begin(struct weir_run_serve *serve, struct weir_loader *loader, struct weir_loader_reports *reports,
                         const char *data, struct weir_err *err)
{
    if (!serve->live)
        return 0;
    serve->loader = loader;
    serve->reports = reports;
    serve->epochs = epochs_before(loader);
    weir_metrics_label(serve->label, data);
    int rc = weir_live_report_begin(reports, true);
    if (rc < 0)
        return weir_err_set(err, rc, "out of memory for live figures");
    const struct weir_live_source source = {
        .collect = collect, .write_run = write_run, .write_log = weir_live_log, .user = serve, .keeps_history = true};
    return weir_live_add(serve->live, &source, err);
}

void weir_run_serve_epoch(struct weir_run_serve *serve, int epochs_done)
{
    if (!serve->live)
        return;
    serve->epochs = epochs_done;
    weir_live_epoch(serve->live);
}

void weir_run_serve_end(struct weir_run_serve *serve)
{
    if (serve->live)
        weir_live_remove(serve->live, serve);
}

void weir_run_serve_close(struct weir_run_serve *serve)
{
    weir_live_close(&serve->live);
    free(serve->run_line);
    serve->run_line = NULL;
}
