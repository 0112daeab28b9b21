/* jpegxl: decodes codestreams and containers with libjxl, single-threaded. The library is opened at the first JPEG XL
 * frame, because no distribution has a static one. The image size is read and checked before any pixels are decoded,
 * and limits the memory that the library can allocate. Pixels depend on the installed version: in lossy frames, values
 * from libjxl 0.7 and from newer versions differ by up to 1. */
#include "decoders/decoder_ops.h"

#include "base/shared_library.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if WEIR_HAVE_JXL
#include <jxl/decode.h>

/* ---- the library ---- */

static struct {
    __typeof__(JxlDecoderCloseInput) *close_input;
    __typeof__(JxlDecoderCreate) *create;
    __typeof__(JxlDecoderDestroy) *destroy;
    __typeof__(JxlDecoderGetBasicInfo) *get_basic_info;
    __typeof__(JxlDecoderImageOutBufferSize) *image_out_buffer_size;
    __typeof__(JxlDecoderProcessInput) *process_input;
    __typeof__(JxlDecoderReleaseInput) *release_input;
    __typeof__(JxlDecoderReset) *reset;
    __typeof__(JxlDecoderSetImageOutBuffer) *set_image_out_buffer;
    __typeof__(JxlDecoderSetInput) *set_input;
    __typeof__(JxlDecoderSubscribeEvents) *subscribe_events;
    __typeof__(JxlDecoderVersion) *version;
} lib;

static bool have_lib;
static char why_no_lib[WEIR_REASON_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The functions and structures used here are the same from 0.7 to 0.11. */
static void load_lib(void)
{
    static const char *const files[] = {"libjxl.so.0.7",  "libjxl.so.0.8",  "libjxl.so.0.9",
                                        "libjxl.so.0.10", "libjxl.so.0.11", NULL};
    static const struct weir_symbol symbols[] = {
        {"JxlDecoderCloseInput", &lib.close_input},
        {"JxlDecoderCreate", &lib.create},
        {"JxlDecoderDestroy", &lib.destroy},
        {"JxlDecoderGetBasicInfo", &lib.get_basic_info},
        {"JxlDecoderImageOutBufferSize", &lib.image_out_buffer_size},
        {"JxlDecoderProcessInput", &lib.process_input},
        {"JxlDecoderReleaseInput", &lib.release_input},
        {"JxlDecoderReset", &lib.reset},
        {"JxlDecoderSetImageOutBuffer", &lib.set_image_out_buffer},
        {"JxlDecoderSetInput", &lib.set_input},
        {"JxlDecoderSubscribeEvents", &lib.subscribe_events},
        {"JxlDecoderVersion", &lib.version},
    };
    have_lib = weir_shared_library_open(files, symbols, sizeof symbols / sizeof *symbols, "install libjxl 0.7 to 0.11",
                                        why_no_lib, sizeof why_no_lib);
}

static int ready(int gpu, struct weir_err *err)
{
    (void)gpu;
    pthread_once(&once, load_lib);
    return have_lib ? 0 : weir_err_set(err, -ENODEV, "%s", why_no_lib);
}

/* ---- the codec ---- */

/* The library's memory limit is BYTES_PER_PIXEL times the number of pixels, plus BYTES_BESIDES. */
enum { BYTES_PER_PIXEL = 128, BYTES_BESIDES = 64 << 20, SIDE_MAX = 65535 };

/* Header that stores the size in front of each of the library's allocations. Preserves malloc's alignment. */
struct block {
    _Alignas(max_align_t) size_t bytes;
};

struct jpegxl {
    JxlDecoder *decoder;
    size_t used, limit; /* bytes that the library has allocated, and the maximum that it may allocate */
    bool ran_out;
    struct weir_whole_image whole;
};

static void *on_alloc(void *user, size_t n)
{
    struct jpegxl *j = user;
    if (n > j->limit || j->used > j->limit - n) {
        j->ran_out = true;
        return NULL;
    }
    struct block *block = malloc(sizeof *block + n);
    if (!block)
        return NULL;
    block->bytes = n;
    j->used += n;
    return block + 1;
}

static void on_free(void *user, void *memory)
{
    struct jpegxl *j = user;
    struct block *block = memory ? (struct block *)memory - 1 : NULL;
    j->used -= block ? block->bytes : 0;
    free(block);
}

static int jpegxl_open(void **self)
{
    *self = calloc(1, sizeof(struct jpegxl));
    return *self ? 0 : -ENOMEM;
}

static void jpegxl_close(void *self)
{
    struct jpegxl *j = self;
    if (j->decoder)
        lib.destroy(j->decoder);
    free(j->whole.pixels);
    free(j);
}

/* Starts decoding an image. Reuses the decoder. */
static int start(struct jpegxl *j, const uint8_t *bytes, size_t length, int events, uint64_t pixels, char *reason)
{
    JxlMemoryManager memory = {j, on_alloc, on_free};
    pthread_once(&once, load_lib);
    if (!have_lib) {
        snprintf(reason, WEIR_REASON_MAX, "a JPEG XL image: %.200s", why_no_lib);
        return -EBADMSG;
    }
    j->limit = BYTES_BESIDES + (size_t)pixels * BYTES_PER_PIXEL;
    j->ran_out = false;
    if (j->decoder)
        lib.reset(j->decoder);
    else
        j->decoder = lib.create(&memory);
    if (!j->decoder || lib.subscribe_events(j->decoder, events) != JXL_DEC_SUCCESS ||
        lib.set_input(j->decoder, bytes, length) != JXL_DEC_SUCCESS) {
        snprintf(reason, WEIR_REASON_MAX, "out of memory for a JPEG XL decoder");
        return -ENOMEM;
    }
    lib.close_input(j->decoder);
    return 0;
}

static int read_size(struct jpegxl *j, struct weir_image_info *info, size_t length, char *reason)
{
    JxlBasicInfo basic;
    JxlDecoderStatus status = lib.process_input(j->decoder);
    if (status != JXL_DEC_BASIC_INFO || lib.get_basic_info(j->decoder, &basic) != JXL_DEC_SUCCESS)
        return weir_frame_refuse(reason, "the JPEG XL header is damaged or truncated");
    if (basic.xsize - 1 >= SIDE_MAX || basic.ysize - 1 >= SIDE_MAX) {
        snprintf(reason, WEIR_REASON_MAX, "the JPEG XL image has an invalid size of %ux%u pixels", basic.xsize,
                 basic.ysize);
        return -EBADMSG;
    }
    *info = (struct weir_image_info){.width = (int)basic.xsize,
                                     .height = (int)basic.ysize,
                                     .components = (int)(basic.num_color_channels + (basic.alpha_bits > 0)),
                                     .bit_depth = (int)basic.bits_per_sample,
                                     .kind = WEIR_FRAME_JPEGXL};
    if ((uint64_t)basic.xsize * basic.ysize > WEIR_CODEC_PIXELS_MAX)
        return weir_probe_refuses(info, length, reason);
    if (basic.bits_per_sample <= 8 && basic.exponent_bits_per_sample == 0 && basic.have_animation == JXL_FALSE)
        return 0;
    snprintf(reason, WEIR_REASON_MAX,
             "the JPEG XL image has %u bits per value%s; only still images with at most 8 bits are supported",
             basic.bits_per_sample, basic.have_animation ? " and is animated" : "");
    return -EBADMSG;
}

static int probe(void *self, enum weir_frame_kind kind, const uint8_t *bytes, size_t length,
                 struct weir_image_info *info, char *reason)
{
    struct jpegxl *j = self;
    (void)kind;
    if (weir_frame_kind_of(bytes, length) != WEIR_FRAME_JPEGXL)
        return weir_frame_refuse(reason, "Not a JPEG XL image");
    int rc = start(j, bytes, length, JXL_DEC_BASIC_INFO, 0, reason);
    rc = rc < 0 ? rc : read_size(j, info, length, reason);
    if (j->decoder)
        lib.release_input(j->decoder);
    return rc;
}

/* Decodes the whole image to j->whole.pixels. Gray becomes RGB, and alpha is dropped. */
static int read_pixels(struct jpegxl *j, size_t bytes, char *reason)
{
    static const JxlPixelFormat rgb = {3, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
    bool full = false;
    for (;;) {
        size_t wanted = 0;
        switch (lib.process_input(j->decoder)) {
        case JXL_DEC_NEED_IMAGE_OUT_BUFFER:
            if (lib.image_out_buffer_size(j->decoder, &rgb, &wanted) != JXL_DEC_SUCCESS || wanted != bytes ||
                lib.set_image_out_buffer(j->decoder, &rgb, j->whole.pixels, bytes) != JXL_DEC_SUCCESS)
                return weir_frame_refuse(reason, "the JPEG XL image's size does not match its header");
            break;
        case JXL_DEC_FULL_IMAGE:
            full = true;
            break;
        case JXL_DEC_SUCCESS:
            return full ? 0 : weir_frame_refuse(reason, "the JPEG XL image has too few pixels");
        case JXL_DEC_NEED_MORE_INPUT:
            return weir_frame_refuse(reason, "the JPEG XL image is truncated");
        default:
            return weir_frame_refuse(reason, j->ran_out ? "the JPEG XL image needs too much memory for its size"
                                                        : "the JPEG XL image is damaged");
        }
    }
}

static int decode(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason)
{
    struct jpegxl *j = self;
    struct weir_image_info info;
    uint64_t pixels = (uint64_t)frame->width * (uint64_t)frame->height;
    if (weir_frame_kind_of(frame->bytes, frame->length) != WEIR_FRAME_JPEGXL)
        return weir_frame_refuse(reason, "Not a JPEG XL image");
    int rc = weir_whole_image_grow(&j->whole, (size_t)pixels * 3, reason);
    if (rc == 0)
        rc = start(j, frame->bytes, frame->length, JXL_DEC_BASIC_INFO | JXL_DEC_FULL_IMAGE, pixels, reason);
    if (rc == 0)
        rc = read_size(j, &info, frame->length, reason);
    if (rc == 0)
        rc = weir_check_frame_size(frame, (unsigned)info.width, (unsigned)info.height, reason);
    if (rc == 0)
        rc = read_pixels(j, (size_t)pixels * 3, reason);
    if (j->decoder)
        lib.reset(j->decoder); /* releases the frame's bytes and the decoder's memory */
    if (rc == 0)
        weir_rows_put(rows, j->whole.pixels, (size_t)frame->width * 3);
    return rc;
}

static void library(char *text, size_t size)
{
    pthread_once(&once, load_lib);
    uint32_t version = have_lib ? lib.version() : 0;
    if (!have_lib)
        snprintf(text, size, "no libjxl");
    else
        snprintf(text, size, "libjxl %u.%u.%u", version / 1000000, version / 1000 % 1000, version % 1000);
}

#endif

const struct weir_decoder_ops weir_decoder_jpegxl = {
    .name = "jpegxl",
    .summary = "JPEG XL with libjxl",
    .kinds = WEIR_KIND(WEIR_FRAME_JPEGXL),
#if WEIR_HAVE_JXL
    .ready = ready,
    .library = library,
    .open = jpegxl_open,
    .close = jpegxl_close,
    .decode = decode,
    .probe = probe,
#else
    .why_not = "built without libjxl",
#endif
};
