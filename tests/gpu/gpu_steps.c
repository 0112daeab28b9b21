#include "tests/gpu/gpu_steps.h"
#include "weir/stages.h"

#include "weir/recorder.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

static struct weir_err err;

void gpu_steps_open(struct gpu_steps *steps, struct gpufx *fx)
{
    *steps = (struct gpu_steps){.fx = fx};
    steps->copying = gpufx_stream(fx, true);
    steps->computing = gpufx_stream(fx, false);
    steps->copied = gpufx_event(fx);
    steps->computed = gpufx_event(fx);
    steps->batch = gpufx_alloc(fx, GPU_STEP_BYTES);
    steps->pinned = mmap(NULL, GPU_STEP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gpufx_check(steps->pinned != MAP_FAILED, "mmap");
    memset(steps->pinned, 1, GPU_STEP_BYTES);
    gpufx_fine(fx->ops->pin(fx->gpu, steps->pinned, GPU_STEP_BYTES, &err), &err);
}

static void wait_for_data(void)
{
    WEIR_ZONE(WEIR_STAGE_WAIT_DATA);
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
}

static void compute(struct gpu_steps *steps, uint64_t ns)
{
    gpufx_fine(steps->fx->ops->busy(steps->fx->gpu, ns, steps->computing, &err), &err);
}

static void wait_for(struct gpu_steps *steps, void *event)
{
    gpufx_fine(steps->fx->ops->wait(steps->fx->gpu, event, &err), &err);
}

void gpu_steps_run(struct gpu_steps *steps)
{
    struct gpufx *fx = steps->fx;
    wait_for_data();
    {
        WEIR_OPERATOR("copy_batch");
        gpufx_fine(fx->ops->copy_in(fx->gpu, steps->batch, steps->pinned, GPU_STEP_BYTES, steps->copying, &err), &err);
        gpufx_record(fx, steps->copied, steps->copying);
    }
    {
        WEIR_OPERATOR("train_forward");
        gpufx_fine(fx->ops->stream_wait(fx->gpu, steps->computing, steps->copied, &err), &err);
        compute(steps, 2000000);
        {
            WEIR_RANGE("loss");
            compute(steps, 1000000);
        }
    }
    {
        WEIR_OPERATOR("train_backward");
        compute(steps, 3000000);
        gpufx_record(fx, steps->computed, steps->computing);
    }
    {
        WEIR_OPERATOR("read_loss");
        wait_for(steps, steps->computed);
    }
}

void gpu_steps_close(struct gpu_steps *steps)
{
    struct gpufx *fx = steps->fx;
    gpufx_sync(fx, steps->computing);
    fx->ops->unpin(fx->gpu, steps->pinned);
    munmap(steps->pinned, GPU_STEP_BYTES);
    gpufx_free(fx, steps->batch);
    fx->ops->event_free(fx->gpu, steps->copied);
    fx->ops->event_free(fx->gpu, steps->computed);
    fx->ops->stream_free(fx->gpu, steps->copying);
    fx->ops->stream_free(fx->gpu, steps->computing);
}
