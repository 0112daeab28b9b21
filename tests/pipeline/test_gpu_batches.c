/* JPEGs decoded on a GPU, using the fake one. Batches must equal the host's, whichever decoder handles a frame. Frames
 * that an engine refuses or decodes incorrectly are decoded on the CPU. Failures end the run with one error. */
#include "pipeline/loader_priv.h"
#include "pipeline/offload/gpu_decode.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/upload_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EPISODES = 4, STEPS = 10, BATCH = 3, WIDTH = 48, HEIGHT = 32 };

static void use_fake(const char *cuda, const char *jpeg)
{
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    setenv("WEIR_FAKE_CUDA", cuda, 1);
    setenv("WEIR_FAKE_JPEG", jpeg, 1);
}

static void begin(void)
{
    fixture_open();
    use_fake("", "");
}

TestSuite(gpu_batches, .init = begin, .fini = fixture_close);

static struct weir_loader_config config_for(const char *data, const char *decoder, int workers)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.device = "cuda";
    config.decoder = decoder;
    config.batch_size = BATCH;
    config.num_workers = workers;
    config.seed = 3;
    config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW};
    return config;
}

static const char *make(void)
{
    return fixture_synth("jpeg", "act-jpeg", EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
}

static const char *const decoders[] = {"nvjpeg", "hybrid"};

Test(gpu_batches, are_the_hosts)
{
    const char *data = make();
    static const int workers[] = {0, 1, 2, 7};
    for (int i = 0; i < 8; i++) {
        struct weir_loader_config config = config_for(data, decoders[i % 2], workers[i / 2]);
        cr_assert_eq(upload_compare(&config), 14);
        config.obs_history = 3;
        config.num_epochs = 2;
        cr_assert_eq(upload_compare(&config), 28);
    }
}

Test(gpu_batches, in_every_output)
{
    const char *data = make();
    for (int i = 0; i < 8; i++) {
        struct weir_loader_config config = config_for(data, decoders[i % 2], 2);
        config.format = (struct weir_pixel_format){
            .dtype = i & 2 ? WEIR_DTYPE_F16 : WEIR_DTYPE_U8,
            .layout = i & 4 ? WEIR_LAYOUT_NCHW : WEIR_LAYOUT_NHWC,
            .color = i & 1 ? WEIR_COLOR_BGR : WEIR_COLOR_RGB,
        };
        upload_compare(&config);
    }
}

/* Frames are divided by number, so that in every run the GPU and the CPU decode the same frames. */
Test(gpu_batches, with_fixed_shares)
{
    const char *data = make();
    setenv("WEIR_FAKE_JPEG", "engines=1", 1);
    struct weir_loader_config config = config_for(data, "hybrid", 7);
    config.deterministic = true;
    uint64_t taken[2] = {0};
    for (int again = 0; again < 2; again++) {
        struct weir_loader *loader = fixture_loader(&config);
        struct weir_batch *batch;
        while (weir_loader_next(loader, &batch, NULL) > 0)
            weir_loader_release(loader, batch);
        taken[again] = loader->shared.decode->tally.frames[WEIR_JPEG_TAKEN];
        weir_loader_close(&loader);
    }
    cr_assert_eq(taken[0], taken[1]);
    cr_assert(taken[0] > 0 && taken[0] < (uint64_t)EPISODES * STEPS * 2, "%d", (int)taken[0]);
    upload_compare(&config);
}

/* Slow JPEG engines, and enough frames in flight that the multiprocessors decode some of them. */
static struct weir_loader_config config_for_all_three(const char *data)
{
    struct weir_loader_config config = config_for(data, "hybrid", 2);
    setenv("WEIR_FAKE_JPEG", "frame_ns=100000", 1);
    config.obs_history = 3;
    config.num_epochs = 40;
    config.prefetch = 120;
    return config;
}

static void run_and_count(const struct weir_loader_config *config, struct weir_gpu_decode_figures *figures,
                          uint64_t *by_cpu)
{
    struct weir_loader_counts counts;
    struct weir_loader *loader = fixture_loader(config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    while ((rc = weir_loader_next(loader, &batch, &err)) > 0)
        weir_loader_release(loader, batch);
    cr_assert_eq(rc, 0, "%s", err.text);
    weir_loader_gpu_decode_figures(loader, figures);
    weir_loader_counts(loader, &counts, false);
    *by_cpu = counts.decoded.frames;
    weir_loader_close(&loader);
}

Test(gpu_batches, by_jpeg_engines_multiprocessors_and_cpu)
{
    const char *data = make();
    struct weir_loader_config config = config_for_all_three(data);
    struct weir_gpu_decode_figures figures;
    uint64_t by_cpu;
    cr_assert_eq(upload_compare(&config), 40 * 14);
    run_and_count(&config, &figures, &by_cpu);
    cr_assert_eq(figures.n_engines, 2);
    cr_assert(figures.engines[0].hardware == 7 && figures.engines[0].frames > 0 && figures.engines[0].busy_ns > 0);
    cr_assert(figures.engines[1].hardware == 0 && figures.engines[1].frames > 0 && figures.engines[1].busy_ns > 0);
    cr_assert_gt(by_cpu, figures.compared); /* compared frames are decoded on both the CPU and the GPU */
    cr_assert_gt(figures.cpu_ns, 0);
}

/* The multiprocessors' output depends on the other frames in a group, so it is not reproducible. Deterministic runs,
 * and the choice of "auto", must not use them. */
Test(gpu_batches, auto_and_what_repeats_leave_the_multiprocessors_alone)
{
    const char *data = make();
    struct weir_loader_config config = config_for_all_three(data);
    struct weir_gpu_decode_figures figures;
    uint64_t by_cpu;
    config.num_epochs = 2;
    config.prefetch = 10;
    run_and_count(&config, &figures, &by_cpu);
    cr_assert_eq(figures.n_engines, 1);
    config.num_epochs = 40;
    config.prefetch = 120;
    config.deterministic = true;
    run_and_count(&config, &figures, &by_cpu);
    cr_assert_eq(figures.n_engines, 1);
    config.deterministic = false;
    config.decoder = "auto";
    run_and_count(&config, &figures, &by_cpu);
    cr_assert(figures.n_engines <= 1);
}

/* The trial takes at least a tenth of a second for the CPU and for the GPU. This time must not count as indexing. */
Test(gpu_batches, the_trial_is_no_opening_of_the_dataset)
{
    const char *data = make();
    struct weir_loader_config config = config_for(data, "auto", 2);
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_facts facts;
    weir_loader_facts(loader, &facts);
    cr_assert_geq(facts.open_s - facts.index_s, 0.2, "%s: %g s, of which indexing took %g s", facts.decoder_why,
                  facts.open_s, facts.index_s);
    weir_loader_close(&loader);
}

/* For scaled crops of JPEGs, the host decodes at a DCT scale before it resamples, so only unscaled crops are compared.
 */
Test(gpu_batches, crops_are_the_hosts)
{
    const char *data = make();
    static const char *const crops[] = {"24x16+5+3", "top=17x11+1+0,wrist=24x16+0+0", "wrist=20x32+20+0"};
    for (int i = 0; i < 6; i++) {
        struct weir_loader_config config = config_for(data, decoders[i % 2], 2);
        config.crop = crops[i / 2];
        upload_compare(&config);
    }
}

/* Averaging is the same arithmetic on both sides, but a DCT scale is not. 40x27 is more than half the size, so no DCT
 * scale is used, nor are they for exact sizes. */
Test(gpu_batches, sizes_are_the_hosts)
{
    const char *data = make();
    static const struct {
        int width, height;
        enum weir_resize resize;
    } sizes[] = {{61, 33, WEIR_RESIZE_FAST}, {40, 27, WEIR_RESIZE_FAST}, {20, 11, WEIR_RESIZE_EXACT}};
    for (int i = 0; i < 6; i++) {
        struct weir_loader_config config = config_for(data, decoders[i % 2], 2);
        config.image_width = sizes[i / 2].width;
        config.image_height = sizes[i / 2].height;
        config.resize = sizes[i / 2].resize;
        upload_compare(&config);
    }
}

Test(gpu_batches, other_formats_go_by)
{
    static const char *const formats[] = {"act", "astrobench", "robomimic-gzip"};
    for (int i = 0; i < 3; i++) {
        const char *data = fixture_synth(formats[i], formats[i], 3, 6, WIDTH, HEIGHT, NULL);
        for (int k = 0; k < 2; k++) {
            struct weir_loader_config config = config_for(data, decoders[k], 3);
            upload_compare(&config);
        }
    }
}

Test(gpu_batches, real_ones)
{
    static const char *const names[] = {"actpp_jpeg", "astrobench", "robotwin", "actpp_jpeg_512x384"};
    for (int i = 0; i < 4; i++) {
        const char *data = fixture_real(names[i]);
        if (!data)
            return;
        struct weir_loader_config config = config_for(data, decoders[i % 2], 2);
        config.max_batches = 4;
        upload_compare(&config);
    }
}

/* ---- frames returned to the CPU ---- */

Test(gpu_batches, what_the_engine_refuses_the_cpu_decodes)
{
    const char *data = make();
    use_fake("", "refuse_width=48");
    for (int i = 0; i < 2; i++) {
        struct weir_loader_config config = config_for(data, decoders[i], 2);
        config.obs_history = 2;
        upload_compare(&config);
        struct weir_gpu_decode_figures figures;
        uint64_t by_cpu;
        run_and_count(&config, &figures, &by_cpu);
        cr_assert(strstr(figures.reasons, "refused by the engine") && !strchr(figures.reasons, ','), "%s",
                  figures.reasons);
    }
}

Test(gpu_batches, what_the_engine_gets_wrong_the_cpu_decodes)
{
    const char *data = make();
    use_fake("", "noise=9");
    struct weir_loader_config config = config_for(data, "nvjpeg", 2);
    upload_compare(&config);
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    while (weir_loader_next(loader, &batch, NULL) > 0)
        weir_loader_release(loader, batch);
    struct weir_psnr_check_counts counts;
    weir_psnr_check_counts(loader->shared.decode->psnr_check, &counts);
    cr_assert_geq(counts.below, 1);
    cr_assert_lt(counts.least_db, WEIR_PSNR_LEAST_DB);
    cr_assert_geq(loader->shared.decode->tally.frames[WEIR_JPEG_PSNR_REFUSED], 1);
    weir_loader_close(&loader);
}

Test(gpu_batches, bad_frames_by_every_policy)
{
    const char *data = make();
    for (int t = 2; t < 6; t++)
        fixture_damage(data, 1, t % 2, t, t < 4 ? FIXTURE_NO_SOI : FIXTURE_ZEROED);
    static const int workers[] = {0, 2, 7};
    for (int i = 0; i < 12; i++) {
        struct weir_loader_config config = config_for(data, decoders[i & 1], workers[i / 4]);
        config.on_error = i & 2 ? WEIR_ON_ERROR_SKIP : WEIR_ON_ERROR_SUBSTITUTE;
        config.no_shuffle = true;
        config.batch_size = i & 2 ? 1 : BATCH;
        upload_compare(&config);
        config.obs_history = 2;
        upload_compare(&config);
    }
}

/* Only the decoder that is opened first, the JPEG engines', finds memory for a group. */
Test(gpu_batches, go_on_when_the_multiprocessors_find_no_memory_for_a_group)
{
    const char *data = make();
    struct weir_loader_config config = config_for_all_three(data);
    struct weir_gpu_decode_figures figures;
    uint64_t by_cpu;
    setenv("WEIR_FAKE_JPEG", "frame_ns=100000,working=1", 1);
    run_and_count(&config, &figures, &by_cpu);
    cr_assert_eq(figures.n_engines, 2);
    cr_assert_gt(figures.engines[0].frames, 0);
    cr_assert_eq(figures.engines[1].frames, 0);
    cr_assert_not_null(strstr(figures.reasons, "refused by the engine"), "%s", figures.reasons);
}

/* Runs the loader to the end, with all frames decoded by the engines. Returns true if the JPEG engines got a second
 * decoder. */
static bool has_second(const struct weir_loader_config *config)
{
    struct weir_gpu_decode_figures figures;
    struct weir_loader *loader = fixture_loader(config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    while ((rc = weir_loader_next(loader, &batch, &err)) > 0)
        weir_loader_release(loader, batch);
    cr_assert_eq(rc, 0, "%s", err.text);
    weir_loader_gpu_decode_figures(loader, &figures);
    cr_assert_geq(figures.engines[0].frames, (uint64_t)config->num_epochs * EPISODES * STEPS * 2);
    cr_assert_eq(figures.to_cpu, 0);
    weir_loader_finish(loader);
    bool has = loader->shared.decode->engines[0].batches[1].decoder;
    weir_loader_close(&loader);
    return has;
}

/* Slow engines, with many frames in flight and several times as many still to come. */
static struct weir_loader_config config_for_slow_engines(const char *data)
{
    struct weir_loader_config config = config_for(data, "nvjpeg", 2);
    config.obs_history = 3;
    config.num_epochs = 40;
    config.prefetch = 40;
    return config;
}

Test(gpu_batches, a_second_decoder_comes_where_frames_wait)
{
    const char *data = make();
    struct weir_loader_config config = config_for_slow_engines(data);
    setenv("WEIR_FAKE_JPEG", "frame_ns=400000,decoders=2", 1);
    cr_assert(has_second(&config));
}

Test(gpu_batches, a_second_decoder_stays_away_where_none_can_wait)
{
    const char *data = make();
    struct weir_loader_config config = config_for(data, "nvjpeg", 7);
    setenv("WEIR_FAKE_JPEG", "decoders=1", 1);
    config.prefetch = 8; /* 48 frames in flight */
    config.num_epochs = 20;
    cr_assert_not(has_second(&config));
}

/* At the start, all slots' frames arrive simultaneously. Later, only as many arrive as the consumer takes. */
Test(gpu_batches, a_second_decoder_stays_away_at_the_beginning)
{
    const char *data = make();
    struct weir_loader_config config = config_for_slow_engines(data);
    setenv("WEIR_FAKE_JPEG", "frame_ns=400000,decoders=2", 1);
    config.num_epochs = 3;
    cr_assert_not(has_second(&config));
}

Test(gpu_batches, go_without_a_second_decoder_that_has_no_memory)
{
    const char *data = make();
    struct weir_loader_config config = config_for_slow_engines(data);
    setenv("WEIR_FAKE_JPEG", "frame_ns=400000,decoders=1", 1);
    cr_assert_not(has_second(&config));
}

/* nvJPEG allocates most of its memory for the first group. */
Test(gpu_batches, go_on_when_the_second_decoder_finds_no_memory_for_a_group)
{
    const char *data = make();
    struct weir_loader_config config = config_for_slow_engines(data);
    setenv("WEIR_FAKE_JPEG", "frame_ns=400000,decoders=2,working=1", 1);
    cr_assert_not(has_second(&config));
}

Test(gpu_batches, are_the_hosts_when_the_second_decoder_gives_its_group_back)
{
    const char *data = make();
    struct weir_loader_config config = config_for_slow_engines(data);
    setenv("WEIR_FAKE_JPEG", "frame_ns=400000,decoders=2,working=1", 1);
    upload_compare(&config);
}

/* Skipped samples move later rows up in the host's batches, while the planes of frames decoded on the GPU stay at their
 * original places. */
Test(gpu_batches, samples_left_out_beside_frames_of_both)
{
    const char *data = make();
    setenv("WEIR_FAKE_JPEG", "engines=1", 1);
    for (int t = 0; t < STEPS; t += 3)
        fixture_damage(data, t % EPISODES, t / 3 % 2, t, FIXTURE_NO_SOI);
    for (int i = 0; i < 12; i++) {
        struct weir_loader_config config = config_for(data, "hybrid", i % 3 * 3);
        config.deterministic = true; /* divides the frames between the engine and the workers */
        config.on_error = WEIR_ON_ERROR_SKIP;
        config.batch_size = 2 + i;
        config.obs_history = 1 + i % 3;
        config.no_shuffle = i & 1;
        config.crop = i % 4 == 3 ? "wrist=24x16+5+3" : NULL;
        upload_compare(&config);
    }
}

Test(gpu_batches, a_bad_frame_ends_the_run_where_the_hosts_ends)
{
    const char *data = make();
    fixture_damage(data, 1, 0, 4, FIXTURE_ZEROED);
    for (int i = 0; i < 4; i++) {
        char texts[2][sizeof((struct weir_err *)0)->text];
        int batches[2] = {0};
        for (int k = 0; k < 2; k++) {
            struct weir_loader_config config = config_for(data, k ? decoders[i % 2] : "turbo", i);
            struct weir_loader *loader = fixture_loader(&config);
            struct weir_batch *batch;
            struct weir_err err = WEIR_ERR_NONE;
            int rc;
            for (; (rc = weir_loader_next(loader, &batch, &err)) > 0; batches[k]++)
                weir_loader_release(loader, batch);
            cr_assert_eq(rc, -EBADMSG);
            memcpy(texts[k], err.text, sizeof texts[k]);
            weir_loader_close(&loader);
        }
        cr_assert_eq(batches[0], batches[1]);
        cr_assert_str_eq(texts[0], texts[1]);
    }
}

/* ---- failures ---- */

static int run_to_the_end(const struct weir_loader_config *config, struct weir_err *err)
{
    struct weir_loader *loader;
    struct weir_batch *batch;
    int rc = weir_loader_open(&loader, config, err);
    while (rc == 0 && (rc = weir_loader_next(loader, &batch, err)) > 0) {
        weir_loader_release(loader, batch);
        rc = 0;
    }
    weir_loader_close(&loader);
    return rc;
}

Test(gpu_batches, multiprocessors_alone_promise_no_repetition)
{
    const char *data = make();
    setenv("WEIR_FAKE_JPEG", "engines=0", 1);
    for (int i = 0; i < 2; i++) {
        struct weir_loader_config config = config_for(data, decoders[i], 2);
        struct weir_err err = WEIR_ERR_NONE;
        cr_assert_eq(run_to_the_end(&config, &err), 0, "%s", err.text);
        config.deterministic = true;
        cr_assert_eq(run_to_the_end(&config, &err), -EINVAL);
        cr_assert_not_null(strstr(err.text, "use --decoder turbo"), "%s", err.text);
    }
}

/* Slots also need GPU memory. Automatic prefetch must leave most of it free. */
Test(gpu_batches, automatic_prefetch_fits_a_small_gpu)
{
    const char *data = make();
    for (int i = 0; i < 3; i++) {
        struct weir_loader_config config = config_for(data, i < 2 ? decoders[i] : "turbo", 2);
        struct weir_err err = WEIR_ERR_NONE;
        config.num_epochs = 20;
        setenv("WEIR_FAKE_CUDA", "memory_bytes=4000000", 1);
        cr_assert_eq(run_to_the_end(&config, &err), 0, "%s: %s", config.decoder, err.text);
    }
}

Test(gpu_batches, an_engine_that_fails_ends_the_run)
{
    const char *data = make();
    static const char *const failures[] = {"fail=io:1", "fail=io:2", "working=0"};
    for (int i = 0; i < 6; i++) {
        pid_t child = fork(); /* in a new process, since groups are counted per process */
        cr_assert_geq(child, 0);
        if (child == 0) {
            use_fake("", failures[i / 2]);
            struct weir_loader_config config = config_for(data, decoders[i % 2], i);
            config.num_epochs = 20;
            struct weir_err err = WEIR_ERR_NONE;
            int rc = run_to_the_end(&config, &err);
            bool named = strstr(err.text, "in a decode batch of ") && strstr(err.text, "episode_");
            _exit(rc == (i / 2 == 2 ? -ENOMEM : -EIO) && named ? 0 : 1);
        }
        int status;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %x", failures[i / 2], (unsigned)status);
    }
}

Test(gpu_batches, stops_in_the_middle)
{
    const char *data = make();
    use_fake("", "frame_ns=3000000");
    for (int taken = 0; taken < 4; taken++) {
        struct weir_loader_config config = config_for(data, decoders[taken % 2], 3);
        struct weir_loader *loader = fixture_loader(&config);
        struct weir_batch *batch;
        for (int i = 0; i < taken; i++) {
            cr_assert_eq(weir_loader_next(loader, &batch, NULL), 1);
            weir_loader_release(loader, batch);
        }
        weir_loader_close(&loader);
    }
}

Test(gpu_batches, need_a_gpu)
{
    const char *data = make();
    for (int i = 0; i < 2; i++) {
        struct weir_loader_config config = config_for(data, decoders[i], 2);
        config.device = NULL;
        struct weir_err err = WEIR_ERR_NONE;
        struct weir_loader *loader;
        cr_assert_eq(weir_loader_open(&loader, &config, &err), -EINVAL);
        cr_assert(strstr(err.text, "--device cuda"), "%s", err.text);
    }
}
