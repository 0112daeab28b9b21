/* Which of storage's causes: one camera, one file, few slow reads, the first epoch, bandwidth or latency. */
#include "analyze/verdict/verdict_priv.h"

#include <math.h>
#include <string.h>

/* ---- the first epoch ---- */

static double later_rate(const struct weir_report_epochs *later)
{
    return later->s > 0 ? (double)later->images / later->s : 0;
}

/* Of the bytes that an epoch reads, those that came from storage. All epochs read about the same. */
static double from_storage(const struct weir_report_epochs *epoch, const struct weir_loader_report *report)
{
    double images = (double)report->steps.images;
    if (epoch->n == 0 || epoch->device_bytes < 0 || images <= 0 || report->read_bytes == 0)
        return -1;
    return epoch->device_bytes / ((double)report->read_bytes * (double)epoch->images / images);
}

static double window_from_storage(const struct weir_loader_report *report)
{
    if (report->storage.device_bytes < 0 || report->read_bytes == 0)
        return -1;
    return report->storage.device_bytes / (double)report->read_bytes;
}

static bool began_cold(const struct weir_loader_report *report)
{
    const struct weir_report_setup *setup = &report->setup;
    return setup->known && !setup->direct && setup->cached_at_start >= 0 && setup->cached_at_start < 0.5;
}

bool weir_verdict_cold(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    static const double FASTER = 1.5, EXCESS = 0.25;
    const struct weir_report_epochs *first = &report->first_epoch, *later = &report->later_epochs;
    const struct weir_demands *d = &verdict->demands;
    double bytes = first->n > 0 ? from_storage(first, report) : window_from_storage(report);
    if (!began_cold(report) || bytes < WEIR_VERDICT_COLD_BYTES || (first->n > 0 && report->epoch_first > 1))
        return false;
    double wait_s = report->steps.train_wait_s + report->steps.val_wait_s, rate = later_rate(later);
    double excess_s = rate > 0 ? first->s - (double)first->images / rate : 0;
    bool faster = rate > 0 && first->s > 0 && rate >= FASTER * (double)first->images / first->s;
    bool stays_cold = later->n > 0 && from_storage(later, report) >= WEIR_VERDICT_COLD_BYTES;
    if (stays_cold || (later->n > 0 && (!faster || excess_s < EXCESS * wait_s)))
        return false;
    if (later->n == 0 && (d->of.blocked < WEIR_VERDICT_BLOCKED || d->blocked_read < 0.5))
        return false;
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_COLD, fmin(bytes, 1));
    found->a = first->s > 0 ? (double)first->images / first->s : d->rate;
    found->b = rate;
    return true;
}

/* ---- one camera, one file ---- */

static const struct weir_report_source *of_camera(const struct weir_report_sources *sources, int i, bool decode)
{
    return decode ? &sources->cameras[i].decode : &sources->cameras[i].read;
}

static double median_of_others(const struct weir_report_sources *sources, int but, bool decode)
{
    double p50[WEIR_REPORT_CAMERAS];
    int n = 0;
    for (int i = 0; i < sources->n_cameras; i++) {
        const struct weir_report_source *source = of_camera(sources, i, decode);
        if (i == but || source->count == 0)
            continue;
        int at = n++;
        for (; at > 0 && p50[at - 1] > source->p50_s; at--)
            p50[at] = p50[at - 1];
        p50[at] = source->p50_s;
    }
    return n > 0 ? p50[n / 2] : 0;
}

/* The camera that stands out by the median of its reads, or of its images' decoding; -1: none. */
static int slow_camera(const struct weir_report_sources *sources, bool decode, double *share, double *others_s)
{
    double all_s = 0;
    int slow = -1;
    for (int i = 0; i < sources->n_cameras; i++) {
        all_s += of_camera(sources, i, decode)->total_s;
        if (slow < 0 || of_camera(sources, i, decode)->p50_s > of_camera(sources, slow, decode)->p50_s)
            slow = i;
    }
    if (sources->n_cameras < 2 || all_s <= 0)
        return -1;
    const struct weir_report_source *source = of_camera(sources, slow, decode);
    *others_s = median_of_others(sources, slow, decode);
    *share = source->total_s / all_s;
    bool apart = *others_s > 0 && source->p50_s >= WEIR_VERDICT_SLOW_TIMES * *others_s;
    return apart && *share >= WEIR_VERDICT_SLOW_SHARE ? slow : -1;
}

static bool add_camera(struct weir_verdict *verdict, const struct weir_report_sources *sources, bool decode)
{
    double share, others_s;
    int slow = slow_camera(sources, decode, &share, &others_s);
    if (slow < 0)
        return false;
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_SLOW_CAMERA, share);
    found->a = of_camera(sources, slow, decode)->p50_s;
    found->b = others_s;
    found->decode = decode;
    memcpy(found->name, sources->cameras[slow].name, sizeof sources->cameras[slow].name);
    return true;
}

bool weir_verdict_slow_decoding(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    return add_camera(verdict, &report->sources, true);
}

int weir_verdict_heavy_camera(const struct weir_report_sources *sources, double *share, double *others_s)
{
    return slow_camera(sources, true, share, others_s);
}

/* A file's mean read without its slowest one, which may have met a busy core. */
static double mean_but_one(const struct weir_report_file *file)
{
    return file->count > 1 ? (file->mean_s * (double)file->count - file->max_s) / (double)(file->count - 1) : 0;
}

/* Only where it stands out: of files that are all as slow none is the slow one. */
static bool find_file(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_report_sources *sources = &report->sources;
    double all_s = 0;
    for (int i = 0; i < sources->n_cameras; i++)
        all_s += sources->cameras[i].read.total_s;
    if (sources->n_files == 0 || sources->files_read < 3 || all_s <= 0)
        return false;
    const struct weir_report_file *file = &sources->files[0];
    double share = file->mean_s * (double)file->count / all_s;
    bool alone = sources->n_files < 2 || file->mean_s >= 3 * sources->files[1].mean_s;
    if (!alone || mean_but_one(file) < WEIR_VERDICT_SLOW_TIMES * sources->files_median_s ||
        share < WEIR_VERDICT_SLOW_SHARE)
        return false;
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_SLOW_FILE, fmin(share, 1));
    found->a = file->mean_s;
    found->b = sources->files_median_s;
    memcpy(found->name, file->name, sizeof file->name);
    return true;
}

/* Bytes per second of many reads at once over those of the run; 0: not measured. */
static double probe_gain(const struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_demands *d = &verdict->demands;
    double s = report->steps.train_s + report->steps.val_s, rate = s > 0 ? (double)report->read_bytes / s : 0;
    double at_once = d->of.blocked * (d->workers > 0 ? d->workers : 1); /* reads, on average */
    if (report->storage.probe_depth == 0 || rate <= 0 || at_once <= 0)
        return 0;
    return report->storage.probe_bytes_per_s / (rate / fmin(at_once, 1));
}

/* Storage that is limited by a budget serves reads in bursts and holds all of them up in between: that is no tail. */
static bool gives_no_more(const struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    double gain = probe_gain(verdict, report);
    return gain > 0 && gain <= 1.4;
}

/* Nine of ten reads take at most p90, so the rest of all reading is the slowest tenth's. */
static double slowest_tenth(const struct weir_report_row *row)
{
    return row->mean_s > 0 ? 1 - 0.9 * row->p90_s / row->mean_s : 0;
}

bool weir_verdict_is_tail(const struct weir_loader_report *report)
{
    const struct weir_report_row *row = weir_demands_row(report, "03c_read_bytes", WEIR_SIDE_WORKER);
    if (!row || row->p50_s <= 0)
        return false;
    bool far = row->p99_s >= WEIR_VERDICT_TAIL_TIMES * row->p50_s || row->max_s >= 100 * row->p50_s;
    return far && slowest_tenth(row) >= WEIR_VERDICT_TAIL_SHARE;
}

static bool find_tail(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    if (!weir_verdict_is_tail(report) || gives_no_more(verdict, report))
        return false;
    const struct weir_report_row *row = weir_demands_row(report, "03c_read_bytes", WEIR_SIDE_WORKER);
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_STORAGE_TAIL, slowest_tenth(row));
    found->a = fmax(row->p99_s, row->mean_s);
    found->b = row->p50_s;
    return true;
}

/* ---- bandwidth or latency ---- */

/* At one depth and one size nobody can tell; more reads at once do: they give more bytes where each waited, and no more
 * where all share what there is. Latency it is only when a small read takes about as long as a whole one. */
static enum weir_cause kind_of(const struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    static const double MORE = 2, AS_LONG = 0.5;
    const struct weir_report_storage *storage = &report->storage;
    double gain = probe_gain(verdict, report);
    if (gives_no_more(verdict, report))
        return WEIR_CAUSE_STORAGE_BANDWIDTH;
    return gain >= MORE && storage->probe_small_s >= AS_LONG * storage->probe_whole_s ? WEIR_CAUSE_STORAGE_LATENCY
                                                                                      : WEIR_CAUSE_STORAGE;
}

static void find_kind(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_report_row *row = weir_demands_row(report, "03c_read_bytes", WEIR_SIDE_WORKER);
    double s = report->steps.train_s + report->steps.val_s;
    double rate = s > 0 ? (double)report->read_bytes / s : 0;
    struct weir_found *found = weir_verdict_add(verdict, kind_of(verdict, report), verdict->demands.of.blocked);
    found->a = row ? row->p50_s : 0;
    found->b = rate;
}

/* The workers sleep in reads, or the few tasks that batches wait for do. */
static bool is_waited_for(const struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_demands *d = &verdict->demands;
    const struct weir_report_late *late = &report->late;
    if (d->of.blocked >= WEIR_VERDICT_BLOCKED)
        return d->blocked_read >= 0.5;
    double wait_s = report->steps.train_wait_s + report->steps.val_wait_s;
    return d->of.idle >= WEIR_VERDICT_IDLE && late->wait_s >= 0.5 * wait_s && late->read_s >= 0.5 * late->task_s &&
           late->read_s >= 0.5 * late->wait_s && d->of.blocked > 0.01;
}

bool weir_verdict_storage(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    if (!is_waited_for(verdict, report))
        return false;
    if (add_camera(verdict, &report->sources, false) || find_file(verdict, report) || find_tail(verdict, report))
        return true;
    find_kind(verdict, report);
    return true;
}
