/* Chinese output of `--lang zh`: the stage table and the epoch line. */
#include "base/text.h"
#include "pipeline/report/report_parts_priv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* grep -A 20 "性能分析统计" prints the title and 20 lines: two rules, the legend, these rows, and the closing rule.
 * The line after them contains the number of omitted rows. */
enum { RULE_WIDTH = 60, ROWS_MAX = 16 };

/* Users grep these lines and compare them byte by byte: do not change them. */
static const char title[] = "⏱️  性能分析统计";
static const char legend[] = "环节名称                                  | 总计:    XXXs | 调用:  XXX次 | 平均: XXXms";

static const char *const texts[] = {
    "Epoch %d/%d%s 总耗时: %.2fs | 训练耗时: %.2fs | 验证耗时: %.2fs | 数据等待: %.1f%% | 样本/秒: %.1f | 图像/秒: "
    "%.1f | "
    "峰值内存: %s",
    " (中断)",
    " | 训练损失: %.6f",
    " | 验证损失: %.6f",
    " | GPU忙碌: %.1f%%",
    " | 拷贝重叠: %.1f%%",
    " | 页缓存: %2$.0f%% (%1$s)",
    "冷",
    "热",
    "部分缓存",
    " | 直接读取",
    "统计范围: ",
    "整个运行%s%s, ",
    " (解码缓存填满之后)",
    "测量部分",
    "上次统计以来",
    "没有轮次 (共 %d 轮)",
    "第 %2$d-%3$d 轮 (共 %1$d 轮)",
    "第 %2$d-%3$d 轮 (共 %1$d 轮)",
    ", 墙钟 %.2fs\n",
};
_Static_assert(sizeof texts / sizeof *texts == WEIR_TEXTS, "one text for each enum weir_text");

const char *const *weir_report_texts_zh(void)
{
    return texts;
}

static void rule(FILE *out, char sign)
{
    for (int i = 0; i < RULE_WIDTH; i++)
        putc(sign, out);
    putc('\n', out);
}

/* Parts of the table, in the order in which rows are kept if there are too many: the stages of ACT's own table, Weir's
 * further stages, the workers' stages on GPU threads, and the workers' idle time. */
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

/* Largest total first, as in ACT's own table; equal totals stay in stage order. */
static int by_total(const void *left, const void *right)
{
    const struct weir_report_row *a = *(const struct weir_report_row *const *)left;
    const struct weir_report_row *b = *(const struct weir_report_row *const *)right;
    if (a->total_s != b->total_s)
        return a->total_s > b->total_s ? -1 : 1;
    return (a > b) - (a < b);
}

static int by_part(const void *left, const void *right)
{
    enum part x = part_of(*(const struct weir_report_row *const *)left);
    enum part y = part_of(*(const struct weir_report_row *const *)right);
    return x != y ? (x < y ? -1 : 1) : by_total(left, right);
}

/* GPU stages are timed by the GPU's clock, since the submitting thread returns at once or waits for unrelated work.
 * Wait stages are timed on the thread. */
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

/* Lists all rows and returns their number. The first ROWS_MAX, which are printed, are sorted by total. */
static size_t choose_rows(const struct weir_loader_report *report, const struct weir_report_row **rows)
{
    size_t n = 0;
    for (int i = 0; i < report->prof.n_rows; i++)
        if (report->prof.rows[i].count > 0 && part_of(&report->prof.rows[i]) != LEFT_OUT)
            rows[n++] = timed_row(report, &report->prof.rows[i]);
    qsort(rows, n, sizeof rows[0], by_part);
    qsort(rows, n < ROWS_MAX ? n : ROWS_MAX, sizeof rows[0], by_total);
    return n;
}

/* Returns the number of decimals for a time in its unit: two, or more if two would show zero. */
static int decimals(double value)
{
    return value >= 0.01 || value <= 0 ? 2 : value >= 0.0001 ? 4 : 6;
}

static void print_gpu_rows(FILE *out, const struct weir_report_gpu *gpu)
{
    if (gpu->n_rows > 0)
        fputs("  表中与下列同名的工作行为 GPU 计时 (两个事件之间, 含在 GPU 上排队的时间):\n", out);
    for (int i = 0; i < gpu->n_rows; i++)
        fprintf(out, "  GPU %s: %.3fs, %" PRIu64 " 次, 每次 %.3fms\n", gpu->rows[i].name, gpu->rows[i].total_s,
                gpu->rows[i].count, 1e3 * gpu->rows[i].mean_s);
}

void weir_report_stages_zh(FILE *out, const struct weir_loader_report *report)
{
    const struct weir_report_row *rows[WEIR_REPORT_ROWS];
    size_t n = choose_rows(report, rows);
    rule(out, '=');
    fprintf(out, "%s\n", title);
    rule(out, '=');
    fprintf(out, "%s\n", legend);
    rule(out, '-');
    for (size_t i = 0; i < n && i < ROWS_MAX; i++) {
        /* Each name has only one row, because log readers take a repeated name for the start of a new table. */
        char name[WEIR_REPORT_NAME];
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
    print_gpu_rows(out, &report->gpu);
}
