/* libFuzzer: reads arbitrary bytes as a table of clocks inside a kernel. The first three bytes select the number of
 * stages, the number of rows, and the step of %globaltimer. */
#include "tests/fuzz/fuzz.h"
#include "weir/kernel_clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static FILE *nowhere;

static void check_sums(const struct weir_kernel_clock *clock)
{
    if (clock->rows > clock->iterations || !isfinite(clock->span_ns) || !isfinite(clock->span_error_ns))
        abort();
    for (uint32_t i = 0; i < clock->n_stages; i++) {
        const struct weir_kernel_clock_stage *stage = &clock->stages[i];
        if (stage->laps > 0 && (stage->min_ticks > stage->max_ticks || stage->ticks < stage->max_ticks))
            abort();
        if (!isfinite(stage->ns) || stage->ns_laps > stage->laps)
            abort();
    }
}

/* Reads the same bytes as a plain buffer of ticks. */
static void fuzz_plain(const struct weir_kernel_clock_kernel *kernel, const uint8_t *data, size_t size, double rate)
{
    uint32_t stages = kernel->n_stages < WEIR_KERNEL_CLOCK_STAGES_MAX ? kernel->n_stages : WEIR_KERNEL_CLOCK_STAGES_MAX;
    size_t iterations = stages > 0 ? size / sizeof(int64_t) / stages : 0;
    struct weir_kernel_clock clock;
    int64_t *ticks = malloc(size + 1);
    if (!ticks)
        return;
    memcpy(ticks, data, size);
    const struct weir_kernel_clock_plain plain = {ticks, iterations, rate};
    weir_kernel_clock_init(&clock, kernel);
    if (weir_kernel_clock_add_plain(&clock, &plain) == 0)
        check_sums(&clock);
    weir_kernel_clock_print(nowhere, &clock);
    weir_kernel_clock_csv_plain(nowhere, kernel, &plain);
    free(ticks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *names[WEIR_KERNEL_CLOCK_STAGES_MAX + 1];
    struct weir_kernel_clock clock;
    struct weir_json json;
    if (size < 3)
        return 0;
    nowhere = nowhere ? nowhere : fopen("/dev/null", "w");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        names[i] = "stage";
    const struct weir_kernel_clock_kernel kernel = {"kernel", names, data[0] % (WEIR_KERNEL_CLOCK_STAGES_MAX + 2),
                                                    data[1] % 70};
    weir_kernel_clock_init(&clock, &kernel);
    weir_kernel_clock_add(&clock, data + 3, size - 3, 1, (uint64_t)data[2] * 16);
    check_sums(&clock);
    weir_kernel_clock_print(nowhere, &clock);
    weir_kernel_clock_csv_head(nowhere);
    weir_kernel_clock_csv(nowhere, &clock);
    fuzz_plain(&kernel, data + 3, size - 3, (double)data[2] / 16);
    weir_json_open(&json, nowhere, false);
    weir_json_array(&json, NULL);
    weir_kernel_clock_json(&json, &clock);
    weir_json_end(&json, ']');
    weir_json_close(&json);
    return 0;
}
