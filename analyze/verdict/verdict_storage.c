/* Rules for storage: one slow camera, one slow file, a few slow reads, a cold first epoch, bandwidth or latency. */
#include "analyze/verdict/verdict_priv.h"
#include "base/numbers.h"
#include "prof/report/report_fields.h"

#include <math.h>
#include <stdlib.h>

/* ---- the first epoch ---- */

double weir_verdict_later_rate(const struct weir_loader_report *report)
{
    const struct weir_report_epochs *later = &report->later_epochs;
    return later->s > 0 ? (double)later->images / later->s : 0;
}

/* Returns the fraction of an epoch's bytes that came from storage, or -1. Assumes that all epochs read about the same
 * amount per image. */
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

void weir_rule_cold(struct weir_verdict_case *c)
{
    const struct weir_loader_report *report = c->report;
    const struct weir_report_epochs *first = &report->first_epoch, *later = &report->later_epochs;
    const struct weir_demands *d = c->demands;
    double bytes = first->n > 0 ? from_storage(first, report) : window_from_storage(report);
    if (!began_cold(report) || bytes < WEIR_VERDICT_COLD_BYTES || (first->n > 0 && report->epoch_first > 1))
        return;
    double wait_s = report->steps.train_wait_s + report->steps.val_wait_s, rate = weir_verdict_later_rate(report);
    double first_rate = first->s > 0 ? (double)first->images / first->s : d->rate;
    double excess_s = rate > 0 ? first->s - (double)first->images / rate : 0;
    bool faster = rate > 0 && first->s > 0 && rate >= WEIR_VERDICT_COLD_FASTER * first_rate;
    bool stays_cold = later->n > 0 && from_storage(later, report) >= WEIR_VERDICT_COLD_BYTES;
    if (stays_cold || (later->n > 0 && (!faster || excess_s < WEIR_VERDICT_COLD_EXCESS * wait_s)))
        return;
    if (later->n == 0 && (d->of.blocked < WEIR_VERDICT_BLOCKED || d->blocked_read < 0.5))
        return;
    struct weir_change awake = weir_change_cheaper(d, 0, weir_demands_asleep_s(d));
    struct weir_diagnosis_cause *cause = weir_verdict_add(c, WEIR_CAUSE_COLD, fmin(bytes, 1), &awake);
    weir_diagnosis_say(
        cause, "the page cache was cold: %.0f %% of the first epoch's bytes came from storage, at %.0f images/s",
        weir_percent(cause->share), first_rate);
    if (rate <= 0)
        return;
    cause->gain = first_rate > 0 ? rate / first_rate : cause->gain;
    weir_diagnosis_say(cause, "; later epochs ran at %.0f", rate);
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
        if (i != but && source->count > 0)
            p50[n++] = source->p50_s;
    }
    qsort(p50, (size_t)n, sizeof *p50, weir_compare_double);
    return n > 0 ? p50[n / 2] : 0;
}

/* Returns the camera that stands out by the median time of its reads, or of decoding its images, or -1. */
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

/* Adds a camera or a file that takes this share of the time, and each of whose reads takes longer than the others'.
 * Without it, it is as fast as they are. */
static struct weir_diagnosis_cause *add_slow(struct weir_verdict_case *c, enum weir_cause cause, const char *name,
                                             double share, double each_s, double others_s)
{
    double saved = each_s > 0 ? share * fmax(1 - others_s / each_s, 0) : 0;
    struct weir_change even = weir_change_cheaper(c->demands, 0, saved * weir_demands_asleep_s(c->demands));
    struct weir_diagnosis_cause *to = weir_verdict_add(c, cause, share, &even);
    snprintf(to->who, sizeof to->who, "%s", name);
    return to;
}

static void find_camera(struct weir_verdict_case *c, bool decode)
{
    const struct weir_report_sources *sources = &c->report->sources;
    double share, others_s;
    char a[24], b[24];
    int slow = slow_camera(sources, decode, &share, &others_s);
    if (slow < 0)
        return;
    const char *name = sources->cameras[slow].name;
    double each_s = of_camera(sources, slow, decode)->p50_s;
    weir_diagnosis_say(add_slow(c, WEIR_CAUSE_SLOW_CAMERA, name, share, each_s, others_s),
                       "camera %s is slow to %s: %s per %s (median), compared with %s for the other cameras; it takes "
                       "%.0f %% of the total %s time",
                       name, decode ? "decode" : "read", weir_report_time(a, each_s), decode ? "image" : "read",
                       weir_report_time(b, others_s), weir_percent(share), decode ? "decoding" : "reading");
}

void weir_rule_slow_decoding(struct weir_verdict_case *c)
{
    find_camera(c, true);
}

int weir_verdict_heavy_camera(const struct weir_report_sources *sources, double *share, double *others_s)
{
    return slow_camera(sources, true, share, others_s);
}

/* Returns a file's mean read without its slowest read, which can be slow because of a busy core. */
static double mean_but_one(const struct weir_report_file *file)
{
    return file->count > 1 ? (file->mean_s * (double)file->count - file->max_s) / (double)(file->count - 1) : 0;
}

/* Returns the bytes per second of many concurrent reads over those of the run; 0 = not measured. */
static double probe_gain(const struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    const struct weir_loader_report *report = c->report;
    double s = report->steps.train_s + report->steps.val_s, rate = s > 0 ? (double)report->read_bytes / s : 0;
    double at_once = d->of.blocked * (d->workers > 0 ? d->workers : 1); /* mean number of concurrent reads */
    if (report->storage.probe_depth == 0 || rate <= 0 || at_once <= 0)
        return 0;
    return report->storage.probe_bytes_per_s / (rate / fmin(at_once, 1));
}

/* Whether concurrent reads give no higher throughput. Storage with a rate limit serves reads in bursts and delays all
 * reads in between. This looks like a tail of slow reads but is not one. */
static bool gives_no_more(const struct weir_verdict_case *c)
{
    double gain = probe_gain(c);
    return gain > 0 && gain <= WEIR_VERDICT_PROBE_SAME;
}

/* Returns the slowest tenth's part of the reading time. Each of the other reads takes at most p90. */
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

/* ---- rules ---- */

bool weir_verdict_waits_for_reads(const struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    const struct weir_report_late *late = &c->report->late;
    if (d->of.blocked >= WEIR_VERDICT_BLOCKED)
        return d->blocked_read >= 0.5;
    double wait_s = c->report->steps.train_wait_s + c->report->steps.val_wait_s;
    return d->of.idle >= WEIR_VERDICT_IDLE && late->wait_s >= 0.5 * wait_s && late->read_s >= 0.5 * late->task_s &&
           late->read_s >= 0.5 * late->wait_s && d->of.blocked > 0.01;
}

void weir_rule_slow_camera(struct weir_verdict_case *c)
{
    if (weir_verdict_waits_for_reads(c))
        find_camera(c, false);
}

/* One file is far slower than the other files. */
void weir_rule_slow_file(struct weir_verdict_case *c)
{
    const struct weir_report_sources *sources = &c->report->sources;
    const struct weir_report_file *file = &sources->files[0];
    double all_s = 0, others_s = sources->files_median_s;
    char a[24], b[24];
    for (int i = 0; i < sources->n_cameras; i++)
        all_s += sources->cameras[i].read.total_s;
    if (!weir_verdict_waits_for_reads(c) || sources->n_files == 0 || sources->files_read < 3 || all_s <= 0)
        return;
    bool alone = sources->n_files < 2 || file->mean_s >= 3 * sources->files[1].mean_s;
    double share = fmin(file->mean_s * (double)file->count / all_s, 1);
    if (alone && mean_but_one(file) >= WEIR_VERDICT_SLOW_TIMES * others_s && share >= WEIR_VERDICT_SLOW_SHARE)
        weir_diagnosis_say(
            add_slow(c, WEIR_CAUSE_SLOW_FILE, file->name, share, file->mean_s, others_s),
            "file %s is slow to read: %s per read (mean), compared with %s for the median file; it takes "
            "%.0f %% of the total reading time",
            file->name, weir_report_time(a, file->mean_s), weir_report_time(b, others_s), weir_percent(share));
}

void weir_rule_tail(struct weir_verdict_case *c)
{
    const struct weir_report_row *row = weir_demands_row(c->report, "03c_read_bytes", WEIR_SIDE_WORKER);
    struct weir_change awake = weir_change_cheaper(c->demands, 0, weir_demands_asleep_s(c->demands));
    char a[24], b[24];
    if (!weir_verdict_waits_for_reads(c) || !weir_verdict_is_tail(c->report) || gives_no_more(c))
        return;
    weir_diagnosis_say(weir_verdict_add(c, WEIR_CAUSE_STORAGE_TAIL, slowest_tenth(row), &awake),
                       "a few slow reads are the limit: the slowest tenth takes %.0f %% of the total reading time (p99 "
                       "%s, median %s)",
                       weir_percent(slowest_tenth(row)), weir_report_time(a, fmax(row->p99_s, row->mean_s)),
                       weir_report_time(b, row->p50_s));
}

/* Distinguishes a bandwidth limit from a latency limit. The run's own reads all have one depth and one size, which does
 * not show the difference, so this compares them with the probe, which keeps many reads in flight. If the probe is not
 * faster than the run, bandwidth is the limit. If it is much faster, and a 4 KiB read takes about as long as the read
 * of a whole frame, latency is the limit. Otherwise the kind remains unknown (WEIR_CAUSE_STORAGE). */
static enum weir_cause kind_of_storage(const struct weir_verdict_case *c)
{
    const struct weir_report_storage *storage = &c->report->storage;
    if (gives_no_more(c))
        return WEIR_CAUSE_STORAGE_BANDWIDTH;
    bool latency = probe_gain(c) >= WEIR_VERDICT_PROBE_MORE &&
                   storage->probe_small_s >= WEIR_VERDICT_PROBE_SMALL * storage->probe_whole_s;
    return latency ? WEIR_CAUSE_STORAGE_LATENCY : WEIR_CAUSE_STORAGE;
}

void weir_rule_storage(struct weir_verdict_case *c)
{
    const struct weir_report_row *row = weir_demands_row(c->report, "03c_read_bytes", WEIR_SIDE_WORKER);
    double s = c->report->steps.train_s + c->report->steps.val_s, share = c->demands->of.blocked;
    enum weir_cause kind = kind_of_storage(c);
    struct weir_change awake = weir_change_cheaper(c->demands, 0, weir_demands_asleep_s(c->demands));
    char median[24];
    if (!weir_verdict_waits_for_reads(c))
        return;
    weir_diagnosis_say(weir_verdict_add(c, kind, share, &awake),
                       "storage%s is the limit: the workers wait for reads %.0f %% of their time (median %s, %.1f MB/s "
                       "in total)%s",
                       kind == WEIR_CAUSE_STORAGE_BANDWIDTH ? " bandwidth"
                       : kind == WEIR_CAUSE_STORAGE_LATENCY ? " latency"
                                                            : "",
                       weir_percent(share), weir_report_time(median, row ? row->p50_s : 0),
                       s > 0 ? (double)c->report->read_bytes / s / 1e6 : 0,
                       kind == WEIR_CAUSE_STORAGE_BANDWIDTH ? ", and more concurrent reads give no higher throughput"
                       : kind == WEIR_CAUSE_STORAGE_LATENCY ? ", and more concurrent reads give a higher throughput"
                                                            : "; this run cannot distinguish bandwidth from latency");
}
