/* Prints the tables of a report. */
#include "base/shortage.h"
#include "base/terminal.h"
#include "base/text.h"
#include "pipeline/report/fill_priv.h"
#include "pipeline/report/report_parts_priv.h"
#include "prof/report/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static void print_covers(FILE *out, const struct weir_loader_report *report, const char *const *text)
{
    int first = report->epoch_first, last = report->epoch_last, n = report->epoch_count;
    fputs(text[WEIR_TEXT_COVERS], out);
    if (report->final && n > 0)
        fprintf(out, text[WEIR_TEXT_WHOLE_RUN], report->interrupted ? text[WEIR_TEXT_INTERRUPTED] : "",
                report->after_fill ? text[WEIR_TEXT_AFTER_FILL] : "");
    if (n == 0)
        fputs(text[report->final ? WEIR_TEXT_MEASURED : WEIR_TEXT_SINCE_TABLE], out);
    else if (last < first)
        fprintf(out, text[WEIR_TEXT_NO_EPOCH], n);
    else
        fprintf(out, text[last == first ? WEIR_TEXT_ONE_EPOCH : WEIR_TEXT_EPOCHS], n, first, last);
    fprintf(out, text[WEIR_TEXT_WALL], report->wall_s);
}

static void print_chunks(FILE *out, const struct weir_chunk_counts *counts)
{
    if (counts->frames > 0)
        fprintf(out,
                "chunks: %" PRIu64 " unpacked for %" PRIu64 " frames, %.1f frames at a time; %.2f bytes unpacked per "
                "byte of the frames, %.2f bytes read per stored byte\n",
                counts->chunks, counts->frames, weir_chunks_shared(counts), weir_chunks_unpacked(counts),
                weir_chunks_read(counts));
}

static void print_pictures(FILE *out, const struct weir_video_counts *counts)
{
    if (counts->groups == 0 || counts->used == 0)
        return;
    fprintf(out, "videos: %" PRIu64 " pictures decoded for %" PRIu64 " frames, %.2f each, in groups of %.1f pictures",
            counts->decoded, counts->used, (double)counts->decoded / (double)counts->used,
            (double)counts->group_pictures / (double)counts->groups);
    if (counts->gpu_groups > 0)
        fprintf(out, ", %.0f %% of them by the GPU", 100 * (double)counts->gpu_groups / (double)counts->groups);
    fputc('\n', out);
}

static void print_fallbacks(FILE *out, const struct weir_report_fallbacks *fallbacks)
{
    char each[24];
    fprintf(out, "fallbacks: %" PRIu64 " frames read through the HDF5 library", fallbacks->frames);
    if (fallbacks->each_s > 0)
        fprintf(out, ", its helper process busy %.0f %% of the time, %s per frame, %.1f workers waiting for it",
                100 * fallbacks->busy, weir_report_time(each, fallbacks->each_s), fallbacks->waiting);
    fputc('\n', out);
}

static void print_disk_cache(FILE *out, const struct weir_report_server *server)
{
    uint64_t all = server->bytes + server->cache_bytes;
    if (server->cache_bytes == 0 && server->cache_stored_bytes == 0 && server->cache_full_bytes == 0 &&
        server->cache_errno == 0)
        return;
    fprintf(out, "cache: %s of %s came from disk (%.0f %%), %s stored", weir_size((double)server->cache_bytes).text,
            weir_size((double)all).text, all ? 100 * (double)server->cache_bytes / (double)all : 0,
            weir_size((double)server->cache_stored_bytes).text);
    if (server->cache_full_bytes > 0)
        fprintf(out, "; full: %s not stored, so choose a larger size",
                weir_size((double)server->cache_full_bytes).text);
    if (server->cache_damaged_blocks > 0)
        fprintf(out, "; %" PRIu64 " damaged blocks read from the server", server->cache_damaged_blocks);
    fputc('\n', out);
    if (server->cache_errno != 0)
        fprintf(out, "warning: --cache stores nothing more: %s; %s\n", strerror((int)server->cache_errno),
                server->cache_errno == EBUSY ? "a process that uses it has been stopped"
                                             : weir_write_advice(-(int)server->cache_errno));
}

static void print_server(FILE *out, const struct weir_report_server *server)
{
    char wait[24], transfer[24];
    if (server->requests == 0 && server->opening_requests == 0)
        return;
    fprintf(out,
            "server: %" PRIu64 " requests, and %" PRIu64 " to open, over %" PRIu64 " connections%s%s; mean %s to the "
            "first byte, then %s; %" PRIu64 " repeated, %" PRIu64 " refused by a limit (429, 503)",
            server->requests, server->opening_requests, server->connections, *server->host ? " to " : "", server->host,
            weir_report_time(wait, server->wait_s), weir_report_time(transfer, server->transfer_s), server->retries,
            server->limited);
    if (server->limit > 0)
        fprintf(out, "; %.1f in flight on average, at most %d%s", server->in_flight, server->limit,
                server->limit_fixed ? " (--io-depth)" : " at the end");
    fputc('\n', out);
}

static void print_queue_and_io(FILE *out, const struct weir_loader_report *report)
{
    if (report->queue_samples > 0)
        fprintf(out,
                "queue: %d slots, ready batches at each request: mean %.2f, min %d, max %d (%" PRIu64 " requests)\n",
                report->queue_slots, report->queue_mean, report->queue_min, report->queue_max, report->queue_samples);
    fprintf(out, "io: %" PRIu64 " reads, %s", report->reads, weir_size((double)report->read_bytes).text);
    if (report->reads > 0)
        fprintf(out, ", %s per read", weir_size((double)report->read_bytes / (double)report->reads).text);
    if (report->ahead_reads > 0)
        fprintf(out, ", %.0f %% by read-ahead", 100 * (double)report->ahead_reads / (double)report->reads);
    fputc('\n', out);
    print_server(out, &report->server);
    print_disk_cache(out, &report->server);
    print_fallbacks(out, &report->fallbacks);
    if (report->decoded_pixels != report->stored_pixels)
        fprintf(out, "decoding: %.1f %% of the stored pixels were decoded; the rest was cropped or scaled away\n",
                weir_report_decoded_percent(report));
    print_chunks(out, &report->chunks);
    print_pictures(out, &report->video.counts);
}

static void print_copies(FILE *out, const struct weir_loader_report *report)
{
    const struct weir_report_cache *cache = &report->cache;
    if (report->frames_shared > 0)
        fprintf(out, "frames shared within batches: %" PRIu64 " copied, not decoded again\n", report->frames_shared);
    if (cache->budget_bytes == 0)
        return;
    fprintf(out, "decode cache: %.1f %% hits (%" PRIu64 " of %" PRIu64 "), %" PRIu64 " frames kept, %s of %s used",
            100 * weir_report_hit_rate(cache), cache->hits, cache->hits + cache->misses, cache->frames,
            weir_size((double)cache->used_bytes).text, weir_size((double)cache->budget_bytes).text);
    if (cache->saved_s >= 0)
        fprintf(out, ", %.3f s of work saved", cache->saved_s);
    else if (isfinite(cache->saved_s))
        fprintf(out, ", no work saved: copies took %.3f s longer than loading", -cache->saved_s);
    fprintf(out, "\ndecode cache of all %" PRIu64 " frames: %s", cache->all_frames,
            weir_size((double)cache->all_bytes).text);
    if (cache->all_hit_rate >= 0)
        fprintf(out, ", %.1f %% hits", 100 * cache->all_hit_rate);
    fputc('\n', out);
}

static void print_errors(FILE *out, const struct weir_loader_report *report)
{
    fprintf(out,
            "errors: %" PRIu64 " bad frames, %" PRIu64 " samples skipped, %" PRIu64 " frames substituted, %" PRIu64
            " episodes left out",
            report->bad_frames, report->skipped_samples, report->substituted_frames, report->bad_episodes);
    if (report->changed_files > 0)
        fprintf(out, ", %" PRIu64 " files changed while they were read", report->changed_files);
    fputc('\n', out);
    if (report->warned_frames > 0)
        fprintf(out, "warnings: %" PRIu64 " " WEIR_WARNED_FRAMES "\n", report->warned_frames);
}

void weir_loader_report_loop_print(FILE *out, const struct weir_loader_report *report, enum weir_lang lang)
{
    if (!report->timing)
        fputs("stage timing was off (--no-timing)\n", out);
    else if (lang == WEIR_LANG_ZH)
        weir_report_stages_zh(out, report);
    else
        weir_report_stages_print(out, &report->prof, report->gpu.rows, report->gpu.n_rows);
    weir_report_threads_print(out, &report->prof);
    weir_report_machine_print(out, &report->prof.machine);
}

void weir_loader_report_print(FILE *out, const struct weir_loader_report *report, enum weir_lang lang)
{
    struct weir_wrap wrap;
    print_covers(out, report, weir_report_texts(lang));
    weir_loader_report_loop_print(out, report, lang);
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    weir_report_gpu_print(text, &report->gpu);
    print_queue_and_io(text, report);
    weir_wrap_close(&wrap);
    weir_report_sources_print(out, report);
    text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    print_copies(text, report);
    print_errors(text, report);
    weir_wrap_close(&wrap);
    weir_report_errors(out, report);
    if (report->timing)
        weir_report_cost_print(out, &report->prof);
    if (report->setup.copy_bytes_per_s > 0)
        fprintf(out, "memory copies: %.1f GB/s, measured in %s that peak memory does not include\n",
                report->setup.copy_bytes_per_s / 1e9, weir_size(WEIR_COPY_RATE_BYTES).text);
}
