/* Batches on the fake GPU must equal the host's for any number of workers, any format, and slow streams. Failures end
 * the run with one error. The fake GPU aborts on leaks and on use after free. */
#include "pipeline/loader_priv.h"
#include "pipeline/offload/upload.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/upload_fixture.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EPISODES = 4, STEPS = 10, BATCH = 3, WIDTH = 48, HEIGHT = 32 };

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

TestSuite(upload, .init = begin, .fini = fixture_close);

static struct weir_loader_config config_for(const char *data, const char *device, int workers)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.device = device;
    config.decoder = "turbo";
    config.batch_size = BATCH;
    config.num_workers = workers;
    config.seed = 3;
    return config;
}

static const char *make(void)
{
    return fixture_synth("jpeg", "act-jpeg", EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
}

Test(upload, every_output_is_the_hosts)
{
    static const enum weir_dtype dtypes[] = {WEIR_DTYPE_U8, WEIR_DTYPE_F32, WEIR_DTYPE_F16, WEIR_DTYPE_BF16};
    struct weir_loader_config config = config_for(make(), "cuda", 2);
    config.obs_history = 2;
    for (int i = 0; i < 16; i++) {
        config.format = (struct weir_pixel_format){.dtype = dtypes[i % 4],
                                                   .layout = (enum weir_image_layout)(i / 4 % 2),
                                                   .color = (enum weir_color)(i / 8 % 2)};
        cr_assert_eq(upload_compare(&config), 14); /* from 30 training and 10 validation samples */
    }
}

Test(upload, normalised)
{
    struct weir_loader_config config = config_for(make(), "cuda:0", 1);
    for (int i = 0; i < 3; i++) {
        config.format = (struct weir_pixel_format){.dtype = i == 0   ? WEIR_DTYPE_F32
                                                            : i == 1 ? WEIR_DTYPE_F16
                                                                     : WEIR_DTYPE_BF16,
                                                   .layout = WEIR_LAYOUT_NCHW,
                                                   .color = (enum weir_color)(i % 2),
                                                   .mean = {0.485f, 0.456f, 0.406f},
                                                   .std = {0.229f, 0.224f, 0.225f}};
        upload_compare(&config);
    }
}

Test(upload, any_number_of_workers_and_slots)
{
    static const int workers[] = {0, 1, 2, 7};
    const char *data = make();
    for (int w = 0; w < 4; w++)
        for (int prefetch = 1; prefetch <= 4; prefetch++) {
            struct weir_loader_config config = config_for(data, "cuda", workers[w]);
            config.prefetch = prefetch;
            config.num_epochs = 2;
            config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW};
            cr_assert_eq(upload_compare(&config), 28);
        }
}

Test(upload, few_batches)
{
    const char *data = make();
    for (int n = 1; n <= 3; n++) {
        struct weir_loader_config config = config_for(data, "cuda", 2);
        config.train_split = 1;
        config.max_batches = n;
        config.format.dtype = WEIR_DTYPE_F32;
        cr_assert_eq(upload_compare(&config), n);
    }
}

Test(upload, a_rank_of_several)
{
    struct weir_loader_config config = config_for(make(), "cuda", 2);
    config.world_size = 2;
    config.rank = 1;
    cr_assert_eq(upload_compare(&config), 7);
}

Test(upload, cameras_of_several_sizes)
{
    struct weir_loader_config config = config_for(make(), "cuda", 2);
    config.crop = "wrist=30x20+5+7";
    for (int planar = 0; planar < 2; planar++) {
        config.format.layout = (enum weir_image_layout)planar;
        upload_compare(&config);
    }
    config.image_width = config.image_height = 24;
    upload_compare(&config);
}

Test(upload, depth_as_it_is)
{
    const char *data = fixture_synth("agilex", "agilex", 2, 6, WIDTH, HEIGHT, "top,wrist");
    static const char *const cameras[] = {"top,depth_top,wrist,depth_wrist", "depth_wrist"};
    for (int i = 0; i < 4; i++) {
        struct weir_loader_config config = config_for(data, "cuda", 2);
        config.cameras = cameras[i / 2];
        config.format.dtype = i % 2 ? WEIR_DTYPE_F16 : WEIR_DTYPE_U8;
        upload_compare(&config);
    }
}

Test(upload, bad_frames_by_every_policy)
{
    const char *data = make();
    for (int t = 2; t < 6; t++)
        fixture_damage(data, 1, t % 2, t, FIXTURE_NO_SOI);
    static const int workers[] = {0, 2, 7};
    for (int i = 0; i < 6; i++) {
        struct weir_loader_config config = config_for(data, "cuda", workers[i / 2]);
        config.on_error = i % 2 ? WEIR_ON_ERROR_SKIP : WEIR_ON_ERROR_SUBSTITUTE;
        config.no_shuffle = true; /* so that some batches lose all of their samples */
        config.batch_size = i % 2 ? 1 : BATCH;
        config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_BF16, .layout = WEIR_LAYOUT_NCHW};
        upload_compare(&config);
    }
}

/* The run must end at the same batch and with the same message as on the host. */
Test(upload, a_bad_frame_ends_the_run_where_the_hosts_ends)
{
    const char *data = make();
    fixture_damage(data, 1, 0, 4, FIXTURE_NO_SOI);
    for (int workers = 0; workers < 4; workers++) {
        char texts[2][sizeof((struct weir_err *)0)->text];
        int batches[2] = {0};
        for (int i = 0; i < 2; i++) {
            struct weir_loader_config config = config_for(data, i ? "cuda" : "cpu", workers);
            struct weir_loader *loader = fixture_loader(&config);
            struct weir_batch *batch;
            struct weir_err err = WEIR_ERR_NONE;
            int rc;
            for (; (rc = weir_loader_next(loader, &batch, &err)) > 0; batches[i]++)
                weir_loader_release(loader, batch);
            cr_assert_eq(rc, -EBADMSG);
            cr_assert_eq(weir_loader_next(loader, &batch, NULL), 0);
            memcpy(texts[i], err.text, sizeof texts[i]);
            weir_loader_close(&loader);
        }
        cr_assert_eq(batches[0], batches[1]);
        cr_assert_str_eq(texts[0], texts[1]);
    }
}

/* ---- order of work ---- */

Test(upload, a_slow_stream_keeps_its_batches)
{
    struct weir_loader_config config = config_for(make(), "cuda", 2);
    config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW};
    upload_consume_late(&config, 4000000);
}

/* Raw frames fill the two slots quickly, so the next copies are queued long before the kernels have run. */
Test(upload, slow_kernels)
{
    const char *data = fixture_synth("raw", "act", EPISODES, STEPS, 160, 120, "top,wrist");
    struct weir_loader_config config = config_for(data, "cuda", 2);
    config.prefetch = 1;
    config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW};
    upload_consume_late(&config, 0);
}

Test(upload, slow_copies)
{
    use_fake("copy_ns_per_mb=100000000");
    struct weir_loader_config config = config_for(make(), "cuda", 2);
    for (int i = 0; i < 2; i++) {
        config.format.dtype = i ? WEIR_DTYPE_U8 : WEIR_DTYPE_F32;
        upload_consume_late(&config, 0);
    }
}

Test(upload, who_releases_nothing_is_told)
{
    struct weir_loader_config config = config_for(make(), "cuda", 2);
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_facts facts;
    struct weir_batch *batches[WEIR_UPLOAD_BATCHES], *batch;
    struct weir_err err = WEIR_ERR_NONE;
    weir_loader_facts(loader, &facts);
    cr_assert_eq(facts.lendable, WEIR_UPLOAD_BATCHES);
    cr_assert_eq(facts.device, 0);
    cr_assert_str_eq(facts.gpu, "stand-in");
    for (int i = 0; i < WEIR_UPLOAD_BATCHES; i++)
        cr_assert_eq(weir_loader_next(loader, &batches[i], &err), 1, "%s", err.text);
    cr_assert_eq(weir_loader_next(loader, &batch, &err), -EBUSY);
    cr_assert_str_eq(err.text, "the caller holds all 3 batches; release one first");
    weir_loader_release(loader, batches[1]);
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_loader_next(loader, &batch, &err), -EBUSY, "batch 0 occupies the next slot");
    weir_loader_release(loader, batches[0]);
    cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
    cr_assert_eq(batch->plan.sequence, 3);
    weir_loader_close(&loader); /* while the caller still holds batches */
}

static void *stop_soon(void *loader)
{
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    weir_loader_stop(loader);
    return NULL;
}

Test(upload, stops)
{
    const char *data = make();
    for (int i = 0; i < 4; i++) {
        struct weir_loader_config config = config_for(data, "cuda", i);
        config.num_epochs = 1000000;
        struct weir_loader *loader = fixture_loader(&config);
        struct upload_reader reader = upload_reader_open(loader);
        struct weir_batch *batch;
        struct weir_err err = WEIR_ERR_NONE;
        pthread_t thread;
        int rc;
        pthread_create(&thread, NULL, stop_soon, loader);
        while ((rc = weir_loader_next(loader, &batch, &err)) > 0)
            weir_loader_release_after(loader, batch, reader.stream);
        cr_assert_eq(rc, 0, "%s", err.text);
        pthread_join(thread, NULL);
        weir_loader_finish(loader);
        upload_reader_close(&reader);
        weir_loader_close(&loader);
    }
}

Test(upload, goes_on_where_a_host_run_was)
{
    struct weir_loader_config config = config_for(make(), NULL, 2);
    const char *state = fixture_path("state");
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
        weir_loader_release(loader, batch);
    }
    cr_assert_eq(weir_loader_save(loader, state, &err), 0);
    weir_loader_close(&loader);
    config.device = "cuda";
    config.prefetch = 1;
    cr_assert_eq(weir_loader_restore(&config, state, &err), 0);
    cr_assert_eq(upload_compare(&config), 9);
}

/* ---- missing resources ---- */

static void expect_refusal(const struct weir_loader_config *config, int code, const char *want)
{
    struct weir_loader *loader;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_loader_open(&loader, config, &err), code, "%s", err.text);
    cr_assert_null(loader);
    cr_assert_not_null(strstr(err.text, want), "%s", err.text);
    cr_assert_null(strchr(err.text, '\n'));
}

Test(upload, names_that_are_none)
{
    static const char *const names[] = {"",        "cud",    "cuda:",      "cuda:x", "cuda:1x",
                                        "cuda:-1", "cuda 1", "cuda:99999", "gpu"};
    const char *data = make();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct weir_loader_config config = config_for(data, names[i], 1);
        expect_refusal(&config, -EINVAL, "use cpu, cuda or cuda:K");
    }
    struct weir_loader_config config = config_for(data, "cpu", 1);
    config.format.dtype = WEIR_DTYPE_F16;
    expect_refusal(&config, -EINVAL, "--device cuda");
    config = config_for(data, "cuda:3", 1);
    expect_refusal(&config, -ENODEV, "--device cuda:3: there is no GPU 3");
}

Test(upload, no_driver)
{
    use_fake("none");
    struct weir_loader_config config = config_for(make(), "cuda", 1);
    expect_refusal(&config, -ENODEV, "nvidia-smi");
}

Test(upload, no_module)
{
    setenv("WEIR_CUDA_MODULE", "/nowhere/libweir_cuda.so", 1);
    struct weir_loader_config config = config_for(make(), "cuda", 1);
    expect_refusal(&config, -ENODEV, "/nowhere/libweir_cuda.so");
}

Test(upload, no_memory)
{
    use_fake("memory_bytes=300000");
    struct weir_loader_config config = config_for(make(), "cuda", 1);
    config.format.dtype = WEIR_DTYPE_F32;
    expect_refusal(&config, -ENOMEM, "--batch-size or --prefetch");
}

Test(upload, cannot_pin)
{
    use_fake("fail=pin");
    struct weir_loader_config config = config_for(make(), "cuda", 1);
    expect_refusal(&config, -ENOMEM, "pin");
}

/* Runs to the end, or to the first error. Needs its own process, because the fake GPU reads its configuration only
 * once. */
static void run_to_the_error(const char *data, const char *settings, int workers)
{
    use_fake(settings);
    struct weir_loader_config config = config_for(data, "cuda", workers);
    config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_F16, .layout = WEIR_LAYOUT_NCHW};
    struct weir_loader *loader;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    void *stream = NULL;
    int rc = weir_loader_open(&loader, &config, &err);
    if (rc == 0)
        rc = weir_device_stream(weir_device_of(loader), &stream, &err);
    while (rc >= 0 && (rc = weir_loader_next(loader, &batch, &err)) > 0) {
        rc = weir_loader_wait(loader, batch, stream, &err);
        if (rc == 0)
            rc = weir_device_busy(weir_device_of(loader), 1000, stream, &err);
        weir_loader_release_after(loader, batch, stream);
    }
    if (loader && weir_loader_next(loader, &batch, NULL) > 0)
        _exit(3);
    if (stream)
        weir_device_stream_free(weir_device_of(loader), stream);
    weir_loader_close(&loader);
    _exit(rc == -EIO && strstr(err.text, "is lost") ? 0 : rc == -ENOMEM && *err.text ? 1 : 2);
}

static int status_of(const char *data, const char *settings, int workers)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_to_the_error(data, settings, workers);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

Test(upload, a_lost_gpu_is_one_error)
{
    const char *data = make();
    for (int k = 1; k <= 40; k++) {
        char settings[32];
        snprintf(settings, sizeof settings, "fail=lost:%d", k);
        cr_assert_eq(status_of(data, settings, k % 3), 0, "%s", settings);
    }
}

Test(upload, memory_that_is_used_up_is_one_error)
{
    const char *data = make();
    cr_assert_eq(status_of(data, "fail=oom:1", 2), 1);
    cr_assert_eq(status_of(data, "fail=oom:20000", 2), 1);
    cr_assert_eq(status_of(data, "fail=oom:50000", 2), 1);
}

/* ---- figures ---- */

/* The first step is long enough for the next batches to be loaded and copied while it runs. */
static struct weir_gpu_figures run_for_figures(uint64_t busy_ns, uint64_t *gpu_wait_ns, int *batches)
{
    struct weir_loader_config config = config_for(make(), "cuda", 2);
    config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_F16, .layout = WEIR_LAYOUT_NCHW};
    struct weir_loader *loader = fixture_loader(&config);
    struct upload_reader reader = upload_reader_open(loader);
    struct weir_batch *batch;
    struct weir_gpu_figures figures;
    struct weir_err err = WEIR_ERR_NONE;
    *gpu_wait_ns = 0;
    *batches = 0;
    while (weir_loader_next(loader, &batch, &err) > 0) {
        cr_assert_eq(weir_loader_wait(loader, batch, reader.stream, &err), 0);
        cr_assert_eq(weir_device_busy(reader.device, *batches ? busy_ns : 400000000, reader.stream, &err), 0);
        *gpu_wait_ns += batch->gpu_wait_ns;
        weir_loader_release_after(loader, batch, reader.stream);
        ++*batches;
    }
    upload_reader_close(&reader); /* waits for the stream */
    weir_loader_finish(loader);
    weir_loader_gpu_figures(loader, &figures);
    weir_loader_close(&loader);
    return figures;
}

Test(upload, figures_add_up)
{
    use_fake("copy_ns_per_mb=20000000");
    uint64_t busy_ns = 4000000, gpu_wait_ns;
    int batches;
    struct weir_gpu_figures f = run_for_figures(busy_ns, &gpu_wait_ns, &batches);
    cr_assert_eq(batches, 14);
    cr_assert_eq(f.copy.count, 14);
    cr_assert_eq(f.prepare.count, 14);
    cr_assert_eq(f.train_step.count, 10);
    cr_assert_eq(f.val_step.count, 4);
    cr_assert_eq(f.stall.count, 14);
    cr_assert_geq(f.train_step.min_ns, busy_ns);
    cr_assert_geq(f.busy_ns, 14 * busy_ns);
    cr_assert_leq(f.busy_ns, f.train_step.total_ns + f.val_step.total_ns + f.prepare.total_ns);
    cr_assert_leq(f.hidden_ns, f.copy.total_ns);
    cr_assert_gt(f.hidden_ns, 0, "copies overlap with the first step");
    cr_assert_geq(f.copied_bytes, (uint64_t)40 * 2 * WIDTH * HEIGHT * 3);
    cr_assert_geq(f.copy.total_ns, f.copied_bytes * 20);
    cr_assert_gt(gpu_wait_ns, 0, "the host runs ahead until the GPU uses all output batches");
}

/* Steps on one stream cannot overlap. If their times were relative to different bases, they would seem to. */
Test(upload, positions_go_on_when_their_base_changes)
{
    struct weir_loader_config config = config_for(make(), "cuda", 2);
    config.num_epochs = 4;
    struct weir_loader *loader = fixture_loader(&config);
    struct upload_reader reader = upload_reader_open(loader);
    struct weir_upload *upload = loader->shared.upload;
    struct weir_batch *batch;
    struct weir_gpu_figures f;
    uint64_t n = 0;
    pthread_mutex_lock(&upload->lock);
    upload->times.base_every_ns = 0;
    int64_t base_ns = upload->times.base_ns;
    pthread_mutex_unlock(&upload->lock);
    for (; weir_loader_next(loader, &batch, NULL) > 0; n++) {
        cr_assert_eq(weir_loader_wait(loader, batch, reader.stream, NULL), 0);
        cr_assert_eq(weir_device_busy(reader.device, 1000000, reader.stream, NULL), 0);
        weir_loader_release_after(loader, batch, reader.stream);
    }
    upload_reader_close(&reader);
    weir_loader_finish(loader);
    weir_loader_gpu_figures(loader, &f);
    cr_assert_eq(f.train_step.count + f.val_step.count, n);
    cr_assert_eq(f.busy_ns, f.train_step.total_ns + f.val_step.total_ns, "only the steps' kernels count");
    cr_assert_geq(upload->times.base_ns, base_ns + 20000000, "the base did not change");
    weir_loader_close(&loader);
}

/* Keeps the first matching report. Later ones differ: after the step, the uploader thread waits for a later batch
 * instead. */
static void keep_text(void *user, const char *text)
{
    char *kept = user;
    if (!*kept && strstr(text, "weir-upload: waits for the GPU"))
        snprintf(kept, 4096, "%s", text);
}

Test(upload, a_stall_names_the_threads)
{
    static char text[4096];
    struct weir_loader_config config = config_for(make(), "cuda", 1);
    config.stall_s = 0.05;
    config.on_stall = keep_text;
    config.user = text;
    struct weir_loader *loader = fixture_loader(&config);
    struct upload_reader reader = upload_reader_open(loader);
    struct weir_batch *batch;
    for (int i = 0; i < 4 && weir_loader_next(loader, &batch, NULL) > 0; i++) {
        if (i == 0)
            cr_assert_eq(weir_device_busy(reader.device, 1000000000, reader.stream, NULL), 0);
        weir_loader_release_after(loader, batch, reader.stream);
    }
    upload_reader_close(&reader);
    weir_loader_finish(loader);
    cr_assert_not_null(strstr(text, "  weir-upload: waits for the GPU or the consumer to finish batch 0\n"), "%s",
                       text);
    cr_assert_not_null(strstr(text, "  weir-reap: waits for the copy to be queued for batch 3\n"), "%s", text);
    weir_loader_close(&loader);
}

Test(upload, stages_of_the_host)
{
    struct weir_loader_config config = config_for(make(), "cuda", 2);
    config.format.dtype = WEIR_DTYPE_F32;
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    struct weir_snapshot *now;
    uint64_t n = 0;
    for (; weir_loader_next(loader, &batch, NULL) > 0; n++)
        weir_loader_release(loader, batch);
    weir_loader_finish(loader);
    cr_assert_eq(weir_snapshot_take(weir_loader_recorder(loader), &now), 0);
    cr_assert_eq(now->stages[WEIR_STAGE_H2D_COPY].count, n);
    cr_assert_eq(now->stages[WEIR_STAGE_PREPARE_BATCH].count, n);
    cr_assert_eq(now->stages[WEIR_STAGE_WAIT_DATA].count, n);
    cr_assert_eq(now->stages[WEIR_STAGE_TO_TENSOR].count, 0, "workers do not convert images");
    weir_snapshot_free(&now);
    weir_loader_close(&loader);
}

/* ---- intervals ---- */

Test(intervals, union_and_overlap)
{
    struct weir_intervals set = {0};
    cr_assert_eq(weir_intervals_add(&set, 10, 20), 10);
    cr_assert_eq(weir_intervals_add(&set, 30, 40), 10);
    cr_assert_eq(weir_intervals_add(&set, 15, 35), 10, "20 to 30 is not covered yet");
    cr_assert_eq(set.n, 1);
    cr_assert_eq(weir_intervals_add(&set, 12, 38), 0);
    cr_assert_eq(weir_intervals_add(&set, 40, 45), 5);
    cr_assert_eq(set.n, 1, "adjacent intervals are merged");
    cr_assert_eq(weir_intervals_add(&set, 50, 50), 0);
    cr_assert_eq(weir_intervals_add(&set, 60, 55), 0);
    cr_assert_eq(weir_intervals_overlap(&set, 0, 100), 35);
    cr_assert_eq(weir_intervals_overlap(&set, 44, 100), 1);
    cr_assert_eq(weir_intervals_overlap(&set, 45, 100), 0);
}

Test(intervals, old_ones_are_forgotten)
{
    struct weir_intervals set = {0};
    for (int i = 0; i < 100; i++)
        cr_assert_eq(weir_intervals_add(&set, 10 * i, 10 * i + 5), 5);
    cr_assert_eq(set.n, WEIR_INTERVALS_MAX);
    cr_assert_eq(weir_intervals_overlap(&set, 990, 1000), 5);
    cr_assert_eq(weir_intervals_overlap(&set, 0, 1000), 5 * WEIR_INTERVALS_MAX);
    cr_assert_eq(weir_intervals_add(&set, 0, 5), 5, "older than all stored intervals");
    cr_assert_eq(weir_intervals_overlap(&set, 990, 1000), 5);
}
