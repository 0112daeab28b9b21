/* The line of an epoch, and that of the first batch. */
#include "weir/report.h"

#include <math.h>

const char *weir_report_reads_name(enum weir_reads reads)
{
    static const char *const names[] = {NULL, "cold", "warm", "partly", "direct"};
    return names[reads];
}

static void epoch_zh(FILE *out, const struct weir_epoch_line *line)
{
    fprintf(out,
            "Epoch %d/%d%s 总耗时: %.2fs | 训练耗时: %.2fs | 验证耗时: %.2fs | 数据等待: %.1f%% | 样本/秒: %.1f | "
            "图像/秒: %.1f | 峰值内存: %.2fGB",
            line->epoch, line->epoch_count, line->interrupted ? " (中断)" : "", line->total_s, line->train_s,
            line->val_s, 100 * line->data_wait_fraction, line->samples_per_s, line->images_per_s,
            (double)line->peak_rss_bytes / 1e9);
}

static void epoch_en(FILE *out, const struct weir_epoch_line *line)
{
    fprintf(out,
            "epoch %d/%d%s total %.2f s | train %.2f s | val %.2f s | data wait %.1f %% | %.1f samples/s | "
            "%.1f images/s | peak memory %.2f GB",
            line->epoch, line->epoch_count, line->interrupted ? " (interrupted)" : "", line->total_s, line->train_s,
            line->val_s, 100 * line->data_wait_fraction, line->samples_per_s, line->images_per_s,
            (double)line->peak_rss_bytes / 1e9);
}

static void gpu_en(FILE *out, const struct weir_epoch_line *line)
{
    if (!line->gpu)
        return;
    fprintf(out, " | GPU busy %.1f %%", 100 * line->gpu_busy_fraction);
    if (line->copy_overlap_fraction >= 0)
        fprintf(out, " | copies overlapped %.1f %%", 100 * line->copy_overlap_fraction);
}

static void gpu_zh(FILE *out, const struct weir_epoch_line *line)
{
    if (!line->gpu)
        return;
    fprintf(out, " | GPU忙碌: %.1f%%", 100 * line->gpu_busy_fraction);
    if (line->copy_overlap_fraction >= 0)
        fprintf(out, " | 拷贝重叠: %.1f%%", 100 * line->copy_overlap_fraction);
}

static void losses(FILE *out, const struct weir_epoch_line *line, bool zh)
{
    if (line->trained && isfinite(line->train_loss))
        fprintf(out, zh ? " | 训练损失: %.6f" : " | train loss %.6f", line->train_loss);
    if (line->trained && isfinite(line->val_loss))
        fprintf(out, zh ? " | 验证损失: %.6f" : " | val loss %.6f", line->val_loss);
}

static void reads_zh(FILE *out, const struct weir_epoch_line *line)
{
    static const char *const names[] = {"", "冷", "热", "部分缓存", ""};
    if (line->reads == WEIR_READS_DIRECT)
        fputs(" | 直接读取", out);
    else if (line->reads != WEIR_READS_UNKNOWN)
        fprintf(out, " | 页缓存: %.0f%% (%s)", 100 * line->cached_fraction, names[line->reads]);
}

static void reads_en(FILE *out, const struct weir_epoch_line *line)
{
    if (line->reads == WEIR_READS_DIRECT)
        fputs(" | direct reads", out);
    else if (line->reads != WEIR_READS_UNKNOWN)
        fprintf(out, " | %s: %.0f %% in the page cache at its start", weir_report_reads_name(line->reads),
                100 * line->cached_fraction);
}

void weir_epoch_print(FILE *out, const struct weir_epoch_line *line, enum weir_lang lang)
{
    if (lang == WEIR_LANG_ZH) {
        epoch_zh(out, line);
        losses(out, line, true);
        gpu_zh(out, line);
        reads_zh(out, line);
    } else {
        epoch_en(out, line);
        losses(out, line, false);
        gpu_en(out, line);
        reads_en(out, line);
    }
    fputc('\n', out);
}

void weir_start_print(FILE *out, const struct weir_start_line *line, enum weir_lang lang)
{
    const char *format =
        lang == WEIR_LANG_ZH
            ? "首个批次: %.3fs (打开: %.3fs, 其中索引: %.3fs, %d 个文件, %d 个取自索引文件)\n"
            : "first batch after %.3f s (open %.3f s, of it index %.3f s: %d files, %d of them from the "
              "index file)\n";
    fprintf(out, format, line->first_batch_s, line->open_s, line->index_s, line->files, line->files_from_index);
}

void weir_measured_print(FILE *out, const struct weir_measured_line *line, enum weir_lang lang)
{
    const char *format =
        lang == WEIR_LANG_ZH
            ? "测量: %.2fs (预热: %.2fs) | 数据等待: %.1f%% | 样本/秒: %.1f | 图像/秒: %.1f | 峰值内存: %.2fGB\n"
            : "measured %.2f s after %.2f s of warm-up | data wait %.1f %% | %.1f samples/s | %.1f "
              "images/s | peak memory %.2f GB\n";
    fprintf(out, format, line->seconds, line->warm_up_s, 100 * line->data_wait_fraction, line->samples_per_s,
            line->images_per_s, (double)line->peak_rss_bytes / 1e9);
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
