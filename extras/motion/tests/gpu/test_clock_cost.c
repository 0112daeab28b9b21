/* Compares the prepare kernel and the fused motion pass with and without clocks inside. Their results must be equal bit
 * for bit. Prints the clock tables, and the cost of the clocks: the time with and without them, interleaved and
 * measured with events. The test passes whatever the times are. The argument "few" skips the timing. */
#include "extras/motion/motion.h"
#include "extras/motion/motion_ops.h"
#include "tests/gpu/gpu_fixture.h"
#include "weir/kernel_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 128, WIDTH = 640, HEIGHT = 480, PIXELS = WIDTH * HEIGHT, SAMPLES = 4096, ROUNDS = 51 };

static struct gpufx fx;
static struct weir_err err;
static const struct weir_motion_ops *motion_ops;
static const char *const prepare_stages[] = {"value_table", "read_pixels", "store_values"};
static const struct weir_kernel_clock_kernel prepare_kernel = {"prepare_clocked_kernel", prepare_stages,
                                                               WEIR_GPU_PREPARE_STAGES, WEIR_GPU_PREPARE_ITERATIONS};
static const char *const motion_stages[] = {"calc_frame_blend", "indexing_data", "interpolation",
                                            "coordinate_transform", "store_buffers"};
static const struct weir_kernel_clock_kernel motion_kernel = {"motion_pass_clocked", motion_stages, WEIR_MOTION_STAGES,
                                                              WEIR_MOTION_ITERATIONS};
static uint64_t step_ns;
static void *memory, *before, *behind; /* a clock table, and the events before and after a launch */
static uint32_t launches;

/* A kernel that exists with and without clocks. */
struct subject {
    const struct weir_kernel_clock_kernel *kernel;
    void (*launch)(const struct subject *subject, struct weir_kernel_clock_table clocks);
    struct weir_gpu_prepare prepare;
    struct weir_motion_pass pass;
    void *motion;
    void *result; /* memory of all results */
    size_t bytes;
};

static void launch_prepare(const struct subject *subject, struct weir_kernel_clock_table clocks)
{
    struct weir_gpu_prepare prepare = subject->prepare;
    prepare.clocks = clocks;
    gpufx_fine(fx.ops->prepare(fx.gpu, &prepare, fx.stream, &err), &err);
}

static void launch_motion(const struct subject *subject, struct weir_kernel_clock_table clocks)
{
    struct weir_motion_pass pass = subject->pass;
    pass.clocks = clocks;
    motion_ops->pass(subject->motion, &pass);
}

static void find_step(void)
{
    static uint64_t samples[SAMPLES];
    void *to = gpufx_alloc(&fx, sizeof samples);
    gpufx_fine(fx.ops->clock_samples(fx.gpu, to, SAMPLES, fx.stream, &err), &err);
    gpufx_copy_out(&fx, samples, to, sizeof samples);
    gpufx_free(&fx, to);
    step_ns = weir_kernel_clock_step(samples, SAMPLES);
    printf("%%globaltimer advances in steps of %llu ns\n", (unsigned long long)step_ns);
    gpufx_check(step_ns > 0, "the step of %%globaltimer was not found");
}

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Launches the kernel once and returns its duration, measured with events. If clock is not NULL, launches the kernel
 * with clocks and adds their records to clock. */
static int64_t launch(const struct subject *subject, struct weir_kernel_clock *clock)
{
    static uint8_t bytes[1 << 14];
    size_t size = weir_kernel_clock_bytes(subject->kernel, 1);
    struct weir_kernel_clock_table table = {clock ? memory : NULL, 1, clock ? ++launches : 0};
    gpufx_record(&fx, before, fx.stream);
    subject->launch(subject, table);
    gpufx_record(&fx, behind, fx.stream);
    gpufx_sync(&fx, fx.stream);
    if (clock) {
        gpufx_copy_out(&fx, bytes, memory, size);
        gpufx_check(weir_kernel_clock_add(clock, bytes, size, launches, step_ns) == 1,
                    "the kernel wrote no clock table");
    }
    return gpufx_elapsed_ns(&fx, before, behind);
}

/* Returns whether pixel values are stored unchanged. If so, the kernel makes no table of values. */
static bool values_as_they_are(const struct subject *subject)
{
    return subject->kernel == &prepare_kernel && subject->prepare.dtype == WEIR_GPU_U8;
}

/* Checks that both kernels write the same results, and that every stage has laps. */
static void compare(const struct subject *subject)
{
    struct weir_kernel_clock clock;
    uint8_t *plain = malloc(subject->bytes), *clocked = calloc(1, subject->bytes);
    gpufx_check(plain && clocked, "out of memory");
    weir_kernel_clock_init(&clock, subject->kernel);
    gpufx_copy_in(&fx, subject->result, clocked, subject->bytes);
    launch(subject, NULL);
    gpufx_copy_out(&fx, plain, subject->result, subject->bytes);
    gpufx_copy_in(&fx, subject->result, clocked, subject->bytes);
    launch(subject, &clock);
    gpufx_copy_out(&fx, clocked, subject->result, subject->bytes);
    gpufx_check(memcmp(plain, clocked, subject->bytes) == 0, "the kernel with clocks writes different results");
    for (uint32_t i = 0; i < clock.n_stages; i++)
        gpufx_check(clock.stages[i].laps > 0 || (i == 0 && values_as_they_are(subject)), "a stage has no laps");
    free(plain);
    free(clocked);
}

static void print_cost(const char *what, const struct subject *subject)
{
    int64_t plain[ROUNDS], clocked[ROUNDS];
    struct weir_kernel_clock clock;
    weir_kernel_clock_init(&clock, subject->kernel);
    for (int i = 0; i < ROUNDS; i++) {
        plain[i] = launch(subject, NULL);
        clocked[i] = launch(subject, &clock);
    }
    qsort(plain, ROUNDS, sizeof plain[0], by_size);
    qsort(clocked, ROUNDS, sizeof clocked[0], by_size);
    printf("\n%s\n", what);
    weir_kernel_clock_print(stdout, &clock);
    printf("cost of the clocks: %.2f us without, %.2f us with: %+.2f %% (medians of %d interleaved launches; min %.2f "
           "and %.2f)\n",
           (double)plain[ROUNDS / 2] / 1e3, (double)clocked[ROUNDS / 2] / 1e3,
           100 * ((double)clocked[ROUNDS / 2] / (double)plain[ROUNDS / 2] - 1), ROUNDS, (double)plain[0] / 1e3,
           (double)clocked[0] / 1e3);
}

/* ---- the prepare kernel ---- */

static void *upload_planes(void)
{
    size_t bytes = (size_t)N * 3 * PIXELS;
    uint8_t *host = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        host[i] = (uint8_t)(i / 7 + i / WIDTH);
    void *planes = gpufx_upload(&fx, host, bytes);
    free(host);
    return planes;
}

static void run_prepare(uint32_t kind, const char *name, bool few)
{
    struct weir_gpu_source sources[N];
    float values[3 * 256];
    uint8_t *planes = upload_planes();
    void *tensor = gpufx_alloc(&fx, (size_t)N * 3 * PIXELS * 4);
    for (size_t i = 0; i < N; i++) {
        uint8_t *image = planes + i * 3 * PIXELS;
        sources[i] = (struct weir_gpu_source){.plane = {image, image + PIXELS, image + PIXELS * 5 / 4},
                                              .pitch = {kind == WEIR_GPU_RGB ? 3 * WIDTH : WIDTH, WIDTH / 2, WIDTH / 2},
                                              .kind = kind};
    }
    for (int i = 0; i < 3 * 256; i++)
        values[i] = (float)(i % 256) / 255.0f;
    void *gpu_sources = gpufx_upload(&fx, sources, sizeof sources),
         *gpu_values = gpufx_upload(&fx, values, sizeof values);
    for (int f = 0; f < 4; f++) {
        static const char *const dtypes[] = {"u8", "f32", "f16", "bf16"};
        static const size_t widths[] = {1, 4, 2, 2};
        char what[96];
        const struct weir_gpu_prepare prepare = {.sources = gpu_sources,
                                                 .n = few ? 2 : N,
                                                 .width = WIDTH,
                                                 .height = HEIGHT,
                                                 .out_width = WIDTH,
                                                 .out_height = HEIGHT,
                                                 .planar = true,
                                                 .dtype = (enum weir_gpu_dtype)f,
                                                 .values = gpu_values,
                                                 .tensor = tensor};
        const struct subject subject = {.kernel = &prepare_kernel,
                                        .launch = launch_prepare,
                                        .prepare = prepare,
                                        .result = tensor,
                                        .bytes = (size_t)prepare.n * 3 * PIXELS * widths[f]};
        compare(&subject);
        snprintf(what, sizeof what, "%s to %s nchw, %d images of %dx%d", name, dtypes[f], N, WIDTH, HEIGHT);
        if (!few)
            print_cost(what, &subject);
    }
    gpufx_free(&fx, gpu_sources);
    gpufx_free(&fx, gpu_values);
    gpufx_free(&fx, planes);
    gpufx_free(&fx, tensor);
}

/* ---- the pass of motion ---- */

enum { DOFS = 29, BODIES = 13, CLIPS = 8, FRAMES = 500 };

static double random_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

static void *upload_frames(size_t stride)
{
    size_t n = (size_t)CLIPS * FRAMES * stride + WEIR_MOTION_SPARE;
    float *host = calloc(n, sizeof *host);
    uint64_t random = 5;
    for (size_t i = 0; host && i < n; i++)
        host[i] = (float)random_number(&random);
    for (size_t row = 0; host && row < (size_t)CLIPS * FRAMES; row++)
        memcpy(host + row * stride, (const float[]){1, 0, 0, 0}, 4 * sizeof *host);
    gpufx_check(host, "out of memory");
    void *frames = gpufx_upload(&fx, host, n * sizeof *host);
    free(host);
    return frames;
}

/* Draws a random clip and time for each environment, and uploads them. */
static void draw_queries(struct weir_motion_pass *pass)
{
    struct weir_motion_span spans[CLIPS];
    int64_t *clip_of = calloc(pass->envs, sizeof *clip_of);
    float *times = calloc(pass->envs, sizeof *times);
    uint64_t random = 9;
    gpufx_check(clip_of && times, "out of memory");
    for (int i = 0; i < CLIPS; i++)
        spans[i] = (struct weir_motion_span){i * FRAMES, FRAMES - 1, (FRAMES - 1) / 50.0f, 1};
    for (size_t i = 0; i < pass->envs; i++) {
        clip_of[i] = (int64_t)(random_number(&random) * CLIPS);
        times[i] = (float)(random_number(&random) * FRAMES / 50);
    }
    pass->spans = gpufx_upload(&fx, spans, sizeof spans);
    pass->clip_of = gpufx_upload(&fx, clip_of, pass->envs * sizeof *clip_of);
    pass->times = gpufx_upload(&fx, times, pass->envs * sizeof *times);
    free(clip_of);
    free(times);
}

static size_t place_results(struct weir_motion_pass *pass, float *result)
{
    static const int widths[WEIR_MOTION_OUTPUTS] = {3, 4, 3, 3, 3, 3, DOFS, DOFS, 3 * BODIES};
    size_t at = 0;
    for (int i = 0; i < WEIR_MOTION_OUTPUTS; i++) {
        pass->results[i] = result ? result + at : NULL;
        at += (pass->envs * (size_t)widths[i] + WEIR_MOTION_SPARE + 15) / 16 * 16;
    }
    return at * sizeof *result;
}

static void run_motion(size_t envs, bool few)
{
    char what[64];
    struct subject subject = {.kernel = &motion_kernel, .launch = launch_motion};
    struct weir_motion_pass *pass = &subject.pass;
    *pass = (struct weir_motion_pass){
        .envs = envs, .steps = 1, .dofs = DOFS, .bodies = BODIES, .row = weir_motion_row_of(DOFS, BODIES)};
    pass->frames = upload_frames((size_t)pass->row.stride);
    draw_queries(pass);
    subject.bytes = place_results(pass, NULL);
    subject.result = gpufx_alloc(&fx, subject.bytes);
    place_results(pass, subject.result);
    const struct weir_motion_device device = {.gpu = 0, .stream = fx.stream};
    gpufx_fine(motion_ops->open(&subject.motion, &device, &err), &err);
    compare(&subject);
    snprintf(what, sizeof what, "motion for %zu environments", envs);
    if (!few)
        print_cost(what, &subject);
    gpufx_fine(motion_ops->finish(subject.motion, &err), &err);
    motion_ops->close(subject.motion);
    gpufx_free(&fx, subject.result);
    gpufx_free(&fx, (void *)pass->frames);
    gpufx_free(&fx, (void *)pass->spans);
    gpufx_free(&fx, (void *)pass->clip_of);
    gpufx_free(&fx, (void *)pass->times);
}

int main(int argc, char **argv)
{
    bool few = argc > 1 && strcmp(argv[1], "few") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    gpufx_open(&fx);
    size_t bytes = weir_kernel_clock_bytes(&prepare_kernel, 1), more = weir_kernel_clock_bytes(&motion_kernel, 1);
    memory = gpufx_alloc(&fx, bytes > more ? bytes : more);
    before = gpufx_event(&fx);
    behind = gpufx_event(&fx);
    find_step();
    motion_ops = weir_motion_ops_cuda(&err);
    gpufx_check(motion_ops, "%s", err.text);
    run_prepare(WEIR_GPU_RGB, "RGB", few);
    run_prepare(WEIR_GPU_YUV420, "YUV 4:2:0", few);
    run_motion(4096, few);
    run_motion(few ? 5000 : 1000000, few);
    fx.ops->event_free(fx.gpu, before);
    fx.ops->event_free(fx.gpu, behind);
    gpufx_free(&fx, memory);
    gpufx_close(&fx);
    return 0;
}
