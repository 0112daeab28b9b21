/* Batches on a GPU must equal the host's bit for bit, even for a consumer that never waits for its stream. Also
 * prints the cost of a run with a GPU. */
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/upload_fixture.h"
#include "tests/gpu/gpu_fixture.h"

#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 322, HEIGHT = 238 }; /* rows end at unaligned addresses */

static struct weir_loader_config config_for(const char *data, int workers)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.device = "cuda";
    config.num_workers = workers;
    config.seed = 3;
    return config;
}

static void compare_outputs(const char *data)
{
    static const enum weir_dtype dtypes[] = {WEIR_DTYPE_U8, WEIR_DTYPE_F32, WEIR_DTYPE_F16, WEIR_DTYPE_BF16};
    static const int workers[] = {0, 1, 7};
    int batches = 0;
    for (int i = 0; i < 32; i++) {
        struct weir_loader_config config = config_for(data, workers[i % 3]);
        config.obs_history = 1 + i % 2;
        config.format = (struct weir_pixel_format){.dtype = dtypes[i % 4],
                                                   .layout = (enum weir_image_layout)(i / 4 % 2),
                                                   .color = (enum weir_color)(i / 8 % 2)};
        for (int c = 0; c < 3 && i >= 16 && config.format.dtype != WEIR_DTYPE_U8; c++) {
            config.format.mean[c] = 0.4f + 0.02f * (float)c;
            config.format.std[c] = 0.22f + 0.01f * (float)c;
        }
        batches += upload_compare(&config);
    }
    printf("%d batches of 32 runs equal the host's\n", batches);
}

static void compare_cameras(const char *data, const char *agilex)
{
    struct weir_loader_config config = config_for(data, 2);
    config.crop = "wrist=301x200+5+7";
    config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW};
    int batches = upload_compare(&config);
    config = config_for(agilex, 2);
    config.cameras = "top,depth_top,wrist,depth_wrist";
    config.format.dtype = WEIR_DTYPE_BF16;
    batches += upload_compare(&config);
    printf("%d batches with cameras of several sizes and depth equal the host's\n", batches);
}

static void consume_late(const char *data)
{
    for (int i = 0; i < 4; i++) {
        struct weir_loader_config config = config_for(data, 4);
        config.batch_size = 4;
        config.prefetch = 1 + i;
        config.format =
            (struct weir_pixel_format){.dtype = i % 2 ? WEIR_DTYPE_U8 : WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW};
        upload_consume_late(&config, i % 2 ? 0 : 3000000);
    }
    printf("a consumer that never waits gets the right batches\n");
}

/* Runs steps of 10 ms and checks that the figures are consistent. Their values depend on the machine. */
static void measure(const char *data)
{
    enum { STEP_NS = 10000000 };
    struct weir_loader_config config = config_for(data, WEIR_WORKERS_AUTO);
    config.num_epochs = 4;
    config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_F16, .layout = WEIR_LAYOUT_NCHW};
    struct weir_loader *loader = fixture_loader(&config);
    struct upload_reader reader = upload_reader_open(loader);
    struct weir_batch *batch;
    struct weir_gpu_figures f;
    struct weir_err err = WEIR_ERR_NONE;
    uint64_t n = 0, data_ns = 0, gpu_ns = 0;
    for (; weir_loader_next(loader, &batch, &err) > 0; n++) {
        data_ns += batch->wait_ns;
        gpu_ns += batch->gpu_wait_ns;
        gpufx_fine(weir_loader_wait(loader, batch, reader.stream, &err), &err);
        gpufx_fine(weir_device_busy(reader.device, STEP_NS, reader.stream, &err), &err);
        weir_loader_release_after(loader, batch, reader.stream);
    }
    upload_reader_close(&reader);
    weir_loader_finish(loader);
    weir_loader_gpu_figures(loader, &f);
    weir_loader_close(&loader);
    uint64_t steps_ns = f.train_step.total_ns + f.val_step.total_ns;
    gpufx_check(f.copy.count == n && f.prepare.count == n && f.train_step.count + f.val_step.count == n &&
                    f.stall.count == n,
                "the figures do not include all batches");
    gpufx_check(f.train_step.min_ns >= STEP_NS * 99 / 100, "a step took %llu ns",
                (unsigned long long)f.train_step.min_ns);
    gpufx_check(f.hidden_ns <= f.copy.total_ns && f.busy_ns <= steps_ns + f.prepare.total_ns + n * 2000 &&
                    f.busy_ns + n * 2000 >= steps_ns,
                "the intervals are inconsistent");
    printf("%llu batches: copies %.1f GB/s, %.1f %% during steps; preparing %.3f ms; stalls %.3f ms; the host waited "
           "%.1f ms for data, %.1f ms for the GPU\n",
           (unsigned long long)n, (double)f.copied_bytes / (double)f.copy.total_ns,
           100.0 * (double)f.hidden_ns / (double)f.copy.total_ns, (double)f.prepare.total_ns / 1e6 / (double)n,
           (double)f.stall.total_ns / 1e6 / (double)n, (double)data_ns / 1e6, (double)gpu_ns / 1e6);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct gpufx fx;
    gpufx_open(&fx);
    fixture_open();
    char data[512], agilex[512];
    snprintf(data, sizeof data, "%s", fixture_synth("jpeg", "act-jpeg", 6, 30, WIDTH, HEIGHT, "top,wrist"));
    snprintf(agilex, sizeof agilex, "%s", fixture_synth("agilex", "agilex", 2, 12, WIDTH, HEIGHT, "top,wrist"));
    compare_outputs(data);
    compare_cameras(data, agilex);
    consume_late(data);
    measure(data);
    fixture_close();
    gpufx_close(&fx);
    return 0;
}
