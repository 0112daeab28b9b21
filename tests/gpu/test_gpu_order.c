/* JPEGs in random order on a real or fake GPU. The pixels of an intact frame must not depend on frames
 * decoded before or alongside it, however damaged those are. Engines keep the tables of one frame for the next, so
 * frames with missing tables must not reach them.
 *
 * Damage that only entropy decoding detects does reach the engines. An H100's JPEG engines report success for such
 * frames, but their pixels depend on earlier frames (18,790 of about 50,000 decodes), so these differences are counted,
 * not treated as failures.
 *
 *     build/release/tests/test_gpu_order [FRAMES]
 *
 * One decoder per engine decodes FRAMES frames (default 20,000). Each result is compared with that of a decoder opened
 * only for this frame. Real frames come from $WEIR_DATA. Exits with status 77 without a GPU or nvJPEG. */
#include "tests/fixtures/frame_pool.h"
#include "tests/fixtures/gpu_jpeg_fixture.h"
#include "tests/gpu/gpu_fixture.h"
#include "weir/base.h"
#include "weir/decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, IMAGES = 32, GROUP = 16, SIDE_MAX = 1024, DRAWS_MAX = 200 * IMAGES };

static struct gpujx x;
static struct weir_err err;

/* ---- one decoder per frame ---- */

/* Images accepted by the engine, intact and damaged, each with the planes from a decoder opened for this image. */
struct ordered {
    struct gpujx_image images[IMAGES];
    enum weir_jpeg_refusal results[IMAGES];
    uint8_t *planes[IMAGES][3];
    bool whole[IMAGES]; /* the CPU detects no damage */
    int n, unsteady;    /* unsteady: images skipped because two new decoders disagree */
};

static size_t plane_bytes(const struct gpujx_image *image, int c)
{
    return (size_t)image->width[c] * (size_t)image->height[c];
}

static bool is_as_alone(const struct ordered *o, int i, const struct gpujx_image *image, enum weir_jpeg_refusal result)
{
    if (result != o->results[i])
        return false;
    for (int c = 0; c < 3 && o->planes[i][c] && result == WEIR_JPEG_TAKEN; c++)
        if (memcmp(o->planes[i][c], image->plane[c], plane_bytes(image, c)) != 0)
            return false;
    return true;
}

/* Overwrites the planes, so that samples not written by a decoder are detected. */
static void scribble(const struct gpujx_image *image)
{
    static uint8_t pattern[2 * SIDE_MAX * SIDE_MAX];
    memset(pattern, 0x5A, sizeof pattern);
    for (int c = 0; c < 3 && image->plane[c]; c++)
        if (x.ops->copy_in(x.gpu, image->frame.plane[c], pattern, image->frame.pitch[c] * (size_t)image->height[c],
                           x.stream, &err) < 0)
            gpujx_fail(&err, "overwriting planes");
}

static bool cpu_decodes(const struct gpujx_image *image)
{
    struct weir_pixel_format format = {.dtype = WEIR_DTYPE_U8};
    struct weir_decoder *decoder;
    int width = image->header.width, height = image->header.height;
    uint8_t *pixels = malloc((size_t)width * (size_t)height * 3);
    if (weir_decoder_open(&decoder, "turbo", &format, SIDE_MAX, &err) < 0)
        gpujx_fail(&err, "opening the CPU's decoder");
    struct weir_frame frame = {WEIR_FRAME_IMAGE, image->bytes, image->length, width, height, NULL};
    bool fine = weir_decode(decoder, &frame, pixels) == 0;
    weir_decoder_close(&decoder);
    free(pixels);
    return fine;
}

static bool decode_with_new(struct gpujx_image *image, enum weir_gpu_jpeg_engine engine, enum weir_jpeg_refusal *result)
{
    struct weir_gpu_jpeg *alone = NULL;
    scribble(image);
    int rc = weir_gpu_jpeg_open(&alone, 0, engine, GROUP, &err);
    rc = rc < 0 ? rc : gpujx_decode(&x, alone, image, 1, result, &err);
    if (rc < 0)
        gpujx_fail(&err, "decoding a frame with a new decoder");
    weir_gpu_jpeg_close(&alone);
    return rc == 0;
}

static void free_planes(struct ordered *o, int i)
{
    for (int c = 0; c < 3; c++)
        free(o->planes[i][c]);
    memset(o->planes[i], 0, sizeof o->planes[i]);
}

/* Decodes image o->n with a new decoder and keeps its planes. Returns false if the image is to be skipped. */
static bool keep_planes(struct ordered *o, enum weir_gpu_jpeg_engine engine)
{
    struct gpujx_image *image = &o->images[o->n];
    enum weir_jpeg_refusal again;
    if (!decode_with_new(image, engine, &o->results[o->n]))
        return false;
    for (int c = 0; c < 3 && image->plane[c]; c++) {
        o->planes[o->n][c] = malloc(plane_bytes(image, c));
        memcpy(o->planes[o->n][c], image->plane[c], plane_bytes(image, c));
    }
    if (!decode_with_new(image, engine, &again) || !is_as_alone(o, o->n, image, again)) {
        o->unsteady++;
        free_planes(o, o->n);
        return false;
    }
    return true;
}

/* Returns true for suitable images, until half of the images are intact and half are damaged. */
static bool is_wanted(struct ordered *o, const struct gpujx_image *image)
{
    if (image->refusal != WEIR_JPEG_TAKEN || image->header.width > SIDE_MAX || image->header.height > SIDE_MAX)
        return false;
    bool whole = cpu_decodes(image);
    int same = 0;
    for (int i = 0; i < o->n; i++)
        same += o->whole[i] == whole;
    o->whole[o->n] = whole;
    return same < IMAGES / 2;
}

static void take_images(struct ordered *o, const struct frame_pool *pool, enum weir_gpu_jpeg_engine engine,
                        struct jpeg_choices *choices)
{
    uint8_t *bytes = malloc(FRAME_POOL_BYTES_MAX);
    int before = gpujx_failures;
    for (int drawn = 0; o->n < IMAGES && drawn < DRAWS_MAX && gpujx_failures == before; drawn++) {
        const struct pool_frame *from;
        struct gpujx_image *image = &o->images[o->n];
        size_t length = frame_pool_draw(pool, choices, bytes, &from);
        uint8_t *copy = malloc(length);
        memcpy(copy, bytes, length);
        if (gpujx_take(&x, image, copy, length, engine, &err) < 0)
            gpujx_fail(&err, "no memory for a frame");
        else if (is_wanted(o, image) && keep_planes(o, engine)) {
            o->n++;
            continue;
        }
        gpujx_release(&x, image);
        free(copy);
    }
    free(bytes);
    if (o->n < IMAGES)
        gpujx_fail(&err, "the pool has only %d images that the %s engine accepts, not %d", o->n,
                   weir_gpu_jpeg_engine_name(engine), IMAGES);
}

/* ---- in random order ---- */

/* Decodes n different images as a group. Counts results that differ from those of a new decoder: intact images in
 * differ[1], damaged ones in differ[0]. */
static void decode_group(const struct ordered *o, struct weir_gpu_jpeg *decoder, int n, struct jpeg_choices *choices,
                         int differ[2])
{
    struct gpujx_image group[GROUP];
    enum weir_jpeg_refusal results[GROUP];
    int which[GROUP], first = (int)jpeg_choose(choices, IMAGES), step = 1 + (int)jpeg_choose(choices, IMAGES / GROUP);
    for (int i = 0; i < n; i++) {
        which[i] = (first + i * step) % IMAGES;
        group[i] = o->images[which[i]];
        scribble(&group[i]);
    }
    if (gpujx_decode(&x, decoder, group, n, results, &err) < 0)
        gpujx_fail(&err, "decoding a group in random order");
    else
        for (int i = 0; i < n; i++)
            differ[o->whole[which[i]]] += !is_as_alone(o, which[i], &group[i], results[i]);
}

/* On the SMs, a frame's bits can depend on its group (see test_gpu_jpeg), so groups have one frame there. */
static void decode_all(const struct ordered *o, enum weir_gpu_jpeg_engine engine, int frames,
                       struct jpeg_choices *choices)
{
    struct weir_gpu_jpeg *decoder = NULL;
    int decoded = 0, differ[2] = {0, 0}, whole = 0, before = gpujx_failures;
    if (weir_gpu_jpeg_open(&decoder, 0, engine, GROUP, &err) < 0)
        gpujx_fail(&err, "opening the %s engine", weir_gpu_jpeg_engine_name(engine));
    while (decoded < frames && gpujx_failures == before) {
        int n = engine == WEIR_GPU_JPEG_HARDWARE ? 1 + (int)jpeg_choose(choices, GROUP) : 1;
        decode_group(o, decoder, n, choices, differ);
        decoded += n;
    }
    for (int i = 0; i < o->n; i++)
        whole += o->whole[i];
    printf("%s: %d frames in random order, of %d intact and %d damaged images: %d and %d differ from those of a new "
           "decoder; %d images skipped because two new decoders disagree\n",
           weir_gpu_jpeg_engine_name(engine), decoded, whole, o->n - whole, differ[1], differ[0], o->unsteady);
    if (differ[1])
        gpujx_fail(&err, "the pixels of intact frames depend on earlier frames");
    weir_gpu_jpeg_close(&decoder);
}

static void check_engine(enum weir_gpu_jpeg_engine engine, const struct frame_pool *pool, int frames)
{
    static struct ordered o;
    struct jpeg_choices choices = jpeg_choices_of_seed(1);
    if (weir_gpu_jpeg_check(0, engine, NULL, &err) < 0) {
        printf("%s: %s\n", weir_gpu_jpeg_engine_name(engine), err.text);
        err = WEIR_ERR_NONE;
        return;
    }
    o = (struct ordered){0};
    uint64_t start_ns = weir_clock_monotonic_ns();
    take_images(&o, pool, engine, &choices);
    printf("%s: %d images, each by two new decoders, %.1f s\n", weir_gpu_jpeg_engine_name(engine), o.n,
           (double)(weir_clock_monotonic_ns() - start_ns) / 1e9);
    if (o.n == IMAGES)
        decode_all(&o, engine, frames, &choices);
    for (int i = 0; i < o.n; i++) {
        free_planes(&o, i);
        free((void *)o.images[i].bytes);
        gpujx_release(&x, &o.images[i]);
    }
}

int main(int argc, char **argv)
{
    int frames = argc > 1 ? atoi(argv[1]) : 20000;
    struct frame_pool pool = {0};
    struct gpufx fx;
    setvbuf(stdout, NULL, _IOLBF, 0);
    gpufx_open(&fx); /* exits if there is no GPU */
    gpufx_close(&fx);
    if (gpujx_open(&x, &err) < 0 || weir_gpu_jpeg_check(0, WEIR_GPU_JPEG_SM, NULL, &err) < 0) {
        printf("skipped: %s\n", err.text);
        gpujx_close(&x);
        return SKIPPED;
    }
    frame_pool_add_made(&pool);
    frame_pool_add_shared(&pool);
    for (int engine = 0; engine < WEIR_GPU_JPEG_ENGINES; engine++)
        check_engine((enum weir_gpu_jpeg_engine)engine, &pool, frames);
    frame_pool_free(&pool);
    gpujx_close(&x);
    printf("%d failures\n", gpujx_failures);
    return gpujx_failures ? 1 : 0;
}
