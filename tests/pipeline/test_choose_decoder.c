/* The choice of --decoder auto, on a fake GPU. All episodes are considered, and no frame is tried twice. */
#include "pipeline/loader_priv.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/upload_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 48, HEIGHT = 32 };

static void begin(void)
{
    fixture_open();
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    setenv("WEIR_FAKE_CUDA", "", 1);
    setenv("WEIR_FAKE_JPEG", "", 1);
}

TestSuite(choose_decoder, .init = begin, .fini = fixture_close);

static struct weir_loader_config config_for(const char *data)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.device = "cuda";
    config.decoder = "auto";
    config.batch_size = 2;
    config.num_workers = 2;
    config.format = (struct weir_pixel_format){.dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW};
    return config;
}

static struct weir_decoder_choice choice_for(const struct weir_loader_config *config)
{
    struct weir_loader *loader = fixture_loader(config);
    struct weir_decoder_choice choice = loader->shared.setup.decoder;
    weir_loader_close(&loader);
    return choice;
}

static const char *with_one_raw_episode(int raw, int episodes)
{
    char command[2048];
    const char *data = fixture_synth("jpeg", "act-jpeg", episodes, 10, WIDTH, HEIGHT, "top,wrist");
    const char *other = fixture_synth("raw", "act", episodes, 10, WIDTH, HEIGHT, "top,wrist");
    snprintf(command, sizeof command, "cp '%s' '%s'", fixture_episode(other, "act", raw),
             fixture_episode(data, "act-jpeg", raw));
    cr_assert_eq(system(command), 0);
    return data;
}

Test(choose_decoder, a_first_episode_that_is_raw_does_not_hide_jpegs)
{
    struct weir_loader_config config = config_for(with_one_raw_episode(0, 4));
    struct weir_decoder_choice choice = choice_for(&config);
    cr_assert_not_null(strstr(choice.why, " of these frames per second, "), "%s", choice.why);
    cr_assert(choice.cpu_rate > 0 && choice.gpu_rate > 0, "%g %g", choice.cpu_rate, choice.gpu_rate);
    config.image_width = WIDTH / 2;
    config.image_height = HEIGHT / 2;
    choice = choice_for(&config);
    cr_assert_str_eq(choice.decoder, "turbo");
    cr_assert_not_null(strstr(choice.why, "half their size"), "%s", choice.why);
}

Test(choose_decoder, a_first_episode_that_is_raw_leaves_batches_as_they_are)
{
    static const char *const decoders[] = {"nvjpeg", "hybrid", "auto"};
    struct weir_loader_config config = config_for(with_one_raw_episode(0, 4));
    for (int i = 0; i < 3; i++) {
        config.decoder = decoders[i];
        cr_assert_gt(upload_compare(&config), 0);
    }
}

Test(choose_decoder, raw_frames_of_later_episodes_are_not_tried)
{
    struct weir_loader_config config = config_for(with_one_raw_episode(1, 2));
    struct weir_decoder_choice choice = choice_for(&config);
    cr_assert_not_null(strstr(choice.why, " of these frames per second, "), "%s", choice.why);
}

Test(choose_decoder, nothing_but_raw_frames)
{
    struct weir_loader_config config = config_for(fixture_synth("raw", "act", 2, 3, WIDTH, HEIGHT, NULL));
    struct weir_decoder_choice choice = choice_for(&config);
    cr_assert_str_eq(choice.decoder, "turbo");
    cr_assert_str_eq(choice.why, "the dataset has no JPEGs");
}

Test(choose_decoder, flaws_that_fail_are_seen_by_the_cpu_only)
{
    struct weir_loader_config config = config_for(fixture_synth("jpeg", "act-jpeg", 2, 3, WIDTH, HEIGHT, NULL));
    config.on_warning = WEIR_ON_WARNING_FAIL;
    struct weir_decoder_choice choice = choice_for(&config);
    cr_assert_str_eq(choice.decoder, "turbo");
    cr_assert_str_eq(choice.why, "only the CPU reports flaws of frames (--on-warning fail)");
}

static void refuses_all(const char *name, int episodes, int steps, const char *cameras, int n_cameras, int looked_at)
{
    char part[64];
    const char *data = fixture_synth(name, "act-jpeg", episodes, steps, WIDTH, HEIGHT, cameras);
    for (int e = 0; e < episodes; e++)
        for (int c = 0; c < n_cameras; c++)
            for (int t = 0; t < steps; t++)
                fixture_damage(data, e, c, t, FIXTURE_ZEROED);
    struct weir_loader_config config = config_for(data);
    struct weir_decoder_choice choice = choice_for(&config);
    snprintf(part, sizeof part, "the GPU cannot decode %d of %d sampled frames (", looked_at, looked_at);
    cr_assert_str_eq(choice.decoder, "turbo");
    cr_assert_eq(strncmp(choice.why, part, strlen(part)), 0, "not '%s': %s", part, choice.why);
}

Test(choose_decoder, no_frame_is_looked_at_twice)
{
    refuses_all("six", 2, 3, "top", 1, 6);
    refuses_all("twenty", 2, 5, "top,wrist", 2, 20);
    refuses_all("more", 3, 11, "top,wrist", 2, 64);
}

/* With so few frames, every one is sampled, so the only valid one is found. */
Test(choose_decoder, all_of_few_frames_are_looked_at)
{
    const char *data = fixture_synth("few", "act-jpeg", 2, 5, WIDTH, HEIGHT, "top");
    for (int i = 0; i < 10; i++)
        if (i != 7)
            fixture_damage(data, i / 5, 0, i % 5, FIXTURE_ZEROED);
    struct weir_loader_config config = config_for(data);
    struct weir_decoder_choice choice = choice_for(&config);
    cr_assert_not_null(strstr(choice.why, "the GPU cannot decode 9 of 10 sampled frames "), "%s", choice.why);
}
