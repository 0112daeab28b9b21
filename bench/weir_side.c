#include "bench/weir_side.h"
#include "prof/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Takes and releases batches until the time is over; images seen and seconds spent. */
static int consume(struct weir_loader *loader, double seconds, uint64_t *images, double *spent_s, struct weir_err *err)
{
    struct weir_loader_facts facts;
    weir_loader_facts(loader, &facts);
    uint64_t start_ns = weir_clock_monotonic_ns(), now_ns = start_ns;
    *images = 0;
    while ((double)(now_ns - start_ns) < seconds * 1e9) {
        struct weir_batch *batch;
        int rc = weir_loader_next(loader, &batch, err);
        if (rc <= 0)
            return rc < 0 ? rc : weir_err_set(err, -ENODATA, "the batches ran out before the time");
        *images += (uint64_t)batch->n * (uint64_t)facts.images_per_sample;
        weir_loader_release(loader, batch);
        now_ns = weir_clock_monotonic_ns();
    }
    *spent_s = (double)(now_ns - start_ns) / 1e9;
    return 0;
}

static int read_recorder(struct weir_loader *loader, struct weir_side *side)
{
    struct weir_recorder *recorder = weir_loader_recorder(loader);
    struct weir_snapshot *snapshot;
    if (!recorder)
        return 0;
    weir_loader_finish(loader);
    int rc = weir_snapshot_take(recorder, &snapshot);
    if (rc < 0)
        return rc;
    double thread_ns = 0, zones = 0;
    for (int i = 0; i < snapshot->n_threads; i++) {
        const struct weir_thread_stats *t = &snapshot->threads[i];
        thread_ns += (double)t->wall_ns;
        zones += (double)t->zones;
        double sum_ns = (double)(t->work_ns + t->wait_ns + t->other_ns);
        if (t->role == WEIR_ROLE_WORKER && t->wall_ns)
            side->split_error = fmax(side->split_error, fabs(sum_ns - (double)t->wall_ns) / (double)t->wall_ns);
    }
    side->profiler_share = zones * weir_zone_cost_ns() / thread_ns;
    weir_snapshot_free(&snapshot);
    return 0;
}

int weir_side_run(const struct weir_loader_config *config, double seconds, struct weir_side *side, struct weir_err *err)
{
    *side = (struct weir_side){0};
    struct weir_loader *loader;
    int rc = weir_loader_open(&loader, config, err);
    if (rc < 0)
        return rc;
    struct weir_loader_facts facts;
    weir_loader_facts(loader, &facts);
    side->workers = facts.workers;
    side->slots_bytes = (uint64_t)facts.slots * facts.slot_bytes;
    side->index_bytes = facts.index_bytes;
    side->extent_max = facts.extent_max;
    uint64_t images;
    double spent_s;
    rc = consume(loader, seconds / 5, &images, &spent_s, err);
    if (rc == 0)
        rc = consume(loader, seconds, &images, &spent_s, err);
    if (rc == 0) {
        side->images_per_s = (double)images / spent_s;
        rc = read_recorder(loader, side);
    }
    weir_loader_close(&loader);
    return rc;
}

int weir_side_peak(const struct weir_loader_config *config, double seconds, struct weir_side *side,
                   uint64_t *peak_bytes)
{
    int ends[2];
    if (pipe(ends) != 0)
        return -errno;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct weir_err err = WEIR_ERR_NONE;
        int rc = weir_side_run(config, seconds, side, &err);
        ssize_t sent = rc == 0 ? write(ends[1], side, sizeof *side) : 0;
        _exit(sent == (ssize_t)sizeof *side ? 0 : 1);
    }
    close(ends[1]);
    ssize_t got = child > 0 ? read(ends[0], side, sizeof *side) : -1;
    close(ends[0]);
    struct rusage usage = {0};
    if (child < 0 || wait4(child, NULL, 0, &usage) < 0 || got != (ssize_t)sizeof *side)
        return -EIO;
    *peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    return 0;
}
