/* JPEGs in random order on a real GPU (or on the stand-in): the pixels of a whole frame do not depend on the frames
 * decoded before or alongside it, whatever is damaged in those. Engines keep tables of one frame for the next, so
 * frames that lack some must not reach them.
 *
 * Damage that only entropy decoding finds reaches the engines. An H100's JPEG engines report success for such frames,
 * and their pixels depend on earlier frames (18,790 of some 50,000 decodes), so differences are counted, not failures.
 *
 *     build/release/tests/test_gpu_order [FRAMES]
 *
 * FRAMES (20,000) are decoded by one decoder of each engine, and compared with what a decoder gives that was opened for
 * the frame. Real frames come from $WEIR_DATA. Exits with 77 when there is no GPU or no nvJPEG. */
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

/* ---- by a decoder of its own ---- */

/* Images that the engine takes, whole and damaged, each with the planes of a decoder that was opened for it. */
struct ordered {
    struct gpujx_image images[IMAGES];
    enum weir_jpeg_refusal results[IMAGES];
    uint8_t *planes[IMAGES][3];
    bool whole[IMAGES]; /* the CPU finds no damage */
    int n, unsteady;    /* left out: two new decoders differ */
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

/* So that planes which a decoder leaves as they were are seen. */
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
        gpujx_fail(&err, "the CPU's decoder");
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
        gpujx_fail(&err, "a decoder for one frame");
    weir_gpu_jpeg_close(&alone);
    return rc == 0;
}

static void free_planes(struct ordered *o, int i)
{
    for (int c = 0; c < 3; c++)
        free(o->planes[i][c]);
    memset(o->planes[i], 0, sizeof o->planes[i]);
}

/* Adds image number o->n, whose bytes and planes are there; false when it is left out. */
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

/* Half of the images are damaged. */
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
        gpujx_fail(&err, "%d images that the %s engine takes, of %d", o->n, weir_gpu_jpeg_engine_name(engine), IMAGES);
}

/* ---- in random order ---- */

/* Decodes n different images as a group; counts in differ[1] whole ones, and in differ[0] others, that are not what
 * they were alone. */
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
        gpujx_fail(&err, "a group in random order");
    else
        for (int i = 0; i < n; i++)
            differ[o->whole[which[i]]] += !is_as_alone(o, which[i], &group[i], results[i]);
}

/* The bits of the SMs may depend on the group (test_gpu_jpeg), so groups are of one frame there. */
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
    printf("%s: %d frames in random order of %d whole images and %d damaged ones: %d and %d are not what a new decoder "
           "gives; %d images left out, as two new decoders differ\n",
           weir_gpu_jpeg_engine_name(engine), decoded, whole, o->n - whole, differ[1], differ[0], o->unsteady);
    if (differ[1])
        gpujx_fail(&err, "the pixels of whole frames depend on the frames before them");
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
    gpufx_open(&fx); /* or there is none, and this ends here */
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
