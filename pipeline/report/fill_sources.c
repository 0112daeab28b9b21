#include "base/text.h"
#include "weir/loader.h"
/* Fills in the figures per camera and file, and those of the HDF5 helper process. */
#include "pipeline/report/fill_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void fill_source(struct weir_report_source *to, const struct weir_source_camera *now,
                        const struct weir_source_camera *then, enum weir_source_kind kind)
{
    struct weir_stage_stats stats = now->stats[kind];
    if (then)
        weir_stage_stats_subtract(&stats, &then->stats[kind]);
    if (stats.count == 0)
        return;
    *to = (struct weir_report_source){
        .count = stats.count,
        .bytes = now->bytes[kind] - (then ? then->bytes[kind] : 0),
        .total_s = (double)stats.total_ns / 1e9,
        .p50_s = weir_stage_quantile_ns(&stats, 0.50) / 1e9,
        .p99_s = weir_stage_quantile_ns(&stats, 0.99) / 1e9,
        .max_s = (double)stats.max_ns / 1e9,
    };
}

static void fill_cameras(struct weir_report_sources *to, const struct weir_dataset *dataset,
                         const struct weir_source_figures *now, const struct weir_source_figures *then)
{
    for (int i = 0; i < now->n_cameras && to->n_cameras < WEIR_REPORT_CAMERAS; i++) {
        struct weir_report_camera *camera = &to->cameras[to->n_cameras];
        const struct weir_source_camera *before = then ? &then->cameras[i] : NULL;
        fill_source(&camera->read, &now->cameras[i], before, WEIR_SOURCE_READ);
        fill_source(&camera->decode, &now->cameras[i], before, WEIR_SOURCE_DECODE);
        snprintf(camera->name, sizeof camera->name, "%s", weir_dataset_camera(dataset, i)->name);
        weir_text_printable(camera->name);
        to->n_cameras += camera->read.count + camera->decode.count > 0;
    }
}

/* ---- files ---- */

struct file_mean {
    int file;
    uint64_t count;
    double mean_s, max_s;
};

static int slowest_first(const void *a, const void *b)
{
    const struct file_mean *x = a, *y = b;
    if (x->mean_s != y->mean_s)
        return x->mean_s < y->mean_s ? 1 : -1;
    return x->file - y->file;
}

void weir_fill_file_name(char *to, size_t size, const char *path, const char *folder)
{
    size_t n = folder ? strlen(folder) : 0;
    while (n > 0 && folder[n - 1] == '/')
        n--;
    bool inside = n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/';
    path += inside ? n + 1 : 0;
    size_t length = strlen(path);
    snprintf(to, size, "%s",
             length < size ? path : path + (length - size + 1)); /* keeps the end, because paths differ there */
    weir_text_printable(to);
}

static int fill_files(struct weir_report_sources *to, const struct weir_dataset *dataset, const char *folder,
                      const struct weir_source_figures *now, const struct weir_source_figures *then)
{
    struct file_mean *means = malloc(sizeof *means * ((size_t)now->n_files + 1));
    int n = 0;
    if (!means)
        return -ENOMEM;
    for (int i = 0; i < now->n_files; i++) {
        uint64_t count = now->files[i].count - (then ? then->files[i].count : 0);
        uint64_t total_ns = now->files[i].total_ns - (then ? then->files[i].total_ns : 0);
        uint64_t max_ns = then ? then->files[i].window_max_ns : now->files[i].max_ns;
        if (count > 0)
            means[n++] = (struct file_mean){i, count, (double)total_ns / 1e9 / (double)count, (double)max_ns / 1e9};
    }
    qsort(means, (size_t)n, sizeof *means, slowest_first);
    to->files_read = (uint64_t)n;
    to->files_median_s = n > 0 ? means[n / 2].mean_s : 0;
    for (int i = 0; i < n && i < WEIR_REPORT_FILES; i++) {
        struct weir_report_file *file = &to->files[to->n_files++];
        struct weir_dataset_file from;
        weir_dataset_file(dataset, means[i].file, &from);
        weir_fill_file_name(file->name, sizeof file->name, from.path, folder);
        file->count = means[i].count;
        file->mean_s = means[i].mean_s;
        file->max_s = means[i].max_s;
    }
    free(means);
    return 0;
}

/* ---- calls ---- */

static void fill_call(struct weir_report_call *to, const struct weir_dataset *dataset, const char *folder,
                      const struct weir_source_call *call)
{
    char path[sizeof to->file];
    const char *group = weir_dataset_episode_group(dataset, call->episode);
    weir_fill_file_name(path, sizeof path, weir_dataset_episode_path(dataset, call->episode), folder);
    snprintf(to->file, sizeof to->file, "%.*s%s%.100s", *group ? 150 : 255, path, *group ? ":" : "", group);
    weir_text_printable(to->file);
    snprintf(to->camera, sizeof to->camera, "%s", weir_dataset_camera(dataset, call->camera)->name);
    weir_text_printable(to->camera);
    to->t = call->t;
    to->decode = call->kind == WEIR_SOURCE_DECODE;
    to->s = (double)call->ns / 1e9;
}

static int longest_first(const void *a, const void *b)
{
    const struct weir_report_call *x = a, *y = b;
    return x->s < y->s ? 1 : x->s > y->s ? -1 : 0;
}

static void fill_calls(struct weir_report_sources *to, const struct weir_dataset *dataset, const char *folder,
                       const struct weir_source_figures *now, const struct weir_source_figures *then)
{
    for (int kind = 0; kind < WEIR_SOURCES; kind++) {
        int n = then ? then->n_window_calls[kind] : now->n_calls[kind];
        for (int i = 0; i < n; i++)
            fill_call(&to->calls[to->n_calls++], dataset, folder,
                      then ? &then->window_calls[kind][i] : &now->calls[kind][i]);
    }
    qsort(to->calls, (size_t)to->n_calls, sizeof *to->calls, longest_first);
}

int weir_fill_sources(struct weir_report_sources *to, const struct weir_loader *loader, const char *folder,
                      const struct weir_source_figures *now, const struct weir_source_figures *then)
{
    const struct weir_dataset *dataset = weir_loader_dataset(loader);
    fill_cameras(to, dataset, now, then);
    fill_calls(to, dataset, folder, now, then);
    return fill_files(to, dataset, folder, now, then);
}

/* ---- servers ---- */

/* The first window excludes the requests for opening, which are stated apart. */
void weir_fill_server(struct weir_report_server *to, const struct weir_loader_counts *counts,
                      const struct weir_loader_counts *before_counts, double wall_s)
{
    const struct weir_server_counts *now = &counts->server, *then = &before_counts->server;
    uint64_t before = then->requests ? then->requests : now->opening_requests;
    uint64_t all = now->requests - then->requests;
    to->requests = now->requests - before;
    to->opening_requests = now->opening_requests;
    to->bytes = now->bytes - then->bytes;
    to->retries = now->retries - then->retries;
    to->limited = now->limited - then->limited;
    to->connections = now->connections - then->connections;
    to->cache_bytes = now->cache_bytes - then->cache_bytes;
    to->cache_stored_bytes = now->cache_stored_bytes - then->cache_stored_bytes;
    to->cache_full_bytes = now->cache_full_bytes - then->cache_full_bytes;
    to->cache_damaged_blocks = now->cache_damaged_blocks - then->cache_damaged_blocks;
    to->cache_errno = now->cache_errno;
    if (all == 0)
        return;
    to->limit = counts->in_flight;
    to->limit_most = counts->in_flight_most;
    to->limit_fixed = counts->in_flight_fixed;
    snprintf(to->host, sizeof to->host, "%s", now->host ? now->host : "");
    weir_text_printable(to->host);
    to->wait_s = (double)(now->wait_ns - then->wait_ns) / 1e9 / (double)all;
    to->transfer_s = (double)(now->transfer_ns - then->transfer_ns) / 1e9 / (double)all;
    if (wall_s > 0)
        to->in_flight = (to->wait_s + to->transfer_s) * (double)to->requests / wall_s;
}

/* ---- the HDF5 helper process ---- */

void weir_fill_fallbacks(struct weir_report_fallbacks *to, const struct weir_loader_counts *now,
                         const struct weir_loader_counts *then, double wall_s)
{
    double busy_s = (double)(now->helper.busy_ns - then->helper.busy_ns) / 1e9;
    to->frames = now->fallback_reads - then->fallback_reads;
    if (to->frames == 0 || wall_s <= 0)
        return;
    to->busy = fmin(busy_s / wall_s, 1); /* a call that ends in this window may have begun earlier */
    to->each_s = busy_s / (double)to->frames;
    to->waiting = (double)(now->helper.wait_ns - then->helper.wait_ns) / 1e9 / wall_s;
}
