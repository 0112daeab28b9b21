/* Clocks inside the kernel that prepares batches, on the fake GPU. Launches have clocks only while GPUs are recorded,
 * their tables are copied back, and batches do not change. */
#include "pipeline/gpu/gpu_clocks.h"
#include "prof/gpu/clock_sources.h"
#include "prof/gpu/gpu_join_priv.h"
#include "prof/gpu/gpu_trace.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/upload_fixture.h"
#include "weir/profiler.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 16, HEIGHT = 8, IMAGES = 5, LAUNCHES_MAX = 256 };

static const char *const stages[] = {"value_table", "read_pixels", "store_values"};
static const struct weir_kernel_clock_kernel kernel = {"prepare", stages, WEIR_GPU_PREPARE_STAGES,
                                                       WEIR_GPU_PREPARE_ITERATIONS};

static void use_fake(const char *settings)
{
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    setenv("WEIR_FAKE_CUDA", settings, 1);
}

static void begin(void)
{
    fixture_open();
    use_fake("");
}

TestSuite(gpu_clocks, .init = begin, .fini = fixture_close);

/* ---- clocks without a loader ---- */

/* Launches kernels that convert small images within GPU memory. */
struct launcher {
    struct weir_device *device;
    void *stream, *pixels, *sources, *tensor;
    struct weir_gpu_prepare prepare;
    struct weir_gpu_clocks *clocks;
};

static struct launcher launcher_open(void)
{
    struct launcher l = {0};
    struct weir_err err = WEIR_ERR_NONE;
    uint8_t pixels[3 * WIDTH * HEIGHT];
    struct weir_gpu_source sources[IMAGES];
    memset(pixels, 100, sizeof pixels);
    cr_assert_eq(weir_device_open(&l.device, 0, &err), 0, "%s", err.text);
    cr_assert_eq(weir_device_stream(l.device, &l.stream, &err), 0);
    cr_assert_eq(weir_device_alloc(l.device, sizeof pixels, &l.pixels, &err), 0);
    cr_assert_eq(weir_device_alloc(l.device, sizeof sources, &l.sources, &err), 0);
    cr_assert_eq(weir_device_alloc(l.device, IMAGES * sizeof pixels, &l.tensor, &err), 0);
    for (int i = 0; i < IMAGES; i++)
        sources[i] = (struct weir_gpu_source){.plane = {l.pixels}, .pitch = {3 * WIDTH}, .kind = WEIR_GPU_RGB};
    cr_assert_eq(weir_device_copy_in(l.device, l.pixels, pixels, sizeof pixels, l.stream, &err), 0);
    cr_assert_eq(weir_device_copy_in(l.device, l.sources, sources, sizeof sources, l.stream, &err), 0);
    l.prepare = (struct weir_gpu_prepare){.sources = l.sources,
                                          .n = IMAGES,
                                          .width = WIDTH,
                                          .height = HEIGHT,
                                          .out_width = WIDTH,
                                          .out_height = HEIGHT,
                                          .tensor = l.tensor};
    cr_assert_eq(weir_gpu_clocks_open(&l.clocks, l.device, &kernel, l.stream, &err), 0);
    return l;
}

static void wait_for(struct launcher *l)
{
    struct weir_err err = WEIR_ERR_NONE;
    void *event;
    cr_assert_eq(weir_device_event(l->device, &event, &err), 0);
    cr_assert_eq(weir_device_record(l->device, event, l->stream, &err), 0);
    cr_assert_eq(weir_device_wait(l->device, event, &err), 0);
    weir_device_event_free(l->device, event);
}

static void launcher_close(struct launcher *l)
{
    wait_for(l);
    weir_gpu_clocks_close(&l->clocks);
    weir_device_free(l->device, l->pixels);
    weir_device_free(l->device, l->sources);
    weir_device_free(l->device, l->tensor);
    weir_device_stream_free(l->device, l->stream);
    weir_device_close(&l->device);
}

/* Launches a kernel. Returns true if it had clocks. */
static bool launch(struct launcher *l, bool fetch)
{
    struct weir_err err = WEIR_ERR_NONE;
    weir_gpu_clocks_begin(l->clocks, &l->prepare.clocks);
    int rc = l->device->ops->prepare(l->device->gpu, &l->prepare, l->stream, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    weir_gpu_clocks_launched(l->clocks, &l->prepare.clocks, rc);
    if (fetch)
        cr_assert_eq(weir_gpu_clocks_fetch(l->clocks, &err), 0, "%s", err.text);
    return l->prepare.clocks.memory != NULL;
}

static void start_recording(void)
{
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_gpu_take_start(1 << 20, false, &err), 0, "%s", err.text);
}

static bool no_own_memory(int device)
{
    (void)device;
    return false;
}

static struct weir_gpu_take *stop_recording(void)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_gpu_take *take;
    cr_assert_eq(weir_gpu_take_stop(&take, no_own_memory, &err), 0, "%s", err.text);
    cr_assert(take);
    return take;
}

/* Adds up the clocks of all recorded launches. */
static struct weir_kernel_clock sum_of(const struct weir_gpu_take *take)
{
    struct weir_kernel_clock clock;
    weir_kernel_clock_init(&clock, &kernel);
    for (size_t i = 0; i < take->clocks.n; i++) {
        const struct weir_clock_launch *l = &take->clocks.at[i];
        cr_assert_eq(weir_kernel_clock_add(&clock, l->table, l->bytes, l->launch, l->step_ns), 1);
        cr_assert_eq(l->step_ns, 32);
        cr_assert_eq(l->tid, gettid());
        cr_assert_leq(l->before_ns, l->after_ns);
    }
    cr_assert_eq(clock.damaged, 0);
    return clock;
}

Test(gpu_clocks, launches_have_them_while_gpus_are_recorded)
{
    struct launcher l = launcher_open();
    cr_assert_not(launch(&l, true), "a launch has clocks without a recording");
    for (uint64_t turn = 0; turn < 3; turn++) {
        start_recording();
        for (uint64_t i = 0; i < 4 + turn; i++)
            cr_assert(launch(&l, i % 2));
        cr_assert(launch(&l, true));
        struct weir_gpu_take *take = stop_recording();
        struct weir_kernel_clock clock = sum_of(take);
        cr_assert_eq(clock.launches, 5 + turn);
        cr_assert_eq(clock.iterations, (5 + turn) * (1 + IMAGES));
        cr_assert_eq(clock.stages[WEIR_GPU_PREPARE_VALUES].laps, 5 + turn);
        cr_assert_eq(clock.stages[WEIR_GPU_PREPARE_STORE].laps, (5 + turn) * IMAGES);
        weir_gpu_take_free(&take);
        cr_assert_not(launch(&l, true));
    }
    launcher_close(&l);
}

/* Tables that were not fetched are not read. Once all tables are in use, launches have no clocks. */
Test(gpu_clocks, launches_past_the_tables_are_counted)
{
    struct launcher l = launcher_open();
    start_recording();
    for (int i = 0; i < LAUNCHES_MAX + 9; i++)
        cr_assert_eq(launch(&l, i % 16 == 0), i < LAUNCHES_MAX, "%d", i);
    cr_assert_not(launch(&l, true));
    struct weir_gpu_take *take = stop_recording();
    cr_assert_eq(take->clocks.n, LAUNCHES_MAX);
    cr_assert_eq(take->clocks.at[0].skipped, 10);
    sum_of(take);
    weir_gpu_take_free(&take);
    start_recording();
    cr_assert(launch(&l, true), "the next recording can use all tables again");
    cr_assert(launch(&l, false));
    take = stop_recording();
    cr_assert_eq(take->clocks.n, 1, "only fetched tables are returned");
    cr_assert_eq(take->clocks.at[0].skipped, 0);
    weir_gpu_take_free(&take);
    launcher_close(&l);
}

Test(gpu_clocks, a_close_hands_over_what_there_is)
{
    struct launcher l = launcher_open();
    start_recording();
    cr_assert(launch(&l, true));
    launcher_close(&l);
    struct weir_gpu_take *take = stop_recording();
    cr_assert_eq(take->clocks.n, 1);
    sum_of(take);
    weir_gpu_take_free(&take);
}

Test(gpu_clocks, iterations_past_the_rows_are_counted)
{
    struct launcher l = launcher_open();
    struct weir_gpu_source sources[100];
    struct weir_err err = WEIR_ERR_NONE;
    void *more, *tensor;
    for (int i = 0; i < 100; i++)
        sources[i] = (struct weir_gpu_source){.plane = {l.pixels}, .pitch = {3 * WIDTH}, .kind = WEIR_GPU_RGB};
    cr_assert_eq(weir_device_alloc(l.device, sizeof sources, &more, &err), 0);
    cr_assert_eq(weir_device_alloc(l.device, (size_t)100 * 3 * WIDTH * HEIGHT, &tensor, &err), 0);
    cr_assert_eq(weir_device_copy_in(l.device, more, sources, sizeof sources, l.stream, &err), 0);
    l.prepare.sources = more;
    l.prepare.tensor = tensor;
    l.prepare.n = 100;
    start_recording();
    cr_assert(launch(&l, true));
    struct weir_gpu_take *take = stop_recording();
    struct weir_kernel_clock clock = sum_of(take);
    cr_assert_eq(clock.iterations, 101);
    cr_assert_eq(clock.rows, WEIR_GPU_PREPARE_ITERATIONS);
    weir_gpu_take_free(&take);
    wait_for(&l);
    weir_device_free(l.device, more);
    weir_device_free(l.device, tensor);
    launcher_close(&l);
}

/* ---- clocks with a loader ---- */

static const char *make(void)
{
    return fixture_synth("jpeg", "act-jpeg", 4, 10, 48, 32, "top,wrist");
}

static struct weir_loader_config config_for(const char *data, int workers)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.device = "cuda";
    config.decoder = "turbo";
    config.batch_size = 3;
    config.num_workers = workers;
    config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW};
    return config;
}

static struct weir_profiler *open_profiler(void)
{
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    struct weir_err err = WEIR_ERR_NONE;
    weir_profiler_config_default(&config);
    config.gpu = true;
    cr_assert_eq(weir_profiler_open(&profiler, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_profiler_start(profiler, &err), 0, "%s", err.text);
    return profiler;
}

static uint64_t kernels_in(const struct weir_trace *trace)
{
    uint64_t n = 0;
    for (size_t i = 0; i < trace->n_events; i++)
        n += trace->events[i].cat == WEIR_CAT_KERNEL &&
             strcmp(weir_trace_text(trace, trace->events[i].name), "prepare") == 0;
    return n;
}

/* The loader is opened and closed during the recording. */
Test(gpu_clocks, batches_are_the_same_and_every_kernel_has_its_clocks)
{
    const char *data = make();
    for (int workers = 0; workers < 3; workers++) {
        struct weir_loader_config config = config_for(data, workers);
        struct weir_kernel_clocks clocks;
        struct weir_profiler *profiler = open_profiler();
        cr_assert_eq(upload_compare(&config), 14);
        weir_profiler_stop(profiler);
        weir_profiler_flush(profiler);
        struct weir_trace *trace = weir_profiler_last(profiler);
        cr_assert(trace);
        cr_assert_eq(weir_kernel_clocks_make(&clocks, trace), 0);
        cr_assert_eq(clocks.n, 1);
        cr_assert_eq(clocks.at[0].launches, kernels_in(trace));
        cr_assert_eq(clocks.at[0].launches, 14);
        cr_assert_eq(clocks.at[0].kernels, 14);
        cr_assert_str_eq(clocks.at[0].stages[0].name, "value_table");
        cr_assert_str_eq(clocks.at[0].stages[2].name, "store_values");
        cr_assert_eq(clocks.left_out, 0);
        weir_kernel_clocks_clear(&clocks);
        weir_profiler_close(&profiler);
    }
}

/* u8 batches in their stored layout need no kernel. */
Test(gpu_clocks, no_kernel_no_clocks)
{
    struct weir_loader_config config = config_for(make(), 1);
    struct weir_kernel_clocks clocks;
    config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_U8, .layout = WEIR_LAYOUT_NHWC};
    struct weir_profiler *profiler = open_profiler();
    cr_assert_eq(upload_compare(&config), 14);
    weir_profiler_stop(profiler);
    weir_profiler_flush(profiler);
    cr_assert_eq(weir_kernel_clocks_make(&clocks, weir_profiler_last(profiler)), 0);
    cr_assert_eq(clocks.n, 0);
    weir_kernel_clocks_clear(&clocks);
    weir_profiler_close(&profiler);
}

/* Runs in its own process, because the fake GPU reads its configuration only once. */
static void record_to_the_error(const char *data, const char *settings)
{
    use_fake(settings);
    struct weir_loader_config config = config_for(data, 1);
    struct weir_loader *loader;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    void *stream = NULL;
    struct weir_profiler *profiler = open_profiler();
    int rc = weir_loader_open(&loader, &config, &err);
    if (rc == 0)
        rc = weir_device_stream(weir_device_of(loader), &stream, &err);
    while (rc >= 0 && (rc = weir_loader_next(loader, &batch, &err)) > 0) {
        rc = weir_loader_wait(loader, batch, stream, &err);
        weir_loader_release_after(loader, batch, stream);
    }
    if (stream)
        weir_device_stream_free(weir_device_of(loader), stream);
    weir_loader_close(&loader);
    weir_profiler_close(&profiler);
    _exit(rc < 0 && strstr(err.text, "is lost") ? 0 : 1);
}

Test(gpu_clocks, a_gpu_that_is_lost_while_it_is_recorded_is_one_error)
{
    const char *data = make();
    for (int k = 1; k <= 40; k++) {
        char settings[32];
        int status;
        snprintf(settings, sizeof settings, "fail=lost:%d", k);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            record_to_the_error(data, settings);
        waitpid(child, &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %x", settings, (unsigned)status);
    }
}

/* The clocks' memory is allocated last. If the allocation fails, the run continues without clocks. */
Test(gpu_clocks, without_memory_for_them_the_run_goes_on)
{
    use_fake("fail=oom:200000");
    struct weir_loader_config config = config_for(make(), 1);
    struct weir_kernel_clocks clocks;
    struct weir_profiler *profiler = open_profiler();
    cr_assert_eq(upload_compare(&config), 14);
    weir_profiler_stop(profiler);
    weir_profiler_flush(profiler);
    cr_assert_eq(weir_kernel_clocks_make(&clocks, weir_profiler_last(profiler)), 0);
    cr_assert_eq(clocks.n, 0);
    cr_assert_eq(kernels_in(weir_profiler_last(profiler)), 14);
    weir_kernel_clocks_clear(&clocks);
    weir_profiler_close(&profiler);
}
