#include "pipeline/report/report_parts_priv.h"
#include "prof/report/machine.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* grep -A 20 "性能分析统计" shows the title and 20 lines: two rules, the legend, these, and the rule that ends the
 * table; behind it a line says how many rows there are beside. */
enum { RULE_WIDTH = 60, ROWS_MAX = 16 };

/* People grep these lines in their logs and scripts compare them byte by byte: change nothing. */
static const char title[] = "⏱️  性能分析统计";
static const char legend[] = "环节名称                                  | 总计:    XXXs | 调用:  XXX次 | 平均: XXXms";

static void rule(FILE *out, char sign)
{
    for (int i = 0; i < RULE_WIDTH; i++)
        putc(sign, out);
    putc('\n', out);
}

static void print_covers(FILE *out, const struct weir_loader_report *report)
{
    fputs("统计范围: ", out);
    if (report->final && report->epoch_count > 0)
        fprintf(out, "整个运行%s, ", report->interrupted ? " (中断)" : "");
    if (report->epoch_count == 0)
        fputs(report->final ? "测量部分" : "上次统计以来", out);
    else if (report->epoch_last < report->epoch_first)
        fprintf(out, "没有轮次 (共 %d 轮)", report->epoch_count);
    else
        fprintf(out, "第 %d-%d 轮 (共 %d 轮)", report->epoch_first, report->epoch_last, report->epoch_count);
    fprintf(out, ", 墙钟 %.2fs\n", report->wall_s);
}

/* The rows of the table: first the stages that ACT's own table has, then what Weir tells apart beside them, then what
 * threads that feed a GPU do of the workers' stages, and last the workers' idle time. */
enum part { KNOWN, FURTHER, HELPERS, IDLE, LEFT_OUT };

static bool is_any_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static enum part part_of(const struct weir_report_row *row)
{
    static const char *const known[] = {"00_TOTAL_getitem",     "01_file_cache",          "02_read_qpos",
                                        "03_read_images_total", "03a_read_one_camera",    "03b_image_decode",
                                        "04_read_actions",      "05_to_tensor_normalize", "06_collate",
                                        "07_h2d_copy",          "08_wait_for_data",       "10_val_forward_pass",
                                        "21_backward",          "20_train_forward_pass",  "22_optimizer_step"};
    static const char *const idle[] = {"09_wait_for_slot", "09b_wait_for_work", "09d_wait_for_gpu_decode"};
    if (row->side == WEIR_SIDE_HELPER)
        return row->kind == WEIR_KIND_WAIT ? LEFT_OUT : HELPERS;
    if (is_any_of(row->name, known, sizeof known / sizeof *known))
        return KNOWN;
    return is_any_of(row->name, idle, sizeof idle / sizeof *idle) ? IDLE : FURTHER;
}

/* Within a part the largest total first; rows of equal total stay in stage order. */
static int by_part(const void *left, const void *right)
{
    const struct weir_report_row *a = *(const struct weir_report_row *const *)left;
    const struct weir_report_row *b = *(const struct weir_report_row *const *)right;
    enum part x = part_of(a), y = part_of(b);
    if (x != y)
        return x < y ? -1 : 1;
    if (a->total_s != b->total_s)
        return a->total_s > b->total_s ? -1 : 1;
    return (a > b) - (a < b);
}

/* What a GPU does is timed by its own clock: the thread that queues it is done in no time, or has waited for something
 * else. Waits are the thread's. */
static const struct weir_report_row *timed_row(const struct weir_loader_report *report,
                                               const struct weir_report_row *row)
{
    const struct weir_report_gpu *gpu = &report->gpu;
    if (row->side != WEIR_SIDE_CONSUMER || row->kind == WEIR_KIND_WAIT)
        return row;
    for (int i = 0; i < gpu->n_rows; i++)
        if (strcmp(gpu->rows[i].name, row->name) == 0)
            return &gpu->rows[i];
    return row;
}

/* All rows, the first ROWS_MAX of which the table has room for. */
static size_t choose_rows(const struct weir_loader_report *report, const struct weir_report_row **rows)
{
    size_t n = 0;
    for (int i = 0; i < report->prof.n_rows; i++)
        if (report->prof.rows[i].count > 0 && part_of(&report->prof.rows[i]) != LEFT_OUT)
            rows[n++] = timed_row(report, &report->prof.rows[i]);
    qsort(rows, n, sizeof rows[0], by_part);
    return n;
}

/* Digits of a time in its unit: two, and more of one that two would show as zero. */
static int decimals(double value)
{
    return value >= 0.01 || value <= 0 ? 2 : value >= 0.0001 ? 4 : 6;
}

static void print_stages(FILE *out, const struct weir_loader_report *report)
{
    const struct weir_report_row *rows[WEIR_REPORT_ROWS];
    size_t n = choose_rows(report, rows);
    rule(out, '=');
    fprintf(out, "%s\n", title);
    rule(out, '=');
    fprintf(out, "%s\n", legend);
    rule(out, '-');
    for (size_t i = 0; i < n && i < ROWS_MAX; i++) {
        char name[WEIR_REPORT_NAME]; /* of one name a table has one row: readers of logs tell tables by that */
        if (rows[i]->side == WEIR_SIDE_GPU)
            snprintf(name, sizeof name, "%s", rows[i]->name);
        else
            weir_report_row_name(rows[i], name);
        double mean_ms = 1e3 * rows[i]->mean_s;
        fprintf(out, "%-40s | 总计: %8.*fs | 调用: %6" PRIu64 "次 | 平均: %6.*fms\n", name, decimals(rows[i]->total_s),
                rows[i]->total_s, rows[i]->count, decimals(mean_ms), mean_ms);
    }
    rule(out, '=');
    if (n > ROWS_MAX)
        fprintf(out, "另有 %zu 个环节未列出 (英文表列出全部)\n", n - ROWS_MAX);
}

static void print_queue_and_io(FILE *out, const struct weir_loader_report *report)
{
    if (report->queue_samples > 0)
        fprintf(out, "就绪队列: %d 个槽位, 每次请求时就绪批次: 平均 %.2f, 最小 %d, 最大 %d (%" PRIu64 " 次请求)\n",
                report->queue_slots, report->queue_mean, report->queue_min, report->queue_max, report->queue_samples);
    fprintf(out, "读取: %" PRIu64 " 次, %.3f GB", report->reads, (double)report->read_bytes / 1e9);
    if (report->reads > 0)
        fprintf(out, ", 每次 %.1f kB", (double)report->read_bytes / 1e3 / (double)report->reads);
    fprintf(out, "\n回退: %" PRIu64 " 帧经由 HDF5 库读取\n", report->fallbacks.frames);
    if (report->decoded_pixels != report->stored_pixels)
        fprintf(out, "解码: 仅解码已存像素的 %.1f%%, 其余已裁剪或缩放\n", weir_report_decoded_percent(report));
    const struct weir_chunk_counts *chunks = &report->chunks;
    if (chunks->frames > 0)
        fprintf(out,
                "数据块: 为 %" PRIu64 " 帧解压 %" PRIu64
                " 块, 每次供 %.1f 帧; 解压量为帧本身的 %.2f 倍, 读取量为 %.2f 倍\n",
                chunks->frames, chunks->chunks, weir_chunks_shared(chunks), weir_chunks_unpacked(chunks),
                weir_chunks_read(chunks));
}

static void print_copies(FILE *out, const struct weir_loader_report *report)
{
    const struct weir_report_cache *cache = &report->cache;
    if (report->frames_shared > 0)
        fprintf(out, "批内共享: %" PRIu64 " 帧直接复制, 未重复解码\n", report->frames_shared);
    if (cache->budget_bytes == 0)
        return;
    fprintf(out, "解码缓存: 命中率 %.1f%% (%" PRIu64 "/%" PRIu64 "), 已存 %" PRIu64 " 帧, 占用 %.1f/%.1f MB",
            100 * weir_report_hit_rate(cache), cache->hits, cache->hits + cache->misses, cache->frames,
            (double)cache->used_bytes / 1e6, (double)cache->budget_bytes / 1e6);
    if (cache->saved_s >= 0)
        fprintf(out, ", 节省工作时间 %.3fs", cache->saved_s);
    else if (isfinite(cache->saved_s))
        fprintf(out, ", 未节省工作时间: 复制比加载多用 %.3fs", -cache->saved_s);
    fprintf(out, "\n若缓存全部 %" PRIu64 " 帧: 需 %.1f MB", cache->all_frames, (double)cache->all_bytes / 1e6);
    if (cache->all_hit_rate >= 0)
        fprintf(out, ", 命中率 %.1f%%", 100 * cache->all_hit_rate);
    fputc('\n', out);
}

static void print_errors(FILE *out, const struct weir_loader_report *report)
{
    fprintf(out, "错误: %" PRIu64 " 个坏帧, 跳过 %" PRIu64 " 个样本, 替换 %" PRIu64 " 帧, 舍弃 %" PRIu64 " 个片段",
            report->bad_frames, report->skipped_samples, report->substituted_frames, report->bad_episodes);
    if (report->changed_files > 0)
        fprintf(out, ", 读取期间被改动 %" PRIu64 " 个文件", report->changed_files);
    fputc('\n', out);
    weir_report_errors(out, report, WEIR_LANG_ZH);
}

static void print_common(FILE *out, const struct weir_loader_report *report)
{
    if (report->timing)
        print_stages(out, report);
    else
        fputs("环节计时已关闭 (--no-timing)\n", out);
    weir_report_threads_print(out, &report->prof, WEIR_LANG_ZH);
    weir_report_machine_print(out, &report->prof.machine, WEIR_LANG_ZH);
    weir_report_gpu_zh(out, &report->gpu, report->timing);
}

void weir_loader_report_loop_zh(FILE *out, const struct weir_loader_report *report)
{
    print_common(out, report);
    weir_report_cost_print(out, &report->prof, WEIR_LANG_ZH);
}

void weir_report_tables_zh(FILE *out, const struct weir_loader_report *report)
{
    print_covers(out, report);
    print_common(out, report);
    print_queue_and_io(out, report);
    print_copies(out, report);
    print_errors(out, report);
    if (report->timing)
        weir_report_cost_print(out, &report->prof, WEIR_LANG_ZH);
}
