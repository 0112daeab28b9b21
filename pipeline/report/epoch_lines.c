/* Prints the line of an epoch, and that of the first batch. */
#include "pipeline/report/report_parts_priv.h"

#include <math.h>

const char *weir_report_reads_name(enum weir_reads reads)
{
    static const char *const names[] = {NULL, "cold", "warm", "partly", "direct"};
    return names[reads];
}

static const char *const texts[] = {
    "epoch %d/%d%s total %.2f s | train %.2f s | val %.2f s | data wait %.1f %% | %.1f samples/s | %.1f images/s | "
    "peak memory %.2f GB",
    " (interrupted)",
    " | train loss %.6f",
    " | val loss %.6f",
    " | GPU busy %.1f %%",
    " | copies overlapped %.1f %%",
    " | %s: %.0f %% in the page cache at its start",
    "cold",
    "warm",
    "partly",
    " | direct reads",
    "",
    "whole run%s: ",
    "what was measured",
    "since the last table",
    "no epoch of %d",
    "epoch %2$d of %1$d",
    "epochs %2$d-%3$d of %1$d",
    ", %.2f s\n",
};
_Static_assert(sizeof texts / sizeof *texts == WEIR_TEXTS, "one text for each enum weir_text");

const char *const *weir_report_texts(enum weir_lang lang)
{
    return lang == WEIR_LANG_ZH ? weir_report_texts_zh() : texts;
}

void weir_epoch_print(FILE *out, const struct weir_epoch_line *line, enum weir_lang lang)
{
    static const enum weir_text states[] = {
        [WEIR_READS_COLD] = WEIR_TEXT_COLD, [WEIR_READS_WARM] = WEIR_TEXT_WARM, [WEIR_READS_PARTLY] = WEIR_TEXT_PARTLY};
    const char *const *text = weir_report_texts(lang);
    fprintf(out, text[WEIR_TEXT_EPOCH], line->epoch, line->epoch_count,
            line->interrupted ? text[WEIR_TEXT_INTERRUPTED] : "", line->total_s, line->train_s, line->val_s,
            100 * line->data_wait_fraction, line->samples_per_s, line->images_per_s,
            (double)line->peak_rss_bytes / 1e9);
    if (line->trained && isfinite(line->train_loss))
        fprintf(out, text[WEIR_TEXT_TRAIN_LOSS], line->train_loss);
    if (line->trained && isfinite(line->val_loss))
        fprintf(out, text[WEIR_TEXT_VAL_LOSS], line->val_loss);
    if (line->gpu)
        fprintf(out, text[WEIR_TEXT_GPU_BUSY], 100 * line->gpu_busy_fraction);
    if (line->gpu && line->copy_overlap_fraction >= 0)
        fprintf(out, text[WEIR_TEXT_OVERLAP], 100 * line->copy_overlap_fraction);
    if (line->reads == WEIR_READS_DIRECT)
        fputs(text[WEIR_TEXT_DIRECT], out);
    else if (line->reads != WEIR_READS_UNKNOWN)
        fprintf(out, text[WEIR_TEXT_CACHED], text[states[line->reads]], 100 * line->cached_fraction);
    fputc('\n', out);
}

void weir_start_print(FILE *out, const struct weir_start_line *line)
{
    fprintf(out,
            "first batch after %.3f s (open %.3f s, of it index %.3f s: %d files, %d of them from the index file)\n",
            line->first_batch_s, line->open_s, line->index_s, line->files, line->files_from_index);
}

void weir_measured_print(FILE *out, const struct weir_measured_line *line)
{
    fprintf(out,
            "measured %.2f s after %.2f s of warm-up | data wait %.1f %% | %.1f samples/s | %.1f images/s | peak "
            "memory %.2f GB\n",
            line->seconds, line->warm_up_s, 100 * line->data_wait_fraction, line->samples_per_s, line->images_per_s,
            (double)line->peak_rss_bytes / 1e9);
}

/* ---- JSON ---- */

void weir_start_json(struct weir_json *json, const struct weir_start_line *line)
{
    weir_json_double(json, "first_batch_s", line->first_batch_s);
    weir_json_double(json, "open_s", line->open_s);
    weir_json_double(json, "index_s", line->index_s);
    weir_json_int(json, "files", line->files);
    weir_json_int(json, "files_from_index", line->files_from_index);
}

void weir_epoch_json(struct weir_json *json, const struct weir_epoch_line *line)
{
    weir_json_int(json, "epoch", line->epoch);
    weir_json_int(json, "epoch_count", line->epoch_count);
    weir_json_bool(json, "interrupted", line->interrupted);
    weir_json_double(json, "total_s", line->total_s);
    weir_json_double(json, "train_s", line->train_s);
    weir_json_double(json, "val_s", line->val_s);
    weir_json_double(json, "data_wait_fraction", line->data_wait_fraction);
    weir_json_double(json, "samples_per_s", line->samples_per_s);
    weir_json_double(json, "images_per_s", line->images_per_s);
    weir_json_uint(json, "peak_rss_bytes", line->peak_rss_bytes);
    weir_json_text(json, "reads", weir_report_reads_name(line->reads));
    weir_json_known(json, "page_cache_fraction", line->reads == WEIR_READS_UNKNOWN ? -1 : line->cached_fraction);
    if (line->trained) {
        weir_json_double(json, "train_loss", line->train_loss);
        weir_json_double(json, "val_loss", line->val_loss);
    }
    if (!line->gpu)
        return;
    weir_json_double(json, "gpu_busy_fraction", line->gpu_busy_fraction);
    weir_json_known(json, "copy_overlap_fraction", line->copy_overlap_fraction);
}

void weir_start_log(FILE *log, const struct weir_start_line *line)
{
    struct weir_json json;
    weir_json_open(&json, log, false);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "type", "start");
    weir_start_json(&json, line);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fflush(log);
}

void weir_epoch_log(FILE *log, const struct weir_epoch_line *line)
{
    struct weir_json json;
    weir_json_open(&json, log, false);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "type", "epoch");
    weir_epoch_json(&json, line);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fflush(log);
}

void weir_measured_log(FILE *log, const struct weir_measured_line *line)
{
    struct weir_json json;
    weir_json_open(&json, log, false);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "type", "measured");
    weir_json_double(&json, "seconds", line->seconds);
    weir_json_double(&json, "warm_up_s", line->warm_up_s);
    weir_json_uint(&json, "batches", line->batches);
    weir_json_uint(&json, "samples", line->samples);
    weir_json_uint(&json, "images", line->images);
    weir_json_double(&json, "samples_per_s", line->samples_per_s);
    weir_json_double(&json, "images_per_s", line->images_per_s);
    weir_json_double(&json, "data_wait_fraction", line->data_wait_fraction);
    weir_json_uint(&json, "peak_rss_bytes", line->peak_rss_bytes);
    weir_json_text(&json, "reads", weir_report_reads_name(line->reads));
    weir_json_known(&json, "page_cache_fraction", line->reads == WEIR_READS_UNKNOWN ? -1 : line->cached_fraction);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fflush(log);
}
