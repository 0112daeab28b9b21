/* jpeg2000: decodes codestreams and JP2 files with libopenjp2, single-threaded. The header is checked here first,
 * because the library allocates memory for the image size and the number of tiles that the header declares. The library
 * therefore only receives images of the planned size and kind. */
#include "base/files.h"
#include "decoders/decoder_ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if WEIR_HAVE_OPENJPEG
#include <openjpeg.h>

static const uint8_t codestream_begins[] = {0xFF, 0x4F, 0xFF, 0x51};

enum { SIZ_BYTES = 42, COMPONENT_BYTES = 3, SIDE_MAX = 65535, TILES_MAX = 4096, COMPONENTS_MAX = 4 };

struct jpeg2000 {
    struct weir_whole_image whole; /* buffer for the interleaved image */
    char message[WEIR_REASON_MAX]; /* the library's first error or warning; "" if none */
};

struct source {
    const uint8_t *bytes;
    size_t length, at;
};

/* ---- the header ---- */

/* Returns the offset of the codestream: 0, or its position in a JP2 file. Returns length if there is no codestream. */
static size_t find_codestream(const uint8_t *bytes, size_t length)
{
    if (memcmp(bytes, codestream_begins, sizeof codestream_begins) == 0)
        return 0;
    for (size_t at = 0; length - at >= 8;) {
        uint64_t box = weir_be(bytes + at, 4);
        size_t head = box == 1 ? 16 : 8;
        if (length - at < head)
            return length;
        if (memcmp(bytes + at + 4, "jp2c", 4) == 0)
            return at + head;
        if (box == 1)
            box = weir_be(bytes + at + 8, 8);
        if (box < head || box > length - at)
            return length;
        at += (size_t)box;
    }
    return length;
}

static int check_components(const uint8_t *at, uint32_t n, char *reason)
{
    for (uint32_t i = 0; i < n; i++, at += COMPONENT_BYTES)
        if (at[0] != 7 || at[1] != 1 || at[2] != 1) {
            snprintf(
                reason, WEIR_REASON_MAX,
                "component %u of the JPEG 2000 image has %d bits%s and sampling factors %dx%d; only unsigned 8-bit "
                "components without subsampling are supported",
                i, (at[0] & 0x7F) + 1, at[0] & 0x80 ? ", signed" : "", at[1], at[2]);
            return -EBADMSG;
        }
    return 0;
}

static int read_header(const uint8_t *bytes, size_t length, struct weir_image_info *info, char *reason)
{
    if (weir_frame_kind_of(bytes, length) != WEIR_FRAME_JPEG2000)
        return weir_frame_refuse(reason, "Not a JPEG 2000 image");
    size_t from = find_codestream(bytes, length);
    if (length - from < SIZ_BYTES)
        return weir_frame_refuse(reason, "the JPEG 2000 header is truncated or missing");
    const uint8_t *siz = bytes + from;
    uint32_t width = weir_be(siz + 8, 4), height = weir_be(siz + 12, 4), n = weir_be(siz + 40, 2);
    uint32_t tile_width = weir_be(siz + 24, 4), tile_height = weir_be(siz + 28, 4);
    if (memcmp(siz, codestream_begins, sizeof codestream_begins) != 0 || n == 0 || n > COMPONENTS_MAX ||
        weir_be(siz + 4, 2) != SIZ_BYTES - 4 + COMPONENT_BYTES * n || length - from < SIZ_BYTES + COMPONENT_BYTES * n)
        return weir_frame_refuse(reason, "the JPEG 2000 header is invalid, or has more than 4 components");
    for (int i = 16; i < 40; i += i == 20 ? 12 : 4) /* XOsiz, YOsiz, XTOsiz and YTOsiz */
        if (weir_be(siz + i, 4) != 0)
            return weir_frame_refuse(reason,
                                     "the JPEG 2000 image or its tile grid has an offset, which is not supported");
    if (width - 1 >= SIDE_MAX || height - 1 >= SIDE_MAX || tile_width == 0 || tile_height == 0) {
        snprintf(reason, WEIR_REASON_MAX, "the JPEG 2000 image has an invalid size of %ux%u pixels", width, height);
        return -EBADMSG;
    }
    *info = (struct weir_image_info){
        .width = (int)width, .height = (int)height, .components = (int)n, .bit_depth = 8, .kind = WEIR_FRAME_JPEG2000};
    uint64_t tiles = ((uint64_t)(width - 1) / tile_width + 1) * ((uint64_t)(height - 1) / tile_height + 1);
    if ((uint64_t)width * height > WEIR_CODEC_PIXELS_MAX || tiles > TILES_MAX)
        return weir_probe_refuses(info, length, reason);
    return check_components(siz + SIZ_BYTES, n, reason);
}

static int probe(void *self, enum weir_frame_kind kind, const uint8_t *bytes, size_t length,
                 struct weir_image_info *info, char *reason)
{
    (void)self;
    (void)kind;
    return read_header(bytes, length, info, reason);
}

/* ---- callbacks for the library ---- */

static OPJ_SIZE_T on_read(void *buffer, OPJ_SIZE_T n, void *user)
{
    struct source *source = user;
    size_t left = source->length - source->at, got = n < left ? n : left;
    if (got == 0)
        return (OPJ_SIZE_T)-1;
    memcpy(buffer, source->bytes + source->at, got);
    source->at += got;
    return got;
}

static OPJ_OFF_T on_skip(OPJ_OFF_T n, void *user)
{
    struct source *source = user;
    if (n < 0 || (uint64_t)n > source->length - source->at) {
        source->at = source->length;
        return -1;
    }
    source->at += (size_t)n;
    return n;
}

static OPJ_BOOL on_seek(OPJ_OFF_T to, void *user)
{
    struct source *source = user;
    if (to < 0 || (uint64_t)to > source->length)
        return OPJ_FALSE;
    source->at = (size_t)to;
    return OPJ_TRUE;
}

/* Handles errors and warnings alike: after a warning the library would continue and output pixels, although the data is
 * corrupt. */
static void on_message(const char *text, void *user)
{
    struct jpeg2000 *j = user;
    if (!j->message[0])
        snprintf(j->message, sizeof j->message, "%.*s", (int)strcspn(text, "\n"), text);
}

/* ---- decoding ---- */

static int jpeg2000_open(void **self)
{
    *self = calloc(1, sizeof(struct jpeg2000));
    return *self ? 0 : -ENOMEM;
}

static void jpeg2000_close(void *self)
{
    struct jpeg2000 *j = self;
    free(j->whole.pixels);
    free(j);
}

static bool is_as_planned(const opj_image_t *image, const struct weir_frame *frame)
{
    size_t pixels = (size_t)frame->width * (size_t)frame->height;
    if (image->numcomps == 0 || image->numcomps > COMPONENTS_MAX)
        return false;
    for (OPJ_UINT32 i = 0; i < image->numcomps; i++) {
        const opj_image_comp_t *c = &image->comps[i];
        if (!c->data || (size_t)c->w * c->h != pixels || (int)c->w != frame->width || c->prec != 8 || c->sgnd)
            return false;
    }
    return true;
}

static uint8_t clamp(OPJ_INT32 value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Images with one or two components are gray; the second and fourth components are alpha and are ignored. */
static void interleave(const opj_image_t *image, size_t pixels, uint8_t *to)
{
    int step = image->numcomps >= 3;
    const OPJ_INT32 *red = image->comps[0].data, *green = image->comps[step].data, *blue = image->comps[2 * step].data;
    for (size_t i = 0; i < pixels; i++, to += 3) {
        to[0] = clamp(red[i]);
        to[1] = clamp(green[i]);
        to[2] = clamp(blue[i]);
    }
}

static opj_image_t *read_image(struct jpeg2000 *j, opj_codec_t *codec, opj_stream_t *stream)
{
    opj_dparameters_t parameters;
    opj_image_t *image = NULL;
    opj_set_default_decoder_parameters(&parameters);
    opj_set_error_handler(codec, on_message, j);
    opj_set_warning_handler(codec, on_message, j);
    bool fine = opj_setup_decoder(codec, &parameters) && opj_codec_set_threads(codec, 0) &&
                opj_read_header(stream, codec, &image) && opj_decode(codec, stream, image) &&
                opj_end_decompress(codec, stream) && !j->message[0];
    if (fine)
        return image;
    opj_image_destroy(image);
    return NULL;
}

static opj_image_t *open_image(struct jpeg2000 *j, const struct weir_frame *frame)
{
    struct source source = {frame->bytes, frame->length, 0};
    bool file = memcmp(frame->bytes, codestream_begins, sizeof codestream_begins) != 0;
    opj_codec_t *codec = opj_create_decompress(file ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
    opj_stream_t *stream = opj_stream_create(frame->length < 1 << 16 ? frame->length : 1 << 16, OPJ_TRUE);
    opj_image_t *image = NULL;
    j->message[0] = '\0';
    if (codec && stream) {
        opj_stream_set_user_data(stream, &source, NULL);
        opj_stream_set_user_data_length(stream, frame->length);
        opj_stream_set_read_function(stream, on_read);
        opj_stream_set_skip_function(stream, on_skip);
        opj_stream_set_seek_function(stream, on_seek);
        image = read_image(j, codec, stream);
    }
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    return image;
}

static int take_image(struct jpeg2000 *j, const opj_image_t *image, const struct weir_frame *frame,
                      struct weir_rows *rows, char *reason)
{
    size_t pixels = (size_t)frame->width * (size_t)frame->height;
    if (!is_as_planned(image, frame) || image->color_space == OPJ_CLRSPC_SYCC ||
        image->color_space == OPJ_CLRSPC_EYCC || image->color_space == OPJ_CLRSPC_CMYK)
        return weir_frame_refuse(reason, "the JPEG 2000 image is not 8-bit RGB or gray");
    int rc = weir_whole_image_grow(&j->whole, pixels * 3, reason);
    if (rc < 0)
        return rc;
    interleave(image, pixels, j->whole.pixels);
    weir_rows_put(rows, j->whole.pixels, (size_t)frame->width * 3);
    return 0;
}

static int decode(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason)
{
    struct jpeg2000 *j = self;
    struct weir_image_info info;
    int rc = read_header(frame->bytes, frame->length, &info, reason);
    if (rc == 0)
        rc = weir_check_frame_size(frame, (unsigned)info.width, (unsigned)info.height, reason);
    if (rc < 0)
        return rc;
    opj_image_t *image = open_image(j, frame);
    if (!image)
        return weir_frame_refuse(reason, j->message[0] ? j->message : "the JPEG 2000 image is damaged");
    rc = take_image(j, image, frame, rows, reason);
    opj_image_destroy(image);
    return rc;
}

static void library(char *text, size_t size)
{
    snprintf(text, size, "OpenJPEG %s", opj_version());
}

#endif

const struct weir_decoder_ops weir_decoder_jpeg2000 = {
    .name = "jpeg2000",
    .summary = "JPEG 2000 with libopenjp2",
    .kinds = WEIR_KIND(WEIR_FRAME_JPEG2000),
#if WEIR_HAVE_OPENJPEG
    .library = library,
    .open = jpeg2000_open,
    .close = jpeg2000_close,
    .decode = decode,
    .probe = probe,
#else
    .why_not = "built without libopenjp2",
#endif
};
