/* The consumer by a trace of its own steps: what the GPU waited for. */
#include "analyze/verdict/verdict_priv.h"

#include <math.h>

/* Most telling first; what a cause is called, and what helps, in both languages. */
enum part { LAUNCHING, SYNC, DATA, ALLOCATING, QUEUED, OTHER, PARTS };

struct words {
    const char *what[2]; /* that the GPU waits for */
    const char *kind[2], *help[2];
};

static const struct words all_words[PARTS] = {
    [LAUNCHING] = {{"launches", "提交"},
                   {"launch-bound", "受限于提交 (launch)"},
                   {"CUDA graphs, fused kernels or torch.compile take launches away",
                    "CUDA graph, 融合算子或 torch.compile 可减少提交"}},
    [SYNC] = {{"synchronising calls", "同步调用"},
              {"sync-bound", "受限于同步"},
              {"take read-backs such as .item(), .cpu() and print out of the step",
               "把 .item(), .cpu(), print 等回读移出训练步"}},
    [DATA] = {{"data", "数据"},
              {"short of data in the steps that were traced", "被跟踪的步在等待数据"},
              {"trace later steps", "跟踪更晚的步"}},
    [ALLOCATING] = {{"allocations", "显存分配"},
                    {"allocation-bound", "受限于显存分配"},
                    {"keep buffers from step to step, or take them from a caching pool", "复用缓冲区, 或使用缓存池"}},
    [QUEUED] = {{"queued work to begin", "已排队的任务开始"},
                {"made of short kernels", "由短小的核函数组成"},
                {"fused kernels or CUDA graphs have fewer gaps", "融合算子或 CUDA graph 可减少间隙"}},
    [OTHER] = {{"other host code", "其他主机代码"},
               {"held up by host code that launches nothing", "被不提交任务的主机代码拖住"},
               {"a CPU profile (--with-stack) says which it is", "CPU剖析 (--with-stack) 可说明是哪段"}},
};

static void parts_of(const struct weir_report_idle *idle, double parts[PARTS])
{
    parts[LAUNCHING] = idle->launching;
    parts[SYNC] = idle->sync;
    parts[DATA] = idle->data;
    parts[ALLOCATING] = idle->allocating;
    parts[QUEUED] = idle->queued;
    parts[OTHER] = idle->other;
    for (int i = 0; i < PARTS; i++) /* a log may say anything */
        parts[i] = fmin(fmax(parts[i], 0), 1);
}

static enum part largest(const double parts[PARTS])
{
    int first = 0;
    for (int i = 1; i < PARTS; i++)
        if (parts[i] > parts[first])
            first = i;
    return (enum part)first;
}

bool weir_verdict_idle(struct weir_found *found, const struct weir_loader_report *report)
{
    double parts[PARTS];
    parts_of(&report->idle, parts);
    enum part first = largest(parts);
    if (report->idle.traced_s <= 0 || parts[first] < WEIR_VERDICT_TRACED_LEAST)
        return false;
    found->traced = true;
    found->b = parts[first];
    found->consumer = first == SYNC                               ? WEIR_CONSUMER_SYNC_BOUND
                      : first == LAUNCHING || first == ALLOCATING ? WEIR_CONSUMER_LAUNCH_BOUND
                                                                  : WEIR_CONSUMER_UNKNOWN;
    return true;
}

void weir_verdict_say_idle(FILE *out, const struct weir_loader_report *report, bool zh)
{
    const struct weir_report_idle *idle = &report->idle;
    double parts[PARTS];
    parts_of(idle, parts);
    enum part first = largest(parts);
    fprintf(out,
            zh ? "训练步是瓶颈, %s: 在被跟踪的 %.3f 秒中, GPU"
               : "the training step is the limit, and it is %s: in the %.3f s that were traced the GPU waited",
            all_words[first].kind[zh], idle->traced_s);
    for (int i = 0, said = 0; i < PARTS; i++) { /* the largest, then the others in their order */
        int part = i == 0 ? (int)first : i <= (int)first ? i - 1 : i;
        if (i > 0 && parts[part] < 0.01)
            continue;
        fprintf(out,
                zh     ? "%s %.0f%% 的时间等待%s"
                : said ? "%s %.0f %% for %s"
                       : "%s %.0f %% of the time for %s",
                said ? "," : "", 100 * parts[part], all_words[part].what[zh]);
        said++;
    }
    if (idle->delay_p50_s >= 0 && idle->kernels_per_step >= 0)
        fprintf(out,
                zh ? " (提交延迟 p50 %.1fus, p99 %.1fus; 每步 %.1f 个核函数)"
                   : " (launch delay p50 %.1fus, p99 %.1fus; %.1f kernels a step)",
                1e6 * idle->delay_p50_s, 1e6 * idle->delay_p99_s, idle->kernels_per_step);
    fprintf(out, "; %s", all_words[first].help[zh]);
}
