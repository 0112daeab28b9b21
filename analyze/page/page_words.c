#include "analyze/page/page_words.h"

static const char *const words[WEIR_WORDS][2] = {
    [WEIR_WORD_VERDICT] = {"Verdict", "结论"},
    [WEIR_WORD_MEASURED] = {"measured", "实测"},
    [WEIR_WORD_DATA_WAIT] = {"data wait", "等待数据"},
    [WEIR_WORD_GAIN] = {"predicted gain:", "预测提升："},
    [WEIR_WORD_IMAGES_S] = {"images/s", "图像/秒"},
    [WEIR_WORD_ITEMS_S] = {"items/s", "样本/秒"},
    [WEIR_WORD_LIMITS] = {"What limits", "瓶颈"},
    [WEIR_WORD_LIMITS_NOTE] = {"The most images per second that each resource allows. The vertical line is the "
                               "measured rate; the shortest bar is the limit.",
                               "每种资源允许的最大图像/秒。竖线为实测速率，最短的条即为瓶颈。"},
    [WEIR_WORD_OVER_TIME] = {"Over time", "随时间变化"},
    [WEIR_WORD_READY] = {"ready batches", "就绪批次"},
    [WEIR_WORD_READY_NOTE] = {"Batches ready at each request: the mean, and the range from the fewest to the most.",
                              "每次请求时已就绪的批次：均值及最少至最多的范围。"},
    [WEIR_WORD_EPOCH] = {"epoch", "轮次"},
    [WEIR_WORD_EPOCHS] = {"epochs", "轮次"},
    [WEIR_WORD_TABLE] = {"Table", "表格"},
    [WEIR_WORD_MEAN] = {"mean", "平均"},
    [WEIR_WORD_LEAST] = {"min", "最小"},
    [WEIR_WORD_MOST] = {"max", "最大"},
    [WEIR_WORD_LAST] = {"last", "最后"},
    [WEIR_WORD_STAGES] = {"Stages", "环节"},
    [WEIR_WORD_STAGES_NOTE] = {"Bars are shares of the workers' work. Small lines show the time per image over the "
                               "epochs, each from zero to its own maximum.",
                               "条形为占工作线程工作时间的比例；小折线为各轮次每幅图像的耗时，从零到各自最大值。"},
    [WEIR_WORD_STAGE] = {"stage", "环节名称"},
    [WEIR_WORD_SHARE] = {"share", "占比"},
    [WEIR_WORD_TOTAL] = {"total", "总计"},
    [WEIR_WORD_CALLS] = {"calls", "调用"},
    [WEIR_WORD_PER_IMAGE] = {"per image", "每幅图像"},
    [WEIR_WORD_PER_ITEM] = {"per item", "每个样本"},
    [WEIR_WORD_WORK] = {"work", "工作"},
    [WEIR_WORD_WAIT] = {"wait", "等待"},
    [WEIR_WORD_LOOP] = {"training loop", "训练循环"},
    [WEIR_WORD_LATENCY] = {"Latency", "延迟"},
    [WEIR_WORD_LATENCY_NOTE] = {"Duration of single calls, on a logarithmic scale. Thin line: fastest to slowest; bar: "
                                "median to p99; mark: p90.",
                                "单次调用的耗时（对数坐标）。细线：最快至最慢；粗条：中位数至 p99；刻度：p90。"},
    [WEIR_WORD_THREADS] = {"Threads", "线程"},
    [WEIR_WORD_THREADS_NOTE] = {"Time of each thread: work is filled, waits are hatched, time in no stage is empty.",
                                "各线程的时间：实心为工作，斜线为等待，空白为未计入任何环节。"},
    [WEIR_WORD_THREAD] = {"thread", "线程"},
    [WEIR_WORD_UNATTRIBUTED] = {"unattributed", "未计入"},
    [WEIR_WORD_OTHER] = {"other work", "其他工作"},
    [WEIR_WORD_TIMELINE] = {"Timeline", "时间线"},
    [WEIR_WORD_TIMELINE_NOTE] = {"What each thread did in the recorded steps. Work fills its row; waits are low and "
                                 "pale.",
                                 "所记录步骤中各线程的活动。工作占满整行，等待为低而浅的条。"},
    [WEIR_WORD_TIMELINE_CUT] = {"Only the beginning of the window is shown; the trace has all of it.",
                                "仅显示窗口的开头部分，完整内容见 trace 文件。"},
    [WEIR_WORD_RANKS] = {"Ranks", "各 rank"},
    [WEIR_WORD_RANK] = {"rank", "rank"},
    [WEIR_WORD_SETTINGS] = {"Settings and machine", "设置与机器"},
    [WEIR_WORD_NAME] = {"name", "名称"},
    [WEIR_WORD_VALUE] = {"value", "值"},
    [WEIR_WORD_MEDIAN] = {"median", "中位数"},
    [WEIR_WORD_RANKS_NOTE] = {"A step of each rank: waiting for data is hatched, the rest is filled.",
                              "各 rank 的一个步骤：斜线为等待数据，其余为实心。"},
    [WEIR_WORD_HOST] = {"host", "主机"},
    [WEIR_WORD_STEP] = {"step", "步骤"},
};

const char *weir_word(enum weir_word word, enum weir_lang lang)
{
    return words[word][lang == WEIR_LANG_ZH];
}
