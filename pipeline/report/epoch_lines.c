/* Prints the lines about an epoch, the first batch and the --seconds window. */
#include "base/terminal.h"
#include "base/text.h"
#include "pipeline/report/report_parts_priv.h"

#include <math.h>

const char *weir_report_reads_name(enum weir_reads reads)
{
    static const char *const names[] = {NULL, "cold", "warm", "partly", "direct"};
    return names[reads];
}

static const char *const texts[] = {
    ("epoch %d/%d%s total %.2f s | train %.2f s | val %.2f s | data wait %.1f %% | %.1f samples/s | %.1f images/s | "
     "peak memory %s"),
    " (interrupted)",
    " | train loss %.6f",
    " | val loss %.6f",
    " | GPU busy %.1f %%",
    " | copies overlapped %.1f %%",
    " | %s: %.0f %% cached",
    "cold",
    "warm",
    "partly",
    " | direct reads",
    "",
    "whole run%s%s: ",
    ", after the epoch that filled the decode cache",
    "measured part",
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
    char peak[16];
    struct weir_wrap wrap;
    if (lang == WEIR_LANG_ZH) /* users parse this line */
        snprintf(peak, sizeof peak, "%.2fGB", (double)line->peak_rss_bytes / 1e9);
    else
        snprintf(peak, sizeof peak, "%s", weir_size((double)line->peak_rss_bytes).text);
    FILE *parts = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, " | ");
    wrap.one_line = true;
    fprintf(parts, text[WEIR_TEXT_EPOCH], line->epoch, line->epoch_count,
            line->interrupted ? text[WEIR_TEXT_INTERRUPTED] : "", line->total_s, line->train_s, line->val_s,
            100 * line->data_wait_fraction, line->samples_per_s, line->images_per_s, peak);
    if (line->trained && isfinite(line->train_loss))
        fprintf(parts, text[WEIR_TEXT_TRAIN_LOSS], line->train_loss);
    if (line->trained && isfinite(line->val_loss))
        fprintf(parts, text[WEIR_TEXT_VAL_LOSS], line->val_loss);
    if (line->gpu)
        fprintf(parts, text[WEIR_TEXT_GPU_BUSY], 100 * line->gpu_busy_fraction);
    if (line->gpu && line->copy_overlap_fraction >= 0)
        fprintf(parts, text[WEIR_TEXT_OVERLAP], 100 * line->copy_overlap_fraction);
    if (line->reads == WEIR_READS_DIRECT)
        fputs(text[WEIR_TEXT_DIRECT], parts);
    else if (line->reads != WEIR_READS_UNKNOWN)
        fprintf(parts, text[WEIR_TEXT_CACHED], text[states[line->reads]], 100 * line->cached_fraction);
    fputc('\n', parts);
    weir_wrap_close(&wrap);
}

void weir_start_print(FILE *out, const struct weir_start_line *line)
{
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    fprintf(text,
            "first batch after %.3f s (open %.3f s, of which index %.3f s: %d files, %d of them from the index file)\n",
            line->first_batch_s, line->open_s, line->index_s, line->files, line->files_from_index);
    weir_wrap_close(&wrap);
}

void weir_measured_print(FILE *out, const struct weir_measured_line *line)
{
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, " | ");
    wrap.one_line = true;
    fprintf(text,
            "measured %.2f s after %.2f s of warm-up | data wait %.1f %% | %.1f samples/s | %.1f images/s | peak "
            "memory %s\n",
            line->seconds, line->warm_up_s, 100 * line->data_wait_fraction, line->samples_per_s, line->images_per_s,
            weir_size((double)line->peak_rss_bytes).text);
    weir_wrap_close(&wrap);
}
