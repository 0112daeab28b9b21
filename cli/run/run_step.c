#include "cli/run/run_step.h"
#include "weir/base.h"
#include "weir/recorder.h"

#include <errno.h>
#include <time.h>

static void spin_until(uint64_t until_ns, const volatile sig_atomic_t *interrupted)
{
    while (weir_clock_monotonic_ns() < until_ns && !*interrupted)
        continue;
}

static void sleep_until(uint64_t until_ns, const volatile sig_atomic_t *interrupted)
{
    struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    while (!*interrupted && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

void weir_run_step_stand_in(uint64_t ns, bool spin, const volatile sig_atomic_t *interrupted)
{
    uint64_t until_ns = weir_clock_monotonic_ns() + ns;
    if (spin)
        spin_until(until_ns, interrupted);
    else
        sleep_until(until_ns, interrupted);
}

/* The tensors that a step gets, as records carry them. */
static uint32_t batch_shapes(const struct weir_batch *batch)
{
    static const char *const names[] = {[WEIR_DTYPE_U8] = "unsigned char",
                                        [WEIR_DTYPE_F32] = "float",
                                        [WEIR_DTYPE_F16] = "c10::Half",
                                        [WEIR_DTYPE_BF16] = "c10::BFloat16",
                                        [WEIR_DTYPE_U16] = "unsigned short"};
    int64_t sizes[6 * WEIR_TENSORS_MAX], *to = sizes;
    int ranks[WEIR_TENSORS_MAX];
    const char *types[WEIR_TENSORS_MAX];
    for (int i = 0; i < batch->n_tensors; i++) {
        const struct weir_tensor *tensor = &batch->tensors[i];
        ranks[i] = tensor->ndim;
        types[i] = names[tensor->dtype];
        for (int d = 0; d < tensor->ndim; d++)
            *to++ = tensor->shape[d];
    }
    return weir_shapes_intern(batch->n_tensors, ranks, sizes, types);
}

void weir_run_step_shapes(const struct weir_batch *batch)
{
    if (weir_recording() & WEIR_RECORDING_SHAPES)
        weir_zone_shapes(batch_shapes(batch));
}
