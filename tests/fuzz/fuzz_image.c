/* libFuzzer: probes and decodes a hostile JPEG, or with PNG a hostile PNG, as colour or as depth. Like the loader, it
 * decodes with the size returned by probing, into an image of exactly that size. Bytes that start like another image
 * format are decoded as that format. The last byte selects the output format and, of a PNG, the kind, and whether to
 * correct the checksums first. Without correction, they would reject almost all mutations. */
#include "tests/fixtures/png_fixture.h"
#include "tests/fuzz/fuzz.h"
#include "weir/decoder.h"

#include <errno.h>
#include <string.h>

enum { SIDE_MAX = 512, FORMATS = 8, CANARY = 64 }; /* a canary, since sanitizers do not see the library's own writes */

static struct weir_decoder *decoders[FORMATS];

static struct weir_pixel_format format_of(int i)
{
    return (struct weir_pixel_format){.color = (enum weir_color)(i & 1),
                                      .dtype = (enum weir_dtype)(i >> 1 & 1),
                                      .layout = (enum weir_image_layout)(i >> 2 & 1)};
}

/* Returns a view of an image of this size, selected by bytes of the input. */
static struct weir_view view_of(const uint8_t *bytes, size_t length, int width, int height)
{
    int v[6];
    for (size_t i = 0; i < 6; i++)
        v[i] = length ? bytes[(length / 2 + i) % length] : (int)i;
    struct weir_view view = {.width = 1 + v[0] * width / 256, .height = 1 + v[1] * height / 256};
    view.x = v[2] * (width - view.width + 1) / 256;
    view.y = v[3] * (height - view.height + 1) / 256;
    view.out_width = v[4] % 2 ? view.width : 1 + v[4] / 2;
    view.out_height = v[4] % 2 ? view.height : 1 + v[5] / 2;
    return view;
}

static void decode(struct weir_decoder *decoder, const struct weir_pixel_format *format, const struct weir_frame *frame)
{
    int width = frame->view ? frame->view->out_width : frame->width;
    int height = frame->view ? frame->view->out_height : frame->height;
    size_t bytes_out = weir_frame_bytes(format, frame->kind, width, height);
    uint8_t *image = malloc(bytes_out + CANARY);
    memset(image + bytes_out, 0xA5, CANARY);
    int rc = weir_decode(decoder, frame, image);
    require(rc == 0 || (rc == -EBADMSG && *weir_decoder_reason(decoder)));
    for (int i = 0; i < CANARY; i++)
        require(image[bytes_out + (size_t)i] == 0xA5);
    free(image);
}

static void look(struct weir_decoder *decoder, const struct weir_pixel_format *format, enum weir_frame_kind kind,
                 const uint8_t *bytes, size_t length)
{
    struct weir_image_info info;
    int rc = weir_probe_image(decoder, kind, bytes, length, &info);
    require(rc == 0 || (rc == -EBADMSG && *weir_decoder_reason(decoder)));
    if (rc == 0) {
        require(info.width > 0 && info.height > 0 && info.components > 0 && info.bit_depth > 0 && info.kind);
        bool is_jpeg = info.kind == WEIR_FRAME_JPEG;
        require(is_jpeg == (info.subsampling != NULL) && is_jpeg == (info.process != NULL));
        if (info.width <= SIDE_MAX && info.height <= SIDE_MAX) {
            struct weir_view view = view_of(bytes, length, info.width, info.height);
            decode(decoder, format, &(struct weir_frame){kind, bytes, length, info.width, info.height, NULL});
            decode(decoder, format, &(struct weir_frame){kind, bytes, length, info.width, info.height, &view});
        }
    }
    decode(decoder, format, &(struct weir_frame){kind, bytes, length, 16, 16, NULL});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    int chosen = data[size - 1] % FORMATS;
    enum weir_frame_kind kind = PNG && data[size - 1] / FORMATS % 2 ? WEIR_FRAME_PNG16 : WEIR_FRAME_IMAGE;
    struct weir_pixel_format format = format_of(chosen);
    if (!decoders[chosen])
        require(weir_decoder_open(&decoders[chosen], "turbo", &format, SIDE_MAX, NULL) == 0);
    uint8_t *bytes = malloc(size);
    memcpy(bytes, data, size - 1);
    if (PNG && data[size - 1] / FORMATS / 2 % 2)
        pngfx_mend(bytes, size - 1);
    look(decoders[chosen], &format, kind, bytes, size - 1);
    free(bytes);
    return 0;
}
