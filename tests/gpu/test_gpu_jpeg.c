/* JPEGs on a real or fake GPU: planes compared with libjpeg's, refusals, and memory use over many groups.
 *
 *     build/release/tests/test_gpu_jpeg [GROUPS]
 *
 * GROUPS (default 10,000) is the number of groups decoded while memory use is monitored. Real images are read from
 * $WEIR_DATA/jpeg. Exits with status 77 without a GPU or nvJPEG. */
#include "base/resources.h"
#include "decoders/gpu/psnr_check.h"
#include "tests/fixtures/gpu_jpeg_fixture.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/jpeg_planes.h"
#include "tests/gpu/gpu_fixture.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, GROUP_MAX = 64, FILE_BYTES_MAX = 1 << 24, SM_LEVELS_MAX = 3, SMALL_SIDE = 64 };
/* Sanitizers delay the reuse of freed memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HOST_GROWTH_MAX_BYTES = 512 << 20 };
#else
enum { HOST_GROWTH_MAX_BYTES = 32 << 20 };
#endif
enum { GPU_GROWTH_MAX_BYTES = 64 << 20 };

static struct gpujx x;
static struct weir_err err;

/* ---- planes ---- */

/* Returns the largest difference from libjpeg's samples, or -1 if they cannot be compared. */
static int planes_differ(const struct gpujx_image *image)
{
    struct jpeg_planes want;
    int most = 0;
    if (jpeg_planes_read(&want, image->bytes, image->length) < 0 || want.kind != (int)gpujx_kind(&image->header))
        return -1;
    for (int c = 0; c < weir_gpu_jpeg_planes(&image->header); c++)
        for (size_t i = 0; i < (size_t)image->width[c] * (size_t)image->height[c]; i++) {
            int difference = abs(want.plane[c][i] - image->plane[c][i]);
            most = difference > most ? difference : most;
        }
    jpeg_planes_free(&want);
    return most;
}

/* Converts the planes to RGB on the GPU. Returns the PSNR compared with the CPU's image, or -1 on failure. */
static double distance_db(const struct gpujx_image *image)
{
    uint8_t *rgb = NULL;
    int width, height;
    uint8_t *want = h5fx_pixels(image->bytes, image->length, false, &width, &height);
    double db = -1;
    if (want && gpujx_rgb(&x, image, &rgb, &err) == 0)
        db = weir_psnr_db(rgb, want, (size_t)width * (size_t)height * 3);
    free(rgb);
    free(want);
    return db;
}

struct tally {
    int frames, refused, most;
    double least_db;
};

static void check_image(const struct gpujx_image *image, enum weir_jpeg_refusal result,
                        enum weir_gpu_jpeg_engine engine, const char *about, struct tally *tally)
{
    int width = image->header.width, height = image->header.height;
    if (result != WEIR_JPEG_TAKEN) {
        tally->refused++;
        if (width >= SMALL_SIDE && height >= SMALL_SIDE)
            gpujx_fail(&err, "%s, %dx%d: refused by the %s engine", about, width, height,
                       weir_gpu_jpeg_engine_name(engine));
        else
            printf("note: %s, %dx%d: refused by the %s engine\n", about, width, height,
                   weir_gpu_jpeg_engine_name(engine));
        return;
    }
    int most = planes_differ(image), allowed = engine == WEIR_GPU_JPEG_SM ? SM_LEVELS_MAX : 0;
    if (most < 0 || most > allowed)
        gpujx_fail(&err, "%s, %dx%d, sampling %d: planes of the %s engine differ by %d levels", about, width, height,
                   (int)image->header.sampling, weir_gpu_jpeg_engine_name(engine), most);
    double db = distance_db(image);
    if (engine == WEIR_GPU_JPEG_HARDWARE ? db < WEIR_PSNR_MAX_DB : db < WEIR_PSNR_LEAST_DB)
        gpujx_fail(&err, "%s, %dx%d: the image's PSNR is %.2f dB compared with the CPU's", about, width, height, db);
    tally->frames++;
    tally->most = most > tally->most ? most : tally->most;
    tally->least_db = db < tally->least_db ? db : tally->least_db;
}

/* Decodes a group and checks every image in it. */
static void check_group(struct weir_gpu_jpeg *decoder, struct gpujx_image *images, int n,
                        enum weir_gpu_jpeg_engine engine, const char *about, struct tally *tally)
{
    enum weir_jpeg_refusal results[GROUP_MAX];
    if (gpujx_decode(&x, decoder, images, n, results, &err) < 0) {
        gpujx_fail(&err, "%s: decoding a group of %d", about, n);
        return;
    }
    for (int i = 0; i < n; i++)
        check_image(&images[i], results[i], engine, about, tally);
}

static void print_tally(const struct tally *tally, enum weir_gpu_jpeg_engine engine, const char *about)
{
    printf("%s, %s: %d frames, planes within %d levels, PSNR of images at least %.2f dB, %d refused\n", about,
           weir_gpu_jpeg_engine_name(engine), tally->frames, tally->most, tally->least_db, tally->refused);
}

static const enum h5fx_jpeg made[] = {H5FX_JPEG_420,  H5FX_JPEG_444,     H5FX_JPEG_422,        H5FX_JPEG_440,
                                      H5FX_JPEG_GRAY, H5FX_JPEG_RESTART, H5FX_JPEG_PROGRESSIVE};
static const int sizes[][2] = {{1, 1},   {8, 8},    {16, 16},   {17, 15},  {33, 65},
                               {64, 64}, {101, 67}, {640, 480}, {641, 479}};
enum { MADE = sizeof made / sizeof made[0], SIZES = sizeof sizes / sizeof sizes[0] };

/* Decodes all kinds of JPEGs of one size as a group, for each size. */
static void check_made(struct weir_gpu_jpeg *decoder, enum weir_gpu_jpeg_engine engine)
{
    struct tally tally = {.least_db = WEIR_PSNR_MAX_DB};
    for (int s = 0; s < SIZES; s++) {
        struct gpujx_image images[MADE];
        uint8_t *bytes[MADE];
        int n = 0;
        for (int k = 0; k < MADE; k++) {
            size_t length;
            if (made[k] == H5FX_JPEG_PROGRESSIVE && engine == WEIR_GPU_JPEG_HARDWARE)
                continue;
            bytes[n] = h5fx_jpeg(made[k], sizes[s][0], sizes[s][1], k, &length);
            if (gpujx_take(&x, &images[n], bytes[n], length, engine, &err) < 0 || images[n].refusal != WEIR_JPEG_TAKEN)
                gpujx_fail(&err, "a synthetic JPEG of kind %d is refused: %s", k,
                           weir_jpeg_refusal_name(images[n].refusal));
            n++;
        }
        check_group(decoder, images, n, engine, "made", &tally);
        for (int i = 0; i < n; i++) {
            gpujx_release(&x, &images[i]);
            free(bytes[i]);
        }
    }
    print_tally(&tally, engine, "synthetic JPEGs");
}

/* Doubles each frame's length with fill bytes before its last marker. weir_gpu_jpeg_look would leave such frames to the
 * CPU, so this tests that the decoder itself enlarges its buffers for longer frames. */
static void check_filled(struct weir_gpu_jpeg *decoder, enum weir_gpu_jpeg_engine engine)
{
    enum { N = 5 };
    struct tally tally = {.least_db = WEIR_PSNR_MAX_DB};
    struct gpujx_image images[N];
    uint8_t *plain[N], *filled[N];
    for (int i = 0; i < N; i++) {
        size_t length;
        plain[i] = h5fx_jpeg(made[i], 640, 480, i, &length);
        if (gpujx_take(&x, &images[i], plain[i], length, engine, &err) < 0 || images[i].refusal != WEIR_JPEG_TAKEN)
            gpujx_fail(&err, "a synthetic JPEG of kind %d is refused: %s", i,
                       weir_jpeg_refusal_name(images[i].refusal));
        filled[i] = malloc(2 * length);
        memcpy(filled[i], plain[i], length - 2);
        memset(filled[i] + length - 2, 0xff, length);
        memcpy(filled[i] + 2 * length - 2, plain[i] + length - 2, 2);
        images[i].frame.bytes = filled[i];
        images[i].frame.length = 2 * length;
    }
    check_group(decoder, images, N, engine, "filled", &tally);
    for (int i = 0; i < N; i++) {
        gpujx_release(&x, &images[i]);
        free(plain[i]);
        free(filled[i]);
    }
    print_tally(&tally, engine, "filled JPEGs");
}

static uint8_t *file_bytes(const char *path, size_t *length)
{
    FILE *file = fopen(path, "r");
    uint8_t *bytes = malloc(FILE_BYTES_MAX);
    *length = file ? fread(bytes, 1, FILE_BYTES_MAX, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static void check_photos(struct weir_gpu_jpeg *decoder, enum weir_gpu_jpeg_engine engine)
{
    struct tally tally = {.least_db = WEIR_PSNR_MAX_DB};
    char pattern[4096];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "%s/jpeg/*/*.jpg", getenv("WEIR_DATA") ? getenv("WEIR_DATA") : "");
    if (glob(pattern, 0, NULL, &found) != 0) {
        printf("skipped: no JPEGs match %s\n", pattern);
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct gpujx_image image;
        size_t length;
        uint8_t *bytes = file_bytes(found.gl_pathv[i], &length);
        if (gpujx_take(&x, &image, bytes, length, engine, &err) < 0)
            gpujx_fail(&err, "%s", found.gl_pathv[i]);
        else if (image.refusal != WEIR_JPEG_TAKEN)
            printf("note: %s: %s\n", found.gl_pathv[i], weir_jpeg_refusal_name(image.refusal));
        else
            check_group(decoder, &image, 1, engine, found.gl_pathv[i], &tally);
        gpujx_release(&x, &image);
        free(bytes);
    }
    globfree(&found);
    print_tally(&tally, engine, "photos");
}

/* ---- refusals ---- */

/* Decodes frames that callers should never pass to the engine, among valid frames. The valid ones must still be
 * decoded. */
static void check_refusals(struct weir_gpu_jpeg *decoder, enum weir_gpu_jpeg_engine engine)
{
    static const enum h5fx_jpeg bad[] = {H5FX_JPEG_CMYK, H5FX_JPEG_ARITHMETIC, H5FX_JPEG_420};
    enum { N = 16, AT = 5 };
    struct tally tally = {.least_db = WEIR_PSNR_MAX_DB};
    /* Skips CMYK on the multiprocessors, which may accept it and would need a fourth plane. */
    for (size_t b = engine == WEIR_GPU_JPEG_SM; b < sizeof bad / sizeof bad[0]; b++) {
        struct gpujx_image images[N];
        enum weir_jpeg_refusal results[N];
        uint8_t *bytes[N];
        for (int i = 0; i < N; i++) {
            size_t length;
            bytes[i] = h5fx_jpeg(i == AT ? bad[b] : H5FX_JPEG_420, 320, 240, i, &length);
            if (gpujx_take(&x, &images[i], bytes[i], length, engine, &err) < 0)
                gpujx_fail(&err, "no memory for a frame");
        }
        if (bad[b] == H5FX_JPEG_420)
            memset(bytes[AT], 0, 64); /* destroys the header */
        if (gpujx_decode(&x, decoder, images, N, results, &err) < 0)
            gpujx_fail(&err, "decoding a group with a bad frame");
        else if (results[AT] != WEIR_JPEG_ENGINE_REFUSED)
            gpujx_fail(&err, "the %s engine accepts bad frame %zu", weir_gpu_jpeg_engine_name(engine), b);
        else
            for (int i = 0; i < N; i++)
                if (i != AT)
                    check_image(&images[i], results[i], engine, "next to a bad frame", &tally);
        for (int i = 0; i < N; i++) {
            gpujx_release(&x, &images[i]);
            free(bytes[i]);
        }
    }
    print_tally(&tally, engine, "next to bad frames");
}

/* ---- single frames and groups ---- */

static size_t plane_bytes(const struct gpujx_image *image, int c)
{
    return (size_t)image->width[c] * (size_t)image->height[c];
}

/* Decodes frames as a group and alone. The JPEG engines must produce the same bits; for the multiprocessors, the number
 * of differences is only printed. */
static void check_company(struct weir_gpu_jpeg *decoder, enum weir_gpu_jpeg_engine engine)
{
    enum { N = 64 };
    struct gpujx_image images[N];
    enum weir_jpeg_refusal results[N];
    uint8_t *bytes[N], *planes[N];
    int differ = 0;
    for (int i = 0; i < N; i++) {
        size_t length;
        bytes[i] = h5fx_jpeg(H5FX_JPEG_420, 320, 240, i, &length);
        if (gpujx_take(&x, &images[i], bytes[i], length, engine, &err) < 0)
            gpujx_fail(&err, "no memory for a frame");
        planes[i] = malloc(plane_bytes(&images[i], 0));
    }
    if (gpujx_decode(&x, decoder, images, N, results, &err) < 0)
        gpujx_fail(&err, "a group");
    for (int i = 0; i < N; i++)
        memcpy(planes[i], images[i].plane[0], plane_bytes(&images[i], 0));
    for (int i = 0; i < N; i++) {
        if (gpujx_decode(&x, decoder, &images[i], 1, results, &err) < 0)
            gpujx_fail(&err, "decoding a group of one");
        differ += memcmp(planes[i], images[i].plane[0], plane_bytes(&images[i], 0)) != 0;
    }
    printf("decoded alone and in a group of %d, %s: %d frames differ\n", N, weir_gpu_jpeg_engine_name(engine), differ);
    if (engine == WEIR_GPU_JPEG_HARDWARE && differ)
        gpujx_fail(&err, "the JPEG engines' bits depend on the group");
    for (int i = 0; i < N; i++) {
        gpujx_release(&x, &images[i]);
        free(bytes[i]);
        free(planes[i]);
    }
}

/* ---- memory use ---- */

static uint64_t free_bytes(void)
{
    uint64_t unused = 0, total = 0;
    if (x.ops->memory(x.gpu, &unused, &total, &err) < 0)
        gpujx_fail(&err, "reading the GPU's memory size");
    return unused;
}

static void report_growth(const char *what, int64_t growth, int64_t allowed)
{
    printf("  %s: %+.1f MB\n", what, (double)growth / 1e6);
    if (growth > allowed)
        gpujx_fail(&err, "%s grew by %.1f MB", what, (double)growth / 1e6);
}

/* Decodes groups of all sizes with two alternating decoders, like the loader. Every 50th group contains a bad frame. */
static void check_memory(enum weir_gpu_jpeg_engine engine, int groups)
{
    enum { N = 32 };
    struct gpujx_image images[N];
    uint8_t *bytes[N];
    struct weir_gpu_jpeg *decoders[2] = {NULL, NULL};
    struct weir_gpu_jpeg_frame frames[N];
    enum weir_jpeg_refusal results[N];
    int rc = 0, warm = groups / 10 + 1;
    uint64_t gpu_before = 0, host_before = 0;
    for (int i = 0; i < N; i++) {
        size_t length;
        bytes[i] =
            h5fx_jpeg(i == N - 1 ? H5FX_JPEG_CMYK : H5FX_JPEG_420, 160 + 16 * (i % 5), 120 + 8 * (i % 7), i, &length);
        rc = rc < 0 ? rc : gpujx_take(&x, &images[i], bytes[i], length, engine, &err);
        frames[i] = images[i].frame;
    }
    memset(bytes[N - 1], 0, 64); /* destroys the header */
    for (int d = 0; d < 2; d++)
        rc = rc < 0 ? rc : weir_gpu_jpeg_open(&decoders[d], 0, engine, N, &err);
    for (int g = 0; g < groups && rc == 0; g++) {
        if (g == warm) {
            gpu_before = free_bytes();
            host_before = weir_peak_rss_bytes();
        }
        int n = g % 50 == 49 ? N : 1 + g * 7 % (N - 1);
        rc = weir_gpu_jpeg_decode(decoders[g % 2], frames, n, x.stream, results, &err);
    }
    rc = rc < 0 ? rc : x.ops->record(x.gpu, x.event, x.stream, &err);
    rc = rc < 0 ? rc : x.ops->wait(x.gpu, x.event, &err);
    if (rc < 0)
        gpujx_fail(&err, "%d groups", groups);
    printf("%d groups, %s:\n", groups, weir_gpu_jpeg_engine_name(engine));
    report_growth("GPU memory", (int64_t)gpu_before - (int64_t)free_bytes(), GPU_GROWTH_MAX_BYTES);
    report_growth("host memory", (int64_t)weir_peak_rss_bytes() - (int64_t)host_before, HOST_GROWTH_MAX_BYTES);
    for (int d = 0; d < 2; d++)
        weir_gpu_jpeg_close(&decoders[d]);
    for (int i = 0; i < N; i++) {
        gpujx_release(&x, &images[i]);
        free(bytes[i]);
    }
}

static void check_engine(enum weir_gpu_jpeg_engine engine, int groups)
{
    struct weir_gpu_jpeg *decoder;
    if (weir_gpu_jpeg_check(0, engine, NULL, &err) < 0) {
        printf("%s: %s\n", weir_gpu_jpeg_engine_name(engine), err.text);
        err = WEIR_ERR_NONE;
        return;
    }
    if (weir_gpu_jpeg_open(&decoder, 0, engine, GROUP_MAX, &err) < 0) {
        gpujx_fail(&err, "opening the %s engine", weir_gpu_jpeg_engine_name(engine));
        return;
    }
    check_made(decoder, engine);
    check_filled(decoder, engine);
    check_photos(decoder, engine);
    check_refusals(decoder, engine);
    check_company(decoder, engine);
    weir_gpu_jpeg_close(&decoder);
    check_memory(engine, groups);
}

int main(int argc, char **argv)
{
    int groups = argc > 1 ? atoi(argv[1]) : 10000, engines;
    char library[256];
    struct gpufx fx;
    setvbuf(stdout, NULL, _IOLBF, 0);
    gpufx_open(&fx); /* exits if there is no GPU */
    gpufx_close(&fx);
    if (gpujx_open(&x, &err) < 0 || weir_gpu_jpeg_check(0, WEIR_GPU_JPEG_SM, &engines, &err) < 0) {
        printf("skipped: %s\n", err.text);
        gpujx_close(&x);
        return SKIPPED;
    }
    weir_gpu_jpeg_library(library, sizeof library);
    printf("%s, %d JPEG engines\n", library, engines);
    for (int engine = 0; engine < WEIR_GPU_JPEG_ENGINES; engine++)
        check_engine((enum weir_gpu_jpeg_engine)engine, groups);
    gpujx_close(&x);
    printf("%d failures\n", gpujx_failures);
    return gpujx_failures ? 1 : 0;
}
