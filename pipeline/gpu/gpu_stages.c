#include "pipeline/gpu/gpu_clocks.h"
#include "pipeline/gpu/gpu_device.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { CALLS_MAX = 1024, READ_AT_ONCE = 4 };

struct call {
    void *begin, *end; /* timed events; NULL until the call is first used */
    void *stream;
    int stage;
};

struct weir_gpu_stages {
    struct weir_device *device;
    pthread_mutex_t lock;
    int n; /* number of calls that have events */
    struct call calls[CALLS_MAX];
    int ended[CALLS_MAX]; /* ring of ended calls whose times have not been read, in the order in which they ended */
    unsigned first, next;
    int unused[CALLS_MAX], n_unused; /* indexes of free calls that have events */
    struct weir_stage_stats stats[WEIR_STAGE_MAX];
};

int weir_gpu_stages_open(struct weir_gpu_stages **out, struct weir_device *device, struct weir_err *err)
{
    struct weir_gpu_stages *stages = calloc(1, sizeof *stages);
    *out = stages;
    if (!stages)
        return weir_err_set(err, -ENOMEM, "out of memory");
    pthread_mutex_init(&stages->lock, NULL);
    stages->device = weir_device_share(device);
    return 0;
}

/* ---- with the lock held ---- */

/* Reads the time of the call that ended first. Returns 1, 0 if there is no such call or the GPU has not finished it, or
 * a negative error. */
static int read_first(struct weir_gpu_stages *stages, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = stages->device->ops;
    if (stages->first == stages->next)
        return 0;
    int i = stages->ended[stages->first % CALLS_MAX];
    const struct call *call = &stages->calls[i];
    int64_t ns = 0;
    int rc = ops->passed(stages->device->gpu, call->end, err);
    if (rc <= 0)
        return rc;
    rc = ops->elapsed(stages->device->gpu, call->begin, call->end, &ns, err);
    if (rc < 0)
        return rc;
    weir_stage_stats_add(&stages->stats[call->stage], (uint64_t)(ns > 0 ? ns : 0));
    stages->first++;
    stages->unused[stages->n_unused++] = i;
    return 1;
}

static int read_some(struct weir_gpu_stages *stages, int most, struct weir_err *err)
{
    int rc = 1;
    for (int i = 0; i < most && rc > 0; i++)
        rc = read_first(stages, err);
    return rc < 0 ? rc : 0;
}

static int new_call(struct weir_gpu_stages *stages, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = stages->device->ops;
    struct call *call = &stages->calls[stages->n];
    int rc = ops->event_new(stages->device->gpu, true, &call->begin, err);
    if (rc < 0)
        return rc;
    rc = ops->event_new(stages->device->gpu, true, &call->end, err);
    if (rc < 0)
        ops->event_free(stages->device->gpu, call->begin);
    return rc < 0 ? rc : stages->n++;
}

static int take_call(struct weir_gpu_stages *stages, struct weir_err *err)
{
    int rc = read_some(stages, READ_AT_ONCE, err);
    if (rc < 0)
        return rc;
    if (stages->n_unused > 0)
        return stages->unused[--stages->n_unused];
    if (stages->n < CALLS_MAX)
        return new_call(stages, err);
    return weir_err_set(err, -EAGAIN, "%d timed stages have not finished on GPU %d yet; time fewer stages", CALLS_MAX,
                        stages->device->number);
}

/* ---- calls ---- */

int weir_gpu_stages_begin(struct weir_gpu_stages *stages, int stage, void *stream, struct weir_err *err)
{
    pthread_mutex_lock(&stages->lock);
    int i = take_call(stages, err);
    if (i >= 0) {
        struct call *call = &stages->calls[i];
        call->stage = stage;
        call->stream = stream;
        int rc = stages->device->ops->record(stages->device->gpu, call->begin, stream, err);
        if (rc < 0) {
            stages->unused[stages->n_unused++] = i;
            i = rc;
        }
    }
    pthread_mutex_unlock(&stages->lock);
    return i;
}

int weir_gpu_stages_end(struct weir_gpu_stages *stages, int i, struct weir_err *err)
{
    pthread_mutex_lock(&stages->lock);
    const struct call *call = &stages->calls[i];
    int rc = stages->device->ops->record(stages->device->gpu, call->end, call->stream, err);
    if (rc == 0)
        stages->ended[stages->next++ % CALLS_MAX] = i;
    else
        stages->unused[stages->n_unused++] = i;
    pthread_mutex_unlock(&stages->lock);
    return rc;
}

int weir_gpu_stages_read(struct weir_gpu_stages *stages, int stage, struct weir_stage_stats *stats,
                         struct weir_err *err)
{
    pthread_mutex_lock(&stages->lock);
    int rc = read_some(stages, CALLS_MAX, err);
    *stats = stages->stats[stage];
    pthread_mutex_unlock(&stages->lock);
    return rc;
}
