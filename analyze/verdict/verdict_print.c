/* The lines of a verdict: its sentences, what would help, the limits, the shares of the step. */
#include "analyze/verdict/verdict_priv.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

/* What the two languages say with the same numbers, so that gcc checks both. */
#define SAY(...) fprintf(out, __VA_ARGS__)

static double percent(double fraction)
{
    return 100 * fmin(fmax(fraction, 0), 1);
}

/* ---- advices ---- */

void weir_verdict_advice_text(char *text, size_t size, const struct weir_advice *advice, enum weir_lang lang)
{
    static const char *const names[WEIR_ADVICES][2] = {
        [WEIR_ADVICE_CACHE] = {"decode cache", "解码缓存"},
        [WEIR_ADVICE_HALF_SIZE] = {"half-size frames", "图像减半"},
        [WEIR_ADVICE_MORE_CORES] = {"more cores", "更多的核"},
        [WEIR_ADVICE_MORE_WORKERS] = {"more workers", "更多工作线程"},
        [WEIR_ADVICE_FEWER_WORKERS] = {"fewer workers", "更少工作线程"},
        [WEIR_ADVICE_MORE_BATCHES] = {"more batches ahead", "预取更多批次"},
        [WEIR_ADVICE_READ_AHEAD] = {"reading ahead", "预读"},
        [WEIR_ADVICE_U8] = {"bytes, not floats", "输出字节而非浮点"},
        [WEIR_ADVICE_CONVERT] = {"another format", "转换格式"},
        [WEIR_ADVICE_FREE_CORES] = {"cores without others", "释放被占用的核"},
        [WEIR_ADVICE_QUOTA] = {"a larger quota", "更大的配额"},
        [WEIR_ADVICE_WARM] = {"a warm page cache", "页缓存变热之后"},
        [WEIR_ADVICE_LOOK_AT] = {"find out why", "查明原因"},
        [WEIR_ADVICE_FASTER_STEP] = {"a faster step", "更快的训练步"},
        [WEIR_ADVICE_HYBRID] = {"CPU cores decode too", "CPU也参与解码"},
        [WEIR_ADVICE_TRACE] = {"a trace", "记录跟踪"},
        [WEIR_ADVICE_LONGER] = {"a longer run", "更长的运行"},
    };
    snprintf(text, size, "%s", names[advice->kind][lang == WEIR_LANG_ZH]);
}

/* What the change is, in words that need no figure. */
static const char *change_text(const struct weir_verdict *verdict, const struct weir_advice *advice, bool zh)
{
    static const char *const texts[WEIR_ADVICES][2] = {
        [WEIR_ADVICE_HALF_SIZE] = {"fewer pixels to decode", "解码更少像素"},
        [WEIR_ADVICE_MORE_WORKERS] = {"more reads at once", "同时读取更多"},
        [WEIR_ADVICE_MORE_BATCHES] = {"slow batches are made up for", "快慢相抵"},
        [WEIR_ADVICE_READ_AHEAD] = {"64 reads at once", "同时64个读取"},
        [WEIR_ADVICE_U8] = {"the training code converts, and --mean and --std are left out",
                            "由训练代码转换, 去掉 --mean 和 --std"},
        [WEIR_ADVICE_CONVERT] = {"frames that Weir reads itself", "不经HDF5库读取"},
        [WEIR_ADVICE_WARM] = {"later epochs read from memory", "之后各轮从内存读取"},
        [WEIR_ADVICE_LOOK_AT] = {"if it were as fast as the others", "若与其他一样快"},
        [WEIR_ADVICE_FEWER_WORKERS] = {"the same rate with less memory and fewer context switches",
                                       "速度相同, 内存和切换更少"},
        [WEIR_ADVICE_FASTER_STEP] = {"loading could keep up", "加载跟得上"},
        [WEIR_ADVICE_HYBRID] = {"beside the GPU", "GPU与CPU同时解码"},
        [WEIR_ADVICE_TRACE] = {"shows what the step does", "显示训练步在做什么"},
        [WEIR_ADVICE_LONGER] = {"for example", "例如"},
    };
    if (advice->kind == WEIR_ADVICE_MORE_WORKERS && weir_verdict_has(verdict, WEIR_CAUSE_TOO_FEW_WORKERS))
        return zh ? "有空闲的核" : "there are cores for them";
    return texts[advice->kind][zh];
}

static void say_change(FILE *out, const struct weir_verdict *verdict, const struct weir_advice *advice, bool zh)
{
    const char *text = change_text(verdict, advice, zh);
    int digits = advice->figure < 1e8 ? 3 : 2;
    if (text)
        fputs(text, out);
    else if (advice->kind == WEIR_ADVICE_CACHE && advice->part >= 1)
        SAY(zh ? "全部帧占 %.*f GB" : "all frames fit in %.*f GB", digits, advice->figure / 1e9);
    else if (advice->kind == WEIR_ADVICE_CACHE)
        SAY(zh ? "%.0f%% 的帧可放入 %.*f GB" : "%.0f %% of the frames fit in %.*f GB", percent(advice->part), digits,
            advice->figure / 1e9);
    else if (advice->kind == WEIR_ADVICE_MORE_CORES)
        SAY(zh ? "每增加一个约 %.0f 图像/秒" : "each one more gives about %.0f images/s", advice->figure);
    else if (advice->kind == WEIR_ADVICE_FREE_CORES)
        SAY(zh ? "独占全部 %.3g 核" : "with all %.3g to itself", advice->figure);
    else
        SAY(zh ? "%.3g 核" : "of %.3g cores", advice->figure);
}

/* "1.16 x", "3.4 x", "41 x". */
static void say_ratio(FILE *out, double ratio, bool zh)
{
    if (ratio > 50) /* what is left of an image's costs is too little to be known well */
        fputs(zh ? "超过 50" : "over 50", out);
    else
        SAY("%.*f", ratio < 2 ? 2 : ratio < 10 ? 1 : 0, ratio);
}

static void say_until(FILE *out, enum weir_resource limit, bool zh)
{
    bool plural = limit == WEIR_RESOURCE_CORES || limit == WEIR_RESOURCE_WORKERS || limit == WEIR_RESOURCE_ENGINES;
    if (zh)
        SAY(", 直到%s成为瓶颈", weir_resource_text(limit, WEIR_LANG_ZH));
    else
        SAY(", until the %s %s the limit", weir_resource_text(limit, WEIR_LANG_EN), plural ? "are" : "is");
}

static void say_effect(FILE *out, const struct weir_verdict *verdict, const struct weir_advice *advice, bool zh)
{
    bool faster_step = advice->kind == WEIR_ADVICE_FASTER_STEP;
    say_change(out, verdict, advice, zh);
    if (advice->ratio <= 0 || advice->kind == WEIR_ADVICE_FEWER_WORKERS)
        return;
    fputs(faster_step ? (zh ? ": 最多 " : ": up to ") : ": ", out);
    say_ratio(out, advice->ratio, zh);
    fputs(faster_step        ? (zh ? " 倍" : " x")
          : advice->measured ? (zh ? " 倍 (实测)" : " x (measured)")
                             : (zh ? " 倍 (预测)" : " x (predicted)"),
          out);
    if (advice->kind == WEIR_ADVICE_CACHE)
        fputs(zh ? ", 从第二轮起" : " from the second epoch on", out);
    if (advice->if_latency)
        fputs(zh ? ", 如果是延迟" : " if it is latency", out);
    if (!advice->measured && (faster_step || advice->limit != verdict->demands.least))
        say_until(out, advice->limit, zh);
}

static void print_advice(FILE *out, const struct weir_verdict *verdict, const struct weir_advice *advice,
                         enum weir_lang lang)
{
    char name[64];
    weir_verdict_advice_text(name, sizeof name, advice, lang);
    fprintf(out, "  %s%*s  ", name, 22 - weir_text_width(name), "");
    say_effect(out, verdict, advice, lang == WEIR_LANG_ZH);
    if (*advice->flag)
        fprintf(out, "  %s", advice->flag);
    fputc('\n', out);
}

/* ---- all of it ---- */

/* Sentences begin with a capital. */
static void print_cause(FILE *out, const struct weir_verdict *verdict, int i, const struct weir_loader_report *report,
                        enum weir_lang lang)
{
    char text[768];
    weir_verdict_sentence(text, sizeof text, verdict, &verdict->causes[i], report, lang);
    if (i == 0 && text[0] >= 'a' && text[0] <= 'z')
        text[0] = (char)(text[0] - 'a' + 'A');
    fprintf(out, "%s%s\n", text, lang == WEIR_LANG_ZH ? "。" : ".");
}

void weir_verdict_lead_print(FILE *out, enum weir_data_bound bound, double wait, bool at_most, bool validation,
                             enum weir_lang lang)
{
    bool zh = lang == WEIR_LANG_ZH;
    fputs(zh ? "结论: " : "verdict: ", out);
    if (bound == WEIR_BOUND_UNKNOWN)
        return;
    fputs(validation ? (zh ? "验证" : "Validation") : (zh ? "训练" : "Training"), out);
    SAY(zh ? "%s %.0f%% 的时间在等待数据%s。" : " waited for data %s%.0f %% of the time%s. ",
        at_most ? (zh ? "至多" : "at most ") : "", percent(wait),
        bound == WEIR_BOUND_NO       ? (zh ? ", 数据加载不是瓶颈" : ", so data loading is not the limit")
        : bound == WEIR_BOUND_PARTLY ? (zh ? ", 加快加载只略有帮助" : ", so faster loading helps only a little")
                                     : "");
}

/* The rule of imitate_episodes users, in its words. */
void weir_decode_rule_print(FILE *out, double decode_share, enum weir_data_bound bound, enum weir_lang lang)
{
    bool zh = lang == WEIR_LANG_ZH;
    double share = percent(decode_share);
    if (decode_share <= WEIR_VERDICT_DECODE_RULE)
        SAY(zh ? "  40%%规则: 解码占样本时间的 %.0f%%, 不超过 40%%: 先改进其他部分\n"
               : "  the 40 %% rule: decoding is %.0f %% of a sample's time, not more than 40 %%: improve other parts "
                 "first\n",
            share);
    else if (bound == WEIR_BOUND_NO)
        SAY(zh ? "  40%%规则: 解码占样本时间的 %.0f%%, 超过 40%%, 但没有人在等它\n"
               : "  the 40 %% rule: decoding is %.0f %% of a sample's time, more than 40 %%, but nothing waits for "
                 "it\n",
            share);
    else
        SAY(zh ? "  40%%规则: 解码占样本时间的 %.0f%%, 超过 40%%: 存储已解码或更小的帧, 或减少相机\n"
               : "  the 40 %% rule: decoding is %.0f %% of a sample's time, more than 40 %%: store decoded or smaller "
                 "frames, or fewer cameras\n",
            share);
}

static void print_rule(FILE *out, const struct weir_verdict *verdict, enum weir_lang lang)
{
    if (!verdict->decode_rule || verdict->bound == WEIR_BOUND_UNKNOWN)
        return;
    if (verdict->bound == WEIR_BOUND_NO || weir_verdict_has(verdict, WEIR_CAUSE_DECODE))
        weir_decode_rule_print(out, verdict->demands.decode_share, verdict->bound, lang);
}

static void print_bound(FILE *out, const struct weir_verdict *verdict, enum weir_lang lang)
{
    bool zh = lang == WEIR_LANG_ZH;
    const struct weir_demands *d = &verdict->demands;
    if (!d->known || d->bound_rate <= 0 || verdict->bound == WEIR_BOUND_UNKNOWN)
        return;
    fputs(zh ? "  上限 (图像/秒):" : "  limits in images/s:", out);
    const char *comma = zh ? " " : " the ";
    for (int i = 0; i < WEIR_RESOURCES; i++) {
        if (d->bound[i] <= 0)
            continue;
        fprintf(out, "%s%s %.0f", comma, weir_resource_text((enum weir_resource)i, lang), d->bound[i]);
        comma = zh ? ", " : ", the ";
    }
    SAY(zh ? "; 实测 %.0f, 低于最小者 %.0f%%\n" : "; measured %.0f, %.0f %% below the lowest\n", d->rate,
        percent(d->gap));
}

static void print_shares(FILE *out, const struct weir_step_shares *shares, bool zh)
{
    if (!shares->known)
        return;
    SAY(zh ? "  训练步占比: 数据等待 %.1f%% | 前向 %.1f%% | 反向 %.1f%% | 优化器 %.1f%% | 其他 %.1f%%\n"
           : "  shares of the step: data wait %.1f %% | forward %.1f %% | backward %.1f %% | optimiser %.1f %% | other "
             "%.1f %%\n",
        100 * shares->wait, 100 * shares->forward, 100 * shares->backward, 100 * shares->optimiser,
        100 * shares->other);
    double ratio = shares->backward_over_forward;
    if (ratio <= 0)
        return;
    SAY(zh ? "  反向/前向: %.2f (通常为 1 到 2)" : "  backward over forward: %.2f (1 to 2 is usual)", ratio);
    double most = fmax(fmax(shares->wait, shares->forward), fmax(shares->optimiser, shares->other));
    if (ratio > WEIR_VERDICT_BACKWARD && shares->backward > most)
        fputs(zh ? ": 反向传播是瓶颈" : ": the backward pass is the step's bottleneck", out);
    fputc('\n', out);
}

void weir_verdict_print(FILE *out, const struct weir_verdict *verdict, const struct weir_loader_report *report,
                        enum weir_lang lang)
{
    bool zh = lang == WEIR_LANG_ZH;
    weir_verdict_lead_print(out, verdict->bound, verdict->wait, false, report->steps.validation, lang);
    for (int i = 0; i < verdict->n_causes; i++) {
        if (i > 0)
            fputs(zh ? "  另外: " : "  also: ", out);
        print_cause(out, verdict, i, report, lang);
    }
    for (int i = 0; i < verdict->n_advices; i++)
        print_advice(out, verdict, &verdict->advices[i], lang);
    print_rule(out, verdict, lang);
    print_bound(out, verdict, lang);
    print_shares(out, &verdict->shares, zh);
}
