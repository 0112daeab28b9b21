/* The sentence of each cause, in both languages. Every number comes from the report. */
#include "analyze/verdict/verdict_priv.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What the two languages say with the same numbers, so that gcc checks both. */
#define SAY(...) fprintf(out, __VA_ARGS__)

static double percent(double fraction)
{
    return 100 * fmin(fmax(fraction, 0), 1);
}

/* "7.6us", as in the tables. */
static const char *time_text(char text[24], double s)
{
    if (s < 1e-3)
        snprintf(text, 24, "%.1fus", s * 1e6);
    else if (s < 1)
        snprintf(text, 24, "%.2fms", s * 1e3);
    else
        snprintf(text, 24, "%.2fs", s);
    return text;
}

/* ---- what the cores do ---- */

/* "JPEG " in front of "decoding"; nothing for frames that are stored raw. */
static const char *codec_text(const struct weir_report_setup *setup)
{
    static const char *const names[][2] = {
        {"jpeg", "JPEG "}, {"png", "PNG "}, {"jpeg2000", "JPEG 2000 "}, {"jpegxl", "JPEG XL "}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(setup->codec, names[i][0]) == 0)
            return names[i][1];
    return setup->encoded && *setup->codec == '\0' ? "image " : "";
}

/* Where one camera's images are most of the decoding. */
static void say_heavy_camera(FILE *out, const struct weir_loader_report *report, bool zh)
{
    double share, others_s;
    char a[24], b[24];
    int camera = weir_verdict_heavy_camera(&report->sources, &share, &others_s);
    if (camera < 0)
        return;
    time_text(a, report->sources.cameras[camera].decode.p50_s);
    time_text(b, others_s);
    SAY(zh ? "; 其中 %.0f%% 用于相机 %s (每张 %s, 其他相机 %s)"
           : "; %.0f %% of it is for camera %s (%s an image, the other cameras' %s)",
        percent(share), report->sources.cameras[camera].name, a, b);
}

/* The first sentence says that the cores are the limit; behind another cause this one says what they are used for. */
static void say_compute(FILE *out, const struct weir_verdict *verdict, const struct weir_found *found,
                        const struct weir_loader_report *report, bool zh)
{
    static const char *const names[][2] = {
        [WEIR_CAUSE_DECODE] = {"decoding", "解码"},
        [WEIR_CAUSE_INFLATE] = {"unpacking compressed chunks (inflate)", "解压数据块 (inflate)"},
        [WEIR_CAUSE_CONVERT] = {"conversion to floats", "转换为浮点"},
        [WEIR_CAUSE_READ_CPU] = {"copying from the page cache", "从页缓存复制"},
        [WEIR_CAUSE_OTHER_CPU] = {"copying frames and completing batches", "复制帧与组批"},
    };
    const struct weir_demands *d = &verdict->demands;
    const char *name = names[found->cause][zh];
    const char *codec = found->cause == WEIR_CAUSE_DECODE ? codec_text(&report->setup) : "";
    bool busy = found->a >= WEIR_VERDICT_CORES_BUSY * found->b, first = found == &verdict->causes[0];
    if (found->cause == WEIR_CAUSE_DECODE && d->blocked_decode >= 0.5 && d->of.blocked >= WEIR_VERDICT_BLOCKED) {
        SAY(zh ? "%s%s是瓶颈: 工作线程 %.0f%% 的时间在其中, 却不占用核"
               : "%s%s is the limit: the workers spend %.0f %% of their time in it without using a core",
            codec, name, percent(d->of.blocked));
        return;
    }
    if (first && busy)
        SAY(zh ? "CPU核是瓶颈: 本进程用了 %.2f 核, 可用 %.3g 核; "
               : "the CPU cores are the limit: this run keeps %.2f of %.3g usable cores busy, and ",
            found->a, found->b);
    if (zh)
        SAY("%s%s占%sCPU时间的 %.0f%%", codec, name, d->workers > 0 ? "工作线程" : "加载", percent(found->share));
    else
        SAY("%s%s takes %.0f %% of %s CPU time", codec, name, percent(found->share),
            d->workers > 0 ? "the workers'" : "loading's");
    if (found->cause == WEIR_CAUSE_DECODE)
        say_heavy_camera(out, report, zh);
}

/* ---- storage ---- */

static void say_slow(FILE *out, const struct weir_found *found, bool zh)
{
    char a[24], b[24];
    time_text(a, found->a);
    time_text(b, found->b);
    if (found->cause == WEIR_CAUSE_SLOW_FILE)
        SAY(zh ? "文件 %s 读取慢: 平均 %s, 各文件的中位数 %s; 占读取时间的 %.0f%%"
               : "file %s is slow to read: %s a read (mean), and %s for the median file; it takes %.0f %% of all "
                 "reading time",
            found->name, a, b, percent(found->share));
    else if (found->decode)
        SAY(zh ? "相机 %s 解码慢: 每张 %s, 其他相机 %s (中位数); 占解码时间的 %.0f%%"
               : "camera %s is slow to decode: %s an image (median), and %s for the other cameras; it takes %.0f %% "
                 "of all decoding time",
            found->name, a, b, percent(found->share));
    else
        SAY(zh ? "相机 %s 读取慢: 每次 %s, 其他相机 %s (中位数); 占读取时间的 %.0f%%"
               : "camera %s is slow to read: %s a read (median), and %s for the other cameras; it takes %.0f %% of "
                 "all reading time",
            found->name, a, b, percent(found->share));
}

static void say_storage(FILE *out, const struct weir_found *found, bool zh)
{
    char a[24], b[24];
    time_text(a, found->a);
    time_text(b, found->b);
    if (found->cause == WEIR_CAUSE_STORAGE_TAIL) {
        SAY(zh ? "少数慢读取是瓶颈: 最慢的十分之一占读取时间的 %.0f%% (p99 %s, 中位数 %s)"
               : "a few slow reads are the limit: the slowest tenth takes %.0f %% of all reading time (p99 %s, median "
                 "%s)",
            percent(found->share), a, b);
        return;
    }
    bool bandwidth = found->cause == WEIR_CAUSE_STORAGE_BANDWIDTH, latency = found->cause == WEIR_CAUSE_STORAGE_LATENCY;
    fputs(bandwidth ? (zh ? "存储带宽是瓶颈" : "storage bandwidth is the limit")
          : latency ? (zh ? "存储延迟是瓶颈" : "storage latency is the limit")
                    : (zh ? "存储是瓶颈" : "storage is the limit"),
          out);
    SAY(zh ? ": 工作线程 %.0f%% 的时间在等待读取 (中位数 %s, 共 %.1f MB/s)"
           : ": the workers wait for reads %.0f %% of their time (median %s, %.1f MB/s in all)",
        percent(found->share), a, found->b / 1e6);
    fputs(bandwidth ? (zh ? ", 同时多读也不会更快" : ", and more reads at once give no more")
          : latency
              ? (zh ? ", 同时多读会更快" : ", and more reads at once give more")
              : (zh ? "; 是带宽还是延迟, 本次运行无法区分" : "; whether bandwidth or latency, this run cannot tell"),
          out);
}

static void say_cold(FILE *out, const struct weir_found *found, bool zh)
{
    SAY(zh ? "页缓存是冷的: 首轮 %.0f%% 的字节来自存储, %.0f 图像/秒"
           : "the page cache was cold: %.0f %% of the first epoch's bytes came from storage, at %.0f images/s",
        percent(found->share), found->a);
    if (found->b > 0)
        SAY(zh ? "; 其后各轮 %.0f 图像/秒" : "; later epochs ran at %.0f", found->b);
}

/* ---- workers and batches ---- */

static void say_slow_worker(FILE *out, const struct weir_found *found, bool zh)
{
    if (found->on_core)
        SAY(zh ? "工作线程 %s 慢: 它 %.0f%% 的时间在工作, 其他 %.0f%%, 训练在等它"
               : "worker %s is slow: it is at work %.0f %% of its time, the others %.0f %%, and training waits for it",
            found->name, percent(found->share), percent(found->a));
    else
        SAY(zh ? "工作线程 %s 慢: %.0f%% 的时间在任务中却不占用核, 其他 %.0f%%"
               : "worker %s is slow: %.0f %% of its time passes inside tasks without using a core, of the others' "
                 "%.0f %%",
            found->name, percent(found->share), percent(found->a));
}

static void say_workers(FILE *out, const struct weir_verdict *verdict, const struct weir_found *found, bool zh)
{
    switch (found->cause) {
    case WEIR_CAUSE_TOO_FEW_WORKERS:
        if (found->a < 1)
            SAY(zh ? "没有工作线程: 加载与训练步在同一线程中轮流进行, 而可用 %.3g 核"
                   : "there are no workers: loading and the training step take turns on one thread, while %.3g cores "
                     "are usable",
                found->b);
        else
            SAY(zh ? "工作线程太少: %.0f 个, %.0f%% 的时间在工作; 本进程只用了 %.2f 核, 可用 %.3g 核"
                   : "too few workers: %.0f, at work %.0f %% of the time; this run uses only %.2f of %.3g usable cores",
                found->a, percent(found->share), verdict->demands.own_cores, found->b);
        break;
    case WEIR_CAUSE_TOO_MANY_WORKERS:
        SAY(zh ? "工作线程太多: %.0f 个线程共用 %.3g 核, %.0f%% 的时间在等核"
               : "too many workers for the cores: %.0f of them share %.3g, and wait for a core %.0f %% of their time",
            found->a, found->b, percent(found->share));
        break;
    case WEIR_CAUSE_SLOW_WORKER:
        say_slow_worker(out, found, zh);
        break;
    default:
        SAY(zh ? "预取批次太少 (--prefetch %.0f): 工作线程 %.0f%% 的时间无事可做, 训练却在等待"
               : "too few batches are loaded ahead (--prefetch %.0f): the workers have nothing to do %.0f %% of their "
                 "time, and still training waits",
            fmax(found->a - 1, 1), percent(found->share));
        if (found->b > 0)
            fputs(zh ? ", 因为少数训练步特别长" : ", because a few steps take far longer than the others", out);
    }
}

/* ---- the machine ---- */

static void say_neighbours(FILE *out, const struct weir_verdict *verdict, const struct weir_found *found,
                           const struct weir_loader_report *report, bool zh)
{
    const struct weir_demands *d = &verdict->demands;
    int cores = report->prof.machine.cores;
    if (zh)
        SAY("其他进程占用了CPU: %s %.0f%% 的时间在等核", d->workers > 0 ? "工作线程" : "加载", percent(found->share));
    else
        SAY("other processes take CPU time: %s for a core %.0f %% of %s time",
            d->workers > 0 ? "the workers wait" : "loading waits", percent(found->share),
            d->workers > 0 ? "their" : "its");
    if (found->a < 0)
        SAY(zh ? ", 本进程只用 %.2f 核" : ", and this run gets %.2f cores", found->b);
    else
        SAY(zh ? "; %d 个核中其他进程用 %.2f, 本进程 %.2f" : "; of %d cores they use %.2f, this run %.2f", cores,
            found->a, found->b);
}

static void say_machine(FILE *out, const struct weir_verdict *verdict, const struct weir_found *found,
                        const struct weir_loader_report *report, bool zh)
{
    switch (found->cause) {
    case WEIR_CAUSE_QUOTA:
        SAY(zh ? "CPU配额 (%.3g 核) 是瓶颈: %.0f%% 的周期中用尽, 工作线程 %.0f%% 的时间被限流"
               : "the CPU quota of %.3g cores is the limit: it was used up in %.0f %% of its periods, and the workers "
                 "were throttled %.0f %% of their time",
            found->b, percent(found->a), percent(found->share));
        break;
    case WEIR_CAUSE_HOST:
        SAY(zh ? "宿主机占用了CPU: %.2f 核 (共 %.3g) 被虚拟机管理器分给其他虚拟机"
               : "the host takes CPU time: the hypervisor gave %.2f of the %.3g cores to others (steal)",
            found->a, verdict->demands.usable);
        break;
    case WEIR_CAUSE_MEMORY_BANDWIDTH:
        SAY(zh ? "每张图像的CPU时间是单个工作线程时的 %.2f 倍: 内存带宽, 超线程或更低的频率 (需硬件计数器区分)"
               : "the CPU time of an image is %.2f times that with one worker: memory bandwidth, hyper-threading or a "
                 "lower clock, which only hardware counters tell apart",
            found->share);
        break;
    default:
        say_neighbours(out, verdict, found, report, zh);
    }
}

static void say_serial(FILE *out, const struct weir_found *found, bool zh)
{
    if (found->cause == WEIR_CAUSE_LIBRARY)
        SAY(zh ? "HDF5库是瓶颈: 只有它能读的帧经过一个辅助进程, 该进程 %.0f%% 的时间忙碌, 平均 %.1f 个工作线程等待"
               : "the HDF5 library is the limit: frames that only it can read go through one helper process, which is "
                 "busy %.0f %% of the time; %.1f workers wait for it on average",
            percent(found->share), found->a);
    else if (found->cause == WEIR_CAUSE_BUS)
        SAY(zh ? "到GPU的拷贝是瓶颈: 总线 %.0f%% 的时间忙碌, %.2f GB/s"
               : "copies to the GPU are the limit: the bus is busy %.0f %% of the time, at %.2f GB/s",
            percent(found->share), fmax(found->a, 0) / 1e9);
    else
        SAY(zh ? "GPU的JPEG解码器是瓶颈: %.0f%% 的时间忙碌"
               : "the GPU's JPEG decoders are the limit: they are busy %.0f %% of the time",
            percent(found->share));
}

static void say_core_wait(FILE *out, const struct weir_found *found, const struct weir_loader_report *report, bool zh)
{
    double others = report->prof.machine.others_cores;
    if (found->core_wait <= 0)
        return;
    SAY(zh ? ", 另有 %.0f%% 的时间在等核" : ", and waits for one %.0f %% of the time", percent(found->core_wait));
    if (others >= 0.1)
        SAY(zh ? " (其他进程占用 %.2f 个核)" : " (other processes use %.2f cores)", others);
}

static void say_consumer(FILE *out, const struct weir_found *found, const struct weir_loader_report *report, bool zh)
{
    const char *step = report->steps.validation ? (zh ? "验证" : "validation") : (zh ? "训练" : "training");
    SAY(zh ? "%s步是瓶颈" : "the %s step is the limit", step);
    switch (found->consumer) {
    case WEIR_CONSUMER_COMPUTING:
        if (report->gpu.used)
            SAY(zh ? ": GPU %.0f%% 的时间忙碌" : ": the GPU is busy %.0f %% of the time", percent(found->a));
        else
            SAY(zh ? ": 其线程 %.0f%% 的时间占用一个核" : ": its thread uses a core %.0f %% of the time",
                percent(found->a));
        say_core_wait(out, found, report, zh);
        break;
    case WEIR_CONSUMER_SYNC_BOUND:
        SAY(zh ? ", 且受限于同步: 每步等待完成后才提交下一步, GPU只有 %.0f%% 的时间忙碌"
               : ", and it is sync-bound: the host waits for each step before it launches the next, and the GPU is "
                 "busy only %.0f %% of the time",
            percent(found->a));
        break;
    case WEIR_CONSUMER_LAUNCH_BOUND:
        SAY(zh ? ", 但GPU只有 %.0f%% 的时间忙碌: 受限于提交 (launch) 或显存分配, 跟踪可以区分"
               : ", but the GPU is busy only %.0f %% of the time: the step is launch-bound or allocates memory, and a "
                 "trace tells which",
            percent(found->a));
        break;
    case WEIR_CONSUMER_UNKNOWN:
        SAY(zh ? ": 其线程只有 %.0f%% 的时间占用核" : ": its thread uses a core %.0f %% of the time",
            percent(found->a));
        say_core_wait(out, found, report, zh);
        fputs(zh ? "; 其余时间在等什么, 只有GPU事件或跟踪能说明"
                 : "; what it waits for otherwise, only GPU events or a trace can tell",
              out);
    }
}

static void say_doubt(FILE *out, const struct weir_found *found, bool validation, bool zh)
{
    fputs(zh ? "无法判断: " : "cannot tell, because ", out);
    switch (found->doubt) {
    case WEIR_DOUBT_NO_TIMING:
        fputs(zh ? "环节计时已关闭 (--no-timing)" : "stage timing was off (--no-timing)", out);
        break;
    case WEIR_DOUBT_NO_FIGURES:
        fputs(zh ? "没有批次, 或日志早于这些数据" : "no batch was handed out, or the log is older than these figures",
              out);
        break;
    case WEIR_DOUBT_TOO_SHORT:
        SAY(zh ? "太短: %.0f 个%s批次, %.2fs; 需要 %d 个且 %.1fs, 或 %d 个且 %.1fs"
               : "this was too short: %.0f %s batches in %.2f s; it takes %d in %.1f s or more, or %d in %.1f s",
            found->a, validation ? (zh ? "验证" : "validation") : (zh ? "训练" : "training"), found->b,
            WEIR_VERDICT_BATCHES_LEAST, WEIR_VERDICT_SECONDS_LEAST, WEIR_VERDICT_BATCHES_LONG,
            WEIR_VERDICT_SECONDS_LONG);
        break;
    case WEIR_DOUBT_OTHER:
        SAY(zh ? "工作线程 %.0f%% 的时间不属于任何环节" : "%.0f %% of the workers' time is in no stage",
            percent(found->share));
        break;
    case WEIR_DOUBT_EPOCHS:
        SAY(zh ? "各轮差异太大, 从 %.0f 到 %.0f 图像/秒" : "epochs differ too much, from %.0f to %.0f images/s",
            found->a, found->b);
        break;
    case WEIR_DOUBT_SAMPLED:
        fputs(zh ? "CPU时间只是抽样, 样本太少, 无法归于某个环节"
                 : "CPU time was only sampled, and there are too few samples to say which stage took it",
              out);
        break;
    case WEIR_DOUBT_NO_RESOURCE:
        SAY(zh ? "没有资源接近极限: 可用的核用了 %.0f%%, 工作线程 %.0f%% 的时间在工作"
               : "no resource is near its limit: this run uses %.0f %% of the usable cores, and the workers are at "
                 "work %.0f %% of their time",
            percent(found->a), percent(found->b));
    }
}

static void say_cause(FILE *out, const struct weir_verdict *verdict, const struct weir_found *found,
                      const struct weir_loader_report *report, bool zh)
{
    switch (found->cause) {
    case WEIR_CAUSE_CANNOT_TELL:
        say_doubt(out, found, report->steps.validation, zh);
        break;
    case WEIR_CAUSE_CONSUMER:
        if (found->traced)
            weir_verdict_say_idle(out, report, zh);
        else
            say_consumer(out, found, report, zh);
        break;
    case WEIR_CAUSE_DECODE:
    case WEIR_CAUSE_INFLATE:
    case WEIR_CAUSE_CONVERT:
    case WEIR_CAUSE_READ_CPU:
    case WEIR_CAUSE_OTHER_CPU:
        say_compute(out, verdict, found, report, zh);
        break;
    case WEIR_CAUSE_STORAGE:
    case WEIR_CAUSE_STORAGE_BANDWIDTH:
    case WEIR_CAUSE_STORAGE_LATENCY:
    case WEIR_CAUSE_STORAGE_TAIL:
        say_storage(out, found, zh);
        break;
    case WEIR_CAUSE_SLOW_CAMERA:
    case WEIR_CAUSE_SLOW_FILE:
        say_slow(out, found, zh);
        break;
    case WEIR_CAUSE_COLD:
        say_cold(out, found, zh);
        break;
    case WEIR_CAUSE_LIBRARY:
    case WEIR_CAUSE_BUS:
    case WEIR_CAUSE_GPU_DECODER:
        say_serial(out, found, zh);
        break;
    case WEIR_CAUSE_SLOW_WORKER:
    case WEIR_CAUSE_BURSTS:
    case WEIR_CAUSE_TOO_FEW_WORKERS:
    case WEIR_CAUSE_TOO_MANY_WORKERS:
        say_workers(out, verdict, found, zh);
        break;
    default:
        say_machine(out, verdict, found, report, zh);
    }
}

void weir_verdict_sentence(char *text, size_t size, const struct weir_verdict *verdict, const struct weir_found *found,
                           const struct weir_loader_report *report, enum weir_lang lang)
{
    FILE *out = fmemopen(text, size, "w");
    text[0] = '\0';
    if (!out)
        return;
    say_cause(out, verdict, found, report, lang == WEIR_LANG_ZH);
    fputc('\0', out);
    fclose(out);
    text[size - 1] = '\0';
    weir_text_printable(text);
}
