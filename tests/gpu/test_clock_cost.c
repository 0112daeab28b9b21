/* The preparing kernel with clocks inside: its tensors are the same, bit for bit, its table, and what the clocks cost:
 * its time with and without them, in turns, by events. Prints and judges no time. "few": without the times. */
#include "prof/gpu/kernel_clock.h"
#include "tests/gpu/gpu_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 128, WIDTH = 640, HEIGHT = 480, PIXELS = WIDTH * HEIGHT, SAMPLES = 4096, ROUNDS = 51 };

static struct gpufx fx;
static struct weir_err err;
static const char *const stages[] = {"value_table", "read_pixels", "store_values"};
static const struct weir_kernel_clock_kernel kernel = {"prepare_clocked_kernel", stages, WEIR_GPU_PREPARE_STAGES,
                                                       WEIR_GPU_PREPARE_ITERATIONS};
static uint64_t step_ns;
static void *memory; /* a table */
static uint32_t launches;

static void find_step(void)
{
    static uint64_t samples[SAMPLES];
    void *to = gpufx_alloc(&fx, sizeof samples);
    gpufx_fine(fx.ops->clock_samples(fx.gpu, to, SAMPLES, fx.stream, &err), &err);
    gpufx_copy_out(&fx, samples, to, sizeof samples);
    gpufx_free(&fx, to);
    step_ns = weir_kernel_clock_step(samples, SAMPLES);
    printf("%%globaltimer steps by %llu ns\n", (unsigned long long)step_ns);
    gpufx_check(step_ns > 0, "%%globaltimer has no step");
}

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* One launch, with clocks or without; added to clock unless it is NULL. Its time by events. */
static int64_t launch(struct weir_gpu_prepare prepare, struct weir_kernel_clock *clock, void *from, void *to)
{
    static uint8_t bytes[1 << 14];
    size_t size = weir_kernel_clock_bytes(&kernel, 1);
    if (clock)
        prepare.clocks = (struct weir_kernel_clock_table){memory, 1, ++launches};
    gpufx_record(&fx, from, fx.stream);
    gpufx_fine(fx.ops->prepare(fx.gpu, &prepare, fx.stream, &err), &err);
    gpufx_record(&fx, to, fx.stream);
    gpufx_sync(&fx, fx.stream);
    if (clock) {
        gpufx_copy_out(&fx, bytes, memory, size);
        gpufx_check(weir_kernel_clock_add(clock, bytes, size, launches, step_ns) == 1, "no table");
    }
    return gpufx_elapsed_ns(&fx, from, to);
}

/* Both kernels write the same. */
static void compare(struct weir_gpu_prepare prepare, size_t bytes, void *from, void *to)
{
    struct weir_kernel_clock clock;
    uint8_t *plain = malloc(bytes), *clocked = malloc(bytes);
    weir_kernel_clock_init(&clock, &kernel);
    launch(prepare, NULL, from, to);
    gpufx_copy_out(&fx, plain, prepare.tensor, bytes);
    memset(clocked, 0, bytes);
    gpufx_copy_in(&fx, prepare.tensor, clocked, bytes);
    launch(prepare, &clock, from, to);
    gpufx_copy_out(&fx, clocked, prepare.tensor, bytes);
    gpufx_check(memcmp(plain, clocked, bytes) == 0, "the kernel with clocks writes something else");
    free(plain);
    free(clocked);
}

static void print_cost(const char *what, struct weir_gpu_prepare prepare, void *from, void *to)
{
    int64_t plain[ROUNDS], clocked[ROUNDS];
    struct weir_kernel_clock clock;
    weir_kernel_clock_init(&clock, &kernel);
    for (int i = 0; i < ROUNDS; i++) {
        plain[i] = launch(prepare, NULL, from, to);
        clocked[i] = launch(prepare, &clock, from, to);
    }
    qsort(plain, ROUNDS, sizeof plain[0], by_size);
    qsort(clocked, ROUNDS, sizeof clocked[0], by_size);
    printf("\n%s, %d images of %dx%d\n", what, N, WIDTH, HEIGHT);
    weir_kernel_clock_print(stdout, &clock);
    printf("cost of the clocks: %.2f us without, %.2f us with: %+.2f %% (medians of %d by events, in turns; least %.2f "
           "and %.2f)\n",
           (double)plain[ROUNDS / 2] / 1e3, (double)clocked[ROUNDS / 2] / 1e3,
           100 * ((double)clocked[ROUNDS / 2] / (double)plain[ROUNDS / 2] - 1), ROUNDS, (double)plain[0] / 1e3,
           (double)clocked[0] / 1e3);
}

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

static void run(uint32_t kind, const char *name, bool few)
{
    struct weir_gpu_source sources[N];
    float values[3 * 256];
    uint8_t *planes = upload_planes();
    void *from = gpufx_event(&fx), *to = gpufx_event(&fx), *tensor = gpufx_alloc(&fx, (size_t)N * 3 * PIXELS * 4);
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
        char what[64];
        struct weir_gpu_prepare prepare = {.sources = gpu_sources,
                                           .n = few ? 2 : N,
                                           .width = WIDTH,
                                           .height = HEIGHT,
                                           .out_width = WIDTH,
                                           .out_height = HEIGHT,
                                           .planar = true,
                                           .dtype = (enum weir_gpu_dtype)f,
                                           .values = gpu_values,
                                           .tensor = tensor};
        compare(prepare, (size_t)prepare.n * 3 * PIXELS * widths[f], from, to);
        snprintf(what, sizeof what, "%s to %s nchw", name, dtypes[f]);
        if (!few)
            print_cost(what, prepare, from, to);
    }
    gpufx_free(&fx, gpu_sources);
    gpufx_free(&fx, gpu_values);
    gpufx_free(&fx, planes);
    gpufx_free(&fx, tensor);
    fx.ops->event_free(fx.gpu, from);
    fx.ops->event_free(fx.gpu, to);
}

int main(int argc, char **argv)
{
    bool few = argc > 1 && strcmp(argv[1], "few") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    gpufx_open(&fx);
    memory = gpufx_alloc(&fx, weir_kernel_clock_bytes(&kernel, 1));
    find_step();
    run(WEIR_GPU_RGB, "RGB", few);
    run(WEIR_GPU_YUV420, "YUV 4:2:0", few);
    gpufx_free(&fx, memory);
    gpufx_close(&fx);
    return 0;
}
