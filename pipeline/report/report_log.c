#include "pipeline/report/report_parts_priv.h"

#include "base/text.h"

#include <math.h>

static void write_queue_and_io(struct weir_json *json, const struct weir_loader_report *report)
{
    weir_json_object(json, "queue");
    weir_json_int(json, "slots", report->queue_slots);
    weir_json_double(json, "mean", report->queue_mean);
    weir_json_int(json, "min", report->queue_min);
    weir_json_int(json, "max", report->queue_max);
    weir_json_uint(json, "requests", report->queue_samples);
    weir_json_end(json, '}');
    weir_json_object(json, "io");
    weir_json_uint(json, "reads", report->reads);
    weir_json_uint(json, "read_bytes", report->read_bytes);
    weir_json_uint(json, "fallback_reads", report->fallbacks.frames);
    weir_json_double(json, "helper_busy_fraction", report->fallbacks.busy);
    weir_json_double(json, "helper_each_s", report->fallbacks.each_s);
    weir_json_double(json, "helper_waiting", report->fallbacks.waiting);
    weir_json_end(json, '}');
    weir_json_object(json, "decoding");
    weir_json_uint(json, "stored_pixels", report->stored_pixels);
    weir_json_uint(json, "decoded_pixels", report->decoded_pixels);
    weir_json_end(json, '}');
}

static void write_chunks(struct weir_json *json, const struct weir_chunk_counts *counts)
{
    if (counts->frames == 0)
        return;
    weir_json_object(json, "chunks");
    weir_json_uint(json, "frames", counts->frames);
    weir_json_uint(json, "blocks", counts->blocks);
    weir_json_uint(json, "chunks", counts->chunks);
    weir_json_uint(json, "frame_bytes", counts->frame_bytes);
    weir_json_uint(json, "unpacked_bytes", counts->unpacked_bytes);
    weir_json_uint(json, "stored_bytes", counts->stored_bytes);
    weir_json_uint(json, "read_bytes", counts->read_bytes);
    weir_json_double(json, "unpacked_times", weir_chunks_unpacked(counts));
    weir_json_double(json, "read_times", weir_chunks_read(counts));
    weir_json_end(json, '}');
}

static void write_copies(struct weir_json *json, const struct weir_loader_report *report)
{
    const struct weir_report_cache *cache = &report->cache;
    weir_json_uint(json, "frames_shared", report->frames_shared);
    if (cache->budget_bytes == 0)
        return;
    weir_json_object(json, "decode_cache");
    weir_json_uint(json, "budget_bytes", cache->budget_bytes);
    weir_json_uint(json, "used_bytes", cache->used_bytes);
    weir_json_uint(json, "frames", cache->frames);
    weir_json_uint(json, "hits", cache->hits);
    weir_json_uint(json, "misses", cache->misses);
    weir_json_double(json, "hit_rate", weir_report_hit_rate(cache));
    if (isfinite(cache->saved_s))
        weir_json_double(json, "saved_s", cache->saved_s);
    else
        weir_json_null(json, "saved_s");
    weir_json_uint(json, "all_frames", cache->all_frames);
    weir_json_uint(json, "all_bytes", cache->all_bytes);
    weir_json_known(json, "all_hit_rate", cache->all_hit_rate);
    weir_json_end(json, '}');
}

static void write_errors(struct weir_json *json, const struct weir_loader_report *report)
{
    weir_json_uint(json, "bad_frames", report->bad_frames);
    weir_json_uint(json, "skipped_samples", report->skipped_samples);
    weir_json_uint(json, "substituted_frames", report->substituted_frames);
    weir_json_uint(json, "bad_episodes", report->bad_episodes);
    if (report->changed_files > 0)
        weir_json_uint(json, "changed_files", report->changed_files);
    weir_json_array(json, "errors");
    for (int i = 0; i < report->n_errors && i < WEIR_REPORT_ERRORS_MAX; i++) {
        /* As in the tables, so that a log reproduces the run's output. */
        char text[sizeof report->errors[i].text];
        snprintf(text, sizeof text, "%s", report->errors[i].text);
        weir_text_printable(text);
        weir_json_object(json, NULL);
        weir_json_text(json, "text", text);
        weir_json_uint(json, "count", report->errors[i].count);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

void weir_loader_report_json(struct weir_json *json, const struct weir_loader_report *report)
{
    weir_json_int(json, "epoch_first", report->epoch_first);
    weir_json_int(json, "epoch_last", report->epoch_last);
    weir_json_int(json, "epoch_count", report->epoch_count);
    weir_json_bool(json, "final", report->final);
    weir_json_bool(json, "interrupted", report->interrupted);
    weir_json_double(json, "wall_s", report->wall_s);
    weir_json_double(json, "cpu_s", report->cpu_s);
    weir_json_bool(json, "timing", report->timing);
    weir_report_json(json, &report->prof);
    weir_report_gpu_json(json, &report->gpu);
    write_queue_and_io(json, report);
    write_chunks(json, &report->chunks);
    weir_report_sources_json(json, &report->sources);
    weir_report_steps_json(json, report);
    write_copies(json, report);
    write_errors(json, report);
    weir_report_cost_json(json, &report->prof);
}

void weir_report_line(FILE *log, const struct weir_loader_report *report, const struct weir_report_addition *addition)
{
    struct weir_json json;
    weir_json_open(&json, log, false);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "type", "stages");
    weir_loader_report_json(&json, report);
    if (addition)
        addition->json(addition->user, &json, report);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fflush(log);
}

void weir_loader_report_log(FILE *log, const struct weir_loader_report *report)
{
    weir_report_line(log, report, NULL);
}
