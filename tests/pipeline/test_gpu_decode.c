/* Everything except nvJPEG between a frame's bytes and the GPU's planes, on the fake GPU: parsing headers, groups and
 * their refused frames, errors, the PSNR check end to end, and messages without a GPU. */
#include "decoders/gpu/psnr_check.h"
#include "tests/fixtures/gpu_jpeg_fixture.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/jpeg_planes.h"
#include "weir/decoder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static struct weir_err err;
static struct gpujx x;
static struct weir_gpu_jpeg *decoder;
static struct gpujx_image images[MOST];
static uint8_t *jpegs[MOST];
static enum weir_jpeg_refusal results[MOST];

static void fine(int rc)
{
    cr_assert_eq(rc, 0, "%d: %s", rc, err.text);
}

static void use_module(const char *settings)
{
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    setenv("WEIR_FAKE_JPEG", settings, 1);
}

static void start(const char *settings, enum weir_gpu_jpeg_engine engine)
{
    use_module(settings);
    fine(gpujx_open(&x, &err));
    fine(weir_gpu_jpeg_open(&decoder, 0, engine, MOST, &err));
}

static void take(int i, enum h5fx_jpeg kind, int width, int height, enum weir_gpu_jpeg_engine engine)
{
    size_t length;
    jpegs[i] = h5fx_jpeg(kind, width, height, i, &length);
    fine(gpujx_take(&x, &images[i], jpegs[i], length, engine, &err));
}

static void finish(int n)
{
    weir_gpu_jpeg_close(&decoder);
    cr_assert_null(decoder);
    for (int i = 0; i < n; i++) {
        gpujx_release(&x, &images[i]);
        free(jpegs[i]);
    }
    gpujx_close(&x);
}

/* The planes must equal libjpeg's. */
static void check_planes(const struct gpujx_image *image, const char *about)
{
    struct jpeg_planes want;
    cr_assert_eq(jpeg_planes_read(&want, image->bytes, image->length), 0);
    cr_assert_eq(want.kind, (int)gpujx_kind(&image->header));
    for (int c = 0; c < weir_gpu_jpeg_planes(&image->header); c++) {
        cr_assert(want.plane_width[c] == image->width[c] && want.plane_height[c] == image->height[c]);
        cr_assert_eq(memcmp(want.plane[c], image->plane[c], (size_t)image->width[c] * (size_t)image->height[c]), 0,
                     "%s, plane %d", about, c);
    }
    jpeg_planes_free(&want);
}

Test(gpu_decode, a_group_of_all_kinds_and_sizes)
{
    static const enum h5fx_jpeg kinds[] = {H5FX_JPEG_420, H5FX_JPEG_444,  H5FX_JPEG_422,
                                           H5FX_JPEG_440, H5FX_JPEG_GRAY, H5FX_JPEG_RESTART};
    static const int sizes[][2] = {{1, 1}, {16, 16}, {17, 15}, {101, 67}, {160, 120}};
    start("", WEIR_GPU_JPEG_HARDWARE);
    int n = 0;
    for (int k = 0; k < 6; k++)
        for (int s = 0; s < 5; s++)
            take(n++, kinds[k], sizes[s][0], sizes[s][1], WEIR_GPU_JPEG_HARDWARE);
    fine(gpujx_decode(&x, decoder, images, n, results, &err));
    for (int i = 0; i < n; i++) {
        cr_assert_eq(images[i].refusal, WEIR_JPEG_TAKEN);
        cr_assert_eq(results[i], WEIR_JPEG_TAKEN);
        check_planes(&images[i], "group");
    }
    struct weir_gpu_jpeg_counts counts;
    weir_gpu_jpeg_counts(decoder, &counts);
    cr_assert(counts.frames == (uint64_t)n && counts.batches == 1 && counts.refused == 0);
    finish(n);
}

/* The engine refuses two of 32 frames. The others must be decoded correctly, in few groups. */
Test(gpu_decode, frames_to_blame_stand_alone)
{
    start("refuse_width=48", WEIR_GPU_JPEG_HARDWARE);
    for (int i = 0; i < 32; i++)
        take(i, H5FX_JPEG_420, i == 5 || i == 30 ? 48 : 64, 40, WEIR_GPU_JPEG_HARDWARE);
    fine(gpujx_decode(&x, decoder, images, 32, results, &err));
    for (int i = 0; i < 32; i++) {
        bool blamed = i == 5 || i == 30;
        cr_assert_eq(results[i], blamed ? WEIR_JPEG_ENGINE_REFUSED : WEIR_JPEG_TAKEN, "frame %d", i);
        if (!blamed)
            check_planes(&images[i], "next to a refused frame");
    }
    struct weir_gpu_jpeg_counts counts;
    weir_gpu_jpeg_counts(decoder, &counts);
    cr_assert_eq(counts.frames, 30);
    cr_assert_eq(counts.refused, 2);
    cr_assert_leq(counts.batches, 8);
    fine(gpujx_decode(&x, decoder, images, 4, results, &err)); /* the decoder still works */
    cr_assert_eq(results[3], WEIR_JPEG_TAKEN);
    finish(32);
}

Test(gpu_decode, all_of_a_group_may_be_refused)
{
    start("", WEIR_GPU_JPEG_HARDWARE);
    static const enum h5fx_jpeg kinds[] = {H5FX_JPEG_PROGRESSIVE, H5FX_JPEG_CMYK, H5FX_JPEG_411, H5FX_JPEG_ARITHMETIC};
    for (int i = 0; i < 4; i++) {
        take(i, kinds[i], 33, 21, WEIR_GPU_JPEG_HARDWARE);
        cr_assert_neq(images[i].refusal, WEIR_JPEG_TAKEN);
    }
    fine(gpujx_decode(&x, decoder, images, 4, results, &err));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(results[i], WEIR_JPEG_ENGINE_REFUSED);
    cr_assert_eq(err.code, 0);
    fine(gpujx_decode(&x, decoder, images, 0, results, &err));
    finish(4);
}

Test(gpu_decode, multiprocessors_take_progressive_ones)
{
    start("engines=0", WEIR_GPU_JPEG_SM);
    take(0, H5FX_JPEG_420, 64, 40, WEIR_GPU_JPEG_SM);
    take(1, H5FX_JPEG_PROGRESSIVE, 64, 40, WEIR_GPU_JPEG_SM);
    cr_assert(images[1].frame.progressive && !images[0].frame.progressive);
    fine(gpujx_decode(&x, decoder, images, 2, results, &err));
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(results[i], WEIR_JPEG_TAKEN);
        check_planes(&images[i], "sm");
    }
    finish(2);
}

/* Two decoders alternate. Each group is submitted before the previous one has finished. */
Test(gpu_decode, two_decoders_in_turns)
{
    enum { ROUNDS = 10, GROUP = 8 };
    start("frame_ns=300000", WEIR_GPU_JPEG_HARDWARE);
    struct weir_gpu_jpeg *decoders[2] = {decoder, NULL};
    void *streams[2] = {x.stream, NULL};
    fine(weir_gpu_jpeg_open(&decoders[1], 0, WEIR_GPU_JPEG_HARDWARE, GROUP, &err));
    fine(x.ops->stream_new(x.gpu, false, &streams[1], &err));
    struct weir_gpu_jpeg_frame frames[2 * GROUP];
    for (int i = 0; i < 2 * GROUP; i++) {
        take(i, H5FX_JPEG_420, 40, 30, WEIR_GPU_JPEG_HARDWARE);
        frames[i] = images[i].frame;
    }
    for (int round = 0; round < ROUNDS; round++)
        fine(weir_gpu_jpeg_decode(decoders[round % 2], frames + round % 2 * GROUP, GROUP, streams[round % 2], results,
                                  &err));
    weir_gpu_jpeg_close(&decoders[1]);
    x.ops->stream_free(x.gpu, streams[1]);
    struct weir_gpu_jpeg_counts counts;
    weir_gpu_jpeg_counts(decoder, &counts);
    cr_assert_eq(counts.batches, ROUNDS / 2);
    fine(gpujx_decode(&x, decoder, images, GROUP, results, &err));
    for (int i = 0; i < GROUP; i++)
        check_planes(&images[i], "in turns");
    finish(2 * GROUP);
}

/* ---- the PSNR check, end to end ---- */

/* Decodes and prepares image i, and returns its PSNR compared with the CPU's image. */
static double distance_db(int i)
{
    uint8_t *rgb;
    int width, height;
    fine(gpujx_decode(&x, decoder, &images[i], 1, results, &err));
    fine(gpujx_rgb(&x, &images[i], &rgb, &err));
    uint8_t *want = h5fx_pixels(images[i].bytes, images[i].length, false, &width, &height);
    double db = weir_psnr_db(rgb, want, (size_t)width * (size_t)height * 3);
    free(want);
    free(rgb);
    return db;
}

Test(gpu_decode, a_right_decoder_passes_the_gate_bit_for_bit)
{
    static const enum h5fx_jpeg kinds[] = {H5FX_JPEG_420, H5FX_JPEG_444, H5FX_JPEG_422, H5FX_JPEG_440, H5FX_JPEG_GRAY};
    start("", WEIR_GPU_JPEG_HARDWARE);
    for (int i = 0; i < 5; i++) {
        take(i, kinds[i], 101, 67, WEIR_GPU_JPEG_HARDWARE);
        cr_assert_eq(distance_db(i), WEIR_PSNR_MAX_DB, "kind %d", i);
    }
    finish(5);
}

Test(gpu_decode, a_wrong_decoder_is_caught_at_the_first_frame_of_a_kind)
{
    start("noise=3", WEIR_GPU_JPEG_HARDWARE);
    struct weir_psnr_check *check;
    fine(weir_psnr_check_open(&check, &err));
    for (int i = 0; i < 4; i++) {
        take(i, i % 2 ? H5FX_JPEG_420 : H5FX_JPEG_444, 64, 48, WEIR_GPU_JPEG_HARDWARE);
        uint64_t kind = images[i].header.kind;
        cr_assert_eq(weir_psnr_check_refusal(check, WEIR_GPU_JPEG_HARDWARE, kind),
                     i < 2 ? WEIR_JPEG_TAKEN : WEIR_JPEG_PSNR_REFUSED);
        enum weir_psnr_advice advice = weir_psnr_check_advise(check, WEIR_GPU_JPEG_HARDWARE, kind);
        cr_assert_eq(advice, i < 2 ? WEIR_PSNR_COMPARE : WEIR_PSNR_REFUSE);
        if (advice == WEIR_PSNR_COMPARE)
            cr_assert_not(weir_psnr_check_report(check, WEIR_GPU_JPEG_HARDWARE, kind, distance_db(i)));
    }
    struct weir_psnr_check_counts counts;
    weir_psnr_check_counts(check, &counts);
    cr_assert(counts.kinds_refused == 2 && counts.below == 2 && counts.refused == 2);
    cr_assert(counts.least_db > 30 && counts.least_db < WEIR_PSNR_LEAST_DB, "%g", counts.least_db);
    weir_psnr_check_close(&check);
    finish(4);
}

/* Engines do not report damage inside the scan: a frame that should have been refused decodes to grey, with success. */
Test(gpu_decode, damage_is_silent_which_is_why_frames_are_looked_at)
{
    start("", WEIR_GPU_JPEG_HARDWARE);
    size_t length;
    jpegs[0] = h5fx_jpeg(H5FX_JPEG_420, 160, 120, 1, &length);
    fine(gpujx_take(&x, &images[0], jpegs[0], length / 2, WEIR_GPU_JPEG_HARDWARE, &err));
    cr_assert_eq(images[0].refusal, WEIR_JPEG_TRUNCATED);
    fine(gpujx_decode(&x, decoder, images, 1, results, &err));
    cr_assert_eq(results[0], WEIR_JPEG_TAKEN);
    finish(1);
}

/* ---- errors ---- */

static void check_failure(const char *settings, int code, const char *text)
{
    start(settings, WEIR_GPU_JPEG_HARDWARE);
    take(0, H5FX_JPEG_420, 64, 40, WEIR_GPU_JPEG_HARDWARE);
    fine(gpujx_decode(&x, decoder, images, 1, results, &err));
    cr_assert_eq(gpujx_decode(&x, decoder, images, 1, results, &err), code);
    cr_assert_eq(err.code, code);
    cr_assert_not_null(strstr(err.text, text), "%s", err.text);
    finish(1);
}

Test(gpu_decode, a_fault_is_an_error)
{
    check_failure("fail=io:2", -EIO, "GPU 0");
}

Test(gpu_decode, no_memory_is_an_error)
{
    check_failure("fail=memory:2", -ENOMEM, "no memory");
}

Test(gpu_decode, a_lost_gpu_is_an_error)
{
    setenv("WEIR_FAKE_CUDA", "fail=lost:3", 1);
    start("", WEIR_GPU_JPEG_HARDWARE);
    for (int i = 0; i < 8; i++)
        take(i, H5FX_JPEG_420, 64, 40, WEIR_GPU_JPEG_HARDWARE);
    cr_assert_eq(gpujx_decode(&x, decoder, images, 8, results, &err), -EIO);
    cr_assert_not_null(strstr(err.text, "lost"), "%s", err.text);
    finish(8);
}

Test(gpu_decode, a_gpu_without_engines)
{
    use_module("engines=0");
    int engines = -1;
    cr_assert_eq(weir_gpu_jpeg_check(0, WEIR_GPU_JPEG_HARDWARE, &engines, &err), -ENODEV);
    cr_assert_eq(engines, 0);
    cr_assert_not_null(strstr(err.text, "no JPEG engines"), "%s", err.text);
    fine(weir_gpu_jpeg_check(0, WEIR_GPU_JPEG_SM, NULL, NULL));
    cr_assert_eq(weir_gpu_jpeg_open(&decoder, 0, WEIR_GPU_JPEG_HARDWARE, 8, NULL), -ENODEV);
    cr_assert_null(decoder);
}

Test(gpu_decode, engines_are_counted)
{
    use_module("engines=5");
    int engines;
    char text[128];
    fine(weir_gpu_jpeg_check(0, WEIR_GPU_JPEG_HARDWARE, &engines, &err));
    cr_assert_eq(engines, 5);
    weir_gpu_jpeg_library(text, sizeof text);
    cr_assert_not_null(strstr(text, "libjpeg"), "%s", text);
    fine(weir_decoder_ready("nvjpeg", 0, &err));
    fine(weir_decoder_ready("hybrid", 0, &err));
    cr_assert_eq(weir_decoder_ready("nvjpeg", 1, &err), -ENODEV); /* only GPU 0 exists */
}

Test(gpu_decode, without_a_module)
{
    setenv("WEIR_CUDA_MODULE", "/nowhere/libweir_cuda.so", 1);
    cr_assert_eq(weir_decoder_ready("nvjpeg", 0, &err), -ENODEV);
    cr_assert_not_null(strstr(err.text, "/nowhere/libweir_cuda.so"), "%s", err.text);
    fine(weir_decoder_ready("turbo", 0, NULL));
    fine(weir_decoder_ready("png", 0, NULL));
    char text[256];
    weir_gpu_jpeg_library(text, sizeof text);
    cr_assert_not_null(strstr(text, "/nowhere"), "%s", text);
}

/* Frames that the GPU does not accept go to a CPU decoder of the same name, which gives the same result as "turbo". */
Test(gpu_decode, the_cpu_beside_a_gpu)
{
    static const char *const names[] = {"nvjpeg", "hybrid"};
    struct weir_pixel_format format = {0};
    for (int i = 0; i < 2; i++) {
        struct weir_decoder *cpu;
        uint8_t image[33 * 21 * 3];
        size_t length;
        int width, height;
        uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_PROGRESSIVE, 33, 21, 1, &length);
        uint8_t *want = h5fx_pixels(bytes, length, false, &width, &height);
        fine(weir_decoder_open(&cpu, names[i], &format, 33, &err));
        struct weir_frame frame = {WEIR_FRAME_IMAGE, bytes, length, width, height, NULL};
        cr_assert_eq(weir_decode(cpu, &frame, image), 0, "%s", weir_decoder_reason(cpu));
        cr_assert_eq(memcmp(image, want, sizeof image), 0);
        weir_decoder_close(&cpu);
        free(want);
        free(bytes);
    }
}

/* Checking a decoder's name does not open a GPU, so help and checks work everywhere. */
Test(gpu_decode, names_that_need_a_gpu)
{
    setenv("WEIR_CUDA_MODULE", "/nowhere/libweir_cuda.so", 1);
    fine(weir_decoder_check("nvjpeg", &err));
    fine(weir_decoder_check_device("nvjpeg", true, &err));
    fine(weir_decoder_check_device("turbo", false, &err));
    cr_assert(weir_decoder_on_gpu("hybrid") && !weir_decoder_on_gpu("turbo") && !weir_decoder_on_gpu("null"));
    cr_assert_eq(weir_decoder_check_device("hybrid", false, &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, "--device cuda"), "%s", err.text);
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_decoder_check_device("hibrid", true, &err), -EINVAL);
    cr_assert_not_null(
        strstr(err.text, "--decoder: unknown JPEG decoder \"hibrid\"; choose one of auto, turbo, nvjpeg"), "%s",
        err.text);
}
