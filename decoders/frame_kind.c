/* Names of frame kinds, and decoded sizes. */
#include "weir/decoder.h"

#include <errno.h>
#include <string.h>

size_t weir_image_bytes(const struct weir_pixel_format *format, int width, int height)
{
    static const size_t bytes[] = {
        [WEIR_DTYPE_U8] = 1, [WEIR_DTYPE_F32] = 4, [WEIR_DTYPE_U16] = 2, [WEIR_DTYPE_F16] = 2, [WEIR_DTYPE_BF16] = 2};
    return (size_t)width * (size_t)height * 3 * bytes[format->dtype];
}

size_t weir_frame_bytes(const struct weir_pixel_format *format, enum weir_codec codec, int width, int height)
{
    if (weir_codec_is_depth(codec))
        return (size_t)width * (size_t)height * sizeof(uint16_t);
    return weir_image_bytes(format, width, height);
}

int weir_codec_from_name(const char *name)
{
    static const char *const names[] = {
        [WEIR_CODEC_RAW] = "raw",     [WEIR_CODEC_JPEG] = "jpeg",         [WEIR_CODEC_RAW16] = "raw16",
        [WEIR_CODEC_PNG16] = "png16", [WEIR_CODEC_JPEG2000] = "jpeg2000", [WEIR_CODEC_JPEGXL] = "jpegxl",
    };
    for (int i = 0; i < WEIR_CODEC_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -EINVAL;
}

bool weir_codec_is_depth(enum weir_codec codec)
{
    return codec == WEIR_CODEC_RAW16 || codec == WEIR_CODEC_PNG16;
}

bool weir_codec_is_encoded(enum weir_codec codec)
{
    return codec != WEIR_CODEC_RAW && codec != WEIR_CODEC_RAW16;
}
