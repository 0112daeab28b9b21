/* The result of decoding a frame does not depend on previous frames: frames of all kinds, half of them damaged, are
 * decoded in random order by one decoder, and each frame also by a new decoder. Return code, reason and pixels must
 * match. The same is tested for chunks and the contexts that unfilter them.
 *
 *     build/release/tests/test_frame_order [FRAMES [SEED]]
 *
 * Each backend decodes FRAMES (default 1,000) frames. Real frames come from $WEIR_DATA. */
#include "datasets/chunks/filters.h"
#include "tests/fixtures/codec_encode.h"
#include "tests/fixtures/frame_pool.h"
#include "tests/fixtures/jpeg_both.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/png_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#if WEIR_HAVE_ZSTD
#include <zstd.h>
#endif

enum { SIDE_MAX = 4096, PIXELS_MAX = 10000000, KEPT = 0, NEW = 1, DIFFERENCES_SHOWN = 5 };

static int differences;

static uint8_t *bytes_of(size_t n)
{
    uint8_t *bytes = malloc(n ? n : 1);
    if (!bytes)
        fixture_die("out of memory");
    return bytes;
}

static void report(const char *backend, int number, const char *what, const int rc[2], const char *const reason[2])
{
    if (differences++ < DIFFERENCES_SHOWN)
        printf("FAIL: %s, number %d: %s: kept: %d \"%s\", new: %d \"%s\"\n", backend, number, what, rc[KEPT],
               reason[KEPT], rc[NEW], reason[NEW]);
}

/* ---- frames ---- */

struct run {
    const char *backend;
    struct weir_pixel_format format;
    struct weir_decoder *decoder[2], *prober;
    uint8_t *image[2]; /* enlarged on demand */
    size_t image_bytes;
    int frames, refused;
};

static struct weir_decoder *open_decoder(const struct run *run, const char *engine)
{
    struct weir_decoder *decoder;
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_decoder_open(&decoder, engine, &run->format, SIDE_MAX, &err) < 0)
        fixture_die("%s", err.text);
    return decoder;
}

/* Fills the two images with different bytes, so that pixels not written by a decoder differ. */
static void fill_images(struct run *run, size_t bytes)
{
    for (int i = 0; i < 2; i++) {
        if (bytes > run->image_bytes) {
            free(run->image[i]);
            run->image[i] = bytes_of(bytes);
        }
        memset(run->image[i], i ? 0x5A : 0xA5, bytes);
    }
    run->image_bytes = bytes > run->image_bytes ? bytes : run->image_bytes;
}

static void compare_decoded(struct run *run, const struct weir_frame *frame, int number)
{
    int width = frame->view ? frame->view->out_width : frame->width, rc[2];
    int height = frame->view ? frame->view->out_height : frame->height;
    size_t bytes = weir_frame_bytes(&run->format, frame->kind, width, height);
    const char *reason[2];
    fill_images(run, bytes);
    for (int i = 0; i < 2; i++) {
        rc[i] = weir_decode(run->decoder[i], frame, run->image[i]);
        reason[i] = rc[i] < 0 ? weir_decoder_reason(run->decoder[i]) : "";
    }
    run->refused += rc[NEW] < 0;
    if (rc[KEPT] != rc[NEW] || strcmp(reason[KEPT], reason[NEW]) != 0)
        report(run->backend, number, "return codes or reasons", rc, reason);
    else if (rc[NEW] == 0 && memcmp(run->image[KEPT], run->image[NEW], bytes) != 0)
        report(run->backend, number, "pixels", rc, reason);
}

static void compare_probed(struct run *run, const struct weir_frame *frame, int number)
{
    struct weir_image_info info[2] = {{0}, {0}};
    const char *reason[2];
    int rc[2];
    for (int i = 0; i < 2; i++) {
        rc[i] = weir_probe_image(run->decoder[i], frame->kind, frame->bytes, frame->length, &info[i]);
        reason[i] = rc[i] < 0 ? weir_decoder_reason(run->decoder[i]) : "";
    }
    if (rc[KEPT] != rc[NEW] || strcmp(reason[KEPT], reason[NEW]) != 0 ||
        (rc[NEW] == 0 && (info[KEPT].width != info[NEW].width || info[KEPT].height != info[NEW].height ||
                          info[KEPT].components != info[NEW].components)))
        report(run->backend, number, "headers", rc, reason);
}

/* Uses the size in the frame's header if it can be read. */
static void compare_frame(struct run *run, const char *engine, struct jpeg_choices *choices, struct weir_frame *frame,
                          int number)
{
    struct weir_image_info info;
    bool known = weir_probe_image(run->prober, frame->kind, frame->bytes, frame->length, &info) == 0 &&
                 info.width <= SIDE_MAX && (long)info.width * info.height <= PIXELS_MAX;
    frame->width = known ? info.width : 16;
    frame->height = known ? info.height : 16;
    struct weir_view view = jpeg_both_view(jpeg_choose(choices, 65536), frame->width, frame->height);
    frame->view = jpeg_choose(choices, 3) == 0 ? &view : NULL;
    run->decoder[NEW] = open_decoder(run, engine);
    if (jpeg_choose(choices, 8) == 0)
        compare_probed(run, frame, number);
    compare_decoded(run, frame, number);
    weir_decoder_close(&run->decoder[NEW]);
    run->frames++;
}

/* Runs one decoder for each of the eight pixel formats. */
static void run_backend(const char *backend, const char *engine, const struct frame_pool *pool, int frames,
                        unsigned seed)
{
    struct run run = {.backend = backend};
    uint8_t *bytes = bytes_of(FRAME_POOL_BYTES_MAX);
    struct jpeg_choices choices = jpeg_choices_of_seed(seed);
    int before = differences;
    for (int format = 0; format < JPEG_BOTH_FORMATS; format++) {
        run.format = jpeg_both_format(format);
        run.decoder[KEPT] = open_decoder(&run, engine);
        run.prober = open_decoder(&run, engine);
        for (int i = frames * format / JPEG_BOTH_FORMATS; i < frames * (format + 1) / JPEG_BOTH_FORMATS; i++) {
            const struct pool_frame *from;
            size_t length = frame_pool_draw(pool, &choices, bytes, &from);
            uint8_t *exact = bytes_of(length); /* exact size, so that a sanitizer detects reads past the end */
            memcpy(exact, bytes, length);
            if (length > 4 && memcmp(exact, "\x89PNG", 4) == 0 && jpeg_choose(&choices, 2))
                pngfx_mend(exact, length); /* corrects the checksums of damaged chunks */
            struct weir_frame frame = {.kind = from->kind, .bytes = exact, .length = length};
            compare_frame(&run, engine, &choices, &frame, i);
            free(exact);
        }
        weir_decoder_close(&run.decoder[KEPT]);
        weir_decoder_close(&run.prober);
    }
    printf("%s: %d frames, drawn from %d, %d refused, %d differences\n", backend, run.frames, pool->n, run.refused,
           differences - before);
    if (run.refused == 0 || run.refused == run.frames)
        fixture_die("%s: no frame was refused, or all were", backend);
    free(run.image[0]);
    free(run.image[1]);
    free(bytes);
}

/* ---- frame pools ---- */

static void add_pngs(struct frame_pool *pool)
{
    for (int i = 0; i < 120; i++) {
        struct pngfx_image how = {.kind = (enum pngfx_kind)(i % PNGFX_KINDS),
                                  .width = 1 + i * 13 % 64,
                                  .height = 1 + i * 29 % 48,
                                  .filter = (enum pngfx_filter)(i / 3 % PNGFX_FILTERS),
                                  .interlaced = i / 2 % 2,
                                  .transparent = i % 5 == 0,
                                  .described = i % 7 == 0,
                                  .seed = i};
        size_t length;
        uint8_t *bytes = pngfx_write(&how, &length);
        bool depth = how.kind == PNGFX_GRAY16 || (how.kind == PNGFX_GRAY8 && i % 2);
        frame_pool_add(pool, depth ? WEIR_FRAME_PNG16 : WEIR_FRAME_IMAGE, bytes, length);
    }
}

static inline uint8_t *picture(int width, int height, int seed)
{
    uint8_t *rgb = bytes_of((size_t)width * (size_t)height * 3);
    for (int i = 0; i < width * height * 3; i++)
        rgb[i] = (uint8_t)((i / 3 % width) * (seed % 9 + 1) + (i / 3 / width) * 5 + (i % 3) * seed +
                           ((i * 2654435761u) >> 28));
    return rgb;
}

#if WEIR_HAVE_OPENJPEG
static void add_jpeg2000(struct frame_pool *pool)
{
    static const int components[] = {3, 1, 3, 4};
    for (int i = 0; i < 24; i++) {
        struct codec_encode how = {.width = 8 + i * 5 % 56, .height = 8 + i * 7 % 40, .components = components[i % 4]};
        how.file = i / 2 % 2;
        how.transform = how.components == 3 && i / 4 % 2;
        uint8_t *rgb = picture(how.width, how.height, i);
        size_t length;
        how.rgb = rgb;
        uint8_t *bytes = encode_jpeg2000(&how, &length);
        frame_pool_add(pool, WEIR_FRAME_JPEG2000, bytes, length);
        free(rgb);
    }
}
#endif

#if WEIR_HAVE_JXL
static void add_jpegxl(struct frame_pool *pool)
{
    for (int i = 0; i < 24; i++) {
        struct codec_encode how = {.width = 8 + i * 5 % 56, .height = 8 + i * 7 % 40, .components = i % 3 ? 3 : 1};
        how.file = i / 2 % 2;
        how.lossy = i / 4 % 2;
        uint8_t *rgb = picture(how.width, how.height, i);
        size_t length;
        how.rgb = rgb;
        uint8_t *bytes = encode_jpegxl(&how, &length);
        frame_pool_add(pool, WEIR_FRAME_JPEGXL, bytes, length);
        free(rgb);
    }
}
#endif

static void run_frames(int frames, unsigned seed)
{
    struct frame_pool jpegs = {0}, pngs = {0}, all = {0};
    frame_pool_add_made(&jpegs);
    printf("%d real JPEGs\n", frame_pool_add_shared(&jpegs));
    add_pngs(&pngs);
    run_backend("turbo", "turbo", &jpegs, frames, seed);
    run_backend("turbo-original", "turbo-original", &jpegs, frames, seed + 1);
    run_backend("png", "turbo", &pngs, frames, seed + 2);
    frame_pool_add_made(&all);
    add_pngs(&all);
#if WEIR_HAVE_OPENJPEG
    struct frame_pool jpeg2000 = {0};
    add_jpeg2000(&jpeg2000);
    add_jpeg2000(&all);
    run_backend("jpeg2000", "turbo", &jpeg2000, frames, seed + 3);
    frame_pool_free(&jpeg2000);
#endif
#if WEIR_HAVE_JXL
    struct frame_pool jpegxl = {0};
    add_jpegxl(&jpegxl);
    add_jpegxl(&all);
    run_backend("jpegxl", "turbo", &jpegxl, frames, seed + 4);
    frame_pool_free(&jpegxl);
#endif
    run_backend("all kinds", "turbo", &all, frames, seed + 5);
    frame_pool_free(&jpegs);
    frame_pool_free(&pngs);
    frame_pool_free(&all);
}

/* ---- chunks ---- */

enum { CHUNK_BYTES = 6000, CHUNKS = 40 };

struct chunk {
    uint8_t bytes[2 * CHUNK_BYTES];
    size_t n;
};

static size_t pack_zlib(const uint8_t *in, uint8_t *out, int level, bool gzip)
{
    z_stream stream = {.next_in = (Bytef *)in, .avail_in = CHUNK_BYTES, .next_out = out, .avail_out = 2 * CHUNK_BYTES};
    if (deflateInit2(&stream, level, Z_DEFLATED, gzip ? 31 : 15, 8, level % 2 ? Z_DEFAULT_STRATEGY : Z_FIXED) != Z_OK ||
        deflate(&stream, Z_FINISH) != Z_STREAM_END)
        fixture_die("deflate failed");
    deflateEnd(&stream);
    return stream.total_out;
}

static size_t pack(int filter, const uint8_t *in, uint8_t *out, int level)
{
    switch (filter) {
#if WEIR_HAVE_ZSTD
    case WEIR_FILTER_ZARR_ZSTD:
        return ZSTD_compress(out, 2 * CHUNK_BYTES, in, CHUNK_BYTES, level);
#endif
#if WEIR_HAVE_BLOSC
    case WEIR_FILTER_ZARR_BLOSC:
        return weir_blosc_pack(in, CHUNK_BYTES, (size_t)1 << level % 4, out, 2 * CHUNK_BYTES);
#endif
    default:
        return pack_zlib(in, out, level, filter == WEIR_FILTER_GZIP);
    }
}

static void make_chunks(struct chunk *chunks, int filter)
{
    uint8_t in[CHUNK_BYTES];
    for (int i = 0; i < CHUNKS; i++) {
        for (int k = 0; k < CHUNK_BYTES; k++)
            in[k] = (uint8_t)(i % 5 == 0 ? i : k / (i + 1) ^ (i % 3 ? 0 : k * k % 251));
        chunks[i].n = pack(filter, in, chunks[i].bytes, 1 + i % 9);
    }
}

static void compare_chunk(struct weir_unfilter_context *kept, const struct weir_filters *filters,
                          const struct chunk *chunk, int number, int *refused)
{
    struct weir_unfilter_context *context[2] = {kept, weir_unfilter_open()};
    const char *reason[2] = {"", ""}, *name = weir_filter_name(filters->filter[filters->n - 1].id);
    const uint8_t *out[2];
    uint8_t *exact = bytes_of(chunk->n);
    int rc[2];
    memcpy(exact, chunk->bytes, chunk->n);
    for (int i = 0; i < 2; i++) {
        rc[i] = weir_unfilter(context[i], filters, 0, exact, chunk->n, CHUNK_BYTES, &out[i], &reason[i]);
        reason[i] = rc[i] < 0 ? reason[i] : "";
    }
    *refused += rc[NEW] < 0;
    if (rc[KEPT] != rc[NEW] || strcmp(reason[KEPT], reason[NEW]) != 0)
        report(name, number, "return codes or reasons", rc, reason);
    else if (rc[NEW] == 0 && memcmp(out[KEPT], out[NEW], CHUNK_BYTES) != 0)
        report(name, number, "bytes", rc, reason);
    free(exact);
    weir_unfilter_close(&context[NEW]);
}

/* One context handles all filters, as in a worker that unfilters the chunks of all cameras. */
static void run_chunks(int n, unsigned seed)
{
    static const int ids[] = {WEIR_FILTER_DEFLATE, WEIR_FILTER_GZIP, WEIR_FILTER_ZARR_ZSTD, WEIR_FILTER_ZARR_BLOSC};
    enum { IDS = sizeof ids / sizeof ids[0] };
    static struct chunk chunks[IDS][CHUNKS];
    struct jpeg_choices choices = jpeg_choices_of_seed(seed);
    struct weir_unfilter_context *kept = weir_unfilter_open();
    int filters_known = 0, known[IDS], refused = 0, before = differences;
    for (int i = 0; i < IDS; i++)
        if (weir_filters_can_undo(&(struct weir_filters){1, {{ids[i], 0}}})) {
            known[filters_known++] = i;
            make_chunks(chunks[i], ids[i]);
        }
    for (int i = 0; i < n; i++) {
        int id = known[jpeg_choose(&choices, (unsigned)filters_known)];
        struct weir_filters filters = {1, {{ids[id], 0}}};
        if (jpeg_choose(&choices, 3) == 0)
            filters = (struct weir_filters){2, {{WEIR_FILTER_SHUFFLE, 4}, {ids[id], 0}}};
        struct chunk chunk = chunks[id][jpeg_choose(&choices, CHUNKS)];
        for (unsigned damage = jpeg_choose(&choices, 3); damage > 0; damage--)
            chunk.n = jpeg_damage(chunk.bytes, chunk.n, sizeof chunk.bytes, 0, &choices);
        compare_chunk(kept, &filters, &chunk, i, &refused);
    }
    printf("chunks: %d of %d filters, %d refused, %d differences\n", n, filters_known, refused, differences - before);
    if (refused == 0 || refused == n)
        fixture_die("no chunk was refused, or all were");
    weir_unfilter_close(&kept);
}

int main(int argc, char **argv)
{
    int frames = argc > 1 ? atoi(argv[1]) : 1000;
    unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    run_frames(frames, seed);
    run_chunks(frames, seed + 6);
    printf("%d differences\n", differences);
    return differences ? 1 : 0;
}
