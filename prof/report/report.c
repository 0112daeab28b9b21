#include "prof/report/report.h"
#include "base/text.h"
#include "prof/record/switches.h"
#include "prof/report/machine.h"
#include "prof/report/report_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_share(const struct weir_report_row *row)
{
    return row->kind == WEIR_KIND_WORK && row->side == WEIR_SIDE_WORKER;
}

static void fill_rows(struct weir_report *report, const struct weir_snapshot *snapshot)
{
    double work_s = 0;
    report->n_rows = 0;
    for (int stage = 0; stage < snapshot->n_stages && stage < WEIR_STAGE_MAX; stage++) {
        const struct weir_stage_info *info = weir_stage_info(stage);
        if (!info || info->kind == WEIR_KIND_LOOP)
            continue;
        struct weir_report_row *row = &report->rows[report->n_rows++];
        weir_report_row_fill(row, info, &snapshot->stages[stage]);
        if (has_share(row))
            work_s += row->self_s;
        if (snapshot->others[stage].count == 0)
            continue;
        weir_report_row_fill(++row, info, &snapshot->others[stage]);
        row->side = WEIR_SIDE_HELPER;
        report->n_rows++;
    }
    for (int i = 0; i < report->n_rows; i++)
        if (has_share(&report->rows[i]) && work_s > 0)
            report->rows[i].share = report->rows[i].self_s / work_s;
}

int weir_report_from_snapshot(struct weir_report *report, const struct weir_snapshot *snapshot)
{
    fill_rows(report, snapshot);
    int code = weir_report_fill_threads(report, snapshot);
    if (code < 0)
        return code;
    report->zones = report->too_deep = 0;
    report->thread_s = 0;
    for (int i = 0; i < snapshot->n_threads; i++) {
        report->zones += snapshot->threads[i].zones;
        report->too_deep += snapshot->threads[i].too_deep;
        report->thread_s += (double)snapshot->threads[i].wall_ns / 1e9;
    }
    report->zone_cost_ns = weir_zone_cost_ns();
    report->profiler_share = 0;
    if (report->thread_s > 0)
        report->profiler_share = (double)report->zones * report->zone_cost_ns / 1e9 / report->thread_s;
    report->clock_error_ppm = weir_clock.error_ppm;
    report->cpu_sampled[0] = '\0';
    if (snapshot->switches_error)
        weir_switches_why(snapshot->switches_error, report->cpu_sampled, sizeof report->cpu_sampled);
    return 0;
}

void weir_report_free(struct weir_report *report)
{
    free(report->workers);
    report->workers = NULL;
    report->n_workers = 0;
}

static void print_covers(FILE *out, const struct weir_report *report)
{
    if (report->final)
        fprintf(out, "whole run%s: ", report->interrupted ? " (interrupted)" : "");
    if (report->epoch_last < report->epoch_first)
        fprintf(out, "no epoch of %d", report->epoch_count);
    else if (report->epoch_last == report->epoch_first)
        fprintf(out, "epoch %d of %d", report->epoch_first, report->epoch_count);
    else
        fprintf(out, "epochs %d-%d of %d", report->epoch_first, report->epoch_last, report->epoch_count);
    fprintf(out, ", %.2f s\n", report->wall_s);
}

static void print_row(FILE *out, const struct weir_report_row *row, int width)
{
    char kind[24], total[24], mean[24], p50[24], p90[24], p99[24], max[24], cpu[24] = "-", share[24] = "-";
    bool worker = row->side == WEIR_SIDE_WORKER;
    snprintf(kind, sizeof kind, "%s%s%s", worker ? "" : weir_report_side_name(row->side), worker ? "" : "-",
             weir_stage_kind_name(row->kind));
    snprintf(total, sizeof total, "%.3fs", row->total_s);
    if (row->cpu_over_wall >= 0)
        snprintf(cpu, sizeof cpu, "%.2f", row->cpu_over_wall);
    if (row->share >= 0)
        snprintf(share, sizeof share, "%.1f%%", 100 * row->share);
    fprintf(out, "%s%*s  %-13s %9" PRIu64 " %11s %9s %9s %9s %9s %9s %8s %6s\n", row->name,
            width - weir_text_width(row->name), "", kind, row->count, total, weir_report_time(mean, row->mean_s),
            weir_report_time(p50, row->p50_s), weir_report_time(p90, row->p90_s), weir_report_time(p99, row->p99_s),
            weir_report_time(max, row->max_s), cpu, share);
}

static void print_stages(FILE *out, const struct weir_report *report)
{
    int width = 22, with_calls = 0;
    for (int i = 0; i < report->n_rows; i++) {
        const struct weir_report_row *row = &report->rows[i];
        with_calls += row->count > 0;
        if (row->count > 0 && weir_text_width(row->name) > width)
            width = weir_text_width(row->name);
    }
    for (int i = 0; i < report->gpu.n_rows; i++)
        if (weir_text_width(report->gpu.rows[i].name) > width)
            width = weir_text_width(report->gpu.rows[i].name);
    if (with_calls == 0) {
        fputs("no stage was called\n", out);
        return;
    }
    fprintf(out, "%-*s  %-13s %9s %11s %9s %9s %9s %9s %9s %8s %6s\n", width, "stage", "kind", "calls", "total", "mean",
            "p50", "p90", "p99", "max", "CPU/wall", "share");
    for (int i = 0; i < report->n_rows; i++)
        if (report->rows[i].count > 0)
            print_row(out, &report->rows[i], width);
    for (int i = 0; i < report->gpu.n_rows; i++)
        print_row(out, &report->gpu.rows[i], width);
}

static void print_chunks(FILE *out, const struct weir_chunk_counts *counts)
{
    if (counts->frames > 0)
        fprintf(out,
                "chunks: %" PRIu64 " unpacked for %" PRIu64 " frames, each for %.1f at once; unpacked %.2f times and "
                "read %.2f times their own bytes\n",
                counts->chunks, counts->frames, weir_chunks_shared(counts), weir_chunks_unpacked(counts),
                weir_chunks_read(counts));
}

static void print_fallbacks(FILE *out, const struct weir_report_fallbacks *fallbacks)
{
    char each[24];
    fprintf(out, "fallbacks: %" PRIu64 " frames read through the HDF5 library", fallbacks->frames);
    if (fallbacks->each_s > 0)
        fprintf(out, ", its helper process busy %.0f %% of the time, %s each, %.1f workers waiting for it",
                100 * fallbacks->busy, weir_report_time(each, fallbacks->each_s), fallbacks->waiting);
    fputc('\n', out);
}

static void print_queue_and_io(FILE *out, const struct weir_report *report)
{
    if (report->queue_samples > 0)
        fprintf(out,
                "queue: %d slots, ready batches at each request: mean %.2f, min %d, max %d (%" PRIu64 " requests)\n",
                report->queue_slots, report->queue_mean, report->queue_min, report->queue_max, report->queue_samples);
    fprintf(out, "io: %" PRIu64 " reads, %.3f GB", report->reads, (double)report->read_bytes / 1e9);
    if (report->reads > 0)
        fprintf(out, ", %.1f kB per read", (double)report->read_bytes / 1e3 / (double)report->reads);
    fputc('\n', out);
    print_fallbacks(out, &report->fallbacks);
    if (report->decoded_pixels != report->stored_pixels)
        fprintf(out, "decoding: %.1f %% of the stored pixels were decoded, the rest was cropped or scaled away\n",
                weir_report_decoded_percent(report));
    print_chunks(out, &report->chunks);
}

static void print_copies(FILE *out, const struct weir_report *report)
{
    const struct weir_report_cache *cache = &report->cache;
    if (report->frames_shared > 0)
        fprintf(out, "frames shared within batches: %" PRIu64 " copied, not decoded again\n", report->frames_shared);
    if (cache->budget_bytes == 0)
        return;
    fprintf(out,
            "decode cache: %.1f %% hits (%" PRIu64 " of %" PRIu64 "), %" PRIu64 " frames kept, %.1f of %.1f MB used",
            100 * weir_report_hit_rate(cache), cache->hits, cache->hits + cache->misses, cache->frames,
            (double)cache->used_bytes / 1e6, (double)cache->budget_bytes / 1e6);
    if (isfinite(cache->saved_s))
        fprintf(out, ", %.3f s of work saved", cache->saved_s);
    fprintf(out, "\ndecode cache of all %" PRIu64 " frames: %.1f MB", cache->all_frames,
            (double)cache->all_bytes / 1e6);
    if (cache->all_hit_rate >= 0)
        fprintf(out, ", %.1f %% hits", 100 * cache->all_hit_rate);
    fputc('\n', out);
}

static void print_errors(FILE *out, const struct weir_report *report)
{
    fprintf(out,
            "errors: %" PRIu64 " bad frames, %" PRIu64 " samples skipped, %" PRIu64 " frames substituted, %" PRIu64
            " episodes left out",
            report->bad_frames, report->skipped_samples, report->substituted_frames, report->bad_episodes);
    if (report->changed_files > 0)
        fprintf(out, ", %" PRIu64 " files changed while they were read", report->changed_files);
    fputc('\n', out);
    weir_report_errors(out, report, " x ", "and ", " more");
}

void weir_report_print_en(FILE *out, const struct weir_report *report)
{
    print_covers(out, report);
    if (report->timing)
        print_stages(out, report);
    else
        fputs("stage timing was off (--no-timing)\n", out);
    weir_report_threads_en(out, report);
    weir_report_machine_print(out, &report->machine, WEIR_LANG_EN);
    weir_report_gpu_en(out, &report->gpu);
    print_queue_and_io(out, report);
    weir_report_sources_en(out, report);
    print_copies(out, report);
    print_errors(out, report);
    if (!report->timing)
        return;
    fprintf(out,
            "profiler: %" PRIu64
            " zones x %.1f ns = %.3f s of %.2f s thread time (%.4f %%), clock calibrated to %.2f ppm, CPU time %s%s",
            report->zones, report->zone_cost_ns, (double)report->zones * report->zone_cost_ns / 1e9, report->thread_s,
            100 * report->profiler_share, report->clock_error_ppm,
            report->cpu_sampled[0] ? "sampled, " : "by context switches", report->cpu_sampled);
    if (report->too_deep > 0)
        fprintf(out, ", %" PRIu64 " zones dropped that were nested deeper than %d", report->too_deep, WEIR_ZONES_DEEP);
    fputc('\n', out);
}

void weir_report_print(FILE *out, const struct weir_report *report, enum weir_lang lang)
{
    if (lang == WEIR_LANG_ZH)
        weir_report_print_zh(out, report);
    else
        weir_report_print_en(out, report);
}
