#include "bench/weir_side.h"
#include "weir/profiler.h"
#include "weir/stages.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Requests and releases batches until the trial is over, and counts samples and seconds. The time starts and ends when
 * a batch is delivered, so that only complete batches count. */
static int consume(struct weir_loader *loader, double seconds, double samples_min, uint64_t *samples, double *spent_s,
                   struct weir_err *err)
{
    uint64_t start_ns = weir_clock_monotonic_ns(), now_ns = start_ns;
    *samples = 0;
    while ((double)(now_ns - start_ns) < seconds * 1e9 || (double)*samples < samples_min) {
        struct weir_batch *batch;
        int rc = weir_loader_next(loader, &batch, err);
        if (rc <= 0)
            return rc < 0 ? rc : weir_err_set(err, -ENODATA, "the batches ran out before the trial ended");
        *samples += (uint64_t)batch->n;
        weir_loader_release(loader, batch);
        now_ns = weir_clock_monotonic_ns();
    }
    *spent_s = (double)(now_ns - start_ns) / 1e9;
    return 0;
}

static void read_threads(const struct weir_snapshot *snapshot, struct weir_side *side)
{
    double thread_ns = 0, zones = 0, worker_ns = 0, wait_ns = 0;
    for (int i = 0; i < snapshot->n_threads; i++) {
        const struct weir_thread_stats *t = &snapshot->threads[i];
        thread_ns += (double)t->wall_ns;
        zones += (double)t->zones;
        if (t->role != WEIR_ROLE_WORKER || t->wall_ns == 0)
            continue;
        double sum_ns = (double)(t->work_ns + t->wait_ns + t->unattributed_ns);
        side->split_error = fmax(side->split_error, fabs(sum_ns - (double)t->wall_ns) / (double)t->wall_ns);
        worker_ns += (double)t->wall_ns;
        wait_ns += (double)t->wait_ns;
    }
    side->profiler_share = zones * weir_zone_cost_ns() / thread_ns;
    side->decode_share = (double)snapshot->stages[WEIR_STAGE_IMAGE_DECODE].self_ns / worker_ns;
    side->convert_share = (double)snapshot->stages[WEIR_STAGE_TO_TENSOR].self_ns / worker_ns;
    side->read_share = (double)snapshot->stages[WEIR_STAGE_READ_BYTES].self_ns / worker_ns;
    side->wait_share = wait_ns / worker_ns;
}

static int read_recorder(struct weir_loader *loader, struct weir_side *side, struct weir_err *err)
{
    struct weir_snapshot *snapshot;
    if (!weir_loader_recorder(loader))
        return 0;
    weir_loader_finish(loader);
    if (weir_snapshot_take(weir_loader_recorder(loader), &snapshot) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    read_threads(snapshot, side);
    weir_snapshot_free(&snapshot);
    return 0;
}

static int run_turn(struct weir_loader *loader, const struct turn *turn, struct weir_side *side, struct weir_err *err)
{
    struct weir_loader_facts facts;
    weir_loader_facts(loader, &facts);
    side->workers = facts.workers;
    side->slots_bytes = (uint64_t)facts.slots * facts.slot_bytes;
    side->index_bytes = facts.index_bytes;
    side->extent_max = facts.extent_max;
    uint64_t samples;
    double spent_s, images = facts.images_per_sample, samples_min = turn->images_min / images;
    int cameras = weir_dataset_cameras(weir_loader_dataset(loader));
    int rc = consume(loader, turn->seconds / 5, samples_min / 5, &samples, &spent_s, err);
    if (rc == 0)
        rc = consume(loader, turn->seconds, samples_min, &samples, &spent_s, err);
    if (rc < 0)
        return rc;
    side->images_per_s = (double)samples * images / spent_s;
    side->tasks_per_s = (double)samples * (cameras + 1) / spent_s;
    return read_recorder(loader, side, err);
}

int weir_side_run(const struct weir_loader_config *config, const struct turn *turn, struct weir_side *side,
                  struct weir_err *err)
{
    *side = (struct weir_side){0};
    struct weir_loader *loader;
    int rc = weir_loader_open(&loader, config, err);
    if (rc == 0)
        rc = run_turn(loader, turn, side, err);
    weir_loader_close(&loader);
    return rc;
}

/* What the child process sends to its parent. */
struct parcel {
    struct weir_side side;
    struct weir_err err;
};

static int run_child(const struct weir_loader_config *config, const struct turn *turn, int end)
{
    static struct parcel parcel;
    weir_side_run(config, turn, &parcel.side, &parcel.err);
    /* The write is atomic, because a parcel is smaller than PIPE_BUF. */
    return write(end, &parcel, sizeof parcel) == (ssize_t)sizeof parcel ? 0 : 1;
}

int weir_side_peak(const struct weir_loader_config *config, const struct turn *turn, struct weir_side *side,
                   uint64_t *peak_bytes, struct weir_err *err)
{
    static struct parcel parcel;
    int ends[2];
    if (pipe(ends) != 0)
        return weir_err_set(err, -errno, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(run_child(config, turn, ends[1]));
    close(ends[1]);
    ssize_t got = child > 0 ? read(ends[0], &parcel, sizeof parcel) : -1;
    close(ends[0]);
    struct rusage usage = {0};
    int status = 0;
    if (child < 0 || wait4(child, &status, 0, &usage) < 0 || got != (ssize_t)sizeof parcel || status != 0)
        return weir_err_set(err, -EIO, "the child process that measures memory failed");
    if (parcel.err.code < 0)
        return weir_err_set(err, parcel.err.code, "%s", parcel.err.text);
    *side = parcel.side;
    *peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    return 0;
}
